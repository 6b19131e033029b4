"""The draft as YAML: each value with the file it was found in, a placeholder where no log says."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuverdict.campaign import PLACEHOLDER
from gpuverdict.draft.finding import Draft, find_arms, own_levels
from gpuverdict.draft.patterns import as_pattern, merge_suffixes
from gpuverdict.errors import LogFormatError, ParameterError
from gpuverdict.files import ReadOptions
from gpuverdict.hardware import resolve_gpu
from gpuverdict.inspection import inspect_paths
from gpuverdict.text import sentence

__all__ = ["draft_campaign"]

_KEYS = {"trace": "traces", "inventory": "inventory", "server_metrics": "server_metrics",
         "server_requests": "server_requests", "server_logs": "server_logs"}  # fmt: skip
# Dialects whose definitions depend on a version that their files do not hold.
_VERSIONED = ("vllm",)
_MOST_UNREAD = 20
_PLAIN = re.compile(r"[A-Za-z][\w./@+-]*(?: [\w./@+-]+)*")
_YAML_WORDS = {"yes", "no", "true", "false", "null", "on", "off", "y", "n"}
_UNSAFE_NAME = re.compile(r"[^\w .+\-×@]")


def draft_campaign(folder: str | Path, options: ReadOptions | None = None) -> str:
    """Draft a `campaign.yaml` for a folder: arms, patterns with level and repeat, facts of logs.

    Every value stands with a comment of the file it was found in. What no log says is
    `PLACEHOLDER`, which `read_campaign` refuses by the key's name until it is filled in.

    Parameters
    ----------
    folder : path
    options : ReadOptions, optional
        A zone or an encoding the files are read with stands in the draft as well: without it the
        campaign would read them otherwise.

    Raises
    ------
    LogFormatError
        For something that is no folder, or a folder without a readable log.
    ParameterError
        For a dialect: the files of a folder may be of several.
    """
    folder, options = Path(folder), options or ReadOptions()
    if options.format is not None:
        raise ParameterError(
            "format", found=f"{options.format!r} for a whole folder",
            expected="none: a dialect is stated beside the pattern of its files (`format:`)",
        )  # fmt: skip
    if not folder.is_dir():
        raise LogFormatError(folder, found="no folder", expected="a folder of logs and traces")
    arms, unread = find_arms(folder, inspect_paths([folder], options)["files"])
    if not arms:
        first = f" ({unread[0][0]}: {unread[0][1]})" if unread else ""
        found = f"no benchmark log with a level{first}"
        raise LogFormatError(folder, found=found, expected="at least one")
    named = {_UNSAFE_NAME.sub("-", name)[:80] or "arm": draft for name, draft in arms.items()}
    zoneless = [path for draft in named.values() for path in draft.zoneless]
    models = _models(named)
    lines = [
        f"# {sentence('draft_save', placeholder=PLACEHOLDER)}",
        f"campaign: {_scalar(_UNSAFE_NAME.sub('-', folder.resolve().name) or 'campaign')}",
        _line("title", PLACEHOLDER, sentence("draft_title")),
    ]
    if options.time_zone is not None:
        lines.append(_line("time_zone", _scalar(options.time_zone)))
    elif zoneless:
        lines.append(_line("time_zone", PLACEHOLDER, sentence("draft_zone", path=zoneless[0])))
    lines += [*_model_lines(models), *_workload_lines(named), "arms:"]
    for name, draft in named.items():
        lines += _arm_lines(name, draft, models)
        if options.encoding is not None:
            lines.append(_line("encoding", _scalar(options.encoding), indent=4))
    lines += _comparison_lines(named)
    return "\n".join([*lines, *_unread_lines(unread)]) + "\n"


def _unread_lines(unread: Sequence[tuple[str, str]]) -> list[str]:
    """Name what was not read, files of one name and reason once."""
    alike: dict[tuple[str, str], list[str]] = {}
    for path, reason in unread:
        alike.setdefault((path.rpartition("/")[2], reason), []).append(path)
    lines = []
    for (_, reason), paths in list(alike.items())[:_MOST_UNREAD]:
        code = "draft_unread" if len(paths) == 1 else "draft_unread_alike"
        path, why = _printable(paths[0]), _printable(reason)[:90]
        lines.append(f"# {sentence(code, path=path, reason=why, n=len(paths))}")
    rest = sum(len(paths) for paths in list(alike.values())[_MOST_UNREAD:])
    return lines + ([f"# {sentence('draft_more', n=rest)}"] if rest else [])


def _line(key: str, value: str, comment: str = "", indent: int = 0) -> str:
    text = f"{' ' * indent}{key}: {value}"
    return f"{text}   # {_printable(comment)}" if comment else text


def _facts(draft: Draft, key: str) -> dict[Any, str]:
    """Collect the different values the logs of an arm state for a fact, each with one file."""
    found: dict[Any, str] = {}
    for path, run in draft.runs():
        value = run["facts"].get(key)
        if value is not None:
            found.setdefault(value, path)
    return found


def _models(arms: Mapping[str, Draft]) -> dict[str, str]:
    """Name the models the logs state: id -> the file it was first met in."""
    found: dict[str, str] = {}
    for draft in arms.values():
        for path, run in draft.runs():
            if run["model_id"]:
                found.setdefault(str(run["model_id"]), path)
    return found


def _model_lines(models: Mapping[str, str]) -> list[str]:
    shape = f"# {sentence('draft_shape')}"
    if not models:
        return ["model:", _line("name", PLACEHOLDER, sentence("draft_nobody"), 2), f"  {shape}"]
    if len(models) == 1:
        ((identity, path),) = models.items()
        told = _scalar(identity)
        return ["model:", _line("name", told, path, 2), _line("id", told, path, 2), f"  {shape}"]
    lines = ["models:"]
    for identity, path in models.items():
        told = _scalar(identity)
        lines.append(f"  {told}: {{name: {told}, id: {told}}}   # {_printable(path)}")
    return [*lines, f"  {shape}"]


def _workload_lines(arms: Mapping[str, Draft]) -> list[str]:
    runs = [item for draft in arms.values() for item in draft.runs()]
    kinds = {next(iter(run["level"]), "") for _, run in runs if run["level"]}
    loads = {"rate_requests_per_s": "open", "concurrency": "closed", "batch": "offline"}
    lines = ["workload:"]
    for key in ("input_tokens", "output_tokens"):
        asked: dict[Any, str] = {}
        for path, run in runs:
            asked.setdefault(run[f"requested_{key}"], path)
        if set(asked) == {None}:
            lines.append(f"  # {key}:   # {sentence('draft_length')}")
        elif len(asked) == 1:
            ((value, path),) = asked.items()
            lines.append(_line(key, str(value), path, 2))
        else:
            listed = ", ".join(f"{v} ({_printable(p)})" for v, p in list(asked.items())[:4])
            lines.append(f"  # {key}:   # {sentence('draft_lengths', listed=listed)}")
    if len(kinds) == 1 and kinds <= set(loads):
        ((path, _), *_) = [(p, r) for p, r in runs if r["level"]]
        lines.append(_line("load", loads[kinds.pop()], path, 2))
    else:
        lines.append(f"  # load:   # {sentence('draft_load', kinds=', '.join(sorted(kinds)))}")
    bare = all(line.lstrip().startswith("#") for line in lines[1:])
    return ["workload: {}", *lines[1:]] if bare else lines


def _arm_lines(name: str, draft: Draft, models: Mapping[str, str]) -> list[str]:
    lines = [f"  {_scalar(name)}:", *_gpu_lines(draft)]
    if len(models) > 1:
        own = _models({name: draft})
        if len(own) == 1:
            ((identity, path),) = own.items()
            lines.append(_line("model", _scalar(identity), path, 4))
        else:
            said = sentence("draft_several", listed=_joined(own)) if own else ""
            lines.append(_line("model", PLACEHOLDER, said or sentence("draft_nobody"), 4))
    lines += _fact_lines(draft)
    lines += [_line("server_starts", "shared", sentence("draft_starts"), 4)]
    lines += _log_lines(draft)
    for kind, key in _KEYS.items():
        paths = draft.beside.get(kind, [])
        if paths:
            levels = None if kind == "server_logs" else draft.levels()
            patterns = merge_suffixes(as_pattern(path, levels) for path in paths)
            lines.append(f"    {key}: [{', '.join(map(_scalar, patterns))}]")
    lines += _hint_lines(draft)
    return lines


def _gpu_lines(draft: Draft) -> list[str]:
    named = [(gpu, path) for gpu, path in draft.gpus.values() if gpu]
    stated = {gpu for gpu, _ in named}
    value, comment = PLACEHOLDER, sentence("draft_gpu")
    if len(stated) == 1:
        gpu, path = named[0]
        try:
            resolve_gpu(gpu)
            value, comment = _scalar(gpu), path
        except ParameterError as problem:
            comment = sentence("draft_gpu_said", path=path, gpu=gpu, expected=problem.expected)
    lines = [_line("gpu", value, comment, 4)]
    return [*lines, _line("gpus", *_gpu_count(draft), 4)]


def _gpu_count(draft: Draft) -> tuple[str, str]:
    """One GPU listed is the one used; of several, no log says how many the server used."""
    # A trace by index lists the cards that an inventory lists by UUID.
    by_uuid = {k: path for k, (_, path) in draft.gpus.items() if not k.isdecimal()}
    listed = by_uuid or {k: path for k, (_, path) in draft.gpus.items()}
    if len(listed) == 1:
        return "1", next(iter(listed.values()))
    if not listed:
        return PLACEHOLDER, sentence("draft_gpus")
    path = next(iter(listed.values()))
    return PLACEHOLDER, sentence("draft_gpus_listed", path=path, n=len(listed))


def _fact_lines(draft: Draft) -> list[str]:
    """Engine, precision, parallel degree and client, where the logs agree on them."""
    lines = []
    for key, fact in (
        ("engine", "engine"),
        ("engine_version", "engine_version"),
        ("precision", "precision"),
        ("kv_dtype", "kv_dtype"),
        ("tensor_parallel", "tp"),
        ("client_version", "tool_version"),
    ):
        found = _facts(draft, fact)
        if len(found) == 1:
            ((value, path),) = found.items()
            lines.append(_line(key, _scalar(str(value)) if fact != "tp" else str(value), path, 4))
        elif len(found) > 1:
            listed = ", ".join(_printable(value) for value in found)
            lines.append(_line(key, PLACEHOLDER, sentence("draft_several", listed=listed), 4))
        elif key in ("engine", "precision"):
            lines.append(_line(key, PLACEHOLDER, sentence("draft_nobody"), 4))
        elif key == "engine_version":
            lines.append(_line(key, PLACEHOLDER, sentence("draft_or_remove"), 4))
        elif key == "client_version" and draft.logs[0][1]["dialect"] in _VERSIONED:
            lines.append(_line(key, PLACEHOLDER, sentence("draft_client"), 4))
    dialects = sorted({row["dialect"] for _, row in draft.logs})
    lines.append(f"    # {sentence('draft_tool', tools=', '.join(dialects))}")
    return lines


def _log_lines(draft: Draft) -> list[str]:
    lines = []
    for role, several in (("sweeps", True), ("files", False)):
        rows = [
            (path, row)
            for path, row in draft.logs
            if (len({json.dumps(run["level"]) for run in row["runs"]}) > 1) == several
        ]
        if not rows:
            continue
        patterns = merge_suffixes(as_pattern(path, own_levels(row)) for path, row in rows)
        told = _coverage(rows)
        clocks = {run["definitions"].get("clock") for _, row in rows for run in row["runs"]}
        if {row["dialect"] for _, row in rows} == {"gpuverdict"} and clocks == {"none"}:
            listed = ", ".join(map(_scalar, patterns))
            lines.append(f"    {role}:   # {told}")
            lines.append(f"      files: [{listed}]")
            lines.append(_line("clock", PLACEHOLDER, sentence("draft_clock"), 6))
        else:
            lines.append(f"    {role}: [{', '.join(map(_scalar, patterns))}]   # {told}")
    if draft.probes:
        patterns = merge_suffixes(draft.probes)
        lines.append(f"    prefill_probe: [{', '.join(map(_scalar, patterns))}]")
    return lines


def _coverage(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Say which levels the logs hold, and how often each."""
    counts: dict[str, int] = {}
    for _, row in rows:
        for run in row["runs"]:
            level = " ".join(f"{value:g}" for value in (run["level"] or {}).values()) or "?"
            counts[level] = counts.get(level, 0) + 1
    ordered = sorted(counts, key=lambda text: (text == "?", float(text) if text != "?" else 0.0))
    return sentence(
        "draft_levels", listed=", ".join(f"{level}×{counts[level]}" for level in ordered)
    )


