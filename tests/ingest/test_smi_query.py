"""nvidia-smi query tables: the real capture by a second route, and every broken shape of it."""

from __future__ import annotations

import csv
import gzip
import statistics
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpuverdict.errors import LogFormatError, ParameterError
from gpuverdict.files import Document, ReadOptions, open_documents
from gpuverdict.telemetry import smi_query

H200 = Path(__file__).resolve().parents[2] / "data" / "h200"
HEADER = "timestamp, index, uuid, name, power.draw [W], clocks.current.sm [MHz]"
ROWS = [
    "2026/12/01 02:00:00.100, 0, GPU-1, NVIDIA H200, 100.50 W, 1980 MHz",
    "2026/12/01 02:00:00.200, 0, GPU-1, NVIDIA H200, 101.50 W, 1980 MHz",
    "2026/12/01 02:00:00.300, 0, GPU-1, NVIDIA H200, 102.50 W, 1965 MHz",
]


def document(text: str | bytes) -> Document:
    data = text if isinstance(text, bytes) else text.encode()
    return Document(path=Path("t.csv"), name="t.csv", data=data, hashed=lambda: "f" * 64)


def read(text: str, **options: object):
    chosen = ReadOptions(**options)
    assert smi_query.why_not(document(text), chosen) is None
    return smi_query.read(document(text), chosen)


def table(*rows: str, header: str = HEADER) -> str:
    return "\n".join([header, *rows]) + "\n"


def codes(trace) -> set[str]:
    return {c.code for c in trace.cautions}


