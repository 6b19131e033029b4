"""Did the run change under way: drift, a step (a throttle when the trace agrees), a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from gpuverdict.align import place
from gpuverdict.errors import Caution
from gpuverdict.schema import Run, Trace
from gpuverdict.steady.window import Window, requests_in_window
from gpuverdict.telemetry.samples import SLOWDOWN_BITS
from gpuverdict.text import caution

__all__ = [
    "Drift",
    "HistoryChange",
    "StepChange",
    "drift",
    "history_change",
    "series_drift",
    "series_step",
    "step_change",
]

# Conventions of section 18 of the method notes, printed wherever they decide something.
DRIFT_BLOCKS = 20
DRIFT_BLOCKS_CORRELATED = 10
CORRELATED = 0.3
DRIFT_P = 0.01
SMALLEST_CHANGE = 0.02
STEP_BLOCKS = 25
STEP_SEGMENT = 3
STEP_CRITICAL_T = 3.83
FEWEST_REQUESTS = 100
FEWEST_WAVES = 10
THROTTLE_WITHIN_S = 10.0
CLOCK_DROP = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Whether a series drifts: `change_ratio` from first to last block, 0.05 for 5 % up."""

    metric: str
    alarm: bool
    change_ratio: float | None
    p_value: float | None
    n: int
    n_blocks: int
    cautions: tuple[Caution, ...] = ()

    @property
    def testable(self) -> bool:
        """Whether there were enough requests to test at all."""
        return self.p_value is not None

    def __str__(self) -> str:
        if self.change_ratio is None or self.p_value is None:
            return f"{self.metric}: drift not testable (n = {self.n})"
        word = "drift" if self.alarm else "no drift"
        size = f"{self.change_ratio:+.1%} over the window"
        return f"{self.metric}: {word}, {size} (p {self.p_value:.3f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChange:
    """Whether a series steps: where, by how much, and whether the trace calls it a throttle."""

    metric: str
    alarm: bool
    change_ratio: float | None
    at_s: float | None
    t_value: float | None
    n: int
    throttle: bool | None = None
    cautions: tuple[Caution, ...] = ()

    @property
    def testable(self) -> bool:
        """Whether there were enough requests to test at all."""
        return self.t_value is not None

    def __str__(self) -> str:
        if not self.alarm or self.change_ratio is None or self.at_s is None:
            return f"{self.metric}: no step found (n = {self.n})"
        word = "throttle" if self.throttle else "step change"
        return f"{self.metric}: {word} of {self.change_ratio:+.1%} at {self.at_s:.1f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChange:
    """What a history of headline values says; `index` is the first value after the change."""

    outcome: Literal["change", "no change", "unstable series", "not enough history", "error"]
    index: int | None = None
    change_ratio: float | None = None
    n: int = 0

    def __str__(self) -> str:
        if self.outcome != "change" or self.change_ratio is None:
            return f"{self.outcome} (n = {self.n})"
        return f"change of {self.change_ratio:+.1%} at value {self.index} (n = {self.n})"


