"""Small exact answers beside the tests: the rank test, and variance between and within runs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats as scipy_stats

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.stats import ttests
from gpuverdict.text import caution

__all__ = ["RankTest", "VarianceComponents", "rank_test", "variance_components"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTest:
    """Exact two-sided rank-sum test over runs: `u`, its `p_value`, and the smallest p possible."""

    u: float
    p_value: float
    p_smallest: float
    n_baseline: int
    n_candidate: int
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        return f"U = {self.u:g}, p = {self.p_value:.3g} (smallest possible {self.p_smallest:.3g})"


def rank_test(baseline: Sequence[float], candidate: Sequence[float]) -> RankTest:
    """Return the exact rank-sum test of runs, for information: three runs can never conclude.

    Ties share their mean rank; if all runs are equal p is 1. Enumerated up to 20 000 assignments.

    Raises
    ------
    ParameterError
        For an empty arm, a value that is not finite, or more assignments than that.

    Examples
    --------
    >>> print(rank_test([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]))
    U = 0, p = 0.1 (smallest possible 0.1)
    """
    a, b = np.asarray(baseline, dtype=float), np.asarray(candidate, dtype=float)
    n_a, n_b = len(a), len(b)
    if not n_a or not n_b or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ParameterError("runs", found="no usable value", expected="finite numbers, one a run")
    n_all = math.comb(n_a + n_b, n_a)
    if n_all > ttests.PERMUTATIONS_LIMIT:
        raise ParameterError("runs", found=f"{n_all} assignments", expected="20,000 at most")
    ranks = scipy_stats.rankdata(np.concatenate([a, b]))
    small = ranks[:n_a] if n_a <= n_b else ranks[n_a:]
    rows, _ = ttests.assignments(n_a, n_b)
    centre = len(small) * (n_a + n_b + 1) / 2
    null = np.abs(rows @ np.sort(ranks) - centre)
    p = float(np.mean(null >= abs(small.sum() - centre) - 1e-9))
    rank_u = float(small.sum() - len(small) * (len(small) + 1) / 2)
    smallest = min(1.0, 2 / n_all)
    said = (caution("rank_test_cannot", n_baseline=n_a, n_candidate=n_b, p=smallest),)
    return RankTest(
        u=min(rank_u, n_a * n_b - rank_u),
        p_value=p,
        p_smallest=smallest,
        n_baseline=n_a,
        n_candidate=n_b,
        cautions=said if smallest >= 0.05 else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceComponents:
    """Where the spread of requests comes from: between runs of an arm, or within a run.

    `difference` is candidate minus baseline of the run means, in the unit of the values. With
    `run_variance` 0 its standard error comes from requests alone, which says nothing about a new
    run: a caution, and no verdict rests on it.
    """

    difference: float
    se_difference: float
    run_variance: float
    residual_variance: float
    n_runs: int
    n_values: int
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        return (
            f"difference {self.difference:.4g} (SE {self.se_difference:.3g}); variance between "
            f"runs {self.run_variance:.3g}, within {self.residual_variance:.3g}"
        )


def variance_components(
    values: Sequence[float],
    run: Sequence[Hashable],
    arm: Sequence[str],
    *,
    baseline: str,
    candidate: str,
) -> VarianceComponents:
    """Split the variance of request values into between and within runs, by moments.

    Parameters
    ----------
    values, run, arm : sequences of equal length
        Request values with the run and the arm of each.

    Notes
    -----
    One-way random effects inside each arm, pooled. Where the moment estimate of the variance
    between runs is not above zero, it is 0 and the residual is re-estimated without runs.
    """
    groups: dict[str, dict[Hashable, list[float]]] = {baseline: {}, candidate: {}}
    for value, run_key, arm_key in zip(values, run, arm, strict=True):
        if arm_key in groups:
            groups[arm_key].setdefault(run_key, []).append(float(value))
    if not all(groups.values()):
        raise ParameterError("arm", found="an arm without values", expected="values of both arms")
    arms = [[np.sort(np.array(v)) for v in groups[key].values()] for key in (baseline, candidate)]
    n_values = sum(len(v) for runs in arms for v in runs)
    n_runs = sum(len(runs) for runs in arms)
    within = math.fsum(float(((v - v.mean()) ** 2).sum()) for runs in arms for v in runs)
    df_within, df_between = n_values - n_runs, n_runs - 2
    grand = [float(np.concatenate(runs).mean()) for runs in arms]
    between = math.fsum(
        len(v) * (float(v.mean()) - mean) ** 2
        for runs, mean in zip(arms, grand, strict=True)
        for v in runs
    )
    # Mean run size of the moment estimator for unequal runs, per arm, pooled.
    size = math.fsum(
        sum(len(v) for v in runs) - sum(len(v) ** 2 for v in runs) / sum(len(v) for v in runs)
        for runs in arms
    ) / max(df_between, 1)
    ms_within = within / df_within if df_within else math.nan
    ms_between = between / df_between if df_between else math.nan
    run_variance = max(0.0, (ms_between - ms_within) / size) if df_between and df_within else 0.0
    said: tuple[Caution, ...] = ()
    if run_variance > 0:
        means = [float(np.mean([v.mean() for v in runs])) for runs in arms]
        variances = [
            math.fsum(run_variance + ms_within / len(v) for v in runs) / len(runs) ** 2
            for runs in arms
        ]
        se, residual = math.sqrt(math.fsum(variances)), ms_within
    else:
        means = grand
        residual = (within + between) / (n_values - 2) if n_values > 2 else math.nan
        se = math.sqrt(residual * math.fsum(1 / sum(len(v) for v in runs) for runs in arms))
        said = (caution("run_variance_zero", n_runs=n_runs),)
    return VarianceComponents(
        difference=means[1] - means[0],
        se_difference=se,
        run_variance=run_variance,
        residual_variance=residual,
        n_runs=n_runs,
        n_values=n_values,
        cautions=said,
    )
