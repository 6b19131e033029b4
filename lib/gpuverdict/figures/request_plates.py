"""Figures of single requests: a run's timeline, distributions by run, and shifts by quantile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from matplotlib.figure import Figure

from gpuverdict.capacity import run_samples
from gpuverdict.case import Case
from gpuverdict.energy import traced_gpus
from gpuverdict.figures.phase_plates import opening
from gpuverdict.figures.plate import Plate
from gpuverdict.figures.plates import metric_label, notice
from gpuverdict.figures.style import ARM_COLOURS, GREY, LEVEL_COLOURS, figure_language, styled
from gpuverdict.measured import MeasuredRun
from gpuverdict.phases import split_phases
from gpuverdict.schema import METRICS, Trace
from gpuverdict.text import sentence
from gpuverdict.units import format_value, scaled

__all__ = ["distribution", "request_timeline", "shift"]

# More bars than this are no longer told apart; the rest is thinned evenly and said.
MOST_BARS = 150
QUANTILES = np.linspace(0.01, 0.99, 99)
DECILES = np.linspace(0.1, 0.9, 9)


def _request_values(case: Case, run: MeasuredRun, metric: str) -> np.ndarray:
    """Give one metric of the ok requests in the run's window."""
    window = case.summary.facts[run.key].window
    rows = run.stored.requests().filter(pl.col("phase") == "main", pl.col("status") == "ok")
    if window.kind == "steady":
        rows = rows.filter(pl.col("start_s").is_between(window.start_s, window.end_s))
    return rows[metric].drop_nulls().to_numpy()


def _runs_at(case: Case, arm: str, level: float) -> list[MeasuredRun]:
    return [r for r in case.measured.runs_of(arm) if next(iter(r.level.values())) == level]


