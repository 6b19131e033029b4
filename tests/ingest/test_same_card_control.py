"""The same card measured by two tools: a client must never pass for a device.

vLLM's client and SGLang's ran against one and the same mock card, three repeats each. A plain test
on TPOT p50 at 32 streams calls them different, because one client's opening wave is longer; no
verdict may say so without naming the client.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.campaigns import arm, write_campaign
from tests.ingest.client_cases import CLIENTS

from gpuverdict.case import open_case
from gpuverdict.recognise import read_run
from gpuverdict.stats import compare_arms

ARMS = {"a": ("vllm-bench-0.32.0", "vllm"), "b": ("sglang-0.4.6.post5", "sglang")}
LEVELS = (1, 4, 8, 16, 32)

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not CLIENTS.exists(), reason="the recorded client logs are not here"),
]


def log_of(name: str, level: int, repeat: int) -> Path:
    version, tool = ARMS[name]
    (path,) = (CLIENTS / version / f"a100-sxm-80g_c{level}_r{repeat}").glob(f"{tool}_*.json*")
    return path


def test_the_plain_comparison_is_as_published() -> None:
    medians = {
        name: [
            run.requests.filter(run.requests["status"] == "ok")["tpot_s"].median()
            for repeat in (1, 2, 3)
            for run in read_run(log_of(name, 32, repeat))
        ]
        for name in ARMS
    }
    found = compare_arms(medians["a"], medians["b"], metric="tpot_s")
    assert found.ratio == pytest.approx(1.079, abs=5e-4)
    assert (found.low, found.high) == pytest.approx((1.049, 1.111), abs=5e-4)


def test_no_word_without_the_client(tmp_path: Path) -> None:
    for name in ARMS:
        folder = tmp_path / name
        folder.mkdir()
        for level in LEVELS:
            for repeat in (1, 2, 3):
                source = log_of(name, level, repeat)
                suffix = "".join(source.suffixes[-2:]) if source.suffix == ".gz" else source.suffix
                shutil.copy(source, folder / f"c{level}_r{repeat}{suffix}")
    arms = {
        "a": arm("a", files="a/c{level}_r{repeat}.json*", engine="mock", engine_version="1"),
        "b": arm("b", files="b/c{level}_r{repeat}.jsonl*", engine="mock", engine_version="1"),
    }
    workload = {"load": "closed", "input_tokens": 256, "output_tokens": 64}
    case = open_case(write_campaign(tmp_path, arms, workload=workload), "ab")
    assert case.measured.lost == ()
    judged = [cell for cell in case.verdict.cells if cell.comparison.ratio is not None]
    # Fifteen cells of the three primary metrics: the campaign was really read and compared.
    primary = {"tpot_s", "ttft_s", "output_tokens_per_s"}
    assert sum(cell.key.metric in primary and cell.level is not None for cell in judged) >= 15
    for cell in judged:
        if cell.verdict in ("faster", "slower", "better", "worse"):
            assert "confounded: client" in cell.comparison.modifiers, cell
    assert any("confounded: client" in cell.comparison.modifiers for cell in judged)
