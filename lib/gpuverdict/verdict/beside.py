"""What stands beside the cells: stability, factors crossed with the arms, quality."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from gpuverdict import stats
from gpuverdict.campaign import Arm, Campaign, ComparisonSpec
from gpuverdict.campaign.reading import factor_value
from gpuverdict.design import Comparability
from gpuverdict.design.comparability import DEVICE_BUNDLE
from gpuverdict.errors import Caution, ParameterError
from gpuverdict.measured import Measured
from gpuverdict.schema import METRICS
from gpuverdict.summary import Summary
from gpuverdict.text import caution
from gpuverdict.verdict.cells import Cell

__all__ = ["factorial_section", "like_for_like", "quality_section", "square", "stability_section"]

_STABLE = (("ttft_s", "p95"), ("ttft_s", "p99"), ("tpot_s", "p95"), ("tpot_s", "p99"),
           ("e2e_s", "p95"), ("e2e_s", "p99"))  # fmt: skip
# What a factor is looked for in, beside the free `factors` of the arms.
_FACTORS = ("precision", "engine", "kv_dtype", "kernels", "model", "gpus", "tensor_parallel")


def stability_section(measured: Measured, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Say how much the tails of each arm move from run to run, and which share keeps the SLO.

    Returns
    -------
    list of dict
        `workload, level, metric, statistic, baseline, candidate, ratio, limit, within_baseline,
        within_candidate`: SD over runs of the log, as Estimates.
    """
    found = []
    for cell in cells:
        key = (cell.key.metric, cell.key.statistic)
        if key not in _STABLE or cell.rung > 5:
            continue
        sides = [
            [v for _, v in runs if v is not None and v > 0]
            for runs in (cell.baseline_runs, cell.candidate_runs)
        ]
        if min(map(len, sides)) < 2:
            continue
        slo = measured.campaign.slo_of(cell.key.workload)
        limit = slo.get(cell.key.metric, {}).get(cell.key.statistic)
        spread = stats.stability(sides[0], sides[1], limit=limit)
        found.append(
            {
                "workload": cell.key.workload, "level": cell.level, "metric": key[0],
                "statistic": key[1], "baseline": spread.baseline, "candidate": spread.candidate,
                "ratio": spread.ratio, "limit": limit, "within_baseline": spread.within_baseline,
                "within_candidate": spread.within_candidate,
            }
        )  # fmt: skip
    return found


def quality_section(campaign: Campaign, spec: ComparisonSpec, comparability: Comparability) -> Any:
    """Give the quality scores of both arms where speed was bought with another precision."""
    if comparability.quality is None:
        return None
    scores = {}
    for role, name in (("baseline", spec.baseline), ("candidate", str(spec.candidate))):
        held = campaign.arms[name].quality
        scores[role] = None if held is None else held.model_dump()
    return {**scores, "said": comparability.quality}


def _level(arm: Arm, factor: str) -> str | None:
    value = factor_value(arm, factor)
    return None if value is None else str(value)


def square(
    campaign: Campaign, spec: ComparisonSpec
) -> list[tuple[str, tuple[str, str], tuple[str, str]]]:
    """Find the arms that cross this comparison with a factor.

    Returns
    -------
    list of (factor, levels, arms)
        `arms` are those of the baseline's and of the candidate's kind at the second level of the
        factor. Everything else that an arm states must agree.
    """
    a, b = campaign.arms[spec.baseline], campaign.arms[str(spec.candidate)]
    names = [n for n in campaign.arms if n not in (spec.baseline, spec.candidate)]
    factors = dict.fromkeys(
        [*_FACTORS, *sorted(key for arm in campaign.arms.values() for key in arm.factors)]
    )
    found = []
    for factor in factors:
        base = _level(a, factor)
        if base is None or _level(b, factor) != base:
            continue  # the factor is (part of) what the comparison itself is about
        for one, two in itertools.permutations(names, 2):
            other = _level(campaign.arms[one], factor)
            if other in (None, base) or _level(campaign.arms[two], factor) != other:
                continue
            if _only(a, campaign.arms[one], factor) and _only(b, campaign.arms[two], factor):
                found.append((factor, (base, str(other)), (one, two)))
    return found


def _only(one: Arm, two: Arm, factor: str) -> bool:
    """Tell whether two arms differ in a factor and in nothing else that either states."""
    keys = [
        "gpu", "gpus", "tensor_parallel", "pipeline_parallel", "data_parallel", "power_limit_w",
        "host", "scheduler", "sampling", *_FACTORS, *sorted({*one.factors, *two.factors}),
    ]  # fmt: skip
    # The same card, where cards are named: another one is another arm, not another level.
    if one.cards and two.cards and one.cards != two.cards:
        return False
    # A model brings its precision along only by name; an engine brings its kernels.
    brings = {"model": ("gpus", "tensor_parallel"), "engine": ("kernels", "scheduler"),
              "precision": ("kernels",)}.get(factor, ())  # fmt: skip
    return all(
        key == factor or key in brings or factor_value(one, key) == factor_value(two, key)
        for key in keys
    )


