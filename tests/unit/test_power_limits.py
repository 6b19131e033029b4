"""Efficiency against the power limit, on a simulated card whose best limit is known."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from tests.simulator.make_caps import make_caps, tokens_per_joule
from tests.timed import Gpu, write_timed

from gpuverdict import figures
from gpuverdict.capacity import efficiency_peak, power_limit_curve
from gpuverdict.case import Case, open_campaign, open_case

CLOCKS = {250: 0.45, 350: 0.6, 450: 0.75, 550: 0.9, 700: 1.0}


@pytest.fixture(scope="module")
def caps(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return open_case(make_caps(tmp_path_factory.mktemp("caps"), CLOCKS))


def test_every_run_is_a_point_at_its_true_efficiency(caps: Case) -> None:
    curve = power_limit_curve(caps.measured, caps.summary, "cap450")
    assert len(curve.points) == 5 * 3
    assert sorted(set(curve.points.limit_w)) == list(CLOCKS)
    for limit, own in curve.points.groupby("limit_w"):
        assert own.tokens_per_j.mean() == pytest.approx(tokens_per_joule(CLOCKS[limit]), rel=0.01)
    # Twice the clock is twice the speed of a step, and this load is nothing but steps.
    speed = curve.points.groupby("limit_w").tokens_per_s.mean()
    assert speed[700] / speed[350] == pytest.approx(1.0 / 0.6, rel=0.02)


def test_the_peak_lies_where_the_truth_has_it(caps: Case) -> None:
    clocks = np.linspace(0.45, 1.0, 56)
    truth = clocks[int(np.argmax([tokens_per_joule(c) for c in clocks]))]
    true_limit_w = float(np.interp(truth, list(CLOCKS.values()), list(CLOCKS)))
    curve = power_limit_curve(caps.measured, caps.summary, "cap250")
    assert curve.resolved
    assert curve.low_w < true_limit_w < curve.high_w
    assert (curve.best_limit_w, curve.low_w, curve.high_w) == (350, 250, 450)
    plate = figures.power_limits(caps)
    assert "between 250 and 450 W" in plate.finding
    assert "350 W, with 60 %" in plate.finding
    assert "cap250 … cap700" in plate.finding
    assert len(plate.frame) == 15
    assert "250 与 450 W 之间" in figures.power_limits(caps, "zh").finding


def test_a_peak_beyond_the_tested_limits_is_not_claimed(tmp_path: Path) -> None:
    path = make_caps(tmp_path, {450: 0.75, 550: 0.9, 700: 1.0}, n=160)
    case = open_case(path)
    curve = power_limit_curve(case.measured, case.summary, "cap450")
    assert not curve.resolved
    assert (curve.low_w, curve.high_w) == (None, 550)
    finding = figures.power_limits(case).finding
    assert "inconclusive" in finding
    assert "below 550 W" in finding


def test_the_enforced_limit_counts(tmp_path: Path) -> None:
    path = make_caps(tmp_path, {350: 0.6, 700: 1.0}, n=60, repeats=2, declared={350: 300})
    case = open_case(path)
    curve = power_limit_curve(case.measured, case.summary, "cap350")
    assert set(curve.points.limit_w) == {350, 700}
    (said,) = [c for c in curve.cautions if c.code == "limit_not_enforced"]
    assert (said.values["declared_w"], said.values["enforced_w"]) == (300, 350)
    assert {c.code for c in curve.cautions} == {"limit_not_enforced", "limits_too_few"}
    assert "inconclusive" in figures.power_limits(case).finding


def test_another_card_or_setting_is_no_power_limit(tmp_path: Path) -> None:
    path = make_caps(tmp_path, {350: 0.6, 700: 1.0}, n=60, repeats=2, gpus=("one", "other"))
    measured, summary = open_campaign(path)
    assert power_limit_curve(measured, summary, "cap350") is None


def test_one_limit_is_no_curve(tmp_path: Path) -> None:
    case = open_case(write_timed(tmp_path, repeats=1, levels=(1,), n=20, gpus={"a": (Gpu(),)}))
    plate = figures.power_limits(case)
    assert plate.frame.empty
    assert "not measured, all runs were made under one limit" in plate.finding


def test_a_limit_without_a_trace_is_the_declared_one(tmp_path: Path) -> None:
    # No energy without a trace: the limit is known and the efficiency is not.
    path = make_caps(tmp_path, {350: 0.6, 700: 1.0}, n=60, repeats=2)
    text = path.read_text()
    path.write_text(text.replace('"traces": ["cap350/trace_r1.csv", "cap350/trace_r2.csv"], ', ""))
    measured, summary = open_campaign(path)
    assert power_limit_curve(measured, summary, "cap350") is None


@pytest.mark.parametrize(("sigma", "runs"), [(0.01, 3), (0.02, 5)])
def test_the_true_peak_is_missed_in_at_most_one_of_twenty(sigma: float, runs: int) -> None:
    limits = np.array([300.0, 400.0, 500.0, 600.0, 700.0])
    peak_w, draws = 460.0, 400
    truth = -4e-6 * (limits - peak_w) ** 2
    rng = np.random.default_rng(zlib.crc32(f"peak {sigma} {runs}".encode()))
    missed = resolved = 0
    for _ in range(draws):
        values = np.exp(truth[:, None] + rng.normal(0, sigma, (limits.size, runs)))
        _, low, high, _ = efficiency_peak(dict(zip(limits, values.tolist(), strict=True)))
        missed += (low is not None and low > peak_w) or (high is not None and high < peak_w)
        resolved += low is not None and high is not None
    # Three standard errors of a share of 5 % in 400 draws.
    assert missed / draws <= 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5
    assert resolved / draws > 0.5, "and it does find peaks"
