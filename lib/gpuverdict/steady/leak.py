"""Does memory grow under load, and when would the card be full?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from gpuverdict.errors import Caution
from gpuverdict.schema import Trace
from gpuverdict.steady.change import Drift
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["Leak", "leak"]

LEAK_RATIO_PER_600_S = 0.01
LEAK_P = 0.01
BLOCKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """Memory growth of one GPU over a window.

    `growth_ratio_per_600_s` is relative to the window's median; `growth_mib_per_1000_requests`,
    `seconds_until_full` and `requests_until_full` have 95 % Theil-Sen intervals and are None where
    memory does not grow. `alarm` None: flat or too few samples, nothing can be said.
    """

    gpu: str
    alarm: bool | None
    growth_ratio_per_600_s: float | None = None
    p_value: float | None = None
    growth_mib_per_1000_requests: Estimate | None = None
    seconds_until_full: Estimate | None = None
    requests_until_full: Estimate | None = None
    n: int = 0
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        if self.alarm is None or self.growth_ratio_per_600_s is None:
            return f"{self.gpu}: no information about memory growth"
        word = "memory grows" if self.alarm else "no memory growth"
        return f"{self.gpu}: {word}, {self.growth_ratio_per_600_s:+.2%} per ten minutes"


def leak(
    trace: Trace,
    start_epoch_s: float,
    end_epoch_s: float,
    *,
    n_requests: int | None = None,
    latency: Drift | None = None,
) -> list[Leak]:
    """Say for each GPU of a trace whether its memory grew between two moments.

    Parameters
    ----------
    trace : Trace
        Needs `time_epoch_s` and `memory_used_mib`.
    n_requests : int, optional
        Requests sent in that time: turns growth per second into growth per request.
    latency : Drift, optional
        TTFT or TPOT drift of the same time: slower together with any growth is an alarm too.

    Returns
    -------
    list of Leak
        One a GPU, by index. Cautions: `memory_growth` (alarm), `memory_flat` (the engine allocates
        in advance: no information, which is not "no leak"), `memory_not_testable`.

    Notes
    -----
    Mann-Kendall p < 0.01 on 20 block medians and a Theil-Sen slope above 1 % of the median per
    10 minutes. Misleads over minutes in which a cache fills up for the first time.
    """
    samples = trace.samples.filter(
        pl.col("time_epoch_s").is_between(start_epoch_s, end_epoch_s),
        pl.col("memory_used_mib").is_not_null(),
    ).sort("time_epoch_s")
    found = []
    for (_, index, uuid), rows in sorted(
        samples.group_by("host", "gpu_index", "gpu_uuid"), key=lambda item: str(item[0])
    ):
        name = f"GPU {index}" if index is not None else str(uuid or "GPU")
        found.append(_leak_of(name, rows, n_requests, latency))
    if not found:
        few = caution("memory_not_testable", needed=BLOCKS)
        found.append(Leak(gpu="GPU", alarm=None, cautions=(few,)))
    return found


def _leak_of(name: str, rows: pl.DataFrame, n_requests: int | None, latency: Drift | None) -> Leak:
    used, times = rows["memory_used_mib"].to_numpy(), rows["time_epoch_s"].to_numpy()
    n = used.size
    if n < BLOCKS:
        return Leak(gpu=name, alarm=None, n=n,
                    cautions=(caution("memory_not_testable", needed=BLOCKS),))  # fmt: skip
    if np.ptp(used) == 0:
        return Leak(gpu=name, alarm=None, growth_ratio_per_600_s=0.0, n=n,
                    cautions=(caution("memory_flat"),))  # fmt: skip
    level = np.array([np.median(block) for block in np.array_split(used, BLOCKS)])
    moment = np.array([np.median(block) for block in np.array_split(times, BLOCKS)])
    slope, _, low, high = stats.theilslopes(level, moment - moment[0], alpha=0.95)
    p_value = 1.0 if np.ptp(level) == 0 else float(stats.kendalltau(moment, level).pvalue)
    ratio = float(slope * 600.0 / np.median(used))
    rising = p_value < LEAK_P and slope > 0
    slower = latency is not None and latency.alarm and (latency.change_ratio or 0.0) > 0
    alarm = bool(rising and (ratio > LEAK_RATIO_PER_600_S or slower))
    said = (caution("memory_growth", gpu=name, growth_ratio=ratio),) if alarm else ()
    rate = n_requests / (times[-1] - times[0]) if n_requests and times[-1] > times[0] else None
    slopes = (float(slope), float(low), float(high))
    per_request = None
    if rate is not None:
        value, lower, upper = (1000.0 * s / rate for s in slopes)
        per_request = Estimate(
            value=value, low=lower, high=upper, confidence=0.95, unit="mib", n=BLOCKS
        )
    total = rows["memory_total_mib"].drop_nulls()
    until = None
    if rising and total.len():
        room = max(0.0, float(total[-1]) - float(level[-1]))
        until = Estimate(
            value=room / slopes[0],
            low=room / slopes[2],
            high=room / slopes[1] if slopes[1] > 0 else None,
            confidence=0.95,
            unit="s",
            n=BLOCKS,
        )
    requests = None
    if until is not None and until.value is not None and rate is not None:
        requests = Estimate(
            value=until.value * rate,
            low=None if until.low is None else until.low * rate,
            high=None if until.high is None else until.high * rate,
            confidence=0.95,
            unit="requests",
            n=BLOCKS,
        )
    return Leak(
        gpu=name,
        alarm=alarm,
        growth_ratio_per_600_s=ratio,
        p_value=p_value,
        growth_mib_per_1000_requests=per_request,
        seconds_until_full=until,
        requests_until_full=requests,
        n=n,
        cautions=said,
    )
