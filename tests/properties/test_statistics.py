"""What must not matter does not: order, units, which arm is named first, how cells are listed."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuverdict.stats import adjust, adjust_p, compare_arms, error_rate_comparison, quantile

FAST = settings(max_examples=60, deadline=None, derandomize=True)

runs = st.lists(
    st.floats(min_value=0.5, max_value=2.0, allow_nan=False).map(lambda x: round(x, 4)),
    min_size=1, max_size=6,
)  # fmt: skip
INVERSE = {"faster": "slower", "slower": "faster"}
MESSY = st.lists(
    st.one_of(
        st.none(), st.floats(allow_nan=True, allow_infinity=True), st.just(0.0), st.just(-1.0)
    ),
    max_size=6,
)


def near(a, b):
    return a is b is None or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


@FAST
@given(runs, runs)
def test_swapping_arms_inverts(a, b):
    there, back = compare_arms(a, b, metric="tpot_s"), compare_arms(b, a, metric="tpot_s")
    assert there.verdict == INVERSE.get(back.verdict, back.verdict)
    assert near(there.ratio * back.ratio, 1.0)
    assert near(there.p_value, back.p_value)
    assert near(there.p_permutation, back.p_permutation)
    if there.low is not None and back.high is not None:
        assert math.isclose(there.low * back.high, 1.0, rel_tol=1e-9)


@FAST
@given(runs, runs, st.randoms(use_true_random=False))
def test_order_of_runs_changes_no_bit(a, b, random):
    shuffled = [random.sample(x, len(x)) for x in (a, b)]
    assert compare_arms(a, b, metric="ttft_s") == compare_arms(*shuffled, metric="ttft_s")


@FAST
@given(runs, runs, st.sampled_from([1e-3, 1e3, 7.0]))
def test_the_unit_changes_no_verdict(a, b, factor):
    plain = compare_arms(a, b, metric="ttft_s")
    scaled = compare_arms([factor * x for x in a], [factor * x for x in b], metric="ttft_s")
    assert near(plain.ratio, scaled.ratio)
    # Equal run values stay equal under a factor; near a decision rounding may not turn the word.
    if plain.p_value is None or abs(plain.p_value - 0.05) > 1e-6:
        assert plain.verdict == scaled.verdict


@FAST
@given(MESSY, MESSY)
def test_nonsense_never_makes_a_word(a, b):
    c = compare_arms(a, b, metric="tpot_s")
    bad = [x for x in (*a, *b) if x is None or not math.isfinite(x) or x <= 0]
    if bad or not a or not b:
        assert c.verdict in ("inconclusive", "not comparable")
        assert c.p_value is None
    for value in (c.ratio, c.low, c.high, c.p_value, c.mde_ratio):
        assert value is None or math.isfinite(value)


EXTREME = st.lists(
    st.sampled_from([5e-324, 1e-300, 1e-9, 1.0, 1.0000000001, 1e9, 1e300, 1.7e308]),
    min_size=1, max_size=5,
)  # fmt: skip


@FAST
@given(EXTREME, EXTREME, st.booleans())
def test_extreme_values_neither_overflow_nor_make_numbers_up(a, b, paired):
    paired = paired and len(a) == len(b)
    c = compare_arms(np.array(a), np.array(b), metric="tpot_s", paired=paired)
    for value in (c.ratio, c.low, c.high, c.ci90_low, c.p_value, c.mde_ratio, c.baseline):
        assert value is None or math.isfinite(value)
    adjust([c])
    str(c)


@FAST
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_is_never_below_the_raw_one_nor_above_one(p):
    for method in ("bh", "holm"):
        adjusted = adjust_p(np.array(p), method)
        assert (adjusted >= np.array(p) - 1e-15).all()
        assert (adjusted <= 1).all()
        assert (np.argsort(adjusted, kind="stable")[:1] >= 0).all()
    assert (adjust_p(np.array(p), "holm") >= adjust_p(np.array(p), "bh") - 1e-15).all()


@FAST
@given(st.lists(st.tuples(runs, runs), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_a_family_listed_in_another_order_says_the_same(pairs, random):
    compared = [compare_arms(a, b, metric="tpot_s") for a, b in pairs]
    order = random.sample(range(len(pairs)), len(pairs))
    one = adjust(compared)
    other = adjust([compared[i] for i in order])
    for position, i in enumerate(order):
        assert other[position].verdict == one[i].verdict
        assert near(other[position].p_adjusted, one[i].p_adjusted)


@FAST
@given(
    st.lists(st.integers(0, 20), min_size=2, max_size=5),
    st.lists(st.integers(0, 20), min_size=2, max_size=5),
)
def test_error_rates_swap_too(x_a, x_b):
    n_a, n_b = [200] * len(x_a), [200] * len(x_b)
    there = error_rate_comparison(x_a, n_a, x_b, n_b)
    back = error_rate_comparison(x_b, n_b, x_a, n_a)
    inverse = {"better": "worse", "worse": "better"}
    assert there.verdict == inverse.get(back.verdict, back.verdict)
    assert math.isclose(there.difference, -back.difference, abs_tol=1e-15)


@FAST
@given(st.lists(st.floats(0.001, 100), min_size=1, max_size=50), st.floats(0.01, 0.99))
def test_a_quantile_lies_between_the_extremes(values, q):
    found = quantile(values, q)
    assert min(values) - 1e-12 <= found <= max(values) + 1e-12
