"""Choosing another arm, metric or level changes figure and table, and the view can be exported."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tests.campaigns import two_arms

from gpuverdict.explorer import VIEWS, Explorer


@pytest.fixture
def view(tmp_path: Path) -> Explorer:
    both = {"levels": (2, 4), "repeats": 3}
    return Explorer(two_arms(tmp_path, a=both, b={**both, "effect": 0.1}))


def test_every_view_shows_something(view: Explorer) -> None:
    seen = set()
    for name in VIEWS:
        view.view.value = name
        assert "<svg" in view.figure.value
        seen.add(view.figure.value)
    assert len(seen) == len(VIEWS)


def test_metric_level_and_run_change_figure_and_table(view: Explorer) -> None:
    view.view.value = "timeline"
    first, table = view.figure.value, view.table.value
    view.level.value = 4
    assert view.figure.value != first
    second = view.figure.value
    view.run.value = 2
    assert view.figure.value != second
    view.metric.value = "ttft_s"
    assert view.table.value != table
    view.metric.value = "output_tokens_per_s"
    assert set(view.frame().unit) == {"tokens_per_s"}


def test_swapping_the_arms_gives_the_other_ratio(view: Explorer) -> None:
    view.view.value = "intervals"
    before = view._shown
    view.baseline.value, view.candidate.value = "b", "b"
    view.candidate.value = "a"
    after = view._shown
    assert before is not None
    assert after is not None
    for one, two in zip(before.frame.ratio, after.frame.ratio, strict=True):
        assert one * two == pytest.approx(1, rel=1e-9)


def test_the_table_is_sorted_as_asked(view: Explorer) -> None:
    view.order.value = "value"
    values = list(view.frame().value)
    assert values == sorted(values)
    view.order.value = "arm"
    assert list(view.frame().arm) == sorted(view.frame().arm)


def test_the_view_is_exported(view: Explorer, tmp_path: Path) -> None:
    picture, drawn, table = view.export(tmp_path / "out")
    assert picture.read_text("utf-8").startswith("<svg")
    rows = list(csv.DictReader(table.read_text("utf-8-sig").splitlines()))
    assert len(rows) == len(view.frame())
    assert drawn.stat().st_size > 0


def test_it_is_told_in_chinese(tmp_path: Path) -> None:
    view = Explorer(two_arms(tmp_path), lang="zh")
    assert view.metric.description == "指标"
    assert "每个点是一次运行" in view.figure.value
