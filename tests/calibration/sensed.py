"""Served loads under simulated power sensors: exact joules, polled readings, canonical traces.

The truth charges a decode step, each decoded token and each prefilled token; idle power runs on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from tests.calibration.simulated import Observed
from tests.simulator.sensor import Energy, PowerModel, readings
from tests.simulator.server import Served

from gpuverdict.schema import GPU_SAMPLES, Trace, conform

EPOCH_S = 1_796_090_400.0
TAIL_S = 15.0
# Averaging window of each kind of sensor, all refreshed every 100 ms.
SENSORS = {"100 ms": 0.1, "25 of 100 ms": 0.025, "1 s average": 1.0}
TRUTH = PowerModel(idle_w=90.0, step_j=2.0, decode_token_j=0.05, prefill_token_j=0.02)


@dataclass(frozen=True, slots=True)
class Sensed:
    """One load with its exact energy and what a sensor said; times in seconds since t0."""

    trace: Trace
    energy: Energy

    def joules(self, start_s: float, end_s: float) -> float:
        # The energy curve counts from the beginning of its tail.
        return float(self.energy.at(end_s + TAIL_S) - self.energy.at(start_s + TAIL_S))


def exact(served: Served, power: PowerModel = TRUTH) -> Energy:
    """Cumulative joules above idle, each step's spread over the step."""
    made = served.step_decodes
    each = (
        power.step_j * (made > 0)
        + power.decode_token_j * made
        + power.prefill_token_j * served.step_prefill
    )
    end = served.step_end_s + TAIL_S
    used = np.cumsum(each)
    times = np.column_stack([end - served.step_s, end]).ravel()
    joules = np.column_stack([used - each, used]).ravel()
    return Energy(
        power=power,
        times_s=np.concatenate([[0.0], times]),
        joules=np.concatenate([[0.0], joules]),
    )


def sense(
    seen: Observed,
    rng: np.random.Generator,
    *,
    sensor: str = "100 ms",
    poll_s: float = 0.1,
    counter: bool = False,
    shift_s: float = 0.0,
    power: PowerModel = TRUTH,
) -> Sensed:
    """Poll a sensor beside a load; the trace's clock is `shift_s` ahead of the client's."""
    energy = exact(seen.served, power)
    end = float(np.nanmax(seen.served.last_s)) + 2 * TAIL_S
    moments = np.cumsum(rng.uniform(1.0, 1.06, int(end / poll_s)) * poll_s)
    moments = moments[(moments < end) & (moments > 1.1)]
    watts = readings(energy, moments, window_s=SENSORS[sensor]) * rng.normal(1, 2e-3, moments.size)
    # The refresh is an event of the device: the reading is that of the last tick of 100 ms.
    column = "power_average_w" if sensor == "1 s average" else "power_instant_w"
    rows = {
        "trace_id": ["t"] * moments.size,
        "gpu_uuid": ["GPU-1"] * moments.size,
        "time_epoch_s": EPOCH_S + moments - TAIL_S + shift_s,
        "elapsed_s": moments,
        "power_w": watts,
        column: watts,
        "power_kind": ["avg1s" if sensor == "1 s average" else "instant"] * moments.size,
    }
    if counter:
        rows["energy_j"] = energy.at(np.floor(moments / 0.1) * 0.1)
    frame = conform(pl.DataFrame(rows), GPU_SAMPLES)
    return Sensed(Trace(samples=frame, info={"source_name": "simulated"}), energy)
