"""One curve of one arm: what each sweep says, whether the line holds, and what is identified."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from gpuverdict.curves.models import MODELS, ModelFit, evaluate, fit_model
from gpuverdict.curves.parameters import linear_parameters
from gpuverdict.curves.points import Level, collect_points, group_levels, level_of, linear_p
from gpuverdict.curves.step import fit_step
from gpuverdict.errors import Caution, ParameterError
from gpuverdict.text import caution
from gpuverdict.units import Estimate, format_value

__all__ = ["CurveFit", "fit_curve", "fit_throughput_curve"]

Floats = NDArray[np.float64]
THREE_PARAMETERS = ("smooth max", "usl", "hinge")
# Method notes, section 14.3: what a line may miss without a test, and what a test may not blame.
REJECT_ERROR, WAIVE_ERROR = 0.10, 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveFit:
    """TPOT against batch for one arm.

    Attributes
    ----------
    model : str
        `linear` where the line holds, a three-parameter model, or `interpolation`.
    params : mapping of name to Estimate
        `alpha_s`, `beta_s`, `x_inf_tokens_per_s` (1/beta), `b_half` (alpha/beta) of the linear
        step, always given, with cautions where they are not identified; further those of the model.
    lack_of_fit_p : float or None
        Of the linear step against the spread over sweeps; None without replicates.
    max_error_ratio : float
        Largest |fitted / observed - 1| of the linear step over level means.
    x_min, x_max : float
        Measured range of the batch; nothing is drawn beyond without a mark.
    infeasible : tuple of float
        Levels the arm could not run: never fitted, and no value is predicted from there on.
    sweeps : tuple of (alpha, beta)
        The linear step of each sweep, sorted.
    """

    model: str
    params: Mapping[str, Estimate]
    lack_of_fit_p: float | None
    max_error_ratio: float
    x_min: float
    x_max: float
    n_sweeps: int
    design: str
    confidence: float
    levels: tuple[Level, ...]
    sweeps: tuple[tuple[float, float], ...]
    sweep_points: tuple[tuple[tuple[float, float], ...], ...]
    infeasible: tuple[float, ...] = ()
    selected: ModelFit | None = None
    cautions: tuple[Caution, ...] = ()

    @overload
    def predict(self, batch: float) -> float | None: ...

    @overload
    def predict(self, batch: Sequence[float] | Floats) -> list[float | None]: ...

    def predict(self, batch: Any) -> Any:
        """Return the step time at batch sizes.

        None from the smallest infeasible level on, and outside the measured range for
        `interpolation`.
        """
        single = np.ndim(batch) == 0
        at = np.atleast_1d(np.asarray(batch, dtype=float))
        values = self._curve(at)
        stop = min(self.infeasible, default=math.inf)
        out = [
            None if b >= stop or not math.isfinite(v) else float(v)
            for b, v in zip(at, values, strict=True)
        ]
        return out[0] if single else out

    def _curve(self, at: Floats) -> Floats:
        if self.model == "interpolation":
            return np.exp(_interpolate(_log_points(self.levels), np.log(at)))
        if self.model == "linear" or self.selected is None:
            names = ("alpha_s", "beta_s")
            line = [self.params[name].value for name in names]
            return evaluate("linear", [0.0 if v is None else v for v in line], at)
        return self.selected.predict(at)

    def sweep_curves(self, at: Floats) -> Floats:
        """Return log step time of each sweep (rows) at batch sizes, by this curve's own rule."""
        if self.model == "interpolation":
            rows = [
                _interpolate((np.log([b for b, _ in s]), np.log([v for _, v in s])), np.log(at))
                for s in self.sweep_points
            ]
        elif self.model == "linear" or self.selected is None:
            rows = [np.log(alpha + beta * at) for alpha, beta in self.sweeps]
        else:
            rows = [
                np.log(fit_model(self.model, *map(list, zip(*s, strict=True))).predict(at))
                for s in self.sweep_points
            ]
        return np.array(rows)

    @property
    def peak_batch(self) -> float | None:
        """Batch of the highest throughput, where the curve has one inside the measured range."""
        if self.selected is None or self.model != "usl":
            return None
        peak = math.sqrt(self.selected.params["a_s"] / self.selected.params["c_s"])
        return peak if self.x_min <= peak <= self.x_max else None

    @property
    def knee_batch(self) -> float | None:
        """Batch from which more streams cost time: the hinge's, else where alpha equals beta B.

        None outside the measured range and for an interpolation.
        """
        if self.model == "interpolation":
            return None
        if self.model == "hinge" and self.selected is not None:
            knee: float | None = self.selected.params["knee"]
        else:
            knee = self.params["b_half"].value
        return knee if knee is not None and self.x_min <= knee <= self.x_max else None

    @property
    def retrograde(self) -> bool:
        """Whether throughput falls again inside the measured range."""
        return self.peak_batch is not None and self.peak_batch < self.x_max

    def __str__(self) -> str:
        p = self.params
        text = (
            f"{self.model}: alpha {format_value(p['alpha_s'].value, 's')}, beta "
            f"{format_value(p['beta_s'].value, 's')}, X_inf "
            f"{format_value(p['x_inf_tokens_per_s'].value, 'tokens_per_s')} "
            f"({len(self.levels)} levels, {self.n_sweeps} sweeps)"
        )
        return text + "".join(f" ({c.code})" for c in self.cautions)

    def _repr_html_(self) -> str:
        return f"<span class='curve'>{escape(str(self))}</span>"


