"""Read vLLM bench logs of the mock clients with nothing but the standard library and numpy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
from tests.unit.runs import make_run

from gpuverdict.schema import Run

CLIENTS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "clients"


def vllm_run(folder: Path) -> Run:
    """The log of one case as a canonical run."""
    paths = [p for p in sorted(folder.glob("*.json*")) if p.name != "manifest.json"]
    path = next(p for p in paths if "truth" not in p.name)
    data = path.read_bytes()
    log = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    start = np.array(log["start_times"]) - min(log["start_times"])
    first = start + np.array(log["ttfts"])
    last = [f + sum(gaps) for f, gaps in zip(first, log["itls"], strict=True)]
    return make_run(
        {
            "start_s": start,
            "first_token_s": first,
            "last_token_s": last,
            "input_tokens": log["input_lens"],
            "output_tokens": log["output_lens"],
        },
        gaps=dict(enumerate(log["itls"])),
        run_id=folder.name,
        load_kind="closed",
        max_concurrency=log["max_concurrency"],
    )


def client_truth(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """True parameters of a case, and the server's row a request."""
    facts = json.loads((folder / "manifest.json").read_text())
    with gzip.open(folder / "truth_server.jsonl.gz", "rt") as file:
        return facts["truth_params"], [json.loads(line) for line in file]
