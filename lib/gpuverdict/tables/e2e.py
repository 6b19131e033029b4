"""Where the end-to-end time of a request goes, level by level: the table of the parts."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from gpuverdict.case import Case
from gpuverdict.phases import PARTS
from gpuverdict.tables.answers import plain_table
from gpuverdict.tables.markup import Section
from gpuverdict.tables.notes import merged, noted
from gpuverdict.tables.rows import arms_of, levels_of
from gpuverdict.tables.words import level_name, percent, spoken
from gpuverdict.units import format_value

__all__ = ["e2e_table"]

# Left over by the jitter of a clock alone; more than this is a part that nothing names.
_SMALL = 0.005


def e2e_table(case: Case, lang: str = "en") -> Section:
    """Take the mean end-to-end time of each arm and level apart, and name what cannot be told.

    Notes
    -----
    Each part is the mean over runs of the mean over the successful requests of the window
    (`phases.take_apart`); its share is of the mean end-to-end time. A part that no arm's logs tell
    apart has no column and is named below.
    """
    several = len(case.campaign.all_workloads()) > 1
    found: list[tuple[list[str], Mapping[str, float | None]]] = []
    for arm in arms_of(case):
        for workload in case.campaign.all_workloads():
            for level in levels_of(case, arm, workload):
                place = [arm, level_name(level, lang)]
                if several:
                    place[1] = f"{workload}, {place[1]}"
                means = _means(case, arm, workload, level)
                if means.get("e2e_s"):
                    found.append((place, means))
    shown = [name for name in PARTS if any(_worth_showing(name, means) for _, means in found)]
    rows = [
        [*place, format_value(means["e2e_s"], "s"), *(_part(means, name) for name in shown)]
        for place, means in found
    ]
    heads = [spoken(lang, code) for code in ("col_arm", "col_level", "e2e_whole")]
    heads += [spoken(lang, f"e2e_{name.removesuffix('_s')}") for name in shown]
    return plain_table(
        "end_to_end",
        spoken(lang, "e2e_heading"),
        heads,
        rows,
        reading=spoken(lang, "e2e_reading"),
        notes=_unnamed(found, lang),
        nothing=spoken(lang, "e2e_nothing"),
        right=heads[2:],
    )


def _means(
    case: Case, arm: str, workload: str, level: Mapping[str, float]
) -> dict[str, float | None]:
    parts = [
        case.summary.facts[run.key].e2e_parts_s
        for run in case.measured.runs_of(arm)
        if run.workload == workload and run.level == level
    ]
    means: dict[str, float | None] = {}
    for name in ("e2e_s", *PARTS):
        known = [v for one in parts if (v := one.get(name)) is not None]
        means[name] = fmean(known) if known else None
    return means


def _worth_showing(name: str, means: Mapping[str, float | None]) -> bool:
    value, whole = means.get(name), means.get("e2e_s")
    if value is None or not whole:
        return False
    return name != "unknown_s" or abs(value) > _SMALL * whole


def _part(means: Mapping[str, float | None], name: str) -> str:
    value, whole = means.get(name), means.get("e2e_s")
    if value is None or not whole:
        return "–"
    return f"{format_value(value, 's')} ({percent(value / whole)})"


def _unnamed(found: list[tuple[list[str], Mapping[str, float | None]]], lang: str) -> list[str]:
    """Say which parts nothing tells apart, arms that lack the same ones together."""
    notes = []
    for arm in dict.fromkeys(place[0] for place, _ in found):
        own = [means for place, means in found if place[0] == arm]
        # Waiting stands for the queue where the server says nothing: its split is what is unknown.
        names = [
            spoken(lang, f"e2e_{name.removesuffix('_s')}")
            for name in ("network_s", "host_s", "queue_s", "prefill_s", "decode_s")
            if all(means.get(name) is None for means in own)
        ]
        if names:
            notes.append(noted(arm, spoken(lang, "e2e_not_told", parts=", ".join(names)), lang))
    return merged(notes, lang)
