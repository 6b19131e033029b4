"""Tables of home-made harnesses: loading them, naming their columns, converting their units.

A table is CSV, JSON Lines (or one JSON list of objects), or Parquet. A `columns:` map gives a
foreign header its canonical column and unit.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.open_units import (
    COUNT_UNITS,
    KNOWN_COLUMNS,
    cell_number,
    epoch_seconds,
    is_figure,
    units_of,
)
from gpuverdict.text import caution

__all__ = ["Header", "Table", "first_line", "header_names", "is_flat", "load_table", "split_header",
           "table_header"]  # fmt: skip


@dataclass(slots=True)
class Table:
    """A loaded table: column -> values as written (text, numbers, lists), all of one length."""

    columns: dict[str, list[Any]]
    n_rows: int
    form: str
    ignored: tuple[str, ...] = ()
    dropped: dict[str, int] = field(default_factory=dict)
    cautions: tuple[Any, ...] = ()
    decimal: str = "."
    mapped: bool = False

    @property
    def names(self) -> set[str]:
        """The column names."""
        return set(self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The column names of a table, after the `columns:` map; cheap, for recognition."""

    names: frozenset[str]
    mapped: bool


def table_header(document: Document, options: ReadOptions) -> Header | None:
    """Read the header of a document as a table; None where it is no table.

    Raises
    ------
    LogFormatError
        For a table with known columns and a separator nobody declared.
    """
    names = header_names(document, options)
    if not names:
        return None
    if not options.columns:
        return Header(names=frozenset(names), mapped=False)
    lower = {_folded(name) for name in names}
    targets = {
        _wish(str(header), wish, document.name)[0]
        for header, wish in options.columns.items()
        if _folded(header) in lower
    }
    if not targets:
        return Header(names=frozenset(names), mapped=False)
    return Header(names=frozenset(targets | (set(names) & set(KNOWN_COLUMNS))), mapped=True)


def _folded(name: Any) -> str:
    return " ".join(str(name).split()).lower()


def header_names(document: Document, options: ReadOptions) -> list[str]:
    """Column names of a document as a table, as written; none where it is no table."""
    if document.shape == "parquet":
        try:
            return list(pl.read_parquet_schema(io.BytesIO(document.data)))
        except (pl.exceptions.PolarsError, OSError, ValueError):
            return []
    if document.shape == "json":
        row = _first_row(document.first)
        return [] if row is None else list(row)
    if document.shape == "text":
        separator = _separator(document, options)
        return [] if separator is None else split_header(document, separator)
    return []


def _first_row(first: Any) -> dict[str, Any] | None:
    """The first flat object of a JSON table; the nested logs of the tools are none."""
    if isinstance(first, dict) and isinstance(first.get("rows"), list) and first["rows"]:
        row = first["rows"][0]
        return row if isinstance(row, dict) else None
    row = first[0] if isinstance(first, list) and first else first
    if not isinstance(row, dict) or any(isinstance(value, dict) for value in row.values()):
        return None
    return row


def is_flat(first: Any) -> bool:
    """Say whether a JSON table holds single values only: lists are how the tools nest requests."""
    row = _first_row(first)
    return row is not None and not any(isinstance(value, list) for value in row.values())


def first_line(document: Document) -> str:
    """First line of a text that is not blank."""
    return document.data[:65536].decode("utf-8", "replace").lstrip().split("\n", 1)[0].strip("\r")


def split_header(document: Document, separator: str) -> list[str]:
    """Cells of the first line."""
    try:
        row = next(csv.reader([first_line(document)], delimiter=separator, skipinitialspace=True))
    except (csv.Error, StopIteration):
        return []
    return [cell.strip() for cell in row]


def _separator(document: Document, options: ReadOptions) -> str | None:
    """The separator declared, or the comma; an error where a known table has another one."""
    header = first_line(document)
    separator = options.separator or (";" if options.decimal == "," else ",")
    if len(separator) != 1:
        raise LogFormatError(document.name, found=f"the separator {separator!r}",
                             expected="one character")  # fmt: skip
    if separator in header:
        return separator
    other = next((mark for mark in (";", "\t", "|", ",") if header.count(mark) > 1), None)
    if other is None or options.separator is not None:
        return None
    names = {cell.strip().strip('"') for cell in header.split(other)}
    if not options.columns and len(names & set(KNOWN_COLUMNS)) < 2:
        return None
    raise LogFormatError(
        document.name,
        found=f"a table with the separator {other!r}",
        expected=f"{separator!r}",
        remedy=f"give separator: {other!r}, and decimal: ',' where numbers have a comma",
    )


