"""What each file is: dialect, version, runs, rows by status, definitions in force, cautions.

The answer to `gpuverdict inspect`, as plain values for `--json` and as text for a person.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions, open_documents
from gpuverdict.ingest.open_proposal import propose_columns
from gpuverdict.recognise import read_document, recognise
from gpuverdict.schema import Run, Trace, run_level
from gpuverdict.telemetry.server_requests import UNVERIFIED
from gpuverdict.text import sentence

__all__ = ["inspect_paths", "inspection_text", "propose_columns"]

_DEFINITIONS = ("ttft_def", "e2e_def", "gap_kind", "output_tokens_source", "token_time_source",
                "clock", "t0_quality")  # fmt: skip
_FACTS = ("tool", "tool_version", "engine", "engine_version", "precision", "kv_dtype", "tp")
_COUNTS = ("n_rows", "n_ok", "n_error", "n_cancelled", "n_incomplete", "n_empty")
# What a folder of measurements also holds and nobody measured.
_NOT_LOGS = {".md", ".html", ".png", ".svg", ".pdf", ".ipynb", ".py", ".sh", ".parquet.tmp"}
_SKIPPED_FOLDERS = {".git", ".venv", "__pycache__", ".gpuverdict"}
# A folder of a rendered report, whatever it is called: inference-perf writes its logs to `reports`.
_RENDERED = {"verdicts.json", "state.json"}
_SWEEP_LEFTOVER = re.compile(r"(^warmup\.json$)|(\.failure\.json$)")


def inspect_paths(
    paths: Iterable[str | Path], options: ReadOptions | None = None
) -> dict[str, Any]:
    """Say what files are, as the values `inspect --json` prints.

    Parameters
    ----------
    paths : iterable of path
        Files, or folders, which are walked.
    options : ReadOptions, optional
        What the files do not say themselves.

    Returns
    -------
    dict
        `{"files": [...]}` with one entry a file or archive member: `path`, `dialect`,
        `tool_version` and `runs`; `kind`, `samples`, `gpus` and `span_s` in place of `runs` for a
        trace. An unknown file found in a folder has the dialect None and a `reason`; an unknown
        table also `columns`, a map to confirm.

    Raises
    ------
    LogFormatError
        For a file named directly that is missing, unreadable or of no known kind.
    """
    options = options or ReadOptions()
    files: list[dict[str, Any]] = []
    for path in map(Path, paths):
        if path.is_dir():
            for found in _walk(path):
                files.extend(_inspect_found(found, options))
        else:
            files.extend(_inspect_named(path, options))
    return {"files": files}


def _walk(folder: Path) -> list[Path]:
    found: list[Path] = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED_FOLDERS and f[:1] != ".")
        if _RENDERED & set(names):
            folders.clear()
            continue
        sweep = any(re.fullmatch(r"run=\d+\.json(\.gz)?", name) for name in names)
        for name in sorted(names):
            if name[:1] == "." or Path(name).suffix.lower() in _NOT_LOGS:
                continue
            # A sweep's summary repeats its runs; its warm-up and failures are no measurements.
            if sweep and (name == "summary.json" or _SWEEP_LEFTOVER.search(name)):
                continue
            found.append(Path(root) / name)
    return found


def _inspect_found(path: Path, options: ReadOptions) -> list[dict[str, Any]]:
    try:
        documents = open_documents(path, options)
    except LogFormatError as problem:
        return [_unknown(path.as_posix(), problem)]
    rows = []
    for document in documents:
        shown = _shown(path, document)
        try:
            rows.append(_inspect_document(document, shown, options))
        except LogFormatError as problem:
            rows.append(_unknown(shown, problem, document))
    return rows


def _inspect_named(path: Path, options: ReadOptions) -> list[dict[str, Any]]:
    rows = []
    for document in open_documents(path, options):
        shown = _shown(path, document)
        try:
            rows.append(_inspect_document(document, shown, options))
        except LogFormatError as problem:
            row = _unknown(shown, problem, document)
            # A table with measured columns is worth a proposal; anything else is an error.
            if "columns" not in row:
                raise
            rows.append(row)
    return rows


def _shown(path: Path, document: Document) -> str:
    _, _, member = document.name.partition("!")
    return f"{path.as_posix()}!{member}" if member else path.as_posix()


def _unknown(
    shown: str, problem: LogFormatError, document: Document | None = None
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "path": shown, "dialect": None, "tool_version": None, "runs": [], "reason": str(problem),
        "found": problem.found,
    }  # fmt: skip
    proposal = propose_columns(document) if document is not None else {}
    # Where every name is ours already, the fault is in a cell and no map helps.
    if len(proposal) > 1 and any(name != to["to"] for name, to in proposal.items()):
        row["columns"] = proposal
    return row


def _inspect_document(document: Document, shown: str, options: ReadOptions) -> dict[str, Any]:
    dialect = recognise(document, options)
    items = read_document(document, options)
    row: dict[str, Any] = {"path": shown, "dialect": dialect.name, "tool_version": None}
    runs = [item for item in items if isinstance(item, Run)]
    if runs or dialect.kind == "requests":
        versions = {run.info["tool_version"] for run in runs}
        row["tool_version"] = versions.pop() if len(versions) == 1 else None
        row["runs"] = [_run_row(run) for run in runs]
        return row
    row["kind"] = dialect.kind
    for item in items:
        row |= _trace_row(item) if isinstance(item, Trace) else _frame_row(item)
    return row


def _run_row(run: Run) -> dict[str, Any]:
    info = run.info
    return {
        "run_id": info["run_id"],
        **{name: info[name] for name in _COUNTS},
        "level": run_level(info),
        "model_id": info["model_id"],
        "requested_input_tokens": info["requested_input_tokens"],
        "requested_output_tokens": info["requested_output_tokens"],
        "facts": {name: info[name] for name in _FACTS},
        "definitions": {name: info[name] for name in _DEFINITIONS},
        "dropped": dict(info["dropped"] or {}),
        "unverified": bool(info["unverified"]),
        "cautions": [item.as_dict() for item in run.cautions],
    }


def _trace_row(trace: Trace) -> dict[str, Any]:
    samples = trace.samples
    elapsed = samples["elapsed_s"].drop_nulls()
    times = elapsed.to_numpy()
    span = float(times.max() - times.min()) if times.size else None
    keys = samples.select("gpu_uuid", "gpu_index").unique(maintain_order=True)
    return {
        "samples": samples.height,
        "gpus": [
            uuid if uuid is not None else index
            for uuid, index in keys.iter_rows()
            if uuid is not None or index is not None
        ],
        "span_s": span,
        "cautions": [item.as_dict() for item in trace.cautions],
    }


def _frame_row(frame: pl.DataFrame) -> dict[str, Any]:
    if "gpu_uuid" in frame.columns:
        names = frame["name"].drop_nulls().to_list()
        return {"gpus": frame["gpu_uuid"].drop_nulls().to_list(), "names": names, "cautions": []}
    row: dict[str, Any] = {"samples": frame.height, "cautions": []}
    if "source" in frame.columns:
        row["unverified"] = bool(frame["source"].is_in(UNVERIFIED).any())
    return row


def inspection_text(found: Mapping[str, Any], lang: str = "en") -> str:
    """Print what `inspect_paths` found for a person, one block a file."""
    lines: list[str] = []
    for row in found["files"]:
        lines.extend(_file_lines(row, lang))
    return "\n".join(lines)


def _file_lines(row: Mapping[str, Any], lang: str) -> list[str]:
    path = _printable(row["path"])
    if row["dialect"] is None:
        lines = [sentence("inspect_unknown", lang, path=path, reason=_printable(row["found"]))]
        if row.get("columns"):
            lines.append(sentence("inspect_columns", lang))
            lines.extend(
                f"    {name!r}: {{to: {to['to']}, unit: {to['unit']}}}"
                for name, to in row["columns"].items()
            )
        return lines
    version = _printable(row["tool_version"] or sentence("inspect_no_version", lang))
    lines = [sentence("inspect_file", lang, path=path, dialect=row["dialect"], version=version)]
    for run in row.get("runs", ()):
        level = ", ".join(f"{kind} {value:g}" for kind, value in (run["level"] or {}).items())
        lines.append(
            sentence(
                "inspect_run", lang, run_id=run["run_id"][:12],
                level=level or sentence("inspect_no_level", lang),
                **{name: run[name] for name in _COUNTS},
            )
        )  # fmt: skip
        known = {name: value for name, value in run["definitions"].items() if value}
        lines.append("    " + ", ".join(f"{name} {value}" for name, value in known.items()))
        lines.extend(_caution_lines(run["cautions"]))
    if row.get("kind") == "inventory":
        named = _printable(", ".join(row.get("names", ())))
        # A topology names links, no card.
        if row["gpus"]:
            lines.append(sentence("inspect_inventory", lang, gpus=len(row["gpus"]), names=named))
    elif "kind" in row:
        gpus, span = len(row.get("gpus", ())), row.get("span_s") or 0.0
        samples = row.get("samples", 0)
        # Records of a server or a host hold no GPU, and without times no span.
        code = "inspect_trace" if gpus else "inspect_records"
        lines.append(sentence(code, lang, samples=samples, gpus=gpus, span_s=span))
        lines.extend(_caution_lines(row.get("cautions", ())))
    return lines


def _caution_lines(cautions: Sequence[Mapping[str, str]]) -> list[str]:
    return [
        f"    ! {_printable(item['message'])} {_printable(item['remedy'])}".rstrip()
        for item in cautions
    ]


def _printable(text: Any) -> str:
    # Names and texts of logs may hold control characters that would steer a terminal.
    return "".join(ch if ch.isprintable() else "?" for ch in str(text))
