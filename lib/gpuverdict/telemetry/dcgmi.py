"""`dcgmi dmon`: field tags by header, `ID` lines, no time stamps. Unverified by a real capture."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import Trace
from gpuverdict.telemetry.clock import Times, parse_trace_start
from gpuverdict.telemetry.samples import build_trace
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

# tag of the header -> (sample column, factor to the base unit)
_TAGS: dict[str, tuple[str, float]] = {
    "POWER": ("power_draw", 1.0),
    "TOTEC": ("energy_j", 1e-3),
    "TMPTR": ("temperature_c", 1.0),
    "MMTMP": ("mem_temperature_c", 1.0),
    "SMCLK": ("sm_clock_mhz", 1.0),
    "MMCLK": ("mem_clock_mhz", 1.0),
    "GPUTL": ("gpu_util_ratio", 0.01),
    "MCUTL": ("mem_util_ratio", 0.01),
    "FBUSD": ("memory_used_mib", 1.0),
    "FBTTL": ("memory_total_mib", 1.0),
    "SMACT": ("sm_active_ratio", 1.0),
    "SMOCC": ("sm_occupancy_ratio", 1.0),
    "TENSO": ("tensor_active_ratio", 1.0),
    "DRAMA": ("dram_active_ratio", 1.0),
    "PCITX": ("pcie_tx_mb_s", 1e-6),
    "PCIRX": ("pcie_rx_mb_s", 1e-6),
    "NVLTX": ("nvlink_tx_mb_s", 1e-6),
    "NVLRX": ("nvlink_rx_mb_s", 1e-6),
}
_ENTITY = re.compile(r"^(?P<kind>GPU-I|GPU-CI|GPU|Switch|CPU)\s+(?P<id>\S+)\s+(?P<rest>.+)$")


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not the output of `dcgmi dmon`, or None if it is."""
    head = document.data[:4096].decode("utf-8", errors="replace").lstrip("\x00 \t\r\n")
    if not re.match(r"^#\s*Entity\b", head):
        return "its first line is no header that begins with #Entity"
    return None


def read(document: Document, options: ReadOptions) -> Trace:
    """Read the samples of `dcgmi dmon`.

    Returns
    -------
    Trace
        One row a GPU and tick. There are no time stamps: state `trace_start` with the step, such
        as `2026-12-01T02:00:00Z/PT0.1S`. Rows of MIG slices are left out and counted.

    Raises
    ------
    LogFormatError
        For a header without a known tag, or a row with another number of cells.

    Notes
    -----
    Unverified: the layout is known from documentation and public parsers.
    """
    tags: list[str] = []
    rows: list[dict[str, Any]] = []
    slices = 0
    lines = document.text.rstrip("\x00").split("\n")
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if re.match(r"^#\s*Entity\b", line):
            tags = re.sub(r"^#\s*Entity\b", "", line).split()
            continue
        found = _ENTITY.match(line)
        if found is None:
            continue
        if found["kind"] != "GPU":
            slices += 1
            continue
        cells = found["rest"].split()
        if number == len(lines):
            continue
        if len(cells) != len(tags):
            raise LogFormatError(
                f"{document.name}:{number}",
                found=f"{len(cells)} values",
                expected=f"{len(tags)} as its header has",
            )
        rows.append({"gpu_index": found["id"], **dict(zip(tags, cells, strict=True))})
    known = [tag for tag in dict.fromkeys(t for row in rows for t in row) if tag in _TAGS]
    if not known:
        raise LogFormatError(
            document.name, found="no samples of a known field", expected=", ".join(_TAGS)
        )
    index = pl.Series([row["gpu_index"] for row in rows]).cast(pl.Int32, strict=False)
    if index.null_count():
        raise LogFormatError(document.name, found="a GPU without a number", expected="GPU 0 ...")
    held: dict[str, pl.Series] = {"gpu_index": index}
    for tag in known:
        column, factor = _TAGS[tag]
        cells = pl.Series([row.get(tag) for row in rows], dtype=pl.String)
        number_cells = cells.cast(pl.Float64, strict=False)
        bad = cells.filter(number_cells.is_null() & ~cells.is_in(["N/A"]) & cells.is_not_null())
        if len(bad):
            raise LogFormatError(
                document.name, found=f"{bad[0][:40]!r} under {tag}", expected="a number or N/A"
            )
        held[column] = number_cells * factor
    draw = held.pop("power_draw", None)
    notes = [caution("layout_unverified", name=document.name, dialect="dcgmi dmon")]
    return build_trace(
        document,
        source="dcgmi",
        columns=held,
        times=_times(document, options, index),
        power_draw=draw,
        cautions=notes,
        info={"dropped": {"non_object": slices} if slices else {}, "unverified": True},
    )


def _times(document: Document, options: ReadOptions, index: pl.Series) -> Times:
    nothing = pl.Series([None] * len(index), dtype=pl.Float64)
    start, step = (
        parse_trace_start(options.trace_start, options.time_zone)
        if options.trace_start
        else (None, None)
    )
    if start is None or step is None:
        note = caution("time_absent", name=document.name)
        return Times(epoch_s=nothing, elapsed_s=nothing, cautions=(note,))
    tick = pl.DataFrame({"gpu": index}).select(pl.int_range(pl.len()).over("gpu")).to_series()
    elapsed = tick.cast(pl.Float64) * step
    return Times(epoch_s=elapsed + start, elapsed_s=elapsed)
