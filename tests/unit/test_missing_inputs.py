"""Each input removed in turn: what needs it says `not measured`, the rest still answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpuverdict import figures, tables
from gpuverdict.case import Case, open_case
from gpuverdict.tables.health import vitals
from gpuverdict.tables.opening import three_sentences, title
from gpuverdict.tables.rows import fixed_rows

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "h200"
ARMS = ("card-b", "card-b-eager")


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """Open the sample's `eager` comparison with one key taken out of its arms or the campaign."""
    store = tmp_path_factory.mktemp("store")

    def opened(key: str) -> Case:
        folder = tmp_path_factory.mktemp(f"without-{key}")
        for source in SAMPLE.iterdir():
            if source.is_dir() and not source.name.startswith("."):
                (folder / source.name).symlink_to(source)
        content: dict[str, Any] = YAML(typ="safe").load(SAMPLE / "campaign.yaml")
        content["arms"] = {name: content["arms"][name] for name in ARMS}
        content["comparisons"] = [c for c in content["comparisons"] if c["name"] == "eager"]
        content.pop(key, None)
        for arm in content["arms"].values():
            arm.pop(key, None)
        if key == "shape":
            content["models"] = {name: {"name": "m"} for name in content["models"]}
        with (folder / "campaign.yaml").open("w", encoding="utf-8") as out:
            YAML(typ="safe").dump(content, out)
        return open_case(folder / "campaign.yaml", "eager", store=store)

    return opened


def rows_of(case: Case) -> dict[str, Any]:
    return {row.code: row for row in fixed_rows(case)}


def vital(case: Case, name: str) -> Any:
    return next(v for v in vitals(case) if v.name == name)


def test_without_traces(without: Callable[[str], Case]) -> None:
    case = without("traces")
    rows = rows_of(case)
    for code in ("row_energy", "row_memory"):
        assert rows[code].word == "not measured"
        assert (rows[code].baseline, rows[code].candidate) == ("–", "–")
    for name in ("throttled", "SM clock", "longest trace gap"):
        assert vital(case, name).value == "–"
        assert "not measured" in vital(case, name).note
    assert "Not measured" in figures.power_over_time(case).finding
    assert rows["row_tpot"].word == "slower"


def test_without_inventory(without: Callable[[str], Case]) -> None:
    case = without("inventory")
    # The trace still names the device; without both nothing verifies the label.
    assert "H200" in title(case)
    assert "unknown" in tables.record_table(case).markup
    assert rows_of(case)["row_tpot"].word == "slower"


def test_without_gaps_between_tokens(without: Callable[[str], Case]) -> None:
    case = without("inventory")
    told = vital(case, "disturbed runs")
    assert told.value == "not testable"
    for arm in ARMS:
        assert f"{arm}: 20 of 20 runs without gaps" in told.note
    assert {row["disturbed"] for row in case.verdict.sections["health"]} == {None}


def test_without_probes(without: Callable[[str], Case]) -> None:
    case = without("prefill_probe")
    assert "No probe" in figures.unloaded_prefill(case).finding
    assert rows_of(case)["row_tpot"].word == "slower"


def test_without_an_slo(without: Callable[[str], Case]) -> None:
    case = without("slo")
    assert rows_of(case)["row_capacity"].word == "not measured"
    assert "none is stated" in three_sentences(case)[2]
    assert "No SLO" in figures.slo_margins(case).finding


def test_without_the_shape_of_the_model(without: Callable[[str], Case]) -> None:
    case = without("shape")
    assert "Not computed" in figures.step_bounds(case).finding
    assert rows_of(case)["row_tpot"].word == "slower"
    assert "<section" in tables.capacity_table(case).markup
