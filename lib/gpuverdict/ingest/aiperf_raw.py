"""AIPerf raw records (`profile_export_raw.jsonl`): every streamed event of every request.

Event times are of a monotonic clock; they are anchored at the request's epoch start. This is the
only AIPerf file with absolute chunk times.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.aiperf_summary import level_facts, reported_figures, sibling_summary
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.columns import error_kinds
from gpuverdict.ingest.gaps import Gaps
from gpuverdict.ingest.genai_perf import event_content
from gpuverdict.ingest.values import mapping, number, text
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["read", "why_not"]


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not a file of raw AIPerf records; None when it is."""
    value = document.first
    if not isinstance(value, dict):
        return "not JSON Lines of objects"
    missing = [key for key in ("start_perf_ns", "responses", "metadata") if key not in value]
    return f"no {missing[0]!r} key" if missing else None


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read the records of one benchmark as one run.

    Raises
    ------
    LogFormatError
        For a record without its times.
    """
    records = document.records()
    rows = [mapping(value) for value in records.values]
    starts = [
        _ns(mapping(row.get("metadata")).get("request_start_ns"), document.name) for row in rows
    ]
    origin = min(starts)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("request_id", "phase", "status", "start_s", "first_token_s",
                              "last_token_s", "end_s", "input_tokens", "output_tokens",
                              "output_tokens_source", "n_chunks")
    }  # fmt: skip
    lists: list[list[float]] = []
    errors: list[str | None] = []
    for row, start in zip(rows, starts, strict=True):
        _one(document, row, start, origin, columns, lists, errors)
    columns["error_kind"] = error_kinds(errors)
    summary = sibling_summary(document)
    facts = level_facts(summary, options)
    facts["streaming"] = True if facts["streaming"] is None else facts["streaming"]
    said = [] if summary is not None else [caution("summary_missing", name=document.name)]
    ends = np.array(columns["end_s"], dtype=np.float64)
    if facts["duration_s"] is None and np.isfinite(ends).any():
        facts["duration_s"] = float(np.nanmax(ends)) or None
    gaps = Gaps.from_lists(lists, "chunk", document.name)
    return [
        build_run(
            document,
            part="0",
            source_format="aiperf_raw",
            columns=columns,
            info={**facts, "token_time_source": "per_token"},
            gaps=gaps,
            errors=errors,
            reported=reported_figures(summary or {}, document.name),
            explained={"output_tokens_per_s": "reported_other_definition",
                       "requests_per_s": "reported_other_definition"},
            dropped=records.dropped,
            cautions=[*records.cautions, *said],
            clock_offset_s=origin / 1e9,
            needs_tokens=False,
        )
    ]  # fmt: skip


def _one(
    document: Document,
    row: Mapping[str, Any],
    start: int,
    origin: int,
    columns: dict[str, list[Any]],
    lists: list[list[float]],
    errors: list[str | None],
) -> None:
    metadata = mapping(row.get("metadata"))
    zero = _ns(row.get("start_perf_ns"), document.name)
    begin = (start - origin) / 1e9
    times: list[float] = []
    usage: Mapping[str, Any] = {}
    responses = row.get("responses") or []
    if not isinstance(responses, list):
        raise LogFormatError(document.name, found="responses that are no list", expected="a list")
    for response in responses:
        response = mapping(response)
        at = begin + (_ns(response.get("perf_ns"), document.name) - zero) / 1e9
        brings = False
        packets = response.get("packets")
        for packet in packets if isinstance(packets, list) else []:
            content, used = event_content(str(mapping(packet).get("value") or ""))
            brings |= content
            usage = used or usage
        if brings:
            times.append(at)
    error = row.get("error")
    failed = error is not None or (number(row.get("status")) or 200) >= 400
    cancelled = metadata.get("was_cancelled") is True
    details = mapping(error)
    said = (
        f"{details.get('code') or ''} {details.get('type') or ''}: {details.get('message') or ''}"
    )
    errors.append((said.strip(": ") or "error") if failed else None)
    end = metadata.get("request_end_ns")
    columns["request_id"].append(text(metadata.get("x_request_id")))
    columns["phase"].append("warmup" if metadata.get("benchmark_phase") == "warmup" else "main")
    columns["status"].append(
        "cancelled" if cancelled else "error" if failed else None if times else "empty"
    )
    columns["start_s"].append(begin)
    columns["first_token_s"].append(times[0] if times else None)
    columns["last_token_s"].append(times[-1] if times else None)
    columns["end_s"].append(None if end is None else (_ns(end, document.name) - origin) / 1e9)
    tokens = number(usage.get("completion_tokens"))
    columns["input_tokens"].append(number(usage.get("prompt_tokens")))
    columns["output_tokens"].append(float(len(times)) if tokens is None else tokens)
    columns["output_tokens_source"].append("chunk_count" if tokens is None else "usage")
    columns["n_chunks"].append(float(len(times)))
    lists.append([after - before for before, after in pairwise(times)])


def _ns(value: Any, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
        return value
    raise LogFormatError(where, found=f"{value!r:.40}", expected="whole nanoseconds")
