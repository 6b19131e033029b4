"""The numbers of one run in one window: the only maker of run-level numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.phases import split_phases
from gpuverdict.schema import METRICS, Run
from gpuverdict.steady import (
    Window,
    below_peak_ratio,
    in_flight,
    mean_concurrency,
    requests_in_window,
    tokens_in_window,
)
from gpuverdict.steady.flight import time_mean
from gpuverdict.text import caution

__all__ = [
    "MIN_TPOT_TOKENS",
    "Row",
    "Slo",
    "distribution_rows",
    "phase_rows",
    "reported_rows",
    "run_rows",
]

# A request of fewer tokens gives a TPOT that is mostly rounding; it stays in the mean.
MIN_TPOT_TOKENS = 8
# Median gap below this share of the mean: several tokens share an event, percentiles mean nothing.
BURSTY_SHARE = 0.2
# Gaps that cover this share of the tokens are one token a chunk (a few events may merge).
ONE_TOKEN_SHARE = 0.98

_QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))

Slo = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number of one run; `value` is None where it cannot be known, with a caution."""

    metric: str
    statistic: str
    value: float | None
    n: int
    cautions: tuple[Caution, ...] = ()


def run_rows(
    run: Run,
    window: Window,
    *,
    slo: Slo | None = None,
    gpus: int | None = None,
    skip_first: int = 0,
) -> list[Row]:
    """Compute every number of a run in a window.

    Parameters
    ----------
    run : Run
    window : Window
        `whole_run`: every request of the main phase; throughput over the duration.
    slo : mapping, optional
        metric -> {statistic: limit}; the limits apply to each request for goodput.
    gpus : int, optional
        Adds the throughput a GPU.
    skip_first : int
        Requests in issue order left out of the latencies (a whole run without start times: its
        opening wave).

    Returns
    -------
    list of Row
        Latencies cover requests that ended ok; TPOT quantiles those with eight output tokens or
        more; throughput counts the tokens of ok and cut requests. See `schema.METRICS` for the
        formulas.
    """
    if run.requests.is_empty():
        return reported_rows(run)
    sent = requests_in_window(run, window)
    ok = sent.filter(pl.col("status") == "ok").sort("request_index")
    if skip_first:
        ok = ok.filter(pl.col("request_index") >= _nth_index(sent, skip_first))
    rows = distribution_rows(ok, run, window)
    rows += _rates(run, window, sent, gpus)
    rows += _unloaded(run, ok)
    rows += _shares(run, window, sent)
    rows.append(_goodput(ok, sent, window, slo))
    return rows


def _nth_index(sent: pl.DataFrame, skip: int) -> int:
    order = sent["request_index"].sort()
    return int(order[skip]) if skip < order.len() else int(order[-1]) + 1


def distribution_rows(ok: pl.DataFrame, run: Run, window: Window) -> list[Row]:
    """Compute the rows of the metrics that have one value a request or gap."""
    none_ok = (caution("no_successful_request"),) if ok.is_empty() else ()
    rows = _stats("ttft_s", ok["ttft_s"], none_ok or _not_streamed(run, ok))
    rows += _tpot(ok, none_ok or _not_streamed(run, ok))
    rows += _gaps(ok, run, none_ok)
    rows += _stats("e2e_s", ok["e2e_s"], none_ok)
    normalized = ok.filter(pl.col("output_tokens") > 0)
    rows += _stats(
        "normalized_e2e_s_per_token", normalized["e2e_s"] / normalized["output_tokens"], none_ok
    )
    return rows


def _not_streamed(run: Run, ok: pl.DataFrame) -> tuple[Caution, ...]:
    if run.info.get("streaming") is False or ok["ttft_s"].null_count() == ok.height:
        return (caution("not_streamed"),)
    return ()


