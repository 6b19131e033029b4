"""From columns of numbers and texts to the canonical frames of requests and gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from gpuverdict.ingest.columns import FloatArray, error_kinds
from gpuverdict.ingest.gaps import Gaps, list_offsets
from gpuverdict.schema import REQUESTS, TOKEN_GAPS, check, conform, empty, polars_schema

__all__ = ["gaps_frame", "numeric_columns", "requests_frame"]

_NUMERIC = tuple(
    name for name, column in REQUESTS.items() if column.dtype in (pl.Float64, pl.Int64)
)


def numeric_columns(columns: Mapping[str, Any], n: int) -> dict[str, FloatArray]:
    """Every numeric column of a request as floats, NaN where it is unknown."""
    result: dict[str, FloatArray] = {}
    for name in (*_NUMERIC, "decode_s"):
        if name == "request_index":
            continue
        values = columns.get(name)
        array = np.full(n, np.nan) if values is None else np.array(values, dtype=np.float64)
        # Infinity is no time and no count: what cannot be known is null.
        array[~np.isfinite(array)] = np.nan
        result[name] = array
    return result


def requests_frame(
    columns: Mapping[str, Any],
    numbers: Mapping[str, FloatArray],
    status: npt.NDArray[Any],
    sources: Any,
    errors: Sequence[str | None] | None,
    identity: str,
    n: int,
) -> pl.DataFrame:
    """Make the canonical frame of requests."""
    if n == 0:
        return empty(REQUESTS)
    kinds = columns.get("error_kind")
    if kinds is None:
        kinds = error_kinds(errors) if errors is not None else [None] * n
    kinds = [
        "empty_stream" if state == "empty" and kind is None else kind
        for state, kind in zip(status, kinds, strict=True)
    ]
    indexes = columns.get("request_index")
    data: dict[str, Any] = {
        "request_index": np.arange(n) if indexes is None else np.asarray(indexes, dtype=np.int64),
        "request_id": _strings(columns.get("request_id"), n),
        "phase": _strings(columns.get("phase"), n, "main"),
        "status": pl.Series(list(status), dtype=pl.String),
        "output_tokens_source": _strings(sources, n),
        "error_kind": _strings(kinds, n),
    }
    for name in _NUMERIC:
        if name != "request_index":
            data[name] = pl.Series(numbers[name]).fill_nan(None)
    frame = pl.DataFrame(data).with_columns(pl.lit(identity).alias("run_id"))
    return check(conform(frame, REQUESTS), REQUESTS, "requests")


def _strings(values: Any, n: int, default: str | None = None) -> pl.Series:
    if values is None:
        return pl.Series([default] * n, dtype=pl.String)
    texts = [default if value is None else str(value) for value in values]
    return pl.Series(texts, dtype=pl.String)


def gaps_frame(gaps: Gaps | None, identity: str) -> pl.DataFrame:
    """Make the canonical frame of gaps, a row for each request that has any."""
    if gaps is None:
        return empty(TOKEN_GAPS)
    filled = np.flatnonzero(gaps.lengths > 0)
    if not filled.size:
        return empty(TOKEN_GAPS)
    offsets = list_offsets(gaps.lengths[filled])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(gaps.flat_s))
    series = pl.Series(pl.from_arrow(lists))
    tokens = None
    if gaps.tokens_per_event is not None:
        tokens = [gaps.tokens_per_event[i] for i in filled]
    frame = pl.DataFrame(
        {
            "request_index": filled.astype(np.int64),
            "gaps_s": series,
            "tokens_per_event": pl.Series(tokens or [None] * len(filled), dtype=pl.List(pl.Int32)),
        }
    ).with_columns(pl.lit(identity).alias("run_id"), pl.lit(gaps.kind).alias("gap_kind"))
    return frame.select(list(polars_schema(TOKEN_GAPS)))
