"""Curves of step time against batch: known lines, the published table, small and odd inputs."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.optimize import curve_fit

from gpuverdict.curves import (
    compare_curves,
    fit_curve,
    fit_model,
    fit_throughput_curve,
)
from gpuverdict.curves.step import fit_step
from gpuverdict.errors import ParameterError

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT.parent / "shared" / "cases"
LEVELS = np.array([1.0, 4.0, 16.0, 64.0])


def codes(result) -> set[str]:
    return {c.code for c in result.cautions}


def simulated(alpha, beta, n_sweeps, seed, levels=LEVELS, cell=0.01, sweep=0.015):
    """batch, time and sweep of points around a line; noise multiplies."""
    random = np.random.default_rng(seed)
    effects = random.normal(0, sweep, (n_sweeps, 1))
    logs = np.log(alpha + beta * levels) + effects + random.normal(0, cell, (n_sweeps, len(levels)))
    batch = np.tile(levels, n_sweeps)
    return batch, np.exp(logs).ravel(), np.repeat(np.arange(n_sweeps), len(levels))


def test_the_step_is_the_least_squares_line_of_logs():
    batch, y, _ = simulated(8e-3, 0.4e-3, 1, 3)
    fit = fit_step(batch, np.log(y))
    theirs, _ = curve_fit(
        lambda b, p, q: np.log(np.exp(p) + np.exp(q) * b), batch, np.log(y),
        p0=np.log([8e-3, 0.4e-3]), xtol=1e-14, ftol=1e-14,
    )  # fmt: skip
    assert [float(fit.alpha), float(fit.beta)] == pytest.approx(np.exp(theirs).tolist(), rel=1e-6)


def test_two_stage_intervals_are_t_over_sweeps():
    batch, y, sweep = simulated(8e-3, 0.4e-3, 5, 4)
    fit = fit_curve(batch, y, sweep)
    betas = []
    for s in range(5):
        p, _ = curve_fit(
            lambda b, p, q: np.log(np.exp(p) + np.exp(q) * b), batch[sweep == s],
            np.log(y[sweep == s]), p0=np.log([8e-3, 0.4e-3]), xtol=1e-14, ftol=1e-14,
        )  # fmt: skip
        betas.append(p[1])
    half = scipy_stats.t.ppf(0.975, 4) * np.std(betas, ddof=1) / math.sqrt(5)
    x_inf = fit.params["x_inf_tokens_per_s"]
    assert x_inf.value == pytest.approx(math.exp(-np.mean(betas)), rel=1e-6)
    assert x_inf.high == pytest.approx(math.exp(-np.mean(betas) + half), rel=1e-5)
    assert fit.params["alpha_s"].n == 5
    assert fit.model == "linear"


def test_independent_cells_use_the_delta_rule():
    random = np.random.default_rng(6)
    batch = np.tile(LEVELS, 4)
    y = np.exp(np.log(8e-3 + 0.4e-3 * batch) + random.normal(0, 0.01, 16))
    fit = fit_curve(batch, y, design="cells")
    p, cov = curve_fit(
        lambda b, p, q: np.log(np.exp(p) + np.exp(q) * b), batch, np.log(y),
        p0=np.log([8e-3, 0.4e-3]), xtol=1e-14, ftol=1e-14,
    )  # fmt: skip
    half = scipy_stats.t.ppf(0.975, 14) * math.sqrt(cov[1, 1])
    beta = fit.params["beta_s"]
    assert beta.high == pytest.approx(math.exp(p[1] + half), rel=1e-4)


def test_the_order_of_points_changes_no_bit():
    batch, y, sweep = simulated(8e-3, 0.4e-3, 4, 8)
    order = np.random.default_rng(1).permutation(len(batch))
    assert fit_curve(batch, y, sweep) == fit_curve(batch[order], y[order], sweep[order])


@pytest.mark.parametrize("k", [1e-3, 7.0, 1000.0])
def test_scaling_times_scales_parameters_and_changes_no_choice(k):
    batch, y, sweep = simulated(8e-3, 0.4e-3, 4, 9)
    plain, scaled = fit_curve(batch, y, sweep), fit_curve(batch, k * y, sweep)
    for name in ("alpha_s", "beta_s"):
        assert scaled.params[name].value == pytest.approx(k * plain.params[name].value, rel=1e-9)
        assert scaled.params[name].low == pytest.approx(k * plain.params[name].low, rel=1e-9)
    assert scaled.params["x_inf_tokens_per_s"].value == pytest.approx(
        plain.params["x_inf_tokens_per_s"].value / k, rel=1e-9
    )
    assert scaled.params["b_half"].value == pytest.approx(plain.params["b_half"].value, rel=1e-9)
    assert scaled.model == plain.model
    assert scaled.lack_of_fit_p == pytest.approx(plain.lack_of_fit_p, rel=1e-6)


def test_achieved_batches_that_wander_are_one_level():
    random = np.random.default_rng(12)
    batch, _, sweep = simulated(8e-3, 0.4e-3, 4, 2)
    achieved = batch * np.exp(random.uniform(-0.02, 0.02, len(batch)))
    y = np.exp(np.log(8e-3 + 0.4e-3 * achieved) + random.normal(0, 0.01, len(batch)))
    fit = fit_curve(achieved, y, sweep)
    assert len(fit.levels) == 4
    assert fit.lack_of_fit_p is not None


def published(gpu: str) -> tuple[list[float], list[float]]:
    rows = list(csv.DictReader((ROOT / "data" / "published_tables.csv").open(encoding="utf-8")))
    points = sorted(
        (float(r["concurrency"]), float(r["value"]) / 1e3)
        for r in rows
        if r["source"] == "article-003" and r["gpu"].startswith(gpu) and r["metric"] == "tpot"
        and r["status"] == "published" and r["concurrency"]
    )  # fmt: skip
    return [b for b, _ in points], [v for _, v in points]


# Section 14.7 of the method notes: alpha and beta in ms, X_inf, B_half, largest errors in %.
WORKED = {
    "A100": (8.33, 0.384, 2602, 21.7, (4.2, 12.2, 2.3, 0.5), (-9.5, 15.8, -3.5)),
    "H800": (4.92, 0.260, 3848, 18.9, (6.7, 16.8, 5.7, 3.8), (-11.4, 9.7, -11.4)),
    "H20": (4.49, 0.144, 6930, 31.1, (4.7, 12.3, 4.2, 3.7), (-7.6, 23.4, -7.6)),
}


@pytest.mark.parametrize("gpu", WORKED)
def test_the_published_table_gives_the_worked_values(gpu):
    alpha, beta, x_inf, b_half, errors, _ = WORKED[gpu]
    batch, tpot = published(gpu)
    assert batch == [1, 8, 32, 64]
    fit = fit_curve(batch, tpot)
    p = fit.params
    assert p["alpha_s"].value * 1e3 == pytest.approx(alpha, rel=0.005)
    assert p["beta_s"].value * 1e3 == pytest.approx(beta, rel=0.005)
    assert p["x_inf_tokens_per_s"].value == pytest.approx(x_inf, rel=0.005)
    assert p["b_half"].value == pytest.approx(b_half, rel=0.005)
    assert p["x_inf_tokens_per_s"].low is None
    assert "x_inf_extrapolated" in codes(p["x_inf_tokens_per_s"])
    beyond = p["x_inf_tokens_per_s"].value / max(b / t for b, t in zip(batch, tpot, strict=True))
    assert 1.355 <= beyond <= 1.535
    assert "single_sweep" in codes(fit)
    for model, error in zip(("linear", "roofline", "smooth max", "usl"), errors, strict=True):
        found = fit_model(model, batch, tpot).max_error_ratio
        assert 100 * found == pytest.approx(error, abs=0.06)


@pytest.mark.parametrize("gpu", WORKED)
def test_predictions_at_64_from_lower_levels(gpu):
    batch, tpot = published(gpu)
    for model, miss in zip(("linear", "roofline", "usl"), WORKED[gpu][5], strict=True):
        at_64 = fit_model(model, batch[:3], tpot[:3]).predict([64.0])[0]
        assert 100 * (at_64 / tpot[3] - 1) == pytest.approx(miss, abs=0.1)


def test_the_published_4090_is_no_line_and_stops_before_64():
    batch, tpot = published("RTX 4090")
    assert batch == [1, 8, 32]
    fit = fit_curve(batch, tpot, infeasible=[64])
    assert fit.params["alpha_s"].value * 1e3 == pytest.approx(15.75, rel=0.005)
    assert fit.params["beta_s"].value * 1e3 == pytest.approx(1.152, rel=0.005)
    assert fit.model == "interpolation"
    assert 100 * fit.max_error_ratio == pytest.approx(12.1, abs=0.06)
    assert {"linear_rejected", "infeasible_levels"} <= codes(fit)
    assert fit.predict([1, 32, 64]) == [pytest.approx(tpot[0]), pytest.approx(tpot[2]), None]


def test_h20_and_h800_do_not_cross():
    h20, h800 = (fit_curve(*published(gpu)) for gpu in ("H20", "H800"))
    result = compare_curves(h800, h20, [1, 8, 32, 64])
    assert result.crossover is None
    assert {"no_crossover_in_range", "curves_without_band"} <= codes(result)
    assert result.low == (None,) * 4
    assert all(r > 1 for r in result.ratio)
    assert result.spans == ()


@pytest.mark.skipif(not CASES.exists(), reason="no case folder beside the repository")
def test_case_63_few_points():
    folder = next(CASES.glob("63-*"))
    right = json.loads((folder / "expected.json").read_text())["right"]
    series: dict[str, tuple[list[float], list[float]]] = {}
    for row in csv.DictReader((folder / "points.csv").open()):
        batch, rate = series.setdefault(row["series"], ([], []))
        batch.append(float(row["batch"]))
        rate.append(float(row["tok_s"]))
    with pytest.raises(ParameterError):
        fit_throughput_curve(*series["one"])
    two = fit_throughput_curve(*series["two"])
    assert two.params["x_inf_tokens_per_s"].value == pytest.approx(right["two_tmax"], rel=1e-6)
    assert two.params["b_half"].value == pytest.approx(right["two_k"], rel=1e-6)
    assert two.params["b_half"].low is None
    assert "as_many_levels_as_parameters" in codes(two)
    flat = fit_throughput_curve(*series["flat"])
    assert flat.params["x_inf_tokens_per_s"].value == pytest.approx(right["flat_tmax"], rel=1e-6)
    assert flat.params["b_half"].value == right["flat_k"]
    assert "parameter_at_bound" in codes(flat.params["b_half"])
    assert flat.params["b_half"].high is None
    five = fit_throughput_curve(*series["five"])
    assert five.params["x_inf_tokens_per_s"].value == pytest.approx(right["five_tmax"], rel=1e-6)
    assert five.params["b_half"].value == pytest.approx(right["five_k"], rel=1e-6)


def test_two_levels_never_have_an_interval():
    batch, y, sweep = simulated(8e-3, 0.4e-3, 5, 1, levels=np.array([1.0, 64.0]))
    fit = fit_curve(batch, y, sweep)
    assert fit.params["beta_s"].low is None
    assert fit.lack_of_fit_p is None


def test_flat_tpot_has_no_saturation():
    fit = fit_curve([1, 4, 16], [0.01, 0.01, 0.01])
    assert fit.params["beta_s"].value == 0
    assert fit.params["x_inf_tokens_per_s"].value is None
    assert fit.predict(4.0) == pytest.approx(0.01)


def test_identification_follows_the_levels():
    short = fit_curve([1, 2, 4, 8], [20.4, 20.8, 21.6, 23.2])  # alpha 20, beta 0.4: B_half 50
    assert "x_inf_not_identified" in codes(short.params["x_inf_tokens_per_s"])
    assert "b_half_not_identified" in codes(short.params["b_half"])
    high = fit_curve([50, 100, 200], [40.0, 60.0, 100.0])
    assert "x_inf_not_identified" not in codes(high.params["x_inf_tokens_per_s"])
    assert "b_half_not_identified" in codes(high.params["b_half"])


def test_a_curved_truth_is_found_with_seven_levels():
    levels = np.array([1.0, 2, 4, 8, 16, 32, 64])
    random = np.random.default_rng(3)
    truth = 5e-3 + 0.2e-3 * levels + 0.004e-3 * levels**2
    logs = np.log(truth) + random.normal(0, 0.01, (5, 1)) + random.normal(0, 0.005, (5, 7))
    fit = fit_curve(np.tile(levels, 5), np.exp(logs).ravel(), np.repeat(range(5), 7))
    assert fit.model == "usl"
    assert fit.lack_of_fit_p < 1e-4
    assert fit.params["usl c_s"].value == pytest.approx(0.004e-3, rel=0.1)
    assert fit.predict(32.0) == pytest.approx(truth[5], rel=0.03)
    assert fit.peak_batch == pytest.approx(math.sqrt(5 / 0.004), rel=0.1) or fit.peak_batch is None
    four = fit_curve(
        np.tile(levels[[0, 2, 4, 6]], 5), np.exp(logs[:, [0, 2, 4, 6]]).ravel(),
        np.repeat(range(5), 4),
    )  # fmt: skip
    assert four.model == "interpolation"
    assert four.predict(200.0) is None
    assert four.predict(0.5) is None


def test_a_falling_throughput_is_retrograde():
    levels = np.array([1.0, 2, 4, 8, 16, 32, 64])
    random = np.random.default_rng(7)
    truth = 5e-3 + 0.1e-3 * levels + 0.02e-3 * levels**2
    logs = np.log(truth) + random.normal(0, 0.005, (5, 7))
    fit = fit_curve(np.tile(levels, 5), np.exp(logs).ravel(), np.repeat(range(5), 7))
    assert fit.peak_batch == pytest.approx(math.sqrt(5 / 0.02), rel=0.05)
    assert fit.retrograde
    line = curve(8e-3, 0.4e-3, 1)
    assert not line.retrograde
    assert line.knee_batch == pytest.approx(20, rel=0.1)


def test_interpolation_is_monotone_and_meets_the_levels():
    batch, tpot = published("RTX 4090")
    fit = fit_curve(batch, tpot)
    grid = np.linspace(1, 32, 200)
    values = np.array(fit.predict(grid), dtype=float)
    assert (np.diff(values) > 0).all()
    assert fit.predict(8.0) == pytest.approx(tpot[1], rel=1e-12)


def test_a_small_misfit_is_waived():
    levels = np.array([1.0, 4, 16, 64])
    shape = np.array([1.0, 1.02, 0.98, 1.0])
    random = np.random.default_rng(5)
    logs = np.log((8e-3 + 0.4e-3 * levels) * shape) + random.normal(0, 0.0005, (5, 4))
    fit = fit_curve(np.tile(levels, 5), np.exp(logs).ravel(), np.repeat(range(5), 4))
    assert fit.lack_of_fit_p < 1e-6
    assert fit.model == "linear"
    assert "lack_of_fit_waived" in codes(fit)


def test_lack_of_fit_by_hand():
    # Two sweeps, three levels, no sweep effect: z = log y - log fit.
    from gpuverdict.curves.step import lack_of_fit

    z = np.array([[0.01, -0.02, 0.01], [0.03, -0.04, 0.01]])
    level = z.mean(axis=0)
    lack = 2 * np.sum((level - z.mean()) ** 2)
    error = np.sum((z - level - z.mean(axis=1)[:, None] + z.mean()) ** 2)
    expected = scipy_stats.f.sf((lack / 1) / (error / 2), 1, 2)
    assert float(lack_of_fit(z, np.zeros((2, 3)), 2)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "points",
    [
        ([1], [1.0]),
        ([1, 1], [1.0, 1.1]),
        ([1, 2], [1.0, -1.0]),
        ([0, 2], [1.0, 1.0]),
        ([1, 2], [1.0]),
    ],
)  # fmt: skip
def test_points_that_make_no_curve_are_refused(points):
    with pytest.raises(ParameterError):
        fit_curve(*points)


def test_missing_and_infeasible_points_are_counted():
    fit = fit_curve([1, 4, 16, 64, 128], [1.0, 1.2, None, 3.0, 9.9], infeasible=[128])
    assert "points_left_out" in codes(fit)
    assert fit.x_max == 64
    assert fit.predict([64, 128, 500])[1:] == [None, None]


def curve(alpha, beta, seed, n=4, **options):
    return fit_curve(*simulated(alpha, beta, n, seed), **options)


def test_the_band_is_welch_at_bonferroni_level():
    a, b = curve(8e-3, 0.4e-3, 1), curve(6e-3, 0.5e-3, 2)
    result = compare_curves(a, b, [4.0])
    logs = [
        [-math.log(alpha + beta * 4.0) for alpha, beta in fit.sweeps] for fit in (a, b)
    ]  # fmt: skip
    theirs = scipy_stats.ttest_ind(logs[1], logs[0], equal_var=False)
    interval = theirs.confidence_interval(1 - 0.05 / 2)
    assert (result.low[0], result.high[0]) == pytest.approx(tuple(np.exp(interval)), rel=1e-9)


def test_swapping_curves_inverts_band_and_keeps_the_crossover():
    a, b = curve(8e-3, 0.3e-3, 1), curve(5e-3, 0.6e-3, 2)
    there, back = compare_curves(a, b, LEVELS), compare_curves(b, a, LEVELS)
    for i in range(4):
        assert there.ratio[i] * back.ratio[i] == pytest.approx(1, rel=1e-12)
        assert there.low[i] * back.high[i] == pytest.approx(1, rel=1e-12)
    assert there.crossover.value == pytest.approx(back.crossover.value, rel=1e-12)
    assert there.crossover.value == pytest.approx(10, rel=0.15)
    assert there.crossover.low < 10 < there.crossover.high
    assert [s.faster for s in there.spans] == ["candidate", "baseline"]
    assert [s.faster for s in back.spans] == ["baseline", "candidate"]


def test_fieller_ends_solve_the_defining_equation():
    a, b = curve(8e-3, 0.3e-3, 1), curve(5e-3, 0.6e-3, 2)
    found = compare_curves(a, b, LEVELS).crossover
    t = scipy_stats.t.ppf(0.975, 6)
    for x in (found.low, found.high):
        gaps = [[alpha + beta * x for alpha, beta in fit.sweeps] for fit in (a, b)]
        se = math.sqrt(sum(np.var(g, ddof=1) / 4 for g in gaps))
        assert abs(np.mean(gaps[0]) - np.mean(gaps[1])) == pytest.approx(t * se, rel=1e-9)


def test_parallel_curves_have_no_crossover():
    a, b = curve(8e-3, 0.4e-3, 1), curve(6e-3, 0.4e-3, 2)
    result = compare_curves(a, b, LEVELS)
    assert result.crossover is None
    assert codes(result) & {
        "crossover_at_or_above", "crossover_open", "no_crossover_in_range",
    }  # fmt: skip


def test_nothing_outside_the_common_range():
    a = curve(8e-3, 0.4e-3, 1)
    batch, y, sweep = simulated(8e-3, 0.4e-3, 4, 2, levels=np.array([4.0, 8.0, 16.0]))
    b = fit_curve(batch, y, sweep, infeasible=[32])
    result = compare_curves(a, b, [1, 4, 16, 64])
    assert [r is None for r in result.ratio] == [True, False, False, True]
    far = fit_curve([100, 200, 400], [1.0, 2.0, 4.1])
    assert "curves_without_common_range" in codes(compare_curves(a, far, [1.0, 100.0]))


def test_interpolated_curves_name_the_levels_they_cross_between():
    a = fit_curve([1, 8, 32], [10.0, 12.0, 40.0])
    b = fit_curve([1, 8, 32], [6.0, 18.0, 30.0])
    result = compare_curves(a, b, [1, 8, 32])
    assert a.model == "interpolation"
    assert result.crossover is None
    said = next(c for c in result.cautions if c.code == "crossover_between")
    assert (said.values["low"], said.values["high"]) == (1, 8)


def test_passes_of_one_level_are_independent_points():
    fit = fit_curve([1, 4, 16, 64, 64], [6.3, 7.2, 10.8, 25.1, 25.3], [1, 2, 3, 4, 5])
    assert "passes_of_one_level" in codes(fit)
    assert fit.design == "cells"
    same = fit_curve([1, 4, 16, 64, 64], [6.3, 7.2, 10.8, 25.1, 25.3], design="cells")
    assert fit.params == same.params
