"""Batches: what fails costs itself alone, what is done stays done, nothing is left lying about."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from tests.batch.campaigns import ROOT, many, run, start

from gpuverdict import report
from gpuverdict.report import NotebookError, render_campaign, run_notebook
from gpuverdict.report import comparison as one
from gpuverdict.report.folders import (
    clear_remains,
    folder_name,
    folder_names,
    lock_key,
    locked,
    swap,
    work_folder,
)
from gpuverdict.report.notebooks import Kernels

CASES = ROOT.parent / "shared" / "cases"


def hidden(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name.startswith("."))


def quick_notebooks(monkeypatch: pytest.MonkeyPatch, *failing: str) -> list[str]:
    """Replace the notebook by what it leaves behind: these tests are about the runner."""
    calls: list[str] = []

    def fake(notebook: Path, output: Path, given: dict[str, str], kernels: Kernels) -> Path:
        calls.append(given["comparison"])
        nb = nbformat.v4.new_notebook()
        nbformat.write(nb, output)
        if given["comparison"] in failing:
            raise NotebookError(output, found="an error in cell 3 (ValueError: no)")
        out = Path(given["out"])
        headline = {"metric": "tpot_s", "statistic": "p50", "verdict": "slower",
                    "workload": "main", "ratio": 1.2, "low": 1.1, "high": 1.3,
                    "p_adjusted": 0.01, "cautions": []}  # fmt: skip
        verdicts = {"comparison": given["comparison"], "baseline": "a", "candidate": "b",
                    "headline": [headline], "health": []}  # fmt: skip
        (out / "verdicts.json").write_text(json.dumps(verdicts))
        for name in ("tables.xlsx", "summary.parquet"):
            (out / name).write_bytes(b"")
        return Path(output)

    monkeypatch.setattr(one, "run_notebook", fake)
    return calls


def test_a_failure_costs_itself_alone_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = many(tmp_path, 4)
    calls = quick_notebooks(monkeypatch, "pair 01")
    out = tmp_path / "out"
    done = render_campaign(path, out=out, jobs=2)
    assert [c.state for c in done.comparisons] == ["rendered", "failed", "rendered", "rendered"]
    assert done.exit_code == 1
    assert sorted(p.name for p in (out / "pair-01").iterdir()) == ["error.txt", "report.ipynb"]
    assert "cell 3" in (out / "pair-01" / "error.txt").read_text()
    assert str(out / "pair-01" / "report.ipynb") in str(done.comparisons[1].error)
    assert "cell 3" in (out / "index.html").read_text(encoding="utf-8")
    assert hidden(out) == []

    calls.clear()
    again = render_campaign(path, out=out)
    assert calls == ["pair 01"]
    assert [c.state for c in again.comparisons] == ["unchanged", "failed", "unchanged", "unchanged"]

    quick_notebooks(monkeypatch)
    assert render_campaign(path, out=out, only="pair 01").exit_code == 0
    index = (out / "index.html").read_text(encoding="utf-8")
    assert "cell 3" not in index
    assert "pair 03" in index


def test_exit_code_2_when_every_comparison_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = many(tmp_path, 2)
    quick_notebooks(monkeypatch, "pair 00", "pair 01")
    assert render_campaign(path, out=tmp_path / "out").exit_code == 2


def test_a_fault_of_ours_costs_one_comparison_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = many(tmp_path, 2)
    quick_notebooks(monkeypatch)
    real = one.verdict_lines

    def full(verdicts: dict[str, str]) -> list[str]:
        if verdicts["comparison"] == "pair 00":
            raise OSError(28, "No space left on device")
        return real(verdicts)

    monkeypatch.setattr(one, "verdict_lines", full)
    done = render_campaign(path, out=tmp_path / "out")
    assert [c.state for c in done.comparisons] == ["failed", "rendered"]
    assert "No space left" in str(done.comparisons[0].error)


def test_changed_bytes_are_rendered_again_and_a_new_date_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = many(tmp_path, 1)
    calls = quick_notebooks(monkeypatch)
    out = tmp_path / "out"
    render_campaign(path, out=out)
    log = tmp_path / "a" / "c4_r1.json"
    os.utime(log, (1, 1))
    assert render_campaign(path, out=out).comparisons[0].state == "unchanged"
    log.write_text(log.read_text() + "\n")
    assert render_campaign(path, out=out).comparisons[0].state == "rendered"
    assert render_campaign(path, out=out, lang="zh").comparisons[0].state == "rendered"
    (out / "pair-00" / "tables.xlsx").unlink()
    assert render_campaign(path, out=out, lang="zh").comparisons[0].state == "rendered"
    assert len(calls) == 4


def test_a_second_invocation_takes_what_the_first_one_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = many(tmp_path, 4)
    calls = quick_notebooks(monkeypatch)
    real = one.run_notebook

    def slow(*given: object) -> Path:
        time.sleep(0.3)
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(one, "run_notebook", slow)
    out = tmp_path / "out"
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: render_campaign(path, out=out), range(2)))
    assert sorted(calls) == [f"pair {i:02d}" for i in range(4)]
    pairs = zip(*(r.comparisons for r in both), strict=True)
    states = [sorted(c.state for c in pair) for pair in pairs]
    assert states == [["rendered", "unchanged"]] * 4
    assert hidden(out) == []


def test_what_a_killed_invocation_left_is_swept_and_what_is_alive_is_not(tmp_path: Path) -> None:
    dead, alive = lock_key("dead"), lock_key("alive")
    for key in (dead, alive):
        (tmp_path / ".rendering" / f"{key}-1").mkdir(parents=True)
        (tmp_path / ".rendering" / f"{key}-1" / "report.ipynb").write_text("{}")
    with locked(tmp_path, alive):
        clear_remains(tmp_path)
        assert (tmp_path / ".rendering" / f"{alive}-1").is_dir()
        assert not (tmp_path / ".rendering" / f"{dead}-1").exists()
    clear_remains(tmp_path)
    assert hidden(tmp_path) == []


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    place = tmp_path / "pair"
    place.mkdir()
    (place / "old.txt").write_text("old")
    with locked(tmp_path, lock_key("pair")), work_folder(tmp_path, "pair") as work:
        (work / "new.txt").write_text("new")
        swap(work, place)
    assert [p.name for p in place.iterdir()] == ["new.txt"]
    assert hidden(tmp_path) == []


def test_no_two_comparisons_share_a_folder(tmp_path: Path) -> None:
    from gpuverdict.campaign import read_campaign

    path = many(tmp_path, 1)
    content = json.loads(path.read_text())
    names = ["a b", "a-b", "a×b", "index.html", "双" * 80, "双" * 79 + "卡"]
    content["comparisons"] = [{"name": n, "baseline": "a", "candidate": "b"} for n in names]
    path.write_text(json.dumps(content))
    folders = folder_names(read_campaign(path))
    assert list(folders) == names
    assert len({f.casefold() for f in folders.values()}) == len(names)
    assert "index.html" not in folders.values()
    assert all(len(f.encode()) < 200 for f in folders.values())
    assert folder_name("..") == "comparison"


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
def test_case_55_kernels_at_once_do_not_clash(tmp_path: Path) -> None:
    case = next(CASES.glob("55-*"))
    right = json.loads((case / "expected.json").read_text())["right"]
    rows = list(csv.DictReader((case / "batch.csv").open()))
    nb = nbformat.v4.new_notebook()
    nb.cells = [
        nbformat.v4.new_code_cell('a: str = ""\nb: str = ""', metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(
            "import json\nfor path in (a, b):\n    run = json.load(open(path))\n"
            "    print(sum(run['ttfts']) / 4, sum(run['output_lens']) / run['duration'])"
        ),
    ]
    nbformat.write(nb, tmp_path / "pair.ipynb")

    def render(row: dict[str, str]) -> str | None:
        given = {"a": str(case / row["run_a"]), "b": str(case / row["run_b"])}
        try:
            out = run_notebook(tmp_path / "pair.ipynb", tmp_path / f"{row['row']}.ipynb", given)
        except NotebookError as problem:
            return str(problem)
        text = str(nbformat.read(out, as_version=4))
        # 4 x 0.2 / 4 s and 20 tokens in 1 s; 0.3 s and 20 tokens in 1.5 s.
        assert "0.2 20.0" in text
        assert "0.3 13.333" in text
        return None

    with ThreadPoolExecutor(6) as pool:
        problems = list(pool.map(render, rows))
    assert len(problems) == right["n_rows"]
    assert sum(p is None for p in problems) == right["n_rendered"]
    (failed,) = [p for p in problems if p is not None]
    assert "FileNotFoundError" in failed
    # The way there from a report's exit code: some failed, not all.
    states = ["failed" if p else "rendered" for p in problems]
    done = report.CampaignReport(
        index=tmp_path, lost=(),
        comparisons=tuple(report.ComparisonReport(name="", folder="", state=s) for s in states),
    )  # fmt: skip
    assert done.exit_code == 1


def verdict_cells(path: Path) -> object:
    verdicts = json.loads(path.read_text(encoding="utf-8"))
    return {key: verdicts[key] for key in ("cells", "headline", "comparability", "scope")}


def test_papermill_shuffled_lists_and_a_signal(tmp_path: Path) -> None:
    """One real batch through the command line, stopped, finished, shuffled, and by papermill."""
    path = many(tmp_path / "campaign", 2)
    out = tmp_path / "out"

    child = start("report", path, "--out", out, "--jobs", 1)
    deadline = time.monotonic() + 300
    while not (out / "pair-00" / "state.json").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(1.0)
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=120)
    assert child.returncode == 130, err
    assert "Traceback" not in err
    assert hidden(out) == []
    assert not (out / "pair-01").exists()

    code, text, err = run("report", path, "--out", out, "--jobs", 2)
    assert code == 0, err
    assert "1 rendered, 1 unchanged" in text
    assert [line.split()[2] for line in text.splitlines() if line.startswith("pair 0")
            and "report.html" in line] == ["unchanged", "rendered"]  # fmt: skip

    # The same files in other orders, under another folder: the same bytes.
    shuffled = many(tmp_path / "shuffled", 2)
    content = json.loads(shuffled.read_text())
    for name in ("a", "b"):
        files = [f"{name}/c4_r{r}.json" for r in (1, 2, 3)]
        random.Random(name).shuffle(files)
        content["arms"][name]["files"] = [*files[1:], files[0]]
    orders = []
    for turn in (0, 1):
        for entry in content["arms"].values():
            entry["files"].reverse()
        shuffled.write_text(json.dumps(content))
        place = tmp_path / f"shuffled-{turn}"
        assert run("report", shuffled, "--out", place, "--only", "pair 00")[0] == 0
        verdicts = json.loads((place / "pair-00" / "verdicts.json").read_text())
        # The campaign file itself is an input, and its bytes did change.
        verdicts["provenance"]["inputs"] = [
            i for i in verdicts["provenance"]["inputs"] if i["path"] != "campaign.yaml"
        ]
        orders.append(json.dumps(verdicts, sort_keys=True))
    assert orders[0] == orders[1]

    import subprocess

    subprocess.run(
        [sys.executable, "-m", "papermill", str(ROOT / "notebooks" / "report.ipynb"),
         str(tmp_path / "plain.ipynb"), "-p", "campaign", str(path), "-p", "comparison", "pair 00",
         "-p", "out", str(tmp_path / "plain")],
        check=True, capture_output=True, timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT / "lib")},
    )  # fmt: skip
    ours = out / "pair-00" / "verdicts.json"
    assert verdict_cells(tmp_path / "plain" / "verdicts.json") == verdict_cells(ours)


@pytest.mark.nightly
def test_forty_comparisons_survive_being_killed_halfway(tmp_path: Path) -> None:
    path = many(tmp_path / "campaign", 40)
    out = tmp_path / "out"
    child = start("report", path, "--out", out, "--jobs", 2)
    while len(list(out.glob("*/state.json"))) < 20:
        assert child.poll() is None
        time.sleep(0.5)
    child.kill()
    child.communicate()
    before = len(list(out.glob("*/state.json")))
    code, text, err = run("report", path, "--out", out, "--jobs", 2, timeout=3600)
    assert code == 0, err
    assert f"{40 - before} rendered, {before} unchanged" in text
    assert len(list(out.glob("*/report.html"))) == 40
    assert hidden(out) == []
