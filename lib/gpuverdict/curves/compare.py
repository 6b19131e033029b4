"""Two curves: where which arm is faster, by how much, and where they cross."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from gpuverdict.curves.fit import CurveFit, n_parameters
from gpuverdict.curves.step import Fieller, fieller, log_band
from gpuverdict.errors import Caution, ParameterError
from gpuverdict.stats.ttests import t_quantile
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["CurveComparison", "Span", "compare_curves", "crossing"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of batch sizes in which the band says that one arm is faster.

    `beyond_margin`: by more than the margin throughout.
    """

    start: float
    end: float
    faster: str
    beyond_margin: bool

    def __str__(self) -> str:
        more = " by more than the margin" if self.beyond_margin else ""
        return f"{self.faster} faster{more} for B in [{self.start:g}, {self.end:g}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveComparison:
    """Throughput of the candidate over the baseline along the batch, with a simultaneous band.

    `ratio`, `low`, `high` stand at each point of `at`; None where not both arms were measured or
    could run. `spans` are the ranges the band decides; `crossover` the batch at which the curves
    meet, None with a caution where there is none to show.
    """

    at: tuple[float, ...]
    ratio: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    confidence: float
    margin: float
    spans: tuple[Span, ...]
    crossover: Estimate | None
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        parts = [str(span) for span in self.spans] or ["no range decided"]
        parts.append(f"crossover {self.crossover}" if self.crossover else "no crossover shown")
        return "; ".join(parts)

    def _repr_html_(self) -> str:
        return f"<span class='curves'>{escape(str(self))}</span>"


def compare_curves(
    a: CurveFit,
    b: CurveFit,
    at: Sequence[float],
    *,
    margin: float = 0.03,
    confidence: float = 0.95,
) -> CurveComparison:
    """Say for which batch sizes the candidate is faster, and where the order turns.

    Parameters
    ----------
    a, b : CurveFit
        Baseline and candidate.
    at : sequence of float
        Batch sizes to compare at; those outside the range both arms measured give None.
    margin : float
        Difference without practical meaning.

    Returns
    -------
    CurveComparison

    Raises
    ------
    ParameterError
        For a margin that is no positive fraction, or batch sizes that are not positive numbers.

    Notes
    -----
    The log ratio of throughputs at each point is a Welch difference of the sweeps' own curves, at
    level alpha / k with k the larger number of curve parameters (joint coverage 95.8 to 96.5 %).
    The crossover (alpha_A - alpha_B) / (beta_B - beta_A) of two lines has a Fieller set with
    t(R_A + R_B - 2); it is unbounded where the slopes do not differ, which is then said.

    Examples
    --------
    >>> from gpuverdict.curves import fit_curve
    >>> levels, sweep = [1, 8, 32] * 3, [1] * 3 + [2] * 3 + [3] * 3
    >>> noise = [1.00, 1.01, 0.99, 1.01, 0.99, 1.00, 0.99, 1.00, 1.01]
    >>> a = fit_curve(levels, [e * (8 + 0.4 * x) for e, x in zip(noise, levels)], sweep)
    >>> b = fit_curve(levels, [e * (5 + 0.6 * x) for e, x in zip(noise, levels)], sweep)
    >>> round(compare_curves(a, b, [1, 8, 32]).crossover.value)
    15
    """
    if not (math.isfinite(margin) and margin > 0):
        raise ParameterError("margin", found=repr(margin), expected="a fraction such as 0.03")
    try:
        points = np.asarray(list(at), dtype=float)
    except (TypeError, ValueError):
        raise ParameterError("at", found=f"{at!r:.60}", expected="batch sizes") from None
    if points.ndim != 1 or not np.isfinite(points).all() or (len(points) and points.min() <= 0):
        raise ParameterError("at", found="points", expected="positive finite batch sizes")
    low_end, high_end = max(a.x_min, b.x_min), min(a.x_max, b.x_max)
    stop = min((*a.infeasible, *b.infeasible), default=math.inf)
    said: list[Caution] = []
    if low_end > high_end:
        said.append(caution("curves_without_common_range"))
    inside = (points >= low_end * (1 - 1e-12)) & (points <= high_end * (1 + 1e-12))
    inside &= points < stop
    ratio, low, high = _band(a, b, points, inside, confidence, said)
    crossover = _crossover(a, b, (low_end, min(high_end, stop)), confidence, said)
    return CurveComparison(
        at=tuple(float(x) for x in points),
        ratio=ratio,
        low=low,
        high=high,
        confidence=confidence,
        margin=margin,
        spans=_spans(points, low, high, margin),
        crossover=crossover,
        cautions=tuple(said),
    )


Column = tuple[float | None, ...]


def _band(
    a: CurveFit, b: CurveFit, points: Floats, inside: NDArray[np.bool_], confidence: float,
    said: list[Caution],
) -> tuple[Column, Column, Column]:  # fmt: skip
    nothing: Column = (None,) * len(points)
    if not inside.any():
        return nothing, nothing, nothing
    at = points[inside]
    if min(a.n_sweeps, b.n_sweeps) < 2:
        said.append(caution("curves_without_band", n=min(a.n_sweeps, b.n_sweeps)))
        times = [np.array(fit.predict(at), dtype=float) for fit in (a, b)]
        return _spread(times[0] / times[1], inside), nothing, nothing
    # Throughput is B / TPOT: the ratio of throughputs is the inverse ratio of step times.
    k = max(n_parameters(a), n_parameters(b))
    effect, low, high = log_band(-a.sweep_curves(at), -b.sweep_curves(at), confidence, k)
    ratio, lower, upper = (_spread(np.exp(x), inside) for x in (effect, low, high))
    return ratio, lower, upper


