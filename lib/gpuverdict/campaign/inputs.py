"""From the patterns of an arm to its files, with what the names say about level and repeat."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gpuverdict.campaign.keys import BESIDE_ROLES, LOG_ROLES, Arm, Campaign, InputSpec
from gpuverdict.errors import CampaignError
from gpuverdict.files import ReadOptions

__all__ = ["InputFile", "arm_inputs", "natural_key"]

_FIELD = re.compile(r"\{(\w+)\}")
# So many names show how the files are called.
MOST_NAMES = 3
_KNOWN_FIELDS = ("level", "repeat", "rate", "batch", "card")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """One file of an arm, and what the campaign says about it."""

    path: Path
    role: str  # the key of the arm that named it: sweeps, runs, traces, ...
    options: ReadOptions
    workload: str = "main"
    level: float | None = None
    repeat: int | None = None
    card: str | None = None


def natural_key(text: str) -> list[tuple[int, int, str]]:
    """Sort key under which `r10` follows `r9`.

    Examples
    --------
    >>> sorted(["r10", "r9"], key=natural_key)
    ['r9', 'r10']
    """
    parts = re.split(r"(\d+)", text)
    return [(1, int(p), "") if p.isdecimal() else (0, 0, p) for p in parts]


def arm_inputs(campaign: Campaign, arm_name: str) -> tuple[list[InputFile], list[CampaignError]]:
    """List the files of an arm in a fixed order, and the patterns that match nothing.

    A missing file costs its run, not the campaign: it comes back as an error value, to be listed.

    Raises
    ------
    CampaignError
        For a pattern field that means nothing.
    """
    arm = campaign.arms[arm_name]
    found: list[InputFile] = []
    missing: list[CampaignError] = []
    for role, workload, spec in _specs(campaign, arm_name):
        options = _options(campaign, arm, spec)
        key = f"arms.{arm_name}.{role}"
        for pattern in spec.files:
            matched = list(_expand(campaign.root, pattern, key))
            if not matched:
                missing.append(_nothing(campaign, key, pattern))
            found.extend(
                InputFile(path=path, role=role, options=options, workload=workload,
                          level=spec.level if level is None else level, repeat=repeat, card=card)
                for path, level, repeat, card in matched
            )  # fmt: skip
    unique = {(f.role, f.workload, f.path): f for f in found}
    return sorted(
        unique.values(), key=lambda f: (f.role, f.workload, natural_key(str(f.path)))
    ), missing


def _specs(campaign: Campaign, arm_name: str) -> Iterable[tuple[str, str, InputSpec]]:
    """List (role, workload, patterns): logs by workload, what lies beside them once for all."""
    for role in LOG_ROLES:
        for workload, spec in _by_workload(campaign, arm_name, role):
            yield role, workload, spec
    for role in BESIDE_ROLES:
        for entry in getattr(campaign.arms[arm_name], role):
            yield role, "main", entry if isinstance(entry, InputSpec) else InputSpec(files=(entry,))


def _nothing(campaign: Campaign, key: str, pattern: str) -> CampaignError:
    return CampaignError(
        f"{campaign.path.name}: {key}",
        found=f"no file that matches {pattern!r}",
        expected=_what_is_there(campaign.root, pattern),
        remedy="correct the pattern or remove it",
    )


def _what_is_there(root: Path, pattern: str) -> str:
    """Name what lies where a pattern points: a person sees the mistake by what is there instead."""
    if "*" not in pattern and "{" not in pattern and (root / pattern).is_dir():
        return f"files, not a folder (such as {pattern.rstrip('/')}/*)"
    folder = PurePosixPath(pattern).parent
    while folder.name and (re.search(r"[*?{\[]", str(folder)) or not (root / folder).is_dir()):
        folder = folder.parent
    place = root / folder
    shown = "this folder" if folder == PurePosixPath(".") else f"{folder}/"
    try:
        names = sorted(p.name + ("/" if p.is_dir() else "") for p in place.iterdir())
    except OSError:
        names = []
    names = sorted((n for n in names if not n.startswith(".")), key=natural_key)
    if not names:
        return f"a file; {shown} is empty"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"one of what {shown} holds: {', '.join(names[:MOST_NAMES])}{more}"


def _by_workload(campaign: Campaign, arm_name: str, role: str) -> Iterable[tuple[str, InputSpec]]:
    value = getattr(campaign.arms[arm_name], role)
    if value is None:
        return
    workloads = list(campaign.all_workloads())
    if isinstance(value, dict):
        for workload, entry in value.items():
            if workload not in workloads:
                raise CampaignError(
                    f"{campaign.path.name}: arms.{arm_name}.{role}",
                    found=f"the workload {workload!r}", expected=f"one of {', '.join(workloads)}",
                )  # fmt: skip
            yield workload, entry if isinstance(entry, InputSpec) else InputSpec(files=entry)
        return
    if len(workloads) > 1 and role != "prefill_probe":
        raise CampaignError(
            f"{campaign.path.name}: arms.{arm_name}.{role}", found="files of no stated workload",
            expected=f"a mapping by workload ({', '.join(workloads)})",
        )  # fmt: skip
    yield workloads[0], value if isinstance(value, InputSpec) else InputSpec(files=value)


def _options(campaign: Campaign, arm: Arm, spec: InputSpec) -> ReadOptions:
    return ReadOptions(
        format=spec.format,
        client_version=spec.client_version or arm.client_version,
        encoding=spec.encoding or arm.encoding,
        time_zone=arm.time_zone or campaign.time_zone,
        clock=spec.clock,
        t0_epoch_s=spec.t0_epoch_s,
        recover=spec.recover,
        columns=spec.columns or {},
        decimal=spec.decimal,
        separator=spec.separator,
        trace_query=spec.trace_query,
        trace_start=spec.trace_start,
        stages=spec.stages,
    )


def _expand(
    root: Path, pattern: str, key: str
) -> Iterable[tuple[Path, float | None, int | None, str | None]]:
    fields = _FIELD.findall(pattern)
    unknown = [f for f in fields if f not in _KNOWN_FIELDS]
    if unknown:
        raise CampaignError(
            key, found=f"the field {{{unknown[0]}}}",
            expected=", ".join(f"{{{f}}}" for f in _KNOWN_FIELDS),
        )  # fmt: skip
    base, glob = root, PurePosixPath(pattern)
    if glob.is_absolute():
        base, glob = Path(glob.anchor), glob.relative_to(glob.anchor)
    try:
        matcher = _matcher(str(glob))
        paths = sorted(base.glob(_FIELD.sub("*", str(glob))), key=lambda p: natural_key(str(p)))
    except (ValueError, IndexError, NotImplementedError, re.error) as problem:
        raise CampaignError(key, found=f"the pattern {pattern!r}: {problem}") from None
    for path in paths:
        if not path.is_file():
            continue
        match = matcher.search(path.as_posix())
        if match is None:
            continue
        groups = match.groupdict()
        level = next((groups[f] for f in ("level", "rate", "batch") if groups.get(f)), None)
        repeat = groups.get("repeat")
        yield (
            path,
            float(level) if level else None,
            int(repeat) if repeat else None,
            groups.get("card"),
        )


def _matcher(glob: str) -> re.Pattern[str]:
    out, seen = "", set()
    inside = re.sub(r"^(?:.*/)?\.\./", "", glob)
    for piece in re.split(r"(\{\w+\}|\*\*/?|\*|\?|\[!?\]?[^\]]*\])", inside):
        if piece.startswith("{") and piece.endswith("}"):
            name = piece[1:-1]
            number = {"repeat": r"\d+", "card": r"[\w.-]+?"}.get(name, r"\d+(?:\.\d+)?")
            out += f"(?P={name})" if name in seen else f"(?P<{name}>{number})"
            seen.add(name)
        elif piece.startswith("**"):
            out += "(?:.*/)?" if piece.endswith("/") else ".*"
        elif piece == "*":
            out += "[^/]*"
        elif piece == "?":
            out += "[^/]"
        elif piece.startswith("[") and piece.endswith("]"):
            # A set as the glob reads it, without the frame that `translate` puts around a whole.
            out += fnmatch.translate(piece)[len("(?s:") : -len(r")\Z")]
        else:
            out += re.escape(piece)
    # Anchored at the end only: the base folder stands before, and `..` is resolved by the glob.
    return re.compile(rf"(?:^|/){out}$")
