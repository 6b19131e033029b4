"""One number for a whole comparison: the geometric mean of the ratio over the common levels."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuverdict import stats
from gpuverdict.campaign import ComparisonSpec
from gpuverdict.design import Comparability
from gpuverdict.measured import Measured
from gpuverdict.schema import METRICS
from gpuverdict.stats import Comparison
from gpuverdict.text import caution
from gpuverdict.verdict.cells import Cell, CellKey, Options

__all__ = ["headlines"]

Sides = tuple[dict[Any, list[float | None]], dict[Any, list[float | None]]]


def headlines(
    measured: Measured,
    spec: ComparisonSpec,
    comparability: Comparability,
    cells: Sequence[Cell],
    options: Mapping[CellKey, Options],
) -> list[Cell]:
    """Decide the headline of each primary metric and workload, with Holm over all of them.

    A headline rests on the cells of rungs 1 to 4 and takes the rung and the marks of the weakest of
    them.
    """
    compared: list[tuple[CellKey, Comparison, list[Cell]]] = []
    for name in measured.campaign.primary:
        metric, _, statistic = name.partition(".")
        statistic = statistic or "value"
        for workload in measured.campaign.all_workloads():
            key = CellKey(workload=workload, level=None, metric=metric, statistic=statistic)
            own = [c for c in cells if replace(c.key, level=None) == key]
            usable = [c for c in own if c.rung <= 4 and c.verdict != "not comparable"]
            compared.append(
                (key, _headline(measured, spec, comparability, key, own, usable, options), usable)
            )
    adjusted = stats.adjust([c for _, c, _ in compared], "holm")
    return [
        Cell(key=key, level=None, comparison=_withheld(comparison, usable), window=None,
             rung=_rung(comparison, usable))
        for (key, _, usable), comparison in zip(compared, adjusted, strict=True)
    ]  # fmt: skip


def _rung(comparison: Comparison, usable: Sequence[Cell]) -> int:
    if "order only" in comparison.modifiers:
        return 5
    if comparison.verdict == "not comparable":
        return 8
    return max(c.rung for c in usable)


def _headline(
    measured: Measured, spec: ComparisonSpec, comparability: Comparability, key: CellKey,
    own: Sequence[Cell], usable: Sequence[Cell], options: Mapping[CellKey, Options],
) -> Comparison:  # fmt: skip
    campaign = measured.campaign
    refusals = list(comparability.refused)
    if key.metric in comparability.blocked:
        refusals.append(comparability.blocked[key.metric])
    if not usable and not refusals:
        ordered = [c for c in own if c.rung == 5]
        if ordered:
            return _order_only(key, ordered)
        label = METRICS[key.metric].label
        refusals = [caution("not_measured", metric=label, arm=f"{spec.baseline}, {spec.candidate}")]
    sides, design = _sides(measured, spec, usable, options)
    marks = [m for c in usable for m in c.comparison.modifiers if m not in _OF_ONE_CELL]
    name = f"{key.metric}.{key.statistic}"
    looks = {options[c.key].look for c in usable if c.key in options}
    compared = stats.headline(
        sides[0], sides[1], metric=key.metric, statistic=key.statistic, design=design,  # type: ignore[arg-type]
        modifiers=tuple(dict.fromkeys([*comparability.modifiers, *marks])), refusals=refusals,
        margin=campaign.margins.get(name, campaign.margins.get(key.metric)),
        paired=spec.paired or campaign.design.paired,
    )  # fmt: skip
    refused_levels = [c for c in own if c not in usable and c.rung != 6]
    if usable and refused_levels:
        left_out = caution("levels_left_out", n=len(refused_levels), of=len(own))
        compared = replace(compared, cautions=(*compared.cautions, left_out))
    look = looks.pop() if len(looks) == 1 else None
    return replace(compared, alpha=stats.two_look_alpha(look)) if look else compared


def _order_only(key: CellKey, cells: Sequence[Cell]) -> Comparison:
    """The geometric mean of the ratios of cells that allow no test: a number without a word."""
    known = [c.comparison.ratio for c in cells if c.comparison.ratio is not None]
    first = cells[0].comparison
    marks = dict.fromkeys(m for c in cells for m in c.comparison.modifiers)
    return Comparison(
        metric=key.metric, statistic=key.statistic, margin=first.margin, better=first.better,
        speed=first.speed, modifiers=tuple(marks),
        ratio=math.exp(math.fsum(map(math.log, known)) / len(known)) if known else None,
        n_baseline=min(c.comparison.n_baseline for c in cells),
        n_candidate=min(c.comparison.n_candidate for c in cells),
        cautions=(caution("no_level_to_test", metric=METRICS[key.metric].label),),
    )  # fmt: skip


# Marks of the test of one cell: the headline has its own test, and earns its own.
_OF_ONE_CELL = frozenset(
    {"below margin", "fragile", "quantised", "single-run", "tail under-sampled", "few requests",
     "order only"}
)  # fmt: skip


def _sides(
    measured: Measured, spec: ComparisonSpec, usable: Sequence[Cell],
    options: Mapping[CellKey, Options],
) -> tuple[Sides, str]:  # fmt: skip
    """The run values of both arms by level, position r of every level being sweep (or card) r."""
    sides: Sides = ({}, {})
    shared = _is_sweep(measured, spec)
    cards = [options[c.key].cards for c in usable if c.key in options]
    if cards and all(held is not None for held in cards):
        return _sides_by_card(usable, options), "sweep"
    fewest = math.inf
    for number in (0, 1):
        runs = [(c.baseline_runs, c.candidate_runs)[number] for c in usable]
        repeats = sorted({repeat for held in runs for repeat, _ in held})
        for cell, held in zip(usable, runs, strict=True):
            known = dict(held)
            positions = repeats if shared else [repeat for repeat, _ in held]
            sides[number][cell.key.level] = [known.get(r) for r in positions]
            fewest = min(fewest, len(held))
    # One run an arm has no variance of its own; taken as a sweep it still gives its ratio. A single
    # level is that level's own test, with its own degrees of freedom.
    return sides, "sweep" if shared or fewest <= 1 or len(usable) == 1 else "cells"


def _sides_by_card(usable: Sequence[Cell], options: Mapping[CellKey, Options]) -> Sides:
    sides: Sides = ({}, {})
    for number in (0, 1):
        names = sorted(
            {str(c) for cell in usable for c in (options[cell.key].cards or ((), ()))[number]}
        )
        for cell in usable:
            runs = (cell.baseline_runs, cell.candidate_runs)[number]
            by_card: dict[str, list[float]] = defaultdict(list)
            for card, (_, value) in zip(
                (options[cell.key].cards or ((), ()))[number], runs, strict=True
            ):
                if value is not None and value > 0:
                    by_card[str(card)].append(math.log(value))
            sides[number][cell.key.level] = [
                math.exp(math.fsum(by_card[n]) / len(by_card[n])) if by_card[n] else None
                for n in names
            ]
    return sides


def _withheld(comparison: Comparison, usable: Sequence[Cell]) -> Comparison:
    """A headline over cells of which a word was withheld says no more than they do."""
    drifting = [c for c in usable if any(x.code == "drifting_arm" for x in c.comparison.cautions)]
    starved = any("not sustained" in c.comparison.modifiers for c in usable)
    if drifting and len(drifting) == len(usable) and comparison.verdict != "not comparable":
        said = next(x for x in drifting[0].comparison.cautions if x.code == "drifting_arm")
        return replace(comparison, verdict="inconclusive", cautions=(*comparison.cautions, said))
    if starved and comparison.verdict == "equivalent":
        return replace(comparison, verdict="inconclusive", may_be_equivalent=False)
    return comparison


def _is_sweep(measured: Measured, spec: ComparisonSpec) -> bool:
    """Tell whether several levels share a server start, in either arm."""
    for arm in (spec.baseline, str(spec.candidate)):
        levels: dict[str, set[str]] = defaultdict(set)
        for run in measured.runs_of(arm):
            levels[run.sweep_id].add(run.level_key)
        if any(len(found) > 1 for found in levels.values()):
            return True
    return False
