"""`nvidia-smi dmon`: columns by name from its own header lines, whatever their order and driver.

Verified on a text capture with `-o DT` (driver 580); the csv form and the GPM columns are read
from the tool's documentation.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import Trace
from gpuverdict.telemetry.cells import Quantity, read_numbers
from gpuverdict.telemetry.clock import Times, epoch_from_local, parse_trace_start
from gpuverdict.telemetry.samples import build_trace
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

_QUANTITIES: dict[str, Quantity] = {
    "pwr": Quantity(column="power_w", dimension="w", unit="W"),
    "gtemp": Quantity(column="temperature_c", dimension="c", unit="C"),
    "mtemp": Quantity(column="mem_temperature_c", dimension="c", unit="C"),
    "sm": Quantity(column="gpu_util_ratio", dimension="ratio", unit="%"),
    "mem": Quantity(column="mem_util_ratio", dimension="ratio", unit="%"),
    "mclk": Quantity(column="mem_clock_mhz", dimension="mhz", unit="MHz"),
    "pclk": Quantity(column="sm_clock_mhz", dimension="mhz", unit="MHz"),
    "fb": Quantity(column="memory_used_mib", dimension="mib", unit="MiB"),
    "rxpci": Quantity(column="pcie_rx_mb_s", dimension="mb_s", unit="MB/s"),
    "txpci": Quantity(column="pcie_tx_mb_s", dimension="mb_s", unit="MB/s"),
    "smutil": Quantity(column="sm_active_ratio", dimension="ratio", unit="%"),
    "smocc": Quantity(column="sm_occupancy_ratio", dimension="ratio", unit="%"),
    "mmaact": Quantity(column="tensor_active_ratio", dimension="ratio", unit="%"),
    "dram": Quantity(column="dram_active_ratio", dimension="ratio", unit="%"),
}
# dmon prints binary mebibytes under the name MB.
_UNIT_NAMES = {"MB": "MiB"}
_DAY_S = 86400.0


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not the output of dmon, or None if it is."""
    head = document.data[:65536].decode("utf-8", errors="replace").lstrip("\x00 \t\r\n")
    first = head.split("\n", 1)[0]
    if not first.startswith("#"):
        return "its first line is no header that begins with #"
    names = _cells(first.lstrip("#"))
    if "gpu" not in [name.lower() for name in names]:
        return "its header has no column gpu"
    if "pid" in names:
        return "its rows are processes (pmon)"
    if not set(names) & set(_QUANTITIES):
        return "its header names no column of dmon"
    return None


def read(document: Document, options: ReadOptions) -> Trace:
    """Read the samples of dmon.

    Returns
    -------
    Trace
        One row a GPU and tick. Power is in whole watts. Without date and time (`-o DT`) there is
        no clock; time alone rolls over at midnight and needs `trace_start` for the date.

    Raises
    ------
    LogFormatError
        For a file without samples, a cell that is no number, or a column whose unit is not the
        documented one. A row with another number of cells than its header is dropped and counted.

    Notes
    -----
    A header is repeated every few rows; names are taken anew from each, because a restarted dmon
    may have been given other columns.
    """
    rows, units, dropped, cautions = _rows(document)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(_all_names(rows), pl.String))
    held: dict[str, pl.Series] = {}
    reasons: dict[str, pl.Series] = {}
    for name, quantity in _QUANTITIES.items():
        if name not in frame.columns:
            continue
        unit = _UNIT_NAMES.get(units.get(name, ""), units.get(name))
        if quantity.dimension == "mb_s" and unit == "MiB":
            unit = "MB/s"
        cells = read_numbers(
            frame[name], quantity, where=document.name, column=name, header_unit=unit
        )
        held[quantity.column], reasons[quantity.column] = cells.values, cells.reasons
    index = frame["gpu"].cast(pl.Int32, strict=False)
    if index.null_count():
        bad = frame["gpu"].filter(index.is_null())[0]
        raise LogFormatError(document.name, found=f"{bad!r} in column gpu", expected="a GPU index")
    held["gpu_index"] = index
    draw = held.pop("power_w", None)
    times = _times(document, options, frame, index)
    return build_trace(
        document,
        source="dmon",
        columns=held,
        times=times,
        power_draw=draw,
        reasons=reasons,
        cautions=cautions,
        info={
            "time_zone": options.time_zone,
            "dropped": dropped,
            "resolution_s": 1.0,
            "unread_columns": [
                name
                for name in frame.columns
                if name not in _QUANTITIES and name not in ("gpu", "Date", "Time")
            ],
        },
    )


