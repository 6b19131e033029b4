"""Read GuideLLM 0.8 files with nothing but the standard library: the second route of some tests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from tests.unit.runs import make_run

from gpuverdict.schema import Run


def raw_levels(path: Path) -> list[dict[str, Any]]:
    """One dict a level: streams, t0, window, and (status, start, first, last, tokens) rows."""
    with gzip.open(path) as file:
        document = json.load(file)
    levels = []
    for benchmark in document["benchmarks"]:
        rows = []
        for key, status in (
            ("successful", "ok"),
            ("incomplete", "incomplete"),
            ("errored", "error"),
        ):
            for request in benchmark["requests"][key] or []:
                t = request["info"]["timings"]
                rows.append(
                    {
                        "status": status,
                        "start": t["request_start"],
                        "first": t["first_token_iteration"],
                        "last": t["last_token_iteration"],
                        "tokens": request["output_metrics"]["text_tokens"] or t["token_iterations"],
                        "input": request["input_metrics"]["text_tokens"],
                        "id": request["response_id"],
                    }
                )
        levels.append(
            {
                "streams": benchmark["config"]["strategy"].get("streams", 1),
                "end": benchmark["scheduler_metrics"]["measure_end_time"],
                "rows": rows,
            }
        )
    return levels


def as_run(level: dict[str, Any]) -> Run:
    """The same rows as a canonical run."""
    rows = [r for r in level["rows"] if r["start"] is not None]
    t0 = min(r["start"] for r in rows)

    def since(moment: float | None) -> float | None:
        return None if moment is None else moment - t0

    return make_run(
        {
            "request_id": [r["id"] for r in rows],
            "status": [r["status"] for r in rows],
            "start_s": [since(r["start"]) for r in rows],
            "first_token_s": [since(r["first"]) for r in rows],
            "last_token_s": [since(r["last"]) for r in rows],
            "output_tokens": [r["tokens"] if r["status"] == "ok" else None for r in rows],
            "n_chunks": [r["tokens"] for r in rows],
            "input_tokens": [r["input"] for r in rows],
        },
        load_kind="closed",
        max_concurrency=level["streams"],
        measure_end_s=level["end"] - t0,
        t0_epoch_s=t0,
    )
