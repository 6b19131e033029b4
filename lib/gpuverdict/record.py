"""Sample the GPUs of this host with NVML into one self-describing file.

Every tick is one write of whole lines, so that a stopped or killed recorder never leaves a cut row.
The header names the host, the driver, the cards and the columns: no second file is needed to read
it (`telemetry.record_log`).
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuverdict.errors import ParameterError

__all__ = ["COLUMNS", "FORMAT", "Recording", "record"]

FORMAT = "gpuverdict record 1"
COLUMNS = (
    "time_ns", "monotonic_ns", "gpu_index", "power_average_mw", "power_instant_mw",
    "power_draw_mw", "energy_mj", "sm_clock_mhz", "mem_clock_mhz", "gpu_util_pct", "mem_util_pct",
    "memory_used_b", "temperature_c", "mem_temperature_c", "throttle_mask", "power_limit_mw",
    "pstate", "fan_pct", "pcie_rx_kb_s", "pcie_tx_kb_s",
)  # fmt: skip
SHORTEST_MS, LONGEST_MS = 10, 60_000
# What changes slowly is read once a second: each call costs the driver time.
SLOW_S = 1.0
# The energy counter refreshes every 100 ms, and on a virtualised H200 each reading of it took 4 ms
# of CPU while every other call took microseconds (0.14 ms at most): at 10 ms a tick it alone would
# keep half a core busy. A little less than its period, so that ticks of 100 ms never miss one.
COUNTER_NS = 95_000_000
# NVML answers 32 for "unknown".
LOWEST_PSTATE = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What was recorded: file, ticks, rows, seconds, ticks that came late, CPU share used."""

    path: Path
    n_ticks: int
    n_rows: int
    duration_s: float
    n_late: int
    cpu_share: float

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.n_rows} rows in {self.duration_s:.1f} s "
            f"({self.n_late} late ticks, {self.cpu_share:.1%} of one core)"
        )


@dataclass(slots=True)
class _Card:
    """One GPU: its handle, what it does not support, and its slow values."""

    index: int
    handle: Any
    facts: dict[str, Any]
    slow: dict[str, int | None] = field(default_factory=dict)
    slow_at: float = float("-inf")
    pcie: tuple[int | None, int | None] = (None, None)
    counted_ns: int = -(10**18)


def record(
    out: str | Path,
    interval_ms: int = 100,
    gpu: int | Sequence[int] | None = None,
    *,
    nvml: Any = None,
    stop: threading.Event | None = None,
    seconds: float | None = None,
) -> Recording:
    """Record power, energy counter, clocks, throttle reasons, memory and temperatures.

    Parameters
    ----------
    out : str or Path
        File to write; an existing one is refused.
    interval_ms : int
        10 to 60,000. Sensors refresh every 100 ms on the cards measured: faster repeats values.
    gpu : int or sequence of int, optional
        Only these GPUs; else all of the host.
    nvml : module, optional
        Stands in for `pynvml`.
    stop : threading.Event, optional
        Ends the recording; SIGTERM and SIGINT do as well.
    seconds : float, optional
        Ends it after that time.

    Returns
    -------
    Recording

    Raises
    ------
    ParameterError
        For a bad interval or GPU, an existing file, or a host without a usable NVIDIA driver.
    """
    if not SHORTEST_MS <= interval_ms <= LONGEST_MS:
        raise ParameterError(
            "interval_ms", found=str(interval_ms), expected=f"{SHORTEST_MS} to {LONGEST_MS}"
        )
    path = Path(out)
    library = nvml if nvml is not None else _pynvml()
    try:
        library.nvmlInit()
    except library.NVMLError as problem:
        raise ParameterError(
            "NVML", found=str(problem), expected="an NVIDIA driver on this host"
        ) from None
    try:
        cards = _cards(library, gpu)
        with _created(path) as handle, _stopping(stop or threading.Event()) as ended:
            _write(handle, _header(library, cards, interval_ms))
            with _pcie_reader(library, cards, ended):
                return _loop(library, cards, handle, path, interval_ms / 1000.0, ended, seconds)
    finally:
        library.nvmlShutdown()


def _pynvml() -> Any:
    import pynvml

    return pynvml