def like_for_like(measured: Measured, spec: ComparisonSpec) -> list[ComparisonSpec]:
    """Find pairs of arms on the same two devices that share everything else they state.

    Where a comparison is one of systems, such a pair answers the question about the devices.
    """
    arms = measured.campaign.arms
    a, b = arms[spec.baseline], arms[str(spec.candidate)]
    found = []
    for one, two in itertools.permutations(arms, 2):
        same = _same_device(arms[one], a) and _same_device(arms[two], b)
        if not same or (one, two) == (spec.baseline, spec.candidate):
            continue
        keys = ["host", "scheduler", "sampling", *_FACTORS[:4], "model", *arms[one].factors,
                *arms[two].factors]  # fmt: skip
        if all(factor_value(arms[one], key) == factor_value(arms[two], key) for key in keys):
            found.append(
                spec.model_copy(
                    update={"name": f"{two}-vs-{one}", "baseline": one, "candidate": two,
                            "treatment": ()}
                )
            )  # fmt: skip
    return found


def _same_device(one: Arm, two: Arm) -> bool:
    return all(getattr(one, key) == getattr(two, key) for key in DEVICE_BUNDLE)


def factorial_section(
    measured: Measured, summary: Summary, spec: ComparisonSpec
) -> list[dict[str, Any]]:
    """Say whether a factor acts alike on both arms: main effects and their ratio of ratios.

    Returns
    -------
    list of dict
        One entry a (factor, workload, level, primary metric): `factor, levels, arms, workload,
        level, metric, statistic, of_factor_baseline, of_factor_candidate, of_arm_without,
        of_arm_with, interaction` (plain values) and `said`, the sentence as a caution. `reverses`
        tells that the candidate is ahead at one level of the factor and behind at the other.

    Notes
    -----
    The interaction is exp((b1 - b0) - (a1 - a0)) over means of logs, tested with the variances of
    all four arms (`stats.interaction`); Benjamini-Hochberg over the levels of a metric.
    """
    campaign = measured.campaign
    found: list[dict[str, Any]] = []
    for factor, levels, (one, two) in square(campaign, spec):
        arms = (spec.baseline, one, str(spec.candidate), two)
        for name in campaign.primary:
            metric, _, statistic = name.partition(".")
            statistic = statistic or "value"
            family = []
            for (workload, level), sides in _by_place(summary, arms, metric, statistic).items():
                try:
                    crossed = stats.interaction(*sides, metric=metric, statistic=statistic)
                except ParameterError:
                    continue  # a run without a usable value: the cells name it
                family.append((workload, level, crossed))
            adjusted = stats.adjust([crossed.interaction for _, _, crossed in family])
            for (workload, level, crossed), interaction in zip(family, adjusted, strict=True):
                found.append(
                    {
                        "factor": factor, "levels": list(levels), "arms": list(arms),
                        "workload": workload, "level": level, "metric": metric,
                        "statistic": statistic,
                        **{
                            side: _plain(getattr(crossed, side))
                            for side in ("of_factor_baseline", "of_factor_candidate",
                                         "of_arm_without", "of_arm_with")
                        },
                        "interaction": _plain(interaction),
                        "reverses": {crossed.of_arm_without.verdict, crossed.of_arm_with.verdict}
                        in ({"faster", "slower"}, {"better", "worse"}),
                        "said": _sentence(factor, levels, arms, metric, crossed, interaction),
                    }
                )  # fmt: skip
    return found


def _by_place(
    summary: Summary, arms: Sequence[str], metric: str, statistic: str
) -> dict[tuple[str, str], list[list[float]]]:
    """(workload, level) -> the run values of the four arms, where all of them ran it alike."""
    frame = summary.frame
    rows = frame[
        (frame.metric == metric) & (frame.statistic == statistic) & frame.arm.isin(list(arms))
        & frame.value.notna()
    ]  # fmt: skip
    found = {}
    for (workload, level), held in rows.groupby(["workload", "level"], sort=True):
        for window in ("steady", "whole_run"):
            sides = [
                held[(held.arm == arm) & (held.window == window)].value.tolist() for arm in arms
            ]
            if min(map(len, sides)) >= 2:
                found[(str(workload), str(level))] = sides
                break
    return found


def _plain(comparison: stats.Comparison) -> dict[str, Any]:
    c = comparison
    return {"ratio": c.ratio, "low": c.low, "high": c.high, "p_value": c.p_value,
            "p_adjusted": c.p_adjusted, "verdict": c.verdict, "n_baseline": c.n_baseline,
            "n_candidate": c.n_candidate}  # fmt: skip


def _sentence(
    factor: str, levels: Sequence[str], arms: Sequence[str], metric: str,
    crossed: stats.Factorial, interaction: stats.Comparison,
) -> Caution:  # fmt: skip
    values: Mapping[str, Any] = {
        "factor": factor, "from_level": levels[0], "to_level": levels[1],
        "baseline": arms[0], "candidate": arms[2], "metric": METRICS[metric].label,
        "on_baseline": crossed.of_factor_baseline.ratio or 0.0,
        "on_candidate": crossed.of_factor_candidate.ratio or 0.0,
        "without": crossed.of_arm_without.ratio or 0.0, "with_it": crossed.of_arm_with.ratio or 0.0,
        "ratio": interaction.ratio or 0.0, "low": interaction.low or 0.0,
        "high": interaction.high or 0.0,
    }  # fmt: skip
    reverses = {crossed.of_arm_without.verdict, crossed.of_arm_with.verdict} == {"faster", "slower"}
    if reverses:
        return caution("factor_reverses", **values)
    if interaction.p_value is None:
        return caution("factor_untested", **values)
    code = {"equivalent": "factor_alike", "inconclusive": "factor_undecided"}.get(
        interaction.verdict, "factor_differs_by_arm"
    )
    return caution(code, **values)
