"""Run `gpuverdict record` beside `nvidia-smi --query-gpu -lms` and compare what they say.

    python tests/benchmarks/record_beside_smi.py [--seconds 60] [--interval-ms 100] [--gpu 0]

A load (matrix products with PyTorch, where it is installed) alternates between busy and idle, so
that edges, averages and the energy counter are exercised. Needs an NVIDIA GPU and driver; writes
the traces and `comparison.json` into `--out` (default: a temporary folder).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parents[2]
QUERY = (
    "timestamp,index,uuid,name,pstate,utilization.gpu,memory.used,memory.total,"
    "power.draw.average,power.draw.instant,enforced.power.limit,clocks.sm,clocks.mem,"
    "clocks_event_reasons.active"
)
LOAD = """
import time, torch
size, end = 8192, time.monotonic() + {seconds}
a = torch.randn(size, size, device="cuda:{gpu}", dtype=torch.bfloat16)
while time.monotonic() < end:
    stop = time.monotonic() + 8.0
    while time.monotonic() < min(stop, end):
        for _ in range(10):
            a @ a
        torch.cuda.synchronize()
    time.sleep(max(0.0, min(4.0, end - time.monotonic())))
"""


def _environment() -> dict[str, str]:
    paths = [str(ROOT / "lib"), os.environ.get("PYTHONPATH", "")]
    return dict(os.environ) | {"PYTHONPATH": os.pathsep.join(p for p in paths if p), "TZ": "UTC"}


def _cpu_s(pid: int) -> float | None:
    """CPU seconds a process has used so far (Linux)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _start_load(seconds: float, gpu: int) -> subprocess.Popen[bytes] | None:
    probe = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, check=False)
    if probe.returncode:
        return None
    code = LOAD.format(seconds=seconds, gpu=gpu)
    return subprocess.Popen([sys.executable, "-c", code])


def _run(out: Path, seconds: float, interval_ms: int, gpu: int) -> dict[str, Any]:
    smi_file, own_file = out / "nvidia-smi.csv", out / "record.csv"
    with smi_file.open("wb") as sink:
        smi = subprocess.Popen(
            ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv", "-i", str(gpu),
             "-lms", str(interval_ms)],
            stdout=sink, env=_environment(),
        )  # fmt: skip
    code = (
        "import sys; from gpuverdict.record import record; "
        f"print(record(sys.argv[1], interval_ms={interval_ms}, gpu={gpu}))"
    )
    recorder = subprocess.Popen([sys.executable, "-c", code, str(own_file)], env=_environment())
    time.sleep(3.0)
    load = _start_load(max(1.0, seconds - 8.0), gpu)
    before = {name: _cpu_s(p.pid) for name, p in (("recorder", recorder), ("nvidia-smi", smi))}
    began = time.monotonic()
    time.sleep(seconds)
    lasted = time.monotonic() - began
    after = {name: _cpu_s(p.pid) for name, p in (("recorder", recorder), ("nvidia-smi", smi))}
    # SIGTERM is what a job scheduler sends: the recorder's file must survive it whole.
    for process, number in ((recorder, signal.SIGTERM), (smi, signal.SIGINT)):
        process.send_signal(number)
        process.wait(timeout=30)
    if load is not None:
        load.wait(timeout=60)
    share = {
        name: None if before[name] is None or after[name] is None
        else (after[name] - before[name]) / lasted
        for name in before
    }  # fmt: skip
    return {
        "cpu_share": share, "load": "torch" if load is not None else "none",
        "recorder_exit": recorder.returncode,
    }  # fmt: skip


def _spacing(samples: pl.DataFrame) -> dict[str, float]:
    steps = 1e3 * np.diff(samples["time_epoch_s"].drop_nulls().to_numpy())
    return {
        "median_ms": float(np.median(steps)),
        "p99_ms": float(np.quantile(steps, 0.99)),
        "max_ms": float(steps.max()),
        "n": len(steps) + 1,
    }


def _compare(out: Path) -> dict[str, Any]:
    sys.path.insert(0, str(ROOT / "lib"))
    from gpuverdict.energy import trapezoid, window_energy
    from gpuverdict.recognise import read_trace

    smi = read_trace(out / "nvidia-smi.csv", time_zone="UTC")
    own = read_trace(out / "record.csv")
    start = max(t.info["start_epoch_s"] for t in (smi, own)) + 2.0
    end = min(t.info["end_epoch_s"] for t in (smi, own)) - 2.0
    told: dict[str, Any] = {"window_s": end - start}
    for name, trace in (("nvidia-smi", smi), ("recorder", own)):
        samples = trace.samples
        told[name] = {
            "spacing": _spacing(samples),
            "cautions": [c.code for c in trace.cautions],
            "last_byte_is_line_end": (out / trace.info["source_name"]).read_bytes()[-1:] == b"\n",
            "energy_j": window_energy(trace, start, end).value,
        }
        time_s = samples["time_epoch_s"].to_numpy()
        for column in ("power_average_w", "power_instant_w"):
            if samples[column].null_count() == 0:
                joules = trapezoid(time_s, samples[column].to_numpy(), start, end)
                told[name][column.replace("_w", "_mean_w")] = joules / (end - start)
    counter = own.samples.drop_nulls("energy_j")
    if counter.height:
        at = np.interp(
            [start, end], counter["time_epoch_s"].to_numpy(), counter["energy_j"].to_numpy()
        )
        told["counter_j"] = float(at[1] - at[0])
        length = end - start
        for name in ("nvidia-smi", "recorder"):
            for column in ("power_average_mean_w", "power_instant_mean_w"):
                if column in told[name]:
                    ratio = told[name][column] * length / told["counter_j"]
                    told[name][column.replace("_mean_w", "_over_counter")] = ratio
    # How often the readings really change: the refresh of the sensor.
    steps = own.samples.select(
        (pl.col("power_instant_w").diff() != 0).sum().alias("instant"),
        (pl.col("energy_j").diff() != 0).sum().alias("counter"),
    ).row(0, named=True)
    told["refresh_ms"] = {k: 1e3 * own.info["duration_s"] / v if v else None
                          for k, v in steps.items()}  # fmt: skip
    common = np.arange(start, end, 0.1)
    pair = [
        np.interp(common, *(t.samples[c].to_numpy() for c in ("time_epoch_s", "power_instant_w")))
        for t in (smi, own)
        if t.samples["power_instant_w"].null_count() == 0
    ]
    if len(pair) == 2:
        told["instant_rms_difference_w"] = float(np.sqrt(np.mean((pair[0] - pair[1]) ** 2)))
    return told


def main(arguments: list[str] | None = None) -> int:
    """Record, compare, print; the exit status is 1 where the two disagree by more than 2 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--interval-ms", type=int, default=100)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(arguments)
    if shutil.which("nvidia-smi") is None:
        print("no nvidia-smi on this host: nothing to compare")
        return 0
    out = chosen.out or Path(tempfile.mkdtemp(prefix="record-beside-smi-"))
    out.mkdir(parents=True, exist_ok=True)
    told = _run(out, chosen.seconds, chosen.interval_ms, chosen.gpu) | _compare(out)
    (out / "comparison.json").write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
    print(json.dumps(told, indent=1, sort_keys=True))
    means = [told[name].get("power_instant_mean_w") for name in ("nvidia-smi", "recorder")]
    if None in means:
        return 0
    return int(abs(means[0] / means[1] - 1.0) > 0.02)


if __name__ == "__main__":
    sys.exit(main())
