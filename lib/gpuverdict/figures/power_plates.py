"""Figures of power and of limits: watts over time, the SLO by level, the step against its bound."""

from __future__ import annotations

import pandas as pd
import polars as pl

from gpuverdict.align import place
from gpuverdict.capacity import arm_rooflines, device_memory
from gpuverdict.case import Case
from gpuverdict.energy import traced_gpus
from gpuverdict.figures.draw_series import draw_points_and_lines, draw_traces
from gpuverdict.figures.plate import Plate
from gpuverdict.figures.plates import main_workload, metric_label, notice, run_numbers
from gpuverdict.figures.style import figure_language, styled
from gpuverdict.schema import REQUESTS, TOKEN_GAPS, Run, empty
from gpuverdict.text import sentence

__all__ = ["power_over_time", "slo_margins", "step_bounds"]

BIN_S = 1.0


def power_over_time(case: Case, lang: str = "en") -> Plate:
    """Show the watts of each arm (all its GPUs) from its first run to its last."""
    drawn = figure_language(lang)
    arms = [case.spec.baseline, str(case.spec.candidate)]
    frames, limits, records = [], {}, []
    for arm in arms:
        found = _watts(case, arm)
        if found is None:
            continue
        watts, limit = found
        frames.append(watts.with_columns(arm=pl.lit(arm)).to_pandas())
        if limit is not None:
            limits[arm] = limit
        drawn_w = watts["y"].to_numpy()
        records.append(
            {
                "arm": arm,
                "mean_w": float(drawn_w.mean()),
                "peak_w": float(drawn_w.max()),
                "limit_w": limit,
            }
        )
    frame = pd.concat(frames) if frames else pd.DataFrame(columns=["x", "y", "arm"])
    with styled():
        axes = draw_traces(
            frame,
            arms=arms,
            limits=limits,
            limit_label=sentence("power_limit", drawn),
            labels=(sentence("axis_arm_time", drawn), sentence("axis_power", drawn)),
        )
    words = [
        sentence(
            "power_words", lang, arm=r["arm"], mean=f"{r['mean_w']:.0f}", peak=f"{r['peak_w']:.0f}"
        )
        for r in records
    ]
    finding = " ".join(words) or sentence("power_none", lang)
    return Plate(
        axes=axes,
        name="power-over-time",
        alt=sentence("power_alt", lang, finding=finding),
        reading=sentence("power_reading", lang),
        finding=finding,
        frame=pd.DataFrame(records, columns=["arm", "mean_w", "peak_w", "limit_w"]),
        note=notice(lang),
    )


