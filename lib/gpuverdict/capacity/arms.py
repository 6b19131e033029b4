"""The arms of a campaign seen by curves and capacity: from its facts and its summary frame."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl

from gpuverdict.campaign import Arm, Campaign
from gpuverdict.capacity.memory import GIB, MemoryPlan, kv_bytes_per_token, plan_memory
from gpuverdict.capacity.roofline import Roofline, decode_roofline, prefill_roofline
from gpuverdict.capacity.slo import SloCapacity, slo_capacity
from gpuverdict.curves import CurveFit, fit_curve
from gpuverdict.curves.fit import fit_throughput_curve
from gpuverdict.curves.step import two_stage
from gpuverdict.errors import Caution, ParameterError
from gpuverdict.hardware import identify, resolve_gpu
from gpuverdict.schema import Trace
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = [
    "ArmLimits",
    "arm_curve",
    "arm_infeasible",
    "arm_limits",
    "arm_memory",
    "arm_rooflines",
    "arm_slo",
    "device_memory",
    "run_estimate",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmLimits:
    """Limits of one GPU of an arm: measured probes first, then the catalogue.

    `sources` says for each figure where it comes from (`probe`, `catalogue`, `device`, `declared`).
    """

    bandwidth_bytes_per_s: float | None
    compute_flops_per_s: float | None
    memory_bytes: float | None
    tdp_w: float | None
    sources: Mapping[str, str]


# Key of `probes:` in the campaign -> what it replaces.
PROBES = {
    "copy_bandwidth_gb_per_s": "bandwidth",
    "memory_bandwidth_gb_per_s": "bandwidth",
    "gemm_tflops": "compute",
    "bf16_dense_tflops": "compute",
}


def arm_limits(arm: Arm, device_memory_mib: float | None = None) -> ArmLimits:
    """Return the limits of one GPU of an arm.

    Parameters
    ----------
    device_memory_mib : float, optional
        What the device itself reports; it goes before the catalogue.
    """
    row = resolve_gpu(arm.gpu)
    from_card = "catalogue" if isinstance(arm.gpu, str) else "declared"
    bits = (arm.precision or "").lower()
    compute = row.bf16_dense_tflops
    if "fp8" in bits:
        compute = row.fp8_dense_tflops
    elif "int8" in bits or "w8a8" in bits:
        compute = row.int8_dense_tops
    values: dict[str, float | None] = {
        "bandwidth": _times(row.memory_bandwidth_gb_per_s, 1e9),
        "compute": _times(compute, 1e12),
        "memory": _times(row.memory_gb, GIB),
    }
    sources = dict.fromkeys(values, from_card)
    for name, scale in (("bandwidth", 1e9), ("compute", 1e12)):
        measured = [
            arm.probes[key] for key, what in PROBES.items() if what == name and key in arm.probes
        ]
        if measured:
            values[name], sources[name] = measured[0] * scale, "probe"
    if device_memory_mib:
        values["memory"], sources["memory"] = device_memory_mib * 2**20, "device"
    return ArmLimits(
        bandwidth_bytes_per_s=values["bandwidth"],
        compute_flops_per_s=values["compute"],
        memory_bytes=values["memory"],
        tdp_w=row.tdp_w,
        sources=sources,
    )


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def device_memory(
    inventories: Mapping[str, pl.DataFrame], traces: Mapping[str, Sequence[Trace]]
) -> dict[str, float | None]:
    """Return the memory of one GPU of each arm as its devices report it, MiB; None if they do not.

    The smallest card of an arm counts: a model split over cards fills that one first.
    """
    found: dict[str, float | None] = {}
    for arm in inventories:
        devices = identify(inventories[arm], traces.get(arm, ()))
        sizes = [size for size in devices.memory_mib if size] if devices else []
        found[arm] = min(sizes) if sizes else None
    return found


def arm_infeasible(campaign: Campaign, arm: str, workload: str = "main") -> list[float]:
    """Return the levels a campaign declares that an arm could not run."""
    own = [e for e in campaign.arms[arm].infeasible if e.workload in (None, workload)]
    outer = [e for e in campaign.infeasible if e.arm == arm and e.workload in (None, workload)]
    return sorted({e.level for e in (*own, *outer)})


def _table(frame: pd.DataFrame, arm: str, workload: str) -> pd.DataFrame:
    """One row a run, one column a metric and statistic, steady windows only."""
    own = frame[
        (frame["arm"] == arm) & (frame["workload"] == workload) & (frame["window"] == "steady")
        & frame["level"].notna()
    ]  # fmt: skip
    if own.empty:
        return pd.DataFrame()
    keyed = own.assign(key=own["metric"] + " " + own["statistic"])
    wide = keyed.pivot_table(
        index=["run_id", "level", "repeat_no"], columns="key", values="value", aggfunc="first"
    ).reset_index()
    return wide.sort_values(["repeat_no", "level", "run_id"], ignore_index=True)


def run_estimate(
    frame: pd.DataFrame, arm: str, level: Mapping[str, float], metric: str,
    statistic: str = "value", workload: str = "main", unit: str = "", confidence: float = 0.95,
) -> Estimate:  # fmt: skip
    """Return the geometric mean over runs of one number of a cell, with its t interval."""
    rows = frame[
        (frame["arm"] == arm) & (frame["workload"] == workload) & (frame["window"] == "steady")
        & (frame["metric"] == metric) & (frame["statistic"] == statistic)
    ]  # fmt: skip
    rows = rows[rows["level"] == json.dumps(dict(level), sort_keys=True)]
    values = rows["value"].dropna()
    values = values[values > 0]
    if not len(values):
        return Estimate(value=None, unit=unit)
    logs = np.log(np.sort(values.to_numpy(float)))
    if len(logs) < 2:
        return Estimate(value=float(np.exp(logs[0])), unit=unit, n=1)
    mean, low, high = (float(np.exp(x)) for x in two_stage(logs, confidence))
    return Estimate(value=mean, low=low, high=high, confidence=confidence, unit=unit, n=len(logs))


def arm_curve(
    frame: pd.DataFrame,
    campaign: Campaign,
    arm: str,
    workload: str = "main",
    *,
    metric: str = "tpot_s",
    statistic: str = "p50",
    against: Literal["concurrency", "decode_batch", "level"] = "concurrency",
) -> CurveFit | None:
    """Fit one arm's step time (or another time) against its batch; None where it cannot be.

    Parameters
    ----------
    metric, statistic : str
        A time; `output_tokens_per_s` fits the saturation curve of the throughput itself.
    against : str
        Achieved mean concurrency, the recovered decode batch, or the nominal level.

    Notes
    -----
    Where a run has no such driver (no start times) the nominal level stands in its place.
    """
    table = _table(frame, arm, workload)
    name = f"{metric} {statistic}"
    if table.empty or name not in table:
        return None
    nominal = [float(next(iter(json.loads(level).values()))) for level in table["level"]]
    driver = f"{against} value"
    batch = table[driver].fillna(pd.Series(nominal)) if driver in table else pd.Series(nominal)
    values = [None if pd.isna(v) else float(v) for v in table[name]]
    each = campaign.arms[arm].server_starts == "each" and table["level"].nunique() > 1
    fit = fit_throughput_curve if metric == "output_tokens_per_s" else fit_curve
    try:
        return fit(
            batch.astype(float).tolist(),
            values,
            table["repeat_no"].tolist(),
            design="cells" if each and _one_level_a_sweep(table) else "sweep",
            infeasible=arm_infeasible(campaign, arm, workload),
        )
    except ParameterError:
        # Too few levels: not a user's mistake here, the campaign simply has no curve.
        return None


def _one_level_a_sweep(table: pd.DataFrame) -> bool:
    return bool(table.groupby("repeat_no")["level"].nunique().max() == 1)


def _model_bytes(campaign: Campaign, arm: str) -> tuple[float | None, float | None, float | None]:
    """Weight bytes, bytes a decode step reads, KV bytes a token; None where not given."""
    model = campaign.model_of(arm)
    if model is None:
        return None, None, None
    weights = model.weight_bytes
    if weights is None and model.parameters and model.weight_bits:
        weights = model.parameters * model.weight_bits / 8
    read = model.read_bytes_per_step
    if read is None and weights is not None and model.parameters:
        read = weights * (model.active_parameters or model.parameters) / model.parameters
    kv = model.kv_bytes_per_token
    if kv is None and model.layers and model.kv_heads and model.head_dim:
        kv = kv_bytes_per_token(
            layers=model.layers, kv_heads=model.kv_heads, head_dim=model.head_dim,
            kv_bits=model.kv_bits or 16,
        )  # fmt: skip
    return weights, read, kv


def _shape_apart(campaign: Campaign, arm: str) -> tuple[Caution, ...]:
    """Say where a factor of an arm names another shape than its model has."""
    model, factors = campaign.model_of(arm), campaign.arms[arm].factors
    return tuple(
        caution("model_shape_apart", arm=arm, key=key, declared=factors[key], held=held)
        for key in ("layers", "kv_heads", "head_dim")
        if key in factors and (held := getattr(model, key, None)) not in (None, factors[key])
    )


def _context(campaign: Campaign, workload: str) -> tuple[float | None, float | None]:
    """Mean context while decoding, and the full context, of a workload's lengths."""
    spec = campaign.all_workloads()[workload]
    if not spec.input_tokens or not spec.output_tokens:
        return None, None
    return spec.input_tokens + spec.output_tokens / 2, float(spec.input_tokens + spec.output_tokens)


