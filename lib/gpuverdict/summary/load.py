"""How many requests were in flight and decoding, and what the system gave while it was full."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from gpuverdict.schema import Run
from gpuverdict.steady import (
    Window,
    below_peak_ratio,
    in_flight,
    mean_concurrency,
    step_function,
    time_mean,
    tokens_in_window,
)
from gpuverdict.summary.distributions import Row
from gpuverdict.text import caution

__all__ = ["NEAR_PEAK", "load_rows", "one_at_a_time"]

NEAR_PEAK = 0.9
# Mean requests in flight (by Little's law) up to which a log without starts is one at a time.
ALONE = 1.05


def load_rows(run: Run, window: Window, sent: pl.DataFrame) -> list[Row]:
    """Compute error shares, streams in flight and the rate while the system was full.

    `concurrency` and `decode_batch` are time means over the window; peaks and
    `output_tokens_per_s_near_peak` (over the longest stretch with at least 90 % of the peak in
    flight) describe the whole run.
    """
    n = sent.height
    none = (caution("not_in_log", metric="error_ratio"),) if not n else ()
    failed = int(sent["status"].is_in(["error", "empty"]).sum())
    empties = int((sent["status"] == "empty").sum())
    rows = [
        Row(metric=metric, statistic="value", value=count / n if n else None, n=n, cautions=none)
        for metric, count in (("error_ratio", failed), ("empty_ratio", empties))
    ]
    flight = in_flight(run)
    batch = _decoding(run)
    peak = float(flight["n"].max()) if flight.height else None  # type: ignore[arg-type]
    decoding = None if batch is None else float(batch[1].max())
    no_starts = (caution("no_start_times"),)
    values: dict[str, float | None] = {
        "concurrency": mean_concurrency(run, window),
        "peak_concurrency": peak,
        "below_peak_ratio": below_peak_ratio(run),
        "decode_batch": None if batch is None or window.end_s is None
        else time_mean(*batch, window.start_s, window.end_s),
        "peak_decode_batch": decoding,
        "output_tokens_per_s_near_peak": _near_peak(run, flight, tokens_in_window),
    }  # fmt: skip
    rows += [
        Row(metric=metric, statistic="value", value=value, n=n,
            cautions=(() if value is not None else no_starts if peak is None
                      else (caution("not_in_log", metric=metric),)))
        for metric, value in values.items()
    ]  # fmt: skip
    return rows


def _decoding(run: Run) -> tuple[np.ndarray, np.ndarray] | None:
    known = run.requests.filter(
        pl.col("first_token_s").is_not_null(), pl.col("last_token_s").is_not_null()
    )
    if known.is_empty():
        return None
    times, count = step_function(
        known["first_token_s"].to_numpy(), known["last_token_s"].to_numpy()
    )
    # Outputs of one token each leave nothing between a first and a last one.
    return (times, count) if count.size else None


def _near_peak(
    run: Run, flight: pl.DataFrame, count: Callable[[Run, Window], float | None]
) -> float | None:
    """Output rate over the longest stretch with at least 90 % of the peak in flight."""
    # With one stream the longest stretch is one slow request: no rate of the system.
    if flight.height < 2 or flight["n"].max() < 2:  # type: ignore[operator]
        return None
    times, n = flight["time_s"].to_numpy(), flight["n"].to_numpy()
    full = (n >= NEAR_PEAK * n.max()).astype(int)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], full, [0]])))
    starts, stops = edges[::2], np.minimum(edges[1::2], times.size - 1)
    longest = int(np.argmax(times[stops] - times[starts]))
    start, end = float(times[starts[longest]]), float(times[stops[longest]])
    if end <= start:
        return None
    tokens = count(run, Window(start_s=start, end_s=end, kind="steady", n_sent=run.requests.height))
    return None if tokens is None else tokens / (end - start)


def one_at_a_time(run: Run) -> bool | None:
    """Tell whether a run had one request at a time; None where nothing in the log says so."""
    stated = run.info.get("max_concurrency")
    flight = in_flight(run)
    if flight.height:
        # A client of one stream may log the next start a rounding error before the last end.
        return bool(stated == 1 or flight["n"].max() == 1)
    if stated is not None:
        return bool(stated == 1)
    duration, spent = run.info.get("duration_s"), run.requests["e2e_s"].drop_nulls()
    if not duration or spent.is_empty() or run.info.get("rate_rps") is not None:
        return None
    return bool(float(spent.sum()) / float(duration) <= ALONE)
