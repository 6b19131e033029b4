"""The GPU telemetry that AIPerf writes beside its records (JSON lines).

Seen of 0.6 to 0.13, written from a mock page of DCGM whose values were known. Energy is in
megajoules, memory in gigabytes of 1e9 bytes; from 0.12 names carry the prefix `nvidia_`, and power,
memory and temperature other words.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import Trace
from gpuverdict.telemetry.clock import times_from_epoch
from gpuverdict.telemetry.samples import build_trace, power_kind_of
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

_GB_MIB = 1e9 / 2**20
# metric -> (sample column, factor to the base unit); from 0.12 on under `nvidia_` and, some of
# them, with another word.
_METRICS: dict[str, tuple[str, float]] = {
    "gpu_power_usage": ("power_draw", 1.0),
    "power_usage": ("power_draw", 1.0),
    "memory_utilization": ("mem_util_ratio", 0.01),
    "memory_used": ("memory_used_mib", _GB_MIB),
    "temperature": ("temperature_c", 1.0),
    "sm_utilization": ("sm_active_ratio", 0.01),
    "gpu_power_limit": ("power_limit_w", 1.0),
    "energy_consumption": ("energy_j", 1e6),
    "gpu_utilization": ("gpu_util_ratio", 0.01),
    "mem_utilization": ("mem_util_ratio", 0.01),
    "memory_copy_utilization": ("mem_util_ratio", 0.01),
    "gpu_memory_used": ("memory_used_mib", _GB_MIB),
    "total_gpu_memory": ("memory_total_mib", _GB_MIB),
    "gpu_temperature": ("temperature_c", 1.0),
    "memory_temperature": ("mem_temperature_c", 1.0),
    "sm_clock_frequency": ("sm_clock_mhz", 1.0),
    "memory_clock_frequency": ("mem_clock_mhz", 1.0),
}


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is no AIPerf telemetry, or None if it is."""
    head = document.data[:65536].lstrip().split(b"\n", 1)[0]
    if b'"telemetry_data"' not in head or b'"gpu_uuid"' not in head:
        return "its first record has no telemetry_data and gpu_uuid"
    return None


def read(document: Document, options: ReadOptions) -> Trace:
    """Read AIPerf's GPU telemetry.

    Returns
    -------
    Trace
        One row a GPU and scrape, epoch seconds. There are no clocks, limits or throttle reasons in
        most versions; those columns are null.

    Raises
    ------
    LogFormatError
        For a line that is no JSON object or lacks time, GPU or data (a cut last line is dropped).
    """
    rows: list[dict[str, Any]] = []
    unread: set[str] = set()
    lines = document.text.rstrip("\x00").split("\n")
    dropped: dict[str, int] = {}
    cautions: list[Caution] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            data = record["telemetry_data"].items()
            row = {
                "time_epoch_s": _seconds(record["timestamp_ns"]),
                "gpu_uuid": str(record["gpu_uuid"]),
                "gpu_index": record.get("gpu_index"),
                "name": _word(record.get("gpu_model_name") or record.get("model_name")),
                "host": _word(record.get("hostname")),
            }
        except (ValueError, KeyError, TypeError, AttributeError):
            if number == len(lines):
                dropped["incomplete_last_line"] = 1
                note = caution("trace_cut", name=document.name, n_bytes=len(document.data))
                cautions.append(note)
                continue
            raise LogFormatError(
                f"{document.name}:{number}",
                found=repr(line[:60]),
                expected="an object with timestamp_ns, gpu_uuid and telemetry_data",
            ) from None
        # Without DCGM the SM figure is a share of processes' time, not of active SMs.
        source = str(record.get("telemetry_source_url") or record.get("dcgm_url"))
        sampled = source.startswith("pynvml")
        for key, value in data:
            metric = key.removeprefix("nvidia_")
            if metric not in _METRICS or (sampled and metric == "sm_utilization"):
                unread.add(key)
                continue
            column, factor = _METRICS[metric]
            number_given = isinstance(value, (int, float)) and not isinstance(value, bool)
            row[column] = value * factor if number_given else None
        rows.append(row)
    if not rows:
        raise LogFormatError(document.name, found="no samples", expected="at least one")
    columns = {key for row in rows for key in row} - {"name", "time_epoch_s"}
    held = {
        column: pl.Series([row.get(column) for row in rows], dtype=_dtype(column), strict=False)
        for column in sorted(columns)
    }
    epoch = pl.Series([row["time_epoch_s"] for row in rows], dtype=pl.Float64)
    draw = held.pop("power_draw", None)
    return build_trace(
        document,
        source="aiperf",
        columns=held,
        times=times_from_epoch(epoch, held["gpu_uuid"], document.name),
        power_draw=draw,
        draw_kinds=[power_kind_of(row["name"]) for row in rows],
        cautions=cautions,
        info={
            "time_zone": "UTC",
            "names": {row["gpu_uuid"]: row["name"] for row in rows if row["name"]},
            "dropped": dropped,
            "unread_columns": sorted(unread),
        },
    )


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _seconds(stamp_ns: Any) -> float:
    if isinstance(stamp_ns, bool) or not isinstance(stamp_ns, int):
        raise ValueError(stamp_ns)
    # Split before dividing: the integer is larger than a float can hold exactly.
    return stamp_ns // 10**9 + (stamp_ns % 10**9) / 1e9


def _dtype(column: str) -> Any:
    if column in ("gpu_uuid", "host"):
        return pl.String
    return pl.Int32 if column == "gpu_index" else pl.Float64
