"""From the wall-clock stamps of a trace to epoch seconds, without guessing a zone.

A stamp without a zone is worth nothing in a join. File order is the truth: it tells the two passes
of the repeated hour apart when clocks go back, and it shows when a clock was set back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from gpuverdict.errors import Caution, LogFormatError, ParameterError
from gpuverdict.text import caution

__all__ = ["Times", "epoch_from_local", "parse_trace_start", "times_from_epoch"]

_START = re.compile(r"^(?P<stamp>[^/]+?)(?:/PT(?P<step>\d+(?:\.\d+)?)S)?$")
# A sampler that reads several GPUs in turn may print their rows a few milliseconds out of order.
_JITTER_S = 0.05
# The last second of the year 9999: later stamps are of another unit.
_LAST_EPOCH_S = 253_402_300_799.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds of every row: epoch (null where unknown) and since the first sample."""

    epoch_s: pl.Series
    elapsed_s: pl.Series
    cautions: tuple[Caution, ...] = field(default=())


def epoch_from_local(stamps: pl.Series, gpu: pl.Series, time_zone: str | None, name: str) -> Times:
    """Turn zone-less local stamps, in file order, into epoch seconds.

    Parameters
    ----------
    stamps : polars.Series
        Naive `Datetime`, null where a row has no usable stamp.
    gpu : polars.Series
        Which GPU each row belongs to; the order of stamps is judged within a GPU.
    time_zone : str or None
        IANA name. Without one `epoch_s` is null throughout and the caution is `zone_unknown`.
    name : str
        What messages call the file.

    Returns
    -------
    Times
        A backward jump that is the zone's change to standard time is resolved as the second pass
        of the hour; any other backward jump is a clock step: rows after it keep their values but
        have no time, and the caution is `clock_step`.

    Raises
    ------
    ParameterError
        For a zone that is not an IANA name.

    Examples
    --------
    >>> stamps = pl.Series(["2026-11-01 01:59:59", "2026-11-01 01:00:00"]).str.to_datetime()
    >>> times = epoch_from_local(stamps, pl.Series([0, 0]), "America/Chicago", "a.csv")
    >>> times.epoch_s.to_list()
    [1793516399.0, 1793516400.0]
    """
    stamps = stamps.cast(pl.Datetime("us"))
    naive = stamps.dt.epoch("us").cast(pl.Float64).to_numpy() / 1e6
    groups = gpu.rank("dense").fill_null(0).to_numpy()
    cautions: list[Caution] = []
    if time_zone is None:
        wall, n_after = _until_step(naive, groups)
        cautions.append(caution("zone_unknown", name=name))
        if n_after:
            cautions.append(_step(name, stamps, wall, n_after))
        nothing = pl.Series([None] * len(stamps), dtype=pl.Float64)
        return Times(epoch_s=nothing, elapsed_s=_since_first(wall), cautions=tuple(cautions))
    first, second = _both_readings(stamps, time_zone)
    impossible = int((np.isnan(first) & ~np.isnan(naive)).sum())
    if impossible:
        cautions.append(caution("zone_impossible", name=name, zone=time_zone, n=impossible))
    wall, undecided = _choose_pass(first, second, groups)
    if undecided:
        cautions.append(caution("zone_ambiguous", name=name, zone=time_zone, n=undecided))
    wall, n_after = _until_step(wall, groups)
    if n_after:
        cautions.append(_step(name, stamps, wall, n_after))
    epoch = pl.Series(wall, dtype=pl.Float64, nan_to_null=True)
    return Times(epoch_s=epoch, elapsed_s=_since_first(wall), cautions=tuple(cautions))


def times_from_epoch(epoch_s: pl.Series, gpu: pl.Series, name: str) -> Times:
    """Take stamps that are epoch seconds already; rows after a backward jump lose their time.

    Raises
    ------
    LogFormatError
        For a stamp that no calendar holds: it is of another unit.

    Examples
    --------
    >>> times = times_from_epoch(pl.Series([10.0, 11.0, 5.0]), pl.Series(["a"] * 3), "a.csv")
    >>> times.epoch_s.to_list(), times.cautions[0].code
    ([10.0, 11.0, None], 'clock_step')
    """
    seconds = epoch_s.cast(pl.Float64).to_numpy()
    if not len(seconds) or np.isnan(seconds).all():
        nothing = pl.Series([None] * len(seconds), dtype=pl.Float64)
        return Times(
            epoch_s=nothing, elapsed_s=nothing, cautions=(caution("time_absent", name=name),)
        )
    if np.nanmax(np.abs(seconds)) > _LAST_EPOCH_S:
        raise LogFormatError(name, found=f"the time {np.nanmax(np.abs(seconds)):.6g} s",
                             expected="seconds since 1970, before the year 10000")  # fmt: skip
    wall, n_after = _until_step(seconds, gpu.rank("dense").fill_null(0).to_numpy())
    notes: tuple[Caution, ...] = ()
    if n_after:
        stamps = pl.from_epoch((epoch_s * 1e6).cast(pl.Int64), time_unit="us")
        notes = (_step(name, stamps, wall, n_after),)
    epoch = pl.Series(wall, dtype=pl.Float64, nan_to_null=True)
    return Times(epoch_s=epoch, elapsed_s=_since_first(wall), cautions=notes)


