"""Memory of each GPU of an arm at three moments, its growth, and what a full card would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from gpuverdict.align import place
from gpuverdict.energy import traced_gpus
from gpuverdict.errors import Caution
from gpuverdict.health import SOAK_S, Health
from gpuverdict.measured import Measured, MeasuredRun
from gpuverdict.schema import GPU_SAMPLES, REQUESTS, TOKEN_GAPS, Run, empty
from gpuverdict.steady import Leak
from gpuverdict.store import StoredRun
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["CardMemory", "MemoryGrowth", "arm_watermarks", "memory_growth", "run_samples",
           "trace_reservations"]  # fmt: skip

ROOM_RATIO, FULL_RATIO = 0.80, 0.90
FLAT_RATIO = 0.01
# An idle sample counts as "before the first request" within this many seconds of it.
IDLE_REACH_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CardMemory:
    """Memory of one GPU of an arm: with the model loaded, with one request, at the highest load.

    Each mark is an Estimate in MiB whose `n` counts traces (after load) or runs, None with the
    reason where its input is missing. `level` is the load of the peak, `context_tokens` the longest
    context of the run with one request. `standing` is the rule of thumb for the peak: `room` below
    80 % of the card, `good` up to 90 %, `risk` above.
    """

    arm: str
    workload: str
    gpu: str
    total_mib: float | None
    after_load: Estimate
    one_request: Estimate
    peak: Estimate
    level: Mapping[str, float] = field(default_factory=dict)
    context_tokens: int | None = None

    @property
    def peak_ratio(self) -> float | None:
        """Peak over the card's memory."""
        if self.peak.value is None or not self.total_mib:
            return None
        return self.peak.value / self.total_mib

    @property
    def standing(self) -> Literal["room", "good", "risk"] | None:
        """What the rule of thumb says of the peak."""
        ratio = self.peak_ratio
        if ratio is None:
            return None
        return "room" if ratio < ROOM_RATIO else "good" if ratio <= FULL_RATIO else "risk"

    @property
    def allocated_ahead(self) -> bool:
        """Whether load moves the memory by less than 1 %: the engine took it before any request."""
        marks = [m.value for m in (self.after_load, self.one_request, self.peak)]
        known = [m for m in marks if m is not None]
        return len(known) > 1 and max(known) - min(known) < FLAT_RATIO * max(known)

    def __str__(self) -> str:
        return f"{self.arm} {self.gpu}: {self.after_load}, {self.one_request}, {self.peak}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryGrowth:
    """Growth of the memory of one GPU in one run; `leak` None where the run cannot tell."""

    run: MeasuredRun
    leak: Leak | None
    reason: Caution | None = None


def arm_watermarks(measured: Measured, arm: str, workload: str = "main") -> list[CardMemory]:
    """Say for each GPU of an arm how much memory it held at the three moments.

    Parameters
    ----------
    measured : Measured
        With traces beside the runs.

    Returns
    -------
    list of CardMemory
        One a GPU, by index; one without values where no trace lies beside the runs.

    Notes
    -----
    After load: the last sample in the 10 s before the first request of the arm in each trace,
    median over traces. One request, peak: largest sample over the whole of every run with one
    stream, and of every run at the highest level. Samples miss what comes and goes between two of
    them, and a caching allocator does not give back: a run with one stream after a larger load in
    the same server start is an upper bound, so said.

    Examples
    --------
    >>> from gpuverdict.campaign import read_campaign
    >>> from gpuverdict.measured import measure
    >>> measured = measure(read_campaign("data/h200/campaign.yaml"))
    >>> (card,) = arm_watermarks(measured, "card-b")
    >>> card.gpu, card.standing, card.allocated_ahead
    ('GPU 0', 'room', True)
    """
    runs = [r for r in measured.runs_of(arm) if r.workload == workload]
    traces = measured.traces[arm]
    gpus = measured.campaign.arms[arm].gpus
    counts = sorted({n for t in traces if (n := traced_gpus(t)) != gpus})
    if counts:
        why: tuple[Caution, ...] = (caution("gpu_count", found=counts[0], expected=gpus),)
        return [_nothing(arm, workload, why)]
    if not traces:
        return [_nothing(arm, workload, (caution("mark_no_trace", arm=arm),))]
    idle, early = _idle(measured, arm)
    alone = [r for r in runs if dict(r.level) == {"concurrency": 1}]
    top = max((r.level for r in runs), key=lambda level: max(level.values()), default={})
    single, why_single = _peaks(measured, alone)
    peaks, why_peak = _peaks(measured, [r for r in runs if r.level == top])
    if not alone:
        why_single = (caution("mark_no_single", arm=arm),)
    said = (caution("mark_after_load_of_others", arm=arm),) if _later(runs, alone) else ()
    everywhere = {**idle, **single, **peaks}
    if not everywhere:
        return [_nothing(arm, workload, why_peak or why_single or early)]
    found = []
    for key in sorted(everywhere):
        rows = [t.samples.filter(_who() == key) for t in traces]
        held = pl.concat(rows, how="vertical_relaxed")
        found.append(
            CardMemory(
                arm=arm, workload=workload, gpu=_label(held, key),
                total_mib=held["memory_total_mib"].max(),  # type: ignore[arg-type]
                after_load=_mark(idle.get(key), early, middle=True),
                one_request=_mark(single.get(key), why_single, said),
                peak=_mark(peaks.get(key), why_peak),
                level=top, context_tokens=_context(alone),
            )
        )  # fmt: skip
    return found


