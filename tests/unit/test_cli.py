"""The command line: exit codes, one line a mistake, JSON that parses strictly."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpuverdict import cli
from gpuverdict.errors import CampaignError

ROOT = Path(__file__).resolve().parents[2]
H200 = ROOT / "data" / "h200"
LOG = H200 / "card-a-bf16" / "guidellm-r1.json.gz"


def call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *args: object
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["gpuverdict", *map(str, args)])
    code = 0
    try:
        cli.main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    out = capsys.readouterr()
    return code, out.out, out.err


def strict(text: str) -> dict[str, object]:
    def refuse(name: str) -> float:
        raise AssertionError(f"{name} in JSON")

    value: dict[str, object] = json.loads(text, parse_constant=refuse)
    return value


def small_campaign(tmp_path: Path) -> Path:
    """The two arms of the sample at one level, one file each: quick to read."""
    for arm in ("layers32", "layers34"):
        for r in (1, 2):
            shutil.copy(H200 / "starts" / f"{arm}-r{r}.json.gz", tmp_path / f"{arm}-r{r}.json.gz")
    (tmp_path / "campaign.yaml").write_text(
        "campaign: small\nmodel: {name: m}\n"
        "workload: {input_tokens: 512, output_tokens: 128, load: closed}\narms:\n"
        "  a: {gpu: H200 SXM, gpus: 1, precision: bf16, server_starts: each,"
        " runs: 'layers32-r*.json.gz'}\n"
        "  b: {gpu: H200 SXM, gpus: 1, precision: bf16, server_starts: each,"
        " factors: {layers: 34}, runs: 'layers34-r*.json.gz'}\n"
        "comparisons: [{name: layers, baseline: a, candidate: b, treatment: [layers]}]\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    "verb", ["inspect", "ingest", "summarize", "report", "plan", "record", "new"]
)
def test_every_verb_has_help_with_an_example(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    code, out, _ = call(capsys, monkeypatch, verb, "--help")
    assert code == 0
    assert f"Example: gpuverdict {verb}" in out


def test_inspect_json_counts_rows_by_status(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = call(capsys, monkeypatch, "inspect", LOG, "--json")
    assert code == 0
    (file,) = strict(out)["files"]  # type: ignore[misc]
    assert file["dialect"] == "guidellm"
    assert file["tool_version"] == "0.8.1"
    # The README of the sample: 10 32 80 112 successful, 1 4 16 64 incomplete.
    assert [r["n_ok"] for r in file["runs"]] == [10, 32, 80, 112]
    assert [r["n_incomplete"] for r in file["runs"]] == [1, 4, 16, 64]


def test_inspect_of_a_trace_says_samples_gpus_and_span(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = H200 / "card-a-bf16" / "nvidia-smi-query.csv.gz"
    code, out, _ = call(capsys, monkeypatch, "inspect", path, "--json", "--time-zone", "UTC")
    assert code == 0
    (file,) = strict(out)["files"]  # type: ignore[misc]
    assert file["kind"] == "trace"


def test_summarize_json_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = call(capsys, monkeypatch, "summarize", LOG, "--json")
    assert code == 0
    rows = strict(out)["rows"]
    assert isinstance(rows, list)
    wanted = {
        "run_id",
        "arm",
        "level",
        "metric",
        "statistic",
        "value",
        "unit",
        "n",
        "window",
        "cautions",
    }
    assert wanted <= set(rows[0])
    assert {r["window"] for r in rows} == {"whole_run"}
    assert all(r["value"] is None or math.isfinite(r["value"]) for r in rows)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("inspect", "nowhere.json"), ["nowhere.json", "no such file"]),
        (("summarize", "nowhere.json"), ["nowhere.json"]),
        (("ingest", "nowhere"), ["nowhere", "campaign.yaml"]),
        (("report", "nowhere.yaml"), ["nowhere.yaml", "gpuverdict new"]),
        (("report", H200, "--lang", "fr"), ["--lang", "fr", "en or zh"]),
        (("report", H200, "--only", "eagre"), ["eagre", "eager"]),
        (("report", H200, "--jobs", "0"), ["jobs"]),
        (("plan", H200, "--effect", "-1"), ["effect"]),
        (("inspect",), ["PATHS"]),
        (("nonsense",), ["nonsense"]),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    args: tuple[object, ...], words: list[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    code, _, err = call(capsys, monkeypatch, *args)
    assert code == 2
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1
    for word in words:
        assert word.lower() in err.lower()


@pytest.mark.parametrize(
    "content", [b"", b"   \n", b'{"a": 1', b"<html><title>404</title>", b"\x00" * 9]
)
def test_unreadable_files_named_directly_exit_2(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    content: bytes,
) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    for verb in ("inspect", "summarize"):
        code, _, err = call(capsys, monkeypatch, verb, path)
        assert code == 2
        assert "odd.json" in err
        assert len(err.strip().splitlines()) == 1


def test_ingest_is_quick_the_second_time_and_lists_what_was_lost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    campaign = small_campaign(tmp_path)
    code, out, err = call(capsys, monkeypatch, "ingest", campaign)
    assert (code, err) == (0, "")
    # 272 + 258 + 256 + 256 requests, counted with zcat and json from the raw files' own lists
    assert out.startswith("4 runs, ")
    (tmp_path / "layers34-r2.json.gz").write_bytes(b"{")
    code, out, err = call(capsys, monkeypatch, "ingest", campaign)
    assert code == 1
    assert out.startswith("3 runs, ")
    assert "layers34-r2.json.gz" in err


def test_new_writes_a_campaign_that_validates_and_never_overwrites(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, out, _ = call(capsys, monkeypatch, "new", tmp_path / "mine")
    assert code == 0
    assert len(out.splitlines()) == 4
    from gpuverdict.campaign import PLACEHOLDER, read_campaign

    file = tmp_path / "mine" / "campaign.yaml"
    with pytest.raises(CampaignError, match=PLACEHOLDER):
        read_campaign(file)
    facts = {"gpu": "H200 SXM", "name": "m", "engine": "vllm", "precision": "bf16",
             "order": "ABBA"}  # fmt: skip
    told = re.sub(
        rf"(\w+): {PLACEHOLDER}", lambda m: f"{m[1]}: {facts.get(m[1], 1)}", file.read_text()
    )
    file.write_text(told, encoding="utf-8")
    assert set(read_campaign(file).arms) == {"baseline", "candidate"}
    code, _, err = call(capsys, monkeypatch, "new", tmp_path / "mine")
    assert code == 2
    assert "campaign.yaml" in err


def test_plan_prints_runs_and_an_abba_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    campaign = small_campaign(tmp_path)
    code, out, _ = call(capsys, monkeypatch, "plan", campaign, "--effect", "0.05", "--seed", "3")
    assert code == 0
    assert "runs per arm" in out
    again = call(capsys, monkeypatch, "plan", campaign, "--effect", "0.05", "--seed", "3")[1]
    assert out == again


def test_help_comes_without_the_heavy_libraries() -> None:
    code = (
        "import sys; sys.argv=['gpuverdict','--help']\n"
        "from gpuverdict import cli\n"
        "try:\n cli.main()\nexcept SystemExit: pass\n"
        "print(sorted(m for m in ('pandas','polars','scipy','matplotlib') if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "lib"
    )
    assert done.stdout.strip().endswith("[]")
