"""What a person may hand to the public functions by mistake is refused by name, in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import gpuverdict as gv

TRACE = gv.Trace(samples=pl.DataFrame())

MISTAKES: dict[str, Callable[[], Any]] = {
    "a number for a sequence": lambda: gv.compare_arms(5, [1.0], metric="tpot_s"),
    "a text among the runs": lambda: gv.compare_arms([1.0, "a"], [1.0], metric="tpot_s"),
    "no such metric": lambda: gv.compare_arms([1.0], [1.0], metric="speed"),
    "no such statistic": lambda: gv.compare_arms([1.0], [1.0], metric="tpot_s", statistic="median"),
    "texts for batches": lambda: gv.fit_curve(["x", 2], [0.1, 0.2], ["a", "a"]),
    "nothing for batches": lambda: gv.fit_curve(None, [0.1], ["a"]),
    "texts to compare at": lambda: gv.compare_curves(
        *[gv.fit_curve([1, 8, 16], [0.1, 0.2, 0.3], ["a"] * 3)] * 2, at=["x"]
    ),
    "a text for a time": lambda: gv.window_energy(TRACE, "now", 5.0),
    "no run to summarise": lambda: gv.summarize(None),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_by_name(mistake: str) -> None:
    with pytest.raises(gv.ParameterError) as refused:
        MISTAKES[mistake]()
    assert ": found " in str(refused.value)
    assert "\n" not in str(refused.value)
