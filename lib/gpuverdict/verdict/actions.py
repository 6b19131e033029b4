"""What would decide the rest: the measurements that unlock most cells a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuverdict.campaign import ComparisonSpec
from gpuverdict.errors import Caution
from gpuverdict.measured import Measured, level_label
from gpuverdict.verdict.cells import Cell

__all__ = ["Action", "actions"]

MOST = 5
# Two arms of three runs are the least that allows every word.
FIRST_RUNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing to measure next, how many cells it would decide, and at what cost in runs."""

    code: str
    values: Mapping[str, Any]
    cells: int
    runs: int


def actions(measured: Measured, spec: ComparisonSpec, cells: Sequence[Cell]) -> list[Action]:
    """List at most five measurements, those that decide most primary cells a run first."""
    by_place: dict[tuple[str, str | None], list[Cell]] = defaultdict(list)
    for cell in cells:
        if ".".join((cell.key.metric, cell.key.statistic)) in measured.campaign.primary:
            by_place[(cell.key.workload, cell.key.level)].append(cell)
    found: list[Action] = []
    for group in by_place.values():
        found += _of_level(group)
    for lost in measured.lost:
        if lost.arm in (spec.baseline, spec.candidate) and lost.role in ("sweeps", "runs", "files"):
            found.append(
                Action(code="action_repair_file", cells=1, runs=1, values={"path": lost.path})
            )
    if not any(measured.traces[a] for a in (spec.baseline, str(spec.candidate))):
        places = max(1, len(by_place))
        found.append(
            Action(code="action_record_trace", cells=len(by_place), runs=2 * places, values={})
        )
    found.sort(key=lambda a: (-a.cells / a.runs, a.code, str(sorted(a.values.items()))))
    return found[:MOST]


def _of_level(group: Sequence[Cell]) -> list[Action]:
    level = level_label(group[0].level)
    undecided = [c for c in group if c.verdict == "inconclusive"]
    found: list[Action] = []
    stalls = _said(undecided, "disturbed_run")
    disturbed = sorted({(str(c.values["arm"]), int(c.values["repeat"])) for c in stalls})
    found += [
        Action(code="action_repeat_run", cells=len(undecided), runs=1,
               values={"level": level, "arm": arm, "repeat": repeat})
        for arm, repeat in disturbed
    ]  # fmt: skip
    more = [c.comparison.runs_needed for c in undecided if c.comparison.runs_needed]
    if more and not stalls:
        best = min(more)
        have = min(
            min(c.comparison.n_baseline, c.comparison.n_candidate) for c in undecided
            if c.comparison.runs_needed
        )  # fmt: skip
        extra = max(1, best[0] - have)
        decided = sum(1 for m in more if m[0] <= best[0])
        found.append(
            Action(
                code="action_more_runs",
                cells=decided,
                runs=2 * extra,
                values={"level": level, "low": extra, "high": max(extra, best[1] - have)},
            )
        )
    elif undecided and all("single-run" in c.comparison.modifiers for c in undecided):
        found.append(
            Action(
                code="action_more_runs",
                cells=len(undecided),
                runs=4,
                values={"level": level, "low": FIRST_RUNS - 1, "high": FIRST_RUNS + 1},
            )
        )
    for code in ("only_one_arm", "not_measured_level"):
        for said_of in _said([c for c in group if c.rung >= 6], code)[:1]:
            arm = said_of.values.get("other") or said_of.values["arm"]
            n = sum(1 for c in group if c.rung >= 6)
            found.append(Action(code="action_run_level", cells=n, runs=FIRST_RUNS,
                                values={"level": level, "arm": arm}))  # fmt: skip
    return found


def _said(cells: Sequence[Cell], code: str) -> list[Caution]:
    return [x for c in cells for x in c.comparison.cautions if x.code == code]