def series_drift(values: np.ndarray, metric: str = "value") -> Drift:
    """Say whether a positive series in time order drifts.

    Parameters
    ----------
    values : ndarray
        Positive values in time order, 20 or more.

    Notes
    -----
    Mann-Kendall [1]_ on the logs of the medians of 20 blocks (10 where their lag-1 correlation
    around the trend exceeds 0.3), p < 0.01, and the Theil-Sen slope [2]_ over the whole window
    above 2 %. Least squares on requests would find drift in up to 75 % of stationary runs.

    References
    ----------
    .. [1] H. B. Mann, "Nonparametric tests against trend", Econometrica 13, 1945.
       doi:10.2307/1907187
    .. [2] P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63,
       1968. doi:10.1080/01621459.1968.10480934

    Examples
    --------
    >>> import numpy as np
    >>> print(series_drift(np.geomspace(1.0, 1.1, 400), "tpot_s"))
    tpot_s: drift, +9.5% over the window (p 0.000)
    """
    logs = _block_medians(values, DRIFT_BLOCKS)
    if logs.size and _lag_one(logs) > CORRELATED:
        logs = _block_medians(values, DRIFT_BLOCKS_CORRELATED)
    if logs.size < DRIFT_BLOCKS_CORRELATED or np.ptp(logs) == 0:
        # A constant series is the one case where Kendall's tau is undefined: it does not drift.
        flat = logs.size >= DRIFT_BLOCKS_CORRELATED
        return Drift(metric=metric, alarm=False, change_ratio=0.0 if flat else None,
                     p_value=1.0 if flat else None, n=values.size, n_blocks=logs.size)  # fmt: skip
    order = np.arange(logs.size)
    p_value = float(stats.kendalltau(order, logs).pvalue)
    slope = float(stats.theilslopes(logs, order)[0])
    change = float(np.expm1(slope * (logs.size - 1)))
    alarm = p_value < DRIFT_P and abs(slope * (logs.size - 1)) > SMALLEST_CHANGE
    return Drift(
        metric=metric,
        alarm=alarm,
        change_ratio=change,
        p_value=p_value,
        n=values.size,
        n_blocks=logs.size,
    )


def drift(
    run: Run, window: Window, metric: str = "tpot_s", *, concurrency: float | None = None
) -> Drift:
    """Say whether a metric of a run drifts within its window.

    Parameters
    ----------
    metric : str
        A column of the requests frame (`tpot_s`, `ttft_s`, `e2e_s`, ...).
    concurrency : float, optional
        The level's streams, else the run's own: waves of a closed loop look like drift until
        there are ten of them.

    Returns
    -------
    Drift
        With the caution `drift` on an alarm and `drift_not_testable` below 100 requests or ten
        waves. A drifting run is reported, never deleted.
    """
    values, _, few = _series(run, window, metric, concurrency)
    if few is not None:
        return Drift(metric=metric, alarm=False, change_ratio=None, p_value=None, n=values.size,
                     n_blocks=0, cautions=(few,))  # fmt: skip
    found = series_drift(values, metric)
    if not found.alarm:
        return found
    assert found.change_ratio is not None
    said = caution("drift", metric=metric, change_ratio=found.change_ratio)
    return Drift(metric=metric, alarm=True, change_ratio=found.change_ratio, p_value=found.p_value,
                 n=found.n, n_blocks=found.n_blocks, cautions=(said,))  # fmt: skip


def series_step(values: np.ndarray) -> tuple[float, float, int] | None:
    """Find the largest step of a positive series: (t, log step, index of the first value after).

    Notes
    -----
    t statistic of the log medians of 25 blocks, maximised over the split point with at least three
    blocks on each side. None with fewer than 25 values or a constant series.
    """
    logs = _block_medians(values, STEP_BLOCKS)
    if logs.size < STEP_BLOCKS:
        return None
    best = _best_split(logs)
    if best is None:
        return None
    t_value, step, block = best
    return t_value, step, block * values.size // STEP_BLOCKS


