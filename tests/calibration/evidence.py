"""The evidence model of the method notes: campaigns without gpuverdict, truth known.

Log latency of a request = run effect + AR(1) noise (rho 0.6, SD 0.10) + white noise 0.15 + a 3 %
exponential tail of mean 0.5. Within-run noise does not depend on the run effect, so a pool of noise
rows is drawn once and campaigns pick rows from it: a quantile of exp(u) x is exp(u) times it.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Floats = NDArray[np.float64]
POOL = 6000


def rng_of(name: str) -> np.random.Generator:
    """Derive the seed from the check's name, so that checks do not share luck."""
    return np.random.default_rng(zlib.crc32(name.encode()))


@lru_cache(maxsize=4)
def noise_rows(n_requests: int, rows: int = POOL) -> NDArray[np.float32]:
    """Within-run log noise, one run a row, requests in order of time."""
    random = rng_of(f"noise of {n_requests} requests")
    rho, burn = 0.6, 50
    shocks = random.standard_normal((rows, n_requests + burn), dtype=np.float32)
    shocks *= np.float32(0.10 * np.sqrt(1 - rho**2))
    noise = lfilter([1.0], [1.0, -rho], shocks, axis=1)[:, burn:].astype(np.float32)
    noise += np.float32(0.15) * random.standard_normal(noise.shape, dtype=np.float32)
    tail = random.random(noise.shape, dtype=np.float32) < 0.03
    noise[tail] += random.exponential(0.5, int(tail.sum())).astype(np.float32)
    return noise


@lru_cache(maxsize=16)
def log_statistics(n_requests: int, statistic: str) -> Floats:
    """Log of a statistic of every pool row: a quantile, or requests over their total time."""
    rows = np.exp(noise_rows(n_requests).astype(float))
    if statistic == "throughput":
        return -np.log(rows.mean(axis=1))
    return np.log(np.quantile(rows, float(statistic[1:]) / 100, axis=1))


def run_effects(
    random: np.random.Generator, shape: tuple[int, ...], sigma: float, kind: str = "normal"
) -> Floats:
    """Draw run effects of SD sigma: normal, t with 3 df, or skewed (15 % bad runs)."""
    if kind == "normal":
        return random.normal(0, sigma, shape)
    if kind == "t3":
        return random.standard_t(3, shape) * sigma / np.sqrt(3)
    bad = random.random(shape) < 0.15
    draws = random.normal(0, 1, shape) + 3.0 * bad
    return (draws - 0.45) / np.sqrt(1 + 9 * 0.15 * 0.85) * sigma


def log_runs(
    random: np.random.Generator,
    n: int,
    runs: int,
    *,
    sigma: float = 0.01,
    statistic: str = "p50",
    n_requests: int = 300,
    kind: str = "normal",
    shift: float = 0.0,
) -> Floats:
    """Draw log run statistics of n campaigns: an array of n x runs."""
    effects = run_effects(random, (n, runs), sigma, kind) + shift
    rows = random.integers(0, POOL, (n, runs))
    if statistic == "goodput":
        noise = noise_rows(n_requests)
        fraction = np.empty((n, runs))
        for r in range(runs):
            fraction[:, r] = (noise[rows[:, r]] <= (0.15 - effects[:, r])[:, None]).mean(axis=1)
        return np.log(fraction)
    if statistic == "throughput":
        return log_statistics(n_requests, statistic)[rows] - effects
    return log_statistics(n_requests, statistic)[rows] + effects


def log_requests(
    random: np.random.Generator, n: int, runs: int, *, sigma: float, n_requests: int = 300
) -> Floats:
    """Draw all requests of n campaigns: an array of n x runs x requests."""
    effects = run_effects(random, (n, runs), sigma)
    rows = random.integers(0, POOL, (n, runs))
    return noise_rows(n_requests)[rows].astype(float) + effects[..., None]
