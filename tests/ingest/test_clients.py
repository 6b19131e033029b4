"""Every recorded client log against the truth of the server it talked to."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from tests.ingest.client_cases import Case, cases, own_ttfts_s, truth_tpot_s

from gpuverdict.recognise import read_run
from gpuverdict.schema import REQUESTS, RUN_FIELDS, TOKEN_GAPS, Run, check

ALL = list(cases())
READABLE = [case for case in ALL if case.log is not None]

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not ALL, reason="the recorded client logs are not beside the repository"),
]

# The tool's own name of its log, and how requests of a broken case end up in it.
_DIALECTS = {"aiperf": "aiperf", "guidellm": "guidellm", "inference-perf": "inference_perf",
             "llmperf": "llmperf", "sglang": "sglang", "vllm": "vllm"}  # fmt: skip


def main_rows(runs: list[Run]) -> pl.DataFrame:
    frame = pl.concat([run.requests for run in runs])
    return frame.filter(pl.col("phase") == "main")


@pytest.mark.parametrize("case", READABLE, ids=str)
def test_log_is_recognised_and_follows_the_schema(case: Case) -> None:
    runs = read_run(case.log)  # type: ignore[arg-type]
    for run in runs:
        assert run.info["source_format"] == _DIALECTS[case.tool]
        assert set(run.info) == set(RUN_FIELDS)
        check(run.requests, REQUESTS)
        check(run.gaps, TOKEN_GAPS)
        counts = Counter(run.requests["status"])
        for status in ("ok", "error", "cancelled", "incomplete", "empty"):
            assert run.info[f"n_{status}"] == counts[status]
        # No zero stands for "none" in what a mean is taken of.
        ok = run.requests.filter(pl.col("status") == "ok")
        for name in ("ttft_s", "e2e_s", "tpot_s"):
            assert (ok[name].drop_nulls() > 0).all()


@pytest.mark.parametrize("case", READABLE, ids=str)
def test_requests_by_status_match_the_server(case: Case) -> None:
    rows = main_rows(read_run(case.log))  # type: ignore[arg-type]
    counts = Counter(rows["status"])
    ends = Counter(row["end"] for row in case.truth())
    finished = ends["length"] + ends["stop"]
    served = case.manifest["server_truth"]
    if case.version == "guidellm-0.3.1":
        # It lets about as many surplus requests through as it has streams.
        asked = case.manifest["expected"].get("requests_per_stream_level", counts["ok"])
        assert counts["ok"] == asked <= finished
    elif case.tool == "llmperf":
        # Its threads send on after the last wanted result; what failed is not recorded.
        assert (
            0 <= finished - counts["ok"] < max(8, case.manifest["expected"].get("concurrency", 8))
        )
    else:
        assert counts["ok"] == finished
    if "503" in case.name or "500" in case.name:
        failed = served["http_errors"] if case.tool != "llmperf" else 0
        assert counts["error"] == failed
    if "empty-stream" in case.name:
        silent = served["requests_seen"] - case.warmups - finished
        assert counts["error"] + counts["empty"] == silent > 0
    if "cut-midstream" in case.name:
        assert counts["error"] == ends["abort"] > 0
    if "cancel" in case.name:
        assert counts["cancelled"] == ends["abort"] > 0
    if "incomplete" in case.name:
        assert counts["incomplete"] == ends["abort"] > 0
    if "server-killed" in case.name and case.tool != "llmperf":
        # Every planned request is a row: those after the server's death are errors.
        assert counts["error"] + counts["ok"] == 64


@pytest.mark.parametrize("case", [case for case in READABLE if case.normal], ids=str)
def test_median_tpot_is_within_five_percent_of_the_server(case: Case) -> None:
    finished, at = case.finished(), 0
    runs = read_run(case.log)  # type: ignore[arg-type]
    for run in runs:
        ok = run.requests.filter(pl.col("status") == "ok")
        own = finished if len(runs) == 1 else finished[at : at + ok.height]
        at += ok.height
        truth = truth_tpot_s(own)
        assert truth is not None
        assert ok["tpot_s"].median() == pytest.approx(truth, rel=0.05)


@pytest.mark.parametrize("case", READABLE, ids=str)
def test_ttft_is_the_files_own(case: Case) -> None:
    rows = main_rows(read_run(case.log))  # type: ignore[arg-type]
    ours = rows.filter(pl.col("status") == "ok")["ttft_s"].to_list()
    assert sorted(ours) == pytest.approx(sorted(own_ttfts_s(case)), abs=1e-9)


@pytest.mark.parametrize("case", [case for case in ALL if case.log is None], ids=str)
def test_a_tool_without_a_log_left_none(case: Case) -> None:
    # An interrupt or a total failure: no file is this tool's result, and nothing is invented.
    assert "sigint" in case.name or "500" in case.name or "503" in case.name or "chat" in case.name


def read_case(name: str) -> list[Run]:
    case = next(case for case in READABLE if str(case) == name)
    return read_run(case.log)  # type: ignore[arg-type]


def codes(run: Run) -> set[str]:
    return {item.code for item in run.cautions}


def test_role_chunk_is_dropped_and_said() -> None:
    (run,) = read_case("vllm-bench-0.32.0/edge_chat")
    assert run.info["dropped"] == {"role_chunk": 16}
    assert "role_chunk" in codes(run)
    assert set(run.gaps["gaps_s"].list.len()) == {63}


@pytest.mark.parametrize(
    "name",
    ["vllm-bench-0.32.0/edge_chunk4", "aiperf-0.13.0/edge_chunk4",
     "inference-perf-0.7.0/edge_chunk4"],
)  # fmt: skip
def test_four_tokens_a_chunk_are_said(name: str) -> None:
    (run,) = read_case(name)
    said = next(item for item in run.cautions if item.code == "several_tokens_a_chunk")
    assert said.values["tokens_per_chunk"] == pytest.approx(63 / 15)
    assert run.info["gap_kind"] == "chunk"


def test_warmup_rows_stay_and_are_marked() -> None:
    (run,) = read_case("aiperf-0.13.0/edge_raw-level")
    assert Counter(run.requests["phase"]) == {"main": 8, "warmup": 2}


def test_stages_of_one_flat_list_become_runs_with_their_levels() -> None:
    runs = read_case("inference-perf-0.7.0/a100-sxm-80g_c1-32")
    levels = [(run.info["max_concurrency"], run.info["n_rows"]) for run in runs]
    assert levels == [(1, 8), (4, 12), (8, 24), (16, 48), (32, 64)]


def test_one_token_outputs_have_no_tpot() -> None:
    for name in ("vllm-bench-0.32.0/edge_osl1", "guidellm-0.8.1/edge_osl1",
                 "sglang-0.4.6.post5/edge_osl1", "inference-perf-0.7.0/edge_osl1"):  # fmt: skip
        (run,) = read_case(name)
        assert run.requests["tpot_s"].null_count() == run.info["n_rows"] == 24
        assert run.requests["ttft_s"].null_count() == 0


def test_empty_streams_of_sglang_are_no_successes() -> None:
    (run,) = read_case("sglang-0.5.23/edge_empty-stream-20pct")
    empty = run.requests.filter(pl.col("status") == "empty")
    assert empty.height == 7
    assert set(empty["output_tokens"]) == {0}
    assert empty["ttft_s"].null_count() == 7


def test_interrupted_run_is_said() -> None:
    (run,) = read_case("aiperf-0.13.0/edge_sigint")
    assert {"run_interrupted", "truncated_run"} <= codes(run)


def test_server_counts_are_preferred_and_named() -> None:
    (run,) = read_case("aiperf-0.13.0/a100-sxm-80g_c8")
    assert set(run.requests["input_tokens"]) == {262}
    assert run.info["output_tokens_source"] == "usage"
    (bare,) = read_case("aiperf-0.13.0/edge_no-usage_stop-early")
    assert bare.info["output_tokens_source"] == "retokenised"
