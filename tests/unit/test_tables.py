"""What a reader is told: words and numbers follow the data, nothing in a log acts on the page."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import openpyxl
import pandas as pd
import pytest
from tests.campaigns import arm, two_arms, write_arm, write_campaign

from gpuverdict import tables
from gpuverdict.case import Case, open_case
from gpuverdict.curves import fit_curve
from gpuverdict.tables.markup import RatioAxis
from gpuverdict.tables.opening import lamp, next_actions, three_sentences, title
from gpuverdict.tables.rows import capacity, fixed_rows, knee_level

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "cases"
SLO = {"ttft_s": {"p95": 0.5}, "tpot_s": {"p50": 0.03}}
HOSTILE = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """b takes 20 % longer for everything than a, at 2 and 4 streams; both meet the SLO."""
    both = {"levels": (2, 4), "repeats": 4}
    return two_arms(tmp_path_factory.mktemp("slower"), a=both, b={**both, "effect": 0.20}, slo=SLO)


@pytest.fixture(scope="module")
def swapped(tmp_path_factory: pytest.TempPathFactory) -> Case:
    both = {"levels": (2, 4), "repeats": 4}
    return two_arms(tmp_path_factory.mktemp("swapped"), a={**both, "effect": 0.20}, b=both, slo=SLO)


def test_the_ratio_axis_is_logarithmic_and_holds_one() -> None:
    axis = RatioAxis.spanning([0.5, 2.0, None])
    assert axis.low < 0.5
    assert axis.high > 2
    middle = axis.x(1.0)
    assert middle == pytest.approx(axis.width / 2, abs=0.1)
    # Equal factors are equal distances.
    assert axis.x(2.0) - middle == pytest.approx(middle - axis.x(0.5), abs=0.2)
    assert [label for _, label in axis.ticks] == ["0.5×", "1×", "2×"]


def test_a_bar_without_interval_is_open_and_one_beyond_the_axis_is_an_arrow() -> None:
    axis = RatioAxis.spanning([1.0])
    alone = axis.bar(1.05, None, None, margin=0.03, word="inconclusive", label="x")
    assert "open" in alone
    assert 'class="span"' not in alone
    beyond = axis.bar(1.05, 0.9, 40.0, margin=0.03, word="inconclusive", label="x")
    assert "arrow" in beyond


def test_eight_rows_always_and_in_order(slower: Case) -> None:
    codes = [row.code for row in fixed_rows(slower)]
    assert codes == [
        "row_prefill_rate", "row_ttft", "row_decode_step", "row_tpot", "row_throughput",
        "row_capacity", "row_energy", "row_memory",
    ]  # fmt: skip
    rows = {row.code: row for row in fixed_rows(slower)}
    # No trace was recorded: the rows stay, and say what they need.
    assert rows["row_energy"].word == "not measured"
    assert "trace" in rows["row_energy"].note
    assert rows["row_tpot"].word == "slower"


def test_sentences_follow_the_data_when_arms_are_swapped(slower: Case, swapped: Case) -> None:
    _, decode, carried = three_sentences(slower)
    assert "later" in decode
    assert re.search(r"\b2[0-3] % later", decode), decode
    assert "less" in carried
    _, decode, carried = three_sentences(swapped)
    # 20 % more time one way is 1 - 1/exp(0.2) = 18 % less the other way.
    assert re.search(r"\b1[78] % sooner", decode), decode
    assert "more" in carried


def test_chinese_sentences_say_the_same(slower: Case) -> None:
    _, decode, carried = three_sentences(slower, "zh")
    assert "慢" in decode
    assert "低" in carried
    english = re.findall(r"\d+\.\d+", " ".join(three_sentences(slower)))
    chinese = re.findall(r"\d+\.\d+", " ".join(three_sentences(slower, "zh")))
    assert english == chinese


def test_the_level_shown_is_the_one_nearest_the_knee(slower: Case) -> None:
    level, why = knee_level(slower)
    assert dict(level or {}) == {"concurrency": 4}
    assert why == "knee_slo"
    assert capacity(slower, "b", "main").most == 4
    assert capacity(slower, "b", "main").open_ended


def test_without_an_slo_the_highest_common_level_is_shown(tmp_path: Path) -> None:
    case = two_arms(tmp_path, a={"levels": (2, 4)}, b={"levels": (2, 4, 8)})
    level, why = knee_level(case)
    assert dict(level or {}) == {"concurrency": 4}
    assert why == "knee_no_slo"
    row = next(r for r in fixed_rows(case) if r.code == "row_capacity")
    assert row.word == "not measured"
    assert "slo" in row.note


def test_a_level_that_runs_out_of_memory_is_an_answer(tmp_path: Path) -> None:
    case = two_arms(
        tmp_path, a={"levels": (2, 4)}, b={"levels": (2,)},
        arm_b={"infeasible": [{"level": 4, "reason": "out of memory"}]}, slo=SLO,
    )  # fmt: skip
    text = three_sentences(case)[2]
    assert "At 4 only a runs (b: out of memory)" in text
    row = next(r for r in fixed_rows(case) if r.code == "row_memory")
    assert (row.baseline, row.candidate) == ("–", "fails at 4")


def test_the_lamp_names_at_most_three_reasons(slower: Case) -> None:
    shown = lamp(slower)
    assert len(shown.reasons) <= 3
    total = len(slower.verdict.comparability.reasons)
    assert shown.more == max(0, total - 3)


def test_at_most_five_actions(slower: Case) -> None:
    assert len(next_actions(slower)) <= 5


def test_the_title_says_that_a_device_was_not_verified(slower: Case) -> None:
    assert "H200" in title(slower)
    assert "not verified" in title(slower)


def test_simulated_data_is_said_in_the_title(tmp_path: Path) -> None:
    case = two_arms(tmp_path, simulated=True)
    assert "simulated" in title(case)
    assert "模拟" in title(case, "zh")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A campaign whose names and labels try to act on the page and on the spreadsheet."""
    folder = tmp_path_factory.mktemp("hostile")
    for name in ("a", "b"):
        write_arm(folder, name)
    arms = {name: {**arm(name), "engine": HOSTILE, "kernels": "=1+1"} for name in ("a", "b")}
    path = write_campaign(
        folder, arms, title=HOSTILE, model={"name": HOSTILE, "parameters": 7e9, "weight_bits": 16},
        comparisons=[{"name": "ab", "baseline": "a", "candidate": "b"}],
    )  # fmt: skip
    return open_case(path, "ab")


