"""Quantiles of one run: which may be tested, printed or bounded, and what makes runs comparable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from gpuverdict.errors import ParameterError
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = [
    "equal_n",
    "minimum_requests",
    "quantile",
    "quantile_upper_bound",
    "statistic_level",
    "tail_rule",
]

TailRule = Literal["tested", "printed", "suppressed"]


def statistic_level(statistic: str) -> float | None:
    """Return 0.95 for `p95`, and None for a statistic that is no quantile.

    Examples
    --------
    >>> statistic_level("p95"), statistic_level("mean")
    (0.95, None)
    """
    if statistic.startswith("p") and statistic[1:].replace(".", "", 1).isdigit():
        return float(statistic[1:]) / 100
    return None


def quantile(values: Sequence[float] | NDArray[np.float64], q: float) -> float | None:
    """Return the linear (type 7) sample quantile; None for no values.

    Notes
    -----
    R. J. Hyndman, Y. Fan, Am. Stat. 50 (1996), doi:10.1080/00031305.1996.10473566.

    Examples
    --------
    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.95), quantile([], 0.5)
    (3.8499999999999996, None)
    """
    array = np.asarray(values, dtype=float)
    if array.size == 0:
        return None
    return float(np.quantile(array, q))


def tail_rule(n: int, q: float) -> TailRule:
    """Say whether a quantile of a run of n requests may be tested, only printed, or neither.

    Tested from five requests beyond it, printed from one; a median needs two requests.

    Examples
    --------
    >>> tail_rule(500, 0.99), tail_rule(499, 0.99), tail_rule(99, 0.99), tail_rule(100, 0.95)
    ('tested', 'printed', 'suppressed', 'tested')
    """
    if not 0 < q < 1:
        raise ParameterError("q", found=repr(q), expected="a number between 0 and 1")
    if q <= 0.5:
        return "tested" if n >= 2 else "printed" if n == 1 else "suppressed"
    beyond = n * (1 - q) + 1e-9  # 50 (1 - 0.9) is 4.999999999999999 in floating point
    return "tested" if beyond >= 5 else "printed" if beyond >= 1 else "suppressed"


def equal_n(runs: Sequence[Sequence[float]]) -> list[NDArray[np.float64]]:
    """Cut all runs of a cell to the smallest number of requests, keeping the earliest.

    A tail quantile of 100 requests and one of 1 000 have different biases: compared as they are
    they differ in 16 % of campaigns without a difference (p99). Not needed for medians.

    Parameters
    ----------
    runs : sequence of sequences
        Request values of each run in order of start, of both arms together.

    Examples
    --------
    >>> [run.tolist() for run in equal_n([[1.0, 2.0, 3.0], [4.0, 5.0]])]
    [[1.0, 2.0], [4.0, 5.0]]
    """
    arrays = [np.asarray(run, dtype=float) for run in runs]
    least = min((len(array) for array in arrays), default=0)
    return [array[:least] for array in arrays]


def minimum_requests(
    q: float, confidence: float = 0.99, *, over_latency: int = 1, two_sided: bool = False
) -> int:
    """Return how many requests a distribution-free statement about a quantile needs.

    Parameters
    ----------
    q, confidence : float
        "The q quantile is at most x, with this confidence".
    over_latency : int
        Requests that may lie above x.
    two_sided : bool
        Half of the error on this side.

    Examples
    --------
    >>> [minimum_requests(q) for q in (0.9, 0.95, 0.99, 0.999)]
    [64, 130, 662, 6636]
    >>> [minimum_requests(q, over_latency=0) for q in (0.9, 0.95, 0.99, 0.999)]
    [44, 90, 459, 4603]
    """
    error = (1 - confidence) / (2 if two_sided else 1)
    low, high = over_latency, over_latency + 1
    # P(at most `over_latency` of n requests lie beyond the quantile) falls with n: bracket, halve.
    while special.bdtr(over_latency, high, 1 - q) > error:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if special.bdtr(over_latency, middle, 1 - q) > error:
            low = middle
        else:
            high = middle
    return high


def quantile_upper_bound(
    values: Sequence[float],
    q: float,
    *,
    confidence: float = 0.99,
    over_latency: int = 1,
    unit: str = "",
) -> Estimate:
    """Bound a quantile of one run from above without assuming a distribution.

    Returns
    -------
    Estimate
        `value` the sample quantile, `high` the bound: the smallest order statistic that holds with
        the confidence. `high` is None below the floor of `minimum_requests`, with a caution.

    Notes
    -----
    Assumes independent requests, which batching violates; the caution says so.

    Examples
    --------
    >>> bound = quantile_upper_bound([i / 100 for i in range(100)], 0.9)
    >>> bound.high, bound.cautions[0].code
    (0.96, 'assumes_independent_requests')
    """
    array = np.sort(np.asarray(values, dtype=float))
    n = int(array.size)
    needed = minimum_requests(q, confidence, over_latency=over_latency)
    sample = quantile(array, q)
    if n < needed:
        thin = caution("bound_needs_requests", q=q, n=n, needed=needed)
        return Estimate(value=sample, unit=unit, n=n, confidence=confidence, cautions=(thin,))
    k = math.ceil(n * q)
    while special.bdtr(k - 1, n, q) < confidence:
        k += 1
    return Estimate(
        value=sample,
        high=float(array[k - 1]),
        confidence=confidence,
        unit=unit,
        n=n,
        cautions=(caution("assumes_independent_requests"),),
    )
