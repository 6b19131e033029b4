"""Tables of home-made harnesses: loading them, naming their columns, converting their units.

A table is CSV, JSON Lines (or one JSON list of objects), or Parquet. A `columns:` map gives a
foreign header its canonical column and unit; `propose_columns` drafts such a map from a header,
and nothing is read by it until a person has confirmed it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import METRICS, REQUESTS, STATISTICS

__all__ = ["BATCH_COLUMNS", "Header", "Table", "cell_number", "load_table", "propose_columns",
           "table_header"]  # fmt: skip

BATCH_COLUMNS = ("batch", "input_tokens", "output_tokens", "prefill_s", "decode_step_s", "e2e_s",
                 "repeat_no", "memory_used_mib")  # fmt: skip
LEVEL_COLUMNS = ("concurrency", "rate_requests_per_s", "run_id", "repeat_no", "duration_s")
_EXTRA = ("gaps_s", "gap_kind", "error")

_TIME_UNITS = {"s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "秒": 1.0, "ms": 1e-3,
               "msec": 1e-3, "毫秒": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "微秒": 1e-6,
               "ns": 1e-9, "纳秒": 1e-9, "min": 60.0, "minutes": 60.0}  # fmt: skip
_RATE_UNITS = {"tokens/s": 1.0, "tok/s": 1.0, "token/s": 1.0, "tokens_per_s": 1.0, "req/s": 1.0,
               "requests/s": 1.0, "requests_per_s": 1.0, "qps": 1.0, "rps": 1.0}  # fmt: skip
_SIZE_UNITS = {"mib": 1.0, "gib": 1024.0, "mb": 1e6 / 2**20, "gb": 1e9 / 2**20,
               "bytes": 1 / 2**20}  # fmt: skip
_COUNT_UNITS = {"": 1.0, "tokens": 1.0, "token": 1.0, "count": 1.0, "requests": 1.0, "个": 1.0}
_RATIO_UNITS = {"ratio": 1.0, "%": 0.01, "percent": 0.01}
_POWER_UNITS = {"w": 1.0, "mw": 1e-3, "kw": 1e3, "j": 1.0, "mj": 1e-3, "kj": 1e3, "wh": 3600.0}


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
    names = _header_names(document, options)
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
    return Header(names=frozenset(targets | (set(names) & set(_KNOWN))), mapped=True)


def _folded(name: Any) -> str:
    return " ".join(str(name).split()).lower()


def _header_names(document: Document, options: ReadOptions) -> list[str]:
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
        return [] if separator is None else _split_header(document, separator)
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


def _first_line(document: Document) -> str:
    return document.data[:65536].decode("utf-8", "replace").lstrip().split("\n", 1)[0].strip("\r")


def _split_header(document: Document, separator: str) -> list[str]:
    try:
        row = next(csv.reader([_first_line(document)], delimiter=separator, skipinitialspace=True))
    except (csv.Error, StopIteration):
        return []
    return [cell.strip() for cell in row]


def _separator(document: Document, options: ReadOptions) -> str | None:
    """The separator declared, or the comma; an error where a known table has another one."""
    header = _first_line(document)
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
    if not options.columns and len(names & set(_KNOWN)) < 2:
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
    kept: list[list[str]] = []
    whole_end = document.data.endswith(b"\n")
    for number, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        if row == rows[0]:
            dropped["header_repeat"] = dropped.get("header_repeat", 0) + 1
            continue
        if len(row) != len(names):
            if number == len(rows) and len(row) < len(names) and not whole_end:
                dropped["incomplete_last_line"] = 1
                continue
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
    return Table(columns=columns, n_rows=len(kept), form="csv", dropped=dropped,
                 decimal=options.decimal)  # fmt: skip


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
        if header in _KNOWN and header not in columns:
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
    if target not in _KNOWN and not _is_figure(target):
        raise LogFormatError(
            f"{name}: columns", found=f"the unknown column {target!r}",
            expected="a column of the canonical schema, or metric.statistic",
        )  # fmt: skip
    unit = wish.get("unit")
    return target, None if unit is None else str(unit)


def _is_figure(target: str) -> bool:
    metric, _, statistic = target.partition(".")
    return metric in METRICS and statistic in STATISTICS


def _units_of(target: str) -> dict[str, float] | None:
    metric = target.partition(".")[0]
    if metric.endswith("_per_s"):
        return _RATE_UNITS
    if metric.endswith("_s"):
        return _TIME_UNITS
    if metric.endswith("_mib"):
        return _SIZE_UNITS
    if metric.endswith(("_tokens", "batch", "concurrency")) or metric in ("n_chunks",):
        return _COUNT_UNITS
    if metric.endswith("_ratio"):
        return _RATIO_UNITS
    if metric.endswith(("_w", "_j")):
        return _POWER_UNITS
    return None


def _convert(
    table: Table, header: str, target: str, unit: str | None, name: str, options: ReadOptions
) -> list[Any]:
    values = table.columns[header]
    units = _units_of(target)
    if units is None or target in ("gaps_s",):
        return values
    if unit in ("datetime", "iso8601"):
        return [_epoch(value, f"{name}: {header}", options) for value in values]
    if unit is None:
        if units is not _COUNT_UNITS:
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


def cell_number(value: Any, decimal: str, where: str) -> float | None:
    """Read a cell as a number; None for an empty one or a spelling of missing.

    Raises
    ------
    LogFormatError
        For anything else.
    """
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bool):
        raise LogFormatError(where, found=repr(value), expected="a number")
    if isinstance(value, int | float):
        return float(value)
    text = str(value).strip()
    if text.lower() in ("", "na", "n/a", "nan", "null", "none", "-", "--"):
        return None
    if decimal == ",":
        text = text.replace(".", "").replace(",", ".") if "," in text else text
    try:
        return float(text)
    except ValueError:
        remedy = "give decimal: ','" if re.fullmatch(r"-?\d+,\d+", text) else ""
        raise LogFormatError(where, found=f"{text[:40]!r}", expected="a number",
                             remedy=remedy) from None  # fmt: skip


def _epoch(value: Any, where: str, options: ReadOptions) -> float | None:
    if value is None or value == "":
        return None
    try:
        stamp = datetime.fromisoformat(str(value).strip().replace("/", "-"))
    except ValueError:
        raise LogFormatError(
            where, found=f"{str(value)[:40]!r}", expected="an ISO 8601 date and time"
        ) from None
    if stamp.tzinfo is None:
        if options.time_zone is None:
            raise LogFormatError(
                where, found="time stamps without a zone", expected="a zone",
                remedy="give time_zone: (IANA name)",
            )  # fmt: skip
        try:
            stamp = stamp.replace(tzinfo=ZoneInfo(options.time_zone))
        except (ZoneInfoNotFoundError, ValueError):
            raise LogFormatError(
                where, found=f"the unknown time zone {options.time_zone!r}",
                expected="an IANA name",
            ) from None  # fmt: skip
    return stamp.timestamp()


_KNOWN = tuple(dict.fromkeys((*REQUESTS, *_EXTRA, *BATCH_COLUMNS, *LEVEL_COLUMNS)))

# Words of headers people write, with what they mean; the first that fits wins.
_WORDS: tuple[tuple[str, str], ...] = (
    (r"首(个|次)?(字|token|词元?)|ttft|time.?to.?first|first.?token.?(latency|time|delay)",
     "ttft_s"),
    (r"每(个)?(token|词元?|字)|tpot|time.?per.?(output.?)?token|inter.?token|\bitl\b", "tpot_s"),
    (r"端到端|总(时延|延迟|耗时|时间)|\be2el?\b|end.?to.?end|total.?(latency|time)|"
     r"(request|response).?(latency|time)|^(latency|elapsed|duration)|整体时延", "e2e_s"),
    (r"预填充|prefill.?(time|latency|s\b|ms\b)|prompt.?(time|eval.?time)", "prefill_s"),
    (r"解码步|decode.?(step|latency|time)|token.?time", "decode_step_s"),
    (r"(输出|生成|completion|output|generated|out)[ _.-]*(token|词元|长度|len|length)|"
     r"tokens?.?(out|generated)|gen.?tokens", "output_tokens"),
    (r"(输入|提示|prompt|input|in)[ _.-]*(token|词元|长度|len|length|size)", "input_tokens"),
    (r"(输出)?吞吐|throughput|tokens?.?per.?sec|tok/s|tokens/s", "output_tokens_per_s.value"),
    (r"并发|concurren|streams|users|num.?clients", "concurrency"),
    (r"批(大小|次|量)?|batch", "batch"),
    (r"开始|start|begin|send.?time|sent.?at", "start_s"),
    (r"结束|end.?time|^end|finish|completed.?at", "end_s"),
    (r"状态|status|success", "status"),
    (r"错误|error|exception", "error"),
    (r"qps|rps|request.?rate|请求速率", "rate_requests_per_s"),
    (r"请求(id|编号)|request.?id|req.?id", "request_id"),
    (r"显存|memory|vram", "memory_used_mib"),
)  # fmt: skip
_UNIT_IN_HEADER = re.compile(
    r"(?:[\(\[（【/_ .]|^)(tokens?/s|tok/s|req/s|requests/s|毫秒|微秒|纳秒|秒|msec|ms|us|µs|μs|ns|"
    r"sec|"
    r"seconds|s|min|gib|mib|gb|mb|bytes|%|w|j)\s*[\)\]）】]?\s*$", re.I)  # fmt: skip


def propose_columns(document: Document) -> dict[str, dict[str, str | None]]:
    """Propose a `columns:` map for an unknown table, to be confirmed by a person.

    Returns
    -------
    dict
        header -> `{"to": canonical column, "unit": unit or None}`; None where the header states no
        unit and one is needed. Empty where no column is recognised.

    Examples
    --------
    >>> from pathlib import Path
    >>> text = "首字延迟(ms),输出token数,端到端时延(s)\\n120,128,1.5\\n".encode()
    >>> table = Document(path=Path("a.csv"), name="a.csv", data=text, sha256="")
    >>> propose_columns(table)["首字延迟(ms)"]
    {'to': 'ttft_s', 'unit': 'ms'}
    """
    try:
        header = _header(document)
    except LogFormatError:
        # Text that is damaged has no header; why it cannot be read is said elsewhere.
        return {}
    proposal: dict[str, dict[str, str | None]] = {}
    taken: set[str] = set()
    for name in header:
        target = name if name in _KNOWN else _meaning(name)
        if target is None or target in taken:
            continue
        taken.add(target)
        units = _units_of(target)
        proposal[name] = {"to": target, "unit": _stated_unit(name, units) if units else ""}
    return proposal


def _header(document: Document) -> list[str]:
    if document.shape != "text":
        return _header_names(document, ReadOptions())
    line = _first_line(document)
    mark = max((",", ";", "\t", "|"), key=line.count)
    return _split_header(document, mark) if line.count(mark) else []


def _meaning(header: str) -> str | None:
    text = header.lower().strip()
    for pattern, target in _WORDS:
        if re.search(pattern, text):
            statistic = re.search(r"(p\d\d|mean|avg|median|平均|中位)", text)
            if statistic and target in ("ttft_s", "tpot_s", "e2e_s"):
                word = statistic[1]
                named = {"avg": "mean", "平均": "mean", "median": "p50", "中位": "p50"}
                figure = f"{target}.{named.get(word, word)}"
                return figure if _is_figure(figure) else None
            return target
    return None


def _stated_unit(header: str, units: Mapping[str, float]) -> str | None:
    match = _UNIT_IN_HEADER.search(header.strip())
    if match and match[1].lower() in units:
        return match[1].lower()
    return "tokens" if units is _COUNT_UNITS else None
