"""Base units inside, pretty units at the edge: scaling for tables and figures, and `Estimate`.

Every number in a frame is in the base unit its name ends in. Only tables, figures and sentences
use `scaled`, so that "182 ms" can never be computed with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gpuverdict.errors import Caution, ParameterError

__all__ = ["Estimate", "format_ratio", "format_value", "number", "scaled"]

# unit -> [(smallest absolute value, factor, printed unit)], largest first
_SCALES: dict[str, list[tuple[float, float, str]]] = {
    "s": [(1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (0.0, 1e6, "µs")],
    "j": [(1e6, 1e-6, "MJ"), (1e3, 1e-3, "kJ"), (0.0, 1.0, "J")],
    "w": [(1e3, 1e-3, "kW"), (0.0, 1.0, "W")],
    "mib": [(1024.0, 1 / 1024, "GiB"), (0.0, 1.0, "MiB")],
    "ratio": [(0.0, 100.0, "%")],
    "tokens_per_s": [(0.0, 1.0, "tok/s")],
    "requests_per_s": [(0.0, 1.0, "req/s")],
    "tokens": [(0.0, 1.0, "tokens")],
    "requests": [(0.0, 1.0, "requests")],
    "mhz": [(0.0, 1.0, "MHz")],
    "c": [(0.0, 1.0, "°C")],
    "s_per_token": [(1.0, 1.0, "s/token"), (1e-3, 1e3, "ms/token"), (0.0, 1e6, "µs/token")],
    "j_per_token": [(1.0, 1.0, "J/token"), (0.0, 1e3, "mJ/token")],
    "count": [(0.0, 1.0, "")],
}


def scaled(value: float, unit: str, like: float | None = None) -> tuple[float, str]:
    """Scale a base-unit value for print, with the printed unit.

    Parameters
    ----------
    value : float
        In the base unit.
    unit : str
        Base unit as in the schema (`s`, `w`, `tokens_per_s`, ...).
    like : float, optional
        Choose the scale by this value instead, so that a row keeps one unit.

    Raises
    ------
    ParameterError
        For a unit the schema does not know.

    Examples
    --------
    >>> scaled(0.182, "s")
    (182.0, 'ms')
    """
    if unit not in _SCALES:
        raise ParameterError("unit", found=repr(unit), expected=f"one of {', '.join(_SCALES)}")
    size = abs(value if like is None else like)
    for smallest, factor, printed in _SCALES[unit]:
        if size >= smallest:
            return value * factor, printed
    return value, unit


def format_value(value: float | None, unit: str, like: float | None = None) -> str:
    """Print a value with four significant digits and its scaled unit; `None` prints as a dash.

    Examples
    --------
    >>> format_value(0.006021, "s"), format_value(None, "s"), format_value(1509.4, "tokens_per_s")
    ('6.021 ms', '–', '1,509 tok/s')
    """
    if value is None or not math.isfinite(value):
        return "–"
    number, printed = scaled(value, unit, like)
    return f"{_digits(number)} {printed}".strip()


def format_ratio(ratio: float | None, low: float | None = None, high: float | None = None) -> str:
    """Print a ratio with its interval.

    Examples
    --------
    >>> format_ratio(1.7, 1.6, 1.8)
    '1.700 [1.600, 1.800]'
    """
    if ratio is None or not math.isfinite(ratio):
        return "–"
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return f"{ratio:.3f}"
    return f"{ratio:.3f} [{low:.3f}, {high:.3f}]"


def _digits(number: float) -> str:
    if number == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(number)))
    decimals = max(0, 3 - magnitude)
    return f"{number:,.{decimals}f}"


def number(value: Any) -> float | None:
    """Return a finite number, or the number a text states; None for anything else.

    Examples
    --------
    >>> number("12.5"), number(True), number("inf"), number(3)
    (12.5, None, None, 3.0)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        result = float(value)
    except ValueError:
        return None
    return result if math.isfinite(result) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its interval, unit and reservations; `None` means that it cannot be known.

    `low` and `high` are the ends of the interval that holds with `confidence`, in the unit of the
    value. `n` counts what the interval rests on (runs, sweeps, samples): see the maker's docstring.

    Examples
    --------
    >>> print(Estimate(value=0.0123, low=0.0119, high=0.0127, confidence=0.95, unit="s", n=5))
    12.30 ms [11.90, 12.70]
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    unit: str = ""
    n: int = 0
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        text = format_value(self.value, self.unit) if self.unit in _SCALES else f"{self.value}"
        if self.value is not None and self.low is not None and self.high is not None:
            low, high = self.low, self.high
            if self.unit in _SCALES:
                low, _ = scaled(low, self.unit, self.value)
                high, _ = scaled(high, self.unit, self.value)
            text += f" [{_digits(low)}, {_digits(high)}]"
        return text + "".join(f" ({caution.code})" for caution in self.cautions)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<span>{escape(str(self))}</span>"
