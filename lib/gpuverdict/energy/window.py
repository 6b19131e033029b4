"""Joules, watts, clocks and memory of a window of a trace, with the audit rules that refuse.

A window is given in epoch seconds. Every function answers for all GPUs of the trace together; a
number that the samples do not carry is null, with the reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.schema import Trace
from gpuverdict.telemetry.samples import SLOWDOWN_BITS
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["TELEMETRY_UNITS", "traced_gpus", "trapezoid", "window_energy", "window_telemetry"]

# method notes 16.2
MAX_GAP_S = 3.0
MIN_SAMPLES = 3
SHORT_WINDOW_S = 10.0
# A counter read every 30 s still knows the energy of ten minutes; only its edges are interpolated.
COUNTER_EDGE_SHARE = 0.05
MIN_AVERAGED_WINDOW_S = 5.0
COUNTER_TOLERANCE = 0.05
# A one-second trailing mean describes the middle of its second.
AVERAGED_LAG_S = 0.5
MIN_PLAUSIBLE_W = 5.0
# No card sold draws more; used only where the trace does not state the limit.
MAX_BOARD_W = 1400.0

# method notes 16.4
MIN_BUSY_SAMPLES = 30
MIN_BUSY_SHARE = 0.5

TELEMETRY_UNITS: dict[str, str] = {
    "power_w": "w",
    "energy_j": "j",
    "memory_used_mib": "mib",
    "sm_clock_mhz": "mhz",
    "sm_clock_spread_ratio": "ratio",
    "throttled_ratio": "ratio",
}


@dataclass(frozen=True, slots=True)
class _Part:
    """Energy of one GPU: joules (None with its refusal), samples used, reservations."""

    joules: float | None
    n: int
    cautions: tuple[Caution, ...]


def trapezoid(time_s: np.ndarray, power_w: np.ndarray, start_s: float, end_s: float) -> float:
    """Integrate power over a window, interpolated linearly at both edges.

    Parameters
    ----------
    time_s, power_w : numpy.ndarray
        Samples in rising time that bracket the window.

    Examples
    --------
    >>> trapezoid(np.array([0.0, 1.0, 2.0]), np.array([100.0, 100.0, 200.0]), 0.5, 2.0)
    200.0
    """
    inside = (time_s > start_s) & (time_s < end_s)
    edges = np.interp([start_s, end_s], time_s, power_w)
    times = np.concatenate([[start_s], time_s[inside], [end_s]])
    watts = np.concatenate([[edges[0]], power_w[inside], [edges[1]]])
    return float(np.trapezoid(watts, times))


def window_energy(
    trace: Trace, start_s: float, end_s: float, *, gpus: int | None = None
) -> Estimate:
    """Energy drawn in a window, summed over the GPUs of the trace.

    Parameters
    ----------
    trace : Trace
        Samples with `time_epoch_s` and `power_w`; `energy_j`, `power_instant_w` are preferred
        where present.
    start_s, end_s : float
        Epoch seconds.
    gpus : int, optional
        How many GPUs are declared; another number in the trace is refused (`gpu_count`).

    Returns
    -------
    Estimate
        In joules; `n` counts samples inside the window. The value is None with one of the codes
        `no_clock`, `gpu_count`, `no_bracket`, `gap`, `too_few`, `implausible`.

    Raises
    ------
    ParameterError
        For window edges that are no numbers.

    Notes
    -----
    The hardware counter is interpolated at both edges; else power is integrated by trapezoids,
    E = sum (p_i + p_{i+1}) / 2 * (t_{i+1} - t_i), from the instantaneous column, else from the
    averaged one moved back by half its second. A trailing mean smears work over the window's edges,
    and the gain error of the sensor (about 5 %) is in every value and shrinks with no repetition
    (Yang, Adámek and Armour, SC24, arXiv:2312.02741).

    Examples
    --------
    >>> from gpuverdict.schema import GPU_SAMPLES, conform
    >>> rows = {"trace_id": "t", "time_epoch_s": [0.0, 1.0, 2.0], "power_w": [100.0, 300.0, 300.0]}
    >>> frame = conform(pl.DataFrame(rows), GPU_SAMPLES)
    >>> print(window_energy(Trace(samples=frame), 0.0, 2.0))
    500.0 J (short_window)
    """
    try:
        start_s, end_s = float(start_s), float(end_s)
    except (TypeError, ValueError):
        raise ParameterError(
            "window", found=f"{start_s!r:.40} to {end_s!r:.40}", expected="epoch seconds"
        ) from None
    if not end_s > start_s:
        return Estimate(value=None, unit="j", cautions=(caution("window_empty"),))
    frames = _by_gpu(trace)
    if gpus is not None and len(frames) != gpus:
        reason = caution("gpu_count", found=len(frames), expected=gpus)
        return Estimate(value=None, unit="j", cautions=(reason,))
    if not frames or trace.samples["time_epoch_s"].null_count() == trace.samples.height:
        reason = caution("no_clock", name=str(trace.info.get("source_name", "the trace")))
        return Estimate(value=None, unit="j", cautions=(reason,))
    parts = [_energy_of(gpu, frame, start_s, end_s) for gpu, frame in frames.items()]
    cautions = [note for part in parts for note in part.cautions]
    if end_s - start_s < SHORT_WINDOW_S:
        cautions.append(caution("short_window", window_s=end_s - start_s))
    # One missing GPU makes the sum unknown, never smaller.
    joules = [part.joules for part in parts]
    total = None if None in joules else math.fsum(j for j in joules if j is not None)
    return Estimate(
        value=total, unit="j", n=sum(part.n for part in parts), cautions=_once(cautions)
    )


def window_telemetry(
    trace: Trace, start_s: float, end_s: float, *, gpus: int | None = None
) -> dict[str, Estimate]:
    """Power, energy, memory peak, clock and throttling of a window.

    Returns
    -------
    dict
        `power_w` (energy / window), `energy_j`, `memory_used_mib` (largest sample, summed over
        GPUs), `sm_clock_mhz` (median of busy samples), `sm_clock_spread_ratio` ((max - min) /
        median of busy samples), `throttled_ratio` (busy samples with a slow-down bit / busy
        samples). Null, with the reason, where the trace does not carry it.

    Notes
    -----
    Busy means `gpu_util_ratio` > 0: the share of the last fraction of a second with any kernel. It
    says nothing of how hard the GPU worked. Idle, application-clock, sync-boost and display bits
    are no slow-down.
    """
    energy = window_energy(trace, start_s, end_s, gpus=gpus)
    power = None if energy.value is None else energy.value / (end_s - start_s)
    inside = trace.samples.filter(pl.col("time_epoch_s").is_between(start_s, end_s))
    held = traced_gpus(trace)
    if gpus is not None and held != gpus:
        # Whose memory, whose clock? A sum or a median over other cards would look plausible.
        why = (caution("gpu_count", found=held, expected=gpus),)
        return {
            name: Estimate(value=None, unit=unit, cautions=why)
            for name, unit in TELEMETRY_UNITS.items()
        }
    busy, notes = _busy(inside)
    return {
        "power_w": Estimate(value=power, unit="w", n=energy.n, cautions=energy.cautions),
        "energy_j": energy,
        "memory_used_mib": _memory_peak(trace, inside, start_s, end_s),
        "sm_clock_mhz": _clock(busy, notes),
        "sm_clock_spread_ratio": _clock_spread(busy, notes),
        "throttled_ratio": _throttled(busy, notes),
    }


def traced_gpus(trace: Trace) -> int:
    """Count the GPUs of a trace, by UUID, else by index; samples of neither are one GPU's."""
    return len(_by_gpu(trace))


