"""Time the reading of large logs against a bare parse of the same bytes; prints a ratio table.

Each figure is the best of a few runs in this process, both sides in turn, on files made here:
20,000 requests of 199 gaps, about 88 MB. Nothing is asserted: `make bench` prints, a person judges.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib"))

from gpuverdict.recognise import read_run

N_REQUESTS, N_GAPS, REPEATS = 20_000, 199, 5
GOAL = 2.0


def vllm_log(path: Path) -> None:
    """Write a detailed vLLM result as vLLM does: one object on one line."""
    draws = np.random.default_rng(1)
    gaps = np.round(draws.lognormal(-4, 0.2, (N_REQUESTS, N_GAPS)), 16)
    ttft = draws.lognormal(-2, 0.5, N_REQUESTS)
    record = {
        "date": "20261201-020425", "endpoint_type": "openai", "backend": "openai", "label": None,
        "model_id": "demo-7b", "tokenizer_id": "demo-7b", "num_prompts": N_REQUESTS,
        "request_rate": "inf", "burstiness": 1.0, "max_concurrency": 64, "duration": 3600.0,
        "completed": N_REQUESTS, "failed": 0, "total_input_tokens": 512 * N_REQUESTS,
        "total_output_tokens": 200 * N_REQUESTS, "input_lens": [512] * N_REQUESTS,
        "output_lens": [200] * N_REQUESTS, "ttfts": ttft.tolist(), "itls": gaps.tolist(),
        "start_times": np.sort(draws.uniform(1000, 4600, N_REQUESTS)).tolist(),
        "generated_texts": [""] * N_REQUESTS, "errors": [""] * N_REQUESTS,
    }  # fmt: skip
    path.write_text(json.dumps(record))


def aiperf_log(path: Path) -> None:
    """Write AIPerf records: one request a line, values with their units."""
    draws = np.random.default_rng(2)
    start = 1_796_090_166_000_000_000
    with path.open("w") as stream:
        for i in range(N_REQUESTS):
            gaps = np.round(draws.lognormal(2.3, 0.3, N_GAPS), 14)
            first = float(draws.lognormal(5, 0.5))
            begin = start + i * 180_000_000
            latency = first + float(gaps.sum())
            end = begin + int(latency * 1e6)
            record = {
                "metadata": {
                    "session_num": i, "x_request_id": f"{i:032x}", "request_start_ns": begin,
                    "request_ack_ns": begin + 1_000_000, "request_end_ns": end,
                    "worker_id": "worker_1", "record_processor_id": "processor_1",
                    "benchmark_phase": "profiling",
                    "was_cancelled": False,
                },
                "metrics": {
                    "request_latency": {"value": latency, "unit": "ms"},
                    "time_to_first_token": {"value": first, "unit": "ms"},
                    "output_sequence_length": {"value": N_GAPS + 1, "unit": "tokens"},
                    "input_sequence_length": {"value": 512, "unit": "tokens"},
                    "inter_chunk_latency": {"value": gaps.tolist(), "unit": "ms"},
                },
            }  # fmt: skip
            stream.write(json.dumps(record) + "\n")


def bare_ndjson(path: Path) -> None:
    """Read only what a report needs, with no meaning given to any of it."""
    number = pl.Struct({"value": pl.Float64, "unit": pl.String})
    metadata = pl.Struct({"request_start_ns": pl.Int64, "request_end_ns": pl.Int64})
    metrics = pl.Struct(
        {
            "time_to_first_token": number,
            "request_latency": number,
            "output_sequence_length": number,
            "inter_chunk_latency": pl.Struct({"value": pl.List(pl.Float64), "unit": pl.String}),
        }
    )
    pl.read_ndjson(path, schema={"metadata": metadata, "metrics": metrics})


def to_parquet(path: Path) -> None:
    """Read a log to canonical frames and write them."""
    for run in read_run(path):
        run.requests.write_parquet(path.with_suffix(".requests.parquet"), compression="lz4")
        run.gaps.write_parquet(path.with_suffix(".gaps.parquet"), compression="lz4")


def best(tasks: tuple[Callable[[], object], ...]) -> list[tuple[float, float]]:
    """Time tasks in turn: the best wall time and the best processor time of each."""
    found = [(float("inf"), float("inf"))] * len(tasks)
    for _ in range(REPEATS):
        for at, task in enumerate(tasks):
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            task()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            found[at] = (min(found[at][0], wall), min(found[at][1], cpu))
    return found


def main() -> None:
    """Print the table: the ratio of wall times, and of processor times for a busy machine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vllm, aiperf = folder / "vllm.json", folder / "profile_export.jsonl"
        vllm_log(vllm)
        aiperf_log(aiperf)
        rows = [
            ("vLLM detailed JSON", vllm, "orjson.loads", lambda: orjson.loads(vllm.read_bytes())),
            ("AIPerf JSONL", aiperf, "polars ndjson, narrow schema", lambda: bare_ndjson(aiperf)),
        ]
        print(f"{N_REQUESTS:,} requests x {N_GAPS} gaps, to canonical Parquet")
        heads = f"{'MB':>7}{'bare s':>9}{'ours s':>9}{'ratio':>8}{'CPU':>7}{'goal':>7}"
        print(f"{'log':22}{heads}  bare is")
        for label, path, against, bare in rows:
            base, ours = best((bare, lambda path=path: to_parquet(path)))
            size = path.stat().st_size / 1e6
            figures = f"{size:7.1f}{base[0]:9.3f}{ours[0]:9.3f}{ours[0] / base[0]:8.2f}"
            print(f"{label:22}{figures}{ours[1] / base[1]:7.2f}{GOAL:7.1f}  {against}")


if __name__ == "__main__":
    main()