def arm_rooflines(
    frame: pd.DataFrame,
    campaign: Campaign,
    arm: str,
    workload: str = "main",
    *,
    device_memory_mib: float | None = None,
) -> list[tuple[Mapping[str, float], Roofline]]:
    """Set every measured level of an arm against the limits of its card.

    The decode step is the device's clean-gap step where the summary has it, else median TPOT. The
    prefill point is the unloaded time to first token at one stream.
    """
    weights, read, kv = _model_bytes(campaign, arm)
    model = campaign.model_of(arm)
    if model is None or read is None or not model.parameters:
        return []
    limits = arm_limits(campaign.arms[arm], device_memory_mib)
    context, _ = _context(campaign, workload)
    gpus = campaign.arms[arm].tensor_parallel or campaign.arms[arm].gpus
    active = model.active_parameters or model.parameters
    own = frame[(frame["arm"] == arm) & (frame["workload"] == workload)]
    found: list[tuple[Mapping[str, float], Roofline]] = []
    for level_text in sorted(set(own["level"].dropna()), key=_level_order):
        level = json.loads(level_text)
        options: dict[str, Any] = {"workload": workload, "unit": "s"}
        step = run_estimate(frame, arm, level, "decode_step_s", "value", **options)
        user = step.value is None
        if user:
            step = run_estimate(frame, arm, level, "tpot_s", "p50", **options)
        batch = run_estimate(frame, arm, level, "decode_batch", workload=workload).value
        if step.value is not None:
            found.append(
                (
                    level,
                    decode_roofline(
                        step,
                        read_bytes_per_step=read,
                        active_parameters=active,
                        kv_bytes_per_token=kv,
                        batch=batch or float(next(iter(level.values()))),
                        context_tokens=context or 0.0,
                        bandwidth_bytes_per_s=limits.bandwidth_bytes_per_s,
                        compute_flops_per_s=limits.compute_flops_per_s,
                        gpus=gpus,
                        experts=model.active_parameters is not None,
                        user_step=user,
                    ),
                )
            )
        first = run_estimate(frame, arm, level, "ttft_s", "p50", **options)
        prompt = campaign.all_workloads()[workload].input_tokens
        if level == {"concurrency": 1} and first.value is not None and prompt and weights:
            width = model.kv_heads * model.head_dim if model.kv_heads and model.head_dim else None
            found.append(
                (
                    level,
                    prefill_roofline(
                        first,
                        prompt_tokens=prompt,
                        active_parameters=active,
                        read_bytes=weights,
                        layers=model.layers,
                        width=width,
                        bandwidth_bytes_per_s=limits.bandwidth_bytes_per_s,
                        compute_flops_per_s=limits.compute_flops_per_s,
                        gpus=gpus,
                    ),
                )
            )
    apart = _shape_apart(campaign, arm)
    return [(level, replace(line, cautions=(*line.cautions, *apart))) for level, line in found]


