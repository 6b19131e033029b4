"""From `gpuverdict new` to a report, as a new user would: only lines marked (edit) are touched."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.batch.campaigns import ROOT, run

from gpuverdict.campaign import read_campaign
from gpuverdict.errors import CampaignError

CLIENTS = ROOT.parent / "shared" / "data" / "clients"
needs_clients = pytest.mark.skipif(not CLIENTS.is_dir(), reason="the client logs are not here")

# What the tester of these (mock) logs knows and no log says.
FACTS = {
    "campaign": "first-try",
    "title": "A first try (mock data)",
    "name": "mock-7b",
    "input_tokens": "256",
    "output_tokens": "64",
    "parameters": "7e9",
    "weight_bits": "16",
    "engine": "vllm",
    "engine_version": None,
    "precision": "bf16",
    "runs_per_arm": "3",
    "order": "AABB",
}


def fill_in(text: str, gpus: list[str]) -> str:
    """Change lines that are marked, and no others."""
    lines = []
    for line in text.splitlines():
        found = re.match(r"(\s*)(\w+): .*#.*\(edit\)|(\s*)(\w+): .*# \(edit\)", line)
        if found is None:
            lines.append(line)
            continue
        indent, key = found.group(1) or found.group(3) or "", found.group(2) or found.group(4)
        value = gpus.pop(0) if key == "gpu" else FACTS.get(key, "")
        if value:
            lines.append(f"{indent}{key}: {value}")
        elif value is not None:
            lines.append(line)
    return "\n".join(lines) + "\n"


@needs_clients
def test_a_first_report(tmp_path: Path) -> None:
    place = tmp_path / "mine"
    code, text, err = run("new", place)
    assert code == 0, err
    assert "campaign.yaml" in text
    for profile, folder in (("a100-pcie-80g", "baseline"), ("rtx4090-24g", "candidate")):
        for repeat in (1, 2, 3):
            case = CLIENTS / "vllm-bench-0.32.0" / f"{profile}_c1_r{repeat}"
            (log,) = case.glob("vllm_*.json")
            shutil.copy(log, place / "logs" / folder / f"c1_r{repeat}.json")
    path = place / "campaign.yaml"
    path.write_text(fill_in(path.read_text("utf-8"), ["A100 80GB PCIe", "RTX 4090 24GB"]), "utf-8")
    assert path.read_text("utf-8").count("RTX 4090 24GB") == 1
    code, text, err = run("report", ".", cwd=place)
    assert code == 0, err
    assert "cards: TPOT p50: slower 1.7" in text
    assert (place / "reports" / "first-try" / "cards" / "report.html").is_file()
    verdicts = json.loads((place / "reports/first-try/cards/verdicts.json").read_text("utf-8"))
    assert "unchecked" in {r["code"] for r in verdicts["comparability"]["reasons"]}


def test_the_template_says_which_lines_to_edit(tmp_path: Path) -> None:
    """Every fact that a log cannot say is marked, in both arms."""
    from gpuverdict.scaffold import new_campaign

    text = new_campaign(tmp_path / "mine")[0].read_text("utf-8")
    marked = re.findall(r"^\s*(\w+):.*\(edit\)", text, re.M)
    for key in ("gpu", "engine", "precision"):
        assert marked.count(key) == 2, key
    assert {"campaign", "name", "input_tokens", "output_tokens", "runs_per_arm"} <= set(marked)
    # Nothing is presumed of anybody's machines: each fact is asked for, one line at a time.
    asked = []
    path = tmp_path / "mine" / "campaign.yaml"
    while ": FILL-IN" in text:
        with pytest.raises(CampaignError, match="the placeholder FILL-IN") as refused:
            read_campaign(path)
        key = str(refused.value).partition(":")[2].partition(":")[0].strip().rpartition(".")[2]
        asked.append(key)
        given = {"gpu": "H200 SXM", **FACTS}[key] or "1"
        text = re.sub(rf"(\b{key}: )FILL-IN", rf"\g<1>{given}", text, count=1)
        path.write_text(text, "utf-8")
    assert asked.count("gpu") == asked.count("precision") == 2
    assert {"parameters", "weight_bits", "input_tokens", "engine", "order"} <= set(asked)
    read_campaign(path)
