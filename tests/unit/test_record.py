"""The recorder: what it writes is what the driver said, and no row is ever cut."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.unit.fake_nvml import FakeNvml

from gpuverdict.energy import window_energy
from gpuverdict.errors import LogFormatError, ParameterError
from gpuverdict.hardware import check_identity
from gpuverdict.recognise import read_trace
from gpuverdict.record import COLUMNS, record

ROOT = Path(__file__).resolve().parents[2]


def recorded(tmp_path: Path, nvml: FakeNvml, **how):
    path = tmp_path / "trace.csv"
    told = record(path, nvml=nvml, **({"interval_ms": 20, "seconds": 0.3} | how))
    return told, read_trace(path)


def test_what_the_driver_says_arrives(tmp_path):
    nvml = FakeNvml()
    told, trace = recorded(tmp_path, nvml)
    samples = trace.samples
    assert samples.height == told.n_rows == 2 * told.n_ticks
    assert set(samples["gpu_uuid"]) == {"GPU-0", "GPU-1"}
    one = samples.filter(samples["gpu_index"] == 1)
    assert one["power_average_w"].unique().to_list() == pytest.approx([300.001])
    assert one["power_instant_w"].unique().to_list() == pytest.approx([300.501])
    assert one["power_w"].equals(one["power_instant_w"].rename("power_w"))
    assert one["memory_used_mib"].unique().to_list() == [88643.0]
    assert one["memory_total_mib"].unique().to_list() == [143771.0]
    assert one["throttle_mask"].unique().to_list() == [4]
    assert one["power_limit_w"].unique().to_list() == [700.0]
    assert one["fan_ratio"].null_count() == one.height
    assert one["pstate"].unique().to_list() == ["P0"]
    assert one["pcie_rx_mb_s"].drop_nulls().unique().to_list() == [2.0]
    assert samples["time_epoch_s"].max() == pytest.approx(time.time(), abs=5)
    assert trace.cautions == ()
    assert nvml.running == 0


def test_the_spacing_is_the_one_asked_for(tmp_path):
    told, trace = recorded(tmp_path, FakeNvml(1), interval_ms=50, seconds=1.5)
    steps = np.diff(trace.samples["time_epoch_s"].to_numpy())
    assert np.median(steps) == pytest.approx(0.05, abs=0.01)
    assert told.n_ticks == pytest.approx(31, abs=6)


def test_the_counter_is_read_no_faster_than_it_refreshes(tmp_path):
    _, trace = recorded(tmp_path, FakeNvml(1), interval_ms=10, seconds=1.0)
    read = trace.samples.drop_nulls("energy_j")["time_epoch_s"].to_numpy()
    assert read.size >= 6
    assert np.diff(read).min() >= 0.09
    assert trace.samples.height > 3 * read.size


def test_its_energy_counter_gives_the_window(tmp_path):
    _, trace = recorded(tmp_path, FakeNvml(), seconds=1.0)
    epoch = trace.samples["time_epoch_s"]
    start, end = epoch.min() + 0.1, epoch.max() - 0.1
    assert window_energy(trace, start, end).value == pytest.approx(600 * (end - start), rel=0.03)


def test_an_older_card_falls_back_to_what_it_has(tmp_path):
    _, trace = recorded(tmp_path, FakeNvml(1, modern=False))
    samples = trace.samples
    assert samples["power_instant_w"].null_count() == samples.height
    assert samples["power_w"].unique().to_list() == [300.0]
    assert set(samples["power_kind"]) == {"instant"}
    assert samples["energy_j"][0] is not None
    assert samples["throttle_mask"].unique().to_list() == [0x20]


def test_a_card_that_is_lost_leaves_gaps_not_zeros(tmp_path):
    nvml = FakeNvml(1)
    threading.Timer(0.3, lambda: setattr(nvml, "lost", True)).start()
    _, trace = recorded(tmp_path, nvml, seconds=0.8)
    power = trace.samples["power_instant_w"]
    assert 0 < power.null_count() < len(power)
    assert power.drop_nulls().min() > 0


def test_the_header_alone_says_which_cards_ran(tmp_path):
    _, trace = recorded(tmp_path, FakeNvml(), gpu=[1])
    assert set(trace.samples["gpu_index"]) == {1}
    title, cautions = check_identity("H200 SXM", 1, None, [trace])
    assert title == "H200 (143,771 MiB, 700 W, driver 580)"
    assert cautions == ()


def test_a_stop_from_another_thread_ends_it(tmp_path):
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    told, _ = recorded(tmp_path, FakeNvml(), stop=stop, seconds=60.0)
    assert told.duration_s < 5


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"interval_ms": 5}, "10 to"),
        ({"gpu": 2}, "0 to 1"),
    ],
)
def test_a_bad_wish_is_refused(tmp_path, how, match):
    with pytest.raises(ParameterError, match=match):
        recorded(tmp_path, FakeNvml(), **how)


def test_an_existing_file_is_never_written_over(tmp_path):
    (tmp_path / "trace.csv").write_text("mine")
    with pytest.raises(ParameterError, match="existing file"):
        recorded(tmp_path, FakeNvml())
    assert (tmp_path / "trace.csv").read_text() == "mine"


SCRIPT = """
    import sys
    from tests.unit.fake_nvml import FakeNvml
    from gpuverdict.record import record
    record(sys.argv[1], interval_ms=10, nvml=FakeNvml(8))
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_never_cuts_a_row(tmp_path, sent):
    path = tmp_path / "trace.csv"
    environment = dict(os.environ) | {"PYTHONPATH": f"{ROOT / 'lib'}{os.pathsep}{ROOT}"}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path)], env=environment
    )
    deadline = time.monotonic() + 20
    while not (path.exists() and path.stat().st_size > 20_000) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(sent)
    code = process.wait(timeout=20)
    text = path.read_text()
    assert text.endswith("\n")
    rows = [line for line in text.splitlines()[2:] if not line.startswith("#")]
    assert {row.count(",") for row in rows} == {len(COLUMNS) - 1}
    trace = read_trace(path)
    assert trace.samples.height == len(rows)
    killed = sent == signal.SIGKILL
    assert ("recorder_killed" in {c.code for c in trace.cautions}) == killed
    assert code == (-signal.SIGKILL if killed else 0)


def rewritten(tmp_path: Path, change) -> Path:
    recorded(tmp_path, FakeNvml(1))
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
    return path


def test_a_wall_clock_that_is_set_is_seen_by_the_monotonic_one(tmp_path):
    def change(lines: list[str]) -> list[str]:
        half = len(lines) // 2
        later = []
        for line in lines[half:]:
            if line.startswith("#"):
                later.append(line)
                continue
            stamp, rest = line.split(",", 1)
            later.append(f"{int(stamp) + 30 * 10**9},{rest}")
        return [*lines[:half], *later]

    trace = read_trace(rewritten(tmp_path, change))
    assert "clock_step" in {c.code for c in trace.cautions}
    known = trace.samples["time_epoch_s"].drop_nulls()
    assert 0 < len(known) < trace.samples.height
    assert known.max() - known.min() < 5
    assert trace.samples["elapsed_s"].null_count() == 0


def test_a_row_that_the_recorder_did_not_write_is_refused(tmp_path):
    def change(lines: list[str]) -> list[str]:
        return [*lines[:3], "1,2,3", *lines[3:]]

    with pytest.raises(LogFormatError, match="3 cells"):
        read_trace(rewritten(tmp_path, change))
