"""Many tests at once: adjusted p values, the headline over levels, and opposite signs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.stats import ttests
from gpuverdict.stats.arms import compare_arms
from gpuverdict.stats.comparison import (
    Comparison,
    check_levels,
    decided,
    default_margin,
    growth,
    look_up_metric,
    with_interval,
)
from gpuverdict.stats.rates import decided_difference
from gpuverdict.text import caution

__all__ = ["SignFlip", "adjust", "adjust_p", "headline", "sign_flip"]


def adjust_p(
    p: NDArray[np.float64] | Sequence[float], method: Literal["bh", "holm"] = "bh"
) -> NDArray[np.float64]:
    """Adjust p values of one family along the last axis.

    Notes
    -----
    Benjamini-Hochberg: J. R. Stat. Soc. B 57 (1995), doi:10.1111/j.2517-6161.1995.tb02031.x.
    Holm: Scand. J. Stat. 6 (1979).

    Examples
    --------
    >>> adjust_p([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.04, 0.04]
    >>> adjust_p([0.01, 0.04, 0.03], "holm").round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    array = np.asarray(p, dtype=float)
    m = array.shape[-1]
    order = np.argsort(array, axis=-1, kind="stable")
    ranked = np.take_along_axis(array, order, axis=-1)
    if method == "bh":
        scaled = ranked * (m / np.arange(1, m + 1))
        stepped = np.minimum.accumulate(scaled[..., ::-1], axis=-1)[..., ::-1]
    elif method == "holm":
        stepped = np.maximum.accumulate(ranked * np.arange(m, 0, -1), axis=-1)
    else:
        raise ParameterError("method", found=repr(method), expected="bh or holm")
    out = np.empty_like(array)
    np.put_along_axis(out, order, np.minimum(stepped, 1.0), axis=-1)
    return out


def adjust(
    comparisons: Sequence[Comparison], method: Literal["bh", "holm"] = "bh"
) -> list[Comparison]:
    """Decide a family of comparisons again, each against its adjusted p.

    A family is one metric and statistic over all workloads and levels (`bh`), or the headlines of a
    comparison (`holm`). Comparisons without a p were not tested and are not counted; equivalence
    rests on its own interval and is not adjusted.

    Returns
    -------
    list of Comparison
        In the order given.

    Examples
    --------
    >>> one = compare_arms([6.0, 6.2, 5.9], [6.5, 6.6, 6.4], metric="tpot_s")
    >>> two = compare_arms([6.0, 6.2, 5.8], [6.1, 6.0, 6.3], metric="tpot_s")
    >>> [c.verdict for c in (one, two)], [c.verdict for c in adjust([one, two], "holm")]
    (['slower', 'inconclusive'], ['slower', 'inconclusive'])
    """
    p = [c.p_value for c in comparisons if c.p_value is not None]
    adjusted = iter(adjust_p(np.array(p), method).tolist() if p else [])
    if method not in ("bh", "holm"):
        raise ParameterError("method", found=repr(method), expected="bh or holm")
    return [
        comparison
        if comparison.p_value is None
        else _redecided(replace(comparison, p_adjusted=next(adjusted), family=len(p)))
        for comparison in comparisons
    ]


def _redecided(comparison: Comparison) -> Comparison:
    # Error ratios are decided on a difference, by their own rule; only their word can be lost.
    if comparison.test == "error logit":
        return decided_difference(comparison)
    return decided(comparison)


def headline(
    baseline: Mapping[Hashable, Sequence[float | None]],
    candidate: Mapping[Hashable, Sequence[float | None]],
    *,
    metric: str,
    statistic: str = "p50",
    design: Literal["sweep", "cells"] = "sweep",
    margin: float | None = None,
    confidence: float = 0.95,
    paired: bool = False,
    modifiers: Sequence[str] = (),
    refusals: Sequence[Caution] = (),
) -> Comparison:
    """Say by what factor the arms differ over all levels that both of them ran.

    Parameters
    ----------
    baseline, candidate : mapping of level to run values
        In a sweep design position r of every level belongs to sweep r; None marks a lost cell.
    design : "sweep" or "cells"
        Whether the levels of a sweep share one server start, or every cell is its own.
    refusals : sequence of Caution
        Preconditions that failed for this metric: `not comparable`.

    Returns
    -------
    Comparison
        The geometric-mean ratio over the common grid. Levels of one arm only, and sweeps with a
        lost cell, are left out and counted in a caution.

    Notes
    -----
    Sweeps: Welch over the sweeps' mean logs. Independent cells: mean of the cell differences with
    SE = sqrt(sum SE_c^2) / G and Satterthwaite df over all 2 G variance terms.

    Examples
    --------
    >>> a = {1: [6.0, 6.1, 5.9], 4: [7.0, 7.1, 6.9]}
    >>> b = {1: [6.6, 6.7, 6.5], 4: [7.7, 7.8, 7.6], 16: [9.0, 9.0, 9.1]}
    >>> print(headline(a, b, metric="tpot_s"))
    tpot_s p50: 1.100 [1.064, 1.138] slower (n = 3, 3 runs; p = 0.0014)
    """
    declared = look_up_metric(metric)
    statistic = statistic if declared.distribution else "value"
    margin = default_margin(metric, statistic) if margin is None else margin
    check_levels(margin, confidence)
    common = [level for level in baseline if level in candidate]
    reasons: list[Caution] = []
    n_levels = len({*baseline, *candidate})
    if len(common) < n_levels:
        reasons.append(caution("common_grid", n=len(common), n_levels=n_levels))
    if refusals or not common:
        return Comparison(
            metric=metric, statistic=statistic, confidence=confidence, margin=margin,
            better=declared.better, speed=declared.speed, verdict="not comparable",
            modifiers=tuple(modifiers), cautions=(*refusals, *reasons),
        )  # fmt: skip
    if design == "sweep":
        mean_a, lost_a = _sweep_means([baseline[level] for level in common])
        mean_b, lost_b = _sweep_means([candidate[level] for level in common])
        if lost_a or lost_b:
            reasons.append(caution("sweeps_left_out", n_baseline=lost_a, n_candidate=lost_b))
        result = compare_arms(
            mean_a, mean_b, metric=metric, statistic=statistic, margin=margin,
            confidence=confidence, paired=paired, modifiers=modifiers, cautions=reasons,
        )  # fmt: skip
        kept = tuple(c for c in result.cautions if c.code != "tail_counts_unknown")
        name = "headline sweep" if result.test in ("welch", "paired") else result.test
        return replace(result, cautions=kept, test=name)
    if design != "cells":
        raise ParameterError("design", found=repr(design), expected="sweep or cells")
    cells = [
        compare_arms(
            baseline[level], candidate[level], metric=metric, statistic=statistic, margin=margin,
            confidence=confidence,
        )
        for level in common
    ]  # fmt: skip
    return _cells_headline(cells, baseline, candidate, common, reasons, tuple(modifiers))


def _sweep_means(rows: Sequence[Sequence[float | None]]) -> tuple[list[float], int]:
    """exp(mean over levels of the log) of each complete sweep, and the number of broken sweeps."""
    length = max(len(row) for row in rows)
    means, lost = [], 0
    for r in range(length):
        values = [row[r] if r < len(row) else None for row in rows]
        numbers = [float(v) for v in values if v is not None and math.isfinite(v) and v > 0]
        if len(numbers) < len(values):
            lost += 1
        else:
            means.append(math.exp(math.fsum(math.log(v) for v in numbers) / len(numbers)))
    return means, lost


def _cells_headline(
    cells: Sequence[Comparison],
    baseline: Mapping[Hashable, Sequence[float | None]],
    candidate: Mapping[Hashable, Sequence[float | None]],
    common: Sequence[Hashable],
    reasons: Sequence[Caution],
    modifiers: tuple[str, ...],
) -> Comparison:
    first = cells[0]
    plain = Comparison(
        metric=first.metric, statistic=first.statistic, confidence=first.confidence,
        margin=first.margin, better=first.better, speed=first.speed, modifiers=modifiers,
        n_baseline=min(c.n_baseline for c in cells), n_candidate=min(c.n_candidate for c in cells),
        baseline=_mean_of([c.baseline for c in cells]),
        candidate=_mean_of([c.candidate for c in cells]),
        cautions=tuple(reasons), alpha=first.alpha,
    )  # fmt: skip
    if any(c.p_value is None for c in cells):
        untested = sum(c.p_value is None for c in cells)
        return replace(
            plain, cautions=(*plain.cautions, caution("cells_untested", n=untested, of=len(cells)))
        )
    terms, freedoms, effects = [], [], []
    for level in common:
        for arm in (baseline[level], candidate[level]):
            logs = np.sort(np.log(np.array([float(v) for v in arm if v is not None])))
            terms.append(float(logs.var(ddof=1)) / len(logs))
            freedoms.append(len(logs) - 1)
    effects = [math.log(c.ratio) for c in cells if c.ratio is not None]
    total = math.fsum(terms)
    df = total**2 / math.fsum(v**2 / f for v, f in zip(terms, freedoms, strict=True))
    g = len(cells)
    effect, se = math.fsum(effects) / g, math.sqrt(total) / g
    p = 2 * float(ttests.special.stdtr(df, -abs(effect) / se))
    test = ttests.MeanTest(
        np.asarray(effect), np.asarray(se), np.asarray(df), np.asarray(p), np.asarray(False)
    )
    found = float(ttests.t_quantile((1 + plain.confidence) / 2, df) + ttests.t_quantile(0.8, df))
    # The SD that, over as many runs an arm as there are, would give this standard error.
    sd = se / math.sqrt(1 / plain.n_baseline + 1 / plain.n_candidate)
    return decided(
        with_interval(
            replace(
                plain,
                test="headline cells",
                sd_log=sd,
                sd_df=max(1, round(df)),
                mde_ratio=growth(found * se),
                may_be_equivalent=min(plain.n_baseline, plain.n_candidate) >= 3,
            ),
            test,
        )
    )


def _mean_of(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return None
    return math.exp(math.fsum(math.log(value) for value in numbers) / len(numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class SignFlip:
    """Whether the candidate is ahead in some cells and behind in others, as one tested statement.

    `p_value` is that of the joint claim: the larger of the two sides' smallest Holm-adjusted p.
    `ahead`, `behind` are positions in the given list that the adjusted p confirms.
    """

    flips: bool
    p_value: float | None
    ahead: tuple[int, ...]
    behind: tuple[int, ...]

    def __str__(self) -> str:
        word = "opposite signs" if self.flips else "no opposite signs shown"
        return word if self.p_value is None else f"{word} (p = {self.p_value:.2g})"


def sign_flip(comparisons: Sequence[Comparison], confidence: float = 0.95) -> SignFlip:
    """Say whether the sign of the difference changes between cells (levels, model sizes, bins).

    "Ahead at 7B, behind at 13B" needs both sides shown, so its p is the larger one of the two.
    """
    tested = [
        (i, c) for i, c in enumerate(comparisons) if c.p_value is not None and c.ratio is not None
    ]
    if not tested:
        return SignFlip(flips=False, p_value=None, ahead=(), behind=())
    p = adjust_p(np.array([float(c.p_value or 0.0) for _, c in tested]), "holm")
    sides: dict[bool, list[tuple[float, int]]] = {True: [], False: []}
    for value, (i, c) in zip(p.tolist(), tested, strict=True):
        ratio = float(c.ratio or 1.0)
        if c.better is None or ratio == 1:
            continue
        sides[(ratio > 1) == (c.better == "higher")].append((value, i))
    alpha = 1 - confidence
    joint = max(min(side)[0] for side in sides.values()) if all(sides.values()) else None
    return SignFlip(
        flips=joint is not None and joint < alpha,
        p_value=joint,
        ahead=tuple(i for value, i in sides[True] if value < alpha),
        behind=tuple(i for value, i in sides[False] if value < alpha),
    )
