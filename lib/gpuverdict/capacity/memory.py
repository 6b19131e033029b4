"""Weights and KV cache against the card's memory: what fits, computed and not measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.text import caution

__all__ = ["GIB", "MemoryPlan", "kv_bytes_per_token", "plan_memory", "weight_bytes"]

GIB = 2**30
SHARES = (0.8, 0.9)


def weight_bytes(parameters: float, bits: float) -> float:
    """Return the bytes of the weights.

    Examples
    --------
    >>> weight_bytes(6738415616, 16) / 1e9
    13.476831232
    """
    _positive(parameters=parameters, bits=bits)
    return parameters * bits / 8


def kv_bytes_per_token(
    *,
    layers: int,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    kv_bits: float = 16,
    latent_dim: int | None = None,
    rope_dim: int = 0,
) -> float:
    """Return the KV-cache bytes of one token of context.

    Parameters
    ----------
    layers, kv_heads, head_dim : int
        Multi-head attention has as many KV heads as heads, grouped-query fewer, multi-query one.
    kv_bits : float
        Bits a cached value.
    latent_dim, rope_dim : int
        Multi-head *latent* attention caches one latent vector and one rotary key a layer instead of
        keys and values of every head.

    Examples
    --------
    >>> kv_bytes_per_token(layers=32, kv_heads=32, head_dim=128)
    524288.0
    >>> kv_bytes_per_token(layers=80, kv_heads=8, head_dim=128)
    327680.0
    >>> kv_bytes_per_token(layers=61, latent_dim=512, rope_dim=64)
    70272.0
    """
    if latent_dim is not None:
        _positive(layers=layers, latent_dim=latent_dim, kv_bits=kv_bits)
        return layers * (latent_dim + rope_dim) * kv_bits / 8
    if kv_heads is None or head_dim is None:
        raise ParameterError(
            "model", found="no KV heads or head width", expected="kv_heads and head_dim"
        )
    _positive(layers=layers, kv_heads=kv_heads, head_dim=head_dim, kv_bits=kv_bits)
    return 2 * layers * kv_heads * head_dim * kv_bits / 8


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ParameterError(name, found=repr(value), expected="a positive number")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """What a model leaves of a card's memory, and how many tokens of context fit there.

    Attributes
    ----------
    fits : bool
        Whether weights and overhead leave any room at the largest share.
    weight_share_ratio : float
        Weights over memory, all GPUs together.
    table : DataFrame
        One row a share of memory: `share_ratio, kv_tokens, context_tokens, concurrency,
        largest_context_tokens, largest_concurrency`: how many requests of that context fit, and how
        long a context that many requests may have. 0 where nothing fits.
    """

    fits: bool
    memory_bytes: float
    weights_bytes: float
    overhead_bytes: float
    kv_bytes_per_token: float
    gpus: int
    weight_share_ratio: float
    table: pd.DataFrame
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        if not self.fits:
            return (
                f"does not fit: {self.weights_bytes / 1e9:.1f} GB of weights, "
                f"{self.memory_bytes / 1e9:.1f} GB of memory"
            )
        last = self.table.iloc[-1]
        return (
            f"fits: {self.weights_bytes / 1e9:.1f} of {self.memory_bytes / 1e9:.1f} GB are "
            f"weights; {int(last['kv_tokens']):,} tokens of context at "
            f"{last['share_ratio']:.0%} of memory"
        )

    def tokens(self, share_ratio: float = 0.9) -> int:
        """Return how many tokens of context fit at a share of the memory."""
        room = self.memory_bytes * share_ratio - self.weights_bytes - self.overhead_bytes
        return max(0, math.floor(room / self.kv_bytes_per_token))


def plan_memory(
    *,
    weights_bytes: float,
    kv_bytes_per_token: float,
    memory_bytes_per_gpu: float,
    gpus: int = 1,
    tensor_parallel: int | None = None,
    kv_heads: int | None = None,
    overhead_bytes_per_gpu: float | None = None,
    context_tokens: int = 2048,
    concurrency: int = 1,
    shares: Sequence[float] = SHARES,
) -> MemoryPlan:
    """Say how much context and how many requests fit beside the weights.

    Parameters
    ----------
    memory_bytes_per_gpu : float
        What the device reports; a data sheet's "80 GB" is 80 GiB.
    gpus, tensor_parallel : int
        GPUs that hold one copy of the model; `tensor_parallel` defaults to all of them. More GPUs
        than that are further copies, each with its own cache.
    kv_heads : int, optional
        With fewer KV heads than GPUs the heads are stored more than once.
    overhead_bytes_per_gpu : float, optional
        Activations, graphs, runtime. Without it 0 and a caution.
    context_tokens, concurrency : int
        Prompt and output of one request; requests at once.
    shares : sequence of float
        How much of the memory may be used.

    Examples
    --------
    >>> plan = plan_memory(weights_bytes=13.48e9, kv_bytes_per_token=524288,
    ...                    memory_bytes_per_gpu=24 * 2**30, context_tokens=2176)
    >>> plan.table["concurrency"].tolist()
    [6, 8]
    """
    _positive(
        weights_bytes=weights_bytes,
        kv_bytes_per_token=kv_bytes_per_token,
        memory_bytes_per_gpu=memory_bytes_per_gpu,
        gpus=gpus,
        context_tokens=context_tokens,
        concurrency=concurrency,
    )
    split = tensor_parallel or gpus
    if split > gpus or gpus % split:
        raise ParameterError(
            "tensor_parallel", found=str(split), expected=f"a divisor of {gpus} GPUs"
        )
    said: list[Caution] = [caution("computed_not_measured")]
    if overhead_bytes_per_gpu is None:
        said.append(caution("overhead_not_counted"))
    copies = gpus // split
    stored = max(1.0, split / kv_heads) if kv_heads else 1.0
    per_token = kv_bytes_per_token * stored
    if stored > 1:
        said.append(caution("kv_heads_replicated", kv_heads=kv_heads, split=split))
    memory = memory_bytes_per_gpu * gpus
    plan = MemoryPlan(
        fits=memory * max(shares) > copies * weights_bytes + gpus * (overhead_bytes_per_gpu or 0.0),
        memory_bytes=memory,
        weights_bytes=copies * weights_bytes,
        overhead_bytes=gpus * (overhead_bytes_per_gpu or 0.0),
        kv_bytes_per_token=per_token,
        gpus=gpus,
        weight_share_ratio=copies * weights_bytes / memory,
        table=pd.DataFrame(),
    )
    rows = []
    for share in sorted(shares):
        tokens = plan.tokens(share)
        # A request lives in one copy: rounding down happens in each of them.
        each = tokens // copies
        at_once = max(1, math.ceil(concurrency / copies))
        rows.append(
            {
                "share_ratio": share,
                "kv_tokens": tokens,
                "context_tokens": context_tokens,
                "concurrency": copies * (each // context_tokens),
                "at_concurrency": concurrency,
                "largest_context_tokens": each // at_once,
            }
        )
    if not plan.fits:
        said.append(
            caution(
                "weights_exceed_memory",
                weights=plan.weights_bytes / 1e9,
                memory=memory / 1e9,
            )
        )
    return MemoryPlan(
        **{name: getattr(plan, name) for name in plan.__dataclass_fields__ if name != "table"}
        | {"table": pd.DataFrame(rows), "cautions": tuple(said)}
    )
