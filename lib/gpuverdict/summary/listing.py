"""The summary as the command line prints it: strict JSON rows, or a table for a terminal."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from gpuverdict.schema import METRICS
from gpuverdict.units import format_value

__all__ = ["summary_rows", "summary_text"]

_SHOWN = ("mean", "p50", "p90", "p95", "p99", "value")


def summary_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows of plain values: null for what cannot be known, the level as a mapping."""
    rows = []
    for row in frame.to_dict("records"):
        row = {key: None if _is_missing(value) else value for key, value in row.items()}
        row["level"] = json.loads(row["level"]) if row["level"] else None
        row["cautions"] = list(row["cautions"])
        for key in ("value", "window_start_s", "window_end_s"):
            if row[key] is not None:
                row[key] = float(f"{row[key]:.12g}")
        for key in ("n", "n_sent", "n_dropped", "repeat_no"):
            if row[key] is not None:
                row[key] = int(row[key])
        rows.append(row)
    return rows


def _is_missing(value: Any) -> bool:
    return not isinstance(value, list) and bool(pd.isna(value) is True or value is pd.NA)


def summary_text(frame: pd.DataFrame) -> str:
    """Return one block a run: a line a metric, its statistics side by side, dashes for unknown."""
    blocks = []
    for run_id, rows in frame.groupby("run_id", sort=False):
        first = rows.iloc[0]
        level = f" {first.level}" if isinstance(first.level, str) else ""
        arm = f" {first.arm}" if isinstance(first.arm, str) else ""
        head = f"run {str(run_id)[:12]}{arm}{level}: {first.window}, {first.n_sent} requests sent"
        lines = [head]
        for metric, held in rows.groupby("metric", sort=False):
            values = dict(zip(held.statistic, held.value, strict=True))
            known = [s for s in _SHOWN if s in values and not pd.isna(values[s])]
            unit = METRICS[str(metric)].unit
            shown = "  ".join(
                (f"{s} " if s != "value" else "") + format_value(values[s], unit) for s in known
            )
            codes = sorted({c for codes in held.cautions for c in codes} - set(_common(rows)))
            mark = f"  ({', '.join(codes)})" if codes else ""
            lines.append(f"  {metric:36} {shown or '–'}{mark}")
        common = _common(rows)
        if common:
            lines.append(f"  cautions of every row: {', '.join(common)}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _common(rows: pd.DataFrame) -> list[str]:
    sets = [set(codes) for codes in rows.cautions]
    return sorted(set.intersection(*sets)) if sets else []
