"""Which differences refuse, widen, caution or block: section 6 of the method notes, row by row."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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

from gpuverdict.campaign import ModelSpec, read_campaign
from gpuverdict.case import device_identity, find_comparison
from gpuverdict.design import LATENCY, memory_need, mix_distance, run_order, step_floor_s
from gpuverdict.design.memory import kv_bytes_per_token, weight_bytes
from gpuverdict.design.touched import LENGTH_BOUND, PROMPT_BOUND
from gpuverdict.verdict import judge

LEVEL = '{"concurrency": 4}'
OTHER = {"effect": 0.1}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arms, b 10 % slower: enough for everything that only the campaign file decides."""
    folder = tmp_path_factory.mktemp("logs")
    write_arm(folder, "a")
    write_arm(folder, "b", **OTHER)
    return folder


# What changes how a file is read, so that the runs must be read again.
REREAD = {"client_version", "files"}


@functools.cache
def read_once(folder: Path) -> Opened:
    return open_verdict(write_campaign(folder, {"a": arm("a"), "b": arm("b")}))


def case(
    folder: Path, a: Mapping[str, Any] | None = None, b: Mapping[str, Any] | None = None,
    compare: Mapping[str, Any] | None = None, **keys: Any,
) -> Opened:  # fmt: skip
    """Judge two arms under a campaign file; the logs are read and summarised once a folder."""
    comparison = {"name": "ab", "baseline": "a", "candidate": "b", **(compare or {})}
    arms = {"a": arm("a", **(a or {})), "b": arm("b", **(b or {}))}
    if REREAD & {*(a or {}), *(b or {})}:
        return open_verdict(write_campaign(folder, arms, comparisons=[comparison], **keys))
    once = read_once(folder)
    campaign = read_campaign(write_campaign(folder, arms, comparisons=[comparison], **keys))
    measured = dataclasses.replace(once.measured, campaign=campaign)
    _, identity = device_identity(measured)
    spec = find_comparison(campaign, "ab")
    verdict = judge(measured, once.summary, spec, identity=identity, health=once.health)
    return dataclasses.replace(once, measured=measured, verdict=verdict)


def word(found: Opened, metric: str = "tpot_s", level: str | None = LEVEL) -> str:
    statistic = "p50" if metric in ("tpot_s", "ttft_s", "e2e_s", "itl_s") else "value"
    cell = found.verdict.cell(metric, statistic, level)
    assert cell is not None
    return cell.verdict


def codes(found: Opened) -> set[str]:
    return {r.code for r in found.verdict.comparability.reasons}


# ------------------------------------------------------------------ refusals

REFUSALS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "precision": ({}, {"precision": "fp8"}, "precision"),
    "kv_dtype": ({}, {"kv_dtype": "fp8"}, "kv_dtype"),
}


@pytest.mark.parametrize("name", list(REFUSALS))
def test_refusing_factor(name: str, logs: Path) -> None:
    a, b, factor = REFUSALS[name]
    found = case(logs, a, b)
    c = found.verdict.comparability
    assert c.level == "not comparable"
    assert [r.values["factor"] for r in c.refused] == [factor]
    assert {cell.verdict for cell in found.verdict.cells} == {"not comparable"}
    assert {cell.verdict for cell in found.verdict.headline} == {"not comparable"}
    declared = case(logs, a, b, {"treatment": [factor]})
    assert declared.verdict.comparability.refused == ()
    assert declared.verdict.comparability.scope == "cards"
    assert word(declared) == "slower"
    overridden = case(logs, a, b, {"override": {factor: "both were checked by hand"}})
    assert word(overridden) == "slower"
    cell = overridden.verdict.cell("tpot_s", "p50", LEVEL)
    assert cell is not None
    assert f"confounded: {factor}" in cell.comparison.modifiers
    assert "overridden" in codes(overridden)


def test_spelling_of_a_precision_is_no_difference(logs: Path) -> None:
    assert word(case(logs, {"precision": "bf16"}, {"precision": "BFloat16"})) == "slower"


