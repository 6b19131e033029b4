"""Write small campaigns: vLLM results of a closed loop with known speeds, and a campaign file.

The loop is worked out here request by request, so what a campaign must show is known beforehand.
"""

from __future__ import annotations

import json
import math
import random
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuverdict.campaign import read_campaign
from gpuverdict.case import Case, device_identity, find_comparison, open_case
from gpuverdict.health import Health, check_health
from gpuverdict.measured import Measured, measure
from gpuverdict.summary import Summary, summarize_measured
from gpuverdict.verdict import Verdict, judge


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A comparison with its data, without the sections that only a report needs."""

    measured: Measured
    summary: Summary
    health: Health
    verdict: Verdict


def open_verdict(campaign: Path, name: str = "ab") -> Opened:
    """Read, summarise and judge, as `open_case` does before it adds curves and capacity."""
    measured = measure(read_campaign(campaign))
    summary = summarize_measured(measured)
    health = check_health(measured, summary)
    _, identity = device_identity(measured)
    spec = find_comparison(measured.campaign, name)
    verdict = judge(measured, summary, spec, identity=identity, health=health)
    return Opened(measured=measured, summary=summary, health=health, verdict=verdict)


RUN_EFFECTS = (0.004, -0.006, 0.001, -0.002, 0.005)
"""Log effects of the runs of an arm: an SD of 0.4 %, the same in both arms."""


def closed_loop(
    *,
    streams: int = 4,
    n: int = 80,
    tpot_s: float = 0.01,
    ttft_s: float = 0.05,
    output_tokens: int = 32,
    input_tokens: int = 256,
    noise: float = 0.02,
    seed: int = 1,
    busy: float = 1.0,
) -> list[dict[str, float]]:
    """Requests of a closed loop: each stream sends its next request when the last one ends.

    `busy` below 1 lets every stream pause, so that fewer requests than streams are in flight.
    """
    draw = random.Random(seed)
    free = [0.001 * i for i in range(streams)]
    rows = []
    for _ in range(n):
        stream = min(range(streams), key=lambda i: free[i])
        first = ttft_s * math.exp(draw.gauss(0, noise))
        gap = tpot_s * math.exp(draw.gauss(0, noise))
        took = first + gap * (output_tokens - 1)
        rows.append({"start": free[stream], "ttft": first, "gap": gap, "took": took,
                     "input": input_tokens, "output": output_tokens})  # fmt: skip
        # A client needs a moment between two requests; without it they would overlap by rounding.
        free[stream] += took / busy + 1e-5
    return rows


def vllm_result(
    rows: list[dict[str, float]],
    *,
    streams: int | None,
    starts: bool = True,
    detail: bool = True,
    failed: int = 0,
    model_id: str = "m-7b",
    rate: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The same as a result of `vllm bench serve`; the last `failed` requests end in an error."""
    n = len(rows)
    good = rows[: n - failed]
    duration = max(r["start"] + r["took"] for r in rows)
    values = {
        "ttft": [r["ttft"] for r in good],
        "tpot": [r["gap"] for r in good],
        "e2el": [r["took"] for r in good],
    }
    result: dict[str, Any] = {
        "date": "20260301-120000", "endpoint_type": "openai", "backend": "openai",
        "model_id": model_id, "tokenizer_id": model_id, "num_prompts": n,
        "request_rate": "inf" if rate is None else rate, "burstiness": 1.0,
        "max_concurrency": streams, "duration": duration, "completed": n - failed, "failed": failed,
        "total_input_tokens": sum(int(r["input"]) for r in good),
        "total_output_tokens": sum(int(r["output"]) for r in good),
        "request_throughput": (n - failed) / duration,
        "output_throughput": sum(r["output"] for r in good) / duration,
        **more,
    }  # fmt: skip
    for name, held in values.items():
        ordered = sorted(held)
        result[f"mean_{name}_ms"] = 1000 * sum(held) / max(1, len(held))
        for q in (50, 95, 99):
            place = (len(ordered) - 1) * q / 100
            low = math.floor(place)
            high = min(low + 1, len(ordered) - 1)
            value = ordered[low] + (place - low) * (ordered[high] - ordered[low])
            result[f"p{q}_{name}_ms"] = 1000 * value
        result[f"median_{name}_ms"] = result[f"p50_{name}_ms"]
    if detail:
        bad = [False] * (n - failed) + [True] * failed
        result |= {
            "input_lens": [int(r["input"]) for r in rows],
            "output_lens": [
                0 if b else int(r["output"]) for r, b in zip(rows, bad, strict=True)
            ],
            "ttfts": [0.0 if b else r["ttft"] for r, b in zip(rows, bad, strict=True)],
            "itls": [
                [] if b else [r["gap"]] * (int(r["output"]) - 1)
                for r, b in zip(rows, bad, strict=True)
            ],
            "errors": ["HTTP 503" if b else "" for b in bad],
        }  # fmt: skip
        if starts:
            result["start_times"] = [100.0 + r["start"] for r in rows]
            result["latencies"] = [
                0.0 if b else r["took"] for r, b in zip(rows, bad, strict=True)
            ]  # fmt: skip
    return result