def _cells(line: str) -> list[str]:
    if "," in line:
        return [cell.strip() for cell in line.split(",")]
    return line.split()


def _all_names(rows: list[dict[str, str]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _rows(
    document: Document,
) -> tuple[list[dict[str, str]], dict[str, str], dict[str, int], list[Caution]]:
    names: list[str] = []
    units: dict[str, str] = {}
    rows: list[dict[str, str]] = []
    cautions: list[Caution] = []
    repeats = -1
    previous_was_header = False
    text = document.text.rstrip("\x00")
    lines = text.split("\n")
    dropped: dict[str, int] = {}
    first_bad = 0
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if not line:
            continue
        if line.startswith("#"):
            cells = _cells(line[1:].strip())
            if previous_was_header and "gpu" not in cells:
                if len(cells) == len(names):
                    units.update(zip(names, cells, strict=True))
            else:
                names, repeats = cells, repeats + 1
            previous_was_header = True
            continue
        previous_was_header = False
        cells = _cells(line)
        if number == len(lines):
            # No line end: the last number may be shortened, and nothing can show it.
            dropped["incomplete_last_line"] = 1
            cautions.append(caution("trace_cut", name=document.name, n_bytes=len(document.data)))
            continue
        if len(cells) != len(names):
            dropped["non_object"] = dropped.get("non_object", 0) + 1
            first_bad = first_bad or number
            continue
        rows.append(dict(zip(names, cells, strict=True)))
    if first_bad:
        cautions.append(
            caution(
                "trace_rows_dropped",
                name=document.name,
                n=dropped["non_object"],
                reasons="non_object",
                line=first_bad,
            )
        )
    if not rows:
        raise LogFormatError(document.name, found="a header without samples", expected="samples")
    if repeats > 0:
        dropped["header_repeat"] = repeats
    return rows, units, dropped, cautions


def _times(
    document: Document, options: ReadOptions, frame: pl.DataFrame, index: pl.Series
) -> Times:
    if "Date" in frame.columns and "Time" in frame.columns:
        stamps = (frame["Date"] + " " + frame["Time"]).str.to_datetime(
            "%Y%m%d %H:%M:%S", strict=False, time_unit="us"
        )
        return epoch_from_local(stamps, index, options.time_zone, document.name)
    if "Time" in frame.columns:
        return _times_without_date(document, options, frame["Time"])
    nothing = pl.Series([None] * frame.height, dtype=pl.Float64)
    if options.trace_start is None:
        return Times(
            epoch_s=nothing,
            elapsed_s=nothing,
            cautions=(caution("time_absent", name=document.name),),
        )
    start, step = parse_trace_start(options.trace_start, options.time_zone)
    if step is None:
        return Times(
            epoch_s=nothing,
            elapsed_s=nothing,
            cautions=(caution("time_absent", name=document.name),),
        )
    tick = pl.DataFrame({"gpu": index}).select(pl.int_range(pl.len()).over("gpu")).to_series()
    elapsed = tick.cast(pl.Float64) * step
    return Times(epoch_s=elapsed + start, elapsed_s=elapsed)


def _times_without_date(document: Document, options: ReadOptions, clock: pl.Series) -> Times:
    """Unroll a clock of day: a jump back by most of a day is midnight."""
    parts = clock.str.extract_groups(r"^(\d{2}):(\d{2}):(\d{2})$").struct.unnest().cast(pl.Float64)
    seconds = (parts["1"] * 3600 + parts["2"] * 60 + parts["3"]).to_numpy()
    steps = np.diff(seconds, prepend=seconds[:1])
    elapsed = seconds + _DAY_S * np.cumsum(steps < -_DAY_S / 2) - seconds[0]
    since = pl.Series(elapsed, dtype=pl.Float64, nan_to_null=True)
    if options.trace_start is None:
        nothing = pl.Series([None] * len(since), dtype=pl.Float64)
        return Times(
            epoch_s=nothing,
            elapsed_s=since,
            cautions=(caution("time_absent", name=document.name),),
        )
    start, _ = parse_trace_start(options.trace_start, options.time_zone)
    return Times(epoch_s=since + start, elapsed_s=since)