@pytest.mark.parametrize("key", ["revision", "parameters", "weight_bits", "name", "id"])
def test_two_models_are_two_jobs(logs: Path, key: str) -> None:
    shape = {"name": "m", "parameters": 7e9, "weight_bits": 16, "revision": "1", "id": "m-7b"}
    other = {**shape, key: 8 if key in ("parameters", "weight_bits") else "other"}
    if key == "id":
        other["id"], shape["id"] = "m-7b", None  # type: ignore[assignment]
    keys = {"models": {"x": shape, "y": other}, "model": None}
    found = case(logs, {"model": "x"}, {"model": "y"}, **keys)
    if key == "id":
        assert found.verdict.comparability.refused == (), "unknown is never a refusal"
        return
    assert [r.values["factor"] for r in found.verdict.comparability.refused] == [f"model.{key}"]
    assert (
        word(case(logs, {"model": "x"}, {"model": "y"}, {"treatment": ["model"]}, **keys))
        == "slower"
    )


DEEP = {"name": "m", "parameters": 7e9, "weight_bits": 16, "layers": 32, "kv_heads": 8,
        "head_dim": 128}  # fmt: skip


@pytest.mark.parametrize("treatment", [[], ["layers"]], ids=["undeclared", "declared"])
@pytest.mark.parametrize(
    ("other", "refused"),
    [
        ({"layers": 34, "parameters": 7.4e9, "name": "m-34"}, []),
        ({"layers": 34, "parameters": 7.4e9, "kv_heads": 4}, ["model.kv_heads"]),
        ({"layers": 34, "parameters": 7.4e9, "weight_bits": 8}, ["model.weight_bits"]),
        # Two layers more of 32 add a sixteenth of the weights at most.
        ({"layers": 34, "parameters": 13e9}, ["model.parameters"]),
        ({"layers": 34, "parameters": 6.9e9}, ["model.parameters"]),
    ],
)
def test_a_declared_depth_is_the_question_and_nothing_else(
    other: dict[str, Any], refused: list[str], treatment: list[str], logs: Path
) -> None:
    models = {"x": DEEP, "y": {**DEEP, **other}}
    a = {"model": "x", "factors": {"layers": 32}}
    b = {"model": "y", "factors": {"layers": 34}}
    found = case(logs, a, b, {"treatment": treatment}, models=models, model=None)
    said = [r.values["factor"] for r in found.verdict.comparability.refused]
    if treatment:
        assert said == refused
        assert word(found) == ("not comparable" if refused else "slower")
    else:
        assert {"model.layers", "model.parameters", *refused} <= set(said)
        assert word(found) == "not comparable"


def test_one_log_in_both_arms_is_refused(logs: Path) -> None:
    found = case(logs, b={"files": "a/c{level}_r{repeat}.json"})
    assert [r.code for r in found.verdict.comparability.refused] == ["same_log_in_both_arms"]


# ------------------------------------------------------------------ scope

SCOPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "engine": ({}, {"engine": "sglang"}),
    "host": ({}, {"host": "other"}),
    "kernels": ({}, {"kernels": "triton"}),
    "scheduler": ({"scheduler": {"max_num_seqs": 64}}, {"scheduler": {"max_num_seqs": 256}}),
    "cuda_graphs": ({"factors": {"cuda_graphs": True}}, {"factors": {"cuda_graphs": False}}),
}


@pytest.mark.parametrize("name", list(SCOPES))
def test_what_widens_the_scope_to_systems(name: str, logs: Path) -> None:
    a, b = SCOPES[name]
    found = case(logs, a, b)
    c = found.verdict.comparability
    assert c.scope == "systems"
    assert c.differing == (name,)
    assert f"confounded: {name}" in c.modifiers
    assert "this card only" not in c.modifiers
    assert word(found) == "slower"
    assert [r.values["factor"] for r in c.caveats if r.code == "factor_differs"] == [name]
    declared = case(logs, a, b, {"treatment": [name]}).verdict.comparability
    assert declared.scope == "cards"
    assert declared.treatment == (name,)
    assert f"confounded: {name}" not in declared.modifiers


