"""Cells of a trace as numbers in base units: missing stays missing, units are read, not assumed."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from gpuverdict.errors import LogFormatError

__all__ = ["UNITS", "Cells", "Quantity", "read_numbers", "split_unit"]

_NUMBER = r"^([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z%µ°/]*)$"
# Every bracketed text is a reason ("[Not Supported]", "[GPU is lost]", ...), as is a bare N/A.
_MISSING = r"^(?:\[.*\]|N/A|n/a|-|)$"

_POWER = {"W": 1.0, "mW": 1e-3, "kW": 1e3}
_ENERGY = {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "µJ": 1e-6, "kJ": 1e3, "MJ": 1e6}
_MEMORY = {
    "MiB": 1.0, "KiB": 1 / 1024, "GiB": 1024.0, "B": 1 / 2**20, "bytes": 1 / 2**20,
}  # fmt: skip
_CLOCK = {"MHz": 1.0, "GHz": 1e3, "kHz": 1e-3, "Hz": 1e-6}
_RATIO = {"%": 0.01, "ratio": 1.0}
_CELSIUS = {"C": 1.0, "°C": 1.0}
_RATE = {"MB/s": 1.0, "KB/s": 1e-3, "B/s": 1e-6, "GB/s": 1e3}

UNITS: dict[str, dict[str, float]] = {
    "w": _POWER, "j": _ENERGY, "mib": _MEMORY, "mhz": _CLOCK, "ratio": _RATIO, "c": _CELSIUS,
    "mb_s": _RATE,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """Where a column of a file goes: sample column, its dimension, the unit if none is written."""

    column: str
    dimension: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """One column as numbers, with the text that stood where a number was missing."""

    values: pl.Series
    reasons: pl.Series


def split_unit(name: str) -> tuple[str, str | None]:
    """Split `power.draw [W]` into name and unit.

    Examples
    --------
    >>> split_unit(" power.draw [W]"), split_unit("pstate")
    (('power.draw', 'W'), ('pstate', None))
    """
    name = name.strip()
    if name.endswith("]") and "[" in name:
        head, _, unit = name[:-1].rpartition("[")
        return head.strip(), unit.strip()
    return name, None


def read_numbers(
    cells: pl.Series,
    quantity: Quantity,
    *,
    where: str,
    column: str,
    header_unit: str | None = None,
    decimal: str = ".",
) -> Cells:
    """Read one column of text as numbers in the base unit of its dimension.

    The unit of a cell wins, then the header's, then the one the format documents.

    Raises
    ------
    LogFormatError
        For a cell that is neither a number nor a known spelling of missing, or a foreign unit.

    Examples
    --------
    >>> power = Quantity(column="power_w", dimension="w", unit="W")
    >>> cells = pl.Series(["120.00 W", "[N/A]", "90"])
    >>> read_numbers(cells, power, where="a.csv", column="power.draw").values.to_list()
    [120.0, None, 90.0]
    """
    text = cells.str.strip_chars()
    unit_expected = header_unit or quantity.unit
    quick = _all_in_one_unit(text, unit_expected, UNITS[quantity.dimension].get(unit_expected))
    if quick is not None:
        nothing = pl.Series([None], dtype=pl.String).new_from_index(0, len(text))
        return Cells(values=quick.rename(quantity.column), reasons=nothing)
    missing = text.is_null() | text.str.contains(_MISSING)
    written = text.str.replace(",", ".", literal=True) if decimal == "," else text
    number = written.str.extract(_NUMBER, 1).cast(pl.Float64, strict=False)
    number = pl.select(pl.when(number.is_finite()).then(number)).to_series()
    bad = ~missing & number.is_null()
    if bad.any():
        raise LogFormatError(
            where,
            found=f"{text.filter(bad)[0][:40]!r} in column {column}",
            expected="a number" + ("" if decimal == "," else " with a decimal point"),
        )
    allowed = UNITS[quantity.dimension]
    unit = written.str.extract(_NUMBER, 2).replace("", None)
    unit = unit.fill_null(header_unit or quantity.unit)
    known = unit.is_in(list(allowed))
    foreign = unit.filter(~known & ~missing)
    if len(foreign):
        raise LogFormatError(
            where,
            found=f"the unit {foreign[0]!r} in column {column}",
            expected=" or ".join(allowed),
        )
    factor = unit.replace_strict(allowed, default=None, return_dtype=pl.Float64)
    values = pl.select(pl.when(~missing).then(number * factor)).to_series()
    reasons = pl.select(pl.when(missing).then(text.fill_null(""))).to_series()
    return Cells(values=values.rename(quantity.column), reasons=reasons)


def _all_in_one_unit(text: pl.Series, unit: str, factor: float | None) -> pl.Series | None:
    """Read cells that all are plain numbers in the unit expected: the common case, and cheap."""
    if factor is None:
        return None
    number = text.str.strip_suffix(unit).str.strip_chars_end(" ").cast(pl.Float64, strict=False)
    if number.null_count() or not number.is_finite().all():
        return None
    return number * factor
