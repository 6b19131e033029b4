"""Where the chunk size of a prefill comes from: the campaign, the server itself, or nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.campaigns import arm, write_arm, write_campaign

from gpuverdict.campaign import read_campaign
from gpuverdict.errors import CampaignError
from gpuverdict.measured import Measured, measure
from gpuverdict.recognise import read_run


def as_sglang(path: Path, server: Any) -> None:
    """Rewrite a vLLM result as an SGLang one with what its server says of itself."""
    raw = json.loads(path.read_text())
    raw |= {"server_info": server, "total_output_tokens_retokenized": 1, "backend": "sglang"}
    for key in ("start_times", "latencies", "date", "endpoint_type", "model_id", "num_prompts"):
        raw.pop(key, None)
    path.write_text(json.dumps(raw))


def measured_with(folder: Path, scheduler: dict[str, Any], server: Any = None) -> Measured:
    for name in ("a", "b"):
        write_arm(folder, name, levels=(1,), repeats=2, n=20)
    if server is not None:
        for path in (folder / "a").glob("*.json"):
            as_sglang(path, server)
    keys = {"files": None, "sweeps": None, "runs": "a/c1_r1.json", "prefill_probe": "a/c1_r2.json"}
    arms = {"a": arm("a", scheduler=scheduler, **keys), "b": arm("b")}
    return measure(read_campaign(write_campaign(folder, arms)))


@pytest.mark.parametrize(
    ("scheduler", "chunk"),
    [
        ({}, None),
        ({"max_num_batched_tokens": 2048}, 2048),
        ({"chunked_prefill_size": 8192}, 8192),
        ({"chunked_prefill_size": -1}, 0),
        ({"max_num_batched_tokens": 2048, "chunked_prefill": False}, 0),
        ({"max_num_seqs": 64}, None),
    ],
)
def test_a_declared_chunk_reaches_runs_and_probes(
    tmp_path: Path, scheduler: dict[str, Any], chunk: int | None
) -> None:
    measured = measured_with(tmp_path, scheduler)
    (run,) = measured.runs_of("a")
    (probe,) = measured.probes["a"]
    assert run.stored.load().info.get("prefill_chunk_tokens") == chunk
    assert probe.load().info.get("prefill_chunk_tokens") == chunk


@pytest.mark.parametrize(("size", "chunk"), [(4096, 4096), (-1, 0), (None, None), ("x", None)])
def test_an_sglang_server_states_it(tmp_path: Path, size: Any, chunk: int | None) -> None:
    write_arm(tmp_path, "a", levels=(1,), repeats=1, n=20)
    as_sglang(tmp_path / "a" / "c1_r1.json", {"chunked_prefill_size": size, "version": "0.5.1"})
    (run,) = read_run(tmp_path / "a" / "c1_r1.json")
    assert run.info["prefill_chunk_tokens"] == chunk


def test_server_and_campaign_must_agree(tmp_path: Path) -> None:
    server = {"chunked_prefill_size": 4096, "version": "0.5.1"}
    measured = measured_with(tmp_path, {"chunked_prefill_size": 4096}, server)
    assert not measured.lost
    measured = measured_with(tmp_path, {"chunked_prefill_size": 2048}, server)
    (lost,) = measured.lost
    assert "chunks of 4096 tokens" in lost.error
    assert "2048 of arms.a.scheduler" in lost.error


@pytest.mark.parametrize("value", ["2048", 2048.5, True, -2])
def test_a_chunk_is_a_whole_number(tmp_path: Path, value: Any) -> None:
    path = write_campaign(
        tmp_path, {"a": arm("a", scheduler={"max_num_batched_tokens": value}), "b": arm("b")}
    )
    with pytest.raises(CampaignError, match=r"arms\.a.*whole number of tokens"):
        read_campaign(path)