@pytest.mark.parametrize("name", list(SCOPES))
def test_what_one_arm_does_not_state_is_unchecked(name: str, logs: Path) -> None:
    _, b = SCOPES[name]
    silent = {name: None} if name in ("engine", "host", "kernels") else {}
    found = case(logs, silent, b).verdict.comparability
    assert found.scope == "cards"
    assert found.level == "caveats"
    (said,) = [r for r in found.caveats if r.code == "unchecked"]
    assert name in said.values["what"]
    assert any(m.startswith("unchecked: ") and name in m for m in found.modifiers)


def test_default_treatment_is_the_device_bundle(logs: Path) -> None:
    b = {"gpu": "RTX 4090 24GB", "gpus": 2, "tensor_parallel": 2}
    found = case(logs, {"tensor_parallel": 1}, b).verdict.comparability
    assert found.treatment == ("gpu", "gpus", "tensor_parallel")
    assert found.scope == "cards"
    assert not found.differing


def test_device_is_no_longer_free_where_something_else_is_the_question(logs: Path) -> None:
    found = case(
        logs, {}, {"gpu": "H100 SXM", "kernels": "triton"}, {"treatment": ["kernels"]}
    ).verdict.comparability  # fmt: skip
    assert found.scope == "systems"
    assert found.differing == ("gpu",)


def test_each_tuned_lets_the_arms_differ_in_their_own_settings(logs: Path) -> None:
    a, b = SCOPES["scheduler"]
    found = case(logs, a, b, mode="each_tuned").verdict.comparability
    assert found.scope == "cards"
    (said,) = [r for r in found.caveats if r.code == "each_tuned"]
    assert "scheduler" in said.values["factors"]
    engine = case(logs, a, {**b, "engine": "sglang"}, {"mode": "each_tuned"}).verdict.comparability
    assert engine.differing == ("engine",), "an engine is no setting"


# ------------------------------------------------------------------ caveats


@pytest.mark.parametrize(
    ("key", "a", "b"),
    [("engine_version", "0.9.0", "0.9.1"), ("driver", "580", "570"), ("cuda", "12.8", "12.9"),
     ("client_version", "0.32.0", "0.33.0")],
)  # fmt: skip
def test_versions_are_caveats(key: str, a: str, b: str, logs: Path) -> None:
    found = case(logs, {key: a}, {key: b})
    c = found.verdict.comparability
    assert (c.level, c.scope) == ("caveats", "cards")
    assert f"confounded: {key}" in c.modifiers
    assert word(found) == "slower"
    cell = found.verdict.cell("tpot_s", "p50", LEVEL)
    assert cell is not None
    assert "tipping_point" in {x.code for x in cell.comparison.cautions}


def test_definitions_of_two_client_versions_block_only_their_metric(logs: Path) -> None:
    """vLLM's client on the chat endpoint: before 0.33 TTFT stops at the first event."""
    folder = logs / "chat"
    options = {"keep": {"endpoint_type": "openai-chat"}}
    write_arm(folder, "a", **options)
    write_arm(folder, "b", **options, **OTHER)
    found = case(folder, {"client_version": "0.32.0"}, {"client_version": "0.33.0"})
    assert "ttft_s" in found.verdict.comparability.blocked
    assert word(found, "ttft_s") == "not comparable"
    assert word(found, "tpot_s") == "slower"
    overridden = case(folder, {"client_version": "0.32.0"}, {"client_version": "0.33.0"},
                      {"override": {"ttft_def": "no role chunk was sent"}})  # fmt: skip
    assert word(overridden, "ttft_s") == "slower"


def test_unknown_definition_is_a_caveat(logs: Path) -> None:
    found = case(logs, {"client_version": None}, {})
    assert "definition_unknown" in codes(found)
    assert word(found, "ttft_s") == "slower"


def test_client_place_blocks_first_tokens_until_the_round_trip_is_known(logs: Path) -> None:
    far = {"client": {"place": "other rack"}}
    found = case(logs, {}, far)
    assert word(found, "ttft_s") == word(found, "e2e_s") == "not comparable"
    assert word(found, "tpot_s") == "slower"
    known = case(logs, {"client": {"place": "same host", "rtt_s": 0.0}},
                 {"client": {"place": "other rack", "rtt_s": 0.0002}})  # fmt: skip
    assert word(known, "ttft_s") == "slower"


