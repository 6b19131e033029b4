"""Tidy sheets and CSV for people who go on in a spreadsheet."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from gpuverdict.case import Case
from gpuverdict.measured import level_label
from gpuverdict.schema import METRICS
from gpuverdict.tables.health import facts_of
from gpuverdict.tables.record import record_frame
from gpuverdict.tables.rows import arms_of
from gpuverdict.verdict import Cell

__all__ = ["sheets", "write_csv", "write_sheets", "write_xlsx"]

# A spreadsheet would take these for formulas; a CSV has no other way to say "text".
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_MOST_ROWS = 1_048_575


def sheets(case: Case) -> dict[str, pd.DataFrame]:
    """Give the tidy sheets of a case: `verdicts`, `headline`, `record`, `runs`, `summary`, files.

    Values are in base units, with the unit in a column of its own; intervals, numbers of runs and
    the files behind every row are columns.
    """
    summary = case.summary.frame
    own = summary[summary.arm.isin(arms_of(case))]
    paths = {run.run_id: run.path for run in case.measured.runs}
    sources = {
        arm: ", ".join(sorted({r.path for r in case.measured.runs_of(arm)}))
        for arm in arms_of(case)
    }
    return {
        "verdicts": pd.DataFrame([_cell_record(c, case, sources) for c in case.verdict.cells]),
        "headline": pd.DataFrame([_cell_record(c, case, sources) for c in case.verdict.headline]),
        "record": record_frame(case).fillna({"value": "unknown"}),
        "runs": pd.DataFrame(_run_records(case)),
        "summary": own.assign(
            cautions=own.cautions.map(lambda codes: ", ".join(codes)), source=own.run_id.map(paths)
        ).reset_index(drop=True),
        "inputs": pd.DataFrame(case.measured.inputs, columns=["path", "sha256"]),
        "lost": pd.DataFrame(
            [(x.arm, x.role, x.path, x.error) for x in case.measured.lost],
            columns=["arm", "role", "path", "error"],
        ),
    }


def _cell_record(cell: Cell, case: Case, sources: Mapping[str, str]) -> dict[str, Any]:
    c = cell.comparison
    baseline, candidate = arms_of(case)
    return {
        "comparison": case.verdict.comparison,
        "workload": cell.key.workload,
        "level": level_label(cell.level),
        "metric": cell.key.metric,
        "statistic": cell.key.statistic,
        "unit": METRICS[cell.key.metric].unit,
        "baseline_arm": baseline,
        "candidate_arm": candidate,
        "n_baseline": c.n_baseline,
        "n_candidate": c.n_candidate,
        "baseline": c.baseline,
        "candidate": c.candidate,
        "ratio": c.ratio,
        "low": c.low,
        "high": c.high,
        "confidence": c.confidence,
        "p_value": c.p_value,
        "p_adjusted": c.p_adjusted,
        "p_permutation": c.p_permutation,
        "margin": c.margin,
        "verdict": c.verdict,
        "rung": cell.rung,
        "window": cell.window,
        "mde_ratio": c.mde_ratio,
        "runs_needed_low": c.runs_needed[0] if c.runs_needed else None,
        "runs_needed_high": c.runs_needed[1] if c.runs_needed else None,
        "modifiers": "; ".join(c.modifiers),
        "cautions": " ".join(x.message for x in c.cautions),
        "baseline_files": sources[baseline],
        "candidate_files": sources[candidate],
    }


def _run_records(case: Case) -> list[dict[str, Any]]:
    digests = dict(case.measured.inputs)
    records = []
    for arm in arms_of(case):
        for fact in facts_of(case, arm):
            run, window = fact.run, fact.window
            records.append(
                {
                    "run_id": run.run_id,
                    "arm": arm,
                    "workload": run.workload,
                    "level": level_label(run.level),
                    "repeat_no": run.repeat_no,
                    "sweep_id": run.sweep_id,
                    "server_start_id": run.server_start_id,
                    "window": window.kind,
                    "window_start_s": window.start_s,
                    "window_end_s": window.end_s,
                    "n_sent": window.n_sent,
                    "n_dropped": window.n_dropped,
                    "dropped_ratio": window.dropped_ratio,
                    **{f"n_{status}": n for status, n in sorted(fact.n_by_status.items())},
                    "cautions": " ".join(c.message for c in fact.cautions),
                    "path": run.path,
                    "sha256": digests.get(run.path),
                }
            )
    return records


def _plain(value: Any) -> Any:
    if value is None or (isinstance(value, float) and not math.isfinite(value)) or value is pd.NA:
        return None
    if isinstance(value, list | dict | tuple):
        return json.dumps(value)
    return value.item() if hasattr(value, "item") else value


def write_xlsx(case: Case, path: str | Path) -> None:
    """Write the sheets of a case as a workbook.

    Notes
    -----
    Header rows are frozen and can be filtered; numbers keep their value and are only shown rounded;
    text is text whatever it begins with: a label in a log cannot become a formula or a link.
    """
    title = f"{case.verdict.campaign}: {case.verdict.comparison}"
    write_sheets(sheets(case), path, title)


def write_sheets(frames: Mapping[str, pd.DataFrame], path: str | Path, title: str) -> None:
    """Write frames as the sheets of a workbook, by name; `write_xlsx` says in what form."""
    import xlsxwriter

    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(str(path), options) as book:
        # A fixed date: equal inputs give equal workbooks.
        from datetime import datetime

        book.set_properties({"title": title, "created": datetime(2000, 1, 1)})
        formats = {
            "head": book.add_format(
                {
                    "bold": True,
                    "bg_color": "#eef1f5",
                    "bottom": 1,
                    "text_wrap": True,
                    "valign": "top",
                }
            ),
            "number": book.add_format({"num_format": "#,##0.0000"}),
            "small": book.add_format({"num_format": "0.00E+00"}),
            "whole": book.add_format({"num_format": "#,##0"}),
            "share": book.add_format({"num_format": "0.0%"}),
            "text": book.add_format({"num_format": "@"}),
        }
        for name, frame in frames.items():
            _sheet(book.add_worksheet(name[:31]), frame, formats)


def _sheet(sheet: Any, frame: pd.DataFrame, formats: Mapping[str, Any]) -> None:
    columns = [str(c) for c in frame.columns]
    for place, column in enumerate(columns):
        sheet.write_string(0, place, column, formats["head"])
        sheet.set_column(place, place, _width(column, frame.iloc[:200, place].tolist()))
        for row, raw in enumerate(frame.iloc[:_MOST_ROWS, place].tolist(), start=1):
            value = _plain(raw)
            if value is None:
                continue
            if isinstance(value, bool):
                sheet.write_boolean(row, place, value)
            elif isinstance(value, int | float):
                sheet.write_number(row, place, value, formats[_format_of(column, value)])
            else:
                sheet.write_string(row, place, str(value)[:32_000], formats["text"])
    sheet.freeze_panes(1, 0)
    if columns and len(frame):
        sheet.autofilter(0, 0, len(frame), len(columns) - 1)


def _format_of(column: str, value: float) -> str:
    if isinstance(value, int):
        return "whole"
    if column in ("margin", "mde_ratio", "dropped_ratio", "confidence"):
        return "share"
    return "small" if value and abs(value) < 1e-3 else "number"


def _width(column: str, values: Sequence[Any]) -> float:
    longest = max([len(column), *(len(str(v)) if not isinstance(v, float) else 10 for v in values)])
    return min(48.0, longest + 2.0)


def write_csv(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a frame as CSV for spreadsheets: UTF-8 with BOM, text never a formula."""
    safe = frame.copy()
    for column in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[column]):
            safe[column] = safe[column].map(_disarmed)
    safe.columns = [_disarmed(str(name)) for name in safe.columns]
    safe.to_csv(path, index=False, encoding="utf-8-sig", lineterminator="\r\n")


def _disarmed(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return _plain(value) if isinstance(value, list | dict | tuple) else value