def _by_gpu(trace: Trace) -> dict[str, pl.DataFrame]:
    """Split samples by UUID, else index, else take them as one GPU, each in rising time."""
    who = pl.coalesce(pl.col("gpu_uuid"), pl.col("gpu_index").cast(pl.String), pl.lit("GPU"))
    parts = trace.samples.with_columns(who.alias("_who")).partition_by(
        "_who", as_dict=True, maintain_order=True
    )
    return {
        str(key[0]): frame.drop_nulls("time_epoch_s").sort("time_epoch_s", maintain_order=True)
        for key, frame in parts.items()
    }


def _energy_of(gpu: str, frame: pl.DataFrame, start_s: float, end_s: float) -> _Part:
    counter, why = _from_counter(gpu, frame, start_s, end_s)
    samples = _from_samples(gpu, frame, start_s, end_s)
    if counter is None:
        return _plausible(gpu, frame, _Part(samples.joules, samples.n, why + samples.cautions),
                          end_s - start_s)  # fmt: skip
    notes = list(why)
    apart = samples.joules is not None and not _agree(counter, samples.joules)
    if apart and not any(c.code == "averaged_short_window" for c in samples.cautions):
        notes.append(
            caution("counter_mismatch", gpu=gpu, samples_j=samples.joules, counter_j=counter)
        )
    n = max(samples.n, frame.filter(pl.col("time_epoch_s").is_between(start_s, end_s)).height)
    return _plausible(gpu, frame, _Part(counter, n, tuple(notes)), end_s - start_s)


