"""A whole comparison: every cell, its families, the headlines, and what would decide the rest."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from gpuverdict import stats
from gpuverdict.campaign import ComparisonSpec
from gpuverdict.design import Comparability, cell_design, compare_designs
from gpuverdict.errors import Caution
from gpuverdict.health import Health
from gpuverdict.measured import Measured, MeasuredRun, level_label
from gpuverdict.schema import METRICS
from gpuverdict.stats import Comparison
from gpuverdict.summary import Summary
from gpuverdict.text import caution
from gpuverdict.units import format_ratio
from gpuverdict.verdict.cells import (
    TESTED,
    Cell,
    CellKey,
    decide_cell,
    run_values,
    with_client_floor,
)

__all__ = ["Action", "Verdict", "judge"]

_FLOORS = {"ttft_s": 0.20, "scheduling_excess_s": 0.20}
_OTHER_FLOOR = 0.10
_WORDS = ("faster", "slower", "better", "worse", "equivalent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing to measure next, and how many cells it would decide."""

    code: str
    values: Mapping[str, Any]
    cells: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Everything one comparison says."""

    campaign: str
    comparison: str
    baseline: str
    candidate: str
    comparability: Comparability
    headline: tuple[Cell, ...]
    cells: tuple[Cell, ...]
    actions: tuple[Action, ...] = ()
    sections: Mapping[str, Any] = field(default_factory=dict)

    def cell(
        self, metric: str, statistic: str, level: str | None, workload: str | None = None
    ) -> Cell | None:
        """Find a cell by its key."""
        for cell in (*self.cells, *self.headline):
            if (cell.key.metric, cell.key.statistic, cell.key.level) == (
                metric,
                statistic,
                level,
            ) and (workload is None or cell.key.workload == workload):
                return cell
        return None

    def __str__(self) -> str:
        words: dict[str, int] = defaultdict(int)
        for cell in self.cells:
            words[cell.verdict] += 1
        counted = ", ".join(f"{n} {word}" for word, n in sorted(words.items()))
        return f"{self.comparison}: {self.candidate} against {self.baseline}: {counted}"


def judge(
    measured: Measured,
    summary: Summary,
    spec: ComparisonSpec,
    *,
    identity: Mapping[str, Sequence[Caution]] | None = None,
    health: Health | None = None,
) -> Verdict:
    """Decide a comparison.

    Parameters
    ----------
    measured, summary
        The campaign as measured.
    spec : ComparisonSpec
        One expanded entry of `campaign.comparisons`.
    identity : mapping, optional
        arm -> cautions of the device check.
    health : Health, optional
        Drifting runs make their arm undecided; disturbed ones are named, and the verdict is given
        with and without them.

    Returns
    -------
    Verdict

    Notes
    -----
    The Benjamini-Hochberg family is one (metric, statistic) over workloads and levels; Holm runs
    over the headlines. Equivalence is tested first and on the unadjusted interval.
    """
    comparability = compare_designs(measured, summary, spec, identity or {})
    cells = _families(_cells(measured, summary, spec, comparability))
    if health:
        cells = [_with_drift(c, measured, spec, health.drifting()) for c in cells]
    floors = _client_floors(measured, summary, spec, comparability)
    if floors is not None:
        cells = [with_client_floor(c, _floor(c, floors)) for c in cells]
    cells = _sensitivity(summary, measured, spec, cells)
    if health:
        cells = [_with_disturbances(c, measured, spec, health) for c in cells]
    cells = [_with_tipping_point(c, comparability) for c in cells]
    headline = _headlines(measured, spec, comparability, cells)
    return Verdict(
        campaign=measured.campaign.campaign,
        comparison=str(spec.name),
        baseline=spec.baseline,
        candidate=str(spec.candidate),
        comparability=comparability,
        headline=tuple(headline),
        cells=tuple(cells),
        actions=tuple(_actions(measured, spec, cells)),
    )


def _by_level(runs: Sequence[MeasuredRun]) -> dict[tuple[str, str], list[MeasuredRun]]:
    found: dict[tuple[str, str], list[MeasuredRun]] = defaultdict(list)
    for run in runs:
        found[(run.workload, run.level_key)].append(run)
    return found


def _cells(
    measured: Measured, summary: Summary, spec: ComparisonSpec, comparability: Comparability,
) -> list[Cell]:  # fmt: skip
    names = (spec.baseline, str(spec.candidate))
    by_level = [_by_level(measured.runs_of(name)) for name in names]
    infeasible = _infeasible(measured, names)
    places = sorted(
        {*by_level[0], *by_level[1], *infeasible},
        key=lambda p: (p[0], sorted(json.loads(p[1]).items())),
    )
    own = summary.frame[summary.frame.arm.isin(names)]
    grouped = dict(list(own.groupby(["workload", "level", "metric", "statistic"], sort=False)))
    empty = own.iloc[0:0]
    present = {(m, s) for (_, _, m, s), rows in grouped.items() if rows.value.notna().any()}
    wanted = [
        pair for pair in TESTED if pair in present or ".".join(pair) in measured.campaign.primary
    ]
    cells: list[Cell] = []
    for workload, level_key in places:
        runs = (
            by_level[0].get((workload, level_key), []),
            by_level[1].get((workload, level_key), []),
        )
        level = json.loads(level_key)
        out = infeasible.get((workload, level_key), {})
        if not runs[0] or not runs[1] or out:
            cells += [
                _one_sided(CellKey(workload=workload, level=level_key, metric=m, statistic=s), level,
                           grouped.get((workload, level_key, m, s), empty), names, runs, out,
                           comparability)
                for m, s in wanted
            ]  # fmt: skip
            continue
        design = cell_design(summary, runs[0], runs[1])
        for metric, statistic in wanted:
            key = CellKey(workload=workload, level=level_key, metric=metric, statistic=statistic)
            options = _options(measured, summary, spec, key, runs)
            rows = grouped.get((workload, level_key, metric, statistic), empty)
            if rows.value.notna().sum() == 0 and metric == "prefill_tokens_per_s":
                continue  # only a run with one request at a time has it
            cells.append(decide_cell(key, level, rows, runs, comparability, design, options))
    return cells


def _infeasible(
    measured: Measured, names: tuple[str, str]
) -> dict[tuple[str, str], dict[str, str]]:
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    campaign = measured.campaign
    for name in names:
        entries = [*campaign.arms[name].infeasible]
        entries += [e for e in campaign.infeasible if e.arm == name]
        for entry in entries:
            for workload, spec in campaign.all_workloads().items():
                if entry.workload not in (None, workload):
                    continue
                kind = "rate_requests_per_s" if spec.load == "open" else "concurrency"
                level = int(entry.level) if kind == "concurrency" else float(entry.level)
                found[(workload, json.dumps({kind: level}))][name] = entry.reason
    return found


def _one_sided(
    key: CellKey, level: Mapping[str, float], rows: pd.DataFrame, names: tuple[str, str],
    runs: tuple[Sequence[MeasuredRun], ...], infeasible: Mapping[str, str],
    comparability: Comparability,
) -> Cell:  # fmt: skip
    have = [bool(arm) for arm in runs]
    steady = rows[rows.window == "steady"]
    shown = steady if not steady.empty else rows[rows.window == "whole_run"]
    values = [run_values(shown, arm) for arm in runs]
    cautions = [
        caution("infeasible", arm=arm, level=level_label(level), reason=reason)
        for arm, reason in infeasible.items()
    ]
    rung = 8
    if any(have):
        rung = 6
        arm = names[0] if have[0] else names[1]
        other = names[1] if have[0] else names[0]
        if other not in infeasible and not all(have):
            cautions.append(caution("only_one_arm", arm=arm, other=other, level=level_label(level)))
    known = [[v for _, v in arm if v is not None and v > 0] for arm in values]
    plain = stats.compare_arms(
        known[0], known[1], metric=key.metric, statistic=key.statistic,
        refusals=cautions or [caution("not_measured", metric=METRICS[key.metric].label,
                                      arm=" and ".join(names), need="")],
        modifiers=comparability.modifiers,
    )  # fmt: skip
    return Cell(
        key=key, level=level, comparison=replace(plain, ratio=None), rung=rung, window=None,
        baseline_runs=tuple(values[0]), candidate_runs=tuple(values[1]),
    )  # fmt: skip


def _options(
    measured: Measured, summary: Summary, spec: ComparisonSpec, key: CellKey,
    runs: tuple[Sequence[MeasuredRun], ...],
) -> dict[str, Any]:  # fmt: skip
    campaign = measured.campaign
    arms = (campaign.arms[spec.baseline], campaign.arms[str(spec.candidate)])
    margin = campaign.margins.get(f"{key.metric}.{key.statistic}", campaign.margins.get(key.metric))
    floor = None
    if campaign.noise_floor and key.metric in campaign.noise_floor.log_sd:
        stored = campaign.noise_floor
        floor = stats.NoiseFloor(
            sd_log=stored.log_sd[key.metric], n=stored.runs, source=stored.campaign
        )
    lengths = [summary.facts[r.key].window.length_s for arm in runs for r in arm]
    failures = None
    if key.metric == "error_ratio":
        counts = [[_failures(summary, r) for r in arm] for arm in runs]
        failures = tuple(
            [pair[i] for pair in counts[arm]] for arm in (0, 1) for i in (0, 1)
        )  # fmt: skip
    return {
        "margin": margin,
        "paired": spec.paired or campaign.design.paired,
        "noise_floor": floor,
        "equal_n": spec.name,
        "arms": (spec.baseline, str(spec.candidate)),
        "same_card": bool(arms[0].cards) and arms[0].cards == arms[1].cards,
        "short_window": any(length is None or length < 10 for length in lengths),
        "failures": failures,
    }


def _failures(summary: Summary, run: MeasuredRun) -> tuple[int, int]:
    counts = summary.facts[run.key].n_by_status
    return counts.get("error", 0) + counts.get("empty", 0), sum(counts.values())


def _families(cells: Sequence[Cell]) -> list[Cell]:
    families: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, cell in enumerate(cells):
        families[(cell.key.metric, cell.key.statistic)].append(number)
    out = list(cells)
    for numbers in families.values():
        adjusted = stats.adjust([cells[i].comparison for i in numbers], "bh")
        flip = stats.sign_flip(adjusted)
        for i, comparison in zip(numbers, adjusted, strict=True):
            if flip.flips and comparison.p_value is not None:
                comparison = replace(comparison, modifiers=(*comparison.modifiers, "mixed"))
            # `adjust` decides again by p alone; what rung 4 withheld stays withheld.
            out[i] = replace(cells[i], comparison=comparison)
    return out


def _floor(cell: Cell, floors: Mapping[tuple[str, str | None], float]) -> float:
    known = floors.get((cell.key.metric, cell.key.level))
    return known if known is not None else _FLOORS.get(cell.key.metric, _OTHER_FLOOR)


def _client_floors(
    measured: Measured, summary: Summary, spec: ComparisonSpec, comparability: Comparability
) -> dict[tuple[str, str | None], float] | None:
    """Say how far two tools differ on one card in this campaign, where it has such a pair.

    None when both arms used one tool. The floor is the upper 95 % limit of the absolute log ratio.
    """
    if "confounded: client" not in comparability.modifiers:
        return None
    campaign = measured.campaign
    floors: dict[tuple[str, str | None], float] = {}
    arms = list(campaign.arms)
    for i, a in enumerate(arms):
        for b in arms[i + 1 :]:
            one, two = campaign.arms[a], campaign.arms[b]
            same = (one.gpu, one.gpus, one.cards, one.precision, one.tensor_parallel) == (
                two.gpu, two.gpus, two.cards, two.precision, two.tensor_parallel)  # fmt: skip
            if not same or {a, b} == {spec.baseline, spec.candidate} or not one.cards:
                continue
            frame = summary.frame[summary.frame.window == "whole_run"]
            for (metric, level), rows in frame[frame.arm.isin([a, b])].groupby(["metric", "level"]):
                rows = rows[rows.statistic.isin(["p50", "value"]) & rows.value.notna()]
                sides = [rows[rows.arm == arm].value.tolist() for arm in (a, b)]
                if min(map(len, sides)) < 2:
                    continue
                found = stats.compare_arms(*sides, metric=str(metric))
                if found.low and found.high:
                    widest = max(abs(math.log(found.low)), abs(math.log(found.high)))
                    floors[(str(metric), str(level))] = math.expm1(widest)
    return floors


def _sensitivity(
    summary: Summary, measured: Measured, spec: ComparisonSpec, cells: Sequence[Cell]
) -> list[Cell]:
    """Say where half or double the warm-up cut would change the word."""
    frame = summary.frame
    words: dict[str, dict[CellKey, str]] = {}
    for window in ("half_cut", "double_cut"):
        rows_of = dict(
            list(
                frame[frame.window == window].groupby(["workload", "level", "metric", "statistic"])
            )
        )
        tested = []
        for cell in cells:
            key = cell.key
            rows = rows_of.get((key.workload, key.level, key.metric, key.statistic))
            if rows is None or cell.window != "steady" or cell.rung > 2:
                continue
            sides = [
                rows[rows.arm == arm].value.dropna().tolist()
                for arm in (spec.baseline, spec.candidate)
            ]
            if min(map(len, sides)) < 2:
                continue
            tested.append((key, stats.compare_arms(*sides, metric=key.metric, statistic=key.statistic,
                                                   margin=cell.comparison.margin,
                                                   n_requests_min=int(rows.n.min()))))  # fmt: skip
        words[window] = {}
        for metric in {(k.metric, k.statistic) for k, _ in tested}:
            family = [(k, c) for k, c in tested if (k.metric, k.statistic) == metric]
            for (key, _), again in zip(family, stats.adjust([c for _, c in family]), strict=True):
                words[window][key] = again.verdict
    out = []
    for cell in cells:
        moved = [
            caution(
                "verdict_moves_with_cut", cut=window.split("_")[0], word=words[window][cell.key]
            )
            for window in words
            if words[window].get(cell.key, cell.verdict) != cell.verdict
        ]
        comparison = cell.comparison
        out.append(replace(cell, comparison=replace(comparison, cautions=(*comparison.cautions, *moved)))
                   if moved else cell)  # fmt: skip
    return out


def _with_drift(
    cell: Cell, measured: Measured, spec: ComparisonSpec, drifting: Mapping[str, Sequence[str]]
) -> Cell:
    """Withdraw the word where two runs of an arm drift in the metric under test.

    The interval and the p stay: they are what the word would have rested on.
    """
    if cell.comparison.p_value is None:
        return cell
    c = cell.comparison
    for arm in (spec.baseline, str(spec.candidate)):
        n = sum(
            cell.key.metric in drifting.get(run.key, ())
            for run in measured.runs_of(arm)
            if (run.workload, run.level_key) == (cell.key.workload, cell.key.level)
        )
        if n >= 2:
            c = replace(
                c,
                verdict="inconclusive",
                may_be_equivalent=False,
                cautions=(*c.cautions, caution("drifting_arm", arm=arm, n=n)),
            )
        if n and "drift" not in c.modifiers:
            c = replace(c, modifiers=(*c.modifiers, "drift"))
    return replace(cell, comparison=c)


def _with_disturbances(
    cell: Cell, measured: Measured, spec: ComparisonSpec, health: Health
) -> Cell:
    """Name the disturbed runs of a cell, and say what it reads without them."""
    stalled: list[set[int]] = []
    said: list[Caution] = []
    for arm in (spec.baseline, str(spec.candidate)):
        out = set()
        for run in measured.runs_of(arm):
            found = health.runs[run.key]
            if (run.workload, run.level_key) == (
                cell.key.workload,
                cell.key.level,
            ) and found.disturbed:
                out.add(run.repeat_no)
                at = found.disturbance.at_s if found.disturbance else None
                said.append(caution("disturbed_run", arm=arm, repeat=run.repeat_no, at_s=at or 0.0))
        stalled.append(out)
    if not said:
        return cell
    c = cell.comparison
    sides = [
        [v for r, v in runs if r not in out and v is not None]
        for runs, out in zip((cell.baseline_runs, cell.candidate_runs), stalled, strict=True)
    ]
    if cell.rung <= 4 and c.p_value is not None and c.metric != "error_ratio":
        without = stats.compare_arms(
            *sides, metric=c.metric, statistic=c.statistic, margin=c.margin
        )
        said.append(
            caution("without_disturbed", word=without.verdict,
                    ratio=format_ratio(without.ratio, without.low, without.high))
        )  # fmt: skip
    return replace(
        cell,
        comparison=replace(c, modifiers=(*c.modifiers, "disturbed"), cautions=(*c.cautions, *said)),
    )


def _with_tipping_point(cell: Cell, comparability: Comparability) -> Cell:
    if comparability.level != "caveats" or cell.verdict not in _WORDS:
        return cell
    point = stats.tipping_point(cell.comparison)
    if point.factor_ratio is None:
        return cell
    said = caution(
        "tipping_point", metric=METRICS[cell.key.metric].label, effect_ratio=point.factor_ratio
    )
    return replace(
        cell, comparison=replace(cell.comparison, cautions=(*cell.comparison.cautions, said))
    )


def _headlines(
    measured: Measured, spec: ComparisonSpec, comparability: Comparability, cells: Sequence[Cell]
) -> list[Cell]:
    compared: list[tuple[CellKey, Comparison]] = []
    for name in measured.campaign.primary:
        metric, _, statistic = name.partition(".")
        statistic = statistic or "value"
        for workload in measured.campaign.all_workloads():
            own = [
                c
                for c in cells
                if (c.key.metric, c.key.statistic, c.key.workload) == (metric, statistic, workload)
            ]
            usable = [c for c in own if c.rung <= 4]
            repeats = sorted(
                {r for c in usable for side in (c.baseline_runs, c.candidate_runs) for r, _ in side}
            )
            sides: list[dict[Any, list[float | None]]] = [{}, {}]
            for cell in usable:
                for side, runs in zip(
                    sides, (cell.baseline_runs, cell.candidate_runs), strict=True
                ):
                    held = dict(runs)
                    wanted = [
                        r
                        for r in repeats
                        if any(r in dict(s) for s in _same_side(usable, runs, cell))
                    ]
                    side[cell.key.level] = [held.get(r) for r in wanted]
            refusals = list(comparability.refused)
            if metric in comparability.blocked:
                refusals.append(comparability.blocked[metric])
            design = "sweep" if _is_sweep(measured, spec) else "cells"
            if not usable and not refusals:
                refusals = [caution("not_measured", metric=METRICS[metric].label,
                                    arm=f"{spec.baseline} and {spec.candidate}", need="")]  # fmt: skip
            compared.append((
                CellKey(workload=workload, level=None, metric=metric, statistic=statistic),
                stats.headline(sides[0], sides[1], metric=metric, statistic=statistic,
                               design=design, modifiers=comparability.modifiers,  # type: ignore[arg-type]
                               margin=measured.campaign.margins.get(name, measured.campaign.margins.get(metric)),
                               refusals=refusals, paired=spec.paired),
            ))  # fmt: skip
    adjusted = stats.adjust([c for _, c in compared], "holm")
    rungs = {True: 8, False: 2 if comparability.scope == "systems" else 1}
    return [
        Cell(key=key, level=None, comparison=comparison, window=None,
             rung=rungs[comparison.verdict == "not comparable"])
        for (key, _), comparison in zip(compared, adjusted, strict=True)
    ]  # fmt: skip


def _same_side(usable: Sequence[Cell], runs: Any, cell: Cell) -> list[Any]:
    return [c.baseline_runs if runs is cell.baseline_runs else c.candidate_runs for c in usable]


def _is_sweep(measured: Measured, spec: ComparisonSpec) -> bool:
    """Tell whether several levels share a server start, in either arm."""
    for arm in (spec.baseline, str(spec.candidate)):
        levels: dict[str, set[str]] = defaultdict(set)
        for run in measured.runs_of(arm):
            levels[run.sweep_id].add(run.level_key)
        if any(len(found) > 1 for found in levels.values()):
            return True
    return False


def _actions(measured: Measured, spec: ComparisonSpec, cells: Sequence[Cell]) -> list[Action]:
    """List at most five measurements, by cells decided a run."""
    found: list[Action] = []
    by_place: dict[tuple[str, str | None], list[Cell]] = defaultdict(list)
    for cell in cells:
        if ".".join((cell.key.metric, cell.key.statistic)) in measured.campaign.primary:
            by_place[(cell.key.workload, cell.key.level)].append(cell)
    for group in by_place.values():
        level = level_label(group[0].level)
        undecided = [c for c in group if c.verdict == "inconclusive"]
        more = [c.comparison.runs_needed for c in undecided if c.comparison.runs_needed]
        if more:
            best = min(more)
            have = min(undecided[0].comparison.n_baseline, undecided[0].comparison.n_candidate)
            extra = max(1, best[0] - have)
            decided = sum(1 for m in more if m[0] <= best[0])
            found.append(Action(code="action_more_runs", cells=decided, runs=2 * extra,
                                values={"level": level, "low": extra, "high": max(extra, best[1] - have)}))  # fmt: skip
        elif undecided and all("single-run" in c.comparison.modifiers for c in undecided):
            found.append(Action(code="action_more_runs", cells=len(undecided), runs=4,
                                values={"level": level, "low": 2, "high": 4}))  # fmt: skip
        one_sided = [
            c
            for c in group
            if c.rung == 6 and any(x.code == "only_one_arm" for x in c.comparison.cautions)
        ]
        if one_sided:
            values = next(
                x.values for x in one_sided[0].comparison.cautions if x.code == "only_one_arm"
            )
            found.append(Action(code="action_run_level", cells=len(one_sided), runs=3,
                                values={"level": level, "arm": values["other"]}))  # fmt: skip
    for lost in measured.lost:
        if lost.arm in (spec.baseline, spec.candidate) and lost.role in ("sweeps", "runs", "files"):
            found.append(
                Action(code="action_repair_file", cells=1, runs=1, values={"path": lost.path})
            )
    if not any(measured.traces[a] for a in (spec.baseline, str(spec.candidate))):
        found.append(
            Action(
                code="action_record_trace",
                cells=len(by_place),
                runs=max(1, len(by_place)) * 2,
                values={},
            )
        )
    found.sort(key=lambda a: (-a.cells / a.runs, a.code, str(sorted(a.values.items()))))
    return found[:5]
