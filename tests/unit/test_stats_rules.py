"""Quantile rules, error rates, mixes, exact answers and scope, by hand and by scipy."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats

from gpuverdict.errors import ParameterError
from gpuverdict.stats import (
    adjust,
    cards_comparison,
    clopper_pearson,
    compare_arms,
    equal_n,
    error_rate,
    error_rate_comparison,
    interaction,
    mix_distance,
    quantile,
    quantile_upper_bound,
    rank_test,
    stability,
    standardise_mix,
    tail_rule,
    tipping_point,
    variance_components,
)

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"
needs_cases = pytest.mark.skipif(not CASES.exists(), reason="no case folder beside the repository")


def test_tail_rule_counts_requests_beyond():
    assert [tail_rule(n, 0.95) for n in (19, 20, 99, 100)] == [
        "suppressed", "printed", "printed", "tested",
    ]  # fmt: skip
    assert tail_rule(50, 0.90) == "tested"
    assert [tail_rule(n, 0.5) for n in (0, 1, 2)] == ["suppressed", "printed", "tested"]
    with pytest.raises(ParameterError):
        tail_rule(10, 95)


def test_quantile_is_type_seven():
    values = [3.0, 1.0, 4.0, 1.5, 9.0]
    # h = 4 * 0.9 = 3.6 between the 4th and 5th ordered value
    assert quantile(values, 0.9) == pytest.approx(4.0 + 0.6 * 5.0)


def test_bound_is_the_least_order_statistic_that_holds():
    values = np.arange(1000.0)
    bound = quantile_upper_bound(values, 0.99)
    k = next(k for k in range(1, 1001) if scipy_stats.binom.cdf(k - 1, 1000, 0.99) >= 0.99)
    assert bound.high == values[k - 1]
    assert quantile_upper_bound(values[:661], 0.99).high is None
    assert quantile_upper_bound(values[:662], 0.99).high == 660.0


def test_two_sided_floors():
    from gpuverdict.stats import minimum_requests

    options = {"confidence": 0.95, "over_latency": 0}
    assert [minimum_requests(q, **options) for q in (0.9, 0.95, 0.99)] == [29, 59, 299]
    assert [minimum_requests(q, two_sided=True, **options) for q in (0.9, 0.95, 0.99)] == [
        36, 72, 368,
    ]  # fmt: skip


def test_equal_n_keeps_the_earliest():
    cut = equal_n([[5.0, 1.0, 9.0], [2.0, 7.0]])
    assert [c.tolist() for c in cut] == [[5.0, 1.0], [2.0, 7.0]]


def test_clopper_pearson_is_that_of_scipy():
    for x, n in ((0, 50), (3, 50), (50, 50)):
        theirs = scipy_stats.binomtest(x, n).proportion_ci(0.95, "exact")
        assert clopper_pearson(x, n) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_error_rate_widens_with_clustering():
    plain, clustered = error_rate([5, 5, 5], [500] * 3), error_rate([0, 15, 0], [500] * 3)
    assert plain.value == clustered.value == 0.01
    assert clustered.high - clustered.low > 1.5 * (plain.high - plain.low)
    theirs = scipy_stats.binomtest(15, 1500).proportion_ci(0.95, "exact")
    assert (plain.low, plain.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_error_rates_are_tested_on_logits_of_runs():
    x_a, x_b, n = [2, 4, 3, 5], [20, 25, 18, 30], [400] * 4
    c = error_rate_comparison(x_a, n, x_b, n)
    logit = [[math.log((x + 0.5) / (400 - x + 0.5)) for x in arm] for arm in (x_a, x_b)]
    theirs = scipy_stats.ttest_ind(logit[1], logit[0], equal_var=False)
    assert c.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    assert c.difference == pytest.approx((93 - 14) / 1600)
    assert c.verdict == "worse"
    assert error_rate_comparison(x_b, n, x_a, n).verdict == "better"
    assert adjust([c])[0].verdict == "worse"


def test_no_errors_are_equivalent_only_with_enough_requests():
    few, many = ([0] * 3, [50] * 3), ([0] * 3, [400] * 3)
    assert error_rate_comparison(*few, *few).verdict == "inconclusive"
    assert error_rate_comparison(*many, *many).verdict == "equivalent"
    assert error_rate_comparison([], [], *many).verdict == "not comparable"
    assert error_rate_comparison([0], [400], [40], [400]).verdict == "inconclusive"


def test_impossible_counts_are_refused():
    with pytest.raises(ParameterError):
        error_rate_comparison([5], [4], [0], [4])
    with pytest.raises(ParameterError):
        error_rate([1, 2], [10])


def test_the_simpson_example_of_the_specification_turns_around():
    # B is 10 % faster in both classes and serves more of the slow one.
    a = [{"short": [0.2] * 80, "long": [0.9] * 20}]
    b = [{"short": [0.18] * 30, "long": [0.81] * 70}]
    plain = [np.mean([*arm[0]["short"], *arm[0]["long"]]) for arm in (a, b)]
    assert plain[0] == pytest.approx(0.34)
    assert plain[1] > plain[0]
    result = standardise_mix(a, b, to="baseline")
    assert result.baseline[0] == pytest.approx(0.34)
    assert result.candidate[0] == pytest.approx(0.306)
    assert not result.mixed
    pooled = standardise_mix(a, b)
    weight = (0.8 + 0.3) / 2
    assert pooled.baseline[0] == pytest.approx(weight * 0.2 + (1 - weight) * 0.9)


def test_mixes_with_a_bin_of_one_arm_stay_apart():
    result = standardise_mix([{"s": [1.0], "l": [2.0]}], [{"s": [1.0]}])
    assert result.baseline is None
    assert result.cautions[0].code == "mix_not_standardised"
    assert mix_distance({"a": 1}, {"b": 1}) == 1
    assert standardise_mix([{"s": [1.0], "l": [2.0]}], [{"s": [0.9], "l": [2.2]}]).mixed


def test_cards_are_the_unit_of_a_claim_about_models():
    random = np.random.default_rng(8)

    def arm(shift):
        return {
            f"GPU-{i}": np.exp(shift + random.normal(0, 0.02) + random.normal(0, 0.005, 4))
            for i in range(4)
        }

    a, b = arm(0.0), arm(0.2)
    c = cards_comparison(a, b, metric="tpot_s")
    means = [[np.mean(np.log(runs)) for runs in x.values()] for x in (a, b)]
    theirs = scipy_stats.ttest_ind(means[1], means[0], equal_var=False)
    assert c.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    assert (c.n_baseline, c.modifiers) == (4, ())
    one = cards_comparison({"x": a["GPU-0"]}, {"y": b["GPU-0"]}, metric="tpot_s")
    assert "this card only" in one.modifiers
    assert one.n_baseline == 4
    two = cards_comparison(
        {k: a[k] for k in ("GPU-0", "GPU-1")}, {k: b[k] for k in ("GPU-0", "GPU-1")},
        metric="tpot_s",
    )  # fmt: skip
    assert "this card only" in two.modifiers
    assert two.n_baseline == 2


def test_interaction_is_the_ratio_of_ratios():
    random = np.random.default_rng(6)
    arms = [np.exp(m + random.normal(0, 0.01, 5)) for m in (0.0, -0.5, -0.3, -0.75)]
    f = interaction(*arms, metric="tpot_s")
    means = [np.log(arm).mean() for arm in arms]
    v = [np.log(arm).var(ddof=1) / 5 for arm in arms]
    d = (means[3] - means[2]) - (means[1] - means[0])
    df = sum(v) ** 2 / sum(x**2 / 4 for x in v)
    assert f.interaction.ratio == pytest.approx(math.exp(d), rel=1e-12)
    p = 2 * scipy_stats.t.sf(abs(d) / math.sqrt(sum(v)), df)
    assert f.interaction.p_value == pytest.approx(p, rel=1e-9)
    assert f.interaction.verdict == "worse"
    assert f.of_factor_baseline.verdict == "faster"
    thin = interaction(arms[0][:1], arms[1], arms[2], arms[3], metric="tpot_s")
    assert thin.interaction.p_value is None


def test_stability_is_an_f_interval():
    random = np.random.default_rng(9)
    a, b = np.exp(random.normal(0, 0.01, 6)), np.exp(random.normal(0, 0.04, 8))
    s = stability(a, b, limit=1.01)
    sd = [np.std(np.log(x), ddof=1) for x in (a, b)]
    f = (sd[1] / sd[0]) ** 2
    assert s.ratio.low == pytest.approx(math.sqrt(f / scipy_stats.f.ppf(0.975, 7, 5)), rel=1e-9)
    assert s.ratio.high == pytest.approx(math.sqrt(f / scipy_stats.f.ppf(0.025, 7, 5)), rel=1e-9)
    assert s.within_baseline == np.mean(a <= 1.01)
    chi = scipy_stats.chi2.ppf([0.025, 0.975], 5)
    assert s.baseline.high == pytest.approx(sd[0] * math.sqrt(5 / chi[0]), rel=1e-9)


def test_tipping_point_undoes_the_verdict():
    a, b = [1.0, 1.01, 0.99, 1.0, 1.02], [1.10, 1.11, 1.09, 1.10, 1.12]
    c = compare_arms(a, b, metric="tpot_s")
    point = tipping_point(c)
    undone = compare_arms(a, [x / (1 + point.factor_ratio) for x in b], metric="tpot_s")
    assert undone.low == pytest.approx(1.0, abs=1e-12)
    t = scipy_stats.t.ppf(0.975, c.df)
    wide = math.sqrt(c.se_log**2 + 2 * point.card_spread_ratio**2)
    assert t * wide == pytest.approx(math.log(c.ratio), rel=1e-9)
    assert tipping_point(compare_arms([1.0], [2.0], metric="tpot_s")).factor_ratio is None


@needs_cases
def test_case_61_variance_between_runs_is_zero():
    folder = next(CASES.glob("61-*"))
    right = json.loads((folder / "expected.json").read_text())["right"]
    rows = list(csv.DictReader((folder / "tpot.csv").open()))
    arm, run, value = "gpu", "run", "tpot_ms"
    arms = sorted({row[arm] for row in rows})
    result = variance_components(
        [float(row[value]) for row in rows],
        [(row[arm], row[run]) for row in rows],
        [row[arm] for row in rows],
        baseline=arms[0],
        candidate=arms[1],
    )
    assert result.difference == pytest.approx(right["difference_ms"], rel=1e-9)
    assert result.run_variance == right["run_variance"]
    assert result.residual_variance == pytest.approx(right["residual_variance"], rel=1e-9)
    assert result.se_difference == pytest.approx(right["se_difference"], rel=1e-9)
    assert result.n_runs == right["n_runs"]
    assert result.cautions[0].code == "run_variance_zero"


def test_variance_between_runs_by_hand():
    # Two runs an arm, means 1 and 3 apart by 2; within-run values at mean +- 1.
    values = [0, 2, 2, 4, 10, 12, 12, 14]
    result = variance_components(
        values, [1, 1, 2, 2, 3, 3, 4, 4], ["a"] * 4 + ["b"] * 4, baseline="a", candidate="b"
    )
    # MS within = 8 / 4 = 2; MS between = 2 arms x 2 x (1 + 1) / 2 = 4; (4 - 2) / 2 = 1
    assert result.residual_variance == pytest.approx(2.0)
    assert result.run_variance == pytest.approx(1.0)
    assert result.se_difference == pytest.approx(math.sqrt(2 * (1 + 2 / 2) / 2))


@needs_cases
def test_case_64_exact_rank_test():
    folder = next(CASES.glob("64-*"))
    right = json.loads((folder / "expected.json").read_text())["right"]
    rows = list(csv.DictReader((folder / "runs.csv").open()))
    groups: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        group, gpu, value = row["set"], row["gpu"], row["tok_s"]
        groups.setdefault(group, {}).setdefault(gpu, []).append(float(value))
    results = {name: rank_test(*arms.values()) for name, arms in groups.items()}
    assert results["three"].u == right["three_u"]
    assert results["three"].p_value == pytest.approx(right["three_p"])
    assert results["three"].p_smallest == pytest.approx(right["three_min_p"])
    assert results["three"].cautions[0].code == "rank_test_cannot"
    assert results["four"].p_value == pytest.approx(right["four_p"])
    assert results["tied"].p_value == right["tied_p"]
    assert results["tied"].u == right["tied_u"]


@pytest.mark.parametrize("sizes", [(3, 3), (4, 5), (6, 3)])
def test_rank_test_is_that_of_scipy_without_ties(sizes):
    random = np.random.default_rng(sum(sizes))
    a, b = random.normal(size=sizes[0]), random.normal(0.8, 1, size=sizes[1])
    theirs = scipy_stats.mannwhitneyu(a, b, method="exact")
    ours = rank_test(a, b)
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=1e-12)
    assert ours.u == min(theirs.statistic, sizes[0] * sizes[1] - theirs.statistic)
