"""Columns of a log as numbers, and its error texts as kinds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuverdict.errors import LogFormatError

__all__ = ["FloatArray", "error_kinds", "floats", "integers", "with_unnamed_failures"]

FloatArray = npt.NDArray[np.float64]


def floats(values: Iterable[Any], where: str) -> FloatArray:
    """Turn a column of numbers, numeric texts and nulls into floats, NaN for null.

    Raises
    ------
    LogFormatError
        For a value that is no number.
    """
    values = list(values)
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        pass  # some value is not a number: one by one, so that the error names it
    result = np.empty(len(values))
    for i, value in enumerate(values):
        result[i] = _number(value, where, i)
    return result


def _number(value: Any, where: str, index: int) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool):
        raise LogFormatError(f"{where}[{index}]", found=repr(value), expected="a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise LogFormatError(
            f"{where}[{index}]", found=repr(value)[:80], expected="a number"
        ) from None


def integers(values: Iterable[Any], where: str) -> FloatArray:
    """Turn a column of counts into whole floats, NaN for null.

    Raises
    ------
    LogFormatError
        For a value that is no whole number or negative.
    """
    result = floats(values, where)
    with np.errstate(invalid="ignore"):
        odd = (result != np.floor(result)) | (result < 0) | (result > 2**53)
    odd &= ~np.isnan(result)
    if odd.any():
        bad = int(np.flatnonzero(odd)[0])
        raise LogFormatError(
            f"{where}[{bad}]", found=f"{result[bad]:g}", expected="a count of tokens"
        )
    return result


def with_unnamed_failures(
    errors: Sequence[str | None], silent: npt.NDArray[np.bool_], completed: Any
) -> list[str | None]:
    """Name the failures whose error text is empty, where the tool's own count tells them.

    An HTTP error without a reason phrase leaves no text. Such a request looks like an empty stream,
    which the tool counts among the completed; only the count tells the two apart.

    Parameters
    ----------
    errors : sequence of str
        Error text a request, None for none.
    silent : array of bool
        Requests without an error that brought nothing.
    completed : int or None
        Requests the tool counts as completed.
    """
    unnamed = list(errors).count(None) - completed if isinstance(completed, int) else 0
    if not unnamed or unnamed != int(silent.sum()):
        return list(errors)
    return ["failed" if quiet else error for error, quiet in zip(errors, silent, strict=True)]


_STATUS_CODE = re.compile(r"\b(?:HTTP|status|code|error)\D{0,12}([45]\d\d)\b|^\s*([45]\d\d)\b|"
                          r"'([45]\d\d) [A-Z]", re.I)  # fmt: skip
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("timeout", ("timeout", "timed out")),
    ("cut_stream", ("incomplete chunked", "peer closed", "payload is not completed",
                    "transferencoding", "incompleteread", "response ended prematurely",
                    "response payload", "chunkedencoding")),
    ("connection", ("connection", "connect call", "disconnected", "refused", "reset by peer",
                    "cannot connect", "broken pipe", "serverdisconnected", "unreachable")),
    ("empty_stream", ("invalidinferenceresult", "never received a valid chunk", "no content",
                      "empty response", "no token")),
    ("http_5xx", ("internal server error", "service unavailable", "bad gateway")),
    ("http_4xx", ("too many requests", "bad request", "unauthorized", "not found", "forbidden")),
    ("client", ("keyerror", "valueerror", "typeerror", "jsondecodeerror", "attributeerror")),
)  # fmt: skip


def error_kinds(errors: Sequence[str | None]) -> list[str | None]:
    """Classify error texts into the kinds of the canonical schema; null for no error.

    Examples
    --------
    >>> error_kinds(["", "HTTP 503", "Connection refused", None, "odd"])
    [None, 'http_5xx', 'connection', None, 'other']
    """
    known: dict[str | None, str | None] = {None: None, "": None}
    for text in errors:
        if text not in known:
            known[text] = _error_kind(str(text))
    return [known[text] for text in errors]


def _error_kind(text: str) -> str:
    # Tracebacks end with what matters, and may be very long.
    sample = text if len(text) <= 4000 else text[:2000] + text[-2000:]
    lowered = sample.lower()
    if match := _STATUS_CODE.search(sample):
        code = next(group for group in match.groups() if group)
        if code == "499":
            return "client"
        return f"http_{code[0]}xx"
    for kind, marks in _KINDS:
        if any(mark in lowered for mark in marks):
            return kind
    return "other"
