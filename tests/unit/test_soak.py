"""A soak of four hours: slow drift, a tail that comes late, memory that grows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from tests.simulator.server import ServerModel, serve
from tests.unit.runs import make_run

from gpuverdict.schema import GPU_SAMPLES, Run, Trace, conform
from gpuverdict.steady import Window, drift, find_windows, leak, spikes

HOURS = 4


@pytest.fixture(scope="module")
def soak() -> tuple[Run, Window]:
    """Two streams of 1,000 tokens each; steps get 4 % longer over the four hours."""
    rng = np.random.default_rng(11)
    n = 2 * HOURS * 3600 // 10
    model = ServerModel(speed_at=lambda now: 1.0 + 0.04 * now / (HOURS * 3600), jitter=0.02,
                        alpha_s=0.0095)  # fmt: skip
    served = serve(model, np.full(n, 256), np.full(n, 1000), rng, streams=2)
    gaps = {i: np.diff(times) for i, times in enumerate(served.token_s)}
    for i in range(n // 4, n, 40):
        gaps[i][500] += 0.4
    run = make_run(
        {"start_s": served.arrival_s, "first_token_s": served.first_s,
         "last_token_s": served.last_s, "input_tokens": served.prompt_tokens,
         "output_tokens": served.output_tokens},
        gaps=gaps, load_kind="closed", max_concurrency=2,
    )  # fmt: skip
    (window,) = find_windows([run], 2)
    return run, window


def test_drift_of_the_median(soak):
    run, window = soak
    assert window.end_s > 3.5 * 3600
    found = drift(run, window)
    assert found.alarm
    # The window leaves 15 % of the way out, and the blocks another twentieth.
    assert found.change_ratio == pytest.approx(0.04 * 0.85 * 0.95, abs=0.006)


def test_the_late_tail(soak):
    run, window = soak
    found = spikes(run, window)
    late = found.table.filter(pl.col("gap_s") > 0.4)
    n = run.requests.height
    assert late.height == len(range(n // 4, n, 40))
    assert late["time_s"].min() > 1800
    assert found.time_lost_s >= 0.4 * late.height


def test_memory_until_the_card_is_full(soak):
    _, window = soak
    rng = np.random.default_rng(5)
    times = np.arange(0.0, window.end_s, 10.0)
    # 2 MiB a request at one request each five seconds: 1,440 MiB an hour on a card of 24 GiB.
    used = 14_000 + 0.4 * times + rng.normal(0, 8, times.size)
    samples = pl.DataFrame(
        {"trace_id": ["t"] * times.size, "gpu_index": [0] * times.size, "time_epoch_s": times,
         "memory_used_mib": used, "memory_total_mib": np.full(times.size, 24_564.0)}
    )  # fmt: skip
    trace = Trace(samples=conform(samples, GPU_SAMPLES))
    (found,) = leak(trace, 0.0, window.end_s, n_requests=round(window.end_s / 5))
    assert found.alarm
    growth = found.growth_mib_per_1000_requests
    assert growth.low <= 2000 <= growth.high
    assert growth.value == pytest.approx(2000, rel=0.01)
    left = (24_564 - 14_000 - 0.4 * window.end_s) / 0.4
    assert found.seconds_until_full.value == pytest.approx(left, rel=0.05)
