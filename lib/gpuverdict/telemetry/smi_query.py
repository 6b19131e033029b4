"""`nvidia-smi --query-gpu=... --format=csv[,noheader][,nounits]`, in every shape met.

Names are matched without their unit; both generations of throttle names are the same column. Rows
are kept in file order. The file may repeat its header, be cut in a row, or be the sentence that
refuses an unknown field.
"""

from __future__ import annotations

import re

import polars as pl

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import Trace
from gpuverdict.telemetry.cells import Quantity, read_numbers, split_unit
from gpuverdict.telemetry.clock import epoch_from_local
from gpuverdict.telemetry.samples import THROTTLE_BITS, build_trace, power_kind_of
from gpuverdict.telemetry.smi_table import (
    DEVICE_LINES,
    REFUSAL,
    STAMP,
    SmiTable,
    canonical_name,
    first_line,
    read_table,
)
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

_QUANTITIES: dict[str, Quantity] = {
    "power.draw": Quantity(column="power_w", dimension="w", unit="W"),
    "power.draw.average": Quantity(column="power_average_w", dimension="w", unit="W"),
    "power.draw.instant": Quantity(column="power_instant_w", dimension="w", unit="W"),
    "power.limit": Quantity(column="power_limit_w", dimension="w", unit="W"),
    "enforced.power.limit": Quantity(column="power_limit_w", dimension="w", unit="W"),
    "utilization.gpu": Quantity(column="gpu_util_ratio", dimension="ratio", unit="%"),
    "utilization.memory": Quantity(column="mem_util_ratio", dimension="ratio", unit="%"),
    "memory.used": Quantity(column="memory_used_mib", dimension="mib", unit="MiB"),
    "memory.total": Quantity(column="memory_total_mib", dimension="mib", unit="MiB"),
    "temperature.gpu": Quantity(column="temperature_c", dimension="c", unit="C"),
    "temperature.memory": Quantity(column="mem_temperature_c", dimension="c", unit="C"),
    "clocks.current.sm": Quantity(column="sm_clock_mhz", dimension="mhz", unit="MHz"),
    "clocks.current.memory": Quantity(column="mem_clock_mhz", dimension="mhz", unit="MHz"),
    "fan.speed": Quantity(column="fan_ratio", dimension="ratio", unit="%"),
}
_TEXTS = ("timestamp", "index", "uuid", "name", "pstate", "pci.bus_id", "gpu_bus_id", "serial")
_MASK = "clocks_event_reasons.active"


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not a query CSV of nvidia-smi, or None if it is one."""
    first = first_line(document)
    if REFUSAL.match(first) or first.startswith(DEVICE_LINES):
        return None
    cells = [cell.strip() for cell in re.split("[,;]", first)]
    if cells and STAMP.match(cells[0]) and len(cells) > 1:
        return None
    names = {canonical_name(split_unit(cell)[0]) for cell in cells}
    if "pid" in names:
        return "its rows are processes"
    known = {name for name in names if name in _QUANTITIES or name.startswith("clocks_event_rea")}
    if not known:
        return "its header names no field of nvidia-smi"
    if not names & {"timestamp", "index", "uuid", "name"} and not any("." in n for n in known):
        return "its header names no field of nvidia-smi"
    return None


def read(document: Document, options: ReadOptions) -> Trace:
    """Read the samples of a query CSV.

    Returns
    -------
    Trace
        One row a GPU and tick, in file order. `power_w` is the instantaneous column where there is
        one, then the averaged one, then `power.draw`, whose kind follows from the GPU model.

    Raises
    ------
    LogFormatError
        For the sentence that refuses a field, a table without a header and without `trace_query`,
        decimal commas that were not declared, two columns of one name that differ, or rows of
        several GPUs that cannot be told apart.

    Notes
    -----
    `power.limit` is the requested limit; where `enforced.power.limit` is in the file, that is kept.
    """
    table = read_table(document, options)
    texts, numbers, reasons = _columns(document, options, table)
    n = table.frame.height
    uuid, index, found = _identify(document, texts, n)
    cautions = list(table.cautions) + found
    stamps = texts.get("timestamp", pl.Series([None] * n, dtype=pl.String))
    parsed = stamps.str.to_datetime("%Y/%m/%d %H:%M:%S%.f", strict=False, time_unit="us")
    if n and parsed.null_count() == n:
        cautions.append(caution("time_absent", name=document.name))
    elif parsed.null_count():
        texts_of = ", ".join(sorted({str(t) for t in stamps.filter(parsed.is_null())})[:3])
        cautions.append(
            caution(
                "values_missing",
                column="timestamp",
                n=parsed.null_count(),
                n_rows=n,
                reasons=texts_of,
            )
        )
    who = pl.select(pl.coalesce(uuid, index.cast(pl.String), pl.lit("0"))).to_series()
    times = epoch_from_local(parsed, who, options.time_zone, document.name)
    draw = numbers.pop("power_w", None)
    names = texts.get("name", pl.Series([None] * n, dtype=pl.String))
    kind_of = {name: power_kind_of(name) for name in names.unique().to_list()}
    held = {**numbers, "gpu_uuid": uuid, "gpu_index": index}
    if "pstate" in texts:
        held["pstate"] = texts["pstate"]
    mask, bits = _mask(document, table)
    if mask is not None:
        held["throttle_mask"] = mask
    read_names = {*_QUANTITIES, *_TEXTS, _MASK}
    return build_trace(
        document,
        source="smi_csv",
        columns=held,
        times=times,
        power_draw=draw,
        draw_kinds=[kind_of[name] for name in names.to_list()],
        reasons=reasons,
        cautions=cautions,
        info={
            "time_zone": options.time_zone,
            "dropped": table.dropped,
            "names": _names_of(uuid, index, names),
            "throttle_bits": bits,
            "unread_columns": [
                name
                for name in table.names
                if name not in read_names and not name.startswith("clocks_event_reasons")
            ],
        },
    )


def _columns(
    document: Document, options: ReadOptions, table: SmiTable
) -> tuple[dict[str, pl.Series], dict[str, pl.Series], dict[str, pl.Series]]:
    texts: dict[str, pl.Series] = {}
    numbers: dict[str, pl.Series] = {}
    reasons: dict[str, pl.Series] = {}
    written: dict[str, str] = {}
    for position, (name, unit) in enumerate(zip(table.names, table.units, strict=True)):
        cells = table.frame[str(position)].str.strip_chars()
        if name in _TEXTS:
            missing = cells.str.contains(r"^(?:\[.*\]|N/A|)$")
            cells = pl.select(pl.when(~missing).then(cells)).to_series()
            _same(document, name, texts.get(name), cells)
            texts[name] = cells
        elif name in _QUANTITIES:
            quantity = _QUANTITIES[name]
            read_cells = read_numbers(
                cells,
                quantity,
                where=document.name,
                column=name,
                header_unit=unit,
                decimal=options.decimal,
            )
            column = quantity.column
            if written.get(column) == name:
                _same(document, name, numbers[column], read_cells.values)
            if written.get(column) == "enforced.power.limit":
                continue
            written[column] = name
            numbers[column] = read_cells.values
            reasons[column] = read_cells.reasons
    return texts, numbers, reasons


def _same(document: Document, name: str, one: pl.Series | None, other: pl.Series) -> None:
    if one is not None and not one.eq_missing(other).all():
        raise LogFormatError(
            document.name,
            found=f"two columns {name} that differ",
            expected="one column of that name",
        )


def _mask(document: Document, table: SmiTable) -> tuple[pl.Series | None, int]:
    """Decode the reasons that slow the clocks, and say which bits the file can show at all."""
    mask: pl.Series | None = None
    single: pl.Series | None = None
    bits = 0
    for position, name in enumerate(table.names):
        if not name.startswith("clocks_event_reasons."):
            continue
        cells = table.frame[str(position)].str.strip_chars()
        missing = cells.str.contains(r"^(?:\[.*\]|N/A|)$")
        if name == _MASK:
            digits = cells.str.extract(r"^0[xX]([0-9a-fA-F]{1,16})$", 1)
            bad = cells.filter(~missing & digits.is_null())
            if len(bad):
                raise LogFormatError(
                    document.name, found=f"{bad[0][:40]!r} in column {name}", expected="0x..."
                )
            values = digits.str.to_integer(base=16, dtype=pl.UInt64, strict=False)
            _same(document, name, mask, values)
            mask, bits = values, bits | sum(THROTTLE_BITS.values())
            continue
        bit = THROTTLE_BITS.get(name.removeprefix("clocks_event_reasons."))
        if bit is None:
            continue
        foreign = cells.filter(~missing & ~cells.is_in(["Active", "Not Active"]))
        if len(foreign):
            raise LogFormatError(
                document.name,
                found=f"{foreign[0][:40]!r} in column {name}",
                expected="Active or Not Active",
            )
        flag = pl.select(
            pl.when(cells == "Active")
            .then(pl.lit(bit, dtype=pl.UInt64))
            .when(cells == "Not Active")
            .then(pl.lit(0, dtype=pl.UInt64))
        ).to_series()
        single = flag if single is None else single + flag
        bits |= bit
    return (mask, bits) if mask is not None else (single, bits)


def _identify(
    document: Document, texts: dict[str, pl.Series], n: int
) -> tuple[pl.Series, pl.Series, list[Caution]]:
    nothing = pl.Series([None] * n, dtype=pl.String)
    uuid = texts.get("uuid", nothing)
    index = texts.get("index", nothing).cast(pl.Int32, strict=False)
    if uuid.null_count() < n or index.null_count() < n:
        return uuid, index, []
    for name in ("pci.bus_id", "gpu_bus_id", "serial"):
        if name in texts and texts[name].null_count() < n:
            return texts[name], index, []
    stamps = texts.get("timestamp", nothing)
    repeated = len(stamps.drop_nulls()) - stamps.drop_nulls().n_unique()
    several = texts.get("name", nothing).n_unique() > 1 or repeated > 0 or _alternates(stamps)
    if several:
        raise LogFormatError(
            document.name,
            found="rows of several GPUs and neither uuid nor index",
            expected="a column uuid or index",
            remedy="query index,uuid as well",
        )
    return uuid, index, [caution("gpu_unidentified", name=document.name)]


def _alternates(stamps: pl.Series) -> bool:
    """Tell rows that come in bursts (one a GPU) from rows that come at a steady pace."""
    parsed = stamps.str.to_datetime("%Y/%m/%d %H:%M:%S%.f", strict=False, time_unit="us")
    steps = parsed.drop_nulls().diff().dt.total_microseconds().drop_nulls()
    if len(steps) < 4:
        return False
    longest = float(steps.quantile(0.9) or 0.0)
    short = int((steps < 0.2 * longest).sum())
    return longest > 0 and short >= 0.3 * len(steps)


def _names_of(uuid: pl.Series, index: pl.Series, names: pl.Series) -> dict[str, str]:
    frame = pl.DataFrame({"uuid": uuid, "index": index.cast(pl.String), "name": names})
    pairs = frame.drop_nulls("name").unique(maintain_order=True).rows()
    return {str(one if one is not None else other): name for one, other, name in pairs}
