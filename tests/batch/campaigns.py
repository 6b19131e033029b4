"""Campaigns of many comparisons over two small arms, for the runner."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.campaigns import arm, write_arm, write_campaign

ROOT = Path(__file__).resolve().parents[2]


def many(folder: Path, count: int) -> Path:
    """Write a campaign of `count` comparisons: every arm is the first one, a little slower."""
    folder.mkdir(parents=True, exist_ok=True)
    write_arm(folder, "a", n=40)
    write_arm(folder, "b", n=40, effect=0.2)
    arms = {"a": arm("a"), "b": arm("b")}
    comparisons = [
        {"name": f"pair {i:02d}", "baseline": "a", "candidate": "b"} for i in range(count)
    ]
    return write_campaign(folder, arms, comparisons=comparisons, slo={"tpot_s": {"p50": 0.02}})


def environment() -> dict[str, str]:
    """The environment of a child process that runs this checkout."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "lib"), "PYTHONUTF8": "1"}


def start(*words: object, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Start `gpuverdict` with these words."""
    return subprocess.Popen(
        [sys.executable, "-m", "gpuverdict.cli", *map(str, words)], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=environment(), cwd=cwd,
    )  # fmt: skip


def run(*words: object, timeout: float = 600, cwd: Path | None = None) -> tuple[int, str, str]:
    """Run `gpuverdict` to its end: (exit code, stdout, stderr)."""
    child = start(*words, cwd=cwd)
    out, err = child.communicate(timeout=timeout)
    return child.returncode, out, err