def memory_growth(measured: Measured, health: Health, arm: str) -> list[MemoryGrowth]:
    """Say for each run of an arm whether its memory grew: one entry a GPU, or one with the reason.

    Returns
    -------
    list of MemoryGrowth
        Runs of ten minutes and more; where there is none, one entry of the longest run that says
        what would be needed. Empty without runs.
    """
    found: list[MemoryGrowth] = []
    runs = measured.runs_of(arm)
    for run in runs:
        checked = health.runs.get(run.key)
        found += [MemoryGrowth(run=run, leak=leak) for leak in (checked.leaks if checked else ())]
    if found or not runs:
        return found
    longest = max(runs, key=lambda r: float(r.stored.info.get("duration_s") or 0.0))
    length = float(longest.stored.info.get("duration_s") or 0.0)
    if not measured.traces[arm]:
        reason = caution("mark_no_trace", arm=arm)
    elif length < SOAK_S:
        reason = caution("growth_needs_soak", arm=arm, longest_s=length, needed_s=SOAK_S)
    else:
        reason = caution("growth_not_placed", arm=arm)
    return [MemoryGrowth(run=longest, leak=None, reason=reason)]


def run_samples(
    measured: Measured, arm: str, run: StoredRun
) -> tuple[pl.DataFrame, tuple[Caution, ...]]:
    """Cut the samples of a run or probe, first second to last, out of its arm's traces.

    Returns
    -------
    samples : polars.DataFrame
        Rows of the first trace that lies beside the run; empty where none does.
    cautions : tuple of Caution
        Why not, or how far not.
    """
    why: tuple[Caution, ...] = (caution("mark_no_trace", arm=arm),)
    for trace in measured.traces[arm]:
        offset, why = place(_facts_only(run.info), trace)
        length = float(run.info.get("duration_s") or 0.0)
        if offset is not None:
            inside = pl.col("time_epoch_s").is_between(offset, offset + length)
            return trace.samples.filter(inside), why
    return empty(GPU_SAMPLES), why


def trace_reservations(measured: Measured, arm: str) -> tuple[Caution, ...]:
    """Say what the traces of an arm say of themselves, and how many runs they do not cover whole.

    Returns
    -------
    tuple of Caution
        Each once; with traces, `trace_coverage` where a run lies outside them or partly so.
    """
    said = {(c.code, c.message): c for t in measured.traces[arm] for c in t.cautions}
    runs = measured.runs_of(arm)
    if measured.traces[arm] and runs:
        bare = 0
        for run in runs:
            samples, why = run_samples(measured, arm, run.stored)
            bare += samples.is_empty() or any(c.code == "trace_partial" for c in why)
        if bare:
            note = caution("trace_coverage", arm=arm, n=bare, total=len(runs))
            said[(note.code, note.message)] = note
    return tuple(said.values())


def _facts_only(info: Mapping[str, object]) -> Run:
    return Run(info=dict(info), requests=empty(REQUESTS), gaps=empty(TOKEN_GAPS))


