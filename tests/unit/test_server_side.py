"""Spans, metrics pages, host logs and engine logs of a campaign, from its file to its tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.calibration.phases_table import server_rows
from tests.unit.server_campaign import NETWORK_S, PREFILL_S, WAIT_S, build

from gpuverdict import tables
from gpuverdict.campaign import read_campaign
from gpuverdict.case import Case, open_case
from gpuverdict.measured import measure

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "h200" / "card-a-bf16"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("served") / "campaign"
    build(place)
    return place


@pytest.fixture(scope="module")
def case(folder: Path) -> Case:
    return open_case(folder, "ab")


def test_every_file_is_taken(case: Case) -> None:
    assert case.measured.lost == ()
    assert {join.how for join in case.measured.server_joins.values()} == {"id"}
    assert all(j.n_joined == j.n_requests == 60 for j in case.measured.server_joins.values())


def test_phases_are_the_servers_and_stand_beside_the_estimate(case: Case) -> None:
    for s in case.situations:
        assert s.server_source == "requests"
        assert s.server_queue_s == pytest.approx(WAIT_S[s.arm], rel=0.1)
        assert s.server_prefill_s == pytest.approx(PREFILL_S)
        assert s.network_s == pytest.approx(NETWORK_S, abs=1e-6)
        # Without probes a client takes a queue that is always there for prefill.
        assert s.prefill_estimate_s == pytest.approx(WAIT_S[s.arm] + PREFILL_S + NETWORK_S, rel=0.1)


def test_counters_are_of_the_level(case: Case) -> None:
    told = {(s.arm, s.level["concurrency"]): s for s in case.situations}
    assert set(told) == {(a, c) for a in "ab" for c in (1, 4)}
    for (arm, _), s in told.items():
        # 60 requests a run, a preemption for each 30; over the whole arm it were 12.
        assert s.preemptions == (2 if arm == "b" else 0)
        assert s.prefix_cache_hit_ratio == pytest.approx(0.25)
        quoted = [c.code for c in s.cautions]
        logged = arm == "b" and s.level["concurrency"] == 4
        assert quoted == (["engine_log_preempted", "engine_log_fragmented"] if logged else [])


def test_the_host_is_laid_beside_the_gpu(case: Case) -> None:
    for s in case.situations:
        assert s.host_cpu_busy_ratio == pytest.approx(0.25)
        assert s.host_process_cpu_ratio == pytest.approx(0.99 if s.arm == "b" else 0.2)
        assert s.gpu_util_ratio == pytest.approx(0.35 if s.arm == "b" else 0.96)
    told = {(f.code, f.arm) for f in case.findings}
    assert ("binds_host_core", "b") in told
    assert ("binds_feeding", "b") in told
    assert not {code for code, arm in told if arm == "a"}


def test_a_level_that_left_only_an_engine_log(case: Case) -> None:
    (only,) = case.campaign.arms["b"].infeasible
    assert only.level == 16
    assert "engine_c16.log, line 2" in only.reason
    assert "CUDA out of memory" in only.reason
    assert "someone" not in only.reason


def test_what_an_engine_says_of_a_level_that_ran(case: Case, tmp_path: Path) -> None:
    server = tables.server_table(case)
    assert "speaks of preemptions 3 times: b/engine_c4.log, line 1" in server.markup
    assert "reserved by PyTorch but unallocated" in server.markup
    # Without a counter its lines are a lower bound; of another level they say nothing.
    shutil.copytree(case.campaign.root, tmp_path / "logs",
                    ignore=shutil.ignore_patterns(".gpuverdict"))  # fmt: skip
    path = tmp_path / "logs" / "campaign.yaml"
    kept = [x for x in path.read_text().splitlines() if "server_metrics" not in x]
    path.write_text("\n".join(kept) + "\n")
    told = {(s.arm, s.level["concurrency"]): s.preemptions for s in open_case(path).situations}
    assert told == {("a", 1): None, ("a", 4): None, ("b", 1): None, ("b", 4): 3.0}


def test_the_tables_say_it_and_escape_it(case: Case) -> None:
    for lang in ("en", "zh"):
        server, host = tables.server_table(case, lang), tables.host_table(case, lang)
        assert len(str(server).splitlines()) == len(str(host).splitlines()) == 4
        assert "250." in str(server)
        assert "99 % =python3" in str(host)
    page = tables.verdict_map(case).markup + tables.all_cells(case).markup
    page += tables.findings_table(case).markup + tables.host_table(case).markup
    assert "CUDA out of memory" in page
    assert "<script>" not in page
    assert "<b>" not in page


def test_without_these_files_nothing_is_said(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "bare", ignore=shutil.ignore_patterns(".gpuverdict"))
    path = tmp_path / "bare" / "campaign.yaml"
    kept = [
        line
        for line in path.read_text().splitlines()
        if not line.strip().startswith(("server_requests", "server_metrics", "traces"))
    ]
    path.write_text("\n".join(kept) + "\n")
    case = open_case(path, "ab")
    for table in (tables.server_table, tables.host_table):
        assert str(table(case)).startswith("Not measured")
        assert str(table(case, "zh")).startswith("未测量")
    assert not {f.code for f in case.findings if f.code.startswith("binds_host")}


def test_spans_of_another_run_join_nothing_and_say_so(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "other", ignore=shutil.ignore_patterns(".gpuverdict"))
    spans = tmp_path / "other" / "b" / "spans.jsonl"
    spans.write_text(spans.read_text().replace('"b-', '"z-').replace("17960", "17970"))
    measured = measure(read_campaign(tmp_path / "other"))
    for run in measured.runs_of("b"):
        assert measured.server_joins[run.key].n_joined == 0
        assert run.stored.requests()["server_queue_s"].null_count() == 60
        assert "server_times_partial" in {c.code for c in run.cautions}


def test_a_file_under_the_wrong_key_is_named(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "odd", ignore=shutil.ignore_patterns(".gpuverdict"))
    path = tmp_path / "odd" / "campaign.yaml"
    path.write_text(path.read_text().replace("server_requests: a/spans.jsonl",
                                             "server_requests: a/metrics.prom"))  # fmt: skip
    (lost,) = measure(read_campaign(path)).lost
    assert "server or host metrics" in lost.error
    assert "expected the server's own log of requests" in lost.error


def test_the_samples_own_server_is_read_and_joined(tmp_path: Path) -> None:
    """Card a of the sample: the real server's rows, and its queue beside the client's estimate."""
    for file in SAMPLE.iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "campaign.yaml").write_text(
        "campaign: own\ntime_zone: UTC\nmodel: {name: m}\nworkload: {load: closed}\narms:\n"
        "  a: {gpu: H200 SXM, precision: bf16, sweeps: guidellm-r1.json.gz,"
        " prefill_probe: 'prefill-isl*.json.gz', server_requests: server_requests.jsonl.gz}\n"
        "  b: {gpu: H200 SXM, precision: bf16, factors: {x: 1}, sweeps: guidellm-r2.json.gz,"
        " prefill_probe: 'prefill-isl*.json.gz'}\n"
        "comparisons: [{name: ab, baseline: a, candidate: b, treatment: [x]}]\n"
    )
    case = open_case(tmp_path, "ab")
    truth = {i: row["scheduled_s"] - row["arrival_s"] for i, row in server_rows().items()}
    for s in case.situations:
        if s.arm == "b":
            assert s.server_source == ""
            continue
        (run,) = (r for r in case.measured.runs_of("a") if r.level == s.level)
        fact = case.summary.facts[run.key]
        rows = run.stored.requests().filter(
            status="ok", phase="main"
        )  # the window's own rows, by hand
        inside = [
            truth[i]
            for i, at in rows.select("request_id", "start_s").iter_rows()
            if fact.window.kind == "whole_run"
            or fact.window.start_s <= at <= (fact.window.end_s or 0)
        ]
        assert s.n_server_joined == len(inside)
        assert s.server_queue_s == pytest.approx(sum(inside) / len(inside))
        assert s.excess_estimate_s is not None
        # An upper bound of the queue, within the clock's jitter (data/h200/README.md).
        assert s.excess_estimate_s >= s.server_queue_s - 0.002
