"""The run-health strip: what the runs themselves say about how far they can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from gpuverdict.capacity import trace_reservations
from gpuverdict.case import Case
from gpuverdict.summary.campaign import RunFacts
from gpuverdict.tables.rows import arms_of
from gpuverdict.tables.words import caution_text, level_name, percent, spoken, spread
from gpuverdict.units import format_value

__all__ = ["Vital", "facts_of", "vitals"]

# A reader is warned beyond these; conventions of the method notes (18.1, 11.2, 16.4).
LARGE_CUT = 0.30
LOW_STEADY_SHARE = 0.9
CLOCK_SPREAD = 0.03
LONG_GAP_S = 1.0
SOAK_S = 1800.0
# What a trace says of itself that leaves runs, or parts of them, without samples.
_CUT_TRACES = ("trace_coverage", "clock_step", "trace_cut", "zone_unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vital:
    """One sign: its name, the value in print, whether it should worry the reader, and why."""

    name: str
    value: str
    warn: bool = False
    note: str = ""


def facts_of(case: Case, arm: str) -> list[RunFacts]:
    """Return the facts of an arm's runs in order."""
    return [case.summary.facts[run.key] for run in case.measured.runs_of(arm)]


def vitals(case: Case, lang: str = "en") -> list[Vital]:
    """Give the ten signs of the strip; what was not measured says so."""
    facts = [fact for arm in arms_of(case) for fact in facts_of(case, arm)]
    return [
        _cut(facts, lang),
        _window(facts, lang),
        _steady(case, lang),
        _errors(facts, lang),
        _disturbed(case, lang),
        _client(case, facts, lang),
        _throttle(case, lang),
        _clocks(case, lang),
        _gaps(case, lang),
        _soak(facts, lang),
    ]


def _cut(facts: Sequence[RunFacts], lang: str) -> Vital:
    steady = [f for f in facts if f.window.kind == "steady"]
    name = spoken(lang, "vital_cut")
    if not steady:
        return Vital(name=name, value="–", warn=True, note=spoken(lang, "vital_no_window"))
    shares = sorted(f.window.dropped_ratio for f in steady)
    worst = max(steady, key=lambda f: f.window.dropped_ratio)
    note = spoken(
        lang, "vital_cut_note", level=level_name(worst.run.level, lang), arm=worst.run.arm
    )
    return Vital(name=name, value=_range(shares), warn=shares[-1] > LARGE_CUT, note=note)


def _range(shares: Sequence[float]) -> str:
    low, high = percent(shares[0]), percent(shares[-1])
    return high if low == high else f"{low.removesuffix(' %')}–{high}"


def _window(facts: Sequence[RunFacts], lang: str) -> Vital:
    lengths = [f.window.length_s for f in facts]
    short = sum(any(c.code == "short_run" for c in f.window.cautions) for f in facts)
    note = spoken(lang, "vital_short_runs", n=short, total=len(facts)) if short else ""
    return Vital(
        name=spoken(lang, "vital_window"), value=spread(lengths, "s"), warn=bool(short), note=note
    )


def _values(case: Case, metric: str, window: str | None = None) -> list[float]:
    frame = case.summary.frame
    rows = frame[(frame.metric == metric) & frame.arm.isin(arms_of(case)) & frame.value.notna()]
    if window is None:
        window = "steady" if (rows.window == "steady").any() else "whole_run"
    return sorted(float(v) for v in rows[rows.window == window].value)


def _steady(case: Case, lang: str) -> Vital:
    below = _values(case, "below_peak_ratio", "steady") or _values(case, "below_peak_ratio")
    name = spoken(lang, "vital_steady")
    if not below:
        return Vital(name=name, value="–", note=spoken(lang, "vital_not_measured"))
    shares = sorted(1 - v for v in below)
    return Vital(
        name=name,
        value=_range(shares),
        warn=shares[0] < LOW_STEADY_SHARE,
        note=spoken(lang, "vital_steady_note"),
    )


def _errors(facts: Sequence[RunFacts], lang: str) -> Vital:
    failed = sum(f.n_by_status.get(s, 0) for f in facts for s in ("error", "empty"))
    total = sum(sum(f.n_by_status.values()) for f in facts)
    name = spoken(lang, "vital_errors")
    if not total:
        return Vital(name=name, value="–", note=spoken(lang, "vital_not_measured"))
    cut = sum(f.n_by_status.get("incomplete", 0) + f.n_by_status.get("cancelled", 0) for f in facts)
    return Vital(
        name=name,
        value=percent(failed / total, 1),
        warn=failed > 0,
        note=spoken(lang, "vital_errors_note", failed=failed, cut=cut, total=total),
    )