def _log_points(levels: Sequence[Level]) -> tuple[Floats, Floats]:
    return np.log([x.batch for x in levels]), np.log([x.value_s for x in levels])


def _interpolate(points: tuple[Floats, Floats], at: Floats) -> Floats:
    """Monotone interpolation on log-log axes; NaN outside the points.

    The ends are inside although a logarithm of them may round outward.
    """
    x, y = points
    order = np.argsort(x)
    inside = np.where(np.isclose(at, x.min(), rtol=0, atol=1e-12), x.min(), at)
    inside = np.where(np.isclose(at, x.max(), rtol=0, atol=1e-12), x.max(), inside)
    return np.asarray(PchipInterpolator(x[order], y[order], extrapolate=False)(inside))


def fit_throughput_curve(
    batch: Sequence[float],
    tokens_per_s: Sequence[float | None],
    sweep: Sequence[Hashable] | None = None,
    **options: Any,
) -> CurveFit:
    """Fit a saturation curve X(B) = X_inf B / (B + B_half) to throughput: the same linear step.

    Examples
    --------
    >>> fit = fit_throughput_curve([2, 4, 8, 16, 24], [240, 400, 600, 800, 900])
    >>> round(fit.params["x_inf_tokens_per_s"].value), round(fit.params["b_half"].value)
    (1200, 8)
    """
    times = [
        None if x is None or b is None or not x > 0 else b / x
        for b, x in zip(batch, tokens_per_s, strict=True)
    ]
    return fit_curve(batch, times, sweep, **options)


