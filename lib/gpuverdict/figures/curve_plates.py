"""Figures of throughput against batch: step time, throughput, and the ratio along the batch."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpuverdict.case import Case
from gpuverdict.curves import CurveComparison
from gpuverdict.figures.draw_series import draw_band, draw_points_and_lines
from gpuverdict.figures.plate import Plate
from gpuverdict.figures.plates import main_workload, notice
from gpuverdict.figures.style import figure_language, styled
from gpuverdict.text import sentence
from gpuverdict.units import format_value

__all__ = ["curve_ratio", "step_curve", "throughput_curve"]


def _points_and_lines(case: Case, workload: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Give batch and step time of every run, and the fitted line of each arm on a fine grid."""
    points, lines = [], []
    fits = case.curves.get(workload, (None, None, None))[:2]
    for arm, fit in zip((case.spec.baseline, str(case.spec.candidate)), fits, strict=True):
        if fit is None:
            continue
        points += [
            {"arm": arm, "batch": b, "step_s": t} for sweep in fit.sweep_points for b, t in sweep
        ]
        grid = np.geomspace(fit.x_min, fit.x_max, 60)
        for b, t in zip(grid, fit.predict(list(grid)), strict=True):
            if t is not None:
                lines.append({"arm": arm, "batch": float(b), "step_s": t})
    columns = ["arm", "batch", "step_s"]
    return pd.DataFrame(points, columns=columns), pd.DataFrame(lines, columns=columns)


def step_curve(case: Case, lang: str = "en", workload: str | None = None) -> Plate:
    """Show step time against batch, with the fitted curve of each arm."""
    workload = workload or main_workload(case)
    drawn = figure_language(lang)
    points, lines = _points_and_lines(case, workload)
    arms = [case.spec.baseline, str(case.spec.candidate)]
    with styled():
        axes = draw_points_and_lines(
            points.rename(columns={"batch": "x"}).assign(y=1e3 * points.step_s),
            lines.rename(columns={"batch": "x"}).assign(y=1e3 * lines.step_s),
            arms=arms,
            labels=(sentence("axis_flight", drawn), sentence("axis_step_ms", drawn)),
        )
    records, words = [], []
    fits = case.curves.get(workload, (None, None, None))[:2]
    for arm, fit in zip(arms, fits, strict=True):
        if fit is None:
            continue
        alpha, beta = fit.params["alpha_s"], fit.params["beta_s"]
        records.append(
            {
                "arm": arm,
                "model": fit.model,
                "alpha_s": alpha.value,
                "beta_s": beta.value,
                "lack_of_fit_p": fit.lack_of_fit_p,
                "sweeps": fit.n_sweeps,
            }
        )
        words.append(
            sentence(
                "curve_words",
                lang,
                arm=arm,
                alpha=format_value(alpha.value, "s"),
                beta=format_value(beta.value, "s"),
            )
        )
    finding = " ".join(words) or sentence("curve_none", lang)
    columns = ["arm", "model", "alpha_s", "beta_s", "lack_of_fit_p", "sweeps"]
    return Plate(
        axes=axes,
        name="step-curve",
        alt=sentence("curve_alt", lang, finding=finding),
        reading=sentence("curve_reading", lang),
        finding=finding,
        frame=pd.DataFrame(records, columns=columns),
        note=notice(lang),
    )


def throughput_curve(case: Case, lang: str = "en", workload: str | None = None) -> Plate:
    """Show decode throughput (batch over step time) against batch, and where it bends."""
    workload = workload or main_workload(case)
    drawn = figure_language(lang)
    points, lines = _points_and_lines(case, workload)
    arms = [case.spec.baseline, str(case.spec.candidate)]
    with styled():
        axes = draw_points_and_lines(
            points.rename(columns={"batch": "x"}).assign(y=points.batch / points.step_s),
            lines.rename(columns={"batch": "x"}).assign(y=lines.batch / lines.step_s),
            arms=arms,
            labels=(sentence("axis_flight", drawn), sentence("axis_decode_rate", drawn)),
        )
    records, words = [], []
    for arm, fit in zip(arms, case.curves.get(workload, (None, None, None))[:2], strict=True):
        if fit is None:
            continue
        half, top = fit.params["b_half"], fit.params["x_inf_tokens_per_s"]
        sure = not half.cautions
        records.append(
            {"arm": arm, "b_half": half.value, "x_inf_tokens_per_s": top.value, "identified": sure}
        )
        code = "bend_words" if half.value is not None and half.value <= fit.x_max else "bend_beyond"
        words.append(
            sentence(code, lang, arm=arm, half=f"{half.value or 0:.3g}", most=f"{fit.x_max:.3g}")
        )
    finding = " ".join(words) or sentence("curve_none", lang)
    return Plate(
        axes=axes,
        name="throughput-curve",
        alt=sentence("curve_alt", lang, finding=finding),
        reading=sentence("bend_reading", lang),
        finding=finding,
        frame=pd.DataFrame(records, columns=["arm", "b_half", "x_inf_tokens_per_s", "identified"]),
        note=notice(lang),
    )


def curve_ratio(case: Case, lang: str = "en", workload: str | None = None) -> Plate:
    """Show throughput of the candidate over the baseline along the batch, and where they cross."""
    workload = workload or main_workload(case)
    drawn = figure_language(lang)
    both = case.curves.get(workload, (None, None, None))[2]
    columns = ["x", "ratio", "low", "high"]
    frame = pd.DataFrame(columns=columns, dtype=float)
    crossing, margin = None, 0.03
    if both is not None:
        rows = list(zip(both.at, both.ratio, both.low, both.high, strict=True))
        frame = pd.DataFrame(rows, columns=columns).astype(float)
        crossing = both.crossover.value if both.crossover else None
        margin = both.margin
    with styled():
        axes = draw_band(
            frame,
            margin=margin,
            crossing=crossing,
            labels=(sentence("axis_flight", drawn), sentence("axis_rate_ratio", drawn)),
        )
    known = frame.dropna()
    finding = sentence("ratio_none", lang)
    if len(known):
        first, last = known.iloc[0], known.iloc[-1]
        finding = sentence(
            "ratio_finding",
            lang,
            low=f"{first.x:.3g}",
            high=f"{last.x:.3g}",
            first=f"{first.ratio:.2f}",
            last=f"{last.ratio:.2f}",
            crossing=_crossing_words(both, lang),
        ).strip()
    return Plate(
        axes=axes,
        name="curve-ratio",
        alt=sentence("ratio_alt", lang, finding=finding),
        reading=sentence("ratio_reading", lang),
        finding=finding,
        frame=known.iloc[:: max(1, len(known) // 6)].reset_index(drop=True),
        note=notice(lang),
    )


def _crossing_words(both: CurveComparison | None, lang: str) -> str:
    """Say where the curves cross, with its interval, or what is known of it instead."""
    found = both.crossover if both else None
    if both is None or found is None or found.value is None:
        codes = [c for c in (both.cautions if both else ()) if "cross" in c.code]
        return " ".join(sentence(c.code, lang, **dict(c.values)) for c in codes)
    known = found.low is not None and found.high is not None
    return sentence(
        "ratio_crossing", lang, at=f"{found.value:.3g}",
        interval=f" [{found.low:.3g}, {found.high:.3g}]" if known else "",
    )  # fmt: skip
