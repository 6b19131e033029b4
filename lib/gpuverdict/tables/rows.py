"""The eight fixed rows of a first screen: which cell answers which question, and what stands in."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from gpuverdict.campaign import Campaign
from gpuverdict.capacity import arm_slo
from gpuverdict.case import Case
from gpuverdict.measured import Measured
from gpuverdict.schema import METRICS
from gpuverdict.summary import Summary
from gpuverdict.tables.words import at_level, caution_text, level_name, metric_name, spoken
from gpuverdict.units import format_value, scaled
from gpuverdict.verdict import Cell

__all__ = ["Capacity", "FixedRow", "arm_level_value", "capacity", "fixed_rows", "knee_level"]

Level = Mapping[str, float]


class Scene(Protocol):
    """What a campaign-wide table needs; a case has it too."""

    @property
    def campaign(self) -> Campaign:
        """The campaign file."""

    @property
    def measured(self) -> Measured:
        """Its data."""

    @property
    def summary(self) -> Summary:
        """Its run-level numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedRow:
    """One row: label, the values of both arms, the ratio with its interval, the word.

    `cell` is the decided cell behind it, None where the row is counted or was not measured;
    `note` says what stands in for what, or what was not measured.
    """

    group: str
    code: str
    label: str
    where: str = ""
    cell: Cell | None = None
    baseline: str = "–"
    candidate: str = "–"
    word: str = "not measured"
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What one arm carries: the highest level run that meets the SLO, and where it ends.

    `most` is None where no level that was run meets the SLO, or no SLO is stated; `first_miss` is
    the lowest level above it that misses; `infeasible` maps a level that does not run to why.
    """

    arm: str
    most: float | None
    highest_run: float | None
    first_miss: float | None
    infeasible: Mapping[float, str]

    @property
    def open_ended(self) -> bool:
        """Whether the arm might carry more than the highest level that was run."""
        return self.most is not None and self.most == self.highest_run and not self.infeasible


def first_workload(case: Case) -> str:
    """Name the workload that the first screen is about: the first one with a cell."""
    present = {cell.key.workload for cell in case.verdict.cells}
    names = list(case.campaign.all_workloads())
    return next((name for name in names if name in present), names[0])


def levels_of(case: Scene, arm: str, workload: str) -> list[Level]:
    """List the levels an arm ran in a workload, in order."""
    found = {r.level_key: r.level for r in case.measured.runs_of(arm) if r.workload == workload}
    return sorted(found.values(), key=lambda level: next(iter(level.values())))


def common_levels(case: Case, workload: str) -> list[Level]:
    """List the levels that both arms ran, in order."""
    other = [json.dumps(dict(v)) for v in levels_of(case, str(case.spec.candidate), workload)]
    own = levels_of(case, case.spec.baseline, workload)
    return [level for level in own if json.dumps(dict(level)) in other]


def arm_level_value(
    case: Scene, arm: str, workload: str, level: Level, metric: str, statistic: str
) -> float | None:
    """Give the geometric mean over the runs of one number at a level; None where no run has it."""
    key = json.dumps(dict(level), sort_keys=True)
    found = case.summary.values((arm, workload, key, metric, statistic))
    for window in ("steady", "whole_run"):
        values = found.get(window)
        if values:
            positive = [v for v in values if v > 0]
            if len(positive) < len(values):
                return sum(values) / len(values)
            return math.exp(sum(map(math.log, positive)) / len(positive))
    return None


def meets_slo(case: Scene, arm: str, workload: str, level: Level) -> bool | None:
    """Tell whether an arm meets every part of the SLO at a level; None where one is not known."""
    verdicts: list[bool | None] = []
    for metric, limits in case.campaign.slo_of(workload).items():
        for statistic, limit in limits.items():
            value = arm_level_value(case, arm, workload, level, metric, statistic)
            verdicts.append(None if value is None else value <= limit)
    if not verdicts or any(v is None for v in verdicts):
        return False if False in verdicts else None
    return all(verdicts)


def capacity(case: Scene, arm: str, workload: str) -> Capacity:
    """Say how much an arm carries within the SLO, by the levels that were run."""
    levels = levels_of(case, arm, workload)
    slo = case.summary.once(
        ("slo", arm, workload),
        lambda: arm_slo(case.summary.frame, case.campaign, arm, workload),
    )
    steady = {c.kind: c for c in slo}
    kind = next((k for level in levels for k in level), None)
    if kind in steady and not steady[kind].attainment.empty:
        # The same answer as in verdicts.json; below it only where no run has a steady window.
        found = steady[kind]
        return Capacity(
            arm=arm,
            most=found.highest_met,
            first_miss=found.lowest_missed,
            highest_run=max((next(iter(v.values())) for v in levels), default=None),
            infeasible=_infeasible(case, arm, workload),
        )
    met = {next(iter(v.values())): meets_slo(case, arm, workload, v) for v in levels}
    good = [value for value, fine in met.items() if fine]
    most = max(good, default=None)
    misses = [v for v, fine in met.items() if fine is False and v > (most or 0)]
    return Capacity(
        arm=arm,
        most=most,
        highest_run=max(met, default=None),
        first_miss=min(misses, default=None),
        infeasible=_infeasible(case, arm, workload),
    )


def _infeasible(case: Scene, arm: str, workload: str) -> dict[float, str]:
    entries = [*case.campaign.arms[arm].infeasible]
    entries += [e for e in case.campaign.infeasible if e.arm == arm]
    return {e.level: e.reason for e in entries if e.workload in (None, workload)}


def knee_level(case: Case, workload: str | None = None) -> tuple[Level | None, str]:
    """Choose the level to show, and say why it was chosen (a code).

    The level both arms ran that lies nearest (in logs) to the smaller of their two capacities;
    without an SLO, or where none is met, the highest or lowest level both ran.
    """
    workload = workload or first_workload(case)
    shared = common_levels(case, workload)
    if not shared:
        return None, "knee_none"
    if not case.campaign.slo_of(workload):
        return shared[-1], "knee_no_slo"
    most = [capacity(case, arm, workload).most for arm in arms_of(case)]
    known = [m for m in most if m is not None]
    if len(known) < len(most):
        return shared[0], "knee_missed"
    knee = min(known)

    def distance(level: Level) -> float:
        return abs(math.log(next(iter(level.values())) / knee))

    return min(shared, key=distance), "knee_slo"


def arms_of(case: Case) -> tuple[str, str]:
    """Return (baseline, candidate)."""
    return case.spec.baseline, str(case.spec.candidate)


def find(
    case: Case, metric: str, statistic: str, level: Level | None, workload: str
) -> Cell | None:
    """Find the cell of a metric at a level, if it holds any value or word."""
    if level is None:
        return None
    key = json.dumps(dict(level), sort_keys=True)
    for cell in case.verdict.cells:
        k = cell.key
        if (k.metric, k.statistic, k.level, k.workload) == (metric, statistic, key, workload):
            return cell
    return None


def has_ratio(cell: Cell | None) -> bool:
    """Tell whether a cell compares two measured values."""
    return cell is not None and cell.comparison.ratio is not None


def has_interval(cell: Cell | None) -> bool:
    """Tell whether a cell was tested."""
    return cell is not None and cell.comparison.low is not None


def shown_word(cell: Cell) -> str:
    """Return the word to show: `not measured` says more than the machine's `not comparable`."""
    codes = {c.code for c in cell.comparison.cautions}
    if cell.verdict == "not comparable" and cell.rung == 8 and codes == {"not_measured"}:
        return "not measured"
    return cell.verdict


