"""Who was in flight when, and at which moment every token was made.

Both are step functions of the request rows; the steady window, the throughput, the observed
concurrency and the decode batch are all read from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuverdict.schema import Run

if TYPE_CHECKING:
    from gpuverdict.steady.window import Window

__all__ = [
    "below_peak_ratio",
    "in_flight",
    "mean_concurrency",
    "step_function",
    "sustained_peak",
    "time_mean",
    "token_events",
    "tokens_in_window",
    "uncounted",
]


# Sums of a request's gaps differ by less from its end, whichever way they are added, as a share of
# the time since the start of the run.
_EDGE_RATIO = 1e-9


def step_function(start_s: np.ndarray, end_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count the intervals [start, end) that are open from each change on.

    Parameters
    ----------
    start_s, end_s : ndarray
        Ends of the intervals, in seconds; an interval with end <= start counts nothing.

    Returns
    -------
    tuple of ndarray
        Times of change, strictly increasing, and the count from each of them to the next.

    Examples
    --------
    >>> step_function(np.array([0.0, 1.0]), np.array([2.0, 3.0]))
    (array([0., 1., 2., 3.]), array([1, 2, 1, 0]))
    """
    real = end_s > start_s
    moments = np.concatenate([start_s[real], end_s[real]])
    steps = np.concatenate([np.ones(real.sum(), int), -np.ones(real.sum(), int)])
    if moments.size == 0:
        return np.empty(0), np.empty(0, int)
    times, where = np.unique(moments, return_inverse=True)
    change = np.bincount(where, weights=steps, minlength=times.size)
    count = np.cumsum(change).round().astype(int)
    # A request that ends as another starts changes nothing: such moments are no steps.
    keep = np.concatenate([[True], np.diff(count) != 0])
    return times[keep], count[keep]


def time_mean(times: np.ndarray, count: np.ndarray, start_s: float, end_s: float) -> float | None:
    """Average a step function over a stretch of time; it is 0 before its first change.

    Examples
    --------
    >>> time_mean(np.array([0.0, 1.0, 2.0]), np.array([1, 2, 0]), 0.0, 2.0)
    1.5
    """
    if not end_s > start_s:
        return None
    if times.size == 0:
        return 0.0
    edges = np.clip(np.append(times, np.inf), start_s, end_s)
    return float(np.dot(np.diff(edges), count) / (end_s - start_s))


def request_ends(requests: pl.DataFrame) -> pl.Series:
    """Say when each request left the server, as far as the log knows; null where it never started.

    A cut request ends at its last token: what happened after that, nobody saw.
    """
    cut = pl.col("status") == "incomplete"
    return requests.select(
        pl.when(cut)
        .then(pl.coalesce("last_token_s", "first_token_s", "end_s", "start_s"))
        .otherwise(pl.coalesce("end_s", "last_token_s", "first_token_s", "start_s"))
    ).to_series()


def in_flight(run: Run) -> pl.DataFrame:
    """Count the requests in flight over time.

    Every request sent counts, whatever became of it; a cut one ends at its last token.

    Returns
    -------
    polars.DataFrame
        `time_s` (seconds since the run's t0) and `n` in flight from then to the next row. Empty
        where the log has no start times.

    Notes
    -----
    n(t) = #{i : start_i <= t < end_i}, exact. It is the client's view: requests that wait in the
    server count, those that wait in the client do not.
    """
    requests = run.requests.filter(pl.col("start_s").is_not_null(), pl.col("phase") != "probe")
    times, count = step_function(requests["start_s"].to_numpy(), request_ends(requests).to_numpy())
    return pl.DataFrame({"time_s": times, "n": count}, schema={"time_s": pl.Float64, "n": pl.Int64})


def mean_concurrency(run: Run, window: Window) -> float | None:
    """Say how many requests were in flight in the window on average; None without start times."""
    flight = in_flight(run)
    if flight.is_empty() or window.end_s is None:
        return None
    return time_mean(
        flight["time_s"].to_numpy(), flight["n"].to_numpy(), window.start_s, window.end_s
    )


def sustained_peak(flight: pl.DataFrame) -> float:
    """Give the largest number in flight that lasted at least 1 % of the run.

    A client that stamps the end of one request after the start of the next shows one stream too
    many for moments; that is no load, and 90 % of it might never be reached again.
    """
    if flight.height < 2:
        return float(flight["n"].max() or 0)  # type: ignore[arg-type]
    times, count = flight["time_s"].to_numpy(), flight["n"].to_numpy()[:-1]
    order = np.argsort(-count, kind="stable")
    lasted = np.cumsum(np.diff(times)[order])
    return float(count[order][np.searchsorted(lasted, 0.01 * lasted[-1])])


def below_peak_ratio(run: Run) -> float | None:
    """Say for which share of the run fewer than 90 % of the peak were in flight (0-1)."""
    flight = in_flight(run)
    if flight.height < 2:
        return None
    times, count = flight["time_s"].to_numpy(), flight["n"].to_numpy()
    low = (count < 0.9 * sustained_peak(flight)).astype(int)
    return time_mean(times, low, float(times[0]), float(times[-1]))


def _producing(run: Run) -> pl.DataFrame:
    """Rows whose tokens count, with their number of tokens: finished and cut, never failed ones."""
    gaps = run.gaps.select("request_index", "gaps_s", "tokens_per_event")
    return (
        run.requests.filter(
            pl.col("status").is_in(["ok", "incomplete"]), pl.col("phase") != "probe"
        )
        .join(gaps, on="request_index", how="left", maintain_order="left")
        .with_columns(
            n_events=pl.when(pl.col("first_token_s").is_not_null())
            .then(pl.col("gaps_s").list.len().cast(pl.Int64) + 1)
            .otherwise(None)
        )
        .with_columns(
            # A cut request has no usage record; what was streamed is what was produced.
            n_tokens=pl.coalesce("output_tokens", "n_chunks", "n_events").cast(pl.Float64),
            # A request of many tokens and an empty list has no stamps, only a first and a last.
            stamped=(pl.col("gaps_s").list.len() > 0) | (pl.col("output_tokens") == 1),
        )
        .filter(pl.col("n_tokens") > 0)
        .with_columns(
            stamped=pl.col("stamped").fill_null(False) & pl.col("first_token_s").is_not_null()
        )
    )


