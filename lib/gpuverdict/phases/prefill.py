"""How long does a prompt of n tokens take when nobody else is there?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from gpuverdict.errors import Caution
from gpuverdict.schema import Run
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["PrefillModel", "fit_prefill", "prefill_envelope"]

FEWEST_LENGTHS = 4
LONGEST_TO_SHORTEST = 16
SMALLEST_R2 = 0.8
CACHE_HIT_RATIO = 0.8
CACHED_SHARE = 0.05
REPEATS_TO_JUDGE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillModel:
    """Unloaded time to first token by prompt length, and how it is known.

    `kind`: `quadratic` (c0 + c1 n + c2 n^2), `linear` (c2 not identified), `by_length` (medians at
    the very lengths probed, unknown elsewhere), `envelope` (no probe: a lower bound, so every
    excess above it is one too), `none`. c0 bundles network, tokeniser, scheduler and one step; it
    is never "the network". `chunk_tokens`: prompt tokens a prefill step takes at most (0: the whole
    prompt, None: not known); `chunk_step_s` is what every step after the first one adds.
    """

    kind: Literal["quadratic", "linear", "by_length", "envelope", "none"]
    c0_s: Estimate | None = None
    c1_s_per_token: Estimate | None = None
    c2_s_per_token2: Estimate | None = None
    chunk_tokens: int | None = None
    chunk_step_s: float = 0.0
    lengths: np.ndarray = field(default_factory=lambda: np.empty(0))
    times_s: np.ndarray = field(default_factory=lambda: np.empty(0))
    r2: float | None = None
    n: int = 0
    cautions: tuple[Caution, ...] = ()

    def predict(self, tokens: np.ndarray) -> np.ndarray:
        """Give the unloaded time (seconds) at prompt lengths; NaN where nothing is known."""
        tokens = np.asarray(tokens, float)
        if self.c0_s is not None:
            c0, c1, c2 = (
                0.0 if term is None else term.value or 0.0
                for term in (self.c0_s, self.c1_s_per_token, self.c2_s_per_token2)
            )
            steps = self.chunk_step_s * _more_chunks(tokens, self.chunk_tokens)
            return np.maximum(c0 + c1 * tokens + c2 * tokens**2 + steps, 0.0)
        if self.kind == "none" or self.lengths.size == 0:
            return np.full(tokens.shape, np.nan)
        if self.kind == "envelope":
            where = np.searchsorted(self.lengths, tokens, side="left")
            found = self.times_s[np.minimum(where, self.lengths.size - 1)]
            return np.where(np.isnan(tokens), np.nan, found)
        where = np.clip(np.searchsorted(self.lengths, tokens), 0, self.lengths.size - 1)
        return np.where(self.lengths[where] == tokens, self.times_s[where], np.nan)

    def rate_tokens_per_s(self, tokens: float) -> float | None:
        """Prefill rate at a stated prompt length: 1 / (c1 + 2 c2 n); None without a fit.

        The step that each chunk adds is not in it: it is a cost of the chunk size, not a token's.
        """
        if self.c1_s_per_token is None:
            return None
        c2 = 0.0 if self.c2_s_per_token2 is None else self.c2_s_per_token2.value or 0.0
        slope = (self.c1_s_per_token.value or 0.0) + 2 * c2 * tokens
        return 1.0 / slope if slope > 0 else None

    def __str__(self) -> str:
        if self.c1_s_per_token is not None:
            slope = 1e6 * (self.c1_s_per_token.value or 0.0)
            return f"prefill {self.kind}: c0 {self.c0_s}, {slope:.4g} µs a token (n = {self.n})"
        known = ", ".join(f"{int(length)}" for length in self.lengths[:6])
        return f"prefill {self.kind}: {known or 'nothing known'} (n = {self.n})"


def fit_prefill(probes: Sequence[Run]) -> PrefillModel:
    """Fit the unloaded time to first token over prompt length from concurrency-1 runs.

    Parameters
    ----------
    probes : sequence of Run
        Runs with one stream; several lengths in one run or one run a length.

    Returns
    -------
    PrefillModel
        Quadratic where at least four lengths spanning a factor of 16 support it, else the medians
        by length. Cautions name why: `prefill_few_lengths`, `prefill_narrow_lengths`,
        `prefill_rejected`, `prefix_cache_hits`.

    Notes
    -----
    TTFT = c0 + c1 n + c2 n^2 by weighted least squares, weights 1/TTFT^2 (equal relative errors);
    the first request of each probe warms kernels and is left out where more than one is there.
    Rejected when c1 <= 0 or R^2 < 0.8. With chunked prefill every chunk adds a step that looks like
    n^2 (c2 biased by +23 to +30 %). Where the probes' `prefill_chunk_tokens` is known, s * (chunks
    - 1) is a term of its own; s is the decode step of the probes themselves (their TPOT at the
    shortest length, a step without prompt tokens), unless the probes contradict that, and then a
    fitted one. Where it is not known, c2 carries the caution `prefill_chunk_unknown`.
    """
    rows = _probe_rows(probes)
    if rows.is_empty():
        return PrefillModel(kind="none", cautions=(caution("no_prefill_probe"),))
    hits = _cache_hits(rows)
    if hits is not None:
        return PrefillModel(kind="none", n=rows.height, cautions=(hits,))
    tokens, ttft = rows["input_tokens"].to_numpy().astype(float), rows["ttft_s"].to_numpy()
    lengths = np.unique(tokens)
    medians = np.array([np.median(ttft[tokens == length]) for length in lengths])

    def by_length(*why: Caution) -> PrefillModel:
        return PrefillModel(
            kind="by_length", lengths=lengths, times_s=medians, n=rows.height, cautions=why
        )

    if lengths.size < FEWEST_LENGTHS:
        return by_length(
            caution("prefill_few_lengths", lengths=int(lengths.size), needed=FEWEST_LENGTHS)
        )
    wide = lengths[-1] >= LONGEST_TO_SHORTEST * lengths[0]
    chunk = _chunk_tokens(probes)
    step_s = _chunk_step(rows, chunk) if wide else 0.0
    steps = step_s * _more_chunks(tokens, chunk)
    fit = _least_squares(tokens, ttft, 2 if wide else 1, steps)
    if wide and fit is not None and fit.values[2] < 0:
        # A negative curvature is noise about a straight line: no prefill gets cheaper by length.
        straight = _least_squares(tokens, ttft, 1, steps)
        fit = straight if straight is not None and straight.values[1] > 0 else fit
    if fit is None or fit.values[1] <= 0 or fit.r2 < SMALLEST_R2:
        r2 = 0.0 if fit is None else fit.r2
        c1 = 0.0 if fit is None else fit.values[1]
        return by_length(caution("prefill_rejected", c1_us=1e6 * c1, r2=r2))
    estimates = fit.estimates()
    if len(estimates) == 3 and chunk is None:
        unknown = (caution("prefill_chunk_unknown"),)
        estimates[2] = replace(estimates[2], cautions=unknown)
    narrow = () if wide else (caution("prefill_narrow_lengths", factor=lengths[-1] / lengths[0]),)
    return PrefillModel(
        kind="quadratic" if len(estimates) == 3 else "linear",
        c0_s=estimates[0],
        c1_s_per_token=estimates[1],
        c2_s_per_token2=estimates[2] if len(estimates) == 3 else None,
        chunk_tokens=chunk,
        chunk_step_s=step_s,
        lengths=lengths,
        times_s=medians,
        r2=fit.r2,
        n=rows.height,
        cautions=narrow,
    )


def _chunk_tokens(probes: Sequence[Run]) -> int | None:
    """Prompt tokens a prefill step takes at most; None where probes differ or do not say."""
    known = {probe.info.get("prefill_chunk_tokens") for probe in probes}
    return known.pop() if len(known) == 1 else None


def _more_chunks(tokens: np.ndarray, chunk_tokens: int | None) -> np.ndarray:
    """Prefill steps of a prompt beyond the first."""
    if not chunk_tokens:
        return np.zeros_like(tokens)
    steps: np.ndarray = np.maximum(np.ceil(tokens / chunk_tokens) - 1.0, 0.0)
    return steps


def _chunk_step(rows: pl.DataFrame, chunk_tokens: int | None) -> float:
    """Seconds that a prefill step adds beside its tokens: the decode step, unless refuted."""
    tokens, ttft = rows["input_tokens"].to_numpy().astype(float), rows["ttft_s"].to_numpy()
    more = _more_chunks(tokens, chunk_tokens)
    if np.unique(more).size < 2:
        return 0.0
    free = _least_squares(tokens, ttft, 2, extra=more)
    shortest = rows.filter(pl.col("input_tokens") == pl.col("input_tokens").min())["tpot_s"]
    decode_s = shortest.drop_nulls().median()
    if free is None:
        return float(decode_s or 0.0)  # type: ignore[arg-type]
    fitted = free.estimates()[-1]
    if decode_s is not None and fitted.low <= decode_s <= fitted.high:  # type: ignore[operator]
        return float(decode_s)  # type: ignore[arg-type]
    return max(0.0, fitted.value or 0.0)


def prefill_envelope(run: Run) -> PrefillModel:
    """Take the lower envelope of a loaded run's own TTFT: what no prompt of that length beats.

    Returns
    -------
    PrefillModel
        Non-decreasing in length, with the caution `no_unloaded_reference`: it holds queue and
        interference of the luckiest request, so the excess above it is a lower bound.
    """
    rows = run.requests.filter(pl.col("ttft_s") > 0, pl.col("input_tokens") > 0).sort(
        "input_tokens"
    )
    said = (caution("no_unloaded_reference"),)
    if rows.is_empty():
        return PrefillModel(kind="none", cautions=said)
    tokens, ttft = rows["input_tokens"].to_numpy().astype(float), rows["ttft_s"].to_numpy()
    floor = np.minimum.accumulate(ttft[::-1])[::-1]
    lengths, first = np.unique(tokens, return_index=True)
    return PrefillModel(
        kind="envelope", lengths=lengths, times_s=floor[first], n=rows.height, cautions=said
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    values: np.ndarray
    errors: np.ndarray
    r2: float
    n: int

    def estimates(self) -> list[Estimate]:
        units = ("s", "s_per_token", "s_per_token2", "s")
        half = stats.t.ppf(0.975, max(1, self.n - self.values.size)) * self.errors
        return [
            Estimate(
                value=float(v), low=float(v - h), high=float(v + h), confidence=0.95,
                unit=unit, n=self.n,
            )
            for v, h, unit in zip(self.values, half, units, strict=False)
        ]  # fmt: skip


def _least_squares(
    tokens: np.ndarray,
    ttft: np.ndarray,
    degree: int,
    known_s: np.ndarray | None = None,
    extra: np.ndarray | None = None,
) -> _Fit | None:
    """Fit a polynomial of the length to TTFT less what is known of it; `extra` is a term more."""
    # Kilotokens keep the columns of similar size; the scale is undone on the way out.
    scale = 1000.0 ** np.arange(degree + 1)
    design = (tokens[:, None] / 1000.0) ** np.arange(degree + 1)
    if extra is not None:
        design, scale = np.column_stack([design, extra]), np.append(scale, 1.0)
    n, terms = design.shape
    if n <= terms:
        return None
    rows = design / ttft[:, None]
    target = np.ones(n) if known_s is None else 1.0 - known_s / ttft
    values, _, rank, _ = np.linalg.lstsq(rows, target, rcond=None)
    if rank < terms:
        return None
    left = target - rows @ values
    covariance = np.linalg.inv(rows.T @ rows) * float(left @ left) / (n - terms)
    weight = 1.0 / ttft**2
    middle = np.average(ttft, weights=weight)
    total = float((weight * (ttft - middle) ** 2).sum())
    r2 = 1.0 - float(left @ left) / total if total > 0 else 0.0
    return _Fit(values=values / scale, errors=np.sqrt(np.diag(covariance)) / scale, r2=r2, n=n)


def _probe_rows(probes: Sequence[Run]) -> pl.DataFrame:
    kept = []
    for probe in probes:
        rows = probe.requests.filter(
            pl.col("status") == "ok",
            pl.col("ttft_s") > 0,
            pl.col("input_tokens") > 0,
            pl.col("phase") != "warmup",
        ).select(
            "request_index", "start_s", "input_tokens", "cached_input_tokens", "ttft_s", "tpot_s"
        )
        rows = rows.sort("start_s", "request_index", nulls_last=True)
        kept.append(rows.slice(1) if rows.height > 1 else rows)
    empty = pl.DataFrame(schema={"input_tokens": pl.Int64, "ttft_s": pl.Float64})
    return pl.concat(kept) if kept else empty


def _cache_hits(rows: pl.DataFrame) -> Caution | None:
    """Find prompts served from a prefix cache: said by the log, or told by later repeats' speed."""
    # A shared system prompt of a few tokens is no hit.
    share = pl.col("cached_input_tokens").fill_null(0) / pl.col("input_tokens")
    cached = rows.filter(share > CACHED_SHARE).height
    if cached:
        return caution("prefix_cache_hits", n=cached)
    for _, same in rows.group_by("input_tokens", maintain_order=True):
        ttft = same["ttft_s"].to_numpy()
        if ttft.size < REPEATS_TO_JUDGE:
            continue
        early, late = np.array_split(ttft, 2)
        if np.median(late) < CACHE_HIT_RATIO * np.median(early):
            return caution("prefix_cache_hits", n=int(late.size))
    return None
