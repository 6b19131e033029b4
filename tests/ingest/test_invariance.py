"""What must not matter does not, and a renamed key is a loss, never another number."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.ingest.client_cases import CLIENTS

from gpuverdict.errors import LogFormatError
from gpuverdict.recognise import read_run
from gpuverdict.schema import Run

SEEDS = {
    "vllm": "vllm-bench-0.32.0/a100-sxm-80g_c8_r1/vllm_a100-sxm-80g_c8_r1.json",
    "sglang": "sglang-0.5.23/edge_503-20pct/sglang_edge_503-20pct.jsonl",
    "guidellm 0.8": "guidellm-0.8.1/edge_max-duration-incomplete/benchmarks.json.gz",
    "guidellm 0.3": "guidellm-0.3.1/a100-sxm-80g_c8/benchmarks.json",
    "aiperf": "aiperf-0.13.0/edge_cancel-50pct/artifacts/profile_export.jsonl",
    "inference-perf":
        "inference-perf-0.7.0/edge_empty-stream-20pct/reports/per_request_lifecycle_metrics.json.gz",
    "llmperf": "llmperf-main-f1d6bed/a100-sxm-80g_c8/results/"
               "mock-7b_256_64_individual_responses.json",
}  # fmt: skip
TIMES = ("start_s", "first_token_s", "last_token_s", "end_s", "ttft_s", "e2e_s", "tpot_s")

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not CLIENTS.exists(), reason="the recorded client logs are not here"),
]


def values_of(name: str) -> tuple[list[Any], bool]:
    """The JSON values of a log, and whether they stand one a line."""
    path = CLIENTS / SEEDS[name]
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    if ".jsonl" in path.name:
        return [json.loads(line) for line in text.splitlines()], True
    value = json.loads(text)
    if name == "guidellm 0.8":
        # A few requests and no percentiles tell the same in a tenth of the time.
        for level in value["benchmarks"]:
            level["metrics"] = {}
            for status in ("successful", "incomplete"):
                level["requests"][status] = level["requests"][status][:5]
    return [value], False


def read_values(values: list[Any], lines: bool, folder: Path) -> list[Run]:
    path = folder / "log.json"
    path.write_text("\n".join(json.dumps(value) for value in values) if lines
                    else json.dumps(values[0]))  # fmt: skip
    return read_run(path)


def changed(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Apply a change to every object of a tree."""
    if isinstance(value, dict):
        return change({key: changed(item, change) for key, item in value.items()})
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        return [changed(item, change) for item in value]
    return value


def frames(runs: list[Run]) -> pl.DataFrame:
    return pl.concat([run.requests.drop("run_id") for run in runs])


@pytest.mark.parametrize("name", SEEDS)
def test_order_of_keys_does_not_matter(name: str, tmp_path: Path) -> None:
    values, lines = values_of(name)
    draw = random.Random(name)

    def shuffled(item: dict[str, Any]) -> dict[str, Any]:
        keys = list(item)
        draw.shuffle(keys)
        return {key: item[key] for key in keys}

    before = frames(read_values(values, lines, tmp_path))
    after = frames(read_values([changed(value, shuffled) for value in values], lines, tmp_path))
    assert before.equals(after)


@pytest.mark.parametrize("name", SEEDS)
def test_unknown_keys_do_not_matter(name: str, tmp_path: Path) -> None:
    values, lines = values_of(name)
    extra = [changed(value, lambda item: {**item, "later_version": [1, {"a": None}]})
             for value in values]  # fmt: skip
    before = frames(read_values(values, lines, tmp_path))
    assert before.equals(frames(read_values(extra, lines, tmp_path)))


def names_of_keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from names_of_keys(item)
    elif isinstance(value, list):
        for item in value[:3]:
            yield from names_of_keys(item)


# What a reader takes instead when a key is gone is another count of the same tokens.
_FALLS_BACK = {"usage_completion_tokens", "usage_prompt_tokens", "output_sequence_length",
               "server_usage", "completion_tokens", "total_tokens", "text_tokens",
               "output_tokens"}  # fmt: skip


@pytest.mark.parametrize("name", SEEDS)
def test_a_renamed_key_is_a_loss_never_another_number(name: str, tmp_path: Path) -> None:
    values, lines = values_of(name)
    before = frames(read_values(values, lines, tmp_path)).sort("request_index")
    keys = sorted({key for value in values[:20] for key in names_of_keys(value)})
    used = 0
    for key in keys:
        renamed = [
            changed(value, lambda item, key=key: {
                (f"{old}_renamed" if old == key else old): entry for old, entry in item.items()
            })
            for value in values
        ]  # fmt: skip
        try:
            after = frames(read_values(renamed, lines, tmp_path)).sort("request_index")
        except LogFormatError:
            used += 1
            continue
        if after.height != before.height:
            used += 1
            continue
        used += not after.equals(before)
        for column in TIMES:
            if column == "tpot_s" and key in _FALLS_BACK:
                continue
            old = before[column].to_numpy().astype(np.float64)
            new = after[column].to_numpy().astype(np.float64)
            # Starts are relative to the earliest one that is left.
            known = ~np.isnan(new) & ~np.isnan(old)
            assert np.allclose(new[known], old[known], atol=2e-3), (key, column)
    # The reader does depend on a good part of what it is given.
    assert used >= 4


@pytest.mark.parametrize(("unit", "factor"), [("us", 1e3), ("s", 1e-3), ("ns", 1e6)])
def test_aiperf_units_are_those_stated(unit: str, factor: float, tmp_path: Path) -> None:
    values, _ = values_of("aiperf")

    def reunited(item: dict[str, Any]) -> dict[str, Any]:
        if item.get("unit") != "ms":
            return item
        value = item["value"]
        scaled = [v * factor for v in value] if isinstance(value, list) else value * factor
        return {"value": scaled, "unit": unit}

    before = frames(read_values(values, True, tmp_path))
    after = frames(read_values([changed(value, reunited) for value in values], True, tmp_path))
    for column in TIMES:
        left, right = before[column].to_numpy(), after[column].to_numpy()
        assert np.allclose(left, right, rtol=1e-9, atol=1e-9, equal_nan=True)


def test_aiperf_unknown_unit_is_refused(tmp_path: Path) -> None:
    values, _ = values_of("aiperf")
    values[-1]["metrics"]["request_latency"] = {"value": 1.0, "unit": "fortnight"}
    with pytest.raises(LogFormatError, match="fortnight"):
        read_values(values, True, tmp_path)


def test_aiperf_rows_in_any_order(tmp_path: Path) -> None:
    values, _ = values_of("aiperf")
    before = frames(read_values(values, True, tmp_path)).sort("request_id")
    after = frames(read_values(values[::-1], True, tmp_path)).sort("request_id")
    assert before.drop("request_index").equals(after.drop("request_index"))


def test_aiperf_slow_way_gives_the_same_as_the_fast(tmp_path: Path) -> None:
    values, _ = values_of("aiperf")
    before = frames(read_values(values, True, tmp_path))
    # One number as text: the column reader refuses, the strict one reads every row again.
    metric = next(
        v["metrics"]["request_latency"] for v in values if "request_latency" in v["metrics"]
    )
    metric["value"] = repr(metric["value"])
    assert before.equals(frames(read_values(values, True, tmp_path)))
