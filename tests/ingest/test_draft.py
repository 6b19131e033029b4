"""The draft of a campaign file: what logs say, placeholders for what they do not."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from tests.batch.campaigns import ROOT, run
from tests.campaigns import closed_loop, vllm_result

from gpuverdict.campaign import PLACEHOLDER, read_campaign
from gpuverdict.diagnosis.beside import look_beside
from gpuverdict.draft import draft_campaign
from gpuverdict.errors import CampaignError, LogFormatError
from gpuverdict.measured import Measured, measure
from gpuverdict.steady import whole_run

H200 = ROOT / "data" / "h200"
CLIENTS = ROOT.parent / "shared" / "data" / "clients"
TOOLS = ("aiperf-0.13.0", "guidellm-0.3.1", "guidellm-0.8.1", "inference-perf-0.7.0",
         "llmperf-main-f1d6bed", "sglang-0.4.6.post5", "sglang-0.5.23",
         "vllm-bench-0.32.0")  # fmt: skip

# What a person fills in, by key.
FACTS = {"gpu": "H200 SXM", "gpus": "1", "precision": "bf16", "engine": "mock", "title": "a draft",
         "engine_version": '"1"', "client_version": '"0.32.0"', "time_zone": "UTC", "name": "m",
         "clock": "epoch"}  # fmt: skip


def filled(draft: str) -> str:
    """Change the placeholders, and nothing else."""
    told = re.compile(rf"^(\s*)(\w+): {PLACEHOLDER}\b", re.M)
    return told.sub(lambda m: f"{m[1]}{m[2]}: {FACTS[m[2]]}", draft)


def drafted(folder: Path, place: Path) -> tuple[str, Path]:
    """Copy a folder, draft its campaign, and fill it in there."""
    copied = place / folder.name
    shutil.copytree(
        folder, copied, ignore=shutil.ignore_patterns("campaign.yaml", ".gpuverdict", "truth_*")
    )
    draft = draft_campaign(copied)
    (copied / "campaign.yaml").write_text(filled(draft), encoding="utf-8")
    return draft, copied


def opened(folder: Path) -> Measured:
    return measure(read_campaign(folder))


def places(measured: Measured) -> dict[str, list[tuple[float, int]]]:
    found: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for one in measured.runs:
        found[one.arm].append((next(iter(one.level.values())), one.repeat_no))
    return {arm: sorted(held) for arm, held in found.items()}


def test_the_sample_as_far_as_its_files_go(tmp_path: Path) -> None:
    draft, folder = drafted(H200, tmp_path)
    measured = opened(folder)
    assert measured.lost == ()
    sweeps = [(c, r) for c in (1, 4, 16, 64) for r in range(1, 6)]
    runs = [(16, r) for r in range(1, 5)]
    arms = dict.fromkeys(("card-a-bf16", "card-b-bf16", "card-b-eager"), sweeps)
    assert places(measured) == arms | {"layers32": runs, "layers34": runs}
    campaign = measured.campaign
    assert campaign.model is not None
    assert campaign.model.id == "llama-7b-random"
    assert campaign.workload is not None
    assert (campaign.workload.input_tokens, campaign.workload.output_tokens) == (512, 128)
    for name, arm in campaign.arms.items():
        assert measured.traces[name], name
        assert measured.inventory[name].height, name
        assert arm.client_version == "0.8.1"
    assert len(measured.probes["card-a-bf16"]) == 4
    # The server's own rows of card a and of the two models are named, and joined.
    joined = {run.arm for run in measured.runs if run.key in measured.server_joins}
    assert joined == {"card-a-bf16", "layers32", "layers34"}
    assert all(j.n_joined == j.n_requests for j in measured.server_joins.values())
    assert "gpu: NVIDIA H200   # starts/nvidia-smi-q.xml.gz" in draft


@pytest.mark.parametrize("tool", TOOLS)
def test_every_client_folder(tmp_path: Path, tool: str) -> None:
    if not CLIENTS.is_dir():
        pytest.skip("the client logs are not here")
    draft, folder = drafted(CLIENTS / tool, tmp_path)
    measured = opened(folder)
    assert measured.lost == ()
    found = places(measured)
    with (CLIENTS / "INDEX.csv").open(encoding="utf-8") as file:
        normal = [
            row
            for row in csv.DictReader(file)
            if row["case"].startswith(f"{tool}/") and row["kind"] == "normal" and row["tool_files"]
        ]
    expected: dict[str, set[tuple[float, int]]] = defaultdict(set)
    for row in normal:
        if row["concurrency"].isdecimal() and "_c" in row["case"] and "multi" not in row["case"]:
            expected[row["profile"]].add((float(row["concurrency"]), int(row["repeat"] or 1)))
    for profile, held in expected.items():
        own = [arm for arm in found if arm.startswith(profile)]
        assert {place for arm in own for place in found[arm]} >= held, profile
    is_sourced(draft, CLIENTS / tool)


def test_counters_of_real_pages_are_the_servers_own(tmp_path: Path) -> None:
    """AIPerf's export of a mock's pages: preemptions and highest KV use, level by level."""
    if not CLIENTS.is_dir():
        pytest.skip("the client logs are not here")
    _, folder = drafted(CLIENTS / "aiperf-0.13.0", tmp_path)
    measured = opened(folder)
    with (CLIENTS / "INDEX.csv").open(encoding="utf-8") as file:
        truth = {row["case"]: int(row["server_preemptions"] or 0) for row in csv.DictReader(file)}
    seen = 0
    for one in measured.runs:
        case = one.path.partition("/")[0]
        export = CLIENTS / "aiperf-0.13.0" / case / "artifacts" / "server_metrics_export.json"
        told = look_beside(measured, one, whole_run(one.stored.load())).server
        if "preemptions" not in told:
            continue
        seen += 1
        assert told["preemptions"] == truth[f"aiperf-0.13.0/{case}"], case
        (series,) = json.loads(export.read_text())["metrics"]["vllm:kv_cache_usage_perc"]["series"]
        assert told["kv_cache_use_ratio"] == series["stats"]["max"]
    assert seen >= 11


def is_sourced(draft: str, folder: Path) -> None:
    """Whatever stands there was found in a file that the line names, or is a placeholder."""
    for key in ("gpu", "gpus", "engine", "engine_version", "precision", "tensor_parallel",
                "client_version", "input_tokens", "output_tokens", "load", "id"):  # fmt: skip
        for line in re.findall(rf"^\s*{key}: (\S.*)$", draft, re.M):
            value, _, comment = line.partition("   # ")
            assert value == PLACEHOLDER or (folder / comment).is_file(), line


def test_no_value_without_a_source(tmp_path: Path) -> None:
    draft, folder = drafted(H200, tmp_path)
    is_sourced(draft, folder)
    for key in ("gpu", "gpus", "engine", "precision", "input_tokens", "load", "id"):
        assert re.search(rf"^\s*{key}: ", draft, re.M), key


def test_a_draft_is_refused_until_it_is_filled_in(tmp_path: Path) -> None:
    draft = draft_campaign(H200 / "starts")
    (tmp_path / "campaign.yaml").write_text(draft, encoding="utf-8")
    code, _, err = run("report", tmp_path, "--out", tmp_path / "out")
    assert code == 2
    (line,) = err.strip().splitlines()
    n = draft.count(f": {PLACEHOLDER}   #") - 1
    assert f"campaign.yaml: title: found the placeholder {PLACEHOLDER} (and {n} more: " in line
    told = draft.replace(f"title: {PLACEHOLDER}", "title: x")
    told = told.replace(f"time_zone: {PLACEHOLDER}", "time_zone: UTC")
    (tmp_path / "campaign.yaml").write_text(told, encoding="utf-8")
    with pytest.raises(CampaignError, match=r"arms\.layers32\.engine: found the placeholder"):
        read_campaign(tmp_path)


def test_filling_the_placeholders_renders(tmp_path: Path) -> None:
    _, folder = drafted(H200 / "starts", tmp_path)
    code, text, err = run("report", folder, "--out", tmp_path / "out")
    assert code == 0, err
    assert "1 rendered" in text + err
    page = next((tmp_path / "out").glob("*/report.html")).read_text("utf-8")
    assert "layers34" in page


def test_a_level_that_left_only_an_engine_log_is_hinted(tmp_path: Path) -> None:
    for level in (4, 8):
        rows = closed_loop(streams=level, n=40)
        path = tmp_path / f"rtx_c{level}_r1.json"
        path.write_text(json.dumps(vllm_result(rows, streams=level)))
        path = tmp_path / f"big_c{level}_r1.json"
        path.write_text(json.dumps(vllm_result(rows, streams=level)))
    oom = "[2026-12-01 10:00:00] boot\ntorch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB\n"
    (tmp_path / "rtx_engine_c16.log").write_text(oom)
    (tmp_path / "big_engine_c16.log").write_text("[2026-12-01 10:00:00] ready, 80 GiB\n")
    draft = draft_campaign(tmp_path)
    assert 'server_logs: ["rtx_engine_c{level}.log"]' in draft
    assert "rtx_engine_c16.log, line 2: out of memory: torch.OutOfMemoryError" in draft
    assert "not read: big_engine_c16.log" in draft
    (tmp_path / "campaign.yaml").write_text(filled(draft), encoding="utf-8")
    campaign = opened(tmp_path).campaign
    assert [i.level for i in campaign.arms["rtx"].infeasible] == [16]
    assert campaign.arms["big"].infeasible == ()


def test_what_logs_disagree_on_is_left_open(tmp_path: Path) -> None:
    for number, model in enumerate(("m-7b", "m-13b")):
        for arm in ("a", "b"):
            (tmp_path / arm).mkdir(exist_ok=True)
            rows = closed_loop(streams=4, n=40)
            result = vllm_result(rows, streams=4, model_id=model if arm == "b" else "m-7b",
                                 dtype="bfloat16" if arm == "a" else None)  # fmt: skip
            (tmp_path / arm / f"c4_r{number + 1}.json").write_text(json.dumps(result))
    draft = draft_campaign(tmp_path)
    assert "models:" in draft
    assert re.search(r"model: m-7b   # a/c4_r1\.json", draft)
    assert re.search(rf"model: {PLACEHOLDER}   #", draft)
    assert re.search(r"precision: bfloat16   # a/c4_r1\.json", draft)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    rows = closed_loop(streams=4, n=40)
    hostile = 'x"}, arms: {evil: 1} # \x1b[31m'
    result = vllm_result(rows, streams=4, model_id=hostile)
    folder = tmp_path / "a: [b] {c} #d"
    folder.mkdir()
    (folder / "c4_r1.json").write_text(json.dumps(result))
    draft = draft_campaign(tmp_path)
    assert "\x1b" not in draft
    (tmp_path / "campaign.yaml").write_text(filled(draft), encoding="utf-8")
    campaign = read_campaign(tmp_path)
    assert len(campaign.arms) == 1
    assert campaign.model is not None
    assert campaign.model.name == hostile.replace("\x1b", "?")


def test_logs_of_a_folder_called_reports_are_read_and_rendered_reports_are_not(
    tmp_path: Path,
) -> None:
    rows = closed_loop(streams=4, n=40)
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "c4_r1.json").write_text(json.dumps(vllm_result(rows, streams=4)))
    done = tmp_path / "out" / "ab"
    done.mkdir(parents=True)
    (done / "verdicts.json").write_text("{}")
    (done / "other.json").write_text(json.dumps(vllm_result(rows, streams=8)))
    draft = draft_campaign(tmp_path)
    assert "reports/c{level}_r{repeat}.json" in draft
    assert "out/" not in draft


def test_a_folder_without_logs(tmp_path: Path) -> None:
    with pytest.raises(LogFormatError, match="no benchmark log with a level"):
        draft_campaign(tmp_path)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(LogFormatError, match="no folder"):
        draft_campaign(tmp_path / "x.json")


def test_how_the_files_are_read_stands_in_the_draft(tmp_path: Path) -> None:
    """A zone or an encoding given to `inspect` was dropped beside `--campaign`."""
    folder = tmp_path / "folder"
    folder.mkdir()
    rows = [f"{i},ok,{i},{i + 0.1},{i + 0.9},{i + 0.9},8,9,usage,\u4e2d" for i in range(3)]
    head = ("request_index,status,start_s,first_token_s,last_token_s,end_s,input_tokens,"
            "output_tokens,output_tokens_source,error")  # fmt: skip
    (folder / "c4_r1.csv").write_bytes("\n".join([head, *rows, ""]).encode("gb18030"))
    shutil.copy(H200 / "card-a-bf16" / "nvidia-smi-query.csv.gz", folder)
    code, _, said = run("inspect", folder, "--campaign")
    assert (code, len(said.splitlines())) == (2, 1)
    assert "GB18030" in said
    encoding = ("--encoding", "gb18030")
    code, plain, _ = run("inspect", folder, "--campaign", *encoding)
    assert (code, f"time_zone: {PLACEHOLDER}" in plain) == (0, True)
    assert "\n    encoding: gb18030\n" in plain
    told = run("inspect", folder, "--campaign", *encoding, "--time-zone", "Asia/Shanghai")[1]
    assert "\ntime_zone: Asia/Shanghai\n" in told
    assert f"time_zone: {PLACEHOLDER}" not in told
    code, _, said = run("inspect", folder, "--campaign", "--format", "open")
    assert (code, len(said.splitlines())) == (2, 1)
    assert "format" in said