def _cards(library: Any, gpu: int | Sequence[int] | None) -> list[_Card]:
    count = int(library.nvmlDeviceGetCount())
    chosen = range(count) if gpu is None else [gpu] if isinstance(gpu, int) else list(gpu)
    cards = []
    for index in chosen:
        if not 0 <= index < count:
            raise ParameterError("gpu", found=str(index), expected=f"0 to {count - 1}")
        handle = library.nvmlDeviceGetHandleByIndex(index)
        memory = _ask(library, "nvmlDeviceGetMemoryInfo", handle)
        pci = _ask(library, "nvmlDeviceGetPciInfo", handle)
        limit = _ask(library, "nvmlDeviceGetEnforcedPowerLimit", handle)
        facts = {
            "index": index,
            "uuid": _text(_ask(library, "nvmlDeviceGetUUID", handle)),
            "name": _text(_ask(library, "nvmlDeviceGetName", handle)),
            "memory_total_b": None if memory is None else int(memory.total),
            "power_limit_mw": limit,
            "pci_bus_id": None if pci is None else _text(pci.busId),
        }
        cards.append(_Card(index=index, handle=handle, facts=facts))
    return cards


def _header(library: Any, cards: list[_Card], interval_ms: int) -> str:
    about = {
        "format": FORMAT,
        "host": socket.gethostname(),
        "driver": _text(_ask(library, "nvmlSystemGetDriverVersion")),
        "interval_ms": interval_ms,
        "start_ns": time.time_ns(),
        "gpus": [card.facts for card in cards],
    }
    return f"# {json.dumps(about, sort_keys=True)}\n{','.join(COLUMNS)}\n"


def _loop(
    library: Any,
    cards: list[_Card],
    handle: int,
    path: Path,
    interval_s: float,
    ended: threading.Event,
    seconds: float | None,
) -> Recording:
    begin, cpu = time.monotonic(), time.process_time()
    due = begin
    ticks = rows = late = 0
    while not ended.is_set():
        lines = [_line(library, card) for card in cards]
        _write(handle, "".join(lines))
        ticks, rows = ticks + 1, rows + len(lines)
        now = time.monotonic()
        if seconds is not None and now - begin >= seconds:
            break
        # An absolute schedule: a late tick is skipped, and does not push back those after it.
        due += interval_s
        if now > due:
            late += 1
            due += interval_s * math.ceil((now - due) / interval_s)
        ended.wait(max(0.0, due - time.monotonic()))
    lasted = time.monotonic() - begin
    _write(handle, f"# {json.dumps({'end_ns': time.time_ns(), 'n_ticks': ticks})}\n")
    share = (time.process_time() - cpu) / lasted if lasted > 0 else 0.0
    return Recording(
        path=path, n_ticks=ticks, n_rows=rows, duration_s=lasted, n_late=late, cpu_share=share
    )


def _line(library: Any, card: _Card) -> str:
    handle = card.handle
    stamp, monotonic = time.time_ns(), time.monotonic_ns()
    average, instant, memory_temperature = _fields(library, handle)
    draw = None
    if instant is None:
        draw = _ask(library, "nvmlDeviceGetPowerUsage", handle)
    energy = None
    if monotonic - card.counted_ns >= COUNTER_NS:
        energy = _ask(library, "nvmlDeviceGetTotalEnergyConsumption", handle)
        card.counted_ns = monotonic
    use = _ask(library, "nvmlDeviceGetUtilizationRates", handle)
    slow = _slow(library, card)
    values = (
        stamp, monotonic, card.index, average, instant, draw, energy,
        _ask(library, "nvmlDeviceGetClockInfo", handle, library.NVML_CLOCK_SM),
        _ask(library, "nvmlDeviceGetClockInfo", handle, library.NVML_CLOCK_MEM),
        None if use is None else use.gpu, None if use is None else use.memory,
        _memory_used(library, handle),
        _ask(library, "nvmlDeviceGetTemperature", handle, library.NVML_TEMPERATURE_GPU),
        memory_temperature, _reasons(library, handle),
        slow["limit"], slow["pstate"], slow["fan"], *card.pcie,
    )  # fmt: skip
    return ",".join("" if value is None else str(value) for value in values) + "\n"


