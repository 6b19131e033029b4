"""What the server did over time, as cumulative counts: decode tokens, decode steps, prefill tokens.

A cumulative count is a piecewise linear function, so that its mean rate over any window (the box of
a power sensor) is exact and costs two look-ups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuverdict.schema import Run

__all__ = ["Activity", "Ramp", "activity_of"]

# A token is made in one step; a longer gap held a stall, which is no decoding of this request.
_LONGEST_STEP_IN_GAPS = 1.5


@dataclass(frozen=True, slots=True)
class Ramp:
    """A cumulative count over seconds; 0 before its first knot, constant after its last."""

    times_s: np.ndarray
    total: np.ndarray

    def at(self, times_s: np.ndarray) -> np.ndarray:
        """Give the count up to each time."""
        if not len(self.times_s):
            return np.zeros(np.shape(times_s))
        return np.interp(times_s, self.times_s, self.total)

    def rate(self, end_s: np.ndarray, width_s: float) -> np.ndarray:
        """Give the mean rate over the `width_s` seconds before each time.

        Examples
        --------
        >>> Ramp(np.array([0.0, 2.0]), np.array([0.0, 10.0])).rate(np.array([1.0, 3.0]), 1.0)
        array([5., 0.])
        """
        return (self.at(end_s) - self.at(end_s - width_s)) / width_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Decode tokens, decode steps and prefill tokens of one run, in seconds since its t0."""

    decode_tokens: Ramp
    steps: Ramp
    prefill_tokens: Ramp

    def regressors(self, end_s: np.ndarray, width_s: float) -> np.ndarray:
        """Stack the three rates over trailing windows: columns steps, decode, prefill per s."""
        ramps = (self.steps, self.decode_tokens, self.prefill_tokens)
        return np.column_stack([ramp.rate(end_s, width_s) for ramp in ramps])


def activity_of(run: Run, prefill_s: np.ndarray | None = None, overhead_s: float = 0.0) -> Activity:
    """Work out the activity of a run from what its client saw.

    Parameters
    ----------
    run : Run
        `start_s`, `first_token_s`, `last_token_s`, token counts; gaps where there are any.
    prefill_s : numpy.ndarray, optional
        Expected duration of each request's prefill, in the order of `run.requests`; the prefill is
        taken to end at the first token. Unknown (NaN) or longer than the time to first token, the
        whole of that is taken.
    overhead_s : float
        Part of a prefill's duration that does not grow with its length (`c0_s` of the model):
        prompts prefilled together share it.

    Notes
    -----
    Prompts whose first tokens come together were prefilled together: their prefills are laid one
    before the other, as the device worked through them. A token is spread over the gap before it,
    but over no more than one and a half median gaps of its request. A decode step counts once for
    the batch it served: each token weighs 1 / b, with b the requests between first and last token
    at that moment. Requests that the client cut go on unseen on some servers; their later tokens
    are not in it.
    """
    rows = run.requests.with_row_index("row").filter(
        pl.col("first_token_s").is_not_null() & pl.col("start_s").is_not_null()
    )
    start = rows["start_s"].to_numpy()
    first = rows["first_token_s"].to_numpy()
    last = rows["last_token_s"].fill_null(rows["first_token_s"]).to_numpy()
    tokens = rows["output_tokens"].fill_null(0).to_numpy().astype(float)
    ttft = np.maximum(first - start, 1e-4)
    expected = ttft if prefill_s is None else prefill_s[rows["row"].to_numpy()]
    length = np.where(np.isfinite(expected), np.clip(expected, 1e-4, ttft), ttft)
    prompt = rows["input_tokens"].fill_null(0) - rows["cached_input_tokens"].fill_null(0)
    began, ended = _one_after_another(start, first, length, overhead_s)
    prefill = _spread(began, ended, np.maximum(prompt.to_numpy().astype(float), 0.0))
    began, ended, weight = _tokens(run, rows, first, last, tokens)
    order_first, order_last = np.sort(first), np.sort(last)
    # Stamps of one step differ by what the client's loop takes; the batch is that just before.
    batch = np.searchsorted(order_first, ended, "left") - np.searchsorted(order_last, ended, "left")
    steps = _spread(began, ended, weight / np.maximum(batch, 1))
    return Activity(
        decode_tokens=_spread(began, ended, weight), steps=steps, prefill_tokens=prefill
    )


def _one_after_another(
    start: np.ndarray, first: np.ndarray, length: np.ndarray, overhead_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """Lay prefills back from the last first token, without overlap, none before its request."""
    began, ended = np.empty(len(first)), np.empty(len(first))
    free = np.inf
    for i in np.argsort(first, kind="stable")[::-1]:
        ended[i] = min(first[i], max(free, start[i] + 1e-4))
        together = ended[i] < first[i]
        alone = max(length[i] - overhead_s, 1e-4) if together else length[i]
        began[i] = max(ended[i] - alone, start[i])
        free = began[i]
    return began, ended


def _tokens(
    run: Run, rows: pl.DataFrame, first: np.ndarray, last: np.ndarray, tokens: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give begin, end and weight of every decoded token or chunk after the first."""
    held = rows.select("request_index").with_columns(
        pl.Series("first", first), pl.Series("last", last), pl.Series("tokens", tokens)
    )
    gaps = run.gaps.filter(pl.col("gaps_s").list.len() > 0).select("request_index", "gaps_s")
    if gaps["request_index"].n_unique() < gaps.height:
        gaps = gaps.unique("request_index", keep="first", maintain_order=True)
    stamped = held.join(gaps, on="request_index", how="inner")
    parts = []
    if stamped.height:
        counts = stamped["gaps_s"].list.len().to_numpy()
        flat = stamped["gaps_s"].explode().fill_null(0.0).to_numpy().astype(float)
        inside = np.cumsum(flat)
        before = np.concatenate([[0.0], inside[np.cumsum(counts)[:-1] - 1]])
        ended = np.repeat(stamped["first"].to_numpy() - before, counts) + inside
        usual = np.repeat(stamped["gaps_s"].list.median().to_numpy(), counts)
        began = ended - np.clip(flat, 1e-6, np.maximum(_LONGEST_STEP_IN_GAPS * usual, 1e-6))
        each = np.maximum(stamped["tokens"].to_numpy() - 1.0, 0.0) / counts
        parts.append((began, ended, np.repeat(each, counts)))
    spread = held.join(gaps, on="request_index", how="anti").filter(
        (pl.col("last") > pl.col("first")) & (pl.col("tokens") > 1)
    )
    if spread.height:
        parts.append(_even(*(spread[name].to_numpy() for name in ("first", "last", "tokens"))))
    if not parts:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    began, ended, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    return began, ended, weight


def _even(
    first: np.ndarray, last: np.ndarray, tokens: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counts = (tokens - 1).astype(int)
    step = np.repeat((last - first) / counts, counts)
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    began = np.repeat(first, counts) + place * step
    return began, began + step, np.ones(len(began))


def _spread(began: np.ndarray, ended: np.ndarray, weight: np.ndarray) -> Ramp:
    """Accumulate weights, each spread evenly over its own interval."""
    if not len(began):
        return Ramp(np.zeros(0), np.zeros(0))
    slope = weight / np.maximum(ended - began, 1e-9)
    times = np.concatenate([began, np.maximum(ended, began + 1e-9)])
    change = np.concatenate([slope, -slope])
    order = np.argsort(times, kind="stable")
    times, slopes = times[order], np.cumsum(change[order])
    total = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(times))])
    return Ramp(times, np.maximum.accumulate(total))
