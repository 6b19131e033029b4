"""What a folder holds, sorted into arms: logs, probes, traces, inventories, the server's side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuverdict.draft.patterns import arm_stem, as_pattern, has_fields
from gpuverdict.errors import LogFormatError
from gpuverdict.files import open_documents
from gpuverdict.telemetry.server_log import fatal_event, find_events
from gpuverdict.text import sentence

__all__ = ["Draft", "find_arms", "own_levels"]

# Runs of one stream that ask for so few tokens measure prefill.
_PROBE_TOKENS = 8
# An engine's output worth reading for what stopped it; larger ones are left to the campaign.
_LOG_BYTES = 64 * 2**20


@dataclass(slots=True, kw_only=True)
class Draft:
    """One arm to be: paths relative to the folder, rows as `inspect` prints them."""

    logs: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    probes: list[str] = field(default_factory=list)
    beside: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    gpus: dict[str, tuple[str | None, str]] = field(default_factory=dict)
    zoneless: list[str] = field(default_factory=list)
    fatal: dict[str, str] = field(default_factory=dict)

    def runs(self) -> list[tuple[str, Mapping[str, Any]]]:
        """List (path, run) of the main logs."""
        return [(path, run) for path, row in self.logs for run in row["runs"]]

    def served(self) -> list[float]:
        """List the levels of the runs in which every request succeeded."""
        whole = [run for _, run in self.runs() if run["n_ok"] and not run["n_error"]]
        return [float(v) for run in whole for v in (run["level"] or {}).values()]

    def levels(self) -> set[float]:
        """Collect the levels the logs state."""
        return {float(v) for _, run in self.runs() for v in (run["level"] or {}).values()}


def _is_probe(row: Mapping[str, Any]) -> bool:
    """Say whether a file probes prefill alone: one stream, hardly any output."""
    return bool(row["runs"]) and all(
        run["level"] == {"concurrency": 1}
        and run["requested_output_tokens"] is not None
        and run["requested_output_tokens"] <= _PROBE_TOKENS
        for run in row["runs"]
    )


def find_arms(
    folder: Path, files: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Draft], list[tuple[str, str]]]:
    """Sort what `inspect_paths` found in a folder into arms.

    Parameters
    ----------
    folder : Path
    files : sequence
        Its `files`.

    Returns
    -------
    arms : dict
        By name. A first-level folder is an arm, level and repeat taken out of its name; one that
        holds several series of logs (`m32-r1, m32-r2, m34-r1, ...`) is several.
    unread : list of (path, reason)
        What no reader knows, engine logs that say nothing among them.
    """
    groups: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    beside: list[tuple[str, str, Mapping[str, Any]]] = []
    unread: list[tuple[str, str]] = []
    detailed = {_top(p) for row in files if (p := _shown(folder, row)) and _has_rows(row)}
    for row in files:
        path = _shown(folder, row)
        if row["dialect"] is None:
            quote = _fatal_line(folder / path)
            if path == "campaign.yaml":
                continue
            if quote is None:
                unread.append((path, str(row["found"])))
            else:
                beside.append((path, "server_logs", {"quote": quote}))
        elif "runs" in row:
            if not _has_rows(row) and _top(path) in detailed:
                # A summary beside its records is the same run twice.
                unread.append((path, sentence("draft_summary")))
            elif _has_level(path, row):
                groups[_home(path, row)].append((path, row))
            else:
                unread.append((path, sentence("draft_no_level")))
        else:
            beside.append((path, str(row["kind"]), row))
    arms: dict[str, Draft] = {}
    homes: dict[str, list[str]] = {}
    for home, rows in groups.items():
        split = _series(home, rows)
        for stem, held in split.items():
            alone = home == "" and len(split) == 1
            own = folder.resolve().name if alone else _name(home, stem, len(split) > 1, arms)
            name = own if own not in arms else f"{own}-2"
            arms[name] = _sorted_logs(held)
            homes.setdefault(home, []).append(name)
    for path, kind, row in beside:
        _lay_beside(path, kind, row, arms, homes, unread)
    return arms, unread


def _shown(folder: Path, row: Mapping[str, Any]) -> str:
    return Path(str(row["path"]).partition("!")[0]).relative_to(folder).as_posix()


def _top(path: str) -> str:
    return path.partition("/")[0] if "/" in path else ""


def _has_rows(row: Mapping[str, Any]) -> bool:
    return any(run["n_rows"] for run in row.get("runs", ()))


def _has_level(path: str, row: Mapping[str, Any]) -> bool:
    """Say whether the log, or at least its name, states a level for each of its runs."""
    stated = all(run["level"] for run in row["runs"])
    return stated or "{level}" in as_pattern(path, own_levels(row))


def _home(path: str, row: Mapping[str, Any]) -> str:
    """First-level folder of a path, level and repeat taken out of its name."""
    return arm_stem(as_pattern(path, own_levels(row))) if "/" in path else ""


def own_levels(row: Mapping[str, Any]) -> set[float] | None:
    """Return the one level a file's name can state: none of several, any where its log has none."""
    levels = {float(v) for run in row["runs"] for v in (run["level"] or {}).values()}
    if not levels:
        return None
    return levels if len(levels) == 1 else set()


