"""Time the suite around the readers: verdicts, start-up, reports, batches, large campaigns.

Ratios are formed within one run of this script, since machines differ; nothing is asserted.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def timed(task: Callable[[], object], repeats: int = 1) -> float:
    """Best wall time of some runs, seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def command(*words: object) -> Callable[[], object]:
    return lambda: subprocess.run(
        [str(w) for w in words], check=True, capture_output=True, cwd=ROOT
    )


def row(what: str, reached: str, goal: str) -> None:
    print(f"| {what} | {reached} | {goal} |", flush=True)


def verdict_speed() -> float:
    """36 cells x 3 metrics x 5 runs, families included."""
    from gpuverdict.stats import adjust, compare_arms

    draws = np.random.default_rng(3).normal(0, 0.01, (3, 36, 2, 5))

    def decide() -> None:
        for metric, cells in zip(("tpot_s", "ttft_s", "output_tokens_per_s"), draws, strict=True):
            adjust([compare_arms(np.exp(a), np.exp(b), metric=metric, n_requests_min=500)
                    for a, b in cells])  # fmt: skip

    return timed(decide, 3)


def import_baseline(folder: Path) -> Path:
    """A notebook that only imports what a report needs."""
    nb = nbformat.v4.new_notebook()
    stack = "pandas, polars, seaborn, statsmodels.api, scipy.stats, matplotlib.pyplot"
    nb.cells = [nbformat.v4.new_code_cell(f"import {stack}")]
    path = folder / "imports.ipynb"
    nbformat.write(nb, path)
    return path


def many_comparisons(folder: Path, count: int) -> Path:
    """A campaign of `count` comparisons over the two arms of the sample with their own starts."""
    source = ROOT / "data" / "h200"
    shutil.copytree(source / "starts", folder / "starts")
    text = (source / "campaign.yaml").read_text().split("arms:")[0]
    arms = (source / "campaign.yaml").read_text().split("  layers32:")[1].split("comparisons:")[0]
    lines = "\n".join(
        f"  - {{name: pair{i:02d}, baseline: layers32, candidate: layers34, treatment: [layers]}}"
        for i in range(count)
    )
    (folder / "campaign.yaml").write_text(f"{text}arms:\n  layers32:{arms}comparisons:\n{lines}\n")
    return folder / "campaign.yaml"


def large_campaign(folder: Path, files: int) -> Path:
    """vLLM logs of 20,000 requests x 199 gaps each, one a repeat, alternating over two arms."""
    from tests.benchmarks.bench_read import vllm_log

    first = folder / "a_c64_r1.json"
    vllm_log(first)
    for i in range(1, files):
        arm, repeat = "ab"[i % 2], i // 2 + 1
        record = json.loads(first.read_bytes())
        record["ttfts"][0] += i * 1e-6  # other bytes: the same content is read once
        (folder / f"{arm}_c64_r{repeat}.json").write_text(json.dumps(record))
        del record
    arm_text = "gpu: H200 SXM, gpus: 1, precision: bf16, server_starts: each"
    (folder / "campaign.yaml").write_text(
        "campaign: large\nmodel: {name: m}\nworkload: {load: closed}\narms:\n"
        f"  a: {{{arm_text}, files: 'a_c{{level}}_r{{repeat}}.json'}}\n"
        f"  b: {{{arm_text}, files: 'b_c{{level}}_r{{repeat}}.json'}}\n"
        "comparisons: [{name: ab, baseline: a, candidate: b}]\n"
    )
    return folder / "campaign.yaml"


def large(files: int) -> tuple[float, float]:
    """Ingest and summarise in a process of its own: (seconds, peak MiB)."""
    with tempfile.TemporaryDirectory() as place:
        path = large_campaign(Path(place), files)
        start = time.perf_counter()
        code = (
            "import resource,sys\n"
            "from gpuverdict.case import open_campaign\n"
            "open_campaign(sys.argv[1])\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True,
            cwd=ROOT,
        )  # fmt: skip
        return time.perf_counter() - start, int(done.stdout) / 1024


def main(wide: bool = False) -> None:
    print("| what | reached | at most |\n|---|---|---|")
    row("all verdicts of 36 cells x 3 metrics x 5 runs", f"{verdict_speed():.2f} s", "1 s")
    row("`gpuverdict --help`", f"{timed(command(BIN / 'gpuverdict', '--help'), 3):.2f} s", "0.5 s")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path = many_comparisons(folder, 12)
        report = (BIN / "gpuverdict", "report", path)
        command(*report, "--out", folder / "warm", "--only", "pair00")()
        shutil.rmtree(folder / "warm")
        nb = import_baseline(folder)
        bare = timed(
            command(
                sys.executable,
                "-m",
                "papermill",
                "-k",
                "python3",
                "-l",
                "python",
                nb,
                folder / "o.ipynb",
            ),
            2,
        )
        one = timed(command(*report, "--out", folder / "one", "--only", "pair00"))
        row("one report, warm store / papermill on imports alone",
            f"{one:.1f} s / {bare:.1f} s = {one / bare:.1f}x", "2x")  # fmt: skip
        again = timed(command(*report, "--out", folder / "one", "--only", "pair00"), 3)
        row("a report whose inputs did not change", f"{again:.2f} s", "1 s")
        single = timed(command(*report, "--out", folder / "j1"))
        double = timed(command(*report, "--out", folder / "j2", "--jobs", 2))
        gain = f"{single:.0f} s / {double:.0f} s = {single / double:.2f}x"
        row("12 reports, 1 job / 2 jobs", gain, "at least 1.7x")
    sizes = (10, 50) if wide else (2, 4)
    spent = {n: large(n) for n in sizes}
    few, many = sizes
    slope = (spent[many][0] / many) / (spent[few][0] / few)
    row(
        f"{many} x 20,000 requests x 199 gaps: peak memory", f"{spent[many][1]:.0f} MiB", "2048 MiB"
    )
    row(f"time a file, {many} files / {few} files", f"{slope:.2f}x", "within 15 %")
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\n(this process: {own:.0f} MiB)")


if __name__ == "__main__":
    main("--wide" in sys.argv)
