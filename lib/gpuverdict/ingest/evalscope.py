"""EvalScope `perf`: the SQLite table `result` and the summary JSON (unverified: from its source).

Times are of the client's monotonic clock. Error texts are not stored, and the responses are
pickled: they are never opened. `latency` runs to the last event, usage included; the last token is
the first plus the gaps. Failed requests have no numbers.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.gaps import Gaps
from gpuverdict.ingest.values import first_known, mapping, number, positive, whole
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

_NEEDED = ("start_time", "success", "latency", "first_chunk_latency", "prompt_tokens",
           "completion_tokens")  # fmt: skip
_OPTIONAL = ("completed_time", "inter_token_latencies", "request_id", "is_stream")
_SUMMARY_KEYS = {"Test Duration (s)", "Time taken for tests (s)"}
_FIGURES = {
    "Avg TTFT (ms)": ("ttft_s.mean", 1e-3),
    "Avg TPOT (ms)": ("tpot_s.mean", 1e-3),
    "Avg ITL (ms)": ("itl_s.mean", 1e-3),
    "Avg Latency (s)": ("e2e_s.mean", 1.0),
    "Average latency (s)": ("e2e_s.mean", 1.0),
    "Average time to first token (s)": ("ttft_s.mean", 1.0),
    "Average time per output token (s)": ("tpot_s.mean", 1.0),
    "Req Throughput (req/s)": ("requests_per_s.value", 1.0),
    "Request throughput (req/s)": ("requests_per_s.value", 1.0),
    "Output Throughput (tok/s)": ("output_tokens_per_s.value", 1.0),
    "Output token throughput (tok/s)": ("output_tokens_per_s.value", 1.0),
    "Success Requests": ("requests.completed", 1.0),
    "Succeed requests": ("requests.completed", 1.0),
    "Failed Requests": ("requests.failed", 1.0),
    "Failed requests": ("requests.failed", 1.0),
}
# A row is small; a query that runs longer is no log but an attack on the reader.
_MOST_STEPS = 200_000


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not from EvalScope; None when it is."""
    if document.shape == "json":
        value = document.first
        if isinstance(value, dict) and _SUMMARY_KEYS & set(value):
            return None
        return "neither a SQLite file nor its summary"
    if document.shape != "sqlite":
        return "neither a SQLite file nor its summary"
    columns = _columns(document)
    missing = [name for name in _NEEDED if name not in columns]
    return f"its database has no column result.{missing[0]}" if missing else None


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read the requests, or the summary alone, as one run.

    Raises
    ------
    LogFormatError
        For a damaged database and values of another kind.
    """
    if document.shape == "json":
        summary = mapping(document.first)
        return [
            build_run(
                document,
                part="0",
                source_format="evalscope",
                columns={},
                info=_facts(summary, {}, options),
                reported=_reported(summary),
                cautions=document.records().cautions,
            )
        ]
    names = [name for name in (*_NEEDED, *_OPTIONAL) if name in _columns(document)]
    rows = _query(document, f"SELECT {', '.join(names)} FROM result")  # names are ours
    table = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    summary = _beside(document, "benchmark_summary.json")
    args = _beside(document, "benchmark_args.json")
    facts = _facts(summary, args, options)
    return [_requests(document, table, len(rows), facts, _reported(summary))]


def _requests(
    document: Document,
    table: Mapping[str, list[Any]],
    n: int,
    facts: dict[str, Any],
    reported: Mapping[str, float | None],
) -> Run:
    if n == 0:
        raise LogFormatError(document.name, found="no request", expected="rows in result")

    def column(name: str) -> Any:
        values = table.get(name, [None] * n)
        return np.array([_cell(value, document.name, name) for value in values], dtype=np.float64)

    success = column("success")
    errors = [None if done == 1 else "request failed" for done in success]
    ttft, latency = column("first_chunk_latency"), column("latency")
    streams = column("is_stream")
    streamed = bool((streams == 1).any()) if np.isfinite(streams).any() else True
    tokens = column("completion_tokens")
    columns: dict[str, Any] = {
        "start_s": column("start_time"),
        "input_tokens": column("prompt_tokens"),
        "output_tokens": tokens,
        "request_id": table.get("request_id"),
        "error_kind": ["other" if error else None for error in errors],
    }
    gaps = None
    if streamed:
        gaps = Gaps.from_lists(
            [_gap_list(cell, document.name)
             for cell in table.get("inter_token_latencies", [None] * n)],
            "chunk", f"{document.name}: inter_token_latencies",
        )  # fmt: skip
        columns["ttft_s"] = ttft
        columns["decode_s"] = np.where(gaps.lengths > 0, gaps.sums_s, latency - ttft)
        columns["end_s"] = columns["start_s"] + latency
    else:
        columns["e2e_s"] = latency
        facts |= {"streaming": False, "ttft_def": None, "e2e_def": "non_stream"}
    return build_run(
        document,
        part="0",
        source_format="evalscope",
        columns=columns,
        info=facts,
        gaps=gaps,
        errors=errors,
        reported=reported,
        explained=dict.fromkeys(("e2e_s", "tpot_s"), "reported_past_last_token")
        | dict.fromkeys(("requests_per_s", "output_tokens_per_s"), "reported_other_definition"),
        cautions=[] if reported else [caution("summary_missing", name=document.name)],
    )


def _columns(document: Document) -> set[str]:
    if "sqlite_columns" not in document.parsed:
        # A view may hide an endless query behind the same name.
        found = _query(
            document, "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'result'"
        )
        rows = _query(document, "PRAGMA table_info(result)") if found else []
        document.parsed["sqlite_columns"] = {row[1] for row in rows}
    columns: set[str] = document.parsed["sqlite_columns"]
    return columns


def _query(document: Document, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(":memory:")
    steps = 0

    def tick() -> int:
        nonlocal steps
        steps += 1
        return int(steps > _MOST_STEPS)

    try:
        connection.deserialize(document.data)
        connection.set_progress_handler(tick, 10_000)
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection.execute(sql).fetchall()
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as problem:
        raise LogFormatError(
            document.name, found=f"a damaged SQLite file ({str(problem)[:80]})"
        ) from None
    finally:
        connection.close()


def _cell(value: Any, where: str, name: str) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, int | float):
        return float(value)
    result = number(value) if isinstance(value, str) else None
    if result is None:
        raise LogFormatError(f"{where}: {name}", found=repr(value)[:40], expected="a number")
    return result


def _gap_list(cell: Any, where: str) -> list[float]:
    if not cell:
        return []
    try:
        value = json.loads(cell)
    except (TypeError, ValueError, RecursionError):
        value = "unreadable"
    if value is None:
        return []
    if not isinstance(value, list):
        raise LogFormatError(
            f"{where}: inter_token_latencies", found=repr(cell)[:40], expected="a JSON list"
        )
    return value


def _beside(document: Document, name: str) -> Mapping[str, Any]:
    beside = document.sibling(name)
    return mapping(beside.first) if beside is not None else {}


def _facts(
    summary: Mapping[str, Any], args: Mapping[str, Any], options: ReadOptions
) -> dict[str, Any]:
    limit = first_known(
        whole(summary.get("Concurrency")), whole(summary.get("Number of concurrency")),
        whole(args.get("parallel")),
    )  # fmt: skip
    rate = first_known(positive(summary.get("Request Rate (req/s)")), positive(args.get("rate")))
    return {
        "tool": "evalscope perf",
        "tool_version": options.client_version,
        "model_id": args.get("model") if isinstance(args.get("model"), str) else None,
        "load_kind": "poisson" if rate else "closed" if limit else "unknown",
        "rate_rps": rate,
        "rate_unbounded": None if not (rate or limit) else rate is None,
        "max_concurrency": limit,
        "n_planned": first_known(
            whole(summary.get("Total Requests")), whole(summary.get("Total requests")),
            whole(args.get("number")),
        ),
        "duration_s": first_known(
            positive(summary.get("Test Duration (s)")),
            positive(summary.get("Time taken for tests (s)")),
        ),
        "streaming": True,
        "ttft_def": "first_content_or_reasoning",
        "e2e_def": "last_token",
        "token_time_source": "gaps",
        "output_tokens_source": "usage",
        "unverified": True,
    }  # fmt: skip


def _reported(summary: Mapping[str, Any]) -> dict[str, float | None]:
    result: dict[str, float | None] = {}
    for key, (name, factor) in _FIGURES.items():
        value = number(summary.get(key))
        # A mean of zero stands for "nothing to average".
        if value is not None and (value > 0 or name.startswith("requests.")):
            result[name] = value * factor
    return result
