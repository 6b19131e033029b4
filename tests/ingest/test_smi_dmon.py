"""dmon: the real capture by a second route, clocks with and without a date, moved columns."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions, open_documents
from gpuverdict.telemetry import smi_dmon

H200 = Path(__file__).resolve().parents[2] / "data" / "h200"


def document(text: str) -> Document:
    return Document(path=Path("d.txt"), name="d.txt", data=text.encode(), hashed=lambda: "e" * 64)


def read(text: str, **options: object):
    assert smi_dmon.why_not(document(text), ReadOptions(**options)) is None
    return smi_dmon.read(document(text), ReadOptions(**options))


def test_the_real_capture_agrees_with_a_plain_split():
    path = H200 / "card-a-bf16" / "nvidia-smi-dmon.txt.gz"
    trace = smi_dmon.read(open_documents(path)[0], ReadOptions(time_zone="UTC"))
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    names = lines[0].lstrip("#").split()
    rows = [line.split() for line in lines if not line.startswith("#")]
    for column, name, factor in [
        ("power_w", "pwr", 1.0),
        ("gpu_util_ratio", "sm", 0.01),
        ("memory_used_mib", "fb", 1.0),
        ("sm_clock_mhz", "pclk", 1.0),
        ("mem_clock_mhz", "mclk", 1.0),
        ("pcie_rx_mb_s", "rxpci", 1.0),
    ]:
        place = names.index(name)
        assert trace.samples[column].to_list() == pytest.approx(
            [float(row[place]) * factor for row in rows]
        )
    assert trace.info["dropped"]["header_repeat"] == sum(x.startswith("#Date") for x in lines) - 1
    assert trace.info["duration_s"] == 368.0


PLAIN = "# gpu    pwr     sm\n# Idx      W      %\n    0    300     90\n    0    310     80\n"
TIMED = "#Time         gpu    pwr\n#HH:MM:SS     Idx      W\n"


def test_without_any_time_a_join_is_impossible_and_said_so():
    trace = read(PLAIN)
    assert trace.samples["time_epoch_s"].null_count() == 2
    assert "time_absent" in {c.code for c in trace.cautions}


def test_a_stated_start_and_step_place_it():
    trace = read(PLAIN, trace_start="2026-12-01T02:00:00Z/PT0.5S")
    assert trace.samples["time_epoch_s"].to_list() == [1796090400.0, 1796090400.5]


def test_a_clock_without_date_rolls_over_at_midnight():
    text = TIMED + " 23:59:59       0    100\n 00:00:01       0    110\n"
    assert read(text).samples["elapsed_s"].to_list() == [0.0, 2.0]
    placed = read(text, trace_start="2026-11-30T23:59:59", time_zone="UTC").samples
    assert placed["time_epoch_s"][1] - placed["time_epoch_s"][0] == 2.0


def test_the_csv_form_and_missing_cells():
    text = "#gpu, pwr, mtemp, sm\n#Idx, W, C, %\n0, 300, -, 90\n"
    samples = read(text).samples
    assert samples["power_w"].to_list() == [300.0]
    assert samples["mem_temperature_c"].to_list() == [None]


def test_gpm_columns_are_shares_and_their_first_sample_is_missing():
    text = (
        "# gpu    pwr  smutil  smocc mmaact   dram\n# Idx      W      %      %      %      %\n"
        "    0    300      -      -      -      -\n    0    310     80     40     30     55\n"
    )
    samples = read(text).samples
    assert samples["sm_active_ratio"].to_list() == [None, pytest.approx(0.8)]
    assert samples["dram_active_ratio"].to_list() == [None, pytest.approx(0.55)]
    assert samples["tensor_active_ratio"].to_list() == [None, pytest.approx(0.3)]


def test_a_column_in_another_unit_is_refused():
    with pytest.raises(LogFormatError, match="unit"):
        read(PLAIN.replace("      W ", "    BTU "))


def test_a_cut_last_row_is_dropped_and_a_bad_one_counted():
    trace = read(PLAIN + "    0    3")
    assert trace.samples.height == 2
    assert trace.info["dropped"] == {"incomplete_last_line": 1}
    trace = read(PLAIN + "    0    3\n    0    320     70\n")
    assert trace.samples["power_w"].to_list() == [300.0, 310.0, 320.0]
    assert trace.info["dropped"] == {"non_object": 1}


def test_pmon_is_told_apart():
    pmon = "# gpu    pid  type    sm   mem\n# Idx      #   C/G     %     %\n    0   10   C  1  1\n"
    assert smi_dmon.why_not(document(pmon), ReadOptions()) is not None
