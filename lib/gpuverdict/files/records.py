"""JSON of every quality: one document, lines, objects end to end, bare NaN, a cut last line.

The fast reader is tried first. Where it refuses, one strict slow path reads the same text with the
standard library, which also takes the bare `NaN` and `Infinity` that benchmark tools write; `NaN`
becomes null, because it never carries a value. Nothing is repaired silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.text import caution

__all__ = ["Records", "first_record", "has_text", "parse_records"]

# Documents up to this size are searched for duplicate keys in full; larger ones at the top level
# and in their first records.
_SMALL = 1 << 20
_CHECKED_RECORDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The JSON values of a document in file order.

    `lines` gives the line each value starts on (1 for the first); `dropped` counts by reason what
    was there and is not among the values.
    """

    values: list[Any]
    lines: list[int]
    dropped: dict[str, int]
    cautions: tuple[Caution, ...] = ()


class _DuplicateKeyError(ValueError):
    pass


class _Strict:
    """The standard reader with bare constants, exact about duplicate keys, remembering NaN."""

    def __init__(self) -> None:
        self.n_nan = 0
        hook: Callable[[list[tuple[str, Any]]], Any] = self._pairs
        self.decoder = json.JSONDecoder(parse_constant=self._constant, object_pairs_hook=hook)

    def _constant(self, name: str) -> float | None:
        if name == "NaN":
            self.n_nan += 1
            return None
        return float(name)

    def _pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise _DuplicateKeyError(key)
                seen.add(key)
        return result


_TEXT = re.compile(rb"[^\s\x00]")


def has_text(data: bytes, start: int = 0) -> bool:
    """Say whether anything but blanks and NULs stands from a position on, without copying."""
    return _TEXT.search(data, start) is not None


def first_record(data: bytes, name: str, *, recover: bool = False) -> tuple[Any, Records | None]:
    """Return the first JSON value cheaply; with all records where they had to be read anyway.

    Raises
    ------
    LogFormatError
        Where the text starts like JSON and is not.
    """
    start = len(data) - len(data.lstrip())
    end = data.find(b"\n", start)
    if end != -1 and has_text(data, end):
        try:
            return orjson.loads(data[start:end]), None
        except orjson.JSONDecodeError:
            pass  # bare NaN or a line that is no document: the tolerant reader decides
    return None, parse_records(data, name, recover=recover)


