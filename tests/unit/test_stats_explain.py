"""A verdict explains itself in both languages, with its own numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from gpuverdict.errors import Caution
from gpuverdict.stats import (
    adjust,
    cards_comparison,
    compare_arms,
    error_rate_comparison,
    explain,
    headline,
    interaction,
    shift_function,
)
from gpuverdict.stats.comparison import NoiseFloor
from gpuverdict.text import caution

A, B = [6.0, 6.1, 5.9, 6.05], [7.0, 7.1, 6.9, 7.05]


def every_kind():
    plain = compare_arms(A, B, metric="tpot_s")
    yield plain
    yield adjust([plain, compare_arms(A, A[::-1], metric="tpot_s")])[0]
    yield compare_arms(A, B, metric="tpot_s", paired=True)
    yield compare_arms(A, [1.001 * a for a in A], metric="ttft_s")
    yield compare_arms(A, [1.02, 6.2, 5.9, 6.1], metric="tpot_s")
    yield compare_arms([1.0], [2.0], metric="tpot_s")
    yield compare_arms([1.0], [2.0], metric="tpot_s",
                       noise_floor=NoiseFloor(sd_log=0.01, n=6, source="aa"))  # fmt: skip
    yield compare_arms(A, B, metric="tpot_s", refusals=[caution("single_run", n_baseline=1,
                                                                n_candidate=1)])  # fmt: skip
    yield headline({1: A, 4: A}, {1: B, 4: B}, metric="tpot_s")
    yield headline({1: A, 4: A}, {1: B, 4: B}, metric="tpot_s", design="cells")
    yield error_rate_comparison([1, 2, 3], [100] * 3, [9, 10, 8], [100] * 3)
    yield interaction(A, B, A, [8.0, 8.1, 7.9, 8.05], metric="tpot_s").interaction
    cards = {f"a{i}": A for i in range(3)}, {f"b{i}": [x * (1 + i / 99) for x in B]
                                            for i in range(3)}  # fmt: skip
    cards[0]["a1"] = [x * 1.01 for x in A]
    yield cards_comparison(*cards, metric="tpot_s")


@pytest.mark.parametrize("comparison", list(every_kind()), ids=lambda c: f"{c.test} {c.verdict}")
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_kind_of_verdict_explains_itself(comparison, lang):
    said = explain(comparison, lang)
    assert len(said) >= 2
    assert all(line and "{" not in line for line in said)
    assert comparison.null_hypothesis
    if comparison.p_value is not None:
        assert f"{comparison.p_value:.2g}" in said[1]


def test_numbers_follow_when_arms_swap():
    there, back = (explain(compare_arms(*pair, metric="tpot_s")) for pair in ((A, B), (B, A)))
    assert "1.166" in there[0]
    assert "0.857" in back[0]
    assert any(line.startswith("slower") for line in there)
    assert any(line.startswith("faster") for line in back)


def test_shift_function_is_a_comparison_a_quantile():
    random = np.random.default_rng(4)
    a = [np.exp(random.normal(0, 0.2, 400)) for _ in range(4)]
    b = [1.1 * np.exp(random.normal(0, 0.2, 400)) for _ in range(4)]
    table = shift_function(a, b, metric="ttft_s", levels=(0.5, 0.95))
    logs = [[math.log(np.quantile(run, 0.95)) for run in arm] for arm in (a, b)]
    theirs = scipy_stats.ttest_ind(logs[1], logs[0], equal_var=False).confidence_interval()
    assert (table["low"][1], table["high"][1]) == pytest.approx(tuple(np.exp(theirs)), rel=1e-9)


def test_a_caution_of_another_module_is_still_rendered():
    c = compare_arms(A, B, metric="tpot_s", cautions=[caution("quantised")])
    assert any("equal to the last bit" in line for line in explain(c))
    with_unknown = Caution(code="quantised", message="x")
    assert explain(compare_arms(A, B, metric="tpot_s", cautions=[with_unknown]))
