"""Parameters of the linear step with their intervals, and what the levels identify."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuverdict.curves.points import Level
from gpuverdict.curves.step import fit_step, two_stage
from gpuverdict.errors import Caution
from gpuverdict.stats.ttests import t_quantile
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["linear_parameters"]

Floats = NDArray[np.float64]


def linear_parameters(
    points: Sequence[tuple[float, float, Any]],
    fits: Sequence[tuple[float, float]],
    mean_fit: Any,
    levels: Sequence[Level],
    design: str,
    confidence: float,
    solved: bool,
) -> dict[str, Estimate]:
    """Give alpha, beta and what follows from them, each with its interval over sweeps or cells."""
    n = len(points) if design == "cells" else len(fits)
    alphas, betas = np.array([f[0] for f in fits]), np.array([f[1] for f in fits])
    intervals: dict[str, tuple[float | None, float | None, float | None]] = {}
    bound: set[str] = set()
    whole = (float(mean_fit.alpha), float(mean_fit.beta))
    if design == "cells":
        intervals, bound = _delta(points, confidence)
    else:
        for name, values in _derived(alphas, betas, whole).items():
            intervals[name], at_bound = _over_sweeps(*values, confidence)
            if at_bound:
                bound.add(name)
    largest_x = max(level.batch / level.value_s for level in levels)
    x_min, x_max = levels[0].batch, levels[-1].batch
    half = intervals["b_half"][0]
    result = {}
    for name, unit in (
        ("alpha_s", "s"), ("beta_s", "s"), ("x_inf_tokens_per_s", "tokens_per_s"),
        ("b_half", "requests"),
    ):  # fmt: skip
        value, low, high = intervals[name]
        said: list[Caution] = []
        if name in bound:
            said.append(caution("parameter_at_bound", name=name))
        if name == "x_inf_tokens_per_s":
            if half is None or x_max < 2 * half:
                said.append(caution("x_inf_not_identified", x_max=x_max))
            if value is not None and value > largest_x:
                said.append(caution("x_inf_extrapolated", ratio=value / largest_x))
        if name == "b_half" and (half is None or x_min > half / 4 or x_max < half):
            said.append(caution("b_half_not_identified", x_min=x_min, x_max=x_max))
        known = low is not None and not solved
        result[name] = Estimate(
            value=value,
            low=low if known else None,
            high=high if known else None,
            confidence=confidence if known else None,
            unit=unit,
            n=n,
            cautions=tuple(said),
        )
    return result


def _derived(
    alphas: Floats, betas: Floats, whole: tuple[float, float]
) -> dict[str, tuple[Floats, float | None]]:
    """Each reported parameter: over the sweeps, and from the level means for the bounds."""
    alpha, beta = whole
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "alpha_s": (alphas, alpha),
            "beta_s": (betas, beta),
            "x_inf_tokens_per_s": (1 / betas, 1 / beta if beta > 0 else None),
            "b_half": (alphas / betas, alpha / beta if beta > 0 else None),
        }


def _over_sweeps(
    values: Floats, whole: float | None, confidence: float
) -> tuple[tuple[float | None, float | None, float | None], bool]:
    if not (np.isfinite(values).all() and (values > 0).all()):
        return (whole, None, None), True
    logs = np.log(values)
    if len(logs) < 2:
        return (float(values[0]), None, None), False
    mean, low, high = (float(np.exp(x)) for x in two_stage(logs, confidence))
    return (mean, low, high), False


def _delta(
    points: Sequence[tuple[float, float, Any]], confidence: float
) -> tuple[dict[str, tuple[float | None, float | None, float | None]], set[str]]:
    """Pooled log least squares over independent points, delta rule, t(n - 2)."""
    b, log_y = np.array([p[0] for p in points]), np.log([p[1] for p in points])
    fit = fit_step(b, log_y)
    alpha, beta = float(fit.alpha), float(fit.beta)
    plain = _derived(np.array([alpha]), np.array([beta]), (alpha, beta))
    if alpha <= 0 or beta <= 0:
        at = {name for name, (v, _) in plain.items() if not (np.isfinite(v[0]) and v[0] > 0)}
        return {name: (whole, None, None) for name, (_, whole) in plain.items()}, at
    if len(b) < 3:
        return {name: (whole, None, None) for name, (_, whole) in plain.items()}, set()
    weight = alpha / (alpha + beta * b)
    jacobian = np.stack([weight, 1 - weight], axis=1)
    variance = float(np.sum(fit.residual**2)) / (len(b) - 2)
    cov = variance * np.linalg.inv(jacobian.T @ jacobian)
    t = float(t_quantile((1 + confidence) / 2, len(b) - 2))
    contrast = {
        "alpha_s": [1.0, 0.0], "beta_s": [0.0, 1.0], "x_inf_tokens_per_s": [0.0, -1.0],
        "b_half": [1.0, -1.0],
    }  # fmt: skip
    result: dict[str, tuple[float | None, float | None, float | None]] = {}
    for name, (values, _) in plain.items():
        g = np.array(contrast[name])
        half = t * math.sqrt(float(g @ cov @ g))
        value = float(values[0])
        result[name] = (value, value * math.exp(-half), value * math.exp(half))
    return result, set()
