"""Unequal request mixes: how far apart they are, and run numbers brought to one mix."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.text import caution

__all__ = ["Standardised", "length_bins", "mix_distance", "standardise_mix"]

Arm = Sequence[Mapping[Hashable, Sequence[float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standardised:
    """Run numbers of both arms under one mix of lengths.

    `baseline`, `candidate`: one number a run, None for both where a bin exists in one arm only.
    `bin_ratios`: candidate over baseline in each bin. `distance`: total variation between the mixes
    before. `mixed`: the sign of the difference flips between bins.
    """

    baseline: tuple[float, ...] | None
    candidate: tuple[float, ...] | None
    weights: Mapping[Hashable, float]
    bin_ratios: Mapping[Hashable, float]
    distance: float
    mixed: bool
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        ratios = ", ".join(f"{key}: {value:.3f}" for key, value in self.bin_ratios.items())
        return f"mixes {self.distance:.3f} apart; ratio by bin {ratios}"


def length_bins(input_tokens: Sequence[int], output_tokens: Sequence[int]) -> list[tuple[int, int]]:
    """Give each request its bin: the powers of two below its input and output tokens.

    Examples
    --------
    >>> length_bins([100, 512], [1, 200])
    [(64, 1), (512, 128)]
    """
    return [
        (1 << (max(int(i), 1).bit_length() - 1), 1 << (max(int(o), 1).bit_length() - 1))
        for i, o in zip(input_tokens, output_tokens, strict=True)
    ]


def mix_distance(baseline: Mapping[Hashable, float], candidate: Mapping[Hashable, float]) -> float:
    """Return the total-variation distance of two mixes of requests, 0 (equal) to 1.

    Examples
    --------
    >>> mix_distance({"short": 90, "long": 10}, {"short": 10, "long": 90})
    0.8
    """
    total_a, total_b = math.fsum(baseline.values()), math.fsum(candidate.values())
    if total_a <= 0 or total_b <= 0:
        raise ParameterError("mix", found="no requests", expected="requests in both arms")
    keys = sorted({*baseline, *candidate}, key=repr)
    apart = (abs(baseline.get(k, 0) / total_a - candidate.get(k, 0) / total_b) for k in keys)
    return math.fsum(apart) / 2


def standardise_mix(
    baseline: Arm,
    candidate: Arm,
    *,
    statistic: Literal["mean", "p50"] = "mean",
    to: Literal["pooled", "baseline"] = "pooled",
) -> Standardised:
    """Bring the runs of both arms to one mix of request lengths.

    Parameters
    ----------
    baseline, candidate : sequence of mappings
        For each run the values of its requests by length bin.
    statistic : "mean" or "p50"
        Of the requests of one bin; the run's number is the mean of its bins under the mix.
    to : "pooled" or "baseline"
        Whose mix.

    Notes
    -----
    Post-stratification. Means of unequal mixes can point the wrong way: a card 10 % faster in both
    length classes looks slower when it serves the longer requests.

    Examples
    --------
    >>> a = [{"short": [0.1] * 8, "long": [1.0] * 2}] * 2
    >>> b = [{"short": [0.09] * 2, "long": [0.9] * 8}] * 2
    >>> result = standardise_mix(a, b, to="baseline")
    >>> round(result.candidate[0] / result.baseline[0], 6), round(result.distance, 6)
    (0.9, 0.6)
    """
    counts_a, counts_b = _counts(baseline), _counts(candidate)
    distance = mix_distance(counts_a, counts_b)
    shared = {**counts_a} if to == "baseline" else {
        k: counts_a.get(k, 0) / sum(counts_a.values()) + counts_b.get(k, 0) / sum(counts_b.values())
        for k in sorted({*counts_a, *counts_b}, key=repr)
    }  # fmt: skip
    total = math.fsum(shared.values())
    weights = {k: value / total for k, value in shared.items() if value > 0}
    ratios = {
        k: _centre(candidate, k, statistic) / _centre(baseline, k, statistic)
        for k in weights
        if k in counts_a and k in counts_b
    }
    mixed = any(r > 1 for r in ratios.values()) and any(r < 1 for r in ratios.values())
    broken = sum(
        any(not run.get(k) for k in weights) for arm in (baseline, candidate) for run in arm
    )
    if broken:
        return Standardised(
            baseline=None, candidate=None, weights=weights, bin_ratios=ratios, distance=distance,
            mixed=mixed, cautions=(caution("mix_not_standardised", n=broken),),
        )  # fmt: skip
    arms = [
        tuple(math.fsum(w * _of(run[k], statistic) for k, w in weights.items()) for run in arm)
        for arm in (baseline, candidate)
    ]
    said = (caution("mix_standardised", distance=distance),) if distance > 0.05 else ()
    return Standardised(
        baseline=arms[0], candidate=arms[1], weights=weights, bin_ratios=ratios,
        distance=distance, mixed=mixed, cautions=said,
    )  # fmt: skip


def _counts(arm: Arm) -> dict[Hashable, float]:
    counts: dict[Hashable, float] = {}
    for run in arm:
        for key, values in run.items():
            counts[key] = counts.get(key, 0) + len(values)
    return {k: n for k, n in counts.items() if n}


def _of(values: Sequence[float], statistic: str) -> float:
    array = np.sort(np.asarray(values, dtype=float))
    return float(array.mean() if statistic == "mean" else np.quantile(array, 0.5))


def _centre(arm: Arm, key: Hashable, statistic: str) -> float:
    return _of([_of(run[key], statistic) for run in arm if run.get(key)], "mean")
