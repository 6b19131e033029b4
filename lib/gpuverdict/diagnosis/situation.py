"""What is known of one arm at one level: the facts the rules look at, unknown ones as None."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from gpuverdict.align import place
from gpuverdict.diagnosis.beside import level_facts, look_beside, main_spans
from gpuverdict.errors import Caution
from gpuverdict.hardware import resolve_gpu
from gpuverdict.health import Health
from gpuverdict.measured import Measured, MeasuredRun
from gpuverdict.steady import Window, gap_table, spike_mask
from gpuverdict.summary import Summary

__all__ = ["Situation", "observe"]

LATE_S = 1800.0
# column of the samples -> field; time means over the windows of the runs.
_SAMPLED = {
    "gpu_util_ratio": "gpu_util_ratio",
    "tensor_active_ratio": "tensor_active_ratio",
    "dram_active_ratio": "dram_active_ratio",
    "power_limit_w": "power_limit_w",
    "memory_total_mib": "memory_total_mib",
}
_SUMMED = {
    "ttft_p50_s": ("ttft_s", "p50"),
    "ttft_p99_s": ("ttft_s", "p99"),
    "tpot_p50_s": ("tpot_s", "p50"),
    "tpot_p99_s": ("tpot_s", "p99"),
    "decode_step_s": ("decode_step_s", "value"),
    "scheduling_excess_s": ("scheduling_excess_s", "mean"),
    "decode_batch": ("decode_batch", "value"),
    "observed_streams": ("concurrency", "value"),
    "output_tokens_per_s": ("output_tokens_per_s", "value"),
    "error_ratio": ("error_ratio", "value"),
    "power_w": ("power_w", "value"),
    "memory_used_mib": ("memory_used_mib", "value"),
    "throttled_ratio": ("throttled_ratio", "value"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One arm at one level, medians over its runs. None means unknown, and no rule fires on it.

    What server and host say themselves (`server_*`, `network_s`, `kv_cache_use_ratio`, ... and
    `host_*`) is of this level's runs alone; `server_source` says where it is from, `cautions` why
    there is none. Shares and counts that stand for the worst moment are the highest over the runs.

    Times in seconds, ratios 0-1, memory in MiB; `power_w`, `power_limit_w` and memory are sums over
    the GPUs. `unloaded_ttft_s` is the TTFT p50 at one stream of the same arm. `step_bytes` are read
    by one decode step, `bandwidth_bytes_per_s` is the data sheet's, times the GPUs.
    `late_spike_factor` compares the spike rate after half an hour with that before.
    """

    arm: str
    workload: str = "main"
    level: Mapping[str, float] = field(default_factory=dict)
    gpu: str = ""
    gpus: int = 1
    model: str = ""
    precision: str = ""
    scheduler: Mapping[str, Any] = field(default_factory=dict)
    memory_gb: float | None = None
    bandwidth_bytes_per_s: float | None = None
    step_bytes: float | None = None
    interconnect: str = ""
    n_requests: int = 0
    observed_streams: float | None = None
    output_tokens_per_s: float | None = None
    ttft_p50_s: float | None = None
    ttft_p99_s: float | None = None
    tpot_p50_s: float | None = None
    tpot_p99_s: float | None = None
    decode_step_s: float | None = None
    decode_batch: float | None = None
    unloaded_ttft_s: float | None = None
    scheduling_excess_s: float | None = None
    server_queue_s: float | None = None
    client_late_p99_s: float | None = None
    host_work_s: float | None = None
    rtt_s: float | None = None
    input_spread: float | None = None
    error_ratio: float | None = None
    gpu_util_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    memory_moves: bool | None = None
    throttled_ratio: float | None = None
    throttle: bool | None = None
    slowdown_ratio: float | None = None
    late_spike_factor: float | None = None
    server_prefill_s: float | None = None
    server_decode_s: float | None = None
    network_s: float | None = None
    prefill_estimate_s: float | None = None
    excess_estimate_s: float | None = None
    server_source: str = ""
    n_server_joined: int = 0
    prefix_cache_hit_ratio: float | None = None
    kv_cache_use_ratio: float | None = None
    preemptions: float | None = None
    waiting_requests: float | None = None
    running_requests: float | None = None
    host_cpu_busy_ratio: float | None = None
    host_core_busy_ratio: float | None = None
    host_process_cpu_ratio: float | None = None
    host_process_name: str | None = None
    host_io_wait_ratio: float | None = None
    host_memory_free_mib: float | None = None
    host_swap_mib_s: float | None = None
    host_run_queue: float | None = None
    host_network_mb_s: float | None = None
    host_network_use_ratio: float | None = None
    cautions: tuple[Caution, ...] = ()

    @property
    def streams(self) -> float | None:
        """Streams asked for; None in an open loop."""
        return self.level.get("concurrency")

    @property
    def step_s(self) -> float | None:
        """The device decode step, or what one stream's user sees of it."""
        if self.decode_step_s is not None:
            return self.decode_step_s
        return self.tpot_p50_s if self.streams == 1 else None


