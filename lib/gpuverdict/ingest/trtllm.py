"""TensorRT-LLM: `benchmark_serving` results and `trtllm-bench` reports and request records.

Unverified: written from the sources. Serving results are those of vLLM's ancestor with `e2els` for
the latencies, no starts, and a TCP connect inside the TTFT. `trtllm-bench` counts nanoseconds on a
monotonic clock and writes -1 for a first token that was not streamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest import vllm
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.values import first_known, mapping, number, positive, text, whole
from gpuverdict.schema import Run

__all__ = ["read", "why_not"]

_MARKS = ("user_throughput", "e2els", "avg_decoded_tokens_per_iter")
_SERVING = ("model_id", "num_prompts", "completed", "duration")
_REPORT = ("engine", "world_info", "performance")
_RECORD = ("start_timestamp", "first_token_timestamp", "end_timestamp", "decode_iteration")


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not from TensorRT-LLM; None when it is."""
    value = document.first
    if isinstance(value, list):
        row = value[0] if value else None
        if isinstance(row, dict) and all(key in row for key in _RECORD):
            return None
        return "its records are not those of trtllm-bench"
    if not isinstance(value, dict):
        return "not a JSON object or list"
    if all(key in value for key in _REPORT):
        return None
    if all(key in value for key in _SERVING) and any(key in value for key in _MARKS):
        return None
    return f"neither {', '.join(_REPORT)} nor {' or '.join(_MARKS)}"


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read whichever of the three it is.

    Raises
    ------
    LogFormatError
        For lists of unequal length and values that are no numbers.
    """
    value = document.first
    if isinstance(value, list):
        return [_records(document, value, options)]
    records = document.records()
    if all(key in value for key in _REPORT):
        return [
            _report(document, mapping(record), str(index), options)
            for index, record in enumerate(records.values)
        ]
    return [
        vllm.read_record(
            document,
            {**mapping(record), "latencies": mapping(record).get("e2els")},
            part=str(index),
            where=f"{document.name}:{line}",
            options=options,
            dropped=records.dropped if index == 0 else {},
            cautions=records.cautions,
            dialect="trtllm",
            tool="tensorrt_llm benchmark_serving",
        )
        for index, (record, line) in enumerate(zip(records.values, records.lines, strict=True))
    ]


def _records(document: Document, rows: list[Any], options: ReadOptions) -> Run:
    for index, row in enumerate(rows):
        if not isinstance(row, dict) or any(key not in row for key in _RECORD):
            raise LogFormatError(f"{document.name}[{index}]", found="a record of another kind",
                                 expected=", ".join(_RECORD))  # fmt: skip

    def stamps(key: str) -> list[int | None]:
        found: list[int | None] = []
        for index, row in enumerate(rows):
            value = row[key]
            if isinstance(value, bool) or not isinstance(value, int):
                raise LogFormatError(f"{document.name}[{index}].{key}", found=repr(value)[:40],
                                     expected="whole nanoseconds")  # fmt: skip
            found.append(value if value >= 0 else None)
        return found

    start, first, end = (stamps(key) for key in _RECORD[:3])
    origin = min((stamp for stamp in start if stamp is not None), default=0)

    def seconds(values: list[int | None]) -> Any:
        return np.array([np.nan if v is None else (v - origin) / 1e9 for v in values])

    errors = ["error" if (number(row.get("error_tokens")) or 0) > 0 else None for row in rows]
    streamed = any(stamp is not None for stamp in first)
    tokens = [
        first_known(number(row.get("output_tokens")), number(row.get("num_output_tokens")),
                    number(row.get("num_total_output_tokens")))
        for row in rows
    ]  # fmt: skip
    ends = seconds(end)
    columns: dict[str, Any] = {
        "request_id": [row.get("id") for row in rows],
        "start_s": seconds(start),
        "end_s": ends,
        "input_tokens": [number(row.get("num_input_tokens")) for row in rows],
        "output_tokens": tokens,
    }
    if streamed:
        columns |= {"first_token_s": seconds(first), "last_token_s": ends}
    else:
        columns["e2e_s"] = ends - columns["start_s"]
    span = float(np.nanmax(ends)) if np.isfinite(ends).any() else 0.0
    return build_run(
        document,
        part="0",
        source_format="trtllm",
        columns=columns,
        info={
            "tool": "trtllm-bench",
            "tool_version": options.client_version,
            "engine": "tensorrt-llm",
            "load_kind": "unknown",
            "duration_s": span if span > 0 else None,
            "streaming": streamed,
            "ttft_def": "first_content" if streamed else None,
            "e2e_def": "last_token" if streamed else "non_stream",
            "token_time_source": "even_spread" if streamed else None,
            "output_tokens_source": "token_ids",
            "unverified": True,
        },
        errors=errors,
        cautions=document.records().cautions,
    )


_GROUPS = (
    ("performance", "request_latency_percentiles_ms", "e2e_s"),
    ("streaming_metrics", "ttft_percentiles", "ttft_s"),
    ("streaming_metrics", "tpot_percentiles", "tpot_s"),
)
_STATISTICS = {"average": "mean", "minimum": "min", "maximum": "max", "p50": "p50", "p90": "p90",
               "p95": "p95", "p99": "p99"}  # fmt: skip


def _report(document: Document, report: Mapping[str, Any], part: str, options: ReadOptions) -> Run:
    engine, world = mapping(report.get("engine")), mapping(report.get("world_info"))
    performance = mapping(report.get("performance"))
    machine = mapping(report.get("machine"))
    about = mapping(report.get("request_info"))
    reported: dict[str, float | None] = {
        "requests_per_s.value": number(performance.get("request_throughput_req_s")),
        "output_tokens_per_s.value": number(performance.get("system_output_throughput_tok_s")),
        "requests.completed": number(about.get("num_requests")),
    }
    for group, key, metric in _GROUPS:
        values = mapping(mapping(report.get(group)).get(key))
        for name, statistic in _STATISTICS.items():
            value = number(values.get(name))
            if value is not None:
                reported[f"{metric}.{statistic}"] = value / 1000
    total_ms = positive(performance.get("total_latency_ms"))
    return build_run(
        document,
        part=part,
        source_format="trtllm",
        columns={},
        info={
            "tool": "trtllm-bench",
            "tool_version": text(engine.get("version")) or options.client_version,
            "engine": "tensorrt-llm",
            "engine_version": text(engine.get("version")),
            "model_id": text(engine.get("model")),
            "precision": text(engine.get("quantization")) or text(engine.get("dtype")),
            "kv_dtype": text(engine.get("kv_cache_dtype")),
            "gpu_label": text(machine.get("name")),
            "gpu_count": whole(world.get("world_size")),
            "tp": whole(world.get("tp_size")),
            "pp": whole(world.get("pp_size")),
            "ep": whole(world.get("ep_size")),
            "load_kind": "unknown",
            "duration_s": total_ms / 1000 if total_ms else None,
            "unverified": True,
        },
        reported=reported,
        cautions=document.records().cautions,
    )
