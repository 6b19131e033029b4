"""End-to-end time taken apart, by hand and on the H200 logs with the server's own rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.calibration.phases_table import H200, h200_probes, server_rows
from tests.unit.guidellm_raw import as_run, raw_levels
from tests.unit.runs import make_run

from gpuverdict.measured import join_runs
from gpuverdict.phases import PARTS, split_phases, take_apart
from gpuverdict.recognise import read_any


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
