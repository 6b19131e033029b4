"""A notebook's first words answer its question, from the numbers of the campaign at hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.campaigns import two_arms

from gpuverdict import figures, tables
from gpuverdict.capacity import check_published, read_published
from gpuverdict.case import Case, open_case

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def sample() -> Case:
    return open_case(ROOT / "data" / "h200" / "campaign.yaml", "eager")


def test_the_campaign_is_counted(tmp_path: Path) -> None:
    case = two_arms(tmp_path, a={"levels": (2, 4), "n": 50}, b={"levels": (2,), "n": 50})
    text = tables.campaign_answer(case.measured, case.summary).text
    # 2 levels x 3 repeats and 1 x 3, of 50 requests each.
    assert "Arms: 2, with 9 runs and 450 requests" in text
    assert re.search(r"Without a GPU trace.*: a, b\.", text)
    assert re.search(r"Without a prefill probe.*: a, b\.", text)
    (tmp_path / "a" / "c2_r1.json").write_text("{")
    lost = open_case(tmp_path / "campaign.yaml", "ab")
    text = tables.campaign_answer(lost.measured, lost.summary).text
    assert "8 runs" in text
    assert "Files that gave nothing: 1 (a/c2_r1.json)." in text


def test_power_energy_and_memory_are_those_of_the_summary(sample: Case) -> None:
    frame = sample.summary.frame
    for line, arm in zip(
        tables.power_answer(sample).text.splitlines(), ("card-b", "card-b-eager"), strict=True
    ):
        own = frame[(frame.arm == arm) & (frame.window == "steady") & (frame.statistic == "value")]
        means = own[own.metric == "power_w"].groupby("level").value.mean()
        found = re.search(r"power ([\d.]+)–([\d.]+) W", line)
        assert found is not None
        assert float(found.group(1)) == pytest.approx(means.min(), rel=5e-3)
        assert float(found.group(2)) == pytest.approx(means.max(), rel=5e-3)
        peak = own[own.metric == "memory_used_mib"].value.max() / 1024
        memory = re.search(r"peak ([\d.]+) GiB", line)
        assert memory is not None
        assert float(memory.group(1)) == pytest.approx(peak, rel=5e-3)


def test_without_a_trace_nothing_is_made_up(tmp_path: Path) -> None:
    text = tables.power_answer(two_arms(tmp_path)).text
    assert text.count("power not measured, energy not measured, memory peak not measured") == 2
    assert text.count("throttling was not recorded") == 2


def test_capacity_ends_where_the_slo_does(tmp_path: Path) -> None:
    # 10 ms a token in every level of a; b needs 11 ms.
    loops = {"levels": (2, 4), "repeats": 3}
    slo = {"tpot_s": {"p50": 0.0105}}
    case = two_arms(tmp_path, a=loops, b={**loops, "effect": 0.1}, slo=slo)
    text = tables.capacity_answer(case).text
    assert "a carries 4 streams within the SLO, the highest level that was run" in text
    assert "b: at no level that was run is the SLO known to be met." in text
    assert "What a token costs is not known" in text


def test_without_an_slo_no_load_is_promised(tmp_path: Path) -> None:
    text = tables.capacity_answer(two_arms(tmp_path)).text
    assert text.startswith("No SLO is stated")
    assert "carries" not in text


def test_phases_are_told_by_arm(sample: Case) -> None:
    plate = figures.request_phases(sample)
    for arm, rows in plate.frame.groupby("arm"):
        total = rows.prefill + rows.waiting + rows.decode
        share = 100 * rows.decode / total
        assert f"{arm}: decode takes {share.min():.0f} % to {share.max():.0f} %" in plate.finding
    assert plate.finding in tables.answer([plate]).text


def test_unknown_waiting_is_not_none(sample: Case) -> None:
    frame = sample.summary.frame
    blind = frame[frame.metric != "scheduling_excess_s"]
    case = replace(sample, summary=replace(sample.summary, frame=blind, _kept={}))
    finding = figures.request_phases(case).finding
    assert "how much of the rest is waiting is not known" in finding
    assert "waiting at most" not in finding


def test_claims_are_counted() -> None:
    claims = check_published(read_published(ROOT / "data" / "published_tables.csv"))
    text = tables.claims_answer(claims).text
    found = [int(n) for n in re.findall(r"\d+", text)]
    assert found[0] == len(claims) == sum(found[1:])
    assert text.startswith("Not as it stands.")
    standing = [c for c in claims if c.standing == "stands"]
    assert tables.claims_answer(standing).text.startswith("Nothing in it contradicts")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_answer_is_escaped_and_in_both_languages(sample: Case, lang: str) -> None:
    html = tables.answer(["<b>x</b>"], lang)._repr_html_()
    assert "<b>x</b>" not in html
    for reply in (tables.power_answer(sample, lang), tables.capacity_answer(sample, lang),
                  tables.verdict_answer(sample, lang)):  # fmt: skip
        assert bool(re.search("[\u4e00-\u9fff]", reply.text)) == (lang == "zh")
