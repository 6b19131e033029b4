"""One clock for requests and samples: where a run lies in a trace, or why that cannot be known."""

from __future__ import annotations

from datetime import UTC, datetime

from gpuverdict.errors import Caution
from gpuverdict.schema import Run, Trace
from gpuverdict.text import caution

__all__ = ["COARSE_CLOCK_S", "place"]

QUARTER_HOUR_S = 900.0
# Zones of the world span UTC-12 to UTC+14: two of them differ by 26 hours at most.
MAX_ZONE_ERROR_S = 26 * 3600.0
# Uncertainty of a run's start by how it was found.
COARSE_CLOCK_S: dict[str, float] = {"end_stamp_minus_duration": 1.0, "file_mtime": 2.0}


def place(run: Run, trace: Trace) -> tuple[float | None, tuple[Caution, ...]]:
    """Say which epoch second is the run's time zero, so that its window can be cut out of a trace.

    Parameters
    ----------
    run : Run
        `info` keys `t0_epoch_s`, `t0_quality`, `duration_s`, `gpu_uuids`.
    trace : Trace
        Samples with `time_epoch_s`.

    Returns
    -------
    offset_s : float or None
        Seconds to add to a time since t0 to get epoch seconds; None where a join is refused.
    cautions : tuple of Caution
        Refusals: `no_clock`, `zone_unknown`, `trace_of_other_gpu`, `no_overlap` (with `zone_offset`
        where whole quarter hours would explain it; nothing is ever shifted by guess).
        Reservations: `clock_coarse`, `trace_partial`.
    """
    t0 = run.info.get("t0_epoch_s")
    quality = run.info.get("t0_quality") or "none"
    if t0 is None or quality == "none":
        return None, (caution("no_clock", name=str(run.info.get("source_name") or "the run")),)
    epoch = trace.samples["time_epoch_s"].drop_nulls()
    name = str(trace.info.get("source_name") or "the trace")
    if not len(epoch):
        zoned = trace.samples["elapsed_s"].null_count() < trace.samples.height
        code = "zone_unknown" if zoned else "no_clock"
        return None, (caution(code, name=name),)
    other = _other_gpu(run, trace)
    if other is not None:
        return None, (other,)
    start, end = float(t0), float(t0) + float(run.info.get("duration_s") or 0.0)
    first, last = float(epoch.min()), float(epoch.max())  # type: ignore[arg-type]
    if end < first or start > last:
        return None, _apart(start, end, first, last)
    cautions: list[Caution] = []
    if quality in COARSE_CLOCK_S:
        cautions.append(
            caution("clock_coarse", uncertainty_s=COARSE_CLOCK_S[quality], quality=quality)
        )
    missing = max(0.0, first - start) + max(0.0, end - last)
    if missing > 0 and end > start:
        share = 1.0 - missing / (end - start)
        cautions.append(caution("trace_partial", share=share, missing_s=missing))
    return float(t0), tuple(cautions)


def _other_gpu(run: Run, trace: Trace) -> Caution | None:
    expected = set(run.info.get("gpu_uuids") or ())
    found = set(trace.samples["gpu_uuid"].drop_nulls().unique().to_list())
    if not expected or not found or expected & found:
        return None
    return caution(
        "trace_of_other_gpu",
        found=", ".join(sorted(found)),
        expected=", ".join(sorted(expected)),
    )


def _apart(start: float, end: float, first: float, last: float) -> tuple[Caution, ...]:
    note = caution(
        "no_overlap",
        run_start=_clock(start),
        run_end=_clock(end),
        trace_start=_clock(first),
        trace_end=_clock(last),
    )
    # How far the trace's clock would have to move for one to lie inside the other.
    low, high = sorted((end - last, start - first))
    nearest = min(
        (k * QUARTER_HOUR_S for k in range(-104, 105) if low <= k * QUARTER_HOUR_S <= high),
        key=abs,
        default=None,
    )
    if nearest is None or abs(nearest) > MAX_ZONE_ERROR_S:
        return (note,)
    return note, caution("zone_offset", hours=nearest / 3600.0)


def _clock(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