def test_sampling_blocks_what_depends_on_lengths(logs: Path) -> None:
    found = case(logs, {"sampling": {"temperature": 0}}, {"sampling": {"temperature": 1}})
    for metric in ("e2e_s", "output_tokens_per_s"):
        assert word(found, metric) == "not comparable"
    assert word(found) == "slower"


# ------------------------------------------------------------------ of a level


def test_output_lengths_two_per_cent_apart_block_throughput_not_tpot(tmp_path: Path) -> None:
    found = judge_two(tmp_path, a={"output_tokens": 50}, b={"output_tokens": 52, **OTHER})
    for metric in ("e2e_s", "output_tokens_per_s", "requests_per_s"):
        assert word(found, metric) == "not comparable", metric
    assert word(found) == "slower"
    near = judge_two(tmp_path / "near", a={"output_tokens": 50}, b={"output_tokens": 51, **OTHER})
    assert word(near, "output_tokens_per_s") == "slower"


@pytest.mark.parametrize(("failed", "blocked"), [(1, False), (2, True)])
def test_error_gap_blocks_latency_above_one_point(
    failed: int, blocked: bool, tmp_path: Path
) -> None:
    """100 requests a run: one failed is exactly one point, two are too many."""
    b = {"n": 100, "keep": {"failed": failed}, **OTHER}
    found = judge_two(tmp_path, a={"n": 100}, b=b)
    expected = "not comparable" if blocked else "slower"
    for metric in ("tpot_s", "ttft_s", "e2e_s"):
        assert word(found, metric) == expected
    assert word(found, "output_tokens_per_s") == "slower"
    assert word(found, "error_ratio") in ("worse", "inconclusive")


def test_override_of_an_error_gap_marks_its_cells(tmp_path: Path) -> None:
    case_ = judge_two(
        tmp_path, a={"n": 100}, b={"n": 100, "keep": {"failed": 5}, **OTHER},
        comparisons=[{"name": "ab", "baseline": "a", "candidate": "b",
                      "override": {"errors": "the failures hit before any work"}}],
    )  # fmt: skip
    cell = case_.verdict.cell("tpot_s", "p50", LEVEL)
    assert cell is not None
    assert cell.verdict == "slower"
    assert "confounded: errors" in cell.comparison.modifiers


def test_low_streams_in_flight_are_not_sustained(tmp_path: Path) -> None:
    for busy, sustained in ((0.95, True), (0.8, False)):
        found = judge_two(tmp_path / str(busy), a={"busy": busy}, b={"busy": busy, **OTHER})
        cell = found.verdict.cell("tpot_s", "p50", LEVEL)
        assert cell is not None
        assert ("not sustained" in cell.comparison.modifiers) is not sustained
        assert (cell.rung == 1) is sustained


def _mix(folder: Path, name: str, short: int, factor: float, bins: tuple[int, int]) -> None:
    """40 requests a run one after the other, `short` of them short: TTFT grows with the prompt."""
    (folder / name).mkdir(parents=True)
    for repeat in (1, 2, 3):
        rows, clock = [], 0.0
        order = np.random.default_rng(repeat).permutation(
            [bins[0]] * short + [bins[1]] * (40 - short)
        )
        for i, length in enumerate(order):
            ttft = factor * length * 1e-4 * (1 + 0.002 * ((i + repeat) % 3))
            gap = 0.01 * (1 + 0.001 * repeat)
            took = ttft + 31 * gap
            rows.append({"start": clock, "ttft": ttft, "gap": gap, "took": took,
                         "input": int(length), "output": 32})  # fmt: skip
            clock += took + 1e-5
        path = folder / name / f"c1_r{repeat}.json"
        path.write_text(json.dumps(vllm_result(rows, streams=1)))


ONE = '{"concurrency": 1}'


