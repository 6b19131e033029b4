"""The messy campaign: everything a lab has lying about, and still answers."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.messy.build import CLIENTS, CUT, TABLE, build

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not CLIENTS.is_dir(), reason="the client logs are not here"),
]

# The share of cells that end in an answer. It may rise with the code, and never fall.
# All cells (88 % when this was written) and the cells of the primary metrics (94 %).
FLOOR, PRIMARY_FLOOR = 0.87, 0.93
PRIMARY = (("tpot_s", "p50"), ("ttft_s", "p50"), ("output_tokens_per_s", "value"))


@dataclass(frozen=True)
class Rendered:
    out: Path
    code: int
    stdout: str
    stderr: str

    def verdicts(self, folder: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.out / folder / "verdicts.json").read_text("utf-8"))
        return value

    def html(self, folder: str) -> str:
        return (self.out / folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def messy(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    place = tmp_path_factory.mktemp("messy")
    build(place / "campaign")
    command = (sys.executable, "-m", "gpuverdict.cli", "report", place / "campaign",
               "--out", place / "out", "--jobs", "2")  # fmt: skip
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "lib"), "PYTHONUTF8": "1"}, timeout=600,
    )  # fmt: skip
    return Rendered(place / "out", done.returncode, done.stdout, done.stderr)


def cell(verdicts: dict[str, Any], metric: str, statistic: str, level: int) -> dict[str, Any]:
    (found,) = [
        c for c in verdicts["cells"]
        if (c["metric"], c["statistic"], c["level"]) == (metric, statistic, {"concurrency": level})
    ]  # fmt: skip
    return found


def codes(of: dict[str, Any]) -> set[str]:
    return {c["code"] for c in of["cautions"]}


def test_it_renders_and_says_that_part_is_lost(messy: Rendered) -> None:
    assert messy.code == 1, messy.stderr
    assert "6 rendered" in messy.stdout
    assert "Traceback" not in messy.stderr
    assert not [p.name for p in messy.out.iterdir() if p.name.startswith(".")]


def test_lost_files_are_named_with_their_way_out(messy: Rendered) -> None:
    lost = [line for line in messy.stderr.splitlines() if line.startswith("lost: ")]
    (cut,) = [line for line in lost if CUT in line]
    assert "cut off at byte" in cut
    assert "copy the file again" in cut
    (table,) = [line for line in lost if TABLE in line]
    assert "encoding: gb18030" in table
    assert len(lost) == 2
    index = (messy.out / "index.html").read_text(encoding="utf-8")
    assert CUT in index
    assert TABLE in index


def test_a_4090_decodes_slower_and_starts_later_than_an_a100_pcie(messy: Rendered) -> None:
    verdicts = messy.verdicts("4090-vs-A100-PCIe")
    tpot = cell(verdicts, "tpot_s", "p50", 1)
    # Second route: medians over requests of (latency - ttft) / (n - 1), then means over the runs.
    assert tpot["ratio"] == pytest.approx(
        raw_tpot("rtx4090-24g") / raw_tpot("a100-pcie-80g"), rel=2e-3
    )
    assert 1.6 < tpot["ratio"] < 1.8
    assert tpot["verdict"] == "slower"
    ttft = cell(verdicts, "ttft_s", "p50", 1)
    assert ttft["verdict"] == "slower"
    assert ttft["ratio"] > 1.2
    assert "1.7" in messy.html("4090-vs-A100-PCIe")


def raw_tpot(profile: str) -> float:
    values = []
    for repeat in (1, 2, 3):
        (path,) = (CLIENTS / "vllm-bench-0.32.0" / f"{profile}_c1_r{repeat}").glob("vllm_*.json")
        log = json.loads(path.read_bytes())
        values.append(
            statistics.median(
                sum(gaps) / (n - 1) for gaps, n in zip(log["itls"], log["output_lens"], strict=True)
            )
        )
    return statistics.geometric_mean(values)


def test_disturbed_runs_are_named_with_what_to_do(messy: Rendered) -> None:
    verdicts = messy.verdicts("4090-vs-A100-PCIe")
    for level in (8, 16):
        found = cell(verdicts, "tpot_s", "p50", level)
        assert "disturbed" in found["modifiers"]
        (said,) = [c for c in found["cautions"] if c["code"] == "disturbed_run"]
        assert "A100 PCIe" in said["message"]
    html = messy.html("4090-vs-A100-PCIe")
    for level in (8, 16):
        assert f"Repeat A100 PCIe at level {level}, repeat 3: it was disturbed" in html
    # In the decision table too: two stalled repeats are all that keeps this arm at 4 streams.
    index = (messy.out / "index.html").read_text(encoding="utf-8")
    assert index.count("32 streams without its disturbed runs") == 1


def test_two_tools_on_one_card_differ_no_more_than_tools_do(messy: Rendered) -> None:
    verdicts = messy.verdicts("tools")
    words = {c["verdict"] for c in verdicts["cells"]}
    assert not words & {"faster", "slower", "better", "worse"}
    assert "client_differs" in {r["code"] for r in verdicts["comparability"]["reasons"]}
    at_one = cell(verdicts, "tpot_s", "p50", 1)
    assert at_one["ratio"] == pytest.approx(1.0, abs=0.02)
    assert "confounded: client" in at_one["modifiers"]


def test_sglang_against_vllm_is_about_systems(messy: Rendered) -> None:
    verdicts = messy.verdicts("SXM-vs-PCIe")
    assert verdicts["scope"] == "systems"
    assert all("confounded: engine" in c["modifiers"] for c in verdicts["cells"])
    assert messy.verdicts("H20-vs-A100-SXM")["scope"] == "cards"


@pytest.mark.parametrize("folder", ["pair-vs-A100-PCIe", "pair-vs-one-4090"])
def test_at_64_the_pair_does_not_run_and_the_others_were_not_measured(
    messy: Rendered, folder: str
) -> None:
    for metric, statistic in PRIMARY:
        found = cell(messy.verdicts(folder), metric, statistic, 64)
        assert found["verdict"] == "not comparable"
        assert found["rung"] >= 6
        said = {c["code"]: c["message"] for c in found["cautions"]}
        assert "双卡4090" in said["infeasible"]
        other = {"pair-vs-A100-PCIe": "A100 PCIe", "pair-vs-one-4090": "4090"}[folder]
        assert f"was not measured on {other}." in said["not_measured_level"]
        assert found["baseline"] is None
        assert found["candidate"] is None


def test_there_are_at_most_five_next_actions(messy: Rendered) -> None:
    for folder in ("4090-vs-A100-PCIe", "pair-vs-A100-PCIe", "H20-vs-A100-SXM"):
        html = messy.html(folder)
        (section,) = re.findall(r"<ol class=.actions.>(.*?)</ol>", html, re.S)
        assert 1 <= section.count("<li") <= 5


def test_every_page_says_that_it_is_mock_data(messy: Rendered) -> None:
    for page in messy.out.rglob("*.html"):
        assert "mock" in page.read_text(encoding="utf-8"), page


def is_answer(of: dict[str, Any]) -> bool:
    """A word, an order, or `only X ran`: what a reader can act on."""
    if of["verdict"] in ("faster", "slower", "better", "worse", "equivalent"):
        return True
    if of["rung"] == 6:
        return True
    # Undecided is an answer where it says how many more runs would decide, or in which order.
    return of["rung"] <= 5 and of["ratio"] is not None and of["verdict"] == "inconclusive"


def test_the_share_of_cells_with_an_answer_does_not_fall(messy: Rendered) -> None:
    rows = []
    for page in sorted(messy.out.glob("*/verdicts.json")):
        cells = json.loads(page.read_text("utf-8"))["cells"]
        primary = [c for c in cells if (c["metric"], c["statistic"]) in PRIMARY]
        rows.append((page.parent.name, len(cells), sum(map(is_answer, cells)),
                     len(primary), sum(map(is_answer, primary))))  # fmt: skip
    for name, n, answered, n_primary, answered_primary in rows:
        print(f"{name}: {answered}/{n} cells, {answered_primary}/{n_primary} primary")
    share = sum(r[2] for r in rows) / sum(r[1] for r in rows)
    primary_share = sum(r[4] for r in rows) / sum(r[3] for r in rows)
    print(f"share of cells that end in an answer: {share:.3f} (floor {FLOOR}), "
          f"primary {primary_share:.3f} (floor {PRIMARY_FLOOR})")  # fmt: skip
    assert share >= FLOOR
    assert primary_share >= PRIMARY_FLOOR


def test_the_way_out_of_the_lost_files_is_a_way_out(tmp_path: Path) -> None:
    from gpuverdict.campaign import read_campaign
    from gpuverdict.measured import measure

    path = build(tmp_path)
    text = path.read_text(encoding="utf-8")
    pattern = '"h20/c{level}_r{repeat}.jsonl*", h20/runs.csv'
    assert pattern in text
    path.write_text(
        text.replace(f"    files: [{pattern}]", '    files: "h20/c{level}_r{repeat}.jsonl*"\n'
        "    runs:\n      files: [h20/runs.csv]\n      encoding: gb18030\n      columns:\n"
        "        运行: {to: run_id}\n        并发数: {to: concurrency}\n"
        "        首token时延(ms): {to: ttft_s.mean, unit: ms}\n"
        "        每token时延(ms): {to: tpot_s.mean, unit: ms}\n"
        "        吞吐(tok/s): {to: output_tokens_per_s.value, unit: tok/s}"),
        encoding="utf-8",
    )  # fmt: skip
    measured = measure(read_campaign(path))
    assert [item.path for item in measured.lost] == [CUT]
    table = [r for r in measured.runs_of("H20") if r.path == TABLE]
    assert [r.level for r in table] == [{"concurrency": 64}] * 2
    assert [r.stored.info["reported"]["ttft_s.mean"] for r in table] == [0.8124, 0.798]
