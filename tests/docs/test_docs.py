"""Every command and every Python block of the README and the docs runs."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from gpuverdict import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)


COMMANDS = [
    (page.name, line)
    for page in PAGES
    for block in blocks(page, "bash")
    for line in block.splitlines()
    if line.strip()
]


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample in a folder of its own, so that no command writes into the checkout."""
    shutil.copytree(ROOT / "data" / "h200", tmp_path / "data" / "h200",
                    ignore=shutil.ignore_patterns(".gpuverdict"))  # fmt: skip
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_a_command_runs(
    page: str, line: str, copy: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    words = shlex.split(line)
    assert words[0] == "gpuverdict", f"{page} holds another command than gpuverdict: {line}"
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code in (0, None), capsys.readouterr().err
    assert capsys.readouterr().out.strip()


def test_there_are_commands_to_run() -> None:
    assert len(COMMANDS) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_blocks_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_point_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_every_make_target_the_readme_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`make ([a-z-]+)", (ROOT / "README.md").read_text())):
        assert re.search(rf"^{target}:", makefile, re.M), target
