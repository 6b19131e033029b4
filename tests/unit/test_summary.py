"""The per-run summary by hand: each metric on runs small enough to work out on paper."""

from __future__ import annotations

import dataclasses
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.campaigns import arm, write_arm, write_campaign
from tests.unit.runs import make_run

from gpuverdict.campaign import read_campaign
from gpuverdict.measured import measure
from gpuverdict.schema import METRICS, SUMMARY, Run
from gpuverdict.steady import Window, whole_run
from gpuverdict.summary import summarize, summarize_measured
from gpuverdict.summary.facts import littles_streams, run_facts
from gpuverdict.summary.run_rows import Row, run_rows

# Three requests, one stream, back to back: 0-2 s, 2-4 s, 4-7 s.
THREE: dict[str, Any] = {
    "start_s": [0.0, 2.0, 4.0],
    "first_token_s": [0.5, 2.4, 4.6],
    "last_token_s": [2.0, 4.0, 7.0],
    "output_tokens": [16, 17, 25],
    "input_tokens": [100, 200, 300],
}
FACTS = {"duration_s": 8.0, "max_concurrency": 1, "load_kind": "closed", "streaming": True,
         "token_time_source": "even_spread"}  # fmt: skip


def rows_of(run: Run, window: Window | None = None, **keys: Any) -> dict[tuple[str, str], Row]:
    rows = run_rows(run, window or whole_run(run), **keys)
    found = {(r.metric, r.statistic): r for r in rows}
    assert len(found) == len(rows), "one row a metric and statistic"
    return found


def codes(row: Row) -> set[str]:
    return {c.code for c in row.cautions}


def test_latencies_by_hand() -> None:
    found = rows_of(make_run(THREE, **FACTS))
    ttft, tpot, e2e = [0.5, 0.4, 0.6], [0.1, 0.1, 0.1], [2.0, 2.0, 3.0]
    right = {
        ("ttft_s", "mean"): 0.5, ("ttft_s", "p50"): 0.5, ("ttft_s", "min"): 0.4,
        ("ttft_s", "max"): 0.6, ("ttft_s", "std"): statistics.stdev(ttft),
        ("ttft_s", "p90"): 0.58, ("ttft_s", "p95"): 0.59, ("ttft_s", "p99"): 0.598,
        ("tpot_s", "p50"): statistics.median(tpot), ("e2e_s", "mean"): statistics.fmean(e2e),
        ("normalized_e2e_s_per_token", "p50"): 3 / 25, ("tpot_token_weighted_s", "value"): 5.5 / 55,
        ("decode_tokens_per_s", "value"): 10.0,
    }  # fmt: skip
    for key, value in right.items():
        assert found[key].value == pytest.approx(value, rel=1e-12), key
        assert found[key].n == 3
    assert "tail_under_sampled" in codes(found["ttft_s", "p95"])
    assert "few_requests" in codes(found["ttft_s", "p50"])


def test_rates_by_hand() -> None:
    found = rows_of(make_run(THREE, **FACTS), gpus=2)
    right = {
        "output_tokens_per_s": 58 / 8, "output_tokens_per_s_per_gpu": 29 / 8,
        "output_tokens_per_s_finished_only": 58 / 8, "output_tokens_per_s_full_run": 58 / 8,
        "input_tokens_per_s": 600 / 8, "requests_per_s": 3 / 8, "error_ratio": 0.0,
        "empty_ratio": 0.0, "concurrency": 7 / 8, "below_peak_ratio": 0.0,
        "decode_batch": 5.5 / 8, "prefill_tokens_per_s": 500.0,
    }  # fmt: skip
    for metric, value in right.items():
        assert found[metric, "value"].value == pytest.approx(value, rel=1e-12), metric
    assert "ramp_included" in codes(found["output_tokens_per_s", "value"])


