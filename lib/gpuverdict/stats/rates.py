"""Error rates: the test over runs, the difference in percentage points, intervals that widen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from gpuverdict.errors import ParameterError
from gpuverdict.stats import ttests
from gpuverdict.stats.comparison import Comparison, Verdict, check_levels, look_up_metric
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["clopper_pearson", "error_logit", "error_rate", "error_rate_comparison"]

_DECISION_CODES = frozenset({"undecided_rates", "lost_by_adjustment", "below_margin_points"})


def clopper_pearson(
    failures: float, issued: float, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the exact binomial interval of a rate; fractional counts are allowed.

    Notes
    -----
    C. J. Clopper, E. S. Pearson, Biometrika 26 (1934), doi:10.1093/biomet/26.4.404.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 100)
    >>> low, round(high, 5)
    (0.0, 0.03622)
    """
    tail = (1 - confidence) / 2
    low = 0.0 if failures <= 0 else float(special.betaincinv(failures, issued - failures + 1, tail))
    high = (
        1.0
        if failures >= issued
        else float(special.betaincinv(failures + 1, issued - failures, 1 - tail))
    )
    return low, high


def error_logit(failures: np.ndarray, issued: np.ndarray) -> np.ndarray:
    """Return the empirical logit log((x + 0.5) / (n - x + 0.5)) of each run."""
    return np.asarray(np.log((failures + 0.5) / (issued - failures + 0.5)))


def _counts(failures: Sequence[int], issued: Sequence[int], arm: str) -> tuple[np.ndarray, ...]:
    x, n = np.asarray(failures, dtype=float), np.asarray(issued, dtype=float)
    if x.shape != n.shape or x.ndim != 1:
        raise ParameterError(arm, found=f"{x.size} and {n.size} counts", expected="one pair a run")
    if not (np.isfinite(x).all() and np.isfinite(n).all() and ((x >= 0) & (x <= n)).all()):
        raise ParameterError(arm, found="counts", expected="0 <= failures <= requests sent")
    sent = n > 0
    return x[sent], n[sent]


def _inflation(x: np.ndarray, n: np.ndarray) -> float:
    """max(1, phi), phi the Pearson chi-square of the runs over R - 1."""
    p = x.sum() / n.sum()
    if len(x) < 2 or p in (0.0, 1.0):
        return 1.0
    chi_square = float(((x - n * p) ** 2 / (n * p * (1 - p))).sum())
    return max(1.0, chi_square / (len(x) - 1))


def error_rate(
    failures: Sequence[int], issued: Sequence[int], confidence: float = 0.95
) -> Estimate:
    """Return the pooled failure rate of runs, its interval widened by the spread between runs.

    Notes
    -----
    Clopper-Pearson on counts divided by max(1, phi): failures cluster in runs, and the plain
    binomial interval does not know it.
    """
    x, n = _counts(failures, issued, "error rate")
    if not len(x):
        return Estimate(value=None, unit="ratio", cautions=(caution("no_requests_sent"),))
    low, high = _interval(x, n, confidence)
    return Estimate(
        value=float(x.sum() / n.sum()), low=low, high=high, confidence=confidence, unit="ratio",
        n=len(x),
    )  # fmt: skip


def _interval(x: np.ndarray, n: np.ndarray, confidence: float) -> tuple[float, float]:
    phi = _inflation(x, n)
    return clopper_pearson(float(x.sum()) / phi, float(n.sum()) / phi, confidence)


