"""What `inspect` says of files and folders, and the campaign it drafts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cases.log_numbers import vllm_result

from gpuverdict.errors import LogFormatError
from gpuverdict.inspection import inspect_paths, inspection_text

H200 = Path(__file__).resolve().parents[2] / "data" / "h200"
RUN_KEYS = {"run_id", "n_rows", "n_ok", "n_error", "n_cancelled", "n_incomplete", "n_empty",
            "level", "definitions", "cautions"}  # fmt: skip


def result(**changes: Any) -> str:
    record = vllm_result(ttfts=[0.1, 0.1], output_lens=[2, 2], itls=[[0.1], [0.1]])
    return json.dumps({**record, **changes})


def test_a_sweep_and_its_traces() -> None:
    found = inspect_paths([H200 / "card-a-bf16"])
    json.dumps(found, allow_nan=False)
    rows = {Path(row["path"]).name: row for row in found["files"]}
    sweep = rows["guidellm-r1.json.gz"]
    assert (sweep["dialect"], sweep["tool_version"]) == ("guidellm", "0.8.1")
    assert [run["level"] for run in sweep["runs"]] == [{"concurrency": n} for n in (1, 4, 16, 64)]
    assert [(run["n_ok"], run["n_incomplete"]) for run in sweep["runs"]] == [
        (10, 1), (32, 4), (80, 16), (112, 64)
    ]  # fmt: skip
    for run in sweep["runs"]:
        assert set(run) >= RUN_KEYS
        assert run["definitions"]["ttft_def"] == "first_content_or_reasoning"
        assert {"code", "message", "remedy"} == set(run["cautions"][0])
    trace = rows["nvidia-smi-query.csv.gz"]
    assert (trace["kind"], trace["samples"], len(trace["gpus"])) == ("trace", 3653, 1)
    assert 360 < trace["span_s"] < 375
    assert "runs" not in trace
    server = rows["server_requests.jsonl.gz"]
    assert (server["dialect"], server["samples"]) == ("server_requests", 1408)


def test_unknown_in_a_folder_is_a_row_and_named_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(result())
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "cut.json").write_text(result()[:50])
    rows = {Path(row["path"]).name: row for row in inspect_paths([tmp_path])["files"]}
    assert rows["good.json"]["dialect"] == "vllm"
    assert rows["notes.txt"]["dialect"] is None
    assert "cut off" in rows["cut.json"]["reason"]
    for name in ("notes.txt", "cut.json", "absent"):
        with pytest.raises(LogFormatError, match=name):
            inspect_paths([tmp_path / name])


def test_sweep_folder_is_not_read_twice(tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"run={number}.json").write_text(result(run_number=number))
    both = [json.loads(result(run_number=number)) for number in range(2)]
    (tmp_path / "summary.json").write_text(json.dumps(both))
    (tmp_path / "warmup.json").write_text(result(run_number=-1))
    (tmp_path / "x.failure.json").write_text("{}")
    rows = inspect_paths([tmp_path])["files"]
    assert [Path(row["path"]).name for row in rows] == ["run=0.json", "run=1.json"]
    with pytest.raises(LogFormatError, match="read those"):
        inspect_paths([tmp_path / "summary.json"])


def test_text_for_a_person_in_both_languages(tmp_path: Path) -> None:
    path = tmp_path / "evil\x1b[2J.json"
    path.write_text(result(errors=["", "HTTP 503"], output_lens=[2, 0], ttfts=[0.1, 0.0],
                           itls=[[0.1], []]))  # fmt: skip
    found = inspect_paths([path])
    english, chinese = inspection_text(found), inspection_text(found, "zh")
    assert "1 ok, 1 error" in english
    assert "成功 1，错误 1" in chinese
    assert "\x1b" not in english + chinese
