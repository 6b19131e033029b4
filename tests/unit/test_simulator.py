"""The simulator against the recorded truth of a mock server, against its own model, and physics."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from tests.simulator.client import watch
from tests.simulator.sensor import PowerModel, energy_of, readings
from tests.simulator.server import Served, ServerModel, serve

CLIENTS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "clients"
PROFILES = ("a100-sxm-80g", "a100-pcie-80g", "rtx4090-24g", "rtx4090x2-tp2")


def _levels(profile: str) -> dict[int, tuple[dict, int, list[dict]]]:
    """Concurrency -> (true parameters, requests, finished rows of the first undisturbed repeat)."""
    found: dict[int, tuple[dict, int, list[dict]]] = {}
    for folder in sorted((CLIENTS / "vllm-bench-0.32.0").glob(f"{profile}_c*_r1")):
        facts = json.loads((folder / "manifest.json").read_text())
        with gzip.open(folder / "truth_server.jsonl.gz", "rt") as file:
            rows = [json.loads(line) for line in file]
        expected = facts["expected"]
        rows = [row for row in rows if row["end"] == "length"]
        found[expected["concurrency"]] = (facts["truth_params"], expected["requests"], rows)
    return found


@pytest.mark.shared
@pytest.mark.skipif(not CLIENTS.exists(), reason="the client logs are not beside the repository")
@pytest.mark.parametrize("profile", PROFILES)
def test_the_recorded_truth_is_reproduced(profile):
    steps = {}
    for streams, (truth, n, rows) in _levels(profile).items():
        model = ServerModel(
            alpha_s=truth["alpha"], beta_s=truth["beta"], kv_s_per_token=truth["gamma"],
            prefill_s_per_token=1 / truth["prefill_rate"], prefill_s_per_token2=0.0,
            jitter=truth["jitter"],
        )  # fmt: skip
        served = serve(
            model, np.full(n, 256), np.full(n, 64), np.random.default_rng(streams), streams=streams
        )
        ours = float(np.median((served.last_s - served.first_s) / 63))
        theirs = float(np.median([(r["t_last"] - r["t_first"]) / 63 for r in rows]))
        assert ours == pytest.approx(theirs, rel=0.05)
        steps[streams] = (ours, theirs)
        if streams == 1:
            prefill = float(np.median(served.first_s - served.scheduled_s))
            recorded = float(np.median([r["t_first"] - r["t_sched"] for r in rows]))
            assert prefill == pytest.approx(recorded, rel=0.05)
            assert prefill == pytest.approx(truth["alpha"] + 256 / truth["prefill_rate"], rel=0.05)
            context = 256 + 32
            step = truth["alpha"] + truth["beta"] + truth["gamma"] * context
            assert ours == pytest.approx(step, rel=0.05)


def _mixed(model: ServerModel, streams: int, n: int = 400, seed: int = 0) -> Served:
    rng = np.random.default_rng(seed)
    prompts = np.exp(rng.uniform(np.log(128), np.log(4096), n)).astype(int)
    return serve(model, prompts, rng.integers(1, 256, n), rng, streams=streams)


@pytest.mark.parametrize("policy", ["chunked", "prefill_first"])
def test_every_token_is_made_once_and_in_order(policy):
    budget = 2048 if policy == "chunked" else 8192
    served = _mixed(ServerModel(policy=policy, budget_tokens=budget), 16)
    assert [len(t) for t in served.token_s] == served.output_tokens.tolist()
    assert all((np.diff(t) > 0).all() for t in served.token_s)
    assert np.array_equal([t[0] for t in served.token_s], served.first_s)
    assert np.array_equal([t[-1] for t in served.token_s], served.last_s)
    assert (served.scheduled_s >= served.arrival_s).all()
    # Each decoded token is one request in one decode step; the first ones come from prefill.
    assert served.step_decodes.sum() == served.output_tokens.sum() - served.output_tokens.size
    assert served.step_prefill.sum() == served.prompt_tokens.sum()
    assert served.step_decodes.max() <= 16
    if policy == "prefill_first":
        assert not ((served.step_prefill > 0) & (served.step_decodes > 0)).any()
    else:
        assert (served.step_prefill + served.step_decodes).max() <= budget


def test_steps_follow_the_stated_model():
    served = _mixed(ServerModel(jitter=0.0, kv_s_per_token=0.0, prefill_s_per_token2=0.0), 32)
    expected = 0.008 + 0.06e-3 * (served.step_decodes + served.step_prefill)
    assert served.step_s == pytest.approx(expected, rel=1e-9)
    assert np.diff(served.step_end_s).min() > 0


def test_slots_cap_the_batch_and_queue_the_rest():
    served = _mixed(ServerModel(slots=8), 64)
    assert served.step_decodes.max() == 8
    assert np.median(served.scheduled_s - served.arrival_s) > 1.0


def test_an_open_loop_keeps_its_arrivals():
    rng = np.random.default_rng(1)
    arrivals = np.cumsum(rng.exponential(0.2, 300))
    served = serve(ServerModel(), np.full(300, 500), np.full(300, 50), rng, arrival_s=arrivals)
    assert np.array_equal(served.arrival_s, arrivals)
    assert (served.first_s > arrivals).all()


def test_the_client_sees_everything_late_and_in_order():
    served = _mixed(ServerModel(), 4)
    seen = watch(served, np.random.default_rng(2))
    assert (seen.start_s < served.arrival_s).all()
    assert (seen.first_s - served.first_s >= 0.001).all()
    assert all((np.diff(t) >= 0).all() for t in seen.token_s)


def test_the_sensors_conserve_energy():
    served = _mixed(ServerModel(), 8)
    power = PowerModel()
    energy = energy_of(power, [(10.0, served)])
    end = 10.0 + served.step_end_s[-1]
    by_hand = (
        power.idle_w * end
        + power.step_j * served.step_s.size
        + power.decode_token_j * served.step_decodes.sum()
        + power.prefill_token_j * served.step_prefill.sum()
    )
    assert float(energy.at(end)) == pytest.approx(by_hand)
    grid = np.arange(0.1, end + 0.1, 0.1)
    instant = readings(energy, grid + 1e-9, window_s=0.1)
    assert float(instant.sum() * 0.1) == pytest.approx(by_hand, rel=0.01)
    assert readings(energy, np.array([9.0]), window_s=1.0)[0] == pytest.approx(90.0)


def test_the_simulator_imports_nothing_of_the_package():
    folder = Path(__file__).resolve().parents[1] / "simulator"
    for path in folder.glob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            words = line.split()
            assert words[:1] not in (["import"], ["from"]) or "gpuverdict" not in line, path.name