def load_table(document: Document, options: ReadOptions) -> Table:
    """Load a document as a table, with the `columns:` map applied.

    Raises
    ------
    LogFormatError
        For something that is no table, a ragged row, a separator or decimal comma nobody declared,
        or a map that does not fit.
    """
    if "table" not in document.parsed:
        document.parsed["table"] = _load(document, options)
    raw: Table | None = document.parsed["table"]
    if raw is None:
        raise LogFormatError(document.name, found="no table", expected="CSV, JSON Lines or Parquet")
    return _mapped(raw, document.name, options) if options.columns else raw


def _load(document: Document, options: ReadOptions) -> Table | None:
    if document.shape == "parquet":
        try:
            frame = pl.read_parquet(io.BytesIO(document.data))
        except (pl.exceptions.PolarsError, OSError, ValueError) as problem:
            raise LogFormatError(
                document.name, found=f"a damaged Parquet file ({str(problem).splitlines()[0][:80]})"
            ) from None
        columns = {name: frame[name].to_list() for name in frame.columns}
        return Table(columns=columns, n_rows=frame.height, form="parquet")
    if document.shape == "json":
        return _load_json(document)
    if document.shape == "text":
        return _load_csv(document, options)
    return None


def _load_json(document: Document) -> Table | None:
    if _first_row(document.first) is None:
        return None
    records = document.records()
    rows: list[Any] = records.values
    if len(rows) == 1 and isinstance(rows[0], list):
        rows = rows[0]
    elif len(rows) == 1 and isinstance(rows[0].get("rows"), list):
        rows = rows[0]["rows"]
    if not rows or not all(isinstance(row, dict) for row in rows):
        return None
    names = list(dict.fromkeys(name for row in rows for name in row))
    return Table(
        columns={name: [row.get(name) for row in rows] for name in names},
        n_rows=len(rows),
        form="json",
        dropped=dict(records.dropped),
        cautions=records.cautions,
    )


def _load_csv(document: Document, options: ReadOptions) -> Table | None:
    separator = _separator(document, options)
    if separator is None:
        return None
    try:
        rows = list(csv.reader(io.StringIO(document.text, newline=""), delimiter=separator,
                               strict=True, skipinitialspace=True))  # fmt: skip
    except csv.Error as problem:
        raise LogFormatError(document.name, found=f"a broken CSV ({problem})") from None
    while rows and not any(cell.strip() for cell in rows[0]):
        rows.pop(0)
    if not rows:
        return None
    names = [cell.strip() for cell in rows[0]]
    if len(set(names)) != len(names):
        doubled = sorted({name for name in names if names.count(name) > 1})
        raise LogFormatError(
            f"{document.name}:1", found=f"the column {doubled[0]!r} twice", expected="each once"
        )
    return _csv_rows(document, names, rows, options)


def _csv_rows(
    document: Document, names: list[str], rows: list[list[str]], options: ReadOptions
) -> Table:
    dropped: dict[str, int] = {}
    said: list[Caution] = []
    kept: list[list[str]] = []
    seen: set[tuple[str, ...]] = set()
    whole_end = document.data.endswith(b"\n")
    for number, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        if row == rows[0]:
            dropped["header_repeat"] = dropped.get("header_repeat", 0) + 1
            continue
        # Only a row with a name can be known again: equal figures may be two requests.
        if "request_index" in names and tuple(row) in seen:
            dropped["duplicate_record"] = dropped.get("duplicate_record", 0) + 1
            continue
        seen.add(tuple(row))
        last = number == len(rows) and not whole_end
        if last and len(row) <= len(names):
            if len(row) < len(names) or _cut_in_its_last_cell(names, kept, row):
                dropped["incomplete_last_line"] = 1
                said.append(caution("incomplete_last_line", name=document.name, line=number))
                continue
            said.append(caution("no_line_end", name=document.name, line=number))
        if len(row) != len(names):
            raise LogFormatError(
                f"{document.name}:{number}",
                found=f"{len(row)} cells",
                expected=f"{len(names)}, as in the header",
                remedy="a number with a decimal comma splits a cell: give decimal and separator",
            )
        kept.append(row)
    columns = {
        name: [cell.strip() or None for cell in column]
        for name, column in zip(names, zip(*kept, strict=True), strict=True)
    } if kept else {name: [] for name in names}  # fmt: skip
    if n := dropped.get("duplicate_record"):
        said.append(caution("duplicate_records", name=document.name, n=n))
    return Table(columns=columns, n_rows=len(kept), form="csv", dropped=dropped,
                 cautions=tuple(said), decimal=options.decimal)  # fmt: skip


