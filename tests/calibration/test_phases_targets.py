"""Targets 28-32 of the method notes on the continuous-batching simulator, both schedulers."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from tests.calibration.simulated import Observed, load, model_of, probe

from gpuverdict.phases import decode_batch, fit_itl, fit_prefill, split_phases
from gpuverdict.steady import find_windows

pytestmark = pytest.mark.calibration
POLICIES = ("chunked", "prefill_first")
LEVELS = (8, 32, 64)


def rng_of(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


@pytest.mark.parametrize("n", [40, pytest.param(400, marks=pytest.mark.nightly)])
def test_28_prefill_curve(n):
    model = model_of("prefill_first")
    # One step and the client's overhead: 2 ms and two exponential delays of 0.1 ms.
    truth = np.array([model.alpha_s + 2.2e-3, model.prefill_s_per_token, 1.5e-9])
    errors = []
    for k in range(n):
        fit = fit_prefill([probe(model, rng_of(f"prefill-{n}-{k}")).run])
        assert fit.kind == "quadratic"
        found = [fit.c0_s.value, fit.c1_s_per_token.value, fit.c2_s_per_token2.value]
        errors.append(np.array(found) / truth - 1)
    rmse = np.sqrt((np.array(errors) ** 2).mean(axis=0))
    assert (rmse <= [0.03, 0.02, 0.10]).all(), rmse


def curvatures(policy: str, chunk: int | None, n: int = 40) -> np.ndarray:
    """Errors of c0, c1, c2 of many probes that state their chunk size (None: they do not)."""
    model = model_of(policy)
    truth = np.array([model.alpha_s + 2.2e-3, model.prefill_s_per_token, 1.5e-9])
    errors = []
    for k in range(n):
        run = probe(model, rng_of(f"chunks-{k}")).run
        run.info["prefill_chunk_tokens"] = chunk
        fit = fit_prefill([run])
        found = [fit.c0_s.value, fit.c1_s_per_token.value, fit.c2_s_per_token2.value]
        errors.append(np.array(found) / truth - 1)
        told = [c.code for c in fit.c2_s_per_token2.cautions]
        assert told == (["prefill_chunk_unknown"] if chunk is None else [])
    return np.array(errors)


def test_28_chunks_look_like_curvature_where_their_size_is_unknown():
    assert 0.10 < curvatures("chunked", None)[:, 2].mean() < 0.45


@pytest.mark.parametrize(("policy", "chunk"), [("chunked", 2048), ("prefill_first", 0)])
def test_28_a_known_chunk_is_told_from_curvature(policy, chunk):
    errors = curvatures(policy, chunk)
    assert (np.sqrt((errors**2).mean(axis=0)) <= [0.03, 0.02, 0.10]).all(), errors.std(axis=0)
    # Three standard errors of a mean of 40 at an SD of 9 %.
    assert abs(errors[:, 2].mean()) < 0.045
    # The wrong chunk is no correction: the control.
    if chunk:
        assert abs(curvatures(policy, 8192)[:, 2].mean()) > 0.10


def test_28_a_chunked_curve_predicts_its_steps():
    model = model_of("chunked", jitter=1e-4)
    run = probe(model, rng_of("steps")).run
    run.info["prefill_chunk_tokens"] = 2048
    fit = fit_prefill([run])
    n = np.array([2048.0, 2049.0, 8192.0])
    cost = model.prefill_s_per_token * n + model.prefill_s_per_token2 * n**2
    truth = 2.2e-3 + model.alpha_s * np.ceil(n / 2048) + cost
    assert fit.predict(n) == pytest.approx(truth, rel=0.005)
    assert np.diff(fit.predict(n))[0] == pytest.approx(fit.chunk_step_s, rel=0.02)


@pytest.fixture(scope="module", params=POLICIES)
def campaign(request) -> tuple[str, Observed, dict[int, Observed]]:
    policy = request.param
    rng = rng_of(f"campaign-{policy}")
    model = model_of(policy)
    levels = {c: load(model, rng, streams=c, n=max(100, 12 * c)) for c in (1, *LEVELS)}
    return policy, probe(model, rng), levels


def test_29_decode_step(campaign):
    _, unloaded, levels = campaign
    for streams in LEVELS:
        seen = levels[streams]
        (window,) = find_windows([seen.run], streams)
        truth = seen.served.step_truth(window.start_s, window.end_s)
        step = split_phases(seen.run, [unloaded.run], window).decode_step_s
        assert step.value == pytest.approx(truth, rel=0.01)
        # The control: what a mean TPOT would have said.
        assert seen.run.requests["tpot_s"].mean() / truth > 1.25


def test_30_pooled_alpha_and_beta(campaign):
    _, unloaded, levels = campaign
    prefill = fit_prefill([unloaded.run])
    fit = fit_itl([seen.run for seen in levels.values()], prefill)
    model = model_of("chunked")
    context = [
        np.average(s.prompt_tokens + s.output_tokens / 2, weights=s.output_tokens)
        for s in (seen.served for seen in levels.values())
    ]
    beta = model.beta_s + model.kv_s_per_token * float(np.mean(context))
    assert fit.alpha_s.value == pytest.approx(model.alpha_s, rel=0.01)
    assert fit.beta_s.value == pytest.approx(beta, rel=0.03)
    assert fit.gamma_s_per_token.value == pytest.approx(model.prefill_s_per_token, rel=0.20)


@pytest.mark.parametrize("policy", POLICIES)
def test_31_scheduling_excess(policy):
    rng = rng_of(f"excess-{policy}")
    unloaded = probe(model_of(policy), rng).run
    cases = [
        load(model_of(policy), rng, streams=8, n=200),
        load(model_of(policy), rng, streams=32, n=400),
        load(model_of(policy), rng, rate=3.0, n=300),
        load(model_of(policy, slots=32), rng, streams=64, n=600),
    ]
    for seen in cases:
        wait = float(np.mean(seen.served.scheduled_s - seen.served.arrival_s))
        phases = split_phases(seen.run, [unloaded])
        excess = float(phases.requests["scheduling_excess_s"].mean())
        assert excess >= wait - 0.002
        if wait > 1.0:
            assert excess == pytest.approx(wait, rel=0.02)
    assert wait > 1.0, "the last case must saturate the slots"


def test_32_decode_batch(campaign):
    _, _, levels = campaign
    for seen in levels.values():
        (window,) = find_windows([seen.run])
        grid = np.linspace(window.start_s, window.end_s, 20_000)
        batch = decode_batch(seen.run)
        where = np.searchsorted(batch["time_s"].to_numpy(), grid, "right") - 1
        ours = batch["decode_batch"].to_numpy()[where]
        true = np.searchsorted(np.sort(seen.served.first_s), grid, "right") - np.searchsorted(
            np.sort(seen.served.last_s), grid, "right"
        )
        assert np.abs(ours - true).mean() <= 0.1
