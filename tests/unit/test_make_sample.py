"""The simulated sample: readable, marked, the same bytes every time, with its truth beside it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.simulator.make_sample import make_sample

from gpuverdict import read_campaign, read_run, read_trace, split_phases
from gpuverdict.steady import find_windows


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    return make_sample(tmp_path_factory.mktemp("sample"), requests=120, starts=1).parent


def test_every_title_says_that_it_is_simulated(sample):
    campaign = read_campaign(sample / "campaign.yaml")
    assert campaign.simulated
    assert "Simulated" in campaign.title
    assert all("Simulated" in arm.gpu.name for arm in campaign.arms.values())
    assert len(campaign.comparisons) == 1


def test_logs_and_traces_are_read_as_what_they_claim_to_be(sample):
    (run,) = read_run(sample / "baseline" / "c16_r1.jsonl.gz")
    assert run.info["source_format"] == "aiperf"
    assert (run.info["n_ok"], run.info["max_concurrency"]) == (120, 16)
    assert run.cautions == ()
    trace = read_trace(sample / "baseline" / "trace_r1.csv.gz", time_zone="UTC")
    start = run.info["t0_epoch_s"]
    inside = trace.samples["time_epoch_s"].is_between(start, start + run.info["duration_s"])
    busy = trace.samples.filter(inside)["power_instant_w"].mean()
    idle = trace.samples["power_instant_w"][:50].mean()
    assert idle == pytest.approx(90.0, abs=1.0)
    assert busy > 300.0


def test_the_truth_comes_back_from_the_logs(sample):
    truth = json.loads((sample / "truth.json").read_text())
    for arm in ("baseline", "candidate"):
        facts = truth["runs"][f"{arm}-r1"]
        probes = read_run(sample / arm / "probe_r1.jsonl.gz")
        for level in (1, 16):
            (run,) = read_run(sample / arm / f"c{level}_r1.jsonl.gz")
            (window,) = find_windows([run], level)
            step = split_phases(run, probes, window).decode_step_s
            assert step.value == pytest.approx(facts["decode_step_s"][f"c{level}"], rel=0.02)
        fit = split_phases(run, probes).prefill
        true = truth[arm]["prefill_s_per_token"] * facts["speed"]
        assert fit.c1_s_per_token.value == pytest.approx(true, rel=0.05)
        assert np.isfinite(fit.predict(np.array([300.0]))).all()


def test_the_same_bytes_every_time(sample, tmp_path):
    again = make_sample(tmp_path, requests=120, starts=1).parent
    names = sorted(p.relative_to(sample) for p in sample.rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(again) for p in again.rglob("*") if p.is_file())
    assert all((sample / n).read_bytes() == (again / n).read_bytes() for n in names)
