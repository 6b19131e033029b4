"""End-to-end time taken apart, by hand and on the H200 logs with the server's own rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from ruamel.yaml import YAML
from tests.calibration.phases_table import H200, h200_probes, server_rows
from tests.campaigns import RUN_EFFECTS, two_arms
from tests.unit.guidellm_raw import as_run, raw_levels
from tests.unit.runs import make_run

from gpuverdict.case import open_case
from gpuverdict.measured import join_runs
from gpuverdict.phases import PARTS, split_phases, take_apart
from gpuverdict.recognise import read_any
from gpuverdict.tables import e2e_table


def _run(**extra):
    return make_run(
        {"request_id": ["x", "y"], "start_s": [0.0, 0.0], "first_token_s": [0.5, 0.3],
         "last_token_s": [1.5, 1.3], "input_tokens": [100, 100], "output_tokens": [5, 5], **extra},
        max_concurrency=2,
    )  # fmt: skip


def _probe():
    return make_run({"start_s": [0.0, 9.0, 18.0], "first_token_s": [0.2, 9.2, 18.2],
                     "last_token_s": [0.3, 9.3, 18.3], "input_tokens": [100] * 3,
                     "output_tokens": [4] * 3}, max_concurrency=1)  # fmt: skip


def test_by_hand_without_a_server():
    run = _run()
    parts = take_apart(run, split_phases(run, _probe()), rtt_s=0.05, host_work_s=0.03)
    rows = parts.requests
    assert rows["prefill_s"].to_list() == pytest.approx([0.12, 0.12])
    assert rows["waiting_s"].to_list() == pytest.approx([0.3, 0.1])
    assert rows["network_s"].to_list() == pytest.approx([0.05, 0.05])
    assert rows["unknown_s"].to_list() == pytest.approx([0.0, 0.0], abs=1e-12)
    assert rows["ttft_at_server_s"].to_list() == pytest.approx([0.45, 0.25])
    assert rows["e2e_at_server_s"].to_list() == pytest.approx([1.45, 1.25])
    assert parts.unnamed == ("queue_s",)
    assert parts.share["decode_s"] == pytest.approx(2.0 / 2.8)


def test_what_nothing_tells_is_named():
    run = _run()
    parts = take_apart(run, split_phases(run, _probe()))
    assert parts.unnamed == ("network_s", "host_s", "queue_s")
    assert [c.values["part"] for c in parts.cautions] == ["network", "host", "queue"]
    assert parts.requests["e2e_at_server_s"].null_count() == 2


def test_the_servers_times_give_the_network_exactly():
    run = _run(server_queue_s=[0.25, None], server_prefill_s=[0.2, None],
               server_decode_s=[0.98, None])  # fmt: skip
    parts = take_apart(run, split_phases(run, _probe()), rtt_s=0.01)
    x, y = parts.requests.rows(named=True)
    assert x["network_s"] == pytest.approx(1.5 - 1.43)
    assert (x["queue_s"], x["waiting_s"]) == (0.25, None)
    assert x["unknown_s"] == pytest.approx(0.0, abs=1e-12)
    assert (y["network_s"], y["queue_s"]) == (0.01, None)
    for row in (x, y):
        assert sum(row[name] or 0.0 for name in PARTS) == pytest.approx(row["e2e_s"])


def test_h200_network_is_what_client_minus_server_says():
    truth = server_rows()
    run = as_run(raw_levels(H200 / "card-a-bf16" / "guidellm-r2.json.gz")[2])
    (server,) = read_any(H200 / "card-a-bf16" / "server_requests.jsonl.gz")
    (join,) = join_runs([run], server)
    names = ["server_queue_s", "server_prefill_s", "server_decode_s"]
    requests = run.requests.drop(names).join(
        join.times.select("request_index", *names), on="request_index", how="left"
    )
    run = replace(run, requests=requests.select(run.requests.columns))
    parts = take_apart(run, split_phases(run, h200_probes()))
    by_hand = []
    for row in run.requests.filter(pl.col("status") == "ok").rows(named=True):
        served = truth[row["request_id"]]
        by_hand.append(row["e2e_s"] - (served["finished_s"] - served["arrival_s"]))
    assert parts.requests["network_s"].to_numpy() == pytest.approx(np.array(by_hand), abs=1e-9)
    assert 0.0 < np.median(by_hand) < 0.01
    assert parts.unnamed == ("host_s",)


def test_the_table_of_a_campaign_adds_up_and_takes_out_what_was_declared(tmp_path):
    """The loop is known: without noise every part is what it was made of."""
    client = {"place": "same rack", "rtt_s": 0.004, "host_work_s": 0.002}
    quiet = {"levels": (1, 4), "noise": 1e-9}
    case = two_arms(tmp_path, a=quiet, b=quiet, arm_a={"client": client})
    for run in case.measured.runs:
        parts = case.summary.facts[run.key].e2e_parts_s
        assert sum(parts[name] or 0.0 for name in PARTS) == pytest.approx(parts["e2e_s"])
        factor = np.exp(RUN_EFFECTS[run.repeat_no - 1])
        assert parts["e2e_s"] == pytest.approx((0.05 + 31 * 0.01) * factor, rel=1e-4)
        assert parts["decode_s"] == pytest.approx(31 * 0.01 * factor, rel=1e-4)
        taken = 0.006 if run.arm == "a" else 0.0
        assert parts["prefill_s"] == pytest.approx(0.05 * factor - taken, rel=1e-3)
    table = e2e_table(case)
    row = next(line for line in table.text.splitlines() if line.startswith("a | 1 stream"))
    assert " | 4.000 ms (1 %) | 2.000 ms (0.56 %) | " in row
    assert "a: nothing in the logs tells apart: queue." in table.markup
    assert "b: nothing in the logs tells apart: network and HTTP, host work, queue." in table.markup


def test_the_table_with_the_servers_own_times(tmp_path):
    """The sample's server rows: queue and network are what server and client wrote, by hand."""
    for name in ("card-a-bf16", "card-b-bf16"):
        (tmp_path / name).symlink_to(H200 / name)
    content = YAML(typ="safe").load(H200 / "campaign.yaml")
    arms = {name: content["arms"][name] for name in ("card-a", "card-b")}
    arms["card-a"]["server_requests"] = ["card-a-bf16/server_requests.jsonl.gz"]
    pair = [{"name": "cards", "baseline": "card-a", "candidate": "card-b"}]
    with (tmp_path / "campaign.yaml").open("w", encoding="utf-8") as out:
        YAML(typ="safe").dump({**content, "arms": arms, "comparisons": pair}, out)
    case = open_case(tmp_path / "campaign.yaml")
    truth = server_rows()
    for run in case.measured.runs_of("card-a"):
        window = case.summary.facts[run.key].window
        rows = run.stored.requests().filter(
            pl.col("status") == "ok", pl.col("start_s") >= window.start_s - 1e-9
        )
        served = [truth[name] for name in rows["request_id"]]
        spent = [s["finished_s"] - s["arrival_s"] for s in served]
        parts = case.summary.facts[run.key].e2e_parts_s
        queue = np.mean([s["scheduled_s"] - s["arrival_s"] for s in served])
        assert parts["queue_s"] == pytest.approx(queue, abs=1e-9)
        assert parts["network_s"] == pytest.approx(rows["e2e_s"].mean() - np.mean(spent), abs=1e-9)
    table = e2e_table(case).markup
    assert "card-a: nothing in the logs tells apart: host work." in table
    assert "card-b: nothing in the logs tells apart: network and HTTP, host work, queue." in table
