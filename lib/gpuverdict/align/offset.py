"""How far the clock of a trace is from that of a request log, told by the shape of the power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.optimize import nnls

from gpuverdict.align.activity import Activity, activity_of
from gpuverdict.align.placing import place
from gpuverdict.errors import Caution
from gpuverdict.schema import Run, Trace
from gpuverdict.text import caution

__all__ = ["SENSOR_UPDATE_S", "ClockOffset", "clock_offset", "sensor_window"]

# method notes 16.1 and 17: readings are refreshed every 100 ms, so a polled one is 50 ms old.
SENSOR_UPDATE_S = 0.1
SEARCH_S = 5.0
STEP_S = 0.01
NEAR_S = 0.25
# Correlation of changes from which they, and not the level, tell the offset.
CLEAR_CHANGES = 0.6
SMALLEST_PEAK = 0.8
SMALLEST_LEAD = 0.05
RIVAL_BEYOND_S = 2.0
_WINDOWS_S = {"instant": 0.1, "avg1s": 1.0}
FEWEST_SAMPLES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffset:
    """Seconds by which the trace's clock is ahead of the requests', and how clearly.

    `offset_s` is None where no peak stands out; `peak` and `second` are correlations.
    """

    offset_s: float | None
    peak: float | None
    second: float | None
    n: int
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        if self.offset_s is None:
            return f"power unaligned (n = {self.n})"
        return f"trace ahead by {1e3 * self.offset_s:+.0f} ms (r = {self.peak:.2f}, n = {self.n})"


def clock_offset(
    runs: Run | Sequence[Run],
    trace: Trace,
    *,
    prefill_s: Callable[[np.ndarray], np.ndarray] | None = None,
) -> ClockOffset:
    """Estimate the residual clock offset between request logs and a trace.

    Parameters
    ----------
    runs : Run or sequence of Run
        Best one with a single stream, or with idle stretches at its ends. Where levels follow one
        another without a break, give them all: the load of a neighbour would be taken for noise.
    trace : Trace
        Power samples that cover them.
    prefill_s : callable, optional
        Prompt tokens -> expected prefill seconds, such as `PrefillModel.predict`.

    Returns
    -------
    ClockOffset
        Refused with `power_unaligned` when the peak correlation is at most 0.8 or a rival more
        than 2 s away comes within 0.05 of it.

    Notes
    -----
    Power is explained by non-negative shares of step, decode and prefill rates, box-averaged with
    the sensor's window; r(lag) is the correlation of the best such mixture on a 10 ms grid within
    5 s. A polled reading is 0 to 100 ms old: near the peak the moment of the sensor's refresh is
    searched as well, and the result refined by a parabola. A sensor that looks at only part of its
    window (25 of 100 ms) makes the trace seem early by half the unseen part.
    """
    chosen = [runs] if isinstance(runs, Run) else list(runs)
    placed: list[tuple[Run, float]] = []
    cautions: list[Caution] = []
    for run in chosen:
        start, why = place(run, trace)
        cautions += [note for note in why if note.code not in {n.code for n in cautions}]
        if start is not None:
            placed.append((run, start))
    if not placed:
        return ClockOffset(offset_s=None, peak=None, second=None, n=0, cautions=tuple(cautions))
    origin = min(start for _, start in placed)
    seconds, watts, kind = _power(trace, placed, origin)
    if len(seconds) < FEWEST_SAMPLES or np.ptp(watts) == 0:
        return _refused(0.0, 0.0, len(seconds))
    width = sensor_window(kind)
    lags = np.arange(-SEARCH_S, SEARCH_S + STEP_S / 2, STEP_S)
    activities = [
        (activity_of(run, *_expected(run, prefill_s)), start - origin) for run, start in placed
    ]
    score = np.array(
        [_correlation(_rates(activities, seconds - lag, width), watts) for lag in lags]
    )
    best = int(np.argmax(score))
    rivals = score[np.abs(lags - lags[best]) > RIVAL_BEYOND_S]
    peak, second = float(score[best]), float(rivals.max(initial=0.0))
    if peak <= SMALLEST_PEAK or peak - second < SMALLEST_LEAD or best in (0, len(lags) - 1):
        return _refused(peak, second, len(seconds))
    offset = _refined(activities, seconds, watts, width, float(lags[best]))
    return ClockOffset(
        offset_s=offset, peak=peak, second=second, n=len(seconds), cautions=tuple(cautions)
    )


def _refined(
    activities: Sequence[tuple[Activity, float]],
    seconds: np.ndarray,
    watts: np.ndarray,
    width: float,
    lag: float,
) -> float:
    """Look closer around a lag, with the moment at which the sensor refreshes as a second unknown.

    A reading is as old as the last refresh before it; where within its 100 ms the refresh falls is
    the same throughout a run, and the readings tell it. Changes from one reading to the next are
    compared where they can be told: the level of a loaded run fits over a tenth of a second.
    """
    near = lag - SENSOR_UPDATE_S / 2 + np.arange(-NEAR_S, NEAR_S + STEP_S / 2, STEP_S)
    best, offset = {True: -1.0, False: -1.0}, dict.fromkeys((True, False), near[len(near) // 2])
    for phase in np.arange(0.0, SENSOR_UPDATE_S, STEP_S):
        fresh = np.floor((seconds - phase) / SENSOR_UPDATE_S) * SENSOR_UPDATE_S + phase
        rates = [_rates(activities, fresh - at, width) for at in near]
        for changes in best:
            score = np.array([_correlation(held, watts, changes=changes) for held in rates])
            top = int(np.argmax(score))
            if score[top] <= best[changes] or top in (0, len(near) - 1):
                continue
            left, middle, right = score[top - 1 : top + 2]
            bend = left - 2 * middle + right
            vertex = 0.5 * (left - right) / bend if bend < 0 else 0.0
            best[changes] = float(score[top])
            offset[changes] = float(near[top] + vertex * STEP_S)
    return offset[best[True] >= CLEAR_CHANGES]


def sensor_window(kind: str | None) -> float:
    """Averaging window of a power column in seconds, by its `power_kind`."""
    return _WINDOWS_S.get(kind or "", 1.0)


def _refused(peak: float, second: float, n: int) -> ClockOffset:
    note = caution("power_unaligned", peak=peak, second=second)
    return ClockOffset(offset_s=None, peak=peak, second=second, n=n, cautions=(note,))


def _expected(
    run: Run, prefill_s: Callable[[np.ndarray], np.ndarray] | None
) -> tuple[np.ndarray | None, float]:
    """Expected prefill time of each request, and the part that does not grow with its length."""
    if prefill_s is None:
        return None, 0.0
    lengths = run.requests["input_tokens"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    expected = prefill_s(lengths)
    overhead = float(prefill_s(np.zeros(1))[0])
    # Medians by length and envelopes know nothing below their shortest prompt.
    shortest = np.nanmin(expected, initial=np.inf)
    return expected, overhead if overhead < 0.5 * shortest else 0.0


def _power(
    trace: Trace, placed: Sequence[tuple[Run, float]], origin: float
) -> tuple[np.ndarray, np.ndarray, str | None]:
    """Sum power over GPUs within 5 s of the runs, in seconds since the first one's t0."""
    time = pl.col("time_epoch_s")
    near = pl.lit(False)
    for run, start in placed:
        end = start + float(run.info.get("duration_s") or 0.0)
        near |= time.is_between(start - SEARCH_S, end + SEARCH_S)
    samples = trace.samples.filter(near & pl.col("power_w").is_not_null())
    if not samples.height:
        return np.zeros(0), np.zeros(0), None
    who = pl.coalesce(pl.col("gpu_uuid"), pl.col("gpu_index").cast(pl.String), pl.lit("GPU"))
    parts = samples.with_columns(who.alias("_who")).partition_by("_who", maintain_order=True)
    seconds = parts[0]["time_epoch_s"].to_numpy() - origin
    watts = sum(
        np.interp(seconds, part["time_epoch_s"].to_numpy() - origin, part["power_w"].to_numpy())
        for part in parts
    )
    return seconds, np.asarray(watts), parts[0]["power_kind"][0]


def _rates(
    activities: Sequence[tuple[Activity, float]], seconds: np.ndarray, width: float
) -> np.ndarray:
    rates = np.zeros((len(seconds), 3))
    for activity, start in activities:
        rates += activity.regressors(seconds - start, width)
    return rates


def _correlation(rates: np.ndarray, watts: np.ndarray, *, changes: bool = False) -> float:
    if changes:
        rates, watts = np.diff(rates, axis=0), np.diff(watts)
    scale = rates.std(axis=0)
    usable = scale > 0
    if not usable.any():
        return 0.0
    centred = (rates[:, usable] - rates[:, usable].mean(axis=0)) / scale[usable]
    target = watts - watts.mean()
    share, _ = nnls(centred, target)
    fitted = centred @ share
    spread = float(np.linalg.norm(fitted) * np.linalg.norm(target))
    return float(fitted @ target) / spread if spread > 0 else 0.0
