"""A bad notebook parameter is refused before a kernel starts."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from gpuverdict.errors import ParameterError
from gpuverdict.report import check_parameters, declared_parameters


def notebook(tmp_path: Path, source: str, tags: tuple[str, ...] = ("parameters",)) -> Path:
    path = tmp_path / "some.ipynb"
    cell = {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": source,
            "outputs": [], "execution_count": None}  # fmt: skip
    path.write_text(
        json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    return path


SOURCE = """
campaign: str = "a.yaml"  # the campaign
limit: None | float = None
runs: list[int] = [1]
only: "str | None" = None
flag: bool = True
free = 3
"""


def test_every_declared_name_is_known_and_fits(tmp_path: Path) -> None:
    path = notebook(tmp_path, SOURCE)
    assert list(declared_parameters(path)) == ["campaign", "limit", "runs", "only", "flag", "free"]
    given = {"campaign": "b.yaml", "limit": 2, "runs": [1, 2], "flag": False, "free": "x"}
    assert check_parameters(path, given) == given
    assert check_parameters(path, {"limit": None}) == {"limit": None}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"campain": "x"}, ["campain", "unknown", "campaign"]),
        ({"campaign": 3}, ["campaign", "3", "str"]),
        ({"limit": "fast"}, ["limit", "None | float"]),
        ({"limit": True}, ["limit", "True"]),
        ({"limit": math.nan}, ["limit", "nan", "finite"]),
        ({"limit": math.inf}, ["limit", "inf"]),
        ({"runs": [1, math.nan]}, ["runs", "nan"]),
        ({"runs": 3}, ["runs", "list[int]"]),
        ({"flag": 1}, ["flag", "bool"]),
    ],
)
def test_a_bad_parameter_is_one_line_that_names_it(
    tmp_path: Path, given: dict[str, object], words: list[str]
) -> None:
    path = notebook(tmp_path, SOURCE)
    with pytest.raises(ParameterError) as caught:
        check_parameters(path, given)
    line = str(caught.value)
    assert "\n" not in line
    for word in words:
        assert word in line


def test_no_tagged_cell_is_an_error_since_nothing_would_be_overridden(tmp_path: Path) -> None:
    path = notebook(tmp_path, "a: int = 1", tags=())
    with pytest.raises(ParameterError, match="0 cells tagged"):
        check_parameters(path, {"a": 2})


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"cells": 3}'])
def test_a_file_that_is_no_notebook(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text(text)
    with pytest.raises(ParameterError, match="no notebook"):
        declared_parameters(path)


def test_a_syntax_error_in_the_cell(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="syntax error"):
        declared_parameters(notebook(tmp_path, "a: int = "))
