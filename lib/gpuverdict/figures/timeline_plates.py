"""The requests of one run over time, with batch, power and clock on the same axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from gpuverdict.capacity import run_samples
from gpuverdict.case import Case
from gpuverdict.energy import traced_gpus
from gpuverdict.figures.phase_plates import opening
from gpuverdict.figures.plate import Plate
from gpuverdict.figures.plates import level_text, notice
from gpuverdict.figures.request_plates import runs_at
from gpuverdict.figures.style import ARM_COLOURS, LEVEL_COLOURS, figure_language, styled
from gpuverdict.measured import MeasuredRun
from gpuverdict.phases import decode_batch, prefill_reference, split_requests
from gpuverdict.schema import TOKEN_GAPS, Run, Trace, empty
from gpuverdict.text import sentence

__all__ = ["first_span", "request_timeline"]

Span = tuple[float, float]

# More bars than this are no longer told apart; the rest is thinned evenly and said.
MOST_BARS = 150
# So many points a curve: beyond them each is the mean over its stretch of time.
BINS = 600
_FINEST_S = 0.1
_PARTS = {"waiting": "scheduling_excess_s", "prefill": "prefill_s", "decode": "decode_s"}
_PART_COLOURS = (LEVEL_COLOURS[1], LEVEL_COLOURS[4], LEVEL_COLOURS[0])


def first_span(run: MeasuredRun) -> tuple[Span, Span] | None:
    """Give the whole of a run and the part of it that is shown first, in the run's seconds.

    As much is shown as has bars of its own; None where the log holds no times.
    """
    ends = pl.coalesce("end_s", "last_token_s", "first_token_s", "start_s")
    known = run.stored.scan().filter(pl.col("start_s").is_not_null()).select("start_s", end=ends)
    first, last, n = (
        known.select(a=pl.col("start_s").min(), b=pl.col("end").max(), n=pl.len()).collect().row(0)
    )
    if not n:
        return None
    if n <= MOST_BARS:
        return (first, last), (first, last)
    opened = known.select(pl.col("start_s").bottom_k(MOST_BARS).max()).collect().item()
    return (first, last), (first, opened)


def request_timeline(
    case: Case,
    arm: str,
    level: float | Mapping[str, float],
    repeat_no: int = 1,
    lang: str = "en",
    *,
    workload: str | None = None,
    span: Span | None = None,
) -> Plate:
    """Show the requests of one run as bars, with batch, power and clock below.

    Parameters
    ----------
    case : Case
    arm : str
    level : float or mapping
        A level of the arm, whole or by its value.
    repeat_no : int
        Which run at that level; the first one where there is none of that number.
    lang : str
    workload : str, optional
        The main one of the comparison without.
    span : (float, float), optional
        Seconds of the run to show; as much as has bars of its own without.

    Returns
    -------
    Plate
        Every request that is under way in the span counts; above `MOST_BARS` every k-th is drawn.
    """
    drawn = figure_language(lang)
    runs = runs_at(case, arm, level, workload)
    run = next((r for r in runs if r.repeat_no == repeat_no), next(iter(runs), None))
    spans = None if run is None else first_span(run)
    panels: list[tuple[str, np.ndarray, np.ndarray]] = []
    bars, total = pl.DataFrame(), 0
    shown = span or (spans[1] if spans else (0.0, 1.0))
    if run is not None and spans is not None:
        under_way = _under_way(run, shown)
        total = under_way.height
        picked = under_way.gather_every(max(1, -(-total // MOST_BARS)))
        bars = _split(case, run, picked)
        panels = [_batch(run, under_way, shown), *_sampled(case, run, shown)]
    with styled():
        figure = Figure(figsize=(7.4, 3.0 + 1.0 * len(panels)))
        ratios = [3.0, *[1.0] * len(panels)]
        grid = figure.subplots(
            1 + len(panels), 1, sharex=True, squeeze=False, height_ratios=ratios
        )[:, 0]
        axes = grid[0]
        _draw_bars(axes, bars, drawn)
        for below, (code, x, y) in zip(grid[1:], panels, strict=True):
            below.plot(x, y, lw=1, color=ARM_COLOURS[0], drawstyle="steps-post")
            below.set_ylabel(sentence(code, drawn), fontsize=8)
            # A line at the very edge would be half cut off.
            below.set_ylim(0, 1.15 * max(float(np.nanmax(y, initial=0.0)), 1e-9))
            below.spines[["top", "right"]].set_visible(False)
        figure.align_ylabels(grid)
        grid[-1].set_xlabel(sentence("axis_run_time", drawn))
        grid[-1].set_xlim(*shown)
    finding = _finding(run, bars, total, shown, panels, lang)
    if run is None:
        place = level_text(level if isinstance(level, Mapping) else {"concurrency": level}, lang)
        finding = sentence("no_run_there", lang, arm=arm, level=place)
    return Plate(
        axes=axes,
        name="timeline",
        alt=sentence("timeline_alt", lang, finding=finding),
        reading=sentence("timeline_reading", lang),
        finding=finding,
        frame=_numbers(bars),
        note=notice(lang),
    )


def _finding(
    run: MeasuredRun | None,
    bars: pl.DataFrame,
    total: int,
    shown: Span,
    panels: Sequence[tuple[str, np.ndarray, np.ndarray]],
    lang: str,
) -> str:
    if run is None or bars.is_empty():
        return sentence("timeline_none", lang)
    named = {
        "arm": run.arm, "level": level_text(run.level, lang), "run": run.repeat_no,
        "begin": f"{shown[0]:.4g}", "end": f"{shown[1]:.4g}",
    }  # fmt: skip
    whole = bars.height == total
    words = [
        sentence(
            "timeline_all" if whole else "timeline_thinned", lang, n=bars.height,
            total=f"{total:,}", **named,
        )
    ]  # fmt: skip
    parts = {
        name: float(bars[column].fill_null(0.0).to_numpy().sum()) for name, column in _PARTS.items()
    }
    taken = sum(parts.values())
    if taken:
        shares = {name: f"{100 * part / taken:.0f} %" for name, part in parts.items()}
        words.append(sentence("timeline_shares", lang, **shares))
    if len(panels) == 1:
        words.append(sentence("timeline_no_trace", lang, arm=run.arm))
    return " ".join(words)


def _under_way(run: MeasuredRun, span: Span) -> pl.DataFrame:
    """Read the requests that are under way at any moment of a span, in order of their start."""
    columns = ["request_index", "status", "start_s", "first_token_s", "last_token_s", "ttft_s",
               "e2e_s", "input_tokens", "server_queue_s", "server_prefill_s",
               "server_decode_s"]  # fmt: skip
    end = pl.coalesce("end_s", "last_token_s", "first_token_s", "start_s")
    return (
        run.stored.scan()
        .filter(pl.col("start_s") <= span[1], end >= span[0])
        .select(columns)
        .sort("start_s", "request_index")
        .collect()
    )


def _split(case: Case, run: MeasuredRun, rows: pl.DataFrame) -> pl.DataFrame:
    def known() -> object:
        probes = [p.load() for p in case.measured.probes.get(run.arm, ())] or None
        return prefill_reference(opening(run), probes)

    return split_requests(rows, case.summary.once(("prefill", run.key), known))


def _numbers(bars: pl.DataFrame) -> pd.DataFrame:
    columns = ["request_index", "status", "start_s", *_PARTS.values()]
    return pd.DataFrame(columns=columns) if bars.is_empty() else bars.select(columns).to_pandas()


def _draw_bars(axes: Any, bars: pl.DataFrame, lang: str) -> None:
    if bars.is_empty():
        return
    low = np.arange(bars.height) - 0.45
    left = bars["start_s"].to_numpy()
    for (name, column), colour in zip(_PARTS.items(), _PART_COLOURS, strict=True):
        right = left + bars[column].fill_null(0.0).to_numpy()
        corners = [(left, low), (right, low), (right, low + 0.9), (left, low + 0.9)]
        boxes = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)
        # One collection a phase: as many single patches take ten times as long to draw.
        label = sentence(f"phase_{name}", lang)
        axes.add_collection(PolyCollection(list(boxes), facecolor=colour, lw=0, label=label))
        left = right
    axes.set_ylim(bars.height - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_ylabel(sentence("axis_requests", lang), fontsize=8)
    axes.grid(axis="y", visible=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.1)


def _batch(run: MeasuredRun, rows: pl.DataFrame, span: Span) -> tuple[str, np.ndarray, np.ndarray]:
    """Count the decoding requests: exact steps where few, else time means of equal stretches."""
    steps = decode_batch(Run(info=run.stored.info, requests=rows, gaps=empty(TOKEN_GAPS)))
    times, count = steps["time_s"].to_numpy(), steps["decode_batch"].to_numpy().astype(float)
    if not times.size:
        return "axis_batch", times, count
    edges = np.linspace(*span, BINS + 1)
    if times.size <= BINS:
        return "axis_batch", np.append(times, max(times[-1], span[1])), np.append(count, count[-1])
    area = np.concatenate([[0.0], np.cumsum(count[:-1] * np.diff(times))])
    means = np.diff(np.interp(edges, times, area)) / np.diff(edges)
    return "axis_batch", edges, np.append(means, means[-1])


def _sampled(case: Case, run: MeasuredRun, span: Span) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Give power and SM clock of the arm's GPUs in a span, in the run's own seconds.

    Power is summed over GPUs, the clock is that of the slowest.
    """
    begin = run.stored.info.get("t0_epoch_s")
    rows, _ = run_samples(case.measured, run.arm, run.stored)
    # The sum over more cards than the arm has would be another one's.
    if begin is None or traced_gpus(Trace(samples=rows)) != case.campaign.arms[run.arm].gpus:
        return []
    width = max(_FINEST_S, (span[1] - span[0]) / BINS)
    # Ten thousandths of a bin keep a sample on an edge in the bin that begins there.
    place = ((pl.col("time_epoch_s") - float(begin) - span[0]) / width + 1e-4).floor()
    binned = rows.with_columns(x=place * width + span[0]).filter(pl.col("x").is_between(*span))
    panels = []
    for code, column, over_gpus in (
        ("axis_power_short", "power_w", pl.col("power_w").sum()),
        ("axis_clock_short", "sm_clock_mhz", pl.col("sm_clock_mhz").min()),
    ):
        series = (
            binned.filter(pl.col(column).is_not_null())
            .group_by("x", gpu=pl.coalesce("gpu_uuid", pl.col("gpu_index").cast(pl.String)))
            .agg(pl.col(column).mean())
            .group_by("x")
            .agg(over_gpus)
            .sort("x")
        )
        if series.height:
            panels.append((code, series["x"].to_numpy(), series[column].to_numpy()))
    return panels
