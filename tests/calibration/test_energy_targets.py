"""Targets 33-35 of the method notes: window energy, energy by phase, clock offset."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.calibration.sensed import EPOCH_S, SENSORS, TRUTH, sense
from tests.calibration.simulated import Observed, load, model_of, probe

from gpuverdict.align import clock_offset
from gpuverdict.energy import measure_idle, phase_energy, window_energy
from gpuverdict.phases import fit_prefill
from gpuverdict.schema import Trace

pytestmark = pytest.mark.calibration
LEVELS = {1: 24, 8: 120, 32: 400}


def rng_of(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def placed(seen: Observed, at_s: float = 0.0) -> Observed:
    """Give a simulated run a wall clock."""
    end = float(seen.run.requests["last_token_s"].max())
    info = dict(seen.run.info) | {
        "t0_epoch_s": EPOCH_S + at_s, "t0_quality": "exact", "duration_s": end, "gpu_uuids": None,
    }  # fmt: skip
    return Observed(run=replace(seen.run, info=info), served=seen.served)


@pytest.fixture(scope="module")
def loads() -> dict[int, Observed]:
    rng = rng_of("energy-loads")
    model = model_of("prefill_first")
    return {c: placed(load(model, rng, streams=c, n=n)) for c, n in LEVELS.items()}


@pytest.fixture(scope="module")
def unloaded() -> Observed:
    return probe(model_of("prefill_first"), rng_of("energy-probe"))


@pytest.mark.parametrize("sensor", SENSORS)
@pytest.mark.parametrize(("poll_s", "within"), [(0.1, 0.01), (1.0, 0.04)])
def test_33_energy_of_a_window(loads, sensor, poll_s, within):
    rng = rng_of(f"33-{sensor}-{poll_s}")
    for streams in (8, 32):
        found = sense(loads[streams], rng, sensor=sensor, poll_s=poll_s)
        end = loads[streams].run.info["duration_s"]
        energy = window_energy(found.trace, EPOCH_S + 2.3, EPOCH_S + end - 1.7)
        assert energy.value == pytest.approx(found.joules(2.3, end - 1.7), rel=within)


def test_33_the_counter_is_exact_to_its_refresh(loads):
    found = sense(loads[32], rng_of("33-counter"), counter=True)
    end = loads[32].run.info["duration_s"]
    energy = window_energy(found.trace, EPOCH_S + 2.3, EPOCH_S + end - 1.7)
    assert energy.value == pytest.approx(found.joules(2.3, end - 1.7), rel=0.003)


def one_trace(loads: dict[int, Observed], **how) -> tuple[list, Trace]:
    """Lay the levels one after another, with idle tails, into one trace."""
    runs, frames, at = [], [], 0.0
    for seen in loads.values():
        found = sense(seen, how["rng"], sensor=how["sensor"], poll_s=how["poll_s"],
                      counter=how.get("counter", False))  # fmt: skip
        runs.append(placed(seen, at).run)
        frames.append(found.trace.samples.with_columns(pl.col("time_epoch_s") + at))
        at += runs[-1].info["duration_s"] + 60.0
    return runs, Trace(samples=pl.concat(frames), info={"source_name": "simulated"})


@pytest.mark.parametrize(
    ("sensor", "poll_s", "counter"),
    [
        ("100 ms", 0.1, False),
        ("25 of 100 ms", 0.1, False),
        ("1 s average", 0.1, False),
        ("1 s average", 1.0, False),
        ("1 s average", 0.1, True),
    ],
)
def test_34_energy_by_phase(loads, unloaded, sensor, poll_s, counter):
    rng = rng_of(f"34-{sensor}-{poll_s}-{counter}")
    # Each level's counter starts anew, so the counter is tried on its own traces only.
    runs, trace = one_trace(loads, rng=rng, sensor=sensor, poll_s=poll_s, counter=counter)
    idle = measure_idle(runs, trace)
    assert idle.value == pytest.approx(TRUTH.idle_w, rel=0.01)
    found = phase_energy(runs, trace, idle, probes=[unloaded.run])
    bias = {
        "step_energy_j": (TRUTH.step_j, 0.02),
        "decode_token_energy_j": (TRUTH.decode_token_j, 0.15),
        "prefill_token_energy_j": (TRUTH.prefill_token_j, 0.04),
    }
    for name, (truth, within) in bias.items():
        assert found[name].value == pytest.approx(truth, rel=within), name


def test_34_an_idle_power_left_out_is_refused_and_a_wrong_one_shows(loads, unloaded):
    rng = rng_of("34-idle")
    runs, trace = one_trace(loads, rng=rng, sensor="100 ms", poll_s=0.1)
    refused = phase_energy(runs, trace, None, probes=[unloaded.run])
    assert refused["step_energy_j"].value is None
    assert [c.code for c in refused["step_energy_j"].cautions] == ["idle_unknown"]
    assert refused["energy_per_output_token_j"].value > 0
    # The control: idle power taken as nothing is charged to the step.
    naive = phase_energy(runs, trace, 0.0, probes=[unloaded.run])
    assert naive["step_energy_j"].value / TRUTH.step_j > 1.2


def test_34_two_levels_are_too_few(loads, unloaded):
    two = {c: loads[c] for c in (8, 32)}
    runs, trace = one_trace(two, rng=rng_of("34-two"), sensor="100 ms", poll_s=0.1)
    found = phase_energy(runs, trace, TRUTH.idle_w, probes=[unloaded.run])
    assert found["prefill_token_energy_j"].value is None
    assert "phase_energy_levels" in {c.code for c in found["prefill_token_energy_j"].cautions}


@pytest.mark.parametrize(
    ("streams", "sensor", "poll_s", "within_s"),
    [
        (1, "100 ms", 0.1, 0.020),
        (1, "1 s average", 0.1, 0.020),
        (1, "1 s average", 1.0, 0.060),
        (32, "100 ms", 0.1, 0.120),
        (32, "1 s average", 0.1, 0.120),
    ],
)
@pytest.mark.parametrize("shift_s", [0.0, -1.37])
def test_35_clock_offset(loads, unloaded, streams, sensor, poll_s, within_s, shift_s):
    seen = loads[streams]
    rng = rng_of(f"35-{streams}-{sensor}-{poll_s}-{shift_s}")
    found = sense(seen, rng, sensor=sensor, poll_s=poll_s, shift_s=shift_s)
    offset = clock_offset(seen.run, found.trace, prefill_s=fit_prefill([unloaded.run]).predict)
    assert offset.offset_s == pytest.approx(shift_s, abs=within_s)
    assert offset.peak > 0.8


def test_35_a_sensor_that_looks_at_a_quarter_is_early_by_half_of_the_rest(loads, unloaded):
    found = sense(loads[1], rng_of("35-quarter"), sensor="25 of 100 ms")
    offset = clock_offset(loads[1].run, found.trace, prefill_s=fit_prefill([unloaded.run]).predict)
    assert offset.offset_s == pytest.approx(-0.0375, abs=0.020)


def test_35_power_that_knows_nothing_of_the_run_is_refused(loads):
    rng = rng_of("35-refused")
    found = sense(loads[1], rng)
    noise = found.trace.samples.with_columns(
        pl.Series("power_w", rng.normal(300, 40, found.trace.samples.height))
    )
    offset = clock_offset(loads[1].run, Trace(samples=noise, info={"source_name": "noise"}))
    assert offset.offset_s is None
    assert [c.code for c in offset.cautions] == ["power_unaligned"]
