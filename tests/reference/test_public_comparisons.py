"""What the verdicts say of campaigns other people published: never more than the data allow."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
import statistics
from pathlib import Path
from typing import Any

import pytest
from scipy import stats as scipy_stats
from tests.campaigns import Opened, arm, open_verdict, write_campaign

PUBLIC = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "public"
CLIENTS = PUBLIC.parent / "clients"

pytestmark = pytest.mark.skipif(not PUBLIC.exists(), reason="needs the shared data folder")

LABELS = {
    "h100": ("(runpod) H100 SXM", "H100 SXM"), "h200": ("(runpod) H200 SXM", "H200 SXM"),
    "rtx4090": ("(runpod) RTX 4090", "RTX 4090 24GB"),
    "a6000": ("(runpod) RTX A6000", {"name": "RTX A6000", "memory_gb": 48}),
}  # fmt: skip


def database_rows(label: str) -> list[dict[str, Any]]:
    path = PUBLIC / "tech-grandpa-llmperf" / "results_cloud_single.db"
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        found = database.execute(
            "SELECT raw_results FROM benchmark_runs WHERE gpu_info = ? ORDER BY id", (label,)
        ).fetchall()
    return [json.loads(raw) for (raw,) in found]


def flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """LLMPerf writes its summary flattened; the database keeps it nested."""
    out: dict[str, Any] = {}
    for key, held in value.items():
        if isinstance(held, dict) and key != "additional_sampling_params":
            out |= flat(held, f"{prefix}{key}_")
        else:
            out[f"{prefix}{key}"] = held
    return out


def throughputs(name: str) -> list[float]:
    return [
        row["results"]["mean_output_throughput_token_per_s"]
        for row in database_rows(LABELS[name][0])
    ]


def llmperf_case(folder: Path, baseline: str, candidate: str) -> Opened:
    arms = {}
    for name in (baseline, candidate):
        (folder / name).mkdir()
        for number, row in enumerate(database_rows(LABELS[name][0]), 1):
            (folder / name / f"r{number}_summary.json").write_text(json.dumps(flat(row)))
        arms[name] = {
            "gpu": LABELS[name][1], "precision": "fp8", "files": f"{name}/r{{repeat}}_summary.json",
            "server_starts": "shared",
        }  # fmt: skip
    model = {"name": "Llama-3.1-8B-FP8", "parameters": 8e9, "weight_bits": 8}
    comparisons = [{"name": "ab", "baseline": baseline, "candidate": candidate}]
    return open_verdict(write_campaign(folder, arms, model=model, comparisons=comparisons))


@pytest.mark.parametrize(
    ("baseline", "candidate", "t", "df"),
    [("h100", "h200", 3.07, 8.0), ("a6000", "rtx4090", 1.09, 5.0)],
)
def test_llmperf_sweeps_end_as_reported_and_not_sustained(
    baseline: str, candidate: str, t: float, df: float, tmp_path: Path
) -> None:
    a, b = throughputs(baseline), throughputs(candidate)
    raw = scipy_stats.ttest_ind(b, a, equal_var=False)
    assert raw.statistic == pytest.approx(t, abs=0.005), "the inputs are the published ones"
    assert raw.df == pytest.approx(df, abs=0.05)
    case = llmperf_case(tmp_path, baseline, candidate)
    assert not case.measured.lost
    cell = case.verdict.cell("output_tokens_per_s", "value", '{"concurrency": 64}')
    assert cell is not None
    c = cell.comparison
    logs = scipy_stats.ttest_ind(
        [math.log(v) for v in b], [math.log(v) for v in a], equal_var=False
    )  # fmt: skip
    # Ours is on logs; where the arms differ in runs and one has fewer than five, df = min - 1.
    few = len(a) != len(b) and min(len(a), len(b)) < 5
    expected_df = min(len(a), len(b)) - 1 if few else logs.df
    assert c.df == pytest.approx(expected_df, rel=1e-9)
    assert c.p_value == pytest.approx(
        2 * scipy_stats.t.sf(abs(logs.statistic), expected_df), rel=1e-6
    )
    assert c.ratio == pytest.approx(
        statistics.geometric_mean(b) / statistics.geometric_mean(a), rel=1e-9
    )  # fmt: skip
    assert cell.rung == 4
    assert {"as reported", "not sustained"} <= set(c.modifiers)
    for held in (*case.verdict.cells, *case.verdict.headline):
        if held.key.metric != "error_ratio":
            assert held.verdict != "equivalent", held
    observed = [
        x.values["observed"] for x in c.cautions if x.code == "not_sustained"
    ]  # fmt: skip
    assert len(observed) == 2
    assert all(14 < streams < 28 for streams in observed), observed


def test_4090_and_a6000_are_a_tie_of_clients_not_of_cards(tmp_path: Path) -> None:
    """Throughput ties at 1.007 while one stream is 1.4 times as fast: the client set the pace."""
    case = llmperf_case(tmp_path, "a6000", "rtx4090")
    cell = case.verdict.cell("output_tokens_per_s", "value", '{"concurrency": 64}')
    assert cell is not None
    assert cell.comparison.ratio == pytest.approx(1.007, abs=0.001)
    assert cell.verdict == "inconclusive"


def dstack_case(folder: Path) -> Opened:
    source = PUBLIC / "dstack-h100-mi300x"
    model = "Llama-3.1-405B-FP8"
    names = {"h100": f"nvidia-vllm-16.0qps-{model}-20241109-150547.json.gz",
             "mi300x": f"amd-meta-vllm-16.0qps-{model}-20241120-122022_RPC.json.gz"}  # fmt: skip
    for name in names.values():
        shutil.copy(source / name, folder / name)
    shared = {"gpus": 8, "tensor_parallel": 8, "engine": "vllm", "precision": "fp8"}
    arms = {
        "h100": {**shared, "gpu": "H100 SXM", "files": names["h100"],
                 "scheduler": {"chunked_prefill": True, "max_num_seqs": 256},
                 "factors": {"prefix_caching": False}},
        "mi300x": {**shared, "gpu": "MI300X", "files": names["mi300x"],
                   "scheduler": {"chunked_prefill": False, "max_num_seqs": 512},
                   "factors": {"prefix_caching": True}},
    }  # fmt: skip
    keys = {
        "model": {"name": model, "parameters": 405e9, "weight_bits": 8},
        "workload": {"load": "open"},
        "comparisons": [{"name": "ab", "baseline": "h100", "candidate": "mi300x"}],
    }
    return open_verdict(write_campaign(folder, arms, **keys))


def test_dstack_pair_is_two_systems_with_one_run_each(tmp_path: Path) -> None:
    case = dstack_case(tmp_path)
    assert not case.measured.lost
    c = case.verdict.comparability
    assert c.scope == "systems"
    assert set(c.differing) == {"scheduler", "prefix_caching"}
    named = {r.values["factor"] for r in c.caveats if r.code == "factor_differs"}
    assert named >= {"scheduler", "prefix_caching"}
    for cell in (*case.verdict.cells, *case.verdict.headline):
        assert cell.verdict in ("inconclusive", "not comparable")
        assert cell.comparison.p_value is None
    assert c.refused == (), "405 GB of weights fit into 640 GB"


@pytest.mark.skipif(not CLIENTS.exists(), reason="needs the shared data folder")
def test_two_tools_on_one_mock_server_are_no_difference_between_gpus(tmp_path: Path) -> None:
    """The same-card control: what the tools alone do must never read as a finding about cards."""
    sources = {"vllm": "vllm-bench-0.32.0", "sglang": "sglang-0.4.6.post5"}
    arms = {}
    for name, version in sources.items():
        target = tmp_path / name
        target.mkdir()
        for case_folder in sorted((CLIENTS / version).glob("a100-sxm-80g_c*_r*")):
            level, repeat = case_folder.name.split("_")[1:]
            (log,) = case_folder.glob(f"{name}_*.json*")
            packed = ".gz" if log.suffix == ".gz" else ""
            shutil.copy(log, target / f"{level}_{repeat}.json{packed}")
        arms[name] = arm(
            name, gpu="A100 80GB SXM", cards=["one"], engine="mock", engine_version="1",
            client_version=version.split("-")[-1], server_starts="shared",
            files=f"{name}/c{{level}}_r{{repeat}}.json*",
        )  # fmt: skip
    comparisons = [{"name": "ab", "baseline": "vllm", "candidate": "sglang"}]
    case = open_verdict(
        write_campaign(tmp_path, arms, simulated=True, comparisons=comparisons)
    )  # fmt: skip
    for name in arms:
        runs = case.measured.runs_of(name)
        assert {r.level["concurrency"] for r in runs} == {1, 4, 8, 16, 32}, case.measured.lost
    speaking = [
        cell for cell in (*case.verdict.cells, *case.verdict.headline)
        if cell.verdict in ("faster", "slower")
    ]  # fmt: skip
    for cell in speaking:
        assert "confounded: client" in cell.comparison.modifiers, cell
    tpot = [c for c in case.verdict.cells if (c.key.metric, c.key.statistic) == ("tpot_s", "p50")]
    assert len(tpot) == 5
    assert {c.verdict for c in tpot} <= {"inconclusive"}, "every ratio lies below the floor of 10 %"
    assert "simulated" in {r.code for r in case.verdict.comparability.caveats}
