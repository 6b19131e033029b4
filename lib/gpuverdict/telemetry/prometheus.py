"""Prometheus text pages and range-query dumps as a list of samples; what they mean is not decided.

A page has no time of its own. A line may carry one (milliseconds); a comment line
`# scrape_epoch_s 1796090400.5` before a page gives it for the whole page. Several pages in one file
are told apart by the return of a series.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document

__all__ = ["PromSample", "looks_like_prometheus", "read_samples", "series_names"]

_LINE = re.compile(
    r"^(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)"
    r"(?:\s+(?P<time>-?\d+))?$"
)
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_SCRAPE = re.compile(r"^# scrape_epoch_s (\d+(?:\.\d+)?)$")
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_HEAD_BYTES = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class PromSample:
    """One value of one series; `value` is None for NaN, `scrape` counts pages from 0."""

    name: str
    labels: dict[str, str]
    value: float | None
    time_epoch_s: float | None
    scrape: int


def looks_like_prometheus(document: Document) -> bool:
    """Say whether a document is a text page or a range-query dump."""
    if document.data.lstrip()[:1] == b"{":
        return b'"resultType"' in document.data[:4096]
    head = document.data[:_HEAD_BYTES].decode("utf-8", errors="replace").splitlines()
    for line in head[:-1] or head:
        text = line.strip()
        if not text or _SCRAPE.match(text):
            continue
        if text.startswith("#"):
            if re.match(r"^# (?:HELP|TYPE|EOF)\b", text):
                continue
            return False
        return _LINE.match(text) is not None and _is_number(_LINE.match(text)["value"])  # type: ignore[index]
    return any(line.startswith(("# HELP", "# TYPE")) for line in head)


def series_names(document: Document) -> set[str]:
    """List the series named at the head of a document, cheaply."""
    head = document.data[:_HEAD_BYTES].decode("utf-8", errors="replace")
    if document.data.lstrip()[:1] == b"{":
        return set(re.findall(r'"__name__"\s*:\s*"([^"]+)"', head))
    return {m["name"] for line in head.splitlines() if (m := _LINE.match(line.strip()))}


def read_samples(document: Document) -> list[PromSample]:
    """Read every sample of a page, of several pages in one file, or of a range-query dump.

    Raises
    ------
    LogFormatError
        For a line that is no sample (other than a cut last one), or a dump of another shape.
    """
    if document.data.lstrip()[:1] == b"{":
        return list(_from_dump(document))
    return list(_from_text(document))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _labels(text: str | None, where: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    position = 0
    text = text or ""
    while position < len(text):
        found = _LABEL.match(text, position)
        if found is None:
            raise LogFormatError(
                where, found=f"the labels {text[:60]!r}", expected='name="value" pairs'
            )
        value = re.sub(r"\\.", lambda m: _ESCAPES.get(m[0], m[0]), found[2])
        labels[found[1]] = value
        position = found.end()
    return labels


def _from_text(document: Document) -> Iterator[PromSample]:
    lines = document.text.split("\n")
    scrape, stamp = 0, None
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if found := _SCRAPE.match(line):
            scrape += bool(seen)
            seen, stamp = set(), float(found[1])
            continue
        if not line or line.startswith("#"):
            continue
        sample = _LINE.match(line)
        where = f"{document.name}:{number}"
        if sample is None or not _is_number(sample["value"]):
            if number == len(lines):
                continue
            raise LogFormatError(where, found=repr(line[:80]), expected="name{labels} value")
        if number == len(lines):
            # Without a line end the last value may be shortened.
            continue
        labels = _labels(sample["labels"], where)
        key = (sample["name"], tuple(sorted(labels.items())))
        if key in seen:
            scrape, seen, stamp = scrape + 1, set(), None
        seen.add(key)
        time = float(sample["time"]) / 1000.0 if sample["time"] else stamp
        yield PromSample(
            name=sample["name"],
            labels=labels,
            value=_number(sample["value"]),
            time_epoch_s=time,
            scrape=scrape,
        )


def _from_dump(document: Document) -> Iterator[PromSample]:
    expected = "a range-query answer of Prometheus"
    try:
        top = json.loads(document.text)
    except ValueError as problem:
        raise LogFormatError(document.name, found=str(problem), expected=expected) from None
    data = top.get("data", top) if isinstance(top, dict) else {}
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(result, list):
        raise LogFormatError(document.name, found="no list `result`", expected=expected)
    scrapes: dict[float, int] = {}
    for series in result:
        yield from _from_series(document, series, scrapes)


def _from_series(
    document: Document, series: Any, scrapes: dict[float, int]
) -> Iterator[PromSample]:
    if not isinstance(series, dict) or not isinstance(series.get("metric"), dict):
        raise LogFormatError(document.name, found="a series without `metric`", expected="one")
    labels = {str(k): str(v) for k, v in series["metric"].items() if k != "__name__"}
    name = series["metric"].get("__name__")
    if not isinstance(name, str):
        raise LogFormatError(
            document.name,
            found="a series without a name (the query applied a function)",
            expected="raw series",
        )
    values = series.get("values") or ([series["value"]] if "value" in series else [])
    for pair in values:
        if not isinstance(pair, list) or len(pair) != 2 or not _is_number(str(pair[1])):
            raise LogFormatError(document.name, found=repr(pair)[:60], expected='[time, "value"]')
        stamp = float(pair[0])
        yield PromSample(
            name=name,
            labels=labels,
            value=_number(str(pair[1])),
            time_epoch_s=stamp,
            scrape=scrapes.setdefault(stamp, len(scrapes)),
        )
