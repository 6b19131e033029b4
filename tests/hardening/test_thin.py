"""Campaigns with next to nothing in them still end in a page, or in one line that says why not."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.campaigns import arm, closed_loop, vllm_result, write_arm, write_campaign
from tests.hardening.render import render

from gpuverdict.case import open_case
from gpuverdict.errors import GpuverdictError

WORDS = {"faster", "slower", "equivalent", "better", "worse"}


def page_of(folder: Path, **keys: object) -> tuple[str, dict[str, object]]:
    path = write_campaign(folder, {"a": arm("a"), "b": arm("b")}, slo={"tpot_s": {"p50": 0.02}},
                          **keys)  # fmt: skip
    page, _ = render(path, "ab", folder / "out")
    verdicts: dict[str, object] = json.loads((folder / "out" / "verdicts.json").read_text("utf-8"))
    return page, verdicts


def words(verdicts: dict[str, object]) -> set[str]:
    return {c["verdict"] for c in verdicts["cells"]}  # type: ignore[index,union-attr]


def test_every_request_of_one_arm_failed(tmp_path: Path) -> None:
    write_arm(tmp_path, "a")
    write_arm(tmp_path, "b")
    for log in (tmp_path / "b").iterdir():
        result = vllm_result(closed_loop(n=80), streams=4)
        n = len(result["errors"])
        result |= {"errors": ["HTTP 500"] * n, "ttfts": [0.0] * n, "itls": [[]] * n,
                   "output_lens": [0] * n, "latencies": [0.0] * n, "completed": 0, "failed": n,
                   "total_output_tokens": 0, "total_input_tokens": 0}  # fmt: skip
        log.write_text(json.dumps(result | {"duration": 3.0 + sum(map(ord, log.name)) % 7}))
    page, verdicts = page_of(tmp_path)
    speeds = [c for c in verdicts["cells"] if c["metric"] in ("tpot_s", "ttft_s")]  # type: ignore[index,union-attr]
    assert not {c["verdict"] for c in speeds} & WORDS
    assert all(c["candidate"] is None for c in speeds)
    assert "<h" in page


def test_one_run_of_one_request_at_one_level(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", repeats=1, levels=(1,), n=1)
    write_arm(tmp_path, "b", repeats=1, levels=(1,), n=1, effect=0.5)
    page, verdicts = page_of(tmp_path)
    assert not words(verdicts) & WORDS
    tpot = [c for c in verdicts["cells"] if c["metric"] == "tpot_s"]  # type: ignore[index,union-attr]
    assert all(c["p_value"] is None for c in tpot)
    assert "<h" in page


def test_no_arm_has_a_level_of_the_other(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", levels=(1,))
    write_arm(tmp_path, "b", levels=(8,))
    page, verdicts = page_of(tmp_path)
    assert not words(verdicts) & WORDS
    assert {c["rung"] for c in verdicts["cells"]} <= {6, 7, 8}  # type: ignore[index,union-attr]
    assert "<h" in page


def test_an_empty_arm(tmp_path: Path) -> None:
    write_arm(tmp_path, "a")
    page, verdicts = page_of(tmp_path)
    assert not words(verdicts) & WORDS
    assert "b/c{level}_r{repeat}.json" in page


@pytest.mark.parametrize("broken", ["missing", "unreadable", "empty", "cut"])
def test_one_bad_file_costs_its_run(tmp_path: Path, broken: str) -> None:
    write_arm(tmp_path, "a")
    write_arm(tmp_path, "b")
    log = tmp_path / "b" / "c4_r2.json"
    text = log.read_text()
    log.unlink()
    if broken == "unreadable":
        log.mkdir()
    elif broken == "empty":
        log.write_text("")
    elif broken == "cut":
        log.write_text(text[: len(text) // 2])
    entry = arm("b", files=[f"b/c4_r{r}.json" for r in (1, 2, 3)])
    case = open_case(write_campaign(tmp_path, {"a": arm("a"), "b": entry}), "ab")
    (lost,) = case.measured.lost
    assert "c4_r2.json" in lost.error
    assert "expected" in lost.error
    assert len(case.measured.runs_of("b")) == 2


def test_a_trace_of_another_day_is_a_caution_and_energy_unknown(tmp_path: Path) -> None:
    write_arm(tmp_path, "a", keep={"date": "20260301-120000"})
    write_arm(tmp_path, "b", keep={"date": "20260301-120000"})
    began = datetime(2026, 2, 14, 9, 0, 0)
    lines = ["timestamp, index, uuid, name, power.draw [W], utilization.gpu [%]"]
    lines += [
        f"{(began + timedelta(seconds=i)).strftime('%Y/%m/%d %H:%M:%S.000')}, 0, GPU-1, "
        f"NVIDIA H200, {200 + i % 7}.00 W, 90 %"
        for i in range(60)
    ]
    (tmp_path / "trace.csv").write_text("\n".join(lines) + "\n")
    arms = {n: arm(n, traces=["trace.csv"]) for n in ("a", "b")}
    path = write_campaign(tmp_path, arms, time_zone="UTC")
    page, case = render(path, "ab", tmp_path / "out")
    assert case.measured.lost == ()
    energy = [c for c in case.verdict.cells if c.key.metric.startswith("energy")]
    assert all(c.comparison.baseline is None for c in energy)
    codes = {c.code for f in case.summary.facts.values() for c in f.cautions}
    codes |= {c for cs in case.summary.frame.cautions for c in cs}
    assert codes & {"trace_no_overlap", "no_overlap", "trace_elsewhere", "clock_unknown",
                    "zone_unknown", "power_not_measured"}, codes  # fmt: skip
    assert "<h" in page


def test_archives_that_expand_or_climb_are_refused(tmp_path: Path) -> None:
    import gzip
    import io
    import tarfile
    import zipfile

    from gpuverdict.recognise import read_run

    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(gzip.compress(b" " * 400_000_000, 1), 1))
    with pytest.raises(GpuverdictError, match="bomb"):
        read_run(bomb)
    outside = tmp_path.parent / "escaped.json"
    with zipfile.ZipFile(tmp_path / "up.zip", "w") as archive:
        archive.writestr("../escaped.json", "{}")
    with tarfile.open(tmp_path / "up.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("../escaped.json")
        member.size = 2
        tar.addfile(member, io.BytesIO(b"{}"))
    for name in ("up.zip", "up.tar.gz"):
        with pytest.raises(GpuverdictError):
            read_run(tmp_path / name)
        assert not outside.exists()
