"""The hand-computed cases about request logs, each with a variation of the same kind."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest
from tests.cases.log_numbers import (
    CASES,
    aiperf_record,
    case_file,
    codes,
    gaps_ms,
    inference_perf_row,
    mean_gap_ms,
    mean_ms,
    ok_rows,
    output_tokens_per_s,
    right,
    sglang_result,
    vllm_result,
    write,
    wrong,
)

from gpuverdict.errors import LogFormatError
from gpuverdict.recognise import read_run

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not CASES.exists(), reason="the cases are not beside the repository"),
]

NEAR = 1e-6


def near(value: float) -> object:
    return pytest.approx(value, rel=NEAR)


def test_01_gap_list_that_holds_the_ttft() -> None:
    (run,) = read_run(case_file(1, "result.json"))
    expected = right(1)
    assert run.info["n_rows"] == expected["n_requests"]
    assert mean_ms(run, "ttft_s") == near(expected["mean_ttft_ms"])
    assert mean_gap_ms(run) == near(expected["mean_itl_ms"])
    assert mean_ms(run, "tpot_s") == near(expected["mean_tpot_ms"])
    assert mean_ms(run, "e2e_s") == near(expected["mean_e2el_ms"])
    assert output_tokens_per_s(run) == near(expected["output_throughput_tok_s"])
    assert run.info["dropped"]["ttft_in_gaps"] == 2
    assert "ttft_in_gaps" in codes(run)


def test_01_another_tool_and_uneven_lengths(tmp_path: Path) -> None:
    line = sglang_result(
        ttfts=[0.5, 0.25], output_lens=[3, 5], total_output_tokens_retokenized=8,
        itls=[[0.5, 0.01, 0.03], [0.25, 0.01, 0.01, 0.01, 0.05]],
    )  # fmt: skip
    (run,) = read_run(write(tmp_path, "a.jsonl", [line]))
    assert gaps_ms(run) == pytest.approx([10, 30, 10, 10, 10, 50])
    assert ok_rows(run)["tpot_s"].to_list() == pytest.approx([0.02, 0.02])


def test_01_equal_first_gap_of_a_proper_list_is_kept(tmp_path: Path) -> None:
    # One gap fewer than tokens: the list is right, whatever its first value.
    record = vllm_result(ttfts=[0.02, 0.02], output_lens=[3, 3], itls=[[0.02, 0.03], [0.02, 0.03]])
    (run,) = read_run(write(tmp_path, "a.json", record))
    assert run.info["dropped"] == {}
    assert gaps_ms(run) == pytest.approx([20, 30, 20, 30])


def test_02_one_token_outputs_have_no_tpot() -> None:
    (run,) = read_run(case_file(2, "result.json"))
    expected = right(2)
    assert ok_rows(run)["tpot_s"].drop_nulls().len() == expected["n_tpot"]
    assert mean_ms(run, "tpot_s") == near(expected["mean_tpot_ms"])
    assert mean_gap_ms(run) == near(expected["mean_itl_ms"])
    assert mean_ms(run, "ttft_s") == near(expected["mean_ttft_ms"])


def test_02_in_aiperf_and_seconds(tmp_path: Path) -> None:
    rows = [aiperf_record(0, 0.1, 0.1, 1, unit="s"), aiperf_record(1, 0.1, 0.5, 5, unit="s")]
    (run,) = read_run(write(tmp_path, "profile_export.jsonl", rows))
    assert ok_rows(run)["tpot_s"].to_list() == [None, pytest.approx(0.1)]


def test_03_tpot_weighs_requests_and_itl_gaps() -> None:
    (run,) = read_run(case_file(3, "result.json"))
    expected = right(3)
    assert mean_ms(run, "tpot_s") == near(expected["mean_tpot_ms"])
    assert mean_gap_ms(run) == near(expected["mean_itl_ms"])
    assert mean_ms(run, "ttft_s") == near(expected["mean_ttft_ms"])


def test_03_in_aiperf(tmp_path: Path) -> None:
    lists = ([10.0, 10.0], [50.0] * 8)
    rows = [
        aiperf_record(i, 100.0, 100.0 + sum(gaps), len(gaps) + 1,
                      metrics={"inter_chunk_latency": {"value": gaps, "unit": "ms"}})
        for i, gaps in enumerate(lists)
    ]  # fmt: skip
    (run,) = read_run(write(tmp_path, "profile_export.jsonl", rows))
    assert mean_ms(run, "tpot_s") == near(30)
    assert mean_gap_ms(run) == near(42)


def test_04_two_witnesses_outvote_the_requested_length() -> None:
    (run,) = read_run(case_file(4, "result.jsonl"))
    expected = right(4)
    assert run.requests["output_tokens"].sum() == expected["true_output_tokens_total"]
    assert run.info["reported"]["output_tokens.sum"] == expected["file_output_tokens_total"]
    assert mean_ms(run, "tpot_s") == near(expected["mean_tpot_ms"])
    assert mean_ms(run, "e2e_s") == near(expected["mean_e2el_ms"])
    assert output_tokens_per_s(run) == near(expected["output_throughput_tok_s"])
    assert "token_counts_replaced" in codes(run)
    assert run.info["output_tokens_source"] == "chunk_count"


def test_04_no_two_witnesses_agree(tmp_path: Path) -> None:
    line = sglang_result(
        ttfts=[0.1], output_lens=[16], itls=[[0.02] * 7], total_output_tokens_retokenized=11,
    )  # fmt: skip
    (run,) = read_run(write(tmp_path, "a.jsonl", [line]))
    assert run.requests["tpot_s"].to_list() == [None]
    assert run.requests["output_tokens"].to_list() == [None]
    assert run.info["n_ok"] == 1
    assert "token_counts_disagree" in codes(run)


def test_04_chunks_of_several_tokens_do_not_outvote_the_usage(tmp_path: Path) -> None:
    line = sglang_result(
        ttfts=[0.1], output_lens=[16], itls=[[0.08] * 3], total_output_tokens_retokenized=16,
    )  # fmt: skip
    (run,) = read_run(write(tmp_path, "a.jsonl", [line]))
    assert run.requests["output_tokens"].to_list() == [16]
    assert mean_ms(run, "tpot_s") == near(240 / 15)


def test_06_chunks_hold_several_tokens() -> None:
    (run,) = read_run(case_file(6, "result.json"))
    expected = right(6)
    assert mean_ms(run, "tpot_s") == near(expected["mean_tpot_ms"])
    assert mean_gap_ms(run) == near(expected["mean_inter_chunk_ms"])
    assert output_tokens_per_s(run) == near(expected["output_throughput_tok_s"])
    said = next(item for item in run.cautions if item.code == "several_tokens_a_chunk")
    assert said.values["tokens_per_chunk"] == near(expected["tokens_per_chunk"])
    assert run.info["gap_kind"] == "chunk"
    steps = (ok_rows(run)["output_tokens"] - 1).sum()
    assert sum(gaps_ms(run)) / steps == near(expected["token_weighted_itl_ms"])


def test_07_fewer_times_than_tokens() -> None:
    (run,) = read_run(case_file(7, "per_request_lifecycle_metrics.json"))
    expected = right(7)
    tpot = [value * 1e3 for value in run.requests["tpot_s"]]
    assert tpot == pytest.approx([expected["tpot_r0_ms"], expected["tpot_r1_ms"]], rel=NEAR)
    assert mean_ms(run, "ttft_s") == near(expected["mean_ttft_ms"])
    said = next(item for item in run.cautions if item.code == "token_times_differ")
    assert said.values["n"] == 1


def test_07_in_the_newest_layout(tmp_path: Path) -> None:
    row = inference_perf_row(5.0, [5.5, 6.5], 11)
    row["info"] = {
        "request_metrics": {"text": {"input_tokens": 9}},
        "response_metrics": row["info"]["response_info"],
    }
    (run,) = read_run(write(tmp_path, "a.json", [row]))
    assert run.requests["tpot_s"].to_list() == pytest.approx([0.1])
    assert run.requests["input_tokens"].to_list() == [9]


def test_08_every_token_counted_twice() -> None:
    (run,) = read_run(case_file(8, "per_request_lifecycle_metrics.json"))
    expected = right(8)
    assert run.requests["output_tokens"].to_list() == [expected["output_tokens"]]
    assert mean_gap_ms(run) == near(expected["mean_itl_ms"])
    assert mean_ms(run, "tpot_s") == near(expected["tpot_ms"])
    assert "tokens_counted_twice" in codes(run)


def test_08_another_layout_and_a_plain_row_beside(tmp_path: Path) -> None:
    rows = [
        inference_perf_row(0.0, [0.5, 0.5, 0.75, 0.75, 1.0, 1.0], 3),
        inference_perf_row(2.0, [2.5, 2.75, 3.0], 3),
    ]
    (run,) = read_run(write(tmp_path, "a.json", rows))
    assert gaps_ms(run) == pytest.approx([250] * 4)
    said = next(item for item in run.cautions if item.code == "tokens_counted_twice")
    assert said.values["n"] == 1


def test_10_reasoning_tokens_come_first() -> None:
    (run,) = read_run(case_file(10, "profile_export.jsonl"))
    expected = right(10)
    assert mean_ms(run, "ttft_s") == near(expected["mean_ttft_ms"])
    tpot = [value * 1e3 for value in run.requests["tpot_s"]]
    assert tpot == pytest.approx([expected["itl_r0_ms"], expected["itl_r1_ms"]], rel=NEAR)
    assert mean_ms(run, "tpot_s") == near(expected["mean_itl_of_requests_ms"])
    assert run.requests["output_tokens"].sum() == expected["output_tokens_total"]
    assert run.requests["reasoning_tokens"].to_list() == [400, 150]
    answer = run.info["reported"]["time_to_first_answer_s.mean"] * 1e3
    assert answer == near(expected["mean_time_to_first_answer_ms"])


def test_11_failures_carry_a_zero() -> None:
    (run,) = read_run(case_file(11, "result.json"))
    expected = right(11)
    assert run.info["n_ok"] == expected["n_ok"]
    assert run.info["n_error"] == expected["n_failed"]
    assert mean_ms(run, "ttft_s") == near(expected["mean_ttft_ms"])
    assert mean_ms(run, "tpot_s") == near(expected["mean_tpot_ms"])
    assert output_tokens_per_s(run) == near(expected["output_throughput_tok_s"])
    assert run.requests["error_kind"].to_list() == [None, "connection", None, "http_5xx", None]
    assert "rows_not_ok" in codes(run)


def test_11_cut_stream_keeps_a_positive_ttft(tmp_path: Path) -> None:
    record = vllm_result(
        ttfts=[0.2, 0.9], output_lens=[3, 0], itls=[[0.1, 0.1], [0.5]],
        errors=["", "Traceback (most recent call last):\n  ...\nClientPayloadError: Response "
                "payload is not completed"],
    )  # fmt: skip
    (run,) = read_run(write(tmp_path, "a.json", record))
    assert mean_ms(run, "ttft_s") == near(200)
    assert gaps_ms(run) == pytest.approx([100, 100])
    assert run.requests["error_kind"].to_list() == [None, "cut_stream"]


def test_12_nothing_succeeded() -> None:
    (run,) = read_run(case_file(12, "result.json"))
    expected = right(12)
    assert (run.info["n_ok"], run.info["n_error"]) == (expected["n_ok"], expected["n_failed"])
    assert mean_ms(run, "ttft_s") is None
    assert mean_ms(run, "tpot_s") is None
    assert output_tokens_per_s(run) == expected["output_throughput_tok_s"]
    assert run.requests["ttft_s"].null_count() == 3
    assert "no_request_succeeded" in codes(run)


def test_12_in_inference_perf(tmp_path: Path) -> None:
    failed = {"error_type": "HTTP Error 500", "error_msg": "dead"}
    rows = [{"start_time": i, "end_time": i + 0.1, "info": None, "error": failed} for i in range(3)]
    (run,) = read_run(write(tmp_path, "a.json", rows))
    assert (run.info["n_ok"], run.info["n_error"]) == (0, 3)
    assert set(run.requests["error_kind"]) == {"http_5xx"}
    assert mean_ms(run, "e2e_s") is None


def test_13_failures_stay_countable() -> None:
    (run,) = read_run(case_file(13, "profile_export.jsonl"))
    expected = right(13)
    assert (run.info["n_ok"], run.info["n_error"]) == (expected["n_ok"], expected["n_failed"])
    latency = ok_rows(run)["e2e_s"] * 1e3
    assert latency.quantile(0.5, "linear") == near(expected["p50_ok_ms"])
    assert latency.quantile(0.9, "linear") == near(expected["p90_ok_ms"])
    assert latency.quantile(0.95, "linear") == near(expected["p95_ok_ms"])
    # By nearest rank over all ten, a failure being the worst.
    adjusted = sorted([*latency, math.inf])
    assert adjusted[math.ceil(0.9 * 10) - 1] == near(expected["p90_adjusted_ms"])
    assert math.isinf(adjusted[math.ceil(0.95 * 10) - 1])


def test_15_unfinished_requests_count_for_throughput_only() -> None:
    (run,) = read_run(case_file(15, "benchmarks.json"))
    expected = right(15)
    assert run.info["duration_s"] == expected["duration_s"]
    assert output_tokens_per_s(run) == near(expected["throughput_all_tok_s"])
    assert output_tokens_per_s(run, ("ok",)) == near(expected["throughput_finished_tok_s"])
    assert run.info["n_ok"] == expected["n_finished"]
    assert run.info["n_incomplete"] == expected["n_unfinished"]
    assert mean_ms(run, "ttft_s") == near(expected["mean_ttft_finished_ms"])
    assert mean_ms(run, "tpot_s") == near(expected["mean_tpot_finished_ms"])


def test_16_and_44_times_of_every_request_are_there() -> None:
    (drain,) = read_run(case_file(16, "result.json"))
    assert drain.requests["last_token_s"].to_list() == pytest.approx([10, 10, 10, 30])
    assert output_tokens_per_s(drain) == near(right(16)["full_run_tok_s"])
    (gated,) = read_run(case_file(44, "result.json"))
    assert gated.info["max_concurrency"] == right(44)["requested_concurrency"]
    assert gated.requests["first_token_s"].to_list() == pytest.approx([0.5] * 4 + [2.5] * 4)
    assert mean_ms(gated, "tpot_s") == near(right(44)["mean_tpot_ms"])
    assert mean_ms(gated, "ttft_s") == near(right(44)["mean_ttft_ms"])
    assert output_tokens_per_s(gated) == near(right(44)["output_throughput_tok_s"])


def test_17_cold_request_is_kept() -> None:
    (run,) = read_run(case_file(17, "result.json"))
    assert mean_ms(run, "ttft_s") == near(right(17)["mean_ttft_all_ms"])
    assert run.requests.height == 10


def test_20_few_samples() -> None:
    (run,) = read_run(case_file(20, "result.json"))
    ttft = ok_rows(run)["ttft_s"] * 1e3
    assert ttft.quantile(0.99, "linear") == near(right(20)["p99_ttft_ms"])
    assert ttft.max() == near(right(20)["max_ttft_ms"])


def test_21_two_spellings_of_an_unbounded_rate() -> None:
    runs = read_run(case_file(21, "runs.jsonl"))
    expected = right(21)
    assert len(runs) == expected["n_runs"]
    assert sum(run.info["rate_unbounded"] for run in runs) == expected["n_infinite_rate"]
    assert [run.info["rate_rps"] for run in runs] == [None, None, expected["finite_rate"]]


def test_21_infinite_burstiness_in_vllm(tmp_path: Path) -> None:
    text = json.dumps(vllm_result(ttfts=[0.1], output_lens=[1], itls=[[]], request_rate=4.0))
    path = tmp_path / "a.json"
    path.write_text(text.replace('"burstiness": 1.0', '"burstiness": Infinity'))
    (run,) = read_run(path)
    assert (run.info["load_kind"], run.info["rate_rps"]) == ("constant", 4.0)


def test_22_nan_in_the_middle() -> None:
    (run,) = read_run(case_file(22, "profile_export.jsonl"))
    expected = right(22)
    assert run.info["n_rows"] == expected["n_rows"]
    assert run.requests["ttft_s"].drop_nulls().len() == expected["n_ttft"]
    assert mean_ms(run, "ttft_s") == near(expected["mean_ttft_ms"])
    said = next(item for item in run.cautions if item.code == "nan_read_as_null")
    assert said.values["line"] == expected["bad_line"]


def test_22_nan_among_the_times_of_an_array(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    rows = [inference_perf_row(i, [i + 0.5, i + 1.0], 2) for i in range(3)]
    path.write_text(json.dumps(rows).replace('"end_time": 2.0', '"end_time": NaN'))
    (run,) = read_run(path)
    assert run.info["n_rows"] == 3
    assert run.requests["end_s"].null_count() == 1
    assert "nan_read_as_null" in codes(run)


def test_23_a_key_first_seen_late() -> None:
    (run,) = read_run(case_file(23, "profile_export.jsonl"))
    expected = right(23)
    assert run.info["n_rows"] == expected["n_rows"]
    reasoning = run.requests["reasoning_tokens"].drop_nulls()
    assert reasoning.len() == expected["n_with_reasoning"]
    assert reasoning.sum() == expected["sum_reasoning_tokens"]


def test_23_a_type_that_changes_late(tmp_path: Path) -> None:
    rows = [aiperf_record(i, 100, 500, 11) for i in range(300)]
    rows[250]["metrics"]["time_to_first_token"]["value"] = "125.5"
    (run,) = read_run(write(tmp_path, "profile_export.jsonl", rows))
    assert run.requests["ttft_s"].null_count() == 0
    assert run.requests["ttft_s"][250] == pytest.approx(0.1255)


def test_25_objects_end_to_end() -> None:
    runs = read_run(case_file(25, "results.json"))
    expected = right(25)
    rates = [run.info["reported"]["output_tokens_per_s.value"] for run in runs]
    assert len(runs) == expected["n_runs"]
    assert sum(rates) / 3 == near(expected["mean_output_throughput_tok_s"])
    assert len({run.info["run_id"] for run in runs}) == 3


def test_25_pretty_printed_and_appended(tmp_path: Path) -> None:
    first = vllm_result(ttfts=[0.1], output_lens=[1], itls=[[]])
    path = tmp_path / "a.json"
    path.write_text(json.dumps(first, indent=1) + json.dumps({**first, "duration": 3.0}, indent=1))
    assert [run.info["duration_s"] for run in read_run(path)] == [2.0, 3.0]


def test_26_the_same_record_twice() -> None:
    runs = read_run(case_file(26, "results.jsonl"))
    expected = right(26)
    assert len(runs) == expected["n_distinct_runs"]
    rates = [run.info["reported"]["output_tokens_per_s.value"] for run in runs]
    assert sum(rates) / len(rates) == near(expected["mean_output_throughput_tok_s"])
    assert runs[0].info["dropped"]["duplicate_record"] == 1


def test_26_an_aiperf_row_twice(tmp_path: Path) -> None:
    rows = [aiperf_record(0, 100, 500, 11), aiperf_record(1, 200, 500, 11)]
    (run,) = read_run(write(tmp_path, "profile_export.jsonl", [*rows, rows[0]]))
    assert run.info["n_rows"] == 2
    assert run.info["dropped"]["duplicate_record"] == 1


def test_27_the_last_line_is_cut() -> None:
    (run,) = read_run(case_file(27, "profile_export.jsonl"))
    expected = right(27)
    assert run.info["n_rows"] == expected["n_rows"]
    assert mean_ms(run, "ttft_s") == near(expected["mean_ttft_ms"])
    said = next(item for item in run.cautions if item.code == "incomplete_last_line")
    assert said.values["line"] == expected["bad_line"]


def test_27_cut_in_the_middle_is_an_error_with_its_line(tmp_path: Path) -> None:
    lines = [json.dumps(aiperf_record(i, 100, 500, 11)) for i in range(3)]
    path = tmp_path / "profile_export.jsonl"
    path.write_text(f"{lines[0]}\n{lines[1][:40]}\n{lines[2]}\n")
    with pytest.raises(LogFormatError, match=r"profile_export\.jsonl:2"):
        read_run(path)


def test_31_first_token_before_the_start() -> None:
    (run,) = read_run(case_file(31, "per_request_lifecycle_metrics.json"))
    expected = right(31)
    assert run.info["n_rows"] == expected["n_rows"]
    assert run.info["dropped"]["impossible_times"] == expected["n_bad_clock"]
    assert mean_ms(run, "ttft_s") == near(expected["mean_ttft_ms"])
    bad = run.requests.row(1, named=True)
    assert (bad["ttft_s"], bad["e2e_s"], bad["tpot_s"]) == (None, None, None)


def test_31_end_before_the_start_in_guidellm(tmp_path: Path) -> None:
    rows = [
        {"request_id": f"r{i}", "prompt_tokens": 8, "output_tokens": 3, "start_time": start,
         "first_token_time": start + 0.1, "last_token_time": start + 0.3, "end_time": end}
        for i, (start, end) in enumerate([(1.0, 1.4), (2.0, 1.9)])
    ]  # fmt: skip
    report = {"benchmarks": [{"type_": "generative_benchmark", "duration": 2.0,
                              "requests": {"successful": rows}}]}  # fmt: skip
    (run,) = read_run(write(tmp_path, "a.json", report))
    assert run.info["dropped"]["impossible_times"] == 1
    assert run.requests["ttft_s"].to_list() == [pytest.approx(0.1), None]


def test_45_tokens_and_durations_can_be_pooled() -> None:
    runs = read_run(case_file(45, "runs.jsonl"))
    expected = right(45)
    tokens = sum(run.info["reported"]["output_tokens.sum"] for run in runs)
    assert tokens / sum(run.info["duration_s"] for run in runs) == near(expected["pooled_tok_s"])
    rates = pl.Series([run.info["reported"]["output_tokens_per_s.value"] for run in runs])
    assert rates.mean() == near(expected["mean_of_rates_tok_s"])
    assert rates.std() == near(expected["sd_of_rates_tok_s"])


def test_48_summary_only() -> None:
    (run,) = read_run(case_file(48, "result.json"))
    expected = right(48)
    assert run.requests.height == expected["per_request_rows"]
    assert run.info["reported"]["ttft_s.mean"] * 1e3 == near(expected["mean_ttft_ms"])
    assert run.info["reported"]["ttft_s.p99"] * 1e3 == near(expected["p99_ttft_ms"])
    assert "ttft_s.p95" not in run.info["reported"]
    assert run.info["dropped"]["aggregate_only"] == 1
    assert "aggregate_only" in codes(run)


def test_48_in_aiperf_and_microseconds(tmp_path: Path) -> None:
    summary = {"request_latency": {"unit": "us", "avg": 5e5, "p99": 9e5},
               "time_to_first_token": {"unit": "us", "avg": 2.5e5}}  # fmt: skip
    (run,) = read_run(write(tmp_path, "profile_export_aiperf.json", summary))
    assert run.requests.height == 0
    assert run.info["reported"]["ttft_s.mean"] == near(0.25)
    assert run.info["reported"]["e2e_s.p99"] == near(0.9)


def test_49_not_streamed() -> None:
    (run,) = read_run(case_file(49, "per_request_lifecycle_metrics.json"))
    expected = right(49)
    assert mean_ms(run, "e2e_s") == near(expected["mean_e2el_ms"])
    rows = ok_rows(run)
    per_token = (rows["e2e_s"] / rows["output_tokens"]).mean()
    assert per_token * 1e3 == near(expected["mean_normalised_ms_per_output_token"])  # type: ignore[operator]
    assert mean_ms(run, "ttft_s") is expected["mean_ttft_ms"]
    assert mean_gap_ms(run) is expected["mean_itl_ms"]
    assert run.info["streaming"] is False
    assert "not_streamed" in codes(run)


def test_49_in_sglang(tmp_path: Path) -> None:
    line = sglang_result(
        ttfts=[0.4, 0.6], output_lens=[16, 16], itls=[[], []], total_output_tokens_retokenized=32,
    )  # fmt: skip
    (run,) = read_run(write(tmp_path, "a.jsonl", [line]))
    assert mean_ms(run, "e2e_s") == near(500)
    assert mean_ms(run, "ttft_s") is None
    assert run.info["n_ok"] == 2


def test_50_real_prompt_lengths() -> None:
    (a,), (b,) = (read_run(case_file(50, f"gpu_{name}.json")) for name in "ab")
    expected = right(50)
    assert a.info["requested_input_tokens"] == expected["requested_input_len"]
    assert a.requests["input_tokens"].sum() == expected["total_input_a"]
    assert b.requests["input_tokens"].sum() == expected["total_input_b"]
    for run, name in ((a, "a"), (b, "b")):
        assert mean_ms(run, "ttft_s") == near(expected[f"mean_ttft_{name}_ms"])
        rate = (run.requests["input_tokens"] / run.requests["ttft_s"]).median()
        assert rate == near(expected[f"prefill_tok_s_{name}"])


def test_66_one_word_two_formulas() -> None:
    expected = right(66)
    for name in ("vllm", "guidellm"):
        (run,) = read_run(case_file(66, f"{name}.json"))
        assert mean_ms(run, "tpot_s") == near(expected[f"tpot_from_{name}_ms"])
        assert mean_ms(run, "ttft_s") == near(expected["ttft_ms"])
        assert mean_ms(run, "tpot_s") != near(wrong(66)["guidellm_field_ms"])
