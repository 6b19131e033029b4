"""Tables of the GPUs of each arm: memory at three moments, its growth, and GPU beside GPU."""

from __future__ import annotations

from collections.abc import Iterable

from gpuverdict.capacity import (
    CardUse,
    arm_card_use,
    arm_watermarks,
    memory_growth,
    trace_reservations,
)
from gpuverdict.case import Case
from gpuverdict.errors import Caution
from gpuverdict.tables.answers import plain_table
from gpuverdict.tables.markup import Section
from gpuverdict.tables.rows import arms_of, first_workload
from gpuverdict.tables.words import caution_text, level_name, percent, remedy_text, spoken
from gpuverdict.units import Estimate, format_value

__all__ = ["cards_table", "growth_table", "memory_table"]

SECONDS_AN_HOUR = 3600.0


def _said(cautions: Iterable[Caution], lang: str) -> list[str]:
    return [f"{caution_text(c, lang)} {remedy_text(c, lang)}".strip() for c in cautions]


def _known(value: float | None, unit: str, lang: str) -> str:
    return spoken(lang, "word_not_measured") if value is None else format_value(value, unit)


def _ranged(value: Estimate | None, scale: float, digits: str, lang: str) -> str:
    """Print an estimate in another unit; an end that is open stays open."""
    if value is None or value.value is None:
        return "–"
    ends = [f"{v * scale:{digits}}" if v is not None else "∞" for v in (value.low, value.high)]
    text = f"{value.value * scale:{digits}}"
    return text if value.low is None and value.high is None else f"{text} [{', '.join(ends)}]"


def memory_table(case: Case, lang: str = "en") -> Section:
    """Give the memory of each GPU after load, with one request and at its peak, and the rule."""
    workload = first_workload(case)
    rows: list[list[str]] = []
    notes: list[str] = []
    for arm in arms_of(case):
        for card in arm_watermarks(case.measured, arm, workload):
            marks = (card.after_load, card.one_request, card.peak)
            rows.append(
                [
                    arm,
                    card.gpu,
                    *(_known(mark.value, "mib", lang) for mark in marks),
                    level_name(card.level, lang) if card.level else "–",
                    format_value(card.total_mib, "mib"),
                    percent(card.peak_ratio, 1),
                    spoken(lang, f"marks_{card.standing}") if card.standing else "–",
                ]
            )
            for mark in marks:
                notes += _said(mark.cautions, lang)
            if card.allocated_ahead:
                notes.append(spoken(lang, "marks_ahead", arm=arm))
            if card.context_tokens and card.one_request.value is not None:
                notes.append(spoken(lang, "marks_context", arm=arm, n=card.context_tokens))
    heads = [
        spoken(lang, code)
        for code in ("col_arm", "use_gpu", "marks_after_load", "marks_one", "marks_peak",
                     "marks_at", "marks_card", "marks_share", "marks_rule")
    ]  # fmt: skip
    return plain_table(
        "memory-marks",
        spoken(lang, "marks_heading"),
        heads,
        rows,
        reading=spoken(lang, "marks_reading"),
        notes=notes,
        right=[*heads[2:5], *heads[6:8]],
    )


def growth_table(case: Case, lang: str = "en") -> Section:
    """Give the memory growth of each long run, and how long until the card is full."""
    rows: list[list[str]] = []
    notes: list[str] = []
    for arm in arms_of(case):
        for entry in memory_growth(case.measured, case.health, arm):
            name = f"{level_name(entry.run.level, lang)} #{entry.run.repeat_no}"
            leak = entry.leak
            if leak is None:
                unknown = spoken(lang, "word_not_measured")
                rows.append([arm, name, "–", unknown, "–", "–", unknown])
                notes += _said([entry.reason] if entry.reason else [], lang)
                continue
            codes = {c.code for c in leak.cautions}
            rises = "growth_slow" if leak.seconds_until_full is not None else "growth_none"
            word = "growth_alarm" if leak.alarm else rises
            if leak.alarm is None:
                word = "growth_flat" if "memory_flat" in codes else "growth_few"
            never = "–"
            if leak.alarm is not None and leak.requests_until_full is None:
                never = spoken(lang, "growth_never")
            rate = _ranged(leak.growth_mib_per_1000_requests, 1.0, ",.3g", lang)
            rows.append(
                [
                    arm,
                    name,
                    leak.gpu,
                    rate if rate == "–" else f"{rate} MiB",
                    never
                    if leak.requests_until_full is None
                    else _ranged(leak.requests_until_full, 1.0, ",.0f", lang),
                    never
                    if leak.seconds_until_full is None
                    else _ranged(leak.seconds_until_full, 1 / SECONDS_AN_HOUR, ",.3g", lang),
                    spoken(lang, word),
                ]
            )
            notes += _said(leak.cautions, lang)
    heads = [
        spoken(lang, code)
        for code in ("col_arm", "growth_run", "use_gpu", "growth_rate", "growth_requests",
                     "growth_hours", "growth_says")
    ]  # fmt: skip
    return plain_table(
        "memory-growth",
        spoken(lang, "growth_heading"),
        heads,
        rows,
        reading=spoken(lang, "growth_reading"),
        notes=notes,
        nothing=spoken(lang, "word_not_measured"),
        right=heads[3:6],
    )


