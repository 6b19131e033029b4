"""Untyped values of a log, taken for what they are: a wrong type is an absence, never a crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuverdict.errors import LogFormatError
from gpuverdict.units import number

__all__ = ["distinct", "first_known", "list_of", "mapping", "number", "positive", "text", "whole"]


def mapping(value: Any) -> Mapping[str, Any]:
    """Return an object as it is, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def distinct(items: Sequence[Any], *keys: str) -> tuple[list[Any], int]:
    """Leave out records equal to an earlier one in everything; how many they were.

    Parameters
    ----------
    items : sequence
        Records of one list of a log.
    keys : str
        Fields that differ between most records, so that few need be compared in full.

    Examples
    --------
    >>> distinct([{"id": 1, "s": 0.5}, {"id": 1, "s": 0.5}, {"id": 1, "s": 0.6}], "id")
    ([{'id': 1, 's': 0.5}, {'id': 1, 's': 0.6}], 1)
    """
    kept: list[Any] = []
    alike: dict[str, list[Any]] = {}
    for item in items:
        known = alike.setdefault(repr([mapping(item).get(key) for key in keys]), [])
        if item in known:
            continue
        known.append(item)
        kept.append(item)
    return kept, len(items) - len(kept)


def first_known(*values: Any) -> Any:
    """Return the first value that is not None.

    Examples
    --------
    >>> first_known(None, 0, 1)
    0
    """
    return next((value for value in values if value is not None), None)


def positive(value: Any) -> float | None:
    """Return a number above zero; None for anything else."""
    result = number(value)
    return result if result is not None and result > 0 else None


def whole(value: Any) -> int | None:
    """Return a whole number; None for anything else."""
    result = number(value)
    return int(result) if result is not None and result == int(result) else None


def text(value: Any) -> str | None:
    """Return a text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def list_of(record: Mapping[str, Any], key: str, where: str) -> Sequence[Any]:
    """Return a list of a record.

    Raises
    ------
    LogFormatError
        Where the key is absent or holds something else.
    """
    value = record.get(key)
    if not isinstance(value, list):
        raise LogFormatError(where, found=f"no list {key!r}", expected="one entry a request")
    return value
