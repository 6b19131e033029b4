"""Lines of engine and kernel logs that tell why a level has no log."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuverdict.files import Document
from gpuverdict.telemetry.server_log import fatal_event, find_events


def document(text: str) -> Document:
    return Document(path=Path("s.log"), name="s.log", data=text.encode(), hashed=str)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.", "out_of_memory"),
        ("RuntimeError: CUDA error: CUDA_ERROR_OUT_OF_MEMORY", "out_of_memory"),
        ("[12.3] Out of memory: Killed process 4101 (python3) total-vm:9kB", "killed"),
        ("kernel: oom-kill:constraint=CONSTRAINT_NONE", "killed"),
        ("ValueError: No available memory for the cache blocks. Try increasing", "no_kv_space"),
        ("WARNING Sequence group 7 is preempted by PreemptionMode.RECOMPUTE", "preempted"),
        ("KV cache pool is full. Retract requests. #retracted_reqs: 3", "preempted"),
        ("of which 1.2 GiB is reserved by PyTorch but unallocated", "fragmented"),
    ],
)
def test_a_telling_line_is_found_and_named(line: str, kind: str) -> None:
    (event,) = find_events(document(f"INFO start\n{line}\nINFO end"))
    assert (event.line, event.kind) == (2, kind)


@pytest.mark.parametrize(
    "line",
    ["INFO memory usage 71 %", "gpu_memory_utilization=0.9", "swap_space=4",
     "out of order response", "INFO: killed a stale connection", ""],
)  # fmt: skip
def test_ordinary_lines_say_nothing(line: str) -> None:
    assert find_events(document(line)) == []


def test_only_what_stopped_the_server_is_fatal() -> None:
    events = find_events(
        document(
            "req is preempted by x\nmemory fragmentation\nCUDA out of memory\nCUDA out of memory"
        )
    )
    assert [e.kind for e in events] == ["preempted", "fragmented", "out_of_memory", "out_of_memory"]
    fatal = fatal_event(events)
    assert fatal is not None
    assert fatal.line == 3
    assert fatal_event(events[:2]) is None


def test_the_quote_is_harmless() -> None:
    text = "\x1b[31mERROR\x1b[0m /home/someone/models/x CUDA out of memory \x07 " + "y" * 500
    (event,) = find_events(document(text))
    assert "\x1b" not in event.quote
    assert "someone" not in event.quote
    assert len(event.quote) <= 160
    assert event.quote.isprintable()


def test_a_level_that_left_only_such_a_log_is_infeasible_with_the_line(tmp_path: Path) -> None:
    import shutil

    from gpuverdict.case import open_case

    starts = Path(__file__).resolve().parents[2] / "data" / "h200" / "starts"
    for arm in ("layers32", "layers34"):
        shutil.copy(starts / f"{arm}-r1.json.gz", tmp_path)
    (tmp_path / "engine_c64.log").write_text("INFO ready\nCUDA out of memory. Tried 2 GiB\n")
    (tmp_path / "engine_c16.log").write_text("CUDA out of memory. Tried 2 GiB\n")
    arms = "gpu: H200 SXM, precision: bf16"
    (tmp_path / "campaign.yaml").write_text(
        "campaign: oom\nmodel: {name: m}\nworkload: {load: closed}\narms:\n"
        f"  a: {{{arms}, runs: layers32-r1.json.gz}}\n"
        f"  b: {{{arms}, factors: {{layers: 34}}, runs: layers34-r1.json.gz,"
        " server_logs: 'engine_c{level}.log'}\n"
        "comparisons: [{name: x, baseline: a, candidate: b, treatment: [layers]}]\n"
    )
    case = open_case(tmp_path)
    (only,) = case.campaign.arms["b"].infeasible  # the run at 16 is there: 16 is feasible
    assert only.level == 64
    assert "engine_c64.log, line 2" in only.reason
    cell = case.verdict.cell("tpot_s", "p50", '{"concurrency": 64}')
    assert cell is not None
    assert cell.verdict == "not comparable"
    assert any("CUDA out of memory" in str(c) for c in cell.comparison.cautions)
