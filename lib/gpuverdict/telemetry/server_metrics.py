"""Metrics pages of a server (vLLM, SGLang) or host (node-exporter), and what two pages tell.

Counters and histograms are cumulative since the server's start. Only a difference of two pages says
something of a run; one page after a run in a fresh server says it of everything since its start.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import SERVER_METRICS, check, conform
from gpuverdict.telemetry.prometheus import looks_like_prometheus, read_samples, series_names
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["difference", "read", "why_not"]

# What a histogram or counter is called, over engines and versions; the first one present counts.
_HISTOGRAMS: dict[str, tuple[str, ...]] = {
    "server_queue_s": ("vllm:request_queue_time_seconds", "sglang:queue_time_seconds"),
    "server_prefill_s": ("vllm:request_prefill_time_seconds",),
    "server_decode_s": ("vllm:request_decode_time_seconds",),
    "server_ttft_s": ("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
    "server_itl_s": (
        "vllm:inter_token_latency_seconds",
        "vllm:time_per_output_token_seconds",
        "sglang:inter_token_latency_seconds",
        "sglang:time_per_output_token_seconds",
    ),
    "server_e2e_s": ("vllm:e2e_request_latency_seconds", "sglang:e2e_request_latency_seconds"),
}
_COUNTERS: dict[str, tuple[str, ...]] = {
    "preemptions": (
        "vllm:num_preemptions_total",
        "vllm:num_preemptions",
        "sglang:num_retracted_requests_total",
    ),
    "prompt_tokens": ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total"),
    "generation_tokens": ("vllm:generation_tokens_total", "sglang:generation_tokens_total"),
    "prefix_cache_queries": (
        "vllm:prefix_cache_queries_total",
        "vllm:gpu_prefix_cache_queries_total",
        # SGLang counts the tokens of prompts, and those of them that were cached.
        "sglang:prompt_tokens_total",
    ),
    "prefix_cache_hits": (
        "vllm:prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_hits_total",
        "sglang:cached_tokens_total",
    ),
    "requests_finished": ("vllm:request_success_total", "sglang:num_requests_total"),
}


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is no metrics page of a server, or None if it is one."""
    if not looks_like_prometheus(document):
        return "it is no Prometheus page or dump"
    names = series_names(document)
    if any(name.startswith("DCGM_FI_") for name in names):
        return "its series are of GPUs, not of a server"
    return None


def read(document: Document, options: ReadOptions) -> pl.DataFrame:
    """Read the series of one or several pages.

    Returns
    -------
    polars.DataFrame
        Columns of `SERVER_METRICS`, values raw and cumulative; `labels` as JSON with sorted keys;
        `time_epoch_s` null where a page has no time.

    Raises
    ------
    LogFormatError
        For a page that breaks the text format, or holds nothing.
    """
    samples = read_samples(document)
    if not samples:
        raise LogFormatError(document.name, found="a page without series", expected="some")
    frame = pl.DataFrame(
        {
            "name": [s.name for s in samples],
            "labels": [json.dumps(s.labels, sort_keys=True, ensure_ascii=False) for s in samples],
            "value": pl.Series([s.value for s in samples], dtype=pl.Float64),
            "time_epoch_s": pl.Series([s.time_epoch_s for s in samples], dtype=pl.Float64),
        }
    )
    return check(conform(frame, SERVER_METRICS), SERVER_METRICS, document.name)


def difference(before: pl.DataFrame | None, after: pl.DataFrame) -> dict[str, Estimate]:
    """Say what the server did between two pages: mean times, tokens, preemptions, cache hits.

    Parameters
    ----------
    before : polars.DataFrame or None
        Columns of `SERVER_METRICS`. None counts from the server's start (`counters_since_start`).
    after : polars.DataFrame
        The later page; where it holds several and `before` is None, its first and last count.

    Returns
    -------
    dict
        `server_queue_s`, `server_prefill_s`, `server_decode_s`, `server_ttft_s`, `server_itl_s`,
        `server_e2e_s` (means, `n` observations), `preemptions`, `prompt_tokens`,
        `generation_tokens`, `requests_finished` (counts), `prefix_cache_hit_ratio`. What the pages
        do not hold is null.

    Notes
    -----
    mean = (sum_after - sum_before) / (count_after - count_before), over all label sets. With
    chunked prefill the prefill time is a latency, not time of the GPU. A counter that went back
    means that the server restarted in between: everything is null then (`counter_reset`).
    """
    notes: tuple[Caution, ...] = ()
    last = _totals(after)
    if before is not None:
        first = _totals(before)
    elif after.select(pl.struct("name", "labels").n_unique()).item() < after.height:
        first = _totals(after.unique(["name", "labels"], keep="first", maintain_order=True))
    else:
        first, notes = {}, (caution("counters_since_start"),)
    if any(last.get(name, value) < value for name, value in first.items()):
        notes, last, first = (caution("counter_reset"),), {}, {}
    told = {key: _mean(names, first, last, notes) for key, names in _HISTOGRAMS.items()}
    counts = {key: _count(names, first, last, notes) for key, names in _COUNTERS.items()}
    queries, hits = counts.pop("prefix_cache_queries"), counts.pop("prefix_cache_hits")
    ratio = hits.value / queries.value if hits.value is not None and queries.value else None
    cache = Estimate(value=ratio, unit="ratio", n=int(queries.value or 0), cautions=notes)
    return told | counts | {"prefix_cache_hit_ratio": cache}


def _totals(page: pl.DataFrame) -> dict[str, float]:
    """Sum each monotone series over its labels, at the last page of a frame."""
    wanted = {f"{name}_{part}" for names in _HISTOGRAMS.values() for name in names
              for part in ("sum", "count")}  # fmt: skip
    wanted |= {name for names in _COUNTERS.values() for name in names}
    held = page.filter(pl.col("name").is_in(list(wanted))).drop_nulls("value")
    latest = held.group_by("name", "labels", maintain_order=True).agg(pl.col("value").last())
    sums: dict[str, Any] = dict(latest.group_by("name").agg(pl.col("value").sum()).iter_rows())
    return sums


def _mean(
    names: tuple[str, ...],
    first: dict[str, float],
    last: dict[str, float],
    notes: tuple[Caution, ...],
) -> Estimate:
    for name in names:
        if f"{name}_count" in last and f"{name}_sum" in last:
            n = last[f"{name}_count"] - first.get(f"{name}_count", 0.0)
            total = last[f"{name}_sum"] - first.get(f"{name}_sum", 0.0)
            value = total / n if n > 0 else None
            return Estimate(value=value, unit="s", n=int(n), cautions=notes)
    return Estimate(value=None, unit="s", cautions=notes)


def _count(
    names: tuple[str, ...],
    first: dict[str, float],
    last: dict[str, float],
    notes: tuple[Caution, ...],
) -> Estimate:
    for name in names:
        if name in last:
            value = last[name] - first.get(name, 0.0)
            return Estimate(value=value, unit="count", n=int(value), cautions=notes)
    return Estimate(value=None, unit="count", cautions=notes)
