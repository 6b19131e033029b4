"""inference-perf request records (`per_request_lifecycle_metrics.json`), seen of 0.1 to 0.7.

The list carries neither stage nor load: stages are recovered from the stage files beside it, from
the sizes given by the campaign, or from the pauses between them. Times are monotonic. Chunk times
are preferred to token times, because all tokens of a chunk get one stamp.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.columns import error_kinds
from gpuverdict.ingest.gaps import Gaps, chunk_cautions
from gpuverdict.ingest.inference_perf_events import clean_stamps
from gpuverdict.ingest.inference_perf_stage import reported_figures, stage_facts
from gpuverdict.ingest.values import distinct, first_known, mapping, number, text
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

_KEYS = ("start_time", "end_time", "info", "error")
# Stages are a pause apart in which nothing is in flight; the tool's default is one second.
_PAUSE_S = 0.9
_SAID = {
    "token_twice": "tokens_counted_twice",
    "blank_line": "blank_lines_stamped",
    "role_chunk": "role_chunk",
    "usage_event": "usage_event",
    "unlike": "token_times_differ",
}


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not a list of inference-perf requests; None when it is."""
    value = document.first
    if not isinstance(value, list):
        return "not a JSON list"
    if not value or not isinstance(value[0], dict):
        return "the list holds no objects"
    if missing := [key for key in _KEYS if key not in value[0]]:
        return f"its records have no {missing[0]!r}"
    return None