def write_arm(
    folder: Path,
    name: str,
    *,
    levels: tuple[int, ...] = (4,),
    repeats: int = 3,
    effect: float = 0.0,
    n: int | Mapping[int, int] = 80,
    keep: Mapping[str, Any] | None = None,
    **loop: Any,
) -> None:
    """Write `<arm>/c<level>_r<repeat>.json`: speeds are multiplied by exp(effect + run effect)."""
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    base = {"tpot_s": 0.01, "ttft_s": 0.05} | loop
    for level in levels:
        for repeat in range(1, repeats + 1):
            factor = math.exp(effect + RUN_EFFECTS[(repeat - 1) % len(RUN_EFFECTS)])
            count = n if isinstance(n, int) else n[repeat]
            rows = closed_loop(
                **{**base, "tpot_s": base["tpot_s"] * factor, "ttft_s": base["ttft_s"] * factor},
                streams=level, n=count, seed=zlib.crc32(f"{name} {level} {repeat}".encode()),
            )  # fmt: skip
            result = vllm_result(rows, streams=level, **dict(keep or {}))
            (target / f"c{level}_r{repeat}.json").write_text(json.dumps(result))


def arm(name: str, **keys: Any) -> dict[str, Any]:
    """The entry of an arm in the campaign file, as complete as an analyst can make it."""
    return {
        "gpu": "H200 SXM", "cards": [name], "engine": "vllm", "engine_version": "0.9.0",
        "precision": "bf16", "kv_dtype": "bf16", "host": "h", "driver": "580", "kernels": "flash",
        "client_version": "0.32.0", "client": {"place": "same host"}, "server_starts": "each",
        "files": f"{name}/c{{level}}_r{{repeat}}.json",
    } | keys  # fmt: skip


def write_campaign(folder: Path, arms: Mapping[str, Mapping[str, Any]], **keys: Any) -> Path:
    """Write `campaign.yaml` (JSON is YAML 1.2); `ab` compares the first two arms."""
    names = list(arms)
    content = {
        "campaign": "small",
        "model": {"name": "m", "parameters": 7e9, "weight_bits": 16},
        "workload": {"load": "closed"},
        "design": {"runs_per_arm": 3},
        "arms": {name: dict(entry) for name, entry in arms.items()},
        "comparisons": [{"name": "ab", "baseline": names[0], "candidate": names[:2][-1]}],
    } | keys
    path = folder / "campaign.yaml"
    path.write_text(json.dumps(content))
    return path


def _written(
    folder: Path,
    a: Mapping[str, Any] | None,
    b: Mapping[str, Any] | None,
    arm_a: Mapping[str, Any] | None,
    arm_b: Mapping[str, Any] | None,
    keys: Mapping[str, Any],
) -> Path:
    write_arm(folder, "a", **dict(a or {}))
    write_arm(folder, "b", **dict(b or {}))
    arms = {"a": arm("a", **dict(arm_a or {})), "b": arm("b", **dict(arm_b or {}))}
    return write_campaign(folder, arms, **keys)


def judge_two(
    folder: Path,
    *,
    a: Mapping[str, Any] | None = None,
    b: Mapping[str, Any] | None = None,
    arm_a: Mapping[str, Any] | None = None,
    arm_b: Mapping[str, Any] | None = None,
    **keys: Any,
) -> Opened:
    """Write the logs of two arms (`a`, `b`: arguments of `write_arm`) and judge them."""
    return open_verdict(_written(folder, a, b, arm_a, arm_b, keys))


def two_arms(
    folder: Path,
    *,
    a: Mapping[str, Any] | None = None,
    b: Mapping[str, Any] | None = None,
    arm_a: Mapping[str, Any] | None = None,
    arm_b: Mapping[str, Any] | None = None,
    **keys: Any,
) -> Case:
    """The same with all that a report shows beside the verdicts."""
    return open_case(_written(folder, a, b, arm_a, arm_b, keys), "ab")
