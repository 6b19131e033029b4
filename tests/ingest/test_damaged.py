"""Random damage to real logs: never a traceback, a hang, or a plausible number out of nowhere."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.ingest.client_cases import CLIENTS

from gpuverdict.errors import GpuverdictError
from gpuverdict.files import ReadOptions, open_documents
from gpuverdict.inspection import inspect_paths, inspection_text
from gpuverdict.recognise import recognise
from gpuverdict.schema import REQUESTS, TOKEN_GAPS, Run, check

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests/ingest/data"
SEEDS = {
    "guidellm 0.8": ROOT / "data/h200/card-b-eager/prefill-isl512.json.gz",
    "guidellm 0.3": CLIENTS / "guidellm-0.3.1/a100-sxm-80g_c8/benchmarks.json",
    "vllm": CLIENTS / "vllm-bench-0.32.0/a100-sxm-80g_c8_r1/vllm_a100-sxm-80g_c8_r1.json",
    "sglang": CLIENTS / "sglang-0.5.23/a100-sxm-80g_c4/sglang_a100-sxm-80g_c4.jsonl",
    "aiperf": CLIENTS / "aiperf-0.13.0/a100-sxm-80g_c8/artifacts/profile_export.jsonl",
    "aiperf raw": CLIENTS / "aiperf-0.13.0/edge_raw-level/artifacts/profile_export_raw.jsonl",
    "aiperf summary": CLIENTS
    / "aiperf-0.13.0/a100-sxm-80g_c8/artifacts/profile_export_aiperf.json",
    "inference-perf": CLIENTS
    / "inference-perf-0.7.0/small_no-computed/reports/per_request_lifecycle_metrics.json",
    "llmperf": CLIENTS
    / "llmperf-main-f1d6bed/a100-sxm-80g_c8/results/mock-7b_256_64_individual_responses.json",
    "llm-d report": CLIENTS
    / "inference-perf-0.7.0/a100-sxm-80g_c1-32/reports/inference-perf.partial.stage_1.yaml",
    "evalscope 0.17": RECORDED / "evalscope-0.17.1/mixed/benchmark_data.db.gz",
    "evalscope 1.6": RECORDED / "evalscope-1.6.0/mixed/benchmark_data.db.gz",
    "evalscope 1.14": RECORDED / "evalscope-1.14.1/mixed/benchmark_data.db.gz",
    "guidellm 0.1": RECORDED / "guidellm-0.1.0/rates/report.json.gz",
    "guidellm 0.1 yaml": RECORDED / "guidellm-0.1.0/yaml/report.yaml.gz",
    "guidellm 0.4": RECORDED / "guidellm-0.4.0/mixed/benchmarks.json.gz",
    "guidellm 0.6": RECORDED / "guidellm-0.6.0/seconds/benchmarks.json.gz",
    "inference-perf 0.1": RECORDED
    / "inference-perf-0.1.1/mixed/per_request_lifecycle_metrics.json.gz",
    "inference-perf 0.5": RECORDED
    / "inference-perf-0.5.0/mixed/per_request_lifecycle_metrics.json.gz",
    "aiperf 0.3": RECORDED / "aiperf-0.3.0/mixed/profile_export.jsonl.gz",
    "aiperf 0.9": RECORDED / "aiperf-0.9.0/cancel/profile_export.jsonl.gz",
    "aiperf telemetry": RECORDED / "aiperf-0.13.0/telemetry/gpu_telemetry_export.jsonl.gz",
    "aiperf server metrics": RECORDED / "aiperf-0.6.0/mixed/server_metrics_export.json.gz",
    "sglang 0.5.8": RECORDED / "sglang-0.5.8/oai/out.jsonl.gz",
    "llama-bench": RECORDED / "llama-bench-4227c9b/out.json",
    "llama-bench csv": RECORDED / "llama-bench-4227c9b/out.csv",
    "llama-bench table": RECORDED / "llama-bench-4227c9b/out.md",
    "genai-perf 0.0.8": RECORDED / "genai-perf-0.0.8/empties/profile_export.json.gz",
}
# Not JSON: what replaces values in a JSON tree passes these by.
_NO_TREE = {"llm-d report", "llama-bench csv", "llama-bench table", "guidellm 0.1 yaml",
            "evalscope 0.17", "evalscope 1.6", "evalscope 1.14"}  # fmt: skip
# Dialects without a recorded file, in their documented form.
WRITTEN = {
    "trtllm records": [
        {"id": i, "num_input_tokens": 8, "output_tokens": 5, "error_tokens": 0,
         "start_timestamp": 10**15 + i, "first_token_timestamp": 10**15 + 10**8,
         "end_timestamp": 10**15 + 9 * 10**8, "decode_iteration": 4} for i in range(4)
    ],
    "trtllm report": {
        "engine": {"model": "m", "version": "1"}, "world_info": {"tp_size": 2},
        "performance": {"total_latency_ms": 4000.0, "request_throughput_req_s": 2.5,
                        "request_latency_percentiles_ms": {"p50": 700.0}},
        "streaming_metrics": {"ttft_percentiles": {"p50": 55.0}},
    },
    "fmperf": {"results": [
        {"timestamp": 10**18 + i * 10**7, "duration_ms": 10.0, "worker_idx": 0,
         "request_idx": i % 3, "n_tokens": 1, "ok": True, "error": "None"} for i in range(12)
    ]},
    "open requests": [
        {"request_index": i, "status": "ok", "start_s": 1.0 * i, "first_token_s": i + 0.5,
         "last_token_s": i + 1.0, "end_s": i + 1.0, "input_tokens": 4, "output_tokens": 3,
         "output_tokens_source": "usage", "gaps_s": [0.25, 0.25]} for i in range(5)
    ],
    "open runs": {"rows": [
        {"run_id": f"r{i}", "level": {"concurrency": 8}, "metric": "tpot_s", "statistic": "p50",
         "value": 0.02, "unit": "s", "n": 9, "window": "whole_run"} for i in range(3)
    ]},
    "open batches": [
        {"batch": 8, "input": 512, "output": 101, "prefill_s": 0.5, "e2e_s": 2.5} for _ in range(3)
    ],
    "vllm throughput": {"elapsed_time": 10.0, "num_requests": 20, "requests_per_second": 2.0,
                        "tokens_per_second": 500.0},
    "evalscope summary": {"Test Duration (s)": 2.0, "Concurrency": 2, "Avg TTFT (ms)": 5.0},
}  # fmt: skip
# Twice this is a hang for files of some hundred kilobytes.
SLOW_S = 5.0


def seed_bytes(name: str) -> bytes:
    if name in WRITTEN:
        return json.dumps(WRITTEN[name]).encode()
    path = SEEDS[name]
    if not path.exists():
        pytest.skip("the recorded client logs are not beside the repository")
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def damage(data: bytes, draw: random.Random) -> bytes:
    """Cut, flip, swap, drop, double or blank some bytes."""
    kind = draw.randrange(8)
    at = draw.randrange(len(data))
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[at:]
    some = bytearray(data)
    if kind == 2:
        for _ in range(draw.randint(1, 20)):
            some[draw.randrange(len(some))] = draw.randrange(256)
    elif kind == 3:
        del some[at : at + draw.randint(1, 200)]
    elif kind == 4:
        some[at:at] = some[at : at + draw.randint(1, 200)]
    elif kind == 5:
        span = draw.randint(1, 50)
        some[at : at + span] = b"\x00" * span
    elif kind == 6:
        # A number becomes another kind of value.
        digit = next((i for i in range(at, len(some)) if 48 <= some[i] <= 57), at)
        some[digit : digit + 1] = draw.choice(
            [b"null", b"-", b"NaN", b'"x"', b"[]", b"1e999", b"{}"]
        )
    else:
        # A key or text becomes another.
        quote = some.find(b'"', at)
        if quote != -1:
            some[quote + 1 : quote + 2] = draw.choice([b"", b"zz", b"\\u0000", b'"'])
    return bytes(some)


_ODD = (None, True, False, -1, 0, 1e308, -1e-9, 2**70, "", "x", "1.5", "inf", "nan", [], [1],
        [[]], [None], {}, {"a": 1}, "\x1b[31m", "NO")  # fmt: skip


def replaced(value: object, draw: random.Random) -> object:
    """Replace one value somewhere in a JSON tree by an odd one."""
    if isinstance(value, dict) and value and draw.random() < 0.93:
        key = draw.choice(list(value))
        if draw.random() < 0.05:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: replaced(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.93:
        at = draw.randrange(len(value))
        if draw.random() < 0.05:
            return value[:at] + value[at + 1 :]
        return [*value[:at], replaced(value[at], draw), *value[at + 1 :]]
    return draw.choice(_ODD)


def odd_trees(data: bytes, draw: random.Random, n: int) -> Iterator[bytes]:
    """Write a JSON log again and again with a value or two replaced."""
    try:
        trees, lines = [json.loads(data)], False
    except ValueError:
        trees, lines = [json.loads(line) for line in data.splitlines() if line.strip()], True
    for _ in range(n):
        some = list(trees)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(min(len(some), 4))
            some[at] = replaced(some[at], draw)
        texts = [json.dumps(tree) for tree in some]
        yield ("\n".join(texts) if lines else texts[0]).encode()


def read_bare(path: Path) -> None:
    """Read as `read_any` does, without its net for what no reader foresaw."""
    options = ReadOptions()
    try:
        for document in open_documents(path, options):
            found = recognise(document, options).module.read(document, options)
            check_items(found if isinstance(found, list) else [found])
    except GpuverdictError as problem:
        if "\n" in str(problem):
            pytest.fail(f"more than one line: {problem}")
        raise


def check_items(items: list[object]) -> None:
    for item in items:
        if not isinstance(item, Run):
            continue
        check(item.requests, REQUESTS)
        check(item.gaps, TOKEN_GAPS)
        ok = item.requests.filter(pl.col("status") == "ok")
        for column in ("ttft_s", "e2e_s", "tpot_s"):
            values = ok[column].drop_nulls().to_numpy()
            assert (values >= 0).all()
        for value in item.info["reported"].values():
            assert np.isfinite(value)


@pytest.mark.shared
@pytest.mark.parametrize("name", SEEDS)
def test_damage_is_read_or_refused(name: str, tmp_path: Path) -> None:
    data = seed_bytes(name)
    draw = random.Random(f"damage {name}")
    path = tmp_path / "log"
    n_read = 0
    for _ in range(60):
        path.write_bytes(damage(data, draw))
        begin = time.monotonic()
        with contextlib.suppress(GpuverdictError):
            read_bare(path)
            n_read += 1
        assert time.monotonic() - begin < SLOW_S
    # Damage inside a text leaves a readable log: not everything may be refused.
    assert n_read > 0 or name in ("llm-d report",)


JSON_SEEDS = [*(name for name in SEEDS if name not in _NO_TREE), *WRITTEN]


def read_odd(name: str, folder: Path, n: int) -> None:
    path = folder / "log"
    for data in odd_trees(seed_bytes(name), random.Random(f"odd {name}"), n):
        path.write_bytes(data)
        with contextlib.suppress(GpuverdictError):
            read_bare(path)


@pytest.mark.shared
@pytest.mark.parametrize("name", JSON_SEEDS)
def test_odd_values_are_read_or_refused(name: str, tmp_path: Path) -> None:
    read_odd(name, tmp_path, 40)


@pytest.mark.shared
@pytest.mark.nightly
@pytest.mark.parametrize("name", JSON_SEEDS)
def test_many_odd_values(name: str, tmp_path: Path) -> None:
    read_odd(name, tmp_path, 1000)


@pytest.mark.shared
@pytest.mark.nightly
@pytest.mark.parametrize("name", SEEDS)
def test_much_damage(name: str, tmp_path: Path) -> None:
    data = seed_bytes(name)
    path = tmp_path / "log"
    for number in range(1000):
        draw = random.Random(f"much damage {name} {number}")
        damaged = data
        for _ in range(draw.randint(1, 4)):
            damaged = damage(damaged, draw) or b" "
        path.write_bytes(damaged)
        with contextlib.suppress(GpuverdictError):
            read_bare(path)


@pytest.mark.shared
def test_inspecting_a_folder_of_damage_loses_nothing(tmp_path: Path) -> None:
    names = []
    for name in SEEDS:
        draw = random.Random(f"folder {name}")
        for number in range(2):
            path = tmp_path / f"{name.replace(' ', '-')}-{number}"
            path.write_bytes(damage(seed_bytes(name), draw) or b" ")
            names.append(path.as_posix())
    found = inspect_paths([tmp_path])
    assert [row["path"] for row in found["files"]] == sorted(names)
    for lang in ("en", "zh"):
        assert inspection_text(found, lang).count("\n") >= len(names) - 1
