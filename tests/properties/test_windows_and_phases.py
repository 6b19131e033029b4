"""What must not matter does not: row order, the unit of time, where a window is split."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.calibration.simulated import load, model_of, probe

from gpuverdict.phases import fit_prefill, split_phases
from gpuverdict.schema import Run
from gpuverdict.steady import (
    Window,
    disturbed_runs,
    drift,
    find_windows,
    mean_concurrency,
    spikes,
    step_change,
    token_events,
    tokens_in_window,
)

TIMES = ("start_s", "first_token_s", "last_token_s", "end_s", "ttft_s", "e2e_s", "tpot_s")
slow = settings(max_examples=10, deadline=None)


def _loaded(seed: int, policy: str = "prefill_first") -> tuple[Run, Run]:
    rng = np.random.default_rng(seed)
    return load(model_of(policy), rng, streams=8, n=120).run, probe(model_of(policy), rng).run


def _shuffled(run: Run, seed: int) -> Run:
    return dataclasses.replace(
        run,
        requests=run.requests.sample(fraction=1.0, shuffle=True, seed=seed),
        gaps=run.gaps.sample(fraction=1.0, shuffle=True, seed=seed + 1),
    )


def _scaled(run: Run, factor: float) -> Run:
    return dataclasses.replace(
        run,
        requests=run.requests.with_columns(pl.col(name) * factor for name in TIMES),
        gaps=run.gaps.with_columns(pl.col("gaps_s").list.eval(pl.element() * factor)),
    )


@slow
@given(seed=st.integers(0, 1000))
def test_row_order_changes_nothing(seed):
    run, unloaded = _loaded(seed)
    other = _shuffled(run, seed)
    (a,), (b,) = find_windows([run], 8), find_windows([other], 8)
    assert a == b
    assert tokens_in_window(run, a) == pytest.approx(tokens_in_window(other, b), rel=1e-12)
    assert mean_concurrency(run, a) == pytest.approx(mean_concurrency(other, b))
    assert drift(run, a) == drift(other, b)
    assert step_change(run, a) == step_change(other, b)
    assert spikes(run, a).count == spikes(other, b).count
    one, two = split_phases(run, unloaded, a), split_phases(other, unloaded, b)
    assert one.batch.equals(two.batch)
    assert one.decode_step_s.value == pytest.approx(two.decode_step_s.value, rel=1e-9)
    assert one.requests.sort("request_index").equals(two.requests.sort("request_index"))


@slow
@given(seed=st.integers(0, 1000), factor=st.sampled_from([1e-3, 0.5, 1.1, 60.0]))
def test_the_unit_of_time_only_scales(seed, factor):
    run, unloaded = _loaded(seed)
    other, other_probe = _scaled(run, factor), _scaled(unloaded, factor)
    (a,), (b,) = find_windows([run], 8), find_windows([other], 8)
    assert (b.start_s, b.end_s) == pytest.approx((a.start_s * factor, a.end_s * factor))
    assert (a.n_sent, a.n_dropped, a.reasons) == (b.n_sent, b.n_dropped, b.reasons)
    # One token at an edge may fall to either side by rounding.
    assert tokens_in_window(run, a) == pytest.approx(tokens_in_window(other, b), abs=1.5)
    one, two = split_phases(run, unloaded, a), split_phases(other, other_probe, b)
    assert two.decode_step_s.value == pytest.approx(one.decode_step_s.value * factor, rel=1e-4)
    assert two.prefill.c1_s_per_token.value == pytest.approx(
        one.prefill.c1_s_per_token.value * factor, rel=1e-6
    )
    excess = [p.requests["scheduling_excess_s"].sum() for p in (one, two)]
    assert excess[1] == pytest.approx(excess[0] * factor, rel=1e-6)
    assert [d.disturbed for d in disturbed_runs([run], [a])] == [
        d.disturbed for d in disturbed_runs([other], [b])
    ]


@slow
@given(seed=st.integers(0, 1000), where=st.floats(0.05, 0.95))
def test_tokens_of_adjacent_windows_add_up(seed, where):
    run, _ = _loaded(seed, "chunked")
    end = float(run.requests["last_token_s"].max())
    cut = where * end

    def tokens(start: float, stop: float) -> float:
        window = Window(start_s=start, end_s=stop, kind="steady", n_sent=0)
        return tokens_in_window(run, window)

    whole = tokens(0.0, end)
    assert tokens(0.0, cut) + tokens(cut, end) == pytest.approx(whole)
    assert whole == run.requests["output_tokens"].sum()
    assert token_events(run)["tokens"].sum() == pytest.approx(whole)
    bare = dataclasses.replace(run, gaps=run.gaps.clear())
    window = Window(start_s=0.0, end_s=cut, kind="steady", n_sent=0)
    events = token_events(bare)
    by_event = events.filter(events["time_s"] <= cut)["tokens"].sum()
    assert tokens_in_window(bare, window) == pytest.approx(by_event, abs=1)


def test_even_spread_and_stamps_agree_on_steady_decoding():
    run, _ = _loaded(7)
    (window,) = find_windows([run], 8)
    bare = dataclasses.replace(run, gaps=run.gaps.clear())
    assert tokens_in_window(bare, window) == pytest.approx(tokens_in_window(run, window), rel=0.01)


@slow
@given(
    c0=st.floats(0.001, 0.1), c1=st.floats(1e-6, 1e-3), c2=st.floats(0.0, 1e-8),
    seed=st.integers(0, 100),
)  # fmt: skip
def test_an_exact_curve_comes_back_exactly(c0, c1, c2, seed):
    from tests.unit.runs import make_run

    n = np.random.default_rng(seed).permutation(np.repeat([64, 128, 512, 2048, 4096], 3))
    ttft = c0 + c1 * n + c2 * n.astype(float) ** 2
    start = np.arange(n.size) * 1000.0
    run = make_run({"start_s": start, "first_token_s": start + ttft,
                    "last_token_s": start + ttft + 1.0, "ttft_s": ttft, "input_tokens": n,
                    "output_tokens": [2] * n.size})  # fmt: skip
    fit = fit_prefill([run])
    assert fit.predict(n) == pytest.approx(ttft, rel=1e-6)
