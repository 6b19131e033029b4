"""Home-made NVML loggers and our open trace dialect: CSV or JSON lines, units by header.

A suffix or bracket in the header names the unit (`power_mw`, `memory_used [MiB]`). Without one the
unit of the NVML call is meant; for power and memory the size of the numbers decides between the two
units people write, and a caution says so. A unit that can be read two ways is not read.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import GPU_SAMPLES, Trace
from gpuverdict.telemetry.cells import UNITS, Quantity, read_numbers
from gpuverdict.telemetry.clock import Times, epoch_from_local, parse_trace_start, times_from_epoch
from gpuverdict.telemetry.headers import Meaning, meaning_of
from gpuverdict.telemetry.samples import build_trace, power_kind_of
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

# Units of the NVML calls, for headers that state none.
_NVML_UNIT = {
    "w": "W", "j": "mJ", "mib": "MiB", "mhz": "MHz", "ratio": "%", "c": "C", "mb_s": "KB/s",
}  # fmt: skip
# Above these a number without a unit is in the smaller one: no card draws 2 kW or holds 10 TB.
_MILLIWATTS_ABOVE = 2000.0
_BYTES_ABOVE = 1e7
_TIME_SCALE = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SIGNALS = ("w", "j", "mib", "mhz", "ratio", "mask")
_OTHER_LOGS = {"request_index", "status", "ttft_s", "ttft", "prompt_len", "pid", "telemetry_data"}


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is no home-made GPU log, or None if it is one."""
    names = _names(document)
    if names is None:
        return "it is neither a table with a header nor JSON lines"
    mapped = {**{name: meaning_of(name) for name in names}, **_stated(options)}
    if set(names) & _OTHER_LOGS:
        return "its columns are of another kind of log"
    if any("." in name and "[" in name for name in names) or "clocks_event_reasons.active" in names:
        return "its header is that of nvidia-smi"
    known = [m for name in names if (m := mapped.get(name)) is not None]
    if not any(m.dimension == "time" for m in known):
        return "it has no column of time"
    if not any(m.dimension in _SIGNALS for m in known):
        return "no column of it is a known quantity of a GPU"
    return None


def read(document: Document, options: ReadOptions) -> Trace:
    """Read a home-made log of GPU samples.

    Parameters
    ----------
    options : ReadOptions
        `columns` maps foreign headers: `{"功率": {"to": "power_w", "unit": "mW"}}`.

    Returns
    -------
    Trace
        `source` is `open` when every column has the name of the canonical schema, else `nvml`.

    Raises
    ------
    LogFormatError
        For a row of another length, a cell that is no number, a unit that does not fit, rows of
        several GPUs that cannot be told apart.
    """
    names, rows, dropped, cautions = _rows(document)
    stated = _stated(options)
    held: dict[str, pl.Series] = {}
    reasons: dict[str, pl.Series] = {}
    texts: dict[str, pl.Series] = {}
    clocks: dict[str, tuple[Meaning, pl.Series]] = {}
    unread: list[str] = []
    for position, name in enumerate(names):
        meaning = stated.get(name) or meaning_of(name)
        if meaning is None:
            unread.append(name)
            continue
        if meaning.refused:
            unread.append(name)
            note = caution("unit_refused", name=document.name, column=name, why=meaning.refused)
            cautions.append(note)
            continue
        cells = pl.Series([row[position] for row in rows], dtype=pl.String)
        if meaning.dimension == "time":
            clocks.setdefault(meaning.column, (meaning, cells))
        elif meaning.dimension in ("text", "index"):
            texts[meaning.column] = cells.replace("", None)
        elif meaning.dimension == "mask":
            held[meaning.column] = _mask(document, name, cells)
        else:
            values, why = _numbers(document, options, name, meaning, cells, cautions)
            held[meaning.column], reasons[meaning.column] = values, why
    n = len(rows)
    nothing = pl.Series([None] * n, dtype=pl.String)
    index = texts.get("gpu_index", nothing).cast(pl.Int32, strict=False)
    held |= {"gpu_uuid": texts.get("gpu_uuid", nothing), "gpu_index": index}
    held |= {key: texts[key] for key in ("host", "pstate") if key in texts}
    who = pl.select(pl.coalesce(held["gpu_uuid"], index.cast(pl.String), pl.lit("0"))).to_series()
    gpu_names = texts.get("name", nothing)
    draw = held.pop("power_draw", None)
    kinds = texts["power_kind"].to_list() if "power_kind" in texts else None
    if draw is not None and "power_draw" in reasons:
        reasons["power_w"] = reasons.pop("power_draw")
    times = _times(document, options, clocks, who, cautions)
    canonical = all(name in GPU_SAMPLES for name in names)
    return build_trace(
        document,
        source="open" if canonical else "nvml",
        columns=held,
        times=times,
        power_draw=draw,
        draw_kinds=kinds or [power_kind_of(name) for name in gpu_names.to_list()],
        reasons=reasons,
        cautions=cautions,
        info={
            "time_zone": options.time_zone,
            "names": _pairs(who, gpu_names),
            "dropped": dropped,
            "unread_columns": unread,
        },
    )