def test_window_counts_the_tokens_made_inside_it() -> None:
    """From 2 to 6 s: 17 of the second request; of the third one at 4.6 and every tenth after."""
    window = Window(start_s=2.0, end_s=6.0, kind="steady", n_sent=3, n_dropped=1)
    found = rows_of(make_run(THREE, **FACTS), window)
    assert found["output_tokens_per_s", "value"].value == pytest.approx((17 + 15) / 4)
    assert found["output_tokens_per_s_finished_only", "value"].value == pytest.approx(17 / 4)
    assert found["requests_per_s", "value"].value == pytest.approx(2 / 4)
    assert found["ttft_s", "p50"].value == pytest.approx(0.5)
    assert found["ttft_s", "p50"].n == 2
    assert "even_spread" in codes(found["output_tokens_per_s", "value"])


def test_only_ok_requests_have_latencies_and_failures_have_a_ratio() -> None:
    run = make_run(
        {
            **{k: [*v, *v] for k, v in THREE.items()},
            "status": ["ok", "error", "incomplete", "ok", "empty", "ok"],
        },
        **FACTS,
    )  # fmt: skip
    found = rows_of(run)
    assert found["ttft_s", "mean"].n == 3
    assert found["ttft_s", "mean"].value == pytest.approx((0.5 + 0.5 + 0.6) / 3)
    assert found["error_ratio", "value"].value == pytest.approx(2 / 6)
    assert found["empty_ratio", "value"].value == pytest.approx(1 / 6)
    # Cut requests made their tokens, failed ones did not.
    assert found["output_tokens_per_s", "value"].value == pytest.approx((16 + 25 + 16 + 25) / 8)
    assert found["output_tokens_per_s_finished_only", "value"].value == pytest.approx(57 / 8)


def test_one_token_outputs_have_no_tpot_and_are_counted() -> None:
    columns = {**THREE, "output_tokens": [1, 17, 4], "last_token_s": [0.5, 4.0, 4.9]}
    found = rows_of(make_run(columns, **FACTS))
    assert found["tpot_s", "mean"].n == 2
    assert found["tpot_s", "mean"].value == pytest.approx(0.1)
    assert found["tpot_s", "p50"].n == 1, "quantiles only over outputs of eight tokens or more"
    (said,) = [c for c in found["tpot_s", "p50"].cautions if c.code == "tpot_undefined"]
    assert (said.values["n"], said.values["total"]) == (1, 3)


def test_short_outputs_fall_back_with_a_caution_and_all_single_have_none() -> None:
    short = {**THREE, "output_tokens": [2, 3, 4], "last_token_s": [0.6, 2.6, 4.9]}
    found = rows_of(make_run(short, **FACTS))
    assert found["tpot_s", "p50"].value == pytest.approx(0.1)
    assert "tpot_of_short_outputs" in codes(found["tpot_s", "p50"])
    single = {**THREE, "output_tokens": [1, 1, 1], "last_token_s": [0.5, 2.4, 4.6]}
    found = rows_of(make_run(single, **FACTS))
    for statistic in ("mean", "p50", "p99"):
        assert found["tpot_s", statistic].value is None
        assert codes(found["tpot_s", statistic])
    assert found["decode_tokens_per_s", "value"].value is None


def test_without_streaming_there_is_no_ttft_but_e2e_and_throughput() -> None:
    columns = {"start_s": [0.0, 2.0], "end_s": [2.0, 4.0], "e2e_s": [2.0, 2.0],
               "output_tokens": [10, 10], "input_tokens": [5, 5]}  # fmt: skip
    found = rows_of(make_run(columns, duration_s=4.0, streaming=False, max_concurrency=1))
    assert found["ttft_s", "p50"].value is None
    assert "not_streamed" in codes(found["ttft_s", "p50"])
    assert "not_streamed" in codes(found["tpot_s", "mean"])
    assert found["e2e_s", "p50"].value == 2.0
    assert found["output_tokens_per_s", "value"].value == pytest.approx(5.0)


