"""What a load generator beside that server writes down: later, jittered, in order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tests.simulator.server import Served


@dataclass(slots=True)
class Seen:
    """The client's view in seconds: one row a request, one array of token stamps each."""

    start_s: np.ndarray
    first_s: np.ndarray
    last_s: np.ndarray
    token_s: list[np.ndarray]


def watch(
    served: Served,
    rng: np.random.Generator,
    *,
    overhead_s: float = 0.002,
    jitter_s: float = 0.0001,
) -> Seen:
    """Stamp a served load as a client does.

    Half the overhead passes before the request arrives at the server, half before a token is
    stamped; the jitter (exponential) only ever delays, and stamps of a request stay in order.
    """
    n = served.arrival_s.size
    way_in = 0.5 * overhead_s + rng.exponential(jitter_s, n)
    stamps = []
    for times in served.token_s:
        late = 0.5 * overhead_s + rng.exponential(jitter_s, times.size)
        stamps.append(np.maximum.accumulate(times + late))
    return Seen(
        start_s=served.arrival_s - way_in,
        first_s=np.array([t[0] for t in stamps]),
        last_s=np.array([t[-1] for t in stamps]),
        token_s=stamps,
    )