def _level_order(level: str) -> tuple[str, float]:
    (kind, value), *_ = json.loads(level).items()
    return kind, float(value)


def arm_memory(
    campaign: Campaign,
    arm: str,
    workload: str = "main",
    *,
    device_memory_mib: float | None = None,
) -> MemoryPlan | None:
    """Say how much context and how many requests an arm can hold; None without a model shape.

    Needs no run: an arm that was never measured gets its answer too, marked as computed.
    """
    weights, _, kv = _model_bytes(campaign, arm)
    spec = campaign.arms[arm]
    limits = arm_limits(spec, device_memory_mib)
    _, context = _context(campaign, workload)
    model = campaign.model_of(arm)
    if weights is None or kv is None or limits.memory_bytes is None:
        return None
    split = (spec.tensor_parallel or 1) * (spec.pipeline_parallel or 1)
    if split == 1 and not spec.data_parallel:
        split = spec.gpus
    plan = plan_memory(
        weights_bytes=weights,
        kv_bytes_per_token=kv,
        memory_bytes_per_gpu=limits.memory_bytes,
        gpus=spec.gpus,
        tensor_parallel=split if spec.gpus % split == 0 and split <= spec.gpus else spec.gpus,
        kv_heads=model.kv_heads if model else None,
        context_tokens=int(context or 2048),
    )
    return replace(plan, cautions=(*plan.cautions, *_shape_apart(campaign, arm)))


def arm_slo(
    frame: pd.DataFrame, campaign: Campaign, arm: str, workload: str = "main"
) -> list[SloCapacity]:
    """Return what an arm carries within the campaign's SLO, one entry a kind of load."""
    slo = campaign.slo_of(workload)
    if not slo:
        return []
    return slo_capacity(
        frame, slo, arm, workload, infeasible=arm_infeasible(campaign, arm, workload)
    )
