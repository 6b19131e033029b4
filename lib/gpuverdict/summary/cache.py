"""A campaign's summary kept in its store, found again while nothing it rests on has changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from gpuverdict.measured import Measured
from gpuverdict.steady import Window
from gpuverdict.store import code_digest, dump_cautions, load_cautions

__all__ = ["PLAIN_FACTS", "load", "save", "summary_folder"]


# Fields of `RunFacts` that JSON holds as they are.
PLAIN_FACTS = ("bins", "late_p99_s", "ttft_p50_s", "tpot_p50_s", "cached_ratio",
               "tokens_per_chunk", "littles_streams", "e2e_parts_s")  # fmt: skip


def summary_folder(measured: Measured) -> Path:
    """Return the folder of a campaign's summary: named by all that it depends on."""
    digest = hashlib.sha256(code_digest().encode())
    for source in measured.campaign.read_from:
        digest.update(source.read_bytes())
    for run in measured.runs:
        line = (run.arm, run.workload, run.level_key, run.repeat_no, run.run_id,
                run.stored.folder.name, run.sweep_id)  # fmt: skip
        digest.update(repr(line).encode())
    digest.update(repr(measured.inputs).encode())
    return measured.store / f"summary-{digest.hexdigest()}"


def load(
    folder: Path, measured: Measured
) -> tuple[pd.DataFrame, dict[str, dict[str, object]]] | None:
    """Read the long frame and the facts of each run; None where they are not there, or damaged."""
    if not (folder / "facts.json").is_file():
        return None
    try:
        return _frame(folder), _facts(folder, measured)
    except (OSError, ValueError, KeyError, TypeError):
        shutil.rmtree(folder, ignore_errors=True)
        return None


def _frame(folder: Path) -> pd.DataFrame:
    # One file: pandas' own reader would import the machinery for folders of them first.
    frame = pq.ParquetFile(folder / "frame.parquet").read().to_pandas()
    frame["cautions"] = [list(codes) for codes in frame["cautions"]]
    return frame


def _facts(folder: Path, measured: Measured) -> dict[str, dict[str, object]]:
    """Read the facts of each run as keyword arguments of `RunFacts`."""
    stored = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    facts: dict[str, dict[str, object]] = {}
    for run in measured.runs:
        row = stored[run.key]
        facts[run.key] = {
            "run": run,
            "window": Window(
                **{**row["window"], "cautions": load_cautions(row["window"]["cautions"])}
            ),
            "n_by_status": row["n_by_status"],
            "cautions": load_cautions(row["cautions"]),
            "input_lengths": {int(k): v for k, v in row["input_lengths"].items()},
            "output_lengths": {int(k): v for k, v in row["output_lengths"].items()},
            **{name: row[name] for name in PLAIN_FACTS},
        }
    return facts


def save(folder: Path, frame: pd.DataFrame, facts: dict[str, dict[str, object]]) -> None:
    """Write a summary; of two writers the first one's stays.

    Where nothing can be written nothing is kept: the next call computes it again.
    """
    try:
        work = Path(tempfile.mkdtemp(prefix=".summary-", dir=folder.parent))
    except OSError:
        return
    try:
        frame.to_parquet(work / "frame.parquet", index=False)
        text = json.dumps(facts, allow_nan=False)
        (work / "facts.json").write_text(text, encoding="utf-8")
        work.chmod(0o755)
        os.rename(work, folder)
    except OSError:
        shutil.rmtree(work, ignore_errors=True)


def dump_window(window: Window) -> dict[str, object]:
    """Return a window as plain values."""
    return {
        "start_s": window.start_s, "end_s": window.end_s, "kind": window.kind,
        "n_sent": window.n_sent, "n_dropped": window.n_dropped, "reasons": dict(window.reasons),
        "cautions": dump_cautions(window.cautions),
    }  # fmt: skip
