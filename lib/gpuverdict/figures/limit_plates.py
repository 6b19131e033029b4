"""Figure of a campaign that varies the power limit: what a joule and a second give under each."""

from __future__ import annotations

import pandas as pd

from gpuverdict.capacity import PowerLimitCurve, power_limit_curve
from gpuverdict.case import Case
from gpuverdict.figures.draw_series import draw_beside
from gpuverdict.figures.plate import Plate
from gpuverdict.figures.plates import level_text, main_workload, notice
from gpuverdict.figures.style import figure_language, styled
from gpuverdict.text import sentence

__all__ = ["power_limits"]

COLUMNS = ["series", "limit_w", "repeat_no", "tokens_per_j", "tokens_per_s"]


def power_limits(case: Case, lang: str = "en", workload: str | None = None) -> Plate:
    """Show tokens per joule and per second against the enforced power limit, every run a point.

    One series for the arms that differ from the baseline in nothing but the limit, and one for the
    candidate's where they are others.
    """
    workload = workload or main_workload(case)
    drawn = figure_language(lang)
    curves: dict[str, PowerLimitCurve] = {}
    taken: set[str] = set()
    for arm in (case.spec.baseline, str(case.spec.candidate)):
        if arm in taken:
            continue
        found = power_limit_curve(case.measured, case.summary, arm, workload)
        if found is not None:
            curves[_series(found)] = found
            taken |= set(found.arms)
    frames = [curve.points.assign(series=name) for name, curve in curves.items()]
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)
    with styled():
        axes = draw_beside(
            frame.rename(columns={"limit_w": "x"}),
            arms=list(curves),
            columns=("tokens_per_j", "tokens_per_s"),
            labels=(sentence("axis_limit", drawn), sentence("axis_tokens_j", drawn),
                    sentence("axis_tokens_s", drawn)),
        )  # fmt: skip
    words = [_words(name, curve, lang) for name, curve in curves.items()]
    finding = " ".join(words) or sentence("limits_none", lang)
    return Plate(
        axes=axes,
        name="power-limits",
        alt=sentence("limits_alt", lang, finding=finding),
        reading=sentence("limits_reading", lang),
        finding=finding,
        frame=frame[COLUMNS],
        note=notice(lang),
    )


def _series(curve: PowerLimitCurve) -> str:
    """Name a series by its arms, from the lowest limit to the highest."""
    names = list(dict.fromkeys(curve.points.arm))
    return ", ".join(names) if len(names) < 4 else f"{names[0]} … {names[-1]}"


def _words(name: str, curve: PowerLimitCurve, lang: str) -> str:
    """Say where tokens per joule peak and what that costs in throughput, or that it is open."""
    said = [sentence(c.code, lang, **c.values) for c in curve.cautions]
    words = []
    if curve.resolved and curve.best_limit_w is not None:
        rate = curve.points.groupby("limit_w").tokens_per_s.mean()
        words.append(
            sentence(
                "limits_peak", lang, name=name, level=level_text(curve.level, lang),
                low=f"{curve.low_w:g}", high=f"{curve.high_w:g}", best=f"{curve.best_limit_w:g}",
                share=f"{100 * rate[curve.best_limit_w] / rate.iloc[-1]:.0f} %",
                top=f"{rate.index[-1]:g}",
            )
        )  # fmt: skip
    else:
        words.append(sentence("limits_open", lang, name=name, level=level_text(curve.level, lang)))
    return " ".join([*words, *said])
