"""What else vLLM leaves: `bench latency` and `bench throughput` JSON, and the printed table.

All are aggregates without requests. A pasted console table is read because people keep nothing
else; its figures are as rounded as they were printed. Unverified: from the tool's sources.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping
from typing import Any

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.values import mapping, number, positive, whole
from gpuverdict.schema import Run

__all__ = ["read", "why_not"]

_BANNER = re.compile(r"^=+ Serving Benchmark Result =+\s*$", re.M)
_LINE = re.compile(r"^\s*([A-Z][^:\n]*?):\s*([\d.]+|inf)\s*$", re.M)
_PRINTED: dict[str, tuple[str, float]] = {
    "Successful requests": ("requests.completed", 1.0),
    "Failed requests": ("requests.failed", 1.0),
    "Total input tokens": ("input_tokens.sum", 1.0),
    "Total generated tokens": ("output_tokens.sum", 1.0),
    "Request throughput (req/s)": ("requests_per_s.value", 1.0),
    "Output token throughput (tok/s)": ("output_tokens_per_s.value", 1.0),
    "Request goodput (req/s)": ("goodput_requests_per_s.value", 1.0),
}
_NAMES = {"TTFT": "ttft_s", "TPOT": "tpot_s", "ITL": "itl_s", "E2EL": "e2e_s"}
_STATISTIC = re.compile(r"(Mean|Median|Std|P\d+) (TTFT|TPOT|ITL|E2EL) \(ms\)$")
_THROUGHPUT = ("elapsed_time", "num_requests", "tokens_per_second")


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is none of these; None when it is."""
    if document.shape == "text":
        head = document.data[:65536].decode("utf-8", "replace")
        return None if _BANNER.search(head) else "no line 'Serving Benchmark Result'"
    value = document.first
    if not isinstance(value, dict):
        return "neither text nor a JSON object"
    if "avg_latency" in value and "percentiles" in value:
        return None
    missing = [key for key in _THROUGHPUT if key not in value]
    return f"no {missing[0]!r} key" if missing else None


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read each result as a run without rows.

    Raises
    ------
    LogFormatError
        For a table without figures.
    """
    if document.shape == "text":
        blocks = _BANNER.split(document.text)[1:]
        return [_printed(document, block, index, options) for index, block in enumerate(blocks)]
    records = document.records()
    return [
        _offline(document, mapping(record), str(index), options, records.cautions)
        for index, record in enumerate(records.values)
    ]


def _printed(document: Document, block: str, index: int, options: ReadOptions) -> Run:
    reported: dict[str, float | None] = {}
    duration = limit = rate = None
    for key, text in _LINE.findall(block):
        value = number(text)
        key = " ".join(key.split())
        if key in _PRINTED:
            reported[_PRINTED[key][0]] = value
        elif match := _STATISTIC.match(key):
            name = {"Mean": "mean", "Median": "p50", "Std": "std"}.get(match[1], match[1].lower())
            # A mean of zero is printed where nothing completed.
            if value:
                reported[f"{_NAMES[match[2]]}.{name}"] = value / 1000
        elif key == "Benchmark duration (s)":
            duration = value
        elif key == "Maximum request concurrency":
            limit = whole(text)
        elif key.startswith("Request rate configured"):
            rate = value
    if not reported:
        raise LogFormatError(f"{document.name}: table {index + 1}", found="no figure",
                             expected="the printed result table")  # fmt: skip
    return build_run(
        document,
        part=str(index),
        source_format="vllm_summaries",
        columns={},
        info={
            "tool": "serving benchmark (printed table)",
            "tool_version": options.client_version,
            "load_kind": "poisson" if rate else "closed" if limit else "unknown",
            "rate_rps": rate,
            "rate_unbounded": None if not (rate or limit) else rate is None,
            "max_concurrency": limit,
            "duration_s": duration,
            "unverified": True,
        },
        reported=reported,
    )


def _offline(
    document: Document,
    record: Mapping[str, Any],
    part: str,
    options: ReadOptions,
    cautions: tuple[Any, ...],
) -> Run:
    reported: dict[str, float | None] = {}
    duration = None
    if "avg_latency" in record:
        tool = "vllm bench latency"
        reported["e2e_s.mean"] = positive(record.get("avg_latency"))
        for key, statistic in (("50", "p50"), ("90", "p90"), ("99", "p99")):
            reported[f"e2e_s.{statistic}"] = positive(mapping(record.get("percentiles")).get(key))
        times = record.get("latencies")
        samples = [positive(time) for time in times] if isinstance(times, list) else []
        known = [time for time in samples if time is not None]
        if known:
            reported |= {"e2e_s.min": min(known), "e2e_s.max": max(known)}
            reported["e2e_s.std"] = statistics.pstdev(known)
    else:
        tool = "vllm bench throughput"
        duration = positive(record.get("elapsed_time"))
        reported["requests_per_s.value"] = number(record.get("requests_per_second"))
        reported["requests.completed"] = number(record.get("num_requests"))
        # `tokens_per_second` counts prompt tokens too: it is kept under a name of its own.
        reported["all_tokens_per_s.value"] = number(record.get("tokens_per_second"))
    return build_run(
        document,
        part=part,
        source_format="vllm_summaries",
        columns={},
        info={
            "tool": tool,
            "tool_version": options.client_version,
            "engine": "vllm",
            "load_kind": "offline",
            "rate_unbounded": True,
            "duration_s": duration,
            "unverified": True,
        },
        reported=reported,
        cautions=cautions,
    )
