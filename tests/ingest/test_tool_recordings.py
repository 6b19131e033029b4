"""Every version of a tool that was run here: its log against the truth of the mock it talked to."""

from __future__ import annotations

import csv
import json
import re
import statistics
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from tests.ingest.tool_recordings import DATA, Recording, own_ttfts_s, recordings

from gpuverdict.files import ReadOptions
from gpuverdict.recognise import read_any, read_run, read_trace
from gpuverdict.schema import REQUESTS, RUN_FIELDS, TOKEN_GAPS, Run, check
from gpuverdict.summary import summarize

ALL = list(recordings())
_DIALECTS = {"evalscope": "evalscope", "guidellm": "guidellm", "inference-perf": "inference_perf",
             "genai-perf": "genai_perf", "aiperf": "aiperf", "sglang": "sglang"}  # fmt: skip
LLAMA_BENCH = DATA / "llama-bench-4227c9b"
# A tool that ran by the clock, or went on beyond its last wanted row, has no row for the rest.
_BY_CLOCK = {"seconds", "rates"}


def runs_of(recording: Recording) -> list[Run]:
    return read_run(recording.log)


def main_rows(runs: list[Run]) -> pl.DataFrame:
    return pl.concat([run.requests for run in runs]).filter(pl.col("phase") == "main")


def codes(run: Run) -> set[str]:
    return {item.code for item in run.cautions}


def case(name: str) -> Recording:
    return next(item for item in ALL if str(item) == name)


def open_ended(recording: Recording) -> bool:
    return recording.case in _BY_CLOCK or recording.tool == "genai-perf"


def test_recordings_are_here() -> None:
    assert len({item.tool for item in ALL}) == len(_DIALECTS)
    assert {folder.name for folder in DATA.iterdir() if folder.is_dir()} == {
        *(f"{item.tool}-{item.version}" for item in ALL),
        LLAMA_BENCH.name,
    }


@pytest.mark.parametrize("recording", ALL, ids=str)
def test_log_is_recognised_and_verified(recording: Recording) -> None:
    for run in runs_of(recording):
        assert run.info["source_format"] == _DIALECTS[recording.tool]
        assert set(run.info) == set(RUN_FIELDS)
        check(run.requests, REQUESTS)
        check(run.gaps, TOKEN_GAPS)
        assert not run.info["unverified"]
        # A difference from the tool's own figure that nobody can explain would be a wrong reading.
        assert not {"reported_differs", "gaps_do_not_add_up", "impossible_times"} & codes(run)
        ok = run.requests.filter(pl.col("status") == "ok")
        for name in ("ttft_s", "e2e_s", "tpot_s"):
            assert (ok[name].drop_nulls() > 0).all()


@pytest.mark.parametrize("recording", ALL, ids=str)
def test_rows_by_status_and_tokens_are_the_servers(recording: Recording) -> None:
    rows, ends = main_rows(runs_of(recording)), recording.ends()
    counts = Counter(rows["status"])
    if open_ended(recording):
        assert 0.5 * ends["ok"] < counts["ok"] <= ends["ok"]
        return
    assert counts["ok"] == ends["ok"]
    if (recording.tool, recording.version) == ("guidellm", "0.1.0"):
        assert counts["error"] == ends["error"] + ends["empty"]
    else:
        assert counts["error"] + counts["empty"] == ends["error"] + ends["empty"]
        assert counts["cancelled"] == ends["cancelled"]
    ok = rows.filter(pl.col("status") == "ok")
    assert Counter(ok["output_tokens"]) == Counter(
        row["output_tokens"] for row in recording.finished()
    )


@pytest.mark.parametrize("recording", ALL, ids=str)
def test_ttft_is_the_files_own(recording: Recording) -> None:
    rows = main_rows(runs_of(recording))
    ok = rows.filter(pl.col("status") == "ok")
    if recording.case == "nostream":
        assert ok["ttft_s"].null_count() == ok.height > 0
        return
    assert sorted(ok["ttft_s"]) == pytest.approx(sorted(own_ttfts_s(recording)), abs=1e-9)


@pytest.mark.parametrize(
    "recording",
    [item for item in ALL if item.case not in ("nostream", "chunk4", "seconds")],
    ids=str,
)
def test_medians_are_near_the_servers(recording: Recording) -> None:
    rows = main_rows(runs_of(recording))
    ok = rows.filter(pl.col("status") == "ok")
    # On the same machine the client is some milliseconds late, never early.
    assert -2e-3 < ok["ttft_s"].median() - recording.ttft_s() < 20e-3
    if recording.tool == "genai-perf":
        assert ok["tpot_s"].null_count() == ok.height
        return
    truth = statistics.median(recording.tpots_s())
    assert ok["tpot_s"].median() == pytest.approx(truth, rel=0.05)


