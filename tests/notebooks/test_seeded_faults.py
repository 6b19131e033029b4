"""Five faults of the kind that happen, seeded into a copy of the library: nbval must see each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULES = Path(__file__).with_name("sanitise.cfg")

# name -> (module, what stands there, the fault, the notebook whose check cell must fail)
FAULTS = {
    "TPOT over n": (
        "ingest/build.py", "decode / (tokens - 1)", "decode / tokens", "03_significance",
    ),
    "p95 for p50": (
        "summary/distributions.py", '("p50", 0.5)', '("p50", 0.95)', "03_significance",
    ),
    "cut off by one request": (
        "steady/window.py", "share) + 1e-9)", "share) + 1 + 1e-9)", "03_significance",
    ),
    "mW for W": (
        "energy/window.py", "float(np.trapezoid(watts, times))",
        "float(np.trapezoid(watts, times)) / 1000", "04_power_memory",
    ),
    "arms swapped": (
        "verdict/judge.py", "names = (spec.baseline, str(spec.candidate))",
        "names = (str(spec.candidate), spec.baseline)", "03_significance",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy notebooks, data and library: a seeded library must not fill the sample's own store."""
    folder = tmp_path_factory.mktemp("seeded")
    for name in ("notebooks", "data", "lib"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(".gpuverdict"))
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAULTS)
def test_a_seeded_fault_fails_in_the_check_cell(name: str, workplace: Path) -> None:
    module, right, wrong, notebook = FAULTS[name]
    path = workplace / "lib" / "gpuverdict" / module
    source = path.read_text("utf-8")
    assert source.count(right) >= 1, f"{module} no longer holds {right!r}"
    path.write_text(source.replace(right, wrong), "utf-8")
    try:
        command = [
            sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--nbval-lax",
            "--nbval-current-env", "--nbval-sanitize-with", str(RULES), "-o", "addopts=",
            "-o", "filterwarnings=", f"notebooks/{notebook}.ipynb",
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(workplace / "lib")}
        done = subprocess.run(command, capture_output=True, text=True, cwd=workplace, timeout=600,
                              env=environment, check=False)  # fmt: skip
    finally:
        path.write_text(source, "utf-8")
    failed = re.findall(r"Cell (\d+) FAILED", done.stdout)
    passed = re.findall(r"Cell (\d+) PASSED", done.stdout)
    # The last cell of the notebook is the check cell; every cell before it still runs.
    assert failed == [str(len(passed))], done.stdout[-3000:]
