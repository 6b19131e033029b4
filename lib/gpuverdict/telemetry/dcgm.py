"""DCGM through its exporter: text pages, appended pages, and Prometheus range dumps.

Under MIG every slice repeats the values of the board; those are kept once, and what belongs to a
slice stays with the slice (`info["mig_slices"]`).
"""

from __future__ import annotations

from typing import Any

import polars as pl

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import Trace
from gpuverdict.telemetry.clock import times_from_epoch
from gpuverdict.telemetry.prometheus import (
    PromSample,
    looks_like_prometheus,
    read_samples,
    series_names,
)
from gpuverdict.telemetry.samples import build_trace, power_kind_of
from gpuverdict.text import caution

__all__ = ["BLANKS", "read", "why_not"]

# What DCGM puts in place of a value it does not have: not found, not supported, not permitted.
BLANKS = frozenset(
    blank + k for blank in (float(0x7FFFFFFFFFFFFFF0), float(0x7FFFFFF0), 2.0**47) for k in range(4)
)

# field -> (sample column, factor to the base unit, whether it is of the whole board)
_FIELDS: dict[str, tuple[str, float, bool]] = {
    "DCGM_FI_DEV_POWER_USAGE": ("power_draw", 1.0, True),
    "DCGM_FI_DEV_POWER_USAGE_INSTANT": ("power_instant_w", 1.0, True),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_j", 1e-3, True),
    "DCGM_FI_DEV_GPU_UTIL": ("gpu_util_ratio", 0.01, True),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("mem_util_ratio", 0.01, True),
    "DCGM_FI_DEV_SM_CLOCK": ("sm_clock_mhz", 1.0, True),
    "DCGM_FI_DEV_MEM_CLOCK": ("mem_clock_mhz", 1.0, True),
    "DCGM_FI_DEV_GPU_TEMP": ("temperature_c", 1.0, True),
    "DCGM_FI_DEV_MEMORY_TEMP": ("mem_temperature_c", 1.0, True),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": ("power_limit_w", 1.0, True),
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": ("power_limit_w", 1.0, True),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": ("throttle_mask", 1.0, True),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": ("throttle_mask", 1.0, True),
    "DCGM_FI_DEV_FAN_SPEED": ("fan_ratio", 0.01, True),
    "DCGM_FI_DEV_FB_USED": ("memory_used_mib", 1.0, False),
    "DCGM_FI_DEV_FB_TOTAL": ("memory_total_mib", 1.0, False),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_active_ratio", 1.0, False),
    "DCGM_FI_PROF_SM_OCCUPANCY": ("sm_occupancy_ratio", 1.0, False),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor_active_ratio", 1.0, False),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("dram_active_ratio", 1.0, False),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gr_engine_active_ratio", 1.0, False),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("pcie_rx_mb_s", 1e-6, False),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("pcie_tx_mb_s", 1e-6, False),
    "DCGM_FI_PROF_NVLINK_RX_BYTES": ("nvlink_rx_mb_s", 1e-6, False),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": ("nvlink_tx_mb_s", 1e-6, False),
}
_PROFILING = ("sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio", "dram_active_ratio")


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document holds no DCGM series, or None if it does."""
    if not looks_like_prometheus(document):
        return "it is no Prometheus page or dump"
    if not any(name.startswith("DCGM_FI_") for name in series_names(document)):
        return "it has no DCGM_FI_ series"
    return None


def read(document: Document, options: ReadOptions) -> Trace:
    """Read the samples of dcgm-exporter.

    Returns
    -------
    Trace
        One row a GPU and scrape. Without time stamps in the file `time_epoch_s` is null. Samples
        that only repeat the one before are merged. `info["series"]` lists the fields present, so
        that two cards can be compared on what both report.

    Raises
    ------
    LogFormatError
        For a series without a GPU label, or slices that disagree about a value of their board.
    """
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    slices: list[dict[str, Any]] = []
    mig: set[str] = set()
    present: set[str] = set()
    uncertain: set[str] = set()
    for sample in read_samples(document):
        if not sample.name.startswith("DCGM_FI_"):
            continue
        present.add(sample.name)
        if sample.name.endswith("_VIOLATION"):
            uncertain.add(sample.name)
        if sample.name not in _FIELDS:
            continue
        row = _row(document, rows, sample)
        column, factor, of_board = _FIELDS[sample.name]
        known = sample.value is not None and sample.value not in BLANKS
        value = sample.value * factor if known and sample.value is not None else None
        slice_id = sample.labels.get("GPU_I_ID")
        if slice_id:
            mig.add(row["gpu_uuid"] or str(row["gpu_index"]))
        if slice_id and not of_board:
            slices.append(
                {
                    "gpu_uuid": row["gpu_uuid"],
                    "slice_id": slice_id,
                    "profile": sample.labels.get("GPU_I_PROFILE"),
                    "time_epoch_s": sample.time_epoch_s,
                    "metric": column,
                    "value": value,
                }
            )
            continue
        if slice_id and row.get(column) not in (None, value):
            raise LogFormatError(
                document.name,
                found=f"{row[column]} and {value} for {column} of one board",
                expected="one value a board and scrape",
            )
        row[column] = value
    if not rows:
        raise LogFormatError(document.name, found="no DCGM series it knows", expected="samples")
    cautions = [
        caution("unit_uncertain", name=document.name, column=name, unit="ns")
        for name in sorted(uncertain)
    ]
    return _trace(document, list(rows.values()), slices, mig, present, cautions)


def _row(
    document: Document, rows: dict[tuple[int, str], dict[str, Any]], sample: PromSample
) -> dict[str, Any]:
    labels = sample.labels
    uuid = labels.get("UUID") or labels.get("uuid")
    index = labels.get("gpu") or (labels.get("device") or "").removeprefix("nvidia")
    who = uuid or index
    if not who:
        raise LogFormatError(
            document.name, found=f"{sample.name} without gpu or UUID", expected="a label of the GPU"
        )
    return rows.setdefault(
        (sample.scrape, who),
        {
            "gpu_uuid": uuid,
            "gpu_index": int(index) if index.isdigit() else None,
            "name": labels.get("modelName"),
            "host": labels.get("Hostname") or labels.get("hostname"),
            "time_epoch_s": sample.time_epoch_s,
        },
    )


def _trace(
    document: Document,
    rows: list[dict[str, Any]],
    slices: list[dict[str, Any]],
    mig: set[str],
    present: set[str],
    cautions: list[Caution],
) -> Trace:
    rows, repeated = _without_repeats(rows)
    if repeated:
        cautions.append(caution("samples_repeated", name=document.name, n=repeated))
    columns = sorted({key for row in rows for key in row} - {"name", "time_epoch_s"})
    held = {
        column: pl.Series([row.get(column) for row in rows], dtype=_dtype(column), strict=False)
        for column in columns
    }
    held.pop("gr_engine_active_ratio", None)
    reasons: dict[str, pl.Series] = {}
    if mig:
        cautions.append(caution("mig_board_power", name=document.name))
        split = [(row["gpu_uuid"] or str(row["gpu_index"])) in mig for row in rows]
        text = ["not reported under MIG" if is_split else None for is_split in split]
        for column in ("gpu_util_ratio", "mem_util_ratio"):
            reasons[column] = pl.Series(text, dtype=pl.String)
            if column in held:
                keep = pl.Series([not is_split for is_split in split])
                held[column] = pl.select(pl.when(keep).then(held[column])).to_series()
    names = {row["gpu_uuid"] or str(row["gpu_index"]): row["name"] for row in rows if row["name"]}
    # One such field proves that the card has them: the others were not exported.
    if not any(name.startswith("DCGM_FI_PROF_") for name in present):
        said = ", ".join(sorted(set(names.values()))) or document.name
        cautions.append(caution("profiling_absent", metrics=", ".join(_PROFILING), gpu=said))
    who = pl.Series([row["gpu_uuid"] or str(row["gpu_index"]) for row in rows])
    epoch = pl.Series([row["time_epoch_s"] for row in rows], dtype=pl.Float64)
    draw = held.pop("power_draw", None)
    return build_trace(
        document,
        source="dcgm_prom",
        columns=held,
        times=times_from_epoch(epoch, who, document.name),
        power_draw=draw,
        draw_kinds=[power_kind_of(row["name"]) for row in rows],
        reasons=reasons,
        cautions=cautions,
        info={
            "time_zone": "UTC",
            "names": names,
            "series": sorted(present),
            "mig_slices": slices,
            "dropped": {},
        },
    )


def _dtype(column: str) -> Any:
    if column in ("gpu_uuid", "host"):
        return pl.String
    if column == "gpu_index":
        return pl.Int32
    return pl.UInt64 if column == "throttle_mask" else pl.Float64


def _without_repeats(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Drop samples that repeat the one before of the same GPU, except the last of each GPU."""
    last = {row["gpu_uuid"] or row["gpu_index"]: i for i, row in enumerate(rows)}
    before: dict[Any, dict[str, Any]] = {}
    kept: list[dict[str, Any]] = []
    for i, row in enumerate(rows):
        who = row["gpu_uuid"] or row["gpu_index"]
        values = {key: value for key, value in row.items() if key != "time_epoch_s"}
        if before.get(who) == values and last[who] != i and row["time_epoch_s"] is not None:
            continue
        before[who] = values
        kept.append(row)
    return kept, len(rows) - len(kept)