@pytest.mark.parametrize(
    "recording",
    [item for item in ALL if item.tool in ("evalscope", "inference-perf") and item.case == "mixed"],
    ids=str,
)
def test_no_gap_stands_for_a_role_chunk_a_usage_event_or_a_blank_line(recording: Recording) -> None:
    (run,) = runs_of(recording)
    ok = run.requests.filter(pl.col("status") == "ok")
    joined = ok.join(run.gaps, on="request_index")
    assert joined.height == ok.height == 20 or recording.version == "0.6.0"
    assert (joined["gaps_s"].list.len() == joined["output_tokens"] - 1).all()
    span = joined["last_token_s"] - joined["first_token_s"]
    assert ((joined["gaps_s"].list.sum() - span).abs() < 1e-9).all()


@pytest.mark.parametrize(
    ("name", "ttft_def", "said"),
    [
        ("evalscope-0.17.1/mixed", "first_content", {"role_chunk", "usage_event"}),
        ("evalscope-1.0.2/mixed", "first_content", {"role_chunk", "usage_event"}),
        ("evalscope-1.0.2/levels", "first_event", {"usage_event"}),
        ("evalscope-1.6.0/mixed", "first_content", {"role_chunk"}),
        ("evalscope-1.14.1/mixed", "first_content_or_reasoning", set()),
        ("evalscope-1.14.1/chunk4", "first_content_or_reasoning", {"several_tokens_a_chunk"}),
        ("guidellm-0.1.0/sync", "first_content", {"role_chunk"}),
        ("guidellm-0.6.0/mixed", "first_content", set()),
        ("inference-perf-0.1.1/mixed", "first_content", {"blank_lines_stamped", "usage_event"}),
        ("inference-perf-0.2.0/mixed", "first_content", {"blank_lines_stamped", "usage_event"}),
        ("inference-perf-0.3.0/mixed", "first_content", {"usage_event"}),
        ("inference-perf-0.6.0/mixed", "first_content", set()),
        ("genai-perf-0.0.8/chat", "first_content", {"tokens_unknown"}),
    ],
)
def test_definitions_in_force(name: str, ttft_def: str, said: set[str]) -> None:
    run = runs_of(case(name))[0]
    assert run.info["ttft_def"] == ttft_def
    about_events = {"role_chunk", "usage_event", "blank_lines_stamped", "several_tokens_a_chunk",
                    "tokens_unknown"}  # fmt: skip
    assert codes(run) & about_events == said


def test_evalscope_does_not_say_whose_count_it_is() -> None:
    run = runs_of(case("evalscope-1.14.1/nousage"))[0]
    assert "usage_or_recount" in codes(run)
    assert set(run.requests["output_tokens_source"]) == {None}


def test_evalscope_takes_the_end_of_what_failed() -> None:
    (run,) = runs_of(case("evalscope-1.14.1/mixed"))
    failed = run.requests.filter(pl.col("status") == "error")
    assert (failed["end_s"] > failed["start_s"]).all()
    # Version 1.6 writes a zero there: it is no time.
    (older,) = runs_of(case("evalscope-1.6.0/mixed"))
    assert older.requests.filter(pl.col("status") == "error")["end_s"].null_count() > 0


def test_evalscope_version_decides_the_clock_where_its_arguments_are_missing(
    tmp_path: Path,
) -> None:
    source = case("evalscope-1.14.1/levels").log
    alone = tmp_path / source.name
    alone.write_bytes(source.read_bytes())
    assert read_run(alone)[0].info["ttft_def"] == "unknown"
    for version, found in (("1.14.1", "first_content_or_reasoning"), ("1.10.0", "first_event")):
        (run,) = read_run(alone, ReadOptions(client_version=version))
        assert run.info["ttft_def"] == found


@pytest.mark.parametrize("version", ["0.4.0", "0.5.4", "0.6.0"])
def test_guidellm_throughput_with_warmup_is_that_of_the_server(version: str) -> None:
    recording = case(f"guidellm-{version}/seconds")
    (run,) = runs_of(recording)
    rows = [row for row in recording.truth() if row["t_first"]]
    span = max(row["t_last"] for row in rows) - min(row["t_first"] for row in rows)
    truth = sum(row["output_tokens"] for row in rows) / span
    frame = summarize(run)
    ours = frame.query("metric == 'output_tokens_per_s'").value.iloc[0]
    # Over the tool's shorter window the tokens of straddling requests gave 1.6 times as much.
    assert ours == pytest.approx(truth, rel=0.15)


def test_guidellm_json_and_yaml_of_one_run_read_alike() -> None:
    (first,), (second,) = (runs_of(case(f"guidellm-0.6.0/{name}")) for name in
                           ("mixed", "mixed-yaml"))  # fmt: skip
    drop = ["run_id"]
    assert first.requests.drop(drop).equals(second.requests.drop(drop))


def test_genai_perf_agrees_with_its_own_summary() -> None:
    recording = case("genai-perf-0.0.8/chat")
    (run,) = runs_of(recording)
    (summary,) = read_run(recording.log.parent / "profile_export_genai_perf.json")
    ok = run.requests.filter(pl.col("status") == "ok")
    for metric in ("ttft_s", "e2e_s"):
        own = summary.info["reported"][f"{metric}.mean"]
        assert ok[metric].mean() == pytest.approx(own, rel=1e-3 if metric == "ttft_s" else 0.01)


