"""Pages of server and host on a run's clock: what is this run's, and what cannot be told."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from gpuverdict.schema import SERVER_METRICS, conform
from gpuverdict.telemetry.host_window import host_window
from gpuverdict.telemetry.server_window import server_since_start, server_window

Row = tuple[float | None, str, str, float]


def metrics(rows: list[Row]) -> pl.DataFrame:
    columns = ("time_epoch_s", "name", "labels", "value")
    schema: dict[str, Any] = dict(
        zip(columns, (pl.Float64, pl.String, pl.String, pl.Float64), strict=True)
    )
    return conform(pl.DataFrame(rows, schema=schema, orient="row"), SERVER_METRICS)


def page(at: float | None, done: int, kv: float = 0.5, waiting: float = 2.0) -> list[Row]:
    """A page after `done` requests, each with 0.2 s of queue, 0.1 s of prefill, 1 s of decode."""
    rows: list[Row] = []
    for name, each in (("queue", 0.2), ("prefill", 0.1), ("decode", 1.0)):
        for part, value in (("sum", each * done), ("count", float(done))):
            rows.append((at, f"vllm:request_{name}_time_seconds_{part}", "{}", value))
    return [
        *rows,
        (at, "vllm:num_preemptions_total", "{}", float(done // 10)),
        (at, "vllm:prefix_cache_queries_total", "{}", 100.0 * done),
        (at, "vllm:prefix_cache_hits_total", "{}", 25.0 * done),
        (at, "vllm:kv_cache_usage_perc", "{}", kv),
        (at, "vllm:num_requests_waiting", '{"engine": "0"}', waiting),
        (at, "vllm:num_requests_waiting", '{"engine": "1"}', 1.0),
    ]


RUN = (100.0, 200.0)


def test_the_pages_around_a_run() -> None:
    told = server_window(metrics(page(95.0, 40) + page(205.0, 90)), RUN, RUN)
    for name, value in (("queue", 0.2), ("prefill", 0.1), ("decode", 1.0)):
        assert told[f"server_{name}_s"].value == pytest.approx(value)
        assert told[f"server_{name}_s"].n == 50
    assert told["preemptions"].value == 5
    assert told["prefix_cache_hit_ratio"].value == pytest.approx(0.25)
    # Neither page was taken while the run went on: a gauge of then says nothing of it.
    assert told["kv_cache_use_ratio"].value is None
    assert told["waiting_requests"].value is None


def test_pages_inside_the_window_are_nearer_than_those_around_it() -> None:
    rows = page(95.0, 0) + page(205.0, 1000)
    rows += (
        page(110.0, 100, kv=0.4) + page(150.0, 130, kv=0.93) + page(190.0, 160, kv=0.6, waiting=5)
    )
    told = server_window(metrics(rows), RUN, RUN)
    assert told["server_queue_s"].n == 60
    assert told["kv_cache_use_ratio"].value == 0.93
    # Summed over the two engines, then averaged over the three pages.
    assert told["waiting_requests"].value == pytest.approx((3 + 3 + 6) / 3)


def test_pages_that_do_not_bracket_say_nothing() -> None:
    for rows in (
        page(205.0, 90),
        page(95.0, 1),
        page(120.0, 1) + page(160.0, 9),
        page(None, 3),
        [],
    ):
        told = server_window(metrics(rows), RUN, RUN)
        assert {e.value for e in told.values()} == {None}
        assert {c.code for e in told.values() for c in e.cautions} == {"pages_do_not_bracket"}


def test_pages_around_a_whole_sweep_are_no_levels() -> None:
    rows = metrics(page(10.0, 0) + page(400.0, 90))
    told = server_window(rows, RUN, RUN, [(20.0, 90.0), (250.0, 300.0)])
    assert told["server_queue_s"].value is None
    (said,) = {str(c) for e in told.values() for c in e.cautions}
    assert "2 other runs" in said
    # A page between the runs is enough.
    rows = metrics(page(10.0, 0) + page(95.0, 40) + page(205.0, 90) + page(400.0, 900))
    told = server_window(rows, RUN, RUN, [(20.0, 90.0), (250.0, 300.0)])
    assert told["server_queue_s"].n == 50


def test_a_coarse_clock_widens_what_counts_as_around() -> None:
    rows = metrics(page(103.5, 40) + page(205.0, 90))
    assert server_window(rows, RUN, RUN)["server_queue_s"].value is None
    assert server_window(rows, RUN, RUN, clock_slack_s=2.0)["server_queue_s"].n == 50


def test_a_restart_between_the_pages() -> None:
    told = server_window(metrics(page(95.0, 40) + page(205.0, 30)), RUN, RUN)
    assert told["server_queue_s"].value is None
    assert told["server_queue_s"].cautions[0].code == "counter_reset"


def test_pages_without_a_time() -> None:
    after, before = metrics(page(None, 90)), metrics(page(None, 40))
    for pages in ([before, after], [after, before]):
        assert server_since_start(pages)["server_queue_s"].n == 50
    alone = server_since_start([after])["server_queue_s"]
    assert (alone.n, alone.cautions[0].code) == (90, "counters_since_start")
    assert server_since_start([after, before, after])["server_queue_s"].value is None


def test_sglang_counts_its_cache_in_tokens() -> None:
    def at(when: float, prompt: float, cached: float) -> list[Row]:
        return [(when, "sglang:prompt_tokens_total", "{}", prompt),
                (when, "sglang:cached_tokens_total", '{"cache_source": "device"}', cached),
                (when, "sglang:num_retracted_requests_total", "{}", cached / 100)]  # fmt: skip

    told = server_window(metrics(at(99.0, 1000, 100) + at(201.0, 3000, 900)), RUN, RUN)
    assert told["prefix_cache_hit_ratio"].value == pytest.approx(0.4)
    assert told["preemptions"].value == 8


def host(name: str, values: list[float], labels: str = "{}", start: float = 100.0) -> list[Row]:
    return [(start + 10 * k, name, labels, v) for k, v in enumerate(values)]


def test_a_sampled_host() -> None:
    rows = host("host:cpu_busy_ratio", [0.2, 0.4, 0.6])
    rows += host("host:cpu_busy_ratio", [0.1, 0.1, 0.1], '{"cpu": "0"}')
    rows += host("host:cpu_busy_ratio", [0.9, 1.0, 1.1], '{"cpu": "1"}')
    rows += host("host:process_cpu_ratio", [0.5, 0.6, 0.7], '{"command": "python3", "pid": "1"}')
    rows += host("host:process_cpu_ratio", [0.9, 0.9, 0.9], '{"command": "vllm", "pid": "2"}')
    rows += host("host:io_wait_ratio", [0.0, 0.3, 0.0]) + host("host:swap_mib_s", [0.0, 6.0, 3.0])
    rows += host("host:memory_free_mib", [900.0, 100.0, 500.0])
    rows += host("host:network_rx_mb_s", [9000.0] * 3, '{"device": "lo"}')
    rows += host("host:network_tx_mb_s", [100.0, 110.0, 120.0], '{"device": "eth0"}')
    rows += host("host:network_use_ratio", [0.8, 0.9, 1.0], '{"device": "eth0"}')
    rows += host("host:cpu_busy_ratio", [1.0] * 20, start=300.0)
    load = host_window(metrics(rows), *RUN)
    assert load.cpu_busy_ratio == pytest.approx(0.4)
    assert load.core_busy_ratio == pytest.approx(1.0)
    assert (load.process_cpu_ratio, load.process_name) == (pytest.approx(0.9), "vllm")
    assert load.io_wait_ratio == pytest.approx(0.1)
    assert load.swap_mib_s == pytest.approx(3.0)
    assert load.memory_free_mib == 100.0
    assert load.network_mb_s == pytest.approx(110.0)
    assert load.network_use_ratio == pytest.approx(0.9)
    assert (load.n, load.cautions) == (3, ())


def test_threads_count_before_their_process() -> None:
    rows = host("host:process_cpu_ratio", [1.8] * 3, '{"command": "python3", "pid": "1"}')
    rows += host("host:process_cpu_ratio", [0.8] * 3, '{"command": "io", "pid": "1", "tid": "2"}')
    rows += host(
        "host:process_cpu_ratio", [0.99] * 3, '{"command": "sched", "pid": "1", "tid": "3"}'
    )
    load = host_window(metrics(rows), *RUN)
    assert (load.process_cpu_ratio, load.process_name) == (pytest.approx(0.99), "sched")


def test_a_counted_host() -> None:
    """node-exporter: one core idle, one busy for 90 of 100 s; a link of 1.25 GB/s."""
    rows: list[Row] = []
    for k in range(11):
        at = 100.0 + 10 * k
        for core, busy in (("0", 0.0), ("1", 0.9)):
            for mode, share in (("user", busy), ("guest", busy), ("iowait", 0.05),
                                ("idle", 0.95 - busy)):  # fmt: skip
                rows.append((at, "node_cpu_seconds_total", f'{{"cpu": "{core}", "mode": "{mode}"}}',
                             1000 + share * 10 * k))  # fmt: skip
        rows += [(at, "node_memory_MemAvailable_bytes", "{}", 2.0**30 * (20 - k)),
                 (at, "node_vmstat_pswpin", "{}", 256.0 * 10 * k),
                 (at, "node_vmstat_pswpout", "{}", 512.0 * 10 * k),
                 (at, "node_network_transmit_bytes_total", '{"device": "eth0"}', 1e9 * 10 * k),
                 (at, "node_network_speed_bytes", '{"device": "eth0"}', 1.25e9)]  # fmt: skip
    load = host_window(metrics(rows), *RUN)
    assert load.cpu_busy_ratio == pytest.approx(0.45)
    assert load.core_busy_ratio == pytest.approx(0.9)
    assert load.io_wait_ratio == pytest.approx(0.05)
    assert load.memory_free_mib == pytest.approx(10 * 1024)
    assert load.swap_mib_s == pytest.approx(3.0)
    assert load.network_mb_s == pytest.approx(1000.0)
    assert load.network_use_ratio == pytest.approx(0.8)


def test_a_host_without_a_clock_or_outside_the_run() -> None:
    bare = [(None, "host:cpu_busy_ratio", "{}", 1.0)] * 5
    assert host_window(metrics(bare), *RUN).cautions[0].code == "host_without_clock"
    few = host_window(metrics(host("host:cpu_busy_ratio", [1.0, 1.0])), *RUN)
    assert (few.cpu_busy_ratio, few.cautions[0].code) == (None, "host_not_covered")
    assert host_window(metrics([]), *RUN).cautions == ()
