"""Progress: a bar with the time left on a terminal, and nothing in a log file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.batch.campaigns import environment

SCRIPT = """
import time
from gpuverdict.cli import _progress
with _progress("rendering") as (started, step):
    started(4)
    for name in ("pair 00", "[red]pair\\x1b[2J 01", "pair 02"):
        time.sleep(0.4)
        step(name)
    time.sleep(0.4)
"""


def test_on_a_terminal(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stderr=theirs,
        env={**environment(), "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert child.wait(60) == 0
    text = shown.decode("utf-8", "replace")
    assert "rendering" in text
    assert "3/4" in text
    assert re.search(r"0:00:0\d", text)
    assert "[red]pair" in text


def test_in_a_log_file() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, env=environment(), check=True
    )
    assert done.stderr == b""
