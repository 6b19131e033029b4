"""One cell: two lists of run values, what stands in the way, and the best rung they reach.

Rungs (section 6 of the method notes): 1 like-for-like verdict, 2 systems verdict, 3 same job as
whole runs, 4 values as somebody reported them, 5 order only, 6 only one arm runs the level, 7 a
computed bound, 8 not measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpuverdict import stats
from gpuverdict.design import CellDesign, Comparability
from gpuverdict.design.facts import distinct
from gpuverdict.design.touched import ENERGY, PROMPT_BOUND
from gpuverdict.errors import Caution
from gpuverdict.measured import MeasuredRun
from gpuverdict.schema import METRICS
from gpuverdict.stats import Comparison, NoiseFloor
from gpuverdict.summary.index import Found, Rows
from gpuverdict.text import caution
from gpuverdict.verdict.mix import standardised_runs

__all__ = ["TESTED", "Cell", "CellKey", "Options", "compare_runs", "decide_cell", "run_values"]

# Every (metric, statistic) that gets a cell where it was measured.
TESTED: tuple[tuple[str, str], ...] = (
    ("ttft_s", "p50"), ("ttft_s", "p95"), ("ttft_s", "p99"),
    ("tpot_s", "p50"), ("tpot_s", "p95"), ("tpot_s", "p99"),
    ("itl_s", "p50"), ("itl_s", "p95"), ("itl_s", "p99"),
    ("e2e_s", "p50"), ("e2e_s", "p95"), ("e2e_s", "p99"),
    ("scheduling_excess_s", "p50"),
    ("tpot_token_weighted_s", "value"), ("decode_step_s", "value"),
    ("output_tokens_per_s", "value"), ("output_tokens_per_s_per_gpu", "value"),
    ("input_tokens_per_s", "value"), ("requests_per_s", "value"),
    ("prefill_tokens_per_s", "value"), ("goodput_requests_per_s", "value"),
    ("error_ratio", "value"),
    ("power_w", "value"), ("energy_per_output_token_j", "value"), ("memory_used_mib", "value"),
)  # fmt: skip

GAIN = 0.05
_Q = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
# What a summary row says of an energy figure that its verdict must carry too.
_ENERGY_MODIFIERS = {"short_window": "short window", "averaged_short_window": "short window",
                     "power_unaligned": "power unaligned"}  # fmt: skip
# Why a metric has no value, in the order in which it is worth saying.
_LACKING = ("no_trace", "not_streamed", "no_gaps_in_log", "prefill_under_load", "no_slo")

# Why a trace that is there gives nothing, as the summary's rows have it.
_REFUSED_TRACE = ("gpu_count", "trace_of_other_gpu", "zone_unknown", "no_clock", "no_overlap",
                  "no_bracket", "gap", "too_few", "implausible")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CellKey:
    """Where a cell lies."""

    workload: str
    level: str | None
    metric: str
    statistic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A decided cell: the comparison, its rung, and the run values it rests on.

    `level` is None for a headline. `baseline_runs` and `candidate_runs` hold each repeat with its
    value, for the figures.
    """

    key: CellKey
    level: Mapping[str, float] | None
    comparison: Comparison
    rung: int
    window: str | None
    baseline_runs: tuple[tuple[int, float | None], ...] = ()
    candidate_runs: tuple[tuple[int, float | None], ...] = ()

    @property
    def verdict(self) -> str:
        """The word."""
        return self.comparison.verdict

    def __str__(self) -> str:
        return f"rung {self.rung} {self.comparison}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a cell is compared.

    `equal_n`: the comparison's name, under which the summary holds tails over equally many
    requests. `failures`: failed and sent requests of each run of the baseline, then of the
    candidate. `cards`: for each arm the card of every run, where the card is the unit.
    """

    arms: tuple[str, str]
    equal_n: str
    margin: float | None = None
    paired: bool = False
    look: str | None = None
    noise_floor: NoiseFloor | None = None
    same_card: bool = False
    short_window: bool = False
    failures: tuple[Sequence[int], ...] | None = None
    cards: tuple[Sequence[str | None], Sequence[str | None]] | None = None
    cautions: tuple[Caution, ...] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)


def run_values(
    rows: Sequence[Found], runs: Sequence[MeasuredRun]
) -> list[tuple[int, float | None]]:
    """Give (repeat, value) of each run in order, None where the summary has no value."""
    found = {row.run_id: row.value for row in rows}
    return [(run.repeat_no, found.get(run.run_id)) for run in runs]


def decide_cell(
    key: CellKey,
    level: Mapping[str, float],
    place: Rows,
    runs: tuple[Sequence[MeasuredRun], Sequence[MeasuredRun]],
    comparability: Comparability,
    cell: CellDesign,
    options: Options,
) -> Cell:
    """Decide one cell that both arms ran.

    Parameters
    ----------
    place : mapping
        The summary rows of the level, by metric, statistic and window.
    runs : pair of sequence of MeasuredRun
        Of the baseline and of the candidate.
    comparability, cell
        What the design says of the whole comparison and of this level.
    options : Options

    Returns
    -------
    Cell
        On the best rung it can reach.
    """
    window = "steady" if cell.steady else "whole_run"
    rows = place.get((key.metric, key.statistic, window), [])
    if key.statistic in ("p90", "p95", "p99"):
        equal = (key.metric, key.statistic, f"{window}:{options.equal_n}")
        rows = place.get(equal) or rows
    rung, modifiers, cautions = _rung(comparability, cell, window)
    cautions += [*cell.cautions, *options.cautions]
    refusals = _refusals(key, comparability, cell)
    sides = (run_values(rows, runs[0]), run_values(rows, runs[1]))
    if cell.mix_distance is not None and key.metric in PROMPT_BOUND and not refusals:
        brought = standardised_runs(key, cell, runs)
        cautions += brought.cautions
        if brought.sides is None:
            refusals += brought.refusals
        else:
            sides = brought.sides
            modifiers += ["mixed"] if brought.mixed else []
    if options.paired:
        sides, alone = _pairs(sides)
        cautions += [caution("pairs_incomplete", n=alone)] if alone else []
    if key.metric in ENERGY:
        codes = {code for row in rows for code in row.cautions}
        modifiers += [word for code, word in _ENERGY_MODIFIERS.items() if code in codes]
    shared: dict[str, Any] = {
        "metric": key.metric, "statistic": key.statistic, "margin": options.margin,
        "modifiers": tuple(dict.fromkeys(modifiers)), "cautions": tuple(cautions),
    }  # fmt: skip
    where: dict[str, Any] = {"key": key, "level": level, "window": window,
             "baseline_runs": tuple(sides[0]), "candidate_runs": tuple(sides[1])}  # fmt: skip
    values = [v for _, v in sides[0]], [v for _, v in sides[1]]
    if refusals:
        a, b = map(_known, values)
        refused = stats.compare_arms(a, b, refusals=refusals, **shared)
        return Cell(comparison=replace(refused, ratio=None), rung=8, **where)
    lacking = [
        arm for arm, held in zip(options.arms, values, strict=True) if not any(
            v is not None for v in held)
    ]  # fmt: skip
    if lacking:
        said = not_measured(key, rows, lacking)
        plain = stats.compare_arms([], [], refusals=said, **shared)
        kept = tuple(c for c in plain.cautions if c.code != "arm_empty")
        return Cell(comparison=replace(plain, cautions=kept), rung=8, **where)
    if rung == 5:
        return Cell(comparison=_order_only(values, shared), rung=5, **where)
    if key.metric == "error_ratio" and options.failures and not cell.aggregate:
        compared = stats.error_rate_comparison(*options.failures)
        compared = replace(compared, modifiers=(*shared["modifiers"], *compared.modifiers),
                           cautions=(*cautions, *compared.cautions))  # fmt: skip
        return Cell(comparison=compared, rung=rung, **where)
    compared = compare_runs(key, values, options, shared, n_requests_min=_smallest(key, rows, cell))
    if not cell.sustained:
        # With too few requests in flight the client sets the pace; equal clients are no equal GPUs.
        withheld = "inconclusive" if compared.verdict == "equivalent" else compared.verdict
        compared = replace(compared, verdict=withheld, may_be_equivalent=False)
    return Cell(comparison=compared, rung=rung, **where)


def _pairs(
    sides: tuple[list[tuple[int, float | None]], list[tuple[int, float | None]]],
) -> tuple[tuple[list[tuple[int, float | None]], list[tuple[int, float | None]]], int]:
    """Keep the repeats that both arms have a value of, and count the others."""
    held = [{repeat for repeat, value in side if value is not None} for side in sides]
    both = held[0] & held[1]
    kept = [[(r, v) for r, v in side if r in both] for side in sides]
    return (kept[0], kept[1]), len(held[0] ^ held[1])


def _rung(
    comparability: Comparability, cell: CellDesign, window: str
) -> tuple[int, list[str], list[Caution]]:
    """The best rung the design allows, with what marks it."""
    modifiers = [*comparability.modifiers, *cell.modifiers]
    cautions: list[Caution] = []
    rung = 2 if comparability.scope == "systems" else 1
    if window == "whole_run" or cell.aggregate:
        modifiers.append("whole_run")
        if cell.aggregate:
            rung, extra = 4, "as reported"
        else:
            rung, extra = (3, "ramp included") if cell.same_job else (5, "order only")
            code = "whole_runs_of_one_job" if cell.same_job else "whole_runs_of_unlike_jobs"
            cautions.append(caution(code))
        modifiers.append(extra)
    if not cell.sustained and rung != 4:
        rung = 5
        modifiers.append("order only")
    return rung, modifiers, cautions


def _refusals(key: CellKey, comparability: Comparability, cell: CellDesign) -> list[Caution]:
    refusals = [*comparability.refused, *cell.refused]
    every = (comparability.blocked, cell.blocked)
    refusals += [blocked[key.metric] for blocked in every if key.metric in blocked]
    if key.metric in cell.tail_blocked and (_Q.get(key.statistic) or 0) > 0.5:
        refusals.append(cell.tail_blocked[key.metric])
    return list(distinct(refusals))


def _smallest(key: CellKey, rows: Sequence[Found], cell: CellDesign) -> int | None:
    """Requests of the smallest run; None where they do not decide whether a tail may be tested."""
    if key.statistic not in _Q or not METRICS[key.metric].distribution:
        return None
    if cell.aggregate:
        return None  # how many requests stand behind a tool's own tail is not known
    return min((row.n for row in rows if row.value is not None), default=0)


def compare_runs(
    key: CellKey, values: tuple[Sequence[float | None], Sequence[float | None]], options: Options,
    shared: Mapping[str, Any], n_requests_min: int | None,
) -> Comparison:  # fmt: skip
    """Compare two lists of run values under the options of a cell; cards first where they count."""
    common: dict[str, Any] = {
        "gain": _gain(key.metric, options), "n_requests_min": n_requests_min,
        "noise_floor": options.noise_floor, "look": options.look,
    }  # fmt: skip
    if options.cards is None:
        return stats.compare_arms(values[0], values[1], paired=options.paired, **common, **shared)
    by_card = [
        _by_card(cards, side) for cards, side in zip(options.cards, values, strict=True)
    ]  # fmt: skip
    return stats.cards_comparison(by_card[0], by_card[1], **common, **shared)


def _by_card(cards: Sequence[str | None], values: Sequence[float | None]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for card, value in zip(cards, values, strict=True):
        if value is not None:
            found.setdefault(str(card), []).append(value)
    return found


def _known(values: Sequence[float | None]) -> list[float]:
    return [v for v in values if v is not None and v > 0]


def _gain(metric: str, options: Options) -> tuple[float, float] | None:
    """Sensor gain of each arm; between two measurements on one card it cancels."""
    if metric not in ENERGY:
        return None
    return None if options.same_card and not options.short_window else (GAIN, GAIN)


def not_measured(key: CellKey, rows: Sequence[Found], arms: Sequence[str]) -> list[Caution]:
    """Say that a metric has no value in some arms, and what would give it one."""
    said = [caution("not_measured", metric=METRICS[key.metric].label, arm=", ".join(arms))]
    codes = {code for row in rows if row.arm in arms for code in row.cautions}
    for code in _LACKING:
        if code in codes:
            values = {"arm": ", ".join(arms)} if code == "no_trace" else {}
            said.append(caution(code, **values))
            break
    unusable = [code for code in _REFUSED_TRACE if code in codes]
    if unusable and "no_trace" not in codes:
        said.append(caution("trace_refused", arm=", ".join(arms), why=", ".join(unusable)))
    return said


def _order_only(
    values: tuple[Sequence[float | None], Sequence[float | None]], shared: Mapping[str, Any]
) -> Comparison:
    """Describe the order of the run values; never a p and never a word."""
    a, b = map(_known, values)
    plain = stats.compare_arms(a[:1], b[:1], **shared)
    ratio = None
    if a and b:
        ratio = math.exp(
            math.fsum(map(math.log, b)) / len(b) - math.fsum(map(math.log, a)) / len(a)
        )
    if a and b and min(b) > max(a):
        said = caution("all_above", n=len(b), m=len(a))
    elif a and b and max(b) < min(a):
        said = caution("all_below", n=len(b), m=len(a))
    else:
        said = caution("order_mixed")
    kept = tuple(m for m in plain.modifiers if m != "single-run")
    return replace(
        plain, ratio=ratio, low=None, high=None, p_value=None, p_permutation=None,
        verdict="inconclusive", modifiers=kept, n_baseline=len(a), n_candidate=len(b),
        baseline=_geometric(a), candidate=_geometric(b),
        cautions=(*shared["cautions"], said), mde_ratio=None, runs_needed=None,
    )  # fmt: skip


def _geometric(values: Sequence[float]) -> float | None:
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None
