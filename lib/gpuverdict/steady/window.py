"""The one Window of a run: warm-up out, drain out, the same cut for both arms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.schema import Run
from gpuverdict.steady.flight import in_flight, request_ends, sustained_peak
from gpuverdict.text import caution

__all__ = ["Window", "find_windows", "mser_cut", "requests_in_window", "whole_run"]

# Section 18.1 of the method notes: 15 % of the requests, but never less than the opening wave.
OPENING_SHARE = 0.15
# With fewer requests than this the minimum of MSER wanders over stationary runs.
MSER_REQUESTS = 400
MSER_BLOCK = 10
LONG_RUN_REQUESTS = 500
DROPPED_SHARE_LONG = 0.30
DROPPED_SHARE_SHORT = 0.45
NEAR_PEAK = 0.9

_OPEN_LOADS = ("poisson", "gamma", "constant", "ramp", "trace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The stretch of a run that its numbers describe.

    `start_s` and `end_s` are seconds since the run's t0; `end_s` is None where the log has neither
    times nor a duration. `n_sent` requests were sent in the main phase, `n_dropped` of them start
    outside the window, `reasons` says why (`warmup_opening`, `warmup_settling`, `drain`; besides,
    `warmup_labelled` counts what the tool itself called warm-up and is not part of `n_sent`).
    """

    start_s: float
    end_s: float | None
    kind: Literal["steady", "whole_run"]
    n_sent: int
    n_dropped: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()

    @property
    def length_s(self) -> float | None:
        """Length of the window in seconds; None where its end is not known."""
        return None if self.end_s is None else self.end_s - self.start_s

    @property
    def dropped_ratio(self) -> float:
        """Share of the requests sent that start outside the window (0-1)."""
        return self.n_dropped / self.n_sent if self.n_sent else 0.0

    def __str__(self) -> str:
        end = "?" if self.end_s is None else f"{self.end_s:.3f}"
        codes = "".join(f" ({c.code})" for c in self.cautions)
        return (
            f"{self.kind} {self.start_s:.3f}-{end} s, {self.n_dropped} of {self.n_sent} requests "
            f"outside{codes}"
        )


def whole_run(run: Run) -> Window:
    """Take the whole run as it is, nothing cut.

    Returns
    -------
    Window
        From the first request of the main phase, for the duration the tool states, else to the last
        end in the log. Contains ramp-up and drain: never to be compared with a steady window.
    """
    sent = _main(run)
    # t0 is the first start of all, which a warm-up labelled as such has before the measurement.
    first = sent["start_s"].min() if sent.height < run.requests.height else None
    start = 0.0 if first is None else float(first)  # type: ignore[arg-type]
    duration = run.info.get("duration_s")
    end = None if duration is None else start + float(duration)
    if end is None and sent.height:
        latest = request_ends(sent).max()
        end = None if latest is None else float(latest)  # type: ignore[arg-type]
    cautions: tuple[Caution, ...] = ()
    if sent.height and sent["start_s"].null_count() == sent.height:
        cautions = (caution("no_start_times"),)
    return Window(start_s=start, end_s=end, kind="whole_run", n_sent=sent.height, cautions=cautions)


def find_windows(
    runs: Sequence[Run], concurrency: float | None = None, *, cut: float = 1.0
) -> list[Window]:
    """Find the steady window of each run of one cell (one level, both arms).

    Parameters
    ----------
    runs : sequence of Run
        All runs of the cell, both arms: the extra cut is the largest any of them needs.
    concurrency : float, optional
        The level's number of streams. Without it, each run's own `max_concurrency`, else its
        observed peak in flight; 0 for an open loop, whatever is given.
    cut : float
        Scales the cut; 0.5 and 2 show how far the numbers depend on it.

    Returns
    -------
    list of Window
        One a run, in order. `kind` is `whole_run` where no steady window exists (no start times,
        or fewer requests than the cut), with the caution that says so. Cautions: `short_run` (no
        search for more warm-up), `no_steady_state` (too much would go, or it never settles).

    Notes
    -----
    The first k = max(c, floor(0.15 N)) requests by start are out, and with 400 ok requests or more
    also those before the minimum of MSER [1]_ on medians of 10 requests; t0 is the start of the
    next one. t1 is the start of the drain: the last moment with >= 90 % of the peak in flight
    (closed loop; a peak must last 1 % of the run), the last intended send (open loop), or the cut
    of a time-limited run. Cutting by start avoids the length bias of cutting by completion. It
    misleads where the load itself never settles (a ramp): then the share dropped says so.

    References
    ----------
    .. [1] K. P. White, "An effective truncation heuristic for bias reduction in simulation output",
       Simulation 69(6), 1997. doi:10.1177/003754979706900601
    """
    plans = [_plan(run, concurrency, cut) for run in runs]
    extra = max((plan.extra for plan in plans), default=0)
    return [_window(run, plan, round(extra * cut)) for run, plan in zip(runs, plans, strict=True)]


def requests_in_window(run: Run, window: Window) -> pl.DataFrame:
    """Rows of the main phase whose request starts in the window (all of them for a whole run)."""
    sent = _main(run)
    if window.kind == "whole_run":
        return sent
    return sent.filter(pl.col("start_s") >= window.start_s, pl.col("start_s") <= window.end_s)


