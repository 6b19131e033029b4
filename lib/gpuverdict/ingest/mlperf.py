"""MLPerf LoadGen summaries (`mlperf_log_summary.txt`, unverified): aggregates of one run.

Latencies are nanoseconds. A run that is INVALID, or does not say, is marked; its token throughput
divides by summed latency and is no system rate.
"""

from __future__ import annotations

import re
from typing import Any

from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.values import number, positive
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

_BANNER = "MLPerf Results Summary"
_LINE = re.compile(r"^\s*([A-Za-z0-9][^:\n]*?)\s*:\s*(\S.*?)\s*$", re.M)
_SCENARIOS = {"Offline": "offline", "Server": "poisson", "SingleStream": "sync",
              "MultiStream": "sync", "Interactive": "poisson"}  # fmt: skip
_NS = {
    "Mean latency (ns)": "e2e_s.mean",
    "Min latency (ns)": "e2e_s.min",
    "Max latency (ns)": "e2e_s.max",
    "50.00 percentile latency (ns)": "e2e_s.p50",
    "90.00 percentile latency (ns)": "e2e_s.p90",
    "95.00 percentile latency (ns)": "e2e_s.p95",
    "99.00 percentile latency (ns)": "e2e_s.p99",
    "Mean First Token latency (ns)": "ttft_s.mean",
    "50.00 percentile first token latency (ns)": "ttft_s.p50",
    "90.00 percentile first token latency (ns)": "ttft_s.p90",
    "99.00 percentile first token latency (ns)": "ttft_s.p99",
    "Mean Time to Output Token (ns)": "tpot_s.mean",
    "50.00 percentile time to output token (ns)": "tpot_s.p50",
    "90.00 percentile time to output token (ns)": "tpot_s.p90",
    "99.00 percentile time to output token (ns)": "tpot_s.p99",
}


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not a LoadGen summary; None when it is."""
    if document.shape != "text":
        return "not text"
    head = document.data[:2048].decode("utf-8", "replace")
    return None if _BANNER in head else f"no banner {_BANNER!r}"


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read the summary as one run without rows."""
    found: dict[str, str] = {}
    for key, value in _LINE.findall(document.text):
        found.setdefault(" ".join(key.split()), value)
    lowered = {key.lower(): value for key, value in found.items()}
    reported: dict[str, float | None] = {}
    for key, name in _NS.items():
        value = positive(lowered.get(key.lower()))
        if value is not None:
            reported[name] = value * 1e-9
    for key in ("Samples per second", "Completed samples per second"):
        if (rate := positive(found.get(key))) is not None:
            reported["requests_per_s.value"] = rate
    for key in ("Tokens per second", "Completed tokens per second"):
        if (rate := positive(found.get(key))) is not None:
            reported["output_tokens_per_s.value"] = rate
    verdict = found.get("Result is", "").upper()
    scenario = found.get("Scenario", "")
    target = positive(found.get("target_qps")) if scenario in ("Server", "Interactive") else None
    said: list[Any] = []
    if verdict != "VALID":
        said.append(caution("marked_invalid", said=verdict or "-"))
    samples = number(found.get("performance_sample_count"))
    return [
        build_run(
            document,
            part="0",
            source_format="mlperf",
            columns={},
            info={
                "tool": "mlperf loadgen",
                "tool_version": options.client_version,
                "model_id": found.get("SUT name"),
                "load_kind": _SCENARIOS.get(scenario, "unknown"),
                "rate_rps": target,
                "rate_unbounded": scenario == "Offline" if scenario else None,
                "streaming": None,
                "unverified": True,
            },
            reported=reported or {"requests.planned": samples},
            cautions=said,
        )
    ]
