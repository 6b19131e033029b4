"""What has one value a request or a gap: its mean, spread and quantiles, with what limits them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["MIN_TPOT_TOKENS", "Row", "distribution_rows", "statistic_rows"]

# A request of fewer tokens gives a TPOT that is mostly rounding; it stays in the mean.
MIN_TPOT_TOKENS = 8
# Median gap below this share of the mean: several tokens share an event, percentiles mean nothing.
BURSTY_SHARE = 0.2
# Gaps that cover this share of the tokens are one token a chunk (a few events may merge).
ONE_TOKEN_SHARE = 0.98
# A first request this much slower than the median of the others paid for a cold start.
COLD_TIMES = 5.0
FEWEST_FOR_COLD = 5

_QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number of one run; `value` is None where it cannot be known, with a caution."""

    metric: str
    statistic: str
    value: float | None
    n: int
    cautions: tuple[Caution, ...] = ()


def distribution_rows(ok: pl.DataFrame, sent: pl.DataFrame, run: Run) -> list[Row]:
    """Compute the rows of the metrics that have one value a request or gap.

    Parameters
    ----------
    ok, sent : polars.DataFrame
        Requests that ended well, and all that were sent, in the window.
    """
    none_ok = (caution("no_successful_request"),) if ok.is_empty() else ()
    cold = _cold_first(ok)
    rows = statistic_rows("ttft_s", ok["ttft_s"], none_ok or _not_streamed(run, ok))
    if cold is not None:
        rows = [_with(row, (cold,)) for row in rows]
    rows += _tpot(ok, none_ok or _not_streamed(run, ok))
    rows += _gaps(ok, run, none_ok)
    rows += statistic_rows("e2e_s", ok["e2e_s"], none_ok)
    normalized = ok.filter(pl.col("output_tokens") > 0)
    rows += statistic_rows(
        "normalized_e2e_s_per_token", normalized["e2e_s"] / normalized["output_tokens"], none_ok
    )
    rows += _error_adjusted("ttft_error_adjusted_s", "ttft_s", sent, none_ok)
    rows += _error_adjusted("e2e_error_adjusted_s", "e2e_s", sent, none_ok)
    return rows


def _cold_first(ok: pl.DataFrame) -> Caution | None:
    """Say that the first request of a run was cold, with the mean with and without it."""
    times = ok.sort("start_s", "request_index")["ttft_s"].drop_nulls().to_numpy()
    if times.size < FEWEST_FOR_COLD:
        return None
    others = float(np.median(times[1:]))
    if not others or times[0] < COLD_TIMES * others:
        return None
    return caution("cold_first_request", ratio=float(times[0]) / others,
                   mean_s=float(times.mean()), mean_without_s=float(times[1:].mean()))  # fmt: skip


def _error_adjusted(
    metric: str, column: str, sent: pl.DataFrame, none_ok: tuple[Caution, ...]
) -> list[Row]:
    """Quantiles with every failure as an infinite latency, by nearest rank.

    Only where requests failed; a quantile that falls on a failure is unbounded, and null.
    """
    counted = sent.filter(pl.col("status").is_in(["ok", "error", "empty", "cancelled"]))
    failed = counted.height - int((counted["status"] == "ok").sum())
    if not failed:
        return []
    known = np.sort(counted.filter(pl.col("status") == "ok")[column].drop_nulls().to_numpy())
    n = known.size + failed
    rows = []
    for statistic, q in _QUANTILES:
        rank = max(1, math.ceil(q * n - 1e-9))
        bounded = rank <= known.size
        rows.append(
            Row(
                metric=metric,
                statistic=statistic,
                value=float(known[rank - 1]) if bounded else None,
                n=n,
                cautions=() if bounded else none_ok or (caution("unbounded", n=failed, total=n),),
            )
        )
    return rows


def _not_streamed(run: Run, ok: pl.DataFrame) -> tuple[Caution, ...]:
    if run.info.get("streaming") is False or ok["ttft_s"].null_count() == ok.height:
        return (caution("not_streamed"),)
    return ()


def statistic_rows(
    metric: str,
    values: pl.Series,
    cautions: tuple[Caution, ...] = (),
    *,
    quantile_values: pl.Series | None = None,
    quantile_cautions: tuple[Caution, ...] = (),
) -> list[Row]:
    """Give mean, SD, extremes and quantiles of a metric, the quantiles over values of their own."""
    moments = values.drop_nulls().to_numpy()
    tail = moments if quantile_values is None else quantile_values.drop_nulls().to_numpy()
    rows = []
    n = int(moments.size)
    if n == 0 and not cautions:
        cautions = (caution("not_in_log", metric=metric),)
    simple = {
        "mean": float(moments.mean()) if n else None,
        "std": float(moments.std(ddof=1)) if n > 1 else None,
        "min": float(moments.min()) if n else None,
        "max": float(moments.max()) if n else None,
    }
    own: tuple[Caution, ...] = cautions if n == 0 else ()
    for statistic, value in simple.items():
        extra = (caution("needs_two", metric=metric),) if statistic == "std" and n == 1 else ()
        rows.append(Row(metric=metric, statistic=statistic, value=value, n=n, cautions=own + extra))
    m = int(tail.size)
    points = np.quantile(tail, [q for _, q in _QUANTILES]) if m else [None] * len(_QUANTILES)
    for (statistic, q), point in zip(_QUANTILES, points, strict=True):
        said = quantile_cautions
        if m and q > 0.5 and m * (1 - q) < 5:
            said = (*said, caution("tail_under_sampled", statistic=statistic, n=m,
                                     needed=int(np.ceil(5 / (1 - q) - 1e-9))))  # fmt: skip
        elif m and q == 0.5 and m < 10:
            said = (*said, caution("few_requests", n=m))
        rows.append(
            Row(
                metric=metric,
                statistic=statistic,
                value=None if point is None else float(point),
                n=m,
                cautions=(own or cautions if m == 0 else ()) + said,
            )
        )
    return rows


