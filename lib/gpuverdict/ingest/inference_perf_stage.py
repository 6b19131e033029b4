"""inference-perf stage and summary reports (`stage_k_lifecycle_metrics.json`): aggregates.

Read alone, a report is a run without rows. Beside the request records, a stage report tells the
size and the load of its stage. The pooled summary of a sweep includes the pauses between stages
and describes no level.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.values import first_known, mapping, number, positive, whole
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["read", "reported_figures", "stage_facts", "why_not"]

_LOADS = {"concurrent": "closed", "constant": "constant", "poisson": "poisson",
          "trace_replay": "trace"}  # fmt: skip
_METRICS = {
    "request_latency": "e2e_s",
    "time_to_first_token": "ttft_s",
    "time_per_output_token": "tpot_s",
    "inter_token_latency": "itl_s",
}
_STATISTICS = {"mean": "mean", "median": "p50", "p90": "p90", "p95": "p95", "p99": "p99",
               "min": "min", "max": "max"}  # fmt: skip


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not such a report; None when it is."""
    value = document.first
    if not isinstance(value, dict):
        return "not a JSON object"
    missing = [key for key in ("load_summary", "successes", "failures") if key not in value]
    if missing:
        return f"no {missing[0]!r} key"
    if "count" not in mapping(value["load_summary"]):
        return "its load_summary counts no requests (a summary of server metrics)"
    return None


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read the report as one run without rows."""
    records = document.records()
    runs = []
    for index, stage in enumerate(records.values):
        # Only a stage has a send rate; without one the report pools several stages.
        pooled = "achieved_rate" not in mapping(mapping(stage).get("load_summary"))
        said = [caution("stages_pooled")] if pooled else []
        runs.append(
            build_run(
                document,
                part=str(index),
                source_format="inference_perf_stage",
                columns={},
                info=stage_facts(mapping(stage), {}, None, options),
                reported=reported_figures(mapping(stage)),
                cautions=[*records.cautions, *said],
            )
        )
    return runs


def stage_facts(
    stage: Mapping[str, Any], config: Mapping[str, Any], index: int | None, options: ReadOptions
) -> dict[str, Any]:
    """Say what a stage report and the configuration tell, as run facts."""
    load = mapping(stage.get("load_summary"))
    limit = whole(load.get("concurrency"))
    kind = _LOADS.get(str(config.get("load_type")), "closed" if limit else "unknown")
    rate = None if kind == "closed" else number(load.get("requested_rate"))
    return {
        "tool": "inference-perf",
        "tool_version": options.client_version,
        "model_id": config.get("model"),
        "load_kind": kind,
        "rate_rps": rate,
        "rate_unbounded": True if kind == "closed" else False if rate is not None else None,
        "max_concurrency": limit,
        "stage_id": index,
        "order_no": index,
        "n_planned": whole(load.get("count")),
        "duration_s": None if config or index is not None else _duration(stage),
        "streaming": config.get("streaming"),
        "ttft_def": "first_content",
        "e2e_def": "last_token",
    }


def _duration(stage: Mapping[str, Any]) -> float | None:
    """Give the time the throughput of a report was computed over."""
    rate = positive(mapping(mapping(stage.get("successes")).get("throughput")).get(
        "requests_per_sec"))  # fmt: skip
    done = positive(mapping(stage.get("successes")).get("count"))
    if rate and done:
        return done / rate
    return positive(stage.get("benchmark_time_seconds"))


def reported_figures(stage: Mapping[str, Any]) -> dict[str, float | None]:
    """Collect the figures of a report in base units; all its times are seconds."""
    done = mapping(stage.get("successes"))
    latency = mapping(done.get("latency")) or done
    result: dict[str, float | None] = {}
    for key, metric in _METRICS.items():
        group = mapping(latency.get(key))
        for name, statistic in _STATISTICS.items():
            result[f"{metric}.{statistic}"] = number(group.get(name))
    rates = mapping(done.get("throughput"))
    result["requests_per_s.value"] = number(rates.get("requests_per_sec"))
    result["output_tokens_per_s.value"] = number(rates.get("output_tokens_per_sec"))
    result["input_tokens_per_s.value"] = number(rates.get("input_tokens_per_sec"))
    result["requests.completed"] = number(done.get("count"))
    result["requests.failed"] = number(mapping(stage.get("failures")).get("count"))
    load = mapping(stage.get("load_summary"))
    result["send_rate_per_s.value"] = first_known(
        number(load.get("achieved_rate")), number(load.get("send_rate"))
    )
    return {key: value for key, value in result.items() if value is not None}
