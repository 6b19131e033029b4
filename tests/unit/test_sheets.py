"""Sections of a report: what is not measured is one line, what holds for both arms is said once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.campaigns import two_arms
from tests.timed import write_timed

from gpuverdict import tables
from gpuverdict.case import Case, open_case
from gpuverdict.errors import Caution
from gpuverdict.report.comparison import verdict_lines
from gpuverdict.tables.answers import plain_table, sheets
from gpuverdict.tables.markup import render
from gpuverdict.tables.notes import merged, noted
from gpuverdict.tables.opening import next_actions
from gpuverdict.text import caution, sentence


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Two arms without a trace, a server log or a host log; noise that leaves all undecided."""
    both = {"levels": (2, 4), "repeats": 3}
    return two_arms(tmp_path_factory.mktemp("bare"), a=both, b={**both, "effect": 0.02})


def parts(case: Case, lang: str = "en") -> list[tables.Section]:
    return [
        tables.server_table(case, lang), tables.host_table(case, lang),
        tables.capacity_table(case, lang), tables.memory_table(case, lang),
        tables.growth_table(case, lang), tables.cards_table(case, lang),
    ]  # fmt: skip


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_sections_without_a_measurement_share_one_list(bare: Case, lang: str) -> None:
    page = sheets(parts(bare, lang), lang).markup
    headings = re.findall(r'<section class="sheet" id="([^"]+)"', page)
    assert headings[-1] == "unmeasured"
    assert not {"server_side", "host_side", "memory-marks", "memory-growth", "gpu-by-gpu"} & {
        *headings
    }
    listed = page[page.index('id="unmeasured"') :]
    for title in ("marks_heading", "growth_heading", "use_heading", "server_heading"):
        assert sentence(title, lang) in listed
    # One reason, said once, for all three sections that a trace would fill.
    assert listed.count("gpuverdict record --out") <= 2
    assert "<td>–</td>" not in listed


def test_a_measured_section_stays_whole(tmp_path: Path) -> None:
    path = write_timed(tmp_path, repeats=1, levels=(1, 4), n=30)
    case = open_case(path, "ab")
    page = sheets(parts(case)).markup
    assert 'id="memory-marks"' in page
    assert 'id="gpu-by-gpu"' in page
    assert 'id="memory-growth"' not in page
    assert "600 s are needed" in page[page.index('id="unmeasured"') :]


def test_notes_name_the_arms_they_hold_for() -> None:
    slow = Caution(code="x", values={}, message="Slow.", remedy="Wait.")
    short = [caution("growth_needs_soak", arm=a, longest_s=s, needed_s=600.0) for a, s in
             (("a", 8.0), ("b", 8.0), ("c", 9.0))]  # fmt: skip
    notes = [noted("a", slow, "en"), noted("b", slow, "en"), noted("b", "own", "en"),
             *(noted(c.values["arm"], c, "en") for c in short)]  # fmt: skip
    said = merged(notes, "en")
    assert said[:2] == ["a, b: Slow. Wait.", "b: own"]
    assert [line.split(":")[0] for line in said[2:]] == ["a, b", "c"]
    assert merged([noted("a", "慢", "zh"), noted("b", "慢", "zh")], "zh") == ["a、b：慢"]


def test_quoted_keys_are_code_in_text_and_nowhere_else() -> None:
    table = plain_table("t", "T `k`", ["h`x`"], [["`a`<b>`c`"]], notes=["set `--x 1`"])
    assert "<li>set <code>--x 1</code></li>" in table.markup
    assert "<code>a</code>&lt;b&gt;<code>c</code>" in table.markup
    bar = render("ratio_bar.svg", axis=tables.markup.RatioAxis(low=0.5, high=2), ratio=1.0,
                 ends=[], margin=0.03, word="faster", label="`arm`")  # fmt: skip
    assert "<code>" not in bar


def test_a_share_is_written_as_in_the_tables() -> None:
    for lang in ("en", "zh"):
        text = caution("undecided", mde=0.0256, more_low=1, more_high=2, low=3, high=4, margin=0.03)
        assert "2.6 % up" in text.message
        assert "%" in sentence("undecided", lang, **text.values)
        assert not re.search(r"\d%", sentence("undecided", lang, **text.values))


def test_the_cost_of_more_runs_is_that_of_both_arms(bare: Case) -> None:
    for line in next_actions(bare):
        found = re.search(r"(\d+) to \d+ more runs an arm\. (?:Runs in all: )?(\d+)", line)
        if found:
            assert int(found[2]) == 2 * int(found[1]), line


def test_a_terminal_line_holds_the_p_its_word_rests_on() -> None:
    cell = {"metric": "tpot_s", "statistic": "p50", "ratio": 0.968, "low": 0.937, "high": 0.999,
            "verdict": "inconclusive", "p_adjusted": 0.0952, "cautions": []}  # fmt: skip
    refused = {**cell, "ratio": None, "low": None, "high": None, "p_adjusted": None}
    lines = verdict_lines({"comparison": "cards", "headline": [cell, refused]})
    assert lines[0] == "cards: TPOT p50: inconclusive 0.968 [0.937, 0.999], p 0.095"
    assert ", p" not in lines[1]
