"""Phases by hand, on the H200 logs against the server's own times, and on the mock clients."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import optimize, stats
from tests.calibration.phases_table import client_rows, h200_level, h200_prefill, server_rows
from tests.unit.runs import make_run
from tests.unit.vllm_raw import CLIENTS

from gpuverdict.phases import (
    clean_gaps,
    decode_batch,
    decode_step,
    fit_itl,
    fit_prefill,
    huber_location,
    itl_by_position,
    prefill_envelope,
    split_phases,
)
from gpuverdict.schema import Run


def _probe(lengths, ttft, **info) -> Run:
    n = len(lengths)
    start = np.arange(n) * 10.0
    return make_run(
        {"start_s": start, "first_token_s": start + np.asarray(ttft),
         "last_token_s": start + np.asarray(ttft) + 0.03, "input_tokens": lengths,
         "output_tokens": [4] * n},
        max_concurrency=1, **info,
    )  # fmt: skip


def _curve(n: np.ndarray) -> np.ndarray:
    return 0.01 + 6e-5 * n + 1.5e-9 * n**2


LENGTHS = np.tile([128, 512, 1024, 2048, 4096, 8192], 5)


def test_the_quadratic_is_that_of_a_weighted_fit_by_scipy():
    rng = np.random.default_rng(0)
    ttft = _curve(LENGTHS) * np.exp(rng.normal(0, 0.02, LENGTHS.size))
    fit = fit_prefill([_probe(LENGTHS, ttft)])
    x, y = LENGTHS[1:].astype(float), ttft[1:]
    p, cov = optimize.curve_fit(
        lambda n, a, b, c: a + b * n / 1e3 + c * n**2 / 1e6, x, y, sigma=y, absolute_sigma=False
    )
    got = [fit.c0_s.value, 1e3 * fit.c1_s_per_token.value, 1e6 * fit.c2_s_per_token2.value]
    assert got == pytest.approx(p, rel=1e-5)
    half = stats.t.ppf(0.975, x.size - 3) * np.sqrt(cov[0, 0])
    assert fit.c0_s.high - fit.c0_s.value == pytest.approx(half, rel=1e-4)
    assert fit.rate_tokens_per_s(1024) == pytest.approx(1 / (6e-5 + 3e-9 * 1024), rel=0.03)


def test_a_cold_first_request_is_left_out():
    ttft = _curve(LENGTHS)
    ttft[0] = 5.0
    fit = fit_prefill([_probe(LENGTHS, ttft)])
    assert fit.c0_s.value == pytest.approx(0.01, rel=1e-6)


def test_few_or_narrow_lengths_fall_back():
    few = fit_prefill([_probe([512] * 4 + [1024] * 4, [0.04] * 4 + [0.07] * 4)])
    assert few.kind == "by_length"
    assert [c.code for c in few.cautions] == ["prefill_few_lengths"]
    known = few.predict(np.array([512.0, 600.0, 1024.0, np.nan]))
    assert known[[0, 2]] == pytest.approx([0.04, 0.07])
    assert np.isnan(known[[1, 3]]).all()
    assert few.rate_tokens_per_s(512) is None
    narrow = np.tile([500, 1000, 1500, 2000], 5)
    line = fit_prefill([_probe(narrow, 0.01 + 6e-5 * narrow)])
    assert line.kind == "linear"
    assert line.c1_s_per_token.value == pytest.approx(6e-5)
    assert [c.code for c in line.cautions] == ["prefill_narrow_lengths"]


def test_a_curve_that_falls_or_scatters_is_rejected():
    # Shortest prompts slowest, as in the H200 probe.
    lengths = np.tile([128, 512, 1024, 2048], 5)
    ttft = np.tile([0.0245, 0.0175, 0.0288, 0.0550], 5)
    fit = fit_prefill([_probe(lengths, ttft)])
    assert fit.kind == "by_length"
    assert [c.code for c in fit.cautions] == ["prefill_rejected"]
    scatter = np.tile([0.3, 0.01, 0.2, 0.02, 0.25, 0.3], 5)
    assert fit_prefill([_probe(LENGTHS, scatter)]).kind == "by_length"


def test_prefix_cache_hits_refuse_the_probe():
    ttft = _curve(LENGTHS)
    said = _probe(LENGTHS, ttft)
    cached = said.requests.with_columns(cached_input_tokens=pl.lit(16, dtype=pl.Int64))
    told = fit_prefill([Run(info=said.info, requests=cached, gaps=said.gaps)])
    repeated = ttft.copy()
    repeated[18:] *= 0.7
    silent = fit_prefill([_probe(LENGTHS, repeated)])
    fine = ttft.copy()
    fine[18:] *= 0.85
    for model in (told, silent):
        assert model.kind == "none"
        assert [c.code for c in model.cautions] == ["prefix_cache_hits"]
    assert fit_prefill([_probe(LENGTHS, fine)]).kind != "none"


def test_the_envelope_never_falls_with_length_and_is_a_lower_bound():
    run = make_run({"input_tokens": [100, 200, 200, 300, 400], "ttft_s": [0.2, 0.5, 0.3, 0.1, 0.6],
                    "output_tokens": [2] * 5})  # fmt: skip
    model = prefill_envelope(run)
    assert model.predict(np.array([50.0, 100.0, 250.0, 400.0, 500.0])) == pytest.approx(
        [0.1, 0.1, 0.1, 0.6, 0.6]
    )
    phases = split_phases(run)
    assert phases.requests["scheduling_excess_s"].to_list() == pytest.approx([0.1, 0.4, 0.2, 0, 0])
    assert {"no_unloaded_reference", "no_start_times"} == {c.code for c in phases.cautions}
    assert phases.batch.is_empty()


def test_five_requests_by_hand():
    probes = [_probe([100] * 3, [0.1, 0.1, 0.1])]
    run = make_run(
        {
            "start_s": [0.0, 0.0, 1.0, 1.0, 2.0],
            "first_token_s": [0.1, 0.3, 1.05, None, 2.5],
            "last_token_s": [1.0, 2.0, 3.0, None, 2.5],
            "input_tokens": [100, 100, 100, 100, 200],
            "output_tokens": [10, 10, 10, None, 1],
            "status": ["ok", "ok", "incomplete", "error", "ok"],
        },
        max_concurrency=4,
    )
    phases = split_phases(run, probes)
    rows = phases.requests
    assert rows["prefill_s"].to_list() == pytest.approx([0.1, 0.1, 0.05, None, None])
    assert rows["scheduling_excess_s"].to_list() == pytest.approx([0.0, 0.2, 0.0, None, None])
    assert rows["decode_s"].to_list() == pytest.approx([0.9, 1.7, 1.95, None, 0.0])
    assert phases.batch.rows() == [(0.1, 1), (0.3, 2), (1.0, 1), (1.05, 2), (2.0, 1), (3.0, 0)]
    assert phases.decode_step_s.value is None
    assert [c.code for c in phases.decode_step_s.cautions] == ["decode_step_needs_gaps"]


def test_the_servers_own_times_win_and_are_compared():
    run = make_run(
        {
            "start_s": [0.0, 1.0],
            "first_token_s": [0.5, 1.5],
            "last_token_s": [1.0, 2.0],
            "input_tokens": [100, 100],
            "output_tokens": [5, 5],
            "server_queue_s": [0.3, None],
            "server_prefill_s": [0.15, None],
            "server_decode_s": [0.48, None],
        }
    )
    phases = split_phases(run, [_probe([100] * 3, [0.1] * 3)])
    rows = phases.requests
    assert rows["prefill_s"].to_list() == pytest.approx([0.15, 0.1])
    assert rows["decode_s"].to_list() == pytest.approx([0.48, 0.5])
    assert rows["queue_s"].to_list() == [0.3, None]
    assert rows["network_s"].to_list() == pytest.approx([1.0 - 0.93, None])
    assert rows["source"].to_list() == ["server", "client"]
    assert phases.server_minus_client_s == pytest.approx(0.3 - 0.4)


def test_huber_agrees_with_statsmodels():
    from statsmodels.robust.scale import mad

    values = np.random.default_rng(3).standard_t(2, 500) + 10
    scale = mad(values)
    root = optimize.brentq(lambda m: np.clip((values - m) / scale, -1.345, 1.345).sum(), 5.0, 15.0)
    assert huber_location(values) == pytest.approx(root, rel=1e-6)


def _two_streams(gap: float = 0.01, prefill: float = 0.05) -> Run:
    """A long stream, and short ones whose prefill stalls it."""
    gaps, now, arrivals = [], 1.0, [1.5, 2.5, 3.5]
    pending = list(arrivals)
    while len(gaps) < 399:
        stall = prefill if pending and pending[0] <= now + 1e-12 else 0.0
        if stall:
            pending.pop(0)
        gaps.append(gap + stall)
        now += gap + stall
    first = [a + prefill for a in arrivals]
    return make_run(
        {
            "start_s": [0.0, *arrivals],
            "first_token_s": [1.0, *first],
            "last_token_s": [1.0 + sum(gaps), *first],
            "input_tokens": [1000] * 4,
            "output_tokens": [400, 1, 1, 1],
        },
        gaps={0: gaps},
        max_concurrency=2,
    )


def test_stalled_gaps_are_told_from_clean_ones():
    run = _two_streams()
    prefill = fit_prefill([_probe([1000] * 3, [0.05] * 3)])
    gaps = clean_gaps(run, prefill)
    stalled = gaps.filter(pl.col("gap_s") > 0.05)
    assert not stalled["clean"].any()
    assert stalled["prefill_tokens"].sum() == pytest.approx(3000, rel=0.3)
    assert gaps["prefill_tokens"].sum() == pytest.approx(3000)
    assert gaps.filter("clean")["gap_s"].to_numpy() == pytest.approx(0.01)
    step = decode_step(run, prefill)
    assert step.value == pytest.approx(0.01)
    # A mean over all gaps would have been 3.75 % longer.
    assert gaps["gap_s"].mean() == pytest.approx(0.01 + 3 * 0.05 / 399)


def _one_stream(gaps: np.ndarray) -> Run:
    return make_run(
        {"start_s": [0.0], "first_token_s": [1.0], "last_token_s": [1.0 + gaps.sum()],
         "input_tokens": [1000], "output_tokens": [gaps.size + 1]},
        gaps={0: gaps}, max_concurrency=1,
    )  # fmt: skip


def test_stamps_of_a_slow_client_do_not_become_the_devices_step():
    prefill = fit_prefill([_probe([1000] * 3, [0.05] * 3)])
    rng = np.random.default_rng(4)
    # The client looks every 4 ms: steps of 10 ms arrive as 8 or 12 ms, three to two by chance.
    true = 1.0 + np.cumsum(np.full(2000, 0.0101))
    looked = np.ceil(true / 0.004) * 0.004
    quantised = np.diff(looked)
    step = decode_step(_one_stream(quantised), prefill)
    assert step.value == pytest.approx(0.0101, rel=0.005)
    assert [c.code for c in step.cautions] == ["noisy_stamps"]
    assert abs(huber_location(quantised) / 0.0101 - 1) > 0.02
    # The device's own jitter is as wide but remembers nothing: single gaps, no caution.
    device = 0.0101 * rng.lognormal(0, 0.06, 2000)
    step = decode_step(_one_stream(device), prefill)
    assert step.cautions == ()
    assert step.n == 2000


def test_several_tokens_a_gap_and_too_few_clean_gaps_are_refused():
    chunked = make_run(
        {"start_s": [0.0], "first_token_s": [1.0], "last_token_s": [2.0], "output_tokens": [81],
         "input_tokens": [10]},
        gaps={0: [0.05] * 20}, max_concurrency=4,
    )  # fmt: skip
    zero_filled = make_run(
        {"start_s": [0.0], "first_token_s": [1.0], "last_token_s": [2.0], "output_tokens": [41],
         "input_tokens": [10]},
        gaps={0: [0.0, 0.0, 0.0, 0.1] * 10}, max_concurrency=4,
    )  # fmt: skip
    for run in (chunked, zero_filled):
        codes = [c.code for c in split_phases(run).decode_step_s.cautions]
        assert codes == ["gaps_hold_several_tokens"]
    short = make_run(
        {"start_s": [0.0], "first_token_s": [1.0], "last_token_s": [1.19], "output_tokens": [20],
         "input_tokens": [10]},
        gaps={0: [0.01] * 19}, max_concurrency=4,
    )  # fmt: skip
    found = split_phases(short).decode_step_s
    assert (found.value, found.cautions[0].code) == (None, "no_clean_gaps")


def test_one_stream_without_gaps_gives_the_users_view():
    run = make_run(
        {"start_s": [0.0, 1.0, 2.0], "first_token_s": [0.1, 1.1, 2.1],
         "last_token_s": [0.19, 1.2, 2.3], "output_tokens": [10, 11, 11], "input_tokens": [5] * 3},
        max_concurrency=1,
    )  # fmt: skip
    step = split_phases(run).decode_step_s
    assert step.value == pytest.approx(0.01)
    assert [c.code for c in step.cautions] == ["step_user_perceived"]


def test_position_slope():
    n = 2000
    context = 100 + np.arange(1, n + 1)
    gaps = 0.01 + 2e-6 * context
    run = make_run(
        {"start_s": [0.0], "first_token_s": [1.0], "last_token_s": [1.0 + gaps.sum()],
         "output_tokens": [n + 1], "input_tokens": [100]},
        gaps={0: gaps}, max_concurrency=1,
    )  # fmt: skip
    found = itl_by_position(run, fit_prefill([_probe([100] * 3, [0.1] * 3)]))
    assert found.slope_s_per_1000_tokens.value == pytest.approx(2e-3, rel=1e-3)
    assert found.first_tenth_s == pytest.approx(np.median(gaps[:200]))
    assert found.last_tenth_s == pytest.approx(np.median(gaps[1800:]))


def test_levels_that_are_too_close_identify_nothing():
    run = _two_streams()
    fit = fit_itl([run, run, run], fit_prefill([_probe([1000] * 3, [0.05] * 3)]))
    assert fit.alpha_s.value is None
    assert [c.code for c in fit.cautions] == ["levels_too_close"]


def test_batch_needs_start_times_only_for_its_clock():
    run = make_run({"ttft_s": [0.1], "e2e_s": [1.0], "output_tokens": [10], "input_tokens": [10]})
    assert decode_batch(run).is_empty()
    assert split_phases(run).requests["decode_s"].to_list() == pytest.approx([0.9])


@pytest.fixture(scope="module")
def served() -> dict:
    return server_rows()


def test_h200_prefill_within_ten_percent_of_the_server(served):
    for _, ours, own in h200_prefill(served):
        assert ours == pytest.approx(own, rel=0.10)


@pytest.mark.parametrize("level", range(4))
def test_h200_batch_and_excess_against_the_server(served, level):
    row = h200_level(level, 2, served)
    assert row["batch_error"] <= 0.2
    assert row["excess_ms"] >= row["wait_ms"] - 2.0


@pytest.mark.shared
@pytest.mark.skipif(not CLIENTS.exists(), reason="the client logs are not beside the repository")
@pytest.mark.parametrize("profile", ["a100-sxm-80g", "rtx4090x2-tp2"])
def test_mock_clients_against_their_true_parameters(profile):
    row = client_rows(profile)
    # A real client on a busy machine: 1.5 % on steps, more on what is a difference of two of them.
    for _, ours, true, _ in row["steps"]:
        assert ours == pytest.approx(true, rel=0.015)
    for name, band in (("alpha", 0.02), ("beta", 0.05), ("gamma", 0.05)):
        ours, true = row[name]
        assert ours == pytest.approx(true, rel=band)
