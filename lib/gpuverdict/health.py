"""The health of every run: cut, window, errors, drift, steps, stalls, throttling, clocks, trace.

One row a run. What is wrong with a run is said here and carried to its verdicts; no run is dropped
for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gpuverdict.align import place
from gpuverdict.errors import Caution
from gpuverdict.measured import Measured, MeasuredRun
from gpuverdict.schema import Run, Trace
from gpuverdict.steady import (
    Disturbance,
    Drift,
    Leak,
    StepChange,
    Window,
    disturbed_runs,
    drift,
    leak,
    requests_in_window,
    step_change,
)
from gpuverdict.summary import Summary

__all__ = ["Health", "RunHealth", "check_health", "health_with"]

# Growth is judged per ten minutes: a shorter window says nothing about it.
SOAK_S = 600.0
_DRIFT_METRICS = ("tpot_s", "ttft_s", "e2e_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHealth:
    """What the health checks say of one run."""

    run_id: str
    drifts: tuple[Drift, ...]
    step: StepChange | None
    disturbance: Disturbance | None
    leaks: tuple[Leak, ...] = ()

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """Everything found, alarms first."""
        found = [c for d in self.drifts for c in d.cautions]
        found += list(self.step.cautions) if self.step else []
        found += list(self.disturbance.cautions) if self.disturbance else []
        found += [c for leak in self.leaks if leak.alarm for c in leak.cautions]
        unique = {c.code + str(sorted(c.values.items())): c for c in found}
        return tuple(unique.values())

    @property
    def disturbed(self) -> bool:
        """Whether something from outside stalled the run."""
        return bool(self.disturbance and self.disturbance.disturbed)

    @property
    def testable(self) -> bool:
        """Whether the log can show a stall at all: it needs the gaps between tokens."""
        return bool(self.disturbance and self.disturbance.testable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Health by run, and as a frame for tables."""

    runs: Mapping[str, RunHealth]
    frame: pd.DataFrame

    def drifting(self) -> dict[str, tuple[str, ...]]:
        """key of a run -> metrics that drift."""
        return {
            run_id: tuple(d.metric for d in found.drifts if d.alarm)
            for run_id, found in self.runs.items()
            if any(d.alarm for d in found.drifts)
        }

    def disturbed(self) -> frozenset[str]:
        """Keys of the disturbed runs."""
        return frozenset(run_id for run_id, found in self.runs.items() if found.disturbed)


def check_health(
    measured: Measured, summary: Summary, arms: Collection[str] | None = None
) -> Health:
    """Check every run of a campaign, or of some of its arms.

    Returns
    -------
    Health
        `frame` has one row a run: `run_id, arm, workload, level, repeat_no, n_sent, n_ok, n_error,
        n_incomplete, n_empty, cut_ratio, window_s, window, drift, step, disturbed, at_s,
        sm_clock_mhz, throttled_ratio, cautions`; `disturbed` is null where the log cannot tell.
    """
    cells: dict[tuple[str, str, str], list[MeasuredRun]] = defaultdict(list)
    chosen = [run for run in measured.runs if arms is None or run.arm in arms]
    for run in chosen:
        cells[(run.arm, run.workload, run.level_key)].append(run)
    found: dict[str, RunHealth] = {}
    for (arm, _, _), runs in cells.items():
        loaded = [run.stored.load() for run in runs]
        windows = [summary.facts[run.key].window for run in runs]
        timed = [
            bool(r.requests.height) and r.requests["start_s"].null_count() == 0 for r in loaded
        ]
        disturbances: dict[str, Disturbance] = {}
        usable = [i for i, good in enumerate(timed) if good]
        if usable:
            said = disturbed_runs([loaded[i] for i in usable], [windows[i] for i in usable])
            disturbances = {d.run_id: d for d in said}
        for run, data, window, good in zip(runs, loaded, windows, timed, strict=True):
            streams = run.level.get("concurrency")
            traces = measured.traces[arm]
            drifts = tuple(drift(data, window, m, concurrency=streams) for m in _DRIFT_METRICS)
            found[run.key] = RunHealth(
                run_id=run.run_id,
                drifts=drifts if good else (),
                step=step_change(data, window, concurrency=streams, trace=traces) if good else None,
                disturbance=disturbances.get(run.run_id),
                leaks=_leaks(data, window, traces, drifts[0]) if good else (),
            )  # fmt: skip
    return Health(runs=found, frame=_frame(chosen, summary, found))


def health_with(
    health: Health, measured: Measured, summary: Summary, arms: Collection[str]
) -> Health:
    """Return a health that covers these arms as well; what was checked is not checked again."""
    missing = {
        arm for arm in arms if any(run.key not in health.runs for run in measured.runs_of(arm))
    }
    if not missing:
        return health
    more = check_health(measured, summary, missing)
    frame = pd.concat([health.frame, more.frame], ignore_index=True)
    return Health(runs={**health.runs, **more.runs}, frame=frame)


def _leaks(run: Run, window: Window, traces: Sequence[Trace], latency: Drift) -> tuple[Leak, ...]:
    """Memory growth over a window that is long enough to show it."""
    if window.end_s is None or (window.length_s or 0.0) < SOAK_S:
        return ()
    for trace in traces:
        offset, _ = place(run, trace)
        if offset is not None:
            sent = requests_in_window(run, window).height
            start, end = offset + window.start_s, offset + window.end_s
            return tuple(leak(trace, start, end, n_requests=sent, latency=latency))
    return ()


def _frame(
    chosen: Sequence[MeasuredRun], summary: Summary, found: Mapping[str, RunHealth]
) -> pd.DataFrame:
    wanted = summary.frame[summary.frame.metric.isin(["sm_clock_mhz", "throttled_ratio"])]
    first = wanted.sort_values("window").drop_duplicates(["run_id", "metric"])
    telemetry = {(r.run_id, r.metric): r.value for r in first.itertuples()}
    rows: list[dict[str, Any]] = []
    for run in chosen:
        fact, health = summary.facts[run.key], found[run.key]
        alarms = [d for d in health.drifts if d.alarm]
        step = health.step if health.step and health.step.alarm else None
        stalled = health.disturbance if health.disturbed else None
        rows.append(
            {
                "run_id": run.run_id, "arm": run.arm, "workload": run.workload,
                "level": run.level_key, "repeat_no": run.repeat_no,
                "n_sent": sum(fact.n_by_status.values()),
                **{f"n_{s}": fact.n_by_status.get(s, 0)
                   for s in ("ok", "error", "incomplete", "empty", "cancelled")},
                "cut_ratio": fact.window.dropped_ratio, "window": fact.window.kind,
                "window_s": fact.window.length_s,
                "drift": ", ".join(f"{d.metric} {d.change_ratio:+.1%}" for d in alarms),
                "step": "" if step is None else f"{step.change_ratio:+.1%} at {step.at_s:.1f} s",
                "throttle": bool(step and step.throttle),
                "disturbed": health.disturbed if health.testable else None,
                "at_s": stalled.at_s if stalled else None,
                "sm_clock_mhz": telemetry.get((run.run_id, "sm_clock_mhz")),
                "throttled_ratio": telemetry.get((run.run_id, "throttled_ratio")),
                "cautions": [c.code for c in (*fact.cautions, *health.cautions)],
            }
        )  # fmt: skip
    return pd.DataFrame(rows)
