"""llm-d Benchmark Report 0.1, 0.2 and 0.2.1, YAML or JSON: aggregates of one stage.

Units are stated beside every group (`ms`, `s`, ...) and converted by what is stated. Seen in the
partial stage reports of inference-perf 0.7; the scenario part is unverified.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.values import first_known, mapping, number, positive, text
from gpuverdict.schema import Run

__all__ = ["read", "why_not"]

_VERSIONS = ("0.1", "0.2", "0.2.1")
_HEAD = re.compile(rb"^version:\s*['\"]?0\.\d", re.M)
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "s/token": 1.0, "ms/token": 1e-3}
_METRICS = {"time_to_first_token": "ttft_s", "time_per_output_token": "tpot_s",
            "inter_token_latency": "itl_s", "request_latency": "e2e_s"}  # fmt: skip
_STATISTICS = {"mean": "mean", "stddev": "std", "min": "min", "max": "max", "p50": "p50",
               "p90": "p90", "p95": "p95", "p99": "p99"}  # fmt: skip
_DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?$")


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not such a report; None when it is."""
    value = _report(document)
    if not isinstance(value, Mapping):
        return "not a YAML or JSON object"
    if str(value.get("version")) not in _VERSIONS:
        return f"its version is not one of {', '.join(_VERSIONS)}"
    return (
        None if isinstance(value.get("results") or value.get("metrics"), Mapping) else "no results"
    )


def _report(document: Document) -> Any:
    if document.shape == "json":
        return document.first
    if document.shape != "text" or not _HEAD.search(document.data[:4096]):
        return None
    if "llmd_yaml" not in document.parsed:
        try:
            document.parsed["llmd_yaml"] = YAML(typ="safe").load(document.text)
        except (YAMLError, ValueError, RecursionError) as problem:
            first = (str(problem).splitlines() or ["unreadable"])[0]
            raise LogFormatError(
                document.name, found=f"YAML that cannot be read ({first[:100]})"
            ) from None
    return document.parsed["llmd_yaml"]


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read the report as one run without rows.

    Raises
    ------
    LogFormatError
        For a figure without a known unit.
    """
    report = _report(document)
    results = mapping(report.get("results")) or mapping(report.get("metrics"))
    performance = mapping(mapping(results.get("request_performance")).get("aggregate")) or results
    latency = mapping(performance.get("latency"))
    reported: dict[str, float | None] = {}
    for key, metric in _METRICS.items():
        group = mapping(latency.get(key))
        if not group:
            continue
        unit = str(group.get("units"))
        if unit not in _UNITS:
            raise LogFormatError(f"{document.name}: {key}", found=f"the unit {unit!r:.20}",
                                 expected="a unit of time")  # fmt: skip
        for name, statistic in _STATISTICS.items():
            value = number(group.get(name))
            if value is not None:
                reported[f"{metric}.{statistic}"] = value * _UNITS[unit]
    rates = mapping(performance.get("throughput"))
    for key, name in (
        ("request_rate", "requests_per_s.value"),
        ("output_token_rate", "output_tokens_per_s.value"),
        ("requests_per_sec", "requests_per_s.value"),
        ("output_tokens_per_sec", "output_tokens_per_s.value"),
    ):
        value = rates.get(key)
        found = number(mapping(value).get("mean") if isinstance(value, Mapping) else value)
        if found is not None:
            reported[name] = found
    counts = mapping(performance.get("requests"))
    total, failed = number(counts.get("total")), number(counts.get("failures"))
    if total is not None:
        reported["requests.completed"] = total - (failed or 0)
        reported["requests.failed"] = failed or 0
    scenario = mapping(report.get("scenario"))
    model = mapping(scenario.get("model")) or mapping(mapping(scenario.get("stack")).get("model"))
    time = mapping(mapping(report.get("run")).get("time")) or mapping(results.get("time"))
    return [
        build_run(
            document,
            part="0",
            source_format="llmd_report",
            columns={},
            info={
                "tool": "llm-d benchmark report",
                "tool_version": options.client_version,
                "model_id": text(model.get("name")),
                "load_kind": "unknown",
                "duration_s": _seconds(time.get("duration")),
                "unverified": True,
            },
            reported=reported,
            cautions=document.records().cautions if document.shape == "json" else (),
        )
    ]


def _seconds(value: Any) -> float | None:
    if isinstance(value, str) and (match := _DURATION.match(value)):
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return first_known(positive(hours * 3600 + minutes * 60 + seconds))
    return positive(value)
