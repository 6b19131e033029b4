"""Rows of `SERVER_REQUESTS` from what a server wrote of a request, checked against themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from gpuverdict.errors import LogFormatError
from gpuverdict.schema import SERVER_REQUESTS, SERVER_TIMES, check, conform, polars_schema
from gpuverdict.units import number

__all__ = ["count", "frame_of", "row_of", "seconds"]

# How far the parts may add up beyond the whole: both are stamps of one process.
SLACK_S, SLACK_RATIO = 0.01, 0.02


def seconds(value: Any) -> float | None:
    """Return a time that can be one: finite and not negative."""
    result = number(value)
    return result if result is not None and result >= 0 else None


def count(value: Any) -> int | None:
    """Return a whole number that is not negative; JSON of protobuf writes them as texts."""
    result = seconds(value)
    return int(result) if result is not None and result == int(result) else None


def row_of(source: str, **values: Any) -> dict[str, Any]:
    """Make one row; parts that add up to more than the whole are none (`note`).

    Examples
    --------
    >>> row_of("open", server_queue_s=3.0, server_decode_s=1.0, server_e2e_s=2.0)["note"]
    'times_do_not_add_up'
    """
    row = dict.fromkeys(SERVER_REQUESTS) | {"source": source} | values
    total = sum(row[name] or 0.0 for name in SERVER_TIMES)
    whole = row["server_e2e_s"]
    if whole is not None and total > whole * (1 + SLACK_RATIO) + SLACK_S:
        row |= dict.fromkeys(SERVER_TIMES) | {"note": "times_do_not_add_up"}
    elif all(row[name] is None for name in SERVER_TIMES) and row["note"] is None:
        row["note"] = "no_times"
    return row


def frame_of(rows: Sequence[Mapping[str, Any]], name: str) -> pl.DataFrame:
    """Return rows as a checked frame.

    Raises
    ------
    LogFormatError
        When there is no row.
    """
    if not rows:
        raise LogFormatError(name, found="no finished request", expected="at least one")
    frame = pl.DataFrame(list(rows), schema=polars_schema(SERVER_REQUESTS), orient="row")
    return check(conform(frame, SERVER_REQUESTS), SERVER_REQUESTS, name)