def _tpot(ok: pl.DataFrame, cautions: tuple[Caution, ...]) -> list[Row]:
    defined = ok.filter(pl.col("tpot_s").is_not_null())
    long_enough = defined.filter(pl.col("output_tokens") >= MIN_TPOT_TOKENS)
    quantile_cautions: tuple[Caution, ...] = ()
    if long_enough.is_empty() and not defined.is_empty():
        long_enough = defined
        quantile_cautions = (caution("tpot_of_short_outputs", tokens=MIN_TPOT_TOKENS),)
    undefined = ok.height - defined.height
    said = (
        (caution("tpot_undefined", n=undefined, total=ok.height),)
        if undefined and not cautions
        else ()
    )
    rows = statistic_rows(
        "tpot_s", defined["tpot_s"], cautions or said,
        quantile_values=long_enough["tpot_s"], quantile_cautions=quantile_cautions,
    )  # fmt: skip
    if said:
        rows = [_with(row, said) for row in rows]
    spans = defined.select(
        span=(pl.col("last_token_s") - pl.col("first_token_s")).fill_null(
            pl.col("tpot_s") * (pl.col("output_tokens") - 1)),
        steps=pl.col("output_tokens") - 1,
    )  # fmt: skip
    steps = int(spans["steps"].sum())
    weighted = float(spans["span"].sum()) / steps if steps else None
    empty_said = () if steps else cautions or said or (caution("not_in_log", metric="tpot_s"),)
    rows.append(
        Row(metric="tpot_token_weighted_s", statistic="value", value=weighted,
            n=defined.height, cautions=empty_said)
    )  # fmt: skip
    fast = next(r.value for r in rows if r.statistic == "p50")
    rows.append(
        Row(metric="decode_tokens_per_s", statistic="value", value=1 / fast if fast else None,
            n=long_enough.height,
            cautions=(caution("user_perceived"),) if fast else cautions or said)
    )  # fmt: skip
    return rows


def _with(row: Row, cautions: Iterable[Caution]) -> Row:
    known = {c.code for c in row.cautions}
    extra = tuple(c for c in cautions if c.code not in known)
    return Row(metric=row.metric, statistic=row.statistic, value=row.value, n=row.n,
               cautions=row.cautions + extra)  # fmt: skip


def _gaps(ok: pl.DataFrame, run: Run, none_ok: tuple[Caution, ...]) -> list[Row]:
    gaps = run.gaps.filter(pl.col("gaps_s").list.len() > 0).join(
        ok.select("request_index", "output_tokens"), on="request_index", how="semi"
    )
    if gaps.is_empty():
        absent = none_ok or (caution("no_gaps_in_log"),)
        nothing = pl.Series([], dtype=pl.Float64)
        return [
            *statistic_rows("itl_s", nothing, absent),
            *statistic_rows("chunk_gap_s", nothing, absent),
        ]
    kinds = set(gaps["gap_kind"].drop_nulls())
    # `explode` on one column keeps memory at the size of the gaps themselves.
    flat = gaps["gaps_s"].explode()
    events = flat.len()
    tokens = int(
        ok.join(gaps.select("request_index"), on="request_index", how="semi")
        .select((pl.col("output_tokens") - 1).clip(0).sum())
        .item()
    )
    rows = []
    bursty: tuple[Caution, ...] = ()
    mean = float(flat.mean() or 0.0)  # type: ignore[arg-type]
    median = float(flat.median() or 0.0)  # type: ignore[arg-type]
    if median < BURSTY_SHARE * mean:
        bursty = (caution("bursty_gaps", median_s=median, mean_s=mean),)
    one_token = kinds <= {"token_true"} or (
        kinds <= {"chunk"} and events >= ONE_TOKEN_SHARE * tokens
    )
    if one_token:
        rows += _suppressed("itl_s", flat, bursty)
    else:
        reason = caution("gaps_are_not_tokens", kind="/".join(sorted(kinds)) or "unknown",
                         events=events, tokens=tokens)  # fmt: skip
        rows += statistic_rows("itl_s", pl.Series([], dtype=pl.Float64), (reason,))
    rows += _suppressed("chunk_gap_s", flat, bursty)
    return rows


def _suppressed(metric: str, values: pl.Series, bursty: tuple[Caution, ...]) -> list[Row]:
    rows = statistic_rows(metric, values)
    if not bursty:
        return rows
    keep = {"mean", "std", "min", "max"}
    return [
        row if row.statistic in keep
        else Row(metric=metric, statistic=row.statistic, value=None, n=row.n, cautions=bursty)
        for row in rows
    ]  # fmt: skip
