"""Targets 28-39 of the method notes as numbers: phases, energy, clock offset, steadiness.

The tests of these targets stand beside this file; here the same simulators give the value reached,
for the table. `n` is the number of simulated campaigns, series or requests, whichever is drawn.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
from tests.calibration.checks import Check, Reached
from tests.calibration.sensed import EPOCH_S, TRUTH, sense
from tests.calibration.simulated import Observed, load, model_of, probe
from tests.calibration.test_steady_targets import N, noise
from tests.unit.runs import make_run

from gpuverdict.align import clock_offset
from gpuverdict.energy import measure_idle, phase_energy, window_energy
from gpuverdict.phases import decode_batch, fit_itl, fit_prefill, split_phases
from gpuverdict.schema import Trace
from gpuverdict.steady import find_windows, series_drift, series_step, spike_mask
from gpuverdict.steady.change import SMALLEST_CHANGE, STEP_CRITICAL_T

__all__ = ["CHECKS"]

CHECKS: list[Check] = []


def _check(target, name, low, high, run, *, unit="%", **sizes) -> None:
    scale = 100 if unit == "%" else 1
    CHECKS.append(Check(target, name, low / scale, high / scale, run, unit=unit, **sizes))


def _with(function, **fixed):
    return lambda n, random: function(n, random, **fixed)


def _mean(values) -> Reached:
    array = np.asarray(values, dtype=float)
    spread = float(array.std(ddof=1) / math.sqrt(array.size)) if array.size > 1 else 0.0
    return Reached(float(array.mean()), array.size, spread)


def _worst(values) -> Reached:
    """Largest of a handful: its own band is meant for it, so no error widens it."""
    return Reached(float(np.max(values)), len(values), 0.0)


def _share(hits) -> Reached:
    return Reached(float(np.mean(hits)), int(np.size(hits)))


# --- 28-32 ----------------------------------------------------------------------------------


def prefill_rmse(n, random, *, parameter) -> Reached:
    """RMSE of one coefficient of the quadratic over its truth."""
    model = model_of("prefill_first")
    truth = {"c0_s": model.alpha_s + 2.2e-3, "c1_s_per_token": model.prefill_s_per_token,
             "c2_s_per_token2": 1.5e-9}[parameter]  # fmt: skip
    fits = [fit_prefill([probe(model, random).run]) for _ in range(n)]
    errors = np.array([getattr(fit, parameter).value / truth - 1 for fit in fits])
    rmse = float(np.sqrt(np.mean(errors**2)))
    return Reached(rmse, n, rmse / math.sqrt(2 * n))


def _step_ratio(random, policy, streams, *, naive) -> float:
    model = model_of(policy)
    seen = load(model, random, streams=streams, n=max(100, 12 * streams))
    (window,) = find_windows([seen.run], streams)
    truth = seen.served.step_truth(window.start_s, window.end_s)
    if naive:
        return float(seen.run.requests["tpot_s"].mean()) / truth - 1
    unloaded = probe(model, random)
    return split_phases(seen.run, [unloaded.run], window).decode_step_s.value / truth - 1


def decode_step(n, random, *, streams, naive=False) -> Reached:
    """Error of the clean-gap step (worst of both policies), or what mean TPOT would say."""
    ratios = [
        _step_ratio(random, policy, streams, naive=naive)
        for policy in ("chunked", "prefill_first")
        for _ in range(n)
    ]
    return Reached(float(np.min(ratios)), len(ratios), 0.0) if naive else _worst(np.abs(ratios))


def pooled_itl(n, random, *, parameter) -> Reached:
    """Error of alpha or beta of the ITL regression over three levels."""
    errors = []
    for _ in range(n):
        model = model_of("chunked")
        levels = [load(model, random, streams=c, n=max(100, 12 * c)) for c in (1, 8, 32, 64)]
        prefill = fit_prefill([probe(model, random).run])
        fit = fit_itl([seen.run for seen in levels], prefill)
        context = [
            np.average(s.prompt_tokens + s.output_tokens / 2, weights=s.output_tokens)
            for s in (seen.served for seen in levels)
        ]
        truth = {
            "alpha_s": model.alpha_s,
            "beta_s": model.beta_s + model.kv_s_per_token * float(np.mean(context)),
        }[parameter]
        errors.append(abs(getattr(fit, parameter).value / truth - 1))
    return _worst(errors)


def saturated_excess(n, random, *, want) -> Reached:
    """Scheduling excess with 64 streams on 32 slots: mean error, or how far below the truth."""
    found = []
    for policy in ("chunked", "prefill_first"):
        for _ in range(n):
            unloaded = probe(model_of(policy), random).run
            seen = load(model_of(policy, slots=32), random, streams=64, n=600)
            wait = float(np.mean(seen.served.scheduled_s - seen.served.arrival_s))
            excess = split_phases(seen.run, [unloaded]).requests["scheduling_excess_s"].mean()
            error = excess / wait - 1 if want == "error" else 1e3 * max(0.0, wait - excess)
            found.append(abs(error))
    return _worst(found)


def batch_error(n, random) -> Reached:
    """Mean absolute error of the decode batch over time."""
    found = []
    for policy in ("chunked", "prefill_first"):
        for _ in range(n):
            seen = load(model_of(policy), random, streams=32, n=400)
            (window,) = find_windows([seen.run])
            grid = np.linspace(window.start_s, window.end_s, 20_000)
            batch = decode_batch(seen.run)
            where = np.searchsorted(batch["time_s"].to_numpy(), grid, "right") - 1
            ours = batch["decode_batch"].to_numpy()[where]
            first, last = np.sort(seen.served.first_s), np.sort(seen.served.last_s)
            true = np.searchsorted(first, grid, "right") - np.searchsorted(last, grid, "right")
            found.append(float(np.abs(ours - true).mean()))
    return _worst(found)


# --- 33-35 ----------------------------------------------------------------------------------


def _placed(seen: Observed, at_s: float = 0.0) -> Observed:
    info = dict(seen.run.info) | {
        "t0_epoch_s": EPOCH_S + at_s, "t0_quality": "exact", "gpu_uuids": None,
        "duration_s": float(seen.run.requests["last_token_s"].max()),
    }  # fmt: skip
    return Observed(run=replace(seen.run, info=info), served=seen.served)


def window_error(n, random, *, poll_s) -> Reached:
    """Largest error of a window's energy over sensors."""
    found = []
    for _ in range(n):
        seen = _placed(load(model_of("prefill_first"), random, streams=8, n=120))
        end = seen.run.info["duration_s"]
        for sensor in ("100 ms", "25 of 100 ms", "1 s average"):
            sensed = sense(seen, random, sensor=sensor, poll_s=poll_s)
            energy = window_energy(sensed.trace, EPOCH_S + 2.3, EPOCH_S + end - 1.7)
            found.append(abs(energy.value / sensed.joules(2.3, end - 1.7) - 1))
    return _worst(found)


