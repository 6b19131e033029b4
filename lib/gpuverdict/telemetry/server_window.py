"""What a server's metrics pages tell of one run: the pages that bracket it, and nothing else's.

Counters are cumulative, so two pages are needed with the run between them and no other run. Gauges
(KV cache in use, requests waiting) are those of the moment of a page and count only during the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.telemetry.server_metrics import difference
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["GAUGES", "SERVER_FACTS", "server_since_start", "server_window"]

# Gauges by meaning: every spelling met; over label sets `max` for a share, `sum` for a count.
GAUGES: dict[str, tuple[tuple[str, ...], str]] = {
    "kv_cache_use_ratio": (
        ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
        "max",
    ),
    "waiting_requests": (("vllm:num_requests_waiting", "sglang:num_queue_reqs"), "sum"),
    "running_requests": (("vllm:num_requests_running", "sglang:num_running_reqs"), "sum"),
}
SERVER_FACTS = ("server_queue_s", "server_prefill_s", "server_decode_s", "server_ttft_s",
                "server_e2e_s", "preemptions", "prefix_cache_hit_ratio", *GAUGES)  # fmt: skip
_ENGINES = ("vllm:", "sglang:")
# Pages taken during a run speak for it where they cover this share of its window.
COVERED = 0.8
# Pages before and after it may each lie inside by this share of its length (rounded stamps).
INSIDE = 0.02

Span = tuple[float, float]


def server_window(
    metrics: pl.DataFrame,
    window: Span,
    run: Span,
    others: Sequence[Span] = (),
    *,
    clock_slack_s: float = 0.0,
) -> dict[str, Estimate]:
    """Say what a server did during one run.

    Parameters
    ----------
    metrics : polars.DataFrame
        Columns of `SERVER_METRICS`, all pages of the arm.
    window, run : (start, end)
        Epoch seconds of the run's window and of its whole main phase.
    others : sequence of (start, end)
        The other runs against this server.
    clock_slack_s : float
        What the run's place may be wrong by.

    Returns
    -------
    dict
        The keys of `SERVER_FACTS`: means, counts, ratios. All null where no pages bracket the run,
        with `pages_do_not_bracket` or `pages_cover_other_runs`.

    Notes
    -----
    Pages inside the window are taken where they cover `COVERED` of it, else the last page before
    and the first after the run, unless another run lies between those as well.

    Examples
    --------
    >>> from gpuverdict.schema import SERVER_METRICS, empty
    >>> server_window(empty(SERVER_METRICS), (0.0, 1.0), (0.0, 1.0))["server_queue_s"].value is None
    True
    """
    known = metrics.filter(
        pl.col("time_epoch_s").is_not_null(),
        pl.any_horizontal(pl.col("name").str.starts_with(name) for name in _ENGINES),
    )
    stamps = known["time_epoch_s"].unique().sort().to_numpy()
    found = _bracket(stamps, window, run, others, clock_slack_s)
    if isinstance(found, Caution):
        return {key: Estimate(value=None, cautions=(found,)) for key in SERVER_FACTS}
    first, last = (known.filter(pl.col("time_epoch_s") == stamp) for stamp in found)
    counted = difference(first, last)
    told = {key: counted[key] for key in SERVER_FACTS if key in counted}
    low, high = max(found[0], window[0]), min(found[1], window[1])
    inside = known.filter(pl.col("time_epoch_s").is_between(low, high))
    return told | {key: _gauge(names, how, inside, last) for key, (names, how) in GAUGES.items()}


def _bracket(
    stamps: np.ndarray, window: Span, run: Span, others: Sequence[Span], clock_slack_s: float
) -> Span | Caution:
    inside = stamps[(stamps >= window[0]) & (stamps <= window[1])]
    if inside.size >= 2 and inside[-1] - inside[0] >= COVERED * (window[1] - window[0]):
        return float(inside[0]), float(inside[-1])
    slack = INSIDE * (run[1] - run[0]) + clock_slack_s
    before, after = stamps[stamps <= run[0] + slack], stamps[stamps >= run[1] - slack]
    if not before.size or not after.size:
        return caution("pages_do_not_bracket", n=int(stamps.size))
    low, high = float(before[-1]), float(after[0])
    between = sum(start < high - slack and end > low + slack for start, end in others)
    if between:
        return caution("pages_cover_other_runs", n=between)
    return low, high


def _gauge(names: Sequence[str], how: str, inside: pl.DataFrame, last: pl.DataFrame) -> Estimate:
    """Take the highest share, or the mean count, over the pages during a run."""
    # AIPerf sampled the gauge itself and gives its mean and highest value with the last page.
    wanted = '"statistic": "max"' if how == "max" else '"statistic": "avg"'
    sampled = last.filter(pl.col("labels").str.contains(wanted, literal=True))
    pages = sampled if sampled.height else inside
    held = pages.filter(pl.col("name").is_in(list(names))).drop_nulls("value")
    if held.is_empty():
        return Estimate(value=None)
    by_page = held.filter(pl.col("name") == held["name"][0]).group_by("time_epoch_s")
    if how == "max":
        values = by_page.agg(pl.col("value").max())["value"]
        return Estimate(value=float(values.max()), unit="ratio", n=values.len())  # type: ignore[arg-type]
    values = by_page.agg(pl.col("value").sum())["value"]
    return Estimate(value=float(values.mean()), unit="requests", n=values.len())  # type: ignore[arg-type]


def server_since_start(pages: Sequence[pl.DataFrame]) -> Mapping[str, Estimate]:
    """Say the same from pages without a time that belong to one run by their names.

    Parameters
    ----------
    pages : sequence of polars.DataFrame
        One page after the run of a fresh server (`counters_since_start`), or one before and one
        after it, in either order: counters only grow.
    """
    if len(pages) > 2:
        nothing = caution("pages_do_not_bracket", n=len(pages))
        return {key: Estimate(value=None, cautions=(nothing,)) for key in SERVER_FACTS}
    if len(pages) == 2:
        first, last = sorted(pages, key=_grown)
        counted = difference(first, last)
    else:
        counted = difference(None, pages[0])
    gauges = {key: Estimate(value=None) for key in GAUGES}
    return {key: counted[key] for key in SERVER_FACTS if key in counted} | gauges


def _grown(page: pl.DataFrame) -> float:
    totals = page.filter(
        pl.col("name").str.ends_with("_total") | pl.col("name").str.ends_with("_count")
    )
    return float(totals["value"].drop_nulls().sum())
