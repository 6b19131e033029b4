"""The recorder's own file from a real H200, beside the nvidia-smi trace of the same 94 seconds."""

from __future__ import annotations

import csv
import gzip
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from gpuverdict import read_trace, window_energy

DATA = Path(__file__).parent / "data"
RECORD, SMI = DATA / "record-h200.csv.gz", DATA / "record-h200-nvidia-smi.csv.gz"


def smi_joules(start_s: float, end_s: float) -> float:
    """Trapezoid over the instantaneous column, straight from the text."""
    with gzip.open(SMI, "rt") as stream:
        rows = [[c.strip() for c in row] for row in csv.reader(stream)]
    column = rows[0].index("power.draw.instant [W]")
    stamp = "%Y/%m/%d %H:%M:%S.%f"
    times = [datetime.strptime(r[0], stamp).replace(tzinfo=UTC).timestamp() for r in rows[1:]]
    watts = [float(r[column].split()[0]) for r in rows[1:]]
    grid = np.linspace(start_s, end_s, 20_001)
    return float(np.trapezoid(np.interp(grid, times, watts), grid))


def test_every_row_and_the_spacing_asked_for() -> None:
    trace = read_trace(RECORD)
    assert trace.samples.height == 944
    steps = np.diff(trace.samples["time_epoch_s"].to_numpy())
    assert np.median(steps) == pytest.approx(0.1, abs=1e-3)
    assert steps.max() < 0.11


def test_counter_and_the_other_tools_trapezoid_agree_over_minutes_and_seconds() -> None:
    trace = read_trace(RECORD)
    epoch = trace.samples["time_epoch_s"]
    start, end = float(epoch.min()) + 1, float(epoch.max()) - 2  # type: ignore[arg-type]
    whole = window_energy(trace, start, end).value
    assert whole == pytest.approx(smi_joules(start, end), rel=0.01)
    # One of the load's busy stretches: 8 s, at full power from edge to edge.
    burst = window_energy(trace, 1796104539.59, 1796104547.59).value
    assert burst == pytest.approx(smi_joules(1796104539.59, 1796104547.59), rel=0.02)


def test_the_average_column_lags_and_reads_low_over_a_burst() -> None:
    samples = read_trace(RECORD).samples
    inside = samples.filter(samples["time_epoch_s"].is_between(1796104539.59, 1796104547.59))
    low = inside["power_average_w"].mean() / inside["power_instant_w"].mean()  # type: ignore[operator]
    assert 0.92 < low < 0.97
