"""Figures of the design: when each run was made, and what more runs would show."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpuverdict import stats
from gpuverdict.case import Case
from gpuverdict.figures.draw import draw_detectable, draw_order
from gpuverdict.figures.plate import Plate
from gpuverdict.figures.plates import level_text
from gpuverdict.figures.style import figure_language, styled
from gpuverdict.measured import Measured, level_label
from gpuverdict.schema import METRICS
from gpuverdict.text import sentence

__all__ = ["detectable", "run_order"]

# Beyond this many runs an arm no campaign is planned.
MOST_RUNS = 20


def run_order(measured: Measured, lang: str = "en") -> Plate:
    """Show when each run was made: arms that follow each other cannot be told from a drift."""
    drawn = figure_language(lang)
    records = []
    for run in measured.runs:
        start, length = run.stored.info.get("t0_epoch_s"), run.stored.info.get("duration_s")
        if start is None or length is None:
            continue
        records.append(
            {
                "arm": run.arm,
                "level": level_label(run.level),
                "repeat_no": run.repeat_no,
                "start_s": float(start),
                "duration_s": float(length),
            }
        )
    frame = pd.DataFrame(records, columns=["arm", "level", "repeat_no", "start_s", "duration_s"])
    if len(frame):
        frame = frame.sort_values(["start_s", "arm"]).reset_index(drop=True)
        # Campaigns of several days would be all gap: what matters is the order, by first start.
        frame["start_s"] -= frame.start_s.min()
    arms = list(measured.campaign.arms)
    with styled():
        axes = draw_order(frame, arms=arms, label=sentence("axis_order", drawn))
    turns = int((frame.arm != frame.arm.shift()).sum()) if len(frame) else 0
    finding = sentence("order_finding", lang, n=len(frame), blocks=turns, arms=frame.arm.nunique())
    if frame.empty:
        finding = sentence("order_none", lang)
    return Plate(
        axes=axes,
        name="run-order",
        alt=sentence("order_alt", lang, finding=finding),
        reading=sentence("order_reading", lang),
        finding=finding,
        frame=_blocks(frame),
    )


def _blocks(frame: pd.DataFrame) -> pd.DataFrame:
    """Fold consecutive runs of an arm into one row: what a check can compare."""
    if frame.empty:
        return pd.DataFrame(columns=["arm", "runs"])
    number = (frame.arm != frame.arm.shift()).cumsum()
    folded = frame.groupby(number).agg(arm=("arm", "first"), runs=("arm", "size"))
    return folded.reset_index(drop=True)


def detectable(
    case: Case, metric: str = "tpot_s", statistic: str = "p50", lang: str = "en"
) -> Plate:
    """Show the smallest difference each number of runs an arm would find, level by level."""
    drawn = figure_language(lang)
    runs = np.arange(2, MOST_RUNS + 1)
    names: dict[str, str] = {}
    records = []
    for cell in case.verdict.cells:
        c = cell.comparison
        if (cell.key.metric, cell.key.statistic) != (metric, statistic) or not c.sd_log:
            continue
        level = level_label(cell.level)
        names[level] = level_text(cell.level, drawn)
        records += [(level, int(n), stats.mde(c.sd_log, int(n)), c.margin) for n in runs]
    frame = pd.DataFrame(records, columns=["level", "runs", "difference_ratio", "margin"])
    margin = float(frame.margin.iloc[0]) if len(frame) else stats.default_margin(metric, statistic)
    label = METRICS[metric].label_zh if drawn == "zh" else METRICS[metric].label
    named = label if statistic == "value" else f"{label} {statistic}"
    with styled():
        axes = draw_detectable(
            frame.assign(level=frame.level.map(names)),
            margin=margin,
            labels=(sentence("axis_runs", drawn), sentence("axis_detectable", drawn, metric=named)),
            margin_label=sentence("margin_line", drawn, margin=f"{100 * margin:g} %"),
        )
    have = max([case.verdict.cells[0].comparison.n_baseline, 2] if case.verdict.cells else [2])
    here = frame[frame.runs == have]
    finding = sentence("detectable_none", lang)
    if len(here):
        best, worst = here.difference_ratio.min(), here.difference_ratio.max()
        finding = sentence(
            "detectable_finding",
            lang,
            n=have,
            low=f"{100 * best:.2g} %",
            high=f"{100 * worst:.2g} %",
            metric=named,
        )
    return Plate(
        axes=axes,
        name=f"detectable-{metric}-{statistic}".replace("_", "-"),
        alt=sentence("detectable_alt", lang, finding=finding),
        reading=sentence("detectable_reading", lang),
        finding=finding,
        frame=frame[frame.runs.isin([3, 5, 10])].drop(columns="margin").reset_index(drop=True),
    )
