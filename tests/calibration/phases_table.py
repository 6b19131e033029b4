"""Print phase estimates beside their truth: `python -m tests.calibration.phases_table`.

First the H200 logs against the server's own times, then the mock clients (no GPU behind them)
against the parameters they were served with.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from tests.unit.guidellm_raw import as_run, raw_levels
from tests.unit.vllm_raw import CLIENTS, client_truth, vllm_run

from gpuverdict import read_run
from gpuverdict.errors import GpuverdictError
from gpuverdict.phases import decode_batch, fit_itl, fit_prefill, split_phases
from gpuverdict.schema import Run
from gpuverdict.steady import find_windows

H200 = Path(__file__).resolve().parents[2] / "data" / "h200"
PROBED = (128, 512, 1024, 2048)


def server_rows() -> dict[str, dict[str, Any]]:
    with gzip.open(H200 / "card-a-bf16" / "server_requests.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    return {row["request_id"]: row for row in rows}


def h200_probes() -> list[Run]:
    return [as_run(raw_levels(H200 / "card-a-bf16" / f"prefill-isl{n}.json.gz")[0]) for n in PROBED]


def batch_over(first: np.ndarray, last: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Requests between first and last token at each moment, by sorting alone."""
    return np.searchsorted(np.sort(first), grid, "right") - np.searchsorted(
        np.sort(last), grid, "right"
    )


