"""Rows of runs and of requests as an explorer lists them, and a remark."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from gpuverdict.measured import MeasuredRun
from gpuverdict.tables.answers import plain_table
from gpuverdict.tables.markup import Section, render
from gpuverdict.tables.words import level_name, spoken
from gpuverdict.units import format_value

__all__ = ["REQUEST_COLUMNS", "remark", "request_frame", "request_rows", "run_rows"]

REQUEST_COLUMNS = ("request_index", "status", "start_s", "ttft_s", "tpot_s", "e2e_s",
                   "input_tokens", "output_tokens")  # fmt: skip


def remark(text: str) -> Section:
    """Set one sentence by itself."""
    return Section(name="remark", markup=render("remark.html", text=text), text=text)


def run_rows(frame: pd.DataFrame, title: str, unit: str, said: str, lang: str = "en") -> Section:
    """List runs: arm, level, which run, its value, the requests behind it, what part of the run."""
    heads = [
        spoken(lang, code)
        for code in ("col_arm", "col_level", "sort_repeat_no", "sort_value", "sort_n", "col_window")
    ]
    rows = [
        [
            row.arm,
            level_name(json.loads(row.level), lang),
            str(row.repeat_no),
            format_value(_known(row.value), unit),
            f"{row.n:,}",
            spoken(lang, f"window_name_{row.window}"),
        ]
        for row in frame.itertuples(index=False)
    ]
    return plain_table("explore", title, heads, rows, notes=[said], right=heads[2:5])


def request_frame(
    run: MeasuredRun | None, order: str, *, falling: bool = False, most: int | None = None
) -> pd.DataFrame:
    """Give one row a request of a run, sorted by a column, the first `most` of them."""
    if run is None:
        return pd.DataFrame(columns=list(REQUEST_COLUMNS))
    by = list(dict.fromkeys([order, "request_index"]))
    down = [falling and column == order for column in by]
    rows = run.stored.scan().select(REQUEST_COLUMNS).sort(by, descending=down, nulls_last=True)
    return (rows if most is None else rows.head(most)).collect().to_pandas()


def request_rows(
    frame: pd.DataFrame, title: str, said: str, lang: str = "en", nothing: str = ""
) -> Section:
    """List requests: index, status, start and times, lengths; a dash is not known."""
    heads = [spoken(lang, f"sort_{column}") for column in frame.columns]
    rows = [
        [_cell(column, value) for column, value in zip(frame.columns, row, strict=True)]
        for row in frame.itertuples(index=False)
    ]
    right = [heads[0], *heads[2:]]
    return plain_table("explore", title, heads, rows, notes=[said], right=right, nothing=nothing)


def _cell(column: str, value: Any) -> str:
    if column == "status":
        return str(value)
    known = _known(value)
    if known is None:
        return "–"
    return format_value(known, "s") if column.endswith("_s") else f"{known:,.0f}"


def _known(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)
