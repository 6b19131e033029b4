"""Curves and roofline of the H200 sample: run values off the raw files, fits by scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.optimize import curve_fit
from tests.reference.test_h200_regression import REPEATS, STREAMS, run_statistic

from gpuverdict.capacity import decode_roofline
from gpuverdict.curves import CurveFit, compare_curves, fit_curve


def series(arm: str) -> tuple[list[float], list[float], list[int]]:
    """batch, TPOT and sweep of every run of an arm."""
    batch, tpot, sweep = [], [], []
    for streams in STREAMS:
        for repeat, value in enumerate(run_statistic(arm, "tpot_s", streams)):
            batch.append(float(streams))
            tpot.append(value)
            sweep.append(repeat)
    return batch, tpot, sweep


def scipy_lines(arm: str) -> np.ndarray:
    """(log alpha, log beta) of each sweep."""
    found = []
    for repeat in range(REPEATS[arm]):
        y = np.log([run_statistic(arm, "tpot_s", streams)[repeat] for streams in STREAMS])
        p, _ = curve_fit(
            lambda b, p, q: np.log(np.exp(p) + np.exp(q) * b), np.array(STREAMS, dtype=float), y,
            p0=np.log([6e-3, 0.3e-3]), xtol=1e-14, ftol=1e-14,
        )  # fmt: skip
        found.append(p)
    return np.array(found)


def fitted(arm: str) -> CurveFit:
    return fit_curve(*series(arm))


@pytest.mark.parametrize("arm", ["card-a", "card-b", "card-b-eager"])
def test_lines_of_the_arms_with_intervals(arm: str) -> None:
    fit, lines = fitted(arm), scipy_lines(arm)
    t = scipy_stats.t.ppf(0.975, REPEATS[arm] - 1) / math.sqrt(REPEATS[arm])
    logs = {"alpha_s": lines[:, 0], "beta_s": lines[:, 1], "b_half": lines[:, 0] - lines[:, 1]}
    for name, values in logs.items():
        half = t * values.std(ddof=1)
        found = fit.params[name]
        ends = (math.exp(values.mean() - half), math.exp(values.mean() + half))
        assert found.value == pytest.approx(math.exp(values.mean()), rel=1e-5)
        assert (found.low, found.high) == pytest.approx(ends, rel=1e-4)
    assert fit.model == "linear"
    codes = {c.code for c in fit.params["x_inf_tokens_per_s"].cautions}
    assert "x_inf_extrapolated" in codes
    # Eager steps are bound by the host: 64 streams do not reach twice its half-saturation batch.
    assert ("x_inf_not_identified" in codes) == (arm == "card-b-eager")


def test_the_eager_gap_closes_but_stays_open_up_to_64() -> None:
    graphs, eager = fitted("card-b"), fitted("card-b-eager")
    result = compare_curves(graphs, eager, [1, 4, 16, 32, 64])
    assert all(a < b for a, b in zip(result.ratio, result.ratio[1:], strict=False))
    assert result.high[-1] < 1
    assert [(s.start, s.end, s.faster, s.beyond_margin) for s in result.spans] == [
        (1, 32, "baseline", True),
        (64, 64, "baseline", False),
    ]
    assert result.crossover is None
    logs = [
        np.log(np.exp(x[:, 0]) + np.exp(x[:, 1]) * 64.0)
        for x in (scipy_lines("card-b"), scipy_lines("card-b-eager"))
    ]
    theirs = scipy_stats.ttest_ind(logs[0], logs[1], equal_var=False)
    band = theirs.confidence_interval(1 - 0.05 / 2)
    assert (result.low[-1], result.high[-1]) == pytest.approx(tuple(np.exp(band)), rel=1e-4)


def test_two_cards_of_one_model_are_not_told_apart_by_their_curves() -> None:
    result = compare_curves(fitted("card-a"), fitted("card-b"), [1, 4, 16, 64])
    assert result.spans == ()
    assert all(low < 1 < high for low, high in zip(result.low, result.high, strict=True))


def test_bandwidth_use_of_one_stream() -> None:
    step = math.exp(np.mean(np.log(run_statistic("card-a", "tpot_s", 1))))
    line = decode_roofline(
        step, read_bytes_per_step=13_214_687_232, active_parameters=6_738_415_616,
        kv_bytes_per_token=524_288, context_tokens=512 + 64, bandwidth_bytes_per_s=4.8e12,
    )  # fmt: skip
    by_hand = (13_214_687_232 + 576 * 524_288) / step / 4.8e12
    assert line.mbu_ratio.value == pytest.approx(by_hand, rel=1e-12)
    assert line.mbu_ratio.value == pytest.approx(0.468, abs=0.001)
    assert not line.impossible
