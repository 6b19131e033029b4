"""Faults known from one tool, met in the file of another: the kind must come out right, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gpuverdict import summarize
from gpuverdict.errors import LogFormatError
from gpuverdict.inspection import inspect_paths
from gpuverdict.recognise import read_any, read_run
from gpuverdict.schema import Run

HEADER = (
    "request_index,status,phase,start_s,first_token_s,last_token_s,end_s,input_tokens,"
    "output_tokens,output_tokens_source\n"
)
EPOCH_NS = 1_790_000_000_000_000_000
NAN = float("nan")


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def number(run: Run, metric: str, statistic: str = "value") -> float | None:
    frame = summarize(run)
    row = frame[(frame.metric == metric) & (frame.statistic == statistic)].iloc[0]
    return None if row.value is None or row.value != row.value else float(row.value)


def said(run: Run) -> set[str]:
    return {caution.code for caution in run.cautions}


def vllm(ttfts: list[Any], itls: list[list[Any]], **more: Any) -> dict[str, Any]:
    n = len(ttfts)
    return {
        "date": "20261005-020000", "backend": "openai", "endpoint_type": "openai",
        "model_id": "m", "num_prompts": n, "request_rate": "inf", "duration": 1.0, "completed": n,
        "input_lens": [100] * n, "output_lens": [len(gaps) + 1 for gaps in itls],
        "ttfts": ttfts, "itls": itls, "errors": [""] * n, **more,
    }  # fmt: skip


def sglang(ttfts: list[Any], itls: list[list[Any]], **more: Any) -> dict[str, Any]:
    lens = [len(gaps) + 1 for gaps in itls]
    return {
        "backend": "sglang-oai", "random_output_len": 128, "random_range_ratio": 1.0,
        "duration": 1.0, "completed": len(ttfts), "total_output_tokens_retokenized": sum(lens),
        "input_lens": [256] * len(ttfts), "output_lens": lens, "ttfts": ttfts, "itls": itls,
        "errors": [""] * len(ttfts), **more,
    }  # fmt: skip


def aiperf(
    i: int, ttft_ms: float | None, latency_ms: float, tokens: float,
    *, gaps_ms: list[Any] | None = None, start_s: float = 0.0, phase: str = "profiling",
) -> dict[str, Any]:  # fmt: skip
    metrics: dict[str, Any] = {
        "input_sequence_length": {"value": 5, "unit": "tokens"},
        "request_latency": {"value": latency_ms, "unit": "ms"},
        "output_sequence_length": {"value": tokens, "unit": "tokens"},
    }
    if ttft_ms is not None:
        metrics["time_to_first_token"] = {"value": ttft_ms, "unit": "ms"}
    if gaps_ms is not None:
        metrics["inter_chunk_latency"] = {"value": gaps_ms, "unit": "ms"}
    start = EPOCH_NS + int(start_s * 1e9)
    return {
        "metadata": {
            "x_request_id": f"r{i}", "request_start_ns": start,
            "request_end_ns": start + int(latency_ms * 1e6), "benchmark_phase": phase,
            "was_cancelled": False,
        },
        "metrics": metrics,
        "error": None,
    }  # fmt: skip


def guidellm(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    requests = [
        {"request_id": f"r{i}", "prompt_tokens": 5, "output_tokens": tokens, "start_time": start,
         "first_token_time": first, "last_token_time": last, "end_time": end}
        for i, start, first, last, end, tokens in rows
    ]  # fmt: skip
    lists = {"successful": requests, "incomplete": [], "errored": []}
    return {"benchmarks": [{"type_": "generative_benchmark", "start_time": 0.0, "end_time": 1.0,
                            "duration": 1.0, "requests": lists}]}  # fmt: skip


def stamped(start: float, times: list[float]) -> dict[str, Any]:
    info = {"input_tokens": 5, "output_tokens": len(times), "output_token_times": times}
    return {"start_time": start, "end_time": times[-1], "request": "{}", "response": "",
            "info": info, "error": None}  # fmt: skip


def test_ttft_in_the_gap_list_is_told_beside_cut_streams(tmp_path: Path) -> None:
    """Two whole answers of 4 gaps (30 and 40 ms), and two streams cut after their first gap."""
    result = vllm(
        [0.2, 0.3, 0.2, 0.2], [[0.2, *[0.03] * 4], [0.3, *[0.04] * 4], [0.2, 0.03], [0.2, 0.03]],
        output_lens=[5, 5, 0, 0], errors=["", "", "cut", "cut"], completed=2,
    )  # fmt: skip
    run = read_run(write(tmp_path, "r.json", result))[0]
    assert number(run, "tpot_s", "mean") == pytest.approx(0.035)
    assert number(run, "e2e_s", "mean") == pytest.approx((0.32 + 0.46) / 2)
    assert "ttft_in_gaps" in said(run)


def test_ttft_in_the_gap_list_of_aiperf(tmp_path: Path) -> None:
    rows = [aiperf(0, 200, 320, 5, gaps_ms=[200, 30, 30, 30, 30]),
            aiperf(1, 300, 460, 5, gaps_ms=[300, 40, 40, 40, 40])]  # fmt: skip
    run = read_run(write(tmp_path, "profile_export.jsonl", lines(rows)))[0]
    assert number(run, "tpot_s", "mean") == pytest.approx(0.035)
    assert number(run, "chunk_gap_s", "mean") == pytest.approx(0.035)
    assert run.info["dropped"]["ttft_in_gaps"] == 2


def test_a_role_chunk_is_told_beside_cut_streams(tmp_path: Path) -> None:
    result = vllm(
        [0.2, 0.3, 0.2, 0.2], [[2e-5, *[0.03] * 4], [2e-5, *[0.04] * 4], [0.03] * 2, [0.03] * 2],
        output_lens=[5, 5, 0, 0], errors=["", "", "cut", "cut"], endpoint_type="openai-chat",
    )  # fmt: skip
    run = read_run(write(tmp_path, "r.json", result))[0]
    assert number(run, "ttft_s", "mean") == pytest.approx(0.25002)
    assert number(run, "tpot_s", "mean") == pytest.approx(0.035)


def test_counts_that_disagree_give_no_rate_of_tokens(tmp_path: Path) -> None:
    """128 asked and written, 16 by the gaps, 32 by the recount: no two agree."""
    result = sglang([0.15] * 2, [[0.02] * 15] * 2, output_lens=[128] * 2,
                    total_output_tokens_retokenized=64)  # fmt: skip
    run = read_run(write(tmp_path, "r.jsonl", lines([result])))[0]
    for metric in ("output_tokens_per_s", "output_tokens_per_s_finished_only",
                   "output_tokens_per_s_full_run"):  # fmt: skip
        assert number(run, metric) is None
    frame = summarize(run)
    row = frame[frame.metric == "output_tokens_per_s"].iloc[0]
    assert "outputs_uncounted" in row.cautions


def test_a_client_without_tokenizer_counts_one_for_every_output(tmp_path: Path) -> None:
    run = read_run(write(tmp_path, "r.json", vllm([0.1] * 2, [[0.02] * 10] * 2,
                                                  output_lens=[1, 1])))[0]  # fmt: skip
    assert number(run, "output_tokens_per_s") is None
    assert number(run, "ttft_s", "mean") == pytest.approx(0.1)
    assert number(run, "e2e_s", "mean") == pytest.approx(0.3)
    assert "token_counts_disagree" in said(run)


def test_one_output_of_one_token_is_no_sign_of_that(tmp_path: Path) -> None:
    run = read_run(write(tmp_path, "r.json", vllm([0.1] * 2, [[], [0.02] * 10])))[0]
    assert number(run, "output_tokens_per_s") == pytest.approx(12.0)


@pytest.mark.parametrize("form", [vllm, sglang])
def test_the_tool_s_count_tells_a_failure_from_an_empty_stream(tmp_path: Path, form: Any) -> None:
    for completed, n_error, n_empty in ((2, 1, 0), (3, 0, 1)):
        result = form([0.2, 0.0, 0.4], [[0.02] * 10, [], [0.02] * 20], output_lens=[11, 0, 21],
                      completed=completed)  # fmt: skip
        run = read_run(write(tmp_path, f"r{completed}.jsonl", lines([result])))[0]
        assert (run.info["n_error"], run.info["n_empty"]) == (n_error, n_empty)


def test_a_missing_gap_costs_its_list_and_no_first_token(tmp_path: Path) -> None:
    path = write(tmp_path, "r.json", vllm([0.1, 0.2, 0.3], [[0.01] * 4, [0.01, NAN, 0.01, 0.01],
                                                            [0.01] * 4]))  # fmt: skip
    run = read_run(path)[0]
    assert number(run, "ttft_s", "mean") == pytest.approx(0.2)
    assert number(run, "tpot_s", "mean") == pytest.approx(0.01)
    assert run.requests["tpot_s"].null_count() == 1
    assert {"nan_read_as_null"} <= said(run)
    assert "impossible_times" not in said(run)


def test_a_missing_gap_of_aiperf_leaves_the_stated_latency(tmp_path: Path) -> None:
    rows = [aiperf(i, 100, 500, 11, gaps_ms=[40.0] * 9 + [NAN if i == 1 else 40.0])
            for i in range(3)]  # fmt: skip
    run = read_run(write(tmp_path, "profile_export.jsonl", lines(rows)))[0]
    assert number(run, "tpot_s", "mean") == pytest.approx(0.04)
    assert run.gaps.filter(pl.col("gaps_s").list.len() > 0).height == 2


def test_a_missing_count_is_not_an_empty_answer(tmp_path: Path) -> None:
    rows = [aiperf(i, 100, 500, NAN if i == 1 else 11, start_s=i) for i in range(3)]
    run = read_run(write(tmp_path, "profile_export.jsonl", lines(rows)))[0]
    assert (run.info["n_ok"], run.info["n_empty"]) == (3, 0)
    assert number(run, "error_ratio") == 0
    assert number(run, "output_tokens_per_s") is None
    assert number(run, "tpot_s", "mean") == pytest.approx(0.04)


def test_a_negative_gap_is_an_impossible_order(tmp_path: Path) -> None:
    """The sum of the second list is positive: only the gap itself tells that the clock stepped."""
    result = vllm([0.1, 0.2], [[0.02, 0.02, 0.02], [0.02, -0.01, 0.02]])
    run = read_run(write(tmp_path, "r.json", result))[0]
    assert number(run, "chunk_gap_s", "min") == pytest.approx(0.02)
    assert number(run, "ttft_s", "mean") == pytest.approx(0.1)
    assert run.info["dropped"]["impossible_times"] == 1


def test_a_latency_below_the_ttft_is_an_impossible_order(tmp_path: Path) -> None:
    rows = [
        {"ttft_s": ttft, "end_to_end_latency_s": 0.4, "number_output_tokens": 11,
         "number_input_tokens": 5, "number_total_tokens": 16, "error_code": None, "error_msg": "",
         "request_output_throughput_token_per_s": 27.5, "inter_token_latency_s": 0.03}
        for ttft in (0.5, 0.2)
    ]  # fmt: skip
    run = read_run(write(tmp_path, "m_individual_responses.json", rows))[0]
    assert number(run, "ttft_s", "mean") == pytest.approx(0.2)
    assert run.info["dropped"]["impossible_times"] == 1


NOT_STREAMED = {
    "vllm: latency as ttft": ("r.json", vllm([0.4, 0.6], [[], []], output_lens=[20, 30])),
    "guidellm: no token times": (
        "r.json", guidellm([(0, 0, None, None, 0.4, 20), (1, 0, None, None, 0.6, 30)])),
    "guidellm: all at the end": (
        "r.json", guidellm([(0, 0, 0.4, 0.4, 0.4, 20), (1, 0, 0.6, 0.6, 0.6, 30)])),
    "open: first token at the end": (
        "r.csv",
        HEADER + "0,ok,main,0,0.4,0.4,0.4,5,20,usage\n1,ok,main,0,0.6,0.6,0.6,5,30,usage\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_STREAMED)
def test_an_answer_that_came_whole_has_no_first_token(tmp_path: Path, case: str) -> None:
    name, content = NOT_STREAMED[case]
    run = read_run(write(tmp_path, name, content))[0]
    for metric in ("ttft_s", "tpot_s", "itl_s"):
        assert number(run, metric, "mean") is None
    assert number(run, "e2e_s", "mean") == pytest.approx(0.5)
    assert number(run, "normalized_e2e_s_per_token", "mean") == pytest.approx(0.02)
    assert "not_streamed" in said(run)
    assert run.info["e2e_def"] == "non_stream"


def test_one_answer_in_one_event_among_streamed_ones_has_no_tpot(tmp_path: Path) -> None:
    content = guidellm([(0, 0, 0.1, 0.5, 0.5, 11), (1, 0, 0.3, 0.3, 0.3, 11)])
    run = read_run(write(tmp_path, "r.json", content))[0]
    assert number(run, "ttft_s", "mean") == pytest.approx(0.2)
    assert number(run, "tpot_s", "mean") == pytest.approx(0.04)
    assert run.requests["tpot_s"].null_count() == 1


def doubled_guidellm(twice: bool) -> dict[str, Any]:
    rows = [(0, 0, 0.1, 0.4, 0.4, 11), (1, 0, 0.2, 0.4, 0.4, 11)]
    report = guidellm(rows + rows[:1] * twice)
    report["benchmarks"] += report["benchmarks"] * twice
    return report


def doubled_genai(twice: bool) -> dict[str, Any]:
    event = 'data: {"choices": [{"text": "a"}]}\n\n'
    requests = [
        {"timestamp": EPOCH_NS + i, "response_timestamps": [EPOCH_NS + 10**8],
         "response_outputs": [{"response": event}]}
        for i in range(2)
    ]  # fmt: skip
    experiment = {"experiment": {"mode": "concurrency", "value": 2},
                  "requests": requests + requests[:1] * twice}  # fmt: skip
    return {"service_kind": "openai", "endpoint": "v1",
            "experiments": [experiment] + [experiment] * twice}  # fmt: skip


DOUBLED = {
    "guidellm": ("r.json", doubled_guidellm),
    "genai-perf": ("r.json", doubled_genai),
    "inference-perf": (
        "per_request_lifecycle_metrics.json",
        lambda twice: (
            [stamped(0, [0.1, 0.2]), stamped(0, [0.2, 0.3])] + [stamped(0, [0.1, 0.2])] * twice
        ),
    ),
    "open csv": (
        "r.csv",
        lambda twice: (
            HEADER + "0,ok,main,0,0.1,0.4,0.4,5,20,usage\n"
            "1,ok,main,0,0.1,0.4,0.4,5,20,usage\n" + "0,ok,main,0,0.1,0.4,0.4,5,20,usage\n" * twice
        ),
    ),
}


@pytest.mark.parametrize("name", DOUBLED)
def test_a_record_twice_in_one_file_is_read_once(tmp_path: Path, name: str) -> None:
    file, make = DOUBLED[name]
    runs = {twice: read_run(write(tmp_path, file, make(twice))) for twice in (False, True)}
    assert len(runs[True]) == len(runs[False]) == 1
    assert runs[True][0].info["n_rows"] == runs[False][0].info["n_rows"] == 2
    assert "duplicate_records" in said(runs[True][0])
    assert "duplicate_records" not in said(runs[False][0])


def test_one_index_with_two_contents_is_refused(tmp_path: Path) -> None:
    rows = "0,ok,main,0,0.1,0.4,0.4,5,20,usage\n0,ok,main,0,0.1,0.4,0.5,5,20,usage\n"
    with pytest.raises(LogFormatError, match="request 0 twice"):
        read_run(write(tmp_path, "r.csv", HEADER + rows))


@pytest.mark.parametrize("end", ["2,ok,main,2,2.", "2,ok,main,2,2.1,2.9,2.9,5,9,us"])
def test_a_cut_last_line_of_a_table_is_named(tmp_path: Path, end: str) -> None:
    rows = "".join(f"{i},ok,main,{i},{i}.1,{i}.9,{i}.9,5,9,usage\n" for i in range(2))
    run = read_run(write(tmp_path, "r.csv", HEADER + rows + end))[0]
    assert run.info["n_rows"] == 2
    caution = next(c for c in run.cautions if c.code == "incomplete_last_line")
    assert caution.values["line"] == 4


def test_a_last_row_without_line_end_stays_and_is_named(tmp_path: Path) -> None:
    header = HEADER.replace("_source\n", "_source,x_note\n")
    row = "0,ok,main,0,.1,.9,.9,5,9,usage,1"
    run = read_run(write(tmp_path, "r.csv", header + row))[0]
    assert run.info["n_rows"] == 1
    assert "no_line_end" in said(run)
    assert "no_line_end" not in said(read_run(write(tmp_path, "s.csv", header + row + "\n"))[0])


def test_a_bad_cell_of_a_known_table_is_no_unknown_table(tmp_path: Path) -> None:
    """A map of columns that maps each name to itself helps nobody: the error is the answer."""
    path = write(tmp_path, "r.csv", HEADER + "0,ok,main,0,inf,0.4,0.4,5,20,usage\n")
    with pytest.raises(LogFormatError, match="first_token_s, row 1"):
        inspect_paths([path])


WARM = {
    "open": (
        "r.csv",
        HEADER + "".join(
            f"{i},ok,{'warmup' if i < 2 else 'main'},{s},{s + 0.5},{s + 1},{s + 1},5,10,usage\n"
            for i, s in enumerate((0, 1, 10, 11, 12, 13))
        ),
    ),
    "aiperf": (
        "profile_export.jsonl",
        lines([aiperf(i, 500, 1000, 10, start_s=s, phase="warmup" if i < 2 else "profiling")
               for i, s in enumerate((0, 1, 10, 11, 12, 13))]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WARM)
def test_a_labelled_warm_up_is_in_no_number_of_the_whole_run(tmp_path: Path, name: str) -> None:
    """Four requests of 10 tokens, one after the other in 4 s, 9 s after two of warm-up."""
    run = read_run(write(tmp_path, *WARM[name]))[0]
    assert number(run, "output_tokens_per_s") == pytest.approx(10.0)
    assert number(run, "requests_per_s") == pytest.approx(1.0)
    assert number(run, "concurrency") == pytest.approx(1.0)
    frame = summarize(run)
    assert (frame.window_start_s.iloc[0], frame.window_end_s.iloc[0]) == pytest.approx((10.0, 14.0))


def test_a_comma_that_splits_every_row_of_a_trace_is_named(tmp_path: Path) -> None:
    rows = "".join(f'2026/10/05 02:00:0{s}.000, 0, "212,50 W"\n' for s in range(3))
    path = write(tmp_path, "gpu.csv", "timestamp, index, power.draw [W]\n" + rows)
    with pytest.raises(LogFormatError, match=r"gpu\.csv:2: found 4 cells, expected 3"):
        read_any(path)


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ("0,ok,main,0,0.1,0.4,0.4,5,-5,usage", "output_tokens, row 1: found -5"),
        ("0,ok,main,0,0.1,0.4,0.4,5.5,5,usage", "input_tokens, row 1: found 5.5"),
        ("0,ok,main,0,0.1,0.4,0.4,5,1e300,usage", "output_tokens, row 1: found 1e\\+300"),
        ("0,ok,main,1796090000120,,,1796090000160,5,5,usage", "r.csv: start_s: found 1.79609e"),
    ],
)
def test_a_count_that_is_none_and_a_time_of_another_unit_are_refused(
    tmp_path: Path, row: str, named: str
) -> None:
    with pytest.raises(LogFormatError, match=named):
        read_run(write(tmp_path, "r.csv", HEADER + row + "\n"))
