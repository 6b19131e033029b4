"""Running one notebook: a fixed kernel, another try where it does not start, where it failed."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpuverdict.errors import GpuverdictError
from gpuverdict.report.parameters import check_parameters

__all__ = ["KERNEL", "Kernels", "NotebookError", "notebook_folder", "run_notebook"]

# One kernel whatever a notebook was saved under: the name of another machine's means nothing here.
KERNEL = "python3"
_TRIES = 3
_EXPECTED = "a notebook that runs through"
# A socket's path is at most 108 bytes on Linux and 104 on macOS, a number behind it included.
_SOCKET_NAME = 96


class NotebookError(GpuverdictError):
    """A notebook whose cell failed; the notebook with the error is kept."""


class Kernels:
    """The kernels at work, so that another thread can end them: papermill hands none out.

    Examples
    --------
    >>> kernels = Kernels()
    >>> kernels.stop()
    >>> kernels.stopped
    True
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._managers: list[Any] = []
        self._lock = threading.Lock()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called: nothing new is started then."""
        return self._stop.is_set()

    def stop(self) -> None:
        """End every kernel now; the notebooks they ran end in an error."""
        self._stop.set()
        with self._lock:
            for manager in self._managers:
                pid = getattr(manager.provisioner, "pid", None)
                if pid:
                    with contextlib.suppress(OSError):
                        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def manager_class(self) -> type:
        """Return a kernel manager class whose kernels are known here."""
        from jupyter_client.manager import AsyncKernelManager

        known = self

        class KnownKernel(AsyncKernelManager):
            async def _async_post_start_kernel(self, **options: Any) -> None:
                await super()._async_post_start_kernel(**options)
                with known._lock:
                    known._managers.append(self)
                if known.stopped:
                    known.stop()

            async def _async_cleanup_resources(self, restart: bool = False) -> None:
                with known._lock:
                    if self in known._managers:
                        known._managers.remove(self)
                await super()._async_cleanup_resources(restart)

            post_start_kernel = _async_post_start_kernel
            cleanup_resources = _async_cleanup_resources

        return KnownKernel


def notebook_folder() -> Path:
    """Return the folder of the notebooks this package runs: only its own.

    Raises
    ------
    NotebookError
        When the package was installed without them.
    """
    folder = Path(__file__).resolve().parents[3] / "notebooks"
    if not (folder / "report.ipynb").is_file():
        raise NotebookError(folder, found="no notebooks", expected="a checkout of the repository",
                            remedy="install with `pip install -e .` from a clone")  # fmt: skip
    return folder


def run_notebook(
    notebook: str | Path,
    output: str | Path,
    parameters: Mapping[str, Any] | None = None,
    kernels: Kernels | None = None,
) -> Path:
    """Execute a notebook with papermill and keep it, whatever happens.

    Parameters
    ----------
    notebook, output : path
        Where it is and where the executed one goes.
    parameters : mapping, optional
        Checked against the notebook's `parameters` cell before a kernel starts.
    kernels : Kernels, optional
        Through which another thread may end this one.

    Returns
    -------
    Path
        The output.

    Raises
    ------
    ParameterError
        Before anything runs.
    NotebookError
        Naming the cell and the exception; the output holds every cell up to it.
    """
    given = check_parameters(notebook, parameters or {}) if parameters else {}
    import logging
    import warnings

    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    # papermill reports a kernel name it does not know and every progress step through logging.
    logging.getLogger("papermill").setLevel(logging.CRITICAL)
    problem: Exception | None = None
    kernels = kernels or Kernels()
    for attempt in range(_TRIES):
        try:
            with warnings.catch_warnings(), _sockets() as sockets:
                warnings.simplefilter("ignore")
                papermill.execute_notebook(
                    str(notebook), str(output), parameters=given, kernel_name=KERNEL,
                    language="python", progress_bar=False, log_output=False,
                    request_save_on_cell_execute=True, start_timeout=120,
                    # A kernel is interrupted before it ends, and would call that an error.
                    extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
                    config=_transport(sockets if attempt < _TRIES - 1 else None),
                    kernel_manager_class=kernels.manager_class(),
                )  # fmt: skip
            return Path(output)
        except PapermillExecutionError as failure:
            raise _cell_error(Path(output), failure) from None
        except DeadKernelError:
            if kernels.stopped:
                raise _stopped(output) from None
            raise NotebookError(
                output, found="a kernel that died in a cell", expected=_EXPECTED,
                remedy="the cells before it are kept there; it may have run out of memory",
            ) from None  # fmt: skip
        except RuntimeError as failure:
            # A kernel that did not start (a port taken meanwhile, a slow machine) may start now.
            problem = failure
        if kernels.stopped:
            raise _stopped(output)
    raise NotebookError(
        output, found=f"a kernel that did not start ({_first_line(problem)})",
        expected=f"the kernel {KERNEL}", remedy="look at the machine's load and try again",
    )  # fmt: skip


def _stopped(output: str | Path) -> NotebookError:
    return NotebookError(output, found="a stopped run", expected="one that may finish",
                         remedy="start it again: what is done stays done")  # fmt: skip


@contextlib.contextmanager
def _sockets() -> Iterator[Path]:
    """Give a kernel's sockets a folder of their own, gone afterwards."""
    with tempfile.TemporaryDirectory(
        prefix="gpuverdict-kernel-", ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder) / "s"


def _transport(sockets: Path | None) -> Any:
    """Use sockets in the file system where there are any: kernels cannot clash on ports.

    Without a folder of their own they would: the default name is one for all kernels of a working
    folder.
    """
    from traitlets.config import Config

    config = Config()
    if os.name == "posix" and sockets is not None and len(os.fsencode(sockets)) < _SOCKET_NAME:
        config.KernelManager.transport = "ipc"
        config.KernelManager.ip = str(sockets)
    return config


def _cell_error(output: Path, failure: Any) -> NotebookError:
    line = f"{failure.ename}: {_first_line(failure.evalue)}"
    number = failure.cell_index
    return NotebookError(
        output, found=f"an error in cell {number} ({line})", expected=_EXPECTED,
        remedy="open it there; the cells before it are kept",
    )  # fmt: skip


def _first_line(text: object) -> str:
    return (str(text).strip().splitlines() or [""])[0][:200]
