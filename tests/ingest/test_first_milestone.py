"""The two first dialects on real files, against figures read off the raw files."""

from __future__ import annotations

import gzip
import json
import statistics
from pathlib import Path

import pytest

from gpuverdict.recognise import read_run
from gpuverdict.schema import REQUESTS, RUN_FIELDS, TOKEN_GAPS, check

ROOT = Path(__file__).resolve().parents[2]
SWEEP = ROOT / "data" / "h200" / "card-a-bf16" / "guidellm-r1.json.gz"
CLIENTS = ROOT.parent / "shared" / "data" / "clients"


def test_guidellm_sweep_gives_one_run_a_level() -> None:
    raw = json.loads(gzip.decompress(SWEEP.read_bytes()))["benchmarks"]
    runs = read_run(SWEEP)
    assert [run.info["max_concurrency"] for run in runs] == [1, 4, 16, 64]
    for run, level in zip(runs, raw, strict=True):
        assert set(run.info) == set(RUN_FIELDS)
        check(run.requests, REQUESTS)
        assert run.info["n_ok"] == len(level["requests"]["successful"])
        assert run.info["n_incomplete"] == len(level["requests"]["incomplete"])
        ok = run.requests.filter(run.requests["status"] == "ok")
        gaps = [row["inter_token_latency_ms"] / 1000 for row in level["requests"]["successful"]]
        assert ok["tpot_s"].median() == pytest.approx(statistics.median(gaps), rel=1e-9)
        first = [row["time_to_first_token_ms"] / 1000 for row in level["requests"]["successful"]]
        assert ok["ttft_s"].to_list() == pytest.approx(first, abs=1e-9)
        assert run.info["duration_s"] == 8.0


def test_vllm_detail_keeps_times_and_gaps() -> None:
    path = CLIENTS / "vllm-bench-0.32.0/a100-sxm-80g_c8_r1/vllm_a100-sxm-80g_c8_r1.json"
    if not path.exists():
        pytest.skip("needs the shared data folder")
    raw = json.loads(path.read_text())
    (run,) = read_run(path)
    check(run.requests, REQUESTS)
    check(run.gaps, TOKEN_GAPS)
    assert run.requests["ttft_s"].to_list() == pytest.approx(raw["ttfts"], abs=1e-12)
    assert run.gaps["gaps_s"].to_list() == raw["itls"]
    expected = [sum(row) / (n - 1) for row, n in zip(raw["itls"], raw["output_lens"], strict=True)]
    assert run.requests["tpot_s"].to_list() == pytest.approx(expected, rel=1e-12)
    starts = [start - min(raw["start_times"]) for start in raw["start_times"]]
    assert run.requests["start_s"].to_list() == pytest.approx(starts, abs=1e-12)