def phase_bias(n, random, *, name, truth) -> Reached:
    """Mean bias of an energy by phase over campaigns with a 100 ms sensor at 10 Hz."""
    biases = []
    for _ in range(n):
        model = model_of("prefill_first")
        runs, frames, at = [], [], 0.0
        for streams, requests in ((1, 24), (8, 120), (32, 400)):
            seen = _placed(load(model, random, streams=streams, n=requests))
            sensed = sense(seen, random, sensor="100 ms", poll_s=0.1)
            runs.append(_placed(seen, at).run)
            frames.append(sensed.trace.samples.with_columns(pl.col("time_epoch_s") + at))
            at += runs[-1].info["duration_s"] + 60.0
        trace = Trace(samples=pl.concat(frames), info={"source_name": "simulated"})
        found = phase_energy(
            runs, trace, measure_idle(runs, trace), probes=[probe(model, random).run]
        )
        biases.append(found[name].value / truth - 1)
    mean = _mean(biases)
    return Reached(abs(mean.value), mean.n, mean.spread)


def offset_error(n, random, *, streams, sensor, poll_s) -> Reached:
    """Largest error of the clock offset, ms."""
    found = []
    for _ in range(n):
        model = model_of("prefill_first")
        seen = _placed(load(model, random, streams=streams, n=100 if streams == 1 else 400))
        shift = float(random.uniform(-2, 2))
        sensed = sense(seen, random, sensor=sensor, poll_s=poll_s, shift_s=shift)
        expected = fit_prefill([probe(model, random).run]).predict
        offset = clock_offset(seen.run, sensed.trace, prefill_s=expected)
        found.append(1e3 * abs(offset.offset_s - shift))
    return _worst(found)


# --- 36-39 ----------------------------------------------------------------------------------


def drift(n, random, *, rho, slope=0.0) -> Reached:
    """Share of series that raise the drift alarm."""
    logs = noise(random, n, rho) + np.linspace(0, slope, N)
    return _share([series_drift(np.exp(row)).alarm for row in logs])


