"""Every rung of the ladder (section 6 of the method notes): a campaign that ends there, and a near
miss of the same shape that ends a rung higher."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
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

from gpuverdict.verdict import Cell

SLOWER = {"effect": 0.10}
NO_STARTS = {"starts": False}
SUMMARY_ONLY = {"detail": False}
SHAPE = {"name": "m", "parameters": 7e9, "weight_bits": 16, "layers": 32, "kv_heads": 32,
         "head_dim": 128, "kv_bits": 16}  # fmt: skip


def cell(case: Opened, streams: int = 4, metric: str = "tpot_s") -> Cell:
    statistic = "value" if metric == "output_tokens_per_s" else "p50"
    found = case.verdict.cell(metric, statistic, f'{{"concurrency": {streams}}}')
    assert found is not None
    return found


def codes(found: Cell) -> set[str]:
    return {c.code for c in found.comparison.cautions}


@dataclasses.dataclass(frozen=True)
class Step:
    """One campaign of the ladder: how to write it, and where its cell must end."""

    name: str
    write: Callable[[Path], Opened]
    rung: int
    word: str
    modifiers: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    streams: int = 4


def _no_runs_of_b(folder: Path, shape: dict[str, Any], gpu: str = "H200 SXM") -> Opened:
    write_arm(folder, "a", n=8)
    arms = {"a": arm("a"), "b": {**arm("b", gpu=gpu), "files": "b/none*.json"}}
    workload = {"load": "closed", "input_tokens": 256, "output_tokens": 32}
    return open_verdict(write_campaign(folder, arms, model=shape, workload=workload), "ab")


def _declared_infeasible(folder: Path) -> Opened:
    write_arm(folder, "a", levels=(4, 8))
    write_arm(folder, "b")
    arms = {"a": arm("a"), "b": arm("b", infeasible=[{"level": 8, "reason": "out of memory"}])}
    return open_verdict(write_campaign(folder, arms), "ab")


def _starved(folder: Path, **keep: Any) -> Opened:
    options = {"busy": 0.5, "keep": keep}
    return judge_two(folder, a=options, b={**options, **SLOWER})


STEPS = [
    Step("like for like", lambda d: judge_two(d, b=SLOWER), 1, "slower",
         modifiers=("this card only",), absent=("confounded: engine",)),
    Step("two systems", lambda d: judge_two(d, b=SLOWER, arm_b={"engine": "sglang"}), 2, "slower",
         modifiers=("confounded: engine",), absent=("this card only",)),
    Step("two systems, near miss: the engine is the question",
         lambda d: judge_two(d, b=SLOWER, arm_b={"engine": "sglang"}, comparisons=[
             {"name": "ab", "baseline": "a", "candidate": "b", "treatment": ["engine"]}]),
         1, "slower", absent=("confounded: engine",)),
    Step("whole runs of one job",
         lambda d: judge_two(d, a={"keep": NO_STARTS}, b={**SLOWER, "keep": NO_STARTS}),
         3, "slower",
         modifiers=("ramp included", "whole_run"), codes=("whole_runs_of_one_job",)),
    Step("whole runs, near miss: start times in both arms but two engines",
         lambda d: judge_two(d, b=SLOWER, arm_b={"engine": "sglang"}), 2, "slower",
         absent=("ramp included", "whole_run")),
    Step("as reported",
         lambda d: judge_two(d, a={"keep": SUMMARY_ONLY}, b={**SLOWER, "keep": SUMMARY_ONLY}),
         4, "slower", modifiers=("as reported", "whole_run"), absent=("ramp included",)),
    Step("as reported, near miss: request rows without start times",
         lambda d: judge_two(d, a={"keep": NO_STARTS}, b={**SLOWER, "keep": NO_STARTS}),
         3, "slower",
         absent=("as reported",)),
    Step("order only: whole runs of unlike jobs",
         lambda d: judge_two(d, a={"keep": NO_STARTS}, b={**SLOWER, "n": 100, "keep": NO_STARTS}),
         5, "inconclusive", modifiers=("order only",), codes=("all_above",
                                                              "whole_runs_of_unlike_jobs")),
    Step("order only: a client that does not keep its streams busy", _starved,
         5, "inconclusive", modifiers=("order only", "not sustained"),
         codes=("not_sustained", "all_above")),
    Step("order only, near miss: the same as the tool reported it",
         lambda d: _starved(d, **SUMMARY_ONLY), 4, "slower",
         modifiers=("as reported", "not sustained"), absent=("order only",)),
    Step("only one arm", lambda d: judge_two(d, a={"levels": (4, 8)}, b=SLOWER), 6,
         "not comparable", codes=("only_one_arm",), streams=8),
    Step("only one arm, the other is out of memory", _declared_infeasible, 6, "not comparable",
         codes=("infeasible",), streams=8),
    Step("only one arm, near miss: both ran it, as unlike jobs",
         lambda d: judge_two(d, a={"levels": (4, 8), "keep": NO_STARTS},
                            b={"levels": (4, 8), "n": 100, "keep": NO_STARTS, **SLOWER}),
         5, "inconclusive", absent=("computed, not measured",), streams=8),
    Step("a computed bound", lambda d: _no_runs_of_b(d, SHAPE), 7, "not comparable",
         modifiers=("computed, not measured",), codes=("memory_fits", "not_measured_level")),
    Step("a computed bound that forbids",
         lambda d: _no_runs_of_b(d, {**SHAPE, "parameters": 70e9}, "RTX 4090 24GB"), 7,
         "not comparable", modifiers=("computed, not measured",), codes=("memory_exceeded",)),
    Step("a computed bound, near miss: the arm ran another level",
         lambda d: judge_two(d, a={"levels": (4, 8)}, b=SLOWER, model=SHAPE,
                            workload={"load": "closed", "input_tokens": 256, "output_tokens": 32}),
         6, "not comparable", codes=("only_one_arm", "memory_fits"),
         absent=("computed, not measured",), streams=8),
    Step("not measured", lambda d: _no_runs_of_b(d, {"name": "m"}), 8, "not comparable",
         codes=("not_measured_level",), absent=("computed, not measured",)),
    Step("not measured, near miss: the model's size is known",
         lambda d: _no_runs_of_b(d, SHAPE), 7, "not comparable"),
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_rung(step: Step, tmp_path: Path) -> None:
    case = step.write(tmp_path)
    found = cell(case, step.streams)
    assert (found.rung, found.verdict) == (step.rung, step.word)
    assert set(step.modifiers) <= set(found.comparison.modifiers)
    assert not set(step.absent) & set(found.comparison.modifiers)
    assert set(step.codes) <= codes(found)
    if step.rung >= 5:
        assert found.comparison.p_value is None
    if step.rung >= 6:
        assert found.comparison.ratio is None
    headline = case.verdict.cell("tpot_s", "p50", None)
    assert headline is not None
    if step.streams == 4:
        assert headline.rung == (step.rung if step.rung <= 5 else 8)


def test_every_rung_has_a_campaign_and_a_near_miss() -> None:
    assert {step.rung for step in STEPS} == set(range(1, 9))
    misses = {step.rung for step in STEPS if "near miss" in step.name}
    assert misses == {1, 2, 3, 4, 5, 6, 7}


def test_refused_cell_is_not_comparable_and_shows_both_values(tmp_path: Path) -> None:
    case = judge_two(tmp_path, b=SLOWER, arm_b={"precision": "fp8"})
    found = cell(case)
    assert (found.rung, found.verdict) == (8, "not comparable")
    assert found.comparison.ratio is None
    assert found.comparison.baseline == pytest.approx(0.01, rel=0.02)
    assert case.verdict.comparability.level == "not comparable"
    assert {r.code for r in case.verdict.comparability.refused} == {"refused_factor"}


def test_weights_beyond_the_card_while_it_ran_is_hidden_offload(tmp_path: Path) -> None:
    case = judge_two(tmp_path, arm_b={"gpu": "RTX 4090 24GB"},
                    model={"name": "m", "parameters": 70e9, "weight_bits": 16})  # fmt: skip
    assert [r.code for r in case.verdict.comparability.refused] == ["hidden_offload"]
    assert all(c.rung == 8 for c in case.verdict.cells)


def test_kv_cache_beyond_the_card_refuses_only_that_level(tmp_path: Path) -> None:
    """14 GB of weights and 0.5 MB a token: 24 GB hold 22,000 tokens, not 8 requests of 4,000."""
    long = {"levels": (1, 8), "n": 40, "input_tokens": 4000}
    case = judge_two(
        tmp_path, a=long, b={**long, **SLOWER},
        arm_a={"gpu": "RTX 4090 24GB"}, arm_b={"gpu": "RTX 4090 24GB"}, model=SHAPE,
    )  # fmt: skip
    assert cell(case, 1).rung == 1
    refused = cell(case, 8)
    assert refused.rung == 8
    assert "hidden_offload" in codes(refused)


def test_memory_refusal_can_be_overridden(tmp_path: Path) -> None:
    case = judge_two(
        tmp_path, b=SLOWER, arm_b={"gpu": "RTX 4090 24GB"},
        model={"name": "m", "parameters": 70e9, "weight_bits": 16},
        comparisons=[{"name": "ab", "baseline": "a", "candidate": "b",
                      "override": {"memory": "CPU offload was meant"}}],
    )  # fmt: skip
    found = cell(case)
    assert (found.rung, found.verdict) == (1, "slower")
    assert "confounded: memory" in found.comparison.modifiers


def test_reported_sweep_with_idle_streams_is_never_equivalent(tmp_path: Path) -> None:
    """Two equal clients that cannot keep 64 streams busy do not make two GPUs equal."""
    options = {"levels": (64,), "n": 640, "busy": 0.3, "keep": SUMMARY_ONLY}
    case = judge_two(tmp_path, a=options, b=options)
    found = cell(case, 64)
    assert found.rung == 4
    assert found.comparison.ci90_high is not None
    assert found.comparison.ci90_high < 1.03, "the runs themselves are equivalent"
    assert found.verdict == "inconclusive"
    assert {"as reported", "not sustained"} <= set(found.comparison.modifiers)
    busy = judge_two(tmp_path / "busy", a={**options, "busy": 1.0}, b={**options, "busy": 1.0})
    assert cell(busy, 64).verdict == "equivalent"
    assert "not sustained" not in cell(busy, 64).comparison.modifiers


def test_few_requests_a_stream_are_no_idle_client(tmp_path: Path) -> None:
    """Eight streams and twenty requests: the drain alone keeps the mean in flight below 90 %."""
    options = {"levels": (8,), "n": 20, "keep": NO_STARTS}
    case = judge_two(tmp_path, a=options, b={**options, **SLOWER})
    assert cell(case, 8).rung == 3


def test_helper_writes_what_it_claims() -> None:
    rows = closed_loop(streams=2, n=10, noise=0.0)
    result = vllm_result(rows, streams=2)
    assert result["p50_tpot_ms"] == pytest.approx(10.0)
    assert result["completed"] == 10
    late = sorted(result["start_times"])
    assert late[2] - late[0] == pytest.approx(0.05 + 31 * 0.01 + 1e-5)
