"""nbval passes on what is stored, twice, and fails for a number that moved."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
RULES = Path(__file__).with_name("sanitise.cfg")
CASES = ROOT.parent / "shared" / "cases"


def nbval(*notebooks: Path, mode: str = "--nbval-lax") -> subprocess.CompletedProcess[str]:
    """Compare notebooks with their stored outputs, as a maintainer would at a prompt."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", mode,
        "--nbval-current-env", "--nbval-sanitize-with", str(RULES),
        "-o", "addopts=", "-o", "filterwarnings=", *map(str, notebooks),
    ]  # fmt: skip
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=600, check=False
    )


@pytest.fixture
def beside_data(tmp_path: Path) -> Path:
    """Make a folder that lies beside the sample data as `notebooks/` does."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    (tmp_path / "notebooks").mkdir()
    return tmp_path / "notebooks"


def test_every_notebook_passes_in_any_order() -> None:
    order = random.Random(7).sample(NOTEBOOKS, len(NOTEBOOKS))
    result = nbval(*order)
    assert result.returncode == 0, result.stdout[-3000:]


def test_a_changed_number_fails_in_its_cell(beside_data: Path) -> None:
    path = Path(shutil.copy(ROOT / "notebooks" / "03_significance.ipynb", beside_data))
    notebook = json.loads(path.read_text("utf-8"))
    (checked,) = [c for c in notebook["cells"] if "keep_output" in c["metadata"].get("tags", [])]
    (output,) = checked["outputs"]
    text = "".join(output["text"])
    found = re.search(r"tpot_s p50: (\d\.\d+)", text)
    assert found is not None
    moved = f"{float(found.group(1)) * 1.01:.3f}"
    output["text"] = text.replace(found.group(1), moved)
    path.write_text(json.dumps(notebook), "utf-8")
    result = nbval(path)
    assert result.returncode == 1
    assert re.search(r"\b1 failed", result.stdout), result.stdout[-2000:]
    assert moved in result.stdout


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
def test_case_57_and_58_outputs_that_differ_from_run_to_run() -> None:
    (case_57,) = CASES.glob("57-*")
    (case_58,) = CASES.glob("58-*")
    for number in range(2):
        assert nbval(case_57 / "report_ok.ipynb", mode="--nbval").returncode == 0, number
        assert nbval(case_58 / "report.ipynb", mode="--nbval").returncode == 0, number
    changed = nbval(case_57 / "report_changed.ipynb", mode="--nbval")
    assert changed.returncode == 1
    assert re.search(r"\b1 failed, 3 passed", changed.stdout), changed.stdout[-2000:]
    assert "43.5" in changed.stdout
