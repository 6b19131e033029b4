"""Energy of a window: each rule of the audit, with values by hand or by numpy."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gpuverdict.energy import (
    card_imbalance,
    peak_node_power,
    per_card,
    throttle_shares,
    window_energy,
    window_telemetry,
)
from gpuverdict.files import ReadOptions, open_documents
from gpuverdict.schema import GPU_SAMPLES, Trace, conform
from gpuverdict.telemetry import smi_query

H200 = Path(__file__).resolve().parents[2] / "data" / "h200"


def trace(time, power=None, *, gpu="GPU-1", **columns) -> Trace:
    rows = {"time_epoch_s": np.asarray(time, float), "gpu_uuid": [gpu] * len(time)}
    if power is not None:
        rows["power_w"] = np.asarray(power, float)
    frame = pl.DataFrame({"trace_id": ["t"] * len(time), **rows, **columns})
    return Trace(samples=conform(frame, GPU_SAMPLES), info={"source_name": "t"})


def both(*traces: Trace) -> Trace:
    return Trace(samples=pl.concat([t.samples for t in traces]), info={})


def codes(estimate) -> set[str]:
    return {c.code for c in estimate.cautions}


SECONDS = np.arange(0.0, 31.0)


def test_power_is_interpolated_at_both_edges():
    ramp = trace(SECONDS, 10.0 * SECONDS + 50)
    # The integral of 50 + 10 t from 2.5 to 22.5: 50 * 20 + 5 * (22.5^2 - 2.5^2)
    assert window_energy(ramp, 2.5, 22.5).value == pytest.approx(1000 + 5 * (506.25 - 6.25))


def test_two_gpus_add_and_one_missing_makes_the_sum_unknown():
    one, other = trace(SECONDS, 0 * SECONDS + 300), trace(SECONDS, 0 * SECONDS + 100, gpu="GPU-2")
    assert window_energy(both(one, other), 5.0, 25.0).value == pytest.approx(8000.0)
    late = trace(SECONDS + 20, 0 * SECONDS + 100, gpu="GPU-2")
    missing = window_energy(both(one, late), 5.0, 25.0)
    assert missing.value is None
    assert "no_bracket" in codes(missing)


def test_the_counter_is_preferred_and_interpolated():
    counted = trace(SECONDS, 0 * SECONDS + 200, energy_j=1e6 + 205.0 * SECONDS)
    energy = window_energy(counted, 2.5, 22.5)
    assert energy.value == pytest.approx(205 * 20)
    assert "counter_mismatch" not in codes(energy)


def test_a_counter_that_disagrees_by_more_than_five_percent_is_said_and_used():
    counted = trace(SECONDS, 0 * SECONDS + 150, energy_j=205.0 * SECONDS)
    energy = window_energy(counted, 2.0, 22.0)
    assert energy.value == pytest.approx(205 * 20)
    assert "counter_mismatch" in codes(energy)


def test_a_restarted_counter_falls_back_to_the_samples():
    counter = 205.0 * SECONDS
    counter[12:] -= counter[12]
    energy = window_energy(trace(SECONDS, 0 * SECONDS + 200, energy_j=counter), 2.0, 22.0)
    assert energy.value == pytest.approx(4000.0)
    assert "counter_restarted" in codes(energy)


@pytest.mark.parametrize(
    ("time", "window", "code"),
    [
        (SECONDS, (25.0, 35.0), "no_bracket"),
        (SECONDS, (-5.0, 15.0), "no_bracket"),
        (np.delete(SECONDS, [10, 11, 12]), (5.0, 25.0), "gap"),
        (SECONDS, (5.2, 7.8), "too_few"),
    ],
)
def test_what_the_samples_do_not_carry_is_refused_with_its_code(time, window, code):
    energy = window_energy(trace(time, 0 * time + 200), *window)
    assert energy.value is None
    assert code in codes(energy)


def test_a_gap_of_three_seconds_is_allowed_and_missing_power_makes_a_gap():
    time = np.delete(SECONDS, [10, 11])
    assert window_energy(trace(time, 0 * time + 200), 5.0, 25.0).value == pytest.approx(4000)
    power = [None if 10 <= t <= 12 else 200.0 for t in SECONDS]
    rows = {"trace_id": ["t"] * 31, "time_epoch_s": SECONDS, "power_w": power}
    frame = conform(pl.DataFrame(rows), GPU_SAMPLES)
    assert "gap" in codes(window_energy(Trace(samples=frame), 5.0, 25.0))


def test_the_number_of_gpus_must_be_the_declared_one():
    energy = window_energy(trace(SECONDS, 0 * SECONDS + 200), 5.0, 25.0, gpus=2)
    assert energy.value is None
    assert codes(energy) == {"gpu_count"}


def test_without_a_clock_there_is_no_energy():
    frame = trace(SECONDS, 0 * SECONDS + 200).samples.with_columns(
        pl.lit(None, dtype=pl.Float64).alias("time_epoch_s")
    )
    assert codes(window_energy(Trace(samples=frame), 0.0, 20.0)) == {"no_clock"}


@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_a_unit_slip_is_implausible(factor):
    energy = window_energy(trace(SECONDS, 0 * SECONDS + 250 * factor), 5.0, 25.0)
    assert energy.value is None
    assert "implausible" in codes(energy)


def test_power_above_the_limit_is_not_clamped():
    hot = trace(SECONDS, 0 * SECONDS + 500, power_limit_w=[400.0] * 31)
    assert window_energy(hot, 5.0, 25.0).value == pytest.approx(10000)


def test_a_short_window_keeps_its_value_and_says_so():
    energy = window_energy(trace(SECONDS, 0 * SECONDS + 200), 5.0, 10.0)
    assert energy.value == pytest.approx(1000)
    assert "short_window" in codes(energy)


def test_an_averaged_column_is_moved_back_by_half_its_second():
    # True power steps from 100 to 500 W at 20 s; a trailing 1 s mean ramps from 20 to 21 s.
    time = np.arange(0.0, 41.0, 0.1)
    average = 100 + 400 * np.clip(time - 20.0, 0, 1)
    kinds = ["avg1s"] * len(time)
    energy = window_energy(trace(time, average, power_kind=kinds), 10.0, 30.0)
    assert energy.value == pytest.approx(100 * 10 + 500 * 10, rel=1e-3)
    assert "averaged_power" in codes(energy)


def test_row_order_changes_nothing():
    rng = np.random.default_rng(7)
    ordered = trace(SECONDS, rng.uniform(100, 400, 31))
    n = window_energy(ordered, 3.3, 27.7).value
    pieces = [ordered.samples[::2], ordered.samples[1::2]]
    mixed = Trace(samples=pl.concat(pieces), info={})
    assert window_energy(mixed, 3.3, 27.7).value == n
    twice = Trace(samples=pl.concat([ordered.samples] * 2), info={})
    assert window_energy(twice, 3.3, 27.7).value == pytest.approx(n, rel=1e-12)


def test_a_real_window_by_numpy():
    path = H200 / "card-b-bf16" / "nvidia-smi-query.csv.gz"
    real = smi_query.read(open_documents(path)[0], ReadOptions(time_zone="UTC"))
    start = real.info["start_epoch_s"] + 60.03
    energy = window_energy(real, start, start + 20)
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    cells = [line.split(", ") for line in lines[1:]]
    power = np.array([float(c[10].split()[0]) for c in cells])
    clock = np.array([np.datetime64(c[0].replace("/", "-").replace(" ", "T")) for c in cells])
    seconds = clock.astype("datetime64[ms]").astype(float) / 1e3
    fine = np.linspace(start, start + 20, 200_001)
    assert energy.value == pytest.approx(np.interp(fine, seconds, power).mean() * 20, rel=1e-4)


def test_the_telemetry_of_a_window_by_hand():
    n = len(SECONDS)
    util = np.where(SECONDS < 20, 1.0, 0.0)
    clocks = np.where(SECONDS == 3, 1800.0, 2000.0)
    masks = np.where(SECONDS < 5, 0x4, np.where(SECONDS < 8, 0x1, 0)).astype(np.uint64)
    one = trace(
        SECONDS, 0 * SECONDS + 200, gpu_util_ratio=util, sm_clock_mhz=clocks,
        throttle_mask=masks, memory_used_mib=np.linspace(100, 400, n),
    )  # fmt: skip
    other = trace(SECONDS, 0 * SECONDS + 50, gpu="GPU-2", memory_used_mib=[70.0] * n,
                  gpu_util_ratio=0 * SECONDS, sm_clock_mhz=0 * SECONDS + 300,
                  throttle_mask=np.ones(n, np.uint64))  # fmt: skip
    told = window_telemetry(both(one, other), 0.0, 30.0)
    assert told["power_w"].value == pytest.approx(250.0)
    assert told["energy_j"].value == pytest.approx(7500.0)
    assert told["memory_used_mib"].value == pytest.approx(470.0)
    assert told["sm_clock_mhz"].value == 2000.0
    assert told["sm_clock_spread_ratio"].value == pytest.approx(200 / 2000)
    assert told["throttled_ratio"].value == pytest.approx(5 / 20)
    assert "few_busy_samples" in codes(told["sm_clock_mhz"])


def test_what_was_not_recorded_is_null_with_its_reason():
    told = window_telemetry(trace(SECONDS, 0 * SECONDS + 200), 0.0, 30.0)
    for name in ("memory_used_mib", "sm_clock_mhz", "sm_clock_spread_ratio", "throttled_ratio"):
        assert told[name].value is None
        assert codes(told[name]) == {"column_absent"}


def test_a_counter_scraped_rarely_serves_long_windows_only():
    time = np.arange(0.0, 1201.0, 30.0)
    counted = trace(time, 0 * time + 200, energy_j=200.0 * time)
    assert window_energy(counted, 100.0, 1000.0).value == pytest.approx(200 * 900)
    refused = window_energy(counted, 100.0, 200.0)
    assert refused.value is None
    assert "gap" in codes(refused)


def test_reasons_by_their_share():
    masks = np.array([1, 0, 4, 4, 0x24, 0x40, 2, 0x84], np.uint64)
    shares = throttle_shares(trace(np.arange(8.0), throttle_mask=masks))
    assert shares["sw_power_cap"] == 4 / 8
    assert shares["hw_power_brake_slowdown"] == shares["hw_thermal_slowdown"] == 1 / 8
    assert shares["slowed_any"] == 5 / 8
    assert (
        throttle_shares(trace(np.arange(8.0), throttle_mask=masks), 2.0, 3.0)["sw_power_cap"] == 1
    )
    assert throttle_shares(trace(np.arange(8.0))) == {}


def test_two_cards_side_by_side():
    n = len(SECONDS)
    one = trace(SECONDS, 0 * SECONDS + 300, sm_clock_mhz=0 * SECONDS + 1980.0,
                memory_used_mib=[1000.0] * n)  # fmt: skip
    late = trace(SECONDS + 0.03, 100 + 100 * (SECONDS == 20), gpu="GPU-2",
                 sm_clock_mhz=0 * SECONDS + 1620.0, memory_used_mib=[3000.0] * n)  # fmt: skip
    pair = both(one, late)
    table = per_card(pair, 0.0, 30.0)
    assert table["gpu"].to_list() == ["GPU-1", "GPU-2"]
    assert table["memory_peak_mib"].to_list() == [1000.0, 3000.0]
    assert table["throttled_ratio"].to_list() == [None, None]
    uneven = card_imbalance(pair, 0.0, 30.0)
    assert uneven["memory_used_mib"].value == pytest.approx(2000 / 2000)
    assert uneven["sm_clock_mhz"].value == pytest.approx(360 / 1800)
    assert card_imbalance(one, 0.0, 30.0)["power_w"].value is None
    peak = peak_node_power(pair, 0.0, 30.0, supply_limit_w=450.0)
    assert peak.value == pytest.approx(500, abs=10)
    assert codes(peak) == {"supply_exceeded"}
    assert codes(peak_node_power(pair, 0.0, 10.0, supply_limit_w=450.0)) == set()
