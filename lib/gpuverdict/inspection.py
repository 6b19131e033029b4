"""What each file is: dialect, version, runs, rows by status, definitions in force, cautions.

The answer to `gpuverdict inspect`, as plain values for `--json` and as text for a person, and the
draft of a `campaign.yaml` for a folder nobody has described yet.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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

__all__ = ["draft_campaign", "inspect_paths", "inspection_text", "propose_columns"]

_DEFINITIONS = ("ttft_def", "e2e_def", "gap_kind", "output_tokens_source", "token_time_source",
                "clock", "t0_quality")  # fmt: skip
_COUNTS = ("n_rows", "n_ok", "n_error", "n_cancelled", "n_incomplete", "n_empty")
# What a folder of measurements also holds and nobody measured.
_NOT_LOGS = {".md", ".html", ".png", ".svg", ".pdf", ".ipynb", ".py", ".sh", ".parquet.tmp"}
_SKIPPED_FOLDERS = {".git", ".venv", "__pycache__", ".gpuverdict", "reports"}
# Runs of one stream that ask for so few tokens measure prefill.
_PROBE_TOKENS = 8
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
    if len(proposal) > 1:
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
        lines.append(sentence("inspect_inventory", lang, gpus=len(row["gpus"]), names=named))
    elif "kind" in row:
        gpus, span = len(row.get("gpus", ())), row.get("span_s") or 0.0
        samples = row.get("samples", 0)
        lines.append(sentence("inspect_trace", lang, samples=samples, gpus=gpus, span_s=span))
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


@dataclass(slots=True)
class _Found:
    """What a sub-folder holds, for the draft of its arm."""

    logs: list[tuple[str, dict[str, Any]]]
    traces: list[str]
    inventory: list[str]
    gpus: dict[str, str | None]
    metrics: list[str]


def draft_campaign(folder: str | Path, options: ReadOptions | None = None) -> str:
    """Draft a `campaign.yaml` for a folder: one arm for each sub-folder that holds logs.

    What no log says stands there as a comment to be filled in.

    Raises
    ------
    LogFormatError
        For something that is no folder, or a folder without a readable log.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise LogFormatError(folder, found="no folder", expected="a folder of logs and traces")
    arms = _sorted_finds(folder, inspect_paths([folder], options)["files"])
    if not arms:
        raise LogFormatError(folder, found="no readable benchmark log", expected="at least one")
    runs = [run for found in arms.values() for _, row in found.logs for run in row["runs"]]
    lines = [
        f"# {sentence('draft_save')}",
        f"campaign: {_scalar(folder.resolve().name or 'campaign')}",
        f"title: {_scalar(sentence('draft_title'))}",
        f"# time_zone: UTC   # {sentence('draft_time_zone')}",
        *_draft_workload(runs),
        "arms:",
    ]
    for name, found in arms.items():
        lines.extend(_draft_arm(name, found))
    names = list(arms)
    if len(names) > 1:
        lines.append("comparisons:")
        lines.append(f"  - {{baseline: {_scalar(names[0])}, candidate: {_scalar(names[1])}}}")
    else:
        lines.append(f"# comparisons: {sentence('draft_one_arm')}")
    return "\n".join(lines) + "\n"


def _sorted_finds(folder: Path, files: Sequence[dict[str, Any]]) -> dict[str, _Found]:
    groups: dict[str, _Found] = defaultdict(lambda: _Found([], [], [], {}, []))
    for row in files:
        relative = Path(row["path"].partition("!")[0]).relative_to(folder).as_posix()
        arm = relative.partition("/")[0] if "/" in relative else "arm"
        if row["dialect"] is None:
            continue
        if "runs" in row:
            groups[arm].logs.append((relative, row))
        elif row["kind"] == "trace":
            groups[arm].traces.append(relative)
        elif row["kind"] == "inventory":
            groups[arm].inventory.append(relative)
            names = row.get("names") or [None] * len(row["gpus"])
            if len(names) == len(row["gpus"]):
                groups[arm].gpus |= dict(zip(row["gpus"], names, strict=True))
        else:
            groups[arm].metrics.append(relative)
    return {name: found for name, found in groups.items() if found.logs}


def _draft_workload(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    kinds = {next(iter(run["level"]), "") for run in runs if run["level"]}
    load = "open" if kinds == {"rate_requests_per_s"} else "closed"
    models = {run["model_id"] for run in runs} - {None}
    model = _scalar(models.pop()) if len(models) == 1 else "model"
    lengths = []
    for key in ("input_tokens", "output_tokens"):
        asked = [run[f"requested_{key}"] for run in runs if not _is_probe({"runs": [run]})]
        if asked and asked[0] is not None and set(asked) == {asked[0]}:
            lengths.append(f"{key}: {asked[0]}, ")
    comment = "" if len(lengths) == 2 else f"   # {sentence('draft_workload')}"
    return [
        f"model: {{name: {model}}}   # {sentence('draft_model')}",
        f"workload: {{{''.join(lengths)}load: {load}}}{comment}",
    ]


def _draft_arm(name: str, found: _Found) -> list[str]:
    lines = [f"  {_scalar(name)}:"]
    gpu = next((name for name in found.gpus.values() if name), None)
    comment = "" if gpu else f"   # {sentence('draft_gpu')}"
    lines.append(f"    gpu: {_scalar(gpu or 'A100 80GB PCIe')}{comment}")
    lines.append(f"    gpus: {max(1, len(found.gpus))}")
    records = {path for path, row in found.logs if any(run["n_rows"] for run in row["runs"])}
    # A summary beside its records is the same run twice.
    kept = [(path, row) for path, row in found.logs if path in records or not records]
    probes = [path for path, row in kept if _is_probe(row)]
    main = [(path, row) for path, row in kept if path not in probes] or kept
    several = any(len(row["runs"]) > 1 for _, row in main)
    role = "sweeps" if several else "files"
    lines.append(f"    {role}: [{', '.join(_scalar(path) for path, _ in main)}]")
    if len(main) < len(kept):
        lines.append(f"    prefill_probe: [{', '.join(map(_scalar, probes))}]")
    for key, listed in (
        ("traces", found.traces),
        ("inventory", found.inventory),
        ("server_metrics", found.metrics),
    ):
        if listed:
            lines.append(f"    {key}: [{', '.join(_scalar(path) for path in listed)}]")
    lines.append(f"    engine: vllm   # {sentence('draft_engine')}")
    lines.append("    precision: bf16")
    return lines


def _is_probe(row: Mapping[str, Any]) -> bool:
    """Say whether a file probes prefill alone: one stream, hardly any output."""
    return bool(row["runs"]) and all(
        run["level"] == {"concurrency": 1}
        and run["requested_output_tokens"] is not None
        and run["requested_output_tokens"] <= _PROBE_TOKENS
        for run in row["runs"]
    )


_PLAIN = re.compile(r"[A-Za-z][\w./@+-]*(?: [\w./@+-]+)*")
_YAML_WORDS = {"yes", "no", "true", "false", "null", "on", "off", "y", "n"}


def _scalar(text: str) -> str:
    text = _printable(text)
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
