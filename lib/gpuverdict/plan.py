"""How many runs, of how many requests, in which order: the plan of a campaign before its data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from gpuverdict.campaign import ComparisonSpec
from gpuverdict.errors import Caution, ParameterError
from gpuverdict.measured import Measured
from gpuverdict.stats import mde, runs_needed, sd_upper_limit, statistic_level
from gpuverdict.summary import Summary
from gpuverdict.text import caution

__all__ = [
    "Plan",
    "affordable_order",
    "plan_campaign",
    "plans_of_campaign",
    "pooled_sd",
    "requests_per_run",
    "run_order",
]

RECOMMENDED_RUNS = 5
MANY_RUNS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Runs per arm, requests per run and the order, with what the design will be able to see.

    Attributes
    ----------
    runs_per_arm : int
        What to run: the upper end of `runs_range`, never below three.
    runs_range : (int, int) or None
        Runs per arm that find `effect_ratio` in 80 % of campaigns: with the pilot's SD as it is,
        and with its upper 80 % limit. None without a pilot.
    detectable_ratio : float or None
        Smallest difference the planned runs find, with that upper limit.
    requests_per_run : int
        Least number of requests in the window of every run.
    sd_log, sd_df : float or None, int or None
        SD over runs of the log statistic that was planned with, and its degrees of freedom.
    order : DataFrame
        `order_no, block_no, repeat_no, arm, workload_seed`, one row a run.
    comparison, pilot_level : str
        Which comparison of a campaign this is for, and the level its pilot's SD comes from.
    """

    metric: str
    statistic: str
    effect_ratio: float
    power: float
    confidence: float
    paired: bool
    runs_per_arm: int
    runs_range: tuple[int, int] | None
    detectable_ratio: float | None
    requests_per_run: int
    sd_log: float | None
    sd_df: int | None
    order: pd.DataFrame
    comparison: str = ""
    pilot_level: str | None = None
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        if self.runs_range is None:
            why = "no pilot"
        else:
            low, high = self.runs_range
            why = f"{low} to {high} for {100 * self.effect_ratio:.3g} %"
        found = self.detectable_ratio
        seen = "" if found is None else f", finds {100 * found:.3g} %"
        name = self.metric if self.statistic == "value" else f"{self.metric} {self.statistic}"
        level = f" from {self.pilot_level}" if self.pilot_level else ""
        return (
            f"{name}: {self.runs_per_arm} runs per arm ({why}{level}){seen}, "
            f"{self.requests_per_run} requests or more each"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain values; `order` as rows."""
        names = [name for name in self.__dataclass_fields__ if name not in ("order", "cautions")]
        row: dict[str, Any] = {name: getattr(self, name) for name in names}
        row["runs_range"] = list(self.runs_range) if self.runs_range else None
        row["order"] = self.order.to_dict("records")
        row["cautions"] = [caution.as_dict() for caution in self.cautions]
        return row

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>{self.order.to_html(index=False, escape=True)}"


def affordable_order(plans: Sequence[Plan]) -> pd.DataFrame:
    """Return the order for the most runs any of the plans asks for that can reasonably be made.

    Plans beyond 30 runs an arm ask for steadier runs, not for an order; without any other the
    recommended five repeats are laid out.

    Raises
    ------
    ParameterError
        For no plans.
    """
    if not plans:
        raise ParameterError("plans", found="none", expected="one plan or more")
    within = [plan for plan in plans if plan.runs_per_arm <= MANY_RUNS]
    longest = max(within or plans, key=lambda plan: plan.runs_per_arm)
    repeats = longest.runs_per_arm if within else RECOMMENDED_RUNS
    return longest.order[longest.order["repeat_no"] <= repeats]


def pooled_sd(pilot: Mapping[str, Sequence[float]]) -> tuple[float, int]:
    """Return the SD over runs of the log statistic, pooled over the arms of a pilot, and its df.

    Raises
    ------
    ParameterError
        When no arm has two positive runs.

    Examples
    --------
    >>> sd, df = pooled_sd({"a": [1.0, 1.02, 0.98], "b": [2.0, 2.02, 2.06]})
    >>> round(sd, 4), df
    (0.0177, 4)
    """
    squares, df = 0.0, 0
    for arm in sorted(pilot):
        values = np.sort(np.asarray(pilot[arm], dtype=float))
        if not len(values):
            continue
        if not np.isfinite(values).all() or values[0] <= 0:
            raise ParameterError(f"pilot arm {arm!r}", found="values", expected="positive numbers")
        if len(values) > 1:
            squares += float(np.log(values).var(ddof=1)) * (len(values) - 1)
            df += len(values) - 1
    if not df:
        raise ParameterError("pilot", found="no arm with two runs", expected="two runs or more")
    return math.sqrt(squares / df), df


def requests_per_run(statistics: Sequence[str], concurrency: int = 0) -> int:
    """Return the least number of requests of a run whose statistics shall be tested.

    Five requests beyond the outermost quantile, doubled so that the warm-up cut (15 % and the
    opening wave) and lost requests leave enough; never fewer than ten per stream, which the drift
    rule needs.

    Examples
    --------
    >>> requests_per_run(["p50"]), requests_per_run(["p50", "p99"]), requests_per_run(["p95"], 64)
    (100, 1000, 755)
    """
    beyond = [statistic_level(name) for name in statistics]
    tail = max((q for q in beyond if q is not None), default=0.5)
    floor = 50 if tail <= 0.5 else math.ceil(5 / (1 - tail) - 1e-9)
    return max(2 * floor, math.ceil((10 * concurrency + 1) / 0.85) if concurrency else 0)


def run_order(arms: Sequence[str], runs_per_arm: int, *, seed: int) -> pd.DataFrame:
    """Return a balanced order of runs: forward, back, forward (ABBA), first arm drawn by the seed.

    A slow drift of the room or of the clocks then hits all arms alike; in the order AABB a drift of
    2 % makes a false difference in 13 to 56 % of campaigns. Runs of one repeat share a workload
    seed, so that they may be paired.

    Examples
    --------
    >>> run_order(["a", "b"], 2, seed=1)["arm"].tolist() in (list("abba"), list("baab"))
    True
    """
    if len(arms) < 2 or len(set(arms)) < len(arms):
        raise ParameterError("arms", found=repr(list(arms)), expected="two different arms or more")
    if runs_per_arm < 1:
        raise ParameterError("runs_per_arm", found=str(runs_per_arm), expected="1 or more")
    random = np.random.default_rng(seed)
    forward = [arms[i] for i in random.permutation(len(arms))]
    seeds = random.integers(1, 2**31 - 1, size=runs_per_arm)
    rows = []
    for repeat in range(runs_per_arm):
        turn = forward if repeat % 2 == 0 else forward[::-1]
        rows += [
            {"block_no": repeat // 2 + 1, "repeat_no": repeat + 1, "arm": arm,
             "workload_seed": int(seeds[repeat])}
            for arm in turn
        ]  # fmt: skip
    frame = pd.DataFrame(rows)
    frame.insert(0, "order_no", range(1, len(frame) + 1))
    return frame


def plan_campaign(
    arms: Sequence[str],
    *,
    effect: float,
    pilot: Mapping[str, Sequence[float]] | None = None,
    sd_log: float | None = None,
    metric: str = "tpot_s",
    statistic: str = "p50",
    statistics: Sequence[str] = (),
    concurrency: int = 0,
    paired: bool = False,
    power: float = 0.80,
    confidence: float = 0.95,
    seed: int = 1,
) -> Plan:
    """Say how many runs per arm find a difference of `effect`, and in which order to run them.

    Parameters
    ----------
    arms : sequence of str
        The arms to run.
    effect : float
        Smallest difference that matters, as a fraction (0.03 is 3 %).
    pilot : mapping of arm to run values, optional
        The statistic of each pilot run.
    sd_log : float, optional
        A known SD over runs of the log statistic, instead of a pilot; taken as it is.
    statistics : sequence of str
        All statistics that shall be tested; the outermost decides the requests of a run.
    concurrency : int
        Largest closed-loop concurrency.
    seed : int
        Of the order and the workload seeds.

    Raises
    ------
    ParameterError
        For an effect that is no positive fraction, or both a pilot and an SD.

    Notes
    -----
    The SD of a small pilot is a coin toss: with three pilot runs and a true need of ten, the plain
    answer lies between 4 and 19. The upper 80 % limit of the SD reaches the power in 84 to 94 % of
    pilots, at the price of more runs; both are given.

    Examples
    --------
    >>> print(plan_campaign(["a", "b"], effect=0.03, sd_log=0.01))
    tpot_s p50: 4 runs per arm (4 to 4 for 3 %), finds 2.4 %, 100 requests or more each
    """
    if not (math.isfinite(effect) and 0 < effect < 1):
        raise ParameterError("effect", found=repr(effect), expected="a fraction such as 0.03 (3 %)")
    if pilot is not None and sd_log is not None:
        raise ParameterError("pilot", found="a pilot and sd_log", expected="one of the two")
    said: list[Caution] = []
    options: dict[str, Any] = {"confidence": confidence, "power": power, "paired": paired}
    df: int | None = None
    sd = upper = sd_log
    if pilot is not None:
        sd, df = pooled_sd(pilot)
        upper = sd_upper_limit(sd, df)
        if sd == 0:
            said.append(caution("plan_quantised"))
            sd = upper = None
    if sd is None or upper is None:
        if pilot is None:
            said.append(caution("plan_without_pilot", n=RECOMMENDED_RUNS))
        runs, span, detectable = RECOMMENDED_RUNS, None, None
    else:
        span = (runs_needed(sd, effect, **options), runs_needed(upper, effect, **options))
        runs = max(3, span[1])
        detectable = mde(upper, runs, **options)
        if runs > MANY_RUNS:
            said.append(caution("plan_many_runs", n=runs, effect=effect, sd=upper))
    return Plan(
        metric=metric,
        statistic=statistic,
        effect_ratio=effect,
        power=power,
        confidence=confidence,
        paired=paired,
        runs_per_arm=runs,
        runs_range=span,
        detectable_ratio=detectable,
        requests_per_run=requests_per_run([statistic, *statistics], concurrency),
        sd_log=sd,
        sd_df=df,
        order=run_order(arms, runs, seed=seed),
        cautions=tuple(said),
    )


def _level_name(level: str | None) -> str | None:
    if level is None:
        return None
    (kind, value), *_ = json.loads(level).items()
    return f"{kind} {value:g}"


def plans_of_campaign(
    measured: Measured, summary: Summary, *, effect: float, seed: int
) -> list[Plan]:
    """Plan each comparison of a measured campaign, its own runs as the pilot.

    Parameters
    ----------
    measured, summary
        The campaign as measured; one without runs is planned without a pilot.
    effect : float
        Smallest difference that matters, as a fraction.
    seed : int
        Of the order.

    Returns
    -------
    list of Plan
        One for each comparison and primary metric; the pilot is the level whose SD is largest,
        since that cell decides last.
    """
    campaign = measured.campaign
    frame = summary.frame[summary.frame.window == "steady"]
    tails = [
        (m, s)
        for workload in campaign.all_workloads()
        for m, limits in campaign.slo_of(workload).items()
        for s in limits
    ]
    levels = [run.level.get("concurrency", 0) for run in measured.runs]
    plans = []
    for spec in campaign.comparisons:
        if not isinstance(spec, ComparisonSpec):
            continue
        arms = [spec.baseline, str(spec.candidate)]
        for name in campaign.primary:
            metric, _, statistic = name.partition(".")
            rows = frame[
                (frame.metric == metric)
                & (frame.statistic == (statistic or "value"))
                & frame.arm.isin(arms)
                & (frame.value > 0)
            ]
            pilots = [
                (level, {arm: held.value.tolist() for arm, held in cell.groupby("arm")})
                for (_, level), cell in rows.groupby(["workload", "level"])
            ]
            usable = [p for p in pilots if any(len(v) > 1 for v in p[1].values())]
            level, pilot = max(usable, key=lambda p: pooled_sd(p[1])[0], default=(None, None))
            plans.append(
                replace(plan_campaign(
                    arms, effect=effect, pilot=pilot, metric=metric, statistic=statistic or "value",
                    statistics=[s for m, s in tails if m == metric],
                    concurrency=int(max(levels, default=0)), seed=seed,
                    paired=spec.paired or campaign.design.paired,
                ), comparison=str(spec.name), pilot_level=_level_name(level))
            )  # fmt: skip
    return plans
