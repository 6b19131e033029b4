"""Drift, steps, throttle, spikes, leak and disturbed runs."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from scipy import stats
from tests.simulator.server import ServerModel, serve
from tests.unit.runs import make_run
from tests.unit.vllm_raw import CLIENTS, vllm_run

from gpuverdict.schema import GPU_SAMPLES, Run, Trace, conform
from gpuverdict.steady import (
    Window,
    disturbed_runs,
    drift,
    find_windows,
    history_change,
    leak,
    series_drift,
    spikes,
    step_change,
)


def _run(tpot: np.ndarray, spacing: float = 1.0, **info) -> Run:
    start = np.arange(tpot.size) * spacing
    return make_run(
        {"start_s": start, "first_token_s": start + 0.1,
         "last_token_s": start + 0.1 + 10 * tpot, "output_tokens": [11] * tpot.size},
        load_kind="constant", **info,
    )  # fmt: skip


def _all(run: Run) -> Window:
    return Window(start_s=0.0, end_s=1e9, kind="steady", n_sent=run.requests.height)


def _noisy(n: int = 1000, seed: int = 0) -> np.ndarray:
    return 0.01 * np.exp(np.random.default_rng(seed).normal(0, 0.02, n))


def test_drift_is_that_of_scipy_on_block_medians():
    values = _noisy() * np.exp(np.linspace(0, 0.05, 1000))
    blocks = [np.log(np.median(values[i : i + 50])) for i in range(0, 1000, 50)]
    tau = stats.kendalltau(range(20), blocks)
    pairs = [(blocks[j] - blocks[i]) / (j - i) for i in range(20) for j in range(i + 1, 20)]
    found = series_drift(values)
    assert found.n_blocks == 20
    assert found.p_value == pytest.approx(tau.pvalue)
    assert found.change_ratio == pytest.approx(np.expm1(19 * np.median(pairs)))
    assert found.alarm


def test_a_small_but_certain_trend_is_no_alarm():
    found = series_drift(0.01 * np.exp(np.linspace(0, 0.019, 1000)))
    assert found.p_value < 0.01
    assert not found.alarm


def test_drift_needs_a_hundred_requests_and_ten_waves():
    few = _run(_noisy(99))
    assert [c.code for c in drift(few, _all(few)).cautions] == ["drift_not_testable"]
    waves = _run(_noisy(600), max_concurrency=64)
    assert not drift(waves, _all(waves)).testable
    assert drift(waves, _all(waves), concurrency=16).testable
    assert drift(_run(_noisy(100)), _all(few)).testable


def test_a_constant_series_does_not_drift():
    assert not series_drift(np.full(200, 0.01)).alarm


def _trace(clock: np.ndarray, mask: np.ndarray, start: float = 1000.0) -> Trace:
    n = clock.size
    samples = conform(
        pl.DataFrame(
            {
                "trace_id": ["t"] * n,
                "gpu_index": [0] * n,
                "time_epoch_s": start + np.arange(n) * 1.0,
                "sm_clock_mhz": clock,
                "throttle_mask": mask.astype(np.uint64),
                "gpu_util_ratio": np.ones(n),
            }
        ),
        GPU_SAMPLES,
    )
    return Trace(samples=samples)


def test_a_step_is_a_throttle_only_when_the_trace_says_so():
    tpot = _noisy()
    tpot[600:] *= 1.08
    run = _run(tpot, t0_epoch_s=1000.0, t0_quality="exact")
    flat, clean = np.full(1100, 1980.0), np.zeros(1100, int)
    slow = np.where(np.arange(1100) >= 603, 1800.0, 1980.0)
    late = np.where(np.arange(1100) >= 640, 1800.0, 1980.0)
    bits = np.where(np.arange(1100) >= 600, 0x40, 0x1)

    def found(trace: Trace | list[Trace] | None) -> tuple[bool | None, str]:
        step = step_change(run, _all(run), trace=trace)
        assert step.alarm
        assert step.at_s == pytest.approx(600, abs=20)
        assert step.change_ratio == pytest.approx(0.08, abs=0.01)
        return step.throttle, step.cautions[0].code

    assert found(None) == (None, "step_change")
    assert found(_trace(flat, clean)) == (False, "step_change")
    assert found(_trace(slow, clean)) == (True, "throttle")
    assert found(_trace(late, clean)) == (False, "step_change")
    assert found(_trace(flat, bits)) == (True, "throttle")
    elsewhere = _trace(flat, clean, start=90_000.0)
    assert found([elsewhere, _trace(slow, clean)]) == (True, "throttle")
    assert found([elsewhere]) == (None, "step_change")
    # A run that gets faster is no throttle whatever the trace shows.
    faster = _run(tpot[::-1], t0_epoch_s=1000.0, t0_quality="exact")
    step = step_change(faster, _all(faster), trace=_trace(slow - 180 * (slow > 1900), clean))
    assert step.throttle is False


def test_the_emptying_server_at_the_end_is_no_step():
    rng = np.random.default_rng(8)
    n, streams = 1000, 64
    served = serve(ServerModel(policy="prefill_first", budget_tokens=8192), np.full(n, 600),
                   rng.integers(32, 97, n), rng, streams=streams)  # fmt: skip
    run = make_run(
        {"start_s": served.arrival_s, "first_token_s": served.first_s,
         "last_token_s": served.last_s, "output_tokens": served.output_tokens},
        load_kind="closed", max_concurrency=streams,
    )  # fmt: skip
    (window,) = find_windows([run])
    last = run.requests.sort("start_s").tail(20)["tpot_s"].median()
    assert last < 0.75 * run.requests["tpot_s"].median()
    assert not step_change(run, window).alarm
    assert not drift(run, window).alarm


def test_no_step_in_noise_and_none_below_two_percent():
    run = _run(_noisy())
    assert not step_change(run, _all(run)).alarm
    small = 0.01 * np.ones(1000)
    small[500:] *= 1.019
    assert not step_change(_run(small), _all(run)).alarm


def test_history():
    steady = [100, 101, 99, 100, 100, 101]
    assert history_change(steady, 0.03).outcome == "no change"
    assert history_change(steady[:5], 0.03).outcome == "not enough history"
    assert history_change([*steady, 0.0], 0.03).outcome == "error"
    found = history_change([*steady, 90, 91, 90, 89], 0.03)
    assert (found.outcome, found.index) == ("change", 6)
    assert history_change([*steady, 90, 91, 90, 89], 0.15).outcome == "no change"
    twice = [100, 101, 99, 100, 101, 99, 130, 131, 129, 130, 131, 129, 100, 101, 99, 100, 101, 99]
    assert history_change(twice, 0.03).outcome == "unstable series"


def test_spikes_are_counted_with_what_they_cost():
    gaps = [0.01, 0.011] * 50
    gaps[40] = 0.5
    run = make_run(
        {"start_s": [0.0], "first_token_s": [1.0], "last_token_s": [1.0 + sum(gaps)],
         "output_tokens": [101]},
        gaps={0: gaps},
    )  # fmt: skip
    found = spikes(run, _all(run))
    assert found.count == 1
    assert found.per_1000_gaps == pytest.approx(10)
    assert found.time_lost_s == pytest.approx(0.5 - float(np.median(gaps)))
    assert found.table["time_s"][0] == pytest.approx(1.0 + sum(gaps[:41]))
    bare = _run(_noisy(10))
    assert spikes(bare, _all(bare)).count is None


def _memory(used: np.ndarray, step: float = 10.0) -> Trace:
    n = used.size
    samples = conform(
        pl.DataFrame(
            {"trace_id": ["t"] * n, "gpu_index": [0] * n, "time_epoch_s": np.arange(n) * step,
             "memory_used_mib": used, "memory_total_mib": np.full(n, 20_000.0)}
        ),
        GPU_SAMPLES,
    )  # fmt: skip
    return Trace(samples=samples)


def test_memory_growth_is_turned_into_requests_and_time_until_full():
    # 10,000 MiB + 0.5 MiB/s over an hour, one request a second: 500 MiB per 1,000 requests.
    used = 10_000 + 0.5 * np.arange(360) * 10.0
    (found,) = leak(_memory(used), 0.0, 3600.0, n_requests=3590)
    assert found.alarm
    assert found.growth_mib_per_1000_requests.value == pytest.approx(500, rel=1e-3)
    left = 20_000 - float(np.median(used[-18:]))
    assert found.seconds_until_full.value == pytest.approx(left / 0.5, rel=1e-3)
    assert found.requests_until_full.value == pytest.approx(left / 0.5, rel=1e-3)
    assert found.growth_ratio_per_600_s == pytest.approx(300 / np.median(used), rel=1e-3)


def test_slow_growth_is_an_alarm_only_together_with_latency():
    used = 10_000 + 0.1 * np.arange(360) * 10.0
    (alone,) = leak(_memory(used), 0.0, 3600.0)
    rising = series_drift(np.geomspace(1, 1.1, 400))
    (joint,) = leak(_memory(used), 0.0, 3600.0, latency=rising)
    assert (alone.alarm, joint.alarm) == (False, True)


def test_flat_memory_is_no_information():
    (flat,) = leak(_memory(np.full(360, 9_000.0)), 0.0, 3600.0)
    assert flat.alarm is None
    assert [c.code for c in flat.cautions] == ["memory_flat"]
    (none,) = leak(_memory(np.full(360, 9_000.0)), 5000.0, 6000.0)
    assert [c.code for c in none.cautions] == ["memory_not_testable"]


# Their siblings took 3.6 and 4.6 s for the same work, these 13.1 and 7.8 s.
DISTURBED = {"a100-pcie-80g_c8_r3", "a100-pcie-80g_c16_r3"}


@pytest.mark.shared
@pytest.mark.skipif(not CLIENTS.exists(), reason="the client logs are not beside the repository")
def test_the_disturbed_mock_runs_are_found_and_no_other():
    names = sorted(p.name for p in (CLIENTS / "vllm-bench-0.32.0").glob("*_c*_r*"))
    cells: dict[str, list[str]] = {}
    for name in names:
        cells.setdefault(name.rsplit("_r", 1)[0], []).append(name)
    named = set()
    for members in cells.values():
        runs = [vllm_run(CLIENTS / "vllm-bench-0.32.0" / name) for name in members]
        found = disturbed_runs(runs, find_windows(runs))
        assert all(d.testable for d in found)
        named |= {d.run_id for d in found if d.disturbed}
        assert all(bool(d.cautions) == d.disturbed for d in found)
    assert named == DISTURBED


def _streams(stall_at: float | None, gap: float = 0.01) -> Run:
    """Four streams of 20 requests of 50 tokens, with an optional stall of 0.5 s for everybody."""
    rows: dict[str, list] = {k: [] for k in ("start_s", "first_token_s", "last_token_s")}
    lists = {}
    for stream in range(4):
        now = 0.013 * stream
        for _ in range(20):
            first = now + 0.05
            gaps = [gap] * 49
            time = first
            for k in range(49):
                if stall_at is not None and time <= stall_at < time + gap:
                    gaps[k] += 0.5
                time += gaps[k]
            lists[len(rows["start_s"])] = gaps
            rows["start_s"].append(now)
            rows["first_token_s"].append(first)
            rows["last_token_s"].append(time)
            now = time
    n = len(rows["start_s"])
    return make_run(rows | {"output_tokens": [50] * n, "input_tokens": [64] * n}, gaps=lists,
                    load_kind="closed", max_concurrency=4)  # fmt: skip


def test_a_stall_of_every_stream_is_a_disturbance_and_names_its_time():
    runs = [_streams(None), _streams(6.2)]
    clean, stalled = disturbed_runs(runs, find_windows(runs))
    assert not clean.disturbed
    assert stalled.disturbed
    assert stalled.at_s == pytest.approx(6.2, abs=0.02)
    assert stalled.silence_s == pytest.approx(0.5, abs=0.03)
    # The same stall within the opening wave is cut away with it.
    early = disturbed_runs([_streams(0.1)], find_windows([_streams(0.1)]))
    assert not early[0].disturbed


def test_without_gaps_a_silence_is_bounded_and_never_alarmed():
    runs = [_streams(None), _streams(6.2)]
    windows = find_windows(runs)
    blind = [Run(info=r.info, requests=r.requests, gaps=r.gaps.clear()) for r in runs]
    found = disturbed_runs(blind, windows)
    assert not any(d.testable or d.disturbed or d.cautions for d in found)
    for run, window, said in zip(blind, windows, found, strict=True):
        # By a second route: walk over the events one by one.
        rows = run.requests.select("first_token_s", "last_token_s").rows()
        inside = [t for pair in rows for t in pair if window.start_s < t < window.end_s]
        edges = sorted([window.start_s, *inside, window.end_s])
        spans = [
            b - a
            for a, b in itertools.pairwise(edges)
            if any(first <= a and b <= last for first, last in rows)
        ]
        assert said.silence_bound_s == pytest.approx(max(spans))
    assert found[1].silence_bound_s >= 0.5, "the true silence lies within its bound"
    aggregate = Run(info=runs[0].info, requests=runs[0].requests.clear(), gaps=blind[0].gaps)
    assert disturbed_runs([aggregate], windows[:1])[0].silence_bound_s is None


def test_a_long_prefill_explains_a_silence():
    runs = [_streams(6.2)]
    windows = find_windows(runs)
    (found,) = disturbed_runs(runs, windows, lambda tokens: np.full(tokens.size, 1e-3))
    assert found.disturbed
    arriving = runs[0].requests.with_columns(
        start_s=pl.when(pl.col("request_index") == 30).then(6.1).otherwise(pl.col("start_s")),
        first_token_s=pl.when(pl.col("request_index") == 30)
        .then(6.8)
        .otherwise(pl.col("first_token_s")),
    )
    run = Run(info=runs[0].info, requests=arriving, gaps=runs[0].gaps)
    (explained,) = disturbed_runs([run], windows, lambda tokens: np.full(tokens.size, 0.5))
    assert not explained.disturbed


def test_many_long_gaps_against_the_siblings():
    quiet, noisy = _streams(None), _streams(None)
    rng = np.random.default_rng(3)
    lists = [list(np.where(rng.random(49) < 0.02, 0.04, 0.01)) for _ in range(80)]
    gaps = noisy.gaps.with_columns(pl.Series("gaps_s", lists))
    noisy = Run(info=noisy.info, requests=noisy.requests, gaps=gaps)
    windows = find_windows([quiet, noisy])
    found = disturbed_runs([quiet, noisy], windows)
    assert [d.disturbed for d in found] == [False, True]
    assert found[1].long_gap_ratio > 0.01


def test_without_gaps_nothing_can_be_said():
    run = _run(_noisy(50))
    (found,) = disturbed_runs([run], find_windows([run]))
    assert (found.testable, found.disturbed) == (False, False)
