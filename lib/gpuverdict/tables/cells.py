"""Every cell of a comparison: at a glance, and one by one with all that stands behind it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from gpuverdict.case import Case
from gpuverdict.errors import Caution
from gpuverdict.schema import METRICS
from gpuverdict.tables.markup import RatioAxis, Section, render
from gpuverdict.tables.rows import arms_of, shown_word
from gpuverdict.tables.words import (
    caution_text,
    level_name,
    metric_name,
    modifier_text,
    percent,
    ratio_bar,
    remedy_text,
    spoken,
    verdict_word,
)
from gpuverdict.units import format_ratio, format_value
from gpuverdict.verdict import Cell

__all__ = ["PRIMARY", "all_cells", "p_text", "translator", "verdict_map"]

PRIMARY = (("tpot_s", "p50"), ("ttft_s", "p50"), ("output_tokens_per_s", "value"))


def translator(lang: str) -> Any:
    """Return the `say` of a template: a sentence of the report in a language."""
    return lambda code, **values: spoken(lang, code, **values)


def verdict_map(case: Case, lang: str = "en") -> Section:
    """Show the word of every cell at a glance: metrics down, levels across."""
    levels: dict[str, tuple[str, str]] = {}
    table: dict[tuple[str, str], dict[str, Cell]] = defaultdict(dict)
    several = len({c.key.workload for c in case.verdict.cells}) > 1
    for cell in case.verdict.cells:
        column = f"{cell.key.workload} {cell.key.level}"
        prefix = f"{cell.key.workload}: " if several else ""
        levels[column] = (prefix + level_name(cell.level, lang), column)
        table[(cell.key.metric, cell.key.statistic)][column] = cell
    rows = [
        {
            "name": metric_name(metric, statistic, lang),
            "cells": [_map_cell(cells.get(column), lang) for _, column in levels.values()],
        }
        for (metric, statistic), cells in table.items()
        if any(c.comparison.ratio is not None or c.verdict == "equivalent" for c in cells.values())
    ]
    markup = render(
        "verdict_map.html",
        say=translator(lang),
        columns=[name for name, _ in levels.values()],
        rows=rows,
        headline=[_cell_row(c, case, lang, None) for c in case.verdict.headline],
    )
    lines = [
        f"{c.key.metric} {c.key.statistic}: {format_ratio(c.comparison.ratio)} {c.verdict}"
        for c in case.verdict.headline
    ]
    return Section(name="verdict_map", markup=markup, text="\n".join(lines))


def _map_cell(cell: Cell | None, lang: str) -> dict[str, str]:
    if cell is None:
        return {"word": "", "class": "empty", "ratio": ""}
    c = cell.comparison
    return {
        "word": verdict_word(shown_word(cell), lang),
        "class": shown_word(cell).replace(" ", "-"),
        "ratio": "" if c.ratio is None else f"{c.ratio:.2f}",
    }


def all_cells(case: Case, lang: str = "en", metrics: Sequence[str] | None = None) -> Section:
    """List every cell, metric by metric, with runs, interval, p, rung, modifiers and cautions.

    `metrics` limits it to some, in that order, all of them unfolded.
    """
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in case.verdict.cells:
        if metrics is None or cell.key.metric in metrics:
            groups[(cell.key.metric, cell.key.statistic)].append(cell)
    order = PRIMARY if metrics is None else [key for m in metrics for key in groups if key[0] == m]
    ordered = sorted(groups, key=lambda key: order.index(key) if key in order else len(order))
    shown = []
    for key in ordered:
        cells = groups[key]
        bounds = [
            b for c in cells for b in (c.comparison.ratio, c.comparison.low, c.comparison.high)
        ]
        axis = RatioAxis.spanning(bounds, width=150)
        notes = _Notes(lang)
        rows = [_cell_row(c, case, lang, notes, axis) for c in cells]
        shown.append(
            {
                "name": metric_name(*key, lang),
                "anchor": "-".join(key).replace("_", "-"),
                "formula": METRICS[key[0]].formula,
                "rows": rows,
                "axis": axis,
                "notes": notes.lines,
                "open": metrics is not None or key in PRIMARY,
                "margin": percent(cells[0].comparison.margin),
                "words": _counted([shown_word(c) for c in cells], lang),
            }
        )
    baseline, candidate = arms_of(case)
    markup = render(
        "all_cells.html",
        say=translator(lang),
        metrics=shown,
        baseline=baseline,
        candidate=candidate,
    )
    return Section(
        name="all_cells", markup=markup, text="\n".join(str(c) for c in case.verdict.cells)
    )


def _counted(words: Sequence[str], lang: str) -> str:
    order = list(dict.fromkeys(words))
    return ", ".join(f"{words.count(word)} {verdict_word(word, lang)}" for word in order)


class _Notes:
    """Footnotes of one table: each sentence once, with a letter."""

    def __init__(self, lang: str) -> None:
        self.lang = lang
        self.lines: list[tuple[str, str]] = []
        self._marks: dict[str, str] = {}

    def mark(self, caution: Caution) -> str:
        """Return the letter of a caution's sentence, adding it if it is new."""
        text = f"{caution_text(caution, self.lang)} {remedy_text(caution, self.lang)}".strip()
        if text not in self._marks:
            number = len(self._marks)
            letter = chr(97 + number) if number < 26 else f"a{number}"
            self._marks[text] = letter
            self.lines.append((letter, text))
        return self._marks[text]


def _cell_row(
    cell: Cell, case: Case, lang: str, notes: _Notes | None, axis: RatioAxis | None = None
) -> dict[str, Any]:
    c = cell.comparison
    unit = METRICS[cell.key.metric].unit
    shared = case.verdict.comparability.modifiers
    bar = ""
    if axis is not None:
        bar = ratio_bar(axis, c, lang)
    several = len(case.campaign.all_workloads()) > 1
    level = level_name(cell.level, lang)
    return {
        "metric": metric_name(cell.key.metric, cell.key.statistic, lang),
        "level": f"{cell.key.workload}: {level}" if several else level,
        "n": f"{c.n_baseline} / {c.n_candidate}",
        "baseline": format_value(c.baseline, unit),
        "candidate": format_value(c.candidate, unit, c.baseline),
        "ratio": "" if c.ratio is None else f"{c.ratio:.3f}",
        "interval": "" if c.low is None or c.high is None else f"[{c.low:.3f}, {c.high:.3f}]",
        "bar": bar,
        "p": p_text(c.p_value),
        "p_adjusted": p_text(c.p_adjusted),
        "p_permutation": p_text(c.p_permutation),
        "rung": str(cell.rung),
        "word": verdict_word(shown_word(cell), lang),
        "word_class": shown_word(cell).replace(" ", "-"),
        "modifiers": [modifier_text(m, lang) for m in c.modifiers if m not in shared],
        "marks": [] if notes is None else [notes.mark(x) for x in c.cautions],
        "mde": percent(c.mde_ratio, 1) if c.mde_ratio is not None else "",
    }


def p_text(p: float | None) -> str:
    """Write a p value with two digits, a dash where there is none."""
    if p is None:
        return "–"
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"
