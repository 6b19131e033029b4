"""Reports on a Dask cluster: a scheduler and two workers on this machine's loopback address."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.batch.campaigns import environment, many, run


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    common = {"env": environment(), "cwd": tmp_path, "stdout": subprocess.DEVNULL,
              "stderr": subprocess.DEVNULL}  # fmt: skip
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1",
             "--port", str(port), "--no-dashboard", "--no-show"], **common)  # type: ignore[call-overload]
    ]  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.2)
        children += [
            subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1",
                 "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"], **common)  # type: ignore[call-overload]
            for _ in range(2)
        ]  # fmt: skip
        yield address
    finally:
        for child in reversed(children):
            child.terminate()
        for child in children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(30)
            child.kill()
            child.wait()


def test_reports_on_two_workers(tmp_path: Path, scheduler: str) -> None:
    path = many(tmp_path / "campaign", 2)
    code, out, err = run(
        "report", path, "--out", tmp_path / "out", "--cluster", scheduler, timeout=300
    )
    assert code == 0, err
    assert "2 rendered" in out
    assert (tmp_path / "out" / "pair-01" / "report.html").is_file()
    assert "pair 01" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_no_scheduler_is_one_line(tmp_path: Path) -> None:
    path = many(tmp_path / "campaign", 1)
    code, _, err = run(
        "report", path, "--out", tmp_path / "out", "--cluster", "tcp://127.0.0.1:9", timeout=120
    )
    assert code == 2
    assert len(err.strip().splitlines()) == 1, err
    assert "--cluster tcp://127.0.0.1:9" in err