def _stamped_events(rows: pl.DataFrame) -> pl.DataFrame:
    """Times and token counts of the events of requests that have gap lists."""
    known = (
        pl.col("tokens_per_event").is_not_null()
        & (pl.col("tokens_per_event").list.len().cast(pl.Int64) == pl.col("n_events"))
    ).fill_null(False)
    empty = pl.lit([], dtype=pl.List(pl.Float64))
    even = (pl.col("n_tokens") / pl.col("n_events").fill_null(1)).repeat_by(
        pl.col("n_events").fill_null(1)
    )
    return (
        rows.filter("stamped")
        .select(
            "request_index",
            time_s=pl.concat_list("first_token_s", pl.col("gaps_s").fill_null(empty)),
            tokens=pl.when(known)
            .then(pl.col("tokens_per_event").cast(pl.List(pl.Float64)))
            .otherwise(even),
        )
        .explode("time_s", "tokens")
        .with_columns(time_s=pl.col("time_s").cum_sum().over("request_index"))
    )


def _spread_bounds(rows: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """First and last token, number of tokens, and whether the first token's time is known."""
    spread = rows.filter(~pl.col("stamped")).with_columns(last=pl.coalesce("last_token_s", "end_s"))
    spread = spread.filter(
        pl.col("last").is_not_null() & pl.coalesce("first_token_s", "start_s").is_not_null()
    )
    first = spread.select(pl.coalesce("first_token_s", "start_s")).to_series().to_numpy()
    streamed = spread["first_token_s"].is_not_null().to_numpy()
    return first, spread["last"].to_numpy(), spread["n_tokens"].to_numpy(), streamed


def token_events(run: Run) -> pl.DataFrame:
    """Give the time of every output token, from the best source the log has.

    Returns
    -------
    polars.DataFrame
        `time_s` (since t0, ascending) and `tokens` made at that moment (not always whole: a chunk
        of unknown size carries its share). Tokens of failed and cancelled requests are left out;
        tokens of cut ones were really produced and are in.

    Notes
    -----
    Stamps or gaps where the log has them: event k at first_token_s + gap_1 + ... + gap_k. A chunk
    of k tokens counts k at its stamp; sizes unknown, each of m events carries n/m. Without any,
    token 1 at first_token_s and the other n - 1 evenly over (first_token_s, last_token_s]: exact
    for steady decoding, wrong by at most the tokens of the requests alive at the two edges.
    """
    rows = _producing(run)
    stamped = _stamped_events(rows).select("time_s", "tokens")
    first, last, n, streamed = _spread_bounds(rows)
    # Without a first token (no streaming) the n tokens fill (start, end] and none sits at start.
    whole = n.astype(int)
    counts = np.where(streamed, whole, whole + 1)
    position = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    steps = np.repeat(np.maximum(counts - 1, 1), counts)
    times = np.repeat(first, counts) + np.repeat(last - first, counts) * position / steps
    real = np.repeat(streamed, counts) | (position > 0)
    spread = pl.DataFrame({"time_s": times[real], "tokens": np.ones(int(real.sum()))})
    return pl.concat([stamped, spread]).sort("time_s")


def tokens_in_window(run: Run, window: Window) -> float | None:
    """Count the output tokens made in the window (start, end].

    A stamp closes the interval in which its token was made, hence the half-open window. Requests
    that straddle an edge count with the part inside. None where the log has no times: then only
    the total is known (see `whole_run`); and where a finished request has no token count, since
    its events may hold any number of tokens.
    """
    if window.end_s is None or uncounted(run):
        return None
    rows = _producing(run)
    if window.kind == "whole_run":
        # Its length is that of the main phase: tokens of a labelled warm-up lie outside.
        return float(rows.filter(pl.col("phase") == "main")["n_tokens"].sum())
    if rows.is_empty():
        return 0.0
    events = _stamped_events(rows)
    # A window ends with a token and begins after one; sums of gaps miss such edges by a rounding.
    edge = _EDGE_RATIO * window.end_s
    inside = events.filter(
        pl.col("time_s") > window.start_s + edge, pl.col("time_s") <= window.end_s + edge
    )
    first, last, n, streamed = _spread_bounds(rows)
    spread = _made_by(window.end_s, first, last, n, streamed) - _made_by(
        window.start_s, first, last, n, streamed
    )
    return float(inside["tokens"].sum() + spread.sum())


def uncounted(run: Run) -> int:
    """Count the finished requests whose output tokens nobody counted."""
    finished = run.requests.filter(pl.col("status") == "ok", pl.col("phase") != "probe")
    return finished["output_tokens"].null_count()


def _made_by(
    moment: float, first: np.ndarray, last: np.ndarray, n: np.ndarray, streamed: np.ndarray
) -> np.ndarray:
    """Tokens of evenly spread requests made up to a moment, itself included."""
    after_first = n - streamed
    length = np.where(last > first, last - first, 1.0)
    # The tolerance keeps the last token of a request inside a window that ends exactly with it.
    position = np.floor((moment - first) / length * after_first + 1e-9)
    position = np.where(last > first, position, np.where(moment >= last, after_first, 0))
    return np.where(moment >= first, streamed + np.clip(position, 0, after_first), 0.0)
