"""EvalScope `perf`: the SQLite table `result` and the summary JSON, seen in files of 0.17 to 1.14.

Times are of the client's monotonic clock. Error texts are not stored, and the responses are
pickled: they are never opened. `latency` runs to the last event, usage included; the last token is
the first plus the gaps. Failed requests have no numbers but their start and, mostly, their end.

Three forms of the table, told by its columns: up to 1.0 `chunk_times` holds the stamp of every
event, the role chunk and the usage event among them; from 1.1 `inter_token_latencies` counts
events with `choices`, the role chunk among them; from 1.12 events with content, reasoning or a
tool call only.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.columns import FloatArray
from gpuverdict.ingest.gaps import BoolArray, Gaps, chunk_cautions, split_gaps
from gpuverdict.ingest.values import first_known, mapping, number, positive, text, whole
from gpuverdict.ingest.vllm import version_numbers
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

_NEEDED = ("start_time", "success", "latency", "first_chunk_latency", "prompt_tokens",
           "completion_tokens")  # fmt: skip
_OPTIONAL = ("completed_time", "inter_token_latencies", "chunk_times", "n_chunks", "request_id",
             "is_stream")  # fmt: skip
# Keys of benchmark_args.json that came with 1.12, as did the clock that waits for content.
_CONTENT_CLOCK_KEYS = {"enable_pd_metrics", "scenario"}
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
                info=_facts(summary, _beside(document, "benchmark_args.json"), options)
                | {"token_time_source": None},
                reported=_reported(summary),
                cautions=document.records().cautions,
            )
        ]
    names = [name for name in (*_NEEDED, *_OPTIONAL) if name in _columns(document)]
    rows = _query(document, f"SELECT {', '.join(names)} FROM result")  # names are ours
    table = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    summary = _beside(document, "benchmark_summary.json")
    args = _beside(document, "benchmark_args.json")
    facts = _facts(summary, args, options) | {"ttft_def": _ttft_def(table, args, options)}
    chat = "completions" not in str(args.get("url")) or "chat" in str(args.get("url"))
    return [_requests(document, table, len(rows), facts, _reported(summary), chat=chat)]


def _requests(
    document: Document,
    table: Mapping[str, list[Any]],
    n: int,
    facts: dict[str, Any],
    reported: Mapping[str, float | None],
    *,
    chat: bool,
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
    start, tokens, completed = (
        column("start_time"),
        column("completion_tokens"),
        column("completed_time"),
    )
    # A zero stands for "not noted": some versions write it for what failed.
    end = np.where(completed > 0, completed, start + latency)
    columns: dict[str, Any] = {
        "start_s": start,
        "end_s": end,
        "input_tokens": column("prompt_tokens"),
        "output_tokens": tokens,
        "request_id": table.get("request_id"),
        "error_kind": ["other" if error else None for error in errors],
    }
    said = [] if reported else [caution("summary_missing", name=document.name)]
    explained = dict.fromkeys(("e2e_s", "tpot_s"), "reported_past_last_token")
    gaps: Gaps | None = None
    dropped: dict[str, int] = {}
    if streamed:
        gaps, ttft, dropped, more = _gaps(document, table, n, ttft, tokens, chat=chat)
        explained |= more
        said += [caution(code, n=count, n_rows=n) for code, count in dropped.items()]
        said += chunk_cautions(gaps, tokens, success == 1)
        if dropped.get("role_chunk") and facts["ttft_def"] == "first_event":
            facts["ttft_def"] = "first_content"
        columns["ttft_s"] = ttft
        columns["decode_s"] = _decode(table, gaps, tokens, latency - ttft)
        columns["n_chunks"] = np.where(ttft > 0, gaps.lengths + 1.0, np.nan)
    else:
        columns["e2e_s"] = latency
        facts |= {"streaming": False, "ttft_def": None, "e2e_def": "non_stream"}
    if ((success == 1) & (tokens == 0)).any():
        explained |= dict.fromkeys(("ttft_s", "requests_per_s", "e2e_s"), "reported_with_empties")
    if facts["output_tokens_source"] != "usage":
        columns["output_tokens_source"] = [None] * n
        said.append(caution("usage_or_recount", tokenizer=facts["tokenizer_id"]))
    # Before 0.12 the table also held `n_chunks`: no file of that form was seen.
    facts["unverified"] = "n_chunks" in table or None
    return build_run(
        document,
        part="0",
        source_format="evalscope",
        columns=columns,
        info=facts,
        gaps=gaps,
        errors=errors,
        reported=reported,
        explained=dict.fromkeys(("requests_per_s", "output_tokens_per_s"),
                                "reported_other_definition") | explained,
        dropped=dropped,
        cautions=said,
    )  # fmt: skip


def _gaps(
    document: Document,
    table: Mapping[str, list[Any]],
    n: int,
    ttft: FloatArray,
    tokens: FloatArray,
    *,
    chat: bool,
) -> tuple[Gaps, FloatArray, dict[str, int], dict[str, str]]:
    """Gap lists between tokens, with the events that are none taken out and counted."""
    old = "chunk_times" in table
    name = "chunk_times" if old else "inter_token_latencies"
    lists = [_number_list(cell, document.name, name) for cell in table.get(name, [None] * n)]
    if old:
        lists = [[b - a for a, b in pairwise(stamps)] for stamps in lists]
    gaps = Gaps.from_lists(lists, "chunk", f"{document.name}: {name}")
    counts: dict[str, int] = {}
    explained: dict[str, str] = {}
    if old:
        trailing = _ends_in_usage(gaps, tokens)
        if trailing.any():
            gaps = gaps.without_last(trailing)
            counts["usage_event"] = int(trailing.sum())
            explained["itl_s"] = "reported_with_usage_event"
    gaps, ttft, roles, more = split_gaps(gaps, ttft, tokens, chat=chat)
    return gaps, ttft, counts | roles, explained | more


def _ends_in_usage(gaps: Gaps, tokens: FloatArray) -> BoolArray:
    """Mark the requests whose last event is no token but the usage that follows at once.

    Told by count where a chunk holds one token (more events than tokens, one of which a role chunk
    at the head may be), else by time, as the wait for it is no step of the engine.
    """
    counted = (gaps.lengths > 0) & (tokens > 0)
    lasts, firsts = gaps.nth_s(-1), gaps.nth_s(0)
    with np.errstate(invalid="ignore"):
        surplus = gaps.lengths + 1 - tokens
        if not counted.any() or np.median(surplus[counted]) > 0:
            alone = surplus == 1
            return counted & ((surplus > 1) | (alone & _earlier(lasts, firsts, counted & alone)))
        inner = gaps.without_last(counted).without_first(counted).flat_s
        typical = float(np.median(inner)) if inner.size else 0.0
        small = counted & (lasts < 0.1 * typical)
    judged = counted & (gaps.lengths > 1)
    if judged.any() and small[judged].mean() >= 0.9:
        return small
    return np.zeros(len(tokens), dtype=bool)


def _earlier(lasts: FloatArray, firsts: FloatArray, among: BoolArray) -> bool:
    """Tell whether the odd event stands last rather than first: the shorter wait is no step."""
    return bool(among.any() and np.median(lasts[among]) <= np.median(firsts[among]))


def _decode(
    table: Mapping[str, list[Any]], gaps: Gaps, tokens: FloatArray, rest: FloatArray
) -> FloatArray:
    """Give last token - first token; unknown where several tokens came in one event."""
    if not {"chunk_times", "inter_token_latencies"} & set(table):
        return rest
    return np.where((gaps.lengths > 0) | (tokens == 1), gaps.sums_s, np.nan)


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


def _number_list(cell: Any, where: str, name: str) -> list[float]:
    if not cell:
        return []
    try:
        value = json.loads(cell)
    except (TypeError, ValueError, RecursionError):
        value = "unreadable"
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, int | float) for item in value):
        raise LogFormatError(
            f"{where}: {name}", found=repr(cell)[:40], expected="a JSON list of numbers"
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
    rate = first_known(
        positive(summary.get("Request Rate (req/s)")),
        positive(summary.get("Request rate (req/s)")),
        positive(args.get("rate")),
    )
    tokenizer = text(args.get("tokenizer_path"))
    return {
        "tool": "evalscope perf",
        "tool_version": options.client_version,
        "model_id": text(args.get("model")),
        "tokenizer_id": tokenizer,
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
        "ttft_def": "unknown",
        "e2e_def": "last_token",
        "token_time_source": "gaps",
        # With a tokenizer at hand the tool counts the text itself where the server sent no usage.
        "output_tokens_source": "usage or retokenised" if tokenizer or not args else "usage",
    }  # fmt: skip


def _ttft_def(table: Mapping[str, Any], args: Mapping[str, Any], options: ReadOptions) -> str:
    if "is_stream" in table and _CONTENT_CLOCK_KEYS & set(args):
        return "first_content_or_reasoning"
    if options.client_version is None and "is_stream" in table:
        return "unknown"
    version = version_numbers(options.client_version or "0")
    return "first_content_or_reasoning" if version >= (1, 12) else "first_event"


def _reported(summary: Mapping[str, Any]) -> dict[str, float | None]:
    result: dict[str, float | None] = {}
    for key, (name, factor) in _FIGURES.items():
        value = number(summary.get(key))
        # A mean of zero stands for "nothing to average".
        if value is not None and (value > 0 or name.startswith("requests.")):
            result[name] = value * factor
    return result