def distribution(case: Case, metric: str = "tpot_s", level: float = 1, lang: str = "en") -> Plate:
    """Show the distribution over requests, one line a run, at one level."""
    drawn = figure_language(lang)
    arms = [case.spec.baseline, str(case.spec.candidate)]
    records: list[dict[str, Any]] = []
    for arm in arms:
        for run in _runs_at(case, arm, level):
            values = _request_values(case, run, metric)
            if values.size:
                points = np.quantile(values, QUANTILES)
                records += [
                    {"arm": arm, "repeat_no": run.repeat_no, "quantile": q, "value": v}
                    for q, v in zip(QUANTILES, points, strict=True)
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
    finding = " ".join(words) or sentence(
        "empty_value", lang, name=metric_label(metric, "value", lang)
    )
    return Plate(
        axes=axes,
        name=f"distribution-{metric}".replace("_", "-"),
        alt=sentence("distribution_alt", lang, finding=finding),
        reading=sentence("distribution_reading", lang),
        finding=finding,
        frame=frame[np.isclose(frame["quantile"] * 100 % 25, 0)].reset_index(drop=True),
        note=notice(lang),
    )


def shift(case: Case, metric: str = "tpot_s", level: float = 1, lang: str = "en") -> Plate:
    """Show the ratio of the arms decile by decile: is it the typical request or the tail?"""
    drawn = figure_language(lang)
    arms = [case.spec.baseline, str(case.spec.candidate)]
    logs = []
    for arm in arms:
        own = [
            np.log(np.quantile(v, DECILES))
            for r in _runs_at(case, arm, level)
            if (v := _request_values(case, r, metric)).size and (v > 0).all()
        ]
        logs.append(np.array(own))
    columns = ["decile", "ratio"]
    frame = pd.DataFrame(columns=columns, dtype=float)
    singles = np.empty((0, DECILES.size))
    if all(len(found) for found in logs):
        centre = logs[0].mean(axis=0)
        frame = pd.DataFrame({"decile": DECILES, "ratio": np.exp(logs[1].mean(axis=0) - centre)})
        singles = np.exp(logs[1] - centre)
    with styled():
        axes = Figure(figsize=(6.8, 3.2)).subplots()
        axes.axhline(1, color=GREY, lw=1)
        for line in singles:
            axes.plot(100 * DECILES, line, "s", color=ARM_COLOURS[1], alpha=0.5, ms=4)
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
    finding = sentence("empty_value", lang, name=metric_label(metric, "value", lang))
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


def request_timeline(
    case: Case, arm: str, level: float, repeat_no: int = 1, lang: str = "en"
) -> Plate:
    """Show the requests of one run as bars, with batch, power and clock below."""
    drawn = figure_language(lang)
    run = next((r for r in _runs_at(case, arm, level) if r.repeat_no == repeat_no), None)
    if run is None:
        run = next(iter(_runs_at(case, arm, level)), None)
    panels: list[tuple[str, pl.DataFrame]] = []
    bars = pl.DataFrame()
    total = 0
    if run is not None:
        probes = [p.load() for p in case.measured.probes.get(arm, ())] or None
        phases = split_phases(opening(run), probes)
        rows = phases.requests.filter(pl.col("start_s").is_not_null()).sort("start_s")
        total = rows.height
        bars = rows.gather_every(max(1, -(-total // MOST_BARS)))
        batch = phases.batch.select(x="time_s", y="decode_batch").drop_nulls()
        panels.append(("axis_batch", batch.gather_every(max(1, batch.height // 1000))))
        panels += _sampled(case, run)
    with styled():
        figure = Figure(figsize=(7.4, 3.0 + 1.1 * len(panels)))
        grid = figure.subplots(
            1 + len(panels),
            1,
            sharex=True,
            squeeze=False,
            height_ratios=[3.0, *[1.0] * len(panels)],
        )[:, 0]
        axes = grid[0]
        _draw_bars(axes, bars, drawn)
        for place, (code, series) in zip(grid[1:], panels, strict=True):
            place.plot(series["x"], series["y"], lw=1, color=ARM_COLOURS[0], drawstyle="steps-post")
            place.set_ylabel(sentence(code, drawn), fontsize=8)
            place.set_ylim(bottom=0)
            place.spines[["top", "right"]].set_visible(False)
        grid[-1].set_xlabel(sentence("axis_run_time", drawn))
    finding = sentence("timeline_none", lang)
    if bars.height:
        finding = sentence(
            "timeline_finding", lang, arm=arm, level=f"{level:g}", shown=bars.height, total=total
        )
    return Plate(
        axes=axes,
        name="timeline",
        alt=sentence("timeline_alt", lang, finding=finding),
        reading=sentence("timeline_reading", lang),
        finding=finding,
        frame=_timeline_frame(bars),
        note=notice(lang),
    )


def _timeline_frame(bars: pl.DataFrame) -> pd.DataFrame:
    columns = ["request_index", "start_s", "scheduling_excess_s", "prefill_s", "decode_s"]
    if bars.is_empty():
        return pd.DataFrame(columns=columns)
    return bars.select(columns).head(5).to_pandas()


def _draw_bars(axes: Any, bars: pl.DataFrame, lang: str) -> None:
    if bars.is_empty():
        return
    place = np.arange(bars.height)
    left = bars["start_s"].to_numpy()
    colours = (LEVEL_COLOURS[1], LEVEL_COLOURS[4], LEVEL_COLOURS[0])
    names = ("waiting", "prefill", "decode")
    for part, name, colour in zip(
        ("scheduling_excess_s", "prefill_s", "decode_s"), names, colours, strict=True
    ):
        width = bars[part].fill_null(0.0).to_numpy()
        axes.barh(
            place,
            width,
            left=left,
            height=0.9,
            lw=0,
            color=colour,
            label=sentence(f"phase_{name}", lang),
        )
        left = left + width
    axes.set_ylim(bars.height - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_ylabel(sentence("axis_requests", lang), fontsize=8)
    axes.grid(axis="y", visible=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.1)


def _sampled(case: Case, run: MeasuredRun) -> Sequence[tuple[str, pl.DataFrame]]:
    """Give power and SM clock of the arm's GPUs during a run, in the run's own seconds."""
    begin, length = run.stored.info.get("t0_epoch_s"), run.stored.info.get("duration_s")
    if begin is None or length is None:
        return []
    rows, _ = run_samples(case.measured, run.arm, run.stored)
    # The sum over more cards than the arm has would be another one's.
    if traced_gpus(Trace(samples=rows)) != case.campaign.arms[run.arm].gpus:
        return []
    binned = (
        rows.with_columns(x=((pl.col("time_epoch_s") - float(begin)) / 0.1).floor() * 0.1)
        .group_by("x", "gpu_index")
        .agg(pl.col("power_w").mean(), pl.col("sm_clock_mhz").mean())
        .group_by("x")
        .agg(pl.col("power_w").sum(), pl.col("sm_clock_mhz").min())
        .sort("x")
    )
    binned = binned.gather_every(max(1, binned.height // 1000))
    return [
        ("axis_power_short", binned.select("x", y="power_w")),
        ("axis_clock_short", binned.select("x", y="sm_clock_mhz")),
    ]
