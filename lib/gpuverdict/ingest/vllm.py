"""vLLM `bench serve` and its ancestor `benchmark_serving.py`, 0.6.6 to 0.33, appended or not.

The file holds no version. What the clock of TTFT stops at changed between versions, so `ttft_def`
is `unknown` unless the campaign names the client's version. Output tokens are the server's usage
where the server sends it and a recount of the text otherwise; the file does not say which, and
`usage` is recorded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.columns import error_kinds, floats, integers, with_unnamed_failures
from gpuverdict.ingest.gaps import Gaps, chunk_cautions, split_gaps
from gpuverdict.ingest.values import list_of, positive, text, whole
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["read", "read_record", "reported_summary", "why_not"]

_NEEDED = ("model_id", "num_prompts", "date", "completed")
_TRTLLM_MARKS = ("user_throughput", "e2els", "avg_decoded_tokens_per_iter")


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not a vLLM benchmark result; None when it is."""
    value = document.first
    if isinstance(value, list) and value and isinstance(value[0], dict):
        if "run_number" in value[0] and "num_prompts" in value[0]:
            return "a sweep summary repeats what the run=<k>.json files hold: read those"
        return "the document is a list"
    if not isinstance(value, dict):
        return "not a JSON object"
    if missing := [key for key in _NEEDED if key not in value]:
        return f"no {missing[0]!r} key"
    if "endpoint_type" not in value and "backend" not in value:
        return "neither 'endpoint_type' nor 'backend'"
    if "server_info" in value or "total_output_tokens_retokenized" in value:
        return "it has keys of SGLang"
    if marks := [key for key in _TRTLLM_MARKS if key in value]:
        return f"it has {marks[0]!r}, a key of TensorRT-LLM"
    return None


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read every result of the file: one object, or several appended ones.

    Raises
    ------
    LogFormatError
        For lists of unequal length and values that are no numbers.
    """
    records = document.records()
    runs = []
    for index, (record, line) in enumerate(zip(records.values, records.lines, strict=True)):
        where = document.name if len(records.values) == 1 else f"{document.name}:{line}"
        if not isinstance(record, dict) or why_not_record(record):
            raise LogFormatError(
                where, found="a record of another kind", expected="a vLLM benchmark result"
            )
        first = index == 0
        runs.append(
            read_record(
                document,
                record,
                part=str(index),
                where=where,
                options=options,
                dropped=records.dropped if first else {},
                cautions=records.cautions,
            )
        )
    return runs


def why_not_record(record: Mapping[str, Any]) -> str | None:
    """Say why an appended record is not a vLLM result."""
    missing = [key for key in _NEEDED if key not in record]
    return f"no {missing[0]!r} key" if missing else None


def read_record(
    document: Document,
    record: Mapping[str, Any],
    *,
    part: str,
    where: str,
    options: ReadOptions,
    dropped: Mapping[str, int],
    cautions: tuple[Caution, ...],
    dialect: str = "vllm",
    tool: str = "vllm bench serve",
) -> Run:
    """Read one result object; other tools that write the same shape name themselves.

    Raises
    ------
    LogFormatError
        For lists of unequal length and values that are no numbers.
    """
    info = _facts(record, options, where)
    info["tool"] = tool
    # Nothing but the vLLM client itself was seen in real files.
    info["unverified"] = True if dialect != "vllm" else None
    said: list[Caution] = list(cautions)
    if options.client_version is None:
        said.append(caution("client_version_unknown", tool=tool, bracket=_bracket(record)))
    reported = reported_summary(record)
    if not isinstance(record.get("ttfts"), list):
        return build_run(
            document,
            part=part,
            source_format=dialect,
            columns={},
            info=info,
            reported=reported,
            dropped=dropped,
            cautions=said,
        )
    _check_lengths(record, where)
    ttft = floats(record["ttfts"], f"{where}: ttfts")
    output = integers(list_of(record, "output_lens", where), f"{where}: output_lens")
    chat = "chat" in f"{record.get('endpoint_type')} {record.get('backend')}"
    gaps = Gaps.from_lists(list_of(record, "itls", where), "chunk", f"{where}: itls")
    gaps, ttft, counts, explained = split_gaps(gaps, ttft, output, chat=chat)
    completed = record.get("completed")
    errors = _errors(record, where, len(ttft))
    named = np.array([error is not None for error in errors], dtype=bool)
    errors = with_unnamed_failures(errors, ~named & (ttft == 0) & (output == 0), completed)
    decode = np.where((ttft > 0) & (output > 0), gaps.sums_s, np.nan)
    if uncounted := _counted_as_one(output, gaps):
        said.append(uncounted)
        info["output_tokens_source"] = None
        output = np.where(output > 0, np.nan, output)
    said.extend(caution(code, n=n, n_rows=len(ttft)) for code, n in counts.items())
    said.extend(chunk_cautions(gaps, output, np.ones(len(ttft), dtype=bool)))
    columns: dict[str, Any] = {
        "ttft_s": ttft,
        "output_tokens": output,
        "decode_s": decode,
        "n_chunks": np.where(ttft > 0, gaps.lengths + 1.0, 0.0),
    }
    if record.get("input_lens") is not None:
        columns["input_tokens"] = integers(
            list_of(record, "input_lens", where), f"{where}: input_lens"
        )
    if record.get("start_times") is not None:
        starts = floats(list_of(record, "start_times", where), f"{where}: start_times")
        columns["start_s"] = starts
        if record.get("latencies") is not None:
            latencies = floats(list_of(record, "latencies", where), f"{where}: latencies")
            columns["end_s"] = np.where(latencies > 0, starts + latencies, np.nan)
    for name, key in (("client_queue_s", "queue_times"), ("server_queue_s", "server_queue_times")):
        if record.get(key) is not None:
            columns[name] = floats(list_of(record, key, where), f"{where}: {key}")
    columns["error_kind"] = error_kinds(errors)
    info["token_time_source"] = "gaps" if "start_s" in columns else "whole_run"
    if counts.get("role_chunk") and info["ttft_def"] == "first_event":
        info["ttft_def"] = "first_content"
    if any(time == 0 and not error for time, error in zip(ttft, errors, strict=True)):
        # The tool counts an empty stream as completed and averages its zero.
        explained |= dict.fromkeys(("ttft_s", "requests_per_s", "e2e_s"), "reported_with_empties")
    n_failed = sum(bool(error) for error in errors)
    if isinstance(completed, int) and len(ttft) - n_failed != completed:
        said.append(
            caution("completed_differs", reported=completed, recomputed=len(ttft) - n_failed)
        )
    return build_run(
        document,
        part=part,
        source_format=dialect,
        columns=columns,
        info=info,
        gaps=gaps,
        errors=errors,
        reported=reported,
        explained=explained,
        dropped={**dropped, **counts},
        cautions=said,
        clock_offset_s=None,
    )


def _counted_as_one(output: Any, gaps: Gaps) -> Caution | None:
    """Notice a client without a tokenizer: it writes 1 for every output, however long it was."""
    answered = output > 0
    events = gaps.lengths[answered] + 1
    if not answered.any() or (output[answered] != 1).any() or (events > 2).mean() < 0.5:
        return None
    return caution(
        "token_counts_disagree", in_file=float(answered.sum()), by_gaps=float(events.sum()),
        again=0.0,
    )  # fmt: skip


_LISTS = ("ttfts", "itls", "output_lens", "input_lens", "start_times", "latencies", "queue_times",
          "server_queue_times", "errors")  # fmt: skip


def _check_lengths(record: Mapping[str, Any], where: str) -> None:
    lengths = {key: len(record[key]) for key in _LISTS if isinstance(record.get(key), list)}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{key} {length}" for key, length in lengths.items())
        raise LogFormatError(
            where,
            found=f"lists of unequal length ({listed})",
            expected="one entry a request in each",
        )


def _facts(record: Mapping[str, Any], options: ReadOptions, where: str) -> dict[str, Any]:
    rate, unbounded = request_rate(record.get("request_rate"), where)
    burstiness = record.get("burstiness")
    burstiness = float(burstiness) if isinstance(burstiness, int | float) else None
    limit = record.get("max_concurrency")
    load = "unknown"
    if unbounded:
        load = "closed" if limit else "burst"
    elif rate is not None:
        load = "poisson" if burstiness in (None, 1.0) else "gamma"
        if burstiness == math.inf:
            load, burstiness = "constant", None
    duration = positive(record.get("duration"))
    end_epoch = _end_epoch(record.get("date"), options.time_zone, where)
    start_epoch = end_epoch - duration if end_epoch is not None and duration else None
    has_starts = isinstance(record.get("start_times"), list)
    return {
        "tool_version": options.client_version,
        "model_id": text(record.get("model_id")),
        "tokenizer_id": text(record.get("tokenizer_id")),
        "precision": text(record.get("dtype")),
        "gpu_label": text(record.get("gpu")),
        "tp": whole(record.get("tp", record.get("tensor_parallel_size"))),
        "load_kind": load,
        "rate_rps": rate,
        "rate_unbounded": unbounded,
        "max_concurrency": whole(limit),
        "burstiness": burstiness,
        "repeat_no": whole(record.get("run_number")),
        "n_planned": whole(record.get("num_prompts")),
        "duration_s": duration,
        "t0_epoch_s": start_epoch if has_starts else None,
        "t0_quality": "end_stamp_minus_duration" if start_epoch and has_starts else "none",
        "clock": "monotonic" if has_starts else "none",
        "streaming": True,
        "spec_decode": any(key.startswith("spec_decode_") for key in record) or None,
        "ttft_def": _ttft_def(record, options),
        "e2e_def": "last_token",
        "gap_kind": "chunk",
        "output_tokens_source": "usage",
        "requested_input_tokens": whole(record.get("random_input_len")),
        "requested_output_tokens": whole(record.get("random_output_len")),
    }


def request_rate(value: Any, where: str) -> tuple[float | None, bool]:
    """Read a request rate: (rate or None, whether it is unbounded).

    Raises
    ------
    LogFormatError
        For a text that is neither a number nor "inf".
    """
    if value is None:
        return None, False
    try:
        rate = float(value)
    except (TypeError, ValueError):
        if value == "trace":
            return None, False
        raise LogFormatError(
            where, found=f"request_rate {value!r:.40}", expected='a number or "inf"'
        ) from None
    if math.isnan(rate):
        return None, False
    return (None, True) if math.isinf(rate) else (rate, False)


def _ttft_def(record: Mapping[str, Any], options: ReadOptions) -> str:
    if options.client_version is None:
        return "unknown"
    version = version_numbers(options.client_version)
    if version >= (0, 33):
        return "first_content_or_reasoning"
    chat = "chat" in f"{record.get('endpoint_type')} {record.get('backend')}"
    return "first_event" if chat else "first_content"


def version_numbers(version: str) -> tuple[int, ...]:
    """Split a version into its leading numbers.

    Examples
    --------
    >>> version_numbers("v0.32.1rc1"), version_numbers("0.4.6.post5")
    ((0, 32, 1), (0, 4, 6))
    """
    numbers = []
    for part in version.strip().lstrip("v").split("."):
        digits = ""
        for character in part:
            if not character.isdigit():
                break
            digits += character
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


def _bracket(record: Mapping[str, Any]) -> str:
    for key, since in (
        ("server_queue_times", "0.33"), ("latencies", "0.29-0.33"), ("start_times", "0.15-0.28"),
        ("failed", "0.12-0.14"), ("max_concurrent_requests", "0.11"), ("endpoint_type", "0.9-0.10"),
    ):  # fmt: skip
        if key in record:
            return since
    return "before 0.11"


def _end_epoch(date: Any, zone: str | None, where: str) -> float | None:
    if zone is None or not isinstance(date, str):
        return None
    try:
        stamp = datetime.strptime(date, "%Y%m%d-%H%M%S")
    except ValueError:
        return None
    try:
        return stamp.replace(tzinfo=ZoneInfo(zone)).timestamp()
    except (ZoneInfoNotFoundError, ValueError):
        raise LogFormatError(
            where, found=f"the unknown time zone {zone!r}", expected="an IANA name"
        ) from None


_METRICS = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "itl_s", "e2el": "e2e_s",
            "e2e_latency": "e2e_s"}  # fmt: skip


def reported_summary(record: Mapping[str, Any]) -> dict[str, float | None]:
    """Collect the tool's own summary in base units; its zeros for "none" are left out."""
    nothing = record.get("completed") == 0
    result: dict[str, float | None] = {}
    for key, value in record.items():
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        statistic, _, rest = key.partition("_")
        metric = _METRICS.get(rest.removesuffix("_ms"))
        if metric is None or not rest.endswith("_ms"):
            continue
        statistic = "p50" if statistic == "median" else statistic
        if not (nothing or value == 0):
            result[f"{metric}.{statistic}"] = value / 1000
    for key, name in (
        ("request_throughput", "requests_per_s.value"),
        ("output_throughput", "output_tokens_per_s.value"),
        ("input_throughput", "input_tokens_per_s.value"),
        ("request_goodput", "goodput_requests_per_s.value"),
        ("request_goodput:", "goodput_requests_per_s.value"),
        ("total_input_tokens", "input_tokens.sum"),
        ("total_output_tokens", "output_tokens.sum"),
        ("completed", "requests.completed"),
        ("failed", "requests.failed"),
    ):
        if isinstance(record.get(key), int | float):
            result[name] = float(record[key])
    return result


def _errors(record: Mapping[str, Any], where: str, n: int) -> list[str | None]:
    if record.get("errors") is None:
        return [None] * n
    return [str(error) if error else None for error in list_of(record, "errors", where)]