def _agree(one: float, other: float) -> bool:
    return abs(one - other) <= COUNTER_TOLERANCE * max(abs(one), abs(other))


def _from_counter(
    gpu: str, frame: pl.DataFrame, start_s: float, end_s: float
) -> tuple[float | None, tuple[Caution, ...]]:
    held = frame.drop_nulls("energy_j")
    if held.height < 2:
        return None, ()
    time = held["time_epoch_s"].to_numpy()
    energy = held["energy_j"].to_numpy()
    if time[0] > start_s or time[-1] < end_s:
        return None, ()
    first = max(0, int(np.searchsorted(time, start_s, side="right")) - 1)
    last = min(len(time) - 1, int(np.searchsorted(time, end_s, side="left")))
    edges = max(time[first + 1] - time[first], time[last] - time[last - 1])
    if edges > max(MAX_GAP_S, COUNTER_EDGE_SHARE * (end_s - start_s)):
        # Scraped too rarely for a window this short: the edges would be guessed.
        return None, (caution("gap", gpu=gpu, gap_s=float(edges)),)
    if np.any(np.diff(energy[first : last + 1]) < 0):
        return None, (caution("counter_restarted", gpu=gpu),)
    at = np.interp([start_s, end_s], time, energy)
    return float(at[1] - at[0]), ()


def _from_samples(gpu: str, frame: pl.DataFrame, start_s: float, end_s: float) -> _Part:
    instant = frame.drop_nulls("power_instant_w")
    if instant.height >= MIN_SAMPLES:
        held, column, averaged = instant, "power_instant_w", False
    else:
        held, column = frame.drop_nulls("power_w"), "power_w"
        averaged = bool((held["power_kind"] == "avg1s").any())
    time = held["time_epoch_s"].to_numpy()
    watts = held[column].to_numpy()
    if averaged:
        time = time - AVERAGED_LAG_S
    n = int(((time >= start_s) & (time <= end_s)).sum())
    if not len(time) or time[0] > start_s or time[-1] < end_s:
        return _Part(None, n, (caution("no_bracket", gpu=gpu),))
    if n < MIN_SAMPLES:
        return _Part(None, n, (caution("too_few", n=n, gpu=gpu),))
    touching = (time[1:] > start_s) & (time[:-1] < end_s)
    longest = float(np.diff(time)[touching].max())
    if longest > MAX_GAP_S:
        return _Part(None, n, (caution("gap", gpu=gpu, gap_s=longest),))
    notes: list[Caution] = []
    if averaged:
        notes.append(caution("averaged_power", gpu=gpu))
        if end_s - start_s < MIN_AVERAGED_WINDOW_S:
            notes.append(caution("averaged_short_window", gpu=gpu, window_s=end_s - start_s))
    return _Part(trapezoid(time, watts, start_s, end_s), n, tuple(notes))