def parse_records(data: bytes, name: str, *, recover: bool = False) -> Records:
    """Parse the whole text: a document, JSON Lines, or objects written end to end.

    Parameters
    ----------
    data : bytes
        UTF-8 text.
    name : str
        What messages call it.
    recover : bool
        Keep the complete elements of an array that is cut off.

    Raises
    ------
    LogFormatError
        With line or byte offset, for text that is no JSON, is cut off (other than in the last
        line of several), or has a key twice in one object.

    Examples
    --------
    >>> parse_records(b'{"a": 1}{"a": NaN}', "x.json").values
    [{'a': 1}, {'a': None}]
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _several(data, name, recover)
    _refuse_duplicates(data, value, name)
    return Records(values=[value], lines=[1], dropped={})


def _several(data: bytes, name: str, recover: bool) -> Records:
    body = data.strip()
    if b"\n" in body and _looks_like_lines(body):
        return _lines(data, name, recover)
    return _end_to_end(data, name, recover)


def _looks_like_lines(body: bytes) -> bool:
    first = body[: body.find(b"\n")].strip()
    if first[:1] not in (b"{", b"[") or first in (b"{", b"["):
        return False
    try:
        orjson.loads(first)
    except orjson.JSONDecodeError:
        try:
            _Strict().decoder.raw_decode(first.decode("utf-8"))
        except (ValueError, RecursionError):
            return False
    return True


def _lines(data: bytes, name: str, recover: bool) -> Records:
    values: list[Any] = []
    lines: list[int] = []
    dropped: dict[str, int] = {}
    cautions: list[Caution] = []
    seen: dict[int, int] = {}
    strict = _Strict()
    rows = data.split(b"\n")
    while rows and not rows[-1].strip():
        rows.pop()
    nan_line = 0
    for number, row in enumerate(rows, 1):
        row = row.strip()
        if not row:
            continue
        key = hash(row)
        if key in seen and rows[seen[key] - 1].strip() == row:
            _count(dropped, "duplicate_record")
            continue
        seen[key] = number
        try:
            found = [orjson.loads(row)]
            if number <= _CHECKED_RECORDS:
                _refuse_duplicates(row, found[0], f"{name}:{number}")
        except orjson.JSONDecodeError:
            before = strict.n_nan
            try:
                found = _decode_all(row.decode("utf-8"), strict)
            except _DuplicateKeyError as problem:
                raise _duplicate(f"{name}:{number}", str(problem)) from None
            except (ValueError, RecursionError) as problem:
                if number == len(rows):
                    _count(dropped, "incomplete_last_line")
                    cautions.append(caution("incomplete_last_line", name=name, line=number))
                    continue
                if recover:
                    _count(dropped, "non_object")
                    cautions.append(caution("unreadable_line", name=name, line=number))
                    continue
                raise LogFormatError(
                    f"{name}:{number}",
                    found=f"a line that is not JSON ({_where(problem)})",
                    expected="one JSON object a line",
                    remedy="give recover: true to read the other lines",
                ) from None
            if strict.n_nan > before:
                nan_line = nan_line or number
        for value in found:
            if isinstance(value, dict | list):
                values.append(value)
                lines.append(number)
            else:
                _count(dropped, "non_object")
    if strict.n_nan:
        cautions.append(caution("nan_read_as_null", name=name, n=strict.n_nan, line=nan_line))
    if dropped.get("duplicate_record"):
        cautions.append(caution("duplicate_records", name=name, n=dropped["duplicate_record"]))
    return Records(values=values, lines=lines, dropped=dropped, cautions=tuple(cautions))


def _end_to_end(data: bytes, name: str, recover: bool) -> Records:
    text = data.decode("utf-8")
    strict = _Strict()
    values: list[Any] = []
    lines: list[int] = []
    cautions: list[Caution] = []
    dropped: dict[str, int] = {}
    position, line, last = _skip_blank(text, 0), 1, 0
    while position < len(text):
        line += text.count("\n", last, position)
        last = position
        try:
            value, end = strict.decoder.raw_decode(text, position)
        except _DuplicateKeyError as problem:
            raise _duplicate(f"{name}:{line}", str(problem)) from None
        except (ValueError, RecursionError) as problem:
            if recover and text[position] == "[":
                elements = _elements(text, position, strict)
                if elements:
                    values.append(elements)
                    lines.append(line)
                    _count(dropped, "incomplete_last_line")
                    cautions.append(caution("recovered_array", name=name, n=len(elements)))
                    break
            raise _no_json(text, position, name, problem, bool(values)) from None
        values.append(value)
        lines.append(line)
        position = _skip_blank(text, end)
        # Some writers join objects as the elements of an array without its brackets.
        if position < len(text) and text[position] == ",":
            position = _skip_blank(text, position + 1)
    kept: list[Any] = []
    kept_lines: list[int] = []
    seen: set[bytes] = set()
    for value, number in zip(values, lines, strict=True):
        if not isinstance(value, dict | list):
            _count(dropped, "non_object")
            continue
        if len(values) > 1:
            key = json.dumps(value).encode()
            if key in seen:
                _count(dropped, "duplicate_record")
                continue
            seen.add(key)
        kept.append(value)
        kept_lines.append(number)
    if strict.n_nan:
        cautions.append(caution("nan_read_as_null", name=name, n=strict.n_nan, line=1))
    if dropped.get("duplicate_record"):
        cautions.append(caution("duplicate_records", name=name, n=dropped["duplicate_record"]))
    return Records(values=kept, lines=kept_lines, dropped=dropped, cautions=tuple(cautions))


def _decode_all(text: str, strict: _Strict) -> list[Any]:
    found: list[Any] = []
    position = 0
    while position < len(text):
        value, end = strict.decoder.raw_decode(text, position)
        found.append(value)
        position = _skip_blank(text, end)
    return found


def _elements(text: str, position: int, strict: _Strict) -> list[Any]:
    found: list[Any] = []
    position = _skip_blank(text, position + 1)
    while position < len(text):
        try:
            value, position = strict.decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        found.append(value)
        position = _skip_blank(text, position)
        if position < len(text) and text[position] == ",":
            position = _skip_blank(text, position + 1)
    return found


_BLANK = re.compile(r"\s*")


def _skip_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _no_json(
    text: str, position: int, name: str, problem: Exception, several: bool
) -> LogFormatError:
    if isinstance(problem, RecursionError):
        return LogFormatError(name, found="JSON nested too deeply", expected="a benchmark log")
    at = getattr(problem, "pos", position)
    offset = len(text[:at].encode("utf-8"))
    cut = at >= len(text.rstrip()) - 1 or "Unterminated" in str(problem)
    if cut:
        found = f"JSON that is cut off at byte {offset}"
        remedy = "copy the file again"
        if text[position] == "[":
            remedy += ", or give recover: true to read the complete records"
        return LogFormatError(name, found=found, expected="complete JSON", remedy=remedy)
    line = text.count("\n", 0, at) + 1
    after = " after a complete value" if several else ""
    return LogFormatError(
        f"{name}:{line}",
        found=f"text that is not JSON{after} at byte {offset} ({_where(problem)})",
        expected="JSON",
    )


def _where(problem: Exception) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return problem.msg
    return (str(problem).splitlines() or [type(problem).__name__])[0][:120]


def _count(dropped: dict[str, int], reason: str) -> None:
    dropped[reason] = dropped.get(reason, 0) + 1


def _duplicate(where: str, key: str) -> LogFormatError:
    return LogFormatError(
        where,
        found=f"the key {key[:80]!r} twice in one object",
        expected="each key once",
        remedy="which of the two holds cannot be told: write the file again",
    )


def _refuse_duplicates(data: bytes, value: Any, name: str) -> None:
    """Raise for a key that stands twice: everywhere in small texts, at the top of large ones."""
    if isinstance(value, dict) and any(
        _count_to(data, mark, len(value)) == len(value) for mark in (b":", b'":')
    ):
        # As many separators as keys: nothing nested has keys, and none is there twice.
        return
    if len(data) <= _SMALL:
        try:
            _Strict().decoder.decode(data.decode("utf-8"))
        except _DuplicateKeyError as problem:
            raise _duplicate(name, str(problem)) from None
        except (ValueError, RecursionError):
            pass  # what the fast reader took is not doubted for another reason
        return
    try:
        if isinstance(value, dict):
            _refuse_top_level(data)
        elif isinstance(value, list):
            _refuse_first_elements(data)
    except _DuplicateKeyError as problem:
        raise _duplicate(name, str(problem)) from None


def _count_to(data: bytes, mark: bytes, limit: int) -> int:
    """Count a mark up to one past a limit; searching skips long stretches faster than counting."""
    n, position = 0, data.find(mark)
    while position != -1 and n <= limit:
        n += 1
        position = data.find(mark, position + 1)
    return n


_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.S)


def _refuse_top_level(data: bytes) -> None:
    depth = 0
    seen: set[bytes] = set()
    for match in _TOKEN.finditer(data):
        token = match.group()
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and data[match.end() : match.end() + 64].lstrip()[:1] == b":":
            if token in seen:
                raise _DuplicateKeyError(token.strip(b'"').decode("utf-8", "replace"))
            seen.add(token)


def _refuse_first_elements(data: bytes) -> None:
    text = data[: 1 << 22].decode("utf-8", "ignore")
    position = _skip_blank(text, text.find("[") + 1)
    strict = _Strict()
    for _ in range(_CHECKED_RECORDS):
        try:
            _, position = strict.decoder.raw_decode(text, position)
        except _DuplicateKeyError:
            raise
        except (ValueError, RecursionError):
            return
        position = _skip_blank(text, position)
        if text[position : position + 1] != ",":
            return
        position = _skip_blank(text, position + 1)