def test_unequal_prompt_mixes_are_brought_to_one_mix(tmp_path: Path) -> None:
    """b is 10 % faster in both length classes and serves the long ones."""
    _mix(tmp_path, "a", 32, 1.0, (100, 1000))
    _mix(tmp_path, "b", 8, 0.9, (100, 1000))
    found = open_verdict(write_campaign(tmp_path, {"a": arm("a"), "b": arm("b")}), "ab")
    raw = found.summary.frame.query(
        "metric == 'ttft_s' and statistic == 'p50' and window == 'steady'"
    ).groupby("arm").value.mean()  # fmt: skip
    assert raw["b"] > 2 * raw["a"], "uncorrected, b looks slower"
    cell = found.verdict.cell("ttft_s", "p50", ONE)
    assert cell is not None
    assert cell.comparison.ratio == pytest.approx(0.9, rel=0.005)
    assert cell.verdict == "faster"
    assert {"mix_standardised", "mix_bins"} <= {c.code for c in cell.comparison.cautions}
    tail = found.verdict.cell("ttft_s", "p95", ONE)
    assert tail is not None
    assert tail.verdict == "not comparable"
    assert word(found, "tpot_s", ONE) == "equivalent", "decode does not depend on the prompt mix"


def test_a_sign_flip_between_bins_is_mixed(tmp_path: Path) -> None:
    _mix(tmp_path, "a", 32, 1.0, (100, 1000))
    _mix(tmp_path, "b", 8, 1.0, (100, 1000))
    for repeat in (1, 2, 3):  # b: short prompts 20 % faster, long ones 20 % slower
        path = tmp_path / "b" / f"c1_r{repeat}.json"
        raw = json.loads(path.read_text())
        factors = [0.8 if n == 100 else 1.2 for n in raw["input_lens"]]
        raw["ttfts"] = [t * f for t, f in zip(raw["ttfts"], factors, strict=True)]
        path.write_text(json.dumps(raw))
    found = open_verdict(write_campaign(tmp_path, {"a": arm("a"), "b": arm("b")}), "ab")
    cell = found.verdict.cell("ttft_s", "p50", ONE)
    assert cell is not None
    assert "mixed" in cell.comparison.modifiers


def test_mixes_without_common_bins_are_refused(tmp_path: Path) -> None:
    _mix(tmp_path, "a", 40, 1.0, (100, 1000))
    _mix(tmp_path, "b", 0, 1.0, (100, 1000))
    found = open_verdict(write_campaign(tmp_path, {"a": arm("a"), "b": arm("b")}), "ab")
    for metric in ("ttft_s", "e2e_s"):
        assert word(found, metric, ONE) == "not comparable"
    assert word(found, "tpot_s", ONE) == "equivalent"


def test_prompts_one_token_apart_across_a_bin_edge_are_one_mix(tmp_path: Path) -> None:
    found = judge_two(tmp_path, a={"input_tokens": 511}, b={"input_tokens": 512, **OTHER})
    assert word(found, "ttft_s") == "slower"