def step_change(
    run: Run,
    window: Window,
    metric: str = "tpot_s",
    *,
    concurrency: float | None = None,
    trace: Trace | Sequence[Trace] | None = None,
) -> StepChange:
    """Say whether a metric of a run steps within its window, and whether that was a throttle.

    Parameters
    ----------
    trace : Trace or sequence of Trace, optional
        Only a trace on the run's clock can make it a `throttle`: the SM clock 3 % lower, or a
        slow-down bit, within 10 s of the step. Without one `throttle` is None. Of several the
        first that covers the moment decides.

    Returns
    -------
    StepChange
        Cautions `step_change` or `throttle` on an alarm, `drift_not_testable` with few requests.

    Notes
    -----
    Alarm when |t| > 3.83 (1 % over all splits of 25 blocks) and the step exceeds 2 %.
    """
    values, starts, few = _series(run, window, metric, concurrency)
    found = None if few is not None else series_step(values)
    if found is None:
        return StepChange(
            metric=metric, alarm=False, change_ratio=None, at_s=None, t_value=None,
            n=values.size, cautions=() if few is None else (few,),
        )  # fmt: skip
    t_value, step, index = found
    alarm = abs(t_value) > STEP_CRITICAL_T and abs(step) > SMALLEST_CHANGE
    at_s = float(starts[index])
    change = float(np.expm1(step))
    throttle = None
    cautions: tuple[Caution, ...] = ()
    if alarm:
        traces = [] if trace is None else [trace] if isinstance(trace, Trace) else trace
        seen = (_throttled_at(one, run, at_s) for one in traces)
        throttle = next((found for found in seen if found is not None), None)
        # A run that gets faster is no throttle, whatever the trace shows.
        throttle = throttle if step > 0 else False
        code = "throttle" if throttle else "step_change"
        cautions = (caution(code, metric=metric, change_ratio=change, at_s=at_s),)
    return StepChange(
        metric=metric, alarm=alarm, change_ratio=change, at_s=at_s, t_value=t_value,
        n=values.size, throttle=throttle, cautions=cautions,
    )  # fmt: skip


def history_change(values: Sequence[float], margin: float) -> HistoryChange:
    """Say whether a history of headline values changed, and where.

    Parameters
    ----------
    values : sequence of float
        One positive value a campaign, oldest first.
    margin : float
        Smallest change that matters (0.03 for 3 %).

    Notes
    -----
    The split of the largest t statistic, at least three values a side, Bonferroni over the splits
    at 1 %. Where either side splits again, or scatters by more than the margin (one standard
    deviation), the series is called unstable instead.

    Examples
    --------
    >>> print(history_change([100, 101, 99, 100, 110, 111, 109, 110], 0.03))
    change of +10.0% at value 4 (n = 8)
    """
    history = np.asarray(values, float)
    n = history.size
    if n and (not np.isfinite(history).all() or (history <= 0).any()):
        return HistoryChange(outcome="error", n=n)
    if n < 2 * STEP_SEGMENT:
        return HistoryChange(outcome="not enough history", n=n)
    logs = np.log(history)
    split = _significant_split(logs, margin)
    sides = [logs] if split is None else [logs[: split[1]], logs[split[1] :]]
    again = split is not None and any(_significant_split(side, margin) for side in sides)
    if again or any(side.std(ddof=1) > np.log1p(margin) for side in sides):
        return HistoryChange(outcome="unstable series", n=n)
    if split is None:
        return HistoryChange(outcome="no change", n=n)
    step, index = split
    return HistoryChange(outcome="change", index=index, change_ratio=float(np.expm1(step)), n=n)


def _significant_split(logs: np.ndarray, margin: float) -> tuple[float, int] | None:
    splits = logs.size - 2 * STEP_SEGMENT + 1
    best = _best_split(logs) if splits > 0 else None
    if best is None:
        return None
    t_value, step, index = best
    critical = stats.t.ppf(1 - 0.01 / (2 * splits), logs.size - 2)
    if abs(t_value) > critical and abs(step) > np.log1p(margin):
        return step, index
    return None


def _best_split(logs: np.ndarray) -> tuple[float, float, int] | None:
    """Largest |t| over the split points: (t, step, first index after the step)."""
    n = logs.size
    left = np.arange(STEP_SEGMENT, n - STEP_SEGMENT + 1)
    z = logs - logs.mean()
    sums, squares = np.cumsum(z), np.cumsum(z**2)
    low, high = sums[left - 1] / left, (sums[-1] - sums[left - 1]) / (n - left)
    within = squares[-1] - left * low**2 - (n - left) * high**2
    if not squares[-1] > 0:
        return None
    scale = np.sqrt(np.maximum(within, 1e-12 * squares[-1]) / (n - 2) * (1 / left + 1 / (n - left)))
    t_values = (high - low) / scale
    best = int(np.argmax(np.abs(t_values)))
    return float(t_values[best]), float(high[best] - low[best]), int(left[best])


