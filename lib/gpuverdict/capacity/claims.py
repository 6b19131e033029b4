"""What a published claim is, and what its labels can mean: card limits, weights, KV cache."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpuverdict.errors import Caution

__all__ = [
    "KV_BYTES",
    "SECONDS",
    "CardLimits",
    "Claim",
    "Standing",
    "make_claim",
    "number_of",
    "weights_of",
]

Standing = Literal["stands", "contradicts itself", "impossible", "needs a cause", "not judged"]

# Weights of the names "7B", "13B" ... : parameters of the LLaMA models that carry them.
_NAMED = {7: 6.738e9, 13: 13.016e9, 70: 68.98e9}
# Their KV cache a token at 16 bits, every head cached.
KV_BYTES = {7: 2 * 32 * 32 * 128 * 2, 13: 2 * 40 * 40 * 128 * 2}
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLimits:
    """The most a label can mean: the best figures of all variants it may stand for."""

    names: tuple[str, ...]
    memory_bytes: float | None
    bandwidth_bytes_per_s: float | None
    compute_flops_per_s: float | None
    tdp_w: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One published number or relation, and what can be said of it.

    `standing`: `stands`; `contradicts itself` (its own rows give another number); `impossible`
    (beyond the card); `needs a cause` (possible only with something not stated); `not judged` (one
    value a cell, no spread published).
    """

    source: str
    section: str
    gpu: str
    claim: str
    value: float | None
    bound: float | None
    standing: Standing
    reason: Caution

    def __str__(self) -> str:
        return f"{self.source} {self.section} {self.gpu}: {self.claim}: {self.standing}"


def weights_of(model: str, precision: str) -> tuple[float | None, bool]:
    """Bytes of the weights of a published model name, and whether 16 bits had to be assumed."""
    size = re.search(r"(\d+(?:\.\d+)?)\s*b\b", model.lower())
    if not size:
        return None, False
    billions = float(size.group(1))
    parameters = _NAMED.get(int(billions), billions * 1e9)
    bits = re.search(r"(?:int|fp|bf)\s*(\d+)|(\d+)\s*-?\s*bit", precision.lower())
    if bits:
        return parameters * float(bits.group(1) or bits.group(2)) / 8, False
    return parameters * 2, True


def make_claim(row: Mapping[str, object], what: str, standing: Standing, reason: Caution,
           value: float | None = None, bound: float | None = None) -> Claim:  # fmt: skip
    """Make the claim of a row, with how it stands and why."""
    return Claim(
        source=str(row["source"]), section=str(row["section"]), gpu=str(row["gpu"]), claim=what,
        value=value, bound=bound, standing=standing, reason=reason,
    )  # fmt: skip


def number_of(row: Mapping[str, object], name: str) -> float | None:
    """Return a finite number of a row; None for an empty cell or a text."""
    value = row[name]
    return value if isinstance(value, float) and math.isfinite(value) else None