def gaps_run(gaps: dict[int, list[float]], tokens: list[int], kind: str) -> Run:
    n = len(tokens)
    run = make_run(
        {
            "start_s": [float(i) for i in range(n)],
            "first_token_s": [i + 0.1 for i in range(n)],
            "last_token_s": [i + 0.1 + sum(gaps.get(i, [])) for i in range(n)],
            "output_tokens": tokens, "input_tokens": [10] * n,
        },
        gaps, duration_s=10.0, streaming=True,
    )  # fmt: skip
    return dataclasses.replace(run, gaps=run.gaps.with_columns(gap_kind=pl.lit(kind)))


def test_itl_of_true_tokens_and_of_chunks_of_one() -> None:
    gaps = {0: [0.1, 0.2, 0.3], 1: [0.1, 0.1, 0.4]}
    for kind in ("token_true", "chunk"):
        found = rows_of(gaps_run(gaps, [4, 4], kind))
        flat = [g for row in gaps.values() for g in row]
        assert found["itl_s", "p50"].value == pytest.approx(statistics.median(flat))
        assert found["itl_s", "p95"].value == pytest.approx(np.quantile(flat, 0.95))
        assert found["itl_s", "mean"].n == 6


def test_gaps_of_larger_chunks_are_no_itl() -> None:
    found = rows_of(gaps_run({0: [0.4, 0.4, 0.4], 1: [0.4, 0.4, 0.4]}, [13, 13], "chunk"))
    assert found["itl_s", "p50"].value is None
    assert "gaps_are_not_tokens" in codes(found["itl_s", "p50"])
    assert found["chunk_gap_s", "p50"].value == pytest.approx(0.4)
    uniform = rows_of(gaps_run({0: [0.1] * 3}, [4], "uniform_per_request"))
    assert uniform["itl_s", "p50"].value is None


def test_bursty_gaps_lose_their_quantiles_but_keep_their_mean() -> None:
    gaps = {0: [0.001, 0.001, 0.001, 0.001, 1.0]}
    found = rows_of(gaps_run(gaps, [6], "token_true"))
    assert found["itl_s", "p50"].value is None
    assert "bursty_gaps" in codes(found["itl_s", "p50"])
    assert found["itl_s", "mean"].value == pytest.approx(1.004 / 5)


def test_without_gaps_itl_says_so() -> None:
    found = rows_of(make_run(THREE, **FACTS))
    assert "no_gaps_in_log" in codes(found["itl_s", "p50"])


def test_whole_run_without_start_times_keeps_what_it_can() -> None:
    columns = {"ttft_s": [0.5, 0.4], "tpot_s": [0.1, 0.1], "e2e_s": [2.0, 2.0],
               "output_tokens": [16, 17], "input_tokens": [1, 2], "n_chunks": [16, 17]}  # fmt: skip
    found = rows_of(make_run(columns, duration_s=4.0, max_concurrency=1, streaming=True))
    assert found["output_tokens_per_s", "value"].value == pytest.approx(33 / 4)
    assert found["ttft_s", "p50"].value == pytest.approx(0.45)
    for metric in ("concurrency", "decode_batch", "below_peak_ratio"):
        assert found[metric, "value"].value is None
        assert "no_start_times" in codes(found[metric, "value"])


def test_without_duration_there_is_no_rate() -> None:
    columns = {"ttft_s": [0.5], "tpot_s": [0.1], "e2e_s": [2.0], "output_tokens": [16]}
    found = rows_of(make_run(columns, streaming=True))
    assert found["output_tokens_per_s", "value"].value is None
    assert "no_duration" in codes(found["output_tokens_per_s", "value"])


def test_no_request_at_all_succeeded() -> None:
    run = make_run({**THREE, "status": ["error"] * 3}, **FACTS)
    found = rows_of(run)
    assert found["error_ratio", "value"].value == 1.0
    assert "no_successful_request" in codes(found["ttft_s", "p50"])
    assert found["output_tokens_per_s", "value"].value == 0.0


