"""End-to-end time taken apart: network, host, queue, prefill, decode, and what nobody can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.phases.split import Phases
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["PARTS", "E2eParts", "take_apart"]

PARTS = ("network_s", "host_s", "queue_s", "waiting_s", "prefill_s", "decode_s", "unknown_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class E2eParts:
    """Where the end-to-end time of the successful requests of a run goes.

    `requests`: `request_index`, `e2e_s`, the parts (seconds, null where not told apart; those known
    and `unknown_s` add up to `e2e_s`), and `ttft_at_server_s`, `e2e_at_server_s` (network taken
    out; null where it is not known). `share`: part -> share of the whole time, None if never known.
    `unnamed`: parts that could not be told apart in this run; each has a caution.
    """

    requests: pl.DataFrame
    share: Mapping[str, float | None]
    unnamed: tuple[str, ...]
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        known = [f"{name[:-2]} {s:.0%}" for name, s in self.share.items() if s is not None]
        return ", ".join(known) or "nothing known"


def take_apart(
    run: Run, phases: Phases, *, rtt_s: float | None = None, host_work_s: float | None = None
) -> E2eParts:
    """Say how much of the end-to-end time is network, host, queue, prefill and decode.

    Parameters
    ----------
    run, phases
        A run and its phases.
    rtt_s : float, optional
        Declared round-trip time of the client, seconds; used where the server's own times, which
        give the network as client minus server, are missing.
    host_work_s : float, optional
        Declared host work a request (tokenising, retrieval), seconds.

    Returns
    -------
    E2eParts
        Cautions `e2e_part_unknown`, one for each part that nothing tells apart.

    Notes
    -----
    With the server's times: network = e2e - (queue + prefill + decode), exact per request. Without:
    prefill is the unloaded time to first token less the declared round trip and host work, and
    `waiting_s` is the scheduling excess, queue and interference together. What is left over is
    `unknown_s`; it can be negative by the clock's jitter and is shown as it is.
    """
    rows = phases.requests.join(run.requests.select("request_index", "e2e_s", "ttft_s"),
                                on="request_index", maintain_order="left")  # fmt: skip
    rows = rows.filter(pl.col("status") == "ok", pl.col("e2e_s").is_not_null())
    at_server = pl.col("network_s").is_not_null()
    declared = pl.lit(rtt_s, dtype=pl.Float64)
    host = pl.lit(host_work_s, dtype=pl.Float64)
    overhead = declared.fill_null(0.0) + host.fill_null(0.0)
    parts = rows.with_columns(network=pl.coalesce("network_s", declared)).select(
        "request_index",
        "e2e_s",
        network_s="network",
        # Host work the server's own times cannot contain is part of client minus server there.
        host_s=pl.when(at_server).then(None).otherwise(host),
        queue_s="queue_s",
        waiting_s=pl.when(pl.col("queue_s").is_null()).then("scheduling_excess_s"),
        prefill_s=pl.when(at_server)
        .then("prefill_s")
        .otherwise((pl.col("prefill_s") - overhead).clip(lower_bound=0.0)),
        decode_s="decode_s",
        ttft_at_server_s=pl.col("ttft_s") - pl.col("network"),
        e2e_at_server_s=pl.col("e2e_s") - pl.col("network"),
    )
    known = [name for name in PARTS if name != "unknown_s"]
    parts = parts.with_columns(
        unknown_s=pl.col("e2e_s") - pl.sum_horizontal(pl.col(name).fill_null(0.0) for name in known)
    ).select("request_index", "e2e_s", *PARTS, "ttft_at_server_s", "e2e_at_server_s")
    total = float(parts["e2e_s"].sum())
    share = {
        name: float(parts[name].sum()) / total
        if total > 0 and parts[name].null_count() < parts.height
        else None
        for name in PARTS
    }
    # Waiting stands for the queue where the server says nothing: only its split is unknown then.
    unnamed = tuple(name for name in known if share[name] is None and name != "waiting_s")
    return E2eParts(
        requests=parts,
        share=share,
        unnamed=unnamed,
        cautions=tuple(
            caution("e2e_part_unknown", part=name.removesuffix("_s")) for name in unnamed
        ),
    )
