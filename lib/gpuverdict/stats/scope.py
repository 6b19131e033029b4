"""What a comparison may claim beyond its runs: models, factors, stability, what would undo it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.stats import ttests
from gpuverdict.stats.arms import compare_arms
from gpuverdict.stats.comparison import (
    Comparison,
    decided,
    default_margin,
    growth,
    look_up_metric,
    with_interval,
)
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = [
    "Factorial",
    "Stability",
    "TippingPoint",
    "cards_comparison",
    "interaction",
    "stability",
    "tipping_point",
]


def cards_comparison(
    baseline: Mapping[str, Sequence[float]],
    candidate: Mapping[str, Sequence[float]],
    *,
    metric: str,
    statistic: str = "p50",
    margin: float | None = None,
    confidence: float = 0.95,
    modifiers: Sequence[str] = (),
    cautions: Sequence[Caution] = (),
    **more: Any,
) -> Comparison:
    """Say whether two GPU *models* differ, with the card as the unit.

    Parameters
    ----------
    baseline, candidate : mapping of card to run values
        Cards told apart by UUID.
    modifiers, cautions, **more
        As `compare_arms` takes them.

    Returns
    -------
    Comparison
        From three cards an arm a claim about the models, one number a card. With one card an arm
        the claim is about these cards and rests on runs; anything between is tested over cards, and
        both carry the modifier `this card only`.

    Notes
    -----
    Runs of one card say nothing about its siblings: with 1.5 % spread between cards of a model and
    one card an arm, 52 % of campaigns would call two equal models different.
    """
    options: dict[str, Any] = {
        "metric": metric,
        "statistic": statistic,
        "margin": margin,
        "confidence": confidence,
        **more,
    }
    n_a, n_b = len(baseline), len(candidate)
    scope = caution("cards_scope", n_baseline=n_a, n_candidate=n_b)
    if n_a == 1 and n_b == 1:
        (runs_a,), (runs_b,) = baseline.values(), candidate.values()
        return compare_arms(
            runs_a, runs_b, modifiers=(*modifiers, "this card only"),
            cautions=(*cautions, scope), **options,
        )  # fmt: skip
    means_a = [_card_mean(runs) for _, runs in sorted(baseline.items())]
    means_b = [_card_mean(runs) for _, runs in sorted(candidate.items())]
    enough = min(n_a, n_b) >= 3
    result = compare_arms(
        means_a,
        means_b,
        modifiers=(*modifiers, *(() if enough else ("this card only",))),
        cautions=(
            *cautions,
            caution("cards_are_units", n_baseline=n_a, n_candidate=n_b) if enough else scope,
        ),
        **options,
    )
    return replace(result, test="cards") if result.test == "welch" else result


def _card_mean(runs: Sequence[float]) -> float | None:
    values = np.sort(np.asarray(runs, dtype=float))
    if not len(values) or not np.isfinite(values).all() or values[0] <= 0:
        return None
    return math.exp(float(np.log(values).mean()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Factorial:
    """Two arms with and without a factor (precision, engine, workload): effects and interaction.

    `of_factor_baseline`, `of_factor_candidate`: what the factor does to each arm.
    `of_arm_without`, `of_arm_with`: candidate against baseline at each setting of the factor.
    `interaction`: the ratio of ratios; `better` means that the candidate gains more by the factor.
    """

    of_factor_baseline: Comparison
    of_factor_candidate: Comparison
    of_arm_without: Comparison
    of_arm_with: Comparison
    interaction: Comparison

    def __str__(self) -> str:
        return (
            f"factor on baseline {self.of_factor_baseline.ratio or float('nan'):.3f}, on candidate "
            f"{self.of_factor_candidate.ratio or float('nan'):.3f}; {self.interaction}"
        )


def interaction(
    baseline: Sequence[float],
    baseline_with: Sequence[float],
    candidate: Sequence[float],
    candidate_with: Sequence[float],
    *,
    metric: str,
    statistic: str = "p50",
    margin: float | None = None,
    confidence: float = 0.95,
) -> Factorial:
    """Say whether a factor changes both arms by the same ratio, and by which.

    Notes
    -----
    d = (b1 - b0) - (a1 - a0) in means of logs; SE from the four variances, Satterthwaite df over
    four terms, and df = min(R) - 1 by the same rule as for two arms.

    Examples
    --------
    >>> f = interaction([10, 10.1, 9.9], [5, 5.1, 4.95], [8, 8.1, 7.9], [5, 5.05, 4.9],
    ...                 metric="tpot_s")
    >>> round(f.interaction.ratio, 2), f.interaction.verdict
    (1.24, 'worse')
    """
    options: dict[str, Any] = {
        "metric": metric,
        "statistic": statistic,
        "margin": margin,
        "confidence": confidence,
    }
    pairs = {
        "of_factor_baseline": compare_arms(baseline, baseline_with, **options),
        "of_factor_candidate": compare_arms(candidate, candidate_with, **options),
        "of_arm_without": compare_arms(baseline, candidate, **options),
        "of_arm_with": compare_arms(baseline_with, candidate_with, **options),
    }
    declared = look_up_metric(metric)
    first = pairs["of_factor_baseline"]
    arms = (baseline, baseline_with, candidate, candidate_with)
    counts = [len(arm) for arm in arms]
    plain = Comparison(
        metric=metric, statistic=first.statistic, confidence=confidence,
        margin=default_margin(metric, first.statistic) if margin is None else margin,
        n_baseline=min(counts[:2]), n_candidate=min(counts[2:]), better=declared.better,
        speed=False, baseline=first.ratio, candidate=pairs["of_factor_candidate"].ratio,
        alpha=1 - confidence,
    )  # fmt: skip
    if any(pair.p_value is None for pair in pairs.values()):
        reasons: dict[str, Caution] = {}
        for pair in pairs.values():
            reasons |= {c.code: c for c in pair.cautions if pair.p_value is None}
        return Factorial(**pairs, interaction=replace(plain, cautions=tuple(reasons.values())))
    logs = [np.sort(np.log(np.asarray(arm, dtype=float))) for arm in arms]
    means = [float(log.mean()) for log in logs]
    effect = (means[3] - means[2]) - (means[1] - means[0])
    terms = [float(log.var(ddof=1)) / len(log) for log in logs]
    total = math.fsum(terms)
    least = min(counts)
    if least == 2 or (len(set(counts)) > 1 and least < 5):
        df = float(least - 1)
    else:
        df = total**2 / math.fsum(v**2 / (n - 1) for v, n in zip(terms, counts, strict=True))
    se = math.sqrt(total)
    p = 2 * float(special.stdtr(df, -abs(effect) / se))
    test = ttests.MeanTest(
        np.asarray(effect), np.asarray(se), np.asarray(df), np.asarray(p), np.asarray(False)
    )
    t_sum = float(ttests.t_quantile((1 + confidence) / 2, df) + ttests.t_quantile(0.8, df))
    result = with_interval(
        replace(
            plain,
            test="interaction",
            sd_log=se / math.sqrt(2 / least),
            sd_df=max(1, round(df)),
            mde_ratio=growth(t_sum * se),
            may_be_equivalent=least >= 3,
        ),
        test,
    )
    return Factorial(**pairs, interaction=decided(result))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """How much a number moves from run to run, and whether one arm moves more.

    `baseline`, `candidate`: SD over runs of the log statistic (0.01 is about 1 %), with intervals.
    `ratio`: candidate over baseline. `within_baseline`, `within_candidate`: share of runs inside
    the limit, None without one.
    """

    baseline: Estimate
    candidate: Estimate
    ratio: Estimate
    within_baseline: float | None
    within_candidate: float | None

    def __str__(self) -> str:
        return f"spread over runs: {self.baseline} against {self.candidate}, ratio {self.ratio}"


def stability(
    baseline: Sequence[float],
    candidate: Sequence[float],
    *,
    limit: float | None = None,
    confidence: float = 0.95,
) -> Stability:
    """Say which arm is steadier from run to run.

    Parameters
    ----------
    baseline, candidate : sequence of float
        One number a run, such as its p95.
    limit : float, optional
        The SLO of this number; runs inside it are counted.

    Notes
    -----
    Chi-square and F intervals of the SD and the ratio of SDs, which assume normal run effects:
    caution `assumes_normal_runs`. Fewer than three runs an arm give no interval.
    """
    sds, estimates = [], []
    for arm in (baseline, candidate):
        values = np.sort(np.asarray(arm, dtype=float))
        if not len(values) or not np.isfinite(values).all() or values[0] <= 0:
            raise ParameterError("runs", found="values", expected="positive numbers, one a run")
        estimates.append(_spread(np.log(values), confidence))
        sds.append(estimates[-1].value)
    within = [
        None if limit is None else float(np.mean([v <= limit for v in arm]))
        for arm in (baseline, candidate)
    ]
    ratio = Estimate(value=None, n=min(len(baseline), len(candidate)))
    if sds[0] and sds[1]:
        n_a, n_b = len(baseline), len(candidate)
        value = sds[1] / sds[0]
        if min(n_a, n_b) < 3:
            ratio = Estimate(value=value, n=min(n_a, n_b), cautions=(caution("spread_few_runs"),))
        else:
            tail = (1 - confidence) / 2
            up = math.sqrt(special.fdtri(n_b - 1, n_a - 1, 1 - tail))
            down = math.sqrt(special.fdtri(n_b - 1, n_a - 1, tail))
            ratio = Estimate(
                value=value, low=value / up, high=value / down, confidence=confidence,
                n=min(n_a, n_b), cautions=(caution("assumes_normal_runs"),),
            )  # fmt: skip
    return Stability(
        baseline=estimates[0],
        candidate=estimates[1],
        ratio=ratio,
        within_baseline=within[0],
        within_candidate=within[1],
    )


def _spread(logs: np.ndarray, confidence: float) -> Estimate:
    n = len(logs)
    if n < 2:
        return Estimate(value=None, unit="ratio", n=n, cautions=(caution("spread_few_runs"),))
    sd = 0.0 if logs[0] == logs[-1] else float(logs.std(ddof=1))
    if n < 3 or sd == 0:
        return Estimate(value=sd, unit="ratio", n=n, cautions=(caution("spread_few_runs"),))
    tail = (1 - confidence) / 2
    return Estimate(
        value=sd,
        low=sd * math.sqrt((n - 1) / float(special.chdtri(n - 1, tail))),
        high=sd * math.sqrt((n - 1) / float(special.chdtri(n - 1, 1 - tail))),
        confidence=confidence,
        unit="ratio",
        n=n,
        cautions=(caution("assumes_normal_runs"),),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TippingPoint:
    """What would undo a verdict, as fractions: None where the verdict has nothing to undo.

    `factor_ratio`: the effect of an unequal factor (0.04: a factor worth 4 %).
    `card_spread_ratio`: the SD between cards of one model.
    """

    factor_ratio: float | None
    card_spread_ratio: float | None

    def __str__(self) -> str:
        if self.factor_ratio is None:
            return "no verdict to undo"
        text = f"undone by a factor worth {self.factor_ratio:.1%}"
        if self.card_spread_ratio is not None:
            text += f" or a spread between cards of {self.card_spread_ratio:.1%}"
        return text


def tipping_point(comparison: Comparison) -> TippingPoint:
    """Say how large another difference between the arms would have to be to undo the verdict.

    Notes
    -----
    Difference: the distance of the interval from 1. Equivalence: the distance of its 90 % interval
    from the margin. The spread between cards enters as 2 s^2 beside SE^2 (one card an arm).
    """
    c = comparison
    if c.verdict in ("inconclusive", "not comparable") or c.low is None or c.high is None:
        return TippingPoint(factor_ratio=None, card_spread_ratio=None)
    if c.ratio is None or c.ci90_low is None or c.ci90_high is None:
        return TippingPoint(factor_ratio=None, card_spread_ratio=None)
    if c.verdict == "equivalent":
        outermost = max(abs(math.log(c.ci90_low)), abs(math.log(c.ci90_high)))
        return TippingPoint(
            factor_ratio=math.expm1(math.log1p(c.margin) - outermost), card_spread_ratio=None
        )
    nearest = min(abs(math.log(c.low)), abs(math.log(c.high)))
    spread = None
    if c.se_log is not None and c.df is not None:
        t = float(ttests.t_quantile((1 + c.confidence) / 2, c.df))
        room = (abs(math.log(c.ratio)) / t) ** 2 - c.se_log**2 - (c.gain_log / t) ** 2
        spread = math.sqrt(room / 2) if room > 0 else 0.0
    return TippingPoint(factor_ratio=math.expm1(nearest), card_spread_ratio=spread)