def cards_table(case: Case, lang: str = "en") -> Section:
    """Set the GPUs of each arm side by side, with their imbalance and their sum at its peak."""
    rows: list[list[str]] = []
    notes: list[str] = []
    for arm in arms_of(case):
        use = arm_card_use(case.measured, case.summary, arm, first_workload(case))
        rows += _card_rows(use, lang)
        notes += _said(trace_reservations(case.measured, arm), lang)
        notes += [f"{arm}: {text}" for text in _said(use.cautions, lang)]
        peak, limit = use.node_peak_w, use.supply_limit_w
        notes += [f"{arm}: {text}" for text in _said(peak.cautions, lang) if peak.value is not None]
        if peak.value is not None and limit is None:
            notes.append(spoken(lang, "use_supply_unknown", arm=arm))
        elif peak.value is not None and limit is not None and not peak.cautions:
            notes.append(
                spoken(lang, "use_supply_below", arm=arm, peak_w=peak.value, limit_w=limit,
                       share=percent(peak.value / limit))
            )  # fmt: skip
    heads = [
        spoken(lang, code)
        for code in ("col_arm", "use_gpu", "marks_at", "use_power", "use_power_max", "use_memory",
                     "use_clock", "use_throttled", "use_temperature")
    ]  # fmt: skip
    return plain_table(
        "gpu-by-gpu",
        spoken(lang, "use_heading"),
        heads,
        rows,
        reading=spoken(lang, "use_reading"),
        notes=notes,
        right=heads[3:],
    )


def _card_rows(use: CardUse, lang: str) -> list[list[str]]:
    unknown = spoken(lang, "word_not_measured")
    if use.cards.is_empty():
        return [[use.arm, unknown, *["–"] * 7]]
    level = level_name(use.level, lang)
    rows = [
        [
            use.arm,
            str(card["gpu"]),
            level,
            format_value(card["power_mean_w"], "w"),
            format_value(card["power_max_w"], "w"),
            format_value(card["memory_peak_mib"], "mib"),
            format_value(card["sm_clock_p50_mhz"], "mhz"),
            percent(card["throttled_ratio"]),
            "–" if card["temperature_max_c"] is None else f"{card['temperature_max_c']:.0f} °C",
        ]
        for card in use.cards.iter_rows(named=True)
    ]
    if use.imbalance:
        shown = [_uneven(use.imbalance.get(name)) for name in
                 ("power_w", "memory_used_mib", "sm_clock_mhz")]  # fmt: skip
        rows.append([use.arm, spoken(lang, "use_between"), level, shown[0], "–", *shown[1:],
                     "–", "–"])  # fmt: skip
    where = use.node_peak_level
    at = spoken(lang, "use_in_probe") if where is None else level_name(where, lang)
    peak = format_value(use.node_peak_w.value, "w")
    rows.append([use.arm, spoken(lang, "use_sum"), at, "–", peak, *["–"] * 4])
    return rows


def _uneven(value: Estimate | None) -> str:
    if value is None or value.value is None:
        return "–"
    middle, low, high = (percent(v, 1) for v in (value.value, value.low, value.high))
    return middle if low == high else f"{middle} ({low}–{high})"
