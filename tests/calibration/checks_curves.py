"""Targets 23-27 of the method notes: curve intervals, bands, crossover, lack of fit, the table."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from tests.calibration.checks import Check, Reached

from gpuverdict.curves import fit_curve
from gpuverdict.curves.compare import crossing
from gpuverdict.curves.step import StepFit, fit_step, lack_of_fit, log_band, two_stage

__all__ = ["CHECKS"]

LEVELS = np.array([1.0, 8.0, 32.0, 64.0])
ALPHA, BETA = 8e-3, 0.4e-3  # B_half 20
CHECKS: list[Check] = []


def _check(target, name, low, high, run, **sizes) -> None:
    CHECKS.append(Check(target, name, low / 100, high / 100, run, **sizes))


def _share(hits: np.ndarray) -> Reached:
    return Reached(float(np.mean(hits)), int(np.size(hits)))


def _sweeps(random, n, runs, curve, cell=0.01, sweep=0.015) -> np.ndarray:
    """Log TPOT of n campaigns x sweeps x levels: cell noise 1 %, sweep effect 1.5 %."""
    effect = random.normal(0, sweep, (n, runs, 1))
    return np.log(curve) + effect + random.normal(0, cell, (n, runs, len(curve)))


def _line(alpha=ALPHA, beta=BETA) -> np.ndarray:
    return alpha + beta * LEVELS


def interval(n, random, *, runs, parameter) -> Reached:
    """Share of two-stage intervals that hold the truth."""
    fit = fit_step(LEVELS, _sweeps(random, n, runs, _line()))
    with np.errstate(divide="ignore"):
        value = -np.log(fit.beta) if parameter == "x_inf" else np.log(fit.alpha / fit.beta)
    truth = -np.log(BETA) if parameter == "x_inf" else np.log(ALPHA / BETA)
    _, low, high = two_stage(value, 0.95)
    return _share((low <= truth) & (truth <= high))


def delta_interval(n, random, *, parameter) -> Reached:
    """Share of delta-rule intervals that hold the truth when every point has its own start."""
    truth = 1 / BETA if parameter == "x_inf_tokens_per_s" else ALPHA / BETA
    batch = np.tile(LEVELS, 4)
    held = []
    for row in np.log(ALPHA + BETA * batch) + random.normal(0, 0.018, (n, batch.size)):
        found = fit_curve(batch, np.exp(row), design="cells").params[parameter]
        held.append(found.low <= truth <= found.high)
    return _share(np.array(held))


def _curves(fit: StepFit, at: np.ndarray) -> np.ndarray:
    """Log throughput of each sweep's own line, campaigns x sweeps x points."""
    return -np.log(fit.alpha[..., None] + fit.beta[..., None] * at)


def band(n, random, *, runs) -> Reached:
    """Share of bands that hold the true log ratio at every batch from 1 to 64."""
    at = np.arange(1.0, 65.0)
    a = fit_step(LEVELS, _sweeps(random, n, runs, _line()))
    b = fit_step(LEVELS, _sweeps(random, n, runs, _line(6e-3, 0.45e-3)))
    truth = np.log(ALPHA + BETA * at) - np.log(6e-3 + 0.45e-3 * at)
    _, low, high = log_band(_curves(a, at), _curves(b, at), 0.95, 2)
    return _share(((low <= truth) & (truth <= high)).all(axis=-1))


def crossover(n, random, *, runs, slope, want="coverage") -> Reached:
    """Fieller sets that hold the true crossover at 20, or are reported as unbounded."""
    beta_b = BETA * (1 + slope)
    alpha_b = ALPHA - 20 * (beta_b - BETA)
    a = fit_step(LEVELS, _sweeps(random, n, runs, _line()))
    b = fit_step(LEVELS, _sweeps(random, n, runs, _line(alpha_b, beta_b)))
    found = crossing(a.alpha, a.beta, b.alpha, b.beta, 0.95)
    if want == "unbounded":
        return _share(~found.bounded)
    inside = (found.low <= 20) & (found.high >= 20)
    holds = np.where(
        found.bounded, inside, found.everything | (found.low >= 20) | (found.high <= 20)
    )
    return _share(holds)


def misfit(n, random, *, runs, curve) -> Reached:
    """Share of campaigns in which lack of fit rejects the line."""
    logs = _sweeps(random, n, runs, curve)
    means = fit_step(LEVELS, logs.mean(axis=1))
    fitted = np.log(means.alpha[:, None] + means.beta[:, None] * LEVELS)
    return _share(lack_of_fit(logs, fitted[:, None, :], 2) < 0.05)


def published(n, random) -> Reached:
    """Share of published alpha and beta that the fit misses by more than 0.5 %."""
    path = Path(__file__).resolve().parents[2] / "data" / "published_tables.csv"
    with path.open(encoding="utf-8") as lines:
        rows = [
            row for row in csv.DictReader(lines)
            if row["source"] == "article-003" and row["metric"] == "tpot"
            and row["status"] == "published" and row["concurrency"]
        ]  # fmt: skip
    worked = {
        "A100": (8.33, 0.384), "H800": (4.92, 0.260), "H20": (4.49, 0.144),
        "RTX 4090": (15.75, 1.152),
    }  # fmt: skip
    missed = []
    for gpu, pair in worked.items():
        mine = [row for row in rows if row["gpu"].startswith(gpu)]
        fit = fit_curve(
            [float(row["concurrency"]) for row in mine], [float(row["value"]) for row in mine]
        )
        for name, truth in zip(("alpha_s", "beta_s"), pair, strict=True):
            missed.append(abs(fit.params[name].value / truth - 1) > 0.005)
    return _share(np.array(missed))


def _with(function, **fixed):
    return lambda n, random: function(n, random, **fixed)


for _runs in (3, 5, 10):
    for _parameter in ("x_inf", "b_half"):
        _check(23, f"coverage of {_parameter}, two-stage, R = {_runs}", 93.5, 96.5,
               _with(interval, runs=_runs, parameter=_parameter), fast=4000)  # fmt: skip
for _parameter in ("x_inf_tokens_per_s", "b_half"):
    _check(23, f"coverage of {_parameter}, independent cells, delta rule", 93.5, 96.5,
           _with(delta_interval, parameter=_parameter), fast=1500, nightly=10_000)  # fmt: skip
for _runs in (3, 5, 10):
    _check(24, f"joint coverage of the band, R = {_runs}", 94.5, 98, _with(band, runs=_runs),
           fast=2500, nightly=20_000)  # fmt: skip
for _runs in (3, 5, 10):
    for _slope in (0.05, 0.20):
        _check(25, f"Fieller crossover, slopes {_slope:.0%} apart, R = {_runs}", 93.5, 96.5,
               _with(crossover, runs=_runs, slope=_slope), fast=3000)  # fmt: skip
_check(25, "unbounded Fieller sets, slopes 5 % apart, R = 3", 25, 50,
       _with(crossover, runs=3, slope=0.05, want="unbounded"), fast=6000)  # fmt: skip
_check(26, "lack of fit rejects a true line, R = 5", 3, 7,
       _with(misfit, runs=5, curve=_line()), fast=4000)  # fmt: skip
_check(26, "lack of fit rejects smooth max p = 2, R = 5", 95, 100,
       _with(misfit, runs=5, curve=np.hypot(ALPHA, BETA * LEVELS)), fast=2000)  # fmt: skip
_check(27, "published alpha and beta missed by more than 0.5 %", 0, 0, published, fast=8, nightly=8)
