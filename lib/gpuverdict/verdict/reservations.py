"""What is said of a decided cell afterwards: tools, cuts, drift, disturbed runs, tipping points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuverdict import stats
from gpuverdict.campaign import ComparisonSpec
from gpuverdict.design import Comparability
from gpuverdict.errors import Caution
from gpuverdict.health import Health
from gpuverdict.measured import Measured
from gpuverdict.schema import METRICS
from gpuverdict.summary import Summary
from gpuverdict.summary.index import Found, index_rows
from gpuverdict.text import caution
from gpuverdict.units import format_ratio
from gpuverdict.verdict.cells import Cell, CellKey, Options, compare_runs

__all__ = [
    "client_floors", "with_client_floor", "with_cuts", "with_disturbances", "with_drift",
    "with_tipping_point",
]  # fmt: skip

# How far two load generators can differ on one card, where the campaign does not say.
_FLOORS = {"ttft_s": 0.20, "scheduling_excess_s": 0.20}
_OTHER_FLOOR = 0.10
WORDS = ("faster", "slower", "better", "worse", "equivalent")

Floors = Mapping[tuple[str, str | None], float]


def client_floors(
    measured: Measured, summary: Summary, spec: ComparisonSpec, comparability: Comparability
) -> Floors | None:
    """Say how far two tools differ on one card in this campaign, where it has such a pair.

    Returns
    -------
    dict or None
        (metric, level) -> floor as a fraction; None when both arms used one tool.

    Notes
    -----
    The upper 95 % limit of the absolute log ratio of the same-card pair, at that level.
    """
    if "confounded: client" not in comparability.modifiers:
        return None
    campaign = measured.campaign
    floors: dict[tuple[str, str | None], float] = {}
    arms = list(campaign.arms)
    frame = summary.frame[(summary.frame.window == "whole_run") & summary.frame.value.notna()]
    for i, a in enumerate(arms):
        for b in arms[i + 1 :]:
            one, two = campaign.arms[a], campaign.arms[b]
            same = (one.gpu, one.gpus, one.cards, one.precision, one.tensor_parallel) == (
                two.gpu, two.gpus, two.cards, two.precision, two.tensor_parallel)  # fmt: skip
            if not same or {a, b} == {spec.baseline, spec.candidate} or not one.cards:
                continue
            for (metric, level), rows in frame[frame.arm.isin([a, b])].groupby(["metric", "level"]):
                rows = rows[rows.statistic.isin(["p50", "value"])]
                sides = [rows[rows.arm == arm].value.tolist() for arm in (a, b)]
                if min(map(len, sides)) < 2:
                    continue
                found = stats.compare_arms(*sides, metric=str(metric))
                if found.low and found.high:
                    widest = max(abs(math.log(found.low)), abs(math.log(found.high)))
                    held = floors.get((str(metric), str(level)), 0.0)
                    floors[(str(metric), str(level))] = max(held, math.expm1(widest))
    return floors


def with_client_floor(cell: Cell, floors: Floors) -> Cell:
    """Withdraw a word that two load generators alone could explain."""
    c = cell.comparison
    if c.verdict not in WORDS or c.ratio is None:
        return cell
    floor = floors.get((cell.key.metric, cell.key.level))
    if floor is None:
        floor = _FLOORS.get(cell.key.metric, _OTHER_FLOOR)
    # `equivalent` within a margin below the floor is no finding either: the tools may hide it.
    beyond = abs(math.log(c.ratio)) >= math.log1p(floor)
    if beyond and c.verdict != "equivalent":
        return cell
    said = caution("client_floor", floor_ratio=floor)
    return _with(cell, verdict="inconclusive", cautions=(*c.cautions, said))


def _with(cell: Cell, **changes: object) -> Cell:
    return replace(cell, comparison=replace(cell.comparison, **changes))  # type: ignore[arg-type]


def with_cuts(
    summary: Summary,
    spec: ComparisonSpec,
    cells: Sequence[Cell],
    options: Mapping[CellKey, Options],
) -> list[Cell]:
    """Say where half or double the warm-up cut would change the word."""
    indexed = index_rows(summary.frame, (spec.baseline, str(spec.candidate)))
    words: dict[str, dict[CellKey, str]] = {}
    for window in ("half_cut", "double_cut"):
        families: dict[tuple[str, str], list[tuple[CellKey, stats.Comparison]]] = {}
        for cell in cells:
            key = cell.key
            place = indexed.get((key.workload, str(key.level)), {})
            rows = place.get((key.metric, key.statistic, window))
            own = options.get(key)
            if rows is None or own is None or cell.window != "steady" or cell.rung > 2:
                continue
            sides = _sides(rows, cell, spec)
            if sides is None:
                continue
            shared = {"metric": key.metric, "statistic": key.statistic,
                      "margin": cell.comparison.margin}  # fmt: skip
            fewest = min(row.n for row in rows)
            again = compare_runs(key, sides, own, shared, n_requests_min=fewest)
            families.setdefault((key.metric, key.statistic), []).append((key, again))
        words[window] = {}
        for family in families.values():
            adjusted = stats.adjust([c for _, c in family])
            for (key, _), again in zip(family, adjusted, strict=True):
                words[window][key] = again.verdict
    out = []
    for cell in cells:
        moved = [
            caution(f"verdict_moves_with_{window}", word=words[window][cell.key])
            for window in words
            if words[window].get(cell.key, cell.verdict) != cell.verdict
        ]
        out.append(
            _with(cell, cautions=(*cell.comparison.cautions, *moved)) if moved else cell
        )  # fmt: skip
    return out


def _sides(
    rows: Sequence[Found], cell: Cell, spec: ComparisonSpec
) -> tuple[list[float | None], list[float | None]] | None:
    """The run values of another window, run by run as in the cell; None where one is missing."""
    sides: list[list[float | None]] = []
    arms = ((spec.baseline, cell.baseline_runs), (str(spec.candidate), cell.candidate_runs))
    for arm, runs in arms:
        held = {row.repeat_no: row.value for row in rows if row.arm == arm}
        values = [held.get(repeat) for repeat, _ in runs]
        if None in values:
            return None
        sides.append(values)
    return sides[0], sides[1]


def with_drift(
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
            said = caution("drifting_arm", arm=arm, n=n)
            c = replace(c, verdict="inconclusive", may_be_equivalent=False,
                        cautions=(*c.cautions, said))  # fmt: skip
        if n and "drift" not in c.modifiers:
            c = replace(c, modifiers=(*c.modifiers, "drift"))
    return replace(cell, comparison=c)


def with_disturbances(
    cell: Cell, measured: Measured, spec: ComparisonSpec, health: Health, options: Options | None
) -> Cell:
    """Name the disturbed runs of a cell, and say what it reads without them."""
    stalled: list[set[int]] = []
    said: list[Caution] = []
    for arm in (spec.baseline, str(spec.candidate)):
        out = set()
        for run in measured.runs_of(arm):
            found = health.runs[run.key]
            here = (run.workload, run.level_key) == (cell.key.workload, cell.key.level)
            if here and found.disturbed:
                out.add(run.repeat_no)
                at = found.disturbance.at_s if found.disturbance else None
                said.append(caution("disturbed_run", arm=arm, repeat=run.repeat_no, at_s=at or 0.0))
        stalled.append(out)
    if not said:
        return cell
    c = cell.comparison
    if options and cell.rung <= 4 and c.p_value is not None and c.metric != "error_ratio":
        sides = [
            [v for r, v in runs if r not in out]
            for runs, out in zip((cell.baseline_runs, cell.candidate_runs), stalled, strict=True)
        ]
        unpaired = replace(options, paired=False, cards=None)
        shared = {"metric": c.metric, "statistic": c.statistic, "margin": c.margin}
        without = compare_runs(
            cell.key, (sides[0], sides[1]), unpaired, shared, n_requests_min=None
        )
        shown = format_ratio(without.ratio, without.low, without.high)
        said.append(caution("without_disturbed", word=without.verdict, ratio=shown))
    return _with(cell, modifiers=(*c.modifiers, "disturbed"), cautions=(*c.cautions, *said))


def with_tipping_point(cell: Cell, comparability: Comparability) -> Cell:
    """Say how large another difference would have to be to undo the word."""
    if comparability.level != "caveats" or cell.verdict not in WORDS:
        return cell
    point = stats.tipping_point(cell.comparison)
    if point.factor_ratio is None:
        return cell
    label = METRICS[cell.key.metric].label
    said = [caution("tipping_point", metric=label, effect_ratio=point.factor_ratio)]
    if point.card_spread_ratio is not None and comparability.scope != "models":
        said.append(caution("tipping_cards", spread_ratio=point.card_spread_ratio))
    return _with(cell, cautions=(*cell.comparison.cautions, *said))
