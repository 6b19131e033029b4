"""Targets 23-27 on the shipped curve functions."""

from __future__ import annotations

import numpy as np
import pytest
from tests.calibration.checks import Check
from tests.calibration.checks_curves import CHECKS, LEVELS, _line, _sweeps
from tests.calibration.evidence import rng_of

from gpuverdict.curves import compare_curves, fit_curve
from gpuverdict.curves.compare import crossing
from gpuverdict.curves.step import fit_step

pytestmark = pytest.mark.calibration


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.target}: {check.name}")
def test_target_fast(check: Check) -> None:
    reached = check.reach()
    assert check.holds(reached), f"reached {reached.value:.4f} +- {reached.error:.4f}"


@pytest.mark.nightly
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.target}: {check.name}")
def test_target_nightly(check: Check) -> None:
    reached = check.reach(nightly=True)
    assert check.holds(reached), f"reached {reached.value:.4f} +- {reached.error:.4f}"


def test_public_functions_give_what_the_array_core_gives() -> None:
    random = rng_of("curves, public against core")
    logs = [_sweeps(random, 1, 4, _line(*line))[0] for line in ((8e-3, 0.3e-3), (5e-3, 0.6e-3))]
    batch, sweep = np.tile(LEVELS, 4), np.repeat(range(4), 4)
    a, b = (fit_curve(batch, np.exp(x).ravel(), sweep) for x in logs)
    fits = [fit_step(LEVELS, x) for x in logs]
    assert sorted(fits[0].alpha.tolist()) == pytest.approx([s[0] for s in a.sweeps], rel=1e-12)
    order = [np.argsort(f.alpha) for f in fits]
    pairs = [x for f, o in zip(fits, order, strict=True) for x in (f.alpha[o], f.beta[o])]
    core = crossing(*pairs, 0.95)
    crossover = compare_curves(a, b, LEVELS).crossover
    assert (crossover.low, crossover.high) == pytest.approx((core.low, core.high), rel=1e-9)


def test_points_as_independent_fall_short(monkeypatch: pytest.MonkeyPatch) -> None:
    # The control: a normal quantile in place of t turns the interval target red at three sweeps.
    from gpuverdict.curves import step

    monkeypatch.setattr(step, "t_quantile", lambda q, df: 1.96)
    check = next(c for c in CHECKS if c.name == "coverage of x_inf, two-stage, R = 3")
    assert not check.holds(check.reach())
