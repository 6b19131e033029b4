"""Verdicts of whole comparisons: form, symmetry, families, and what stands beside the cells."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import shutil
import statistics
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats as scipy_stats
from tests.campaigns import (
    Opened,
    arm,
    closed_loop,
    judge_two,
    open_verdict,
    vllm_result,
    write_arm,
    write_campaign,
)

from gpuverdict.case import open_case
from gpuverdict.stats import compare_arms
from gpuverdict.verdict import Cell, explain, verdicts_json
from gpuverdict.verdict.export import plain
from gpuverdict.verdict.headlines import _withheld

FLIPPED = {"faster": "slower", "slower": "faster", "better": "worse", "worse": "better"}
LEVEL = '{"concurrency": 4}'


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two levels; b 10 % slower at 4 and as fast at 8."""
    folder = tmp_path_factory.mktemp("verdicts")
    write_arm(folder, "a", levels=(4, 8))
    write_arm(folder, "b", levels=(4,), effect=0.1)
    write_arm(folder, "b", levels=(8,), effect=0.0)
    return folder


def judged(folder: Path, pair: tuple[str, str] = ("a", "b"), **keys: Any) -> Opened:
    arms = {name: arm(name) for name in ("a", "b")}
    comparisons = [{"name": "ab", "baseline": pair[0], "candidate": pair[1]}]
    slo = {"ttft_s": {"p95": 0.056}, "tpot_s": {"p50": 0.0105}}
    options = {"comparisons": comparisons, "slo": slo, **keys}
    return open_verdict(write_campaign(folder, arms, **options), "ab")


def dumped(case: Opened) -> dict[str, Any]:
    provenance = {"inputs": [], "versions": {}, "parameters": {}}
    return json.loads(verdicts_json(case.verdict, provenance), parse_constant=_refuse)


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@pytest.fixture(scope="module")
def base(logs: Path) -> Opened:
    return judged(logs)


# ------------------------------------------------------------------ form


def test_json_is_strict_sorted_and_complete(base: Opened) -> None:
    text = verdicts_json(base.verdict, {"inputs": [], "versions": {}, "parameters": {}})
    value = json.loads(text, parse_constant=_refuse)
    assert text == json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    assert set(value) >= {
        "schema", "campaign", "comparison", "baseline", "candidate", "scope", "comparability",
        "headline", "cells", "curves", "energy", "capacity", "diagnosis", "health", "provenance",
    }  # fmt: skip
    keys = {"metric", "statistic", "workload", "level", "unit", "n_baseline", "n_candidate",
            "baseline", "candidate", "ratio", "low", "high", "confidence", "p_value", "p_adjusted",
            "p_permutation", "margin", "rung", "verdict", "modifiers", "mde_ratio", "runs_needed",
            "cautions"}  # fmt: skip
    for cell in (*value["cells"], *value["headline"]):
        assert set(cell) == keys
        assert cell["rung"] in range(1, 9)
    places = [(c["workload"], json.dumps(c["level"]), c["metric"], c["statistic"])
              for c in value["cells"]]  # fmt: skip
    assert len(places) == len(set(places)), "one cell a workload, level, metric and statistic"
    assert {h["metric"] for h in value["headline"]} == {"tpot_s", "ttft_s", "output_tokens_per_s"}
    assert all(h["level"] is None for h in value["headline"])


def test_plain_rounds_to_twelve_digits_and_has_no_infinity() -> None:
    assert plain(1 / 3) == 0.333333333333
    assert plain(math.inf) is None
    assert plain(float("nan")) is None
    assert plain(np.float64(2.5)) == 2.5
    assert plain({"a": (1, True, None)}) == {"a": [1, True, None]}


def test_files_in_any_order_give_the_same_bytes(logs: Path) -> None:
    files = [f"a/c{c}_r{r}.json" for c in (4, 8) for r in (1, 2, 3)]
    texts = set()
    for seed in range(3):
        random.Random(seed).shuffle(files)
        patterns = [name.replace("c4", "c{level}").replace("c8", "c{level}") for name in files]
        arms = {"a": arm("a", files=list(dict.fromkeys(files + patterns))[:6]), "b": arm("b")}
        case = open_verdict(write_campaign(logs, arms), "ab")
        texts.add(verdicts_json(case.verdict, {"inputs": [list(i) for i in case.measured.inputs]}))
    assert len(texts) == 1