@pytest.mark.parametrize("version", ["0.6.0", "0.11.0", "0.13.0"])
def test_aiperf_telemetry_is_what_the_mock_page_held(version: str) -> None:
    trace = read_trace(DATA / f"aiperf-{version}/telemetry/gpu_telemetry_export.jsonl.gz")
    samples = trace.samples
    # The page: 200 to 207 W, a counter of 203 W, 61,000 MiB, 55 C, 80 %, 40 % and SM 0.6.
    assert samples["power_w"].is_between(200.0, 207.0).all()
    span = samples["time_epoch_s"][-1] - samples["time_epoch_s"][0]
    power = (samples["energy_j"][-1] - samples["energy_j"][0]) / span
    assert power == pytest.approx(203.0, rel=0.03)
    for column, value in (("memory_used_mib", 61000.0), ("temperature_c", 55.0),
                          ("gpu_util_ratio", 0.8), ("mem_util_ratio", 0.4),
                          ("sm_active_ratio", 0.6)):  # fmt: skip
        assert samples[column].to_list() == pytest.approx([value] * samples.height)
    assert not trace.info.get("unverified")


@pytest.mark.parametrize(("version", "case_name"), [("0.6.0", "mixed"), ("0.11.0", "mixed"),
                                                     ("0.13.0", "telemetry")])  # fmt: skip
def test_aiperf_server_metrics_lie_on_the_clock_of_the_requests(
    version: str, case_name: str
) -> None:
    recording = case(f"aiperf-{version}/{case_name}")
    (frame,) = read_any(recording.log.parent / "server_metrics_export.json.gz")
    stamps = frame["time_epoch_s"]
    rows = recording.truth()
    # Start and end of the measured phase, within the second that the pages are apart.
    assert abs(stamps.min() - rows[0]["t_arrival"]) < 1.0
    assert abs(stamps.max() - max(row["t_last"] or row["t_arrival"] for row in rows)) < 1.0
    served = frame.filter(pl.col("name") == "vllm:request_success_total")["value"]
    # What arrived before the first page of the phase was fetched is not in the difference.
    assert len(rows) - 4 <= served.max() <= len(rows)


def test_aiperf_raw_records_agree_with_its_records() -> None:
    for version in ("0.6.0", "0.11.0", "0.13.0"):
        folder = DATA / f"aiperf-{version}/telemetry"
        frames = []
        for name in ("profile_export.jsonl.gz", "profile_export_raw.jsonl.gz"):
            (run,) = read_run(folder / name)
            frames.append(run.requests.filter(pl.col("phase") == "main").sort("start_s"))
        records, raw = frames
        assert records.height == raw.height == 24
        for column in ("ttft_s", "e2e_s"):
            assert raw[column].to_list() == pytest.approx(records[column].to_list(), abs=1e-6)


def rates_of(name: str) -> list[float]:
    """Tokens a second of each run, by the figure of its kind."""
    found = []
    for run in read_run(LLAMA_BENCH / name):
        assert not run.info["unverified"]
        reported = run.info["reported"]
        n = reported.get("input_tokens.sum", 0.0) + reported.get("output_tokens.sum", 0.0)
        both = "e2e_s.mean" in reported
        found.append(
            n / reported["e2e_s.mean"] if both
            else reported.get("prefill_tokens_per_s.value")
            or reported["decode_tokens_per_s.value"]
        )  # fmt: skip
    return found


@pytest.mark.parametrize("name", ["out.json", "out.jsonl"])
def test_llama_bench_samples_are_the_tools_own(name: str) -> None:
    text = (LLAMA_BENCH / name).read_text()
    rows = json.loads(text) if name == "out.json" else [json.loads(t) for t in text.splitlines()]
    own = [rate for row in rows for rate in row["samples_ts"]]
    assert len(own) == 12
    assert rates_of(name) == pytest.approx(own, rel=1e-5)


def test_llama_bench_means_of_csv_and_markdown_are_the_tools_own() -> None:
    with (LLAMA_BENCH / "out.csv").open() as stream:
        means = [
            (int(row["n_prompt"]) + int(row["n_gen"])) / int(row["avg_ns"]) * 1e9
            for row in csv.DictReader(stream)
        ]
    assert rates_of("out.csv") == pytest.approx(means, rel=1e-9)
    printed = re.findall(r"([0-9.]+) ± ", (LLAMA_BENCH / "out.md").read_text())
    assert rates_of("out.md") == pytest.approx([float(text) for text in printed])


def test_llama_bench_at_another_depth_is_another_workload() -> None:
    asked = [run.info["requested_input_tokens"] for run in read_run(LLAMA_BENCH / "depth.json")]
    assert asked == [64, 64, None, None, 192, 192, 128, 128]


def test_unknown_token_counts_give_no_rate() -> None:
    (run,) = runs_of(case("genai-perf-0.0.8/chat"))
    frame = summarize(run).query("metric == 'output_tokens_per_s_finished_only'")
    assert frame.value.isna().all()