def _disturbed(case: Case, lang: str) -> Vital:
    name = spoken(lang, "vital_disturbed")
    runs = case.health.runs
    own = [run for arm in arms_of(case) for run in case.measured.runs_of(arm) if run.key in runs]
    bad = [run for run in own if runs[run.key].disturbed]
    notes = [f"{r.arm} {level_name(r.level, lang)} #{r.repeat_no}" for r in bad[:3]]
    for arm in arms_of(case):
        mine = [runs[run.key] for run in own if run.arm == arm]
        dark = [found for found in mine if not found.testable]
        bounds = [d.silence_bound_s for f in dark if (d := f.disturbance) is not None]
        known = [b for b in bounds if b is not None]
        if dark:
            code = "vital_untestable" if len(known) < len(dark) else "vital_untestable_bounded"
            bound = format_value(max(known, default=None), "s")
            notes.append(spoken(lang, code, arm=arm, n=len(dark), total=len(mine), bound=bound))
    testable = any(runs[run.key].testable for run in own)
    value = f"{len(bad)}" if testable else spoken(lang, "vital_not_testable")
    return Vital(name=name, value=value, warn=bool(bad), note="; ".join(notes))


def _client(case: Case, facts: Sequence[RunFacts], lang: str) -> Vital:
    name = spoken(lang, "vital_client")
    blocked = {
        c.code
        for cell in case.verdict.cells
        for c in cell.comparison.cautions
        if c.code in ("client_saturated", "not_sustained")
    }
    if blocked:
        return Vital(
            name=name,
            value=spoken(lang, "vital_yes"),
            warn=True,
            note=spoken(lang, "vital_client_note"),
        )
    seen = [v for f in facts if (v := f.run.level.get("concurrency"))]
    if not seen:
        return Vital(name=name, value=spoken(lang, "vital_no"))
    return Vital(name=name, value=spoken(lang, "vital_no"), note=spoken(lang, "vital_sustained"))


def _throttle(case: Case, lang: str) -> Vital:
    shares = _values(case, "throttled_ratio")
    name = spoken(lang, "vital_throttle")
    if not shares:
        return Vital(name=name, value="–", note=spoken(lang, "vital_no_trace"))
    return Vital(name=name, value=_range(shares), warn=shares[-1] > 0.01)


def _clocks(case: Case, lang: str) -> Vital:
    clocks, spreads = _values(case, "sm_clock_mhz"), _values(case, "sm_clock_spread_ratio")
    name = spoken(lang, "vital_clocks")
    if not clocks:
        return Vital(name=name, value="–", note=spoken(lang, "vital_no_trace"))
    worst = spreads[-1] if spreads else None
    return Vital(
        name=name,
        value=spread(clocks, "mhz"),
        warn=bool(worst and worst > CLOCK_SPREAD),
        note=spoken(lang, "vital_clocks_note", spread=percent(worst)),
    )


def longest_gap_s(samples: pl.DataFrame) -> float | None:
    """Give the longest time between two samples of one GPU."""
    time = "time_epoch_s" if samples["time_epoch_s"].null_count() < samples.height else "elapsed_s"
    gaps = samples.select(pl.col(time).sort().diff().over("gpu_index").alias("gap"))["gap"]
    longest = gaps.drop_nulls().max()
    return None if longest is None else float(longest)  # type: ignore[arg-type]


def _gaps(case: Case, lang: str) -> Vital:
    traces = [t for arm in arms_of(case) for t in case.measured.traces.get(arm, ())]
    found = [g for t in traces if t.samples.height and (g := longest_gap_s(t.samples)) is not None]
    name = spoken(lang, "vital_gaps")
    if not found:
        return Vital(name=name, value="–", note=spoken(lang, "vital_no_trace"))
    said = [c for arm in arms_of(case) for c in trace_reservations(case.measured, arm)]
    short = [caution_text(c, lang) for c in said if c.code in _CUT_TRACES]
    warn = max(found) > LONG_GAP_S or bool(short)
    return Vital(name=name, value=spread([max(found)], "s"), warn=warn, note=" ".join(short))


def _soak(facts: Sequence[RunFacts], lang: str) -> Vital:
    longest = max((f.window.length_s or 0.0 for f in facts), default=0.0)
    name = spoken(lang, "vital_soak")
    if longest < SOAK_S:
        return Vital(name=name, value="–", note=spoken(lang, "vital_no_soak"))
    return Vital(name=name, value=spread([longest], "s"))
