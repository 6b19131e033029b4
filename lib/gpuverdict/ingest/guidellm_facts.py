"""What a GuideLLM benchmark says about itself: level, window, versions, and its own figures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpuverdict.errors import Caution
from gpuverdict.files import ReadOptions
from gpuverdict.ingest.values import first_known, mapping
from gpuverdict.text import caution

__all__ = ["level_facts", "own_figures", "request_totals"]


def level_facts(
    report: Mapping[str, Any],
    benchmark: Mapping[str, Any],
    index: int,
    options: ReadOptions,
    new_form: bool,
) -> tuple[dict[str, Any], list[Caution]]:
    """Collect the run facts of one benchmark, wherever its version keeps them."""
    said: list[Caution] = []
    metadata = mapping(report.get("metadata"))
    config = mapping(benchmark.get("config"))
    args = mapping(benchmark.get("args"))
    scheduler = mapping(benchmark.get("scheduler"))
    strategy = mapping(
        first_known(config.get("strategy"), scheduler.get("strategy"), args.get("strategy"))
    )
    profile = mapping(first_known(config.get("profile"), args.get("profile")))
    backend = mapping(first_known(config.get("backend"), benchmark.get("backend")))
    worker = mapping(benchmark.get("worker"))
    spec = mapping(mapping(report.get("config")).get("spec"))
    top_args = mapping(report.get("args"))
    version = first_known(metadata.get("guidellm_version"), options.client_version)
    kind = strategy.get("type_")
    load, limit, rate, unbounded = _load(kind, strategy)
    if kind == "throughput" and first_known(profile.get("type_"), profile.get("kind")) == "sweep":
        said.append(caution("overload_by_design"))
    if version is None:
        said.append(
            caution(
                "client_version_unknown", tool="GuideLLM", bracket="0.4" if new_form else "0.2-0.3"
            )
        )
    measured = mapping(benchmark.get("scheduler_metrics"))
    asked_in, asked_out = _asked_lengths(spec, benchmark, top_args)
    modern = _at_least(version, (0, 7))
    stream = mapping(spec.get("backend")).get("stream")
    return {
        "tool": "guidellm",
        "tool_version": version,
        "model_id": first_known(
            backend.get("model"), worker.get("backend_model"), top_args.get("model")
        ),
        "tokenizer_id": mapping(spec.get("tokenizer")).get("model"),
        "load_kind": load,
        "rate_rps": rate,
        "rate_unbounded": unbounded,
        "max_concurrency": limit,
        "stage_id": index,
        "order_no": index,
        "sweep_id": first_known(config.get("run_id"), benchmark.get("run_id")),
        "n_planned": _planned(config, args),
        "duration_s": _duration(benchmark, measured),
        "measure_start_s": measured.get("measure_start_time"),
        "measure_end_s": measured.get("measure_end_time"),
        "streaming": stream if isinstance(stream, bool) else True,
        "ttft_def": "first_content_or_reasoning" if modern else "first_content",
        "e2e_def": "last_token",
        "token_time_source": "even_spread",
        "warmup_policy": "marked by window" if new_form else "left out by the tool",
        "requested_input_tokens": asked_in,
        "requested_output_tokens": asked_out,
    }, said


def _load(
    kind: Any, strategy: Mapping[str, Any]
) -> tuple[str, int | None, float | None, bool | None]:
    limit = first_known(strategy.get("streams"), strategy.get("max_concurrency"))
    rate = strategy.get("rate")
    if kind == "synchronous":
        return "sync", 1, None, True
    if kind == "concurrent":
        return "closed", limit, None, True
    if kind == "throughput":
        return "burst", limit, None, True
    if kind == "constant":
        return "constant", None, rate, False
    if kind in ("poisson", "async"):
        return "poisson", None, rate, False
    if kind == "trace":
        return "trace", None, None, False
    return "unknown", None, rate, None


def _planned(config: Mapping[str, Any], args: Mapping[str, Any]) -> int | None:
    constraints = config.get("constraints")
    if isinstance(constraints, dict):
        if "max_duration" in constraints or "max_seconds" in constraints:
            return None
        count = mapping(mapping(constraints.get("max_requests")).get("args")).get("count")
        position = mapping(constraints.get("max_requests")).get("current_index") or 0
        if isinstance(count, list):
            count = count[position] if position < len(count) else None
        return count if isinstance(count, int) else None
    if args.get("max_duration") is None and isinstance(args.get("max_number"), int):
        return int(args["max_number"])
    return None


def _duration(benchmark: Mapping[str, Any], measured: Mapping[str, Any]) -> float | None:
    start, end = measured.get("measure_start_time"), measured.get("measure_end_time")
    if isinstance(start, int | float) and isinstance(end, int | float) and end > start:
        return float(end - start)
    duration = benchmark.get("duration")
    if isinstance(duration, int | float) and duration > 0:
        return float(duration)
    return None


_LENGTH = re.compile(r"(prompt_tokens|output_tokens)[\"']?\s*[=:]\s*(\d+)")


def _asked_lengths(
    spec: Mapping[str, Any], benchmark: Mapping[str, Any], top_args: Mapping[str, Any]
) -> tuple[int | None, int | None]:
    data = spec.get("data")
    if isinstance(data, list) and len(data) == 1 and isinstance(data[0], dict):
        asked: Mapping[str, Any] = data[0]
        if not asked.get("prompt_tokens_stdev") and not asked.get("output_tokens_stdev"):
            return asked.get("prompt_tokens"), asked.get("output_tokens")
        return None, None
    text = str(
        first_known(mapping(benchmark.get("request_loader")).get("data"), top_args.get("data"))
    )
    found = {key: int(value) for key, value in _LENGTH.findall(text)}
    if "stdev" in text:
        return None, None
    return found.get("prompt_tokens"), found.get("output_tokens")


def request_totals(benchmark: Mapping[str, Any]) -> Mapping[str, Any]:
    """Requests by status as the tool counted them, sampled or not."""
    return mapping(
        first_known(
            mapping(benchmark.get("metrics")).get("request_totals"),
            benchmark.get("request_totals"),
            mapping(benchmark.get("scheduler_metrics")).get("requests_made"),
            mapping(benchmark.get("run_stats")).get("requests_made"),
        )
    )


_METRICS = (
    ("time_to_first_token_ms", "ttft_s", 1e-3),
    ("inter_token_latency_ms", "tpot_s", 1e-3),
    ("request_latency", "e2e_s", 1.0),
)


def own_figures(benchmark: Mapping[str, Any]) -> dict[str, float | None]:
    """Collect the tool's figures of successful requests; zeros of empty groups are left out."""
    result: dict[str, float | None] = {}
    metrics = mapping(benchmark.get("metrics"))
    for key, metric, factor in _METRICS:
        group = mapping(mapping(metrics.get(key)).get("successful"))
        if not group.get("count"):
            continue
        values = {**mapping(group.get("percentiles")), "mean": group.get("mean"),
                  "std": group.get("std_dev"), "min": group.get("min"), "max": group.get("max"),
                  "p50": group.get("median")}  # fmt: skip
        for statistic in ("mean", "std", "min", "max", "p50", "p90", "p95", "p99"):
            value = values.get(statistic)
            # One-token outputs are written as a zero gap between tokens.
            if isinstance(value, int | float) and not (metric == "tpot_s" and value == 0):
                result[f"{metric}.{statistic}"] = value * factor
    for key, name in (
        ("requests_per_second", "requests_per_s.value"),
        ("output_tokens_per_second", "output_tokens_per_s.value"),
    ):
        group = mapping(mapping(metrics.get(key)).get("successful"))
        if group.get("count") and isinstance(group.get("mean"), int | float):
            result[name] = group["mean"]
    totals = request_totals(benchmark)
    for key, name in (
        ("successful", "requests.completed"),
        ("errored", "requests.failed"),
        ("incomplete", "requests.incomplete"),
    ):
        if isinstance(totals.get(key), int):
            result[name] = float(totals[key])
    return result


def _at_least(version: Any, bound: tuple[int, int]) -> bool:
    found = re.match(r"v?(\d+)\.(\d+)", str(version or ""))
    return found is not None and (int(found[1]), int(found[2])) >= bound
