"""What `gpuverdict record` wrote: epoch and monotonic nanoseconds under a header of its own."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import Trace
from gpuverdict.telemetry.clock import Times
from gpuverdict.telemetry.samples import build_trace, power_kind_of
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

_MARK = b'"format": "gpuverdict record '
# column -> (sample column, factor to the base unit)
_COLUMNS: dict[str, tuple[str, float]] = {
    "power_average_mw": ("power_average_w", 1e-3),
    "power_instant_mw": ("power_instant_w", 1e-3),
    "power_draw_mw": ("power_draw", 1e-3),
    "energy_mj": ("energy_j", 1e-3),
    "sm_clock_mhz": ("sm_clock_mhz", 1.0),
    "mem_clock_mhz": ("mem_clock_mhz", 1.0),
    "gpu_util_pct": ("gpu_util_ratio", 0.01),
    "mem_util_pct": ("mem_util_ratio", 0.01),
    "memory_used_b": ("memory_used_mib", 1 / 2**20),
    "temperature_c": ("temperature_c", 1.0),
    "mem_temperature_c": ("mem_temperature_c", 1.0),
    "power_limit_mw": ("power_limit_w", 1e-3),
    "fan_pct": ("fan_ratio", 0.01),
    "pcie_rx_kb_s": ("pcie_rx_mb_s", 1e-3),
    "pcie_tx_kb_s": ("pcie_tx_mb_s", 1e-3),
}
# The wall clock may be slewed by a few hundred parts per million; more than this is a step.
_STEP_S = 0.1


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is no recording of `gpuverdict record`, or None if it is one."""
    first = document.data[:65536].split(b"\n", 1)[0]
    if not first.startswith(b"# {") or _MARK not in first:
        return "its first line is not the header of `gpuverdict record`"
    return None


def read(document: Document, options: ReadOptions) -> Trace:
    """Read a recording.

    Returns
    -------
    Trace
        Epoch seconds throughout; where the wall clock was set, rows after the step have none
        (`clock_step`). `info` holds names, driver, host and interval from the header.

    Raises
    ------
    LogFormatError
        For a header or row that the recorder did not write. A cut last row (a full disk) is
        dropped and counted.
    """
    lines = document.text.rstrip("\x00").split("\n")
    about = _about(document, lines[0])
    header = lines[1].strip().split(",") if len(lines) > 1 else []
    if "time_ns" not in header or "gpu_index" not in header:
        raise LogFormatError(document.name, found="no row of column names", expected="one")
    body = pl.Series(lines[2:], dtype=pl.String)
    whole = (body != "") & ~body.str.starts_with("#")
    dropped: dict[str, int] = {}
    cautions: list[Caution] = []
    if not document.text.endswith("\n") and len(body) and whole[-1]:
        whole = whole & (pl.Series(range(len(body))) != len(body) - 1)
        dropped["incomplete_last_line"] = 1
        cautions.append(caution("trace_cut", name=document.name, n_bytes=len(document.data)))
    cells = body.filter(whole).str.split(",")
    if not len(cells):
        raise LogFormatError(document.name, found="a header without samples", expected="samples")
    if (cells.list.len() != len(header)).any():
        bad = int((cells.list.len() != len(header)).arg_true()[0])
        raise LogFormatError(
            f"{document.name}, sample {bad + 1}",
            found=f"{len(cells[bad])} cells",
            expected=f"{len(header)}",
        )
    frame = cells.list.to_struct(fields=header).struct.unnest()
    frame = frame.with_columns(pl.all().replace("", None))
    numbers = _numbers(document, frame)
    gpus = {int(card["index"]): card for card in about["gpus"]}
    index = numbers["gpu_index"].cast(pl.Int32)
    held: dict[str, pl.Series] = {
        column: (numbers[name] * factor).alias(column)
        for name, (column, factor) in _COLUMNS.items()
        if name in numbers.columns
    }
    held["gpu_index"] = index
    held["gpu_uuid"] = _from_header(gpus, index, "uuid")
    memory = {i: card.get("memory_total_b") for i, card in gpus.items()}
    held["memory_total_mib"] = pl.Series(
        [None if memory.get(i) is None else memory[i] / 2**20 for i in index], dtype=pl.Float64
    )
    held["host"] = pl.Series([about.get("host")] * len(index), dtype=pl.String)
    if "throttle_mask" in frame.columns:
        held["throttle_mask"] = frame["throttle_mask"].cast(pl.UInt64, strict=False)
    if "pstate" in frame.columns:
        held["pstate"] = pl.select(pl.lit("P") + frame["pstate"]).to_series()
    names = _from_header(gpus, index, "name").to_list()
    draw = held.pop("power_draw", None)
    draw = draw if draw is not None and draw.null_count() < len(draw) else None
    if not any(line.startswith('# {"end_ns"') for line in lines[-3:]):
        cautions.append(caution("recorder_killed", name=document.name))
    return build_trace(
        document,
        source="nvml",
        columns=held,
        times=_times(document, frame),
        power_draw=draw,
        draw_kinds=[power_kind_of(name) for name in names],
        cautions=cautions,
        info={
            "time_zone": "UTC",
            "names": {card["uuid"]: card["name"] for card in gpus.values() if card.get("name")},
            "driver": about.get("driver"),
            "interval_ms": about.get("interval_ms"),
            "recorder": about["format"],
            "dropped": dropped,
            "unread_columns": [],
        },
    )