def parse_trace_start(text: str, time_zone: str | None) -> tuple[float, float | None]:
    """Read a `trace_start` of the campaign file: epoch of the first sample, and the step if stated.

    Examples
    --------
    >>> parse_trace_start("2026-12-01T02:00:00Z/PT0.1S", None)
    (1796090400.0, 0.1)

    Raises
    ------
    ParameterError
        For anything but an ISO 8601 time (with a zone, or with `time_zone` beside it), optionally
        followed by `/PT<seconds>S`.
    """
    match = _START.match(text.strip())
    expected = "an ISO 8601 time such as 2026-12-01T02:00:00Z, optionally followed by /PT0.1S"
    try:
        stamp = datetime.fromisoformat(match["stamp"]) if match else None
    except ValueError:
        stamp = None
    if match is None or stamp is None:
        raise ParameterError("trace_start", found=repr(text), expected=expected)
    if stamp.tzinfo is None:
        if time_zone is None:
            raise ParameterError(
                "trace_start", found=f"{text!r} without a zone", expected="a zone, or `time_zone`"
            )
        stamp = stamp.replace(tzinfo=_zone(time_zone))
    step = float(match["step"]) if match["step"] else None
    return stamp.astimezone(UTC).timestamp(), step


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ParameterError(
            "time_zone", found=repr(name), expected="an IANA name such as Asia/Shanghai"
        ) from None


def _both_readings(stamps: pl.Series, time_zone: str) -> tuple[np.ndarray, np.ndarray]:
    _zone(time_zone)
    readings = []
    for ambiguous in ("earliest", "latest"):
        zoned = stamps.dt.replace_time_zone(time_zone, ambiguous=ambiguous, non_existent="null")
        readings.append(zoned.dt.epoch("us").cast(pl.Float64).to_numpy() / 1e6)
    return readings[0], readings[1]


def _choose_pass(
    first: np.ndarray, second: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, int]:
    """Decide which pass of a repeated hour each row belongs to, by the order of the file."""
    chosen = first.copy()
    ambiguous = second > first
    if not ambiguous.any():
        return chosen, 0
    undecided = 0
    for group in np.unique(groups):
        rows = np.flatnonzero((groups == group) & ~np.isnan(first))
        hour = rows[ambiguous[rows]]
        if not len(hour):
            continue
        back = np.flatnonzero(np.diff(first[hour]) < -_JITTER_S)
        before = rows[rows < hour[0]]
        after = rows[rows > hour[-1]]
        if len(back):
            turn = hour[back[0] + 1]
            # Only a jump of about the shift itself is the change of the zone.
            shift = second[turn] - first[turn]
            if first[turn] + shift >= first[hour[back[0]]] - _JITTER_S:
                chosen[hour[hour >= turn]] = second[hour[hour >= turn]]
            continue
        contiguous = first[hour[-1]] + 600.0
        if len(before) and first[before[-1]] >= first[hour[0]] - 600.0:
            continue
        if len(after) and first[after[0]] - (second[hour[0]] - first[hour[0]]) <= contiguous:
            chosen[hour] = second[hour]
            continue
        chosen[hour] = np.nan
        undecided += len(hour)
    return chosen, undecided


def _until_step(seconds: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, int]:
    """Blank every row after the first backward jump of any GPU."""
    cut = len(seconds)
    for group in np.unique(groups):
        rows = np.flatnonzero((groups == group) & ~np.isnan(seconds))
        back = np.flatnonzero(np.diff(seconds[rows]) < -_JITTER_S)
        if len(back):
            cut = min(cut, int(rows[back[0] + 1]))
    kept = seconds.copy()
    kept[cut:] = np.nan
    return kept, len(seconds) - cut


def _step(name: str, stamps: pl.Series, wall: np.ndarray, n_after: int) -> Caution:
    turn = len(wall) - n_after
    return caution(
        "clock_step", name=name, n=n_after, before=str(stamps[turn - 1]), after=str(stamps[turn])
    )


def _since_first(seconds: np.ndarray) -> pl.Series:
    known = seconds[~np.isnan(seconds)]
    origin = known[0] if len(known) else np.nan
    return pl.Series(seconds - origin, dtype=pl.Float64, nan_to_null=True)
