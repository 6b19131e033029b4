"""Targets 1-22, 40 and 41 of the method notes: each a number the shipped functions must reach.

A check returns a value with its Monte Carlo error; its band is that of the notes. The fast suite
widens the band by three standard errors of its own n. Every check calls the functions that
`compare_arms` itself calls; nothing is computed a second time here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from tests.calibration.evidence import (
    Floats,
    log_requests,
    log_runs,
    noise_rows,
    rng_of,
)

from gpuverdict import stats
from gpuverdict.stats import multiplicity, planning, quantiles, rates, ttests

__all__ = ["CHECKS", "Check", "Reached"]


class Reached(NamedTuple):
    """A share with the number of draws it rests on, or a mean with its own error."""

    value: float
    n: int
    spread: float | None = None

    @property
    def error(self) -> float:
        """Standard error of the value."""
        if self.spread is not None:
            return self.spread
        share = min(max(self.value, 0.5 / self.n), 1 - 0.5 / self.n)
        return math.sqrt(share * (1 - share) / self.n)


@dataclass(frozen=True)
class Check:
    """One row of the calibration table; bounds are fractions, or in `unit` where that is no %."""

    target: int
    name: str
    low: float
    high: float
    run: Callable[[int, np.random.Generator], Reached]
    fast: int = 6000
    nightly: int = 40_000
    unit: str = "%"

    def reach(self, *, nightly: bool = False) -> Reached:
        """Draw and judge; the seed follows from the name."""
        return self.run(self.nightly if nightly else self.fast, rng_of(self.name))

    def holds(self, reached: Reached) -> bool:
        """Say whether the value lies in the band, widened by three errors of its own n.

        What must never happen has no error to allow for.
        """
        if self.high == 0:
            return reached.value == 0
        return self.low - 3 * reached.error <= reached.value <= self.high + 3 * reached.error


CHECKS: list[Check] = []


def _check(target: int, name: str, low: float, high: float, run, **sizes: int) -> None:
    CHECKS.append(Check(target, name, low / 100, high / 100, run, **sizes))


def _share(hits: np.ndarray) -> Reached:
    return Reached(float(np.mean(hits)), int(np.size(hits)))


def welch_size(n, random, *, runs=(5, 5), sigmas=(0.01, 0.01), **model) -> Reached:
    """Share of campaigns without a difference that p < 0.05 calls different."""
    a = log_runs(random, n, runs[0], sigma=sigmas[0], **model)
    b = log_runs(random, n, runs[1], sigma=sigmas[1], **model)
    return _share(ttests.welch(a, b).p < 0.05)


def normal_size(n, random, *, runs, sds) -> Reached:
    """The same on normal run statistics with unequal spreads."""
    a, b = random.normal(0, sds[0], (n, runs[0])), random.normal(0, sds[1], (n, runs[1]))
    return _share(ttests.welch(a, b).p < 0.05)


def welch_power(n, random, *, runs, effect, sigma=0.01, **model) -> Reached:
    """Share of campaigns in which a true effect is found with its sign."""
    a = log_runs(random, n, runs, sigma=sigma, **model)
    b = log_runs(random, n, runs, sigma=sigma, shift=math.log1p(effect), **model)
    test = ttests.welch(a, b)
    return _share((test.p < 0.05) & (test.effect > 0))


def coverage(n, random, *, runs, sigma) -> Reached:
    """Share of 95 % intervals that hold the true ratio 1.05."""
    a = log_runs(random, n, runs, sigma=sigma)
    b = log_runs(random, n, runs, sigma=sigma, shift=math.log(1.05))
    low, high = ttests.interval(ttests.welch(a, b), 0.95)
    return _share((low <= math.log(1.05)) & (math.log(1.05) <= high))


def permutation_size(n, random) -> Reached:
    """Share of A/A campaigns with a permutation p below 0.05 at five runs."""
    a, b = log_runs(random, n, 5), log_runs(random, n, 5)
    return _share(ttests.permutation_p(a, b)[0] < 0.05)


def pooled_requests(n, random) -> Reached:
    """Negative control: the same Welch over pooled requests of five runs an arm."""
    hits = []
    for _ in range(max(1, n // 250)):
        a = log_requests(random, 250, 5, sigma=0.01).reshape(250, -1)
        b = log_requests(random, 250, 5, sigma=0.01).reshape(250, -1)
        hits.append(ttests.welch(a, b).p < 0.05)
    return _share(np.concatenate(hits))


def percentile_bootstrap(n, random) -> Reached:
    """Negative control: percentile bootstrap over three runs an arm."""
    a, b = log_runs(random, n, 3), log_runs(random, n, 3)
    draws = 400
    at = random.integers(0, 3, (2, n, draws, 3))
    mean_a = np.take_along_axis(a[:, None, :], at[0], axis=2).mean(axis=2)
    mean_b = np.take_along_axis(b[:, None, :], at[1], axis=2).mean(axis=2)
    low, high = np.quantile(mean_b - mean_a, [0.025, 0.975], axis=1)
    return _share((low > 0) | (high < 0))


def paired_share(n, random, *, effect) -> Reached:
    """Paired test at five blocks of SD 2 %, residual SD 1 %."""
    block = random.normal(0, 0.02, (n, 5))
    a = block + random.normal(0, 0.01, (n, 5))
    b = block + random.normal(math.log1p(effect), 0.01, (n, 5))
    test = ttests.paired(a, b)
    return _share((test.p < 0.05) & (test.effect > 0)) if effect else _share(test.p < 0.05)


def _words(a: Floats, b: Floats, margin: float, p: Floats | None = None) -> np.ndarray:
    test = ttests.welch(a, b)
    return ttests.decide(
        test.p if p is None else p,
        ttests.interval(test, 0.95),
        ttests.interval(test, 0.90),
        margin=margin,
        may_be_equivalent=min(a.shape[-1], b.shape[-1]) >= 3,
    )


def equivalent(n, random, *, runs, sigma, margin, effect) -> Reached:
    """Share of campaigns called equivalent."""
    a = random.normal(0, sigma, (n, runs))
    b = random.normal(math.log1p(effect), sigma, (n, runs))
    return _share(_words(a, b, margin) == ttests.EQUIVALENT)


def holm_error(n, random, *, shared) -> Reached:
    """Campaigns of 12 A/A cells in which Holm leaves any cell different."""
    a, b = (_cells(random, n, 12, 5, 0.015, shared) for _ in range(2))
    p = multiplicity.adjust_p(ttests.welch(a, b).p, "holm")
    return _share((p < 0.05).any(axis=1))


def _cells(random, n, cells, runs, sigma, shared) -> Floats:
    """Log statistics of n campaigns x cells x runs; a share of the variance belongs to the run."""
    common = random.normal(0, sigma * math.sqrt(shared), (n, 1, runs))
    return common + random.normal(0, sigma * math.sqrt(1 - shared), (n, cells, runs))


def bh_half(n, random, *, want) -> Reached:
    """Half of 12 cells differ by 5 %: false discovery rate, or power."""
    truth = np.repeat([math.log(1.05), 0.0], 6)[:, None]
    a = _cells(random, n, 12, 5, 0.015, 0.5)
    b = _cells(random, n, 12, 5, 0.015, 0.5) + truth
    found = multiplicity.adjust_p(ttests.welch(a, b).p, "bh") < 0.05
    if want == "power":
        return _share(found[:, :6])
    rate = found[:, 6:].sum(axis=1) / np.maximum(found.sum(axis=1), 1)
    # A mean of fractions: its error is below that of a share with the same mean.
    return Reached(float(rate.mean()), n)


def single_runs(n, random) -> Reached:
    """Share of words from one run an arm without a noise floor."""
    a, b = np.exp(random.normal(0, 0.02, n)), np.exp(random.normal(0.05, 0.02, n))
    said = [
        stats.compare_arms([x], [y], metric="tpot_s").verdict for x, y in zip(a, b, strict=True)
    ]
    return _share(np.array([word != "inconclusive" for word in said]))


def floor_size(n, random) -> Reached:
    """One run an arm against a floor of five A/A runs, floor right."""
    floor = random.normal(0, 0.01, (n, 5)).std(axis=1, ddof=1)
    effect = random.normal(0, 0.01 * math.sqrt(2), n)
    p = [ttests.floor_test(d, s, 5, 1, 1).p for d, s in zip(effect, floor, strict=True)]
    return _share(np.array(p) < 0.05)


def error_rate_size(n, random) -> Reached:
    """Errors at 1 %, correlation 0.01 within a run, 300 requests, five runs."""
    concentration = 1 / 0.01 - 1
    logits = []
    for _ in range(2):
        p = random.beta(0.01 * concentration, 0.99 * concentration, (n, 5))
        failed = random.binomial(300, p).astype(float)
        logits.append(rates.error_logit(failed, np.full((n, 5), 300.0)))
    return _share(ttests.welch(*logits, guard=False).p < 0.05)


def unequal_requests(n, random, *, equalise) -> Reached:
    """p99 of 100 against 1 000 requests, with and without the cut to equal N."""
    pool = np.exp(noise_rows(1000).astype(float))
    logs: list[list[list[float]]] = [[], []]
    for _ in range(n):
        rows = random.integers(0, len(pool), 10)
        runs = [pool[r][:100] for r in rows[:5]] + [pool[r] for r in rows[5:]]
        if equalise:
            runs = quantiles.equal_n(runs)
        values = [math.log(quantiles.quantile(run, 0.99)) for run in runs]
        logs[0].append(values[:5])
        logs[1].append(values[5:])
    a, b = (np.array(x) + random.normal(0, 0.01, (n, 5)) for x in logs)
    return _share(ttests.welch(a, b).p < 0.05)


def planned_power(n, random) -> Reached:
    """Share of pilots of five runs whose plan (upper limit) reaches 70 % power; true need 10."""
    sigma = 0.02
    effect = planning.mde(sigma, 10)
    pilots = sigma * np.sqrt(random.chisquare(8, n) / 8)
    plans = [planning.runs_needed(planning.sd_upper_limit(s, 8), effect) for s in pilots]
    reached = {runs: planning.power(sigma, effect, runs) for runs in set(plans)}
    return _share(np.array([reached[runs] >= 0.70 for runs in plans]))


def chain(n, random, *, want, effect=0.0, runs=5) -> Reached:
    """The whole decision of 12 cells x 3 metrics; half the variance is shared per sweep."""
    any_false, wrong, heads = np.zeros(n, dtype=bool), [], []
    for sigma, margin in ((0.01, 0.03), (0.02, 0.05), (0.04, 0.05)):
        a = _cells(random, n, 12, runs, sigma, 0.5)
        b = _cells(random, n, 12, runs, sigma, 0.5) + math.log1p(effect)
        p = multiplicity.adjust_p(ttests.welch(a, b).p, "bh")
        words = _words(a, b, margin, p)
        any_false |= np.isin(words, (ttests.HIGHER, ttests.LOWER)).any(axis=1)
        wrong.append(words == ttests.LOWER)
        heads.append((a.mean(axis=1), b.mean(axis=1), margin))
    if want == "cells":
        return _share(any_false)
    if want == "wrong sign":
        return _share(np.concatenate(wrong, axis=1))
    p = np.stack([ttests.welch(a, b).p for a, b, _ in heads], axis=1)
    p = multiplicity.adjust_p(p, "holm")
    words = np.stack([_words(a, b, m, p[:, i]) for i, (a, b, m) in enumerate(heads)], axis=1)
    return _share(np.isin(words, (ttests.HIGHER, ttests.LOWER)).any(axis=1))


def verdict_table(random: np.random.Generator, order: np.random.Generator | None) -> str:
    """All verdicts of 12 cells x 3 metrics as text; runs and cells in any order."""
    cells = []
    for metric in ("tpot_s", "ttft_s", "output_tokens_per_s"):
        for cell in range(12):
            arms = [np.exp(random.normal(0.01 * side, 0.01, 5)) for side in (0, 1)]
            if order is not None:
                arms = [order.permutation(arm) for arm in arms]
            cells.append((metric, cell, arms))
    if order is not None:
        cells = [cells[i] for i in order.permutation(len(cells))]
    rows = []
    for metric in ("tpot_s", "ttft_s", "output_tokens_per_s"):
        mine = [c for c in cells if c[0] == metric]
        compared = [stats.compare_arms(*arms, metric=metric) for _, _, arms in mine]
        for (_, cell, _), result in zip(mine, stats.adjust(compared), strict=True):
            rows.append({"cell": cell, **result.as_row()})
    rows.sort(key=lambda row: (row["metric"], row["cell"]))
    return json.dumps(rows, sort_keys=True)


def determinism(n, random) -> Reached:
    """Share of shuffled campaigns whose verdict table differs in any byte."""
    different = []
    for i in range(n):
        seed = int(random.integers(2**31))
        plain = verdict_table(np.random.default_rng(seed), None)
        shuffled = verdict_table(np.random.default_rng(seed), np.random.default_rng(i))
        different.append(plain != shuffled)
    return _share(np.array(different))


def _with(function, **fixed):
    return lambda n, random: function(n, random, **fixed)


for _runs in (5, 10):
    _check(1, f"size, TPOT p50, sigma 1 %, R = {_runs}", 3.8, 6.0,
           _with(welch_size, runs=(_runs, _runs)))  # fmt: skip
    for _kind in ("throughput", "goodput"):
        _check(1, f"size, {_kind}, R = {_runs}", 2.4, 6.0,
               _with(welch_size, runs=(_runs, _runs), statistic=_kind))  # fmt: skip
_check(2, "size, TPOT p50, sigma 1 %, R = 3", 2.0, 5.0, _with(welch_size, runs=(3, 3)))
for _kind in ("t3", "skewed"):
    for _runs in (3, 5, 10):
        _check(3, f"size, {_kind} run effects, R = {_runs}", 2.0, 6.0,
               _with(welch_size, runs=(_runs, _runs), sigmas=(0.02, 0.02), kind=_kind))  # fmt: skip
_check(4, "size, SD 1:6, R = 3", 0, 7.0, _with(normal_size, runs=(3, 3), sds=(1, 6)))
_check(4, "size, SD 1:6, R = 5", 0, 6.3, _with(normal_size, runs=(5, 5), sds=(1, 6)))
for _runs_pair in ((3, 10), (2, 5)):
    for _sds in ((1, 1), (6, 1), (1, 6)):
        _check(5, f"size, R = {_runs_pair}, SD {_sds[0]}:{_sds[1]}", 0, 5.5,
               _with(normal_size, runs=_runs_pair, sds=_sds))  # fmt: skip
_check(6, "size, p99, N = 500, R = 5", 1.5, 6.0,
       _with(welch_size, statistic="p99", n_requests=500))  # fmt: skip
for _runs, _low, _high in ((3, 95, 98), (5, 94, 97), (10, 94, 96.5)):
    _check(7, f"coverage, ratio 1.05, R = {_runs}", _low, _high,
           _with(coverage, runs=_runs, sigma=0.03))  # fmt: skip
for _runs, _low in ((3, 48), (5, 90), (10, 99)):
    _check(8, f"power, effect 5 %, sigma 1 %, R = {_runs}", _low, 100,
           _with(welch_power, runs=_runs, effect=0.05))  # fmt: skip
_check(9, "power, effect 2 %, sigma 1 %, R = 10", 55, 100, _with(welch_power, runs=10, effect=0.02))
_check(10, "size, exact permutation, R = 5", 4, 6, permutation_size)
_check(11, "negative control: pooled requests", 15, 100, pooled_requests, fast=3500, nightly=10_000)
_check(12, "negative control: percentile bootstrap, R = 3", 14, 100, percentile_bootstrap,
       fast=3500, nightly=20_000)  # fmt: skip
_check(13, "size, paired, block SD 2 %, R = 5", 4, 6, _with(paired_share, effect=0.0))
_check(13, "power, paired, effect 2 %, R = 5", 62, 100, _with(paired_share, effect=0.02))
for _runs, _sigma, _margin in (
    (3, 0.01, 0.03), (3, 0.03, 0.10), (5, 0.01, 0.03), (5, 0.02, 0.05), (10, 0.01, 0.03),
    (10, 0.03, 0.05),
):  # fmt: skip
    _check(14, f"equivalent at the margin {_margin:.0%}, sigma {_sigma:.0%}, R = {_runs}", 0, 5.8,
           _with(equivalent, runs=_runs, sigma=_sigma, margin=_margin, effect=_margin))  # fmt: skip
_check(15, "equivalent, no effect, sigma 1 %, margin 3 %, R = 5", 97, 100,
       _with(equivalent, runs=5, sigma=0.01, margin=0.03, effect=0.0))  # fmt: skip
_check(16, "Holm, 12 cells, independent", 0, 6, _with(holm_error, shared=0.0))
_check(16, "Holm, 12 cells, half shared", 0, 6, _with(holm_error, shared=0.5))
_check(17, "BH false discovery rate, half the cells 5 %", 0, 5.5, _with(bh_half, want="fdr"))
_check(17, "BH power, half the cells 5 %", 94, 100, _with(bh_half, want="power"))
_check(18, "a word from one run an arm", 0, 0, single_runs, fast=2000, nightly=10_000)
_check(19, "size, one run, noise floor of 5", 4, 6, floor_size)
_check(20, "size, error rate 1 %, correlation 0.01", 0, 6, error_rate_size)
_check(21, "size, p99, N 100 against 1 000, cut to equal N", 0, 6,
       _with(unequal_requests, equalise=True), fast=1500, nightly=10_000)  # fmt: skip
_check(21, "negative control: p99, N 100 against 1 000, uncut", 10, 100,
       _with(unequal_requests, equalise=False), fast=2700, nightly=10_000)  # fmt: skip
_check(22, "plans from a pilot of 5 that reach 70 % power", 85, 100, planned_power)
_check(40, "campaigns with a false word, 36 cells, R = 5", 0, 8, _with(chain, want="cells"))
_check(40, "campaigns with a false headline", 0, 5, _with(chain, want="headline"))
_check(40, "cells with the wrong sign under +5 %", 0, 0.1,
       _with(chain, want="wrong sign", effect=0.05))  # fmt: skip
_check(41, "verdict tables that change when rows are shuffled", 0, 0, determinism,
       fast=10, nightly=100)  # fmt: skip
