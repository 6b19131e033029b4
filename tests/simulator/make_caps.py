"""A simulated card under several power limits: the efficiency has one peak, and it is known.

A limit sets the clock: `speed` of every step is 1 / f and a step's own energy goes with f^2, as a
voltage that follows the clock has it. Per output token the card then spends idle * T / f + E * f^2,
least at f = (idle * T / (2 E))^(1/3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.simulator.client import watch
from tests.simulator.make_sample import T0_EPOCH_S, _write_aiperf, _write_summary
from tests.simulator.sensor import PowerModel, energy_of, nvidia_smi_csv
from tests.simulator.server import ServerModel, serve

STREAMS = 8
UUID = "GPU-00000000-0000-4000-8000-00000000000c"
POWER = PowerModel(idle_w=120.0, step_j=1.6, decode_token_j=0.06, prefill_token_j=0.015)
SERVER = ServerModel(policy="prefill_first", budget_tokens=8192)


def tokens_per_joule(clock: float) -> float:
    """Truth of one clock, by the served load itself, without noise between runs or sensors."""
    energy, tokens, _ = _serve(clock, np.random.default_rng(1), 1.0, 400)
    return tokens / energy


def _serve(
    clock: float, rng: np.random.Generator, effect: float, n: int
) -> tuple[float, int, tuple]:  # type: ignore[type-arg]
    model = replace(SERVER, speed=effect / clock)
    power = replace(
        POWER, step_j=POWER.step_j * clock**2, decode_token_j=POWER.decode_token_j * clock**2,
        prefill_token_j=POWER.prefill_token_j * clock**2,
    )  # fmt: skip
    mix = np.random.default_rng(7)
    served = serve(model, mix.integers(200, 300, n), np.full(n, 48), rng, streams=STREAMS)
    begin = 12.0
    energy = energy_of(power, [(begin, served)])
    end = begin + float(served.step_end_s[-1])
    used = float(energy.at(end) - energy.at(begin))
    return used, int(served.output_tokens.sum()), (served, energy, begin, end)


def make_caps(
    folder: Path,
    clocks: Mapping[int, float],
    *,
    repeats: int = 3,
    sigma: float = 0.003,
    n: int = 250,
    declared: Mapping[int, int] | None = None,
    gpus: Sequence[str] = ("simulated",),
) -> Path:
    """Write a campaign with an arm a limit: limit (W) -> clock relative to the full one."""
    arms, moment = {}, T0_EPOCH_S
    for number, (limit, clock) in enumerate(clocks.items()):
        name = f"cap{limit}"
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        traces = []
        for repeat in range(1, repeats + 1):
            rng = np.random.default_rng([repeat, limit, 3])
            effect = float(np.exp(rng.normal(0.0, sigma)))
            _, _, (served, energy, begin, end) = _serve(clock, rng, effect, n)
            seen = watch(served, rng)
            _write_aiperf(place / f"c{STREAMS}_r{repeat}.jsonl.gz", served, seen, moment + begin)
            _write_summary(place / f"c{STREAMS}_r{repeat}_aiperf.json", served, seen, STREAMS)
            text = nvidia_smi_csv(
                energy, rng, t0_epoch_s=moment, end_s=end + 12.0, uuid=UUID, name="Simulated GPU",
                busy=[(begin, end)], limit_w=float(limit),
            )  # fmt: skip
            (place / f"trace_r{repeat}.csv").write_text(text)
            traces.append(f"{name}/trace_r{repeat}.csv")
            moment += end + 60.0
        arms[name] = {
            "gpu": {"name": "Simulated GPU", "memory_gb": 80, "tdp_w": 700},
            "cards": [gpus[number % len(gpus)]], "engine": "simulator", "engine_version": "1",
            "precision": "bf16", "client": {"place": "same host"}, "server_starts": "each",
            "files": f"{name}/c{{level}}_r{{repeat}}.jsonl.gz", "traces": traces,
            "power_limit_w": (declared or {}).get(limit, limit),
        }  # fmt: skip
    names = list(arms)
    content = {
        "campaign": "caps", "title": "A simulated card under power limits (no measurement)",
        "simulated": True, "time_zone": "UTC",
        "model": {"name": "simulated-model", "parameters": 6.74e9, "weight_bits": 16},
        "workload": {"load": "closed", "requests": n}, "arms": arms,
        "comparisons": [{"name": "caps", "baseline": names[0], "candidate": names[-1]}],
    }  # fmt: skip
    path = folder / "campaign.yaml"
    path.write_text(json.dumps(content))
    return path
