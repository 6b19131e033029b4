"""The array core of every test: logs of run statistics in, effect, error and p value out.

All functions work along the last axis (runs), so that one campaign and a Monte Carlo study of a
hundred thousand campaigns go through the same lines.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = [
    "EQUIVALENT",
    "HIGHER",
    "LOWER",
    "UNDECIDED",
    "MeanTest",
    "decide",
    "floor_test",
    "interval",
    "paired",
    "permutation_p",
    "t_quantile",
    "welch",
]

Floats = NDArray[np.float64]

UNDECIDED, HIGHER, LOWER, EQUIVALENT = 0, 1, -1, 2

PERMUTATIONS_LIMIT = 20_000
_PERMUTATION_SEED = 20_240_229


class MeanTest(NamedTuple):
    """Effect on the log scale with its standard error, degrees of freedom and two-sided p.

    `quantised` marks tests whose variance is zero by construction of the statistic: they have no p.
    """

    effect: Floats
    se: Floats
    df: Floats
    p: Floats
    quantised: NDArray[np.bool_]


def t_quantile(probability: float, df: Any) -> Any:
    """Return the quantile of Student's t."""
    return special.stdtrit(df, probability)


def _finish(effect: Floats, se: Floats, df: Floats, quantised: NDArray[np.bool_]) -> MeanTest:
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(effect) / se
    p = np.where(quantised | ~np.isfinite(t), np.nan, 2.0 * special.stdtr(df, -t))
    return MeanTest(effect, se, df, p, quantised)


def welch(log_a: Floats, log_b: Floats, *, guard: bool = True) -> MeanTest:
    """Test whether the mean log of b differs from that of a, without assuming equal variances.

    Parameters
    ----------
    log_a, log_b : ndarray
        Logs of the run statistics, runs along the last axis; at least two runs each.
    guard : bool
        Refuse a p value when one arm has no variance at all (a quantised statistic); without it
        only when neither has any.

    Notes
    -----
    Welch-Satterthwaite. With few and unequal runs the Satterthwaite df are liberal (9.7 % at
    2 against 5 runs and a 6:1 ratio of SDs), so df = min(R) - 1 when R_A != R_B and min(R) < 5, or
    min(R) = 2. B. L. Welch, Biometrika 34 (1947), doi:10.1093/biomet/34.1-2.28.

    Examples
    --------
    >>> import numpy as np
    >>> test = welch(np.log([10.0, 11.0, 12.0]), np.log([20.0, 22.0, 24.0]))
    >>> round(float(np.exp(test.effect)), 6), round(float(test.p), 5)
    (2.0, 0.00074)
    """
    # Sorted, so that the order in which files were listed cannot move the last bit of a sum.
    a, b = np.sort(log_a, axis=-1), np.sort(log_b, axis=-1)
    n_a, n_b = a.shape[-1], b.shape[-1]
    effect = b.mean(axis=-1) - a.mean(axis=-1)
    v_a, v_b = a.var(axis=-1, ddof=1) / n_a, b.var(axis=-1, ddof=1) / n_b
    flat_a, flat_b = a[..., 0] == a[..., -1], b[..., 0] == b[..., -1]
    v_a, v_b = np.where(flat_a, 0.0, v_a), np.where(flat_b, 0.0, v_b)
    quantised = (flat_a | flat_b) if guard else (flat_a & flat_b)
    least = min(n_a, n_b)
    if least == 2 or (n_a != n_b and least < 5):
        df = np.full(np.shape(effect), float(least - 1))
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            df = (v_a + v_b) ** 2 / (v_a**2 / (n_a - 1) + v_b**2 / (n_b - 1))
    return _finish(effect, np.sqrt(v_a + v_b), df, quantised)


def paired(log_a: Floats, log_b: Floats) -> MeanTest:
    """Test whether paired log ratios have a mean other than zero (one-sample t).

    Only for pairs made by the design: same seed block and prompts, adjacent in time, ABBA order.
    """
    difference = log_b - log_a
    order = np.argsort(np.abs(difference), axis=-1, kind="stable")
    difference = np.take_along_axis(difference, order, axis=-1)
    n = difference.shape[-1]
    sd = difference.std(axis=-1, ddof=1)
    flat = (np.ptp(log_a, axis=-1) == 0) | (np.ptp(log_b, axis=-1) == 0)
    # b = k a leaves differences that vary by rounding alone; their SD is no measurement.
    rounding = 16 * np.finfo(float).eps * np.maximum(1.0, np.abs(log_a).max(axis=-1))
    effect = difference.mean(axis=-1)
    df = np.full(np.shape(effect), float(n - 1))
    return _finish(effect, sd / math.sqrt(n), df, flat | (sd <= rounding))