def _fields(library: Any, handle: Any) -> list[int | None]:
    """Average power, instantaneous power and memory temperature in one call."""
    wanted = [
        library.NVML_FI_DEV_POWER_AVERAGE,
        library.NVML_FI_DEV_POWER_INSTANT,
        library.NVML_FI_DEV_MEMORY_TEMP,
    ]
    told = _ask(library, "nvmlDeviceGetFieldValues", handle, wanted)
    if told is None:
        return [None] * len(wanted)
    return [_field_value(library, value) for value in told]


def _field_value(library: Any, told: Any) -> int | None:
    if told.nvmlReturn != library.NVML_SUCCESS:
        return None
    if told.valueType == library.NVML_VALUE_TYPE_DOUBLE:
        return int(told.value.dVal)
    if told.valueType == library.NVML_VALUE_TYPE_UNSIGNED_INT:
        return int(told.value.uiVal)
    return int(told.value.ullVal)


def _slow(library: Any, card: _Card) -> dict[str, int | None]:
    now = time.monotonic()
    if now - card.slow_at >= SLOW_S:
        handle = card.handle
        pstate = _ask(library, "nvmlDeviceGetPerformanceState", handle)
        card.slow = {
            "limit": _ask(library, "nvmlDeviceGetEnforcedPowerLimit", handle),
            "pstate": pstate if pstate is not None and pstate <= LOWEST_PSTATE else None,
            "fan": _ask(library, "nvmlDeviceGetFanSpeed", handle),
        }
        card.slow_at = now
    return card.slow


def _memory_used(library: Any, handle: Any) -> int | None:
    """Memory in use without the driver's own reserve, as nvidia-smi shows it."""
    told = _ask(
        library,
        "nvmlDeviceGetMemoryInfo",
        handle,
        version=library.nvmlMemory_v2,
    )
    if told is None:
        told = _ask(library, "nvmlDeviceGetMemoryInfo", handle)
    return None if told is None else int(told.used)


def _reasons(library: Any, handle: Any) -> int | None:
    told = _ask(library, "nvmlDeviceGetCurrentClocksEventReasons", handle)
    if told is None:
        told = _ask(library, "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    return None if told is None else int(told)


def _ask(library: Any, name: str, *arguments: Any, **named: Any) -> Any:
    """Ask the driver; what a card cannot tell, or a driver does not know, is None."""
    try:
        return getattr(library, name)(*arguments, **named)
    except (library.NVMLError, AttributeError):
        return None


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.decode() if isinstance(value, bytes) else str(value)


def _write(handle: int, text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(handle, data) :]


@contextlib.contextmanager
def _created(path: Path) -> Iterator[int]:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
    except FileExistsError:
        raise ParameterError(
            "out", found=f"the existing file {path}", expected="a new one"
        ) from None
    except OSError as problem:
        raise ParameterError(
            "out", found=f"{path}: {problem.strerror}", expected="a file"
        ) from None
    try:
        yield handle
    finally:
        os.fsync(handle)
        os.close(handle)


@contextlib.contextmanager
def _stopping(ended: threading.Event) -> Iterator[threading.Event]:
    """Let SIGTERM and SIGINT end the loop between two writes."""
    if threading.current_thread() is not threading.main_thread():
        yield ended
        return
    before = {
        number: signal.signal(number, lambda *_: ended.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _pcie_reader(library: Any, cards: list[_Card], ended: threading.Event) -> Iterator[None]:
    """Read PCIe traffic beside the loop: each call blocks for the 20 ms it counts over."""

    names = ("NVML_PCIE_UTIL_RX_BYTES", "NVML_PCIE_UTIL_TX_BYTES")
    kinds = [getattr(library, name, None) for name in names]

    def read() -> None:
        done = False
        while not done:
            for card in cards:
                ask = functools.partial(_ask, library, "nvmlDeviceGetPcieThroughput", card.handle)
                received, sent = (ask(kind) for kind in kinds)
                card.pcie = (received, sent)
            done = finished.wait(SLOW_S) or ended.is_set()

    finished = threading.Event()
    reader = threading.Thread(target=read, name="pcie", daemon=True)
    reader.start()
    try:
        yield
    finally:
        finished.set()
        reader.join()
