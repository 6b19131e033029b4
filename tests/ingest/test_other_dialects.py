"""Dialects without a recorded file here: inputs written by the tool's own documented form."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.cases.log_numbers import vllm_result

from gpuverdict.errors import LogFormatError
from gpuverdict.files import ReadOptions
from gpuverdict.recognise import read_run
from gpuverdict.schema import REQUESTS, RUN_FIELDS, Run, check, run_level

H200 = Path(__file__).resolve().parents[2] / "data" / "h200"


def stored(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def one(path: Path, options: ReadOptions | None = None) -> Run:
    (run,) = read_run(path, options)
    assert set(run.info) == set(RUN_FIELDS)
    check(run.requests, REQUESTS)
    return run


def codes(run: Run) -> set[str]:
    return {item.code for item in run.cautions}


def evalscope_database(path: Path, rows: list[tuple[Any, ...]]) -> Path:
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE result(request TEXT, start_time REAL, inter_token_latencies TEXT, "
        "success INTEGER, response_messages TEXT, completed_time REAL, latency REAL, "
        "first_chunk_latency REAL, prompt_tokens INTEGER, completion_tokens INTEGER, "
        "max_gpu_memory_cost REAL, time_per_output_token REAL, request_id TEXT, is_stream INTEGER)"
    )
    connection.executemany(f"INSERT INTO result VALUES ({','.join('?' * 14)})", rows)
    connection.commit()
    connection.close()
    return path


def test_evalscope_database(tmp_path: Path) -> None:
    path = evalscope_database(
        tmp_path / "benchmark_data.db",
        [
            ("{}", 50.0, "[0.25, 0.25]", 1, "gASV", 51.25, 1.25, 0.5, 9, 3, 0.0, 0.375, "a", 1),
            ("{}", 50.5, "[]", 0, "gASV", 50.75, None, None, None, None, None, None, "b", 1),
        ],
    )
    summary = {"Test Duration (s)": 2.0, "Concurrency": 2, "Total Requests": 2,
               "Success Requests": 1, "Avg TTFT (ms)": 500.0, "Avg TPOT (ms)": 375.0}  # fmt: skip
    stored(tmp_path, "benchmark_summary.json", summary)
    stored(tmp_path, "benchmark_args.json", {"model": "demo", "parallel": 2, "number": 2})
    run = one(path)
    ok, failed = run.requests.iter_rows(named=True)
    assert (ok["ttft_s"], ok["tpot_s"], ok["e2e_s"]) == (0.5, 0.25, 1.0)
    assert ok["end_s"] == pytest.approx(1.25)
    assert (failed["status"], failed["error_kind"]) == ("error", "other")
    assert run.gaps["gaps_s"].to_list() == [[0.25, 0.25]]
    assert (run.info["model_id"], run_level(run.info)) == ("demo", {"concurrency": 2})
    # Its TPOT runs to the usage event; ours to the last token, and that is said.
    assert "reported_past_last_token" in codes(run)
    assert run.info["output_tokens_source"] == "usage"  # no tokenizer was given


@pytest.mark.parametrize("cell", ['["a", "b"]', "[[1], [2]]", "{}", "7", "[null, 1.5]", "x"])
def test_evalscope_stamps_of_another_kind_are_refused(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "benchmark_data.db"
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE result(start_time REAL, chunk_times TEXT, success INTEGER, latency REAL, "
        "first_chunk_latency REAL, prompt_tokens INTEGER, completion_tokens INTEGER)"
    )
    connection.execute("INSERT INTO result VALUES (1.0, ?, 1, 1.0, 0.5, 9, 3)", (cell,))
    connection.commit()
    connection.close()
    with pytest.raises(LogFormatError, match=r"chunk_times.*list of numbers"):
        read_run(path)


def test_evalscope_summary_alone(tmp_path: Path) -> None:
    run = one(stored(tmp_path, "s.json", {"Test Duration (s)": 2.0, "Avg TTFT (ms)": 0.0,
                                          "Avg Latency (s)": 1.5}))  # fmt: skip
    assert run.info["reported"] == {"e2e_s.mean": 1.5}


def test_a_view_named_result_is_not_queried(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE VIEW result AS WITH RECURSIVE r(start_time) AS (SELECT 1 UNION ALL SELECT "
        "start_time + 1 FROM r) SELECT start_time, 1 success, 1 latency, 1 first_chunk_latency, "
        "1 prompt_tokens, 1 completion_tokens FROM r"
    )
    connection.commit()
    connection.close()
    with pytest.raises(LogFormatError, match="no column result"):
        read_run(path)


def event(**delta: Any) -> str:
    return "data: " + json.dumps({"object": "chat.completion.chunk", "choices": [{"delta": delta}]})


def test_genai_perf_events_are_cleaned(tmp_path: Path) -> None:
    zero = 1_796_090_166_000_000_001  # above 2^53: must be subtracted as whole numbers
    usage = 'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}'
    outputs = [event(role="assistant", content=""), event(content="a"), event(content="b")[:20],
               event(content="b")[20:], event(content="c"), usage, "data: [DONE]"]  # fmt: skip
    stamps = [zero + ms * 1_000_000 for ms in (90, 100, 120, 121, 140, 141, 142)]
    profile = {
        "service_kind": "openai", "endpoint": "v1/chat/completions", "version": "0.0.16",
        "experiments": [{
            "experiment": {"mode": "concurrency", "value": 4}, "window_boundaries": [],
            "requests": [
                {"timestamp": zero, "response_timestamps": stamps,
                 "response_outputs": [{"response": text} for text in outputs]},
                {"timestamp": zero + 1_000_000, "response_timestamps": [], "response_outputs": []},
            ],
        }],
    }  # fmt: skip
    run = one(stored(tmp_path, "profile_export.json", profile))
    first, second = run.requests.iter_rows(named=True)
    assert first["ttft_s"] == pytest.approx(0.1, abs=1e-9)
    assert first["tpot_s"] == pytest.approx(0.02, abs=1e-9)
    assert (first["input_tokens"], first["output_tokens"], first["n_chunks"]) == (7, 3, 3)
    assert run.gaps["gaps_s"].to_list() == [pytest.approx([0.02, 0.02])]
    assert second["status"] == "empty"
    assert run_level(run.info) == {"concurrency": 4}


def test_genai_perf_without_usage_gives_no_token_metrics(tmp_path: Path) -> None:
    request = {"timestamp": 10, "response_timestamps": [20, 30],
               "response_outputs": [{"response": event(content="a")}] * 2}  # fmt: skip
    experiment = {"experiment": {"mode": "request_rate", "value": 2.0}, "requests": [request]}
    run = one(stored(tmp_path, "p.json", {"service_kind": "openai", "experiments": [experiment]}))
    (row,) = run.requests.iter_rows(named=True)
    assert (row["status"], row["output_tokens"], row["tpot_s"]) == ("ok", None, None)
    assert row["ttft_s"] == pytest.approx(1e-8)
    assert "tokens_unknown" in codes(run)
    assert run_level(run.info) == {"rate_requests_per_s": 2.0}


def test_trtllm_serving_result(tmp_path: Path) -> None:
    record = vllm_result(ttfts=[0.5, 0.0], output_lens=[3, 0], itls=[[0.25, 0.25], []],
                         errors=["", "refused"], e2els=[1.0, 0.0], user_throughput=9.0)  # fmt: skip
    record["request_goodput:"] = 0.5
    run = one(stored(tmp_path, "a.json", record))
    assert run.info["source_format"] == "trtllm"
    assert run.requests["tpot_s"].to_list() == [0.25, None]
    assert run.info["reported"]["goodput_requests_per_s.value"] == 0.5
    assert run.info["clock"] == "none"


def test_trtllm_request_records(tmp_path: Path) -> None:
    rows = [
        {"id": i, "num_input_tokens": 8, "output_tokens": 5, "error_tokens": 0,
         "start_timestamp": 10**15 + i, "first_token_timestamp": first,
         "end_timestamp": 10**15 + i + 900_000_000, "decode_iteration": 4, "output": "x"}
        for i, first in ((0, 10**15 + 100_000_000), (1, 10**15 + 100_000_001))
    ]  # fmt: skip
    run = one(stored(tmp_path, "a.json", rows))
    assert run.requests["ttft_s"].to_list() == pytest.approx([0.1, 0.1])
    assert run.requests["tpot_s"].to_list() == pytest.approx([0.2, 0.2])
    for row in rows:
        row["first_token_timestamp"] = -1
    run = one(stored(tmp_path, "a.json", rows))
    assert run.info["streaming"] is False
    assert run.requests["ttft_s"].null_count() == 2
    assert run.requests["e2e_s"].to_list() == pytest.approx([0.9, 0.9])


def test_trtllm_report(tmp_path: Path) -> None:
    report = {
        "engine": {"model": "demo", "version": "1.2", "dtype": "bfloat16"},
        "machine": {"name": "NVIDIA H100", "memory.total": 79.1},
        "world_info": {"tp_size": 2, "pp_size": 1, "world_size": 2},
        "request_info": {"num_requests": 10},
        "performance": {"total_latency_ms": 4000.0, "request_throughput_req_s": 2.5,
                        "system_output_throughput_tok_s": 320.0,
                        "request_latency_percentiles_ms": {"p50": 700.0, "average": 710.0}},
        "streaming_metrics": {"ttft_percentiles": {"p50": 55.0}},
    }  # fmt: skip
    run = one(stored(tmp_path, "report.json", report))
    assert run.info["reported"]["ttft_s.p50"] == pytest.approx(0.055)
    assert run.info["reported"]["e2e_s.mean"] == pytest.approx(0.71)
    assert (run.info["tp"], run.info["gpu_label"], run.info["duration_s"]) == (
        2,
        "NVIDIA H100",
        4.0,
    )


LLAMA = {"build_commit": "abc1234", "model_type": "demo 7B Q4", "gpu_info": "NVIDIA RTX 4090",
         "type_k": "f16", "n_depth": 0, "test_time": "2026-12-01T02:00:00Z"}  # fmt: skip
LLAMA_ROWS = [
    {**LLAMA, "n_prompt": 512, "n_gen": 0, "avg_ns": 128_000_000, "avg_ts": 4000.0,
     "samples_ns": [128_000_000, 64_000_000]},
    {**LLAMA, "n_prompt": 0, "n_gen": 128, "avg_ns": 1_280_000_000, "avg_ts": 100.0,
     "samples_ns": [1_280_000_000]},
]  # fmt: skip


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_llama_bench_samples_become_runs(tmp_path: Path, form: str) -> None:
    text = json.dumps(LLAMA_ROWS)
    if form == "jsonl":
        text = "\n".join(json.dumps(row) for row in LLAMA_ROWS)
    runs = read_run(stored(tmp_path, f"a.{form}", text))
    rates = [run.info["reported"].get("prefill_tokens_per_s.value") for run in runs]
    assert rates == [4000.0, 8000.0, None]
    assert runs[2].info["reported"]["tpot_s.p50"] == pytest.approx(0.01)
    assert run_level(runs[2].info) == {"batch": 1}
    assert [run.info["repeat_no"] for run in runs] == [1, 2, None]


def test_llama_bench_csv_and_table(tmp_path: Path) -> None:
    csv = ('build_commit,model_type,n_prompt,n_gen,avg_ns,stddev_ns,avg_ts,stddev_ts\n'
           '"abc","demo","0","128","1280000000","5","100.0","0.1"\n')  # fmt: skip
    table = (
        "| model | size | test | t/s |\n| --- | ---: | --- | ---: |\n"
        "| demo | 3 GiB | pp512 | 4000.00 ± 9.1 |\n| demo | 3 GiB | tg 128 | 100.00 ± 0.1 |\n"
    )
    (run,) = read_run(stored(tmp_path, "a.csv", csv))
    assert run.info["reported"]["decode_tokens_per_s.value"] == pytest.approx(100.0)
    runs = read_run(stored(tmp_path, "a.md", table))
    assert runs[0].info["reported"]["prefill_tokens_per_s.value"] == pytest.approx(4000.0)
    assert runs[1].info["reported"]["decode_step_s.value"] == pytest.approx(0.01)


def test_fmperf_rows_are_grouped_into_requests(tmp_path: Path) -> None:
    zero = 1_796_090_166_000_000_001

    def row(ms: int, duration: float, request: int, **more: Any) -> dict[str, Any]:
        return {"timestamp": zero + ms * 1_000_000, "duration_ms": duration, "worker_idx": 0,
                "request_idx": request, "n_tokens": 1, "ok": True, "error": "None",
                **more}  # fmt: skip

    rows = [row(100, 100.0, 0), row(120, 20.0, 0), row(140, 20.0, 0, n_tokens=2),
            row(150, 150.0, 1, ok=False, error="timeout"),
            row(1, 1.0, 2, exclude=True)]  # fmt: skip
    run = one(stored(tmp_path, "a.json", {"results": rows}))
    first, second = run.requests.iter_rows(named=True)
    assert first["ttft_s"] == pytest.approx(0.1)
    assert first["tpot_s"] == pytest.approx(0.04 / 3)
    assert (second["status"], second["error_kind"]) == ("error", "timeout")
    assert run.gaps["tokens_per_event"].to_list() == [[1, 2]]
    assert run.info["dropped"] == {"warmup": 1}


@pytest.mark.parametrize(("unit", "value"), [("ms", 44.0), ("s", 0.044)])
def test_llmd_report_is_converted_by_its_units(tmp_path: Path, unit: str, value: float) -> None:
    text = (
        "version: 0.2.1\nrun:\n  time: {duration: PT1M4.5S}\nresults:\n  request_performance:\n"
        "    aggregate:\n      requests: {total: 12, failures: 2}\n      latency:\n"
        f"        time_to_first_token: {{units: {unit}, mean: {value}, p99: .inf}}\n"
    )
    run = one(stored(tmp_path, "report.yaml", text))
    assert run.info["reported"]["ttft_s.mean"] == pytest.approx(0.044)
    assert "ttft_s.p99" not in run.info["reported"]
    assert run.info["duration_s"] == pytest.approx(64.5)
    assert (run.info["n_ok"], run.info["n_error"]) == (10, 2)
    with pytest.raises(LogFormatError, match="'fortnight'"):
        read_run(
            stored(tmp_path, "report.yaml", text.replace(f"units: {unit}", "units: fortnight"))
        )


MLPERF = """
================================================
MLPerf Results Summary
================================================
SUT name : demo
Scenario : Server
Mode     : PerformanceOnly
Completed samples per second    : 12.5
Completed tokens per second: 1600.25
Result is : {verdict}
99.00 percentile latency (ns)   : 2000000000
99.00 percentile first token latency (ns)   : 400000000
target_qps : 13
"""


def test_mlperf_summary(tmp_path: Path) -> None:
    run = one(stored(tmp_path, "mlperf_log_summary.txt", MLPERF.format(verdict="VALID")))
    assert run.info["reported"] == {
        "requests_per_s.value": 12.5, "output_tokens_per_s.value": 1600.25,
        "e2e_s.p99": 2.0, "ttft_s.p99": pytest.approx(0.4),
    }  # fmt: skip
    assert run_level(run.info) == {"rate_requests_per_s": 13.0}
    assert "marked_invalid" not in codes(run)
    invalid = one(stored(tmp_path, "b.txt", MLPERF.format(verdict="INVALID")))
    assert "marked_invalid" in codes(invalid)


def test_guidellm_first_form(tmp_path: Path) -> None:
    result = {"request": {"id": "r0"}, "prompt_token_count": 9, "output_token_count": 3,
              "start_time": 100.0, "end_time": 101.2, "first_token_time": 0.5,
              "decode_times": {"data": [0.25, 0.25]}}  # fmt: skip
    level = {"mode": "asynchronous", "rate": 2.0, "results": [result],
             "errors": [{"request": {"id": "r1"}, "message": "boom"}],
             "concurrencies": []}  # fmt: skip
    run = one(stored(tmp_path, "a.json", {"benchmarks": [{"benchmarks": [level]}]}))
    row = run.requests.row(0, named=True)
    assert (row["ttft_s"], row["tpot_s"], row["e2e_s"]) == (0.5, 0.25, 1.0)
    assert run.info["n_error"] == 1
    assert run_level(run.info) == {"rate_requests_per_s": 2.0}


def test_guidellm_middle_form(tmp_path: Path) -> None:
    row = {
        "request_id": "r0", "output_tokens": 3, "prompt_tokens": 9,
        "info": {"timings": {"request_start": 100.0, "first_iteration": 100.5,
                             "first_token_iteration": 100.5, "last_token_iteration": 101.0,
                             "request_end": 101.1, "targeted_start": 99.75}},
        "output_metrics": {"text_tokens": 3},
    }  # fmt: skip
    benchmark = {
        "type_": "generative_benchmark", "duration": 2.0,
        "scheduler_metrics": {"measure_start_time": 100.0, "measure_end_time": 102.0},
        "config": {"strategy": {"type_": "poisson", "rate": 3.0}},
        "requests": {"successful": [row], "errored": [], "incomplete": []},
    }  # fmt: skip
    report = {"metadata": {"version": 1, "guidellm_version": "0.5.0"}, "args": {},
              "benchmarks": [benchmark]}  # fmt: skip
    run = one(stored(tmp_path, "a.json", report))
    found = run.requests.row(0, named=True)
    assert (found["ttft_s"], found["tpot_s"]) == (0.5, 0.25)
    assert found["client_queue_s"] == 0.25
    assert run.info["tool_version"] == "0.5.0"
    assert run_level(run.info) == {"rate_requests_per_s": 3.0}


def test_guidellm_report_in_yaml_is_the_same(tmp_path: Path) -> None:
    import gzip

    from ruamel.yaml import YAML

    path = H200 / "card-b-eager" / "prefill-isl512.json.gz"
    report = json.loads(gzip.decompress(path.read_bytes()))
    for level in report["benchmarks"]:
        level["requests"]["successful"] = level["requests"]["successful"][:3]
    with (tmp_path / "a.yaml").open("w") as stream:
        YAML(typ="safe").dump(report, stream)
    stored(tmp_path, "a.json", report)
    by_yaml, by_json = one(tmp_path / "a.yaml"), one(tmp_path / "a.json")
    assert by_yaml.requests.drop("run_id").equals(by_json.requests.drop("run_id"))


def test_guidellm_sample_is_said(tmp_path: Path) -> None:
    row = {"request_id": "r0", "start_time": 1.0, "end_time": 2.0, "first_token_time": 1.5,
           "last_token_time": 2.0, "prompt_tokens": 3, "output_tokens": 2}  # fmt: skip
    benchmark = {"type_": "generative_benchmark", "duration": 9.0,
                 "request_totals": {"successful": 40, "errored": 0},
                 "requests": {"successful": [row]}}  # fmt: skip
    run = one(stored(tmp_path, "a.json", {"benchmarks": [benchmark]}))
    assert run.info["dropped"]["sampled_away"] == 39
    assert run.info["duration_s"] is None
    assert "sampled_away" in codes(run)


def test_vllm_client_version_settles_the_definition(tmp_path: Path) -> None:
    record = vllm_result(ttfts=[0.1], output_lens=[3], itls=[[0.1, 0.1]])
    path = stored(tmp_path, "a.json", record)
    assert one(path).info["ttft_def"] == "unknown"
    assert one(path, ReadOptions(client_version="0.32.0")).info["ttft_def"] == "first_content"
    newer = one(path, ReadOptions(client_version="0.33.1"))
    assert newer.info["ttft_def"] == "first_content_or_reasoning"


def test_vllm_end_stamp_needs_a_zone(tmp_path: Path) -> None:
    record = vllm_result(ttfts=[0.1], output_lens=[1], itls=[[]], start_times=[77.0])
    path = stored(tmp_path, "a.json", record)
    assert one(path).info["t0_epoch_s"] is None
    run = one(path, ReadOptions(time_zone="Asia/Shanghai"))
    # 2026-10-05 02:00:00 in Shanghai is 18:00 UTC the day before; the run took 2 s.
    assert run.info["t0_epoch_s"] == 1791136798.0
    assert run.info["t0_quality"] == "end_stamp_minus_duration"


def test_unequal_lists_are_named(tmp_path: Path) -> None:
    record = vllm_result(ttfts=[0.1, 0.2], output_lens=[1], itls=[[], []])
    with pytest.raises(LogFormatError, match="ttfts 2, itls 2, output_lens 1, input_lens 2"):
        read_run(stored(tmp_path, "a.json", record))


PRINTED = """
============ Serving Benchmark Result ============
Successful requests:                     32
Benchmark duration (s):                  150.87
Total generated tokens:                  65536
Output token throughput (tok/s):         434.40
Maximum request concurrency:             32
---------------Time to First Token----------------
Mean TTFT (ms):                          7279.56
P99 TTFT (ms):                           10999.46
Median TPOT (ms):                        70.15
Mean ITL (ms):                           0.00
==================================================
"""


def test_a_pasted_table_is_a_summary(tmp_path: Path) -> None:
    runs = read_run(stored(tmp_path, "log.txt", "some chatter\n" + PRINTED + PRINTED))
    assert len(runs) == 2
    assert runs[0].info["reported"] == {
        "requests.completed": 32.0, "output_tokens.sum": 65536.0,
        "output_tokens_per_s.value": 434.4, "ttft_s.mean": pytest.approx(7.27956),
        "ttft_s.p99": pytest.approx(10.99946), "tpot_s.p50": pytest.approx(0.07015),
    }  # fmt: skip
    assert run_level(runs[0].info) == {"concurrency": 32}
    assert "aggregate_only" in codes(runs[0])


def test_vllm_offline_results(tmp_path: Path) -> None:
    latency = {"avg_latency": 1.5, "latencies": [1.0, 2.0], "percentiles": {"50": 1.5, "99": 2.0}}
    run = one(stored(tmp_path, "a.json", latency))
    assert run.info["reported"]["e2e_s.p99"] == 2.0
    assert run.info["reported"]["e2e_s.std"] == 0.5
    throughput = {"elapsed_time": 10.0, "num_requests": 20, "total_num_tokens": 5000,
                  "requests_per_second": 2.0, "tokens_per_second": 500.0}  # fmt: skip
    run = one(stored(tmp_path, "b.json", throughput))
    # It counts prompt tokens too, so it is no output rate.
    assert "output_tokens_per_s.value" not in run.info["reported"]
    assert run.info["duration_s"] == 10.0


def test_inference_perf_stages_by_sizes_and_pauses(tmp_path: Path) -> None:
    def row(start: float) -> dict[str, Any]:
        return {"start_time": start, "end_time": start + 0.4, "error": None,
                "info": {"input_tokens": 4, "output_tokens": 2,
                         "output_token_times": [start + 0.2, start + 0.4]}}  # fmt: skip

    rows = [row(start) for start in (5.1, 0.0, 0.1, 5.0, 0.2)]
    path = stored(tmp_path, "per_request.json", rows)
    by_pause = read_run(path)
    assert [run.requests["request_index"].to_list() for run in by_pause] == [[1, 2, 4], [0, 3]]
    assert "stages_by_pauses" in codes(by_pause[0])
    by_size = read_run(path, ReadOptions(stages=(1, 4)))
    assert [run.info["n_rows"] for run in by_size] == [1, 4]
    with pytest.raises(LogFormatError, match="5 requests, while the stages hold 2\\+2"):
        read_run(path, ReadOptions(stages=(2, 2)))


def test_llmperf_odd_members_and_text_numbers(tmp_path: Path) -> None:
    row = {"error_code": None, "error_msg": "", "ttft_s": "0.5", "end_to_end_latency_s": 1.0,
           "request_output_throughput_token_per_s": 5.0, "number_input_tokens": 7,
           "number_output_tokens": 6, "inter_token_latency_s": 0.1}  # fmt: skip
    run = one(stored(tmp_path, "a_individual_responses.json", ["stray", row]))
    assert run.requests["tpot_s"].to_list() == pytest.approx([0.1])
    assert run.info["dropped"] == {"non_object": 1}
    assert run.info["output_tokens_source"] == "fixed_tokenizer"


def test_aiperf_raw_agrees_with_its_records() -> None:
    folder = H200.parents[2].parent / "shared/data/clients/aiperf-0.13.0/edge_raw-level/artifacts"
    if not folder.exists():
        pytest.skip("the recorded client logs are not beside the repository")
    (raw,), (records,) = (read_run(folder / f"profile_export{name}.jsonl") for name in ("_raw", ""))
    assert raw.info["source_format"] == "aiperf_raw"
    left = {row["request_id"]: row for row in raw.requests.iter_rows(named=True)}
    for row in records.requests.iter_rows(named=True):
        other = left[row["request_id"]]
        assert other["ttft_s"] == pytest.approx(row["ttft_s"], abs=1e-6)
        assert other["tpot_s"] == pytest.approx(row["tpot_s"], abs=1e-6)
        assert (other["phase"], other["output_tokens"]) == (row["phase"], row["output_tokens"])
