"""Traces that are wrong, through `gpuverdict report`: a caution in its place, never a wrong join.

One campaign: the arm `a` has a good trace, and is compared with one arm a fault. Its own numbers
must not move.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.timed import Gpu, smi_text, write_timed

HOT = Gpu(power_w=lambda t: 500.0, memory_mib=lambda t: 90_000.0)
OTHER = "GPU-99999999-0000-4000-8000-000000000000"
IDLE = Gpu(index=1, uuid=OTHER, power_w=lambda t: 70.0, memory_mib=lambda t: 500.0)
ARMS = ("good", "half", "host", "clock", "two", "none")


@dataclass(frozen=True)
class Rendered:
    """What `report` wrote for a comparison: the machine's file and the words of the page."""

    arm: str
    verdicts: dict[str, Any]
    text: str

    def energy(self, arm: str | None = None) -> dict[str, Any]:
        held: dict[str, Any] = self.verdicts["energy"][arm or self.arm]
        return held

    def known(self, metric: str = "power_w", arm: str | None = None) -> list[Any]:
        """Mean and number of runs that have it, by level."""
        rows = self.energy(arm)["levels"]
        return [(x["mean"], x["n"]) for x in rows if x["metric"] == metric]

    @property
    def missing(self) -> set[str]:
        """Why runs have no power or energy."""
        return {code for x in self.energy()["levels"] for code in x["missing"]}


def spoil(folder: Path, arm: str) -> dict[str, Any]:
    """Spoil the trace in an arm's folder; return what changes in the campaign file."""
    trace = folder / "trace.csv"
    lines = trace.read_text().splitlines()
    half = len(lines) // 2
    if arm == "half":
        trace.write_text("\n".join(lines[:half]) + "\n")
    elif arm == "clock":
        late = [line.replace(" 12:", " 11:", 1) for line in lines[half:]]
        trace.write_text("\n".join(lines[:half] + late) + "\n")
    elif arm == "two":
        trace.write_text(smi_text((HOT, IDLE), 5.0, 0.1 * len(lines) + 5.0))
    elif arm == "host":
        (folder / "list.txt").write_text(f"GPU 0: NVIDIA H200 (UUID: {OTHER})\n")
        return {"inventory": [f"{arm}/list.txt"]}
    elif arm == "none":
        return {"traces": []}
    return {}


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Rendered]:
    folder = tmp_path_factory.mktemp("faults")
    campaign = write_timed(folder, repeats=3, levels=(1, 8), n=100, gpus={"b": (HOT,)})
    content = json.loads(campaign.read_text())
    pattern = json.dumps(content["arms"].pop("b"))
    for arm in ARMS:
        shutil.copytree(folder / "b", folder / arm)
        entry = json.loads(pattern.replace("b/", f"{arm}/"))
        content["arms"][arm] = entry | spoil(folder / arm, arm)
    content["comparisons"] = [{"name": x, "baseline": "a", "candidate": x} for x in ARMS]
    campaign.write_text(json.dumps(content))
    command = [sys.executable, "-m", "gpuverdict.cli", "report", str(campaign), "--out",
               str(folder / "out")]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=600)

    def of(arm: str) -> Rendered:
        place = folder / "out" / arm
        page = (place / "report.html").read_text("utf-8")
        page = re.sub(r"<(svg|style|script)\b.*?</\1>", "", page, flags=re.S)
        words = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))
        found = Rendered(arm, json.loads((place / "verdicts.json").read_text("utf-8")), words)
        for mean, n in found.known(arm="a"):
            assert (mean, n) == (pytest.approx(300, abs=1), 3)
        return found

    return of


def codes(entries: list[dict[str, Any]]) -> set[str]:
    return {entry["code"] for entry in entries}


def peaks(found: Rendered) -> list[float | None]:
    return [mark["peak_mib"]["value"] for mark in found.energy()["memory"]["marks"]]


def node_peak(found: Rendered) -> float | None:
    value: float | None = found.energy()["cards"]["main"]["node_peak_w"]["value"]
    return value


def test_a_good_trace_gives_every_number(rendered: Callable[[str], Rendered]) -> None:
    found = rendered("good")
    assert [n for _, n in found.known()] == [3, 3]
    assert found.energy()["trace_cautions"] == []
    assert (node_peak(found), peaks(found)) == (pytest.approx(500), [90_000])
    assert "could not be used" not in found.text
    assert "not wholly covered" not in found.text


def test_a_trace_that_stops_halfway(rendered: Callable[[str], Rendered]) -> None:
    found = rendered("half")
    for metric in ("power_w", "energy_j", "energy_per_output_token_j"):
        assert all(0 < n < 3 for _, n in found.known(metric))
    assert all(mean == pytest.approx(500, abs=1) for mean, _ in found.known())
    assert "no_overlap" in found.missing
    assert codes(found.energy()["trace_cautions"]) == {"trace_coverage"}
    assert re.search(r"half: [345] of 6 runs are not wholly covered by a trace", found.text)


def test_a_trace_of_another_host(rendered: Callable[[str], Rendered]) -> None:
    found = rendered("host")
    assert found.known() == [(None, 0), (None, 0)]
    assert (node_peak(found), peaks(found)) == (None, [None])
    assert "trace_of_other_gpu" in found.missing
    assert "identity_other_host" in codes(found.verdicts["comparability"]["reasons"])
    assert "500 W" not in found.text, "what another host drew stands nowhere"


def test_a_clock_that_steps_back(rendered: Callable[[str], Rendered]) -> None:
    found = rendered("clock")
    assert all(n < 3 for _, n in found.known())
    assert {"clock_step", "trace_coverage"} <= codes(found.energy()["trace_cautions"])
    assert "The clock of trace.csv was set" in found.text


def test_two_gpus_with_one_used(rendered: Callable[[str], Rendered]) -> None:
    found = rendered("two")
    assert found.known() == [(None, 0), (None, 0)]
    assert found.energy()["idle_w"] is None
    assert (node_peak(found), peaks(found)) == (None, [None])
    assert "gpu_count" in codes(found.energy()["cards"]["main"]["cautions"])
    assert "The trace holds 2 GPUs, 1 are declared" in found.text
    assert "The GPU trace of two could not be used (gpu_count)" in found.text
    assert not re.search(r"\b(500|570) W\b", found.text), "no sum of both cards, nor one of them"


def test_no_trace_at_all(rendered: Callable[[str], Rendered]) -> None:
    found = rendered("none")
    assert found.known() == [(None, 0), (None, 0)]
    assert "No GPU trace was recorded for arm none" in found.text
    assert "none: no GPU trace lies beside its runs. Run gpuverdict record --out" in found.text