def test_a_copied_campaign_gives_the_same_bytes(logs: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(logs, copy, ignore=shutil.ignore_patterns(".gpuverdict"))
    one, two = (verdicts_json(judged(folder).verdict, {}) for folder in (logs, copy))
    assert one == two


# ------------------------------------------------------------------ symmetry


def test_swapping_the_arms_inverts_ratios_and_flips_words(base: Opened, logs: Path) -> None:
    forth, back = base.verdict, judged(logs, ("b", "a")).verdict
    assert len(forth.cells) == len(back.cells)
    words = set()
    for one in (*forth.cells, *forth.headline):
        two = back.cell(one.key.metric, one.key.statistic, one.key.level)
        assert two is not None
        a, b = one.comparison, two.comparison
        words.add(a.verdict)
        assert b.verdict == FLIPPED.get(a.verdict, a.verdict)
        assert (two.rung, b.n_baseline) == (one.rung, a.n_candidate)
        if a.ratio is not None and a.difference is None:
            assert b.ratio == pytest.approx(1 / a.ratio, rel=1e-12)
        if a.low is not None and a.high is not None and a.difference is None:
            assert b.low == pytest.approx(1 / a.high, rel=1e-12)
        assert b.p_value == (None if a.p_value is None else pytest.approx(a.p_value, rel=1e-9))
    assert {"slower", "equivalent"} <= words


def test_scaled_times_keep_ratios_and_words(logs: Path, tmp_path: Path) -> None:
    for path in logs.glob("?/*.json"):
        raw = json.loads(path.read_text())
        for key in ("ttfts", "latencies", "start_times"):
            raw[key] = [3 * v for v in raw[key]]
        raw["itls"] = [[3 * v for v in row] for row in raw["itls"]]
        raw["duration"] *= 3
        target = tmp_path / path.parent.name / path.name
        target.parent.mkdir(exist_ok=True)
        target.write_text(json.dumps(raw))
    one, three = judged(logs, slo={}).verdict, judged(tmp_path, slo={}).verdict
    for cell in one.cells:
        other = three.cell(cell.key.metric, cell.key.statistic, cell.key.level)
        assert other is not None
        assert other.verdict == cell.verdict, cell
        if cell.comparison.ratio is not None:
            # A token on the edge of a window may fall to either side by rounding.
            assert other.comparison.ratio == pytest.approx(cell.comparison.ratio, rel=1e-3)


# ------------------------------------------------------------------ words that are not due


def test_one_run_an_arm_never_has_a_word(tmp_path: Path) -> None:
    for number, effect in enumerate((0.0, 0.05, 0.5, 2.0)):
        case = judge_two(
            tmp_path / str(number), a={"repeats": 1}, b={"repeats": 1, "effect": effect}
        )
        for cell in (*case.verdict.cells, *case.verdict.headline):
            assert cell.verdict in ("inconclusive", "not comparable")
            assert cell.comparison.p_value is None
        cell = case.verdict.cell("tpot_s", "p50", LEVEL)
        assert cell is not None
        assert "single-run" in cell.comparison.modifiers
        assert cell.comparison.ratio == pytest.approx(math.exp(effect), rel=0.02)


def test_one_run_with_a_noise_floor_may_have_one(tmp_path: Path) -> None:
    floor = {"campaign": "quiet", "runs": 6, "log_sd": {"tpot_s": 0.005}}
    case = judge_two(tmp_path, a={"repeats": 1}, b={"repeats": 1, "effect": 0.1}, noise_floor=floor)
    cell = case.verdict.cell("tpot_s", "p50", LEVEL)
    assert cell is not None
    assert cell.verdict == "slower"
    assert "noise floor from quiet" in cell.comparison.modifiers
    effect = math.log(cell.comparison.ratio or 1)
    p = 2 * scipy_stats.t.sf(effect / (0.005 * math.sqrt(2)), 5)
    assert cell.comparison.p_value == pytest.approx(p, rel=1e-9)
    other = case.verdict.cell("ttft_s", "p50", LEVEL)
    assert other is not None
    assert other.verdict == "inconclusive", "the floor of one metric is not that of another"


def test_runs_equal_to_the_last_bit_are_quantised(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for repeat in (1, 2, 3):
            gap = 0.01 if name == "a" else 0.011
            rows = closed_loop(n=60, tpot_s=gap, noise=0.0)
            rows[0]["ttft"] += repeat * 1e-9  # the same bytes twice would be one file
            result = vllm_result(rows, streams=4)
            (tmp_path / name / f"c4_r{repeat}.json").write_text(json.dumps(result))
    case = open_verdict(write_campaign(tmp_path, {n: arm(n) for n in ("a", "b")}), "ab")
    cell = case.verdict.cell("itl_s", "p50", LEVEL)
    assert cell is not None
    assert cell.verdict == "inconclusive"
    assert "quantised" in cell.comparison.modifiers
    assert cell.comparison.p_value is None


def test_two_runs_are_never_equivalent(tmp_path: Path) -> None:
    case = judge_two(tmp_path, a={"repeats": 2}, b={"repeats": 2})
    assert "equivalent" not in {
        c.verdict for c in case.verdict.cells if c.key.metric != "error_ratio"
    }


# ------------------------------------------------------------------ families and headlines


def test_family_is_one_metric_and_statistic_over_levels(base: Opened) -> None:
    verdict = base.verdict
    for metric, statistic in (
        ("tpot_s", "p50"),
        ("ttft_s", "p50"),
        ("output_tokens_per_s", "value"),
    ):
        cells = [c for c in verdict.cells if (c.key.metric, c.key.statistic) == (metric, statistic)]
        raw = [c.comparison.p_value for c in cells]
        right = scipy_stats.false_discovery_control(raw, method="bh")
        assert [c.comparison.p_adjusted for c in cells] == pytest.approx(list(right), rel=1e-12)
        assert all(c.comparison.family == 2 for c in cells)


def test_headline_of_independent_cells_by_hand(base: Opened) -> None:
    """Every cell is its own start: d is the mean of the differences, SE from all four variances."""
    verdict = base.verdict
    cells = [c for c in verdict.cells if (c.key.metric, c.key.statistic) == ("tpot_s", "p50")]
    effects, terms = [], []
    for cell in cells:
        sides = [
            [math.log(v or 1) for _, v in runs]
            for runs in (cell.baseline_runs, cell.candidate_runs)
        ]
        effects.append(statistics.fmean(sides[1]) - statistics.fmean(sides[0]))
        terms += [statistics.variance(side) / 3 for side in sides]
    headline = verdict.cell("tpot_s", "p50", None)
    assert headline is not None
    assert headline.comparison.ratio == pytest.approx(math.exp(statistics.fmean(effects)), rel=1e-9)
    se = math.sqrt(sum(terms)) / 2
    df = sum(terms) ** 2 / sum(t**2 / 2 for t in terms)
    p = 2 * scipy_stats.t.sf(abs(statistics.fmean(effects)) / se, df)
    assert headline.comparison.p_value == pytest.approx(p, rel=1e-9)


def test_opposite_signs_are_mixed(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", levels=(4, 8))
    write_arm(tmp_path, "b", levels=(4,), effect=0.1)
    write_arm(tmp_path, "b", levels=(8,), effect=-0.1)
    case = judged(tmp_path)
    for level in (4, 8):
        cell = case.verdict.cell("tpot_s", "p50", f'{{"concurrency": {level}}}')
        assert cell is not None
        assert "mixed" in cell.comparison.modifiers
    headline = case.verdict.cell("tpot_s", "p50", None)
    assert headline is not None
    assert headline.verdict in ("equivalent", "inconclusive")


def test_paired_design_survives_a_lost_run(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", repeats=5)
    write_arm(tmp_path, "b", repeats=5, effect=0.1)
    (tmp_path / "b" / "c4_r2.json").write_text("")
    comparisons = [{"name": "ab", "baseline": "a", "candidate": "b", "paired": True}]
    case = judged(tmp_path, comparisons=comparisons)
    cell = case.verdict.cell("tpot_s", "p50", LEVEL)
    assert cell is not None
    assert cell.comparison.test == "paired"
    assert [r for r, _ in cell.baseline_runs] == [r for r, _ in cell.candidate_runs] == [1, 3, 4, 5]
    assert "pairs_incomplete" in {c.code for c in cell.comparison.cautions}
    logs = [np.log([v for _, v in side]) for side in (cell.baseline_runs, cell.candidate_runs)]
    p = scipy_stats.ttest_rel(logs[1], logs[0]).pvalue
    assert cell.comparison.p_value == pytest.approx(p, rel=1e-9)


def test_margins_of_the_campaign_count(logs: Path) -> None:
    wide = judged(logs, margins={"tpot_s": 0.2, "ttft_s.p50": 0.3})
    for metric, margin in (("tpot_s", 0.2), ("ttft_s", 0.3)):
        cell = wide.verdict.cell(metric, "p50", LEVEL)
        assert cell is not None
        assert (cell.verdict, cell.comparison.margin) == ("equivalent", margin)
        assert "below margin" in cell.comparison.modifiers


# ------------------------------------------------------------------ explanation


def test_every_cell_explains_itself_in_both_languages(base: Opened, tmp_path: Path) -> None:
    cases = [base, judge_two(tmp_path / "x", a={"levels": (4, 8), "repeats": 1}),
             judge_two(tmp_path / "y", arm_b={"precision": "fp8"})]  # fmt: skip
    for case in cases:
        for cell in (*case.verdict.cells, *case.verdict.headline):
            english, chinese = explain(cell), explain(cell, "zh")
            assert len(english) == len(chinese) >= 3
            assert all(line and "{" not in line for line in (*english, *chinese))


def test_explanation_holds_the_numbers_and_the_rule(base: Opened) -> None:
    cell = base.verdict.cell("tpot_s", "p50", LEVEL)
    assert cell is not None
    text = " ".join(explain(cell))
    c = cell.comparison
    assert c.ratio is not None
    assert c.p_adjusted is not None
    for part in (f"{c.ratio:.3f}", f"{c.p_adjusted:.2g}", "3 runs", "Welch 1947", "Rung 1",
                 "slower", "2 tests", "3 %"):  # fmt: skip
        assert part in text, part


# ------------------------------------------------------------------ beside the cells


def test_stability_by_hand(base: Opened) -> None:
    case = base
    rows = {(r["metric"], r["statistic"], r["level"]["concurrency"]): r
            for r in case.verdict.sections["stability"]}  # fmt: skip
    row = rows["ttft_s", "p95", 4]
    cell = case.verdict.cell("ttft_s", "p95", LEVEL)
    assert cell is not None
    values = [[v or 0.0 for _, v in runs] for runs in (cell.baseline_runs, cell.candidate_runs)]
    spread = [statistics.stdev(map(math.log, side)) for side in values]
    assert row["baseline"].value == pytest.approx(spread[0], rel=1e-9)
    assert row["ratio"].value == pytest.approx(spread[1] / spread[0], rel=1e-9)
    assert row["within_baseline"] == statistics.fmean(v <= 0.056 for v in values[0])
    assert row["within_candidate"] == statistics.fmean(v <= 0.056 for v in values[1])
    assert row["within_baseline"] > row["within_candidate"]
    assert dumped(case)["stability"][0]["metric"] == "ttft_s"


def cross(folder: Path, effects: Mapping[str, float], factor: str, other: Any) -> Opened:
    arms = {}
    for name, effect in effects.items():
        write_arm(folder, name, effect=effect)
        arms[name] = arm(name, cards=[name[0]], **({factor: other} if name.endswith("2") else {}))
    comparisons = [{"name": "ab", "baseline": "a", "candidate": "b"}]
    return open_verdict(write_campaign(folder, arms, comparisons=comparisons), "ab")


def test_gpu_by_precision_reports_the_interaction(tmp_path: Path) -> None:
    """INT8 makes a 1.9 and b 1.7 times as fast: ratio of ratios 1.9 / 1.7."""
    effects = {"a": 0.0, "b": -0.2, "a2": -math.log(1.9), "b2": -0.2 - math.log(1.7)}
    case = cross(tmp_path, effects, "precision", "int8")
    rows = [r for r in case.verdict.sections["factorial"] if r["metric"] == "tpot_s"]
    (row,) = rows
    assert (row["factor"], row["levels"]) == ("precision", ["bf16", "int8"])
    assert row["arms"] == ["a", "a2", "b", "b2"]
    assert row["of_factor_baseline"]["ratio"] == pytest.approx(1 / 1.9, rel=0.01)
    assert row["of_factor_candidate"]["ratio"] == pytest.approx(1 / 1.7, rel=0.01)
    found = row["interaction"]
    assert found["ratio"] == pytest.approx(1.9 / 1.7, rel=0.01)
    assert found["low"] < 1.9 / 1.7 < found["high"]
    assert found["p_adjusted"] < 0.05
    assert row["said"].code == "factor_differs_by_arm"
    assert not row["reverses"]
    values = [
        np.log(case.summary.frame.query(
            "metric == 'tpot_s' and statistic == 'p50' and window == 'steady' and arm == @name"
        ).value) for name in row["arms"]
    ]  # fmt: skip
    effect = (values[3].mean() - values[2].mean()) - (values[1].mean() - values[0].mean())
    assert found["ratio"] == pytest.approx(math.exp(effect), rel=1e-9)


def test_a_factor_that_acts_alike_says_so_and_one_that_reverses_too(tmp_path: Path) -> None:
    alike = {"a": 0.0, "b": -0.2, "a2": -0.5, "b2": -0.7}
    case = cross(tmp_path / "alike", alike, "precision", "int8")
    (row,) = [r for r in case.verdict.sections["factorial"] if r["metric"] == "tpot_s"]
    assert row["said"].code == "factor_alike"
    reverse = {"a": 0.0, "b": -0.2, "a2": 0.5, "b2": 0.8}
    case = cross(tmp_path / "reverse", reverse, "engine", "sglang")
    (row,) = [r for r in case.verdict.sections["factorial"] if r["metric"] == "tpot_s"]
    assert row["reverses"]
    assert row["said"].code == "factor_reverses"
    assert "change places with engine" in row["said"].message


def test_arms_that_differ_in_more_are_no_square(tmp_path: Path) -> None:
    folder = tmp_path
    arms = {}
    for name in ("a", "b", "a2", "b2"):
        write_arm(folder, name)
        second = name.endswith("2")
        arms[name] = arm(
            name, cards=[name[0]], precision="int8" if second else "bf16",
            host="other" if name == "b2" else "h",
        )  # fmt: skip
    comparisons = [{"name": "ab", "baseline": "a", "candidate": "b"}]
    case = open_verdict(write_campaign(folder, arms, comparisons=comparisons), "ab")
    assert case.verdict.sections["factorial"] == []


# ------------------------------------------------------------------ two tools


@pytest.mark.parametrize(("effect", "word"), [(0.05, "inconclusive"), (0.3, "slower")])
def test_two_load_generators_need_more_than_their_own_difference(
    effect: float, word: str, tmp_path: Path
) -> None:
    write_arm(tmp_path, "a")
    write_arm(tmp_path, "b", effect=effect)
    for path in (tmp_path / "b").glob("*.json"):
        raw = json.loads(path.read_text())
        raw |= {"server_info": {}, "total_output_tokens_retokenized": 1, "backend": "sglang"}
        for key in ("start_times", "latencies", "date", "endpoint_type", "model_id", "num_prompts"):
            raw.pop(key, None)
        path.write_text(json.dumps(raw))
    case = judged(tmp_path)
    assert not case.measured.lost
    cell = case.verdict.cell("tpot_s", "p50", LEVEL)
    assert cell is not None
    assert "confounded: client" in cell.comparison.modifiers
    assert cell.verdict == word
    if word == "inconclusive":
        assert "client_floor" in {c.code for c in cell.comparison.cautions}


def test_actions_name_levels_and_runs(tmp_path: Path) -> None:
    case = judge_two(tmp_path, a={"levels": (4, 8), "repeats": 2}, b={"repeats": 2, "effect": 0.02})
    found = {a.code: a for a in case.verdict.actions}
    assert found["action_run_level"].values == {"level": "8", "arm": "b"}
    assert found["action_more_runs"].values["level"] == "4"
    assert found["action_more_runs"].values["low"] >= 1
    ranks = [a.cells / a.runs for a in case.verdict.actions]
    assert ranks == sorted(ranks, reverse=True)
    assert len(ranks) <= 5


def test_words_are_among_those_of_the_contract(base: Opened) -> None:
    value = dumped(base)
    words = {cell["verdict"] for cell in (*value["cells"], *value["headline"])}
    assert words <= {*FLIPPED, "equivalent", "inconclusive", "not comparable"}


def test_two_systems_come_with_a_like_for_like_pair(tmp_path: Path) -> None:
    """a on vLLM against b on SGLang; b on vLLM was measured too, and answers for the card."""
    for name, effect in (("a", 0.0), ("b", 0.3), ("c", 0.1)):
        write_arm(tmp_path, name, effect=effect)
    arms = {
        "a": arm("a"), "b": arm("b", gpu="H100 SXM", engine="sglang"),
        "c": arm("c", gpu="H100 SXM"),
    }  # fmt: skip
    case = open_verdict(write_campaign(tmp_path, arms))
    assert case.verdict.comparability.scope == "systems"
    (pair,) = case.verdict.sections["like_for_like"]
    assert (pair["baseline"], pair["candidate"], pair["scope"]) == ("a", "c", "cards")
    (tpot,) = [row for row in pair["headline"] if row["metric"] == "tpot_s"]
    assert tpot["verdict"] == "slower"
    assert tpot["ratio"] == pytest.approx(math.exp(0.1), rel=0.01)
    assert dumped(case)["like_for_like"][0]["candidate"] == "c"
    # A report checks the health of its own two arms; the third comes in with the pair.
    opened = open_case(case.measured.campaign.path, "ab")
    assert opened.verdict.sections["like_for_like"] == case.verdict.sections["like_for_like"]
    assert set(opened.health.frame.arm) == {"a", "b"}


# ---------------------------------------------------------------- precision of one arm only


@pytest.mark.parametrize(
    ("candidate", "comparable"), [("bf16", True), ("fp8", False), ("int4", False), ("odd", False)]
)
def test_a_width_of_the_model_stands_for_the_arm_that_says_nothing(
    tmp_path: Path, candidate: str, comparable: bool
) -> None:
    """The model has 16 bits a weight; only the candidate names its precision."""
    case = judge_two(tmp_path, arm_a={"precision": None}, arm_b={"precision": candidate})
    assert (case.verdict.comparability.level != "not comparable") == comparable
    codes = {reason.code for reason in case.verdict.comparability.reasons}
    assert ("refused_factor" in codes) == (not comparable)


def test_a_headline_over_starved_levels_is_never_equivalent() -> None:
    """Levels at which neither arm kept the streams asked for say nothing of the arms."""
    alike = compare_arms(
        [1.0, 1.001, 0.999, 1.0], [1.001, 1.0, 0.999, 1.0], metric="tpot_s", margin=0.03
    )
    starved = dataclasses.replace(alike, modifiers=("not sustained",))
    words = [
        _withheld(alike, [cast(Cell, SimpleNamespace(comparison=one))]).verdict
        for one in (alike, starved)
    ]
    assert words == ["equivalent", "inconclusive"]
