"""The simulated sample through the whole of the package: the known truth must come out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.simulator.make_sample import make_sample

from gpuverdict import read_trace, window_energy
from gpuverdict.case import Case, open_case

pytestmark = pytest.mark.calibration


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    return make_sample(tmp_path_factory.mktemp("sample"), requests=250, starts=4)


@pytest.fixture(scope="module")
def truth(sample) -> dict:
    return json.loads((sample.parent / "truth.json").read_text())


@pytest.fixture(scope="module")
def case(sample) -> Case:
    return open_case(sample)


def true_ratio(truth: dict, level: int) -> float:
    """Ratio of the geometric means over starts of the true decode steps."""
    logs = {
        arm: np.mean(
            [
                math.log(facts["decode_step_s"][f"c{level}"])
                for name, facts in truth["runs"].items()
                if name.startswith(arm)
            ]
        )
        for arm in ("baseline", "candidate")
    }
    return math.exp(logs["candidate"] - logs["baseline"])


def test_the_ratio_of_decode_at_one_stream_is_found_with_its_word(case, truth):
    cell = case.verdict.cell("tpot_s", "p50", '{"concurrency": 1}')
    ratio = true_ratio(truth, 1)
    assert ratio == pytest.approx(0.905, abs=0.01)
    assert cell.comparison.low <= ratio <= cell.comparison.high
    assert cell.comparison.ratio == pytest.approx(ratio, rel=0.005)
    assert cell.verdict == "faster"


def test_users_and_device_disagree_at_many_streams(truth):
    """The candidate's own step is longer at 64 streams: the curves really cross."""
    assert true_ratio(truth, 16) < 1.0 < true_ratio(truth, 64)


def test_energy_of_a_start_within_one_percent(sample, truth):
    for arm in ("baseline", "candidate"):
        trace = read_trace(sample.parent / arm / "trace_r1.csv.gz", time_zone="UTC")
        epoch = trace.samples["time_epoch_s"]
        start, end = float(epoch.min()) + 0.5, float(epoch.max()) - 0.5
        # Half a second of idle power is missing at either end.
        total = truth["runs"][f"{arm}-r1"]["energy_j"] - truth[arm]["idle_w"] * 1.0
        found = window_energy(trace, start, end)
        assert found.value == pytest.approx(total, rel=0.01)


def test_no_run_of_the_sample_is_called_unhealthy(case):
    frame = case.health.frame
    assert not frame.disturbed.any()
    assert not frame.throttle.any()
    # At one stream nothing settles: 6 runs x 3 metrics at a false alarm rate near 1 %.
    alone = frame[frame.level == '{"concurrency": 1}']
    assert (alone.drift != "").sum() <= 1


def test_the_order_of_the_starts_is_recognised(case):
    codes = [caution.code for caution in case.verdict.comparability.reasons]
    assert "order_not_as_planned" not in codes
    assert "simulated" in codes
