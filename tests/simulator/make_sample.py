"""Generate the simulated sample campaign: `python -m tests.simulator.make_sample [FOLDER]`.

Two arms, five server starts each in ABBA order, four levels of 1,000 requests, prefill probes and
a power trace a start. Everything is simulated and says so; `truth.json` holds what is true.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.simulator.client import Seen, watch
from tests.simulator.sensor import PowerModel, energy_of, nvidia_smi_csv
from tests.simulator.server import Served, ServerModel, serve

FOLDER = Path(__file__).resolve().parents[2] / "data" / "simulated"
LEVELS = (1, 4, 16, 64)
REQUESTS = 1000
STARTS = 5
ORDER = "ABBAABBAAB"
IDLE_S = 12.0
PAUSE_S = 4.0
# Between two server starts of the campaign.
RESTART_S = 60.0
T0_EPOCH_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z
RUN_SIGMA = 0.01
PROBE_TOKENS = (128, 256, 512, 1024, 2048, 4096, 8192)
PROBE_REPEATS = 10

# The candidate has the faster single step and prefill, and the dearer stream: the curves cross.
SERVERS = {
    "baseline": ServerModel(policy="prefill_first", budget_tokens=8192),
    "candidate": ServerModel(
        policy="prefill_first",
        budget_tokens=8192,
        alpha_s=0.0072,
        beta_s=0.085e-3,
        prefill_s_per_token=0.045e-3,
        prefill_s_per_token2=1.1e-9,
    ),
}
POWERS = {
    "baseline": PowerModel(),
    "candidate": PowerModel(idle_w=75.0, step_j=1.5, decode_token_j=0.06, prefill_token_j=0.015),
}
UUIDS = {
    "baseline": "GPU-00000000-0000-4000-8000-00000000000a",
    "candidate": "GPU-00000000-0000-4000-8000-00000000000b",
}
NAMES = {"baseline": "Simulated GPU A", "candidate": "Simulated GPU B"}


def make_sample(folder: Path, requests: int = REQUESTS, starts: int = STARTS) -> Path:
    """Write the campaign into a folder and return its `campaign.yaml`."""
    folder.mkdir(parents=True, exist_ok=True)
    moment = T0_EPOCH_S
    counts = {"A": 0, "B": 0}
    truth: dict[str, Any] = {"note": "simulated; nothing here was measured", "runs": {}}
    for order_no, letter in enumerate(ORDER[: 2 * starts]):
        arm = "baseline" if letter == "A" else "candidate"
        counts[letter] += 1
        moment, facts = _one_start(folder, arm, counts[letter], moment, requests)
        truth["runs"][f"{arm}-r{counts[letter]}"] = {"order_no": order_no + 1, **facts}
    for arm in SERVERS:
        model, power = SERVERS[arm], POWERS[arm]
        truth[arm] = {
            "alpha_s": model.alpha_s,
            "beta_s": model.beta_s,
            "kv_s_per_token": model.kv_s_per_token,
            "prefill_s_per_token": model.prefill_s_per_token,
            "prefill_s_per_token2": model.prefill_s_per_token2,
            "policy": model.policy,
            "run_sigma": RUN_SIGMA,
            "idle_w": power.idle_w,
            "step_j": power.step_j,
            "decode_token_j": power.decode_token_j,
            "prefill_token_j": power.prefill_token_j,
        }
    (folder / "truth.json").write_text(json.dumps(truth, indent=1, sort_keys=True) + "\n")
    campaign = folder / "campaign.yaml"
    campaign.write_text(_campaign(starts))
    return campaign


def _one_start(
    folder: Path, arm: str, repeat: int, moment: float, requests: int
) -> tuple[float, dict[str, Any]]:
    """Run one server start through probe and levels; return when the next may begin."""
    place = folder / arm
    place.mkdir(exist_ok=True)
    rng = np.random.default_rng([repeat, list(SERVERS).index(arm), 7])
    # The same requests for both arms of a repeat: one seed a pair.
    mix = np.random.default_rng([repeat, 1000])
    speed = float(np.exp(rng.normal(0.0, RUN_SIGMA)))
    model = replace(SERVERS[arm], speed=speed)
    loads: list[tuple[float, Served]] = []
    busy: list[tuple[float, float]] = []
    steps: dict[str, float] = {}
    begin = IDLE_S

    def play(name: str, prompts: np.ndarray, outputs: np.ndarray, streams: int) -> Served:
        nonlocal begin
        served = serve(model, prompts, outputs, rng, streams=streams)
        seen = watch(served, rng)
        _write_aiperf(place / f"{name}.jsonl.gz", served, seen, moment + begin)
        _write_summary(place / f"{name}_aiperf.json", served, seen, streams)
        loads.append((begin, served))
        busy.append((begin, begin + float(served.step_end_s[-1])))
        begin = busy[-1][1] + PAUSE_S
        return served

    probe = mix.permutation(np.repeat(PROBE_TOKENS, PROBE_REPEATS))
    play(f"probe_r{repeat}", probe, np.full(probe.size, 4), 1)
    for streams in LEVELS:
        prompts = np.clip(mix.lognormal(np.log(512), 0.6, requests), 64, 4096).astype(int)
        outputs = mix.integers(32, 97, requests)
        served = play(f"c{streams}_r{repeat}", prompts, outputs, streams)
        span = float(served.last_s.max())
        steps[f"c{streams}"] = served.step_truth(0.2 * span, 0.9 * span)
    end = begin - PAUSE_S + IDLE_S
    energy = energy_of(POWERS[arm], loads)
    text = nvidia_smi_csv(
        energy,
        rng,
        t0_epoch_s=moment,
        end_s=end,
        uuid=UUIDS[arm],
        name=NAMES[arm],
        busy=busy,
    )
    _write(place / f"trace_r{repeat}.csv.gz", text.encode())
    facts = {"speed": speed, "decode_step_s": steps, "energy_j": float(energy.at(end))}
    return moment + end + RESTART_S, facts


def _write_aiperf(path: Path, served: Served, seen: Seen, epoch_s: float) -> None:
    """Write records in the form of an AIPerf export: epoch nanoseconds, milliseconds."""
    base = round(epoch_s * 1e9)
    lines = []
    for i in range(served.arrival_s.size):
        stamps = seen.token_s[i]
        start = base + round(seen.start_s[i] * 1e9)
        end = base + round(seen.last_s[i] * 1e9)
        ttft = round((seen.first_s[i] - seen.start_s[i]) * 1e3, 6)
        latency = round((seen.last_s[i] - seen.start_s[i]) * 1e3, 6)
        n = int(served.output_tokens[i])
        metrics: dict[str, tuple[Any, str]] = {
            "time_to_first_token": (ttft, "ms"),
            "request_latency": (latency, "ms"),
            "output_sequence_length": (n, "tokens"),
            "output_token_count": (n, "tokens"),
            "input_sequence_length": (int(served.prompt_tokens[i]), "tokens"),
            "usage_prompt_tokens": (int(served.prompt_tokens[i]), "tokens"),
            "usage_completion_tokens": (n, "tokens"),
            "inter_token_latency": (round((latency - ttft) / max(1, n - 1), 6), "ms"),
            "inter_chunk_latency": (np.round(np.diff(stamps) * 1e3, 4).tolist(), "ms"),
        }
        record = {
            "metadata": {
                "session_num": i,
                "x_request_id": f"simulated-{i}",
                "credit_issued_ns": start,
                "request_start_ns": start,
                "request_ack_ns": start + 1_000_000,
                "request_end_ns": end,
                "worker_id": "simulated",
                "benchmark_phase": "profiling",
                "was_cancelled": False,
            },
            "metrics": {k: {"value": value, "unit": unit} for k, (value, unit) in metrics.items()},
            "error": None,
        }
        lines.append(json.dumps(record, separators=(",", ":")))
    _write(path, ("\n".join(lines) + "\n").encode())


def _write_summary(path: Path, served: Served, seen: Seen, streams: int) -> None:
    """Write what such a client sums up beside its records: the level, and a few aggregates."""
    n = served.arrival_s.size
    span = float(seen.last_s.max() - seen.start_s.min())

    def figures(seconds: np.ndarray) -> dict[str, Any]:
        values = 1e3 * seconds
        tails = {f"p{q}": float(np.percentile(values, q)) for q in (50, 90, 95, 99)}
        return {
            "unit": "ms",
            "avg": float(values.mean()),
            "min": float(values.min()),
            "max": float(values.max()),
            "std": float(values.std()),
            "count": n,
            **tails,
        }

    tokens = int(served.output_tokens.sum())
    summary = {
        "schema_version": "1.4",
        "aiperf_version": "0.13.0+simulated",
        "request_latency": figures(seen.last_s - seen.start_s),
        "time_to_first_token": figures(seen.first_s - seen.start_s),
        "request_count": {"unit": "requests", "avg": float(n)},
        "request_throughput": {"unit": "requests/sec", "avg": n / span},
        "output_token_throughput": {"unit": "tokens/sec", "avg": tokens / span},
        "benchmark_duration": {"unit": "sec", "avg": span},
        "total_osl": {"unit": "tokens", "avg": float(tokens)},
        "total_isl": {"unit": "tokens", "avg": float(served.prompt_tokens.sum())},
        "input_config": {
            "models": {"items": [{"name": "simulated-model"}]},
            "endpoint": {"type": "completions", "streaming": True},
            "phases": [
                {
                    "name": "profiling",
                    "kind": "profiling",
                    "type": "concurrency",
                    "requests": n,
                    "concurrency": streams,
                }
            ],
        },
        "was_cancelled": False,
        "is_complete": True,
    }
    path.write_text(json.dumps(summary, indent=1) + "\n")


def _write(path: Path, data: bytes) -> None:
    # No time stamp inside: the same sample has the same bytes on every day.
    path.write_bytes(gzip.compress(data, compresslevel=5, mtime=0))


def _campaign(starts: int) -> str:
    arms = "".join(
        f"""  {arm}:
    gpu: {{name: {NAMES[arm]}, memory_gb: 80, memory_bandwidth_gb_per_s: 4000, tdp_w: 700}}
    gpus: 1
    cards: [simulated-{letter}]
    tensor_parallel: 1
    engine: simulator
    engine_version: "1"
    precision: bf16
    client: {{place: same host}}
    server_starts: each
    files: "{arm}/c{{level}}_r{{repeat}}.jsonl.gz"
    prefill_probe: {arm}/probe_r*.jsonl.gz
    traces: [{", ".join(f"{arm}/trace_r{r}.csv.gz" for r in range(1, starts + 1))}]
"""
        for arm, letter in (("baseline", "a"), ("candidate", "b"))
    )
    return f"""# Simulated: no GPU was measured. Written by `python -m tests.simulator.make_sample`.
campaign: simulated
title: Simulated GPU A against simulated GPU B (no measurement)
simulated: true
time_zone: UTC
model:
  {{name: simulated-model, parameters: 6.74e9, weight_bits: 16, layers: 32, kv_heads: 1,
   head_dim: 128, kv_bits: 16}}
workload: {{load: closed, requests: {REQUESTS}, ignore_eos: true}}
slo:
  ttft_s: {{p95: 0.5}}
  tpot_s: {{p50: 0.03}}
  e2e_s: {{p99: 10}}
design: {{runs_per_arm: {starts}, order: ABBA}}
arms:
{arms}comparisons:
  - {{name: simulated, baseline: baseline, candidate: candidate}}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--requests", type=int, default=REQUESTS, help="requests a level")
    parser.add_argument("--starts", type=int, default=STARTS, help="server starts an arm (1-5)")
    chosen = parser.parse_args(arguments)
    campaign = make_sample(chosen.folder, chosen.requests, chosen.starts)
    sys.stdout.write(f"{campaign}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