def markup_of(case: Case) -> str:
    sections = [
        tables.first_screen(case), tables.verdict_map(case), tables.all_cells(case),
        tables.how_reached(case), tables.run_table(case), tables.provenance(case),
        tables.findings_table(case), tables.capacity_table(case), tables.curve_table(case),
        tables.record_table(case), tables.arms_table(case.measured),
        tables.coverage_table(case.measured, case.summary),
    ]  # fmt: skip
    return "".join(str(section.markup) for section in sections)


def test_labels_are_escaped_everywhere(hostile: Case) -> None:
    text = markup_of(hostile)
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_the_index_escapes_too_and_lists_what_was_lost(hostile: Case) -> None:
    row: Mapping[str, Any] = {
        "name": HOSTILE,
        "folder": "ab",
        "state": "failed",
        "lines": (),
        "error": HOSTILE,
        "chips": (),
    }
    html = tables.index_html(hostile.measured, hostile.summary, [row])
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 3


def test_a_workbook_holds_text_as_text(hostile: Case, tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    tables.write_xlsx(hostile, path)
    book = openpyxl.load_workbook(path)
    assert {"verdicts", "headline", "record", "runs", "summary", "inputs", "lost"} <= set(
        book.sheetnames
    )
    sheet = book["verdicts"]
    assert sheet.freeze_panes == "A2"
    heads = [cell.value for cell in sheet[1]]
    assert {"unit", "n_baseline", "low", "high", "baseline_files"} <= set(heads)
    told = [cell for row in book["record"].iter_rows() for cell in row if cell.value == "=1+1"]
    assert told
    assert {cell.data_type for cell in told} == {"s"}
    numbers = {row[heads.index("ratio")].data_type for row in sheet.iter_rows(min_row=2)}
    assert "n" in numbers
    for name in book.sheetnames:
        for row in book[name].iter_rows():
            assert all(cell.data_type != "f" for cell in row)


def test_a_csv_has_a_bom_and_no_formula(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    frame = pd.DataFrame({"name": ["=1+1", "+x", "双卡"], "value": [1.5, -2.0, None]})
    tables.write_csv(frame, path)
    raw = path.read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(raw.decode("utf-8-sig").splitlines()))
    assert rows[1] == ["'=1+1", "1.5"]
    assert rows[2] == ["'+x", "-2.0"]
    assert rows[3] == ["双卡", ""]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not here")
def test_case_59_a_linked_picture_is_embedded() -> None:
    (folder,) = SHARED.glob("59-*")
    notebook = nbformat.read(folder / "report.ipynb", as_version=4)
    html = tables.report_html(notebook, "x", folder=folder)
    images = re.findall(r"<img[^>]*>", html)
    assert len(images) == 1
    assert 'src="data:image/png;base64,' in images[0]
    assert "fig/curve.png" not in html


def page(*cells: Any, folder: Path | None = None) -> str:
    return tables.report_html(nbformat.v4.new_notebook(cells=list(cells)), HOSTILE, folder=folder)


def test_a_page_fetches_nothing_and_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    markdown = nbformat.v4.new_markdown_cell(
        f"{HOSTILE}\n\n![a](http://example.org/a.png) ![b](../../etc/passwd) ![c](secret.txt)"
    )
    shown = f'<p onclick="x()">{HOSTILE}</p><img src="http://example.org/b.png"><iframe src="x">'
    code = nbformat.v4.new_code_cell(
        "x = 'hidden source'",
        outputs=[
            nbformat.v4.new_output("display_data", {"text/html": shown}),
            nbformat.v4.new_output("stream", name="stdout", text="\x1b[31m<b>plain\x1b[0m"),
            nbformat.v4.new_output("stream", name="stderr", text="a warning"),
        ],
    )
    html = page(markdown, code, folder=tmp_path)
    assert "<script" not in html
    assert "onclick" not in html
    assert "<iframe" not in html
    assert "example.org" not in html
    assert "passwd" not in html
    assert "secret" not in html
    assert "hidden source" not in html
    assert "a warning" not in html
    assert "&lt;b&gt;plain" in html
    assert "default-src 'none'" in html
    assert '<html lang="en">' in html


def test_the_page_is_told_in_chinese() -> None:
    html = tables.report_html(nbformat.v4.new_notebook(cells=[]), "x", "zh")
    assert '<html lang="zh-CN">' in html
    assert "跳到正文" in html


def test_how_a_verdict_was_reached_shows_every_run(slower: Case) -> None:
    text = str(tables.how_reached(slower))
    cell = slower.verdict.cell("tpot_s", "p50", '{"concurrency": 4}')
    assert cell is not None
    for _, value in (*cell.baseline_runs, *cell.candidate_runs):
        assert value is not None
        assert f"{1000 * value:.4g}"[:4] in text


def test_unknown_fields_of_the_record_are_said(slower: Case) -> None:
    frame = tables.record_frame(slower)
    assert set(frame.part) == {"hardware", "software", "load", "results"}
    driver = frame[(frame.field == "driver") & (frame.arm == "a")]
    assert driver.value.isna().all()
    assert "unknown" in tables.record_table(slower).markup


def test_many_pairs_make_a_matrix(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    for name in names:
        write_arm(tmp_path, name)
    pairs = [("a", "b"), ("a", "c"), ("b", "c"), ("b", "a")]
    path = write_campaign(
        tmp_path,
        {name: arm(name) for name in names},
        comparisons=[{"name": x + y, "baseline": x, "candidate": y} for x, y in pairs],
    )
    case = open_case(path, "ab")
    chip = {
        "metric": "tpot_s",
        "statistic": "p50",
        "workload": "main",
        "verdict": "slower",
        "ratio": 1.25,
    }
    shared = {"state": "rendered", "lines": (), "error": None, "chips": [chip]}
    rows = [{"name": x + y, "folder": x + y, **shared} for x, y in pairs]
    html = tables.index_html(case.measured, case.summary, rows)
    matrix = re.search(r'<table class="matrix">.*?</table>', html, re.S)
    assert matrix is not None
    # Row of the candidate c: against a and against b.
    (line,) = re.findall(r'<tr><th scope="row">c</th>.*?</tr>', matrix.group(0), re.S)
    assert 'href="ac/report.html"' in line
    assert 'href="bc/report.html"' in line
    assert line.count("1.250") == 2
    few = tables.index_html(case.measured, case.summary, rows[:2])
    assert '<table class="matrix">' not in few


def test_the_curve_table_prints_only_what_is_identified(slower: Case) -> None:
    """By hand: x_inf needs levels up to 2 B_half; a step that is rejected has no parameters."""
    flat = fit_curve([1, 4, 8], [0.0100, 0.0101, 0.0102], ["a"] * 3)
    bent = fit_curve([1, 8, 32], [0.0158, 0.0284, 0.0495], ["a"] * 3)
    assert (flat.model, bent.model) == ("linear", "interpolation")
    table = tables.curve_table(replace(slower, curves={"main": (flat, bent, None)}))
    first, second = table.text.splitlines()
    assert first.split(" | ")[4:6] == ["not identified"] * 2
    assert first.split(" | ")[2].startswith("9.97")
    assert second.split(" | ")[2:6] == ["–"] * 4
    assert "saturation throughput is not identified by levels up to 8" in table.markup
    assert "35,206" not in table.markup
    assert "868" not in table.markup
