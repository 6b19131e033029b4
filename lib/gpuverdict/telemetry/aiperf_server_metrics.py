"""What AIPerf collected from the server's metrics page over its run, as two pages of counters.

The export holds differences over the measured phase; they are written as a page of zeros at its
start and a page of the totals at its end, so that every reader of counters reads them alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import polars as pl

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import SERVER_METRICS, check, conform

__all__ = ["read", "why_not"]

_HEAD_BYTES = 4096
_ZONE_STEP_S = 900.0


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is no server-metrics export of AIPerf, or None if it is one."""
    head = document.data[:_HEAD_BYTES]
    if not head.lstrip().startswith(b"{") or b'"endpoints_configured"' not in head:
        return "it has no endpoints_configured"
    if b'"aiperf_version"' not in head:
        return "it has no aiperf_version"
    return None


def read(document: Document, options: ReadOptions) -> pl.DataFrame:
    """Read an export.

    Returns
    -------
    polars.DataFrame
        Columns of `SERVER_METRICS`. Counters as `<name>_total`, histograms as `<name>_sum`,
        `<name>_count` and `<name>_bucket`, each once at the start (0) and once at the end; gauges
        as their mean and highest value over the phase, label `statistic` = `avg` or `max`, at the
        end.

    Raises
    ------
    LogFormatError
        For an export of another shape.
    """
    try:
        top = json.loads(document.text)
        start, end = _span(top)
        rows = [
            row
            for name, metric in top["metrics"].items()
            for series in metric["series"]
            for row in _rows(name, metric["type"], series, start, end)
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise LogFormatError(
            document.name,
            found=f"an export of another shape ({type(problem).__name__}: {problem})",
            expected="summary with the times of its phase, and metrics.*.series",
        ) from None
    if not rows:
        raise LogFormatError(document.name, found="an export without series", expected="some")
    schema = {"time_epoch_s": pl.Float64, "name": pl.String, "labels": pl.String,
              "value": pl.Float64}  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return check(conform(frame, SERVER_METRICS), SERVER_METRICS, document.name)


def _span(top: dict[str, Any]) -> tuple[float, float]:
    """Start and end of the measured phase, epoch seconds.

    Up to 0.11 they stand there in local time without a zone; the fetches of the same phase, in
    nanoseconds since the epoch, tell the zone, as zones lie quarters of an hour apart.
    """
    summary = top["summary"]
    if "phase_time_ranges" in summary:
        ranges = summary["phase_time_ranges"][top.get("metrics_phase", "profiling")]
        return _seconds(ranges["start_ns"]), _seconds(ranges["end_ns"])
    local = [
        datetime.fromisoformat(summary[key]).replace(tzinfo=UTC).timestamp()
        for key in ("start_time", "end_time")
    ]
    last = max(_seconds(item["last_fetch_ns"]) for item in summary["endpoint_info"].values())
    zone = round((last - local[1]) / _ZONE_STEP_S) * _ZONE_STEP_S
    return local[0] + zone, local[1] + zone


def _rows(
    name: str, kind: str, series: dict[str, Any], start: float, end: float
) -> Iterator[tuple[float, str, str, float]]:
    labels = {str(key): str(value) for key, value in (series.get("labels") or {}).items()}
    stats = series.get("stats") or {}
    if kind == "gauge":
        for statistic in ("avg", "max"):
            if statistic in stats:
                told = _text(labels | {"statistic": statistic})
                yield end, name, told, float(stats[statistic])
        return
    totals: list[tuple[str, dict[str, str], float]] = []
    if kind == "counter" and "total" in stats:
        totals.append((f"{name}_total", labels, float(stats["total"])))
    if kind == "histogram" and "count" in stats:
        totals.append((f"{name}_count", labels, float(stats["count"])))
        totals.append((f"{name}_sum", labels, float(stats.get("sum") or 0.0)))
        for edge, count in (series.get("buckets") or {}).items():
            totals.append((f"{name}_bucket", labels | {"le": edge}, float(count)))
    for called, with_labels, value in totals:
        yield start, called, _text(with_labels), 0.0
        yield end, called, _text(with_labels), value


def _text(labels: dict[str, str]) -> str:
    return json.dumps(labels, sort_keys=True, ensure_ascii=False)


def _seconds(stamp_ns: int) -> float:
    return stamp_ns // 10**9 + (stamp_ns % 10**9) / 1e9