def observe(
    measured: Measured, summary: Summary, health: Health, arms: Sequence[str]
) -> list[Situation]:
    """Collect the situations of arms: one an arm, workload and level, in order.

    Parameters
    ----------
    measured, summary, health
        A campaign, read, summarised and checked.
    arms : sequence of str
        Which arms.
    """
    found = []
    for arm in arms:
        cells: dict[tuple[str, str], list[MeasuredRun]] = {}
        for run in measured.runs_of(arm):
            cells.setdefault((run.workload, run.level_key), []).append(run)
        fixed = _facts_of(measured, arm)
        probes = [probe.load() for probe in measured.probes[arm]]
        logs = measured.server_logs.get(arm, ())
        spans = main_spans(measured, arm) if measured.server_metrics.get(arm) else {}
        for (workload, level_key), runs in cells.items():
            values = _from_summary(summary.frame, arm, workload, level_key)
            alone = _from_summary(summary.frame, arm, workload, json.dumps({"concurrency": 1}))
            known: dict[str, Any] = {
                **fixed,
                **values,
                **_from_traces(measured, summary, runs),
                **_from_rows(summary, health, runs),
                **level_facts(
                    [
                        look_beside(measured, r, summary.facts[r.key].window, probes, spans)
                        for r in runs
                    ],
                    [f for f in logs if f.level is None or f.level in runs[0].level.values()],
                ),
                "step_bytes": _step_bytes(measured, arm, values, runs, summary),
                "unloaded_ttft_s": alone.get("ttft_p50_s"),
            }
            level = json.loads(level_key)
            found.append(Situation(arm=arm, workload=workload, level=level, **known))
    return found


def _facts_of(measured: Measured, name: str) -> dict[str, Any]:
    campaign = measured.campaign
    arm = campaign.arms[name]
    row = resolve_gpu(arm.gpu)
    model = campaign.model_of(name)
    bandwidth = row.memory_bandwidth_gb_per_s
    place_of = arm.client
    return {
        "gpu": row.name,
        "gpus": arm.gpus,
        "model": "" if model is None else str(model.name),
        "precision": str(arm.precision or ""),
        "scheduler": dict(arm.scheduler),
        "memory_gb": None if row.memory_gb is None else row.memory_gb * arm.gpus,
        "bandwidth_bytes_per_s": None if bandwidth is None else bandwidth * 1e9 * arm.gpus,
        "interconnect": row.interconnect,
        "host_work_s": None if place_of is None else place_of.host_work_s,
        "rtt_s": None if place_of is None else place_of.rtt_s,
    }


def _step_bytes(
    measured: Measured,
    arm: str,
    values: Mapping[str, float | None],
    runs: Sequence[MeasuredRun],
    summary: Summary,
) -> float | None:
    """Bytes one decode step reads: the weights once, and the KV cache of the whole batch."""
    model = measured.campaign.model_of(arm)
    if model is None:
        return None
    weights = model.read_bytes_per_step or model.weight_bytes
    if weights is None and model.parameters and model.weight_bits and not model.active_parameters:
        weights = model.parameters * model.weight_bits / 8
    if weights is None:
        return None
    per_token = model.kv_bytes_per_token
    if per_token is None and model.layers and model.kv_heads and model.head_dim and model.kv_bits:
        per_token = 2 * model.layers * model.kv_heads * model.head_dim * model.kv_bits / 8
    batch = values.get("decode_batch")
    if per_token is None or batch is None:
        return weights
    tokens = [_mean_length(summary.facts[run.key].input_lengths) for run in runs]
    made = [_mean_length(summary.facts[run.key].output_lengths) for run in runs]
    return weights + batch * per_token * (float(np.mean(tokens)) + 0.5 * float(np.mean(made)))


def _mean_length(lengths: Mapping[int, int]) -> float:
    total = sum(lengths.values())
    return sum(k * n for k, n in lengths.items()) / total if total else 0.0


