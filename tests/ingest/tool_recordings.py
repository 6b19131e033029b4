"""Logs that unmodified tools wrote against a mock server, and what that server saw, read apart.

Fixtures, no measurements: the mock waits 30 ms and then 5 ms a token. Each folder
`tests/ingest/data/<tool>-<version>/<case>` holds the tool's files and `truth.jsonl.gz`, one row a
request that reached the server.
"""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

DATA = Path(__file__).parent / "data"
# Tools that try the connection first do it with a word or two, or for five tokens.
_TRIAL_WORDS = 20
_TRIAL_TOKENS = 5


@dataclass(frozen=True)
class Recording:
    """One recorded run of a tool."""

    tool: str
    version: str
    case: str
    log: Path

    def __str__(self) -> str:
        return f"{self.tool}-{self.version}/{self.case}"

    def truth(self) -> list[dict[str, Any]]:
        """Rows of the server in order of arrival, without the tool's trial of the connection."""
        text = gzip.decompress((self.log.parent / "truth.jsonl.gz").read_bytes()).decode()
        rows = sorted((json.loads(line) for line in text.splitlines()),
                      key=lambda row: row["t_arrival"])  # fmt: skip
        if self.tool == "guidellm" and self.version == "0.1.0":
            return [row for row in rows if row["max_tokens"] > _TRIAL_TOKENS]
        if self.tool == "evalscope":
            rows = [row for row in rows if row["prompt_tokens"] > _TRIAL_WORDS]
            # Two levels in one server start; the fixture is the second.
            return rows[-16:] if self.case == "levels" else rows
        if self.tool == "aiperf" and self.case == "telemetry":
            return rows[2:]  # two warm-up requests were asked for
        if self.tool == "sglang":
            return rows[1:]  # it repeats the first prompt as a warm-up
        return rows

    def ends(self) -> Counter[str]:
        """How the requests ended at the server, in the words of a status."""
        names = {"length": "ok", "stop": "ok", "http_500": "error", "cut": "error",
                 "abort": "cancelled"}  # fmt: skip
        return Counter(names.get(row["end"], row["end"]) for row in self.truth())

    def finished(self) -> list[dict[str, Any]]:
        """Rows of the server that ended by themselves."""
        return [row for row in self.truth() if row["end"] in ("length", "stop")]

    def tpots_s(self) -> list[float]:
        """(last - first)/(n - 1) of the finished rows of the server."""
        return [
            (row["t_last"] - row["t_first"]) / (row["output_tokens"] - 1)
            for row in self.finished()
            if row["t_first"] and row["output_tokens"] > 1
        ]

    def ttft_s(self) -> float:
        """Median of first - arrival of the finished rows of the server."""
        return statistics.median(r["t_first"] - r["t_arrival"] for r in self.finished())

    def data(self) -> bytes:
        """The log, unpacked."""
        return gzip.decompress(self.log.read_bytes())


_LOGS = ("benchmark_data.db.gz", "benchmarks.json.gz", "benchmarks.yaml.gz", "report.json.gz",
         "report.yaml.gz", "per_request_lifecycle_metrics.json.gz", "profile_export.json.gz",
         "profile_export.jsonl.gz", "out.jsonl.gz")  # fmt: skip


def recordings() -> Iterator[Recording]:
    """Go through all recordings, in order."""
    for truth in sorted(DATA.glob("*/*/truth.jsonl.gz")):
        folder = truth.parent
        log = next(folder / name for name in _LOGS if (folder / name).exists())
        tool, _, version = folder.parent.name.rpartition("-")
        yield Recording(tool=tool, version=version, case=folder.name, log=log)


def own_ttfts_s(recording: Recording) -> list[float]:
    """TTFT of each finished request by the file's own times, to the first content."""
    return _READERS[recording.tool](recording)


def _evalscope(recording: Recording) -> list[float]:
    with tempfile.NamedTemporaryFile(suffix=".db") as file:
        file.write(recording.data())
        file.flush()
        connection = sqlite3.connect(file.name)
        columns = [row[1] for row in connection.execute("PRAGMA table_info(result)")]
        old = "chunk_times" in columns
        events = "chunk_times" if old else "inter_token_latencies"
        rows = connection.execute(
            f"SELECT start_time, first_chunk_latency, {events}, completion_tokens FROM result "
            "WHERE success = 1 AND completion_tokens > 0"
        ).fetchall()
        connection.close()
    values = []
    for start, first, cell, tokens in rows:
        listed = json.loads(cell)
        if old and len(listed) == tokens + 2:
            first = listed[1] - start  # the role chunk comes first, the usage last
        elif not old and len(listed) == tokens:
            first += listed[0]  # the role chunk comes first
        values.append(first)
    return values


def _guidellm(recording: Recording) -> list[float]:
    text = recording.data().decode()
    if recording.log.name.endswith(".yaml.gz"):
        report = YAML(typ="safe").load(io.StringIO(text.replace("!!python/tuple", "")))
    else:
        report = json.loads(text)
    values = []
    for benchmark in report["benchmarks"]:
        if "benchmarks" in benchmark:
            for level in benchmark["benchmarks"]:
                values += [
                    row["first_token_time"] + row["decode_times"]["data"][0]
                    for row in level["results"]
                ]
            continue
        for row in benchmark["requests"]["successful"]:
            times = row["info"]["timings"]
            if times["first_token_iteration"]:
                values.append(times["first_token_iteration"] - times["request_start"])
    return values


def _inference_perf(recording: Recording) -> list[float]:
    values = []
    for row in json.loads(recording.data()):
        info = row["info"] or {}
        response = info.get("response_metrics") or info.get("response_info") or info
        times = response.get("output_token_times")
        if row["error"] is None and times and response["output_tokens"]:
            values.append(times[0] - row["start_time"])
    return values


def _genai_perf(recording: Recording) -> list[float]:
    values = []
    for row in json.loads(recording.data())["experiments"][0]["requests"]:
        for stamp, output in zip(row["response_timestamps"], row["response_outputs"], strict=True):
            if '"content": "w' in output["response"]:
                values.append((stamp - row["timestamp"]) / 1e9)
                break
    return values


def _aiperf(recording: Recording) -> list[float]:
    rows = [json.loads(line) for line in recording.data().decode().splitlines()]
    return [
        row["metrics"]["time_to_first_token"]["value"] / 1e3
        for row in rows
        if row.get("error") is None
        and "time_to_first_token" in row["metrics"]
        and row["metadata"].get("benchmark_phase") in ("profiling", None)
        and not row["metadata"].get("was_cancelled")
    ]


def _sglang(recording: Recording) -> list[float]:
    run = json.loads(recording.data())
    listed = zip(run["ttfts"], run["errors"], strict=True)
    return [ttft for ttft, error in listed if not error and ttft > 0]


_READERS = {
    "aiperf": _aiperf,
    "evalscope": _evalscope,
    "genai-perf": _genai_perf,
    "guidellm": _guidellm,
    "inference-perf": _inference_perf,
    "sglang": _sglang,
}
