"""The figures of a case: which numbers, drawn how, and the two sentences under each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from gpuverdict.case import Case
from gpuverdict.figures.draw import draw_intervals, draw_run_values, draw_trade_off, draw_windows
from gpuverdict.figures.plate import Plate
from gpuverdict.figures.style import figure_language, styled
from gpuverdict.schema import METRICS
from gpuverdict.summary import per_run
from gpuverdict.text import sentence
from gpuverdict.units import format_ratio, scaled
from gpuverdict.verdict import Cell

__all__ = ["intervals", "run_values", "trade_off", "windows"]


def level_value(level_key: str) -> float:
    return float(next(iter(json.loads(level_key).values())))


def metric_label(metric: str, statistic: str, lang: str) -> str:
    declared = METRICS[metric]
    name = declared.label_zh if lang == "zh" else declared.label
    return name if statistic == "value" else f"{name} {statistic}"


def notice(lang: str) -> str:
    return sentence("figure_font_notice", lang) if figure_language(lang) != lang else ""


def _streams_label(case: Case, drawn: str) -> str:
    kinds = {next(iter(run.level)) for run in case.measured.runs}
    return sentence("axis_rate" if kinds == {"rate_requests_per_s"} else "axis_streams", drawn)


def run_numbers(case: Case, metric: str, statistic: str, workload: str) -> pd.DataFrame:
    """Give one number of every run of both arms."""
    arms = [case.spec.baseline, str(case.spec.candidate)]
    return per_run(case.summary, arms, workload, metric, statistic)


def main_workload(case: Case) -> str:
    present = {cell.key.workload for cell in case.verdict.cells}
    names = list(case.campaign.all_workloads())
    return next((name for name in names if name in present), names[0])


def trade_off(case: Case, lang: str = "en", workload: str | None = None) -> Plate:
    """Show what a user's speed costs in throughput: every run a point, up and right is better.

    Per GPU where the arms have unequal numbers of GPUs, else per system.
    """
    workload = workload or main_workload(case)
    drawn = figure_language(lang)
    arms = [case.spec.baseline, str(case.spec.candidate)]
    gpus = [case.campaign.arms[a].gpus for a in arms]
    metric = "output_tokens_per_s" if gpus[0] == gpus[1] else "output_tokens_per_s_per_gpu"
    x = run_numbers(case, "decode_tokens_per_s", "value", workload)
    y = run_numbers(case, metric, "value", workload)
    both = x[["run_id", "arm", "level_value", "value"]].merge(
        y[["run_id", "arm", "value"]], on=["run_id", "arm"], suffixes=("_x", "_y")
    )
    points = both.rename(columns={"level_value": "level", "value_x": "x", "value_y": "y"}).dropna()
    limit = case.campaign.slo_of(workload).get("tpot_s", {}).get("p50")
    system = "system" if metric == "output_tokens_per_s" else "gpu"
    edges = [
        (arm, sentence("edge_infeasible", drawn, level=f"{e.level:g}", reason=e.reason))
        for arm in arms
        for e in (
            *case.campaign.arms[arm].infeasible,
            *(i for i in case.campaign.infeasible if i.arm == arm),
        )
    ]
    with styled():
        axes = draw_trade_off(
            points,
            arms=arms,
            edges=edges,
            slo_x=1 / limit if limit else None,
            labels=(
                sentence("axis_user_speed", drawn),
                sentence(f"axis_throughput_{system}", drawn),
            ),
            slo_label=sentence("slo_region", drawn, limit=f"{1000 * limit:g} ms") if limit else "",
        )
    means = points.groupby(["arm", "level"], sort=False)[["x", "y"]].mean().reset_index()
    finding = _trade_off_finding(means, arms, lang)
    return Plate(
        axes=axes,
        name="trade-off",
        alt=sentence("trade_off_alt", lang, finding=finding),
        reading=sentence("trade_off_reading", lang),
        finding=finding,
        note=notice(lang),
        frame=means.rename(columns={"x": "user_tokens_per_s", "y": metric}),
    )


def _trade_off_finding(means: pd.DataFrame, arms: list[str], lang: str) -> str:
    table = {arm: rows.set_index("level") for arm, rows in means.groupby("arm")}
    if len(table) < 2:
        return sentence("trade_off_one_arm", lang)
    a, b = table[arms[0]], table[arms[1]]
    shared = sorted(set(a.index) & set(b.index))
    if not shared:
        return sentence("trade_off_no_level", lang)
    low, high = shared[0], shared[-1]

    def gap(level: float, column: str) -> float:
        return float(b.loc[level, column] / a.loc[level, column])

    return sentence(
        "trade_off_finding",
        lang,
        low=f"{low:g}",
        high=f"{high:g}",
        candidate=arms[1],
        baseline=arms[0],
        x_low=f"{100 * gap(low, 'x'):.0f} %",
        y_low=f"{100 * gap(low, 'y'):.0f} %",
        x_high=f"{100 * gap(high, 'x'):.0f} %",
        y_high=f"{100 * gap(high, 'y'):.0f} %",
    )


def intervals(case: Case, metric: str, statistic: str = "p50", lang: str = "en") -> Plate:
    """Show the ratio of one metric at every level, with its interval and the margin."""
    drawn = figure_language(lang)
    cells = [
        c for c in case.verdict.cells if (c.key.metric, c.key.statistic) == (metric, statistic)
    ]
    several = len({c.key.workload for c in cells}) > 1
    records: list[dict[str, Any]] = []
    for cell in cells:
        c = cell.comparison
        records.append(
            {
                "workload": cell.key.workload,
                "level": level_value(cell.key.level or "{}") if cell.key.level else math.nan,
                "name": level_text(cell.level, drawn)
                + (f" ({cell.key.workload})" if several else ""),
                "ratio": c.ratio,
                "low": c.low,
                "high": c.high,
                "verdict": c.verdict,
            }
        )
    columns = ["workload", "level", "name", "ratio", "low", "high", "verdict"]
    frame = pd.DataFrame(records, columns=columns)
    frame[["ratio", "low", "high"]] = frame[["ratio", "low", "high"]].astype(float)
    margin = cells[0].comparison.margin if cells else 0.05
    label = metric_label(metric, statistic, lang)
    with styled():
        axes = draw_intervals(
            frame,
            margin=margin,
            label=sentence("axis_ratio", drawn, metric=metric_label(metric, statistic, drawn)),
        )
    words = "; ".join(_cell_words(cell, lang) for cell in cells)
    return Plate(
        axes=axes,
        name=f"intervals-{metric}-{statistic}".replace("_", "-"),
        alt=sentence("intervals_alt", lang, metric=label, words=words),
        reading=sentence("intervals_reading", lang, margin=f"{100 * margin:g} %"),
        finding=sentence("intervals_finding", lang, metric=label, words=words)
        if cells
        else sentence("empty_value", lang, name=label),
        frame=frame[["level", "ratio", "low", "high", "verdict"]],
        note=notice(lang),
    )


def _cell_words(cell: Cell, lang: str) -> str:
    c = cell.comparison
    word = sentence("word_" + c.verdict.replace(" ", "_"), lang)
    return f"{level_text(cell.level, lang)}: {format_ratio(c.ratio, c.low, c.high)} {word}"


def level_text(level: Mapping[str, float] | None, lang: str) -> str:
    if not level:
        return sentence("level_all", lang)
    (kind, value), *_ = level.items()
    if kind == "rate_requests_per_s":
        return f"{value:g} req/s"
    if kind == "concurrency" and value == 1:
        return sentence("level_one_stream", lang, n="1")
    return sentence(
        "level_streams" if kind == "concurrency" else "level_batch", lang, n=f"{value:g}"
    )


def run_values(
    case: Case, metric: str, statistic: str = "p50", lang: str = "en", workload: str | None = None
) -> Plate:
    """Show one number of every run, so that spread and odd runs can be seen."""
    workload = workload or main_workload(case)
    drawn = figure_language(lang)
    rows = run_numbers(case, metric, statistic, workload).dropna(subset=["value"])
    frame = rows[["arm", "level_value", "repeat_no", "value"]].rename(
        columns={"level_value": "level"}
    )
    unit = METRICS[metric].unit
    like = float(frame.value.median()) if len(frame) else 1.0
    factor, printed = scaled(1.0, unit, like)
    arms = [case.spec.baseline, str(case.spec.candidate)]
    ordered = pd.concat([frame[frame.arm == arm] for arm in arms]) if len(frame) else frame
    with styled():
        axes = draw_run_values(
            ordered.assign(value=ordered.value * factor),
            arms=arms,
            labels=(
                _streams_label(case, drawn),
                f"{metric_label(metric, statistic, drawn)} ({printed})",
            ),
        )
    label = metric_label(metric, statistic, lang)
    return Plate(
        axes=axes,
        name=f"runs-{metric}-{statistic}".replace("_", "-"),
        alt=sentence("runs_alt", lang, metric=label, n=len(frame)),
        reading=sentence("runs_reading", lang),
        finding=_widest(ordered, label, lang),
        frame=ordered.reset_index(drop=True),
        note=notice(lang),
    )


def _widest(frame: pd.DataFrame, label: str, lang: str) -> str:
    if frame.empty:
        return sentence("empty_value", lang, name=label)
    spread = frame.groupby(["arm", "level"]).value.agg(
        lambda v: (v.max() - v.min()) / v.mean() if v.mean() else 0.0
    )
    (arm, level), share = spread.idxmax(), float(spread.max())
    return sentence(
        "runs_finding",
        lang,
        arm=arm,
        level=f"{level:g}",
        share=f"{100 * share:.2g} %",
        metric=label,
    )


def windows(case: Case, lang: str = "en") -> Plate:
    """Show of every run what was cut and which stretch its numbers describe."""
    drawn = figure_language(lang)
    records = []
    for arm in (case.spec.baseline, str(case.spec.candidate)):
        for run in case.measured.runs_of(arm):
            fact = case.summary.facts[run.key]
            end = fact.window.end_s
            if end is None:
                continue
            duration = float(run.stored.info.get("duration_s") or end)
            records.append(
                {
                    "arm": arm,
                    "level": next(iter(run.level.values())),
                    "repeat_no": run.repeat_no,
                    "name": f"{arm} · {next(iter(run.level.values())):g} · {run.repeat_no}",
                    "start_s": fact.window.start_s,
                    "end_s": end,
                    "duration_s": max(duration, end),
                    "dropped_ratio": fact.window.dropped_ratio,
                }
            )
    columns = [
        "arm",
        "level",
        "repeat_no",
        "name",
        "start_s",
        "end_s",
        "duration_s",
        "dropped_ratio",
    ]
    frame = pd.DataFrame(records, columns=columns)
    names = {key: sentence(f"window_{key}", drawn) for key in ("cut", "window", "drain")}
    with styled():
        axes = draw_windows(frame, names=names, label=sentence("axis_run_time", drawn))
    share = frame.dropped_ratio
    finding = sentence("windows_none", lang)
    if len(frame):
        finding = sentence(
            "windows_finding",
            lang,
            n=len(frame),
            low=f"{100 * share.min():.0f} %",
            high=f"{100 * share.max():.0f} %",
        )
    return Plate(
        axes=axes,
        name="windows",
        alt=sentence("windows_alt", lang, finding=finding),
        reading=sentence("windows_reading", lang),
        finding=finding,
        frame=frame.drop(columns="name"),
        note=notice(lang),
    )