def mser_cut(values: np.ndarray) -> int | None:
    """Say how many leading values of a series to drop so that the rest is steady; None if none is.

    Notes
    -----
    The d < n/2 that minimises var(z[d:]) / (n - d); a minimum at the last d allowed is no minimum.

    Examples
    --------
    >>> mser_cut(np.array([9.0, 5.0, 1.0, 1.1, 0.9, 1.0, 1.1, 0.9, 1.0, 1.0]))
    2
    """
    n = values.size
    allowed = math.ceil(n / 2)
    if allowed < 2:
        return None
    # Suffix sums of the centred values: one pass for all d, and no cancellation.
    z = values - values.mean()
    left = n - np.arange(allowed)
    total = np.cumsum(z[::-1])[::-1][:allowed]
    square = np.cumsum((z**2)[::-1])[::-1][:allowed]
    spread = np.maximum(square / left - (total / left) ** 2, 0.0) / left
    best = int(np.argmin(spread))
    return None if best == allowed - 1 else best


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What one run asks for before the cell agrees on the extra cut."""

    opening: int
    extra: int = 0
    short: bool = False
    unsettled: bool = False
    timed: bool = True


def _main(run: Run) -> pl.DataFrame:
    return run.requests.filter(pl.col("phase") == "main")


def _is_open(run: Run) -> bool:
    # A burst is no open loop: nothing paces it, everything is in flight at once.
    return run.info.get("load_kind") in _OPEN_LOADS and not run.info.get("rate_unbounded")


def _streams(run: Run, concurrency: float | None) -> float:
    if _is_open(run):
        return 0.0
    stated = concurrency if concurrency is not None else run.info.get("max_concurrency")
    if stated is not None:
        return float(stated)
    return sustained_peak(in_flight(run))


def _plan(run: Run, concurrency: float | None, cut: float) -> _Plan:
    sent = _main(run)
    if sent.is_empty() or sent["start_s"].null_count():
        return _Plan(opening=0, timed=False)
    # 1e-9 keeps 0.15 x 20 at 3.
    share = math.floor(OPENING_SHARE * sent.height + 1e-9)
    opening = math.floor(cut * max(math.ceil(_streams(run, concurrency)), share) + 1e-9)
    rest = sent.sort("start_s", "request_index").slice(opening)
    ok = rest.filter(pl.col("status") == "ok")
    if ok.height < MSER_REQUESTS:
        return _Plan(opening=opening, short=True)
    series = "tpot_s" if ok["tpot_s"].null_count() < ok.height / 2 else "e2e_s"
    known = ok[series].drop_nulls().to_numpy()
    blocks = known[: known.size // MSER_BLOCK * MSER_BLOCK].reshape(-1, MSER_BLOCK)
    found = mser_cut(np.median(blocks, axis=1)) if len(blocks) else None
    if found is None:
        return _Plan(opening=opening, unsettled=True)
    return _Plan(opening=opening, extra=found * MSER_BLOCK)


def _window(run: Run, plan: _Plan, extra: int) -> Window:
    if not plan.timed:
        return whole_run(run)
    sent = _main(run).sort("start_s", "request_index")
    n = sent.height
    extra = 0 if plan.short else extra
    if n <= plan.opening + extra:
        whole = whole_run(run)
        reason = caution("no_steady_window", sent=n, cut=plan.opening + extra)
        return Window(
            start_s=whole.start_s,
            end_s=whole.end_s,
            kind="whole_run",
            n_sent=n,
            cautions=(*whole.cautions, reason),
        )
    starts = sent["start_s"].to_numpy()
    start = float(starts[plan.opening + extra])
    end = _drain_start(run, sent)
    before = int((starts < start).sum())
    # A request sent between the stated end and the cut itself was cut, not dropped by this rule.
    after = sent.filter((pl.col("start_s") > end) & (pl.col("status") != "incomplete")).height
    counted = {
        "warmup_labelled": int((run.requests["phase"] == "warmup").sum()),
        "warmup_opening": min(before, plan.opening),
        "warmup_settling": max(0, before - plan.opening),
        "drain": after,
    }
    dropped = before + after
    cautions: list[Caution] = []
    if plan.short:
        cautions.append(caution("short_run", left=n - dropped, needed=MSER_REQUESTS))
    limit = DROPPED_SHARE_LONG if n >= LONG_RUN_REQUESTS else DROPPED_SHARE_SHORT
    if plan.unsettled or dropped / n > limit or end <= start:
        cautions.append(caution("no_steady_state", dropped_ratio=dropped / n, limit_ratio=limit))
    return Window(
        start_s=start,
        end_s=max(end, start),
        kind="steady",
        n_sent=n,
        n_dropped=dropped,
        reasons={reason: count for reason, count in counted.items() if count},
        cautions=tuple(cautions),
    )


def _drain_start(run: Run, sent: pl.DataFrame) -> float:
    """Find t1: the cut of a time-limited run, the last send of an open one, else the last peak."""
    cut = sent.filter(pl.col("status") == "incomplete")
    if cut.height:
        stated = run.info.get("measure_end_s")
        last = cut.select(pl.coalesce("end_s", "last_token_s", "start_s").max()).item()
        return float(last if stated is None else stated)
    if _is_open(run):
        intended = pl.col("start_s") - pl.col("client_queue_s").fill_null(0.0)
        return float(sent.select(intended.max()).item())
    flight = in_flight(run)
    times, count = flight["time_s"].to_numpy(), flight["n"].to_numpy()
    if not times.size:
        return float(sent["start_s"].max())  # type: ignore[arg-type]
    near = np.flatnonzero(count >= NEAR_PEAK * sustained_peak(flight))
    return float(times[min(near[-1] + 1, times.size - 1)])
