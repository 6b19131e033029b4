"""Figures over the requests of a level: distributions by run, and shifts by quantile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from matplotlib.figure import Figure

from gpuverdict.case import Case
from gpuverdict.figures.plate import Plate
from gpuverdict.figures.plates import main_workload, metric_label, notice
from gpuverdict.figures.style import ARM_COLOURS, GREY, figure_language, styled
from gpuverdict.measured import MeasuredRun
from gpuverdict.schema import METRICS, REQUESTS
from gpuverdict.text import sentence
from gpuverdict.units import format_value, scaled

__all__ = ["distribution", "runs_at", "shift"]

QUANTILES = np.linspace(0.01, 0.99, 99)
_TENTHS = slice(9, None, 10)


def runs_at(
    case: Case, arm: str, level: float | Mapping[str, float], workload: str | None = None
) -> list[MeasuredRun]:
    """List the runs of an arm at a level, given whole or by its value, in a workload."""
    workload = workload or main_workload(case)
    return [
        run
        for run in case.measured.runs_of(arm)
        if run.workload == workload
        and (
            dict(run.level) == dict(level)
            if isinstance(level, Mapping)
            else next(iter(run.level.values())) == level
        )
    ]


def _quantiles(case: Case, run: MeasuredRun, metric: str) -> np.ndarray:
    """Give the percentiles of the ok requests in the run's window; empty where there are none.

    Worked out once: the requests of a long run are many, and every view of it needs these alone.
    """
    if metric not in REQUESTS:
        return np.empty(0)

    def worked_out() -> np.ndarray:
        window = case.summary.facts[run.key].window
        rows = run.stored.scan().filter(pl.col("phase") == "main", pl.col("status") == "ok")
        if window.kind == "steady":
            rows = rows.filter(pl.col("start_s").is_between(window.start_s, window.end_s))
        values = rows.select(pl.col(metric).drop_nulls()).collect().to_series().to_numpy()
        return np.quantile(values, QUANTILES) if values.size else np.empty(0)

    return np.asarray(case.summary.once(("quantiles", run.key, metric), worked_out))


def _no_values(metric: str, lang: str) -> str:
    code = "empty_value" if metric in REQUESTS else "distribution_none"
    return sentence(code, lang, name=metric_label(metric, "value", lang))


def distribution(
    case: Case,
    metric: str = "tpot_s",
    level: float | Mapping[str, float] = 1,
    lang: str = "en",
    workload: str | None = None,
) -> Plate:
    """Show the distribution over requests, one line a run, at one level."""
    drawn = figure_language(lang)
    arms = [case.spec.baseline, str(case.spec.candidate)]
    records: list[dict[str, Any]] = []
    for arm in arms:
        for run in runs_at(case, arm, level, workload):
            records += [
                {"arm": arm, "repeat_no": run.repeat_no, "quantile": q, "value": v}
                for q, v in zip(QUANTILES, _quantiles(case, run, metric), strict=False)
            ]
    frame = pd.DataFrame(records, columns=["arm", "repeat_no", "quantile", "value"])
    unit = METRICS[metric].unit
    factor, printed = scaled(1.0, unit, float(frame.value.median()) if len(frame) else 1.0)
    with styled():
        axes = Figure(figsize=(6.8, 3.6)).subplots()
        for number, arm in enumerate(arms):
            for first, (_, rows) in enumerate(frame[frame.arm == arm].groupby("repeat_no")):
                axes.plot(
                    rows.value * factor,
                    100 * rows["quantile"],
                    color=ARM_COLOURS[number % 2],
                    ls=("-", "--")[number % 2],
                    lw=1.1,
                    alpha=0.8,
                    label=arm if first == 0 else None,
                )
        axes.set(
            xlabel=f"{metric_label(metric, 'value', drawn)} ({printed})",
            ylabel=sentence("axis_share", drawn),
            ylim=(0, 100),
        )
        axes.spines[["top", "right"]].set_visible(False)
        if len(frame):
            axes.legend(fontsize=9)
    middle = frame[np.isclose(frame["quantile"], 0.5)].groupby("arm").value.mean()
    words = [
        sentence("median_words", lang, arm=a, value=format_value(float(middle[a]), unit))
        for a in arms
        if a in middle
    ]
    finding = " ".join(words) or _no_values(metric, lang)
    return Plate(
        axes=axes,
        name=f"distribution-{metric}".replace("_", "-"),
        alt=sentence("distribution_alt", lang, finding=finding),
        reading=sentence("distribution_reading", lang),
        finding=finding,
        frame=frame[np.isclose(frame["quantile"] * 100 % 25, 0)].reset_index(drop=True),
        note=notice(lang),
    )


def shift(
    case: Case,
    metric: str = "tpot_s",
    level: float | Mapping[str, float] = 1,
    lang: str = "en",
    workload: str | None = None,
) -> Plate:
    """Show the ratio of the arms decile by decile: is it the typical request or the tail?"""
    drawn = figure_language(lang)
    arms = [case.spec.baseline, str(case.spec.candidate)]
    logs = []
    for arm in arms:
        own = [
            np.log(found[_TENTHS])
            for r in runs_at(case, arm, level, workload)
            if (found := _quantiles(case, r, metric)).size and found[0] > 0
        ]
        logs.append(np.array(own))
    deciles = QUANTILES[_TENTHS]
    columns = ["decile", "ratio"]
    frame = pd.DataFrame(columns=columns, dtype=float)
    singles = np.empty((0, deciles.size))
    if all(len(found) for found in logs):
        centre = logs[0].mean(axis=0)
        frame = pd.DataFrame({"decile": deciles, "ratio": np.exp(logs[1].mean(axis=0) - centre)})
        singles = np.exp(logs[1] - centre)
    with styled():
        axes = Figure(figsize=(6.8, 3.2)).subplots()
        axes.axhline(1, color=GREY, lw=1)
        for line in singles:
            axes.plot(100 * deciles, line, "s", color=ARM_COLOURS[1], alpha=0.5, ms=4)
        axes.plot(
            100 * frame.decile.astype(float),
            frame.ratio.astype(float),
            color=ARM_COLOURS[1],
            lw=1.8,
        )
        axes.set(
            xlabel=sentence("axis_percentile", drawn),
            ylabel=sentence("axis_ratio", drawn, metric=metric_label(metric, "value", drawn)),
        )
        axes.spines[["top", "right"]].set_visible(False)
    finding = _no_values(metric, lang)
    if len(frame):
        finding = sentence(
            "shift_finding",
            lang,
            low=f"{frame.ratio.iloc[0]:.2f}",
            middle=f"{frame.ratio.iloc[4]:.2f}",
            high=f"{frame.ratio.iloc[-1]:.2f}",
        )
    return Plate(
        axes=axes,
        name=f"shift-{metric}".replace("_", "-"),
        alt=sentence("shift_alt", lang, finding=finding),
        reading=sentence("shift_reading", lang),
        finding=finding,
        frame=frame,
        note=notice(lang),
    )
