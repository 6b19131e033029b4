"""Huber's M-estimators: a location and a regression that a few stalls do not move."""

from __future__ import annotations

import numpy as np

__all__ = ["huber_location", "huber_regression"]

HUBER_K = 1.345
MAD_TO_SIGMA = 1.4826


def huber_location(values: np.ndarray, smallest_scale: float = 0.0) -> float:
    """Locate a sample with the Huber M-estimator (k = 1.345, scale fixed at the MAD).

    Parameters
    ----------
    values : ndarray
    smallest_scale : float
        Floor of the scale, for samples of few distinct values, whose MAD can be 0.

    References
    ----------
    P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics
    35(1), 1964. doi:10.1214/aoms/1177703732

    Examples
    --------
    >>> round(huber_location(np.array([1.0, 1.1, 0.9, 1.0, 50.0])), 3)
    1.05
    """
    middle = float(np.median(values))
    scale = MAD_TO_SIGMA * float(np.median(np.abs(values - middle)))
    scale = max(scale, smallest_scale)
    if scale == 0:
        return middle
    for _ in range(50):
        step = float(np.clip(values - middle, -HUBER_K * scale, HUBER_K * scale).mean())
        middle += step
        if abs(step) < 1e-9 * scale:
            break
    return middle


def huber_regression(
    design: np.ndarray, values: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """Huber M-regression by reweighting; the scale is the MAD of the current residuals."""
    weight = np.ones(values.size)
    if start is not None:
        weight = _huber_weight(values - design @ start)
    found = np.zeros(design.shape[1]) if start is None else start
    for _ in range(20):
        weighted = design * weight[:, None]
        before = found
        found = np.linalg.lstsq(weighted.T @ design, weighted.T @ values, rcond=None)[0]
        if np.allclose(found, before, rtol=1e-5, atol=0.0):
            break
        weight = _huber_weight(values - design @ found)
    return found


def _huber_weight(left: np.ndarray) -> np.ndarray:
    scale = MAD_TO_SIGMA * float(np.median(np.abs(left - np.median(left))))
    if scale == 0:
        return np.ones(left.size)
    return np.minimum(1.0, HUBER_K * scale / np.maximum(np.abs(left), 1e-300))
