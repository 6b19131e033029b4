"""Every notebook runs with its defaults' types and with another campaign, and stays strict JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
import pytest
from tests.campaigns import arm, write_arm, write_campaign
from tests.messy.build import CLIENTS, build

from gpuverdict.errors import ParameterError
from gpuverdict.report import declared_parameters, run_notebook

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MADE_UP = "Mock logs of a small loop (not GPU measurements)"


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Another campaign, without traces, probes or inventories, and one of its comparisons.

    Logs of real clients against a mock server where they are at hand, else a made-up loop.
    """
    folder = tmp_path_factory.mktemp("second")
    if CLIENTS.is_dir():
        return build(folder), "4090 vs A100 PCIe"
    for name, effect in (("a", 0.0), ("b", 0.1)):
        write_arm(folder, name, levels=(2, 4), repeats=3, effect=effect)
    path = write_campaign(
        folder, {"a": arm("a"), "b": arm("b")}, title=MADE_UP, slo={"tpot_s": {"p50": 0.03}}
    )
    return path, "ab"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_runs_with_a_second_campaign_in_chinese(
    path: Path, second: tuple[Path, str], tmp_path: Path
) -> None:
    campaign, comparison = second
    declared = declared_parameters(path)
    given = {"campaign": str(campaign), "comparison": comparison, "lang": "zh"}
    given = {name: value for name, value in given.items() if name in declared}
    if path.stem == "06_published_claims":
        given["table"] = str(FOLDER.parent / "data" / "published_tables.csv")
    out = run_notebook(path, tmp_path / "out.ipynb", given)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(out.read_text("utf-8"), parse_constant=refuse)
    notebook = nbformat.read(out, as_version=4)
    kinds = {o.output_type for cell in notebook.cells for o in cell.get("outputs", [])}
    assert "error" not in kinds
    warned = [
        o.text for cell in notebook.cells for o in cell.get("outputs", [])
        if o.output_type == "stream" and o.name == "stderr"
    ]  # fmt: skip
    assert warned == []
    if path.stem in ("00_campaign", "report"):
        shown = json.dumps(notebook, ensure_ascii=False)
        assert re.search(r"[Mm]ock .*not GPU measurements", shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_bad_parameter_is_refused_before_a_kernel_starts(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="lnag"):
        run_notebook(path, tmp_path / "no.ipynb", {"lnag": "zh"})
    with pytest.raises(ParameterError, match="lang"):
        run_notebook(path, tmp_path / "no.ipynb", {"lang": 3})
    assert not (tmp_path / "no.ipynb").exists()
