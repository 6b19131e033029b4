"""What a comparison says beside its cells: curves, energy, health; plain values for the JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from gpuverdict.campaign import ComparisonSpec
from gpuverdict.curves import CurveComparison, CurveFit, compare_curves, fit_curve
from gpuverdict.errors import ParameterError
from gpuverdict.health import Health
from gpuverdict.measured import Measured
from gpuverdict.summary import Summary

__all__ = ["arm_curves", "comparison_curves", "curve_sections", "energy_section", "health_section"]


def arm_curves(measured: Measured, summary: Summary, arm: str) -> dict[str, CurveFit]:
    """Fit decode time against observed concurrency for each workload of an arm.

    Returns
    -------
    dict
        workload -> fit; without an entry where fewer than two levels have a value.
    """
    frame = summary.frame[(summary.frame.arm == arm) & summary.frame.value.notna()]
    steady = frame[frame.window == "steady"]
    tpot = steady[(steady.metric == "tpot_s") & (steady.statistic == "p50")]
    streams = steady[steady.metric == "concurrency"].set_index("run_id").value
    runs = {run.run_id: run for run in measured.runs_of(arm)}
    each = measured.campaign.arms[arm].server_starts == "each"
    out = {}
    for workload, rows in tpot.groupby("workload"):
        held = [r for r in rows.itertuples() if r.run_id in streams.index and r.run_id in runs]
        infeasible = _infeasible(measured, arm, str(workload))
        sweeps = [runs[str(r.run_id)].sweep_id for r in held]
        alone = each and len(set(sweeps)) == len(sweeps)
        try:
            out[str(workload)] = fit_curve(
                [float(streams[r.run_id]) for r in held], [float(r.value) for r in held], sweeps,
                design="cells" if alone else "sweep", infeasible=infeasible,
            )  # fmt: skip
        except ParameterError:
            continue  # one level is no curve; the cells say what it measured
    return out


def _infeasible(measured: Measured, arm: str, workload: str) -> list[float]:
    campaign = measured.campaign
    entries = [*campaign.arms[arm].infeasible, *(e for e in campaign.infeasible if e.arm == arm)]
    return sorted({e.level for e in entries if e.workload in (None, workload)})


def comparison_curves(
    measured: Measured, summary: Summary, spec: ComparisonSpec
) -> dict[str, tuple[CurveFit | None, CurveFit | None, CurveComparison | None]]:
    """Fit both arms' curves and compare them where both were measured."""
    a = arm_curves(measured, summary, spec.baseline)
    b = arm_curves(measured, summary, str(spec.candidate))
    out = {}
    for workload in sorted({*a, *b}):
        one, two = a.get(workload), b.get(workload)
        both = None
        if one is not None and two is not None:
            both = compare_curves(one, two, _grid(one, two))
        out[workload] = (one, two, both)
    return out


def _grid(one: CurveFit, two: CurveFit, points: int = 25) -> list[float]:
    low, high = max(one.x_min, two.x_min), min(one.x_max, two.x_max)
    if low >= high:
        return [low] if low == high else []
    ratio = (high / low) ** (1 / (points - 1))
    # The last point is the limit itself: a rounding error would put it outside the range.
    return [low * ratio**i for i in range(points - 1)] + [high]


def curve_sections(
    curves: Mapping[str, tuple[CurveFit | None, CurveFit | None, CurveComparison | None]],
) -> dict[str, Any]:
    """Turn curves into plain values."""
    return {
        workload: {"baseline": _fit(one), "candidate": _fit(two), "comparison": _comparison(both)}
        for workload, (one, two, both) in curves.items()
    }


def _fit(fit: CurveFit | None) -> dict[str, Any] | None:
    if fit is None:
        return None
    return {
        "model": fit.model, "params": dict(fit.params), "lack_of_fit_p": fit.lack_of_fit_p,
        "max_error_ratio": fit.max_error_ratio, "x_min": fit.x_min, "x_max": fit.x_max,
        "n_sweeps": fit.n_sweeps, "infeasible": list(fit.infeasible),
        "cautions": list(fit.cautions),
    }  # fmt: skip


def _comparison(both: CurveComparison | None) -> dict[str, Any] | None:
    if both is None:
        return None
    return {
        "at": list(both.at), "ratio": list(both.ratio), "low": list(both.low),
        "high": list(both.high), "confidence": both.confidence, "margin": both.margin,
        "spans": [str(span) for span in both.spans], "crossover": both.crossover,
        "cautions": list(both.cautions),
    }  # fmt: skip


def energy_section(summary: Summary, spec: ComparisonSpec) -> dict[str, Any]:
    """Give energy and power of each arm and level: mean over runs, and how many runs have it."""
    frame = summary.frame
    wanted = frame[
        (frame.window == "steady")
        & frame.metric.isin(["power_w", "energy_j", "energy_per_output_token_j"])
        & frame.arm.isin([spec.baseline, str(spec.candidate)])
    ]
    out: dict[str, Any] = {}
    for (arm, workload, level, metric), rows in wanted.groupby(
        ["arm", "workload", "level", "metric"]
    ):
        known = rows.value.dropna()
        reasons = sorted({c for codes in rows[rows.value.isna()].cautions for c in codes})
        entry = {
            "level": json.loads(str(level)), "metric": metric, "workload": workload,
            "mean": float(known.mean()) if len(known) else None, "n": len(known),
            "unit": rows.unit.iloc[0], "missing": reasons if len(known) < len(rows) else [],
        }  # fmt: skip
        out.setdefault(str(arm), []).append(entry)
    return out


def health_section(health: Health, spec: ComparisonSpec) -> list[dict[str, Any]]:
    """Give the health rows of both arms."""
    frame = health.frame
    own = frame[frame.arm.isin([spec.baseline, str(spec.candidate)])]
    own = own.astype(object).where(own.map(lambda v: isinstance(v, list) or pd.notna(v)), None)
    rows: list[dict[str, Any]] = own.to_dict("records")
    for row in rows:
        row["level"] = json.loads(row["level"])
    return rows
