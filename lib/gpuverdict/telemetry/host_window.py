"""Load of the host during one run, from vmstat, sar, pidstat or pages of node-exporter."""

from __future__ import annotations

import json
from dataclasses import dataclass

import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.text import caution

__all__ = ["HostLoad", "host_window"]

# Fewer samples than this in a window are no picture of it.
MIN_SAMPLES = 3
_MIB = 2.0**20
# A page of memory has 4 KiB or more: swap counted in pages is a lower bound.
_PAGE_MIB = 4 / 1024
_SWAPPED = ("node_vmstat_pswpin", "node_vmstat_pswpout")
_TRAFFIC = {
    "node_network_receive_bytes_total": "network_rx_mb_s",
    "node_network_transmit_bytes_total": "network_tx_mb_s",
}
_LOOPBACK = ("lo", "lo0")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """Means over a window; None where the host's log does not say.

    Ratios 0-1: `cpu_busy_ratio` over all cores, `core_busy_ratio` of the busiest core,
    `process_cpu_ratio` of the busiest process or thread (1 is one whole core), `io_wait_ratio`,
    `network_use_ratio` of the busiest link. `memory_free_mib` is the lowest; `swap_mib_s` goes in
    and out; `network_mb_s` is the busiest direction of any device but loopback.
    """

    cpu_busy_ratio: float | None = None
    core_busy_ratio: float | None = None
    process_cpu_ratio: float | None = None
    process_name: str | None = None
    io_wait_ratio: float | None = None
    memory_free_mib: float | None = None
    swap_mib_s: float | None = None
    run_queue: float | None = None
    network_mb_s: float | None = None
    network_use_ratio: float | None = None
    n: int = 0
    cautions: tuple[Caution, ...] = ()


def host_window(metrics: pl.DataFrame, start_epoch_s: float, end_epoch_s: float) -> HostLoad:
    """Say how busy the host was between two moments.

    Parameters
    ----------
    metrics : polars.DataFrame
        Columns of `SERVER_METRICS`; series `host:*` and `node_*` count.
    start_epoch_s, end_epoch_s : float
        Epoch seconds.

    Returns
    -------
    HostLoad
        `host_without_clock` where the log has no times, `host_not_covered` where fewer than
        `MIN_SAMPLES` of it lie in the window.

    Notes
    -----
    node-exporter's counters: busy = 1 - (idle + I/O wait) over all modes of a core, between the
    first and the last page inside the window.
    """
    of_host = pl.col("name").str.starts_with("host:") | pl.col("name").str.starts_with("node_")
    known = metrics.filter(of_host)
    if known.is_empty():
        return HostLoad()
    if known["time_epoch_s"].null_count() == known.height:
        return HostLoad(cautions=(caution("host_without_clock"),))
    inside = known.filter(pl.col("time_epoch_s").is_between(start_epoch_s, end_epoch_s))
    n = inside["time_epoch_s"].n_unique()
    if n < MIN_SAMPLES:
        return HostLoad(n=n, cautions=(caution("host_not_covered", n=n, needed=MIN_SAMPLES),))
    rows = pl.concat([_sampled(inside), _counted(inside)]).drop_nulls("value")
    process = _series(rows, "process_cpu_ratio").sort("value")
    # A process may use several cores; where its threads are listed, the busiest of those counts.
    threads = process.filter(pl.col("labels").str.contains('"tid"', literal=True))
    process = threads if threads.height else process
    return HostLoad(
        cpu_busy_ratio=_mean(rows, "cpu_busy_ratio", whole=True),
        core_busy_ratio=_highest(rows, "cpu_busy_ratio", whole=False),
        process_cpu_ratio=None if process.is_empty() else float(process["value"][-1]),
        process_name=None if process.is_empty() else _named(process["labels"][-1], "command"),
        io_wait_ratio=_mean(rows, "io_wait_ratio", whole=True),
        memory_free_mib=_lowest(rows, "memory_free_mib"),
        swap_mib_s=_mean(rows, "swap_mib_s"),
        run_queue=_mean(rows, "run_queue"),
        network_mb_s=_highest(rows, "network_rx_mb_s", "network_tx_mb_s"),
        network_use_ratio=_highest(rows, "network_use_ratio"),
        n=n,
    )


def _sampled(inside: pl.DataFrame) -> pl.DataFrame:
    """Rows of tools that give means over their own interval."""
    rows = inside.filter(pl.col("name").str.starts_with("host:"))
    named = rows.with_columns(metric=pl.col("name").str.strip_prefix("host:"))
    return named.select("metric", "labels", "value")


