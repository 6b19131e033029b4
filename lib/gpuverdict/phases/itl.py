"""The cost of a token by batch, by prefill beside it, and by its place in the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from gpuverdict.errors import Caution
from gpuverdict.phases.decode import (
    BLOCKS,
    FEWEST_GAPS,
    clean_gaps,
    pool_noisy,
    unusable_gaps,
)
from gpuverdict.phases.huber import huber_regression
from gpuverdict.phases.prefill import PrefillModel
from gpuverdict.schema import Run
from gpuverdict.steady import Window
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["ItlModel", "PositionEffect", "fit_itl", "itl_by_position"]

FEWEST_LEVELS = 3
LEVEL_SPAN = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ItlModel:
    """gap = alpha + beta * batch + gamma * prefill tokens of others in the gap, pooled over levels.

    beta includes the cost of the mean context: batch and KV length are not separable at one
    distribution of context lengths. Parameters are None where the levels do not identify them.
    """

    alpha_s: Estimate
    beta_s: Estimate
    gamma_s_per_token: Estimate
    n_levels: int
    n_gaps: int
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        return f"step = {self.alpha_s} + {self.beta_s} a request ({self.n_levels} levels)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionEffect:
    """How the gap between tokens grows along the output: first tenth, last tenth, slope."""

    first_tenth_s: float | None
    last_tenth_s: float | None
    slope_s_per_1000_tokens: Estimate
    n_gaps: int
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        return f"gap slope {self.slope_s_per_1000_tokens} per 1,000 context tokens"


def fit_itl(runs: Sequence[Run], prefill: PrefillModel) -> ItlModel:
    """Fit step time against batch and prefill, pooled over the levels of an arm.

    Parameters
    ----------
    runs : sequence of Run
        At least three levels spanning a factor of eight in streams; at one level alpha and beta
        cannot be told apart.
    prefill : PrefillModel
        Of the same server.

    Returns
    -------
    ItlModel
        95 % intervals from a jackknife over ten stretches of time of all runs: within these runs.
        `levels_too_close` where alpha and beta are not identified.

    Notes
    -----
    alpha and beta by Huber regression on clean gaps, gamma by the Huber slope of what the other
    gaps have above alpha + beta b. Plain least squares would give beta 10 to 37 % too high.
    """
    clean: list[pl.DataFrame] = []
    stalled: list[pl.DataFrame] = []
    for run in runs:
        if unusable_gaps(run) is not None:
            continue
        gaps = clean_gaps(run, prefill)
        own, _ = pool_noisy(gaps.filter("clean"))
        held = gaps.filter(~pl.col("clean"), pl.col("prefill_tokens") > 0)
        clean.append(_in_blocks(own.with_columns(pl.col("batch").cast(pl.Float64))))
        stalled.append(_in_blocks(held.select("end_s", "gap_s", "batch", "prefill_tokens")))
    sizes = [float(np.median(t["batch"].to_numpy())) for t in clean if t.height]
    levels = sorted({size for size in sizes if size > 0})
    n_levels, n_gaps = len(levels), sum(t.height for t in (*clean, *stalled))
    none = Estimate(value=None, unit="s")
    if n_levels < FEWEST_LEVELS or levels[-1] < LEVEL_SPAN * levels[0]:
        said = caution("levels_too_close", levels=n_levels, needed=FEWEST_LEVELS, span=LEVEL_SPAN)
        return ItlModel(
            alpha_s=none, beta_s=none, gamma_s_per_token=Estimate(value=None, unit="s_per_token"),
            n_levels=n_levels, n_gaps=n_gaps, cautions=(said,),
        )  # fmt: skip
    free, hit = pl.concat(clean), pl.concat(stalled)
    whole = _itl_parameters(free, hit)
    others = [pl.col("block") != k for k in range(BLOCKS)]
    parts = np.array([_itl_parameters(free.filter(o), hit.filter(o), whole) for o in others])
    spread = np.sqrt((BLOCKS - 1) / BLOCKS * ((parts - parts.mean(axis=0)) ** 2).sum(axis=0))
    half = stats.t.ppf(0.975, BLOCKS - 1) * spread
    unknown = Estimate(value=None, unit="s_per_token")
    alpha, beta, gamma = (
        Estimate(
            value=float(v), low=float(v - h), high=float(v + h), confidence=0.95, unit=unit,
            n=n_gaps,
        )
        for v, h, unit in zip(whole, half, ("s", "s", "s_per_token"), strict=True)
    )  # fmt: skip
    return ItlModel(
        alpha_s=alpha, beta_s=beta,
        gamma_s_per_token=gamma if np.isfinite(whole[2]) else unknown,
        n_levels=n_levels, n_gaps=n_gaps, cautions=(),
    )  # fmt: skip


def itl_by_position(
    run: Run, prefill: PrefillModel, window: Window | None = None
) -> PositionEffect:
    """Say how the gap between tokens grows with the position in the output.

    Returns
    -------
    PositionEffect
        Median clean gap of the first and last tenth of each output, and the slope per 1,000 tokens
        of context (prompt and output so far) with batch held constant.

    Notes
    -----
    Huber regression of clean gaps on context and batch. Above one stream a step pays for the
    context of the whole batch, so the slope of one request's own context is diluted.
    """
    none = Estimate(value=None, unit="s")
    refused = unusable_gaps(run)
    if refused is not None:
        return PositionEffect(first_tenth_s=None, last_tenth_s=None, slope_s_per_1000_tokens=none,
                              n_gaps=0, cautions=(refused,))  # fmt: skip
    gaps = (
        clean_gaps(run, prefill, window)
        .filter("clean")
        .join(run.requests.select("request_index", "input_tokens"), on="request_index")
        .join(
            run.gaps.select("request_index", total=pl.col("gaps_s").list.len().cast(pl.Int64)),
            on="request_index",
        )
        .with_columns(context=pl.col("input_tokens").fill_null(0) + pl.col("position"))
    )
    first = gaps.filter(10 * pl.col("position") <= pl.col("total"))["gap_s"].median()
    last = gaps.filter(10 * pl.col("position") > 9 * pl.col("total"))["gap_s"].median()
    slope = none
    if gaps.height >= FEWEST_GAPS * BLOCKS and gaps["context"].n_unique() > 2:
        columns = [gaps["context"].to_numpy() / 1000.0]
        if gaps["batch"].n_unique() > 1:
            columns.append(gaps["batch"].to_numpy().astype(float))
        design = np.column_stack([np.ones(gaps.height), *columns])
        values = gaps["gap_s"].to_numpy()
        block = np.arange(gaps.height) * BLOCKS // gaps.height
        whole = huber_regression(design, values)
        parts = np.array(
            [huber_regression(design[block != k], values[block != k], whole) for k in range(BLOCKS)]
        )[:, 1]
        spread = np.sqrt((BLOCKS - 1) / BLOCKS * ((parts - parts.mean()) ** 2).sum())
        half = float(stats.t.ppf(0.975, BLOCKS - 1) * spread)
        slope = Estimate(
            value=float(whole[1]), low=float(whole[1]) - half, high=float(whole[1]) + half,
            confidence=0.95, unit="s", n=gaps.height,
        )  # fmt: skip
    return PositionEffect(
        first_tenth_s=None if first is None else float(first),  # type: ignore[arg-type]
        last_tenth_s=None if last is None else float(last),  # type: ignore[arg-type]
        slope_s_per_1000_tokens=slope,
        n_gaps=gaps.height,
    )


def _in_blocks(table: pl.DataFrame) -> pl.DataFrame:
    """Number ten stretches of equal count along time, for the jackknife."""
    block = np.arange(table.height) * BLOCKS // max(1, table.height)
    return table.sort("end_s").with_columns(block=pl.Series(block, dtype=pl.Int64))


def _itl_parameters(
    clean: pl.DataFrame, stalled: pl.DataFrame, start: np.ndarray | None = None
) -> np.ndarray:
    """alpha and beta of clean gaps, gamma of stalled ones (NaN with too few)."""
    batch = clean["batch"].to_numpy()
    design = np.column_stack([np.ones(batch.size), batch])
    line = huber_regression(design, clean["gap_s"].to_numpy(), None if start is None else start[:2])
    if stalled.height < FEWEST_GAPS:
        return np.append(line, np.nan)
    above = stalled["gap_s"].to_numpy() - line[0] - line[1] * stalled["batch"].to_numpy()
    gamma = huber_regression(stalled["prefill_tokens"].to_numpy()[:, None], above)
    return np.append(line, gamma)