def _from_summary(
    frame: pd.DataFrame, arm: str, workload: str, level: str
) -> dict[str, float | None]:
    rows = frame[(frame.arm == arm) & (frame.workload == workload) & (frame.level == level)]
    rows = rows[rows.window.isin(["steady", "whole_run"]) & rows.value.notna()]
    # "steady" sorts before "whole_run": a run without a steady window still says something.
    rows = rows.sort_values("window").drop_duplicates(["run_id", "metric", "statistic"])
    middle = rows.groupby(["metric", "statistic"]).value.median()
    return {name: float(middle[key]) for name, key in _SUMMED.items() if key in middle.index}


def _from_traces(
    measured: Measured, summary: Summary, runs: Sequence[MeasuredRun]
) -> dict[str, float | bool | None]:
    means: dict[str, list[float]] = {name: [] for name in _SAMPLED}
    moves = []
    for run in runs:
        window = summary.facts[run.key].window
        inside = _samples(measured, run, window)
        if inside is None or inside.is_empty():
            continue
        gpus = max(1, inside.select("gpu_uuid", "gpu_index").n_unique())
        for column in _SAMPLED:
            value = inside[column].mean()
            if value is not None:
                # Limits and memory add up over GPUs; activity is a mean.
                times = gpus if column in ("power_limit_w", "memory_total_mib") else 1
                means[column].append(float(value) * times)  # type: ignore[arg-type]
        used = inside["memory_used_mib"].drop_nulls()
        if used.len():
            moves.append(used.n_unique() > gpus)
    known: dict[str, float | bool | None] = {
        name: float(np.median(values)) for name, values in means.items() if values
    }
    if moves:
        known["memory_moves"] = any(moves)
    return known


def _samples(measured: Measured, run: MeasuredRun, window: Window) -> pl.DataFrame | None:
    data = run.stored.load()
    for trace in measured.traces[run.arm]:
        offset, _ = place(data, trace)
        if offset is None or window.end_s is None:
            continue
        inside = pl.col("time_epoch_s").is_between(offset + window.start_s, offset + window.end_s)
        return trace.samples.filter(inside)
    return None


def _from_rows(summary: Summary, health: Health, runs: Sequence[MeasuredRun]) -> dict[str, Any]:
    lengths: dict[int, int] = {}
    slow: list[float] = []
    throttles: list[bool | None] = []
    n: list[int] = []
    late: list[Any] = []
    spikes: list[float] = []
    for run in runs:
        fact = summary.facts[run.key]
        for length, count in fact.input_lengths.items():
            lengths[length] = lengths.get(length, 0) + count
        n.append(fact.n_by_status.get("ok", 0))
        found = health.runs.get(run.key)
        if found is not None:
            slow += [
                d.change_ratio or 0.0 for d in found.drifts if d.alarm and d.metric == "tpot_s"
            ]
            if found.step is not None and found.step.alarm:
                slow.append(found.step.change_ratio or 0.0)
                throttles.append(found.step.throttle)
        requests = run.stored.requests().filter(pl.col("phase") == "main")
        if "rate_requests_per_s" in run.level and requests["client_queue_s"].null_count() == 0:
            late.append(requests["client_queue_s"].quantile(0.99, "linear"))
        factor = _late_spikes(run, fact.window)
        if factor is not None:
            spikes.append(factor)
    rises = [s for s in slow if s > 0]
    spread = None
    if lengths:
        sizes = np.repeat(list(lengths), list(lengths.values()))
        low, high = np.percentile(sizes, [10, 90])
        spread = float(high / low) if low > 0 else None
    return {
        "n_requests": int(np.median(n)) if n else 0,
        "input_spread": spread,
        "slowdown_ratio": max(rises) if rises else None,
        "throttle": any(bool(t) for t in throttles) if throttles else None,
        "client_late_p99_s": float(np.median(late)) if late else None,
        "late_spike_factor": float(np.median(spikes)) if spikes else None,
    }


def _late_spikes(run: MeasuredRun, window: Window) -> float | None:
    """Spike rate after half an hour over the rate before it, of runs long enough to have both."""
    if window.end_s is None or window.end_s < LATE_S * 4 / 3:
        return None
    gaps = gap_table(run.stored.load(), window).filter(pl.col("end_s").is_not_null())
    if gaps.is_empty():
        return None
    marked = spike_mask(gaps["gap_s"].to_numpy())
    after = gaps["end_s"].to_numpy() > LATE_S
    if not after.any() or after.all() or marked[after].sum() < 10:
        return None
    # One spike more than seen keeps a clean first half an hour from dividing by zero.
    before_rate = (marked[~after].sum() + 1) / (~after).sum()
    return float(marked[after].mean() / before_rate)
