"""AIPerf per-request records (`profile_export.jsonl`), 0.3 to 0.13, warm-up rows included.

Times are epoch nanoseconds above 2^53, subtracted as integers before they become seconds;
durations are converted by the unit that stands beside each value. The fast way reads the columns
needed and nothing else; whatever it cannot account for row by row is read again the slow, strict
way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions, parse_records
from gpuverdict.ingest.aiperf_summary import level_facts, reported_figures, sibling_summary
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.columns import error_kinds
from gpuverdict.ingest.gaps import Gaps, chunk_cautions, list_offsets, split_gaps
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["UNIT_SECONDS", "read", "why_not"]

UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0,
                "nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3,
                "seconds": 1.0}  # fmt: skip
_DURATIONS = ("time_to_first_token", "time_to_first_output_token", "request_latency")
_COUNTS = (
    "output_sequence_length", "input_sequence_length", "usage_prompt_tokens",
    "usage_completion_tokens", "reasoning_token_count", "usage_reasoning_tokens",
    "usage_prompt_cache_read_tokens", "error_isl",
)  # fmt: skip
_STAMPS = ("request_start_ns", "request_end_ns", "credit_issued_ns")
_METRIC = pl.Struct({"value": pl.Float64, "unit": pl.String})
_SCHEMA = {
    "metadata": pl.Struct(
        {
            **dict.fromkeys(_STAMPS, pl.Int64),
            "x_request_id": pl.String,
            "benchmark_phase": pl.String,
            "was_cancelled": pl.Boolean,
        }
    ),
    "metrics": pl.Struct(
        {
            **dict.fromkeys((*_DURATIONS, *_COUNTS), _METRIC),
            "inter_chunk_latency": pl.Struct({"value": pl.List(pl.Float64), "unit": pl.String}),
        }
    ),
    "error": pl.Struct({"code": pl.Float64, "type": pl.String, "message": pl.String}),
}
_CHECKED_LINES = 100
_NEWLINE = ord("\n")
_NO_CONTENT = ("InvalidInferenceResultError", "NoContentError", "EmptyResponseError")


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not a file of AIPerf records; None when it is."""
    value = document.first
    if not isinstance(value, dict):
        return "not JSON Lines of objects"
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or "request_start_ns" not in metadata:
        return "no 'metadata.request_start_ns'"
    if "responses" in value:
        return "it holds raw responses"
    return None if isinstance(value.get("metrics"), dict) else "no 'metrics'"


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read the records of one benchmark as one run.

    Raises
    ------
    LogFormatError
        For a value with an unknown unit, or a line of another kind.
    """
    dropped: dict[str, int] = {}
    said: tuple[Caution, ...] = ()
    frame = _fast(document)
    if frame is None:
        frame, dropped, said = _slow(document)
    metadata, metrics = frame["metadata"].struct.unnest(), frame["metrics"].struct.unnest()
    start = metadata["request_start_ns"]
    if start.null_count() == len(start):
        raise LogFormatError(document.name, found="no request starts", expected="request_start_ns")
    origin = int(start.min())  # type: ignore[arg-type]

    def since(name: str) -> Any:
        return (metadata[name] - origin).to_numpy().astype(np.float64) / 1e9

    def seconds(name: str) -> Any:
        return _seconds(metrics[name], document.name, name)

    starts, ttft, latency = since("request_start_ns"), seconds("time_to_first_token"), seconds(
        "request_latency"
    )  # fmt: skip
    gaps = _gaps(metrics["inter_chunk_latency"], document.name)
    errors, status = _outcomes(frame)
    output, source = _prefer(metrics, ("usage_completion_tokens", "usage"),
                             ("output_sequence_length", "retokenised"))  # fmt: skip
    gaps, ttft, counts, _ = split_gaps(gaps, ttft, output, chat=False)
    with_gaps = (gaps.lengths > 0) & ~np.isnan(ttft) & ~np.isnan(gaps.sums_s)
    given, _ = _prefer(metrics, ("usage_prompt_tokens", ""), ("input_sequence_length", ""),
                       ("error_isl", ""))  # fmt: skip
    reasoning, _ = _prefer(metrics, ("usage_reasoning_tokens", ""), ("reasoning_token_count", ""))
    phases = metadata["benchmark_phase"].fill_null("profiling")
    columns: dict[str, Any] = {
        "request_id": metadata["x_request_id"].to_list(),
        "phase": ["warmup" if phase == "warmup" else "main" for phase in phases],
        "status": status,
        "start_s": starts,
        "end_s": since("request_end_ns"),
        "ttft_s": ttft,
        "e2e_s": latency,
        "decode_s": np.where(with_gaps, gaps.sums_s, latency - ttft),
        "client_queue_s": starts - since("credit_issued_ns"),
        "input_tokens": given,
        "output_tokens": output,
        "output_tokens_source": source,
        "reasoning_tokens": reasoning,
        "cached_input_tokens": _numbers(metrics["usage_prompt_cache_read_tokens"]),
        "n_chunks": np.where(with_gaps, gaps.lengths + 1.0, np.nan),
        "error_kind": error_kinds(errors),
    }
    info, reported, more = _context(document, options, columns, ttft, latency)
    answer = seconds("time_to_first_output_token")
    late = answer - ttft
    if np.isfinite(late).any() and np.nanmax(late) > 1e-6:
        reported["time_to_first_answer_s.mean"] = float(np.nanmean(answer))
    more.extend(caution(code, n=n, n_rows=len(ttft)) for code, n in counts.items())
    more.extend(chunk_cautions(gaps, output, with_gaps))
    return [
        build_run(
            document,
            part="0",
            source_format="aiperf",
            columns=columns,
            info=info,
            gaps=gaps,
            errors=errors,
            reported=reported,
            explained={"output_tokens_per_s": "reported_other_definition",
                       "requests_per_s": "reported_other_definition"},
            dropped={**dropped, **counts},
            cautions=[*said, *more],
            clock_offset_s=origin / 1e9,
        )
    ]  # fmt: skip


def _fast(document: Document) -> pl.DataFrame | None:
    """Read the needed columns, or give None where anything is not as expected."""
    data = document.data
    head = b"\n".join(data[: 1 << 22].split(b"\n", _CHECKED_LINES)[:_CHECKED_LINES])
    # A duplicate key is an error the column reader would not see.
    parse_records(head, document.name)
    try:
        frame = pl.scan_ndjson(data, schema=_SCHEMA).collect()
    except (pl.exceptions.PolarsError, ValueError):
        return None
    n_lines = int(np.count_nonzero(np.frombuffer(data, np.uint8) == _NEWLINE))
    n_lines += not data.endswith(b"\n")
    if frame.height != n_lines:
        return None
    start = frame["metadata"].struct.field("request_start_ns")
    if start.null_count():
        return None
    # Two rows alike in identity and start may be one record written twice.
    keys = frame["metadata"].struct.unnest().select("request_start_ns", "x_request_id")
    if keys.n_unique() != frame.height:
        return None
    for name in (*_DURATIONS, "inter_chunk_latency"):
        metric = frame["metrics"].struct.field(name)
        if (
            metric.struct.field("unit").is_not_null() & metric.struct.field("value").is_null()
        ).any():
            return None
    return frame


def _slow(document: Document) -> tuple[pl.DataFrame, dict[str, int], tuple[Caution, ...]]:
    records = document.records()
    rows = []
    for record, line in zip(records.values, records.lines, strict=True):
        where = f"{document.name}:{line}"
        if not isinstance(record, dict) or not isinstance(record.get("metadata"), dict):
            raise LogFormatError(where, found="a line of another kind", expected="a request record")
        metadata, metrics = record["metadata"], record.get("metrics")
        metrics = metrics if isinstance(metrics, dict) else {}
        error = record.get("error")
        if error is not None and not isinstance(error, dict):
            error = {"message": str(error)}
        rows.append(
            {
                "metadata": {
                    **{name: _whole(metadata.get(name), where, name) for name in _STAMPS},
                    "x_request_id": _text(metadata.get("x_request_id")),
                    "benchmark_phase": _text(metadata.get("benchmark_phase")),
                    "was_cancelled": metadata.get("was_cancelled") is True,
                },
                "metrics": {
                    **{name: _metric(metrics.get(name), where, name)
                       for name in (*_DURATIONS, *_COUNTS)},
                    "inter_chunk_latency": _metric_list(metrics.get("inter_chunk_latency"), where),
                },
                "error": None if error is None else {
                    "code": float(error["code"]) if isinstance(error.get("code"), int) else None,
                    "type": _text(error.get("type")),
                    "message": _text(error.get("message")),
                },
            }
        )  # fmt: skip
    return pl.DataFrame(rows, schema=_SCHEMA), dict(records.dropped), records.cautions


def _whole(value: Any, where: str, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, str) and value.isdigit():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return value
    raise LogFormatError(where, found=f"{name} {value!r:.40}", expected="whole nanoseconds")


def _metric(value: Any, where: str, name: str) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise LogFormatError(where, found=f"{name} without a unit", expected="value and unit")
    number = value.get("value")
    if isinstance(number, str):
        try:
            number = float(number)
        except ValueError:
            raise LogFormatError(
                where, found=f"{name} {number!r:.40}", expected="a number"
            ) from None
    if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
        raise LogFormatError(where, found=f"{name} {number!r:.40}", expected="a number")
    return {"value": None if number is None else float(number), "unit": _text(value.get("unit"))}


def _metric_list(value: Any, where: str) -> dict[str, Any] | None:
    if value is None:
        return None
    numbers = value.get("value") if isinstance(value, dict) else value
    if isinstance(numbers, list) and all(
        number is None or (isinstance(number, int | float) and not isinstance(number, bool))
        for number in numbers
    ):
        listed = [None if number is None else float(number) for number in numbers]
        return {"value": listed, "unit": _text(value.get("unit"))}
    raise LogFormatError(
        where, found="inter_chunk_latency of another shape", expected="a list of numbers"
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _numbers(metric: pl.Series) -> Any:
    return metric.struct.field("value").to_numpy().astype(np.float64)


def _factor(metric: pl.Series, where: str, name: str) -> float | Any:
    unit, value = metric.struct.field("unit"), metric.struct.field("value")
    if (value.is_not_null() & unit.is_null()).any():
        raise LogFormatError(f"{where}: {name}", found="no unit", expected="a unit of time")
    units = unit.drop_nulls().unique().to_list()
    for unit in units:
        if unit not in UNIT_SECONDS:
            raise LogFormatError(
                f"{where}: {name}", found=f"the unit {unit!r:.20}", expected="a unit of time"
            )
    if len(units) <= 1:
        return UNIT_SECONDS[units[0]] if units else 1.0
    by_row = metric.struct.field("unit").replace_strict(UNIT_SECONDS, return_dtype=pl.Float64)
    return by_row.to_numpy()


def _seconds(metric: pl.Series, where: str, name: str) -> Any:
    return _numbers(metric) * _factor(metric, where, name)


def _gaps(metric: pl.Series, where: str) -> Gaps:
    lists = metric.struct.field("value")
    factor = _factor(metric, where, "inter_chunk_latency")
    lengths = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    offsets = list_offsets(lengths)
    flat = np.empty(offsets[-1])
    filled = 0
    # Chunk by chunk, since joining them first would write the numbers once more.
    for chunk in lists.drop_nulls().get_chunks():
        part = chunk.explode(empty_as_null=False).to_numpy()
        np.copyto(flat[filled : filled + part.size], part)
        filled += part.size
    if not isinstance(factor, float):
        factor = np.repeat(np.nan_to_num(factor), lengths)
    flat *= factor
    return Gaps(flat_s=flat, offsets=offsets, kind="chunk")


def _prefer(metrics: pl.DataFrame, *sources: tuple[str, str]) -> tuple[Any, list[str | None]]:
    values = np.full(metrics.height, np.nan)
    origin = np.full(metrics.height, None, dtype=object)
    for name, source in sources:
        candidate = _numbers(metrics[name])
        take = np.isnan(values) & ~np.isnan(candidate)
        values[take] = candidate[take]
        origin[take] = source or None
    return values, list(origin)


def _outcomes(frame: pl.DataFrame) -> tuple[list[str | None], list[str | None]]:
    errors: list[str | None] = []
    status: list[str | None] = []
    cancelled = frame["metadata"].struct.field("was_cancelled").fill_null(False).to_list()
    for error, was_cancelled in zip(frame["error"].to_list(), cancelled, strict=True):
        present = error is not None and any(value is not None for value in error.values())
        if not present:
            errors.append(None)
            status.append("cancelled" if was_cancelled else None)
            continue
        code = "" if error["code"] is None else f"{error['code']:.0f} "
        errors.append(
            f"{code}{error['type'] or ''}: {error['message'] or ''}".strip(": ") or "error"
        )
        if was_cancelled or error["code"] == 499:
            status.append("cancelled")
        elif error["type"] in _NO_CONTENT:
            status.append("empty")
        else:
            status.append("error")
    return errors, status


def _context(
    document: Document,
    options: ReadOptions,
    columns: Mapping[str, Any],
    ttft: Any,
    latency: Any,
) -> tuple[dict[str, Any], dict[str, float | None], list[Caution]]:
    """Collect what the summary beside the records says about the run."""
    summary = sibling_summary(document)
    facts = level_facts(summary, options)
    said: list[Caution] = []
    if summary is None:
        said.append(caution("summary_missing", name=document.name))
    elif summary.get("was_cancelled") or summary.get("is_complete") is False:
        said.append(caution("run_interrupted"))
    answered = ~np.isnan(latency)
    if facts["streaming"] is None:
        facts["streaming"] = bool((~np.isnan(ttft[answered])).any()) if answered.any() else True
    if facts["streaming"] is False:
        facts |= {"e2e_def": "non_stream", "ttft_def": None}
    n_main = sum(phase == "main" for phase in columns["phase"])
    if facts["n_planned"] is not None and n_main < facts["n_planned"]:
        said.append(caution("truncated_run", n=n_main, n_planned=facts["n_planned"]))
    if facts["duration_s"] is None:
        # From the first start to the last end of the measured requests.
        main = np.array([phase == "main" for phase in columns["phase"]])
        if np.isfinite(columns["end_s"][main]).any():
            span = np.nanmax(columns["end_s"][main]) - np.nanmin(columns["start_s"][main])
            facts["duration_s"] = float(span) if span > 0 else None
    return facts, reported_figures(summary or {}), said