@pytest.mark.parametrize(
    ("slo", "good"),
    [
        ({"ttft_s": {"p95": 0.5}}, 2), ({"ttft_s": {"p95": 0.45}}, 1),
        ({"ttft_s": {"p95": 0.5}, "e2e_s": {"p99": 1.0}}, 0),
        ({"ttft_s": {"p95": 9}, "tpot_s": {"p50": 0.11}}, 3),
        ({"output_tokens_per_s": {"value": 1}}, 3),
    ],
)  # fmt: skip
def test_goodput_meets_every_part_of_the_slo(slo: dict[str, dict[str, float]], good: int) -> None:
    found = rows_of(make_run(THREE, **FACTS), slo=slo)
    assert found["goodput_requests_per_s", "value"].value == pytest.approx(good / 8)


def test_goodput_misses_failures_and_needs_an_slo() -> None:
    run = make_run({**THREE, "status": ["ok", "error", "empty"]}, **FACTS)
    assert (
        rows_of(run, slo={"ttft_s": {"p95": 9}})["goodput_requests_per_s", "value"].value == 1 / 8
    )
    row = rows_of(run)["goodput_requests_per_s", "value"]
    assert row.value is None
    assert codes(row) == {"no_slo"}


def test_sampled_rows_give_no_throughput() -> None:
    run = make_run(THREE, **FACTS, dropped={"sampled_away": 5})
    row = rows_of(run)["output_tokens_per_s", "value"]
    assert row.value is None
    assert "rows_sampled_away" in codes(row)


def test_cached_prompt_tokens_are_not_prefill_work() -> None:
    run = make_run({**THREE, "cached_input_tokens": [50, 100, 150]}, **FACTS)
    row = rows_of(run)["prefill_tokens_per_s", "value"]
    assert row.value == pytest.approx(250.0)
    assert "cached_prompts" in codes(row)


def test_prefill_rate_only_without_load() -> None:
    loaded = make_run(THREE, **{**FACTS, "max_concurrency": 2}).requests
    assert loaded.height == 3
    columns = {k: v + v for k, v in THREE.items()}
    row = rows_of(make_run(columns, **{**FACTS, "max_concurrency": 2}))[
        "prefill_tokens_per_s", "value"
    ]
    assert row.value is None
    assert codes(row) == {"prefill_under_load"}


def test_summary_of_a_run_follows_the_schema() -> None:
    frame = summarize(make_run(THREE, **FACTS))
    assert list(frame.columns) == list(SUMMARY)
    assert set(frame.metric) <= set(METRICS)
    assert (frame.window == "whole_run").all()
    assert frame.unit.tolist() == [METRICS[m].unit for m in frame.metric]
    missing = frame[frame.value.isna()]
    assert all(len(codes) for codes in missing.cautions), "a null always says why"
    assert not np.isinf(frame.value.dropna()).any()


# ------------------------------------------------------------------ facts


def test_facts_by_hand() -> None:
    run = make_run(
        {**THREE, "client_queue_s": [0.0, 0.01, 0.02], "cached_input_tokens": [0, 100, 200],
         "n_chunks": [8, 17, 5]},
        **FACTS,
    )  # fmt: skip
    facts = run_facts(run, whole_run(run))
    assert facts["bins"] == {
        "64/16": {"n": 1, "ttft_s": 0.5, "e2e_s": 2.0},
        "128/16": {"n": 1, "ttft_s": pytest.approx(0.4), "e2e_s": 2.0},
        "256/16": {"n": 1, "ttft_s": pytest.approx(0.6), "e2e_s": 3.0},
    }
    assert facts["late_p99_s"] == pytest.approx(0.0198)
    assert facts["cached_ratio"] == pytest.approx(300 / 600)
    assert facts["tokens_per_chunk"] == pytest.approx(2.0)
    assert facts["littles_streams"] == pytest.approx(7 / 8)


def test_littles_law_from_a_tools_summary() -> None:
    nothing: dict[str, Any] = {name: [] for name in THREE}
    run = make_run(nothing, reported={"requests_per_s.value": 2.0, "e2e_s.mean": 1.5})
    assert littles_streams(run) == pytest.approx(3.0)
    run = make_run(nothing, reported={"output_tokens_per_s.value": 500.0, "tpot_s.mean": 0.02})
    assert littles_streams(run) == pytest.approx(10.0)
    assert littles_streams(make_run(nothing)) is None


