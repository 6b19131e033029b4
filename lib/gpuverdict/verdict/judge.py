"""A whole comparison: every cell, its families, the headlines, and what would decide the rest."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpuverdict import stats
from gpuverdict.campaign import ComparisonSpec
from gpuverdict.design import Comparability, cell_design, compare_designs
from gpuverdict.errors import Caution
from gpuverdict.health import Health, health_with
from gpuverdict.measured import Measured, MeasuredRun
from gpuverdict.summary import Summary
from gpuverdict.summary.index import Rows, index_rows
from gpuverdict.text import caution
from gpuverdict.verdict.actions import Action, actions
from gpuverdict.verdict.beside import (
    factorial_section,
    like_for_like,
    quality_section,
    stability_section,
)
from gpuverdict.verdict.cells import TESTED, Cell, CellKey, Options, decide_cell
from gpuverdict.verdict.headlines import headlines
from gpuverdict.verdict.one_sided import infeasible_levels, one_sided_cell
from gpuverdict.verdict.reservations import (
    client_floors,
    with_client_floor,
    with_cuts,
    with_disturbances,
    with_drift,
    with_tipping_point,
)

__all__ = ["Action", "Verdict", "judge"]

Place = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Everything one comparison says.

    `sections` holds what stands beside the cells: `stability`, `factorial`, `quality`, for two
    systems `like_for_like` (headlines of pairs that share their engine and settings), and what a
    caller adds (curves, energy, health).
    """

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
    alone: bool = False,
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
    alone : bool
        Leave out the like-for-like pairs beside a comparison of systems.

    Returns
    -------
    Verdict

    Notes
    -----
    The Benjamini-Hochberg family is one (metric, statistic) over workloads and levels; Holm runs
    over the headlines. Equivalence is tested first and on the unadjusted interval.
    """
    comparability = compare_designs(measured, summary, spec, identity or {})
    options: dict[CellKey, Options] = {}
    cells = _families(_cells(measured, summary, spec, comparability, options))
    if health:
        cells = [with_drift(c, measured, spec, health.drifting()) for c in cells]
    floors = client_floors(measured, summary, spec, comparability)
    if floors is not None:
        cells = [with_client_floor(c, floors) for c in cells]
    cells = with_cuts(summary, spec, cells, options)
    if health:
        cells = [with_disturbances(c, measured, spec, health, options.get(c.key)) for c in cells]
    headline = headlines(measured, spec, comparability, cells, options)
    if floors is not None:
        headline = [with_client_floor(c, {}) for c in headline]
    cells = [with_tipping_point(c, comparability) for c in cells]
    headline = [with_tipping_point(c, comparability) for c in headline]
    sections: dict[str, Any] = {
        "stability": stability_section(measured, cells),
        "factorial": factorial_section(measured, summary, spec),
    }
    if comparability.scope == "systems" and not alone:
        pairs = like_for_like(measured, spec)
        if health:
            # The caller checked the arms of its comparison; these bring others.
            others = {arm for p in pairs for arm in (p.baseline, str(p.candidate))}
            health = health_with(health, measured, summary, others)
        sections["like_for_like"] = [
            _in_short(judge(measured, summary, pair, identity=identity, health=health, alone=True))
            for pair in pairs
        ]
    quality = quality_section(measured.campaign, spec, comparability)
    if quality is not None:
        sections["quality"] = quality
    return Verdict(
        campaign=measured.campaign.campaign,
        comparison=str(spec.name),
        baseline=spec.baseline,
        candidate=str(spec.candidate),
        comparability=comparability,
        headline=tuple(headline),
        cells=tuple(cells),
        actions=tuple(actions(measured, spec, cells)),
        sections=sections,
    )


def _in_short(verdict: Verdict) -> dict[str, Any]:
    """The headlines of another pair, as plain values."""
    return {
        "baseline": verdict.baseline, "candidate": verdict.candidate,
        "scope": verdict.comparability.scope,
        "headline": [
            {
                "metric": cell.key.metric, "statistic": cell.key.statistic,
                "workload": cell.key.workload, "ratio": cell.comparison.ratio,
                "low": cell.comparison.low, "high": cell.comparison.high, "rung": cell.rung,
                "verdict": cell.verdict, "modifiers": list(cell.comparison.modifiers),
            }
            for cell in verdict.headline
        ],
    }  # fmt: skip


def _by_level(runs: Sequence[MeasuredRun]) -> dict[Place, list[MeasuredRun]]:
    found: dict[Place, list[MeasuredRun]] = defaultdict(list)
    for run in runs:
        found[(run.workload, run.level_key)].append(run)
    return found


def _cells(
    measured: Measured, summary: Summary, spec: ComparisonSpec, comparability: Comparability,
    options: dict[CellKey, Options],
) -> list[Cell]:  # fmt: skip
    names = (spec.baseline, str(spec.candidate))
    by_level = [_by_level(measured.runs_of(name)) for name in names]
    infeasible = infeasible_levels(measured, names)
    places = sorted(
        {*by_level[0], *by_level[1], *infeasible},
        key=lambda p: (p[0], sorted(json.loads(p[1]).items())),
    )
    indexed = index_rows(summary.frame, names)
    present = {
        (metric, statistic)
        for rows in indexed.values()
        for (metric, statistic, _), held in rows.items()
        if any(row.value is not None for row in held)
    }
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
        rows = indexed.get((workload, level_key), {})
        keys = [
            CellKey(workload=workload, level=level_key, metric=m, statistic=s) for m, s in wanted
        ]
        if not runs[0] or not runs[1] or out:
            cells += [
                one_sided_cell(k, level, rows, names, runs, out, comparability, measured)
                for k in keys
            ]  # fmt: skip
            continue
        design = cell_design(
            summary, runs[0], runs[1], campaign=measured.campaign, overrides=spec.override,
            rows=rows,
        )  # fmt: skip
        common = _options(measured, summary, spec, runs)
        for key in keys:
            if key.metric == "prefill_tokens_per_s" and not _has_value(rows, key):
                continue  # only a run with one request at a time has it
            options[key] = _of_metric(measured, key, common)
            cells.append(decide_cell(key, level, rows, runs, comparability, design, options[key]))
    return cells


def _has_value(rows: Rows, key: CellKey) -> bool:
    return any(
        row.value is not None
        for window in ("steady", "whole_run")
        for row in rows.get((key.metric, key.statistic, window), [])
    )


def _options(
    measured: Measured, summary: Summary, spec: ComparisonSpec,
    runs: tuple[Sequence[MeasuredRun], Sequence[MeasuredRun]],
) -> Options:  # fmt: skip
    """What all metrics of a level share."""
    campaign = measured.campaign
    arms = (campaign.arms[spec.baseline], campaign.arms[str(spec.candidate)])
    facts = [[summary.facts[r.key] for r in arm] for arm in runs]
    lengths = [f.window.length_s for arm in facts for f in arm]
    counts = [[_failures(f.n_by_status) for f in arm] for arm in facts]
    cautions, look = _plan(measured, spec, runs)
    cards = tuple([run.card for run in arm] for arm in runs)
    by_card = all(None not in side and len(set(side)) > 1 for side in cards)
    return Options(
        arms=(spec.baseline, str(spec.candidate)),
        equal_n=str(spec.name),
        paired=spec.paired or campaign.design.paired,
        look=look,
        same_card=bool(arms[0].cards) and arms[0].cards == arms[1].cards,
        short_window=any(length is None or length < 10 for length in lengths),
        failures=tuple([pair[i] for pair in counts[arm]] for arm in (0, 1) for i in (0, 1)),
        cards=(cards[0], cards[1]) if by_card else None,
        cautions=cautions,
    )


def _plan(
    measured: Measured, spec: ComparisonSpec, runs: tuple[Sequence[MeasuredRun], ...]
) -> tuple[tuple[Caution, ...], str | None]:
    """Compare the runs found with those fixed beforehand; say which look this is."""
    design = measured.campaign.design
    planned = design.runs_per_arm
    if planned is None:
        return (), None
    if design.exclude_first:
        planned -= 1
    said = [
        caution("runs_not_as_planned", arm=name, planned=planned, found=len(arm))
        for name, arm in zip((spec.baseline, str(spec.candidate)), runs, strict=True)
        if len(arm) != planned
    ]
    look = None
    if design.two_look:
        first = min(map(len, runs)) < planned
        look = "first" if first else "final"
        said.append(caution("two_look_first" if first else "two_look_final", planned=planned))
    return tuple(said), look


def _failures(counts: Mapping[str, int]) -> tuple[int, int]:
    return counts.get("error", 0) + counts.get("empty", 0), sum(counts.values())


def _of_metric(measured: Measured, key: CellKey, common: Options) -> Options:
    campaign = measured.campaign
    margin = campaign.margins.get(f"{key.metric}.{key.statistic}", campaign.margins.get(key.metric))
    floor = None
    if campaign.noise_floor and key.metric in campaign.noise_floor.log_sd:
        stored = campaign.noise_floor
        floor = stats.NoiseFloor(
            sd_log=stored.log_sd[key.metric], n=stored.runs, source=stored.campaign
        )
    return replace(common, margin=margin, noise_floor=floor)


def _families(cells: Sequence[Cell]) -> list[Cell]:
    families: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, cell in enumerate(cells):
        families[(cell.key.metric, cell.key.statistic)].append(number)
    out = list(cells)
    for numbers in families.values():
        adjusted = stats.adjust([cells[i].comparison for i in numbers], "bh")
        flip = stats.sign_flip(adjusted)
        for i, comparison in zip(numbers, adjusted, strict=True):
            if (
                flip.flips
                and comparison.p_value is not None
                and "mixed" not in comparison.modifiers
            ):
                comparison = replace(comparison, modifiers=(*comparison.modifiers, "mixed"))
            # `adjust` decides again by p alone; what was withheld stays so by `may_be_equivalent`.
            out[i] = replace(cells[i], comparison=comparison)
    return out
