"""The GPUs of an arm one by one: power, memory, clock, how unequal, and their sum at its peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from gpuverdict.capacity.watermarks import run_samples
from gpuverdict.energy import card_imbalance, peak_node_power, per_card, traced_gpus
from gpuverdict.errors import Caution
from gpuverdict.measured import Measured, MeasuredRun
from gpuverdict.schema import Trace
from gpuverdict.store import StoredRun
from gpuverdict.summary import Summary
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["CardUse", "arm_card_use"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardUse:
    """What the GPUs of an arm did at its highest load.

    Attributes
    ----------
    cards : polars.DataFrame
        One row a GPU: `gpu`, `power_mean_w`, `sm_clock_p50_mhz`, `throttled_ratio` (medians over
        runs), `power_max_w`, `memory_peak_mib`, `temperature_max_c` (largest), `n_runs`.
    imbalance : mapping
        `power_w`, `memory_used_mib`, `sm_clock_mhz` -> (max - min) / mean between the GPUs: median
        over runs, with the smallest and largest run as `low` and `high` (a range, no interval).
    node_peak_w : Estimate
        Largest power of all GPUs together, over all runs and probes of the arm; no host in it.
        `node_peak_level` None: in a prefill probe.
    supply_limit_w : float or None
        The declared limit it is held against.
    """

    arm: str
    level: Mapping[str, float]
    cards: pl.DataFrame
    imbalance: Mapping[str, Estimate] = field(default_factory=dict)
    node_peak_w: Estimate
    node_peak_level: Mapping[str, float] | None = None
    supply_limit_w: float | None = None
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        return f"{self.arm}: {self.cards.height} GPUs, at most {self.node_peak_w} together"


def arm_card_use(measured: Measured, summary: Summary, arm: str, workload: str = "main") -> CardUse:
    """Say what each GPU of an arm drew, held and ran at, and what all drew together at most.

    Examples
    --------
    >>> from gpuverdict.case import open_campaign
    >>> use = arm_card_use(*open_campaign("data/h200/campaign.yaml"), "card-a")
    >>> use.cards.height, use.node_peak_w.value > 700
    (1, True)
    """
    return summary.once(("card_use", arm, workload), lambda: _use(measured, summary, arm, workload))


def _use(measured: Measured, summary: Summary, arm: str, workload: str) -> CardUse:
    runs = [r for r in measured.runs_of(arm) if r.workload == workload]
    spec = measured.campaign.arms[arm]
    top = max((r.level for r in runs), key=lambda level: max(level.values()), default={})
    # Prefill alone can draw more than any mixed load: the probes count for the supply.
    loads: dict[str, tuple[StoredRun, Mapping[str, float] | None]] = {
        r.key: (r.stored, r.level) for r in runs
    }
    loads.update({f"probe/{p.info['run_id']}": (p, None) for p in measured.probes[arm]})
    found, why = _held(
        {key: run_samples(measured, arm, load) for key, (load, _) in loads.items()}, spec.gpus, arm
    )
    peak, where = _node_peak(loads, found, spec.supply_limit_w, why)
    if not found:
        return CardUse(arm=arm, level=top, cards=pl.DataFrame(), node_peak_w=peak,
                       supply_limit_w=spec.supply_limit_w, cautions=why)  # fmt: skip
    frames, uneven = [], []
    for run in runs:
        if run.level != top or run.key not in found:
            continue
        trace = Trace(samples=found[run.key])
        start, end = _window(run, summary)
        frames.append(per_card(trace, start, end))
        if spec.gpus > 1:
            uneven.append(card_imbalance(trace, start, end))
    return CardUse(
        arm=arm,
        level=top,
        cards=_over_runs(frames, found),
        imbalance=_ranges(uneven),
        node_peak_w=peak,
        node_peak_level=where,
        supply_limit_w=spec.supply_limit_w,
        cautions=why,
    )


def _held(
    traces: Mapping[str, tuple[pl.DataFrame, tuple[Caution, ...]]], gpus: int, arm: str
) -> tuple[dict[str, pl.DataFrame], tuple[Caution, ...]]:
    """Samples of the runs whose trace holds the GPUs of the arm and no other."""
    found: dict[str, pl.DataFrame] = {}
    said: dict[str, Caution] = {}
    if not traces:
        said["mark_no_trace"] = caution("mark_no_trace", arm=arm)
    for key, (samples, why) in traces.items():
        said.update({c.code: c for c in why})
        if samples.is_empty():
            continue
        held = traced_gpus(Trace(samples=samples))
        if held != gpus:
            said["gpu_count"] = caution("gpu_count", found=held, expected=gpus)
        else:
            found[key] = samples
    return found, tuple(said.values())


def _window(run: MeasuredRun, summary: Summary) -> tuple[float, float]:
    """Epoch seconds of the run's steady window, else of all of it."""
    window = summary.facts[run.key].window
    t0 = float(run.stored.info["t0_epoch_s"])
    end = window.end_s if window.end_s is not None else float(run.stored.info["duration_s"])
    return t0 + window.start_s, t0 + end


def _over_runs(frames: Sequence[pl.DataFrame], found: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    held = [frame for frame in frames if frame.height]
    if not held:
        return pl.DataFrame()
    samples = pl.concat(found.values(), how="vertical_relaxed")
    order = (
        samples.select(
            gpu=pl.coalesce("gpu_uuid", pl.col("gpu_index").cast(pl.String), pl.lit("GPU")),
            gpu_index="gpu_index",
        )
        .unique()
        .with_columns(
            label=pl.when(pl.col("gpu_index").is_not_null())
            .then(pl.format("GPU {}", "gpu_index"))
            .otherwise("gpu")
        )
        .unique("gpu", keep="first")
    )
    middle = ("power_mean_w", "sm_clock_p50_mhz", "throttled_ratio")
    largest = ("power_max_w", "memory_peak_mib", "temperature_max_c")
    return (
        pl.concat(held, how="vertical_relaxed")
        .group_by("gpu")
        .agg(pl.col(*middle).median(), pl.col(*largest).max(), pl.len().alias("n_runs"))
        .join(order, on="gpu")
        .sort("gpu_index", "gpu")
        .drop("gpu", "gpu_index")
        .rename({"label": "gpu"})
    )


def _ranges(uneven: Sequence[Mapping[str, Estimate]]) -> dict[str, Estimate]:
    told: dict[str, Estimate] = {}
    for name in ("power_w", "memory_used_mib", "sm_clock_mhz"):
        entries = [entry[name] for entry in uneven]
        values = [e.value for e in entries if e.value is not None]
        if values:
            told[name] = Estimate(
                value=float(np.median(values)), low=min(values), high=max(values), unit="ratio",
                n=len(values),
            )  # fmt: skip
        elif entries:
            told[name] = entries[0]
    return told


def _node_peak(
    loads: Mapping[str, tuple[StoredRun, Mapping[str, float] | None]],
    found: Mapping[str, pl.DataFrame], limit_w: float | None, why: tuple[Caution, ...],
) -> tuple[Estimate, Mapping[str, float] | None]:  # fmt: skip
    highest: tuple[Estimate, Mapping[str, float] | None] = (
        Estimate(value=None, unit="w", cautions=why), None,
    )  # fmt: skip
    for key, samples in found.items():
        load, level = loads[key]
        t0, length = float(load.info["t0_epoch_s"]), float(load.info["duration_s"])
        peak = peak_node_power(Trace(samples=samples), t0, t0 + length, limit_w)
        if highest[0].value is None or (peak.value or 0.0) > highest[0].value:
            highest = (peak, level)
    return highest
