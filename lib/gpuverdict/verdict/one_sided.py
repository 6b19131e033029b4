"""Levels that only one arm ran, or none: an answer of their own, a computed bound, or a gap."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuverdict import stats
from gpuverdict.campaign import Workload
from gpuverdict.design import Comparability, memory_need, step_floor_s
from gpuverdict.errors import Caution
from gpuverdict.measured import Measured, MeasuredRun, level_label
from gpuverdict.schema import METRICS
from gpuverdict.summary.index import Rows
from gpuverdict.text import caution
from gpuverdict.verdict.cells import Cell, CellKey, run_values

__all__ = ["infeasible_levels", "one_sided_cell"]

Place = tuple[str, str]


def infeasible_levels(measured: Measured, names: tuple[str, str]) -> dict[Place, dict[str, str]]:
    """(workload, level) -> arm -> why it cannot run there, as the campaign declares it."""
    found: dict[Place, dict[str, str]] = defaultdict(dict)
    campaign = measured.campaign
    for name in names:
        entries = [*campaign.arms[name].infeasible]
        entries += [e for e in campaign.infeasible if e.arm == name]
        for entry in entries:
            for workload, spec in campaign.all_workloads().items():
                if entry.workload not in (None, workload):
                    continue
                kind = "rate_requests_per_s" if spec.load == "open" else "concurrency"
                whole = kind == "concurrency" and entry.level == int(entry.level)
                level = int(entry.level) if whole else float(entry.level)
                found[(workload, json.dumps({kind: level}))][name] = entry.reason
    return found


def one_sided_cell(
    key: CellKey,
    level: Mapping[str, float],
    place: Rows,
    names: tuple[str, str],
    runs: tuple[Sequence[MeasuredRun], Sequence[MeasuredRun]],
    infeasible: Mapping[str, str],
    comparability: Comparability,
    measured: Measured,
) -> Cell:
    """Decide a level at which the arms cannot be set side by side.

    Rung 6 where one arm ran it and the other ran other levels, or cannot run this one; rung 7 where
    the other arm was never measured and a bound can be computed for it; else rung 8. The word is
    `not comparable` on all of them.
    """
    have = [bool(arm) for arm in runs]
    shown = place.get((key.metric, key.statistic, "steady")) or place.get(
        (key.metric, key.statistic, "whole_run"), []
    )
    values = [run_values(shown, arm) for arm in runs]
    said: list[Caution] = [
        caution("infeasible", arm=arm, level=level_label(level), reason=reason)
        for arm, reason in infeasible.items()
    ]
    modifiers = [*comparability.modifiers]
    rung = 8
    lacking = [name for name, ran in zip(names, have, strict=True) if not ran]
    measured_elsewhere = all(name in infeasible or measured.runs_of(name) for name in lacking)
    bounds = [b for name in lacking if (b := _bound(measured, name, key.workload, level))]
    if any(have) and measured_elsewhere:
        rung = 6
        said += [
            caution("only_one_arm", arm=names[0] if have[0] else names[1], other=name,
                    level=level_label(level))
            for name in lacking if name not in infeasible
        ]  # fmt: skip
        said += bounds
    elif bounds:
        rung = 7
        modifiers.append("computed, not measured")
        said += bounds
        if key.metric in ("tpot_s", "decode_step_s"):
            said += [
                caution("step_floor", arm=name, floor_s=floor)
                for name in lacking
                if (floor := step_floor_s(measured.campaign, name)) is not None
            ]
    if not said:
        said = [
            caution("not_measured_level", arm=", ".join(lacking or names), level=level_label(level),
                    metric=METRICS[key.metric].label)
        ]  # fmt: skip
    elif rung == 7 and (could := [name for name in lacking if name not in infeasible]):
        # Nobody is asked to run what is declared not to run.
        said.append(
            caution("not_measured_level", arm=", ".join(could), level=level_label(level),
                    metric=METRICS[key.metric].label)
        )  # fmt: skip
    known = [[v for _, v in arm if v is not None and v > 0] for arm in values]
    plain = stats.compare_arms(
        known[0], known[1], metric=key.metric, statistic=key.statistic, refusals=said,
        modifiers=modifiers,
    )  # fmt: skip
    kept = tuple(c for c in plain.cautions if c.code != "arm_empty")
    return Cell(
        key=key, level=level, comparison=replace(plain, ratio=None, cautions=kept), rung=rung,
        window=None, baseline_runs=tuple(values[0]), candidate_runs=tuple(values[1]),
    )  # fmt: skip


def _bound(
    measured: Measured, name: str, workload: str, level: Mapping[str, float]
) -> Caution | None:
    """What must be held at a level of a closed loop, against the arm's cards."""
    spec: Workload = measured.campaign.all_workloads()[workload]
    streams = level.get("concurrency") or level.get("batch")
    prompt = spec.input_tokens or _usual(measured, workload, "requested_input_tokens")
    output = spec.output_tokens or _usual(measured, workload, "requested_output_tokens")
    tokens = None
    if streams and prompt and output:
        tokens = streams * (prompt + output)
    need = memory_need(measured.campaign, name, tokens)
    if need.fits is None or need.weights is None or need.memory is None:
        return None
    code = "memory_fits" if need.fits else "memory_exceeded"
    return caution(code, arm=name, level=level_label(level), weights_gb=need.weights / 1e9,
                   kv_gb=(need.kv or 0.0) / 1e9, memory_gb=need.memory / 1e9)  # fmt: skip


def _usual(measured: Measured, workload: str, name: str) -> float | None:
    """What the tool was asked for, where the campaign does not say."""
    held = [
        run.stored.info[name] for run in measured.runs
        if run.workload == workload and run.stored.info.get(name)
    ]  # fmt: skip
    return float(max(held)) if held else None