def h200_level(level: int, repeat: int, truth: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Compare one level of one repeat of card a with the server's own rows."""
    raw = raw_levels(H200 / "card-a-bf16" / f"guidellm-r{repeat}.json.gz")[level]
    run = as_run(raw)
    t0 = run.info["t0_epoch_s"]
    ok = run.requests.filter(pl.col("status") == "ok")
    served = [truth[i] for i in ok["request_id"]]
    first = np.array([row["first_token_s"] for row in served]) - t0
    last = np.array([row["finished_s"] for row in served]) - t0
    wait = np.array([row["scheduled_s"] - row["arrival_s"] for row in served])
    only_ok = Run(info=run.info, requests=ok, gaps=run.gaps)
    batch = decode_batch(only_ok)
    grid = np.linspace(0.0, float(last.max()), 20_001)
    times, count = batch["time_s"].to_numpy(), batch["decode_batch"].to_numpy()
    where = np.searchsorted(times, grid, "right") - 1
    ours = np.where(where >= 0, count[np.maximum(where, 0)], 0)
    phases = split_phases(run, h200_probes())
    excess = phases.requests.filter(pl.col("status") == "ok")["scheduling_excess_s"]
    return {
        "batch_error": float(np.abs(ours - batch_over(first, last, grid)).mean()),
        "wait_ms": 1e3 * float(wait.mean()),
        "excess_ms": 1e3 * float(excess.mean()),
    }


def h200_prefill(truth: dict[str, dict[str, Any]]) -> list[tuple[int, float, float]]:
    """Prefill time by prompt length: ours, and the server's own (scheduled to first token)."""
    probes = h200_probes()
    model = fit_prefill(probes)
    found = []
    for length, run in zip(PROBED, probes, strict=True):
        rows = [truth[i] for i in run.requests.filter(pl.col("status") == "ok")["request_id"]]
        own = float(np.median([r["first_token_s"] - r["scheduled_s"] for r in rows]))
        found.append((length, float(model.predict(np.array([length]))[0]), own))
    return found


def client_rows(profile: str) -> dict[str, Any]:
    """Estimates of one mock profile (vLLM bench logs) beside its true parameters."""
    runs: dict[int, Run] = {}
    truth: dict[str, Any] = {}
    steps = []
    for folder in sorted((CLIENTS / "vllm-bench-0.32.0").glob(f"{profile}_c*_r1")):
        run = vllm_run(folder)
        truth, _ = client_truth(folder)
        runs[run.info["max_concurrency"]] = run
    prefill = fit_prefill([runs[1]])
    for streams, run in sorted(runs.items()):
        (window,) = find_windows([run], streams)
        step = split_phases(run, [runs[1]], window).decode_step_s
        # All prompts are 256 tokens and all outputs 64: mean context of a running request.
        true = truth["alpha"] + streams * (truth["beta"] + truth["gamma"] * 288)
        tpot = float(run.requests["tpot_s"].mean())
        steps.append((streams, step.value, true, tpot))
    fit = fit_itl(list(runs.values()), prefill)
    return {
        "steps": steps,
        "alpha": (fit.alpha_s.value, truth["alpha"]),
        "beta": (fit.beta_s.value, truth["beta"] + truth["gamma"] * 288),
        "gamma": (fit.gamma_s_per_token.value, 1 / truth["prefill_rate"]),
        "prefill_s": (
            float(prefill.predict(np.array([256.0]))[0]),
            truth["alpha"] + 256 / truth["prefill_rate"],
        ),
    }


def _log_of(folder: Path) -> Run | None:
    """The run of the request log in a case's folder, by the shipped readers."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name.startswith(("manifest", "truth", "server_metrics")):
            continue
        try:
            runs = read_run(path)
        except GpuverdictError:
            continue
        if runs and runs[0].requests.height:
            return runs[0]
    return None


def every_case() -> list[dict[str, Any]]:
    """Each normal case of each mocked client: means over requests, ours beside the server's."""
    found = []
    probes: dict[tuple[str, str], Run] = {}
    pattern = re.compile(r"(?P<profile>.+)_c(?P<streams>\d+)(_r\d+)?$")
    folders = [
        (match, folder)
        for folder in sorted(CLIENTS.glob("*/*_c*"))
        if (match := pattern.match(folder.name)) and not folder.name.startswith("edge")
    ]
    # One stream first: it is the probe of the other levels.
    for match, folder in sorted(folders, key=lambda item: int(item[0]["streams"])):
        run = _log_of(folder)
        if run is None:
            continue
        streams = int(match["streams"])
        key = (folder.parent.name, match["profile"])
        if streams == 1:
            probes.setdefault(key, run)
        truth, rows = client_truth(folder)
        # Warm-up and validation requests of the tools ask for fewer tokens.
        asked = max(row["output_tokens"] for row in rows)
        rows = [r for r in rows if r["end"] == "length" and r["output_tokens"] == asked]
        (window,) = find_windows([run], streams)
        phases = split_phases(run, probes.get(key), window)
        ok = phases.requests.filter(pl.col("status") == "ok")
        batch = float(np.mean([r["prompt_tokens"] + r["output_tokens"] / 2 for r in rows]))
        found.append(
            {
                "case": f"{folder.parent.name}/{folder.name}",
                "streams": streams,
                "decode": ok["decode_s"].mean(),
                "true_decode": float(np.mean([r["t_last"] - r["t_first"] for r in rows])),
                "step": phases.decode_step_s.value,
                "true_step": truth["alpha"] + streams * (truth["beta"] + truth["gamma"] * batch),
                "excess": ok["scheduling_excess_s"].mean(),
                "wait": float(np.mean([r["t_sched"] - r["t_arrival"] for r in rows])),
            }
        )
    return found


def main() -> int:
    out = sys.stdout.write
    truth = server_rows()
    out("H200 card a: client-side estimates against the server's own times\n")
    out("prompt tokens | prefill ms | server ms\n")
    for length, ours, own in h200_prefill(truth):
        out(f"{length:>13} | {1e3 * ours:>10.2f} | {1e3 * own:>9.2f}\n")
    out("streams repeat | batch error | true wait ms | scheduling excess ms\n")
    for level, streams in enumerate((1, 4, 16, 64)):
        for repeat in range(1, 6):
            row = h200_level(level, repeat, truth)
            out(
                f"{streams:>7} {repeat:>6} | {row['batch_error']:>11.3f} | {row['wait_ms']:>12.2f} "
                f"| {row['excess_ms']:.2f}\n"
            )
    if not CLIENTS.exists():
        out("mock clients: the client logs are not beside the repository\n")
        return 0
    out("\nMock clients (vLLM bench, no GPU): estimate / truth\n")
    for profile in ("a100-sxm-80g", "a100-pcie-80g", "rtx4090-24g", "rtx4090x2-tp2"):
        row = client_rows(profile)
        pairs = {k: v for k, v in row.items() if k != "steps"}
        text = ", ".join(
            f"{k} {1e3 * a:.4f} / {1e3 * b:.4f} ms" if a is not None else f"{k} not identified"
            for k, (a, b) in pairs.items()
        )
        out(f"{profile}: {text}\n")
        for streams, ours, true, tpot in row["steps"]:
            shown = "-" if ours is None else f"{1e3 * ours:.2f}"
            out(f"  {streams:>3} streams: step {shown} / {1e3 * true:.2f} ms")
            out(f", mean TPOT {1e3 * tpot:.2f} ms\n")
    out("\nEvery normal case, shipped readers, means in ms (ours / server)\n")
    for row in every_case():
        pairs = (("decode", "true_decode"), ("step", "true_step"), ("excess", "wait"))
        shown = " | ".join(
            f"{a} {'-' if row[a] is None else f'{1e3 * row[a]:.2f}'} / {1e3 * row[b]:.2f}"
            for a, b in pairs
        )
        out(f"{row['case']:<48} {shown}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