def fixed_rows(case: Case, lang: str = "en") -> list[FixedRow]:
    """Give the eight rows of the first screen, always all of them and always in this order."""
    workload = first_workload(case)
    shared = common_levels(case, workload)
    lowest = shared[0] if shared else None
    level, _ = knee_level(case, workload)

    def row(group: str, code: str, *choices: tuple[str, str, Level | None, str]) -> FixedRow:
        return _row(case, lang, workload, group, code, choices)

    # With others in flight a first token waits: it cannot stand in for a prefill alone.
    alone = lowest if lowest and dict(lowest) == {"concurrency": 1} else None
    return [
        row(
            "prefill",
            "row_prefill_rate",
            ("prefill_tokens_per_s", "value", lowest, ""),
            ("ttft_s", "p50", alone, "stands_in_prefill"),
        ),
        row(
            "prefill",
            "row_ttft",
            ("ttft_s", "p95", level, ""),
            ("ttft_s", "p50", level, "stands_in_p95"),
        ),
        row(
            "decode",
            "row_decode_step",
            ("decode_step_s", "value", level, ""),
            ("decode_step_s", "value", lowest, "stands_in_step"),
            ("tpot_s", "p50", lowest, "stands_in_decode"),
        ),
        row("decode", "row_tpot", ("tpot_s", "p50", level, "")),
        row("system", "row_throughput", ("output_tokens_per_s", "value", level, "")),
        _capacity_row(case, lang, workload),
        row("system", "row_energy", ("energy_per_output_token_j", "value", level, "")),
        _memory_row(case, lang, workload, level),
    ]


def _row(
    case: Case,
    lang: str,
    workload: str,
    group: str,
    code: str,
    choices: tuple[tuple[str, str, Level | None, str], ...],
) -> FixedRow:
    """Take the first choice that was tested, else the first that has values, else say why not."""
    found = [(find(case, m, s, level, workload), m, s, level, why) for m, s, level, why in choices]
    chosen = next((f for f in found if has_interval(f[0])), None)
    chosen = chosen or next((f for f in found if has_ratio(f[0])), None)
    wanted = metric_name(choices[0][0], choices[0][1], lang)
    if chosen is None:
        cell = next(
            (f[0] for f in found if f[0] is not None and f[0].verdict == "not comparable"), None
        )
        return _empty(lang, group, code, wanted, cell, choices[0][2])
    cell, metric, statistic, level, why = chosen
    assert cell is not None
    note = spoken(lang, why, wanted=wanted) if why else ""
    return FixedRow(
        group=group,
        code=code,
        label=metric_name(metric, statistic, lang),
        where=at_level(level, lang),
        cell=cell,
        baseline=_value(cell.comparison.baseline, metric),
        candidate=_value(cell.comparison.candidate, metric, cell.comparison.baseline),
        word=cell.verdict,
        note=note,
    )