def _stated(options: ReadOptions) -> dict[str, Meaning]:
    stated: dict[str, Meaning] = {}
    for name, rule in options.columns.items():
        target = rule.get("to") if isinstance(rule, Mapping) else str(rule)
        unit = rule.get("unit") if isinstance(rule, Mapping) else None
        meaning = meaning_of(str(target))
        if meaning is None:
            continue
        stated[name] = Meaning(meaning.column, meaning.dimension, unit or meaning.unit)
    return stated


def _head(document: Document) -> str:
    head = document.data[:65536].decode("utf-8", errors="replace").lstrip("\x00 \t\r\n")
    return head.split("\n", 1)[0].strip("\r ")


def _names(document: Document) -> list[str] | None:
    first = _head(document)
    if first.startswith("{"):
        try:
            record = json.loads(first)
        except ValueError:
            return None
        return list(_flat(record)[0]) if isinstance(record, dict) else None
    if not first or first.startswith(("#", "<", "[")):
        return None
    names = [cell.strip() for cell in next(csv.reader([first]), [])]
    return names if len(names) > 1 else None


def _flat(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Spread `{"timestamp": ..., "gpus": [{...}, {...}]}` over its GPUs."""
    inner = record.get("gpus")
    if not isinstance(inner, list):
        return [record]
    outer = {key: value for key, value in record.items() if key != "gpus"}
    return [{**outer, **gpu} for gpu in inner if isinstance(gpu, dict)] or [outer]


def _rows(
    document: Document,
) -> tuple[list[str], list[list[str | None]], dict[str, int], list[Caution]]:
    text = document.text.rstrip("\x00")
    dropped: dict[str, int] = {}
    cautions: list[Caution] = []
    if not text.endswith("\n"):
        # The last line may be cut in a number; nothing can show that it is whole.
        text = text[: text.rfind("\n") + 1]
        dropped["incomplete_last_line"] = 1
        cautions.append(caution("trace_cut", name=document.name, n_bytes=len(document.data)))
    if _head(document).startswith("{"):
        names, rows = _from_json(document, text)
    else:
        names, rows = _from_csv(document, text, dropped)
    if not rows:
        raise LogFormatError(document.name, found="a header without samples", expected="samples")
    return names, rows, dropped, cautions


def _from_csv(
    document: Document, text: str, dropped: dict[str, int]
) -> tuple[list[str], list[list[str | None]]]:
    names: list[str] = []
    rows: list[list[str | None]] = []
    reader = csv.reader(io.StringIO(text))
    for cells in reader:
        stripped = [cell.strip() for cell in cells]
        if not any(stripped):
            continue
        if not names:
            names = stripped
            if len(set(names)) < len(names):
                raise LogFormatError(
                    document.name, found="two columns of one name", expected="names that differ"
                )
        elif stripped == names:
            dropped["header_repeat"] = dropped.get("header_repeat", 0) + 1
        elif len(stripped) != len(names):
            raise LogFormatError(
                f"{document.name}:{reader.line_num}",
                found=f"{len(stripped)} cells",
                expected=f"{len(names)} as the header has",
            )
        else:
            rows.append(list(stripped))
    return names, rows


def _from_json(document: Document, text: str) -> tuple[list[str], list[list[str | None]]]:
    records: list[dict[str, Any]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise LogFormatError(
                f"{document.name}:{number}", found=repr(line[:60]), expected="a JSON object"
            )
        records.extend(_flat(record))
    names = list(dict.fromkeys(key for record in records for key in record))
    rows = [[_as_text(record.get(name)) for name in names] for record in records]
    return names, rows


def _as_text(value: Any) -> str | None:
    if value is None or value != value:
        return None
    return value if isinstance(value, str) else str(value)


def _numbers(
    document: Document,
    options: ReadOptions,
    name: str,
    meaning: Meaning,
    cells: pl.Series,
    cautions: list[Caution],
) -> tuple[pl.Series, pl.Series]:
    unit = meaning.unit
    if unit is not None and unit not in UNITS[meaning.dimension]:
        raise LogFormatError(
            document.name,
            found=f"the unit {unit!r} for {name}",
            expected=" or ".join(UNITS[meaning.dimension]),
        )
    assumed = unit is None
    if unit is None:
        unit = _NVML_UNIT[meaning.dimension]
        largest = cells.str.extract(r"^([\d.eE+]+)$", 1).cast(pl.Float64, strict=False).max()
        size = float(largest) if isinstance(largest, float) else 0.0
        if meaning.dimension == "w" and size > _MILLIWATTS_ABOVE:
            unit = "mW"
        if meaning.dimension == "mib" and size > _BYTES_ABOVE:
            unit = "B"
        if meaning.column.endswith("_active_ratio") or meaning.column == "sm_occupancy_ratio":
            unit = "ratio"
    read_cells = read_numbers(
        cells.fill_null(""),
        Quantity(column=meaning.column, dimension=meaning.dimension, unit=unit),
        where=document.name,
        column=name,
        decimal=options.decimal,
    )
    if assumed and meaning.dimension in ("w", "mib", "j", "mb_s"):
        cautions.append(caution("unit_assumed", name=document.name, column=name, unit=unit))
    return read_cells.values, read_cells.reasons


def _mask(document: Document, name: str, cells: pl.Series) -> pl.Series:
    def value(text: str | None) -> int | None:
        if text in (None, "", "N/A"):
            return None
        try:
            return int(str(text), 0)
        except ValueError:
            raise LogFormatError(
                document.name, found=f"{str(text)[:40]!r} in column {name}", expected="a bit mask"
            ) from None

    return pl.Series([value(text) for text in cells.to_list()], dtype=pl.UInt64)


def _times(
    document: Document,
    options: ReadOptions,
    clocks: dict[str, tuple[Meaning, pl.Series]],
    who: pl.Series,
    cautions: list[Caution],
) -> Times:
    if "time" not in clocks:
        return _elapsed_only(document, options, clocks["elapsed"])
    meaning, cells = clocks["time"]
    numbers = cells.cast(pl.Float64, strict=False)
    if numbers.null_count() == cells.null_count() + int((cells == "").sum()):
        unit = meaning.unit or _unit_of_epoch(document, numbers)
        if unit not in _TIME_SCALE:
            raise LogFormatError(
                document.name, found=f"the unit {unit!r} of time", expected="s, ms, us or ns"
            )
        if meaning.unit is None:
            cautions.append(
                caution("unit_assumed", name=document.name, column=meaning.column, unit=unit)
            )
        seconds = [_exact_seconds(text, unit) for text in cells.to_list()]
        epoch = pl.Series(seconds, dtype=pl.Float64)
        smallest = epoch.drop_nulls().to_numpy().min(initial=0.0) if len(epoch) else 0.0
        first = epoch.drop_nulls()
        if len(first) and float(first[0]) < 1e9 and smallest < 1e9:
            # Seconds since something that is not the epoch.
            return _elapsed_only(document, options, (meaning, cells))
        return times_from_epoch(epoch, who, document.name)
    return _from_iso(document, options, cells, who)


def _unit_of_epoch(document: Document, numbers: pl.Series) -> str:
    """Tell the unit of an epoch by its size: the four are a factor of a thousand apart."""
    first = numbers.drop_nulls()
    size = float(first[0]) if len(first) else 0.0
    for unit, scale in _TIME_SCALE.items():
        if 1e9 <= size * scale < 1e10:
            return unit
    raise LogFormatError(
        document.name,
        found=f"{size:g} as a time without a unit",
        expected="an epoch, ISO 8601, or a header such as elapsed_s",
    )


def _exact_seconds(text: str | None, unit: str) -> float | None:
    if not text:
        return None
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    if text.lstrip("-").isdigit():
        whole = int(text)
        return whole // per_second + (whole % per_second) / per_second
    return float(text) / per_second


def _elapsed_only(
    document: Document, options: ReadOptions, clock: tuple[Meaning, pl.Series]
) -> Times:
    meaning, cells = clock
    seconds = [_exact_seconds(text, meaning.unit or "s") for text in cells.to_list()]
    elapsed = pl.Series(seconds, dtype=pl.Float64)
    first = elapsed.drop_nulls()
    elapsed = elapsed - float(first[0]) if len(first) else elapsed
    if options.trace_start is None:
        nothing = pl.Series([None] * len(elapsed), dtype=pl.Float64)
        note = caution("time_absent", name=document.name)
        return Times(epoch_s=nothing, elapsed_s=elapsed, cautions=(note,))
    start, _ = parse_trace_start(options.trace_start, options.time_zone)
    return Times(epoch_s=elapsed + start, elapsed_s=elapsed)


def _from_iso(document: Document, options: ReadOptions, cells: pl.Series, who: pl.Series) -> Times:
    stamps: list[datetime | None] = []
    for text in cells.to_list():
        try:
            stamps.append(datetime.fromisoformat(text.replace("/", "-")) if text else None)
        except ValueError:
            raise LogFormatError(
                document.name, found=f"{text[:40]!r} as a time", expected="ISO 8601 or an epoch"
            ) from None
    zoned = {stamp.tzinfo is not None for stamp in stamps if stamp is not None}
    if zoned == {True}:
        epoch = pl.Series([s and s.timestamp() for s in stamps], dtype=pl.Float64)
        return times_from_epoch(epoch, who, document.name)
    if zoned != {False}:
        raise LogFormatError(
            document.name, found="times with and without a zone", expected="one kind"
        )
    return epoch_from_local(
        pl.Series(stamps, dtype=pl.Datetime("us")), who, options.time_zone, document.name
    )


def _pairs(who: pl.Series, names: pl.Series) -> dict[str, str]:
    frame = pl.DataFrame({"who": who, "name": names}).drop_nulls().unique(maintain_order=True)
    return dict(frame.iter_rows())
