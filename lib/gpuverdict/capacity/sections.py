"""The `curves` and `capacity` sections of `verdicts.json`, as plain values and estimates."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from gpuverdict.campaign import Campaign
from gpuverdict.capacity.arms import (
    arm_curve,
    arm_infeasible,
    arm_memory,
    arm_rooflines,
    arm_slo,
)
from gpuverdict.capacity.memory import MemoryPlan
from gpuverdict.capacity.roofline import Roofline
from gpuverdict.capacity.slo import SloCapacity, compare_loads
from gpuverdict.curves import CurveFit, compare_curves
from gpuverdict.errors import Caution
from gpuverdict.text import caution

__all__ = ["capacity_section", "common_grid", "curves_section"]

_GRID_POINTS = 25  # enough for the eye: a ratio of two curves bends once


def curves_section(
    frame: pd.DataFrame, campaign: Campaign, baseline: str, candidate: str
) -> dict[str, Any]:
    """Return the `curves` section of `verdicts.json`: each workload's fits, band and crossover."""
    section: dict[str, Any] = {}
    for workload in campaign.all_workloads():
        for driver in ("concurrency", "decode_batch"):
            fits = {
                arm: arm_curve(frame, campaign, arm, workload, against=driver)
                for arm in (baseline, candidate)
            }
            entry: dict[str, Any] = {
                role: _curve_entry(fits[arm])
                for role, arm in (("baseline", baseline), ("candidate", candidate))
            }
            a, b = fits[baseline], fits[candidate]
            if a is not None and b is not None:
                compared = compare_curves(a, b, common_grid(a, b))
                entry["ratio"] = {
                    "at": list(compared.at), "ratio": list(compared.ratio),
                    "low": list(compared.low), "high": list(compared.high),
                    "confidence": compared.confidence,
                }  # fmt: skip
                entry["spans"] = [
                    {"start": s.start, "end": s.end, "faster": s.faster,
                     "beyond_margin": s.beyond_margin}
                    for s in compared.spans
                ]  # fmt: skip
                entry["crossover"] = compared.crossover
                entry["cautions"] = list(compared.cautions)
            section.setdefault(workload, {})[driver] = entry
    return section


def common_grid(one: CurveFit, two: CurveFit) -> list[float]:
    """Return batch sizes, evenly spaced on the log scale, over the range both curves measured."""
    low, high = max(one.x_min, two.x_min), min(one.x_max, two.x_max)
    if low >= high:
        return []
    step = (math.log(high) - math.log(low)) / (_GRID_POINTS - 1)
    # The ends are the limits themselves: a rounding error would put them outside.
    return [low, *(math.exp(math.log(low) + i * step) for i in range(1, _GRID_POINTS - 1)), high]


def _curve_entry(fit: CurveFit | None) -> dict[str, Any] | None:
    if fit is None:
        return None
    return {
        "model": fit.model, "params": dict(fit.params), "lack_of_fit_p": fit.lack_of_fit_p,
        "max_error_ratio": fit.max_error_ratio, "x_min": fit.x_min, "x_max": fit.x_max,
        "n_sweeps": fit.n_sweeps, "infeasible": list(fit.infeasible),
        "levels": [{"batch": x.batch, "value_s": x.value_s, "n": x.n} for x in fit.levels],
        "cautions": list(fit.cautions),
    }  # fmt: skip


def capacity_section(
    frame: pd.DataFrame,
    campaign: Campaign,
    baseline: str,
    candidate: str,
    *,
    device_memory_mib: Mapping[str, float | None] | None = None,
) -> dict[str, Any]:
    """Return the `capacity` section of `verdicts.json`: SLO load, memory, limits of both arms."""
    section: dict[str, Any] = {}
    reported = device_memory_mib or {}
    for workload in campaign.all_workloads():
        arms: dict[str, Any] = {}
        carried = {}
        for role, arm in (("baseline", baseline), ("candidate", candidate)):
            memory = reported.get(arm)
            carried[role] = arm_slo(frame, campaign, arm, workload)
            arms[role] = {
                "slo": [_slo_entry(c) for c in carried[role]],
                "infeasible": arm_infeasible(campaign, arm, workload),
                "memory": _memory_entry(
                    arm_memory(campaign, arm, workload, device_memory_mib=memory)
                ),
                "rooflines": [
                    _roofline_entry(level, line)
                    for level, line in arm_rooflines(
                        frame, campaign, arm, workload, device_memory_mib=memory
                    )
                ],
            }
        section[workload] = {
            **arms,
            "load_ratio": [
                {"kind": a.kind, "ratio": compare_loads(a, b)}
                for a in carried["baseline"]
                for b in carried["candidate"]
                if a.kind == b.kind
            ],
            "statement": _only_one(
                {arm: arm_infeasible(campaign, arm, workload) for arm in (baseline, candidate)},
                {arm: _levels_run(frame, arm, workload) for arm in (baseline, candidate)},
            ),
        }
    return section


def _slo_entry(c: SloCapacity) -> dict[str, Any]:
    return {
        "kind": c.kind, "highest_met": c.highest_met, "lowest_missed": c.lowest_missed,
        "load": c.load, "limiting": c.limiting,
        "goodput_requests_per_s": c.goodput_requests_per_s, "cautions": list(c.cautions),
    }  # fmt: skip


def _memory_entry(plan: MemoryPlan | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    return {
        "fits": plan.fits, "memory_bytes": plan.memory_bytes, "weights_bytes": plan.weights_bytes,
        "kv_bytes_per_token": plan.kv_bytes_per_token, "rows": plan.table.to_dict("records"),
        "cautions": list(plan.cautions),
    }  # fmt: skip


def _roofline_entry(level: Mapping[str, float], line: Roofline) -> dict[str, Any]:
    return {
        "level": dict(level), "phase": line.phase, "measured_s": line.measured_s,
        "bound_s": line.bound_s, "binds": line.binds, "mbu_ratio": line.mbu_ratio,
        "mfu_ratio": line.mfu_ratio, "impossible": line.impossible,
        "assumptions": list(line.assumptions), "cautions": list(line.cautions),
    }  # fmt: skip


def _levels_run(frame: pd.DataFrame, arm: str, workload: str) -> set[float]:
    """Levels at which an arm has numbers of its own."""
    own = frame[(frame["arm"] == arm) & (frame["workload"] == workload) & frame["value"].notna()]
    texts = own["level"].dropna().unique()
    return {float(value) for text in texts for value in json.loads(text).values()}


def _only_one(
    infeasible: Mapping[str, list[float]], ran: Mapping[str, set[float]]
) -> Caution | None:
    """Say the lowest level that one arm cannot run and the other did: an answer of its own."""
    found = [
        (level, other, short)
        for short, other in itertools.permutations(infeasible)
        for level in infeasible[short]
        if level in ran[other] and level not in infeasible[other]
    ]
    if not found:
        return None
    level, other, short = min(found)
    return caution("only_one_arm_runs", arm=other, other=short, level=level)
