"""What the library may not contain: ways to run what a log, a campaign or a store says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

LIB = Path(__file__).resolve().parents[2] / "lib" / "gpuverdict"
MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "subprocess", "pty", "code",
           "codeop", "runpy", "ctypes", "yaml"}  # fmt: skip
CALLS = {"eval", "exec", "compile", "__import__", "breakpoint"}
ATTRIBUTES = {("os", "system"), ("os", "popen"), ("os", "execv"), ("os", "spawnv"),
              ("pd", "read_pickle"), ("pandas", "read_pickle"), ("joblib", "load"),
              ("pd", "eval"), ("np", "load")}  # fmt: skip


def offences(source: str, name: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module] if (node.module or "").split(".")[0] in MODULES else []
        elif isinstance(node, ast.Call):
            target = node.func
            if isinstance(target, ast.Name) and target.id in CALLS:
                found.append(target.id)
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and (
                (target.value.id, target.attr) in ATTRIBUTES
            ):  # fmt: skip
                found.append(f"{target.value.id}.{target.attr}")
            found += [
                "shell" for k in node.keywords
                if k.arg == "shell" or (k.arg == "allow_pickle" and ast.unparse(k.value) != "False")
            ]  # fmt: skip
    return [f"{name}: {what}" for what in found]


def test_nothing_in_the_library_runs_what_it_reads() -> None:
    modules = sorted(LIB.rglob("*.py"))
    assert len(modules) > 100
    assert [x for path in modules for x in offences(path.read_text("utf-8"), path.name)] == []


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from pickle import loads", "eval('1')", "import os\nos.system('x')",
     "run(x, shell=True)", "import pandas as pd\npd.read_pickle('x')", "import subprocess"],
)  # fmt: skip
def test_the_search_finds_each(source: str) -> None:
    assert offences(source, "x.py")


def test_a_report_runs_the_package_s_own_notebook_only(tmp_path: Path) -> None:
    """A notebook of the same name beside the campaign, or in the working folder, is not run."""
    from gpuverdict.report.notebooks import notebook_folder

    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "report.ipynb").write_text("{}")
    assert notebook_folder() == LIB.parents[1] / "notebooks"
    for source in (LIB / "report").glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "run_notebook":
                assert ast.unparse(node.args[0]) == "notebook_folder() / 'report.ipynb'"
