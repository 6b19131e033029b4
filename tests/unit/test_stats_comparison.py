"""Comparisons of two arms against scipy, hand arithmetic and the decision order."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.stats import (
    NoiseFloor,
    adjust,
    compare_arms,
    default_margin,
    headline,
    mde,
    noise_floor_from,
    power,
    runs_needed,
    sd_upper_limit,
    sign_flip,
)
from gpuverdict.stats.ttests import PERMUTATIONS_LIMIT, permutation_p

A = [6.02, 6.10, 5.95, 6.05, 6.00]
B = [6.31, 6.40, 6.22, 6.35, 6.42]


def test_welch_is_that_of_scipy_on_logs():
    c = compare_arms(A, B, metric="tpot_s")
    theirs = scipy_stats.ttest_ind(np.log(B), np.log(A), equal_var=False)
    interval = theirs.confidence_interval(0.95)
    interval90 = theirs.confidence_interval(0.90)
    assert c.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    assert c.df == pytest.approx(theirs.df, rel=1e-12)
    assert (c.low, c.high) == pytest.approx(tuple(np.exp(interval)), rel=1e-9)
    assert (c.ci90_low, c.ci90_high) == pytest.approx(tuple(np.exp(interval90)), rel=1e-9)
    assert c.ratio == pytest.approx(scipy_stats.gmean(B) / scipy_stats.gmean(A), rel=1e-12)
    assert c.baseline == pytest.approx(scipy_stats.gmean(A), rel=1e-12)
    assert c.verdict == "slower"
    assert (c.n_baseline, c.n_candidate) == (5, 5)


def test_paired_is_that_of_scipy_on_log_ratios():
    c = compare_arms(A, B, metric="tpot_s", paired=True)
    theirs = scipy_stats.ttest_rel(np.log(B), np.log(A))
    assert c.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    assert c.df == 4
    assert (c.low, c.high) == pytest.approx(tuple(np.exp(theirs.confidence_interval())), rel=1e-9)


@pytest.mark.parametrize(("n_a", "n_b"), [(4, 4), (5, 5), (4, 6), (6, 5)])
def test_permutation_is_that_of_scipy(n_a, n_b):
    random = np.random.default_rng(n_a * 10 + n_b)
    a, b = random.normal(0, 1, n_a), random.normal(0.7, 1, n_b)
    theirs = scipy_stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.abs(np.mean(x, axis=axis) - np.mean(y, axis=axis)),
        vectorized=True,
        n_resamples=np.inf,
        alternative="greater",
    )
    p, exact = permutation_p(a, b)
    assert exact
    assert float(p) == pytest.approx(theirs.pvalue, abs=1e-12)
    assert compare_arms(np.exp(a), np.exp(b), metric="ttft_s").p_permutation == pytest.approx(
        theirs.pvalue, abs=1e-12
    )


def test_paired_permutation_flips_all_signs():
    random = np.random.default_rng(5)
    a, b = random.normal(0, 1, 6), random.normal(0.5, 1, 6)
    theirs = scipy_stats.permutation_test(
        (b - a,),
        lambda x, axis: np.abs(np.mean(x, axis=axis)),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
        alternative="greater",
    )
    assert float(permutation_p(a, b, pairs=True)[0]) == pytest.approx(theirs.pvalue, abs=1e-12)


def test_many_runs_are_permuted_at_random_with_a_fixed_seed():
    random = np.random.default_rng(1)
    a, b = random.normal(0, 0.02, 10), random.normal(0.01, 0.02, 10)
    assert math.comb(20, 10) > PERMUTATIONS_LIMIT
    first = compare_arms(np.exp(a), np.exp(b), metric="tpot_s")
    second = compare_arms(np.exp(a[::-1]), np.exp(b[::-1]), metric="tpot_s")
    assert "permutation_sampled" in {c.code for c in first.cautions}
    assert first == second
    assert first.p_permutation == pytest.approx(first.p_value, abs=0.03)


def test_three_runs_carry_no_permutation():
    assert compare_arms(A[:3], B[:3], metric="tpot_s").p_permutation is None


@pytest.mark.parametrize(("n_a", "n_b", "df"), [(2, 2, 1), (2, 5, 1), (3, 10, 2), (4, 5, 3)])
def test_few_unequal_runs_fall_back_to_least_df(n_a, n_b, df):
    random = np.random.default_rng(3)
    c = compare_arms(
        np.exp(random.normal(0, 0.01, n_a)), np.exp(random.normal(0, 0.01, n_b)), metric="ttft_s"
    )
    assert c.df == df


def test_swapping_arms_inverts_everything():
    there, back = (compare_arms(x, y, metric="tpot_s") for x, y in ((A, B), (B, A)))
    assert there.ratio * back.ratio == pytest.approx(1, abs=1e-15)
    assert there.low * back.high == pytest.approx(1, abs=1e-14)
    assert there.ci90_high * back.ci90_low == pytest.approx(1, abs=1e-14)
    assert there.p_value == back.p_value
    assert there.p_permutation == back.p_permutation
    assert there.mde_ratio == back.mde_ratio
    assert (there.verdict, back.verdict) == ("slower", "faster")


def test_run_order_changes_no_bit():
    assert compare_arms(A, B, metric="tpot_s") == compare_arms(
        A[::-1], [*B[2:], *B[:2]], metric="tpot_s"
    )


@pytest.mark.parametrize(
    ("metric", "word"),
    [("tpot_s", "slower"), ("output_tokens_per_s", "faster"), ("energy_j", "worse")],
)
def test_the_word_follows_the_metric(metric, word):
    assert compare_arms(A, [1.5 * b for b in B], metric=metric).verdict == word


def test_equivalence_comes_before_difference_and_prints_its_margin():
    a = [100.0, 100.1, 99.9, 100.05, 99.95]
    c = compare_arms(a, [1.01 * x for x in a], metric="ttft_s")
    assert c.p_value < 1e-6
    assert c.verdict == "equivalent"
    assert "below margin" in c.modifiers
    assert "within 0.05" in str(c)


def test_two_runs_show_no_equivalence():
    c = compare_arms([100.0, 100.01], [100.0, 100.02], metric="ttft_s")
    assert c.verdict == "inconclusive"
    assert (c.ci90_low, c.ci90_high) > (0.99, 1.0)


@pytest.mark.parametrize(
    "bad",
    [
        [], None, [None, None, None], [1.0, math.nan, 1.1], [1.0, 0.0, 1.1], [1.0, -1.0, 1.2],
        [1.0, math.inf, 1.1], [1.0, None, 1.1],
    ],
)  # fmt: skip
def test_bad_values_never_make_a_difference(bad):
    for pair in ((bad, [50.0, 50.1, 50.2]), ([50.0, 50.1, 50.2], bad)):
        c = compare_arms(*pair, metric="tpot_s")
        assert c.verdict in ("inconclusive", "not comparable")
        assert c.p_value is None
        assert c.cautions


def test_quantised_arms_end_undecided_without_p():
    c = compare_arms([160.0] * 5, [170.1, 171.0, 169.9, 170.5, 170.0], metric="output_tokens_per_s")
    assert (c.verdict, c.p_value) == ("inconclusive", None)
    assert "quantised" in c.modifiers
    d = compare_arms(A, [2 * a for a in A], metric="tpot_s", paired=True)
    assert (d.verdict, d.p_value) == ("inconclusive", None)


def test_one_run_is_a_ratio_and_no_word():
    for pair in (([1.0], [2.0]), ([1.0], [2.0, 2.1, 2.2]), ([1.0, 1.1, 1.2], [9.0])):
        c = compare_arms(*pair, metric="tpot_s")
        assert c.verdict == "inconclusive"
        assert "single-run" in c.modifiers
        assert c.p_value is None
        assert c.low is None


def test_noise_floor_allows_one_run():
    floor = NoiseFloor(sd_log=0.01, n=5, source="aa-march")
    c = compare_arms([1.0], [1.06], metric="tpot_s", noise_floor=floor)
    t = math.log(1.06) / (0.01 * math.sqrt(2))
    assert c.p_value == pytest.approx(2 * scipy_stats.t.sf(t, 4), rel=1e-9)
    assert c.verdict == "slower"
    assert "noise floor from aa-march" in c.modifiers
    thin = NoiseFloor(sd_log=0.01, n=4, source="x")
    assert compare_arms([1.0], [1.06], metric="tpot_s", noise_floor=thin).p_value is None
    near = compare_arms([1.0], [1.0001], metric="tpot_s", noise_floor=floor)
    assert near.verdict == "inconclusive"


def test_noise_floor_is_the_sd_of_logs():
    values = [1.0, 1.02, 0.99, 1.01, 1.0]
    assert noise_floor_from(values, "x").sd_log == pytest.approx(np.std(np.log(values), ddof=1))
    with pytest.raises(ParameterError):
        noise_floor_from(values[:4], "x")
    with pytest.raises(ParameterError):
        noise_floor_from([1.0] * 6, "x")


def test_thin_tails_are_not_tested():
    thin = compare_arms(A, B, metric="ttft_s", statistic="p99", n_requests_min=499)
    assert (thin.p_value, thin.verdict) == (None, "inconclusive")
    assert "tail under-sampled" in thin.modifiers
    assert thin.ratio is not None
    assert compare_arms(A, B, metric="ttft_s", statistic="p99", n_requests_min=500).p_value
    assert compare_arms(A[:2], B[:2], metric="ttft_s", statistic="p99").p_value is None
    few = compare_arms(A, B, metric="ttft_s", n_requests_min=9)
    assert "few requests" in few.modifiers
    assert few.p_value is not None


def test_drift_in_two_runs_of_an_arm_stops_the_test():
    c = compare_arms(A, B, metric="tpot_s", drifting_runs=(0, 2))
    assert (c.verdict, c.p_value) == ("inconclusive", None)
    one = compare_arms(A, B, metric="tpot_s", drifting_runs=(1, 1))
    assert one.verdict == "slower"
    assert "drift" in one.modifiers


def test_refusals_are_not_comparable_and_show_no_ratio():
    c = compare_arms(A, B, metric="tpot_s", refusals=[Caution(code="x", message="m")])
    assert (c.verdict, c.ratio, c.p_value) == ("not comparable", None, None)
    assert c.baseline is not None


def test_gain_widens_in_quadrature_and_forbids_equivalence():
    metric = "energy_per_output_token_j"
    plain = compare_arms(A, B, metric=metric)
    wide = compare_arms(A, B, metric=metric, gain=0.05)
    half = (math.log(plain.high) - math.log(plain.low)) / 2
    assert math.log(wide.high) - math.log(wide.ratio) == pytest.approx(
        math.sqrt(half**2 + 2 * 0.05**2), rel=1e-9
    )
    assert plain.verdict == "worse"
    assert wide.verdict == "inconclusive"
    assert "undecided_gain" in {c.code for c in wide.cautions}
    assert wide.runs_needed is None
    same = compare_arms(A, [a * 1.0001 for a in A[::-1]], metric=metric, gain=0.05)
    assert same.verdict == "inconclusive"


def test_two_looks_use_their_own_levels():
    a, b = [1.0, 1.01, 0.99, 1.005, 1.0], [1.02, 1.03, 1.015, 1.01, 1.025]
    c = compare_arms(a, b, metric="tpot_s", margin=0.001)
    assert 0.001 < c.p_value < 0.045
    assert compare_arms(a, b, metric="tpot_s", margin=0.001, look="final").verdict == "slower"
    weak = compare_arms(a, [x * 0.9925 for x in b], metric="tpot_s", margin=0.001)
    assert 0.01 < weak.p_value < 0.05
    assert weak.verdict == "slower"
    first = compare_arms(a, [x * 0.9925 for x in b], metric="tpot_s", margin=0.001, look="first")
    assert first.verdict == "inconclusive"


@pytest.mark.parametrize(
    "wrong",
    [
        {"metric": "tpot_z"}, {"metric": "tpot_s", "margin": 0.0},
        {"metric": "tpot_s", "margin": -1.0},
        {"metric": "tpot_s", "margin": math.nan}, {"metric": "tpot_s", "confidence": 95},
        {"metric": "tpot_s", "look": "second"}, {"metric": "tpot_s", "gain": math.nan},
    ],
)  # fmt: skip
def test_wrong_questions_are_refused(wrong):
    with pytest.raises(ParameterError):
        compare_arms(A, B, **wrong)


def test_text_and_unequal_pairs_are_refused():
    with pytest.raises(ParameterError):
        compare_arms(["fast", "slow"], B, metric="tpot_s")
    with pytest.raises(ParameterError):
        compare_arms(A[:4], B, metric="tpot_s", paired=True)


@pytest.mark.parametrize(
    ("metric", "statistic", "margin"),
    [
        ("tpot_s", "p50", 0.03), ("itl_s", "p50", 0.03), ("output_tokens_per_s", "value", 0.03),
        ("ttft_s", "p50", 0.05), ("e2e_s", "p50", 0.05), ("tpot_s", "p95", 0.05),
        ("energy_per_output_token_j", "value", 0.05), ("tpot_s", "p99", 0.10),
        ("memory_used_mib", "value", 0.05),
    ],
)  # fmt: skip
def test_default_margins(metric, statistic, margin):
    assert default_margin(metric, statistic) == margin


def test_undecided_says_how_many_more():
    a, b = [1.0, 1.03, 0.97], [1.02, 1.05, 1.0]
    c = compare_arms(a, b, metric="tpot_s")
    assert c.verdict == "inconclusive"
    sd = math.sqrt((np.var(np.log(a), ddof=1) + np.var(np.log(b), ddof=1)) / 2)
    assert c.sd_log == pytest.approx(sd, rel=1e-12)
    assert c.mde_ratio == pytest.approx(mde(sd, 3), rel=1e-12)
    upper = sd * math.sqrt(4 / scipy_stats.chi2.ppf(0.20, 4))
    assert c.runs_needed == (runs_needed(sd, 0.03), runs_needed(upper, 0.03))
    assert c.runs_needed[1] > c.runs_needed[0] > 3


def test_runs_needed_of_the_specification():
    effects = (0.01, 0.02, 0.03, 0.05, 0.10)
    assert [runs_needed(0.02, e) for e in effects] == [65, 18, 9, 4, 3]
    assert [runs_needed(0.03, e) for e in effects] == [144, 38, 18, 8, 3]


def test_mde_table_of_the_specification():
    table = {0.005: (1.55, 1.02, 0.66), 0.01: (3.1, 2.05, 1.33), 0.03: (9.7, 6.3, 4.1)}
    for sigma, row in table.items():
        for runs, percent in zip((3, 5, 10), row, strict=True):
            assert 100 * mde(sigma, runs) == pytest.approx(percent, rel=0.025)


def test_power_stays_finite_where_the_far_tail_is_not():
    for df_runs in (3, 5, 9):
        for nc in np.linspace(0.5, 30, 60):
            effect = math.expm1(nc * 0.01 * math.sqrt(2 / df_runs))
            value = power(0.01, effect, df_runs)
            assert 0 <= value <= 1
    exact = scipy_stats.nct.sf(scipy_stats.t.ppf(0.975, 8), 8, 3.0)
    assert power(0.01, math.expm1(3.0 * 0.01 * math.sqrt(2 / 5)), 5) == pytest.approx(exact)


def test_upper_limit_is_that_of_the_chi_square():
    assert sd_upper_limit(0.01, 4) == pytest.approx(
        0.01 * math.sqrt(4 / scipy_stats.chi2.ppf(0.2, 4)), rel=1e-12
    )


def test_adjusting_decides_again_and_skips_what_was_not_tested():
    from statsmodels.stats.multitest import multipletests

    random = np.random.default_rng(11)
    family = [
        compare_arms(
            np.exp(random.normal(0, 0.01, 5)), np.exp(random.normal(shift, 0.01, 5)),
            metric="tpot_s",
        )
        for shift in (0.0, 0.018, 0.1, 0.019, 0.02, 0.0)
    ]  # fmt: skip
    single = compare_arms([1.0], [2.0], metric="tpot_s")
    for method, theirs in (("bh", "fdr_bh"), ("holm", "holm")):
        adjusted = adjust([*family[:3], single, *family[3:]], method)
        assert adjusted[3] == single
        tested = [c for c in adjusted if c.p_value is not None]
        expected = multipletests([c.p_value for c in family], method=theirs)[1]
        assert [c.p_adjusted for c in tested] == pytest.approx(expected.tolist(), rel=1e-12)
        for c in tested:
            if c.verdict == "slower":
                assert c.p_adjusted < 0.05
            assert c.family == 6


def test_a_cell_lost_by_adjustment_says_so():
    a = [1.0, 1.03, 0.97, 1.02, 0.98]
    near = compare_arms(a, [0.96 * x for x in a[::-1]], metric="tpot_s")
    assert near.verdict == "faster"
    assert 0.0125 < near.p_value < 0.05
    none = compare_arms(a, [1.001 * x for x in a], metric="tpot_s")
    lost = adjust([near, none, none, none])[0]
    assert lost.verdict == "inconclusive"
    assert lost.runs_needed is not None
    assert "lost_by_adjustment" in {c.code for c in lost.cautions}
    assert adjust([replace(lost, p_adjusted=None)])[0].verdict == "faster"


def test_headline_over_sweeps_is_welch_on_their_means():
    random = np.random.default_rng(2)
    a = {k: np.exp(random.normal(k / 9, 0.02, 5)) for k in (1, 4, 16)}
    b = {k: np.exp(random.normal(k / 9 + 0.1, 0.02, 5)) for k in (1, 4, 16, 64)}
    c = headline(a, b, metric="tpot_s")
    y_a = np.mean([np.log(a[k]) for k in a], axis=0)
    y_b = np.mean([np.log(b[k]) for k in a], axis=0)
    theirs = scipy_stats.ttest_ind(y_b, y_a, equal_var=False)
    assert c.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    assert c.ratio == pytest.approx(math.exp(y_b.mean() - y_a.mean()), rel=1e-12)
    assert "common_grid" in {x.code for x in c.cautions}


def test_headline_over_independent_cells_adds_variances():
    random = np.random.default_rng(4)
    a = {k: np.exp(random.normal(0, 0.02, 5)) for k in (1, 4)}
    b = {k: np.exp(random.normal(0.05, 0.02, 5)) for k in (1, 4)}
    c = headline(a, b, metric="tpot_s", design="cells")
    v = [np.var(np.log(x[k]), ddof=1) / 5 for x in (a, b) for k in (1, 4)]
    se = math.sqrt(sum(v)) / 2
    d = np.mean([np.mean(np.log(b[k])) - np.mean(np.log(a[k])) for k in (1, 4)])
    df = sum(v) ** 2 / sum(x**2 / 4 for x in v)
    assert c.se_log == pytest.approx(se, rel=1e-12)
    assert c.p_value == pytest.approx(2 * scipy_stats.t.sf(abs(d) / se, df), rel=1e-9)


def test_headline_leaves_out_broken_sweeps_and_refuses_disjoint_grids():
    a = {1: [1.0, 1.1, 1.05, 1.02], 4: [2.0, None, 2.1, 2.05]}
    c = headline(a, {1: [1.0, 1.1, 1.05], 4: [2.0, 2.2, 2.1]}, metric="tpot_s")
    assert (c.n_baseline, c.n_candidate) == (3, 3)
    assert "sweeps_left_out" in {x.code for x in c.cautions}
    assert headline({1: [1.0]}, {2: [1.0]}, metric="tpot_s").verdict == "not comparable"


def test_opposite_signs_need_both_sides():
    up = compare_arms(A, [1.2 * b for b in B], metric="tpot_s")
    down = compare_arms(A, [0.8 * b for b in B], metric="tpot_s")
    assert sign_flip([up, down]).flips
    assert sign_flip([up, up]).p_value is None
    assert not sign_flip([up, up]).flips
    assert sign_flip([up, down]).ahead == (1,)


def test_prints_as_one_line_and_as_a_row():
    c = compare_arms(A, B, metric="tpot_s")
    assert "\n" not in str(c)
    row = c.as_row()
    assert json.loads(json.dumps(row))["verdict"] == "slower"
    assert "geometric mean" in c.null_hypothesis
    assert "<script" not in c._repr_html_()
