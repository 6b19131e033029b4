"""How far apart the requests of two arms are: lengths and their mix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from gpuverdict.design.touched import LENGTH_APART, MIX_APART
from gpuverdict.summary.campaign import RunFacts

__all__ = ["lengths_of", "mix_distance", "mixes_differ"]


def lengths_of(facts: Sequence[RunFacts], name: str) -> np.ndarray:
    """All lengths of some runs, one a request."""
    held = [getattr(fact, name) for fact in facts]
    values = [np.repeat(list(h.keys()), list(h.values())) for h in held if h]
    return np.concatenate(values).astype(float) if values else np.array([])


def mix_distance(baseline: Mapping[str, int], candidate: Mapping[str, int]) -> tuple[float, float]:
    """Total-variation distance of two mixes of requests, and what chance alone would give.

    Parameters
    ----------
    baseline, candidate : mapping
        Requests by length bin.

    Returns
    -------
    distance, by_chance : float
        0 equal, 1 disjoint. `by_chance` is the distance expected of two samples of one mix.

    Notes
    -----
    E|p - q| of a bin is sqrt(2/pi) times its binomial standard error; half their sum is the
    distance. With 50 requests an arm and eight bins it is 0.15, above any fixed limit.

    Examples
    --------
    >>> mix_distance({"512/128": 50}, {"512/128": 80})
    (0.0, 0.0)
    >>> mix_distance({"512/128": 50}, {"2048/128": 50})[0]
    1.0
    """
    n_a, n_b = sum(baseline.values()), sum(candidate.values())
    if not n_a or not n_b:
        return 0.0, 0.0
    distance = chance = 0.0
    for key in sorted({*baseline, *candidate}):
        a, b = baseline.get(key, 0), candidate.get(key, 0)
        distance += abs(a / n_a - b / n_b) / 2
        pooled = (a + b) / (n_a + n_b)
        spread = pooled * (1 - pooled) * (1 / n_a + 1 / n_b)
        chance += math.sqrt(2 / math.pi * spread) / 2
    return distance, chance


def mixes_differ(facts: Sequence[Sequence[RunFacts]]) -> float | None:
    """Return the distance of the two mixes where it matters, None where it does not.

    It matters beyond 0.05 and twice what chance gives, and only where the prompts differ in length
    by more than 2 %: the edge of a bin may run through lengths that are all but equal.
    """
    prompts = [lengths_of(arm, "input_lengths") for arm in facts]
    if min(len(p) for p in prompts) == 0:
        return None
    shapes = [[float(p.mean()), *np.quantile(p, (0.1, 0.5, 0.9)).tolist()] for p in prompts]
    apart = max(abs(b - a) / max(a, 1.0) for a, b in zip(*shapes, strict=True))
    counts: list[dict[str, int]] = []
    for arm in facts:
        total: dict[str, int] = {}
        for fact in arm:
            for key, held in fact.bins.items():
                total[key] = total.get(key, 0) + int(held["n"] or 0)
        counts.append(total)
    distance, chance = mix_distance(counts[0], counts[1])
    if apart <= LENGTH_APART or distance <= max(MIX_APART, 2 * chance):
        return None
    return distance
