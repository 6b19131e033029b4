"""The one dialect table: which file is what, told by its content and never by its name.

A new dialect is one module in `ingest/` or `telemetry/` and one line in `DIALECTS`. A module offers

* `why_not(document, options) -> str | None`: None when the document is of this dialect, else the
  reason, as a phrase that completes "not <dialect>: ...";
* `read(document, options)`: `list[Run]` for requests, `Trace` for traces, a frame that follows
  `GPU_INVENTORY` for inventories, `SERVER_METRICS` for server metrics, `SERVER_REQUESTS` for what
  a server wrote of each request.
"""

from __future__ import annotations

import csv
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions, open_documents
from gpuverdict.ingest import (
    aiperf,
    aiperf_raw,
    aiperf_summary,
    evalscope,
    fmperf,
    genai_perf,
    guidellm,
    inference_perf,
    inference_perf_stage,
    llama_bench,
    llmd_report,
    llmperf,
    mlperf,
    open_batches,
    open_requests,
    open_runs,
    sglang,
    trtllm,
    vllm,
    vllm_summaries,
)
from gpuverdict.schema import Run, Trace
from gpuverdict.telemetry import (
    aiperf_server_metrics,
    aiperf_telemetry,
    dcgm,
    dcgmi,
    host_metrics,
    inventory,
    nvml_log,
    processes,
    record_log,
    server_metrics,
    server_requests,
    smi_dmon,
    smi_query,
    spans,
)

__all__ = [
    "DIALECTS",
    "Dialect",
    "read_any",
    "read_document",
    "read_run",
    "read_trace",
    "recognise",
]

