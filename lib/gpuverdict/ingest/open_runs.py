"""Run-level rows: the long form `summarize` prints, or a foreign table of one row a run.

Each run has the numbers somebody else computed: they are compared as runs, and every verdict that
rests on them is marked `as reported`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.open_columns import Table, load_table, table_header
from gpuverdict.ingest.open_units import cell_number
from gpuverdict.schema import METRICS, STATISTICS, Run
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

_LONG = ("run_id", "metric", "statistic", "value", "unit")


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not a table of runs; None when it is."""
    table = table_header(document, options)
    if table is None:
        return "not a table (CSV, JSON Lines of flat objects, Parquet)"
    if table.mapped and any("." in name for name in table.names) and "batch" not in table.names:
        return None
    missing = [name for name in _LONG if name not in table.names]
    return f"no column {missing[0]!r}" if missing else None


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read each run of the table as a run without rows.

    Raises
    ------
    LogFormatError
        For an unknown metric, statistic or unit, and for one figure given twice.
    """
    table = load_table(document, options)
    if table.mapped:
        return _read_wide(document, table, options)
    groups: dict[tuple[str, str], list[int]] = {}
    for row in range(table.n_rows):
        key = (str(table.columns["run_id"][row]), str(_cell(table, "window", row) or ""))
        groups.setdefault(key, []).append(row)
    runs = []
    for (identity, window), rows in groups.items():
        reported: dict[str, float | None] = {}
        for row in rows:
            name, value = _figure(table, row, document.name)
            if name in reported:
                raise LogFormatError(
                    f"{document.name}: row {row + 1}", found=f"{name} of run {identity[:40]} twice",
                    expected="each figure once a run",
                )  # fmt: skip
            reported[name] = value
        level = _level(_cell(table, "level", rows[0]), f"{document.name}: row {rows[0] + 1}")
        runs.append(_run(document, f"{identity}:{window}", level, reported, table, options))
    return runs


def _figure(table: Table, row: int, name: str) -> tuple[str, float | None]:
    where = f"{name}: row {row + 1}"
    metric, statistic = str(table.columns["metric"][row]), str(table.columns["statistic"][row])
    if metric not in METRICS:
        raise LogFormatError(where, found=f"the unknown metric {metric!r:.60}",
                             expected="a metric of the schema")  # fmt: skip
    if statistic not in STATISTICS:
        raise LogFormatError(where, found=f"the unknown statistic {statistic!r:.40}",
                             expected=", ".join(STATISTICS))  # fmt: skip
    unit = table.columns["unit"][row]
    if unit != METRICS[metric].unit:
        raise LogFormatError(where, found=f"the unit {unit!r:.40} for {metric}",
                             expected=f"{METRICS[metric].unit!r}")  # fmt: skip
    return f"{metric}.{statistic}", cell_number(table.columns["value"][row], table.decimal, where)


def _read_wide(document: Document, table: Table, options: ReadOptions) -> list[Run]:
    figures = [name for name in table.columns if "." in name]
    runs = []
    for row in range(table.n_rows):
        where = f"{document.name}: row {row + 1}"
        reported = {
            name: cell_number(table.columns[name][row], table.decimal, where) for name in figures
        }
        level = {
            name: number
            for name in ("concurrency", "rate_requests_per_s")
            if (number := cell_number(_cell(table, name, row), table.decimal, where)) is not None
        }
        identity = _cell(table, "run_id", row)
        part = str(row) if identity is None else f"{identity}:{row}"
        runs.append(_run(document, part, level, reported, table, options))
    if not runs:
        raise LogFormatError(document.name, found="a table without rows", expected="runs")
    return runs


def _run(
    document: Document,
    part: str,
    level: Mapping[str, float],
    reported: Mapping[str, float | None],
    table: Table,
    options: ReadOptions,
) -> Run:
    said = list(table.cautions)
    if table.ignored:
        said.append(caution("columns_ignored", names=", ".join(table.ignored)[:200]))
    rate, limit = level.get("rate_requests_per_s"), level.get("concurrency")
    batch = level.get("batch")
    load = "offline" if batch is not None else "closed" if limit is not None else "unknown"
    return build_run(
        document,
        part=part,
        source_format="gpuverdict_runs",
        columns={},
        info={
            "tool": "home-made",
            "tool_version": options.client_version,
            "load_kind": load if rate is None else "poisson",
            "rate_rps": rate,
            "rate_unbounded": None if load == "unknown" and rate is None else rate is None,
            "max_concurrency": None
            if limit is None and batch is None
            else int(limit or batch or 0),
        },
        reported=reported,
        dropped=table.dropped,
        cautions=said,
    )


def _cell(table: Table, name: str, row: int) -> Any:
    column: Sequence[Any] | None = table.columns.get(name)
    return None if column is None else column[row]


def _level(value: Any, where: str) -> dict[str, float]:
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise LogFormatError(where, found=f"the level {value!r:.40}",
                                 expected='such as {"concurrency": 16}') from None  # fmt: skip
    if not isinstance(value, dict):
        raise LogFormatError(where, found=f"the level {value!r:.40}",
                             expected='such as {"concurrency": 16}')  # fmt: skip
    return {str(k): float(v) for k, v in value.items() if isinstance(v, int | float)}
