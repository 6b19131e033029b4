"""What a design can see: smallest detectable difference, runs needed, looks at the data."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from gpuverdict.errors import ParameterError
from gpuverdict.stats.ttests import t_quantile

__all__ = ["mde", "power", "runs_needed", "sd_upper_limit", "two_look_alpha"]

_GRID = 4000


def mde(
    sd_log: float,
    n_baseline: int,
    n_candidate: int | None = None,
    *,
    confidence: float = 0.95,
    power: float = 0.80,
    paired: bool = False,
) -> float:
    """Return the smallest true difference found with the stated power, as a fraction.

    Parameters
    ----------
    sd_log : float
        SD over runs of the log statistic (of the log ratios when paired); 0.01 is about 1 %.
    n_baseline, n_candidate : int
        Runs per arm; `n_candidate` defaults to `n_baseline`.

    Notes
    -----
    exp((t(1 - a/2, df) + t(power, df)) s sqrt(1/R_A + 1/R_B)) - 1 with df = R_A + R_B - 2; within
    1 % of exact integration from three runs on, and a lower bound at two.

    Examples
    --------
    >>> round(mde(0.01, 3), 4), round(mde(0.01, 10), 4)
    (0.0308, 0.0133)
    """
    n_candidate = n_baseline if n_candidate is None else n_candidate
    if min(n_baseline, n_candidate) < 2:
        raise ParameterError(
            "runs", found=str(min(n_baseline, n_candidate)), expected="at least two runs an arm"
        )
    if paired:
        df, scale = n_baseline - 1, math.sqrt(1 / n_baseline)
    else:
        df, scale = n_baseline + n_candidate - 2, math.sqrt(1 / n_baseline + 1 / n_candidate)
    tail = (1 + confidence) / 2
    exponent = float(t_quantile(tail, df) + t_quantile(power, df)) * sd_log * scale
    return math.expm1(exponent) if exponent < 700 else math.inf


def power(
    sd_log: float, effect: float, n_per_arm: int, *, confidence: float = 0.95, paired: bool = False
) -> float:
    """Return the probability that a true difference of `effect` (0.05 is 5 %) is found.

    Notes
    -----
    Upper tail of the noncentral t only: `scipy.stats.nct.cdf` gives NaN in the far lower tail,
    which is below 1e-19 wherever that happens; beyond a noncentrality of 12 power is 1.

    Examples
    --------
    >>> round(power(0.02, 0.05, 4), 2)
    0.82
    """
    from scipy import stats as scipy_stats

    df = n_per_arm - 1 if paired else 2 * n_per_arm - 2
    se = sd_log * math.sqrt((1 if paired else 2) / n_per_arm)
    if se == 0 or abs(math.log1p(effect)) / se > 12:
        return 1.0
    critical = float(t_quantile((1 + confidence) / 2, df))
    return float(np.nan_to_num(scipy_stats.nct.sf(critical, df, abs(math.log1p(effect)) / se)))


@lru_cache(maxsize=16)
def _detectable(confidence: float, probability: float, paired: bool) -> NDArray[np.float64]:
    """Smallest detectable log difference per unit of SD, for 2, 3, 4 ... runs an arm."""
    n = np.arange(2, _GRID + 1, dtype=float)
    df = n - 1 if paired else 2 * n - 2
    scale = np.sqrt((1 if paired else 2) / n)
    quantiles = special.stdtrit(df, (1 + confidence) / 2) + special.stdtrit(df, probability)
    return np.asarray(quantiles * scale)


def runs_needed(
    sd_log: float,
    effect: float,
    *,
    confidence: float = 0.95,
    power: float = 0.80,
    paired: bool = False,
) -> int:
    """Return the runs per arm that find a true difference of `effect` with the stated power.

    Parameters
    ----------
    sd_log : float
        SD over runs of the log statistic. From a pilot use `sd_upper_limit` of it: with the plain
        SD of three runs the answer is a coin toss.
    effect : float
        0.03 is 3 %.

    Examples
    --------
    >>> [runs_needed(0.01, effect) for effect in (0.01, 0.02, 0.03, 0.05, 0.10)]
    [17, 6, 4, 3, 2]
    """
    if not (math.isfinite(effect) and effect > 0):
        raise ParameterError("effect", found=repr(effect), expected="a fraction above 0")
    if not (math.isfinite(sd_log) and sd_log >= 0):
        raise ParameterError("sd_log", found=repr(sd_log), expected="a number of 0 or more")
    if sd_log == 0:
        return 2
    table = _detectable(confidence, power, paired)
    wanted = math.log1p(effect) / sd_log
    enough = np.flatnonzero(table <= wanted)
    if enough.size:
        return int(enough[0]) + 2
    z = special.ndtri((1 + confidence) / 2) + special.ndtri(power)
    return math.ceil((1 if paired else 2) * (z / wanted) ** 2)


def sd_upper_limit(sd_log: float, df: int, probability: float = 0.80) -> float:
    """Return the upper limit of a pilot's SD, for planning.

    Notes
    -----
    s sqrt(df / chi2(1 - probability, df)) with the pooled df of the pilot (2 R - 2).

    Examples
    --------
    >>> [round(sd_upper_limit(1.0, 2 * runs - 2), 2) for runs in (3, 5, 10)]
    [1.56, 1.32, 1.18]
    """
    if df < 1:
        raise ParameterError("df", found=str(df), expected="a pilot of two runs or more")
    return sd_log * math.sqrt(df / float(special.chdtri(df, probability)))


def two_look_alpha(look: str) -> float:
    """Return the level of a test that looks twice: 0.01 at the first look, 0.045 at the end.

    Adding runs until p < 0.05 claims a difference in 8 to 14 % of campaigns without one; this rule,
    declared before the data, in 4.3 to 4.7 %.

    Examples
    --------
    >>> two_look_alpha("first"), two_look_alpha("final")
    (0.01, 0.045)
    """
    levels = {"first": 0.01, "final": 0.045}
    if look not in levels:
        raise ParameterError("look", found=repr(look), expected="first or final")
    return levels[look]
