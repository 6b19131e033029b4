"""Choosing another arm, metric or level changes figure and table, and the view can be exported."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from tests.campaigns import arm, open_verdict, two_arms, write_arm, write_campaign

from gpuverdict.case import open_case
from gpuverdict.explorer import VIEWS, Explorer


def level(value: int) -> tuple[str, str]:
    return "main", f'{{"concurrency": {value}}}'


@pytest.fixture
def view(tmp_path: Path) -> Explorer:
    both = {"levels": (2, 16), "repeats": 3}
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
    view.level.value = level(16)
    assert view.figure.value != first
    second = view.figure.value
    view.run.value = 2
    assert view.figure.value != second
    third = view.figure.value
    view.shown.value = "a"
    assert view.figure.value != third
    view.metric.value = "ttft_s"
    assert view.table.value != table
    view.metric.value = "output_tokens_per_s"
    assert set(view.frame().unit) == {"tokens_per_s"}


def test_choices_that_change_nothing_are_grey(view: Explorer) -> None:
    for name, used in VIEWS.items():
        view.view.value = name
        before = view.figure.value
        assert {c for c in ("shown", "run", "span") if not getattr(view, c).disabled} == set(
            used
        ) & {"shown", "run", "span"}
        if "level" not in used:
            assert view.level.disabled
            view.level.value = level(16)
            assert view.figure.value == before
            view.level.value = level(2)


def test_a_metric_without_a_distribution_is_said_not_replaced(view: Explorer) -> None:
    view.metric.value = "output_tokens_per_s"
    for name in ("distribution", "shift"):
        view.view.value = name
        assert "<svg" not in view.figure.value
        assert "output throughput is one number a run" in view.figure.value


def test_the_distribution_is_that_of_the_requests_in_the_window(view: Explorer) -> None:
    view.view.value, view.level.value = "distribution", level(16)
    assert view._shown is not None
    drawn = view._shown.frame.set_index(["arm", "repeat_no", "quantile"]).value
    for run in view.case.measured.runs_of("b"):
        if dict(run.level) != {"concurrency": 16}:
            continue
        window = view.case.summary.facts[run.key].window
        rows = run.stored.requests().to_pandas()
        if window.kind == "steady":
            rows = rows[rows.start_s.between(window.start_s, window.end_s)]
        assert drawn["b", run.repeat_no, 0.5] == pytest.approx(np.median(rows.tpot_s), rel=1e-12)


def test_a_span_shows_the_requests_under_way_in_it(view: Explorer) -> None:
    view.view.value, view.level.value = "timeline", level(16)
    view.span.value = (0.5, 1.0)
    (run,) = [r for r in view._runs() if r.repeat_no == view.run.value]
    rows = run.stored.requests().to_pandas()
    begun = rows[(rows.start_s <= view.span.value[1]) & (rows.end_s >= view.span.value[0])]
    assert view._shown is not None
    assert sorted(view._shown.frame.request_index) == sorted(begun.request_index)
    assert 0 < len(begun) < len(rows)
    found = re.search(r"all (\d+) requests", view._shown.finding)
    assert found is not None
    assert int(found.group(1)) == len(begun)


def test_a_request_looks_the_same_in_every_span(view: Explorer) -> None:
    view.view.value, view.level.value = "timeline", level(16)
    frames = []
    for span in ((0.0, 0.6), (0.3, 0.9)):
        view.span.value = span
        assert view._shown is not None
        frames.append(view._shown.frame.set_index("request_index"))
    shared = frames[0].index.intersection(frames[1].index)
    assert len(shared) > 3
    assert frames[0].loc[shared].equals(frames[1].loc[shared])


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


def test_a_verdict_is_the_one_the_report_gives(tmp_path: Path) -> None:
    for name, effect in (("a", 0.0), ("b", 0.1), ("c", 0.02)):
        write_arm(tmp_path, name, levels=(2, 4), repeats=3, effect=effect)
    path = write_campaign(
        tmp_path, {n: arm(n) for n in "abc"},
        comparisons=[{"name": "ab", "baseline": "a", "candidate": "b"},
                     {"name": "bc", "baseline": "b", "candidate": "c"}],
    )  # fmt: skip
    view = Explorer(open_case(path, "ab"))
    view.view.value, view.metric.value = "intervals", "tpot_s"
    view.baseline.value = "b"
    view.candidate.value = "c"
    assert view._shown is not None
    want = [
        c.comparison
        for c in open_verdict(path, "bc").verdict.cells
        if (c.key.metric, c.key.statistic) == ("tpot_s", "p50")
    ]
    assert list(view._shown.frame.verdict) == [c.verdict for c in want]
    assert list(view._shown.frame.low) == [c.low for c in want]


@pytest.mark.parametrize("column", ["value", "level_value", "n"])
def test_the_table_is_sorted_as_asked(view: Explorer, column: str) -> None:
    view.order.value = column
    frame = view.frame()
    frame = frame.assign(level_value=frame.level.str.extract(r"(\d+)", expand=False).astype(int))
    rising = list(frame[column])
    assert rising == sorted(rising)
    view.falling.value = True
    frame = view.frame()
    frame = frame.assign(level_value=frame.level.str.extract(r"(\d+)", expand=False).astype(int))
    assert list(frame[column]) == rising[::-1]


def test_the_slowest_requests_of_a_run_are_found(view: Explorer) -> None:
    view.rows.value, view.level.value, view.run.value = "requests", level(16), 2
    view.order.value, view.falling.value = "e2e_s", True
    rows = next(r for r in view._runs() if r.repeat_no == 2).stored.requests()
    assert view.frame(3).e2e_s.tolist() == sorted(rows["e2e_s"], reverse=True)[:3]
    assert f"80 of {rows.height} rows" in view.table.value


def test_the_view_is_exported(view: Explorer, tmp_path: Path) -> None:
    view.view.value = "timeline"
    picture, png, drawn, book, table = view.export(tmp_path / "out")
    assert {p.parent for p in (drawn, book, table)} == {tmp_path / "out"}
    assert picture.read_text("utf-8").startswith("<svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(table.read_text("utf-8-sig").splitlines()))
    assert len(rows) == len(view.frame())
    assert float(rows[0]["value"]) == view.frame().value[0]
    bars = list(csv.DictReader(drawn.read_text("utf-8-sig").splitlines()))
    assert view._shown is not None
    assert len(bars) == len(view._shown.frame) > 5
    sheets = openpyxl.load_workbook(book)
    assert sheets.sheetnames == ["drawn", "table"]
    assert sheets["table"].max_row == len(view.frame()) + 1


def test_a_folder_that_cannot_be_made_is_said(view: Explorer, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    view.folder.value = str(tmp_path / "taken")
    view.save.click()
    assert "Not written" in view.saved.value
    view.folder.value = str(tmp_path / "free")
    view.save.click()
    assert "Written" in view.saved.value


def test_an_arm_without_the_level_is_said_so(tmp_path: Path) -> None:
    view = Explorer(two_arms(tmp_path, a={"levels": (2, 16)}, b={"levels": (2,)}))
    view.view.value, view.rows.value, view.level.value = "timeline", "requests", level(16)
    assert view.shown.value == "b"
    assert "b has no run at 16 streams." in view.figure.value
    assert "b has no run at 16 streams." in view.table.value
    assert "<svg" not in view.figure.value
    view.shown.value = "a"
    assert "<svg" in view.figure.value


def test_it_is_told_in_chinese(tmp_path: Path) -> None:
    view = Explorer(two_arms(tmp_path), lang="zh")
    assert view.metric.description == "指标"
    assert "每个点是一次运行" in view.figure.value
