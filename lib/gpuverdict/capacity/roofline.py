"""How far each phase is from the physical limit of the card, and what no card can do."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = [
    "Roofline",
    "check_phase_ratio",
    "decode_roofline",
    "prefill_flops",
    "prefill_roofline",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """One phase against the limits of its card.

    Attributes
    ----------
    bound_s : float or None
        Shortest possible time of the step or prompt under the assumptions.
    binds : "memory", "compute" or None
        Which limit that is.
    mbu_ratio, mfu_ratio : Estimate
        Shares of memory bandwidth and of dense compute in use.
    achieved_bytes_per_s, achieved_flops_per_s : float
        What the measured time implies.
    impossible : bool
        The measured time is shorter than the bound: under these assumptions no card can.
    assumptions : tuple of Caution
        What was taken for granted; printed with the number.
    """

    phase: str
    measured_s: float
    bound_s: float | None
    binds: str | None
    bytes_moved: float
    flops: float
    achieved_bytes_per_s: float
    achieved_flops_per_s: float
    mbu_ratio: Estimate
    mfu_ratio: Estimate
    impossible: bool
    assumptions: tuple[Caution, ...] = ()
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        parts = [f"{self.phase}: {1e3 * self.measured_s:.4g} ms"]
        if self.bound_s is not None:
            parts.append(f"bound {1e3 * self.bound_s:.4g} ms ({self.binds})")
        for name, share in (("MBU", self.mbu_ratio), ("MFU", self.mfu_ratio)):
            if share.value is not None:
                parts.append(f"{name} {share.value:.1%}")
        if self.impossible:
            parts.append("impossible under the assumptions")
        return ", ".join(parts)


def _roofline(
    phase: str,
    time_s: Estimate | float,
    moved: float,
    flops: float,
    bandwidth: float | None,
    compute: float | None,
    assumptions: list[Caution],
) -> Roofline:
    measured = time_s if isinstance(time_s, Estimate) else Estimate(value=float(time_s), unit="s")
    value = measured.value
    if value is None or not (math.isfinite(value) and value > 0):
        raise ParameterError(f"{phase} time", found=repr(value), expected="a positive time")
    bounds = {}
    said = []
    if bandwidth:
        bounds["memory"] = moved / bandwidth
    else:
        said.append(caution("limit_unknown", what="memory bandwidth"))
    if compute:
        bounds["compute"] = flops / compute
    else:
        said.append(caution("limit_unknown", what="dense compute"))
    binds = max(bounds, key=lambda name: bounds[name]) if bounds else None
    bound = bounds[binds] if binds else None
    impossible = bound is not None and value < bound
    if impossible:
        said.append(caution("faster_than_limit", value=1e3 * value, bound=1e3 * float(bound or 0)))
    return Roofline(
        phase=phase,
        measured_s=value,
        bound_s=bound,
        binds=binds,
        bytes_moved=moved,
        flops=flops,
        achieved_bytes_per_s=moved / value,
        achieved_flops_per_s=flops / value,
        mbu_ratio=_share(moved, bandwidth, measured),
        mfu_ratio=_share(flops, compute, measured),
        impossible=impossible,
        assumptions=tuple(assumptions),
        cautions=tuple(said),
    )


def _share(work: float, limit: float | None, time_s: Estimate) -> Estimate:
    if not limit or time_s.value is None:
        return Estimate(value=None, unit="ratio")
    known = time_s.low is not None and time_s.high is not None
    return Estimate(
        value=work / limit / time_s.value,
        low=work / limit / time_s.high if known and time_s.high else None,
        high=work / limit / time_s.low if known and time_s.low else None,
        confidence=time_s.confidence,
        unit="ratio",
        n=time_s.n,
    )


def decode_roofline(
    step_s: Estimate | float,
    *,
    read_bytes_per_step: float,
    active_parameters: float,
    kv_bytes_per_token: float | None = None,
    batch: float = 1.0,
    context_tokens: float = 0.0,
    bandwidth_bytes_per_s: float | None = None,
    compute_flops_per_s: float | None = None,
    gpus: int = 1,
    experts: bool = False,
    user_step: bool = False,
) -> Roofline:
    """Say what share of memory bandwidth and compute a decode step uses.

    Parameters
    ----------
    step_s : Estimate or float
        Time of one decode step at this batch.
    read_bytes_per_step : float
        Weights one step reads, all GPUs together (the input embedding is only looked up).
    active_parameters : float
        Weights that compute for one token.
    kv_bytes_per_token, batch, context_tokens : float
        KV cache read: batch x mean context x bytes a token. Without it weights only, so stated.
    bandwidth_bytes_per_s, compute_flops_per_s : float, optional
        Of one GPU; dense, at the precision served. Measured probes go before catalogue figures.
    experts : bool
        Mixture of experts: a batch reads more experts than one token; the bytes given are then a
        lower bound, so stated.
    user_step : bool
        The time is a user's time per token, which holds the prefills of others.

    Examples
    --------
    >>> r = decode_roofline(6.02e-3, read_bytes_per_step=13214687232, active_parameters=6.607e9,
    ...                     kv_bytes_per_token=524288, context_tokens=576,
    ...                     bandwidth_bytes_per_s=4.8e12, compute_flops_per_s=989e12)
    >>> round(r.mbu_ratio.value, 3), r.binds
    (0.468, 'memory')
    """
    assumptions = [caution("assume_weights_read_once", gigabytes=read_bytes_per_step / 1e9)]
    moved = read_bytes_per_step
    if kv_bytes_per_token and context_tokens:
        moved += batch * context_tokens * kv_bytes_per_token
        assumptions.append(
            caution("assume_kv_read", batch=batch, context=context_tokens, each=kv_bytes_per_token)
        )
    else:
        assumptions.append(caution("assume_weights_only"))
    if experts:
        assumptions.append(caution("assume_active_experts"))
    if user_step:
        assumptions.append(caution("step_is_user_tpot"))
    return _roofline(
        "decode",
        step_s,
        moved,
        2.0 * active_parameters * batch,
        bandwidth_bytes_per_s * gpus if bandwidth_bytes_per_s else None,
        compute_flops_per_s * gpus if compute_flops_per_s else None,
        assumptions,
    )


def prefill_flops(
    prompt_tokens: float,
    *,
    active_parameters: float,
    layers: int | None = None,
    width: int | None = None,
) -> float:
    """Return the arithmetic of one prompt: 2 P n, and 2 L n^2 d of causal attention.

    Examples
    --------
    >>> round(prefill_flops(2048, active_parameters=6.74e9, layers=32, width=4096) / 1e12, 1)
    28.7
    """
    linear = 2.0 * active_parameters * prompt_tokens
    if layers is None or width is None:
        return linear
    return linear + 2.0 * layers * prompt_tokens**2 * width


def prefill_roofline(
    prefill_s: Estimate | float,
    *,
    prompt_tokens: float,
    active_parameters: float,
    read_bytes: float,
    layers: int | None = None,
    width: int | None = None,
    bandwidth_bytes_per_s: float | None = None,
    compute_flops_per_s: float | None = None,
    gpus: int = 1,
) -> Roofline:
    """Say what share of compute a prefill uses.

    Parameters
    ----------
    prefill_s : Estimate or float
        Unloaded time to first token, or device time; the former holds client and network too, so
        the share is a lower bound.
    width : int, optional
        heads x head_dim, for the attention term.
    """
    assumptions = [caution("assume_prefill_flops", tokens=prompt_tokens)]
    if layers is None or width is None:
        assumptions.append(caution("assume_no_attention_term"))
    return _roofline(
        "prefill",
        prefill_s,
        read_bytes,
        prefill_flops(
            prompt_tokens, active_parameters=active_parameters, layers=layers, width=width
        ),
        bandwidth_bytes_per_s * gpus if bandwidth_bytes_per_s else None,
        compute_flops_per_s * gpus if compute_flops_per_s else None,
        assumptions,
    )


def check_phase_ratio(
    ratio: float, *, bandwidth_ratio: float, compute_ratio: float, slack: float = 0.05
) -> Caution | None:
    """Say whether a speed ratio of two cards is one their bandwidth and compute can make.

    The range is spanned by the two ratios and 1: work that no card speeds up (launches, links,
    host) pulls every ratio towards 1. Outside it something else than the card differs. None means
    inside.

    Examples
    --------
    >>> check_phase_ratio(1.51, bandwidth_ratio=1.64, compute_ratio=3.17) is None
    True
    >>> check_phase_ratio(1.43, bandwidth_ratio=1.194, compute_ratio=0.15).code
    'ratio_outside_roofline'
    """
    low = min(1.0, bandwidth_ratio, compute_ratio)
    high = max(1.0, bandwidth_ratio, compute_ratio)
    if low / (1 + slack) <= ratio <= high * (1 + slack):
        return None
    return caution("ratio_outside_roofline", ratio=ratio, low=low, high=high)
