"""The ordinary mistakes in a campaign file: one line with the place, the fault and the way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuverdict.campaign import arm_inputs, read_campaign
from gpuverdict.errors import CampaignError
from gpuverdict.inspection import inspect_paths, inspection_text
from gpuverdict.report.comparison import verdict_lines

TEXT = """\
campaign: c
model: {name: m}
slo: {ttft_s: {p95: 0.5}}
arms:
  a:
    gpu: H200 SXM
    precision: bf16
    files: logs/a/c{level}_r{repeat}.json*
  b:
    gpu: H200 SXM
    precision: bf16
    files: logs/b/c{level}_r{repeat}.json*
comparisons:
  - {baseline: a, candidate: b}
"""


def written(folder: Path, old: str = "", new: str = "") -> Path:
    assert old in TEXT
    path = folder / "campaign.yaml"
    path.write_text(TEXT.replace(old, new), "utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        (
            "    precision: bf16\n    files: logs/a",
            "\tprecision: bf16\n    files: logs/a",
            7,
            "tabs",
        ),
        ("\narms:\n", "\narms\n", 5, "colon"),
        (
            "precision: bf16\n    files: logs/b",
            "precision: bf16: x\n    files: logs/b",
            11,
            "quotes",
        ),
        ("files: logs/a/c{level}_r{repeat}.json*", "files: [logs/a/c{level}.json]", 8, "quotes"),
    ],
)
def test_yaml_that_is_none_says_what_to_do(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    with pytest.raises(CampaignError) as raised:
        read_campaign(written(tmp_path, old, new))
    said = str(raised.value)
    assert f"campaign.yaml:{line}" in said
    assert words in said
    assert "found found" not in said
    assert "\n" not in said


def test_a_log_is_no_campaign(tmp_path: Path) -> None:
    path = tmp_path / "c4_r1.json"
    path.write_text(json.dumps({"date": "x", "ttfts": [1], "model_id": "m"}), "utf-8")
    with pytest.raises(CampaignError, match=r"'date', 'ttfts', 'model_id' and no `arms:`.*inspect"):
        read_campaign(path)
    with pytest.raises(CampaignError, match="unknown key 'arm', expected 'arms'"):
        read_campaign(written(tmp_path, "arms:", "arm:"))


def test_a_limit_without_its_statistic_is_shown_one(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match=r"slo.ttft_s: found 0.5, .*\{p95: 0.5\}"):
        read_campaign(written(tmp_path, "{p95: 0.5}", "0.5"))


def test_a_pattern_that_finds_nothing_says_what_is_there(tmp_path: Path) -> None:
    def said(old: str = "", new: str = "") -> str:
        _, missing = arm_inputs(read_campaign(written(tmp_path, old, new)), "a")
        return str(missing[0])

    assert "this folder holds: campaign.yaml" in said()
    (tmp_path / "logs" / "a").mkdir(parents=True)
    assert "logs/a/ is empty" in said()
    for n in (10, 9, 1, 2):
        (tmp_path / "logs" / "a" / f"vllm_c{n}.json").touch()
    # Numbers in order, as people count them.
    assert "logs/a/ holds: vllm_c1.json, vllm_c2.json, vllm_c9.json and 1 more" in said()
    assert "logs/ holds: a/" in said("logs/a/", "logs/aa/")
    folder = said("logs/a/c{level}_r{repeat}.json*", "logs/a")
    assert "files, not a folder (such as logs/a/*)" in folder


def test_what_holds_no_gpu_is_not_counted_in_gpus() -> None:
    starts = Path(__file__).resolve().parents[2] / "data" / "h200" / "starts"
    paths = [starts / "layers32-r1.server_requests.jsonl.gz", starts / "nvidia-smi-topo.txt"]
    said = inspection_text(inspect_paths(paths))
    assert "256 records" in said
    assert "GPUs" not in said


def test_a_terminal_says_why_nothing_was_compared() -> None:
    cell = {"metric": "tpot_s", "statistic": "p50", "ratio": None, "low": None, "high": None,
            "verdict": "not comparable", "p_adjusted": None,
            "cautions": [{"code": "x", "message": "c4.json is a run of both arms."}]}  # fmt: skip
    (line,) = verdict_lines({"comparison": "cards", "headline": [cell]})
    assert line.endswith("not comparable – (c4.json is a run of both arms)")
