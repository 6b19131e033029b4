"""What did a request wait for: queue, prefill, decode?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.phases.decode import decode_batch, decode_step
from gpuverdict.phases.prefill import PrefillModel, fit_prefill, prefill_envelope
from gpuverdict.schema import Run
from gpuverdict.steady import Window
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["Phases", "prefill_reference", "split_phases", "split_requests"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """A run taken apart.

    `requests`: `request_index`, `status`, `start_s`, `input_tokens`, `prefill_s`,
    `prefill_estimate_s` (the client's, also where `prefill_s` is the server's),
    `scheduling_excess_s`, `decode_s`, `queue_s` (server's own, else null), `network_s` (client
    minus server end-to-end time, where the server gives its own) and `source` (`client` or
    `server`). `batch`: `time_s`, `decode_batch`. `decode_step_s`: device speed, stalls taken out;
    the user's view with stalls is TPOT. `server_minus_client_s`: mean server queue minus mean
    scheduling excess where both are known.
    """

    requests: pl.DataFrame
    batch: pl.DataFrame
    decode_step_s: Estimate
    prefill: PrefillModel
    server_minus_client_s: float | None = None
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        excess = self.requests["scheduling_excess_s"].mean()
        text = "unknown" if excess is None else f"{1e3 * float(excess):.1f} ms"  # type: ignore[arg-type]
        return f"decode step {self.decode_step_s}, mean scheduling excess {text}, {self.prefill}"


def split_phases(
    run: Run, probes: Sequence[Run] | Run | None = None, window: Window | None = None
) -> Phases:
    """Split every request of a run into prefill, waiting and decode, from the client's log.

    Parameters
    ----------
    run : Run
        Any run; what it lacks comes out as null with a caution.
    probes : Run or sequence of Run, optional
        Concurrency-1 runs over prompt lengths on the same server. Without them a run of one stream
        is its own probe, and any other gets the lower envelope of its own TTFT.
    window : Window, optional
        Take the decode step from this window only; requests and batch always cover the run.

    Returns
    -------
    Phases

    Raises
    ------
    SchemaError
        If the frames lack canonical columns.

    Notes
    -----
    scheduling excess = max(0, TTFT - c(n)) with c(n) the unloaded time of such a prompt: queue plus
    interference, an upper bound of the queue, within 1 % only when it far exceeds one prefill. The
    split of the two is not in a client's log; where the server states its queue, prefill or decode,
    its numbers stand in `queue_s`, `prefill_s` and `decode_s`, and the two are compared.

    Examples
    --------
    >>> from gpuverdict.recognise import read_run
    >>> phases = split_phases(read_run("data/h200/card-a-bf16/guidellm-r1.json.gz")[0])
    >>> phases.requests.select("prefill_s", "scheduling_excess_s", "decode_s").width
    3
    >>> print(phases.decode_step_s)
    6.026 ms (step_user_perceived)
    """
    prefill = prefill_reference(run, probes)
    split = split_requests(run.requests, prefill)
    both = split.filter(
        pl.col("queue_s").is_not_null(),
        pl.col("scheduling_excess_s").is_not_null(),
        pl.col("status") == "ok",
    )
    against = None
    if both.height:
        against = float((both["queue_s"] - both["scheduling_excess_s"]).mean())  # type: ignore[arg-type]
    batch = decode_batch(run)
    said = list(prefill.cautions)
    if batch.is_empty():
        said.append(caution("no_start_times"))
    return Phases(
        requests=split,
        batch=batch,
        decode_step_s=decode_step(run, prefill, window),
        prefill=prefill,
        server_minus_client_s=against,
        cautions=tuple(said),
    )


def split_requests(requests: pl.DataFrame, prefill: PrefillModel) -> pl.DataFrame:
    """Split requests, all of a run or some, with the unloaded prefill as known; see `Phases`."""
    known = requests.select(
        server=pl.any_horizontal(
            pl.col("server_queue_s", "server_prefill_s", "server_decode_s").is_not_null()
        )
    )["server"]
    tokens = requests["input_tokens"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    estimate = pl.Series(prefill.predict(tokens), dtype=pl.Float64).fill_nan(None)
    server_e2e = pl.col("server_queue_s") + pl.col("server_prefill_s") + pl.col("server_decode_s")
    return (
        requests.with_columns(estimate=estimate, from_server=known)
        .with_columns(
            scheduling_excess_s=(pl.col("ttft_s") - pl.col("estimate")).clip(lower_bound=0.0),
            # The estimate cannot exceed what was seen: an unusually lucky prompt was all prefill.
            client_prefill=pl.min_horizontal("estimate", "ttft_s"),
        )
        .select(
            "request_index",
            "status",
            "start_s",
            "input_tokens",
            prefill_s=pl.when(pl.col("ttft_s").is_not_null()).then(
                pl.coalesce(
                    "server_prefill_s",
                    pl.when(pl.col("estimate").is_not_null()).then("client_prefill"),
                )
            ),
            prefill_estimate_s="client_prefill",
            scheduling_excess_s="scheduling_excess_s",
            decode_s=pl.coalesce(
                "server_decode_s",
                pl.col("last_token_s") - pl.col("first_token_s"),
                pl.col("e2e_s") - pl.col("ttft_s"),
            ),
            queue_s="server_queue_s",
            network_s=pl.col("e2e_s") - server_e2e,
            source=pl.when("from_server").then(pl.lit("server")).otherwise(pl.lit("client")),
        )
    )


def prefill_reference(run: Run, probes: Sequence[Run] | Run | None) -> PrefillModel:
    """Give the unloaded time of a prompt: from probes, else a run of one stream, else the envelope.

    Raises
    ------
    SchemaError
        If the frames lack canonical columns.
    """
    given: Sequence[Run] = (
        [] if probes is None else [probes] if isinstance(probes, Run) else list(probes)
    )
    if not given and run.info.get("max_concurrency") == 1:
        given = [run]
    if not given:
        return prefill_envelope(run)
    model = fit_prefill(given)
    if model.kind != "none":
        return model
    envelope = prefill_envelope(run)
    return PrefillModel(
        kind=envelope.kind,
        lengths=envelope.lengths,
        times_s=envelope.times_s,
        n=envelope.n,
        cautions=(*model.cautions, *envelope.cautions),
    )
