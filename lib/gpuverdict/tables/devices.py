"""Tables of the GPUs of each arm: memory at three moments, its growth, and GPU beside GPU."""

from __future__ import annotations

from gpuverdict.capacity import (
    CardUse,
    arm_card_use,
    arm_watermarks,
    memory_growth,
    trace_reservations,
)
from gpuverdict.case import Case
from gpuverdict.tables.answers import plain_table
from gpuverdict.tables.markup import Section
from gpuverdict.tables.notes import Note, merged, noted
from gpuverdict.tables.rows import arms_of, first_workload
from gpuverdict.tables.words import level_name, percent, spoken
from gpuverdict.units import Estimate, format_value

__all__ = ["cards_table", "growth_table", "memory_table"]

SECONDS_AN_HOUR = 3600.0


def _known(value: float | None, unit: str, lang: str) -> str:
    return spoken(lang, "word_not_measured") if value is None else format_value(value, unit)


def _ranged(value: Estimate | None, scale: float, digits: str) -> str:
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
    notes: list[Note] = []
    known = False
    for arm in arms_of(case):
        for card in arm_watermarks(case.measured, arm, workload):
            marks = (card.after_load, card.one_request, card.peak)
            notes += [noted(arm, c, lang) for mark in marks for c in mark.cautions]
            known |= any(mark.value is not None for mark in marks)
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
            if card.allocated_ahead:
                notes.append(noted(arm, spoken(lang, "marks_ahead"), lang))
            if card.context_tokens and card.one_request.value is not None:
                held = spoken(lang, "marks_context", n=card.context_tokens)
                notes.append(noted(arm, held, lang))
    heads = [
        spoken(lang, code)
        for code in ("col_arm", "use_gpu", "marks_after_load", "marks_one", "marks_peak",
                     "marks_at", "marks_card", "marks_share", "marks_rule")
    ]  # fmt: skip
    return plain_table(
        "memory-marks",
        spoken(lang, "marks_heading"),
        heads,
        rows if known else [],
        reading=spoken(lang, "marks_reading"),
        notes=merged(notes, lang),
        nothing=spoken(lang, "word_not_measured"),
        right=[*heads[2:5], *heads[6:8]],
    )


def growth_table(case: Case, lang: str = "en") -> Section:
    """Give the memory growth of each long run, and how long until the card is full."""
    rows: list[list[str]] = []
    notes: list[Note] = []
    known = False
    for arm in arms_of(case):
        for entry in memory_growth(case.measured, case.health, arm):
            name = f"{level_name(entry.run.level, lang)} #{entry.run.repeat_no}"
            leak = entry.leak
            if leak is None:
                unknown = spoken(lang, "word_not_measured")
                rows.append([arm, name, "–", unknown, "–", "–", unknown])
                notes += [noted(arm, entry.reason, lang)] if entry.reason else []
                continue
            known = True
            codes = {c.code for c in leak.cautions}
            rises = "growth_slow" if leak.seconds_until_full is not None else "growth_none"
            word = "growth_alarm" if leak.alarm else rises
            if leak.alarm is None:
                word = "growth_flat" if "memory_flat" in codes else "growth_few"
            never = "–"
            if leak.alarm is not None and leak.requests_until_full is None:
                never = spoken(lang, "growth_never")
            rate = _ranged(leak.growth_mib_per_1000_requests, 1.0, ",.3g")
            rows.append(
                [
                    arm,
                    name,
                    leak.gpu,
                    rate if rate == "–" else f"{rate} MiB",
                    never
                    if leak.requests_until_full is None
                    else _ranged(leak.requests_until_full, 1.0, ",.0f"),
                    never
                    if leak.seconds_until_full is None
                    else _ranged(leak.seconds_until_full, 1 / SECONDS_AN_HOUR, ",.3g"),
                    spoken(lang, word),
                ]
            )
            notes += [noted(arm, c, lang) for c in leak.cautions]
    heads = [
        spoken(lang, code)
        for code in ("col_arm", "growth_run", "use_gpu", "growth_rate", "growth_requests",
                     "growth_hours", "growth_says")
    ]  # fmt: skip
    return plain_table(
        "memory-growth",
        spoken(lang, "growth_heading"),
        heads,
        rows if known else [],
        reading=spoken(lang, "growth_reading"),
        notes=merged(notes, lang),
        nothing=spoken(lang, "word_not_measured"),
        right=heads[3:6],
    )


def cards_table(case: Case, lang: str = "en") -> Section:
    """Set the GPUs of each arm side by side, with their imbalance and their sum at its peak."""
    rows: list[list[str]] = []
    notes: list[Note] = []
    known = False
    for arm in arms_of(case):
        use = arm_card_use(case.measured, case.summary, arm, first_workload(case))
        rows += _card_rows(use, lang)
        known |= not use.cards.is_empty()
        peak, limit = use.node_peak_w, use.supply_limit_w
        said = [*trace_reservations(case.measured, arm), *use.cautions]
        notes += [noted(arm, c, lang) for c in said]
        if peak.value is None:
            continue
        notes += [noted(arm, c, lang) for c in peak.cautions]
        if limit is None:
            notes.append(noted(arm, spoken(lang, "use_supply_unknown"), lang))
        elif not peak.cautions:
            below = spoken(lang, "use_supply_below", peak_w=peak.value, limit_w=limit,
                           share=percent(peak.value / limit))  # fmt: skip
            notes.append(noted(arm, below, lang))
    heads = [
        spoken(lang, code)
        for code in ("col_arm", "use_gpu", "marks_at", "use_power", "use_power_max", "use_memory",
                     "use_clock", "use_throttled", "use_temperature")
    ]  # fmt: skip
    return plain_table(
        "gpu-by-gpu",
        spoken(lang, "use_heading"),
        heads,
        rows if known else [],
        reading=spoken(lang, "use_reading"),
        notes=merged(notes, lang),
        nothing=spoken(lang, "word_not_measured"),
        right=heads[3:],
    )


def _card_rows(use: CardUse, lang: str) -> list[list[str]]:
    if use.cards.is_empty():
        return [[use.arm, spoken(lang, "word_not_measured"), *["–"] * 7]]
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
    total = spoken(lang, "use_sum" if use.cards.height > 1 else "use_sum_one")
    rows.append([use.arm, total, at, "–", peak, *["–"] * 4])
    return rows


def _uneven(value: Estimate | None) -> str:
    if value is None or value.value is None:
        return "–"
    middle, low, high = (percent(v, 1) for v in (value.value, value.low, value.high))
    return middle if low == high else f"{middle} ({low}–{high})"
