"""Every notebook runs through on arms that gave nothing: an answer is missing, never a traceback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.campaigns import arm, write_arm, write_campaign

from gpuverdict.errors import CampaignError

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
# `06_published_claims` reads no campaign.
NOTEBOOKS = sorted(p.stem for p in FOLDER.glob("*.ipynb") if not p.stem.startswith("06"))


def run_through(name: str, **parameters: Any) -> None:
    """Run the cells of a notebook here, with these parameters in place of its own."""
    cells = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))["cells"]
    shown: dict[str, Any] = {"display": lambda *things: [_shown(thing) for thing in things]}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        exec(compile(source, f"{name}.ipynb", "exec"), shown)
        if "parameters" in cell["metadata"].get("tags", []):
            shown.update({k: v for k, v in parameters.items() if k in shown})


def _shown(thing: Any) -> str:
    return str(getattr(thing, "_repr_html_", thing.__str__)())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("empty")
    write_arm(place, "a", levels=(2, 4), n=40)
    write_arm(place, "b", levels=(8,), n=40)
    return place


@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.parametrize("lost", [("a",), ("b",), ("a", "b"), ()], ids=str)
def test_arms_without_logs_or_without_a_common_level(
    folder: Path, tmp_path: Path, name: str, lost: tuple[str, ...]
) -> None:
    for kept in ("a", "b"):
        if kept not in lost:
            shutil.copytree(folder / kept, tmp_path / kept)
    campaign = write_campaign(
        tmp_path, {"a": arm("a"), "b": arm("b")}, slo={"tpot_s": {"p50": 0.02}}
    )
    if name == "explore" and lost == ("a", "b"):
        with pytest.raises(CampaignError, match="no run that could be read"):
            run_through(name, campaign=str(campaign))
        return
    run_through(name, campaign=str(campaign), comparison="ab", arm="a", store=None)
