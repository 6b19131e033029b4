"""From the paths of a folder to arms and patterns: where level and repeat stand in the names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

__all__ = ["arm_stem", "as_pattern", "has_fields", "merge_suffixes"]

_LEVEL = re.compile(
    r"(?<![A-Za-z])(concurrency|conc|streams|cc|c|qps|rate|rps|batch|bs|level)([-_=]?)(\d+(?:\.\d+)?)"
    r"(?![\d.]*\d|[A-Za-z])",
    re.I,
)
_REPEAT = re.compile(
    r"(?<![A-Za-z])(repeat|rep|run|trial|iter|pass|seed|r)([-_=]?)(\d+)(?![\dA-Za-z])", re.I
)
_STAMP = re.compile(r"\d{8}[-_]\d{6}")
_FIELD = re.compile(
    r"[-_.=]?(?:concurrency|conc|streams|cc|c|qps|rate|rps|batch|bs|level|repeat|rep|run|trial|"
    r"iter|pass|seed|r)?[-_=]?\{(?:level|repeat)\}",
    re.I,
)
# What a log of a tool ends in; it is no part of an arm's name.
_ENDINGS = re.compile(
    r"(?:\.server_requests|\.server|\.gaps)?(?:\.(?:jsonl?|csv|ya?ml|txt|log|prom|parquet|db))?"
    r"(?:\.(?:gz|zst))?\*?$",
    re.I,
)
_SUFFIX = re.compile(r"\.(?:gz|zst)$")


def as_pattern(path: str, levels: Collection[float] | None) -> str:
    """Put `{level}` and `{repeat}` where a path names them, and `*` for a time stamp.

    Parameters
    ----------
    path : str
        Relative, with slashes.
    levels : collection of float
        Levels the file may name: the ones its logs state. A number that is none of them stays.
        None takes any number behind a word for a level.

    Examples
    --------
    >>> as_pattern("a100_c8_r3/vllm_a100_c8_r3.json", [8])
    'a100_c{level}_r{repeat}/vllm_a100_c{level}_r{repeat}.json'
    >>> as_pattern("a100_c8/x.json", [16]), as_pattern("layers32-r1.json", [16])
    ('a100_c8/x.json', 'layers32-r{repeat}.json')
    """

    def level(found: re.Match[str]) -> str:
        known = levels is None or float(found[3]) in levels
        return f"{found[1]}{found[2]}{{level}}" if known else found[0]

    text = _STAMP.sub("*", path)
    text = _LEVEL.sub(level, text)
    values = {found[3] for found in _REPEAT.finditer(text)}
    # Two different numbers are not one repeat.
    if len(values) == 1:
        text = _REPEAT.sub(lambda m: f"{m[1]}{m[2]}{{repeat}}", text)
    return text


def has_fields(pattern: str) -> bool:
    """Say whether a pattern names a level or a repeat.

    Examples
    --------
    >>> has_fields("c{level}.json"), has_fields("c8.json")
    (True, False)
    """
    return "{level}" in pattern or "{repeat}" in pattern


def arm_stem(pattern: str, *, last: bool = False) -> str:
    """Name an arm after its folder (or file, with `last`), without level, repeat and ending.

    Examples
    --------
    >>> arm_stem("a100_c{level}_r{repeat}/vllm.json"), arm_stem("starts/m32-r{repeat}.json.gz")
    ('a100', 'starts')
    >>> arm_stem("starts/m32-r{repeat}.json.gz", last=True), arm_stem("c{level}.json")
    ('m32', '')
    """
    parts = PurePosixPath(pattern).parts
    name = parts[-1] if last or len(parts) == 1 else parts[0]
    if last or len(parts) == 1:
        name = _ENDINGS.sub("", name)
    return _FIELD.sub("", name).strip("-_. *")


def merge_suffixes(patterns: Iterable[str]) -> list[str]:
    """Make one pattern of those that differ in compression only, and drop repeats.

    Examples
    --------
    >>> merge_suffixes(["c{level}.json", "c{level}.json.gz", "x.csv"])
    ['c{level}.json*', 'x.csv']
    """
    spelled: dict[str, set[str]] = {}
    for pattern in patterns:
        spelled.setdefault(_SUFFIX.sub("", pattern), set()).add(pattern)
    return [bare + "*" if len(all_) > 1 else all_.pop() for bare, all_ in spelled.items()]
