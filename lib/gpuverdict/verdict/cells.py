"""One cell: two lists of run values, what stands in the way, and the best rung they reach.

Rungs (section 6 of the method notes): 1 like-for-like verdict, 2 systems verdict, 3 same job as
whole runs, 4 values as somebody reported them, 5 order only, 6 only one arm runs the level, 7 a
computed bound, 8 not measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from gpuverdict import stats
from gpuverdict.design import CellDesign, Comparability
from gpuverdict.measured import MeasuredRun
from gpuverdict.schema import METRICS
from gpuverdict.stats import Comparison
from gpuverdict.text import caution

__all__ = ["TESTED", "Cell", "CellKey", "decide_cell", "with_client_floor"]

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

_ENERGY = ("power_w", "energy_j", "energy_per_output_token_j")
GAIN = 0.05
_Q = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


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

    `level` is None for a headline. `runs` maps each arm's repeat to its value, for the figures.
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


def run_values(frame: pd.DataFrame, runs: Sequence[MeasuredRun]) -> list[tuple[int, float | None]]:
    """Give (repeat, value) of each run in order, None where the summary has no value."""
    found = dict(zip(frame.run_id, frame.value, strict=True))
    values = []
    for run in runs:
        value = found.get(run.run_id)
        values.append((run.repeat_no, None if value is None or pd.isna(value) else float(value)))
    return values


def decide_cell(
    key: CellKey,
    level: Mapping[str, float],
    frame: pd.DataFrame,
    runs: tuple[Sequence[MeasuredRun], Sequence[MeasuredRun]],
    comparability: Comparability,
    cell: CellDesign,
    options: Mapping[str, Any],
) -> Cell:
    """Decide one cell that both arms ran.

    Parameters
    ----------
    frame : pandas.DataFrame
        The summary rows of this cell's metric and statistic, all windows.
    options : mapping
        `margin`, `paired`, `noise_floor`, `gain`, `equal_n` (window name of
        equal-N quantiles) and `failures` (for error ratios).

    Returns
    -------
    Cell
    """
    window = "steady" if cell.steady else "whole_run"
    rows = frame[frame.window == window]
    if key.statistic in ("p90", "p95", "p99"):
        equal = frame[frame.window == f"{window}:{options['equal_n']}"]
        if not equal.empty:
            rows = equal
    a, b = (run_values(rows, arm) for arm in runs)
    modifiers = [*comparability.modifiers, *cell.modifiers]
    cautions = list(cell.cautions)
    refusals = [*comparability.refused]
    if key.metric in comparability.blocked:
        refusals.append(comparability.blocked[key.metric])
    if key.metric in cell.blocked:
        refusals.append(cell.blocked[key.metric])
    rung = 2 if comparability.scope == "systems" else 1
    if window == "whole_run" or cell.aggregate:
        modifiers.append("whole_run")
        if cell.aggregate:
            rung, extra = 4, "as reported"
        else:
            rung, extra = (3, "ramp included") if cell.same_job else (5, "order only")
            cautions.append(caution("no_steady_window_in_arm"))
        modifiers.append(extra)
    if not cell.sustained and rung != 4:
        rung = 5
        modifiers.append("order only")
    shared: dict[str, Any] = {
        "metric": key.metric, "statistic": key.statistic, "margin": options["margin"],
        "modifiers": tuple(dict.fromkeys(modifiers)), "cautions": tuple(cautions),
    }  # fmt: skip
    place: dict[str, Any] = {"key": key, "level": level, "window": window,
             "baseline_runs": tuple(a), "candidate_runs": tuple(b)}  # fmt: skip
    values = [v for _, v in a], [v for _, v in b]
    if refusals:
        refused = stats.compare_arms(*map(_known, values), refusals=refusals, **shared)
        return Cell(comparison=replace(refused, ratio=None), rung=8, **place)
    if not any(v is not None for v in values[0]) or not any(v is not None for v in values[1]):
        lacking = [arm for arm, v in zip(options["arms"], values, strict=True)
                   if not any(x is not None for x in v)]  # fmt: skip
        why = _reasons(rows, lacking)
        said = caution("not_measured", metric=METRICS[key.metric].label, arm=" and ".join(lacking),
                       need=why)  # fmt: skip
        plain = stats.compare_arms([], [], refusals=[said], **shared)
        return Cell(comparison=plain, rung=8, **place)
    if rung == 5:
        return Cell(comparison=_order_only(values, shared), rung=5, **place)
    if key.metric == "error_ratio" and options.get("failures"):
        compared = stats.error_rate_comparison(*options["failures"])
        compared = replace(compared, modifiers=(*shared["modifiers"], *compared.modifiers),
                           cautions=(*cautions, *compared.cautions))  # fmt: skip
        return Cell(comparison=compared, rung=rung, **place)
    q = _Q.get(key.statistic)
    n_min = None
    if q is not None and METRICS[key.metric].distribution and not cell.aggregate:
        counted = rows[rows.value.notna()]
        n_min = int(counted.n.min()) if len(counted) else 0
    if rung == 4:
        # Values of a tool's own summary: how many requests stand behind a tail is not known.
        n_min = None
    compared = stats.compare_arms(
        values[0],
        values[1],
        paired=options["paired"],
        gain=_gain(key.metric, options),
        n_requests_min=n_min,
        noise_floor=options.get("noise_floor"),
        **shared,
    )
    if rung == 4 and not cell.sustained and compared.verdict == "equivalent":
        # With too few requests in flight the client sets the pace; equal clients are no equal GPUs.
        compared = replace(compared, verdict="inconclusive", may_be_equivalent=False)
    return Cell(comparison=compared, rung=rung, **place)


def _known(values: Sequence[float | None]) -> list[float]:
    return [v for v in values if v is not None and v > 0]


def _gain(metric: str, options: Mapping[str, Any]) -> tuple[float, float] | None:
    if metric not in _ENERGY:
        return None
    return None if options.get("same_card") and not options.get("short_window") else (GAIN, GAIN)


def _reasons(rows: pd.DataFrame, arms: Sequence[str]) -> str:
    from gpuverdict.text import SENTENCES

    codes = {code for codes in rows[rows.arm.isin(arms)].cautions for code in codes}
    for code in ("no_trace", "not_streamed", "no_gaps_in_log", "prefill_under_load", "no_slo"):
        if code in codes and code in SENTENCES:
            return SENTENCES[code]["en"][1]
    return ""


def _order_only(
    values: tuple[Sequence[float | None], Sequence[float | None]], shared: Mapping[str, Any]
) -> Comparison:
    """Describe the order of the run values; never a p and never a word."""
    a, b = map(_known, values)
    plain = stats.compare_arms(a[:1], b[:1], **shared)
    ratio = None
    if a and b:
        ratio = math.exp(sum(map(math.log, b)) / len(b) - sum(map(math.log, a)) / len(a))
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
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def with_client_floor(cell: Cell, floor: float) -> Cell:
    """Withdraw a word that two load generators alone could explain."""
    c = cell.comparison
    if c.verdict in ("inconclusive", "not comparable") or c.ratio is None:
        return cell
    if abs(math.log(c.ratio)) >= math.log1p(floor):
        return cell
    return replace(
        cell,
        comparison=replace(
            c,
            verdict="inconclusive",
            cautions=(*c.cautions, caution("client_floor", floor_ratio=floor)),
        ),
    )