def step(n, random, *, rho, size=0.0) -> Reached:
    """Share of series that raise the step alarm."""
    logs = noise(random, n, rho)
    logs[:, N // 2 :] += size
    found = [series_step(np.exp(row)) for row in logs]
    return _share([abs(f[0]) > STEP_CRITICAL_T and abs(f[1]) > SMALLEST_CHANGE for f in found])


def cut(n, random, *, height, tau, want="bias") -> Reached:
    """Residual bias of the log median TPOT after the cut, or windows without a steady state."""
    warm_up = np.log1p(height * np.exp(-np.arange(N) / N / tau)) if height else np.zeros(N)
    starts = np.arange(N, dtype=float)
    bias, lost = [], []
    for row in noise(random, n, 0.6):
        tpot = 0.01 * np.exp(row + warm_up)
        run = make_run(
            {"start_s": starts, "first_token_s": starts + 0.1,
             "last_token_s": starts + 0.1 + 10 * tpot, "output_tokens": [11] * N},
            load_kind="constant", rate_rps=1.0,
        )  # fmt: skip
        (window,) = find_windows([run])
        lost.append(any(c.code == "no_steady_state" for c in window.cautions))
        kept = starts >= window.start_s
        bias.append(np.median(row[kept] + warm_up[kept]) - np.median(row[kept]))
    if want == "lost":
        return _share(lost)
    mean = _mean(bias)
    return Reached(abs(mean.value), mean.n, mean.spread)


def spikes(n, random, *, sigma) -> Reached:
    """False spikes a thousand gaps."""
    flags = [int(spike_mask(random.lognormal(-4, sigma, 500_000)).sum()) for _ in range(n)]
    return Reached(1000 * sum(flags) / (n * 500_000), n * 500_000, 0.0)


for _name, _high in (("c0_s", 3), ("c1_s_per_token", 2), ("c2_s_per_token2", 10)):
    _check(28, f"RMSE of {_name}, one stream, prefill first", 0, _high,
           _with(prefill_rmse, parameter=_name), fast=20, nightly=400)  # fmt: skip
for _streams in (8, 32, 64):
    _check(29, f"worst error of the decode step, {_streams} streams", 0, 1,
           _with(decode_step, streams=_streams), fast=1, nightly=8)  # fmt: skip
_check(29, "negative control: mean TPOT over the step, 8 streams", 25, 1000,
       _with(decode_step, streams=8, naive=True), fast=1, nightly=8)  # fmt: skip
_check(30, "worst error of pooled alpha", 0, 1, _with(pooled_itl, parameter="alpha_s"),
       fast=1, nightly=5)  # fmt: skip
_check(30, "worst error of pooled beta", 0, 3, _with(pooled_itl, parameter="beta_s"),
       fast=1, nightly=5)  # fmt: skip
_check(31, "worst error of the excess, saturated queue", 0, 2,
       _with(saturated_excess, want="error"), fast=1, nightly=5)  # fmt: skip
_check(31, "worst excess below the true wait", 0, 2, _with(saturated_excess, want="below"),
       unit="ms", fast=1, nightly=5)  # fmt: skip
_check(32, "worst mean error of the decode batch", 0, 0.1, batch_error, unit="requests",
       fast=1, nightly=8)  # fmt: skip
_check(33, "worst error of a window's energy, 10 Hz", 0, 1, _with(window_error, poll_s=0.1),
       fast=2, nightly=20)  # fmt: skip
_check(33, "worst error of a window's energy, 1 Hz", 0, 4, _with(window_error, poll_s=1.0),
       fast=2, nightly=20)  # fmt: skip
for _name, _truth, _high in (
    ("prefill_token_energy_j", TRUTH.prefill_token_j, 4), ("step_energy_j", TRUTH.step_j, 2),
    ("decode_token_energy_j", TRUTH.decode_token_j, 15),
):  # fmt: skip
    _check(34, f"bias of {_name}, 100 ms sensor", 0, _high,
           _with(phase_bias, name=_name, truth=_truth), fast=1, nightly=8)  # fmt: skip
for _streams, _sensor, _poll, _high in (
    (1, "100 ms", 0.1, 20), (1, "1 s average", 1.0, 60), (32, "100 ms", 0.1, 120),
):  # fmt: skip
    _check(35, f"worst clock offset, {_streams} streams, {_sensor} at {1 / _poll:g} Hz", 0, _high,
           _with(offset_error, streams=_streams, sensor=_sensor, poll_s=_poll), unit="ms",
           fast=2, nightly=20)  # fmt: skip
for _rho in (0.0, 0.3, 0.6):
    _check(36, f"false drift alarms, rho {_rho}", 0, 1.5, _with(drift, rho=_rho),
           fast=200, nightly=6000)  # fmt: skip
for _rho, _low in ((0.3, 98), (0.6, 78)):
    _check(36, f"drift of 5 % found, rho {_rho}", _low, 100,
           _with(drift, rho=_rho, slope=math.log(1.05)), fast=200, nightly=4000)  # fmt: skip
for _rho in (0.0, 0.6):
    _check(37, f"false step alarms, rho {_rho}", 0, 2.5, _with(step, rho=_rho),
           fast=200, nightly=6000)  # fmt: skip
    _check(37, f"step of 8 % found, rho {_rho}", 98, 100,
           _with(step, rho=_rho, size=math.log(1.08)), fast=200, nightly=4000)  # fmt: skip
_check(38, "bias after the cut, 30 % warm-up, tau 5 %", 0, 0.2, _with(cut, height=0.30, tau=0.05),
       fast=40, nightly=1500)  # fmt: skip
_check(38, "bias after the cut, slow 10 % ramp, tau 10 %", 0, 0.35,
       _with(cut, height=0.10, tau=0.10), fast=40, nightly=1500)  # fmt: skip
_check(38, "bias after the cut, stationary", 0, 0.1, _with(cut, height=0.0, tau=1.0),
       fast=40, nightly=1500)  # fmt: skip
_check(38, "stationary runs without a steady state", 0, 2,
       _with(cut, height=0.0, tau=1.0, want="lost"), fast=40, nightly=1500)  # fmt: skip
for _sigma in (0.05, 0.15, 0.30):
    _check(39, f"false spikes a thousand gaps, sigma {_sigma}", 0, 0.01,
           _with(spikes, sigma=_sigma), unit="per 1000", fast=1, nightly=20)  # fmt: skip
