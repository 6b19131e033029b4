"""Memory marks, growth, imbalance and node power of campaigns whose every reading is known."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.timed import Gpu, change, levels_begin, write_timed

from gpuverdict import tables
from gpuverdict.campaign import read_campaign
from gpuverdict.capacity import CardUse, arm_card_use, arm_watermarks, memory_growth
from gpuverdict.case import open_campaign, open_case
from gpuverdict.errors import CampaignError
from gpuverdict.health import check_health

UUIDS = ("GPU-00000000-0000-4000-8000-00000000000a", "GPU-00000000-0000-4000-8000-00000000000b")
PAIR_KEYS = {"gpus": 2, "tensor_parallel": 2}


def notes(section: tables.Section) -> str:
    return re.sub("<[^>]+>", " ", str(section.markup))


def codes(estimate: Any) -> set[str]:
    return {c.code for c in estimate.cautions}


def pair(shift: float = 0.0) -> tuple[Gpu, Gpu]:
    """GPU 0 climbs from 20,000 over 21,000 to 60,000 MiB, GPU 1 ends at 130,000 of 143,771."""

    def step(values: tuple[float, float, float]) -> Any:
        return lambda t: values[0] if t < 10 else values[1] if t < 33 + shift else values[2]

    return (
        Gpu(uuid=UUIDS[0], memory_mib=step((20_000, 21_000, 60_000)), power_w=lambda t: 300.0),
        Gpu(index=1, uuid=UUIDS[1], memory_mib=step((22_000, 24_000, 130_000)),
            power_w=lambda t: 180.0 + 120.0 * (35 < t < 35.5), clock_mhz=lambda t: 1620.0),
    )  # fmt: skip


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    return write_timed(
        folder, repeats=1, gpus={"a": pair(), "b": pair()},
        arm_keys={name: PAIR_KEYS for name in "ab"},
    )  # fmt: skip


def test_three_marks_of_each_gpu_and_the_rule(two: Path) -> None:
    begin = levels_begin(two.parent)
    assert begin[(1, 1)] == 10.0 < 33 < begin[(8, 1)] + 0.6, "the steps lie where the runs do"
    measured, _ = open_campaign(two)
    first, second = arm_watermarks(measured, "a")
    marks = [(m.value) for m in (first.after_load, first.one_request, first.peak)]
    assert marks == [20_000, 21_000, 60_000]
    assert [first.gpu, second.gpu] == ["GPU 0", "GPU 1"]
    assert (second.after_load.value, second.peak.value) == (22_000, 130_000)
    assert first.standing == "room"
    assert second.standing == "risk", "130,000 of 143,771 MiB is 90.4 %"
    assert first.level == {"concurrency": 8}
    assert first.context_tokens == 256 + 32
    assert not first.allocated_ahead


@pytest.mark.parametrize(
    ("peak_mib", "standing"),
    [(115_000, "room"), (115_020, "good"), (129_390, "good"), (129_395, "risk")],
)
def test_the_rule_of_thumb_at_its_edges(tmp_path: Path, peak_mib: int, standing: str) -> None:
    card = Gpu(memory_mib=lambda t: 20_000.0 if t < 11 else float(peak_mib))
    path = write_timed(tmp_path, repeats=1, levels=(1,), n=20, gpus={"a": (card,)})
    (found,) = arm_watermarks(open_campaign(path)[0], "a")
    assert found.standing == standing, found.peak_ratio


def test_what_is_missing_says_so_and_what_would_measure_it(tmp_path: Path) -> None:
    path = write_timed(tmp_path, repeats=1, levels=(4, 8), lead_s=-1.0, n=40)
    measured, _ = open_campaign(path)
    (card,) = arm_watermarks(measured, "a")
    assert codes(card.after_load) == {"mark_no_idle"}
    assert codes(card.one_request) == {"mark_no_single"}
    assert card.peak.value == 20_000
    text = notes(tables.memory_table(open_case(path, "ab")))
    assert text.count("not measured") == 4
    assert "concurrency 1" in text
    change(path, arms={"a": {"traces": []}})
    measured, summary = open_campaign(path)
    (card,) = arm_watermarks(measured, "a")
    for mark in (card.after_load, card.one_request, card.peak):
        assert codes(mark) == {"mark_no_trace"}
    assert card.standing is None
    use = arm_card_use(measured, summary, "a")
    assert use.node_peak_w.value is None
    case = open_case(path, "ab")
    for table in (tables.memory_table, tables.growth_table, tables.cards_table):
        assert "gpuverdict record" in notes(table(case))
        assert "not measured" in notes(table(case))


def test_a_mark_after_a_larger_load_is_an_upper_bound(tmp_path: Path) -> None:
    keys = {n: {"server_starts": "shared"} for n in "ab"}
    path = write_timed(tmp_path, repeats=1, levels=(8, 1), n=20, arm_keys=keys)
    (card,) = arm_watermarks(open_campaign(path)[0], "a")
    assert "mark_after_load_of_others" in codes(card.one_request)
    path = write_timed(tmp_path, repeats=1, levels=(1, 8), n=20, arm_keys=keys)
    (card,) = arm_watermarks(open_campaign(path)[0], "a")
    assert codes(card.one_request) == set()


def test_growth_until_the_card_is_full(tmp_path: Path) -> None:
    # 0.5 MiB a second, flat in the other arm; one request each 0.36 s with one stream.
    grows = Gpu(memory_mib=lambda t: 100_000 + 0.5 * t)
    path = write_timed(
        tmp_path, repeats=1, levels=(1,), n=2600, step_s=2.0, gpus={"a": (grows,)},
        arm_keys={n: {} for n in "ab"},
    )  # fmt: skip
    case = open_case(path, "ab")
    (entry,) = memory_growth(case.measured, case.health, "a")
    window = case.summary.facts[entry.run.key].window
    assert window.length_s > 600
    a_request_s = 0.05 + 31 * 0.01
    leak = entry.leak
    assert leak.growth_mib_per_1000_requests.value == pytest.approx(500 * a_request_s, rel=0.03)
    growth = leak.growth_mib_per_1000_requests
    assert growth.low <= growth.value <= growth.high
    left_mib = 143_771 - 100_000 - 0.5 * (10 + window.end_s)
    assert leak.seconds_until_full.value == pytest.approx(left_mib / 0.5, rel=0.01)
    assert leak.requests_until_full.value == pytest.approx(left_mib / 0.5 / a_request_s, rel=0.04)
    (flat,) = memory_growth(case.measured, case.health, "b")
    assert flat.leak.alarm is None
    table = tables.growth_table(case)
    lines = table.text.splitlines()
    assert f"{leak.seconds_until_full.value / 3600:,.3g} [" in lines[0]
    assert "below the alarm of 1 %" in lines[0], "0.3 % in ten minutes"
    assert "flat: no information" in lines[1]


def test_a_short_run_cannot_show_growth(two: Path) -> None:
    measured, summary = open_campaign(two)
    (entry,) = memory_growth(measured, check_health(measured, summary), "a")
    assert entry.leak is None
    assert entry.reason.code == "growth_needs_soak"


def use_of(path: Path) -> CardUse:
    return arm_card_use(*open_campaign(path), "a")


def test_gpu_beside_gpu(two: Path) -> None:
    use = use_of(two)
    assert use.cards["gpu"].to_list() == ["GPU 0", "GPU 1"]
    assert use.cards["sm_clock_p50_mhz"].to_list() == [1980, 1620]
    assert use.cards["memory_peak_mib"].to_list() == [60_000, 130_000]
    assert use.imbalance["sm_clock_mhz"].value == pytest.approx(360 / 1800)
    assert use.imbalance["memory_used_mib"].value == pytest.approx(70_000 / 95_000)
    # Half a second at 300 W in a window of two to three seconds, at 180 W before and after.
    assert 0.1 < use.imbalance["power_w"].value < (300 - 180) / 240
    assert use.node_peak_w.value == pytest.approx(600, abs=1)
    assert use.node_peak_level == {"concurrency": 8}


@pytest.mark.parametrize(
    ("limit", "code", "words"),
    [(None, None, "no supply limit"), (590, "supply_exceeded", "above the declared"),
     (620, "supply_close", "error of 5 %"), (640, None, "94 %")],
)  # fmt: skip
def test_the_sum_against_the_supply(
    two: Path, limit: float | None, code: str | None, words: str
) -> None:
    path = change(two, arms={name: {"supply_limit_w": limit} for name in "ab"})
    use = use_of(path)
    assert codes(use.node_peak_w) == ({code} if code else set())
    text = notes(tables.cards_table(open_case(path, "ab")))
    assert words in text
    assert "no host power is in it" in text


def test_a_supply_limit_is_a_positive_number(two: Path, tmp_path: Path) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text(two.read_text())
    change(path, arms={"a": {"supply_limit_w": 0}})
    with pytest.raises(CampaignError, match="supply_limit_w"):
        read_campaign(path)


def test_two_gpus_with_one_used_are_never_summed(tmp_path: Path) -> None:
    path = write_timed(tmp_path, repeats=1, n=40, gpus={"a": pair(-8.0), "b": (Gpu(),)})
    measured, summary = open_campaign(path)
    rows = summary.frame[(summary.frame.arm == "a") & (summary.frame.metric.isin(
        ["power_w", "energy_j", "memory_used_mib", "sm_clock_mhz", "throttled_ratio"]
    ))]  # fmt: skip
    assert len(rows) > 4
    assert rows.value.isna().all()
    assert all("gpu_count" in found for found in rows.cautions)
    (card,) = arm_watermarks(measured, "a")
    assert codes(card.peak) == {"gpu_count"}
    assert use_of(path).node_peak_w.value is None
    # The way out the caution names: which of them it was.
    change(path, arms={"a": {"cards": [UUIDS[1]]}})
    measured, summary = open_campaign(path)
    (card,) = arm_watermarks(measured, "a")
    assert (card.gpu, card.peak.value) == ("GPU 1", 130_000)
    assert use_of(path).node_peak_w.value == pytest.approx(180, abs=1)
    frame = summary.frame[(summary.frame.arm == "a") & (summary.frame.metric == "memory_used_mib")]
    assert set(frame.value) == {24_000.0, 130_000.0}, "the cached summary must not survive"
