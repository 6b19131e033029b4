"""Any positive points give a curve or a refusal, never a number that is not one."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuverdict.curves import compare_curves, fit_curve
from gpuverdict.errors import ParameterError

FAST = settings(max_examples=50, deadline=None, derandomize=True)

point = st.tuples(
    st.sampled_from([1.0, 2.0, 4.0, 8.0, 15.9, 16.0, 64.0, 200.0]),
    st.floats(1e-4, 10.0).map(lambda x: round(x, 5)),
    st.integers(0, 3),
)
points = st.lists(point, min_size=1, max_size=16)


def fit(rows):
    try:
        return fit_curve(*map(list, zip(*rows, strict=True)))
    except ParameterError:
        return None


@FAST
@given(points)
def test_estimates_are_finite_or_none(rows):
    found = fit(rows)
    if found is None:
        return
    for name, estimate in found.params.items():
        for value in (estimate.value, estimate.low, estimate.high):
            assert value is None or (math.isfinite(value) and value >= 0), name
        if estimate.low is not None and estimate.high is not None:
            assert estimate.low <= estimate.value <= estimate.high
    at = [found.x_min, math.sqrt(found.x_min * found.x_max), found.x_max]
    assert all(v is not None and v > 0 for v in found.predict(at))
    assert "\n" not in str(found)


@FAST
@given(points, st.randoms(use_true_random=False))
def test_order_of_points_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    assert fit(rows) == fit(shuffled)


@FAST
@given(points, points)
def test_swapping_curves_inverts_the_ratio(rows_a, rows_b):
    a, b = fit(rows_a), fit(rows_b)
    if a is None or b is None:
        return
    at = np.geomspace(1, 200, 7)
    there, back = compare_curves(a, b, at), compare_curves(b, a, at)
    for x, y in zip(there.ratio, back.ratio, strict=True):
        assert (x is None) == (y is None)
        if x is not None and y is not None:
            assert math.isclose(x * y, 1, rel_tol=1e-8)
    assert (there.crossover is None) == (back.crossover is None)
    for span in there.spans:
        assert span.start <= span.end
