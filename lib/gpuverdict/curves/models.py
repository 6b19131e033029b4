"""Step-time models of one series: TPOT against batch, fitted on the log scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from gpuverdict.curves.step import fit_step
from gpuverdict.errors import ParameterError

__all__ = ["MODELS", "ModelFit", "StepModel", "evaluate", "fit_model"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepModel:
    """A curve: its parameters in order, the formula, and where to start looking."""

    names: tuple[str, ...]
    formula: str
    curve: Callable[[Floats, Floats], Floats]
    starts: Callable[[Floats, Floats], list[list[float]]]

    @property
    def n_parameters(self) -> int:
        """How many parameters are fitted."""
        return len(self.names)


def _rough(batch: Floats, y: Floats) -> tuple[float, float]:
    """A first alpha and beta: the lowest level, and the slope per sequence of the highest."""
    return float(y[0]), float(y[-1] / batch[-1])


def _hinge(p: Floats, batch: Floats) -> Floats:
    return np.asarray(p[0] + p[1] * np.maximum(0.0, batch - p[2]))


MODELS: Mapping[str, StepModel] = {
    "linear": StepModel(
        names=("alpha_s", "beta_s"),
        formula="alpha + beta B",
        curve=lambda p, b: p[0] + p[1] * b,
        starts=lambda b, y: [list(_rough(b, y))],
    ),
    "roofline": StepModel(
        names=("alpha_s", "beta_s"),
        formula="max(alpha, beta B)",
        curve=lambda p, b: np.maximum(p[0], p[1] * b),
        starts=lambda b, y: [[y[i], y[j] / b[j]] for i in range(len(b)) for j in range(len(b))],
    ),
    "smooth max": StepModel(
        names=("alpha_s", "beta_s", "exponent"),
        formula="(alpha^p + (beta B)^p)^(1/p)",
        curve=lambda p, b: np.exp(
            np.logaddexp(p[2] * np.log(p[0]), p[2] * np.log(p[1] * b)) / p[2]
        ),
        starts=lambda b, y: [[*_rough(b, y), e] for e in (0.7, 1.5, 4.0)],
    ),
    "usl": StepModel(
        names=("a_s", "b_s", "c_s"),
        formula="a + b B + c B^2",
        curve=lambda p, b: p[0] + p[1] * b + p[2] * b * b,
        starts=lambda b, y: [
            [_rough(b, y)[0], _rough(b, y)[1] * f, _rough(b, y)[1] * (1 - f) / b[-1]]
            for f in (0.9, 0.5, 0.1)
        ],
    ),
    "hinge": StepModel(
        names=("alpha_s", "beta_s", "knee"),
        formula="alpha + beta max(0, B - knee)",
        curve=_hinge,
        starts=lambda b, y: [[y[0], max(y[-1] - y[0], 1e-9) / b[-1], knee] for knee in b[:-1]],
    ),
    "power": StepModel(
        names=("a_s", "exponent"),
        formula="a B^g",
        curve=lambda p, b: p[0] * b ** p[1],
        starts=lambda b, y: [[y[0], 0.5]],
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFit:
    """One model fitted to one series.

    `max_error_ratio` is the largest |fitted / observed - 1|; `aicc` is None with too few levels.
    """

    model: str
    params: Mapping[str, float]
    max_error_ratio: float
    aicc: float | None
    n_levels: int

    def predict(self, batch: Sequence[float] | Floats) -> Floats:
        """Evaluate the curve."""
        return evaluate(self.model, list(self.params.values()), np.asarray(batch, dtype=float))

    def __str__(self) -> str:
        values = ", ".join(f"{name} {value:.4g}" for name, value in self.params.items())
        return f"{self.model}: {values}; largest error {self.max_error_ratio:.1%}"


def evaluate(model: str, params: Sequence[float], batch: Floats) -> Floats:
    """Return the step time of a model at batch sizes."""
    return np.asarray(MODELS[model].curve(np.asarray(params, dtype=float), batch))


def fit_model(model: str, batch: Sequence[float], tpot_s: Sequence[float]) -> ModelFit:
    """Fit one model to one series by least squares of log TPOT.

    Parameters
    ----------
    model : str
        `linear`, `roofline`, `smooth max`, `usl`, `hinge` or `power`.
    batch, tpot_s : sequence of float
        One value a level.

    Raises
    ------
    ParameterError
        For an unknown model, values that are not positive, or fewer levels than parameters.

    Notes
    -----
    USL in this form: lambda N / (1 + sigma (N - 1) + kappa N (N - 1)) with a = (1 - sigma)/lambda,
    b = (sigma - kappa)/lambda, c = kappa/lambda; throughput peaks at sqrt(a / c).

    Examples
    --------
    >>> print(fit_model("linear", [1, 8, 32, 64], [8.9e-3, 11.2e-3, 19.8e-3, 34.2e-3]))
    linear: alpha_s 0.00833, beta_s 0.0003843; largest error 4.2%
    """
    if model not in MODELS:
        raise ParameterError("model", found=repr(model), expected=", ".join(MODELS))
    b, y = np.asarray(batch, dtype=float), np.asarray(tpot_s, dtype=float)
    if b.shape != y.shape or not (np.isfinite(b).all() and np.isfinite(y).all()):
        raise ParameterError("curve", found="points", expected="finite numbers in equal lists")
    if len(b) and (b.min() <= 0 or y.min() <= 0):
        raise ParameterError("curve", found="values of 0 or less", expected="positive numbers")
    declared = MODELS[model]
    k, n = declared.n_parameters, len(set(b.tolist()))
    if n < k:
        raise ParameterError(
            "curve", found=f"{n} levels", expected=f"{k} or more for {declared.formula}"
        )
    order = np.lexsort((y, b))
    b, y = b[order], y[order]
    if model == "linear":
        fit = fit_step(b, np.log(y))
        params, residual = [float(fit.alpha), float(fit.beta)], fit.residual
    else:
        params, residual = _search(declared, b, y)
    squares = float(np.sum(residual**2))
    aicc = None
    if n >= k + 3 and squares > 0:
        # k curve parameters and the error variance.
        m = k + 1
        aicc = n * math.log(squares / n) + 2 * m + 2 * m * (m + 1) / (n - m - 1)
    return ModelFit(
        model=model,
        params=dict(zip(declared.names, params, strict=True)),
        max_error_ratio=float(np.max(np.abs(np.expm1(-residual)))),
        aicc=aicc,
        n_levels=n,
    )


def _search(declared: StepModel, b: Floats, y: Floats) -> tuple[list[float], Floats]:
    """Least squares over log parameters from several starts: all parameters are positive."""
    log_y = np.log(y)

    def miss(log_params: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            fitted = declared.curve(np.exp(np.clip(log_params, -60, 60)), b)
            return np.nan_to_num(log_y - np.log(fitted), nan=1e6, posinf=1e6, neginf=-1e6)

    best = None
    for start in declared.starts(b, y):
        found = least_squares(
            miss, np.log(np.maximum(start, 1e-12)), xtol=1e-14, ftol=1e-14, gtol=1e-14
        )
        if best is None or found.cost < best.cost * (1 - 1e-9):
            best = found
    if best is None:
        raise ParameterError("curve", found="no start", expected="two levels or more")
    return [float(value) for value in np.exp(np.clip(best.x, -60, 60))], miss(best.x)
