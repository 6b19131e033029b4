"""What a comparison says beside its cells: curves, energy, health."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from gpuverdict.align import place
from gpuverdict.campaign import ComparisonSpec
from gpuverdict.capacity import (
    arm_card_use,
    arm_curve,
    arm_watermarks,
    common_grid,
    memory_growth,
    trace_reservations,
)
from gpuverdict.curves import CurveComparison, CurveFit, compare_curves
from gpuverdict.energy import measure_idle, phase_energy, traced_gpus
from gpuverdict.health import Health
from gpuverdict.measured import Measured
from gpuverdict.summary import Summary

__all__ = ["comparison_curves", "energy_section", "health_section"]


def comparison_curves(
    measured: Measured, summary: Summary, spec: ComparisonSpec
) -> dict[str, tuple[CurveFit | None, CurveFit | None, CurveComparison | None]]:
    """Fit decode time against observed concurrency in both arms, and compare where both were run.

    Returns
    -------
    dict
        workload -> (baseline fit, candidate fit, comparison); None where there is no curve.
    """
    out = {}
    for workload in measured.campaign.all_workloads():
        one, two = (
            arm_curve(summary.frame, measured.campaign, arm, workload)
            for arm in (spec.baseline, str(spec.candidate))
        )
        both = None
        if one is not None and two is not None:
            both = compare_curves(one, two, common_grid(one, two))
        if one is not None or two is not None:
            out[workload] = (one, two, both)
    return out


def energy_section(
    measured: Measured, summary: Summary, health: Health, spec: ComparisonSpec
) -> dict[str, Any]:
    """Give the energy of both arms by level and by phase.

    Returns
    -------
    dict
        arm -> `levels` (mean over runs of power, energy and energy a token, with the number of runs
        that have it), `idle_w` and `phases` (`energy.phase_energy`; null values say why), `cards`
        (node peak and imbalance), `memory` (marks and growth) and `trace_cautions`.
    """
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
        out.setdefault(str(arm), {"levels": []})["levels"].append(entry)
    for arm in (spec.baseline, str(spec.candidate)):
        out.setdefault(arm, {"levels": []}).update(_phases(measured, arm))
        out[arm].update(_cards(measured, summary, health, arm))
    return out


def _cards(measured: Measured, summary: Summary, health: Health, arm: str) -> dict[str, Any]:
    """Node power, imbalance, memory marks and growth of an arm, by workload where they have one."""
    uses, marks = {}, []
    for workload in measured.campaign.all_workloads():
        use = arm_card_use(measured, summary, arm, workload)
        uses[workload] = {
            "node_peak_w": use.node_peak_w, "supply_limit_w": use.supply_limit_w,
            "imbalance": dict(use.imbalance), "cautions": list(use.cautions),
        }  # fmt: skip
        marks += [
            {
                "workload": workload, "gpu": card.gpu, "level": dict(card.level),
                "total_mib": card.total_mib, "after_load_mib": card.after_load,
                "one_request_mib": card.one_request, "peak_mib": card.peak,
                "standing": card.standing,
            }
            for card in arm_watermarks(measured, arm, workload)
        ]  # fmt: skip
    growth = [
        {
            "run_id": entry.run.run_id, "gpu": entry.leak.gpu if entry.leak else None,
            "alarm": entry.leak.alarm if entry.leak else None,
            "mib_per_1000_requests": entry.leak and entry.leak.growth_mib_per_1000_requests,
            "requests_until_full": entry.leak and entry.leak.requests_until_full,
            "seconds_until_full": entry.leak and entry.leak.seconds_until_full,
            "reason": entry.reason,
        }
        for entry in memory_growth(measured, health, arm)
    ]  # fmt: skip
    said = list(trace_reservations(measured, arm))
    return {"cards": uses, "memory": {"marks": marks, "growth": growth}, "trace_cautions": said}


def _phases(measured: Measured, arm: str) -> dict[str, Any]:
    """Energy by phase from the first trace that lies beside runs of the arm."""
    runs = [run.stored.load() for run in measured.runs_of(arm)]
    probes = [probe.load() for probe in measured.probes[arm]]
    for trace in measured.traces[arm]:
        if traced_gpus(trace) != measured.campaign.arms[arm].gpus:
            continue
        beside = [run for run in runs if place(run, trace)[0] is not None]
        if beside:
            idle = measure_idle([*beside, *probes], trace)
            return {"idle_w": idle, "phases": phase_energy(beside, trace, idle, probes=probes)}
    return {"idle_w": None, "phases": {}}


def health_section(health: Health, spec: ComparisonSpec) -> list[dict[str, Any]]:
    """Give the health rows of both arms."""
    frame = health.frame
    if frame.empty:
        return []
    own = frame[frame.arm.isin([spec.baseline, str(spec.candidate)])]
    own = own.astype(object).where(own.map(lambda v: isinstance(v, list) or pd.notna(v)), None)
    rows: list[dict[str, Any]] = own.to_dict("records")
    for row in rows:
        row["level"] = json.loads(row["level"])
    return rows
