"""The health of runs: what is wrong is named and carried to the verdicts; nothing is dropped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.campaigns import Opened, arm, closed_loop, open_verdict, vllm_result, write_campaign

LEVEL = '{"concurrency": 4}'
N = 400


def write_run(
    path: Path, seed: int, *, drift: float = 0.0, stall_s: float = 0.0, failed: int = 0,
    factor: float = 1.0,
) -> None:  # fmt: skip
    """A run of four streams; `drift`: growth of the speed over it; `stall_s`: all streams wait."""
    rows = closed_loop(streams=4, n=N, seed=seed, tpot_s=0.01 * factor, ttft_s=0.05 * factor)
    clock = dict.fromkeys(range(4), 0.0)
    half = sorted(r["start"] for r in rows)[N // 2]
    stalled: dict[int, bool] = {}
    for i, row in enumerate(rows):
        stream = min(clock, key=lambda s: clock[s])
        growth = 1 + drift * i / N
        row["gap"] *= growth
        row["ttft"] *= growth
        row["took"] = row["ttft"] + row["gap"] * (row["output"] - 1)
        row["start"] = clock[stream]
        if stall_s and row["start"] + row["took"] >= half and not stalled.get(stream):
            stalled[stream] = True
            row["stall"] = stall_s
            row["took"] += stall_s
        clock[stream] = row["start"] + row["took"] + 1e-5
    result = vllm_result(rows, streams=4, failed=failed)
    for i, row in enumerate(rows):
        if "stall" in row:
            # The gap that holds the stall ends for all streams at the same moment.
            done = row["start"] + row["ttft"]
            place = max(0, min(30, int((half - done) / row["gap"])))
            result["itls"][i][place] += row["stall"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result))


def opened(folder: Path) -> Opened:
    return open_verdict(write_campaign(folder, {n: arm(n) for n in ("a", "b")}))


def test_a_quiet_campaign_is_healthy(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for repeat in (1, 2, 3):
            write_run(tmp_path / name / f"c4_r{repeat}.json", seed=ord(name) + repeat)
    case = opened(tmp_path)
    frame = case.health.frame
    assert len(frame) == 6
    assert not frame.disturbed.any()
    assert (frame.drift == "").all()
    assert (frame.n_ok == N).all()
    assert case.health.drifting() == {}
    assert case.health.disturbed() == frozenset()
    cell = case.verdict.cell("tpot_s", "p50", LEVEL)
    assert cell is not None
    assert not {"drift", "disturbed"} & set(cell.comparison.modifiers)


@pytest.mark.parametrize(("drifting", "word"), [(1, "slower"), (2, "inconclusive")])
def test_two_drifting_runs_withdraw_the_word_and_keep_the_interval(
    drifting: int, word: str, tmp_path: Path
) -> None:
    for repeat in (1, 2, 3):
        write_run(tmp_path / "a" / f"c4_r{repeat}.json", seed=repeat)
        drift = 0.10 if repeat <= drifting else 0.0
        # The same mean speed with and without drift, so that only the trend differs.
        write_run(tmp_path / "b" / f"c4_r{repeat}.json", seed=10 + repeat, drift=drift,
                  factor=1.3 / (1 + drift / 2))  # fmt: skip
    case = opened(tmp_path)
    assert sum("tpot_s" in metrics for metrics in case.health.drifting().values()) == drifting
    cell = case.verdict.cell("tpot_s", "p50", LEVEL)
    assert cell is not None
    assert cell.verdict == word
    assert "drift" in cell.comparison.modifiers
    assert cell.comparison.low is not None
    assert cell.comparison.p_value is not None
    said = {c.code for c in cell.comparison.cautions}
    assert ("drifting_arm" in said) == (drifting == 2)
    headline = case.verdict.cell("tpot_s", "p50", None)
    assert headline is not None
    assert headline.verdict == word


def test_a_stalled_run_is_named_and_the_verdict_given_without_it(tmp_path: Path) -> None:
    for repeat in (1, 2, 3):
        write_run(tmp_path / "a" / f"c4_r{repeat}.json", seed=repeat)
        write_run(tmp_path / "b" / f"c4_r{repeat}.json", seed=10 + repeat, factor=1.3,
                  stall_s=8.0 if repeat == 2 else 0.0)  # fmt: skip
    case = opened(tmp_path)
    (key,) = case.health.disturbed()
    assert key.startswith("b/")
    row = case.health.frame.set_index("repeat_no").query("arm == 'b'").loc[2]
    assert row.disturbed
    assert row.at_s is not None
    cell = case.verdict.cell("output_tokens_per_s", "value", LEVEL)
    assert cell is not None
    assert "disturbed" in cell.comparison.modifiers
    said = {c.code: c for c in cell.comparison.cautions}
    assert said["disturbed_run"].values["repeat"] == 2
    assert len(cell.candidate_runs) == 3, "named, not dropped"
    assert "without_disturbed" in said
    actions = [a for a in case.verdict.actions if a.code == "action_repeat_run"]
    if cell.verdict == "inconclusive":
        assert actions[0].values == {"level": "4", "arm": "b", "repeat": 2}


def test_counts_by_status_stand_in_the_frame(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / name / "c4_r1.json", seed=ord(name), failed=7)
    frame = opened(tmp_path).health.frame
    assert (frame.n_error == 7).all()
    assert (frame.n_sent == N).all()
    assert frame.cut_ratio.between(0.14, 0.2).all()