def _counted(inside: pl.DataFrame) -> pl.DataFrame:
    """Rows of node-exporter, counters turned into means between its first and last page."""
    rows = inside.filter(pl.col("name").str.starts_with("node_")).drop_nulls("value")
    ends = rows.group_by("name", "labels", maintain_order=True).agg(
        first=pl.col("value").sort_by("time_epoch_s").first(),
        last=pl.col("value").sort_by("time_epoch_s").last(),
        low=pl.col("value").min(),
        mean=pl.col("value").mean(),
        lasted=pl.col("time_epoch_s").max() - pl.col("time_epoch_s").min(),
    )
    found: list[tuple[str, str, float]] = []
    modes: dict[str, dict[str, float]] = {}
    speeds: dict[str, float] = {}
    swapped: list[float] = []
    for name, labels, first, last, low, mean, lasted in ends.iter_rows():
        held = json.loads(labels or "{}")
        # A counter that went back was restarted, and one page alone says nothing.
        rate = (last - first) / lasted if lasted > 0 and last >= first else None
        if name == "node_memory_MemAvailable_bytes":
            found.append(("memory_free_mib", "{}", low / _MIB))
        elif name == "node_procs_running":
            found.append(("run_queue", "{}", mean))
        elif name == "node_network_speed_bytes" and mean > 0:
            speeds[str(held.get("device"))] = mean
        elif rate is None:
            continue
        elif name == "node_cpu_seconds_total":
            modes.setdefault(str(held.get("cpu")), {})[str(held.get("mode"))] = rate
        elif name in _SWAPPED:
            swapped.append(rate * _PAGE_MIB)
        elif name in _TRAFFIC:
            device = json.dumps({"device": str(held.get("device"))})
            found.append((_TRAFFIC[name], device, rate / 1e6))
    if swapped:
        found.append(("swap_mib_s", "{}", sum(swapped)))
    for _, labels, value in [row for row in found if row[0] in _TRAFFIC.values()]:
        speed = speeds.get(_named(labels, "device"))
        if speed:
            found.append(("network_use_ratio", labels, value * 1e6 / speed))
    schema = {"metric": pl.String, "labels": pl.String, "value": pl.Float64}
    return pl.DataFrame([*found, *_cores(modes)], schema=schema, orient="row")


def _cores(modes: dict[str, dict[str, float]]) -> list[tuple[str, str, float]]:
    """Busy and waiting share of each core, and of all together, from seconds by mode."""
    rows, busy, waits = [], [], []
    for core, rates in modes.items():
        # guest is contained in user.
        whole = sum(rate for mode, rate in rates.items() if not mode.startswith("guest"))
        if whole <= 0:
            continue
        wait = rates.get("iowait", 0.0) / whole
        share = 1 - rates.get("idle", 0.0) / whole - wait
        busy.append(share)
        waits.append(wait)
        rows.append(("cpu_busy_ratio", json.dumps({"cpu": core}), share))
    if busy:
        rows.append(("cpu_busy_ratio", "{}", sum(busy) / len(busy)))
        rows.append(("io_wait_ratio", "{}", sum(waits) / len(waits)))
    return rows


def _series(rows: pl.DataFrame, *metrics: str, whole: bool | None = None) -> pl.DataFrame:
    """Mean of each series of a metric; `whole` keeps those without, or with, labels."""
    held = rows.filter(pl.col("metric").is_in(metrics))
    if whole is not None:
        held = held.filter((pl.col("labels") == "{}") == whole)
    loopback = pl.any_horizontal(
        pl.col("labels").str.contains(f'"device": "{name}"', literal=True) for name in _LOOPBACK
    )
    return (
        held.filter(~loopback)
        .group_by("metric", "labels", maintain_order=True)
        .agg(pl.col("value").mean())
    )


def _mean(rows: pl.DataFrame, metric: str, *, whole: bool | None = None) -> float | None:
    values = _series(rows, metric, whole=whole)["value"]
    return float(values.mean()) if values.len() else None  # type: ignore[arg-type]


def _highest(rows: pl.DataFrame, *metrics: str, whole: bool | None = None) -> float | None:
    values = _series(rows, *metrics, whole=whole)["value"]
    return float(values.max()) if values.len() else None  # type: ignore[arg-type]


def _lowest(rows: pl.DataFrame, metric: str) -> float | None:
    values = rows.filter(pl.col("metric") == metric)["value"]
    return float(values.min()) if values.len() else None  # type: ignore[arg-type]


def _named(labels: str, name: str) -> str:
    return str(json.loads(labels).get(name, ""))
