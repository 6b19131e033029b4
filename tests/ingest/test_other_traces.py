"""DCGM, AIPerf telemetry, home-made loggers, process tables, server pages: shapes and refusals."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from gpuverdict.errors import LogFormatError
from gpuverdict.files import ReadOptions
from gpuverdict.recognise import read_any, read_trace
from gpuverdict.telemetry.server_metrics import difference

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
CLIENTS = SHARED / "data" / "clients"


def read(tmp_path: Path, text: str, name: str = "trace.txt", **options: object):
    path = tmp_path / name
    path.write_text(text)
    (item,) = read_any(path, ReadOptions(**options))
    return item


def codes(trace) -> set[str]:
    return {c.code for c in trace.cautions}


LABELS = 'gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node"'


def page(power: float, energy_mj: float, at_ms: int | None = None, extra: str = "") -> str:
    stamp = f" {at_ms}" if at_ms else ""
    return (
        "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n"
        f"DCGM_FI_DEV_POWER_USAGE{{{LABELS}}} {power}{stamp}\n"
        f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{LABELS}}} {energy_mj}{stamp}\n{extra}"
    )


def test_appended_scrapes_with_times_become_a_trace(tmp_path):
    text = page(300.0, 1_000_000, 1796090400000) + page(310.0, 1_300_000, 1796090401000)
    samples = read(tmp_path, text).samples
    assert samples["time_epoch_s"].to_list() == [1796090400.0, 1796090401.0]
    assert samples["power_w"].to_list() == [300.0, 310.0]
    assert samples["energy_j"].to_list() == [1000.0, 1300.0]
    assert samples["host"].to_list() == ["node", "node"]
    assert samples["power_kind"].to_list() == ["avg1s", "avg1s"]


def test_a_comment_may_give_the_time_of_a_page(tmp_path):
    text = f"# scrape_epoch_s 1796090400.5\n{page(300, 1)}# scrape_epoch_s 1796090402\n{page(9, 2)}"
    assert read(tmp_path, text).samples["time_epoch_s"].to_list() == [1796090400.5, 1796090402.0]


def test_pages_without_time_have_none(tmp_path):
    trace = read(tmp_path, page(300, 1) + page(310, 2))
    assert trace.samples["time_epoch_s"].null_count() == 2
    assert "time_absent" in codes(trace)


def test_repeated_scrapes_are_merged(tmp_path):
    pages = [(300.0, 5), (300.0, 5), (300.0, 5), (310.0, 8), (310.0, 8)]
    text = "".join(page(w, e, 1796090400000 + 1000 * i) for i, (w, e) in enumerate(pages))
    trace = read(tmp_path, text)
    assert trace.samples["power_w"].to_list() == [300.0, 310.0, 310.0]
    assert "samples_repeated" in codes(trace)


def test_blanks_of_dcgm_are_missing(tmp_path):
    blank = f"DCGM_FI_DEV_MEMORY_TEMP{{{LABELS}}} 9223372036854775794\n"
    assert read(tmp_path, page(300, 1, extra=blank)).samples["mem_temperature_c"][0] is None
    assert read(tmp_path, page("NaN", 1)).samples["power_w"][0] is None


def test_violation_counters_carry_their_doubt(tmp_path):
    extra = f"DCGM_FI_DEV_POWER_VIOLATION{{{LABELS}}} 12\n"
    assert "unit_uncertain" in codes(read(tmp_path, page(300, 1, extra=extra)))


def test_slices_that_disagree_about_their_board_are_refused(tmp_path):
    line = 'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="G",GPU_I_ID="{}"}} {}\n'
    with pytest.raises(LogFormatError, match="one value a board"):
        read(tmp_path, line.format(3, 61.5) + line.format(4, 70.0))


def test_a_range_dump_is_a_trace(tmp_path):
    metric = {"gpu": "0", "UUID": "GPU-1", "modelName": "NVIDIA A100-SXM4-80GB"}
    series = [
        {
            "metric": {"__name__": "DCGM_FI_DEV_POWER_USAGE", **metric},
            "values": [[1796090400, "250.5"], [1796090415.5, "NaN"]],
        },
        {
            "metric": {"__name__": "DCGM_FI_PROF_SM_ACTIVE", **metric},
            "values": [[1796090400, "0.5"], [1796090415.5, "0.75"]],
        },
    ]
    dump = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    samples = read(tmp_path, json.dumps(dump), "dump.json").samples
    assert samples["power_w"].to_list() == [250.5, None]
    assert samples["sm_active_ratio"].to_list() == [0.5, 0.75]
    assert samples["time_epoch_s"].to_list() == [1796090400.0, 1796090415.5]
    assert set(samples["power_kind"]) == {"instant"}


DCGMI = "#Entity   SMACT  POWER  GPUTL\nID\nGPU 0     0.912  612.4  100\nGPU 0     N/A  610.0  99\n"


def test_dcgmi_has_no_time_unless_stated_and_says_it_is_unverified(tmp_path):
    trace = read(tmp_path, DCGMI)
    assert trace.samples["power_w"].to_list() == [612.4, 610.0]
    assert trace.samples["sm_active_ratio"].to_list() == [0.912, None]
    assert {"time_absent", "layout_unverified"} <= codes(trace)
    placed = read(tmp_path, DCGMI, trace_start="2026-12-01T02:00:00Z/PT0.1S").samples
    assert placed["time_epoch_s"].to_list() == pytest.approx([1796090400.0, 1796090400.1])


def test_aiperf_telemetry_in_both_namings(tmp_path):
    def line(names: tuple[str, ...], ns: int, source: str = "http://node:9400/metrics") -> str:
        data = dict(zip(names, (300.0, 1.5, 97.0, 20.0, 60.0), strict=True))
        record = {"timestamp_ns": ns, "gpu_index": 0, "gpu_uuid": "GPU-1", "telemetry_data": data}
        return json.dumps(record | {"gpu_model_name": "NVIDIA H200", "dcgm_url": source}) + "\n"

    old = ("gpu_power_usage", "energy_consumption", "gpu_utilization", "gpu_memory_used",
           "sm_utilization")  # fmt: skip
    new = ("nvidia_power_usage", "nvidia_energy_consumption", "nvidia_gpu_utilization",
           "nvidia_memory_used", "nvidia_sm_utilization")  # fmt: skip
    text = line(new, 1796090400_000000123, "pynvml://localhost")
    assert read(tmp_path, text, "t.jsonl").samples["sm_active_ratio"].null_count() == 1
    for names in (old, new):
        text = line(names, 1796090400_000000123) + line(names, 1796090400_333000456)
        samples = read(tmp_path, text, "t.jsonl").samples
        assert samples["power_w"].to_list() == [300.0, 300.0]
        assert samples["sm_active_ratio"][0] == pytest.approx(0.6)
        assert samples["energy_j"][0] == 1.5e6
        assert samples["memory_used_mib"][0] == pytest.approx(20e9 / 2**20)
        assert samples["gpu_util_ratio"][0] == pytest.approx(0.97)
        assert samples["time_epoch_s"][1] - samples["time_epoch_s"][0] == pytest.approx(
            0.333, abs=1e-6
        )


HEAD = "time_epoch_s,gpu_uuid,power_w,gpu_util_pct,memory_used_mib,sm_clock_mhz\n"


def test_a_home_made_csv_with_units(tmp_path):
    samples = read(tmp_path, HEAD + "1796090400.5,GPU-1,300.5,97,20000,1980\n").samples
    assert samples["power_w"].to_list() == [300.5]
    assert samples["gpu_util_ratio"].to_list() == [0.97]
    assert samples["time_epoch_s"].to_list() == [1796090400.5]


@pytest.mark.parametrize(
    ("header", "cell", "column", "value", "warned"),
    [
        ("power_mw", "300500", "power_w", 300.5, False),
        ("power (mW)", "300500", "power_w", 300.5, False),
        ("power_usage", "300500", "power_w", 300.5, True),
        ("power_usage", "300.5", "power_w", 300.5, True),
        ("energy_mj", "5000", "energy_j", 5.0, False),
        ("total_energy_consumption", "5000", "energy_j", 5.0, True),
        ("mem_used_bytes", str(2**30), "memory_used_mib", 1024.0, False),
        ("memory_used", str(2**30), "memory_used_mib", 1024.0, True),
        ("memory_used [MiB]", "1024", "memory_used_mib", 1024.0, False),
        ("utilization", "97", "gpu_util_ratio", 0.97, False),
        ("gpu_util_ratio", "0.97", "gpu_util_ratio", 0.97, False),
        ("throttle_reasons", "0x4", "throttle_mask", 4, False),
    ],
)
def test_units_by_header_or_with_a_caution(tmp_path, header, cell, column, value, warned):
    text = f"time_epoch_s,gpu,{header},sm_clock_mhz\n1796090400,0,{cell},1980\n"
    trace = read(tmp_path, text)
    assert trace.samples[column][0] == pytest.approx(value)
    assert ("unit_assumed" in codes(trace)) == warned


def test_a_unit_that_reads_two_ways_is_not_read(tmp_path):
    trace = read(tmp_path, "time_epoch_s,gpu,power_w,mem_used_mb\n1796090400,0,300,20000\n")
    assert trace.samples["memory_used_mib"].to_list() == [None]
    assert "unit_refused" in codes(trace)
    with pytest.raises(LogFormatError, match="unit"):
        read(tmp_path, "time_epoch_s,gpu,power_mhz\n1796090400,0,300\n")


@pytest.mark.parametrize(
    ("header", "cell", "seconds"),
    [
        ("timestamp", "1796090400.25", 1796090400.25),
        ("timestamp", "1796090400250", 1796090400.25),
        ("timestamp_ns", "1796090400250000001", 1796090400.25),
        ("timestamp", "2026-12-01T02:00:00.250Z", 1796090400.25),
        ("timestamp", "2026-12-01 10:00:00.250+08:00", 1796090400.25),
    ],
)
def test_times_of_home_made_logs(tmp_path, header, cell, seconds):
    trace = read(tmp_path, f"{header},gpu,power_w\n{cell},0,300\n")
    assert trace.samples["time_epoch_s"][0] == pytest.approx(seconds, abs=1e-6)


def test_a_zone_less_home_made_time_needs_the_zone(tmp_path):
    text = "timestamp,gpu,power_w\n2026-12-01 10:00:00.250,0,300\n"
    assert read(tmp_path, text).samples["time_epoch_s"].to_list() == [None]
    placed = read(tmp_path, text, time_zone="Asia/Shanghai")
    assert placed.samples["time_epoch_s"][0] == pytest.approx(1796090400.25)


def test_seconds_since_the_start_are_no_epoch(tmp_path):
    text = "elapsed_s,gpu,power_w\n0.0,0,300\n0.1,0,301\n"
    trace = read(tmp_path, text)
    assert trace.samples["time_epoch_s"].null_count() == 2
    assert trace.samples["elapsed_s"].to_list() == pytest.approx([0.0, 0.1])
    placed = read(tmp_path, text, trace_start="2026-12-01T02:00:00Z").samples
    assert placed["time_epoch_s"][1] == pytest.approx(1796090400.1)


def test_json_lines_flat_and_by_gpu_with_a_key_seen_late(tmp_path):
    flat = (
        '{"timestamp_ns": 1796090400000000000, "gpu_index": 0, "power_w": 300}\n'
        '{"timestamp_ns": 1796090400100000000, "gpu_index": 0, "power_w": null, "temp_c": 60}\n'
    )
    samples = read(tmp_path, flat, "t.jsonl").samples
    assert samples["power_w"].to_list() == [300.0, None]
    assert samples["temperature_c"].to_list() == [None, 60.0]
    inner = [{"gpu_index": i, "power_w": 100.0 * (i + 1)} for i in range(2)]
    nested = json.dumps({"timestamp": 1796090400.0, "gpus": inner}) + "\n"
    assert read(tmp_path, nested, "t.jsonl").samples["power_w"].to_list() == [100.0, 200.0]


def test_a_columns_map_reads_foreign_headers(tmp_path):
    rules = {"时间": {"to": "time_epoch_s"}, "功率": {"to": "power_w", "unit": "mW"}}
    trace = read(tmp_path, "时间,功率\n1796090400,300500\n", "t.csv", columns=rules,
                 format="nvml_log")  # fmt: skip
    assert trace.samples["power_w"].to_list() == [300.5]


def test_the_open_trace_dialect_is_told_by_its_names(tmp_path):
    trace = read(tmp_path, "time_epoch_s,gpu_uuid,power_w,energy_j\n1796090400,G,300,5\n")
    assert set(trace.samples["source"]) == {"open"}


def test_a_cut_or_ragged_home_made_table(tmp_path):
    trace = read(tmp_path, HEAD + "1796090400.5,G,300.5,97,20000,1980\n1796090400.6,G,30")
    assert trace.samples.height == 1
    assert trace.info["dropped"] == {"incomplete_last_line": 1}
    with pytest.raises(LogFormatError, match=":3"):
        read(tmp_path, HEAD + "1796090400.5,G,300.5,97,20000,1980\n1,2\n3,G,1,2,3,4\n")


PMON = (
    "# gpu    pid  type    sm   mem    fb  command\n"
    "# Idx      #   C/G     %     %    MB  name\n"
    "    0   4101     C    90    40 18000  python3\n"
    "    0      -     -     -     -     -  -\n"
)


def test_pmon_lists_processes(tmp_path):
    trace = read(tmp_path, PMON)
    (row,) = trace.info["processes"]
    assert (row["pid"], row["gpu_index"], row["memory_mib"], row["name"]) == (
        4101, 0, 18000.0, "python3",
    )  # fmt: skip
    assert "layout_unverified" in codes(trace)
    assert trace.samples.height == 0


@pytest.mark.skipif(not CLIENTS.is_dir(), reason="the data folder is not beside the repo")
@pytest.mark.parametrize("case", ["aiperf-0.13.0/edge_kv-preempt", "aiperf-0.13.0/rtx4090-24g_c8"])
def test_a_server_page_tells_what_the_server_knows(case):
    folder = CLIENTS / case
    (frame,) = read_any(folder / "server_metrics.prom.gz")
    told = difference(None, frame)
    truth = [
        json.loads(line)
        for line in gzip.decompress((folder / "truth_server.jsonl.gz").read_bytes()).splitlines()
    ]
    done = [row for row in truth if row["t_last"] is not None]
    assert told["generation_tokens"].value == sum(row["output_tokens"] for row in truth)
    assert told["preemptions"].value == sum(row["preempted"] for row in truth)
    mean_ttft = sum(row["t_first"] - row["t_arrival"] for row in done) / len(done)
    assert told["server_ttft_s"].value == pytest.approx(mean_ttft, rel=0.02)
    assert {c.code for c in told["server_ttft_s"].cautions} == {"counters_since_start"}


def metrics(tmp_path: Path, total: float, count: int, hits: int = 0) -> pl.DataFrame:
    text = (
        f'vllm:request_queue_time_seconds_sum{{e="0"}} {total}\n'
        f'vllm:request_queue_time_seconds_count{{e="0"}} {count}\n'
        f'vllm:prefix_cache_queries_total{{e="0"}} {10 * count}\n'
        f'vllm:prefix_cache_hits_total{{e="0"}} {hits}\n'
    )
    return read(tmp_path, text)


def test_two_pages_are_differenced(tmp_path):
    before, after = metrics(tmp_path, 2.0, 10, 5), metrics(tmp_path, 8.0, 30, 55)
    told = difference(before, after)
    assert told["server_queue_s"].value == pytest.approx(6.0 / 20)
    assert told["server_queue_s"].n == 20
    assert told["prefix_cache_hit_ratio"].value == pytest.approx(50 / 200)
    assert told["server_decode_s"].value is None
    assert told["server_queue_s"].cautions == ()
    restarted = difference(after, before)["server_queue_s"]
    assert restarted.value is None
    assert [c.code for c in restarted.cautions] == ["counter_reset"]


def test_a_broken_page_is_refused_with_its_line(tmp_path):
    with pytest.raises(LogFormatError, match=":2"):
        read(tmp_path, 'a{x="1"} 1\nb{x=1} 2\nc 3\n')


def test_every_truncation_of_a_page_gives_a_prefix_or_a_refusal(tmp_path):
    text = page(300.0, 1_000_000, 1796090400000) + page(310.0, 1_300_000, 1796090401000)
    path = tmp_path / "p.prom"
    for end in range(60, len(text), 3):
        path.write_text(text[:end])
        try:
            power = read_trace(path).samples["power_w"].to_list()
        except LogFormatError:
            continue
        assert power in ([300.0], [300.0, 310.0], [300.0, None])


@pytest.mark.skipif(not CLIENTS.is_dir(), reason="the data folder is not beside the repo")
@pytest.mark.parametrize("case", ["edge_kv-preempt", "a100-sxm-80g_c32"])
def test_the_export_of_aiperf_is_two_pages(case):
    folder = CLIENTS / "aiperf-0.13.0" / case
    (frame,) = read_any(folder / "artifacts" / "server_metrics_export.json")
    (whole,) = read_any(folder / "server_metrics.prom.gz")
    told, page_told = difference(None, frame), difference(None, whole)
    assert told["server_ttft_s"].cautions == ()
    for name in ("generation_tokens", "preemptions", "requests_finished"):
        assert told[name].value == page_told[name].value
    assert told["server_ttft_s"].value == pytest.approx(page_told["server_ttft_s"].value, rel=1e-6)
    truth = json.loads((folder / "artifacts" / "server_metrics_export.json").read_text())
    end = truth["summary"]["phase_time_ranges"]["profiling"]["end_ns"] / 1e9
    assert frame["time_epoch_s"].max() == pytest.approx(end, abs=1e-5)


VMSTAT = (
    "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -time-\n"
    " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st    UTC\n"
    " 3  0  0 18119348 144396 5313480  0  0  93  1003  528 5953 60  4 36  0  0"
    " 2026-12-01 06:07:59\n"
    " 3  0  0 1024 2048 4096  0  512  0  716  997  830 80  4 10  6  0 2026-12-01 06:08:00\n"
)


def values(frame: pl.DataFrame) -> dict[str, float]:
    return dict(zip(frame["name"], frame["value"], strict=True))


def test_vmstat_without_its_line_since_boot(tmp_path):
    frame = read(tmp_path, VMSTAT)
    told = values(frame)
    assert frame.height == 5
    assert told["host:swap_mib_s"] == pytest.approx(0.5)
    assert told["host:cpu_busy_ratio"] == pytest.approx(0.84)
    assert told["host:io_wait_ratio"] == pytest.approx(0.06)
    assert told["host:memory_free_mib"] == pytest.approx(7.0)
    assert told["host:run_queue"] == 3
    assert frame["time_epoch_s"].unique().to_list() == [1796105280.0]
    bare = "\n".join(line[: line.rfind(" 0 ") + 2] for line in VMSTAT.split("\n")[2:4])
    header = "\n".join(VMSTAT.split("\n")[:2]).replace("-time-", "").replace("UTC", "")
    assert read(tmp_path, f"{header}\n{bare}\n")["time_epoch_s"].null_count() == 5


def test_sar_and_pidstat_over_midnight(tmp_path):
    sar = (
        "Linux 6.8.0 (node) \t11/30/2026 \t_x86_64_\t(16 CPU)\n\n"
        "23:59:58        CPU     %user     %nice   %system   %iowait    %steal     %idle\n"
        "23:59:59        all     50.00      0.00     10.00      5.00      0.00     35.00\n"
        "00:00:00        all     50.00      0.00     10.00      0.00      0.00     40.00\n"
        "Average:        all     50.00      0.00     10.00      2.50      0.00     37.50\n"
    )
    frame = read(tmp_path, sar, time_zone="UTC").filter(pl.col("name") == "host:cpu_busy_ratio")
    assert frame["value"].to_list() == pytest.approx([0.6, 0.6])
    assert frame["time_epoch_s"].to_list() == [1796083199.0, 1796083200.0]
    pidstat = (
        "Linux 6.8.0 (node) \t12/01/2026 \t_x86_64_\t(16 CPU)\n\n"
        "02:00:00 AM   UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command\n"
        "02:00:01 PM     0      4101  150.00   20.00    0.00    0.00  170.00     3  python3\n"
    )
    frame = read(tmp_path, pidstat, time_zone="UTC")
    assert frame["value"].to_list() == [1.7]
    assert json.loads(frame["labels"][0]) == {"command": "python3", "pid": "4101"}
    assert frame["time_epoch_s"].to_list() == [1796090400.0 + 12 * 3600 + 1]


def test_a_page_of_a_host_is_kept_raw(tmp_path):
    page_of_host = 'node_cpu_seconds_total{cpu="0",mode="idle"} 12.5\nnode_load1 0.5\n'
    assert values(read(tmp_path, page_of_host))["node_load1"] == 0.5


def test_a_stamp_that_no_calendar_holds_is_refused(tmp_path):
    record = {"gpu_index": 0, "gpu_uuid": "GPU-1", "telemetry_data": {"power_usage": 1.0}}
    lines = [json.dumps(record | {"timestamp_ns": ns}) for ns in (10**21, 1796090400_000000000)]
    with pytest.raises(LogFormatError, match="before the year 10000"):
        read(tmp_path, "\n".join(lines), "t.jsonl")
