"""Comparing two arms on one metric: guards first, then the test, then the word."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.stats import planning, quantiles, ttests
from gpuverdict.stats.comparison import (
    Comparison,
    NoiseFloor,
    check_levels,
    decided,
    default_margin,
    exp_or_none,
    growth,
    look_up_metric,
    stop,
    with_interval,
)
from gpuverdict.text import caution

__all__ = ["compare_arms", "noise_floor_from"]


def noise_floor_from(values: Sequence[float], source: str) -> NoiseFloor:
    """Make a noise floor from the run statistics of an A/A campaign.

    Raises
    ------
    ParameterError
        For fewer than five runs, or runs without any variation.
    """
    logs = np.log(np.sort(np.asarray(values, dtype=float)))
    if len(logs) < 5 or not np.isfinite(logs).all():
        raise ParameterError(
            "noise floor", found=f"{len(logs)} runs", expected="five positive run values or more"
        )
    sd = float(logs.std(ddof=1))
    if logs[0] == logs[-1]:
        raise ParameterError("noise floor", found="equal runs", expected="runs that vary")
    return NoiseFloor(sd_log=sd, n=len(logs), source=source)


_MOMENTS = ("mean", "std", "min", "max", "value")


def _read_arm(items: list[Any], arm: str) -> tuple[np.ndarray, list[Caution]]:
    """Usable run values, and why some are not."""
    usable, missing, beyond = [], 0, 0
    for item in items:
        if item is None:
            missing += 1
            continue
        try:
            number = float(item)
        except (TypeError, ValueError):
            raise ParameterError(
                arm, found=f"the run value {item!r}", expected="one number a run"
            ) from None
        if not math.isfinite(number):
            missing += 1
        elif number <= 0:
            beyond += 1
        else:
            usable.append(number)
    cautions = []
    if not items:
        cautions.append(caution("arm_empty", arm=arm))
    if missing:
        cautions.append(caution("run_value_missing", arm=arm, n_missing=missing, n=len(items)))
    if beyond:
        cautions.append(caution("run_value_not_positive", arm=arm, n_beyond=beyond, n=len(items)))
    return np.array(usable), cautions


def combine_gain(gain: float | Sequence[float] | None) -> float:
    """Return the half-width that sensor gain adds to a log ratio, both arms in quadrature."""
    if gain is None:
        return 0.0
    parts = (gain, gain) if isinstance(gain, (int, float)) else tuple(gain)
    if len(parts) != 2 or not all(math.isfinite(g) and g >= 0 for g in parts):
        raise ParameterError("gain", found=repr(gain), expected="a fraction, or one for each arm")
    return math.hypot(*parts)


def compare_arms(
    baseline: Sequence[float | None],
    candidate: Sequence[float | None],
    *,
    metric: str,
    statistic: str = "p50",
    paired: bool = False,
    margin: float | None = None,
    confidence: float = 0.95,
    gain: float | Sequence[float] | None = None,
    n_requests_min: int | None = None,
    noise_floor: NoiseFloor | None = None,
    drifting_runs: tuple[int, int] = (0, 0),
    look: str | None = None,
    refusals: Sequence[Caution] = (),
    modifiers: Sequence[str] = (),
    cautions: Sequence[Caution] = (),
) -> Comparison:
    """Say whether the candidate differs from the baseline, by how much, and how sure that is.

    Parameters
    ----------
    baseline, candidate : sequence of float
        One number a run, in the metric's base unit. A run is one server start with its own warm-up
        and window; requests never count as runs.
    metric, statistic : str
        A declared metric, and which statistic of it the numbers are (ignored for single-valued
        metrics).
    paired : bool
        Pairs were made by the design (same seed block, adjacent, ABBA order); position pairs them.
    margin : float, optional
        Largest difference without practical meaning, as a fraction; see `default_margin`.
    confidence : float
        Of the interval; the test works at one minus it.
    gain : float or pair, optional
        Systematic sensor gain error of each arm (0.05 is 5 %), for energy across cards.
    n_requests_min : int, optional
        Requests of the smallest run of both arms: decides whether a tail may be tested.
    noise_floor : NoiseFloor, optional
        Allows a test with one run an arm.
    drifting_runs : (int, int)
        Runs of each arm whose drift is above 2 %.
    look : "first" or "final", optional
        Which look of a declared two-look rule this is.
    refusals : sequence of Caution
        Preconditions that failed for this metric: `not comparable`.
    modifiers, cautions : sequence
        What is known beforehand; carried along.

    Returns
    -------
    Comparison
        Decided with the raw p; `adjust` decides a family again.

    Raises
    ------
    ParameterError
        For an unknown metric, a value that is no number, an impossible margin, or pairs of unequal
        length. Missing or impossible *values* never raise: they end inconclusive.

    Notes
    -----
    Welch's t on logs (paired: one-sample t on log ratios), equivalence by two one-sided tests
    first, difference second, everything else inconclusive. An exact permutation over runs stands
    beside it; where the two disagree the modifier is `fragile`.

    Examples
    --------
    >>> print(compare_arms([6.0, 6.1, 5.9, 6.0, 6.05], [7.0, 7.1, 6.9, 7.05, 7.0], metric="tpot_s"))
    tpot_s p50: 1.166 [1.147, 1.186] slower (n = 5, 5 runs; p = 3.5e-08)
    >>> compare_arms([6.0], [7.0], metric="tpot_s").modifiers
    ('single-run',)
    """
    declared = look_up_metric(metric)
    if not declared.distribution:
        statistic = "value"
    elif statistic not in _MOMENTS and quantiles.statistic_level(statistic) is None:
        raise ParameterError(
            "statistic", found=repr(statistic), expected=f"p50, p95 ... or {', '.join(_MOMENTS)}"
        )
    margin = default_margin(metric, statistic) if margin is None else margin
    check_levels(margin, confidence)
    baseline, candidate = _listed(baseline), _listed(candidate)
    a, bad_a = _read_arm(baseline, "baseline")
    b, bad_b = _read_arm(candidate, "candidate")
    if paired and len(baseline) != len(candidate):
        raise ParameterError(
            "paired",
            found=f"{len(a)} and {len(b)} runs",
            expected="as many runs in both arms, in the order of the pairs",
        )
    plain = Comparison(
        metric=metric,
        statistic=statistic,
        confidence=confidence,
        margin=margin,
        n_baseline=len(a),
        n_candidate=len(b),
        better=declared.better,
        speed=declared.speed,
        baseline=_geometric_mean(a),
        candidate=_geometric_mean(b),
        modifiers=tuple(dict.fromkeys(modifiers)),
        cautions=(*cautions, *bad_a, *bad_b),
        alpha=planning.two_look_alpha(look) if look else 1 - confidence,
        gain_log=combine_gain(gain),
    )
    if refusals:
        return stop(plain, *refusals, verdict="not comparable")
    if not len(a) or not len(b):
        return replace(plain, verdict="not comparable")
    log_a, log_b = np.log(a), np.log(b)
    effect = _effect(log_a, log_b)
    plain = replace(plain, ratio=exp_or_none(effect))
    if bad_a or bad_b:
        return plain
    return _test(plain, log_a, log_b, paired, n_requests_min, noise_floor, drifting_runs)


def _listed(values: Sequence[float | None] | None) -> list[Any]:
    try:
        return [] if values is None else list(values)
    except TypeError:
        raise ParameterError(
            "runs", found=f"{values!r:.40}", expected="a sequence, one number a run"
        ) from None


def _geometric_mean(values: np.ndarray) -> float | None:
    return math.exp(float(np.log(np.sort(values)).mean())) if len(values) else None


def _effect(log_a: np.ndarray, log_b: np.ndarray) -> float:
    return float(np.sort(log_b).mean() - np.sort(log_a).mean())


def _test(
    plain: Comparison,
    log_a: np.ndarray,
    log_b: np.ndarray,
    paired: bool,
    n_requests_min: int | None,
    noise_floor: NoiseFloor | None,
    drifting_runs: tuple[int, int],
) -> Comparison:
    """Steps 2 to 11 of the decision order."""
    n_a, n_b = len(log_a), len(log_b)
    least = min(n_a, n_b)
    if least == 1:
        return _single_run(plain, log_a, log_b, noise_floor)
    q = quantiles.statistic_level(plain.statistic)
    if q is not None and n_requests_min is not None:
        if quantiles.tail_rule(n_requests_min, q) != "tested":
            needed = 2 if q <= 0.5 else math.ceil(5 / (1 - q) - 1e-9)
            thin = caution(
                "tail_under_sampled", statistic=plain.statistic, n=n_requests_min, needed=needed
            )
            return stop(plain, thin, modifier="tail under-sampled")
        if n_requests_min < 10:
            plain = stop(plain, caution("few_requests", n=n_requests_min), modifier="few requests")
    elif q is not None and q > 0.5:
        plain = stop(plain, caution("tail_counts_unknown", statistic=plain.statistic))
    if least == 2 and q is not None and q >= 0.99:
        return stop(plain, caution("two_runs_no_tail", statistic=plain.statistic))
    test = ttests.paired(log_a, log_b) if paired else ttests.welch(log_a, log_b)
    if bool(test.quantised):
        return stop(plain, caution("quantised"), modifier="quantised")
    for arm, count in zip(("baseline", "candidate"), drifting_runs, strict=True):
        if count >= 2:
            return stop(plain, caution("drifting_arm", arm=arm, n=count), modifier="drift")
    if sum(drifting_runs):
        plain = stop(plain, modifier="drift")
    if n_a != n_b:
        plain = stop(plain, caution("unequal_runs", n_baseline=n_a, n_candidate=n_b))
    if least == 2:
        plain = stop(plain, caution("two_runs"))
    if paired:
        sd, sd_df = float(test.se) * math.sqrt(n_a), n_a - 1
    else:
        sd_df = n_a + n_b - 2
        # Sorted sums: the same runs in another order give the same bits.
        squares = (n_a - 1) * np.sort(log_a).var(ddof=1) + (n_b - 1) * np.sort(log_b).var(ddof=1)
        sd = math.sqrt(float(squares) / sd_df)
    found = planning.mde(sd, n_a, n_b, confidence=plain.confidence, paired=paired)
    tested = with_interval(
        replace(
            plain,
            test="paired" if paired else "welch",
            sd_log=sd,
            sd_df=sd_df,
            mde_ratio=growth(math.hypot(math.log1p(found), plain.gain_log)),
            may_be_equivalent=least >= 3,
        ),
        test,
    )
    if least >= 4:
        p, exact = ttests.permutation_p(log_a, log_b, pairs=paired)
        tested = replace(tested, p_permutation=float(p))
        if not exact:
            tested = stop(tested, caution("permutation_sampled", n=ttests.PERMUTATIONS_LIMIT))
        if tested.p_value is not None and (float(p) < 0.05) != (tested.p_value < 0.05):
            tested = stop(
                tested,
                caution("fragile", p_t=tested.p_value, p_permutation=float(p)),
                modifier="fragile",
            )
    return decided(tested)


def _single_run(
    plain: Comparison, log_a: np.ndarray, log_b: np.ndarray, noise_floor: NoiseFloor | None
) -> Comparison:
    single = stop(plain, modifier="single-run")
    if noise_floor is None:
        return stop(
            single,
            caution("single_run", n_baseline=plain.n_baseline, n_candidate=plain.n_candidate),
        )
    sound = math.isfinite(noise_floor.sd_log) and noise_floor.sd_log > 0
    if noise_floor.n < 5 or not sound:
        return stop(single, caution("noise_floor_thin", n=noise_floor.n))
    test = ttests.floor_test(
        np.asarray(_effect(log_a, log_b)), noise_floor.sd_log, noise_floor.n, len(log_a), len(log_b)
    )
    df, se = noise_floor.n - 1, float(test.se)
    t_sum = ttests.t_quantile((1 + plain.confidence) / 2, df) + ttests.t_quantile(0.8, df)
    floored = stop(
        replace(
            single,
            test="noise floor",
            sd_log=noise_floor.sd_log,
            sd_df=df,
            mde_ratio=growth(math.hypot(float(t_sum) * se, plain.gain_log)),
        ),
        caution(
            "noise_floor_used", source=noise_floor.source, sd=noise_floor.sd_log, n=noise_floor.n
        ),
        modifier=f"noise floor from {noise_floor.source}",
    )
    return decided(with_interval(floored, test))