def _spread(values: Floats, inside: NDArray[np.bool_]) -> Column:
    """Put values at the points inside the range and None elsewhere."""
    found = iter(values.tolist())
    row = [next(found) if there else None for there in inside]
    return tuple(v if v is not None and math.isfinite(v) else None for v in row)


def _spans(points: Floats, low: Column, high: Column, margin: float) -> tuple[Span, ...]:
    order = np.argsort(points, kind="stable")
    labels: list[tuple[float, str | None, bool]] = []
    for i in order:
        lo, hi = low[i], high[i]
        who, beyond = None, False
        if lo is not None and lo > 1:
            who, beyond = "candidate", lo > 1 + margin
        elif hi is not None and hi < 1:
            who, beyond = "baseline", hi < 1 / (1 + margin)
        labels.append((float(points[i]), who, beyond))
    spans: list[Span] = []
    start = 0
    for end in range(1, len(labels) + 1):
        if end < len(labels) and labels[end][1:] == labels[start][1:]:
            continue
        first, who, beyond = labels[start]
        if who is not None:
            spans.append(
                Span(start=first, end=labels[end - 1][0], faster=who, beyond_margin=beyond)
            )
        start = end
    return tuple(spans)


def crossing(alpha_a: Floats, beta_a: Floats, alpha_b: Floats, beta_b: Floats,
             confidence: float) -> Fieller:  # fmt: skip
    """Return the Fieller set of the batch at which two lines meet; sweeps along the last axis."""
    n_a, n_b = alpha_a.shape[-1], alpha_b.shape[-1]

    def moments(alpha: Floats, beta: Floats, n: int) -> tuple[Floats, Floats, Floats]:
        da = alpha - alpha.mean(axis=-1, keepdims=True)
        db = beta - beta.mean(axis=-1, keepdims=True)
        scale = 1 / ((n - 1) * n)
        return tuple(np.sum(x, axis=-1) * scale for x in (da * da, db * db, da * db))

    va_a, vb_a, c_a = moments(alpha_a, beta_a, n_a)
    va_b, vb_b, c_b = moments(alpha_b, beta_b, n_b)
    t = np.asarray(t_quantile((1 + confidence) / 2, n_a + n_b - 2))
    return fieller(
        alpha_a.mean(axis=-1) - alpha_b.mean(axis=-1),
        beta_b.mean(axis=-1) - beta_a.mean(axis=-1),
        va_a + va_b,
        vb_a + vb_b,
        -(c_a + c_b),
        t,
    )


def _crossover(
    a: CurveFit, b: CurveFit, feasible: tuple[float, float], confidence: float,
    said: list[Caution],
) -> Estimate | None:  # fmt: skip
    start, end = feasible
    if start > end:
        return None
    if a.model != "linear" or b.model != "linear":
        return _crossing_levels(a, b, feasible, said)
    if min(a.n_sweeps, b.n_sweeps) < 2:
        alpha_a, beta_a = (a.params[name].value or 0.0 for name in ("alpha_s", "beta_s"))
        alpha_b, beta_b = (b.params[name].value or 0.0 for name in ("alpha_s", "beta_s"))
        value = (alpha_a - alpha_b) / (beta_b - beta_a) if beta_a != beta_b else math.inf
        if not start <= value <= end:
            said.append(caution("no_crossover_in_range", start=start, end=end))
            return None
        return Estimate(value=value, unit="requests", n=1, cautions=(caution("single_sweep"),))
    (alpha_a, beta_a), (alpha_b, beta_b) = (np.array(fit.sweeps).T for fit in (a, b))
    found = crossing(alpha_a, beta_a, alpha_b, beta_b, confidence)
    ratio, low, high = float(found.ratio), float(found.low), float(found.high)
    n = min(a.n_sweeps, b.n_sweeps)
    if bool(found.bounded):
        if not start <= ratio <= end:
            if low > end or high < start:
                said.append(caution("no_crossover_in_range", start=start, end=end))
            elif ratio > end:
                said.append(caution("crossover_at_or_above", bound=max(low, start)))
            else:
                said.append(caution("crossover_at_or_below", bound=min(high, end)))
            return None
        outside = low < start or high > end
        return Estimate(
            value=ratio,
            low=max(low, 0.0),
            high=high,
            confidence=confidence,
            unit="requests",
            n=n,
            cautions=(caution("crossover_reaches_outside", start=start, end=end),) * outside,
        )
    if bool(found.everything) or (high <= start or low >= end):
        # The set covers the whole measured range.
        said.append(caution("crossover_open", start=start, end=end))
    elif high <= end:
        said.append(caution("crossover_at_or_above", bound=high))
    elif low >= start:
        said.append(caution("crossover_at_or_below", bound=low))
    else:
        said.append(caution("no_crossover_in_range", start=start, end=end))
    return None


def _crossing_levels(
    a: CurveFit, b: CurveFit, feasible: tuple[float, float], said: list[Caution]
) -> Estimate | None:
    """Between which measured levels interpolated curves cross; no interval."""
    start, end = feasible
    grid = np.unique([x.batch for x in (*a.levels, *b.levels) if start <= x.batch <= end])
    times = [np.array(fit.predict(grid), dtype=float) for fit in (a, b)]
    sign = np.sign(np.log(times[0] / times[1]))
    turns = np.flatnonzero(sign[:-1] * sign[1:] < 0)
    if len(turns) == 0:
        said.append(caution("no_crossover_in_range", start=start, end=end))
        return None
    i = int(turns[0])
    said.append(caution("crossover_between", low=float(grid[i]), high=float(grid[i + 1])))
    return None
