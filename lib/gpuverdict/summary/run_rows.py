"""The numbers of one run in one window: the only maker of run-level numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.phases import Phases
from gpuverdict.schema import METRICS, Run
from gpuverdict.steady import Window, requests_in_window, tokens_in_window, uncounted
from gpuverdict.summary.distributions import Row, distribution_rows, statistic_rows
from gpuverdict.summary.load import load_rows, one_at_a_time
from gpuverdict.text import caution

__all__ = ["Slo", "phase_rows", "reported_rows", "run_rows", "within_slo"]

Slo = Mapping[str, Mapping[str, float]]


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
    rows = distribution_rows(ok, sent, run)
    rows += _rates(run, window, sent, gpus)
    rows += _unloaded(run, ok)
    rows += load_rows(run, window, sent)
    rows.append(_goodput(ok, sent, window, slo))
    return rows


def _nth_index(sent: pl.DataFrame, skip: int) -> int:
    order = sent["request_index"].sort()
    return int(order[skip]) if skip < order.len() else int(order[-1]) + 1


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
    if n_uncounted := uncounted(run):
        said += (caution("outputs_uncounted", n=n_uncounted, total=ok.height),)

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
    unknown_tokens = sampled or n_uncounted
    finished_tokens = None if unknown_tokens else float(finished["output_tokens"].sum())
    rows.append(rate("output_tokens_per_s_finished_only", finished_tokens, finished.height,
                     said if n_uncounted else ()))  # fmt: skip
    duration = run.info.get("duration_s")
    main = run.requests.filter(pl.col("phase") == "main")
    if duration:
        everything = main.filter(pl.col("status").is_in(["ok", "incomplete"]))
        total = everything.select(
            pl.coalesce("output_tokens", "n_chunks").cast(pl.Float64).sum()
        ).item()
        rows.append(
            Row(metric="output_tokens_per_s_full_run", statistic="value",
                value=None if unknown_tokens else float(total) / float(duration),
                n=everything.height, cautions=lost + (said if n_uncounted else ()))
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
    name = "prefill_tokens_per_s"
    if not one_at_a_time(run):
        return [
            Row(
                metric=name,
                statistic="value",
                value=None,
                n=0,
                cautions=(caution("prefill_under_load"),),
            )
        ]
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


def _goodput(ok: pl.DataFrame, sent: pl.DataFrame, window: Window, slo: Slo | None) -> Row:
    name = "goodput_requests_per_s"
    if not slo:
        return Row(metric=name, statistic="value", value=None, n=0, cautions=(caution("no_slo"),))
    if not window.length_s:
        return Row(
            metric=name, statistic="value", value=None, n=0, cautions=(caution("no_duration"),)
        )
    good = ok.filter(within_slo(slo, ok.columns)).height
    return Row(metric=name, statistic="value", value=good / window.length_s, n=sent.height)


def within_slo(slo: Slo, columns: Sequence[str]) -> pl.Expr:
    """Tell of a request whether it keeps every limit of an SLO, whatever quantile the limit is for.

    Parameters
    ----------
    slo : mapping
        metric -> statistic -> limit in base units; metrics without a value a request do not count.
    columns : sequence of str
        Those of the request rows.
    """
    met = pl.lit(True)
    for metric, limits in slo.items():
        if metric not in columns or not METRICS[metric].distribution:
            continue
        for limit in limits.values():
            # One output token has no TPOT to miss; a missing TTFT is a miss.
            met = met & (pl.col(metric) <= limit).fill_null(metric == "tpot_s")
    return met


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


def phase_rows(run: Run, window: Window, phases: Phases | None) -> list[Row]:
    """Give what needs the phases apart: waiting beyond an unloaded prefill, the device's step.

    Parameters
    ----------
    phases : Phases or None
        Of the run, with the decode step of this window; None for a run without rows.
    """
    if phases is None:
        return []
    inside = requests_in_window(run, window).filter(pl.col("status") == "ok")
    excess = phases.requests.join(inside.select("request_index"), on="request_index", how="semi")
    said = phases.prefill.cautions
    rows = statistic_rows(
        "scheduling_excess_s", excess["scheduling_excess_s"], said, quantile_cautions=said
    )
    step = phases.decode_step_s
    rows.append(
        Row(metric="decode_step_s", statistic="value", value=step.value, n=step.n,
            cautions=step.cautions)
    )  # fmt: skip
    return rows
