"""The batch the GPU really decoded, and how long one step of it took."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import stats

from gpuverdict.errors import Caution
from gpuverdict.phases.huber import huber_location
from gpuverdict.phases.prefill import PrefillModel
from gpuverdict.schema import Run
from gpuverdict.steady import Window, gap_table, step_function
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["clean_gaps", "decode_batch", "decode_step", "pool_noisy", "unusable_gaps"]

FEWEST_GAPS = 20
BLOCKS = 10
# Above this, chunks of several tokens arrive at once and no gap is a step.
BURSTY = 0.2
TOKENS_PER_EVENT = 1.05
# A location of half a million gaps is known to 0.01 %: more only cost time and memory.
MOST_GAPS = 500_000
# Stamps that are the client's more than the device's: gaps scatter (90th less 10th percentile, of
# the median) and a long one is followed by a short one (lag-1 correlation). The mean of consecutive
# gaps is taken then, in which all stamps but the two outer ones cancel.
NOISY_SPREAD, NOISY_CORRELATION = 0.10, -0.2
POOLED, FEWEST_POOLED = 8, 4
# 90th less 10th percentile of a normal sample, in standard deviations.
TENTHS_TO_SIGMA = 2.563


def decode_batch(run: Run) -> pl.DataFrame:
    """Count the requests between their first and their last token over time.

    Returns
    -------
    polars.DataFrame
        `time_s`, `decode_batch` from then on. Empty without start times.

    Notes
    -----
    b(t) = #{i : first_token_i <= t < last_token_i}, exact for one server without other traffic.
    Wrong with several replicas, other clients, preemption, or failed requests the log leaves out.
    """
    rows = run.requests.filter(
        pl.col("first_token_s").is_not_null(), pl.col("last_token_s").is_not_null()
    )
    times, count = step_function(rows["first_token_s"].to_numpy(), rows["last_token_s"].to_numpy())
    return pl.DataFrame(
        {"time_s": times, "decode_batch": count},
        schema={"time_s": pl.Float64, "decode_batch": pl.Int64},
    )


def clean_gaps(run: Run, prefill: PrefillModel, window: Window | None = None) -> pl.DataFrame:
    """Mark the gaps that no prefill of another request overlaps, with batch and prefill tokens.

    Returns
    -------
    polars.DataFrame
        The columns of `gap_table`, and `clean`, `batch` (requests decoding in the middle of the
        gap) and `prefill_tokens` (tokens of other prompts prefilled within it, as estimated).

    Notes
    -----
    The prefill of request j is taken to fill [first_token_j - c(n_j), first_token_j]; where c(n_j)
    is unknown, all of its TTFT, which loses clean gaps rather than letting bad ones in. Of very
    long runs every k-th request is taken, so that about half a million gaps remain.
    """
    gaps = gap_table(_thinned(run), window).filter(pl.col("start_s").is_not_null())
    start, end = gaps["start_s"].to_numpy(), gaps["end_s"].to_numpy()
    rows = run.requests.filter(
        pl.col("first_token_s").is_not_null(), pl.col("start_s").is_not_null()
    )
    first, begun = rows["first_token_s"].to_numpy(), rows["start_s"].to_numpy()
    tokens = rows["input_tokens"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    cost = prefill.predict(tokens)
    waited = first - begun
    cost = np.where(np.isnan(cost), waited, np.minimum(cost, waited))
    opened = first - cost
    batch = decode_batch(run)
    times, count = batch["time_s"].to_numpy(), batch["decode_batch"].to_numpy()
    where = np.searchsorted(times, 0.5 * (start + end), side="right") - 1
    busy = np.where(where >= 0, count[np.maximum(where, 0)], 0) if times.size else np.zeros(0, int)
    known = np.where(np.isnan(tokens), 0.0, tokens)
    done = _progress(end, opened, first, known) - _progress(start, opened, first, known)
    return gaps.with_columns(
        clean=pl.Series(~_overlaps(start, end, opened, first), dtype=pl.Boolean),
        batch=pl.Series(busy, dtype=pl.Int64),
        prefill_tokens=pl.Series(np.maximum(done, 0.0), dtype=pl.Float64),
    )


def decode_step(run: Run, prefill: PrefillModel, window: Window | None = None) -> Estimate:
    """Say how long one decode step takes on the device at the batch this run really had.

    Returns
    -------
    Estimate
        Seconds; interval over time blocks of this one run (never between runs), n = clean gaps.
        Without usable gaps at one stream the median TPOT, caution `step_user_perceived`; else None
        with `decode_step_needs_gaps`, `gaps_hold_several_tokens` or `no_clean_gaps`.

    Notes
    -----
    Huber location of the gaps that overlap no estimated prefill. The mean gap, or mean TPOT, would
    hold the prefills too: 32 % too long at 8 streams, 200 % at 64 in one prompt mix.
    """
    refused = unusable_gaps(run)
    if refused is not None:
        return _perceived(run, refused)
    gaps = clean_gaps(run, prefill, window)
    clean, noisy = pool_noisy(gaps.filter("clean"))
    values = clean.sort("end_s")["gap_s"].to_numpy()
    if values.size < FEWEST_GAPS:
        few = caution("no_clean_gaps", clean=int(gaps["clean"].sum()), gaps=gaps.height)
        return Estimate(value=None, unit="s", n=int(values.size), cautions=(few,))
    floor = 0.0
    if noisy:
        # Stamps on a coarse grid leave means of few distinct values: their MAD says nothing.
        tenth, ninth = np.percentile(values, [10, 90])
        floor = float(ninth - tenth) / TENTHS_TO_SIGMA
    value = huber_location(values, floor)
    low = high = None
    if values.size >= FEWEST_GAPS * BLOCKS:
        parts = np.array([huber_location(part, floor) for part in np.array_split(values, BLOCKS)])
        half = float(stats.t.ppf(0.975, BLOCKS - 1) * parts.std(ddof=1) / np.sqrt(BLOCKS))
        low, high = value - half, value + half
    return Estimate(
        value=value,
        low=low,
        high=high,
        confidence=0.95 if low is not None else None,
        unit="s",
        n=int(values.size),
        cautions=(
            *(c for c in prefill.cautions if c.code == "no_unloaded_reference"),
            *((caution("noisy_stamps", pooled=POOLED),) if noisy else ()),
        ),
    )


def pool_noisy(clean: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """Average consecutive clean gaps of a request where single ones are mostly the client's noise.

    Returns
    -------
    tuple
        `request_index, end_s, gap_s, batch` of single gaps, or of means over four to eight, and
        whether they were pooled. A token stamped late makes one gap long and the next short (two
        stamped together make a gap of 0): their mean is right, their median is not.
    """
    columns = ("request_index", "end_s", "gap_s", "batch")
    single = clean.select(*columns)
    if clean.height < FEWEST_GAPS:
        return single, False
    ordered = clean.sort("request_index", "position").with_columns(
        # Constant along a stretch without a missing gap.
        stretch=pl.col("position") - pl.int_range(pl.len()).over("request_index")
    )
    values = ordered["gap_s"].to_numpy()
    low, middle, high = np.percentile(values, [10, 50, 90])
    same = ordered.select(
        (pl.col("request_index") == pl.col("request_index").shift(1))
        & (pl.col("stretch") == pl.col("stretch").shift(1))
    ).to_series()
    follows = same.fill_null(False).to_numpy()[1:]
    # Clipped, so that a single stall does not decide.
    around = np.clip(values, low, high)
    around = around - around.mean()
    variance = float((around**2).mean())
    if high - low <= NOISY_SPREAD * middle or variance == 0 or not follows.any():
        return single, False
    if float((around[1:] * around[:-1])[follows].mean()) / variance > NOISY_CORRELATION:
        return single, False
    ordered = ordered.with_columns(
        part=pl.int_range(pl.len()).over("request_index", "stretch") // POOLED
    )
    means = (
        ordered.group_by("request_index", "stretch", "part", maintain_order=True)
        .agg(pl.col("end_s").last(), pl.col("gap_s").mean(), pl.col("batch").mean(), n=pl.len())
        .filter(pl.col("n") >= FEWEST_POOLED)
        .select(*columns)
    )
    return (means, True) if means.height >= FEWEST_GAPS else (single, False)


def _thinned(run: Run) -> Run:
    total = run.gaps["gaps_s"].list.len().sum() if run.gaps.height else 0
    every = -(-int(total) // MOST_GAPS)
    if every <= 1:
        return run
    kept = run.gaps.filter(pl.col("request_index") % every == 0)
    return Run(info=run.info, requests=run.requests, gaps=kept, cautions=run.cautions)


def unusable_gaps(run: Run) -> Caution | None:
    """Why the gaps of a run are no decode steps, if they are not."""
    rows = (
        run.requests.filter(pl.col("status") == "ok", pl.col("output_tokens") > 1)
        .select("request_index", "output_tokens")
        .join(run.gaps.select("request_index", "gaps_s"), on="request_index")
        .filter(pl.col("gaps_s").list.len() > 0)
    )
    if rows.is_empty():
        return caution("decode_step_needs_gaps")
    sizes = rows.select(
        ((pl.col("output_tokens") - 1) / pl.col("gaps_s").list.len()).median()
    ).item()
    gaps = rows["gaps_s"].explode()
    median, mean = gaps.median(), gaps.mean()
    if sizes > TOKENS_PER_EVENT or median < BURSTY * mean:  # type: ignore[operator]
        return caution("gaps_hold_several_tokens", tokens=float(sizes))
    return None


def _perceived(run: Run, refused: Caution) -> Estimate:
    rows = run.requests.filter(pl.col("status") == "ok", pl.col("output_tokens") >= 8)
    tpot = rows["tpot_s"].drop_nulls()
    if run.info.get("max_concurrency") != 1 or tpot.is_empty():
        return Estimate(value=None, unit="s", cautions=(refused,))
    return Estimate(
        value=float(tpot.median()),  # type: ignore[arg-type]
        unit="s",
        n=tpot.len(),
        cautions=(caution("step_user_perceived"),),
    )


def _overlaps(
    start: np.ndarray, end: np.ndarray, opened: np.ndarray, closed: np.ndarray
) -> np.ndarray:
    """Whether each [start, end) meets the union of [opened, closed)."""
    real = closed > opened
    if not real.any():
        return np.zeros(start.size, bool)
    order = np.argsort(opened[real])
    left, right = opened[real][order], np.maximum.accumulate(closed[real][order])
    # The first interval whose running maximum of ends lies beyond the gap's start.
    where = np.searchsorted(right, start, side="right")
    inside = where < right.size
    # A later interval may open before the gap ends although this one does not; the earliest of the
    # rest opens first because they are sorted.
    meets: np.ndarray = inside & (left[np.minimum(where, left.size - 1)] < end)
    return meets


def _progress(
    moments: np.ndarray, opened: np.ndarray, closed: np.ndarray, tokens: np.ndarray
) -> np.ndarray:
    """Prompt tokens prefilled by each moment, each prompt evenly over its interval."""
    real = closed > opened
    if not real.any():
        return np.zeros(moments.size)
    edges = np.concatenate([opened[real], closed[real]])
    rate = tokens[real] / (closed[real] - opened[real])
    slope = np.concatenate([rate, -rate])
    order = np.argsort(edges, kind="stable")
    edges, slope = edges[order], np.cumsum(slope[order])
    level = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(edges))])
    where = np.searchsorted(edges, moments, side="right") - 1
    at = np.maximum(where, 0)
    return np.where(where >= 0, level[at] + slope[at] * (moments - edges[at]), 0.0)
