"""The SLO over time: what share of each minute's requests kept it."""

from __future__ import annotations

import pandas as pd

from gpuverdict.capacity import attainment_by_minute
from gpuverdict.case import Case
from gpuverdict.errors import Caution
from gpuverdict.figures.draw_series import draw_points_and_lines
from gpuverdict.figures.plate import Plate
from gpuverdict.figures.plates import level_text, main_workload, notice
from gpuverdict.figures.style import figure_language, styled
from gpuverdict.measured import MeasuredRun
from gpuverdict.text import render, sentence

__all__ = ["slo_by_minute"]

COLUMNS = ["arm", "level", "repeat_no", "minute", "n", "n_met", "n_cut", "share_ratio"]


def slo_by_minute(case: Case, lang: str = "en", workload: str | None = None) -> Plate:
    """Show minute by minute what share of the requests kept the SLO, at each arm's highest load.

    An arm's highest level with a run of two whole minutes; shorter runs are named in the sentence.
    """
    workload = workload or main_workload(case)
    drawn = figure_language(lang)
    arms = [case.spec.baseline, str(case.spec.candidate)]
    records, words = [], []
    unknown: dict[str, list[str]] = {}
    for arm in arms:
        rows, said = _of_arm(case, arm, workload)
        records += rows
        if rows:
            words.append(_words(case, arm, rows, lang))
        else:
            why = " ".join(" ".join(render(c.code, dict(c.values), lang)) for c in said)
            unknown.setdefault(why, []).append(arm)
    words += [_missing(names, why, lang) for why, names in unknown.items()]
    frame = pd.DataFrame(records, columns=COLUMNS)
    # People count minutes from one.
    shown = frame.dropna(subset=["share_ratio"])
    shown = shown.assign(x=shown.minute.astype(int) + 1)
    pooled = shown.groupby(["arm", "x"], as_index=False)[["n", "n_met"]].sum()
    with styled():
        axes = draw_points_and_lines(
            shown.assign(y=100 * shown.share_ratio.astype(float)),
            pooled.assign(y=100 * pooled.n_met / pooled.n),
            arms=arms,
            labels=(sentence("axis_minute", drawn), sentence("axis_within_slo", drawn)),
        )
    finding = " ".join(words)
    if not case.campaign.slo_of(workload):
        finding = sentence("slo_none", lang)
    return Plate(
        axes=axes,
        name="slo-by-minute",
        alt=sentence("minutes_alt", lang, finding=finding),
        reading=sentence("minutes_reading", lang),
        finding=finding,
        frame=frame.reset_index(drop=True),
        note=notice(lang),
    )


def _of_arm(
    case: Case, arm: str, workload: str
) -> tuple[list[dict[str, object]], tuple[Caution, ...]]:
    """Rows of the highest level that has whole minutes; else why the longest run has none."""
    slo = case.campaign.slo_of(workload)
    runs = [r for r in case.measured.runs_of(arm) if r.workload == workload]
    if not slo or not runs:
        return [], ()
    refused: list[tuple[float, tuple[Caution, ...]]] = []
    for level in sorted({max(r.level.values()) for r in runs}, reverse=True):
        rows: list[dict[str, object]] = []
        for run in (r for r in runs if max(r.level.values()) == level):
            table, said = attainment_by_minute(run.stored.requests(), slo)
            if said:
                refused.append((float(said[0].values.get("span_s", 0.0)), said))
            rows += [_record(run, level, row) for row in table.iter_rows(named=True)]
        if rows:
            return rows, ()
    return [], max(refused, key=lambda entry: entry[0])[1]


def _record(run: MeasuredRun, level: float, row: dict[str, object]) -> dict[str, object]:
    return {"arm": run.arm, "level": level, "repeat_no": run.repeat_no, **row}


def _missing(arms: list[str], why: str, lang: str) -> str:
    missing = sentence("word_not_measured", lang)
    named = sentence("list_joint", lang).join(arms)
    return sentence("minutes_missing", lang, arm=named, missing=missing, why=why).strip()


def _words(case: Case, arm: str, rows: list[dict[str, object]], lang: str) -> str:
    frame = pd.DataFrame(rows)
    judged = frame[frame.n > 0]
    worst = judged.loc[judged.share_ratio.idxmin()]
    runs = case.measured.runs_of(arm)
    level = next(level_text(r.level, lang) for r in runs if max(r.level.values()) == worst.level)
    return sentence(
        "minutes_words",
        lang,
        arm=arm,
        level=level,
        share=f"{100 * judged.n_met.sum() / judged.n.sum():.1f} %",
        n=int(judged.n.sum()),
        minutes=len(frame),
        worst=f"{100 * worst.share_ratio:.1f} %",
        worst_n=int(worst.n),
        minute=int(worst.minute) + 1,
        repeat=int(worst.repeat_no),
    )