@pytest.mark.parametrize("arm", ["card-a-bf16", "card-b-bf16", "card-b-eager"])
def test_the_real_capture_agrees_with_the_csv_module(arm):
    path = H200 / arm / "nvidia-smi-query.csv.gz"
    trace = smi_query.read(open_documents(path)[0], ReadOptions(time_zone="UTC"))
    with gzip.open(path, "rt") as stream:
        rows = list(csv.DictReader(stream, skipinitialspace=True))
    samples = trace.samples
    assert samples.height == len(rows)
    for column, name, factor in [
        ("power_instant_w", "power.draw.instant [W]", 1.0),
        ("power_average_w", "power.draw.average [W]", 1.0),
        ("memory_used_mib", "memory.used [MiB]", 1.0),
        ("gpu_util_ratio", "utilization.gpu [%]", 0.01),
        ("sm_clock_mhz", "clocks.current.sm [MHz]", 1.0),
        ("mem_temperature_c", "temperature.memory", 1.0),
        ("power_limit_w", "power.limit [W]", 1.0),
    ]:
        second_route = [float(row[name].split()[0]) * factor for row in rows]
        assert samples[column].to_list() == pytest.approx(second_route)
    capped = sum(bool(int(row["clocks_event_reasons.active"], 16) & 4) for row in rows)
    assert (samples["throttle_mask"] & 4 != 0).sum() == capped
    assert {"card-a-bf16": 280, "card-b-bf16": 88, "card-b-eager": 12}[arm] == capped
    first = datetime.strptime(rows[0]["timestamp"], "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC)
    assert samples["time_epoch_s"][0] == pytest.approx(first.timestamp(), abs=1e-5)
    assert samples["power_w"].equals(samples["power_instant_w"])
    assert set(samples["power_kind"]) == {"instant"}
    steps = samples["elapsed_s"].diff().drop_nulls().to_list()
    assert statistics.median(steps) == pytest.approx(0.101, abs=1e-6)


def test_units_stay_in_the_header_under_nounits():
    bare = table("2026/12/01 02:00:00.100, 0, GPU-1, NVIDIA H200, 100.50, 1980")
    assert read(bare).samples["power_w"].to_list() == [100.5]


def test_a_unit_in_the_cell_wins_and_a_foreign_one_is_refused():
    milli = table(ROWS[0].replace("100.50 W", "100500 mW"))
    assert read(milli).samples["power_w"].to_list() == [100.5]
    with pytest.raises(LogFormatError, match="unit 'BTU'"):
        read(table(ROWS[0].replace(" W", " BTU")))


def test_without_a_zone_there_is_no_epoch_but_seconds_from_the_first_sample():
    trace = read(table(*ROWS))
    assert trace.samples["time_epoch_s"].null_count() == 3
    assert trace.samples["elapsed_s"].to_list() == pytest.approx([0.0, 0.1, 0.2], abs=1e-6)
    assert "zone_unknown" in codes(trace)


def test_a_zone_that_does_not_exist_is_the_users_mistake():
    with pytest.raises(ParameterError, match="Asia/Peking"):
        read(table(*ROWS), time_zone="Asia/Peking")


def test_the_zone_moves_the_epoch():
    here = read(table(*ROWS), time_zone="Asia/Shanghai").samples["time_epoch_s"][0]
    utc = read(table(*ROWS), time_zone="UTC").samples["time_epoch_s"][0]
    assert utc - here == 8 * 3600


def test_repeated_headers_and_blank_lines_are_skipped_and_counted():
    trace = read(table(ROWS[0], "", HEADER, ROWS[1], HEADER, ROWS[2]))
    assert trace.samples.height == 3
    assert trace.info["dropped"] == {"header_repeat": 2}


def test_another_header_in_the_file_is_refused():
    with pytest.raises(LogFormatError, match="second header"):
        read(table(ROWS[0], "timestamp, index, power.draw [W]", ROWS[1]))


@pytest.mark.parametrize("kept", [10, 40, 58, 62])
def test_a_row_cut_by_a_killed_sampler_is_dropped_and_counted(kept):
    text = table(*ROWS[:2]) + ROWS[2][:kept]
    trace = read(text)
    assert trace.samples.height == 2
    assert trace.info["dropped"] == {"incomplete_last_line": 1}
    assert "trace_cut" in codes(trace)


def test_a_shortened_last_number_is_never_read_as_a_value():
    header = HEADER.replace(" [MHz]", "").replace("clocks.current.sm", "clocks.current.sm [MHz]")
    whole = [row.replace(" W", "").replace(" MHz", "") for row in ROWS]
    trace = read("\n".join([header, *whole])[:-2])
    assert trace.samples["sm_clock_mhz"].to_list() == [1980.0, 1980.0]


def test_a_file_edited_to_have_no_last_line_end_keeps_its_whole_row():
    assert read(table(*ROWS).rstrip("\n")).samples.height == 3


def test_a_file_cut_at_the_buffer_drops_its_last_row_even_if_it_looks_whole():
    rows = list(ROWS)
    text = table(*rows).rstrip("\n")
    # One padded header brings the file to exactly the size of the sampler's buffer.
    text = text.replace(HEADER, HEADER + " " * (4096 - len(text.encode())))
    assert len(text.encode()) == 4096
    assert read(text).samples.height == 2


def test_a_line_of_another_kind_is_dropped_counted_and_named():
    broken = "Unable to determine the device handle for GPU 0000:17:00.0: Unknown Error"
    trace = read(table(ROWS[0], broken, ROWS[1]))
    assert trace.samples.height == 2
    (note,) = [c for c in trace.cautions if c.code == "trace_rows_dropped"]
    assert note.values["line"] == 3


def test_a_refused_field_is_quoted():
    with pytest.raises(LogFormatError, match=r"energy\.total"):
        read('Field "energy.total" is not a valid field to query.\n\n')


def test_a_table_without_header_needs_its_query():
    text = "\n".join(ROWS) + "\n"
    with pytest.raises(LogFormatError, match="without a header"):
        read(text)
    query = "timestamp,index,uuid,name,power.draw,clocks.sm"
    assert read(text, trace_query=query).samples["sm_clock_mhz"].to_list() == [1980, 1980, 1965]


def test_old_and_new_names_of_one_column_merge_and_a_contradiction_is_refused():
    header = HEADER + ", clocks_event_reasons.active, clocks_throttle_reasons.active"
    same = table(ROWS[0] + ", 0x0000000000000004, 0x0000000000000004", header=header)
    assert read(same).samples["throttle_mask"].to_list() == [4]
    differ = table(ROWS[0] + ", 0x0000000000000004, 0x0000000000000000", header=header)
    with pytest.raises(LogFormatError, match="differ"):
        read(differ)


def test_two_power_columns_that_differ_are_refused():
    header = HEADER + ", power.draw [W]"
    with pytest.raises(LogFormatError, match=r"two columns power\.draw"):
        read(table(ROWS[0] + ", 99.00 W", header=header))


def test_single_reason_columns_make_the_mask():
    header = HEADER + ", clocks_throttle_reasons.sw_power_cap, clocks_throttle_reasons.hw_slowdown"
    rows = (
        ROWS[0] + ", Active, Not Active",
        ROWS[1] + ", Active, Active",
        ROWS[2] + ", [N/A], Active",
    )
    trace = read(table(*rows, header=header))
    assert trace.samples["throttle_mask"].to_list() == [0x4, 0xC, None]
    assert trace.info["throttle_bits"] == 0xC


def test_the_enforced_limit_is_kept_not_the_requested_one():
    for order in (
        "power.limit [W], enforced.power.limit [W]",
        "enforced.power.limit [W], power.limit [W]",
    ):
        values = ["450.00 W", "380.00 W"]
        if order.startswith("enforced"):
            values.reverse()
        trace = read(table(f"{ROWS[0]}, {', '.join(values)}", header=f"{HEADER}, {order}"))
        assert trace.samples["power_limit_w"].to_list() == [380.0]


def test_several_gpus_without_index_or_uuid_are_refused():
    header = "timestamp, power.draw [W]"
    together = table(
        *(
            f"2026/12/01 02:00:0{s}.{ms}, {w}.00 W"
            for s in range(4)
            for ms, w in (("000", 300), ("003", 90))
        ),
        header=header,
    )
    with pytest.raises(LogFormatError, match="several GPUs"):
        read(together)
    alone = table(*(f"2026/12/01 02:00:0{s}.000, 300.00 W" for s in range(6)), header=header)
    assert "gpu_unidentified" in codes(read(alone))


def test_a_clock_set_back_splits_the_trace():
    back = [row.replace("02:00:00", "01:59:30") for row in ROWS]
    trace = read(table(*ROWS, *back), time_zone="UTC")
    assert trace.samples["time_epoch_s"].is_null().to_list() == [False] * 3 + [True] * 3
    assert trace.samples["power_w"].null_count() == 0
    assert "clock_step" in codes(trace)


def test_gpus_read_a_few_milliseconds_out_of_order_are_no_clock_step():
    two = [ROWS[0], ROWS[0].replace("0, GPU-1", "1, GPU-2").replace("00.100", "00.098"), ROWS[1]]
    assert "clock_step" not in codes(read(table(*two), time_zone="UTC"))


def test_the_hour_passed_twice_is_decided_by_its_neighbours_or_not_at_all():
    def at(*times: str):
        rows = [f"2026/11/01 {t}, 0, GPU-1, NVIDIA H200, 100.00 W, 1980 MHz" for t in times]
        return read(table(*rows), time_zone="America/Chicago")

    before = at("00:59:59.000", "01:00:00.000").samples["time_epoch_s"]
    assert before[1] - before[0] == 1.0
    after = at("01:59:59.000", "02:00:00.000").samples["time_epoch_s"]
    assert after[1] - after[0] == 1.0
    alone = at("01:30:00.000", "01:30:01.000")
    assert alone.samples["time_epoch_s"].null_count() == 2
    assert "zone_ambiguous" in codes(alone)


def test_a_stamp_that_the_zone_skips_is_named():
    row = ROWS[0].replace("2026/12/01 02:00:00.100", "2026/03/08 02:30:00.000")
    trace = read(table(row), time_zone="America/Chicago")
    assert "zone_impossible" in codes(trace)
    assert trace.samples["time_epoch_s"].to_list() == [None]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("NVIDIA A100-SXM4-80GB", "instant"),
        ("NVIDIA A800 80GB PCIe", "instant"),
        ("NVIDIA H100 80GB HBM3", "avg1s"),
        ("NVIDIA H20", "avg1s"),
        ("NVIDIA GeForce RTX 4090", "avg1s"),
        ("NVIDIA RTX A6000", "avg1s"),
        ("Tesla T4", "unknown"),
    ],
)
def test_power_draw_means_what_the_model_makes_of_it(model, kind):
    trace = read(table(ROWS[0].replace("NVIDIA H200", model)))
    assert trace.samples["power_kind"].to_list() == [kind]
    assert ("power_kind_unknown" in codes(trace)) == (kind == "unknown")


@pytest.mark.parametrize(
    "text",
    [
        "request_index,status,start_s\n0,ok,1\n",
        "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-1, 1, a, 2 MiB\n",
        '{"a": 1}\n',
        "#Date Time gpu pwr\n",
        "hello\n",
    ],
)
def test_other_files_are_told_apart(text):
    assert smi_query.why_not(document(text), ReadOptions()) is not None


def test_every_truncation_is_read_short_or_refused():
    text = table(*ROWS)
    full = read(text).samples["power_w"].to_list()
    for end in range(1, len(text)):
        chosen = ReadOptions()
        part = document(text[:end])
        if smi_query.why_not(part, chosen) is not None:
            continue
        try:
            values = smi_query.read(part, chosen).samples["power_w"].to_list()
        except LogFormatError:
            continue
        assert values == full[: len(values)]
