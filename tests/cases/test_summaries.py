"""The cases whose right values are run-level numbers, through `summarize`; one variation each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gpuverdict import read_run, summarize

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")


def folder(prefix: str) -> Path:
    return next(CASES.glob(f"{prefix}-*"))


def right(prefix: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder(prefix) / "expected.json").read_text())["right"]
    return value


def numbers(path: Path) -> pd.DataFrame:
    (run,) = read_run(path)
    return summarize(run).set_index(["metric", "statistic"])


def test_13_quantiles_with_failures_by_nearest_rank_and_unbounded() -> None:
    frame, expected = numbers(folder("13") / "profile_export.jsonl"), right("13")
    assert frame.value[("e2e_s", "p90")] * 1e3 == pytest.approx(expected["p90_ok_ms"])
    assert frame.value[("e2e_error_adjusted_s", "p90")] * 1e3 == pytest.approx(
        expected["p90_adjusted_ms"]
    )
    assert expected["p95_adjusted_ms"] == "unbounded"
    assert pd.isna(frame.value[("e2e_error_adjusted_s", "p95")])
    assert "unbounded" in frame.cautions[("e2e_error_adjusted_s", "p95")]


def test_16_full_rate_and_rate_near_peak_side_by_side() -> None:
    frame, expected = numbers(folder("16") / "result.json"), right("16")
    value = frame.value
    assert value[("output_tokens_per_s", "value")] == pytest.approx(expected["full_run_tok_s"])
    assert value[("output_tokens_per_s_near_peak", "value")] == pytest.approx(
        expected["steady_tok_s"]
    )
    assert value[("peak_concurrency", "value")] == expected["peak_concurrency"]
    assert value[("below_peak_ratio", "value")] == pytest.approx(
        expected["share_of_time_below_peak"]
    )


def test_17_a_cold_first_request_is_flagged_with_both_means() -> None:
    frame, expected = numbers(folder("17") / "result.json"), right("17")
    assert frame.value[("ttft_s", "mean")] * 1e3 == pytest.approx(expected["mean_ttft_all_ms"])
    assert frame.value[("ttft_s", "p99")] * 1e3 == pytest.approx(expected["p99_ttft_ms"])
    assert "cold_first_request" in frame.cautions[("ttft_s", "mean")]
    from gpuverdict.steady import whole_run
    from gpuverdict.summary import run_rows

    (run,) = read_run(folder("17") / "result.json")
    row = next(r for r in run_rows(run, whole_run(run)) if r.metric == "ttft_s")
    said = next(c for c in row.cautions if c.code == "cold_first_request")
    assert said.values["mean_without_s"] * 1e3 == pytest.approx(
        expected["mean_ttft_without_first_ms"]
    )
    assert said.values["ratio"] == pytest.approx(expected["outlier_ratio"])


def test_17_a_slow_request_elsewhere_is_not_a_cold_start(tmp_path: Path) -> None:
    record = json.loads((folder("17") / "result.json").read_text())
    for key in ("ttfts", "itls", "input_lens", "output_lens", "errors", "start_times"):
        if key in record:
            record[key] = record[key][1:] + record[key][:1]
    if "start_times" in record:
        record["start_times"] = sorted(record["start_times"])
    path = tmp_path / "later.json"
    path.write_text(json.dumps(record))
    assert "cold_first_request" not in numbers(path).cautions[("ttft_s", "mean")]


def test_19_prefill_rate_of_a_run_without_starts_by_littles_law() -> None:
    frame, expected = numbers(folder("19") / "run_cold.json"), right("19")
    assert frame.value[("prefill_tokens_per_s", "value")] == pytest.approx(
        expected["cold_prefill_tok_s"]
    )


def test_19_the_same_times_in_half_the_duration_are_no_single_stream(tmp_path: Path) -> None:
    record = json.loads((folder("19") / "run_cold.json").read_text())
    record["duration"] /= 2
    path = tmp_path / "packed.json"
    path.write_text(json.dumps(record))
    frame = numbers(path)
    assert pd.isna(frame.value[("prefill_tokens_per_s", "value")])
    assert "prefill_under_load" in frame.cautions[("prefill_tokens_per_s", "value")]


def test_44_streams_are_counted_from_the_times() -> None:
    frame, expected = numbers(folder("44") / "result.json"), right("44")
    assert frame.value[("peak_decode_batch", "value")] == expected["peak_decoding_concurrency"]
    assert frame.value[("output_tokens_per_s", "value")] == pytest.approx(
        expected["output_throughput_tok_s"]
    )


@pytest.mark.parametrize("arm", ["a", "b"])
def test_50_prefill_rates_over_the_real_lengths_are_equal(arm: str) -> None:
    frame, expected = numbers(folder("50") / f"gpu_{arm}.json"), right("50")
    assert frame.value[("prefill_tokens_per_s", "value")] == pytest.approx(
        expected[f"prefill_tok_s_{arm}"]
    )
    assert frame.value[("ttft_s", "mean")] * 1e3 == pytest.approx(expected[f"mean_ttft_{arm}_ms"])
