"""The cards of an arm one by one: why they slowed down, how unequal they are, what a node drew."""

from __future__ import annotations

import numpy as np
import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.schema import Trace
from gpuverdict.telemetry.samples import SLOWDOWN_BITS, THROTTLE_BITS
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["card_imbalance", "peak_node_power", "per_card", "throttle_shares"]

_WHO = pl.coalesce(pl.col("gpu_uuid"), pl.col("gpu_index").cast(pl.String), pl.lit("GPU"))
# Rows of one tick lie within this of each other.
TICK_S = 0.1
# Systematic gain error of a board's power sensor (method notes 16.1).
GAIN_ERROR = 0.05


def throttle_shares(
    trace: Trace, start_s: float | None = None, end_s: float | None = None
) -> dict[str, float]:
    """Share of samples in which each reason held the clocks down, and of any slow-down.

    Parameters
    ----------
    start_s, end_s : float, optional
        Epoch seconds; the whole trace without them.

    Returns
    -------
    dict
        Reason -> share (0-1) for every reason of NVML, and `slowed_any` for those that are
        slow-downs. Empty where the trace has no reasons.

    Notes
    -----
    Idle, application clocks, sync boost and display clocks are settings, not slow-downs: a mask
    that is not zero does not mean throttling.
    """
    masks = _inside(trace, start_s, end_s)["throttle_mask"].drop_nulls().to_numpy()
    if not len(masks):
        return {}
    shares = {
        name: float(((masks & np.uint64(bit)) != 0).mean()) for name, bit in THROTTLE_BITS.items()
    }
    return shares | {"slowed_any": float(((masks & np.uint64(SLOWDOWN_BITS)) != 0).mean())}


def per_card(trace: Trace, start_s: float, end_s: float) -> pl.DataFrame:
    """Power, memory and clock of each card in a window.

    Returns
    -------
    polars.DataFrame
        One row a card: `gpu`, `n`, `power_mean_w`, `power_max_w`, `memory_peak_mib`,
        `sm_clock_p50_mhz` (busy samples), `temperature_max_c`, `throttled_ratio`.
    """
    busy = pl.col("gpu_util_ratio").fill_null(1.0) > 0
    slowed = pl.col("throttle_mask").is_not_null() & (
        (pl.col("throttle_mask") & pl.lit(SLOWDOWN_BITS, dtype=pl.UInt64)) != 0
    )
    return (
        _inside(trace, start_s, end_s)
        .group_by(_WHO.alias("gpu"), maintain_order=True)
        .agg(
            pl.len().alias("n"),
            pl.col("power_w").mean().alias("power_mean_w"),
            pl.col("power_w").max().alias("power_max_w"),
            pl.col("memory_used_mib").max().alias("memory_peak_mib"),
            pl.col("sm_clock_mhz").filter(busy).median().alias("sm_clock_p50_mhz"),
            pl.col("temperature_c").max().alias("temperature_max_c"),
            pl.when(pl.col("throttle_mask").count() > 0)
            .then(slowed.mean())
            .alias("throttled_ratio"),
        )
    )


def card_imbalance(trace: Trace, start_s: float, end_s: float) -> dict[str, Estimate]:
    """How unequal the cards of an arm are: (max - min) / mean of power, memory peak and clock.

    Returns
    -------
    dict
        `power_w`, `memory_used_mib`, `sm_clock_mhz` -> ratio; `n` cards. Null with fewer than two
        cards.
    """
    cards = per_card(trace, start_s, end_s)
    columns = {
        "power_w": "power_mean_w",
        "memory_used_mib": "memory_peak_mib",
        "sm_clock_mhz": "sm_clock_p50_mhz",
    }
    told: dict[str, Estimate] = {}
    for name, column in columns.items():
        values = cards[column].drop_nulls().to_numpy()
        if len(values) < 2 or values.mean() == 0:
            note = caution("one_card", n=len(values))
            told[name] = Estimate(value=None, unit="ratio", n=len(values), cautions=(note,))
            continue
        told[name] = Estimate(
            value=float(np.ptp(values) / values.mean()), unit="ratio", n=len(values)
        )
    return told


def peak_node_power(
    trace: Trace, start_s: float, end_s: float, supply_limit_w: float | None = None
) -> Estimate:
    """Largest power of all GPUs together at one moment, against a declared supply limit.

    Parameters
    ----------
    supply_limit_w : float, optional
        What the supply of the node may give to its GPUs; above it the caution `supply_exceeded`,
        and within the sensor's gain error (5 %) below it `supply_close`.

    Notes
    -----
    The instantaneous column where every GPU has it, else the averaged one, which hides peaks
    (caution `peak_of_averages`). Cards are read one after another; each one's power is interpolated
    to common moments 100 ms apart. It is a peak of samples, and no host power is in it.
    """
    held = _inside(trace, start_s, end_s).filter(pl.col("time_epoch_s").is_not_null())
    parts = [
        part.sort("time_epoch_s")
        for part in held.with_columns(_WHO.alias("_who")).partition_by("_who", maintain_order=True)
    ]
    instant = bool(parts) and all(p["power_instant_w"].count() > 1 for p in parts)
    column = "power_instant_w" if instant else "power_w"
    parts = [part.drop_nulls(column) for part in parts]
    if not parts or any(part.is_empty() for part in parts):
        note = caution("column_absent", column="power_w")
        return Estimate(value=None, unit="w", cautions=(note,))
    series = [(p["time_epoch_s"].to_numpy(), p[column].to_numpy()) for p in parts]
    if len(series) == 1:
        total = series[0][1]
    else:
        first, last = max(t[0] for t, _ in series), min(t[-1] for t, _ in series)
        if first > last:
            note = caution("cards_not_together")
            return Estimate(value=None, unit="w", cautions=(note,))
        moments = np.append(np.arange(first, last, TICK_S), last)
        total = np.sum([np.interp(moments, time, watts) for time, watts in series], axis=0)
    peak = float(total.max())
    notes: list[Caution] = []
    if not instant and any((p["power_kind"] == "avg1s").any() for p in parts):
        notes.append(caution("peak_of_averages"))
    if supply_limit_w is not None and peak > supply_limit_w:
        notes.append(caution("supply_exceeded", peak_w=peak, limit_w=supply_limit_w))
    elif supply_limit_w is not None and peak * (1 + GAIN_ERROR) > supply_limit_w:
        notes.append(caution("supply_close", peak_w=peak, limit_w=supply_limit_w))
    return Estimate(value=peak, unit="w", n=sum(p.height for p in parts), cautions=tuple(notes))


def _inside(trace: Trace, start_s: float | None, end_s: float | None) -> pl.DataFrame:
    samples = trace.samples
    if start_s is not None:
        samples = samples.filter(pl.col("time_epoch_s") >= start_s)
    if end_s is not None:
        samples = samples.filter(pl.col("time_epoch_s") <= end_s)
    return samples
