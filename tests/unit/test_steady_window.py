"""The window, the step functions and the token count, by hand and on the H200 logs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.campaigns import closed_loop, vllm_result
from tests.unit.guidellm_raw import as_run, raw_levels
from tests.unit.runs import make_run

from gpuverdict.recognise import read_run
from gpuverdict.schema import Run
from gpuverdict.steady import (
    Window,
    below_peak_ratio,
    find_windows,
    in_flight,
    mean_concurrency,
    mser_cut,
    requests_in_window,
    token_events,
    tokens_in_window,
    whole_run,
)

H200 = Path(__file__).resolve().parents[2] / "data" / "h200"

# Method notes 18.7: share dropped (%) and ok requests left, runs 1-5, at 1, 4, 16, 64 streams.
DROPPED = {
    "card-a-bf16": ([9] * 5, [14] * 5, [17] * 5, [36, 41, 33, 34, 38]),
    "card-b-bf16": ([9] * 5, [14] * 5, [17, 15, 15, 16, 15], [34, 33, 33, 34, 33]),
    "card-b-eager": ([20, 25, 20, 20, 20], [20, 25, 20, 20, 20], [25, 33, 22, 25, 25],
                     [37, 36, 38, 36, 37]),
}  # fmt: skip
LEFT = {
    "card-a-bf16": ([9] * 5, [27] * 5, [64] * 5, [48, 28, 64, 58, 42]),
    "card-b-bf16": ([9] * 5, [27] * 5, [64, 78, 78, 70, 76], [62, 64, 64, 59, 64]),
    "card-b-eager": ([3, 2, 3, 3, 3], [12, 8, 12, 12, 12], [32, 16, 41, 32, 32],
                     [44, 48, 42, 48, 43]),
}  # fmt: skip
# The arms' throughput there, tokens/s.
RATE = {
    "card-a-bf16": (162.2, 553.8, 1509, 2392),
    "card-b-bf16": (162.7, 567.6, 1555, 2590),
    "card-b-eager": (71.2, 276.9, 900, 2410),
}


@pytest.fixture(scope="module")
def h200() -> dict[str, list[list[dict]]]:
    return {
        arm: [raw_levels(H200 / arm / f"guidellm-r{r}.json.gz") for r in range(1, 6)]
        for arm in DROPPED
    }


@pytest.mark.parametrize("arm", list(DROPPED))
@pytest.mark.parametrize("level", range(4))
def test_the_h200_windows_are_those_of_the_worked_regression(h200, arm, level):
    runs = [as_run(sweep[level]) for sweep in h200[arm]]
    windows = find_windows(runs, (1, 4, 16, 64)[level])
    assert [round(100 * w.dropped_ratio) for w in windows] == DROPPED[arm][level]
    left = [
        int((requests_in_window(r, w)["status"] == "ok").sum())
        for r, w in zip(runs, windows, strict=True)
    ]
    assert left == LEFT[arm][level]
    assert all("short_run" in [c.code for c in w.cautions] for w in windows)
    rates = [tokens_in_window(r, w) / w.length_s for r, w in zip(runs, windows, strict=True)]
    assert math.exp(np.mean(np.log(rates))) == pytest.approx(RATE[arm][level], rel=0.005)


def test_throughput_equals_a_count_of_single_tokens_from_the_raw_file(h200):
    level = h200["card-b-bf16"][2][2]
    run = as_run(level)
    (window,) = find_windows([run], 16)
    sent = sorted(r["start"] for r in level["rows"])
    t0, t1 = sent[max(16, int(0.15 * len(sent)))], level["end"]
    count = 0
    for row in level["rows"]:
        for j in range(row["tokens"]):
            time = row["first"] + (row["last"] - row["first"]) * j / max(1, row["tokens"] - 1)
            count += t0 < time <= t1
    assert tokens_in_window(run, window) == pytest.approx(count, abs=1)
    events = token_events(run)
    inside = events.filter((events["time_s"] > window.start_s) & (events["time_s"] <= window.end_s))
    assert inside["tokens"].sum() == pytest.approx(count, abs=1)


def _closed_loop(n: int, streams: int, service: float = 1.0, **info) -> Run:
    """n requests of equal length, `streams` at a time."""
    start = [(i // streams) * service + 1e-6 * (i % streams) for i in range(n)]
    return make_run(
        {
            "start_s": start,
            "first_token_s": [s + 0.1 for s in start],
            "last_token_s": [s + service - 1e-5 for s in start],
            "output_tokens": [11] * n,
        },
        load_kind="closed",
        **info,
    )


def test_the_cut_takes_the_opening_wave_when_it_is_larger_than_fifteen_percent():
    (small,) = find_windows([_closed_loop(100, 4)], 4)
    (large,) = find_windows([_closed_loop(128, 32)], 32)
    assert (small.n_dropped, large.n_dropped) == (15, 32)
    assert small.reasons == {"warmup_opening": 15}


def test_without_a_stated_level_the_observed_peak_is_the_wave():
    (window,) = find_windows([_closed_loop(100, 20)])
    assert window.n_dropped == 20


def test_the_closed_loop_ends_where_the_drain_starts():
    run = make_run(
        {
            "start_s": [0, 0, 1, 1, 2, 2],
            "first_token_s": [0.5, 0.5, 1.5, 1.5, 2.5, 2.5],
            "last_token_s": [1.0, 1.0, 2.0, 2.0, 3.0, 9.0],
            "output_tokens": [2] * 6,
        },
        load_kind="closed",
        max_concurrency=2,
    )
    (window,) = find_windows([run])
    assert (window.start_s, window.end_s) == (1.0, 3.0)
    # 3-9 s of 9 s are spent with one of two streams.
    assert below_peak_ratio(run) == pytest.approx(6 / 9)
    assert mean_concurrency(run, window) == pytest.approx(2.0)
    assert mean_concurrency(run, whole_run(run)) == pytest.approx((3 * 2 + 6) / 9)


def test_a_moment_of_one_stream_too_many_is_no_peak():
    # Ends stamped 2 ms late: two requests of one stream overlap for that long, early in the run.
    start = [float(i) for i in range(40)]
    late = [0.002 if i < 5 else -0.001 for i in range(40)]
    run = make_run(
        {"start_s": start, "first_token_s": [s + 0.1 for s in start],
         "last_token_s": [s + 1.0 + d for s, d in zip(start, late, strict=True)],
         "output_tokens": [5] * 40},
        load_kind="closed",
    )  # fmt: skip
    assert in_flight(run)["n"].max() == 2
    (window,) = find_windows([run])
    assert (window.start_s, window.end_s) == (6.0, pytest.approx(39.999))
    assert below_peak_ratio(run) < 0.01


def test_the_open_loop_ends_with_the_last_intended_send_and_has_no_wave():
    n = 40
    run = make_run(
        {
            "start_s": [i + 0.25 for i in range(n)],
            "client_queue_s": [0.25] * n,
            "first_token_s": [i + 0.5 for i in range(n)],
            "last_token_s": [i + 5.0 for i in range(n)],
            "output_tokens": [5] * n,
        },
        load_kind="poisson",
        rate_rps=1.0,
        max_concurrency=30,
    )
    (window,) = find_windows([run], 30)
    assert (window.start_s, window.end_s) == (6.25, 39.0)
    assert window.reasons == {"warmup_opening": 6, "drain": 1}


def test_fewer_requests_than_the_cut_leave_no_steady_window():
    (window,) = find_windows([_closed_loop(8, 8)], 8)
    assert window.kind == "whole_run"
    assert [c.code for c in window.cautions] == ["no_steady_window"]


def test_a_log_without_starts_has_only_the_whole_run():
    run = make_run({"ttft_s": [0.1, 0.2], "output_tokens": [10, 20]}, duration_s=4.0)
    (window,) = find_windows([run], 1)
    assert (window.kind, window.end_s) == ("whole_run", 4.0)
    assert [c.code for c in window.cautions] == ["no_start_times"]
    assert tokens_in_window(run, window) == 30
    assert mean_concurrency(run, window) is None


def test_labelled_warm_up_goes_first_and_is_counted_apart():
    run = _closed_loop(100, 4)
    phase = ["warmup"] * 20 + ["main"] * 80
    labelled = run.requests.with_columns(pl.Series("phase", phase))
    run = Run(info=run.info, requests=labelled, gaps=run.gaps)
    (window,) = find_windows([run], 4)
    assert window.reasons == {"warmup_labelled": 20, "warmup_opening": 12}
    assert window.n_sent == 80
    assert window.start_s == pytest.approx(8.0)


def test_a_slow_start_is_cut_in_every_run_of_the_cell():
    rng = np.random.default_rng(1)

    def run_of(slow: int, ramp: float = 0.0) -> Run:
        n = 1000
        tpot = 0.01 * np.exp(rng.normal(0, 0.02, n))
        tpot[:slow] *= 1.5
        tpot *= 1 + ramp * np.arange(n) / n
        start = np.arange(n) * 1.0
        return make_run(
            {"start_s": start, "first_token_s": start + 0.1,
             "last_token_s": start + 0.1 + 10 * tpot, "output_tokens": [11] * n},
            load_kind="constant", rate_rps=1.0,
        )  # fmt: skip

    steady, slow = find_windows([run_of(0), run_of(230)])
    assert slow.n_dropped == steady.n_dropped == 230
    assert slow.reasons["warmup_settling"] == 80
    (alone,) = find_windows([run_of(0)])
    assert 150 <= alone.n_dropped < 200
    (never,) = find_windows([run_of(0, ramp=0.5)])
    assert "no_steady_state" in [c.code for c in never.cautions]


def test_dropping_too_much_is_no_steady_state():
    (ok,) = find_windows([_closed_loop(135, 45)], 45)
    (bad,) = find_windows([_closed_loop(98, 49)], 49)
    assert "no_steady_state" not in [c.code for c in ok.cautions]
    assert "no_steady_state" in [c.code for c in bad.cautions]


def test_half_and_double_cut():
    run = _closed_loop(100, 4)
    dropped = [find_windows([run], 4, cut=cut)[0].n_dropped for cut in (0, 0.5, 1, 2)]
    assert dropped == [0, 7, 15, 30]


def test_mser_agrees_with_its_definition():
    rng = np.random.default_rng(2)
    z = rng.normal(0, 1, 85) + 5 * np.exp(-np.arange(85) / 8)
    by_hand = min(range(43), key=lambda d: np.var(z[d:]) / (85 - d))
    assert mser_cut(z) == by_hand
    assert mser_cut(np.arange(20.0)) is None


def test_gaps_place_tokens_and_chunks_carry_their_share():
    run = make_run(
        {"start_s": [0.0, 0.0], "first_token_s": [1.0, 1.0], "last_token_s": [4.0, 4.0],
         "output_tokens": [4, 8]},
        gaps={0: [0.1, 0.1, 2.8], 1: [1.0, 1.0, 1.0]},
    )  # fmt: skip
    window = Window(start_s=1.0, end_s=2.0, kind="steady", n_sent=2)
    # Request 0: tokens at 1.1 and 1.2 inside, that at 1.0 closes the time before. Request 1: one
    # chunk of two tokens at 2.0.
    assert tokens_in_window(run, window) == pytest.approx(2 + 2)
    assert token_events(run)["tokens"].sum() == pytest.approx(12)


def test_tokens_of_cut_requests_count_and_those_of_failed_ones_do_not():
    run = make_run(
        {
            "start_s": [0.0] * 4,
            "first_token_s": [1.0, 1.0, 1.0, None],
            "last_token_s": [3.0, 3.0, 3.0, 3.0],
            "output_tokens": [3, None, 3, 3],
            "n_chunks": [3, 5, 3, None],
            "status": ["ok", "incomplete", "error", "ok"],
        }
    )
    window = Window(start_s=0.0, end_s=2.0, kind="steady", n_sent=4)
    # ok: 1.0, 2.0; cut: 1.0, 1.5, 2.0; not streamed: 3 tokens over (0, 3], two of them by 2.0.
    assert tokens_in_window(run, window) == pytest.approx(2 + 3 + 2)
    assert token_events(run).filter(token_events(run)["time_s"] <= 2)["tokens"].sum() == 7


def test_equal_finished_counts_with_different_gaps_give_different_throughput():
    def rate(gap: float) -> float:
        run = make_run(
            {"start_s": [0.0, 1.0], "first_token_s": [0.1, 1.1], "last_token_s": [0.1 + 9 * gap] * 1
             + [1.1 + 9 * gap], "output_tokens": [10, 10]}
        )  # fmt: skip
        return tokens_in_window(run, Window(start_s=0.5, end_s=1.55, kind="steady", n_sent=2))

    assert rate(0.08) != rate(0.09)


def test_in_flight_is_exact():
    run = make_run(
        {
            "start_s": [0.0, 1.0, 1.0],
            "first_token_s": [0.5, 1.2, None],
            "last_token_s": [2.0, 3.0, None],
            "end_s": [2.5, 3.0, 4.0],
            "status": ["ok", "incomplete", "error"],
        }
    )
    assert in_flight(run).rows() == [(0.0, 1), (1.0, 3), (2.5, 2), (3.0, 1), (4.0, 0)]


@pytest.mark.parametrize("seed", range(8))
def test_the_token_that_ends_the_window_is_in_it_whatever_the_rounding(tmp_path, seed):
    """One stream: every request of the window lies in it whole, so its tokens are a whole number.

    The window ends with the last token of all, whose time the window and the gaps add up in another
    order.
    """
    rows = closed_loop(streams=1, n=40, seed=seed)
    path = tmp_path / "r.json"
    path.write_text(json.dumps(vllm_result(rows, streams=1)))
    run = read_run(path)[0]
    (window,) = find_windows([run])
    inside = requests_in_window(run, window).height
    assert tokens_in_window(run, window) == inside * 32
