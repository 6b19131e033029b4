"""How much load an arm carries within its latency targets, from the per-run summary alone."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gpuverdict.errors import Caution
from gpuverdict.stats import statistic_level, tail_rule
from gpuverdict.stats.ttests import interval, t_quantile, welch
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["SloCapacity", "attainment", "compare_loads", "slo_capacity", "slo_frontier"]

Slo = Mapping[str, Mapping[str, float]]
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class SloCapacity:
    """The load one arm carries within an SLO.

    Attributes
    ----------
    kind : str
        `concurrency` (closed loop), `rate_requests_per_s` (open loop) or `batch`; never mixed.
    highest_met, lowest_missed : float or None
        Highest tested level at which every run meets every part (and every lower level too), and
        the lowest level at which one does not, or that could not run.
    load : Estimate
        Load at which the first part of the SLO is reached, interpolated on log axes in every sweep
        and averaged; n counts sweeps. At the highest level tested it is a lower bound, so said.
    limiting : str or None
        The part of the SLO that is reached first.
    goodput_requests_per_s : float or None
        Geometric mean over runs at `highest_met`.
    attainment : DataFrame
        See `attainment`.
    sweep_loads : tuple of float
        The load of each sweep, sorted; `open_ended` where any only bounds it from below.
    """

    arm: str
    workload: str
    kind: str
    highest_met: float | None
    lowest_missed: float | None
    load: Estimate
    limiting: str | None
    goodput_requests_per_s: float | None
    attainment: pd.DataFrame
    sweep_loads: tuple[float, ...] = ()
    open_ended: bool = False
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        if self.highest_met is None:
            return f"{self.arm}: no tested level meets the SLO"
        text = f"{self.arm}: carries {self.highest_met:g} ({self.kind}) within the SLO"
        if self.lowest_missed is not None:
            text += f", not {self.lowest_missed:g}"
        return text


def _rows(frame: pd.DataFrame, arm: str, workload: str) -> pd.DataFrame:
    """Rows of an arm with its level apart: steady windows where there are any."""
    own = frame[(frame["arm"] == arm) & (frame["workload"] == workload)]
    own = own[own["level"].notna()]
    steady = own[own["window"] == "steady"]
    measured = set(steady.loc[steady["value"].notna(), "run_id"])
    whole = own[(own["window"] == "whole_run") & ~own["run_id"].isin(measured)]
    rows = pd.concat([steady[steady["run_id"].isin(measured)], whole])
    levels = [json.loads(level) for level in rows["level"]]
    return rows.assign(
        kind=[next(iter(level)) for level in levels],
        at=[float(next(iter(level.values()))) for level in levels],
    )


def attainment(frame: pd.DataFrame, slo: Slo, arm: str, workload: str = "main") -> pd.DataFrame:
    """Say for every run and part of an SLO whether it was met.

    Parameters
    ----------
    frame : DataFrame
        A campaign's summary (`schema.SUMMARY`).
    slo : mapping
        metric -> statistic -> limit in base units.

    Returns
    -------
    DataFrame
        `kind, at, repeat_no, run_id, part, limit, value, n, met, thin`; `met` is None where the
        run has no such number, `thin` where the tail rests on fewer than five requests beyond it.
    """
    rows = _rows(frame, arm, workload)
    found: list[dict[str, Any]] = []
    for metric, limits in slo.items():
        for statistic, limit in limits.items():
            mine = rows[(rows["metric"] == metric) & (rows["statistic"] == statistic)]
            q = statistic_level(statistic)
            for row in mine.itertuples():
                known = pd.notna(row.value)
                n = int(row.n) if pd.notna(row.n) else 0
                found.append(
                    {
                        "kind": row.kind, "at": row.at, "repeat_no": row.repeat_no,
                        "run_id": row.run_id, "part": f"{metric} {statistic}", "limit": limit,
                        "value": float(row.value) if known else None, "n": n,
                        "met": bool(row.value <= limit) if known else None,
                        "thin": q is not None and tail_rule(n, q) != "tested",
                    }
                )  # fmt: skip
    columns = ["kind", "at", "repeat_no", "run_id", "part", "limit", "value", "n", "met", "thin"]
    table = pd.DataFrame(found, columns=columns)
    return table.sort_values(["kind", "at", "part", "repeat_no", "run_id"], ignore_index=True)


def slo_capacity(
    frame: pd.DataFrame,
    slo: Slo,
    arm: str,
    workload: str = "main",
    *,
    infeasible: Sequence[float] = (),
) -> list[SloCapacity]:
    """Say how much load an arm carries within an SLO, for each kind of load it was run with.

    Parameters
    ----------
    infeasible : sequence of float
        Levels that could not run; they miss every SLO.

    Notes
    -----
    A level counts as carried only if every run meets every part: a mean over runs would hide the
    run that does not. Closed and open loops are kept apart: a closed loop slows its own load down.
    """
    table = attainment(frame, slo, arm, workload)
    rows = _rows(frame, arm, workload)
    return [
        _capacity(part, rows[rows["kind"] == kind], arm, workload, str(kind), infeasible)
        for kind, part in table.groupby("kind", sort=True)
    ]


def _capacity(
    table: pd.DataFrame, rows: pd.DataFrame, arm: str, workload: str, kind: str,
    infeasible: Sequence[float],
) -> SloCapacity:  # fmt: skip
    said: list[Caution] = []
    unknown = sorted(set(table.loc[table["met"].isna(), "part"]))
    if unknown:
        said.append(caution("slo_part_unknown", parts=", ".join(unknown)))
    if bool(table["thin"].any()):
        thin = ", ".join(sorted(set(table.loc[table["thin"], "part"])))
        said.append(caution("slo_thin_tail", parts=thin))
    highest, missed = None, None
    for level in sorted({*table["at"], *infeasible}):
        here = table[table["at"] == level]
        met = len(here) > 0 and here["met"].notna().all() and here["met"].fillna(False).all()
        if not met or level in infeasible:
            missed = float(level)
            break
        highest = float(level)
    if highest is None:
        said.append(caution("slo_never_met"))
    elif missed is None:
        said.append(caution("slo_open_ended", level=highest))
    loads, limits, bounded = _sweep_loads(table)
    load, limiting = _load(loads, limits, bounded)
    good = rows[(rows["metric"] == "goodput_requests_per_s") & (rows["at"] == highest)]["value"]
    positive = [float(v) for v in good if pd.notna(v) and v > 0]
    return SloCapacity(
        arm=arm,
        workload=workload,
        kind=kind,
        highest_met=highest,
        lowest_missed=missed,
        load=load,
        limiting=limiting,
        goodput_requests_per_s=(
            math.exp(math.fsum(map(math.log, positive)) / len(positive)) if positive else None
        ),
        attainment=table,
        sweep_loads=tuple(sorted(loads)),
        open_ended=bounded > 0,
        cautions=tuple(said),
    )


def _sweep_loads(table: pd.DataFrame) -> tuple[list[float], list[str], int]:
    """Where each sweep reaches the first part of the SLO, which part, and how many never do."""
    loads, limits, open_ended = [], [], 0
    for _, sweep in table[table["value"].notna()].groupby("repeat_no", sort=True):
        reached = []
        for part, points in sweep.groupby("part", sort=True):
            at = _reached(points)
            if at is not None:
                reached.append((at, str(part)))
        if reached:
            load, part = min(reached)
            loads.append(load)
            limits.append(part)
        else:
            loads.append(float(sweep["at"].max()))
            open_ended += 1
    return loads, limits, open_ended


def _load(
    loads: Sequence[float], limits: Sequence[str], open_ended: int
) -> tuple[Estimate, str | None]:
    """Average over sweeps, with a t interval of the logs."""
    if not loads or min(loads) <= 0:
        return Estimate(value=None, cautions=(caution("slo_never_met"),)), None
    limiting = max(sorted(set(limits)), key=limits.count) if limits else None
    if open_ended:
        bound = caution("slo_open_ended", level=min(loads))
        return Estimate(value=min(loads), low=min(loads), n=len(loads), cautions=(bound,)), limiting
    logs = np.log(np.sort(loads))
    mean = float(logs.mean())
    if len(logs) < 2:
        return Estimate(value=math.exp(mean), n=1, cautions=(caution("single_sweep"),)), limiting
    half = float(
        t_quantile((1 + CONFIDENCE) / 2, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs))
    )
    return (
        Estimate(
            value=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half),
            confidence=CONFIDENCE, n=len(logs),
        ),
        limiting,
    )  # fmt: skip


def compare_loads(baseline: SloCapacity, candidate: SloCapacity) -> Estimate:
    """Say how many times the baseline's load the candidate carries, with an interval over sweeps.

    None with a caution where an arm never meets the SLO, never reaches its limit, or was run with
    another kind of load.

    Notes
    -----
    Welch on the logs of the sweeps' loads, like every other comparison of arms.
    """
    n = min(len(baseline.sweep_loads), len(candidate.sweep_loads))
    if baseline.kind != candidate.kind:
        return Estimate(value=None, n=n, cautions=(caution("loads_of_two_kinds"),))
    for side in (baseline, candidate):
        if not side.sweep_loads or side.sweep_loads[0] <= 0:
            return Estimate(value=None, n=n, cautions=(caution("slo_never_met"),))
        if side.open_ended:
            bound = caution("slo_open_ended", level=side.sweep_loads[0])
            return Estimate(value=None, n=n, cautions=(bound,))
    a, b = np.log(baseline.sweep_loads), np.log(candidate.sweep_loads)
    if n < 2:
        value = math.exp(float(b.mean() - a.mean()))
        return Estimate(value=value, n=n, cautions=(caution("single_sweep"),))
    test = welch(a, b, guard=False)
    if bool(test.quantised):
        return Estimate(value=math.exp(float(test.effect)), n=n, cautions=(caution("quantised"),))
    low, high = interval(test, CONFIDENCE)
    return Estimate(
        value=math.exp(float(test.effect)), low=math.exp(float(low)), high=math.exp(float(high)),
        confidence=CONFIDENCE, n=n,
    )  # fmt: skip


def _reached(points: pd.DataFrame) -> float | None:
    """First level at which a latency reaches its limit, between levels on log axes.

    None when it never does; 0 when the lowest level is already beyond.
    """
    ordered = points.sort_values("at")
    at, value = ordered["at"].to_numpy(float), ordered["value"].to_numpy(float)
    limit = float(ordered["limit"].iloc[0])
    beyond = np.flatnonzero(value > limit)
    if len(beyond) == 0:
        return None
    i = int(beyond[0])
    if i == 0:
        return 0.0
    # A latency of 0 has no logarithm; then the level before is the answer.
    if value[i - 1] <= 0:
        return float(at[i - 1])
    step = math.log(limit / value[i - 1]) / math.log(value[i] / value[i - 1])
    return float(at[i - 1] * (at[i] / at[i - 1]) ** step)


def slo_frontier(
    frame: pd.DataFrame, slo: Slo, arms: Mapping[str, int], workload: str = "main"
) -> pd.DataFrame:
    """Set tokens/s per user against tokens/s per GPU, one row a run.

    Parameters
    ----------
    arms : mapping
        arm -> number of GPUs.

    Returns
    -------
    DataFrame
        `arm, kind, at, repeat_no, tokens_per_s_per_user, tokens_per_s_per_gpu, meets_slo`; a user's
        rate is 1 / median TPOT. `meets_slo` is None where a part is not known or no SLO is set.
    """
    found: list[dict[str, Any]] = []
    for arm, gpus in arms.items():
        rows = _rows(frame, arm, workload)
        table = attainment(frame, slo, arm, workload)
        for (kind, at, run_id), run in rows.groupby(["kind", "at", "run_id"], sort=True):
            value = {(r.metric, r.statistic): r.value for r in run.itertuples()}
            tpot, rate = (
                value.get(("tpot_s", "p50")), value.get(("output_tokens_per_s", "value")),
            )  # fmt: skip
            if tpot is None or rate is None or pd.isna(tpot) or pd.isna(rate) or tpot <= 0:
                continue
            met = table[table["run_id"] == run_id]["met"]
            found.append(
                {
                    "arm": arm, "kind": kind, "at": at, "repeat_no": run["repeat_no"].iloc[0],
                    "tokens_per_s_per_user": 1 / float(tpot),
                    "tokens_per_s_per_gpu": float(rate) / gpus,
                    "meets_slo": None if not len(met) or met.isna().any() else bool(met.all()),
                }
            )  # fmt: skip
    columns = [
        "arm", "kind", "at", "repeat_no", "tokens_per_s_per_user", "tokens_per_s_per_gpu",
        "meets_slo",
    ]  # fmt: skip
    return pd.DataFrame(found, columns=columns)