def _plausible(gpu: str, frame: pl.DataFrame, part: _Part, window_s: float) -> _Part:
    if part.joules is None:
        return part
    limit = frame["power_limit_w"].max()
    ceiling = 2.0 * (float(limit) if isinstance(limit, float) else MAX_BOARD_W)
    power = part.joules / window_s
    if MIN_PLAUSIBLE_W <= power <= ceiling:
        return part
    note = caution("implausible", gpu=gpu, power_w=power, low_w=MIN_PLAUSIBLE_W, high_w=ceiling)
    return _Part(None, part.n, (*part.cautions, note))


def _busy(inside: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Caution, ...]]:
    if inside["gpu_util_ratio"].null_count() == inside.height:
        return inside, (caution("busy_unknown"),) if inside.height else ()
    busy = inside.filter(pl.col("gpu_util_ratio") > 0)
    share = busy.height / inside.height
    if busy.height < MIN_BUSY_SAMPLES or share < MIN_BUSY_SHARE:
        return busy, (caution("few_busy_samples", n=busy.height, share=share),)
    return busy, ()


def _memory_peak(trace: Trace, inside: pl.DataFrame, start_s: float, end_s: float) -> Estimate:
    held = inside.drop_nulls("memory_used_mib")
    if not held.height:
        return _absent("memory_used_mib", "mib")
    for gpu, frame in _by_gpu(trace).items():
        time = frame.drop_nulls("memory_used_mib")["time_epoch_s"]
        # Half of a window has a largest sample too: it is not the peak of the window.
        early, late = time.min(), time.max()
        if early is None or early > start_s + MAX_GAP_S or late < end_s - MAX_GAP_S:  # type: ignore[operator]
            return Estimate(value=None, unit="mib", cautions=(caution("no_bracket", gpu=gpu),))
    who = pl.coalesce(pl.col("gpu_uuid"), pl.col("gpu_index").cast(pl.String), pl.lit("GPU"))
    peaks = held.group_by(who.alias("gpu")).agg(pl.col("memory_used_mib").max())
    return Estimate(value=float(peaks["memory_used_mib"].sum()), unit="mib", n=held.height)


def _clock(busy: pl.DataFrame, notes: tuple[Caution, ...]) -> Estimate:
    clocks = busy["sm_clock_mhz"].drop_nulls()
    if not len(clocks):
        return _absent("sm_clock_mhz", "mhz")
    return Estimate(
        value=float(np.median(clocks.to_numpy())), unit="mhz", n=len(clocks), cautions=notes
    )


def _clock_spread(busy: pl.DataFrame, notes: tuple[Caution, ...]) -> Estimate:
    clocks = busy["sm_clock_mhz"].drop_nulls().to_numpy()
    if not len(clocks) or np.median(clocks) == 0:
        return _absent("sm_clock_mhz", "ratio")
    spread = float((clocks.max() - clocks.min()) / np.median(clocks))
    return Estimate(value=spread, unit="ratio", n=len(clocks), cautions=notes)


def _throttled(busy: pl.DataFrame, notes: tuple[Caution, ...]) -> Estimate:
    masks = busy["throttle_mask"].drop_nulls().to_numpy()
    if not len(masks):
        return _absent("throttle_mask", "ratio")
    slowed = (masks & np.uint64(SLOWDOWN_BITS)) != 0
    return Estimate(value=float(slowed.mean()), unit="ratio", n=len(masks), cautions=notes)


def _absent(column: str, unit: str) -> Estimate:
    return Estimate(value=None, unit=unit, cautions=(caution("column_absent", column=column),))


def _once(cautions: list[Caution]) -> tuple[Caution, ...]:
    kept: dict[tuple[str, str], Caution] = {}
    for note in cautions:
        kept.setdefault((note.code, note.message), note)
    return tuple(kept.values())