def error_rate_comparison(
    baseline_failures: Sequence[int],
    baseline_issued: Sequence[int],
    candidate_failures: Sequence[int],
    candidate_issued: Sequence[int],
    *,
    metric: str = "error_ratio",
    margin: float = 0.01,
    confidence: float = 0.95,
) -> Comparison:
    """Say whether the candidate fails more often, in percentage points.

    Parameters
    ----------
    baseline_failures, baseline_issued, candidate_failures, candidate_issued : sequence of int
        Failed (error and empty) and sent requests of each run.
    margin : float
        Difference without practical meaning: 0.01 is one percentage point.

    Returns
    -------
    Comparison
        `difference` with its interval; `ratio` only where both rates are above zero. The words are
        `better` and `worse`.

    Notes
    -----
    Welch on the empirical logits of the runs. Without any error in either arm `equivalent` only if
    both upper 95 % bounds, 3 / N, lie below the margin. The interval of the difference combines
    those of the arms (R. G. Newcombe, Stat. Med. 17 (1998),
    doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I).

    Examples
    --------
    >>> c = error_rate_comparison([0, 0, 0], [400] * 3, [20, 24, 18], [400] * 3)
    >>> c.verdict, round(c.difference, 4)
    ('worse', 0.0517)
    >>> error_rate_comparison([0] * 3, [400] * 3, [0] * 3, [400] * 3).verdict
    'equivalent'
    """
    check_levels(margin, confidence)
    declared = look_up_metric(metric)
    x_a, n_a = _counts(baseline_failures, baseline_issued, "baseline")
    x_b, n_b = _counts(candidate_failures, candidate_issued, "candidate")
    plain = Comparison(
        metric=metric, statistic="value", confidence=confidence, margin=margin,
        n_baseline=len(x_a), n_candidate=len(x_b), better=declared.better, speed=declared.speed,
        alpha=1 - confidence,
    )  # fmt: skip
    if not len(x_a) or not len(x_b):
        return replace(plain, verdict="not comparable", cautions=(caution("no_requests_sent"),))
    p_a, p_b = float(x_a.sum() / n_a.sum()), float(x_b.sum() / n_b.sum())
    low, high = _difference(x_a, n_a, x_b, n_b, confidence)
    low90, high90 = _difference(x_a, n_a, x_b, n_b, 2 * confidence - 1)
    plain = replace(
        plain,
        baseline=p_a,
        candidate=p_b,
        ratio=p_b / p_a if p_a > 0 and p_b > 0 else None,
        difference=p_b - p_a,
        difference_low=low,
        difference_high=high,
    )
    if p_a == 0 == p_b:
        # The rule of three: with no error among N requests the rate is below 3 / N (95 %).
        few = max(3 / float(n_a.sum()), 3 / float(n_b.sum()))
        if min(len(x_a), len(x_b)) >= 3 and few < margin:
            return replace(plain, verdict="equivalent", may_be_equivalent=True)
        return replace(
            plain, cautions=(caution("no_errors_few_requests", bound=few, margin=margin),)
        )
    if min(len(x_a), len(x_b)) < 2:
        single = caution("single_run", n_baseline=len(x_a), n_candidate=len(x_b))
        return replace(plain, modifiers=("single-run",), cautions=(single,))
    test = ttests.welch(error_logit(x_a, n_a), error_logit(x_b, n_b), guard=False)
    if bool(test.quantised):
        return replace(plain, modifiers=("quantised",), cautions=(caution("quantised"),))
    bounded = -margin <= low90 and high90 <= margin
    return decided_difference(
        replace(
            plain,
            test="error logit",
            p_value=float(test.p),
            df=float(test.df),
            may_be_equivalent=bounded and min(len(x_a), len(x_b)) >= 3,
        )
    )


def _difference(
    x_a: np.ndarray, n_a: np.ndarray, x_b: np.ndarray, n_b: np.ndarray, confidence: float
) -> tuple[float, float]:
    p_a, p_b = float(x_a.sum() / n_a.sum()), float(x_b.sum() / n_b.sum())
    low_a, high_a = _interval(x_a, n_a, confidence)
    low_b, high_b = _interval(x_b, n_b, confidence)
    down, up = math.hypot(p_b - low_b, high_a - p_a), math.hypot(high_b - p_b, p_a - low_a)
    return p_b - p_a - down, p_b - p_a + up


def decided_difference(plain: Comparison) -> Comparison:
    """Put the word on an error-rate comparison; `may_be_equivalent` already holds its interval."""
    kept = tuple(c for c in plain.cautions if c.code not in _DECISION_CODES)
    marks = tuple(m for m in plain.modifiers if m != "below margin")
    plain = replace(plain, cautions=kept, modifiers=marks, verdict="inconclusive")
    p = plain.p_value if plain.p_adjusted is None else plain.p_adjusted
    if p is None or plain.difference is None:
        return plain
    if plain.may_be_equivalent:
        if p < plain.alpha:
            small = caution("below_margin_points", p=p, margin=plain.margin)
            return replace(
                plain,
                verdict="equivalent",
                modifiers=(*marks, "below margin"),
                cautions=(*kept, small),
            )
        return replace(plain, verdict="equivalent")
    if p < plain.alpha and plain.difference != 0:
        good = (plain.difference < 0) == (plain.better == "lower")
        word: Verdict = "better" if good else "worse"
        return replace(plain, verdict=word)
    said = caution(
        "undecided_rates",
        low=plain.difference_low or 0.0,
        high=plain.difference_high or 0.0,
        margin=plain.margin,
    )
    return replace(plain, cautions=(*kept, said))
