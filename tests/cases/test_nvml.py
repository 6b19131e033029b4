"""The hand-computed cases about traces: every right value, and none of the wrong ones."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest

from gpuverdict.energy import throttle_shares, window_energy, window_telemetry
from gpuverdict.errors import LogFormatError
from gpuverdict.files import ReadOptions, open_documents
from gpuverdict.recognise import read_trace
from gpuverdict.schema import Trace
from gpuverdict.telemetry import smi_dmon, smi_query
from gpuverdict.telemetry.processes import attribute_memory

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the data folder is not beside the repo")


def _case(number: int) -> tuple[Path, dict, dict]:
    folder = next(CASES.glob(f"{number:02d}-*"))
    expected = json.loads((folder / "expected.json").read_text())
    return folder, expected["right"], expected["wrong"]


def _smi(path: Path, **options: object) -> Trace:
    chosen = ReadOptions(**options)
    document = open_documents(path, chosen)[0]
    assert smi_query.why_not(document, chosen) is None
    return smi_query.read(document, chosen)


def test_29_the_repeated_hour_is_resolved_by_file_order():
    folder, right, wrong = _case(29)
    trace = _smi(folder / "gpu.csv", time_zone="America/Chicago")
    epoch = trace.samples["time_epoch_s"]
    assert epoch[-1] - epoch[0] == right["duration_s"]
    stamps = pl.from_epoch(epoch, time_unit="s").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (stamps[0], stamps[-1]) == (right["first_utc"], right["last_utc"])
    energy = window_energy(trace, epoch[0], epoch[-1])
    assert energy.value == pytest.approx(right["energy_j"])
    assert energy.value / 3 == pytest.approx(right["mean_power_w"])
    assert energy.value != pytest.approx(wrong["energy_sorted_j"])
    assert "clock_step" not in {c.code for c in trace.cautions}


def test_29_in_a_zone_without_the_change_is_a_clock_step():
    folder, _, _ = _case(29)
    trace = _smi(folder / "gpu.csv", time_zone="UTC")
    assert "clock_step" in {c.code for c in trace.cautions}
    assert trace.samples["time_epoch_s"].null_count() == 2


def test_32_missing_is_missing():
    folder, right, wrong = _case(32)
    trace = _smi(folder / "gpu.csv")
    power = trace.samples["power_w"]
    assert trace.samples.height == right["n_samples"]
    assert power.len() - power.null_count() == right["n_power_valid"]
    assert power.null_count() == right["n_power_missing"]
    assert power.mean() == right["mean_power_w"] != wrong["mean_power_w"]
    assert trace.samples["fan_ratio"].mean() is right["mean_fan_pct"]
    (note,) = [c for c in trace.cautions if c.code == "values_missing"]
    assert note.values["n"] == 4


def test_33_two_gpus_are_split_and_added():
    folder, right, wrong = _case(33)
    trace = _smi(folder / "gpu.csv", time_zone="UTC")
    means = trace.samples.group_by("gpu_uuid", maintain_order=True).agg(pl.col("power_w").mean())
    assert trace.samples.height == right["n_samples"]
    assert means.height == right["n_gpus"]
    assert means["power_w"].to_list() == [
        right["mean_power_gpu_a_w"],
        right["mean_power_gpu_b_w"],
    ]
    start = trace.samples["time_epoch_s"][0]
    power = window_energy(trace, start, start + 2).value / 2
    assert power == pytest.approx(right["sum_of_means_w"]) != wrong["mean_w"]


def test_34_decimal_commas_are_read_when_declared_and_named_when_not():
    folder, right, _ = _case(34)
    with pytest.raises(LogFormatError, match="semicolons"):
        _smi(folder / "gpu.csv")
    trace = _smi(folder / "gpu.csv", decimal=",")
    assert trace.samples.height == right["n_samples"]
    assert trace.samples["power_w"].mean() == right["mean_power_w"]
    assert trace.samples["gpu_util_ratio"].mean() * 100 == pytest.approx(right["mean_util_pct"])


@pytest.mark.parametrize("name", ["dmon_old.txt", "dmon_new.txt"])
def test_35_dmon_columns_are_read_by_name(name):
    folder, right, wrong = _case(35)
    options = ReadOptions()
    document = open_documents(folder / name)[0]
    assert smi_dmon.why_not(document, options) is None
    samples = smi_dmon.read(document, options).samples
    assert samples["power_w"].mean() == right["mean_power_w"]
    assert samples["gpu_util_ratio"].mean() * 100 == pytest.approx(right["mean_sm_pct"])
    assert samples["mem_clock_mhz"].unique().to_list() == [right["mclk_mhz"]]
    assert samples["mem_clock_mhz"][0] != wrong["mclk_new_file"]
    assert samples["sm_clock_mhz"].mean() == right["mean_pclk_mhz"]
    assert samples["mem_temperature_c"].mean() is right["mean_mtemp_c"]


def test_39_energy_comes_from_the_instant_column():
    folder, right, _ = _case(39)
    trace = _smi(folder / "gpu.csv", time_zone="UTC")
    start = trace.samples["time_epoch_s"][0]
    energy = window_energy(trace, start + 1, start + 3)
    assert energy.value == pytest.approx(right["energy_instant_j"])
    assert energy.value != pytest.approx(right["energy_average_j"])
    assert trace.info["power_column"] == "power_instant_w"
    whole = window_energy(trace, start, start + 5)
    assert whole.value == pytest.approx(right["energy_whole_trace_instant_j"])


@pytest.mark.parametrize("name", ["gpu_old_driver.csv", "gpu_new_driver.csv"])
def test_42_throttle_bits_are_decoded(name):
    folder, right, wrong = _case(42)
    shares = throttle_shares(_smi(folder / name))
    reasons = {
        "sw_power_cap": "sw_power_cap",
        "sw_thermal": "sw_thermal_slowdown",
        "hw_thermal": "hw_thermal_slowdown",
        "hw_power_brake": "hw_power_brake_slowdown",
    }
    for short, reason in reasons.items():
        assert shares[reason] == right[f"share_{short}"]
    assert shares["slowed_any"] == right["share_slowed_any"]
    trace = _smi(folder / name, time_zone="UTC")
    assert trace.samples.height == right["n_samples"]
    start = trace.samples["time_epoch_s"][0]
    share = window_telemetry(trace, start, start + 7)["throttled_ratio"].value
    assert share == right["share_slowed_any"] != wrong["share_nonzero"]


def test_43_utf16_trace_is_decoded():
    folder, right, _ = _case(43)
    samples = read_trace(folder / "gpu.csv").samples
    assert samples.height == right["n_samples"]
    assert samples["power_w"].mean() == right["mean_power_w"]


def test_47_the_same_column_twice_is_one():
    folder, right, _ = _case(47)
    samples = _smi(folder / "gpu.csv").samples
    assert samples.height == right["n_samples"]
    assert samples["power_w"].mean() == right["mean_power_w"]
    assert math.isclose(samples["gpu_util_ratio"].mean() * 100, right["mean_util_pct"])


def test_37_the_board_of_mig_slices_is_counted_once():
    folder, right, wrong = _case(37)
    trace = read_trace(folder / "dcgm.prom")
    assert trace.samples["power_w"].sum() == right["board_power_w"] != wrong["sum_w"]
    assert trace.samples["gpu_util_ratio"].to_list() == [right["gpu_util_pct"]]
    assert "not reported under MIG" in trace.samples["null_reason"][0]
    engine = {row["slice_id"]: row["value"] for row in trace.info["mig_slices"]}
    assert engine["3"] == right["gr_engine_active_slice_3"]
    mean = sum(engine.values()) / len(engine)
    assert mean == pytest.approx(right["mean_gr_engine_active_of_slices"])


def test_38_what_one_card_does_not_report_is_absent():
    folder, right, _ = _case(38)
    a100, consumer = (read_trace(folder / name) for name in ("a100.prom", "rtx4090.prom"))
    assert a100.samples["tensor_active_ratio"][0] == right["tensor_active_a100"]
    assert consumer.samples["tensor_active_ratio"][0] is right["tensor_active_4090"]
    common = set(a100.info["series"]) & set(consumer.info["series"])
    assert len(common) == right["common_metrics"]
    assert a100.samples["power_w"][0] == right["power_a100_w"]
    assert consumer.samples["power_w"][0] == right["power_4090_w"]
    assert "profiling_absent" in {c.code for c in consumer.cautions}
    assert "profiling_absent" not in {c.code for c in a100.cautions}


def test_41_memory_of_another_process_is_not_the_servers():
    folder, right, _ = _case(41)
    board = read_trace(folder / "gpu.csv").samples["memory_used_mib"][0]
    apps = read_trace(folder / "compute_apps.csv").info["processes"]
    pids = json.loads((folder / "run.json").read_text())["server_pids"]
    found = attribute_memory(board, apps, pids)
    for key, value in right.items():
        assert getattr(found, key) == value
    assert [c.code for c in found.cautions] == ["shared_card"]
    alone = attribute_memory(board, apps[:1], pids)
    assert alone.cautions == ()
    assert attribute_memory(board, [{"pid": 4101, "memory_mib": None}], pids).server_mib is None
