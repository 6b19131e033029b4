"""A served load as canonical runs, with the server's truth beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tests.simulator.client import watch
from tests.simulator.server import Served, ServerModel, serve
from tests.unit.runs import make_run

from gpuverdict.schema import Run

PROBE_TOKENS = (128, 256, 512, 1024, 2048, 4096, 8192)


@dataclass(slots=True)
class Observed:
    run: Run
    served: Served


def as_run(served: Served, rng: np.random.Generator, streams: int | None) -> Observed:
    seen = watch(served, rng)
    t0 = float(seen.start_s.min())
    run = make_run(
        {
            "start_s": seen.start_s - t0,
            "first_token_s": seen.first_s - t0,
            "last_token_s": seen.last_s - t0,
            "input_tokens": served.prompt_tokens,
            "output_tokens": served.output_tokens,
        },
        gaps={i: np.diff(stamps) for i, stamps in enumerate(seen.token_s)},
        load_kind="closed" if streams else "poisson",
        max_concurrency=streams,
        token_time_source="gaps",
    )
    # Server times on the client's zero, so that both can be laid side by side.
    for name in ("arrival_s", "scheduled_s", "first_s", "last_s", "step_end_s"):
        setattr(served, name, getattr(served, name) - t0)
    return Observed(run=run, served=served)


def probe(model: ServerModel, rng: np.random.Generator, repeats: int = 5) -> Observed:
    # One more of the first length: the first request of a probe is left out as warm-up.
    prompts = np.append(PROBE_TOKENS[0], rng.permutation(np.repeat(PROBE_TOKENS, repeats)))
    return as_run(serve(model, prompts, np.full(prompts.size, 4), rng, streams=1), rng, 1)


def load(
    model: ServerModel,
    rng: np.random.Generator,
    *,
    streams: int | None = None,
    rate: float | None = None,
    n: int = 400,
) -> Observed:
    """Prompts 128-4,096 (log-uniform), outputs 32-255, as in section 15 of the method notes."""
    prompts = np.exp(rng.uniform(np.log(128), np.log(4096), n)).astype(int)
    outputs = rng.integers(32, 256, n)
    arrival = None if rate is None else np.cumsum(rng.exponential(1 / rate, n))
    served = serve(model, prompts, outputs, rng, streams=streams, arrival_s=arrival)
    return as_run(served, rng, streams)


def model_of(policy: str, **changes: float) -> ServerModel:
    budget = 2048 if policy == "chunked" else 8192
    return ServerModel(policy=policy, budget_tokens=budget, stall_probability=2e-4, **changes)
