"""The recorded client logs and the server's truth beside each, read here without the library.

The recordings are of real load generators against a mock server: they check readers and are no
measurement of any GPU.
"""

from __future__ import annotations

import gzip
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLIENTS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "clients"

# Where each tool's main log lies, and how many requests of its own the server saw first.
_LOGS = {
    "aiperf": ("artifacts/profile_export.jsonl*", 0),
    "guidellm": ("benchmarks.json*", 0),
    "inference-perf": ("reports/per_request_lifecycle_metrics.json*", 0),
    "llmperf": ("results/*_individual_responses.json", 0),
    "sglang": ("sglang_*.jsonl*", 1),
    "vllm": ("vllm_*.json*", 0),
}


@dataclass(frozen=True)
class Case:
    """One recorded case: the tool, its log, and what its manifest expects."""

    tool: str
    version: str
    name: str
    log: Path | None
    manifest: dict[str, Any]
    warmups: int

    @property
    def folder(self) -> Path:
        """Where the case lies."""
        return CLIENTS / self.version / self.name

    @property
    def normal(self) -> bool:
        """Whether nothing was broken on purpose."""
        return not self.name.startswith(("edge_", "small_"))

    def __str__(self) -> str:
        return f"{self.version}/{self.name}"

    def truth(self) -> list[dict[str, Any]]:
        """Rows of the server, in order of arrival, without the tool's warm-ups."""
        path = self.folder / "truth_server.jsonl.gz"
        text = gzip.decompress(path.read_bytes()).decode()
        rows = [json.loads(line) for line in text.splitlines()]
        rows.sort(key=lambda row: row["t_arrival"])
        # GuideLLM 0.3.1 sends one request to validate the server.
        return rows[self.warmups + (self.version == "guidellm-0.3.1") :]

    def finished(self) -> list[dict[str, Any]]:
        """Rows of the server that ended by themselves."""
        return [row for row in self.truth() if row["end"] in ("length", "stop")]

    def raw(self) -> Any:
        """The log as parsed by the standard library; a list for JSON Lines."""
        assert self.log is not None
        data = self.log.read_bytes()
        text = (gzip.decompress(data) if self.log.suffix == ".gz" else data).decode()
        if ".jsonl" in self.log.name:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        return json.loads(text)


def cases() -> Iterator[Case]:
    """Go through all recorded cases, in order."""
    if not CLIENTS.exists():
        return
    for manifest in sorted(CLIENTS.glob("*/*/manifest.json")):
        content = json.loads(manifest.read_text())
        version = manifest.parent.parent.name
        tool = next(name for name in _LOGS if version.startswith(name))
        pattern, warmups = _LOGS[tool]
        found = sorted(manifest.parent.glob(pattern))
        yield Case(
            tool=tool,
            version=version,
            name=manifest.parent.name,
            log=found[0] if found else None,
            manifest=content,
            # Two warm-up requests that this case alone asked for.
            warmups=2 if manifest.parent.name == "edge_raw-level" else warmups,
        )


def truth_tpot_s(rows: list[dict[str, Any]]) -> float | None:
    """Median of (last - first)/(n - 1) over rows of the server with two tokens or more."""
    values = [
        (row["t_last"] - row["t_first"]) / (row["output_tokens"] - 1)
        for row in rows
        if row["output_tokens"] > 1
    ]
    return statistics.median(values) if values else None


def truth_ttft_s(rows: list[dict[str, Any]]) -> float | None:
    """Median of first - arrival over rows of the server."""
    values = [row["t_first"] - row["t_arrival"] for row in rows if row["t_first"]]
    return statistics.median(values) if values else None


def own_ttfts_s(case: Case) -> list[float | None]:
    """TTFT of each request that the log calls successful, by the log's own times, in its order."""
    raw = case.raw()
    if case.tool == "vllm":
        shift = case.name == "edge_chat"  # the empty role chunk comes first
        return [
            ttft + (gaps[0] if shift else 0.0)
            for ttft, gaps, error in zip(raw["ttfts"], raw["itls"], raw["errors"], strict=True)
            if not error
        ]
    if case.tool == "sglang":
        return [
            ttft
            for run in raw
            for ttft, error in zip(run["ttfts"], run["errors"], strict=True)
            if not error and ttft > 0
        ]
    if case.tool == "guidellm":
        return [
            row["time_to_first_token_ms"] / 1000
            for level in raw["benchmarks"]
            for row in level["requests"]["successful"]
        ]
    if case.tool == "aiperf":
        return [
            row["metrics"]["time_to_first_token"]["value"] / 1000
            for row in raw
            if row.get("error") is None
            and not row["metadata"]["was_cancelled"]
            and row["metadata"]["benchmark_phase"] == "profiling"
        ]
    if case.tool == "llmperf":
        return [row["ttft_s"] for row in raw]
    values: list[tuple[float, float]] = []
    for row in raw:
        times = ((row["info"] or {}).get("response_metrics") or {}).get("output_token_times")
        if row["error"] is None and times:
            values.append((row["start_time"], times[0] - row["start_time"]))
    return [ttft for _, ttft in values]