def _series(
    home: str, rows: Sequence[tuple[str, Mapping[str, Any]]]
) -> dict[str, list[tuple[str, Mapping[str, Any]]]]:
    """Split a folder whose file names tell several series apart; probes go with all of them."""
    main = [(path, row) for path, row in rows if not _is_probe(row)] or list(rows)
    probes = [(path, row) for path, row in rows if _is_probe(row)] if len(main) < len(rows) else []
    series: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    for path, row in main:
        pattern = as_pattern(path, own_levels(row))
        # Only names that count something are a series; others are files of one arm.
        own = has_fields(pattern.rpartition("/")[2]) and pattern.count("/") == (1 if home else 0)
        series[arm_stem(pattern, last=True) if own else ""].append((path, row))
    if "" in series and len(series) > 1:
        series = {"": [item for held in series.values() for item in held]}
    if len(series) == 1 and home:
        series = {"": next(iter(series.values()))}
    return {stem: held + probes for stem, held in series.items()}


def _name(home: str, stem: str, several: bool, taken: Mapping[str, Draft]) -> str:
    name = (stem if several or not home else home) or stem or home or "arm"
    if name in taken:
        name = f"{home}-{name}" if home and f"{home}-{name}" not in taken else f"{name}-2"
    return name


def _sorted_logs(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Draft:
    draft = Draft()
    kept = list(rows)
    # AIPerf writes the same requests as records and as raw answers.
    recorded = {str(Path(path).parent) for path, row in kept if row["dialect"] == "aiperf"}
    kept = [
        (path, row)
        for path, row in kept
        if row["dialect"] != "aiperf_raw" or str(Path(path).parent) not in recorded
    ]
    probes = [path for path, row in kept if _is_probe(row)]
    draft.logs = [(path, row) for path, row in kept if path not in probes] or kept
    draft.probes = probes if len(probes) < len(kept) else []
    return draft


def _lay_beside(
    path: str,
    kind: str,
    row: Mapping[str, Any],
    arms: Mapping[str, Draft],
    homes: Mapping[str, Sequence[str]],
    unread: list[tuple[str, str]],
) -> None:
    """Give a trace, inventory, page or log to the arms of its folder, or to the one it names."""
    # A level that left no log is none the logs state.
    stated = {level for draft in arms.values() for level in draft.levels()}
    pattern = as_pattern(path, None if kind == "server_logs" else stated)
    home = arm_stem(pattern) if "/" in path else ""
    if home not in homes and "/" in path:
        home = next((h for h in homes if h and path.startswith(h)), "")
    names = list(homes.get(home, ()))
    stem = arm_stem(pattern, last=True)
    named = [name for name in names if stem and (stem == name or stem.startswith(f"{name}_"))]
    if not names:
        unread.append((path, kind))
    for name in named or names:
        draft = arms[name]
        draft.beside[kind].append(path)
        if kind == "server_logs":
            draft.fatal[path] = str(row["quote"])
        if kind == "inventory":
            listed = row.get("names") or [None] * len(row["gpus"])
            if len(listed) == len(row["gpus"]):
                draft.gpus |= {
                    str(uuid): (gpu, path) for uuid, gpu in zip(row["gpus"], listed, strict=True)
                }
        if kind == "trace":
            if any(c["code"] == "zone_unknown" for c in row.get("cautions", ())):
                draft.zoneless.append(path)
            for gpu in row.get("gpus", ()):
                draft.gpus.setdefault(str(gpu), (None, path))


def _fatal_line(path: Path) -> str | None:
    """Quote what stopped a server, from a text no reader knows."""
    try:
        if path.stat().st_size > _LOG_BYTES:
            return None
        documents = open_documents(path)
    except (OSError, LogFormatError):
        return None
    fatal = fatal_event([event for document in documents for event in find_events(document)])
    return None if fatal is None else str(fatal)
