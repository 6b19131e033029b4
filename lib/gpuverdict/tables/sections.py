"""How a verdict was reached, figures side by side, and every run with its window and cut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from gpuverdict.case import Case
from gpuverdict.schema import METRICS
from gpuverdict.tables.cells import PRIMARY, p_text, translator
from gpuverdict.tables.health import facts_of
from gpuverdict.tables.markup import Section, render
from gpuverdict.tables.rows import arms_of, fixed_rows
from gpuverdict.tables.words import (
    at_level,
    caution_text,
    level_name,
    metric_name,
    percent,
    remedy_text,
    spoken,
    verdict_word,
)
from gpuverdict.units import format_value
from gpuverdict.verdict import Cell

__all__ = ["figure_sheet", "how_reached", "run_table"]


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
        "how_reached.html",
        say=translator(lang),
        steps=steps,
        reasons=reasons,
        blocked=blocked,
        scope=c.scope,
        treatment=", ".join(c.treatment),
        cell_name="" if cell is None else _cell_name(cell, lang),
        null="" if cell is None else _null_hypothesis(cell, lang),
    )
    return Section(name="how_reached", markup=markup, text="\n".join(f"{a}: {b}" for a, b in steps))


def _cell_name(cell: Cell, lang: str) -> str:
    name = metric_name(cell.key.metric, cell.key.statistic, lang)
    return f"{name} {at_level(cell.level, lang)}"


def _null_hypothesis(cell: Cell, lang: str) -> str:
    label = metric_name(cell.key.metric, cell.key.statistic, lang)
    return spoken(lang, f"null_{cell.comparison.test.replace(' ', '_')}", label=label)


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
        "baseline": baseline,
        "candidate": candidate,
        "a": listed(cell.baseline_runs),
        "b": listed(cell.candidate_runs),
        "mean_a": format_value(c.baseline, unit),
        "mean_b": format_value(c.candidate, unit, c.baseline),
        "n_a": c.n_baseline,
        "n_b": c.n_candidate,
        "ratio": f"{c.ratio:.4g}",
        "low": _bound(c.low),
        "high": _bound(c.high),
        "low90": _bound(c.ci90_low),
        "high90": _bound(c.ci90_high),
        "df": "–" if c.df is None else f"{c.df:.3g}",
        "se": "–" if c.se_log is None else f"{c.se_log:.3g}",
        "p": p_text(c.p_value),
        "p_adjusted": p_text(c.p_adjusted),
        "p_permutation": p_text(c.p_permutation),
        "family": c.family or 1,
        "margin": percent(c.margin),
        "margin_low": f"{1 / (1 + c.margin):.3f}",
        "margin_high": f"{1 + c.margin:.3f}",
        "word": verdict_word(c.verdict, lang),
        "test": spoken(lang, f"test_{c.test.replace(' ', '_')}"),
        "rung": cell.rung,
        "window": spoken(lang, f"window_name_{cell.window or 'whole_run'}"),
    }
    codes = ["step_runs", "step_ratio", "step_equivalence", "step_test", "step_family", "step_word"]
    return [(spoken(lang, f"{code}_name"), spoken(lang, code, **values)) for code in codes]


def _bound(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def figure_sheet(plates: Sequence[Any], lang: str = "en") -> Section:
    """Set figures side by side under one heading."""
    markup = render("figure_sheet.html", say=translator(lang), plates=plates)
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
                f"{metric}.{statistic}": format_value(
                    _known(numbers.get((run.run_id, metric, statistic))), METRICS[metric].unit
                )
                for metric, statistic in PRIMARY
            }
            rows.append(
                {
                    "arm": arm,
                    "level": level_name(run.level, lang),
                    "repeat": run.repeat_no,
                    "window": _window_text(window.start_s, window.end_s),
                    "kind": spoken(lang, f"window_name_{window.kind}"),
                    "dropped": percent(window.dropped_ratio),
                    "sent": window.n_sent,
                    "status": ", ".join(
                        f"{n} {status}" for status, n in sorted(fact.n_by_status.items())
                    ),
                    "values": list(own.values()),
                    "cautions": [
                        caution_text(c, lang) for c in {c.code: c for c in fact.cautions}.values()
                    ],
                    "path": run.path,
                }
            )
    heads = [metric_name(m, s, lang) for m, s in PRIMARY]
    lost = [item for item in case.measured.lost if item.arm in arms_of(case)]
    markup = render(
        "run_table.html", say=translator(lang), rows=rows, heads=heads, lost=lost, plate=plate
    )
    return Section(
        name="run_table", markup=markup, text=f"{len(rows)} runs, {len(lost)} files lost"
    )


def _known(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)


def _window_text(start: float, end: float | None) -> str:
    return f"{start:.2f}–{'?' if end is None else f'{end:.2f}'} s"