def _stats(
    metric: str,
    values: pl.Series,
    cautions: tuple[Caution, ...] = (),
    *,
    quantile_values: pl.Series | None = None,
    quantile_cautions: tuple[Caution, ...] = (),
) -> list[Row]:
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
    rows = _stats(
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
        return [*_stats("itl_s", pl.Series([], dtype=pl.Float64), absent),
                *_stats("chunk_gap_s", pl.Series([], dtype=pl.Float64), absent)]  # fmt: skip
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
        rows += _stats("itl_s", pl.Series([], dtype=pl.Float64), (reason,))
    rows += _suppressed("chunk_gap_s", flat, bursty)
    return rows


def _suppressed(metric: str, values: pl.Series, bursty: tuple[Caution, ...]) -> list[Row]:
    rows = _stats(metric, values)
    if not bursty:
        return rows
    keep = {"mean", "std", "min", "max"}
    return [
        row if row.statistic in keep
        else Row(metric=metric, statistic=row.statistic, value=None, n=row.n, cautions=bursty)
        for row in rows
    ]  # fmt: skip


def _rates(run: Run, window: Window, sent: pl.DataFrame, gpus: int | None) -> list[Row]:
    length = window.length_s
    served = sent.filter(pl.col("status").is_in(["ok", "incomplete"]))
    ok = sent.filter(pl.col("status") == "ok")
    no_length = (caution("no_duration"),) if not length else ()
    source = run.info.get("token_time_source")
    said: tuple[Caution, ...] = ()
    if window.kind == "steady" and source == "even_spread":
        said = (caution("even_spread"),)
    elif window.kind == "whole_run":
        said = (caution("ramp_included"),)
    sampled = int((run.info.get("dropped") or {}).get("sampled_away", 0) or 0)
    tokens = None if sampled else tokens_in_window(run, window)
    lost = (caution("rows_sampled_away", n=sampled),) if sampled else ()

    def rate(metric: str, count: float | None, n: int, extra: tuple[Caution, ...] = ()) -> Row:
        value = None if count is None or not length else count / length
        return Row(metric=metric, statistic="value", value=value, n=n,
                   cautions=no_length + lost + extra)  # fmt: skip

    rows = [rate("output_tokens_per_s", tokens, served.height, said)]
    if gpus:
        rows.append(
            rate("output_tokens_per_s_per_gpu", None if tokens is None else tokens / gpus,
                 served.height, said)
        )  # fmt: skip
    finished = ok
    if window.kind == "steady":
        finished = ok.filter(pl.coalesce("last_token_s", "end_s") <= window.end_s)
    finished_tokens = None if sampled else float(finished["output_tokens"].sum())
    rows.append(rate("output_tokens_per_s_finished_only", finished_tokens, finished.height))
    duration = run.info.get("duration_s")
    main = run.requests.filter(pl.col("phase") == "main")
    if duration:
        everything = main.filter(pl.col("status").is_in(["ok", "incomplete"]))
        total = everything.select(
            pl.coalesce("output_tokens", "n_chunks").cast(pl.Float64).sum()
        ).item()
        rows.append(
            Row(metric="output_tokens_per_s_full_run", statistic="value",
                value=None if sampled else float(total) / float(duration),
                n=everything.height, cautions=lost)
        )  # fmt: skip
    prompts = served["input_tokens"]
    whole_prompts = None if prompts.null_count() or sampled else float(prompts.sum())
    unknown = (caution("not_in_log", metric="input_tokens"),) if prompts.null_count() else ()
    rows.append(rate("input_tokens_per_s", whole_prompts, served.height, unknown))
    counted = served if window.kind == "steady" else ok
    rows.append(rate("requests_per_s", None if sampled else float(counted.height), counted.height))
    return rows


def _unloaded(run: Run, ok: pl.DataFrame) -> list[Row]:
    """Prefill rate of a run with one request at a time; null under load, where TTFT is a queue."""
    flight = in_flight(run)
    stated = run.info.get("max_concurrency")
    peak = int(flight["n"].max() or 0) if flight.height else None  # type: ignore[arg-type]
    # A client of one stream may log the next start a rounding error before the last end.
    alone = stated == 1 or peak == 1
    name = "prefill_tokens_per_s"
    if not alone:
        return [Row(metric=name, statistic="value", value=None, n=0,
                    cautions=(caution("prefill_under_load"),))]  # fmt: skip
    known = ok.filter(pl.col("ttft_s") > 0, pl.col("input_tokens") > 0)
    computed = known["input_tokens"] - known["cached_input_tokens"].fill_null(0)
    cached = bool((known["cached_input_tokens"].fill_null(0) > 0).any())
    rates = (computed / known["ttft_s"]).to_numpy()
    said = [caution("unloaded_client_side")] if rates.size else [caution("not_in_log", metric=name)]
    if cached:
        said.append(caution("cached_prompts"))
    return [
        Row(metric=name, statistic="value", value=float(np.median(rates)) if rates.size else None,
            n=int(rates.size), cautions=tuple(said))
    ]  # fmt: skip


def _shares(run: Run, window: Window, sent: pl.DataFrame) -> list[Row]:
    n = sent.height
    none = (caution("not_in_log", metric="error_ratio"),) if not n else ()
    failed = int(sent["status"].is_in(["error", "empty"]).sum())
    empties = int((sent["status"] == "empty").sum())
    rows = [
        Row(
            metric="error_ratio",
            statistic="value",
            value=failed / n if n else None,
            n=n,
            cautions=none,
        ),
        Row(
            metric="empty_ratio",
            statistic="value",
            value=empties / n if n else None,
            n=n,
            cautions=none,
        ),
    ]
    streams = mean_concurrency(run, window)
    no_starts = (caution("no_start_times"),)
    rows.append(
        Row(metric="concurrency", statistic="value", value=streams, n=n,
            cautions=no_starts if streams is None else ())
    )  # fmt: skip
    below = below_peak_ratio(run)
    rows.append(
        Row(metric="below_peak_ratio", statistic="value", value=below, n=n,
            cautions=no_starts if below is None else ())
    )  # fmt: skip
    batch = decoding_batch(run, window)
    rows.append(
        Row(metric="decode_batch", statistic="value", value=batch, n=n,
            cautions=no_starts if batch is None else ())
    )  # fmt: skip
    return rows


def decoding_batch(run: Run, window: Window) -> float | None:
    """Time mean over the window of the requests between their first and their last token."""
    from gpuverdict.steady.flight import step_function

    known = run.requests.filter(
        pl.col("first_token_s").is_not_null(), pl.col("last_token_s").is_not_null()
    )
    if known.is_empty() or window.end_s is None:
        return None
    times, count = step_function(
        known["first_token_s"].to_numpy(), known["last_token_s"].to_numpy()
    )
    return time_mean(times, count, window.start_s, window.end_s)


def _goodput(ok: pl.DataFrame, sent: pl.DataFrame, window: Window, slo: Slo | None) -> Row:
    name = "goodput_requests_per_s"
    if not slo:
        return Row(metric=name, statistic="value", value=None, n=0, cautions=(caution("no_slo"),))
    if not window.length_s:
        return Row(
            metric=name, statistic="value", value=None, n=0, cautions=(caution("no_duration"),)
        )
    met = pl.lit(True)
    for metric, limits in slo.items():
        if metric not in ok.columns or not METRICS[metric].distribution:
            continue
        for limit in limits.values():
            # One output token has no TPOT to miss; a missing TTFT is a miss.
            within = (pl.col(metric) <= limit).fill_null(metric == "tpot_s")
            met = met & within
    good = ok.filter(met).height
    return Row(metric=name, statistic="value", value=good / window.length_s, n=sent.height)


def reported_rows(run: Run) -> list[Row]:
    """Give the values a tool printed, for a file that holds nothing else."""
    said = (caution("reported_by_tool"),)
    reported: Mapping[str, Any] = run.info.get("reported") or {}
    n = int(run.info.get("n_ok") or 0)
    rows = []
    for name, value in sorted(reported.items()):
        metric, _, statistic = name.partition(".")
        if metric in METRICS and value is not None:
            rows.append(
                Row(metric=metric, statistic=statistic or "value", value=float(value), n=n,
                    cautions=said)
            )  # fmt: skip
    have = {(row.metric, row.statistic) for row in rows}
    rows += [
        Row(metric=metric, statistic=statistic, value=None, n=0,
            cautions=(caution("not_in_summary", metric=metric, statistic=statistic),))
        for metric in ("ttft_s", "tpot_s", "itl_s", "e2e_s")
        for statistic in ("mean", "p50", "p90", "p95", "p99")
        if (metric, statistic) not in have
    ]  # fmt: skip
    return rows


def phase_rows(run: Run, window: Window, probes: Sequence[Run]) -> list[Row]:
    """Compute what needs the phases apart: waiting beyond an unloaded prefill, the device's step.

    Parameters
    ----------
    probes : sequence of Run
        Concurrency-1 runs over prompt lengths on the same arm; may be empty.
    """
    if run.requests.is_empty():
        return []
    phases = split_phases(run, list(probes) or None, window)
    inside = requests_in_window(run, window).filter(pl.col("status") == "ok")
    excess = phases.requests.join(inside.select("request_index"), on="request_index", how="semi")
    said = phases.prefill.cautions
    rows = _stats(
        "scheduling_excess_s", excess["scheduling_excess_s"], said, quantile_cautions=said
    )
    step = phases.decode_step_s
    rows.append(
        Row(metric="decode_step_s", statistic="value", value=step.value, n=step.n,
            cautions=step.cautions)
    )  # fmt: skip
    return rows
