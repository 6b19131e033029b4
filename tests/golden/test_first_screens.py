"""The first screens of the sample, word for word: what changes is seen in review."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuverdict import tables
from gpuverdict.case import Case, open_case

HERE = Path(__file__).resolve().parent
CAMPAIGN = HERE.parents[1] / "data" / "h200" / "campaign.yaml"


@pytest.fixture(scope="module", params=["cards", "eager", "layers"])
def case(request: pytest.FixtureRequest) -> Case:
    return open_case(CAMPAIGN, request.param)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_first_screen_reads_as_before(case: Case, lang: str) -> None:
    stored = (HERE / f"{case.spec.name}.{lang}.txt").read_text("utf-8")
    assert str(tables.first_screen(case, lang=lang)) + "\n" == stored