def _cut_in_its_last_cell(names: list[str], kept: list[list[str]], row: list[str]) -> bool:
    """Say whether the last cell is only the beginning of a text the column always holds."""
    others = {other[-1].strip() for other in kept}
    cell = row[-1].strip()
    if names[-1] not in ("status", "output_tokens_source", "phase") or cell in others:
        return False
    return cell == "" or any(other.startswith(cell) for other in others)


def _mapped(table: Table, name: str, options: ReadOptions) -> Table:
    columns: dict[str, list[Any]] = {}
    lower = {_folded(header): header for header in table.columns}
    for header, wish in options.columns.items():
        target, unit = _wish(header, wish, name)
        found = lower.get(_folded(header))
        if found is None:
            raise LogFormatError(
                f"{name}: columns",
                found=f"no column {header!r}",
                expected=f"one of {', '.join(list(table.columns)[:20])}",
            )
        if target in columns:
            raise LogFormatError(f"{name}: columns", found=f"{target!r} twice", expected="once")
        columns[target] = _convert(table, found, target, unit, name, options)
    for header, values in table.columns.items():
        if header in KNOWN_COLUMNS and header not in columns:
            columns[header] = values
    used = {lower.get(_folded(header)) for header in options.columns}
    ignored = tuple(h for h in table.columns if h not in used and h not in columns)
    return Table(columns=columns, n_rows=table.n_rows, form=table.form, ignored=ignored,
                 dropped=table.dropped, cautions=table.cautions, mapped=True)  # fmt: skip


def _wish(header: str, wish: Any, name: str) -> tuple[str, str | None]:
    if isinstance(wish, str):
        wish = {"to": wish}
    if not isinstance(wish, Mapping) or not isinstance(wish.get("to"), str):
        raise LogFormatError(
            f"{name}: columns", found=f"{wish!r:.60} for {header!r}",
            expected="{to: canonical column, unit: unit}",
        )  # fmt: skip
    target = wish["to"]
    if target not in KNOWN_COLUMNS and not is_figure(target):
        raise LogFormatError(
            f"{name}: columns", found=f"the unknown column {target!r}",
            expected="a column of the canonical schema, or metric.statistic",
        )  # fmt: skip
    unit = wish.get("unit")
    return target, None if unit is None else str(unit)


def _convert(
    table: Table, header: str, target: str, unit: str | None, name: str, options: ReadOptions
) -> list[Any]:
    values = table.columns[header]
    units = units_of(target)
    if units is None or target in ("gaps_s",):
        return values
    if unit in ("datetime", "iso8601"):
        return [epoch_seconds(value, f"{name}: {header}", options) for value in values]
    if unit is None:
        if units is not COUNT_UNITS:
            raise LogFormatError(
                f"{name}: columns", found=f"no unit for {header!r}",
                expected=f"unit: {' or '.join(list(units)[:8])}",
            )  # fmt: skip
        unit = ""
    factor = units.get(unit.strip().lower())
    if factor is None:
        raise LogFormatError(
            f"{name}: columns", found=f"the unit {unit!r} for {header!r}",
            expected=f"one of {', '.join(key for key in units if key)}",
        )  # fmt: skip
    return [
        None if number is None else number * factor
        for number in (cell_number(value, table.decimal, f"{name}: {header}") for value in values)
    ]