def floor_test(effect: Floats, sd_log: float, n_floor: int, n_a: int, n_b: int) -> MeanTest:
    """Test an effect against a noise floor: SD of the log statistic from `n_floor` A/A runs."""
    effect = np.asarray(effect, dtype=float)
    se = np.full(np.shape(effect), sd_log * math.sqrt(1 / n_a + 1 / n_b))
    df = np.full(np.shape(effect), float(n_floor - 1))
    return _finish(effect, se, df, np.zeros(np.shape(effect), dtype=bool))


def interval(test: MeanTest, confidence: float, gain: float = 0.0) -> tuple[Floats, Floats]:
    """Return the interval of the log ratio, widened in quadrature by a systematic gain error."""
    half = t_quantile(0.5 + confidence / 2, test.df) * test.se
    if gain:
        half = np.hypot(half, gain)
    return test.effect - half, test.effect + half


def decide(
    p: Floats,
    ci: tuple[Floats, Floats],
    ci90: tuple[Floats, Floats],
    *,
    margin: float,
    may_be_equivalent: bool | NDArray[np.bool_] = True,
    alpha: float = 0.05,
) -> NDArray[np.int8]:
    """Decide equivalence first, then difference; everything else stays undecided.

    Intervals are of the log ratio. Returns `EQUIVALENT`, `HIGHER`, `LOWER` or `UNDECIDED`; a NaN
    anywhere compares false and so ends undecided.

    Notes
    -----
    Two one-sided tests: D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987),
    doi:10.1007/BF01068419.
    """
    bound = math.log1p(margin)
    equivalent = (
        np.isfinite(p) & np.asarray(may_be_equivalent) & (ci90[0] >= -bound) & (ci90[1] <= bound)
    )
    significant = p < alpha
    higher, lower = significant & (ci[0] > 0), significant & (ci[1] < 0)
    code = np.where(higher, HIGHER, np.where(lower, LOWER, UNDECIDED))
    return np.where(equivalent, EQUIVALENT, code).astype(np.int8)


@lru_cache(maxsize=64)
def assignments(n_a: int, n_b: int) -> tuple[Floats, bool]:
    """0/1 rows choosing the smaller arm out of all runs, and whether they are complete."""
    n, k = n_a + n_b, min(n_a, n_b)
    if math.comb(n, k) <= PERMUTATIONS_LIMIT:
        chosen = np.array(list(combinations(range(n), k)))
        complete = True
    else:
        random = np.random.default_rng(_PERMUTATION_SEED)
        chosen = np.argsort(random.random((PERMUTATIONS_LIMIT, n)), axis=1)[:, :k]
        complete = False
    rows = np.zeros((len(chosen), n))
    np.put_along_axis(rows, chosen, 1.0, axis=1)
    return rows, complete


@lru_cache(maxsize=64)
def _signs(n: int) -> tuple[Floats, bool]:
    if 2**n <= PERMUTATIONS_LIMIT:
        return np.array(list(product((-1.0, 1.0), repeat=n))), True
    random = np.random.default_rng(_PERMUTATION_SEED)
    return random.choice((-1.0, 1.0), size=(PERMUTATIONS_LIMIT, n)), False


def permutation_p(log_a: Floats, log_b: Floats, *, pairs: bool = False) -> tuple[Floats, bool]:
    """Return the permutation p of |difference of mean logs| over runs, and whether it is exact.

    All assignments of runs to arms (all sign flips of pairs) up to 20 000 of them; above that
    20 000 random ones with a fixed seed. The observed assignment counts.

    Examples
    --------
    >>> import numpy as np
    >>> p, exact = permutation_p(np.log([1.0, 2, 3, 4]), np.log([5.0, 6, 7, 8]))
    >>> round(float(p), 6), exact
    (0.028571, True)
    """
    if pairs:
        difference = log_b - log_a
        rows, complete = _signs(difference.shape[-1])
        observed = np.abs(difference.mean(axis=-1))
        null = np.abs(difference @ rows.T) / difference.shape[-1]
    else:
        # The smaller arm is always the chosen one: swapping arms then gives the same p.
        small, large = (log_a, log_b) if log_a.shape[-1] <= log_b.shape[-1] else (log_b, log_a)
        n_small, n_large = small.shape[-1], large.shape[-1]
        pooled = np.sort(np.concatenate([small, large], axis=-1), axis=-1)
        # Centred: the sums below lose no digits when all logs are far from zero.
        centre = pooled.mean(axis=-1, keepdims=True)
        pooled = pooled - centre
        rows, complete = assignments(n_small, n_large)
        observed = np.abs(large.mean(axis=-1) - small.mean(axis=-1))
        total = pooled.sum(axis=-1, keepdims=True)
        chosen = pooled @ rows.T
        null = np.abs((total - chosen) / n_large - chosen / n_small)
    # Ties with the observed value must count although their sums round differently.
    threshold = observed - 1e-12 * np.maximum(observed, 1e-3)
    count = np.sum(null >= threshold[..., None], axis=-1)
    if complete:
        return count / rows.shape[0], True
    return (count + 1) / (rows.shape[0] + 1), False
