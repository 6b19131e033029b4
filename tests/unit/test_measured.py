"""From files to runs in their place: level, repeat, sweep, server start, card; and what is lost."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.campaigns import arm, closed_loop, vllm_result, write_arm, write_campaign

from gpuverdict.campaign import read_campaign
from gpuverdict.measured import Measured, level_label, measure


def opened(folder: Path, arms: Mapping[str, Any] | None = None, **keys: Any) -> Measured:
    path = write_campaign(folder, arms or {"a": arm("a"), "b": arm("b")}, **keys)
    return measure(read_campaign(path))


def write(path: Path, streams: int | None = 4, n: int = 12, **more: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    seed = sum(map(ord, path.name))
    rows = closed_loop(streams=streams or 4, n=n, seed=seed)
    path.write_text(json.dumps(vllm_result(rows, streams=streams, **more)))


def places(measured: Measured, name: str = "a") -> list[tuple[Any, int]]:
    return [(next(iter(r.level.values())), r.repeat_no) for r in measured.runs_of(name)]


def test_a_file_a_level_and_repeat(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", levels=(4, 16, 1), n=12)
    write_arm(tmp_path, "b", n=12)
    measured = opened(tmp_path)
    assert places(measured) == [(c, r) for c in (1, 4, 16) for r in (1, 2, 3)]
    starts = {r.server_start_id for r in measured.runs_of("a")}
    assert len(starts) == 3, "server_starts: each, one a repeat"
    assert {r.card for r in measured.runs} == {"a", "b"}
    assert not measured.lost


def test_a_level_that_neither_log_nor_name_says_is_given_in_the_campaign(tmp_path: Path) -> None:
    header = "request_index,status,start_s,first_token_s,last_token_s,end_s,input_tokens,"
    rows = [f"{i},ok,{i}.0,{i}.1,{i}.9,{i}.9,8,9,usage" for i in range(12)]
    (tmp_path / "home.csv").write_text("\n".join([f"{header}output_tokens,output_tokens_source",
                                                  *rows]))  # fmt: skip
    lost = opened(tmp_path, {"a": arm("a", files="home.csv")}, comparisons=[]).lost
    assert [str(item.error).partition(", or give it")[2] for item in lost] == [
        " as `files:` and `level:`"
    ]
    given = {"files": "home.csv", "level": 8}
    measured = opened(tmp_path, {"a": arm("a", files=given)}, comparisons=[])
    assert not measured.lost
    assert places(measured) == [(8, 1)]
    # The log's own word stands: what contradicts it is lost, with both numbers.
    write(tmp_path / "a" / "said.json", streams=4)
    given = {"files": "a/said.json", "level": 8}
    lost = opened(tmp_path, {"a": arm("a", files=given)}, comparisons=[]).lost
    assert "level 4 in the log and 8" in str(lost[0].error)


def test_shared_start_keeps_sweeps_apart(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", levels=(4, 8), n=12)
    write_arm(tmp_path, "b", levels=(4, 8), n=12)
    measured = opened(tmp_path, {"a": arm("a", server_starts="shared"), "b": arm("b")})
    runs = measured.runs_of("a")
    assert {r.server_start_id for r in runs} == {"a/shared"}
    by_sweep = {r.sweep_id for r in runs}
    assert len(by_sweep) == 3
    assert all(len([r for r in runs if r.sweep_id == s]) == 2 for s in by_sweep)


def test_appended_results_of_one_file_are_repeats(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    lines = [
        json.dumps(vllm_result(closed_loop(streams=c, n=12, seed=10 * c + r), streams=c))
        for r in range(3)
        for c in (4, 8)
    ]
    (tmp_path / "a" / "all.json").write_text("\n".join(lines))
    write_arm(tmp_path, "b", levels=(4, 8), n=12)
    measured = opened(tmp_path, {"a": arm("a", files="a/all.json"), "b": arm("b")})
    assert places(measured) == [(c, r) for c in (4, 8) for r in (1, 2, 3)]


def test_sweeps_number_their_repeats_in_natural_order(tmp_path: Path) -> None:
    for repeat in (1, 2, 10):
        lines = [
            json.dumps(vllm_result(closed_loop(streams=c, n=12, seed=repeat), streams=c))
            for c in (4, 8)
        ]
        path = tmp_path / "a" / f"r{repeat}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines))
    write_arm(tmp_path, "b", n=12)
    entry = {**arm("a"), "sweeps": "a/r*.json"}
    del entry["files"]
    measured = opened(tmp_path, {"a": entry, "b": arm("b")})
    runs = measured.runs_of("a")
    assert [(r.path, r.repeat_no) for r in runs if r.level == {"concurrency": 4}] == [
        ("a/r1.json", 1), ("a/r2.json", 2), ("a/r10.json", 3)
    ]  # fmt: skip
    assert len({r.sweep_id for r in runs}) == 3


def test_runs_are_one_start_each(tmp_path: Path) -> None:
    for repeat in (1, 2):
        write(tmp_path / "a" / f"x{repeat}.json")
    write_arm(tmp_path, "b", n=12)
    entry = {**arm("a"), "runs": "a/x*.json", "server_starts": "shared"}
    del entry["files"]
    runs = opened(tmp_path, {"a": entry, "b": arm("b")}).runs_of("a")
    assert len({r.server_start_id for r in runs}) == 2


def test_the_same_bytes_twice_are_read_once_and_said(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", n=12)
    write_arm(tmp_path, "b", n=12)
    shutil.copy(tmp_path / "a" / "c4_r1.json", tmp_path / "a" / "c4_r4.json")
    measured = opened(tmp_path)
    assert [r.repeat_no for r in measured.runs_of("a")] == [1, 2, 3]
    (said,) = [c for c in measured.cautions if c.code == "duplicate_file"]
    assert said.values["path"] == "a/c4_r4.json"
    assert said.values["other"] == "a/c4_r1.json"


def test_first_run_is_left_out_by_rule_in_both_arms(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", n=12)
    write_arm(tmp_path, "b", n=12)
    measured = opened(tmp_path, design={"exclude_first": True, "runs_per_arm": 3})
    for name in ("a", "b"):
        assert [r.repeat_no for r in measured.runs_of(name)] == [2, 3]
    assert [c.code for c in measured.cautions] == ["first_run_excluded"] * 2


def test_two_files_of_one_repeat_lose_the_second(tmp_path: Path) -> None:
    write(tmp_path / "a" / "x-c4_r1.json")
    write(tmp_path / "a" / "y-c4_r1.json")
    write_arm(tmp_path, "b", n=12)
    measured = opened(tmp_path, {"a": arm("a", files="a/*-c{level}_r{repeat}.json"), "b": arm("b")})
    assert places(measured) == [(4, 1)]
    assert "a/x-c4_r1.json holds it already" in measured.lost[0].error


LOSSES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    # what the log says, what the campaign says, what the line says
    "level": ({"streams": 8}, {}, ["level 8 in the log", "4 in its name"]),
    "no level": ({"streams": None}, {"files": "a/c*_r{repeat}.json"}, ["no level", "{level}"]),
    "model id": ({"model_id": "other"}, {}, ["'other'", "model.id 'm-7b'"]),
    "input length": ({"random_input_len": 999}, {}, ["999 input tokens", "256"]),
    "output length": ({"random_output_len": 7}, {}, ["7 output tokens", "32"]),
    "precision": ({"dtype": "float16"}, {}, ["'float16'", "'bf16'"]),
    "tensor parallel": ({"tp": 2}, {"tensor_parallel": 1}, ["tensor parallel 2", "1"]),
    "count": ({"n": 20}, {}, ["20 requests", "workload.requests 12"]),
    "card": ({}, {"files": "{card}/c{level}_r{repeat}.json", "cards": ["x", "y"]},
             ["the card 'a'", "x, y"]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(LOSSES))
def test_contradiction_costs_the_file_and_names_both_sides(name: str, tmp_path: Path) -> None:
    logged, stated, parts = LOSSES[name]
    write(tmp_path / "a" / "c4_r1.json", **logged)
    write_arm(tmp_path, "b", n=12)
    measured = opened(
        tmp_path, {"a": arm("a", **stated), "b": arm("b")},
        model={"name": "m", "id": "m-7b", "weight_bits": 16},
        workload={"load": "closed", "input_tokens": 256, "output_tokens": 32, "requests": 12},
    )  # fmt: skip
    assert measured.runs_of("a") == []
    assert len(measured.runs_of("b")) == 3
    lost = next(item for item in measured.lost if item.path == "a/c4_r1.json")
    for part in ("a/c4_r1.json", *parts):
        assert part in lost.error
    assert "\n" not in lost.error


def test_what_agrees_is_kept(tmp_path: Path) -> None:
    write(tmp_path / "a" / "c4_r1.json", dtype="torch.bfloat16", tp=1, random_input_len=256)
    write_arm(tmp_path, "b", n=12)
    measured = opened(
        tmp_path, {"a": arm("a", tensor_parallel=1), "b": arm("b")},
        workload={"load": "closed", "input_tokens": 256, "requests": 12},
    )  # fmt: skip
    assert not measured.lost
    assert len(measured.runs_of("a")) == 1


def test_a_run_short_of_its_plan_is_kept_and_said(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", n=12)
    write_arm(tmp_path, "b", n=12)
    measured = opened(tmp_path, workload={"load": "closed", "requests": 20})
    assert len(measured.runs) == 6
    assert all([c.code for c in r.cautions] == ["short_of_plan"] for r in measured.runs)


def test_bad_and_missing_files_cost_their_run_only(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", n=12)
    write_arm(tmp_path, "b", n=12)
    (tmp_path / "a" / "c4_r2.json").write_text("")
    (tmp_path / "b" / "c4_r3.json").write_text('{"cut": [1,')
    entry = arm("a", traces=["a/nothing.csv"], inventory=["a/c4_r1.json"])
    measured = opened(tmp_path, {"a": entry, "b": arm("b")})
    assert [r.repeat_no for r in measured.runs_of("a")] == [1, 3]
    assert [r.repeat_no for r in measured.runs_of("b")] == [1, 2]
    by_path = {lost.path: lost for lost in measured.lost}
    assert "empty" in by_path["a/c4_r2.json"].error
    assert "b/c4_r3.json" in by_path
    assert "found runs, expected an inventory" in by_path["a/c4_r1.json"].error
    assert any("nothing.csv" in lost.error for lost in measured.lost)


def test_inputs_are_listed_with_their_hash_relative_to_the_campaign(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", n=12, repeats=1)
    write_arm(tmp_path, "b", n=12, repeats=1)
    measured = opened(tmp_path)
    right = {
        path: hashlib.sha256((tmp_path / path).read_bytes()).hexdigest()
        for path in ("a/c4_r1.json", "b/c4_r1.json")
    }
    assert dict(measured.inputs) == right


def test_open_load_has_its_rate_as_level(tmp_path: Path) -> None:
    write(tmp_path / "a" / "r1.json", streams=None, rate=2.5)
    write(tmp_path / "b" / "r1.json", streams=None, rate=2.5)
    arms = {n: arm(n, files=f"{n}/r{{repeat}}.json") for n in ("a", "b")}
    measured = opened(tmp_path, arms, workload={"load": "open"})
    assert {r.level_key for r in measured.runs} == {'{"rate_requests_per_s": 2.5}'}


def test_labels_of_levels() -> None:
    assert level_label({"concurrency": 16}) == "16"
    assert level_label({"rate_requests_per_s": 2.5}) == "2.5 req/s"
    assert level_label({"batch": 8}) == "b8"
    assert level_label(None) == ""
