"""Numbers other people published, reproduced from their files by this project's readers.

The printed values are those of `data/public/README.md`, recomputed there by another route.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import sqlite3
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gpuverdict.errors import LogFormatError
from gpuverdict.files import ReadOptions
from gpuverdict.recognise import read_run
from gpuverdict.schema import Run

PUBLIC = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "public"
DSTACK = PUBLIC / "dstack-h100-mi300x"
LLMPERF = PUBLIC / "tech-grandpa-llmperf"
KUBECON = PUBLIC / "inference-perf-kubecon"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not PUBLIC.exists(), reason="the public data are not beside the repository"),
]

# file -> TTFT mean, median, p99; TPOT from gaps, mean; token-weighted; gaps mean, median (all ms)
PUBLISHED = {
    "nvidia-vllm-16.0qps": (1486.39, 403.32, 9912.54, 104.75, 99.45, 99.49, 113.80),
    "nvidia-vllm-1000.0qps": (18688.46, 9156.04, 67563.17, 108.91, 102.24, 102.33, 114.48),
    "amd-meta-vllm-16.0qps": (1862.33, 1544.29, 8997.89, 1563.81, 386.00, 386.17, 221.07),
    "amd-meta-vllm-32.0qps": (17636.53, 15444.31, 43800.48, 1005.72, 306.99, 307.12, 222.85),
}


def dstack(name: str) -> tuple[Run, dict[str, Any]]:
    (path,) = DSTACK.glob(f"{name}*.json.gz")
    (run,) = read_run(path)
    return run, json.loads(gzip.decompress(path.read_bytes()))


def gaps_of(run: Run) -> np.ndarray:
    return np.concatenate([np.asarray(row) for row in run.gaps["gaps_s"]])


@pytest.mark.parametrize("name", PUBLISHED)
def test_dstack_to_all_printed_digits(name: str) -> None:
    run, raw = dstack(name)
    mean, median, p99, tpot, weighted, gap_mean, gap_median = PUBLISHED[name]
    # The tool counts an empty answer as completed and averages its zero in; to reproduce its
    # figures the zeros are put back, which is the only place where they are.
    ttft = run.requests["ttft_s"].fill_null(0.0).to_numpy() * 1e3
    assert ttft.mean() == pytest.approx(mean, abs=0.005)
    assert np.median(ttft) == pytest.approx(median, abs=0.005)
    assert np.percentile(ttft, 99) == pytest.approx(p99, abs=0.005)
    assert ttft.std() == pytest.approx(raw["std_ttft_ms"], rel=1e-9)
    gaps = gaps_of(run) * 1e3
    assert gaps.mean() == pytest.approx(gap_mean, abs=0.005)
    assert np.median(gaps) == pytest.approx(gap_median, abs=0.005)
    assert gaps.std() == pytest.approx(raw["std_itl_ms"], rel=1e-6)
    defined = run.requests.filter(pl.col("tpot_s").is_not_null())
    assert defined["tpot_s"].mean() * 1e3 == pytest.approx(tpot, abs=0.005)  # type: ignore[operator]
    steps = (defined["output_tokens"] - 1).sum()
    span = (defined["tpot_s"] * (defined["output_tokens"] - 1)).sum()
    assert span / steps * 1e3 == pytest.approx(weighted, abs=0.005)


@pytest.mark.parametrize("name", PUBLISHED)
def test_dstack_differences_are_explained_not_hidden(name: str) -> None:
    run, raw = dstack(name)
    undefined = run.requests.filter(pl.col("tpot_s").is_null()).height
    assert 394 <= undefined <= 397
    assert run.info["n_empty"] == sum(time == 0 for time in raw["ttfts"])
    # Without the empties the mean TTFT is another number: both are said.
    said = {(item.code, item.values.get("metric")): item.values for item in run.cautions}
    ttft = said["reported_with_empties", "ttft_s"]
    assert ttft["reported"] == pytest.approx(raw["mean_ttft_ms"] / 1e3)
    fine = [time for time in raw["ttfts"] if time > 0]
    assert ttft["recomputed"] == pytest.approx(statistics.fmean(fine))
    assert ("reported_differs", "tpot_s") not in said


def test_dstack_ratio_depends_on_the_statistic() -> None:
    amd, nvidia = dstack("amd-meta-vllm-16.0qps")[0], dstack("nvidia-vllm-16.0qps")[0]

    def weighted(run: Run) -> float:
        rows = run.requests.filter(pl.col("tpot_s").is_not_null())
        return (rows["tpot_s"] * (rows["output_tokens"] - 1)).sum() / (
            rows["output_tokens"] - 1
        ).sum()

    reported = [run.info["reported"] for run in (amd, nvidia)]
    assert reported[0]["tpot_s.mean"] / reported[1]["tpot_s.mean"] == pytest.approx(14.7, abs=0.05)
    assert reported[0]["tpot_s.p50"] / reported[1]["tpot_s.p50"] == pytest.approx(3.7, abs=0.05)
    assert weighted(amd) / weighted(nvidia) == pytest.approx(3.9, abs=0.05)
    assert np.median(gaps_of(amd)) / np.median(gaps_of(nvidia)) == pytest.approx(1.9, abs=0.05)


def test_dstack_failed_run_gives_no_latency() -> None:
    run, raw = dstack("amd-meta-vllm-no-rpc-1000.0qps")
    assert raw["mean_ttft_ms"] == 0.0
    assert (run.info["n_ok"], run.info["n_error"], run.info["n_empty"]) == (0, 983, 17)
    assert "no_request_succeeded" in {item.code for item in run.cautions}
    assert "ttft_s.mean" not in run.info["reported"]


def test_dstack_table_contradicts_its_own_files() -> None:
    text = (DSTACK / "qps_comparison.csv").read_text(encoding="utf-8-sig")
    wrong = {}
    for row in csv.DictReader(text.splitlines()):
        path = DSTACK / f"{row['filename'].removesuffix('.json')}.json.gz"
        if not path.exists():
            continue
        (run,) = read_run(path)
        tokens = run.info["reported"]["output_tokens.sum"]
        if float(row["total_output_tokens"]) != tokens:
            wrong[row["qps"]] = (float(row["total_output_tokens"]), tokens)
        # The rates of table and file agree, and need the file's tokens.
        rate = tokens / run.info["duration_s"]
        assert rate == pytest.approx(float(row["output_throughput"]))
    assert wrong == {"16": (122250, 122774), "32": (121792, 120898)}


def test_summaries_without_rows_agree_with_their_table() -> None:
    folder = PUBLIC / "dstack-h200-pd-ratio"
    rows = {row["source_file"]: row for row in csv.DictReader((folder / "results.csv").open())}
    files = sorted(folder.glob("*.json"))
    assert len(files) == 27 < len(rows)
    for path in files:
        (run,) = read_run(path)
        assert run.requests.height == 0
        assert run.info["dropped"]["aggregate_only"] == 1
        row, reported = rows[path.name], run.info["reported"]
        assert reported["ttft_s.mean"] * 1e3 == pytest.approx(float(row["mean_ttft_ms"]))
        assert reported["tpot_s.p99"] * 1e3 == pytest.approx(float(row["p99_tpot_ms"]))
        assert reported["output_tokens_per_s.value"] == pytest.approx(
            float(row["output_throughput"])
        )
        assert run.info["max_concurrency"] == int(row["conc"])


def printed_means(path: Path) -> dict[tuple[str, str], float]:
    """The throughput table of a statistics file: (GPU, data type) -> printed mean."""
    block = path.read_text().split("Average Throughput by GPU and Data Type:")[1].strip("\n")
    lines = block.split("\n\n")[0].splitlines()
    types = lines[0].split()[1:]
    means = {}
    for line in lines[2:]:
        cells = re.split(r"\s{2,}", line.strip())
        for kind, cell in zip(types, cells[1:], strict=True):
            if cell != "NaN":
                means[cells[0], kind] = float(cell)
    return means


def database_runs(name: str, folder: Path) -> dict[tuple[str, str], list[dict[str, float]]]:
    """Bring a database to a table and read it by a confirmed map, one run a row."""
    connection = sqlite3.connect(f"file:{LLMPERF / name}?mode=ro", uri=True)
    rows = connection.execute(
        "SELECT gpu_info, data_type, num_concurrent_requests, overall_throughput, ttft "
        "FROM benchmark_runs ORDER BY id"
    ).fetchall()
    connection.close()
    path = folder / "runs.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("gpu", "type", "users", "tput", "first"), *rows])
    columns = {"users": {"to": "concurrency"},
               "tput": {"to": "output_tokens_per_s.value", "unit": "tok/s"},
               "first": {"to": "ttft_s.mean", "unit": "s"}}  # fmt: skip
    found: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for row, run in zip(rows, read_run(path, ReadOptions(columns=columns)), strict=True):
        assert run.info["max_concurrency"] == row[2]
        found[row[0], row[1]].append(dict(run.info["reported"]))
    return found


DATABASES = {
    "cloud_single_statistics.md": ("results_cloud_single.db", 9),
    "cloud_parallel_statistics.md": ("results_cloud_parallel.db", 5),
    "homelab_single_statistics.md": ("results_homelab_single.db", 3),
    "small_all_statistics.md": ("results_small_all.db", 11),
}


@pytest.mark.parametrize("statistics_file", DATABASES)
def test_llmperf_means_to_six_decimals(statistics_file: str, tmp_path: Path) -> None:
    database, n = DATABASES[statistics_file]
    printed = printed_means(LLMPERF / statistics_file)
    assert len(printed) == n
    runs = database_runs(database, tmp_path)
    for key, mean in printed.items():
        values = [run["output_tokens_per_s.value"] for run in runs[key]]
        assert statistics.fmean(values) == pytest.approx(mean, abs=5e-7)


def test_llmperf_cold_first_run(tmp_path: Path) -> None:
    runs = database_runs("results_cloud_single.db", tmp_path)[("(runpod) RTX A5000", "FP8")]
    rates = [run["output_tokens_per_s.value"] for run in runs]
    assert rates[0] == pytest.approx(677, abs=1)
    assert all(1050 < rate < 1084 for rate in rates[1:])
    assert statistics.fmean(rates[1:]) == pytest.approx(1069, abs=1)
    assert runs[0]["ttft_s.mean"] == pytest.approx(3.44, abs=0.005)
    assert all(0.145 < run["ttft_s.mean"] < 0.205 for run in runs[1:])


# batch -> A100 prompt ms (sd), A100 token ms (sd), H100 prompt ms (sd), H100 token ms (sd)
SPLITWISE = {
    1: (95.7, 4.3, 44.91, 0.12, 56.7, 6.4, 29.70, 0.11),
    8: (764.5, 8.0, 46.50, 0.46, 377.6, 13.8, 32.43, 0.51),
    16: (2063.5, 54.9, 50.44, 0.11, 805.4, 25.9, 34.17, 0.30),
    32: (3529.5, 410.7, 53.16, 0.47, 1549.8, 10.3, 38.86, 0.62),
    64: (7635.3, 671.3, 71.26, 1.5, 2941.7, 32.5, 49.99, 1.2),
}
SPLITWISE_MAP = {
    "prompt_size": {"to": "input_tokens"},
    "batch_size": {"to": "batch"},
    "token_size": {"to": "output_tokens"},
    "prompt_time": {"to": "prefill_s", "unit": "ms"},
    "token_time": {"to": "decode_step_s", "unit": "ms"},
}


def splitwise_rows() -> list[dict[str, str]]:
    return list(csv.DictReader((PUBLIC / "splitwise-perf-model" / "perf_model.csv").open()))


def test_splitwise_phase_table(tmp_path: Path) -> None:
    wanted = [
        row
        for row in splitwise_rows()
        if row["model"] == "llama2-70b" and row["tensor_parallel"] == "8"
        and row["prompt_size"] == "512" and row["token_size"] == "128"
    ]  # fmt: skip
    figures: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for hardware in ("a100-80gb", "h100-80gb"):
        own = [row for row in wanted if row["hardware"] == hardware]
        path = tmp_path / f"{hardware}.csv"
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, own[0])
            writer.writeheader()
            writer.writerows(own)
        for run in read_run(path, ReadOptions(columns=SPLITWISE_MAP)):
            reported = run.info["reported"]
            figures[hardware, run.info["max_concurrency"]].append(
                (reported["ttft_s.p50"] * 1e3, reported["decode_step_s.value"] * 1e3)
            )
    for batch, printed in SPLITWISE.items():
        for at, hardware in enumerate(("a100-80gb", "h100-80gb")):
            prompt, token = zip(*figures[hardware, batch], strict=True)
            # The base point stands three times: fifteen rows, not five.
            assert len(prompt) == (15 if batch == 1 else 5)
            mean, sd, token_mean, token_sd = printed[4 * at : 4 * at + 4]
            assert statistics.fmean(prompt) == pytest.approx(mean, abs=0.05)
            assert statistics.stdev(prompt) == pytest.approx(sd, abs=0.05)
            assert statistics.fmean(token) == pytest.approx(token_mean, abs=0.005)
            digits = 0.05 if batch == 64 else 0.005
            assert statistics.stdev(token) == pytest.approx(token_sd, abs=digits)


def test_splitwise_capped_rows_are_no_measurement() -> None:
    """Refused by their content: token times copied, prompt times a round multiple."""
    rows = splitwise_rows()
    keys = ("model", "prompt_size", "batch_size", "token_size", "tensor_parallel")
    plain, capped = defaultdict(list), defaultdict(list)
    for row in rows:
        key = tuple(row[name] for name in keys)
        if row["hardware"] == "h100-80gb":
            plain[key].append(row)
        elif row["hardware"] == "h100-80gb-pcap":
            capped[key].append(row)
    assert sum(map(len, capped.values())) == 420
    for key, own in capped.items():
        for left, right in zip(own, plain[key], strict=True):
            assert float(left["token_time"]) == float(right["token_time"])
            ratio = float(left["prompt_time"]) / float(right["prompt_time"])
            assert ratio == pytest.approx(1.3, rel=1e-9)


def stages(setting: str) -> dict[int, Run]:
    found = {}
    for path in (KUBECON / setting / "results").glob("stage_*_lifecycle_metrics.json"):
        (run,) = read_run(path)
        found[int(path.name.split("_")[1])] = run
    return found


def test_kubecon_saturated_stages() -> None:
    runs = stages("vllm")
    asked = [runs[k].info["rate_rps"] for k in (4, 5, 6)]
    sent = [runs[k].info["reported"]["send_rate_per_s.value"] for k in (4, 5, 6)]
    finished = [runs[k].info["reported"]["requests_per_s.value"] for k in (4, 5, 6)]
    assert asked == pytest.approx([122.6, 153.0, 183.4], abs=0.05)
    assert sent == pytest.approx([106.5, 105.6, 106.6], abs=0.06)
    assert finished == pytest.approx([101.2, 101.5, 103.1], abs=0.05)
    for run in runs.values():
        reported = run.info["reported"]
        assert reported["itl_s.p50"] < 0.2 * reported["itl_s.mean"]
        assert 0.00345 <= reported["tpot_s.p50"] <= 0.00965


def test_kubecon_best_rate_of_each_setting() -> None:
    printed = {"vllm": 103.1, "vllm+batch_size": 114.3, "vllm+quantization": 172.4,
               "vllm+chunking_and_prefix_caching": 173.0, "vllm+eagle": 68.1,
               "vllm+v0_engine": 76.3}  # fmt: skip
    for setting, best in printed.items():
        rates = [run.info["reported"]["requests_per_s.value"] for run in stages(setting).values()]
        assert len(rates) == 7
        assert max(rates) == pytest.approx(best, abs=0.05)


def test_guidellm_fixture_has_no_rows_and_says_so() -> None:
    runs = read_run(PUBLIC / "llm-d-guidellm-fixture" / "guidellm_report_v2.json")
    assert [run.requests.height for run in runs] == [0, 0]
    assert [run.info["rate_rps"] for run in runs] == [2.0, 4.0]
    assert all("aggregate_only" in {item.code for item in run.cautions} for run in runs)
    assert all(run.info["reported"]["ttft_s.mean"] > 0 for run in runs)


def test_summaries_in_seconds_without_a_unit_need_a_map() -> None:
    paths = sorted((PUBLIC / "inferencex-token-position").glob("*/results/*.json"))
    assert len(paths) == 72 + 52 + 45
    with pytest.raises(LogFormatError, match="no known format"):
        read_run(paths[0])
    columns = {"median_ttft": {"to": "ttft_s.p50", "unit": "s"},
               "median_tpot": {"to": "tpot_s.p50", "unit": "s"},
               "max_concurrency": {"to": "concurrency"}}  # fmt: skip
    raw = json.loads(paths[0].read_text())
    (run,) = read_run(paths[0], ReadOptions(columns=columns))
    assert run.info["reported"] == {"ttft_s.p50": pytest.approx(raw["median_ttft"]),
                                    "tpot_s.p50": pytest.approx(raw["median_tpot"])}  # fmt: skip
    assert run.info["max_concurrency"] == raw["max_concurrency"]
