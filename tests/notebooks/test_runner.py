"""The notebook runner on the notebook cases: kernels, failures, parameters."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbformat
import pytest

from gpuverdict.errors import ParameterError
from gpuverdict.report import NotebookError, check_parameters, declared_parameters, run_notebook

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "cases"
needs_cases = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not here")


def case(prefix: str) -> Path:
    return next(SHARED.glob(f"{prefix}-*"))


def text_outputs(path: Path) -> str:
    nb = nbformat.read(path, as_version=4)
    out = ""
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            out += output.get("text", "") or output.get("data", {}).get("text/plain", "")
    return out


@needs_cases
def test_case_51_union_typed_parameters_are_known(tmp_path: Path) -> None:
    template = case("51") / "template.ipynb"
    assert sorted(declared_parameters(template)) == ["gpu_label", "runs", "slo_ttft_ms"]
    out = run_notebook(template, tmp_path / "out.ipynb", {"gpu_label": "gpu-b"})
    assert "gpu-b" in text_outputs(out)
    with pytest.raises(ParameterError, match="gpu_lable"):
        run_notebook(template, tmp_path / "no.ipynb", {"gpu_lable": "gpu-b"})
    assert not (tmp_path / "no.ipynb").exists()


@needs_cases
def test_case_52_nan_is_refused_by_name() -> None:
    template = case("52") / "template.ipynb"
    for name in ("slo_ttft_ms", "max_rate"):
        with pytest.raises(ParameterError, match=name):
            check_parameters(template, {name: float("nan")})
        with pytest.raises(ParameterError, match=name):
            check_parameters(template, {name: float("-inf")})


@needs_cases
@pytest.mark.parametrize("name", ["other_kernel.ipynb", "no_kernelspec.ipynb"])
def test_case_53_one_fixed_kernel(tmp_path: Path, name: str) -> None:
    out = run_notebook(case("53") / name, tmp_path / "out.ipynb")
    assert "3" in text_outputs(out)


@needs_cases
def test_case_56_a_failing_cell_keeps_what_ran(tmp_path: Path) -> None:
    with pytest.raises(NotebookError) as caught:
        run_notebook(case("56") / "template.ipynb", tmp_path / "out.ipynb")
    assert "cell 2" in str(caught.value)
    assert "ZeroDivisionError" in str(caught.value)
    nb = json.loads((tmp_path / "out.ipynb").read_text(encoding="utf-8"))
    code = [c for c in nb["cells"] if c["cell_type"] == "code"
            and "papermill-error-cell-tag" not in c["metadata"].get("tags", [])]  # fmt: skip
    assert sum(bool(c["outputs"]) for c in code) == 3
    assert not code[3]["outputs"]


@needs_cases
def test_case_65_a_windows_path_arrives_as_it_is(tmp_path: Path) -> None:
    value = json.loads((case("65") / "expected.json").read_text())["right"]["value"]
    template = case("65") / "template.ipynb"
    (name,) = [k for k in declared_parameters(template)][:1]
    out = run_notebook(template, tmp_path / "out.ipynb", {name: value})
    nb = nbformat.read(out, as_version=4)
    injected = next(c for c in nb.cells if "injected-parameters" in c.metadata.get("tags", []))
    space: dict[str, str] = {}
    exec(injected.source, space)
    assert space[name] == value
    assert len(space[name]) == 24


def test_a_kernel_that_dies_is_an_error_and_the_notebook_is_kept(tmp_path: Path) -> None:
    nb = nbformat.v4.new_notebook()
    nb.cells = [nbformat.v4.new_code_cell("print(1)"),
                nbformat.v4.new_code_cell("import os; os._exit(7)")]  # fmt: skip
    nbformat.write(nb, tmp_path / "dies.ipynb")
    with pytest.raises(NotebookError):
        run_notebook(tmp_path / "dies.ipynb", tmp_path / "out.ipynb")
    assert shutil.which("python3")
    assert "1" in text_outputs(tmp_path / "out.ipynb")
