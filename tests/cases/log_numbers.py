"""Plain means over what a reader returned, for comparison with the hand-computed cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from gpuverdict.schema import Run

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"


def case_file(number: int, name: str) -> Path:
    """Path of an input of a case."""
    (folder,) = CASES.glob(f"{number:02}-*")
    return folder / name


def right(number: int) -> dict[str, Any]:
    """The right values of a case."""
    return json.loads(case_file(number, "expected.json").read_text())["right"]


def wrong(number: int) -> dict[str, Any]:
    """The values that show the fault."""
    return json.loads(case_file(number, "expected.json").read_text()).get("wrong", {})


def ok_rows(run: Run) -> pl.DataFrame:
    """The requests that succeeded."""
    return run.requests.filter(pl.col("status") == "ok")


def mean_ms(run: Run, column: str) -> float | None:
    """Mean over successful requests, in milliseconds; None when there is no value."""
    value = ok_rows(run)[column].mean()
    return None if value is None else float(value) * 1e3  # type: ignore[arg-type]


def gaps_ms(run: Run) -> list[float]:
    """All gaps of successful requests, in milliseconds."""
    fine = ok_rows(run)["request_index"].implode()
    own = run.gaps.filter(pl.col("request_index").is_in(fine))
    return [gap * 1e3 for row in own["gaps_s"].to_list() for gap in row]


def mean_gap_ms(run: Run) -> float | None:
    """Mean of all gaps, in milliseconds; None without gaps."""
    gaps = gaps_ms(run)
    return sum(gaps) / len(gaps) if gaps else None


def output_tokens_per_s(run: Run, statuses: tuple[str, ...] = ("ok", "incomplete")) -> float:
    """Output tokens of successful and cut requests over the duration of the file."""
    rows = run.requests.filter(pl.col("status").is_in(statuses))
    return float(rows["output_tokens"].sum()) / float(run.info["duration_s"])


def codes(run: Run) -> set[str]:
    """Codes of the cautions of a run."""
    return {item.code for item in run.cautions}


def write(folder: Path, name: str, value: Any) -> Path:
    """Write a value as JSON, or a list of lines as JSON Lines."""
    path = folder / name
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in value))
    else:
        path.write_text(json.dumps(value))
    return path


def vllm_result(**changes: Any) -> dict[str, Any]:
    """A minimal detailed vLLM result to vary."""
    record: dict[str, Any] = {
        "date": "20261005-020000", "backend": "vllm", "endpoint_type": "openai",
        "model_id": "demo-7b", "tokenizer_id": "demo-7b", "request_rate": "inf",
        "burstiness": 1.0, "max_concurrency": 8, "duration": 2.0,
    }  # fmt: skip
    record |= changes
    if "ttfts" in record:
        n = len(record["ttfts"])
        record.setdefault("errors", [""] * n)
        record.setdefault("input_lens", [100] * n)
        record.setdefault("num_prompts", n)
        record.setdefault("completed", sum(not error for error in record["errors"]))
    return record


def sglang_result(**changes: Any) -> dict[str, Any]:
    """A minimal detailed SGLang line to vary."""
    record: dict[str, Any] = {
        "backend": "sglang-oai", "dataset_name": "random", "request_rate": 4.0,
        "max_concurrency": None, "random_input_len": 64, "random_output_len": 16,
        "random_range_ratio": 1.0, "duration": 2.0,
    }  # fmt: skip
    record |= changes
    if "ttfts" in record:
        n = len(record["ttfts"])
        record.setdefault("errors", [""] * n)
        record.setdefault("input_lens", [64] * n)
        record.setdefault("completed", sum(not error for error in record["errors"]))
        record.setdefault("total_output_tokens", sum(record["output_lens"]))
    return record


def aiperf_record(
    index: int, ttft: float, latency: float, tokens: int, **more: Any
) -> dict[str, Any]:
    """One AIPerf record; times in the unit given by `unit`, milliseconds by default."""
    unit = more.pop("unit", "ms")
    seconds = {"ms": 1e-3, "us": 1e-6, "s": 1.0, "ns": 1e-9}[unit]
    start = 1_800_000_000_000_000_000 + index * 1_000_000_000
    metrics = {
        "input_sequence_length": {"value": 64, "unit": "tokens"},
        "output_sequence_length": {"value": tokens, "unit": "tokens"},
        "time_to_first_token": {"value": ttft, "unit": unit},
        "request_latency": {"value": latency, "unit": unit},
        **more.pop("metrics", {}),
    }
    metadata = {
        "x_request_id": f"r{index}", "request_start_ns": start,
        "request_end_ns": start + round(latency * seconds * 1e9),
        "benchmark_phase": "profiling", "was_cancelled": False, **more.pop("metadata", {}),
    }  # fmt: skip
    return {"metadata": metadata, "metrics": metrics, "error": None, **more}


def inference_perf_row(
    start: float, times: list[float], tokens: int, **more: Any
) -> dict[str, Any]:
    """One inference-perf request in the layout of 0.5."""
    return {
        "start_time": start, "end_time": times[-1] if times else start + 0.5,
        "request": "{}", "response": "", "error": None,
        "info": {"input_tokens": 64,
                 "response_info": {"output_tokens": tokens, "output_token_times": times}},
        **more,
    }  # fmt: skip