def _block_medians(values: np.ndarray, blocks: int) -> np.ndarray:
    """Log medians of consecutive blocks of nearly equal size; empty with too few values."""
    positive = values[values > 0]
    if positive.size < blocks:
        return np.empty(0)
    return np.array([np.log(np.median(block)) for block in np.array_split(positive, blocks)])


def _lag_one(logs: np.ndarray) -> float:
    # Around its own trend: a drift is no correlation, and must not cost the test its blocks.
    order = np.arange(logs.size)
    z = logs - float(stats.theilslopes(logs, order)[0]) * order
    z = z - z.mean()
    total = float(z @ z)
    return float(z[1:] @ z[:-1]) / total if total > 0 else 0.0


def _series(
    run: Run, window: Window, metric: str, concurrency: float | None
) -> tuple[np.ndarray, np.ndarray, Caution | None]:
    """Values of ok requests by start, their starts, and the caution that forbids a test."""
    rows = (
        requests_in_window(run, window)
        .filter(pl.col("status") == "ok", pl.col(metric) > 0, pl.col("start_s").is_not_null())
        .sort("start_s", "request_index")
    )
    if window.kind == "steady":
        # The last ones decode in the emptying server of the drain: faster, but no change of speed.
        # As many go as ended after the window, by start, so that long requests are not preferred.
        outlived = rows.filter(pl.col("last_token_s") > window.end_s).height
        rows = rows.head(rows.height - outlived)
    streams = concurrency if concurrency is not None else run.info.get("max_concurrency")
    needed = max(FEWEST_REQUESTS, FEWEST_WAVES * (streams or 0))
    few = None
    if rows.height < needed:
        few = caution("drift_not_testable", metric=metric, n=rows.height, needed=round(needed))
    return rows[metric].to_numpy(), rows["start_s"].to_numpy(), few


def _throttled_at(trace: Trace, run: Run, at_s: float) -> bool | None:
    """Whether the trace shows a slow-down within 10 s of a moment; None where it cannot say."""
    t0 = place(run, trace)[0]
    if t0 is None:
        return None
    near = trace.samples.filter(
        pl.col("time_epoch_s").is_between(
            t0 + at_s - THROTTLE_WITHIN_S, t0 + at_s + THROTTLE_WITHIN_S
        ),
        pl.col("gpu_util_ratio").is_null() | (pl.col("gpu_util_ratio") > 0),
    ).with_columns(after=pl.col("time_epoch_s") >= t0 + at_s)
    if near["after"].n_unique() < 2:
        return None
    by_gpu = near.group_by("gpu_uuid", "gpu_index").agg(
        before=pl.col("sm_clock_mhz").filter(~pl.col("after")).median(),
        after=pl.col("sm_clock_mhz").filter(pl.col("after")).median(),
    )
    slower = (by_gpu["after"] <= (1 - CLOCK_DROP) * by_gpu["before"]).fill_null(False).any()
    bits = near.filter(pl.col("throttle_mask").is_not_null()).with_columns(
        slow=(pl.col("throttle_mask") & pl.lit(SLOWDOWN_BITS, dtype=pl.UInt64)) > 0
    )
    share_before = bits.filter(~pl.col("after"))["slow"].mean() or 0.0
    share_after = bits.filter(pl.col("after"))["slow"].mean() or 0.0
    # A busy H200 sets the power-cap bit in one sample of ten: only a rise says anything.
    risen = share_after >= 0.1 and share_after >= 2 * share_before  # type: ignore[operator]
    if by_gpu["after"].null_count() == by_gpu.height and bits.is_empty():
        return None
    return bool(slower) or bool(risen)
