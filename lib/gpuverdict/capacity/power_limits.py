"""Tokens per joule and per second against the enforced power limit, and where the first peaks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gpuverdict.campaign import Arm, Campaign
from gpuverdict.capacity.watermarks import run_samples
from gpuverdict.errors import Caution
from gpuverdict.measured import Measured, MeasuredRun
from gpuverdict.stats.ttests import welch
from gpuverdict.summary import Summary
from gpuverdict.text import caution

__all__ = ["PowerLimitCurve", "efficiency_peak", "power_limit_curve", "same_but_power"]

LIMIT_FACTORS = ("power_limit_w", "power_limit", "power_cap_w", "power_cap")
FEWEST_LIMITS, FEWEST_RUNS = 3, 2
ALPHA = 0.05
# How far the enforced limit may lie from the declared one before both are said.
LIMIT_DRIFT = 0.02
_SAME = ("gpu", "gpus", "cards", "model", "tensor_parallel", "pipeline_parallel", "data_parallel",
         "engine", "engine_version", "precision", "kv_dtype", "host", "kernels", "scheduler",
         "sampling")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLimitCurve:
    """Efficiency and throughput of one configuration under several power limits.

    Attributes
    ----------
    arms : tuple of str
        Arms that differ in nothing but the limit.
    points : pandas.DataFrame
        One row a run: `arm, repeat_no, limit_w` (of one GPU), `tokens_per_j, tokens_per_s`.
    best_limit_w : float or None
        Tested limit with the highest mean efficiency.
    low_w, high_w : float or None
        The limits between which the peak lies; None on a side where the tested range does not
        bound it.
    resolved : bool
        Whether both sides are bounded.
    """

    arms: tuple[str, ...]
    level: Mapping[str, float]
    points: pd.DataFrame
    best_limit_w: float | None = None
    low_w: float | None = None
    high_w: float | None = None
    resolved: bool = False
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        if not self.resolved:
            return f"{', '.join(self.arms)}: no peak of tokens per joule resolved"
        return (
            f"{', '.join(self.arms)}: tokens per joule peak between {self.low_w:g} and "
            f"{self.high_w:g} W (best tested: {self.best_limit_w:g} W)"
        )


def same_but_power(campaign: Campaign, arm: str) -> tuple[str, ...]:
    """Name the arms that state the same as an arm in everything but the power limit, itself first.

    Another card is another arm: its sensor has another gain, so joules cannot be set side by side.
    """
    own = campaign.arms[arm]
    others = [
        name for name, other in campaign.arms.items() if name != arm and _alike(own, other)
    ]  # fmt: skip
    return (arm, *others)


def _alike(one: Arm, two: Arm) -> bool:
    if any(getattr(one, key) != getattr(two, key) for key in _SAME):
        return False
    rest = [{k: v for k, v in arm.factors.items() if k not in LIMIT_FACTORS} for arm in (one, two)]
    return rest[0] == rest[1]


def power_limit_curve(
    measured: Measured, summary: Summary, arm: str, workload: str = "main"
) -> PowerLimitCurve | None:
    """Give tokens per joule and per second against the power limit, around one arm.

    Returns
    -------
    PowerLimitCurve or None
        At the highest level that was run under every limit. None where the campaign holds one
        limit only.

    Notes
    -----
    The limit of a run is what its trace says is enforced, per GPU; without it what the arm
    declares (`power_limit_w`, or a factor of that name). Where both are known and 2 % apart the
    enforced one counts, and `limit_not_enforced` says so.
    """
    names = same_but_power(measured.campaign, arm)
    runs = [r for r in measured.runs if r.arm in names and r.workload == workload]
    said: dict[str, Caution] = {}
    records = []
    rows = _values(summary.frame, names, workload)
    for run in runs:
        limit, note = _limit(measured, run)
        energy, rate = (
            rows.get((run.arm, run.run_id, m))
            for m in ("energy_per_output_token_j", "output_tokens_per_s")
        )
        if note is not None:
            said.setdefault(f"{note.code} {run.arm}", note)
        if limit is None or not energy or not rate:
            continue
        records.append(
            {"arm": run.arm, "repeat_no": run.repeat_no, "level": run.level_key,
             "limit_w": limit, "tokens_per_j": 1.0 / energy, "tokens_per_s": rate}
        )  # fmt: skip
    frame = pd.DataFrame(records)
    if frame.empty or frame.limit_w.nunique() < 2:
        return None
    limits = set(frame.limit_w)
    shared = [key for key, own in frame.groupby("level") if set(own.limit_w) == limits]
    if not shared:
        said["limits_share_no_level"] = caution("limits_share_no_level")
        level = max(frame.level, key=_height)
        return PowerLimitCurve(arms=names, level=json.loads(level),
                               points=_columns(frame[frame.level == level]),
                               cautions=tuple(said.values()))  # fmt: skip
    level = max(shared, key=_height)
    points = _columns(frame[frame.level == level])
    best, low, high, why = efficiency_peak(
        {float(w): own.tokens_per_j.tolist() for w, own in points.groupby("limit_w")}
    )
    return PowerLimitCurve(
        arms=names, level=json.loads(level), points=points, best_limit_w=best, low_w=low,
        high_w=high, resolved=low is not None and high is not None,
        cautions=(*said.values(), *why),
    )  # fmt: skip


def efficiency_peak(
    runs: Mapping[float, Sequence[float]],
) -> tuple[float | None, float | None, float | None, tuple[Caution, ...]]:
    """Say between which power limits tokens per joule peak.

    Parameters
    ----------
    runs : mapping
        limit (W) -> tokens per joule of each run.

    Returns
    -------
    best_w : float or None
        Tested limit with the highest mean of logs.
    low_w, high_w : float or None
        The tested limits next to those that could be the best; None where none lies beyond.
    cautions : tuple of Caution
        `limits_too_few`, `peak_at_edge`, `peak_not_resolved`.

    Notes
    -----
    A limit is out when another one beats it in a one-sided Welch test on logs at 0.05 / (k - 1):
    the true best of k limits stays in with 95 % (Bonferroni over its k - 1 rivals; a confidence set
    for the best, as in Hsu, Multiple Comparisons, 1996). With one peak the efficiency falls on
    either side of it, so the peak lies between the neighbours of what stays. A curve with two
    peaks misleads.

    Examples
    --------
    >>> best, low, high, _ = efficiency_peak(
    ...     {300: [4.0, 4.01, 3.99], 400: [5.0, 5.01, 4.99], 500: [4.5, 4.51, 4.49]})
    >>> best, low, high
    (400, 300, 500)
    """
    limits = sorted(w for w, values in runs.items() if len(values) >= FEWEST_RUNS)
    if len(limits) < FEWEST_LIMITS:
        few = caution("limits_too_few", found=len(limits), needed=FEWEST_LIMITS, runs=FEWEST_RUNS)
        return None, None, None, (few,)
    logs = {w: np.log(np.asarray(runs[w], float)) for w in limits}
    beaten: set[float] = set()
    for one, other in itertools.permutations(limits, 2):
        test = welch(logs[one], logs[other], guard=False)
        if test.effect > 0 and float(test.p) / 2 < ALPHA / (len(limits) - 1):
            beaten.add(one)
    best = max(limits, key=lambda w: float(logs[w].mean()))
    kept = [i for i, w in enumerate(limits) if w not in beaten]
    low = limits[kept[0] - 1] if kept[0] > 0 else None
    high = limits[kept[-1] + 1] if kept[-1] + 1 < len(limits) else None
    if low is None and high is None:
        return best, None, None, (caution("peak_not_resolved", low_w=limits[0], high_w=limits[-1]),)
    if low is None:
        return best, None, high, (caution("peak_below", high_w=high),)
    if high is None:
        return best, low, None, (caution("peak_above", low_w=low),)
    return best, low, high, ()


def _columns(frame: pd.DataFrame) -> pd.DataFrame:
    kept = ["arm", "repeat_no", "limit_w", "tokens_per_j", "tokens_per_s"]
    return frame[kept].sort_values(["limit_w", "arm", "repeat_no"], ignore_index=True)


def _height(level: str) -> float:
    return float(max(json.loads(level).values()))


def _values(
    frame: pd.DataFrame, arms: Sequence[str], workload: str
) -> dict[tuple[str, str, str], float]:
    """(arm, run, metric) -> value; of the steady window where there is one."""
    rows = frame[
        frame.arm.isin(list(arms)) & (frame.workload == workload) & frame.value.notna()
        & frame.metric.isin(["energy_per_output_token_j", "output_tokens_per_s"])
        & (frame.statistic == "value") & frame.window.isin(["steady", "whole_run"])
    ]  # fmt: skip
    found: dict[tuple[str, str, str], float] = {}
    for row in rows.sort_values("window").itertuples():
        found.setdefault((row.arm, row.run_id, row.metric), float(row.value))
    return found


def _limit(measured: Measured, run: MeasuredRun) -> tuple[float | None, Caution | None]:
    """Power limit of one GPU during a run, and a note where it is not the declared one."""
    arm = measured.campaign.arms[run.arm]
    stated: list[Any] = [arm.power_limit_w, *(arm.factors.get(key) for key in LIMIT_FACTORS)]
    declared = next((float(v) for v in stated if type(v) in (int, float)), None)
    samples, _ = run_samples(measured, run.arm, run.stored)
    enforced = None if samples.is_empty() else samples["power_limit_w"].median()
    if enforced is None:
        return declared, None
    value = round(float(enforced), 0)  # type: ignore[arg-type]
    if declared is not None and abs(value - declared) > LIMIT_DRIFT * declared:
        note = caution("limit_not_enforced", arm=run.arm, declared_w=declared, enforced_w=value)
        return value, note
    return value, None
