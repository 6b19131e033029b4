"""The sections below the first screen: every cell, how a verdict was reached, runs, provenance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from gpuverdict.case import Case
from gpuverdict.errors import Caution
from gpuverdict.schema import METRICS
from gpuverdict.tables.health import facts_of
from gpuverdict.tables.markup import RatioAxis, Section, render
from gpuverdict.tables.rows import arms_of, first_workload, fixed_rows
from gpuverdict.tables.words import (
    at_level,
    caution_text,
    level_name,
    metric_name,
    modifier_text,
    percent,
    remedy_text,
    spoken,
    verdict_word,
)
from gpuverdict.text import SENTENCES
from gpuverdict.units import format_ratio, format_value
from gpuverdict.verdict import Cell

__all__ = [
    "all_cells",
    "figure_sheet",
    "glossary",
    "how_reached",
    "provenance",
    "run_table",
    "verdict_map",
]

_PRIMARY = (("tpot_s", "p50"), ("ttft_s", "p50"), ("output_tokens_per_s", "value"))
# Where a metric's rows would only repeat another's.
_GLOSSARY = ("prefill", "decode", "ttft", "tpot", "itl", "goodput", "slo", "run", "steady", "ratio",
             "interval", "margin", "equivalent", "inconclusive", "not_comparable", "rung", "adjusted",
             "scope")  # fmt: skip


def _translator(lang: str) -> Any:
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
        "verdict_map.html", say=_translator(lang), columns=[name for name, _ in levels.values()], rows=rows,
        headline=[_cell_row(c, case, lang, None) for c in case.verdict.headline],
    )  # fmt: skip
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
        "word": verdict_word(cell.verdict, lang),
        "class": cell.verdict.replace(" ", "-"),
        "ratio": "" if c.ratio is None else f"{c.ratio:.2f}",
    }


def all_cells(case: Case, lang: str = "en") -> Section:
    """List every cell, metric by metric, with runs, interval, p, rung, modifiers and cautions."""
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in case.verdict.cells:
        groups[(cell.key.metric, cell.key.statistic)].append(cell)
    ordered = sorted(groups, key=lambda key: (key not in _PRIMARY, _PRIMARY.index(key) if key in _PRIMARY else 0))  # fmt: skip
    shown = []
    for key in ordered:
        cells = groups[key]
        bounds = [
            b for c in cells for b in (c.comparison.ratio, c.comparison.low, c.comparison.high)
        ]
        axis = RatioAxis.spanning(bounds, width=150)
        notes = _Notes(lang)
        rows = [_cell_row(c, case, lang, notes, axis) for c in cells]
        shown.append({
            "name": metric_name(*key, lang), "anchor": "-".join(key).replace("_", "-"),
            "formula": METRICS[key[0]].formula, "rows": rows, "axis": axis, "notes": notes.lines,
            "open": key in _PRIMARY, "margin": percent(cells[0].comparison.margin),
            "words": _counted([c.verdict for c in cells], lang),
        })  # fmt: skip
    baseline, candidate = arms_of(case)
    markup = render("all_cells.html", say=_translator(lang), metrics=shown, baseline=baseline, candidate=candidate)  # fmt: skip
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
        bar = axis.bar(c.ratio, c.low, c.high, margin=c.margin, word=c.verdict,
                       label=spoken(lang, "bar_label", ratio=format_ratio(c.ratio, c.low, c.high)))  # fmt: skip
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
        "p": _p(c.p_value), "p_adjusted": _p(c.p_adjusted), "p_permutation": _p(c.p_permutation),
        "rung": str(cell.rung),
        "word": verdict_word(cell.verdict, lang), "word_class": cell.verdict.replace(" ", "-"),
        "modifiers": [modifier_text(m, lang) for m in c.modifiers if m not in shared],
        "marks": [] if notes is None else [notes.mark(x) for x in c.cautions],
        "needed": spoken(lang, "runs_needed", low=c.runs_needed[0], high=c.runs_needed[1]) if c.runs_needed else "",
        "mde": percent(c.mde_ratio, 1) if c.mde_ratio is not None else "",
    }  # fmt: skip


def _p(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def how_reached(case: Case, lang: str = "en") -> Section:
    """Explain with the numbers of one cell how its word came about, and list all reservations."""
    cell = _worked_cell(case)
    steps: list[tuple[str, str]] = []
    if cell is not None:
        steps = _steps(case, cell, lang)
    c = case.verdict.comparability
    reasons = [
        {
            "message": caution_text(r, lang),
            "remedy": remedy_text(r, lang),
            "refused": r in c.refused,
        }
        for r in c.reasons
    ]
    blocked: dict[str, list[str]] = defaultdict(list)
    for metric, why in c.blocked.items():
        blocked[caution_text(why, lang)].append(metric_name(metric, "value", lang))
    markup = render(
        "how_reached.html", say=_translator(lang), steps=steps, reasons=reasons, blocked=blocked,
        scope=c.scope, treatment=", ".join(c.treatment) or "–",
        cell_name="" if cell is None else f"{metric_name(cell.key.metric, cell.key.statistic, lang)} {at_level(cell.level, lang)}",
        null="" if cell is None else cell.comparison.null_hypothesis,
    )  # fmt: skip
    return Section(name="how_reached", markup=markup, text="\n".join(f"{a}: {b}" for a, b in steps))


def _worked_cell(case: Case) -> Cell | None:
    """Choose the cell to explain: the TPOT row of the first screen, else any tested cell."""
    rows = {row.code: row.cell for row in fixed_rows(case)}
    for code in ("row_tpot", "row_throughput", "row_ttft"):
        cell = rows.get(code)
        if cell is not None and cell.comparison.low is not None:
            return cell
    return next((c for c in case.verdict.cells if c.comparison.low is not None), None)


def _steps(case: Case, cell: Cell, lang: str) -> list[tuple[str, str]]:
    c = cell.comparison
    unit = METRICS[cell.key.metric].unit
    baseline, candidate = arms_of(case)

    def listed(runs: Sequence[tuple[int, float | None]]) -> str:
        return ", ".join(format_value(v, unit, c.baseline) for _, v in runs)

    values: dict[str, Any] = {
        "baseline": baseline, "candidate": candidate,
        "a": listed(cell.baseline_runs), "b": listed(cell.candidate_runs),
        "mean_a": format_value(c.baseline, unit), "mean_b": format_value(c.candidate, unit, c.baseline),
        "n_a": c.n_baseline, "n_b": c.n_candidate,
        "ratio": f"{c.ratio:.4g}", "low": _bound(c.low), "high": _bound(c.high),
        "low90": _bound(c.ci90_low), "high90": _bound(c.ci90_high),
        "df": "–" if c.df is None else f"{c.df:.3g}",
        "se": "–" if c.se_log is None else f"{c.se_log:.3g}",
        "p": _p(c.p_value), "p_adjusted": _p(c.p_adjusted), "p_permutation": _p(c.p_permutation),
        "family": c.family or 1, "margin": percent(c.margin),
        "margin_low": f"{1 / (1 + c.margin):.3f}", "margin_high": f"{1 + c.margin:.3f}",
        "word": verdict_word(c.verdict, lang), "test": c.test, "rung": cell.rung,
        "window": spoken(lang, f"window_name_{cell.window or 'whole_run'}"),
    }  # fmt: skip
    codes = ["step_runs", "step_ratio", "step_equivalence", "step_test", "step_family", "step_word"]
    return [(spoken(lang, f"{code}_name"), spoken(lang, code, **values)) for code in codes]


def _bound(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def figure_sheet(plates: Sequence[Any], lang: str = "en") -> Section:
    """Set figures side by side under one heading."""
    markup = render("figure_sheet.html", say=_translator(lang), plates=plates)
    return Section(name="figures", markup=markup, text="\n".join(map(str, plates)))


def run_table(case: Case, lang: str = "en", plate: Any = None) -> Section:
    """List every run: window, cut, requests by status, and its own primary numbers.

    `plate` is a figure to stand above the table, such as `figures.windows(case)`.
    """
    frame = case.summary.frame
    primary = frame[frame.window.isin(["steady", "whole_run"])].sort_values("window")
    numbers: dict[tuple[str, str, str], float | None] = {}
    for row in primary.itertuples(index=False):
        numbers.setdefault((row.run_id, row.metric, row.statistic), row.value)
    rows = []
    for arm in arms_of(case):
        for fact in facts_of(case, arm):
            run, window = fact.run, fact.window
            own = {
                f"{metric}.{statistic}": format_value(_known(numbers.get((run.run_id, metric, statistic))), METRICS[metric].unit)
                for metric, statistic in _PRIMARY
            }  # fmt: skip
            rows.append({
                "arm": arm, "level": level_name(run.level, lang), "repeat": run.repeat_no,
                "window": _window_text(window.start_s, window.end_s),
                "kind": spoken(lang, f"window_name_{window.kind}"),
                "dropped": percent(window.dropped_ratio),
                "sent": window.n_sent,
                "status": ", ".join(f"{n} {status}" for status, n in sorted(fact.n_by_status.items())),
                "values": list(own.values()),
                "cautions": [caution_text(c, lang) for c in {c.code: c for c in fact.cautions}.values()],
                "path": run.path,
            })  # fmt: skip
    heads = [metric_name(m, s, lang) for m, s in _PRIMARY]
    lost = [item for item in case.measured.lost if item.arm in arms_of(case)]
    markup = render(
        "run_table.html", say=_translator(lang), rows=rows, heads=heads, lost=lost, plate=plate
    )
    return Section(
        name="run_table", markup=markup, text=f"{len(rows)} runs, {len(lost)} files lost"
    )


def _known(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)


def _window_text(start: float, end: float | None) -> str:
    return f"{start:.2f}–{'?' if end is None else f'{end:.2f}'} s"


def glossary(lang: str = "en") -> Section:
    """Explain the words of a report, with the formula of each metric."""
    terms = [
        (spoken(lang, f"term_{name}"), SENTENCES[f"term_{name}"][lang][1]) for name in _GLOSSARY
    ]
    formulas = [(metric_name(name, "value", lang), metric.formula, metric.unit) for name, metric in METRICS.items() if metric.formula]  # fmt: skip
    markup = render("glossary.html", say=_translator(lang), terms=terms, formulas=formulas)
    return Section(name="glossary", markup=markup, text="\n".join(name for name, _ in terms))


def provenance(
    case: Case,
    lang: str = "en",
    versions: Mapping[str, str] | None = None,
    command: str | None = None,
) -> Section:
    """Name every input with its hash, the versions, and the command that makes this report again."""
    used = _used_inputs(case)
    tools = sorted({
        f"{r.stored.info.get('tool') or r.stored.info['source_format']} {r.stored.info.get('tool_version') or ''}".strip()
        for arm in arms_of(case) for r in case.measured.runs_of(arm)
    })  # fmt: skip
    command = command or f"gpuverdict report {case.campaign.path.name} --only {case.spec.name}"
    markup = render(
        "provenance.html", say=_translator(lang), inputs=used, tools=tools, command=command,
        versions=dict(versions or _versions()), campaign=case.campaign.campaign,
        workload=first_workload(case),
    )  # fmt: skip
    return Section(
        name="provenance", markup=markup, text="\n".join(f"{p} {h[:12]}" for p, h in used)
    )


def _used_inputs(case: Case) -> list[tuple[str, str]]:
    own = {r.path for arm in arms_of(case) for r in case.measured.runs_of(arm)}
    folders = {path.rsplit("/", 1)[0] for path in own}
    # Traces, probes and inventories lie beside the logs; logs of other arms are not this report's.
    others = {r.path for r in case.measured.runs} - own
    return [
        (path, digest) for path, digest in case.measured.inputs
        if path in own or (path not in others and path.rsplit("/", 1)[0] in folders)
    ]  # fmt: skip


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("gpuverdict", "numpy", "scipy", "polars", "pandas", "statsmodels", "matplotlib"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
