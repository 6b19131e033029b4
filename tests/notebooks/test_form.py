"""Notebooks are thin: one question, typed parameters, few cells, one check cell with its output."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_CODE_CELLS = 12
MOST_CODE_LINES = 60


def load(path: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{path.name} holds {constant}: no strict JSON")

    content: dict[str, Any] = json.loads(path.read_text("utf-8"), parse_constant=refuse)
    return content


def tags(cell: dict[str, Any]) -> set[str]:
    return set(cell["metadata"].get("tags", []))


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_there_are_notebooks() -> None:
    assert {"00_campaign", "03_significance", "report"} <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_form(path: Path) -> None:
    notebook = load(path)
    cells = code_cells(notebook)
    first = notebook["cells"][0]
    assert first["cell_type"] == "markdown"
    title = source(first).splitlines()[0]
    assert title.startswith("# ")
    assert title.endswith("?")
    assert len(cells) <= MOST_CODE_CELLS
    lines = [x for cell in cells for x in source(cell).splitlines() if x.strip()]
    assert len(lines) <= MOST_CODE_LINES
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_cells_call_the_library_and_define_nothing(path: Path) -> None:
    for cell in code_cells(load(path)):
        tree = ast.parse(source(cell))
        for node in ast.walk(tree):
            assert not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda), path.name
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [a.name for a in node.names] + [getattr(node, "module", "") or ""]
                assert not {"os", "sys", "pathlib"} & set(names), path.name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_parameters_are_typed_and_commented(path: Path) -> None:
    tagged = [c for c in code_cells(load(path)) if "parameters" in tags(c)]
    assert len(tagged) == 1
    for line in source(tagged[0]).splitlines():
        assert "  # " in line, line
    for node in ast.parse(source(tagged[0])).body:
        assert isinstance(node, ast.AnnAssign)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_only_the_check_cell_keeps_its_output(path: Path) -> None:
    checked = 0
    for cell in code_cells(load(path)):
        if {"keep_output", "nbval-check-output"} <= tags(cell):
            checked += 1
            text = "".join(line for o in cell["outputs"] for line in o["text"])
            assert any(character.isdigit() for character in text)
            assert {o["output_type"] for o in cell["outputs"]} == {"stream"}
            assert str(Path.home()) not in text
        else:
            assert cell["outputs"] == []
        # nbval compares nothing in a cell that was never run.
        assert cell["execution_count"] is not None
    assert checked == 1
