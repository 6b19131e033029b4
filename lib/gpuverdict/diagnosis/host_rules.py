"""Rules about the host: cores, disk, memory and network that leave the GPU waiting."""

from __future__ import annotations

from collections.abc import Callable

from gpuverdict.diagnosis.finding import Hit, finding_of
from gpuverdict.diagnosis.situation import Situation

__all__ = ["HOST_RULES"]

# The GPU has time to spare below this utilisation (nvidia-smi counts any kernel as busy).
GPU_HAS_TIME = 0.7
# All cores together, and one core or one thread that can do no more.
CPU_FULL, CORE_FULL = 0.9, 0.95
# A process of several threads uses more than a core without any of them being full.
ONE_THREAD = 1.1
IO_WAIT = 0.1
# More than a stray page: a host that swaps under load moves megabytes.
SWAP_MIB_S = 1.0
LINK_FULL = 0.9


def _host_full(s: Situation) -> Hit | None:
    """All cores are busy while the GPU has time."""
    busy, gpu = s.host_cpu_busy_ratio, s.gpu_util_ratio
    if busy is None or gpu is None or busy < CPU_FULL or gpu >= GPU_HAS_TIME:
        return None
    queue = 0.0 if s.host_run_queue is None else s.host_run_queue
    return busy, finding_of("binds_host_cpu", s, busy=busy, gpu=gpu, queue=queue)


def _core_full(s: Situation) -> Hit | None:
    """One core, or one thread, does all it can while the GPU has time and other cores idle."""
    gpu, whole = s.gpu_util_ratio, s.host_cpu_busy_ratio
    if gpu is None or gpu >= GPU_HAS_TIME or (whole is not None and whole >= CPU_FULL):
        return None
    core, process = s.host_core_busy_ratio, s.host_process_cpu_ratio
    named = f"({s.host_process_name}) " if s.host_process_name else ""
    if process is not None and CORE_FULL <= process <= ONE_THREAD:
        return process, finding_of("binds_host_core", s, busy=process, gpu=gpu, named=named)
    if core is not None and core >= CORE_FULL:
        return core, finding_of("binds_host_core", s, busy=core, gpu=gpu, named="")
    return None


def _io_wait(s: Situation) -> Hit | None:
    """Cores wait for the disk while requests are served."""
    if s.host_io_wait_ratio is None or s.host_io_wait_ratio < IO_WAIT:
        return None
    return s.host_io_wait_ratio, finding_of("binds_host_io", s, wait=s.host_io_wait_ratio)


def _swap(s: Situation) -> Hit | None:
    """The host moves memory to and from disk while requests are served."""
    if s.host_swap_mib_s is None or s.host_swap_mib_s < SWAP_MIB_S:
        return None
    return s.host_swap_mib_s, finding_of("binds_host_swap", s, rate=s.host_swap_mib_s)


def _network_full(s: Situation) -> Hit | None:
    """A link of the host carries all it can."""
    if s.host_network_use_ratio is None or s.host_network_use_ratio < LINK_FULL:
        return None
    return s.host_network_use_ratio, finding_of(
        "binds_host_network", s, used=s.host_network_use_ratio, rate=s.host_network_mb_s or 0.0
    )


HOST_RULES: tuple[Callable[[Situation], Hit | None], ...] = (
    _host_full,
    _core_full,
    _io_wait,
    _swap,
    _network_full,
)