Kind = Literal["requests", "trace", "inventory", "server_metrics", "server_requests"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One line of the table."""

    name: str
    kind: Kind
    module: Any


DIALECTS: tuple[Dialect, ...] = (
    Dialect(name="vllm", kind="requests", module=vllm),
    Dialect(name="vllm_summaries", kind="requests", module=vllm_summaries),
    Dialect(name="sglang", kind="requests", module=sglang),
    Dialect(name="guidellm", kind="requests", module=guidellm),
    Dialect(name="aiperf", kind="requests", module=aiperf),
    Dialect(name="aiperf_summary", kind="requests", module=aiperf_summary),
    Dialect(name="inference_perf", kind="requests", module=inference_perf),
    Dialect(name="inference_perf_stage", kind="requests", module=inference_perf_stage),
    Dialect(name="llmperf", kind="requests", module=llmperf),
    Dialect(name="aiperf_raw", kind="requests", module=aiperf_raw),
    Dialect(name="evalscope", kind="requests", module=evalscope),
    Dialect(name="genai_perf", kind="requests", module=genai_perf),
    Dialect(name="trtllm", kind="requests", module=trtllm),
    Dialect(name="llama_bench", kind="requests", module=llama_bench),
    Dialect(name="fmperf", kind="requests", module=fmperf),
    Dialect(name="llmd_report", kind="requests", module=llmd_report),
    Dialect(name="mlperf", kind="requests", module=mlperf),
    Dialect(name="gpuverdict", kind="requests", module=open_requests),
    Dialect(name="gpuverdict_runs", kind="requests", module=open_runs),
    Dialect(name="gpuverdict_batches", kind="requests", module=open_batches),
    Dialect(name="smi_query", kind="trace", module=smi_query),
    Dialect(name="smi_dmon", kind="trace", module=smi_dmon),
    Dialect(name="dcgm_prom", kind="trace", module=dcgm),
    Dialect(name="dcgmi_dmon", kind="trace", module=dcgmi),
    Dialect(name="aiperf_telemetry", kind="trace", module=aiperf_telemetry),
    Dialect(name="gpuverdict_record", kind="trace", module=record_log),
    Dialect(name="nvml_log", kind="trace", module=nvml_log),
    Dialect(name="gpu_processes", kind="trace", module=processes),
    Dialect(name="inventory", kind="inventory", module=inventory),
    Dialect(name="server_metrics", kind="server_metrics", module=server_metrics),
    Dialect(name="aiperf_server_metrics", kind="server_metrics", module=aiperf_server_metrics),
    Dialect(name="host_metrics", kind="server_metrics", module=host_metrics),
    Dialect(name="spans", kind="server_requests", module=spans),
    Dialect(name="server_requests", kind="server_requests", module=server_requests),
)

_MOST_KEYS = 20
_ODD_VALUES = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError,
               RecursionError, csv.Error, pl.exceptions.PolarsError)  # fmt: skip


def recognise(document: Document, options: ReadOptions | None = None) -> Dialect:
    """Say which dialect a document is of.

    Raises
    ------
    LogFormatError
        When no dialect accepts it (with the keys seen and each dialect's reason), when several do,
        or when the `format` of the options is unknown or refuses.
    """
    options = options or ReadOptions()
    if options.format is not None:
        return _named(document, options)
    reasons: list[str] = []
    accepted: list[Dialect] = []
    for dialect in DIALECTS:
        reason = _reason(dialect, document, options)
        if reason is None:
            accepted.append(dialect)
        else:
            reasons.append(f"not {dialect.name}: {reason}")
    if not accepted:
        raise LogFormatError(
            document.name,
            found=f"no known format ({_seen(document)})",
            expected="a benchmark log or a GPU trace",
            remedy="; ".join(reasons),
        )
    if len(accepted) > 1:
        names = " and ".join(dialect.name for dialect in accepted)
        raise LogFormatError(
            document.name,
            found=f"a file that {names} could each have written",
            expected="one format",
            remedy=f"give format: {accepted[0].name} (or another) for this file",
        )
    return accepted[0]


def _reason(dialect: Dialect, document: Document, options: ReadOptions) -> str | None:
    try:
        reason: str | None = dialect.module.why_not(document, options)
    except _ODD_VALUES as problem:
        # A question that stumbles over foreign bytes is a no, and must not hide the other answers.
        return f"it cannot be told ({type(problem).__name__})"
    return reason


def _named(document: Document, options: ReadOptions) -> Dialect:
    for dialect in DIALECTS:
        if dialect.name == options.format:
            reason = _reason(dialect, document, options)
            if reason is None:
                return dialect
            raise LogFormatError(
                document.name, found=f"a file that is not {dialect.name}: {reason}"
            )
    raise LogFormatError(
        document.name,
        found=f"the unknown format {options.format!r}",
        expected=f"one of {', '.join(dialect.name for dialect in DIALECTS)}",
    )


def _seen(document: Document) -> str:
    value = document.first
    if isinstance(value, dict):
        return f"keys {_keys(value)}"
    if isinstance(value, list):
        if value and isinstance(value[0], dict):
            return f"a list whose first record has the keys {_keys(value[0])}"
        return f"a list of {len(value)} values"
    if document.shape == "text":
        line = document.data[:400].decode("utf-8", "replace").strip().splitlines()
        return f"text that starts {line[0][:120]!r}" if line else "blank text"
    return f"a {document.shape} file"


def _keys(value: dict[str, Any]) -> str:
    keys = ", ".join(str(key)[:40] for key in list(value)[:_MOST_KEYS])
    return keys + (", ..." if len(value) > _MOST_KEYS else "") if value else "none"


def read_document(document: Document, options: ReadOptions | None = None) -> list[Any]:
    """Read a document as what it is: a list of runs, or of one trace or frame."""
    options = options or ReadOptions()
    with _paused_collector():
        return _read(document, options)


@contextmanager
def _paused_collector() -> Iterator[None]:
    """Hold the cycle collector off while millions of parsed values live for a moment.

    Parsed JSON has no cycles, and each pass over it costs as much as parsing; reference counts free
    it all the same.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(document: Document, options: ReadOptions) -> list[Any]:
    dialect = recognise(document, options)
    try:
        found = dialect.module.read(document, options)
    except _ODD_VALUES as problem:
        # Logs are hostile data: what no reader foresaw is still the file's fault, not a crash. The
        # damage tests call the readers without this net.
        raise LogFormatError(
            document.name,
            found=f"values that {dialect.name} does not write ({type(problem).__name__})",
            expected=f"a file of {dialect.name}",
        ) from problem
    return found if isinstance(found, list) else [found]


def read_any(path: str | Path, options: ReadOptions | None = None) -> list[Any]:
    """Read everything a file holds: `Run`, `Trace`, inventory and frames of the server side.

    Raises
    ------
    LogFormatError
        For a file that cannot be read or is of no known kind.
    """
    items: list[Any] = []
    seen: set[str] = set()
    for document in open_documents(path, options):
        # The same content under two names in one archive is one measurement.
        if document.sha256 not in seen:
            seen.add(document.sha256)
            items.extend(read_document(document, options))
    return items


def read_run(path: str | Path, options: ReadOptions | None = None) -> list[Run]:
    """Read the runs of a load generator's log.

    Parameters
    ----------
    path : str or Path
        A log of any known dialect, compressed or in an archive or not.
    options : ReadOptions, optional
        What the file itself does not say.

    Returns
    -------
    list of Run
        One a level, stage or appended result, in file order.

    Raises
    ------
    LogFormatError
        For a file that cannot be read, is of no known kind, or holds no runs.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gpuverdict.schema, tempfile
    >>> text = '{"model_id": "m", "backend": "vllm", "date": "", "num_prompts": 2, '
    >>> text += '"completed": 2, "duration": 1.0, "mean_ttft_ms": 250.0}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "result.json"
    ...     _ = path.write_text(text)
    ...     run = read_run(path)[0]
    >>> run.info["source_format"], run.info["reported"]["ttft_s.mean"]
    ('vllm', 0.25)
    """
    runs = [item for item in read_any(path, options) if isinstance(item, Run)]
    if not runs:
        raise LogFormatError(path, found="a file without request logs", expected="a benchmark log")
    return runs


def read_trace(path: str | Path, time_zone: str | None = None) -> Trace:
    """Read a GPU trace.

    Parameters
    ----------
    path : path
    time_zone : str, optional
        IANA zone of stamps without one. Without it `time_epoch_s` of such a trace is null (caution
        `zone_unknown`), and only `elapsed_s` holds.

    Raises
    ------
    LogFormatError
        When the file holds no trace.

    Examples
    --------
    >>> trace = read_trace("data/h200/card-a-bf16/nvidia-smi-query.csv.gz", "UTC")
    >>> trace.samples.height > 3000
    True
    """
    items = read_any(path, ReadOptions(time_zone=time_zone))
    traces = [item for item in items if isinstance(item, Trace)]
    if len(traces) != 1:
        raise LogFormatError(path, found=f"{len(traces)} GPU traces", expected="one")
    return traces[0]
