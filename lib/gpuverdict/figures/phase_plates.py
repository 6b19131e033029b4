"""Figures of the phases: where a request spends its time, what a prompt costs, the batch."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl

from gpuverdict.case import Case
from gpuverdict.figures.draw_series import draw_points_and_lines, draw_stacks, draw_steps
from gpuverdict.figures.plate import Plate
from gpuverdict.figures.plates import level_value, main_workload, notice
from gpuverdict.figures.style import figure_language, styled
from gpuverdict.measured import MeasuredRun
from gpuverdict.phases import fit_prefill, split_phases
from gpuverdict.phases.prefill import PrefillModel
from gpuverdict.schema import TOKEN_GAPS, Run, empty
from gpuverdict.text import sentence
from gpuverdict.units import format_value

__all__ = ["batch_over_time", "request_phases", "unloaded_prefill"]

PHASES = ("prefill", "waiting", "decode")
MOST_REQUESTS = 20_000
MOST_POINTS = 1200  # of a line; a figure is not wider in pixels


def request_phases(case: Case, lang: str = "en", workload: str | None = None) -> Plate:
    """Show where the mean request of each arm and level spends its time."""
    workload = workload or main_workload(case)
    drawn = figure_language(lang)
    frame = case.summary.frame
    arms = [case.spec.baseline, str(case.spec.candidate)]
    rows = frame[
        frame.arm.isin(arms)
        & (frame.workload == workload)
        & (frame.statistic == "mean")
        & frame.metric.isin(["ttft_s", "scheduling_excess_s", "e2e_s"])
        & frame.window.isin(["steady", "whole_run"])
    ]
    rows = rows.sort_values("window").drop_duplicates(["arm", "run_id", "metric"])
    wide = rows.pivot_table(
        index=["arm", "level"], columns="metric", values="value", aggfunc="mean"
    )
    wide = wide.reindex(columns=["ttft_s", "scheduling_excess_s", "e2e_s"]).reset_index()
    # Where no unloaded prefill is known, all of TTFT is shown as prefill and the sentence says so.
    waiting = wide.scheduling_excess_s.clip(upper=wide.ttft_s)
    parts = pd.DataFrame(
        {
            "arm": wide.arm,
            "level": wide.level.map(level_value),
            "prefill": wide.ttft_s - waiting.fillna(0.0),
            "waiting": waiting,
            "decode": wide.e2e_s - wide.ttft_s,
        }
    ).sort_values(["level", "arm"], ignore_index=True)
    with styled():
        axes = draw_stacks(
            parts.assign(name=parts.arm + " · " + parts.level.map("{:g}".format)),
            parts=PHASES,
            names={p: sentence(f"phase_{p}", drawn) for p in PHASES},
            label=sentence("axis_mean_time", drawn),
        )
    known = parts.dropna(subset=["prefill", "decode"])
    words = []
    for arm in arms:
        own = known[known.arm == arm]
        if own.empty:
            continue
        total = own[list(PHASES)].fillna(0.0).sum(axis=1)
        share, wait = own.decode / total, (own.waiting.astype(float) / total).dropna()
        words.append(
            sentence(
                "phases_finding" if len(wait) else "phases_finding_no_wait",
                lang,
                arm=arm,
                low=f"{100 * share.min():.0f} %",
                high=f"{100 * share.max():.0f} %",
                wait=f"{100 * wait.max():.0f} %",
            )
        )
    finding = " ".join(words) or sentence("phases_none", lang)
    return Plate(
        axes=axes,
        name="request-phases",
        alt=sentence("phases_alt", lang, finding=finding),
        reading=sentence("phases_reading", lang),
        finding=finding,
        frame=parts,
        note=notice(lang),
    )


def unloaded_prefill(case: Case, lang: str = "en") -> Plate:
    """Show time to first token against prompt length with one request at a time."""
    drawn = figure_language(lang)
    points, lines, words = [], [], []
    for arm in (case.spec.baseline, str(case.spec.candidate)):
        probes = [run.load() for run in case.measured.probes.get(arm, ())]
        if not probes:
            continue
        model = fit_prefill(probes)
        for n, t in zip(model.lengths, model.times_s, strict=True):
            points.append({"arm": arm, "x": float(n), "y": float(t)})
        lengths = np.asarray(model.lengths, float)
        if model.c0_s is not None and lengths.size:
            grid = np.linspace(lengths.min(), lengths.max(), 40)
            lines += [
                {"arm": arm, "x": float(x), "y": float(y)}
                for x, y in zip(grid, model.predict(grid), strict=True)
            ]
        words.append(_prefill_words(arm, model, lang))
    frame = pd.DataFrame(points, columns=["arm", "x", "y"])
    with styled():
        axes = draw_points_and_lines(
            frame.assign(y=1e3 * frame.y),
            pd.DataFrame(lines, columns=["arm", "x", "y"]).assign(y=lambda f: 1e3 * f.y),
            arms=[case.spec.baseline, str(case.spec.candidate)],
            labels=(sentence("axis_prompt", drawn), sentence("axis_ttft_ms", drawn)),
        )
    finding = " ".join(words) or sentence("prefill_none", lang)
    return Plate(
        axes=axes,
        name="unloaded-prefill",
        alt=sentence("prefill_alt", lang, finding=finding),
        reading=sentence("prefill_reading", lang),
        finding=finding,
        frame=frame.rename(columns={"x": "input_tokens", "y": "ttft_s"}),
        note=notice(lang),
    )


def _prefill_words(arm: str, model: PrefillModel, lang: str) -> str:
    """Say what the probes of an arm give: a curve and its rate, or times at their very lengths."""
    said = [sentence(c.code, lang, **c.values) for c in model.cautions]
    if not model.lengths.size:
        return " ".join(said)
    at = int(np.argmax(model.lengths))
    n, time = float(model.lengths[at]), format_value(float(model.times_s[at]), "s")
    words = [sentence("prefill_words", lang, arm=arm, n=f"{n:g}", time=time)]
    rate = model.rate_tokens_per_s(n)
    if rate is not None and model.c0_s is not None:
        words.append(
            sentence("prefill_fit_words", lang, fixed=format_value(model.c0_s.value, "s"),
                     rate=format_value(rate, "tokens_per_s"), n=f"{n:g}")
        )  # fmt: skip
    if model.chunk_step_s:
        step = format_value(model.chunk_step_s, "s")
        words.append(sentence("prefill_chunk_words", lang, step=step, chunk=model.chunk_tokens))
    curvature = model.c2_s_per_token2
    said += [sentence(c.code, lang, **c.values) for c in (curvature.cautions if curvature else ())]
    return " ".join([*words, *said])


def batch_over_time(case: Case, level: float | None = None, lang: str = "en") -> Plate:
    """Show how many requests decode at once, in the first run of each arm at a level.

    `level` is the value of a level that both arms ran; the highest of them without one.
    """
    drawn = figure_language(lang)
    arms = [case.spec.baseline, str(case.spec.candidate)]
    runs = [_first_run(case, arm, level) for arm in arms]
    frames, means = [], []
    for arm, run in zip(arms, runs, strict=True):
        if run is None:
            continue
        phases = split_phases(
            opening(run), [p.load() for p in case.measured.probes.get(arm, ())] or None
        )
        batch = phases.batch.select("time_s", "decode_batch").drop_nulls()
        if batch.is_empty():
            continue
        frames.append(_thinned(batch).with_columns(arm=pl.lit(arm)).to_pandas())
        means.append(
            {"arm": arm, "level": next(iter(run.level.values())), "mean_batch": _time_mean(batch)}
        )
    frame = pd.concat(frames) if frames else pd.DataFrame(columns=["time_s", "decode_batch", "arm"])
    with styled():
        axes = draw_steps(
            frame.rename(columns={"time_s": "x", "decode_batch": "y"}),
            arms=arms,
            labels=(sentence("axis_run_time", drawn), sentence("axis_batch", drawn)),
        )
    finding = "; ".join(
        sentence(
            "batch_words",
            lang,
            arm=m["arm"],
            batch=f"{m['mean_batch']:.3g}",
            level=f"{m['level']:g}",
        )
        for m in means
    ) or sentence("batch_none", lang)
    return Plate(
        axes=axes,
        name="batch-over-time",
        alt=sentence("batch_alt", lang, finding=finding),
        reading=sentence("batch_reading", lang),
        finding=finding,
        frame=pd.DataFrame(means, columns=["arm", "level", "mean_batch"]),
        note=notice(lang),
    )


def _first_run(case: Case, arm: str, level: float | None) -> MeasuredRun | None:
    runs = case.measured.runs_of(arm)
    values = sorted({next(iter(r.level.values())) for r in runs})
    other = {
        next(iter(r.level.values()))
        for a in (case.spec.baseline, str(case.spec.candidate))
        if a != arm
        for r in case.measured.runs_of(a)
    }
    shared = [v for v in values if v in other] or values
    wanted = level if level is not None else (shared[-1] if shared else None)
    return next((r for r in runs if next(iter(r.level.values())) == wanted), None)


def opening(run: MeasuredRun) -> Run:
    """Give the first requests of a run without its gaps: as much as a figure can show.

    A run of a million requests has gaps of gigabytes, and a screen has two thousand pixels.
    """
    rows = run.stored.requests().sort("start_s", nulls_last=True).head(MOST_REQUESTS)
    return Run(info=run.stored.info, requests=rows, gaps=empty(TOKEN_GAPS))


def _thinned(frame: pl.DataFrame) -> pl.DataFrame:
    """Keep so many rows, evenly: more than a screen has pixels adds bytes and no sight."""
    return frame.gather_every(max(1, frame.height // MOST_POINTS))


def _time_mean(batch: pl.DataFrame) -> float:
    times, values = batch["time_s"].to_numpy(), batch["decode_batch"].to_numpy()
    if times.size < 2 or times[-1] == times[0]:
        return float(values.mean())
    return float((values[:-1] * np.diff(times)).sum() / (times[-1] - times[0]))