# ------------------------------------------------------------------ of a campaign


def opened(folder: Path, **keys: Any) -> tuple[pd.DataFrame, Any]:
    path = write_campaign(folder, {"a": arm("a"), "b": arm("b")}, **keys)
    measured = measure(read_campaign(path))
    return summarize_measured(measured).frame, measured


def test_tails_are_compared_over_equally_many_requests(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", n=100)
    write_arm(tmp_path, "b", n=200)
    frame, measured = opened(tmp_path)
    equal = frame[frame.window == "steady:ab"]
    assert set(equal.metric) == {"ttft_s", "tpot_s", "e2e_s"}
    assert set(equal.statistic) == {"p90", "p95", "p99"}
    assert equal.n.nunique() == 1
    steady = frame[(frame.window == "steady") & (frame.metric == "ttft_s")]
    assert set(equal.n) == {steady.n.min()}
    # The second route: the earliest requests of the window, straight from the file.
    run = next(r for r in measured.runs if r.arm == "b" and r.repeat_no == 1)
    raw = json.loads((tmp_path / run.path).read_text())
    own = equal[(equal.run_id == run.run_id) & (equal.metric == "ttft_s")]
    start = own.window_start_s.iloc[0]
    t0 = min(raw["start_times"])
    order = sorted(
        (s - t0, t)
        for s, t in zip(raw["start_times"], raw["ttfts"], strict=True)
        if s - t0 >= start
    )
    values = [t for _, t in order][: int(equal.n.iloc[0])]
    right = float(np.quantile(values, 0.95))
    assert own[own.statistic == "p95"].value.iloc[0] == pytest.approx(right, rel=1e-9)


def test_summary_is_found_again_and_a_damaged_one_is_made_anew(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", n=40)
    write_arm(tmp_path, "b", n=40)
    frame, measured = opened(tmp_path)
    (folder,) = measured.store.glob("summary-*")
    stamp = (folder / "frame.parquet").stat().st_mtime_ns
    again = summarize_measured(measured)
    assert (folder / "frame.parquet").stat().st_mtime_ns == stamp
    pd.testing.assert_frame_equal(again.frame, frame)
    (folder / "facts.json").write_text("{")
    third = summarize_measured(measured)
    pd.testing.assert_frame_equal(third.frame, frame)
    assert third.facts.keys() == again.facts.keys()


def test_facts_survive_the_store(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", n=40)
    write_arm(tmp_path, "b", n=40)
    _, measured = opened(tmp_path)
    kept = summarize_measured(measured).facts
    (folder,) = measured.store.glob("summary-*")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    made = summarize_measured(measured).facts
    for key, fact in made.items():
        assert kept[key] == fact


def test_campaign_rows_name_their_place_and_window(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", levels=(1, 4), n=40)
    write_arm(tmp_path, "b", n=40)
    path = write_campaign(tmp_path, {"a": arm("a"), "b": arm("b")})
    frame = summarize(read_campaign(path))
    assert set(frame.window) == {"steady"}
    held = frame[(frame.metric == "tpot_s") & (frame.statistic == "p50")]
    assert len(held) == 9
    assert set(held.level) == {'{"concurrency": 1}', '{"concurrency": 4}'}
    assert held.value.between(0.0095, 0.0105).all()


def test_the_rate_near_the_peak_is_of_the_full_stretch_alone() -> None:
    """Ten streams for 10 s, then six of them for 20 s more: the six are no full system."""
    run = make_run(
        {"start_s": [0.0] * 10, "first_token_s": [1.0] * 10,
         "last_token_s": [10.0] * 4 + [30.0] * 6, "output_tokens": [10] * 4 + [30] * 6},
        duration_s=30.0, max_concurrency=10, load_kind="closed", streaming=True,
        token_time_source="even_spread",
    )  # fmt: skip
    found = rows_of(run)[("output_tokens_per_s_near_peak", "value")]
    # Tokens at 1, 2, ... 10 s of ten streams; over the whole run it would be 220 / 30.
    assert found.value == pytest.approx(100 / 10)
