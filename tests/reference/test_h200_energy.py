"""Energy and clocks on the real H200 set: bounds that physics and a second route give.

Client, server and sampler shared one host clock, so the true offset is 0; and the joules that the
split gives back must add up to what the trace holds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gpuverdict.align import clock_offset, place
from gpuverdict.energy import measure_idle, phase_energy, window_energy
from gpuverdict.phases import fit_prefill
from gpuverdict.recognise import read_run, read_trace
from gpuverdict.schema import Run, Trace

H200 = Path(__file__).resolve().parents[2] / "data" / "h200"


@pytest.fixture(scope="module", params=["card-a-bf16", "card-b-bf16", "card-b-eager"])
def arm(request) -> tuple[Trace, list[list[Run]], list[Run]]:
    folder = H200 / request.param
    sweeps = [read_run(folder / f"guidellm-r{r}.json.gz") for r in (2, 3)]
    probes = [run for path in sorted(folder.glob("prefill-*")) for run in read_run(path)]
    return read_trace(folder / "nvidia-smi-query.csv.gz", "UTC"), sweeps, probes


def test_the_clocks_of_one_host_agree(arm):
    trace, sweeps, probes = arm
    prefill = fit_prefill(probes)
    for sweep in sweeps:
        offset = clock_offset(sweep, trace, prefill_s=prefill.predict)
        assert offset.offset_s == pytest.approx(0.0, abs=0.1)


def test_a_clock_that_is_ahead_is_found(arm):
    trace, sweeps, probes = arm
    ahead = trace.samples.with_columns(pl.col("time_epoch_s") + 2.5)
    offset = clock_offset(
        sweeps[0], Trace(samples=ahead, info=trace.info), prefill_s=fit_prefill(probes).predict
    )
    assert offset.offset_s == pytest.approx(2.5, abs=0.1)


def test_the_phases_add_up_to_the_trace(arm):
    trace, sweeps, probes = arm
    runs = [run for sweep in sweeps for run in sweep]
    idle = measure_idle([*runs, *probes], trace)
    # By hand from the trace: about 120 W with the model loaded, 78 W before the server starts.
    assert 115 < idle.value < 127
    found = phase_energy(runs, trace, idle, probes=probes)
    step, token, prompt = (
        found[name].value
        for name in ("step_energy_j", "decode_token_energy_j", "prefill_token_energy_j")
    )
    assert min(step, token, prompt) > 0
    for run in runs:
        start, _ = place(run, trace)
        seconds = run.info["duration_s"]
        measured = window_energy(trace, start + 0.5, start + seconds).value
        assert measured / (seconds - 0.5) < 900
    # Model against meter over all runs: counts by hand from the requests.
    joules = tokens = prompts = steps = idle_j = 0.0
    for run in runs:
        start, _ = place(run, trace)
        rows = run.requests.filter(pl.col("first_token_s").is_not_null())
        made = (rows["output_tokens"] - 1).clip(0).sum()
        tokens += made
        prompts += rows["input_tokens"].sum()
        # One stream takes one step a token; more share it, by the batch the requests overlap to.
        alive = (rows["last_token_s"] - rows["first_token_s"]).sum()
        steps += made / max(1.0, alive / run.info["duration_s"])
        joules += window_energy(trace, start, start + run.info["duration_s"]).value
        idle_j += idle.value * run.info["duration_s"]
    model = idle_j + step * steps + token * tokens + prompt * prompts
    assert model == pytest.approx(joules, rel=0.10)


def test_more_streams_cost_less_energy_a_token(arm):
    trace, sweeps, _ = arm
    each = {}
    for sweep in sweeps:
        for run in sweep:
            start, _ = place(run, trace)
            energy = window_energy(trace, start, start + run.info["duration_s"]).value
            made = run.requests["output_tokens"].sum()
            each.setdefault(run.info["max_concurrency"], []).append(energy / made)
    medians = [float(np.median(each[c])) for c in (1, 4, 16, 64)]
    assert medians == sorted(medians, reverse=True)
