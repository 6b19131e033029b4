"""Statistics against values printed by others: R's documentation, textbooks, original papers."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from gpuverdict.stats import (
    adjust_p,
    clopper_pearson,
    compare_arms,
    permutation_p,
    quantile,
    rank_test,
)
from gpuverdict.stats.ttests import interval, paired, welch

LLMPERF = Path(__file__).resolve().parents[2].parent / "shared/data/public/tech-grandpa-llmperf"

# Student's sleep data (1908), as R ships them: extra hours under two drugs, ten patients.
SLEEP_1 = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
SLEEP_2 = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])


def test_welch_of_the_sleep_data():
    # R: t.test(extra ~ group): t = -1.8608, df = 17.776, p = 0.07939, CI -3.3654832 0.2054832
    test = welch(SLEEP_1, SLEEP_2)
    low, high = interval(test, 0.95)
    assert float(test.effect / test.se) == pytest.approx(1.8608, abs=5e-5)
    assert float(test.df) == pytest.approx(17.776, abs=5e-4)
    assert float(test.p) == pytest.approx(0.07939, abs=5e-6)
    assert (-float(high), -float(low)) == pytest.approx((-3.3654832, 0.2054832), abs=5e-8)


def test_paired_t_of_the_sleep_data():
    # R: t.test(paired): t = -4.0621, df = 9, p = 0.002833, CI -2.4598858 -0.7001142
    test = paired(SLEEP_1, SLEEP_2)
    low, high = interval(test, 0.95)
    assert float(test.effect / test.se) == pytest.approx(4.0621, abs=5e-5)
    assert float(test.p) == pytest.approx(0.002833, abs=5e-7)
    assert (float(low), float(high)) == pytest.approx((0.7001142, 2.4598858), abs=5e-8)


def test_fisher_permutation_of_darwins_maize():
    # R. A. Fisher, Design of Experiments (1935), section 21: 1 726 of 32 768 sign flips.
    eighths = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48], dtype=float)
    zero = np.zeros(15)
    # 32 768 flips are beyond the limit, so the p is sampled; its error is known.
    p, exact = permutation_p(zero, eighths, pairs=True)
    assert not exact
    assert float(p) == pytest.approx(1726 / 32768, abs=4 * math.sqrt(0.05 / 20_000))
    # The first 13 pairs are enumerated; counted here by brute force.
    ours, exact = permutation_p(zero[:13], eighths[:13], pairs=True)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 13)).reshape(13, -1)
    sums = np.abs((signs * eighths[:13, None]).sum(axis=0))
    assert exact
    assert float(ours) == np.mean(sums >= abs(eighths[:13].sum()))


def test_the_example_of_benjamini_and_hochberg():
    # Their 1995 paper, section 4.1: 15 p values; four are rejected at q = 0.05, by Hochberg three.
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
         0.5719, 0.6528, 0.7590, 1.0]  # fmt: skip
    assert (adjust_p(p, "bh") <= 0.05).sum() == 4
    assert (adjust_p(p, "holm") <= 0.05).sum() == 3


def test_clopper_pearson_of_the_mendel_peas():
    # R: binom.test(682, 925, p = 0.75): 95 percent confidence interval 0.7076683 0.7654066
    assert clopper_pearson(682, 925) == pytest.approx((0.7076683, 0.7654066), abs=5e-8)


def test_rank_sum_of_a_textbook():
    # Hollander & Wolfe (1973), 69f: W = 35, exact two-sided p = 0.2544 (R: wilcox.test).
    term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
    early = [1.15, 0.88, 0.90, 0.74, 1.21]
    found = rank_test(term, early)
    assert found.u == 50 - 35
    assert found.p_value == pytest.approx(0.2544, abs=5e-5)


def test_type_seven_of_hyndman_and_fan():
    # R's default: quantile(c(15, 20, 35, 40, 50), c(.05, .3, .4, .5, 1)) gives 16 23 29 35 50.
    values = [15.0, 20.0, 35.0, 40.0, 50.0]
    found = [quantile(values, q) for q in (0.05, 0.3, 0.4, 0.5)]
    assert found == pytest.approx([16.0, 23.0, 29.0, 35.0])


@pytest.mark.skipif(not LLMPERF.exists(), reason="no public data beside the repository")
@pytest.mark.parametrize(
    ("baseline", "candidate", "t", "df", "ratio"),
    [("H100 SXM", "H200 SXM", 3.07, 8.0, 1.0625), ("A6000", "4090", 1.09, 5.0, 1.007)],
)
def test_published_pairs_on_the_raw_scale_and_on_ours(baseline, candidate, t, df, ratio):
    # What others computed from these runs is on the raw scale: a check of the inputs.
    base = sqlite3.connect(f"file:{LLMPERF / 'results_cloud_single.db'}?mode=ro", uri=True)
    rows = base.execute("select gpu_info, overall_throughput, data_type from benchmark_runs")
    runs: dict[str, list[float]] = {}
    for label, value, kind in rows:
        if kind == "FP8":
            runs.setdefault(label, []).append(value)
    base.close()

    def of(name: str) -> np.ndarray:
        (label,) = [x for x in runs if x.endswith((f" {name}", f"RTX {name}"))]
        return np.array(runs[label])

    a, b = of(baseline), of(candidate)
    v = [x.var(ddof=1) / len(x) for x in (a, b)]
    raw_t = (b.mean() - a.mean()) / math.sqrt(sum(v))
    raw_df = sum(v) ** 2 / sum(x**2 / (len(y) - 1) for x, y in zip(v, (a, b), strict=True))
    assert raw_t == pytest.approx(t, abs=0.005)
    assert raw_df == pytest.approx(df, abs=0.05)
    assert b.mean() / a.mean() == pytest.approx(ratio, abs=5e-4)
    ours = compare_arms(a, b, metric="output_tokens_per_s")
    assert ours.ratio == pytest.approx(ratio, abs=2e-3)
    assert ours.n_baseline + ours.n_candidate == len(a) + len(b)
