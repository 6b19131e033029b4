"""Facts of one run that decide what it may be compared with; none of them is tested."""

from __future__ import annotations

from typing import Any

import polars as pl

from gpuverdict.campaign import ClientPlace
from gpuverdict.phases import PARTS, Phases, take_apart
from gpuverdict.schema import Run
from gpuverdict.steady import Window, requests_in_window

__all__ = ["counted", "e2e_parts", "littles_streams", "run_facts"]


def run_facts(run: Run, window: Window) -> dict[str, Any]:
    """Return the plain facts of a run, as keyword arguments of `RunFacts`.

    `bins, late_p99_s, ttft_p50_s, tpot_p50_s, cached_ratio, tokens_per_chunk, littles_streams`;
    null where the log does not say.
    """
    sent = requests_in_window(run, window)
    ok = sent.filter(pl.col("status") == "ok")
    streamed = ok.filter(pl.col("n_chunks") > 1, pl.col("output_tokens") > 1)
    chunk = (streamed["output_tokens"] / streamed["n_chunks"]).median()
    cached = ok.filter(pl.col("cached_input_tokens").is_not_null(), pl.col("input_tokens") > 0)
    prompt_tokens = float(cached["input_tokens"].sum())
    return {
        "bins": length_bins(ok),
        "late_p99_s": _number(sent["client_queue_s"].drop_nulls().quantile(0.99, "linear")),
        "ttft_p50_s": _number(ok["ttft_s"].median()),
        "tpot_p50_s": _number(ok["tpot_s"].median()),
        "cached_ratio": float(cached["cached_input_tokens"].sum()) / prompt_tokens
        if prompt_tokens
        else None,
        "tokens_per_chunk": _number(chunk),
        "littles_streams": littles_streams(run),
    }


def e2e_parts(
    run: Run, window: Window, phases: Phases | None, client: ClientPlace | None
) -> dict[str, float | None]:
    """Return the mean of each part of the end-to-end time over the window's successful requests."""
    if phases is None:
        return {}
    declared = (client.rtt_s, client.host_work_s) if client else (None, None)
    parts = take_apart(run, phases, rtt_s=declared[0], host_work_s=declared[1]).requests
    inside = requests_in_window(run, window)
    mine = parts.join(inside.select("request_index"), on="request_index", how="semi")
    return {name: _number(mine[name].mean()) for name in ("e2e_s", *PARTS)}


def counted(lengths: pl.Series) -> dict[int, int]:
    """Count each length."""
    counts = lengths.drop_nulls().value_counts().sort(lengths.name)
    return dict(zip(counts[lengths.name].to_list(), counts["count"].to_list(), strict=True))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def length_bins(ok: pl.DataFrame) -> dict[str, dict[str, float | None]]:
    """Count requests by the powers of two below their input and output tokens, with medians."""
    known = ok.filter(pl.col("input_tokens") > 0, pl.col("output_tokens") > 0)
    if known.is_empty():
        return {}
    lower = [
        (2 ** pl.col(name).log(2).add(1e-9).floor()).cast(pl.Int64).cast(pl.String)
        for name in ("input_tokens", "output_tokens")
    ]
    grouped = (
        known.group_by(pl.concat_str(lower, separator="/").alias("bin"))
        .agg(
            pl.len().alias("n"), pl.col("ttft_s").median(), pl.col("e2e_s").median()
        )
        .sort("bin")
    )  # fmt: skip
    return {
        row["bin"]: {"n": row["n"], "ttft_s": row["ttft_s"], "e2e_s": row["e2e_s"]}
        for row in grouped.to_dicts()
    }


def littles_streams(run: Run) -> float | None:
    """Streams in flight = request rate x mean time in the system (J. D. C. Little, 1961).

    From the request rows where they hold end-to-end times, else from what the tool reported, else
    from its throughput over the speed of one stream (which leaves the prefill out: a lower bound).
    """
    rows = run.requests.filter(pl.col("status") == "ok")
    duration = run.info.get("duration_s")
    if duration and rows.height and rows["e2e_s"].null_count() < rows.height:
        return float(rows["e2e_s"].sum()) / float(duration)
    reported = run.info.get("reported") or {}
    rate, time = reported.get("requests_per_s.value"), reported.get("e2e_s.mean")
    if rate is not None and time is not None:
        return float(rate) * float(time)
    speed = reported.get("decode_tokens_per_s.value")
    tpot = reported.get("tpot_s.mean") or reported.get("tpot_s.p50")
    if not speed and tpot:
        speed = 1 / float(tpot)
    throughput = reported.get("output_tokens_per_s.value")
    return float(throughput) / float(speed) if speed and throughput else None
