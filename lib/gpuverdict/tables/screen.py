"""The first screen of a report: everything a buyer needs before scrolling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuverdict.case import Case
from gpuverdict.tables import opening
from gpuverdict.tables.health import vitals
from gpuverdict.tables.markup import RatioAxis, Section, render
from gpuverdict.tables.rows import (
    FixedRow,
    arms_of,
    first_workload,
    fixed_rows,
    knee_level,
    slo_text,
)
from gpuverdict.tables.words import level_name, modifier_text, ratio_bar, spoken, verdict_word
from gpuverdict.units import format_ratio

__all__ = ["first_screen"]

_GROUPS = ("prefill", "decode", "system")


def first_screen(case: Case, chart: Any = None, lang: str = "en") -> Section:
    """Compose the first screen.

    Parameters
    ----------
    case : Case
    chart : object with `_repr_html_`, optional
        The trade-off chart, such as `figures.trade_off(case)`.
    lang : str
        `en` or `zh`.

    Returns
    -------
    Section
    """
    rows = fixed_rows(case, lang)
    bounds = [
        b
        for r in rows
        if r.cell
        for b in (r.cell.comparison.ratio, r.cell.comparison.low, r.cell.comparison.high)
    ]
    axis = RatioAxis.spanning(bounds)
    # What every row carries is said once under the table.
    marked = [set(r.cell.comparison.modifiers) for r in rows if r.cell]
    everywhere = set.intersection(*marked) if len(marked) > 1 else set()
    general = case.verdict.comparability.modifiers
    shared = [*general, *everywhere]
    common = [modifier_text(m, lang) for m in sorted(everywhere.difference(general))]
    sentences = opening.three_sentences(case, lang)
    level, why = knee_level(case)
    baseline, candidate = arms_of(case)
    markup = render(
        "first_screen.html",
        say=lambda code, **values: spoken(lang, code, **values),
        title=opening.title(case, lang),
        subtitle=opening.subtitle(case, lang),
        campaign_title=case.campaign.title or "",
        sentences=list(zip(_GROUPS, sentences, strict=True)),
        lamp=opening.lamp(case, lang),
        groups=[
            (g, [_shown(r, axis, shared, lang) for r in rows if r.group == g]) for g in _GROUPS
        ],
        axis=axis,
        common=spoken(lang, "all_rows", what=", ".join(common)) if common else "",
        baseline=baseline,
        candidate=candidate,
        level_note=spoken(
            lang, why, level=level_name(level, lang), slo=slo_text(case, first_workload(case))
        ),
        chart=chart,
        actions=opening.next_actions(case, lang),
        finding=first_finding(case, lang),
        vitals=vitals(case, lang),
    )
    return Section(
        name="first_screen", markup=markup, text="\n".join([*sentences, *(_line(r) for r in rows)])
    )


def _shown(row: FixedRow, axis: RatioAxis, shared: Sequence[str], lang: str) -> dict[str, Any]:
    c = row.cell.comparison if row.cell else None
    bar = ""
    if c is not None:
        bar = ratio_bar(axis, c, lang)
    own = [] if c is None else [m for m in c.modifiers if m not in shared]
    return {
        "row": row,
        "bar": bar,
        "ratio": "" if c is None or c.ratio is None else f"{c.ratio:.3f}",
        "interval": ""
        if c is None or c.low is None or c.high is None
        else f"[{c.low:.3f}, {c.high:.3f}]",
        "word": verdict_word(row.word, lang),
        "word_class": row.word.replace(" ", "-"),
        "modifiers": [*(modifier_text(m, lang) for m in own), *_lost(row, lang)],
    }


def _lost(row: FixedRow, lang: str) -> list[str]:
    """Say why a bar clear of 1 is no difference: it is lost among the levels of its metric."""
    said = row.cell.comparison.cautions if row.cell else ()
    return [
        spoken(lang, "lost_short", p=c.values["p_adjusted"], family=c.values["family"])
        for c in said
        if c.code == "lost_by_adjustment"
    ]


def _line(row: FixedRow) -> str:
    ratio = ""
    if row.cell is not None:
        c = row.cell.comparison
        ratio = format_ratio(c.ratio, c.low, c.high)
    parts = [row.label, row.where, row.baseline, row.candidate, ratio, row.word]
    return " | ".join(part for part in parts if part)


def first_finding(case: Case, lang: str) -> dict[str, str] | None:
    """Return the first finding of the diagnosis with its remedy, None where there is none."""
    for finding in case.findings[:1]:
        message, _, remedy, _ = finding.render(lang)
        return {"message": message, "remedy": remedy}
    return None