def fit_curve(
    batch: Sequence[float],
    tpot_s: Sequence[float | None],
    sweep: Sequence[Hashable] | None = None,
    *,
    design: Literal["sweep", "cells"] = "sweep",
    infeasible: Sequence[float] = (),
    confidence: float = 0.95,
) -> CurveFit:
    """Say how the step time grows with the batch, and whether a straight line describes it.

    Parameters
    ----------
    batch : sequence of float
        The level's achieved mean concurrency, or the recovered decode batch. Any other driver with
        a positive cost may stand here, such as the prompt length for TTFT.
    tpot_s : sequence of float
        Run statistic at that level, seconds. None is left out and counted.
    sweep : sequence, optional
        Which pass over the levels (one server start) a point belongs to; without it one sweep.
    design : "sweep" or "cells"
        Whether the points of a sweep share a server start, or every point has its own.
    infeasible : sequence of float
        Levels that ran out of memory.

    Returns
    -------
    CurveFit
        Always with the linear step's estimates and their cautions.

    Raises
    ------
    ParameterError
        For fewer than two levels, values that are not positive, or lists of unequal length.

    Notes
    -----
    Least squares of log TPOT = log(alpha + beta B) for each sweep; intervals are t over the sweeps'
    log parameters (coverage 94.7 to 95.8 % at 3, 5 and 10 sweeps; points taken as independent give
    81 to 94 %). `cells`: log least squares over all points with the delta rule. Lack of fit decides
    whether the line holds (p < 0.05 and more than 3 % off; without replicates more than 10 % off);
    AICc over six levels or more chooses a three-parameter model; otherwise monotone interpolation.

    Examples
    --------
    >>> fit = fit_curve([1, 8, 32, 64], [8.9e-3, 11.2e-3, 19.8e-3, 34.2e-3])
    >>> round(fit.params["x_inf_tokens_per_s"].value), round(fit.params["b_half"].value, 1)
    (2602, 21.7)
    >>> [c.code for c in fit.cautions]
    ['single_sweep']
    """
    points, said = collect_points(batch, tpot_s, sweep, infeasible)
    groups = group_levels(points)
    levels = tuple(level_of(group) for group in groups)
    if len(levels) < 2:
        raise ParameterError(
            "curve", found=f"{len(levels)} level", expected="two levels or more of two parameters"
        )
    by_sweep: dict[Any, list[tuple[float, float]]] = {}
    for b, y, s in points:
        by_sweep.setdefault(s, []).append((b, y))
    usable = [sorted(rows) for rows in by_sweep.values() if len({b for b, _ in rows}) >= 2]
    if design == "sweep" and not usable:
        # A pass over one level is no sweep: its points share no server start with other levels.
        design = "cells"
        said.append(caution("passes_of_one_level"))
    if design == "cells":
        usable = []
    elif len(usable) < len(by_sweep):
        said.append(caution("sweeps_too_short", n=len(by_sweep) - len(usable)))
    usable.sort()
    fits = sorted(
        (float(f.alpha), float(f.beta)) for f in (fit_step(*_arrays(rows)) for rows in usable)
    )
    mean_fit = fit_step(
        np.array([level.batch for level in levels]), np.log([level.value_s for level in levels])
    )
    error = float(np.max(np.abs(np.expm1(-mean_fit.residual))))
    solved = len(levels) == 2
    params = linear_parameters(points, fits, mean_fit, levels, design, confidence, solved)
    p = linear_p(groups, mean_fit, design) if len(levels) > 2 else None
    model, selected, more = _choose(levels, p, error)
    said += more
    if solved:
        said.append(caution("as_many_levels_as_parameters"))
    elif design == "sweep" and len(fits) < 2:
        said.append(caution("single_sweep"))
    if infeasible:
        said.append(caution("infeasible_levels", levels=", ".join(f"{x:g}" for x in infeasible)))
    if selected is not None:
        extra = {k: Estimate(value=v, n=len(levels)) for k, v in selected.params.items()}
        params = {**params, **{f"{selected.model} {k}": v for k, v in extra.items()}}
    return CurveFit(
        model=model,
        params=params,
        lack_of_fit_p=p,
        max_error_ratio=error,
        x_min=min(b for b, _, _ in points),
        x_max=max(b for b, _, _ in points),
        n_sweeps=len(fits) if design == "sweep" else 0,
        design=design,
        confidence=confidence,
        levels=levels,
        sweeps=tuple(fits),
        sweep_points=tuple(tuple(rows) for rows in usable),
        infeasible=tuple(sorted(float(x) for x in infeasible)),
        selected=selected,
        cautions=tuple(said),
    )


def _arrays(rows: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    return np.array([b for b, _ in rows]), np.log([y for _, y in rows])


def _choose(
    levels: Sequence[Level], p: float | None, error: float
) -> tuple[str, ModelFit | None, list[Caution]]:
    """Linear unless it is rejected; then the best three-parameter model, or interpolation."""
    rejected = error > REJECT_ERROR if p is None else p < 0.05 and error >= WAIVE_ERROR
    if not rejected:
        if p is not None and p < 0.05:
            return "linear", None, [caution("lack_of_fit_waived", p=p, error=error)]
        return "linear", None, []
    said = [caution("linear_rejected", error=error, p="not tested" if p is None else f"{p:.2g}")]
    batch, value = [x.batch for x in levels], [x.value_s for x in levels]
    if len(levels) >= 6:
        fits = [fit_model(name, batch, value) for name in THREE_PARAMETERS]
        sound = [f for f in fits if f.aicc is not None and f.max_error_ratio < WAIVE_ERROR]
        if sound:
            best = min(sound, key=lambda f: (f.aicc, f.model))
            return best.model, best, said
    return "interpolation", None, said


def n_parameters(fit: CurveFit) -> int:
    """Return over how many free numbers of a curve a band must hold."""
    return len(fit.levels) if fit.model == "interpolation" else MODELS[fit.model].n_parameters
