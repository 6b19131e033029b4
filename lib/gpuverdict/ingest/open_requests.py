"""The project's own open dialect: one row a request, in CSV, JSON Lines or Parquet.

Columns are those of the canonical requests; others are an error unless they begin with `x_`. With
a `columns:` map any table of requests is read. One file is one run, or one for each `run_id`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.gaps import Gaps
from gpuverdict.ingest.open_columns import Table, load_table, table_header
from gpuverdict.ingest.open_units import cell_number
from gpuverdict.schema import REQUESTS, STATUSES, Run
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

# Milliseconds of an epoch under a name that says seconds lie beyond it.
LATEST_EPOCH_S = 1e11
_SIGNATURE = ("request_index", "status", "start_s")
_REQUIRED = ("request_index", "status", "start_s", "end_s", "input_tokens", "output_tokens",
             "output_tokens_source")  # fmt: skip
_OPTIONAL = ("gaps_s", "gap_kind", "error")
_TEXTS = ("request_id", "phase", "status", "output_tokens_source", "error_kind", "run_id",
          "gap_kind", "error")  # fmt: skip
_SOURCES = ("usage", "retokenised", "requested", "chunk_count", "token_ids", "fixed_tokenizer")
_PHASES = ("main", "warmup", "cooldown", "probe")
# A mapped table tells enough of a request when it has one of these.
_MEASURED = ("start_s", "ttft_s", "e2e_s", "tpot_s", "first_token_s")
# Given latencies must agree with the times to one of these.
_AGREE_S, _AGREE_RATIO = 1e-3, 0.01


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not a table of requests; None when it is."""
    table = table_header(document, options)
    if table is None:
        return "not a table (CSV, JSON Lines of flat objects, Parquet)"
    if table.mapped:
        if "batch" in table.names or any("." in name for name in table.names):
            return "its columns: map names runs, not requests"
        if table.names & set(_MEASURED):
            return None
        return f"its columns: map names none of {', '.join(_MEASURED)}"
    missing = [name for name in _SIGNATURE if name not in table.names]
    return f"no column {missing[0]!r}" if missing else None


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read the table as one run, or as one for each `run_id`.

    Raises
    ------
    LogFormatError
        For unknown columns, a missing required one, a status or source outside the lists, a
        request twice, `ok` without tokens, negative gaps, and latencies that contradict the times.
    """
    table = load_table(document, options)
    if not table.mapped:
        _check_columns(table, document.name)
    if table.n_rows == 0:
        raise LogFormatError(document.name, found="a table without rows", expected="requests")
    groups: dict[str, list[int]] = {}
    for row, run in enumerate(table.columns.get("run_id", ["0"] * table.n_rows)):
        groups.setdefault("0" if run is None else str(run), []).append(row)
    return [
        _read_group(document, table, options, part, rows, first=index == 0)
        for index, (part, rows) in enumerate(groups.items())
    ]


def _check_columns(table: Table, name: str) -> None:
    known = {*REQUESTS, *_OPTIONAL}
    for column in table.columns:
        if column in known or column.startswith("x_"):
            continue
        stem = column.rpartition("_")[0]
        remedy = "name columns of your own x_..., or give a columns: map"
        if f"{stem}_s" in known:
            remedy = f"times are in seconds: write {stem}_s, or give a columns: map with the unit"
        raise LogFormatError(name, found=f"the unknown column {column!r}",
                             expected="the columns of the open dialect", remedy=remedy)  # fmt: skip
    if missing := [column for column in _REQUIRED if column not in table.columns]:
        raise LogFormatError(name, found=f"no column {missing[0]!r}", expected=", ".join(_REQUIRED))


def _read_group(
    document: Document,
    table: Table,
    options: ReadOptions,
    part: str,
    rows: Sequence[int],
    *,
    first: bool,
) -> Run:
    where = document.name

    def texts(name: str) -> list[str | None] | None:
        if name not in table.columns:
            return None
        values = [table.columns[name][row] for row in rows]
        return [None if value is None else str(value) for value in values]

    def numbers(name: str) -> Any:
        if name not in table.columns:
            return None
        column = table.columns[name]
        values = np.array(
            [cell_number(column[row], table.decimal, f"{where}: {name}, row {row + 1}")
             for row in rows], dtype=np.float64,
        )  # fmt: skip
        if REQUESTS[name].dtype == pl.Int64:
            _refuse_no_counts(values, rows, f"{where}: {name}")
        return values

    columns: dict[str, Any] = {
        name: numbers(name)
        for name in REQUESTS
        if name not in _TEXTS and name != "request_index" and name in table.columns
    }
    said: list[Caution] = list(table.cautions) if first else []
    if table.ignored and first:
        said.append(caution("columns_ignored", names=", ".join(table.ignored)[:200]))
    columns["request_index"] = _indexes(numbers("request_index"), len(rows), where)
    errors = texts("error")
    status = _status(texts("status"), errors, table.mapped, where)
    columns |= {
        "status": status,
        "request_id": texts("request_id"),
        "phase": _listed(texts("phase"), _PHASES, "phase", where),
        "output_tokens_source": _listed(
            texts("output_tokens_source"), _SOURCES, "output_tokens_source", where
        ),
        "error_kind": texts("error_kind"),
    }
    _refuse_ok_without_tokens(columns, status, where)
    _refuse_contradictions(columns, where)
    if columns["output_tokens_source"] is None and "output_tokens" in columns:
        said.append(caution("token_source_unknown"))
    if "tpot_s" in columns and "e2e_s" not in columns and "last_token_s" not in columns:
        with np.errstate(invalid="ignore"):
            columns["decode_s"] = columns["tpot_s"] * (columns["output_tokens"] - 1)
    gaps = _gaps(document, table, rows, columns["request_index"], part)
    streaming = any(name in columns for name in ("first_token_s", "ttft_s", "tpot_s"))
    end_only = "last_token_s" not in columns and "e2e_s" not in columns
    if not streaming and end_only and "end_s" in columns and "start_s" in columns:
        columns["e2e_s"] = columns["end_s"] - columns["start_s"]
    facts = _facts(columns, options, streaming, gaps, where)
    offset = {"epoch": 0.0, "monotonic": options.t0_epoch_s}.get(options.clock or "")
    return build_run(
        document,
        part=part,
        source_format="gpuverdict",
        columns=columns,
        info=facts,
        gaps=gaps,
        errors=errors if table.mapped else None,
        dropped=table.dropped if first else {},
        cautions=said,
        clock_offset_s=offset,
        needs_tokens="output_tokens" in columns,
    )


def _facts(
    columns: Mapping[str, Any],
    options: ReadOptions,
    streaming: bool,
    gaps: Gaps | None,
    where: str,
) -> dict[str, Any]:
    start, end = columns.get("start_s"), columns.get("end_s")
    if end is None:
        end = columns.get("last_token_s")
    if start is not None and np.isfinite(start).any() and float(np.nanmax(start)) > LATEST_EPOCH_S:
        raise LogFormatError(
            f"{where}: start_s", expected="seconds",
            found=f"{float(np.nanmax(start)):g}, past the year 5000 in seconds",
            remedy="convert milliseconds or nanoseconds",
        )  # fmt: skip
    duration = None
    if start is not None and end is not None:
        phases = columns.get("phase") or [None] * len(start)
        main = np.array([phase in (None, "main") for phase in phases])
        if np.isfinite(start[main]).any() and np.isfinite(end[main]).any():
            span = float(np.nanmax(end[main]) - np.nanmin(start[main]))
            duration = span if span > 0 else None
    spread = "gaps" if gaps is not None else "even_spread"
    return {
        "tool": "home-made",
        "tool_version": options.client_version,
        "load_kind": "unknown",
        "duration_s": duration,
        "streaming": streaming,
        "ttft_def": "unknown" if streaming else None,
        "e2e_def": "last_token" if streaming else "non_stream",
        "token_time_source": None if not streaming else spread if start is not None
        else "whole_run",
        "clock": options.clock or "none",
    }  # fmt: skip


def _indexes(given: Any, n: int, where: str) -> list[int]:
    if given is None:
        return list(range(n))
    if np.isnan(given).any() or ((given != np.floor(given)) | (np.abs(given) > 2**53)).any():
        raise LogFormatError(f"{where}: request_index", found="a value that is no whole number")
    indexes = [int(value) for value in given]
    if len(set(indexes)) != n:
        seen: set[int] = set()
        for index in indexes:
            if index in seen:
                raise LogFormatError(
                    f"{where}: request_index", found=f"request {index} twice in one run",
                    expected="each request once",
                )  # fmt: skip
            seen.add(index)
    return indexes


_FINE = {"ok", "success", "successful", "succeeded", "true", "1", "200", "成功", "completed"}
_FAILED = {"error", "errored", "fail", "failed", "false", "0", "失败", "timeout", "exception"}


def _status(
    given: list[str | None] | None, errors: list[str | None] | None, mapped: bool, where: str
) -> list[str | None] | None:
    if given is None:
        return None
    result: list[str | None] = []
    for row, value in enumerate(given):
        if value in STATUSES:
            result.append(value)
            continue
        word = (value or "").strip().lower()
        # Foreign words for the two clear cases; anything else must be named.
        if mapped and word in _FINE:
            result.append(None if errors is None or not errors[row] else "error")
        elif mapped and (word in _FAILED or (word.isdigit() and word[0] in "45")):
            result.append("error")
        elif mapped and not word:
            result.append(None)
        else:
            raise LogFormatError(
                f"{where}: status, row {row + 1}", found=repr(value)[:40],
                expected=" or ".join(STATUSES),
            )  # fmt: skip
    return result


def _listed(
    given: list[str | None] | None, allowed: Sequence[str], name: str, where: str
) -> list[str | None] | None:
    for row, value in enumerate(given or ()):
        if value is not None and value not in allowed:
            raise LogFormatError(
                f"{where}: {name}, row {row + 1}", found=repr(value)[:40],
                expected=f"one of {', '.join(allowed)}",
            )  # fmt: skip
    return given


def _refuse_no_counts(values: Any, rows: Sequence[int], where: str) -> None:
    with np.errstate(invalid="ignore"):
        odd = (values < 0) | (values != np.floor(values)) | (values > 2**53)
    odd &= ~np.isnan(values)
    if odd.any():
        first = int(np.flatnonzero(odd)[0])
        raise LogFormatError(
            f"{where}, row {rows[first] + 1}", found=f"{values[first]:g}", expected="a whole count"
        )


def _refuse_ok_without_tokens(
    columns: Mapping[str, Any], status: list[str | None] | None, where: str
) -> None:
    tokens = columns.get("output_tokens")
    if status is None or tokens is None:
        return
    for row, (state, count) in enumerate(zip(status, tokens, strict=True)):
        if state == "ok" and count == 0:
            raise LogFormatError(
                f"{where}: row {row + 1}", found="status ok with 0 output tokens",
                expected="at least one token, or the status empty",
            )  # fmt: skip


def _refuse_contradictions(columns: Mapping[str, Any], where: str) -> None:
    """Raise where a given latency contradicts the times beside it."""
    start, first, last = (columns.get(n) for n in ("start_s", "first_token_s", "last_token_s"))
    for name, end, begin in (("ttft_s", first, start), ("e2e_s", last, start)):
        given = columns.get(name)
        if given is None or end is None or begin is None:
            continue
        computed = end - begin
        with np.errstate(invalid="ignore"):
            off = np.abs(given - computed) > np.maximum(_AGREE_S, _AGREE_RATIO * np.abs(computed))
            off &= computed >= 0
        if off.any():
            row = int(np.flatnonzero(off)[0])
            raise LogFormatError(
                f"{where}: {name}, row {row + 1}", found=f"{given[row]:.6g} s",
                expected=f"{computed[row]:.6g} s, by the times of the same row",
                remedy="leave the column out: it is recomputed",
            )  # fmt: skip


def _gaps(
    document: Document, table: Table, rows: Sequence[int], indexes: Sequence[int], part: str
) -> Gaps | None:
    if "gaps_s" in table.columns:
        lists = [table.columns["gaps_s"][row] for row in rows]
        kinds = (
            {table.columns["gap_kind"][row] for row in rows}
            if "gap_kind" in table.columns
            else set()
        )
        kinds.discard(None)
        kind = str(next(iter(kinds))) if len(kinds) == 1 else "chunk"
        gaps = Gaps.from_lists(lists, kind, f"{document.name}: gaps_s")
    else:
        beside = document.sibling(f"{document.path.name.split('.csv')[0]}.gaps.csv")
        if table.form != "csv" or beside is None:
            return None
        gaps = _gaps_beside(beside, indexes, part)
    if (gaps.flat_s < 0).any():
        raise LogFormatError(f"{document.name}: gaps", found="a negative gap", expected="seconds")
    return gaps


def _gaps_beside(beside: Document, indexes: Sequence[int], part: str) -> Gaps:
    table = load_table(beside, ReadOptions())
    if "request_index" not in table.names:
        raise LogFormatError(
            beside.name, found="no column 'request_index'",
            expected="request_index, event_index, gap_s or token_s",
        )  # fmt: skip
    value = "gap_s" if "gap_s" in table.names else "token_s"
    if value not in table.names or "event_index" not in table.names:
        raise LogFormatError(beside.name, found="no gap_s or token_s with event_index",
                             expected="request_index, event_index, gap_s or token_s")  # fmt: skip
    events: dict[int, list[tuple[float, float]]] = {}
    runs = table.columns.get("run_id")
    for row in range(table.n_rows):
        if runs is not None and str(runs[row]) != part:
            continue
        cells = [
            cell_number(table.columns[name][row], ".", f"{beside.name}: {name}, row {row + 1}")
            for name in ("request_index", "event_index", value)
        ]
        if any(cell is None for cell in cells):
            raise LogFormatError(f"{beside.name}: row {row + 1}", found="an empty cell")
        request, event, number = (float(cell or 0.0) for cell in cells)
        events.setdefault(int(request), []).append((event, number))
    lists: list[list[float]] = []
    for index in indexes:
        ordered = [number for _, number in sorted(events.get(int(index), []))]
        if value == "token_s":
            ordered = [b - a for a, b in pairwise(ordered)]
        lists.append(ordered)
    return Gaps.from_lists(lists, "chunk", beside.name)
