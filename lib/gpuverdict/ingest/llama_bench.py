"""llama.cpp `llama-bench`: JSON, JSON Lines, CSV or the printed markdown table.

One row tests prompt processing, generation, or both, at one stream; each of its samples is a run,
so that repeats can be tested, marked `as reported`. CSV and markdown hold means only. Seen of build
4227c9b; its SQL output is not read. Tokens that stood in the context before a test (`n_depth`)
belong to its input length: the same test at another depth is another workload.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from typing import Any

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.values import number, positive, text, whole
from gpuverdict.schema import Run

__all__ = ["read", "why_not"]

_KEYS = ("model_type", "n_prompt", "n_gen", "avg_ns", "avg_ts")
_TABLE_ROW = re.compile(r"^\|(.+)\|\s*$")
_TEST = re.compile(r"(pp|tg)\s*(\d+)(?:\s*\+\s*tg\s*(\d+))?(?:\s*@\s*d(\d+))?$")


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not from llama-bench; None when it is."""
    if document.shape == "json":
        value = document.first
        row = value[0] if isinstance(value, list) and value else value
        if not isinstance(row, dict):
            return "not a JSON list of objects"
        missing = [key for key in _KEYS if key not in row]
        return f"no {missing[0]!r} key" if missing else None
    if document.shape != "text":
        return "neither JSON nor text"
    head = document.data[:8192].decode("utf-8", "replace")
    if head.lstrip().startswith("build_commit,") or ",avg_ts,stddev_ts" in head.split("\n", 1)[0]:
        return None
    lines = [line for line in head.splitlines() if _TABLE_ROW.match(line)]
    if lines and {"model", "test", "t/s"} <= set(_cells(lines[0])):
        return None
    return "neither its CSV header nor its table"


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read each sample (or, without samples, each row) as a run without requests.

    Raises
    ------
    LogFormatError
        For a row of another kind.
    """
    said = document.records().cautions if document.shape == "json" else ()
    runs = []
    for index, row in enumerate(_rows(document)):
        where = f"{document.name}: row {index + 1}"
        if not isinstance(row, Mapping) or "n_prompt" not in row:
            raise LogFormatError(
                where, found="a row of another kind", expected="a llama-bench test"
            )
        samples = row.get("samples_ns")
        times = [positive(sample) for sample in samples] if isinstance(samples, list) else []
        if not times:
            times = [positive(row.get("avg_ns"))]
        if any(time is None for time in times):
            raise LogFormatError(where, found="a time that is no number above 0",
                                 expected="nanoseconds")  # fmt: skip
        for sample, time in enumerate(times):
            runs.append(
                build_run(
                    document,
                    part=f"{index}.{sample}",
                    source_format="llama_bench",
                    columns={},
                    info=_facts(row, sample if len(times) > 1 else None, options),
                    reported=_figures(row, (time or 0.0) * 1e-9, where),
                    cautions=said,
                )
            )
    if not runs:
        raise LogFormatError(document.name, found="no test", expected="at least one row")
    return runs


def _rows(document: Document) -> list[Any]:
    if document.shape == "json":
        values = document.records().values
        return [row for value in values for row in (value if isinstance(value, list) else [value])]
    content = document.text
    if content.lstrip().startswith("|") or "\n|" in content[:8192]:
        return _markdown(content, document.name)
    try:
        return list(csv.DictReader(io.StringIO(content.lstrip()), strict=True))
    except csv.Error as problem:
        raise LogFormatError(document.name, found=f"a broken CSV ({problem})") from None


def _cells(line: str) -> list[str]:
    match = _TABLE_ROW.match(line)
    return [cell.strip() for cell in match[1].split("|")] if match else []


def _markdown(content: str, name: str) -> list[dict[str, Any]]:
    header: list[str] = []
    rows: list[dict[str, Any]] = []
    for number_, line in enumerate(content.splitlines(), 1):
        cells = _cells(line)
        if not cells or set("".join(cells)) <= set("-: "):
            continue
        if "test" in cells and "t/s" in cells:
            header = cells
            continue
        if len(cells) != len(header):
            continue
        row = dict(zip(header, cells, strict=True))
        match = _TEST.match(row["test"])
        rate = positive(row["t/s"].split("±")[0].strip())
        if match is None or rate is None:
            raise LogFormatError(f"{name}:{number_}", found=f"the test {row['test']!r:.40}",
                                 expected="such as pp512 or tg128")  # fmt: skip
        kind, size, more, depth = match.groups()
        n_prompt = int(size) if kind == "pp" else 0
        n_gen = int(size) if kind == "tg" else int(more or 0)
        rows.append({
            "model_type": row["model"], "n_prompt": n_prompt, "n_gen": n_gen,
            "n_depth": int(depth or 0), "avg_ns": (n_prompt + n_gen) / rate * 1e9,
        })  # fmt: skip
    return rows


def _facts(row: Mapping[str, Any], sample: int | None, options: ReadOptions) -> dict[str, Any]:
    build = text(row.get("build_commit"))
    return {
        "tool": "llama-bench",
        "tool_version": options.client_version or build,
        "engine": "llama.cpp",
        "engine_version": build,
        "model_id": text(row.get("model_type")),
        "gpu_label": text(row.get("gpu_info")) or None,
        "kv_dtype": text(row.get("type_k")),
        "load_kind": "offline",
        "rate_unbounded": True,
        "max_concurrency": 1,
        "repeat_no": None if sample is None else sample + 1,
        "requested_input_tokens": (
            (whole(row.get("n_prompt")) or 0) + (whole(row.get("n_depth")) or 0) or None
        ),
        "requested_output_tokens": whole(row.get("n_gen")) or None,
    }


def _figures(row: Mapping[str, Any], time_s: float, where: str) -> dict[str, float | None]:
    n_prompt, n_gen = number(row.get("n_prompt")), number(row.get("n_gen"))
    if n_prompt is None or n_gen is None or n_prompt + n_gen <= 0:
        raise LogFormatError(
            where, found="no prompt or generated tokens", expected="n_prompt, n_gen"
        )
    if n_gen == 0:
        return {"prefill_tokens_per_s.value": n_prompt / time_s, "ttft_s.mean": time_s,
                "ttft_s.p50": time_s, "input_tokens.sum": n_prompt}  # fmt: skip
    if n_prompt == 0:
        step = time_s / n_gen
        return {"decode_tokens_per_s.value": 1 / step, "decode_step_s.value": step,
                "tpot_s.mean": step, "tpot_s.p50": step, "output_tokens_per_s.value": 1 / step,
                "output_tokens.sum": n_gen}  # fmt: skip
    return {"e2e_s.mean": time_s, "e2e_s.p50": time_s, "output_tokens_per_s.value": n_gen / time_s,
            "input_tokens.sum": n_prompt, "output_tokens.sum": n_gen}  # fmt: skip