def _watts(case: Case, arm: str) -> tuple[pl.DataFrame, float | None] | None:
    """Sum the GPUs of an arm in bins of a second, over its own runs."""
    starts = [
        (float(r.stored.info["t0_epoch_s"]), float(r.stored.info.get("duration_s") or 0.0))
        for r in case.measured.runs_of(arm)
        if r.stored.info.get("t0_epoch_s") is not None
    ]
    loads = [Run(info=r.stored.info, requests=empty(REQUESTS), gaps=empty(TOKEN_GAPS))
             for r in case.measured.runs_of(arm)]  # fmt: skip
    samples = [
        t.samples
        for t in case.measured.traces.get(arm, ())
        # Of another host, or of more cards than the arm has: the sum would be another one's.
        if traced_gpus(t) == case.campaign.arms[arm].gpus
        and any(place(load, t)[0] is not None for load in loads)
    ]
    if not starts or not samples:
        return None
    begin = min(s for s, _ in starts)
    # Another arm may have run in between, on the same card and in the same trace.
    own = pl.any_horizontal(
        [pl.col("time_epoch_s").is_between(s - 2, s + d + 2) for s, d in sorted(starts)]
    )
    rows = pl.concat(samples, how="vertical_relaxed").filter(own, pl.col("power_w").is_not_null())
    if rows.is_empty():
        return None
    binned = (
        rows.with_columns(bin=((pl.col("time_epoch_s") - begin) / BIN_S).floor())
        .group_by("bin", "gpu_index")
        .agg(pl.col("power_w").mean(), pl.col("power_limit_w").max())
        .group_by("bin")
        .agg(y=pl.col("power_w").sum(), limit=pl.col("power_limit_w").sum())
        .sort("bin")
    )
    limit = float(binned["limit"].fill_null(0.0).to_numpy().max())
    shown = binned.select(x=pl.col("bin") * BIN_S, y="y")
    step = max(1, shown.height // 1500)
    return shown.gather_every(step), limit or None


def slo_margins(case: Case, lang: str = "en", workload: str | None = None) -> Plate:
    """Show by level how much of the tightest part of the SLO each arm uses up."""
    workload = workload or main_workload(case)
    drawn = figure_language(lang)
    parts = []
    for metric, limits in case.campaign.slo_of(workload).items():
        for statistic, limit in limits.items():
            rows = run_numbers(case, metric, statistic, workload)
            rows = rows.assign(part=metric_label(metric, statistic, lang), used=rows.value / limit)
            parts.append(rows[["arm", "level_value", "run_id", "part", "used"]])
    columns = ["arm", "level_value", "run_id", "part", "used"]
    used = pd.concat(parts).dropna(subset=["used"]) if parts else pd.DataFrame(columns=columns)
    worst = used.sort_values("used", ascending=False).drop_duplicates(["arm", "run_id"])
    points = worst.rename(columns={"level_value": "x", "used": "y"}).sort_values(["arm", "x"])
    lines = (
        points.groupby(["arm", "x"], as_index=False).y.mean()
        if len(points)
        else points[["arm", "x", "y"]]
    )
    arms = [case.spec.baseline, str(case.spec.candidate)]
    with styled():
        axes = draw_points_and_lines(
            points.assign(y=100 * points.y.astype(float)),
            lines.assign(y=100 * lines.y.astype(float)),
            arms=arms,
            log=True,
            labels=(sentence("axis_streams", drawn), sentence("axis_slo_used", drawn)),
            limit=(100.0, sentence("slo_limit", drawn)),
        )
    finding = sentence("slo_none", lang)
    if len(lines):
        top = lines.loc[lines.y.idxmax()]
        tightest = worst[(worst.arm == top.arm) & (worst.level_value == top.x)].part.iloc[0]
        finding = sentence(
            "slo_finding",
            lang,
            arm=top.arm,
            level=f"{top.x:g}",
            used=f"{100 * top.y:.0f} %",
            part=tightest,
        )
    return Plate(
        axes=axes,
        name="slo-margins",
        alt=sentence("slo_alt", lang, finding=finding),
        reading=sentence("slo_reading", lang),
        finding=finding,
        frame=lines.rename(columns={"x": "level", "y": "slo_used_ratio"}).reset_index(drop=True),
        note=notice(lang),
    )


def step_bounds(case: Case, lang: str = "en", workload: str | None = None) -> Plate:
    """Show the measured decode step against the shortest that the card's bandwidth allows."""
    workload = workload or main_workload(case)
    drawn = figure_language(lang)
    memory = device_memory(case.measured.inventory, case.measured.traces)
    arms = [case.spec.baseline, str(case.spec.candidate)]
    records = []
    for arm in arms:
        found = arm_rooflines(
            case.summary.frame, case.campaign, arm, workload, device_memory_mib=memory.get(arm)
        )
        for level, line in found:
            if line.phase == "decode":
                records.append(
                    {
                        "arm": arm,
                        "level": float(next(iter(level.values()))),
                        "measured_s": line.measured_s,
                        "bound_s": line.bound_s,
                        "mbu_ratio": line.mbu_ratio.value,
                    }
                )
    columns = ["arm", "level", "measured_s", "bound_s", "mbu_ratio"]
    frame = pd.DataFrame(records, columns=columns)
    points = frame.rename(columns={"level": "x"}).assign(y=1e3 * frame.measured_s.astype(float))
    bounds = frame.rename(columns={"level": "x"}).assign(
        y=1e3 * frame.bound_s.astype(float), dashed=True
    )
    with styled():
        axes = draw_points_and_lines(
            points,
            bounds.dropna(subset=["y"]),
            arms=arms,
            log=True,
            labels=(sentence("axis_streams", drawn), sentence("axis_step_ms", drawn)),
        )
    known = frame.dropna(subset=["mbu_ratio"])
    finding = sentence("bound_none", lang)
    if len(known):
        best, worst = known.loc[known.mbu_ratio.idxmax()], known.loc[known.mbu_ratio.idxmin()]
        finding = sentence(
            "bound_finding",
            lang,
            best=best.arm,
            best_level=f"{best.level:g}",
            high=f"{100 * best.mbu_ratio:.0f} %",
            worst=worst.arm,
            worst_level=f"{worst.level:g}",
            low=f"{100 * worst.mbu_ratio:.0f} %",
        )
    return Plate(
        axes=axes,
        name="step-bounds",
        alt=sentence("bound_alt", lang, finding=finding),
        reading=sentence("bound_reading", lang),
        finding=finding,
        frame=frame,
        note=notice(lang),
    )