def _who() -> pl.Expr:
    return pl.coalesce(pl.col("gpu_uuid"), pl.col("gpu_index").cast(pl.String), pl.lit("GPU"))


def _label(rows: pl.DataFrame, key: str) -> str:
    index = rows["gpu_index"].drop_nulls()
    return f"GPU {index[0]}" if index.len() else key


def _idle(measured: Measured, arm: str) -> tuple[dict[str, list[float]], tuple[Caution, ...]]:
    """Last memory of each GPU before the first request, one value a trace that has it."""
    loads = [r.stored for r in measured.runs_of(arm)] + list(measured.probes[arm])
    found: dict[str, list[float]] = {}
    for trace in measured.traces[arm]:
        placed = [(offset, s) for s in loads
                  if (offset := place(_facts_only(s.info), trace)[0]) is not None]  # fmt: skip
        if not placed:
            continue
        offset, first = min(placed, key=lambda pair: pair[0])
        sent = first.requests()["start_s"].min()
        moment = offset + float(sent or 0.0)  # type: ignore[arg-type]
        before = trace.samples.filter(
            pl.col("time_epoch_s").is_between(moment - IDLE_REACH_S, moment, closed="left"),
            pl.col("memory_used_mib").is_not_null(),
        ).sort("time_epoch_s")
        last = before.group_by(_who().alias("gpu")).agg(pl.col("memory_used_mib").last())
        for gpu, value in last.iter_rows():
            found.setdefault(gpu, []).append(float(value))
    return found, (caution("mark_no_idle", arm=arm, reach_s=IDLE_REACH_S),)


def _peaks(
    measured: Measured, runs: Sequence[MeasuredRun]
) -> tuple[dict[str, list[float]], tuple[Caution, ...]]:
    """Largest memory of each GPU in each run, and why runs have none or not all of it."""
    found: dict[str, list[float]] = {}
    said: dict[str, Caution] = {}
    for run in runs:
        samples, why = run_samples(measured, run.arm, run.stored)
        said.update({c.code: c for c in why})
        if samples.is_empty():
            continue
        held = samples.filter(pl.col("memory_used_mib").is_not_null())
        if held.is_empty():
            said["column_absent"] = caution("column_absent", column="memory_used_mib")
        peaks = held.group_by(_who().alias("gpu")).agg(pl.col("memory_used_mib").max())
        for gpu, value in peaks.iter_rows():
            found.setdefault(gpu, []).append(float(value))
    return found, tuple(said.values())


def _mark(
    values: Sequence[float] | None, why: tuple[Caution, ...], more: tuple[Caution, ...] = (), *,
    middle: bool = False,
) -> Estimate:  # fmt: skip
    if not values:
        return Estimate(value=None, unit="mib", cautions=why)
    said = () if middle else (*why, *more)
    chosen = sorted(values)[len(values) // 2] if middle else max(values)
    return Estimate(value=chosen, unit="mib", n=len(values), cautions=said)


def _later(runs: Sequence[MeasuredRun], alone: Sequence[MeasuredRun]) -> bool:
    """Tell whether a larger load ran before every run with one request of its server start."""

    def start(run: MeasuredRun) -> float | None:
        value = run.stored.info.get("t0_epoch_s")
        return None if value is None else float(value)

    return bool(alone) and all(
        any(
            other.server_start_id == run.server_start_id
            and max(other.level.values()) > 1
            and (a := start(other)) is not None
            and (b := start(run)) is not None
            and a < b
            for other in runs
        )
        for run in alone
    )


def _context(alone: Sequence[MeasuredRun]) -> int | None:
    longest = [
        rows.select((pl.col("input_tokens") + pl.col("output_tokens")).max()).item()
        for run in alone
        if (rows := run.stored.requests()).height
    ]
    known = [int(value) for value in longest if value is not None]
    return max(known) if known else None


def _nothing(arm: str, workload: str, why: tuple[Caution, ...]) -> CardMemory:
    unknown = Estimate(value=None, unit="mib", cautions=why)
    return CardMemory(
        arm=arm, workload=workload, gpu="–", total_mib=None, after_load=unknown,
        one_request=unknown, peak=unknown,
    )  # fmt: skip
