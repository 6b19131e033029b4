"""Joules by phase: what a decode step, a decoded token and a prefilled token cost.

One level cannot tell the three apart, and an idle power left free swallows the step. So: at least
three levels, the idle power measured, and the activity averaged like the sensor averages power.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats
from scipy.optimize import nnls

from gpuverdict.align import activity_of, place
from gpuverdict.align.offset import SENSOR_UPDATE_S, sensor_window
from gpuverdict.energy.window import window_energy
from gpuverdict.errors import Caution
from gpuverdict.phases import fit_prefill, prefill_envelope
from gpuverdict.phases.prefill import PrefillModel
from gpuverdict.schema import Run, Trace
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["decode_token_energy", "measure_idle", "phase_energy"]

# method notes 16.5
FEWEST_LEVELS = 3
BIN_S = 1.0
IDLE_TAIL_S = 10.0
IDLE_REACH_S = 60.0
# A trailing one-second average still holds the load that ended a second ago.
IDLE_GUARD_S = 2.0
CONFIDENCE = 0.95
_NAMES = ("step_energy_j", "decode_token_energy_j", "prefill_token_energy_j")
_UNITS = ("j", "j_per_token", "j_per_token")


@dataclass(frozen=True, slots=True)
class _Block:
    """Bins of one run: power above idle, the three rates, where they came from."""

    watts: np.ndarray
    rates: np.ndarray
    level: float


def phase_energy(
    runs: Sequence[Run],
    trace: Trace,
    idle_w: float | Estimate | None,
    *,
    probes: Sequence[Run] = (),
    lag_s: float = 0.0,
) -> dict[str, Estimate]:
    """Energy of a decode step, of a decoded token and of a prefilled token.

    Parameters
    ----------
    runs : sequence of Run
        At least three concurrency levels of one arm, covered by the trace.
    trace : Trace
        Counter, instantaneous or averaged power, in that order of preference.
    idle_w : float, Estimate or None
        Power of the idle GPUs with the model loaded, summed over them (see `measure_idle`).
    probes : sequence of Run
        Prefill probes with one stream; else the luckiest requests of the lowest level tell how
        long a prefill takes.
    lag_s : float
        Seconds by which the trace's clock is ahead (see `align.clock_offset`).

    Returns
    -------
    dict
        `step_energy_j`, `decode_token_energy_j`, `prefill_token_energy_j` (value and 95 %
        interval, `n` runs) and `energy_per_output_token_j` over all runs together. The first three
        are None, with the reason, below three levels or without an idle power.

    Notes
    -----
    P(t) = P_idle + e_step * steps/s + e_decode * decode tokens/s + e_prefill * prefill tokens/s by
    non-negative least squares (Lawson and Hanson 1974); the energy of a decoded token at batch b is
    e_step / b + e_decode. Power is binned in 1 s where the sensor is faster than that; with a
    one-second average the rates are averaged over the same second instead. The interval is a
    jackknife over runs and leaves out the gain error of the sensor (about 5 %). It misleads where
    requests the client gave up go on decoding unseen: their joules are charged to the others.

    Examples
    --------
    >>> from gpuverdict.recognise import read_run, read_trace
    >>> runs = read_run("data/h200/card-a-bf16/guidellm-r1.json.gz")
    >>> trace = read_trace("data/h200/card-a-bf16/nvidia-smi-query.csv.gz", "UTC")
    >>> joules = phase_energy(runs, trace, idle_w=120.0)
    >>> [round(joules[f"{what}_energy_j"].value, 1) for what in ("step", "decode_token")]
    [1.6, 0.1]
    """
    total = _per_output_token(runs, trace)
    idle = idle_w.value if isinstance(idle_w, Estimate) else idle_w
    if idle is None:
        return _refused(caution("idle_unknown"), total)
    blocks: list[_Block] = []
    notes: list[Caution] = []
    prefill = _prefill_model(runs, probes)
    for run in runs:
        start, why = place(run, trace)
        block = None
        if start is not None:
            block = _block(run, trace, start + lag_s, idle, prefill)
        notes += [note for note in why if note.code not in {n.code for n in notes}]
        if block is not None:
            blocks.append(block)
    levels = {block.level for block in blocks}
    if len(levels) < FEWEST_LEVELS:
        short = caution("phase_energy_levels", found=len(levels), needed=FEWEST_LEVELS)
        return _refused(short, total, tuple(notes))
    fitted = _fit(blocks)
    spread = _jackknife(blocks)
    told: dict[str, Estimate] = {}
    quantile = float(stats.t.ppf(0.5 + CONFIDENCE / 2, len(blocks) - 1))
    for name, unit, value, error in zip(_NAMES, _UNITS, fitted, spread, strict=True):
        half = quantile * float(error)
        told[name] = Estimate(
            value=float(value), low=max(0.0, float(value) - half), high=float(value) + half,
            confidence=CONFIDENCE, unit=unit, n=len(blocks), cautions=tuple(notes),
        )  # fmt: skip
    return told | {"energy_per_output_token_j": total}


def decode_token_energy(energies: dict[str, Estimate], batch: float) -> Estimate:
    """Energy of one decoded token when `batch` requests decode together: e_step / b + e_decode.

    Examples
    --------
    >>> step, token = Estimate(value=2.0, unit="j"), Estimate(value=0.5, unit="j_per_token")
    >>> energies = {"step_energy_j": step, "decode_token_energy_j": token}
    >>> decode_token_energy(energies, 4).value
    1.0
    """
    step, token = energies["step_energy_j"], energies["decode_token_energy_j"]
    if step.value is None or token.value is None:
        return Estimate(value=None, unit="j_per_token", cautions=step.cautions)
    return Estimate(
        value=step.value / batch + token.value, unit="j_per_token", n=step.n, cautions=step.cautions
    )


def measure_idle(runs: Sequence[Run], trace: Trace) -> Estimate:
    """Power of the idle GPUs with the model loaded, from the tails around and between runs.

    Parameters
    ----------
    runs : sequence of Run
        Every run that loaded the server while the trace was recorded.
    trace : Trace
        At least 10 s without load within a minute of a run, all GPUs together.

    Returns
    -------
    Estimate
        Median power in watts, summed over GPUs; `n` samples. None with `idle_unknown`.

    Notes
    -----
    A card without a context clocks down and draws less than one that waits for requests: samples
    with less than half of the memory of the runs do not count.
    """
    windows = []
    for run in runs:
        start, _ = place(run, trace)
        if start is not None:
            windows.append((start, start + float(run.info.get("duration_s") or 0.0)))
    if not windows:
        return Estimate(value=None, unit="w", cautions=(caution("idle_unknown"),))
    time = pl.col("time_epoch_s")
    quiet, near = pl.lit(True), pl.lit(False)
    for start, end in windows:
        quiet &= ~time.is_between(start - IDLE_GUARD_S / 2, end + IDLE_GUARD_S)
        near |= time.is_between(start - IDLE_REACH_S, end + IDLE_REACH_S)
    busy = trace.samples.filter(time.is_between(windows[0][0], windows[0][1]))
    loaded = busy["memory_used_mib"].max()
    idle = trace.samples.filter(
        quiet
        & near
        & pl.col("power_w").is_not_null()
        & (pl.col("gpu_util_ratio").fill_null(0) == 0)
    )
    if isinstance(loaded, float):
        idle = idle.filter(pl.col("memory_used_mib").fill_null(loaded) >= 0.5 * loaded)
    who = pl.coalesce(pl.col("gpu_uuid"), pl.col("gpu_index").cast(pl.String), pl.lit("GPU"))
    power = idle.group_by(who.alias("gpu")).agg(pl.col("power_w").median(), pl.len().alias("n"))
    if not power.height or float(power["n"].to_numpy().min()) * _step(trace) < IDLE_TAIL_S:
        return Estimate(value=None, unit="w", cautions=(caution("idle_unknown"),))
    return Estimate(value=float(power["power_w"].sum()), unit="w", n=idle.height)


def _step(trace: Trace) -> float:
    """Median spacing of the samples of one GPU."""
    stamps = trace.samples.drop_nulls("time_epoch_s").select(
        pl.col("time_epoch_s").diff().over("gpu_uuid", "gpu_index").alias("step")
    )["step"]
    step = stamps.drop_nulls().median()
    return float(step) if isinstance(step, float) else 0.0


def _refused(
    reason: Caution, total: Estimate, notes: tuple[Caution, ...] = ()
) -> dict[str, Estimate]:
    unknown = {
        name: Estimate(value=None, unit=unit, cautions=(reason, *notes))
        for name, unit in zip(_NAMES, _UNITS, strict=True)
    }
    return unknown | {"energy_per_output_token_j": total}


def _prefill_model(runs: Sequence[Run], probes: Sequence[Run]) -> PrefillModel:
    fitted = fit_prefill(probes) if probes else PrefillModel(kind="none")
    if fitted.kind != "none" or not runs:
        return fitted
    return prefill_envelope(min(runs, key=_level))


def _level(run: Run) -> float:
    """Concurrency of a run: as stated, else the time mean of requests in flight."""
    stated = run.info.get("max_concurrency")
    if stated:
        return float(stated)
    held = run.requests.drop_nulls(["start_s", "last_token_s"])
    duration = float(run.info.get("duration_s") or 0.0)
    if not held.height or duration <= 0:
        return 0.0
    return round(float((held["last_token_s"] - held["start_s"]).sum()) / duration, 1)


def _block(
    run: Run, trace: Trace, start: float, idle: float, prefill: PrefillModel
) -> _Block | None:
    duration = float(run.info.get("duration_s") or 0.0)
    lengths = run.requests["input_tokens"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    expected = prefill.predict(lengths)
    expected = np.where(
        run.requests["server_prefill_s"].is_not_null().to_numpy(),
        run.requests["server_prefill_s"].fill_null(0.0).to_numpy(),
        expected,
    )
    overhead = 0.0 if prefill.c0_s is None else prefill.c0_s.value or 0.0
    activity = activity_of(run, expected, overhead)
    who = pl.coalesce(pl.col("gpu_uuid"), pl.col("gpu_index").cast(pl.String), pl.lit("GPU"))
    near = trace.samples.filter(
        pl.col("time_epoch_s").is_between(start - 2 * BIN_S, start + duration + 2 * BIN_S)
    ).with_columns(who.alias("_who"))
    parts = near.partition_by("_who", maintain_order=True)
    if not parts:
        return None
    told = [_readings(part, start) for part in parts]
    if any(found is None for found in told):
        return None
    readings = [found for found in told if found is not None]
    kinds = {kind for _, _, kind in readings}
    if kinds == {"avg1s"}:
        ends = readings[0][0]
        ends = ends[(ends >= BIN_S) & (ends <= duration)]
        watts = sum(np.interp(ends, time, power) for time, power, _ in readings)
        rates = activity.regressors(ends - SENSOR_UPDATE_S / 2, sensor_window("avg1s"))
    else:
        edges = np.arange(0.0, duration, BIN_S)
        if len(edges) < 2:
            return None
        watts = sum(_bin_power(time, power, kind, edges) for time, power, kind in readings)
        rates = activity.regressors(edges[1:], BIN_S)
    if not len(rates):
        return None
    return _Block(np.asarray(watts) - idle, rates, _level(run))


def _readings(part: pl.DataFrame, start: float) -> tuple[np.ndarray, np.ndarray, str] | None:
    """Best power signal of a GPU: counter, instantaneous, averaged; in seconds since t0."""
    for column, kind in (
        ("energy_j", "counter"), ("power_instant_w", "instant"), ("power_w", ""),
    ):  # fmt: skip
        held = part.drop_nulls(["time_epoch_s", column])
        if held.height < 3:
            continue
        values = held[column].to_numpy()
        if kind == "counter" and np.any(np.diff(values) < 0):
            continue
        return (
            held["time_epoch_s"].to_numpy() - start,
            values,
            kind or (held["power_kind"][0] or "avg1s"),
        )
    return None


def _bin_power(time: np.ndarray, values: np.ndarray, kind: str, edges: np.ndarray) -> np.ndarray:
    if kind == "counter":
        return np.diff(np.interp(edges + SENSOR_UPDATE_S / 2, time, values)) / np.diff(edges)
    # The age of a polled reading, and half of the stretch it averages.
    age = SENSOR_UPDATE_S / 2 + sensor_window(kind) / 2
    joules = np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2 * np.diff(time))])
    return np.diff(np.interp(edges + age, time, joules)) / np.diff(edges)


def _fit(blocks: Sequence[_Block]) -> np.ndarray:
    rates = np.concatenate([block.rates for block in blocks])
    watts = np.concatenate([block.watts for block in blocks])
    scale = np.linalg.norm(rates, axis=0)
    scale[scale == 0] = 1.0
    share, _ = nnls(rates / scale, watts)
    return np.asarray(share / scale)


def _jackknife(blocks: Sequence[_Block]) -> np.ndarray:
    m = len(blocks)
    without = np.array([_fit([b for j, b in enumerate(blocks) if j != i]) for i in range(m)])
    return np.sqrt((m - 1) / m * ((without - without.mean(axis=0)) ** 2).sum(axis=0))


def _per_output_token(runs: Sequence[Run], trace: Trace) -> Estimate:
    joules, tokens = 0.0, 0
    notes: list[Caution] = []
    for run in runs:
        start, why = place(run, trace)
        if start is None:
            return Estimate(value=None, unit="j_per_token", cautions=tuple(why))
        energy = window_energy(trace, start, start + float(run.info.get("duration_s") or 0.0))
        notes += [c for c in energy.cautions if c.code not in {n.code for n in notes}]
        if energy.value is None:
            return Estimate(value=None, unit="j_per_token", cautions=energy.cautions)
        joules += energy.value
        made = run.requests.filter(pl.col("status").is_in(["ok", "incomplete"]))["output_tokens"]
        tokens += int(made.sum() or 0)
    value = joules / tokens if tokens else None
    return Estimate(value=value, unit="j_per_token", n=len(runs), cautions=tuple(notes))