def _value(value: float | None, metric: str, like: float | None = None) -> str:
    return format_value(value, METRICS[metric].unit, like)


def _empty(
    lang: str, group: str, code: str, label: str, cell: Cell | None, level: Level | None
) -> FixedRow:
    note = spoken(lang, f"{code}_missing")
    word = "not measured"
    values = ["–", "–"]
    if cell is not None:
        c = cell.comparison
        values = [_value(c.baseline, c.metric), _value(c.candidate, c.metric, c.baseline)]
        said = [caution_text(x, lang) for x in c.cautions if x.code != "not_measured"]
        if any(x.code != "not_measured" for x in c.cautions):
            note, word = " ".join(said[:2]), "not comparable"
    return FixedRow(
        group=group,
        code=code,
        label=label,
        where=at_level(level, lang) if level else "",
        baseline=values[0],
        candidate=values[1],
        word=word,
        note=note,
    )


def undisturbed(case: Case, workload: str, lang: str = "en") -> list[str]:
    """Say where runs that something from outside stalled are all that keeps an arm lower."""
    bad = case.health.disturbed()
    told = []
    for arm in arms_of(case):
        keys = {run.run_id for run in case.measured.runs_of(arm) if run.key in bad}
        told += [
            spoken(lang, "capacity_undisturbed", arm=arm, level=level_name(level, lang))
            for level in carried_without(case, arm, workload, keys)
        ]
    return told


def carried_without(scene: Scene, arm: str, workload: str, run_ids: Collection[str]) -> list[Level]:
    """Give the most that an arm carries without some of its runs, where that is more or less."""
    frame = scene.summary.frame
    without = (frame.arm == arm) & frame.run_id.isin(list(run_ids))
    if not without.any():
        return []
    kept = {c.kind: c.highest_met for c in arm_slo(frame[~without], scene.campaign, arm, workload)}
    return [
        {found.kind: most}
        for found in arm_slo(frame, scene.campaign, arm, workload)
        if (most := kept.get(found.kind)) is not None and most != found.highest_met
    ]


def _capacity_row(case: Case, lang: str, workload: str) -> FixedRow:
    label = spoken(lang, "row_capacity")
    if not case.campaign.slo_of(workload):
        return FixedRow(
            group="system",
            code="row_capacity",
            label=label,
            note=spoken(lang, "row_capacity_missing"),
        )
    carried = [capacity(case, arm, workload) for arm in arms_of(case)]
    kind = {k for arm in arms_of(case) for v in levels_of(case, arm, workload) for k in v}
    unit = next(iter(kind)) if len(kind) == 1 else "concurrency"
    shown = []
    for c in carried:
        if c.most is None:
            shown.append(spoken(lang, "capacity_none"))
            continue
        text = level_name({unit: c.most}, lang)
        shown.append(f"≥ {text}" if c.open_ended else text)
    ended = [
        spoken(lang, "capacity_infeasible", arm=c.arm, level=f"{level:g}", reason=reason)
        for c in carried
        for level, reason in sorted(c.infeasible.items())
    ]
    ended += undisturbed(case, workload, lang)
    if all(c.open_ended for c in carried):
        ended.append(spoken(lang, "capacity_open_ended"))
    return FixedRow(
        group="system",
        code="row_capacity",
        label=label,
        baseline=shown[0],
        candidate=shown[1],
        word="counted",
        note=" ".join(ended),
    )


def slo_text(case: Scene, workload: str) -> str:
    """Write an SLO as one line: `TTFT p95 ≤ 500 ms`."""
    parts = []
    for metric, limits in case.campaign.slo_of(workload).items():
        declared = METRICS.get(metric)
        for statistic, limit in limits.items():
            shown = scaled(limit, declared.unit) if declared else (limit, "")
            name = metric.removesuffix("_s").upper()
            parts.append(f"{name} {statistic} ≤ {shown[0]:g} {shown[1]}".rstrip())
    return ", ".join(parts)


def _memory_row(case: Case, lang: str, workload: str, level: Level | None) -> FixedRow:
    row = _row(
        case, lang, workload, "system", "row_memory", (("memory_used_mib", "value", level, ""),)
    )
    out = {arm: _infeasible(case, arm, workload) for arm in arms_of(case)}
    if row.cell is None and any(out.values()):
        shown = [
            spoken(lang, "memory_fails_at", level=f"{min(found):g}") if found else "–"
            for found in out.values()
        ]
        reasons = "; ".join(
            f"{arm}: {reason}" for arm, found in out.items() for reason in set(found.values())
        )
        return FixedRow(
            group="system",
            code="row_memory",
            label=spoken(lang, "row_first_infeasible"),
            baseline=shown[0],
            candidate=shown[1],
            word="counted",
            note=reasons,
        )
    return row
