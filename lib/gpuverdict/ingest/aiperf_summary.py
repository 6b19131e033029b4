"""AIPerf and GenAI-Perf summaries (`profile_export_aiperf.json`): aggregates of one benchmark.

Read alone, a summary is a run without rows. Beside the records it tells the level, the versions
and whether the run was complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.values import first_known, mapping, positive
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["level_facts", "read", "reported_figures", "sibling_summary", "why_not"]

_TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}
_METRICS = {
    "time_to_first_token": "ttft_s",
    "inter_token_latency": "tpot_s",
    "inter_chunk_latency": "itl_s",
    "request_latency": "e2e_s",
}
_RATES = {
    "request_throughput": "requests_per_s.value",
    "output_token_throughput": "output_tokens_per_s.value",
    "input_token_throughput": "input_tokens_per_s.value",
    "goodput": "goodput_requests_per_s.value",
}
_STATISTICS = {"avg": "mean", "std": "std", "min": "min", "max": "max", "p50": "p50", "p90": "p90",
               "p95": "p95", "p99": "p99"}  # fmt: skip


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not such a summary; None when it is."""
    value = document.first
    if not isinstance(value, dict):
        return "not a JSON object"
    latency = value.get("request_latency")
    if not isinstance(latency, dict) or "unit" not in latency or "avg" not in latency:
        return "no 'request_latency' with unit and avg"
    return None


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read the summary as one run without rows."""
    summary = document.first
    cautions = []
    if summary.get("was_cancelled") or summary.get("is_complete") is False:
        cautions.append(caution("run_interrupted"))
    return [
        build_run(
            document,
            part="0",
            source_format="aiperf_summary",
            columns={},
            info=level_facts(summary, options),
            reported=reported_figures(summary, document.name),
            cautions=[*document.records().cautions, *cautions],
        )
    ]


def sibling_summary(document: Document) -> Mapping[str, Any] | None:
    """Return the summary the tool wrote beside its records, if it is there."""
    stem = document.path.name.split(".jsonl")[0].removesuffix("_raw")
    beside = document.sibling(f"{stem}_aiperf.json") or document.sibling(f"{stem}_genai_perf.json")
    if beside is None or why_not(beside, ReadOptions()) is not None:
        return None
    value: Mapping[str, Any] = beside.first
    return value


def level_facts(summary: Mapping[str, Any] | None, options: ReadOptions) -> dict[str, Any]:
    """Say what the summary (or nothing) tells about the run, as run facts."""
    summary = summary or {}
    config = mapping(summary.get("input_config"))
    phases = [phase for phase in config.get("phases") or [] if isinstance(phase, dict)]
    main = next((phase for phase in phases if phase.get("kind") != "warmup"), {})
    loadgen = mapping(config.get("loadgen"))
    limit = first_known(main.get("concurrency"), loadgen.get("concurrency"))
    rate = first_known(main.get("rate"), main.get("request_rate"), loadgen.get("request_rate"))
    kind = str(first_known(main.get("type"), loadgen.get("request_rate_mode"), ""))
    if isinstance(rate, int | float):
        load = "constant" if "constant" in kind else "gamma" if "gamma" in kind else "poisson"
    else:
        rate, load = None, "closed" if limit else "unknown"
    endpoint = mapping(config.get("endpoint"))
    data = (config.get("datasets") or [None])[0]
    prompts = mapping(mapping(data).get("prompts"))
    version = first_known(summary.get("aiperf_version"), options.client_version)
    duration = mapping(summary.get("benchmark_duration"))
    streaming = endpoint.get("streaming")
    return {
        "tool": "aiperf",
        "tool_version": version,
        "model_id": _model(config, endpoint),
        "tokenizer_id": mapping(config.get("tokenizer")).get("name"),
        "load_kind": load,
        "rate_rps": rate,
        "rate_unbounded": rate is None if load != "unknown" else None,
        "max_concurrency": limit,
        "n_planned": first_known(main.get("requests"), loadgen.get("request_count")),
        "duration_s": _seconds(duration) if duration else None,
        "streaming": streaming if isinstance(streaming, bool) else None,
        "ttft_def": "first_content_or_reasoning",
        "e2e_def": "last_token",
        "gap_kind": "chunk",
        "token_time_source": "gaps",
        "warmup_policy": "marked by the tool",
        "requested_input_tokens": _constant(prompts.get("isl")),
        "requested_output_tokens": _constant(prompts.get("osl")),
    }


def reported_figures(summary: Mapping[str, Any], where: str = "") -> dict[str, float | None]:
    """Collect the summary's figures in base units.

    Raises
    ------
    LogFormatError
        For a duration in an unknown unit.
    """
    result: dict[str, float | None] = {}
    for key, metric in _METRICS.items():
        group = mapping(summary.get(key))
        unit = group.get("unit")
        if not group:
            continue
        if not isinstance(unit, str) or unit not in _TIMES:
            raise LogFormatError(
                f"{where}: {key}", found=f"the unit {unit!r:.20}", expected="a unit of time"
            )
        for name, statistic in _STATISTICS.items():
            if isinstance(group.get(name), int | float):
                result[f"{metric}.{statistic}"] = group[name] * _TIMES[unit]
    for key, name in _RATES.items():
        value = mapping(summary.get(key)).get("avg")
        if isinstance(value, int | float):
            result[name] = value
    for key, name in (
        ("request_count", "requests.completed"),
        ("error_request_count", "requests.failed"),
        ("total_osl", "output_tokens.sum"),
        ("total_isl", "input_tokens.sum"),
    ):
        value = mapping(summary.get(key)).get("avg")
        if isinstance(value, int | float):
            result[name] = value
    return result


def _seconds(metric: Mapping[str, Any]) -> float | None:
    value, unit = metric.get("avg"), metric.get("unit")
    time = positive(value)
    return time * _TIMES[unit] if time and isinstance(unit, str) and unit in _TIMES else None


def _model(config: Mapping[str, Any], endpoint: Mapping[str, Any]) -> str | None:
    items = mapping(config.get("models")).get("items")
    if isinstance(items, list) and items and isinstance(items[0], dict):
        name = items[0].get("name")
        return name if isinstance(name, str) else None
    names = first_known(endpoint.get("model_names"), config.get("model_names"))
    return str(names[0]) if isinstance(names, list) and names else None


def _constant(length: Any) -> int | None:
    group = mapping(length)
    mean = group.get("mean")
    if group.get("stddev") or not isinstance(mean, int | float):
        return None
    return int(mean) if mean == int(mean) else None
