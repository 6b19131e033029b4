"""Lines about memory in engine and kernel logs, and what only looks like one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gpuverdict.errors import LogFormatError
from gpuverdict.ingest.server_log import search_server_log

LINES = {
    "INFO 12-01 engine started": None,
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB": "out_of_memory",
    "ValueError: No available memory for the cache blocks.": "out_of_memory",
    "The model's max seq len (32768) is larger than the maximum number of tokens that can be "
    "stored in KV cache (9376).": "out_of_memory",
    "[ 12.3] Out of memory: Killed process 811 (python) total-vm:9kB": "oom_killer",
    "WARNING Sequence group 7 is preempted by PreemptionMode.RECOMPUTE": "preemption",
    "KV cache pool is full. Retract requests. #retracted_reqs: 3": "preemption",
    "Decode out of memory happened. #retracted_reqs: 1": "preemption",
    "If reserved but unallocated memory is large try setting max_split_size_mb": "fragmentation",
    "GPU memory usage: 70.1 GiB, no preemption so far": None,
    "memory pool is ready": None,
}


@pytest.mark.parametrize(("line", "kind"), LINES.items())
def test_kind_of_a_line(line: str, kind: str | None, tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text(f"first\n{line}\n")
    found = search_server_log(path)
    assert [finding.kind for finding in found] == ([kind] if kind else [])
    if kind:
        assert (found[0].line, found[0].n) == (2, 1)
        assert found[0].as_caution().code == f"server_{kind}"


def test_many_lines_are_counted_and_the_first_is_quoted(tmp_path: Path) -> None:
    text = "\x1b[31mERROR\x1b[0m /home/someone/venv/x.py CUDA out of memory\n" * 3
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(b"\xff\xfe junk\n" + text.encode()))
    (finding,) = search_server_log(path)
    assert (finding.n, finding.line, finding.fatal) == (3, 2, True)
    assert "someone" not in finding.quote
    assert finding.quote.isprintable()


def test_missing_log(tmp_path: Path) -> None:
    with pytest.raises(LogFormatError, match="No such file"):
        search_server_log(tmp_path / "absent")
