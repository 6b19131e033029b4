"""The array core of the linear step: TPOT = alpha + beta B on the log scale, and its checks.

Arrays have levels along the last axis, so that one sweep, a campaign and a Monte Carlo study of ten
thousand campaigns go through the same lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from gpuverdict.stats.ttests import t_quantile

__all__ = ["Fieller", "StepFit", "fieller", "fit_step", "lack_of_fit", "log_band", "two_stage"]

Floats = NDArray[np.float64]

_GRID = np.linspace(np.log(1e-4), np.log(1e4), 47)


class StepFit(NamedTuple):
    """alpha and beta (0 where a bound was met) and the residuals of log y."""

    alpha: Floats
    beta: Floats
    residual: Floats


def _profile(phi: Floats, batch: Floats, log_y: Floats) -> tuple[Floats, Floats]:
    """Centred residual for B_half = exp(phi), and the weight of alpha at each level."""
    level = np.exp(phi)[..., None]
    gap = log_y - np.log(level + batch)
    weight = level / (level + batch)
    return gap - gap.mean(axis=-1, keepdims=True), weight - weight.mean(axis=-1, keepdims=True)


def fit_step(batch: Floats, log_y: Floats) -> StepFit:
    """Fit log y = log(alpha + beta B) by least squares, alpha and beta not below 0.

    Notes
    -----
    Written as log beta + log(B_half + B), the scale is the mean of what is left, so only
    log B_half is searched: a grid of eight decades around the levels, then Gauss-Newton. A
    minimum at an end of the grid is a bound: alpha = 0 (flat throughput) or beta = 0 (flat TPOT).
    """
    batch = np.broadcast_to(np.asarray(batch, dtype=float), np.shape(log_y))
    low, high = np.log(batch.min(axis=-1)), np.log(batch.max(axis=-1))
    middle = low + (high - low) * 0.5
    if log_y.size <= 1000:
        tried = (middle[..., None] + _GRID)[..., None]
        gap = log_y[..., None, :] - np.log(np.exp(tried) + batch[..., None, :])
        cost = gap.var(axis=-1)
    else:
        # One step of the grid at a time: all at once would take 47 times the memory.
        cost = np.stack(
            [np.sum(_profile(middle + at, batch, log_y)[0] ** 2, axis=-1) for at in _GRID], axis=-1
        )
    best = cost.argmin(axis=-1)
    phi = middle + _GRID[best]
    width = _GRID[1] - _GRID[0]
    left, right = phi - width, phi + width
    for _ in range(40):
        residual, weight = _profile(phi, batch, log_y)
        square = np.sum(weight**2, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            move = np.where(square > 0, np.sum(residual * weight, axis=-1) / square, 0.0)
        phi = np.clip(phi + np.clip(move, -width, width), left, right)
        if np.all(np.abs(move) < 1e-13):
            break
    # Beyond the grid's ends the curve no longer changes: the parameter is at its bound.
    at_alpha, at_beta = best == 0, best == len(_GRID) - 1
    if np.any(at_alpha | at_beta):
        flat_x = log_y - np.log(batch)
        flat_x = flat_x - flat_x.mean(axis=-1, keepdims=True)
        flat_y = log_y - log_y.mean(axis=-1, keepdims=True)
    residual, _ = _profile(phi, batch, log_y)
    log_beta = (log_y - np.log(np.exp(phi)[..., None] + batch)).mean(axis=-1)
    beta, alpha = np.exp(log_beta), np.exp(log_beta + phi)
    if np.any(at_alpha):
        alpha = np.where(at_alpha, 0.0, alpha)
        beta = np.where(at_alpha, np.exp((log_y - np.log(batch)).mean(axis=-1)), beta)
        residual = np.where(at_alpha[..., None], flat_x, residual)
    if np.any(at_beta):
        beta = np.where(at_beta, 0.0, beta)
        alpha = np.where(at_beta, np.exp(log_y.mean(axis=-1)), alpha)
        residual = np.where(at_beta[..., None], flat_y, residual)
    return StepFit(alpha, beta, residual)


def two_stage(log_parameter: Floats, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Return mean and t interval of a log parameter over sweeps (last axis).

    Notes
    -----
    Fit each sweep, then treat the sweeps' parameters as the sample: the levels of one sweep share
    its server start and are no replicates of each other.
    """
    values = np.sort(log_parameter, axis=-1)
    n = values.shape[-1]
    mean = values.mean(axis=-1)
    half = t_quantile((1 + confidence) / 2, n - 1) * values.std(axis=-1, ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half


def lack_of_fit(log_y: Floats, fitted: Floats, n_parameters: int) -> Floats:
    """Return the p value that a curve fits the level means, against the spread over sweeps.

    Parameters
    ----------
    log_y : ndarray
        Sweeps x levels along the last two axes.
    fitted : ndarray
        Log of the fitted curve at each point.

    Notes
    -----
    Each sweep's mean is removed, so that what the levels of a sweep share is no error. Pure error
    is the sweep-by-level remainder with (R - 1)(L - 1) df, lack of fit has L - k.
    """
    z = log_y - fitted
    n_sweeps, n_levels = z.shape[-2:]
    level = z.mean(axis=-2, keepdims=True)
    sweep = z.mean(axis=-1, keepdims=True)
    grand = z.mean(axis=(-2, -1), keepdims=True)
    df_fit, df_error = n_levels - n_parameters, (n_sweeps - 1) * (n_levels - 1)
    lack = n_sweeps * np.sum((level - grand) ** 2, axis=(-2, -1))
    error = np.sum((z - level - sweep + grand) ** 2, axis=(-2, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        f = (lack / df_fit) / (error / df_error)
    return np.asarray(special.fdtrc(df_fit, df_error, f))


def log_band(
    log_a: Floats, log_b: Floats, confidence: float, n_parameters: int
) -> tuple[Floats, Floats, Floats]:
    """Return the mean log ratio b over a along a curve, with a simultaneous band.

    Parameters
    ----------
    log_a, log_b : ndarray
        Sweeps x points along the last two axes: each sweep's own fitted log curve.

    Notes
    -----
    Welch at each point at level alpha / k, k the number of curve parameters: a band over a curve of
    k parameters is decided at k places.
    """
    n_a, n_b = log_a.shape[-2], log_b.shape[-2]
    v_a, v_b = log_a.var(axis=-2, ddof=1) / n_a, log_b.var(axis=-2, ddof=1) / n_b
    with np.errstate(divide="ignore", invalid="ignore"):
        df = (v_a + v_b) ** 2 / (v_a**2 / (n_a - 1) + v_b**2 / (n_b - 1))
    least = min(n_a, n_b)
    if least == 2 or (n_a != n_b and least < 5):
        df = np.full(np.shape(df), float(least - 1))
    effect = log_b.mean(axis=-2) - log_a.mean(axis=-2)
    half = t_quantile(1 - (1 - confidence) / (2 * n_parameters), df) * np.sqrt(v_a + v_b)
    return effect, effect - half, effect + half


class Fieller(NamedTuple):
    """A ratio with its confidence set: an interval, or unbounded where the divisor may be 0."""

    ratio: Floats
    low: Floats
    high: Floats
    bounded: NDArray[np.bool_]
    everything: NDArray[np.bool_]


def fieller(
    numerator: Floats, divisor: Floats, v_n: Floats, v_d: Floats, c: Floats, t: Floats
) -> Fieller:
    """Return the confidence set of numerator / divisor.

    Unbounded sets are the *outside* of [low, high], or everything.

    Notes
    -----
    E. C. Fieller, J. R. Stat. Soc. B 16 (1954), doi:10.1111/j.2517-6161.1954.tb00159.x: all x with
    (N - x D)^2 <= t^2 (v_N - 2 x c + x^2 v_D).
    """
    a = divisor**2 - t**2 * v_d
    b = numerator * divisor - t**2 * c
    rest = numerator**2 - t**2 * v_n
    inside = b**2 - a * rest
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(inside, 0.0))
        ends = np.sort(np.stack([(b - root) / a, (b + root) / a]), axis=0)
        ratio = numerator / divisor
    return Fieller(ratio, ends[0], ends[1], a > 0, (a <= 0) & (inside < 0))