@dataclass(slots=True)
class _Rows:
    """What was read of all requests, in file order."""

    start: list[float | None] = field(default_factory=list)
    end: list[float | None] = field(default_factory=list)
    first: list[float | None] = field(default_factory=list)
    last: list[float | None] = field(default_factory=list)
    given: list[float | None] = field(default_factory=list)
    written: list[float | None] = field(default_factory=list)
    sources: list[str | None] = field(default_factory=list)
    chunks: list[float | None] = field(default_factory=list)
    gaps: list[list[float]] = field(default_factory=list)
    errors: list[str | None] = field(default_factory=list)
    n_by_reason: Counter[str] = field(default_factory=Counter)
    n_same_stamp: int = 0
    n_chunked: int = 0


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read the list as one run a stage, in stage order.

    Raises
    ------
    LogFormatError
        For records of another kind, and for stage sizes that do not add up to the rows.
    """
    records = document.records()
    listed, n_again = distinct(records.values[0], "start_time", "end_time")
    rows, n_odd = _collect(listed, document.name)
    if not rows.start:
        raise LogFormatError(document.name, found="no request", expected="request records")
    files = _stage_files(document)
    config = _config(document)
    stages, more = _assign(rows, files, options, document.name)
    kind = "chunk" if rows.n_chunked or not rows.n_same_stamp else "token_same_stamp"
    said: list[Caution] = [*records.cautions, *more]
    if n_again:
        said.append(caution("duplicate_records", name=document.name, n=n_again))
    counts = rows.n_by_reason
    for reason, code in _SAID.items():
        if counts[reason]:
            said.append(caution(code, n=counts[reason], n_rows=len(rows.start)))
    left_out = {reason: counts[reason] for reason in ("role_chunk", "usage_event")}
    left_out |= {"non_object": n_odd, "duplicate_record": n_again}
    runs = []
    for index, members in enumerate(stages):
        stage = files.get(index, {})
        runs.append(
            _stage_run(
                document,
                rows,
                members,
                part=str(index),
                kind=kind,
                facts=stage_facts(stage, config, index, options),
                reported=reported_figures(stage),
                dropped={**records.dropped, **left_out} if index == 0 else {},
                cautions=said,
            )
        )
    return runs


def _collect(listed: Sequence[Any], name: str) -> tuple[_Rows, int]:
    rows, n_odd = _Rows(), 0
    for index, record in enumerate(listed):
        if not isinstance(record, dict):
            n_odd += 1
            continue
        where = f"{name}[{index}]"
        info = mapping(record.get("info"))
        response = mapping(
            first_known(info.get("response_metrics"), info.get("response_info"), info)
        )
        usage = mapping(response.get("server_usage"))
        asked = mapping(mapping(info.get("request_metrics")).get("text"))
        rows.start.append(_time(record.get("start_time"), where, "start_time"))
        rows.end.append(_time(record.get("end_time"), where, "end_time"))
        error = record.get("error")
        rows.errors.append(_error(error))
        given = first_known(
            number(usage.get("prompt_tokens")),
            number(asked.get("input_tokens")),
            number(info.get("input_tokens")),
        )
        # A failed row carries a zero where nobody counted.
        rows.given.append(None if error is not None and not given else given)
        counted = number(usage.get("completion_tokens"))
        written = first_known(counted, number(response.get("output_tokens")))
        tokens = _times(response.get("output_token_times"), where, "output_token_times")
        chunks = _times(response.get("chunk_times"), where, "chunk_times")
        rows.written.append(written)
        rows.sources.append(
            None if written is None else "usage" if counted is not None else "retokenised"
        )
        chat = '"messages"' in str(record.get("request"))
        _token_times(rows, tokens, chunks, written, chat=chat)
    return rows, n_odd


def _token_times(
    rows: _Rows, tokens: list[float], chunks: list[float], written: float | None, *, chat: bool
) -> None:
    tokens, why = clean_stamps(tokens, written, chat=chat)
    rows.n_by_reason.update(why)
    times = tokens or chunks
    if not times:
        rows.first.append(None)
        rows.last.append(None)
        rows.chunks.append(None)
        rows.gaps.append([])
        return
    first, last = times[0], times[-1]
    # Events outside of these two bring no token: the role chunk, the usage at the end.
    events = [time for time in chunks if first <= time <= last]
    if len(events) > 1:
        times = events
        rows.n_chunked += 1
    elif tokens and len(set(tokens)) < len(tokens):
        rows.n_same_stamp += 1
    rows.first.append(first)
    rows.last.append(last)
    rows.chunks.append(float(len(set(times))))
    rows.gaps.append([after - before for before, after in pairwise(times)])


def _stage_run(
    document: Document,
    rows: _Rows,
    members: Sequence[int],
    *,
    part: str,
    kind: str,
    facts: dict[str, Any],
    reported: Mapping[str, float | None],
    dropped: Mapping[str, int],
    cautions: Sequence[Caution],
) -> Run:
    def pick(column: Sequence[Any]) -> list[Any]:
        return [column[i] for i in members]

    errors = pick(rows.errors)
    written = np.array(pick(rows.written), dtype=np.float64)
    first = np.array(pick(rows.first), dtype=np.float64)
    start = np.array(pick(rows.start), dtype=np.float64)
    end = np.array(pick(rows.end), dtype=np.float64)
    fine = np.array([error is None for error in errors], dtype=bool) & (written > 0)
    streaming = facts["streaming"]
    if streaming is None:
        streaming = bool(np.isfinite(first[fine]).any()) if fine.any() else True
    columns: dict[str, Any] = {
        "request_index": members,
        "start_s": start,
        "end_s": end,
        "input_tokens": pick(rows.given),
        "output_tokens": written,
        "output_tokens_source": pick(rows.sources),
        "error_kind": error_kinds(errors),
    }
    said = list(cautions)
    if streaming:
        columns |= {
            "first_token_s": first,
            "last_token_s": pick(rows.last),
            "n_chunks": pick(rows.chunks),
        }
        lists = pick(rows.gaps)
    else:
        columns["e2e_s"] = end - start
        lists = [[] for _ in members]
    facts |= {
        "streaming": streaming,
        "ttft_def": "first_content" if streaming else None,
        "e2e_def": "last_token" if streaming else "non_stream",
        "token_time_source": "per_token" if streaming else None,
    }
    if facts["duration_s"] is None and np.isfinite(end).any():
        span = float(np.nanmax(end) - np.nanmin(start))
        facts["duration_s"] = span if span > 0 else None
    gaps = Gaps.from_lists(lists, kind, document.name)
    if streaming and kind == "chunk":
        said.extend(chunk_cautions(gaps, written, fine))
    return build_run(
        document,
        part=part,
        source_format="inference_perf",
        columns=columns,
        info=facts,
        gaps=gaps if streaming else None,
        errors=errors,
        reported=reported,
        explained=dict.fromkeys(
            ("e2e_s", "ttft_s", "requests_per_s", "output_tokens_per_s", "itl_s"),
            "reported_other_definition",
        )
        | (
            {"tpot_s": "reported_other_definition"}
            if {"blank_line", "usage_event", "role_chunk", "token_twice"} & set(rows.n_by_reason)
            else {}
        ),
        dropped=dropped,
        cautions=said,
    )


def _assign(
    rows: _Rows, files: Mapping[int, Mapping[str, Any]], options: ReadOptions, name: str
) -> tuple[list[list[int]], list[Caution]]:
    """Cut the rows, in start order, into stages."""
    order = sorted(
        range(len(rows.start)),
        key=lambda i: (rows.start[i] is None, rows.start[i] or 0.0),
    )
    sizes = list(options.stages)
    if not sizes and files:
        if sorted(files) != list(range(len(files))):
            raise LogFormatError(
                name,
                found=f"stage files {sorted(files)}",
                expected="every stage from 0 on",
                remedy="copy the missing stage files, or give stages: [sizes]",
            )
        sizes = [_size(files[index]) for index in range(len(files))]
    if sizes:
        if sum(sizes) != len(order):
            raise LogFormatError(
                name,
                found=f"{len(order)} requests, while the stages hold {'+'.join(map(str, sizes))}",
                expected="the same number",
                remedy="give stages: [sizes] for this file",
            )
        bounds = np.concatenate(([0], np.cumsum(sizes)))
        return [sorted(order[a:b]) for a, b in pairwise(bounds)], []
    cuts = _pauses(rows, order)
    if not cuts:
        return [sorted(order)], []
    bounds = np.array([0, *cuts, len(order)])
    stages = [sorted(order[a:b]) for a, b in pairwise(bounds)]
    return stages, [caution("stages_by_pauses", name=name, n=len(stages))]


def _size(stage: Mapping[str, Any]) -> int:
    counted = number(mapping(stage.get("load_summary")).get("count"))
    if counted is not None:
        return int(counted)
    return sum(int(number(mapping(stage.get(key)).get("count")) or 0)
               for key in ("successes", "failures"))  # fmt: skip


def _pauses(rows: _Rows, order: Sequence[int]) -> list[int]:
    """Find where nothing was in flight for as long as the tool rests between stages."""
    idle: list[tuple[float, int]] = []
    busy_until = -np.inf
    for position, i in enumerate(order):
        start, end = rows.start[i], rows.end[i]
        if start is None:
            continue
        if np.isfinite(busy_until) and start > busy_until:
            idle.append((start - busy_until, position))
        busy_until = max(busy_until, end if end is not None else start)
    long = [position for length, position in idle if length >= _PAUSE_S]
    short = [length for length, _ in idle if length < _PAUSE_S]
    # Light open-loop traffic rests as long between two requests: then nothing tells the stages.
    sizes = np.diff([0, *long, len(order)])
    rare = len(long) <= max(1.0, 0.2 * len(order))
    if long and rare and sizes.min() > 1 and max(short, default=0.0) < 0.5 * _PAUSE_S:
        return long
    return []


def _stage_files(document: Document) -> dict[int, Mapping[str, Any]]:
    found: dict[int, Mapping[str, Any]] = {}
    for index in range(1000):
        beside = document.sibling(f"stage_{index}_lifecycle_metrics.json")
        if beside is None:
            if index > len(found) + 1:
                break
            continue
        value = beside.first
        if isinstance(value, dict) and "load_summary" in value:
            found[index] = value
    return found


_LOAD_TYPE = re.compile(r"^load:\s*$(?:\n[ \t]+.*|\n\s*)*?\n[ \t]+type:[ \t]*['\"]?(\w+)", re.M)
_MODEL = re.compile(r"^[ \t]+model_name:[ \t]*['\"]?([^\s'\"#]+)", re.M)
_STREAMING = re.compile(r"^[ \t]+streaming:[ \t]*(true|false)", re.M)


def _config(document: Document) -> dict[str, Any]:
    beside = document.sibling("config.yaml") or document.sibling("config.yml")
    if beside is None:
        return {}
    content = beside.data.decode("utf-8", "replace")
    found: dict[str, Any] = {}
    if match := _LOAD_TYPE.search(content):
        found["load_type"] = match[1]
    if match := _MODEL.search(content):
        found["model"] = match[1]
    if match := _STREAMING.search(content):
        found["streaming"] = match[1] == "true"
    return found


def _error(error: Any) -> str | None:
    if error is None:
        return None
    details = mapping(error)
    said = f"{text(details.get('error_type')) or ''}: {text(details.get('error_msg')) or ''}"
    return said.strip(": ") or str(error) or "error"


def _time(value: Any, where: str, key: str) -> float | None:
    if value is None:
        return None
    result = number(value)
    if result is None:
        raise LogFormatError(where, found=f"{key} {value!r:.40}", expected="seconds")
    return result


def _times(value: Any, where: str, key: str) -> list[float]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise LogFormatError(where, found=f"{key} that is no list", expected="a list of seconds")
    times = [number(item) for item in value]
    if any(time is None for time in times):
        raise LogFormatError(where, found=f"{key} with a value that is no number",
                             expected="a list of seconds")  # fmt: skip
    return [time for time in times if time is not None]
