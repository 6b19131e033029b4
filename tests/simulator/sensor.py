"""A power sensor and `nvidia-smi --query-gpu` over a served load: known energy, known readings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from tests.simulator.server import Served


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerModel:
    """Truth of the energy: idle watts, joules a step, a decoded token, a prefilled token."""

    idle_w: float = 90.0
    step_j: float = 2.0
    decode_token_j: float = 0.05
    prefill_token_j: float = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Exact energy over time: `at(t)` is the joules used since time 0."""

    power: PowerModel
    times_s: np.ndarray
    joules: np.ndarray

    def at(self, moment: np.ndarray | float) -> np.ndarray:
        active = np.interp(moment, self.times_s, self.joules)
        return active + self.power.idle_w * np.asarray(moment)


def energy_of(power: PowerModel, loads: list[tuple[float, Served]]) -> Energy:
    """Sum the energy of loads that begin at given moments; each step's is spread over the step."""
    times, joules, total = [np.array([0.0])], [np.array([0.0])], 0.0
    for begin, served in loads:
        made = served.step_decodes
        each = (
            power.step_j + power.decode_token_j * made + power.prefill_token_j * served.step_prefill
        )
        start = begin + served.step_end_s - served.step_s
        end = begin + served.step_end_s
        used = total + np.cumsum(each)
        times.append(np.column_stack([start, end]).ravel())
        joules.append(np.column_stack([used - each, used]).ravel())
        total = float(used[-1])
    return Energy(power=power, times_s=np.concatenate(times), joules=np.concatenate(joules))


def readings(
    energy: Energy, moments_s: np.ndarray, *, window_s: float, update_s: float = 0.1
) -> np.ndarray:
    """Mean power of the last `window_s`, refreshed every `update_s`."""
    fresh = np.floor(moments_s / update_s) * update_s
    return (energy.at(fresh) - energy.at(fresh - window_s)) / window_s


def nvidia_smi_csv(
    energy: Energy,
    rng: np.random.Generator,
    *,
    t0_epoch_s: float,
    end_s: float,
    uuid: str,
    name: str,
    busy: list[tuple[float, float]],
    step_s: float = 0.1,
    gain: float = 1.0,
    limit_w: float = 700.0,
    memory_mib: int = 81_559,
    memory_used_mib: int = 70_000,
) -> str:
    """Write the samples as `nvidia-smi --query-gpu=... --format=csv -lms 100` prints them (UTC)."""
    moments = np.cumsum(rng.uniform(1.0, 1.06, int(end_s / step_s / 1.03)) * step_s)
    moments = moments[moments < end_s]
    instant = gain * readings(energy, moments, window_s=0.1)
    average = gain * readings(energy, moments, window_s=1.0)
    active = np.zeros(moments.size, bool)
    for start, end in busy:
        active |= (moments >= start) & (moments <= end)
    lines = [
        "timestamp, index, uuid, name, pstate, utilization.gpu [%], utilization.memory [%], "
        "memory.used [MiB], memory.total [MiB], power.draw.average [W], power.draw.instant [W], "
        "enforced.power.limit [W], temperature.gpu, clocks.current.sm [MHz], "
        "clocks.current.memory [MHz], clocks_event_reasons.active"
    ]
    warm = 35.0
    for moment, mean, now, on in zip(moments, average, instant, active, strict=True):
        warm += 0.002 * ((30 + 0.06 * now) - warm)
        stamp = datetime.fromtimestamp(t0_epoch_s + moment, UTC)
        when = stamp.strftime("%Y/%m/%d %H:%M:%S.") + f"{stamp.microsecond // 1000:03d}"
        load = ("P0, 99 %, 60 %", "1980 MHz, 2619 MHz, 0x0000000000000000")
        rest = ("P0, 0 %, 0 %", "345 MHz, 2619 MHz, 0x0000000000000001")
        before, after = load if on else rest
        lines.append(
            f"{when}, 0, {uuid}, {name}, {before}, {memory_used_mib} MiB, {memory_mib} MiB, "
            f"{mean:.2f} W, {now:.2f} W, {limit_w:.2f} W, {warm:.0f}, {after}"
        )
    return "\n".join(lines) + "\n"