def _hint_lines(draft: Draft) -> list[str]:
    lines = [
        f"    # {sentence('draft_fatal', path=_printable(path), quote=_printable(quote))}"
        for path, quote in draft.fatal.items()
    ]
    failed = sorted(
        {
            (float(next(iter((run["level"] or {0: 0}).values()))), path)
            for path, run in draft.runs()
            if run["n_rows"] and not run["n_ok"]
        }
    )
    lines += [
        f"    # {sentence('draft_failed', path=_printable(path), level=f'{level:g}')}"
        for level, path in failed
    ]
    return lines


def _comparison_lines(arms: Mapping[str, Draft]) -> list[str]:
    """Compare the two arms that share most levels; the others are for the analyst to choose."""
    if len(arms) < 2:
        return [f"# comparisons: {sentence('draft_one_arm')}"]
    pairs = list(itertools.combinations(arms, 2))
    served = {name: draft.served() for name, draft in arms.items()}

    def weight(pair: tuple[str, str]) -> tuple[int, int]:
        one, two = (served[name] for name in pair)
        return len(set(one) & set(two)), min(len(one), len(two))

    baseline, candidate = max(pairs, key=weight)
    lines = [
        f"comparisons:   # {sentence('draft_comparisons')}",
        f"  - {{baseline: {_scalar(baseline)}, candidate: {_scalar(candidate)}}}",
    ]
    rest = [name for name in arms if name not in (baseline, candidate)]
    return lines + ([f"  # {sentence('draft_others', arms=_joined(rest))}"] if rest else [])


def _joined(names: Iterable[str]) -> str:
    return ", ".join(map(_printable, names))


def _printable(text: Any) -> str:
    return "".join(ch if ch.isprintable() else "?" for ch in str(text))


def _scalar(text: str) -> str:
    """Write a text so that YAML reads it as it is: braces and stars have a meaning there."""
    text = _printable(text)
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