def _about(document: Document, line: str) -> dict[str, Any]:
    try:
        about = json.loads(line.removeprefix("#"))
        gpus = [(int(card["index"]), str(card["uuid"])) for card in about["gpus"]]
    except (ValueError, KeyError, TypeError):
        gpus = []
    if not gpus:
        raise LogFormatError(
            document.name, found="a broken header", expected="that of `gpuverdict record`"
        )
    return dict(about)


def _numbers(document: Document, frame: pl.DataFrame) -> pl.DataFrame:
    numbers = frame.cast(pl.Float64, strict=False)
    for name in frame.columns:
        bad = frame[name].filter(numbers[name].is_null() & frame[name].is_not_null())
        if len(bad):
            raise LogFormatError(
                document.name, found=f"{bad[0][:40]!r} in column {name}", expected="a number"
            )
    return numbers


def _from_header(gpus: dict[int, dict[str, Any]], index: pl.Series, key: str) -> pl.Series:
    told = {i: card.get(key) for i, card in gpus.items()}
    return pl.Series([told.get(i) for i in index], dtype=pl.String)


def _times(document: Document, frame: pl.DataFrame) -> Times:
    """Take the wall clock, and watch it against the monotonic one."""
    wall = frame["time_ns"].cast(pl.Int64)
    epoch = (wall // 10**9).cast(pl.Float64) + (wall % 10**9).cast(pl.Float64) / 1e9
    if "monotonic_ns" not in frame.columns:
        return Times(epoch_s=epoch, elapsed_s=epoch - epoch[0])
    steady = frame["monotonic_ns"].cast(pl.Int64)
    elapsed = (steady - steady[0]).cast(pl.Float64) / 1e9
    apart = ((wall - wall[0]) - (steady - steady[0])).cast(pl.Float64).to_numpy() / 1e9
    jumps = np.flatnonzero(np.abs(np.diff(apart)) > _STEP_S)
    if not len(jumps):
        return Times(epoch_s=epoch, elapsed_s=elapsed)
    turn = int(jumps[0]) + 1
    stamps = pl.from_epoch(wall // 1000, time_unit="us")
    note = caution(
        "clock_step", name=document.name, n=len(wall) - turn, before=str(stamps[turn - 1]),
        after=str(stamps[turn]),
    )  # fmt: skip
    known = pl.select(pl.when(pl.int_range(len(wall)) < turn).then(epoch)).to_series()
    return Times(epoch_s=known, elapsed_s=elapsed, cautions=(note,))
