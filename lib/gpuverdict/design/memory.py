"""What a model needs against what the cards hold: computed bounds, never measurements."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from gpuverdict.campaign import Arm, Campaign, ModelSpec
from gpuverdict.hardware import resolve_gpu

__all__ = ["MemoryNeed", "kv_bytes_per_token", "memory_need", "precision_bits", "step_floor_s",
           "weight_bytes"]  # fmt: skip

_BITS = {"fp32": 32.0, "tf32": 32.0, "bf16": 16.0, "bfloat16": 16.0, "fp16": 16.0, "float16": 16.0,
         "half": 16.0, "fp8": 8.0, "int8": 8.0, "w8a8": 8.0, "w8a16": 8.0, "fp4": 4.0, "nvfp4": 4.0,
         "mxfp4": 4.0, "int4": 4.0, "w4a16": 4.0, "awq": 4.0, "gptq": 4.0}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """Bytes of weights and KV cache against the memory of an arm's cards.

    `kv` is None where the model's shape is not known, `memory` where the card's is not.
    """

    weights: float | None
    kv: float | None
    memory: float | None

    @property
    def total(self) -> float | None:
        """Weights and what is known of the KV cache; None without weights."""
        return None if self.weights is None else self.weights + (self.kv or 0.0)

    @property
    def fits(self) -> bool | None:
        """Whether it fits; None where that cannot be said.

        Too much is certain without the KV cache; enough is not.
        """
        if self.total is None or self.memory is None:
            return None
        if self.total > self.memory:
            return False
        return None if self.kv is None else True

    def __str__(self) -> str:
        def gb(value: float | None) -> str:
            return "?" if value is None else f"{value / 1e9:.1f} GB"

        return f"weights {gb(self.weights)} + KV {gb(self.kv)} against {gb(self.memory)}"


def weight_bytes(model: ModelSpec, precision: str | None) -> float | None:
    """Bytes of all weights: as stated, else parameters x bits.

    The bits are the model's; an arm of another precision (a declared treatment) has its own.
    """
    bits = precision_bits(precision)
    stated = model.weight_bits
    if model.weight_bytes is not None and (bits is None or stated is None or bits == stated):
        return model.weight_bytes
    used = bits or stated
    return model.parameters * used / 8 if model.parameters and used else None


def precision_bits(precision: str | None) -> float | None:
    """Bits a value takes in a precision by its name; None for a name that does not say.

    Examples
    --------
    >>> precision_bits("FP8-E4M3"), precision_bits("16 bit"), precision_bits("mixed")
    (8.0, 16.0, None)
    """
    if said := re.fullmatch(r"([\d.]+) bit", precision or ""):
        return float(said[1])
    words = re.split(r"[^a-z0-9]+", (precision or "").lower())
    return next((_BITS[word] for word in words if word in _BITS), None)


def kv_bytes_per_token(model: ModelSpec, kv_dtype: str | None = None) -> float | None:
    """Bytes a token of context takes in the KV cache.

    Notes
    -----
    2 (keys and values) x layers x KV heads x head width x bits / 8.
    """
    if model.kv_bytes_per_token is not None:
        return model.kv_bytes_per_token
    bits = precision_bits(kv_dtype) or model.kv_bits or model.weight_bits
    if not (model.layers and model.kv_heads and model.head_dim and bits):
        return None
    return 2 * model.layers * model.kv_heads * model.head_dim * bits / 8


def memory_need(campaign: Campaign, name: str, tokens: float | None) -> MemoryNeed:
    """Compute what an arm must hold for so many tokens of context in all.

    Parameters
    ----------
    campaign : Campaign
    name : str
        The arm.
    tokens : float or None
        Tokens of context of all requests at once; None leaves the KV cache out.

    Notes
    -----
    Against the catalogue's memory times the number of GPUs: what the engine keeps for itself is not
    taken off, so too little is certain and enough is not a promise.
    """
    arm: Arm = campaign.arms[name]
    model = campaign.model_of(name)
    row = resolve_gpu(arm.gpu)
    # Data sheets count 10^9 bytes on some cards and 2^30 on others: the larger one refuses less.
    memory = None if row.memory_gb is None else row.memory_gb * arm.gpus * 2.0**30
    if model is None:
        return MemoryNeed(weights=None, kv=None, memory=memory)
    per_token = kv_bytes_per_token(model, arm.kv_dtype)
    kv = None if tokens is None or per_token is None else math.ceil(tokens) * per_token
    # Data-parallel replicas each hold the weights.
    copies = arm.data_parallel or 1
    weights = weight_bytes(model, arm.precision)
    return MemoryNeed(weights=None if weights is None else weights * copies, kv=kv, memory=memory)


def step_floor_s(campaign: Campaign, name: str) -> float | None:
    """Compute the least time of a decode step of an arm; None where a figure is missing.

    Notes
    -----
    Weight bytes read a step over the memory bandwidth of all GPUs of the arm. No decode of one
    token a step can be faster; drafted tokens (speculative decoding) can seem to be.
    """
    arm, model = campaign.arms[name], campaign.model_of(name)
    bandwidth = resolve_gpu(arm.gpu).memory_bandwidth_gb_per_s
    if model is None or not bandwidth:
        return None
    weights = weight_bytes(model, arm.precision)
    share = 1.0
    if model.active_parameters and model.parameters:
        share = model.active_parameters / model.parameters
    read = model.read_bytes_per_step or (None if weights is None else weights * share)
    if read is None:
        return None
    # Each data-parallel replica reads its own copy with its own share of the GPUs.
    gpus = arm.gpus / (arm.data_parallel or 1)
    return read / (bandwidth * 1e9 * gpus)
