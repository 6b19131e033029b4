"""Targets 36-39 of the method notes: false alarms and power of the steadiness rules.

Noise as in its section 18: log latency = AR(1) of marginal SD 5 %, N = 1,000 requests. Bands are
widened by three standard errors of the n used here; the nightly set runs with a larger n.
"""

from __future__ import annotations

import math
import zlib

import numpy as np
import pytest
from scipy.signal import lfilter
from tests.unit.runs import make_run

from gpuverdict.steady import find_windows, series_drift, series_step, spike_mask
from gpuverdict.steady.change import SMALLEST_CHANGE, STEP_CRITICAL_T

pytestmark = pytest.mark.calibration
N = 1000


def rng_of(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def noise(rng: np.random.Generator, rows: int, rho: float, sd: float = 0.05) -> np.ndarray:
    """AR(1) of marginal standard deviation sd, stationary from the first value on."""
    shocks = rng.normal(0, 1, (rows, N + 200)) * sd * math.sqrt(1 - rho**2)
    return lfilter([1.0], [1.0, -rho], shocks, axis=1)[:, 200:]


def at_most(count: int, n: int, bound: float) -> bool:
    return count / n <= bound + 3 * math.sqrt(bound * (1 - bound) / n)


def at_least(count: int, n: int, bound: float) -> bool:
    return count / n >= bound - 3 * math.sqrt(bound * (1 - bound) / n)


def sizes(fast: int, nightly: int) -> list:
    return [fast, pytest.param(nightly, marks=pytest.mark.nightly)]


@pytest.mark.parametrize("n", sizes(400, 4000))
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
def test_36_drift_false_alarms(n, rho):
    logs = noise(rng_of(f"drift-null-{rho}-{n}"), n, rho)
    assert at_most(sum(series_drift(np.exp(row)).alarm for row in logs), n, 0.015)


@pytest.mark.parametrize("n", sizes(400, 4000))
@pytest.mark.parametrize(("rho", "power"), [(0.3, 0.98), (0.6, 0.78)])
def test_36_drift_power(n, rho, power):
    logs = noise(rng_of(f"drift-power-{rho}-{n}"), n, rho) + np.linspace(0, math.log(1.05), N)
    assert at_least(sum(series_drift(np.exp(row)).alarm for row in logs), n, power)


def _steps(logs: np.ndarray) -> int:
    found = [series_step(np.exp(row)) for row in logs]
    return sum(abs(f[0]) > STEP_CRITICAL_T and abs(f[1]) > SMALLEST_CHANGE for f in found)


@pytest.mark.parametrize("n", sizes(600, 4000))
@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_37_step_false_alarms(n, rho):
    assert at_most(_steps(noise(rng_of(f"step-null-{rho}-{n}"), n, rho)), n, 0.025)


@pytest.mark.parametrize("n", sizes(400, 4000))
@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_37_step_power(n, rho):
    logs = noise(rng_of(f"step-power-{rho}-{n}"), n, rho)
    logs[:, N // 2 :] += math.log(1.08)
    assert at_least(_steps(logs), n, 0.98)


def _cut_bias(name: str, n: int, warm_up: np.ndarray) -> tuple[float, int]:
    """Mean bias of the log median TPOT after the cut, and windows without a steady state."""
    logs = noise(rng_of(name), n, 0.6)
    starts = np.arange(N, dtype=float)
    bias, lost = [], 0
    for row in logs:
        tpot = 0.01 * np.exp(row + warm_up)
        run = make_run(
            {"start_s": starts, "first_token_s": starts + 0.1,
             "last_token_s": starts + 0.1 + 10 * tpot, "output_tokens": [11] * N},
            load_kind="constant", rate_rps=1.0,
        )  # fmt: skip
        (window,) = find_windows([run])
        lost += any(c.code == "no_steady_state" for c in window.cautions)
        kept = starts >= window.start_s
        bias.append(np.median(row[kept] + warm_up[kept]) - np.median(row[kept]))
    return float(np.mean(bias)), lost


@pytest.mark.parametrize("n", sizes(150, 2000))
def test_38_warm_up_cut(n):
    position = np.arange(N) / N
    fast, _ = _cut_bias(f"cut-fast-{n}", n, np.log1p(0.30 * np.exp(-position / 0.05)))
    slow, _ = _cut_bias(f"cut-slow-{n}", n, np.log1p(0.10 * np.exp(-position / 0.10)))
    still, lost = _cut_bias(f"cut-none-{n}", n, np.zeros(N))
    assert fast <= 0.002
    assert slow <= 0.0035
    assert abs(still) <= 0.001
    assert at_most(lost, n, 0.02)


@pytest.mark.parametrize("n", sizes(1, 20))
@pytest.mark.parametrize("sigma", [0.05, 0.15, 0.30])
def test_39_spikes_false_flags(n, sigma):
    rng = rng_of(f"spikes-{sigma}-{n}")
    flags = sum(int(spike_mask(rng.lognormal(-4, sigma, 500_000)).sum()) for _ in range(n))
    assert 1000 * flags / (n * 500_000) <= 0.01


def test_39_spikes_are_found():
    rng = rng_of("spikes-found")
    gaps = rng.lognormal(-4, 0.15, 10_000)
    gaps[::100] *= 8
    assert spike_mask(gaps)[::100].all()
    assert spike_mask(gaps).sum() == 100