def test_open_loop_lateness_and_saturation(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for repeat in (1, 2, 3):
            rows = closed_loop(streams=8, n=100, seed=repeat + ord(name))
            result = vllm_result(rows, streams=None, rate=100.0)
            result["queue_times"] = [0.05 * (name == "b")] * 100
            (tmp_path / name / f"r{repeat}.json").write_text(json.dumps(result))
    arms = {n: arm(n, files=f"{n}/r{{repeat}}.json") for n in ("a", "b")}
    found = open_verdict(write_campaign(tmp_path, arms, workload={"load": "open"}), "ab")
    level = '{"rate_requests_per_s": 100.0}'
    cell = found.verdict.cell("ttft_s", "p50", level)
    assert cell is not None
    said = {c.code for c in cell.comparison.cautions}
    assert cell.verdict == "not comparable"
    assert "client_saturated" in said
    other = found.verdict.cell("tpot_s", "p50", level)
    assert other is not None
    assert "rate_not_achieved" in {c.code for c in other.comparison.cautions}


# ------------------------------------------------------------------ circumstances


def test_runs_not_as_planned_are_said(logs: Path) -> None:
    found = case(logs, design={"runs_per_arm": 5})
    cell = found.verdict.cell("tpot_s", "p50", LEVEL)
    assert cell is not None
    said = [c for c in cell.comparison.cautions if c.code == "runs_not_as_planned"]
    assert [(c.values["arm"], c.values["planned"], c.values["found"]) for c in said] == [
        ("a", 5, 3), ("b", 5, 3)
    ]  # fmt: skip
    assert "runs_not_fixed" in codes(case(logs, design={}))


def test_two_looks_test_at_their_own_levels(logs: Path) -> None:
    first = case(logs, design={"runs_per_arm": 5, "two_look": True})
    final = case(logs, design={"runs_per_arm": 3, "two_look": True})
    for found, alpha, code in ((first, 0.01, "two_look_first"), (final, 0.045, "two_look_final")):
        cell = found.verdict.cell("tpot_s", "p50", LEVEL)
        assert cell is not None
        assert cell.comparison.alpha == alpha
        assert code in {c.code for c in cell.comparison.cautions}
        headline = found.verdict.cell("tpot_s", "p50", None)
        assert headline is not None
        assert headline.comparison.alpha == alpha


@pytest.mark.parametrize(
    ("order", "name"),
    [("AAABBB", "AABB"), ("ABABAB", "ABAB"), ("ABBAAB", "ABBA"), ("ABABBA", "ABBA"),
     ("AABABB", "mixed"), ("BBBAAA", "AABB"), ("AB", "ABAB")],
)  # fmt: skip
def test_order_of_runs(order: str, name: str, logs: Path) -> None:
    facts = list(case(logs).summary.facts.values())
    arms: dict[str, list[Any]] = {"A": [], "B": []}
    for position, letter in enumerate(order):
        fact = facts[0]
        info = {**fact.run.stored.info, "t0_epoch_s": 1000.0 * position, "duration_s": 100.0}
        stored = dataclasses.replace(fact.run.stored, info=info)
        run = dataclasses.replace(fact.run, stored=stored, server_start_id=f"s{position}")
        arms[letter].append(dataclasses.replace(fact, run=run))
    assert run_order(arms["A"], arms["B"]) == name
    assert run_order(arms["B"], arms["A"]) == name
    for held in arms["A"]:
        held.run.stored.info["t0_epoch_s"] = None
    assert run_order(arms["A"], arms["B"]) is None


def test_simultaneous_runs(logs: Path) -> None:
    facts = list(case(logs).summary.facts.values())
    arms: dict[str, list[Any]] = {"A": [], "B": []}
    for position in range(6):
        info = {**facts[0].run.stored.info, "t0_epoch_s": 1000.0 * (position // 2) + position % 2,
                "duration_s": 100.0}  # fmt: skip
        stored = dataclasses.replace(facts[0].run.stored, info=info)
        run = dataclasses.replace(facts[0].run, stored=stored, server_start_id=f"s{position}")
        arms["AB"[position % 2]].append(dataclasses.replace(facts[0], run=run))
    assert run_order(arms["A"], arms["B"]) == "simultaneous"


# ------------------------------------------------------------------ cards and models


def _cards(folder: Path, name: str, spread: float, effect: float) -> None:
    for number, offset in enumerate((-spread, 0.0, spread)):
        write_arm(folder, f"{name}{number}", effect=effect + offset)


def test_three_cards_an_arm_make_the_card_the_unit(tmp_path: Path) -> None:
    """Runs agree to 0.4 %, cards to 3 %: nine runs would call the models different."""
    _cards(tmp_path, "a", 0.03, 0.0)
    _cards(tmp_path, "b", 0.03, 0.03)
    arms = {
        n: arm(n, cards=[f"{n}{i}" for i in range(3)], files="{card}/c{level}_r{repeat}.json")
        for n in ("a", "b")
    }
    for n in ("a", "b"):
        arms[n]["files"] = [f"{n}{i}/c{{level}}_r{{repeat}}.json" for i in range(3)]
    unmapped = open_verdict(write_campaign(tmp_path, arms), "ab")
    assert "cards_not_mapped" in codes(unmapped)
    assert unmapped.verdict.comparability.scope == "cards"
    for n in ("a", "b"):
        arms[n]["files"] = "{card}/c{level}_r{repeat}.json"
        arms[n]["cards"] = [f"{n}{i}" for i in range(3)]
    for n in ("a", "b"):
        (tmp_path / f"of-{n}").mkdir()
        for i in range(3):
            (tmp_path / f"{n}{i}").rename(tmp_path / f"of-{n}" / f"{n}{i}")
        arms[n]["files"] = f"of-{n}/{{card}}/c{{level}}_r{{repeat}}.json"
    found = open_verdict(write_campaign(tmp_path, arms), "ab")
    c = found.verdict.comparability
    assert c.scope == "models"
    assert c.cards == (3, 3)
    assert "this card only" not in c.modifiers
    cell = found.verdict.cell("tpot_s", "p50", LEVEL)
    assert cell is not None
    assert (cell.comparison.n_baseline, cell.comparison.n_candidate) == (3, 3)
    assert cell.comparison.test == "cards"
    assert "cards_are_units" in {x.code for x in cell.comparison.cautions}
    assert cell.verdict == "inconclusive"
    assert len(cell.baseline_runs) == 9
    # The second route: Welch over the geometric means of the cards.
    frame = found.summary.frame.query(
        "metric == 'tpot_s' and statistic == 'p50' and window == 'steady'"
    )
    cards = {r.run_id: r.card for r in found.measured.runs}
    by_card = np.log(frame.value).groupby([frame.arm, frame.run_id.map(cards)]).mean()
    p = scipy_stats.ttest_ind(by_card["b"], by_card["a"], equal_var=False).pvalue
    assert cell.comparison.p_value == pytest.approx(p, rel=1e-9)
    headline = found.verdict.cell("tpot_s", "p50", None)
    assert headline is not None
    assert headline.comparison.p_value == pytest.approx(p, rel=1e-6)
    assert (headline.comparison.n_baseline, headline.comparison.n_candidate) == (3, 3)


# ------------------------------------------------------------------ quality


def test_quality_stands_beside_a_precision(logs: Path) -> None:
    compare = {"treatment": ["precision"]}
    unknown = case(logs, {}, {"precision": "fp8"}, compare)
    assert "quality_unknown" in codes(unknown)
    assert "quality unknown" in unknown.verdict.comparability.modifiers
    score = {"quality": {"score": 71.2, "n": 500, "source": "exam"}}
    known = case(logs, score, {"precision": "fp8", "quality": {"score": 69.9, "n": 500}}, compare)
    said = known.verdict.comparability.quality
    assert said is not None
    assert said.code == "quality_stated"
    assert known.verdict.sections["quality"]["baseline"]["score"] == 71.2
    assert "quality unknown" not in known.verdict.comparability.modifiers
    assert case(logs).verdict.comparability.quality is None


# ------------------------------------------------------------------ parts


def test_mix_distance_and_chance() -> None:
    assert mix_distance({"a": 90, "b": 10}, {"a": 10, "b": 90})[0] == pytest.approx(0.8)
    draws = np.random.default_rng(1)
    seen = []
    for _ in range(400):
        one, two = (np.bincount(draws.integers(0, 8, 50), minlength=8) for _ in range(2))
        pair = [{str(i): int(n) for i, n in enumerate(x)} for x in (one, two)]
        seen.append(mix_distance(pair[0], pair[1]))
    distances, chances = zip(*seen, strict=True)
    assert np.mean(chances) == pytest.approx(np.mean(distances), rel=0.05)


def test_touched_metrics_exist() -> None:
    from gpuverdict.schema import METRICS

    assert {*LATENCY, *LENGTH_BOUND, *PROMPT_BOUND} <= set(METRICS)


@pytest.mark.parametrize(
    ("model", "precision", "right"),
    [({"parameters": 7e9, "weight_bits": 16}, "bf16", 14e9),
     ({"parameters": 7e9, "weight_bits": 16}, "fp8", 7e9),
     ({"parameters": 7e9}, "int4 awq", 3.5e9),
     ({"parameters": 7e9, "weight_bits": 16, "weight_bytes": 13.5e9}, "bf16", 13.5e9),
     ({"parameters": 7e9, "weight_bits": 16, "weight_bytes": 13.5e9}, "int8", 7e9),
     ({"weight_bytes": 5e9}, None, 5e9), ({}, "bf16", None)],
)  # fmt: skip
def test_weight_bytes(model: dict[str, Any], precision: str | None, right: float | None) -> None:
    assert weight_bytes(ModelSpec(name="m", **model), precision) == right


def test_kv_bytes() -> None:
    shape = {"layers": 32, "kv_heads": 32, "head_dim": 128}
    assert kv_bytes_per_token(ModelSpec(name="m", **shape, kv_bits=16)) == 524288
    assert kv_bytes_per_token(ModelSpec(name="m", **shape, kv_bits=16), "fp8_e4m3") == 262144
    assert kv_bytes_per_token(ModelSpec(name="m", kv_bytes_per_token=70272, **shape)) == 70272
    assert kv_bytes_per_token(ModelSpec(name="m", layers=32)) is None


def test_memory_need_fits_or_not(logs: Path) -> None:
    shape = {"name": "m", "parameters": 7e9, "weight_bits": 16, "layers": 32, "kv_heads": 32,
             "head_dim": 128, "kv_bits": 16}  # fmt: skip
    case(logs, {"gpu": "RTX 4090 24GB", "gpus": 2}, model=shape)
    campaign = read_campaign(logs)
    need = memory_need(campaign, "a", 1000.0)
    assert need.weights == 14e9
    assert need.kv == 524288000
    assert need.memory == 2 * 24 * 2**30
    assert need.fits is True
    assert memory_need(campaign, "a", None).fits is None
    assert memory_need(campaign, "a", 1e6).fits is False


def test_a_decode_faster_than_its_weights_is_flagged_not_refused(logs: Path) -> None:
    """140 GB over 4.8 TB/s are 29 ms a step: 10 ms cannot be."""
    big = {"name": "m", "parameters": 70e9, "weight_bits": 16, "weight_bytes": 139e9}
    found = case(logs, model=big)
    cell = found.verdict.cell("tpot_s", "p50", LEVEL)
    assert cell is not None
    assert cell.verdict == "slower"
    said = [c for c in cell.comparison.cautions if c.code == "faster_than_weights"]
    assert {c.values["arm"] for c in said} == {"a", "b"}
    assert said[0].values["floor_s"] == pytest.approx(139e9 / 4.8e12, rel=0.01)
    plain = case(logs).verdict.cell("tpot_s", "p50", LEVEL)
    assert plain is not None
    assert "faster_than_weights" not in {c.code for c in plain.comparison.cautions}


@pytest.mark.parametrize(
    ("model", "keys", "right"),
    [({"parameters": 7e9, "weight_bits": 16}, {}, 14e9 / 4.8e12),
     ({"parameters": 7e9, "weight_bits": 16}, {"gpus": 2}, 7e9 / 4.8e12),
     ({"parameters": 7e9, "weight_bits": 16}, {"gpus": 2, "data_parallel": 2}, 14e9 / 4.8e12),
     ({"parameters": 8e9, "active_parameters": 2e9, "weight_bits": 16}, {}, 4e9 / 4.8e12),
     ({"parameters": 7e9, "weight_bits": 16, "read_bytes_per_step": 12e9}, {}, 12e9 / 4.8e12),
     ({}, {}, None)],
)  # fmt: skip
def test_step_floor(
    model: dict[str, Any], keys: dict[str, Any], right: float | None, logs: Path
) -> None:
    path = write_campaign(
        logs, {"a": arm("a", **keys), "b": arm("b")}, model={"name": "m", **model}
    )
    found = step_floor_s(read_campaign(path), "a")
    assert found == (None if right is None else pytest.approx(right, rel=1e-9))
