"""Moments that went wrong: spikes between tokens, and runs in which everything stood still."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.schema import Run
from gpuverdict.steady.flight import step_function
from gpuverdict.steady.window import Window
from gpuverdict.text import caution

__all__ = ["Disturbance", "Spikes", "disturbed_runs", "gap_table", "spike_mask", "spikes"]

SPIKE_MAD = 6.0
SPIKE_MEDIANS = 2.0
# Makes the MAD of a normal sample estimate its standard deviation.
MAD_TO_SIGMA = 1.4826
LONG_GAP_MEDIANS = 3.0
LONG_GAP_SHARE = 0.01
LONG_GAP_TIMES_SIBLINGS = 5.0
# A silence counts once it exceeds the prefills under way by this many ordinary gaps (jitter), and a
# run once such silences took this share of its window: a hiccup of 50 ms in a minute is a spike.
SILENT_MEDIANS = 5.0
SILENT_SHARE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Spikes:
    """Gaps far above the run's own: how many, how much time they cost, when.

    `table` has `request_index`, `time_s` (end of the gap) and `gap_s`, one row a spike.
    """

    count: int | None
    n_gaps: int
    median_gap_s: float | None = None
    time_lost_s: float | None = None
    per_1000_gaps: float | None = None
    table: pl.DataFrame = field(default_factory=pl.DataFrame)
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        if self.count is None:
            return "spikes not measured"
        return (
            f"{self.count} spikes in {self.n_gaps} gaps ({self.per_1000_gaps:.3g} per 1,000), "
            f"{self.time_lost_s:.3g} s lost"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """Whether one run was disturbed: which rule says so, when, and for how long.

    `silence_s` is the worst time (from `at_s` on) in which no stream got a token although one was
    decoding, `explained_s` how much of it the prefills under way could explain, and `lost_s` the
    sum of all that is beyond explanation; `long_gap_ratio` the share of gaps above three medians,
    `siblings_ratio` the largest such share of the other runs. Without gaps (`testable` False)
    `silence_bound_s` is what first and last tokens alone prove: no silence of all streams lasted
    longer than the longest time without any of them.
    """

    run_id: str
    disturbed: bool
    testable: bool
    at_s: float | None = None
    silence_s: float | None = None
    explained_s: float | None = None
    lost_s: float | None = None
    long_gap_ratio: float | None = None
    siblings_ratio: float | None = None
    silence_bound_s: float | None = None
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        if not self.testable:
            bound = self.silence_bound_s
            known = "" if bound is None else f", no silence above {bound:.3g} s"
            return f"run {self.run_id[:12]}: disturbance not testable{known}"
        if not self.disturbed:
            return f"run {self.run_id[:12]}: undisturbed"
        when = f"silent for {self.silence_s:.3f} s at {self.at_s:.3f} s"
        return f"run {self.run_id[:12]}: disturbed, {when}"


def gap_table(run: Run, window: Window | None = None) -> pl.DataFrame:
    """List the gaps between events with their place: one row a gap.

    Parameters
    ----------
    window : Window, optional
        Keep only gaps that end in it.

    Returns
    -------
    polars.DataFrame
        `request_index`, `position` (1 for the gap after the first token), `start_s`, `end_s` (since
        t0; null without start times) and `gap_s`, of ok and cut requests.
    """
    rows = (
        run.requests.filter(
            pl.col("status").is_in(["ok", "incomplete"]), pl.col("phase").is_in(["main", "probe"])
        )
        .select("request_index", "first_token_s")
        .join(run.gaps.select("request_index", "gaps_s"), on="request_index")
        .filter(pl.col("gaps_s").list.len() > 0)
        .explode("gaps_s")
        .rename({"gaps_s": "gap_s"})
        .with_columns(
            position=pl.int_range(1, pl.len() + 1).over("request_index"),
            end_s=pl.col("first_token_s") + pl.col("gap_s").cum_sum().over("request_index"),
        )
        .with_columns(start_s=pl.col("end_s") - pl.col("gap_s"))
        .select("request_index", "position", "start_s", "end_s", "gap_s")
    )
    if window is not None and window.kind == "steady":
        rows = rows.filter(pl.col("end_s") > window.start_s, pl.col("end_s") <= window.end_s)
    return rows


def spike_mask(gaps_s: np.ndarray) -> np.ndarray:
    """Mark the spikes among gaps.

    Notes
    -----
    log gap > median + 6 MAD of the logs (MAD scaled to a standard deviation) and gap > 2 medians.
    No false flag in a million lognormal gaps up to sigma 0.3; the usual 3 MAD gives thousands.

    Examples
    --------
    >>> spike_mask(np.array([1.0, 1.1, 0.9, 1.0, 1.1, 0.9, 5.0])).tolist()
    [False, False, False, False, False, False, True]
    """
    known = gaps_s > 0
    if not known.any():
        return np.zeros(gaps_s.size, bool)
    logs = np.log(np.where(known, gaps_s, 1.0))
    middle = np.median(logs[known])
    spread = MAD_TO_SIGMA * np.median(np.abs(logs[known] - middle))
    high = np.maximum(middle + SPIKE_MAD * spread, middle + np.log(SPIKE_MEDIANS))
    marked: np.ndarray = known & (logs > high)
    return marked


def spikes(run: Run, window: Window) -> Spikes:
    """Count the spikes between tokens in the window and the time they cost.

    Returns
    -------
    Spikes
        `count` is None, with the caution `no_gaps`, where the log has no gaps.
    """
    gaps = gap_table(run, window)
    if gaps.is_empty():
        return Spikes(count=None, n_gaps=0, cautions=(caution("no_gaps"),))
    values = gaps["gap_s"].to_numpy()
    marked = spike_mask(values)
    middle = float(np.median(values))
    return Spikes(
        count=int(marked.sum()),
        n_gaps=values.size,
        median_gap_s=middle,
        time_lost_s=float((values[marked] - middle).sum()),
        per_1000_gaps=1000.0 * float(marked.mean()),
        table=gaps.filter(pl.Series(marked)).select(
            "request_index", pl.col("end_s").alias("time_s"), "gap_s"
        ),
    )


def disturbed_runs(
    runs: Sequence[Run],
    windows: Sequence[Window],
    prefill_s: Callable[[np.ndarray], np.ndarray] | None = None,
) -> list[Disturbance]:
    """Find the runs of one cell and arm that something from outside disturbed.

    Parameters
    ----------
    runs, windows : sequences
        The repeats of one arm at one level, and their windows.
    prefill_s : callable, optional
        Unloaded prefill time by prompt tokens (array to array, seconds). Without it the lower
        envelope of the runs' own TTFT.

    Returns
    -------
    list of Disturbance
        One a run. A disturbed run carries the caution `disturbed` with the time of the stall; it is
        never dropped: the verdict is shown with and without it, and the remedy is to repeat it.

    Notes
    -----
    Disturbed: every decoding stream silent for longer than the prefills under way explain; or
    a share of gaps above three medians that is above 1 % and above 5 times the largest share of the
    siblings. Not testable without gaps, the second rule not without siblings.
    """
    estimate = prefill_s if prefill_s is not None else _lower_envelope(runs)
    tables = [gap_table(run, window) for run, window in zip(runs, windows, strict=True)]
    shares = [_long_gap_share(table["gap_s"].to_numpy()) for table in tables]
    found = []
    for i, (run, window) in enumerate(zip(runs, windows, strict=True)):
        others = [share for j, share in enumerate(shares) if j != i and share is not None]
        share = shares[i]
        name = str(run.info["run_id"])
        if share is None:
            bound = _longest_without_event(run, window)
            found.append(
                Disturbance(run_id=name, disturbed=False, testable=False, silence_bound_s=bound)
            )
            continue
        siblings = max(others) if others else None
        above = (
            siblings is not None
            and share > LONG_GAP_SHARE
            and share > LONG_GAP_TIMES_SIBLINGS * siblings
        )
        worst = _worst_silence(run, window, tables[i], estimate)
        length = window.length_s or 0.0
        stalled = worst is not None and worst.lost_s > SILENT_SHARE * length
        disturbed = above or stalled
        at_s, silence = (None, None) if worst is None else (worst.at_s, worst.silence_s)
        if disturbed and at_s is None:
            longest = tables[i].sort("gap_s").row(-1, named=True)
            at_s, silence = longest["start_s"], longest["gap_s"]
        said = (caution("disturbed", run=name[:12], at_s=at_s or 0.0, silence_s=silence or 0.0),)
        found.append(
            Disturbance(
                run_id=name,
                disturbed=disturbed,
                testable=True,
                at_s=at_s,
                silence_s=silence,
                explained_s=None if worst is None else worst.explained_s,
                lost_s=0.0 if worst is None else worst.lost_s,
                long_gap_ratio=share,
                siblings_ratio=siblings,
                cautions=said if disturbed else (),
            )
        )
    return found


def _long_gap_share(gaps_s: np.ndarray) -> float | None:
    if gaps_s.size == 0:
        return None
    return float((gaps_s > LONG_GAP_MEDIANS * np.median(gaps_s)).mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Silence:
    """The silence that exceeds its explanation most, and what all such silences cost together."""

    at_s: float
    silence_s: float
    explained_s: float
    lost_s: float


def _worst_silence(
    run: Run,
    window: Window,
    gaps: pl.DataFrame,
    prefill_s: Callable[[np.ndarray], np.ndarray],
) -> _Silence | None:
    stamps = gaps["end_s"].drop_nulls().to_numpy()
    if window.kind != "steady" or window.end_s is None or stamps.size < 2:
        return None
    rows = run.requests.filter(
        pl.col("start_s").is_not_null(), pl.col("first_token_s").is_not_null()
    )
    first, last = rows["first_token_s"].to_numpy(), rows["last_token_s"].to_numpy()
    inside = first[(first > window.start_s) & (first <= window.end_s)]
    moments = np.unique(np.concatenate([stamps, inside]))
    starts, lengths = moments[:-1], np.diff(moments)
    times, decoding = step_function(first, last)
    where = np.searchsorted(times, starts, side="right") - 1
    busy = (where >= 0) & (decoding[np.maximum(where, 0)] >= 1)
    middle = float(np.median(gaps["gap_s"].to_numpy()))
    # Only silences of several steps can matter; this also bounds the work below.
    candidates = np.flatnonzero(busy & (lengths > LONG_GAP_MEDIANS * middle))
    if candidates.size == 0:
        return None
    begun = rows["start_s"].to_numpy()
    cost = prefill_s(rows["input_tokens"].cast(pl.Float64).fill_null(0.0).to_numpy())
    explained = np.array(
        [cost[(begun < starts[k] + lengths[k]) & (first > starts[k])].sum() for k in candidates]
    )
    explained = explained + SILENT_MEDIANS * middle
    beyond = lengths[candidates] - explained
    worst = int(np.argmax(beyond))
    k = candidates[worst]
    return _Silence(
        at_s=float(starts[k]),
        silence_s=float(lengths[k]),
        explained_s=float(explained[worst]),
        lost_s=float(np.maximum(beyond, 0.0).sum()),
    )


def _longest_without_event(run: Run, window: Window) -> float | None:
    """Longest time in the window with something decoding and no first and no last token."""
    rows = run.requests.filter(
        pl.col("first_token_s").is_not_null(), pl.col("last_token_s").is_not_null()
    )
    if rows.is_empty() or window.kind != "steady" or window.end_s is None:
        return None
    first, last = rows["first_token_s"].to_numpy(), rows["last_token_s"].to_numpy()
    edges = np.clip(np.concatenate([first, last]), window.start_s, window.end_s)
    moments = np.unique(np.concatenate([edges, [window.start_s, window.end_s]]))
    times, decoding = step_function(first, last)
    where = np.searchsorted(times, moments[:-1], side="right") - 1
    busy = (where >= 0) & (decoding[np.maximum(where, 0)] >= 1)
    lengths = np.diff(moments)[busy]
    return float(lengths.max()) if lengths.size else None


def _lower_envelope(runs: Sequence[Run]) -> Callable[[np.ndarray], np.ndarray]:
    """Smallest TTFT of any prompt at least as long: no prefill takes longer than that."""
    seen = [
        run.requests.filter(pl.col("status") == "ok", pl.col("ttft_s") > 0).select(
            pl.col("input_tokens").fill_null(0).cast(pl.Float64), "ttft_s"
        )
        for run in runs
    ]
    pooled = pl.concat(seen).sort("input_tokens")
    lengths, ttft = pooled["input_tokens"].to_numpy(), pooled["ttft_s"].to_numpy()
    if lengths.size == 0:
        return np.zeros_like
    floor = np.minimum.accumulate(ttft[::-1])[::-1]

    def estimate(tokens: np.ndarray) -> np.ndarray:
        where = np.searchsorted(lengths, tokens, side="left")
        return floor[np.minimum(where, lengths.size - 1)]

    return estimate
