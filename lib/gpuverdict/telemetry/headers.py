"""What the columns of a home-made logger mean: a vocabulary of names, and units read from names."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Meaning", "meaning_of"]

# Names people and NVML use, without unit -> sample column and its dimension.
_STEMS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("power", "power_draw", "power_usage", "powerusage", "gpu_power", "board_power"),
        ("power_draw", "w"),
    ),
    **dict.fromkeys(
        ("power_average", "average_power", "power_avg", "power_draw_average"),
        ("power_average_w", "w"),
    ),
    **dict.fromkeys(
        ("power_instant", "instant_power", "power_draw_instant"), ("power_instant_w", "w")
    ),
    **dict.fromkeys(("power_limit", "enforced_power_limit"), ("power_limit_w", "w")),
    **dict.fromkeys(
        ("energy", "total_energy", "energy_consumption", "total_energy_consumption",
         "totalenergyconsumption", "energy_counter"),
        ("energy_j", "j"),
    ),
    **dict.fromkeys(
        ("gpu_util", "util", "utilization", "utilization_gpu", "gpu_utilization", "util_gpu"),
        ("gpu_util_ratio", "ratio"),
    ),
    **dict.fromkeys(
        ("mem_util", "memory_util", "utilization_memory", "memory_utilization", "util_memory"),
        ("mem_util_ratio", "ratio"),
    ),
    **dict.fromkeys(
        ("memory_used", "mem_used", "used_memory", "vram_used", "fb_used", "gpu_memory_used"),
        ("memory_used_mib", "mib"),
    ),
    **dict.fromkeys(
        ("memory_total", "mem_total", "total_memory", "vram_total", "fb_total"),
        ("memory_total_mib", "mib"),
    ),
    **dict.fromkeys(
        ("sm_clock", "clock_sm", "clocks_sm", "clocks_current_sm"), ("sm_clock_mhz", "mhz")
    ),
    **dict.fromkeys(
        ("mem_clock", "memory_clock", "clock_mem", "clocks_mem", "clocks_current_memory"),
        ("mem_clock_mhz", "mhz"),
    ),
    **dict.fromkeys(
        ("temperature", "temp", "gpu_temp", "temperature_gpu", "gpu_temperature"),
        ("temperature_c", "c"),
    ),
    **dict.fromkeys(
        ("mem_temperature", "memory_temperature", "temperature_memory", "mem_temp"),
        ("mem_temperature_c", "c"),
    ),
    **dict.fromkeys(("fan", "fan_speed"), ("fan_ratio", "ratio")),
    **dict.fromkeys(("pcie_rx", "pcie_rx_throughput"), ("pcie_rx_mb_s", "mb_s")),
    **dict.fromkeys(("pcie_tx", "pcie_tx_throughput"), ("pcie_tx_mb_s", "mb_s")),
    **dict.fromkeys(("nvlink_rx",), ("nvlink_rx_mb_s", "mb_s")),
    **dict.fromkeys(("nvlink_tx",), ("nvlink_tx_mb_s", "mb_s")),
    **dict.fromkeys(("sm_active",), ("sm_active_ratio", "ratio")),
    **dict.fromkeys(("sm_occupancy",), ("sm_occupancy_ratio", "ratio")),
    **dict.fromkeys(("tensor_active",), ("tensor_active_ratio", "ratio")),
    **dict.fromkeys(("dram_active",), ("dram_active_ratio", "ratio")),
    **dict.fromkeys(
        ("throttle_mask", "throttle_reasons", "clocks_throttle_reasons", "clocks_event_reasons",
         "current_clocks_throttle_reasons", "current_clocks_event_reasons"),
        ("throttle_mask", "mask"),
    ),
    **dict.fromkeys(("gpu_uuid", "uuid"), ("gpu_uuid", "text")),
    **dict.fromkeys(("gpu_index", "index", "gpu", "gpu_id", "device"), ("gpu_index", "index")),
    **dict.fromkeys(("name", "gpu_name", "device_name", "model_name"), ("name", "text")),
    **dict.fromkeys(("host", "hostname"), ("host", "text")),
    **dict.fromkeys(("pstate",), ("pstate", "text")),
    **dict.fromkeys(("power_kind",), ("power_kind", "text")),
    **dict.fromkeys(
        ("time", "timestamp", "ts", "time_epoch", "epoch", "unix_time", "datetime"),
        ("time", "time"),
    ),
    **dict.fromkeys(("elapsed",), ("elapsed", "time")),
}  # fmt: skip

# Suffix of a name, or text in brackets -> unit as `cells.UNITS` spells it.
_UNITS: dict[str, str] = {
    "mw": "mW", "w": "W", "watt": "W", "watts": "W", "kw": "kW",
    "mj": "mJ", "j": "J", "uj": "uJ", "kj": "kJ",
    "bytes": "B", "kib": "KiB", "mib": "MiB", "gib": "GiB",
    "mhz": "MHz", "ghz": "GHz", "c": "C", "celsius": "C",
    "pct": "%", "percent": "%", "%": "%", "ratio": "ratio",
    "ns": "ns", "us": "us", "ms": "ms", "s": "s", "sec": "s", "seconds": "s",
    "kb_s": "KB/s", "mb_s": "MB/s", "gb_s": "GB/s", "b_s": "B/s",
}  # fmt: skip
# Decimal or binary: loggers use either under these names.
AMBIGUOUS_UNITS = frozenset({"mb", "gb", "kb"})


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a column is: target, dimension, the unit its name states, or why it is not read."""

    column: str
    dimension: str
    unit: str | None
    refused: str | None = None


def meaning_of(header: str) -> Meaning | None:
    """Say what a column header means; None for a name outside the vocabulary.

    Examples
    --------
    >>> meaning_of("power_mW").unit, meaning_of("Memory Used (MiB)").column
    ('mW', 'memory_used_mib')
    >>> meaning_of("mem_used_mb").refused
    'MB may be 10^6 or 2^20 bytes'
    """
    bracket = re.search(r"[\[(]\s*([^\])]+?)\s*[\])]\s*$", header)
    text = header[: bracket.start()] if bracket else header
    name = re.sub(r"[^a-z0-9%]+", "_", text.strip().lower()).strip("_")
    stated = bracket[1].lower().replace("/", "_").replace("°", "") if bracket else None
    candidates = [(name, stated)]
    for cut in (1, 2):
        words = name.split("_")
        if stated is None and len(words) > cut:
            candidates.append(("_".join(words[:-cut]), "_".join(words[-cut:])))
    for stem, unit in candidates:
        if stem not in _STEMS:
            continue
        column, dimension = _STEMS[stem]
        if unit is None:
            return Meaning(column, dimension, None)
        if unit in _UNITS:
            return Meaning(column, dimension, _UNITS[unit])
        if unit in AMBIGUOUS_UNITS:
            why = f"{unit.upper()} may be 10^{_POWER[unit][0]} or 2^{_POWER[unit][1]} bytes"
            return Meaning(column, dimension, None, why)
        if bracket:
            return Meaning(column, dimension, None, f"{unit!r} is no unit of it")
    return None


_POWER = {"kb": (3, 10), "mb": (6, 20), "gb": (9, 30)}
