"""The `Document`: one log as UTF-8 bytes, with its hash, however it was stored."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files.records import Records, first_record, has_text, parse_records
from gpuverdict.files.unpack import unpack
from gpuverdict.text import caution

__all__ = ["Document", "ReadOptions", "open_documents"]


_DATED = re.compile(rb"\s*\[\d{4}-\d{2}-\d{2}[ T]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What the campaign file (or a caller) says about an input that the file itself does not."""

    format: str | None = None
    client_version: str | None = None
    encoding: str | None = None
    time_zone: str | None = None
    clock: str | None = None
    t0_epoch_s: float | None = None
    recover: bool = False
    columns: Mapping[str, Any] = field(default_factory=dict)
    decimal: str = "."
    separator: str | None = None
    trace_query: str | None = None
    trace_start: str | None = None
    stages: tuple[int, ...] = ()
    max_bytes: int = 8 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One log as UTF-8 bytes without byte-order mark.

    `name` is what messages call it (`a.zip!b.json` for a member); `hashed` gives the SHA-256 of the
    decompressed content. `shape` is `"json"`, `"text"`, `"parquet"` or `"sqlite"`, told by the
    first bytes.
    """

    path: Path
    name: str
    data: bytes
    hashed: Callable[[], str] = field(compare=False, repr=False)
    cautions: tuple[Caution, ...] = ()
    # Parsed once, used by every dialect's question and by the one that reads.
    parsed: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def sha256(self) -> str:
        """SHA-256 of the decompressed content, in hexadecimal digits."""
        return self.hashed()

    @property
    def text(self) -> str:
        """The content as text."""
        return self.data.decode("utf-8")

    @property
    def shape(self) -> str:
        """What the first bytes say the content is."""
        if self.data[:4] == b"PAR1":
            return "parquet"
        if self.data[:15] == b"SQLite format 3":
            return "sqlite"
        # `{` and `[` also open other texts; a scalar alone is no log. `[2026-12-01 ...` is a
        # line of an engine's output.
        if _DATED.match(self.data):
            return "text"
        return "json" if _first_character(self.data) in (b"{", b"[") else "text"

    @property
    def first(self) -> Any:
        """The first JSON value, or None where the content is not JSON."""
        if self.shape != "json":
            return None
        if "first" not in self.parsed:
            value, whole = first_record(
                self.data, self.name, recover=self.parsed.get("recover", False)
            )
            if whole is not None:
                self.parsed["records"] = whole
                value = whole.values[0] if whole.values else None
            self.parsed["first"] = value
        return self.parsed["first"]

    def sibling(self, name: str) -> Document | None:
        """Another file of the same folder, compressed or not; None where there is none.

        Some tools tell the level of a run only in a file beside its records. A file that cannot be
        opened counts as absent: the records are read all the same.
        """
        for candidate in (name, f"{name}.gz", f"{name}.zst"):
            path = self.path.with_name(candidate)
            if path.is_file() and "!" not in self.name:
                try:
                    documents = open_documents(path)
                except LogFormatError:
                    return None
                return documents[0] if len(documents) == 1 else None
        return None

    def records(self) -> Records:
        """All JSON values of the document, with what was dropped and said on the way.

        Raises
        ------
        LogFormatError
            For text that is no JSON, truncated JSON, and duplicate keys.
        """
        if "records" not in self.parsed:
            self.parsed["records"] = parse_records(
                self.data, self.name, recover=self.parsed.get("recover", False)
            )
        records: Records = self.parsed["records"]
        return records


def open_documents(path: str | Path, options: ReadOptions | None = None) -> list[Document]:
    """Open a file: one document, or one for each member of an archive.

    Compression (`gz`, `zst`) and archives (`zip`, `tar`, `tar.gz`) are told by content. UTF-8 with
    or without byte-order mark and UTF-16 with one are decoded; any other encoding is read only when
    `options.encoding` names it.

    Raises
    ------
    LogFormatError
        For a missing or empty file, a folder, a damaged archive, content past the size limit, an
        encoding that cannot be told, and a web page saved in place of a log.
    """
    options = options or ReadOptions()
    path = Path(path)
    if path.is_dir():
        raise LogFormatError(path, found="a folder", expected="a file")
    try:
        if path.stat().st_size > options.max_bytes:
            raise LogFormatError(
                path, found=f"more than {options.max_bytes} bytes", remedy="split the file"
            )
        data = path.read_bytes()
    except (OSError, ValueError) as problem:
        found = getattr(problem, "strerror", None) or str(problem)
        raise LogFormatError(path, found=str(found), expected="a readable file") from None
    # A file's name may hold bytes that are no text; messages must still be printable.
    label = path.name.encode("utf-8", "replace").decode("utf-8")
    return [
        _document(path, name, raw, options) for name, raw in unpack(data, label, options.max_bytes)
    ]


# From this size on a hash takes long enough to be worked out beside the parsing.
_LARGE = 1 << 22


def _hashing(raw: bytes) -> Callable[[], str]:
    """Return what gives the SHA-256 of bytes; large ones are hashed on a thread of their own."""
    if len(raw) < _LARGE:
        digest = hashlib.sha256(raw).hexdigest()
        return lambda: digest
    pool = ThreadPoolExecutor(max_workers=1)
    future = pool.submit(lambda: hashlib.sha256(raw).hexdigest())
    pool.shutdown(wait=False)
    return future.result


def _document(path: Path, name: str, raw: bytes, options: ReadOptions) -> Document:
    hashed = _hashing(raw)
    cautions: list[Caution] = []
    if raw[:4] == b"PAR1" or raw[:15] == b"SQLite format 3":
        return Document(path=path, name=name, data=raw, hashed=hashed)
    data = _decode(raw, name, options)
    stripped = data.rstrip(b"\x00") if data[-1:] == b"\x00" else data
    if len(stripped) != len(data):
        cautions.append(caution("nul_tail", name=name, n=len(data) - len(stripped)))
        data = stripped
    if not has_text(data):
        raise LogFormatError(name, found="an empty file", expected="a benchmark log or a GPU trace")
    _refuse_page(data, name)
    return Document(
        path=path,
        name=name,
        data=data,
        hashed=hashed,
        cautions=tuple(cautions),
        parsed={"recover": options.recover},
    )


def _decode(raw: bytes, name: str, options: ReadOptions) -> bytes:
    if raw[:3] == b"\xef\xbb\xbf":
        raw = raw[3:]
    elif raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _transcode(raw, name, "utf-16")
    elif options.encoding and (not raw.isascii() or _is_utf16(options.encoding)):
        return _transcode(raw, name, options.encoding)
    if raw.isascii():
        if raw[1:2] == b"\x00" and raw[3:4] == b"\x00" and raw[0:1] != b"\x00":
            raise LogFormatError(
                name,
                found="UTF-16 text without a byte-order mark",
                expected="UTF-8",
                remedy="give encoding: utf-16-le",
            )
        return raw
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise _unknown_encoding(raw, name, problem) from None
    return raw


def _is_utf16(encoding: str) -> bool:
    return encoding.lower().replace("_", "-").startswith("utf-16")


def _transcode(raw: bytes, name: str, encoding: str) -> bytes:
    try:
        return raw.decode(encoding).lstrip("\ufeff").encode("utf-8")
    except LookupError:
        raise LogFormatError(
            name, found=f"the unknown encoding {encoding!r}", expected="utf-8, utf-16 or gb18030"
        ) from None
    except (UnicodeDecodeError, UnicodeEncodeError, UnicodeError) as problem:
        position = getattr(problem, "start", 0)
        raise LogFormatError(
            name, found=f"bytes at {position} that are not {encoding}", expected=f"{encoding} text"
        ) from None


def _unknown_encoding(raw: bytes, name: str, problem: UnicodeDecodeError) -> LogFormatError:
    expected = "UTF-8"
    try:
        sample = raw[: 1 << 20]
        # The sample may end inside a character; what is judged is the text before it.
        sample[: sample.rfind(b"\n") + 1 or len(sample)].decode("gb18030")
    except UnicodeDecodeError:
        return LogFormatError(
            name,
            found=f"byte 0x{raw[problem.start]:02x} at {problem.start}, which is not UTF-8",
            expected=expected,
            remedy="give encoding: with the name of the file's encoding, or save it as UTF-8",
        )
    return LogFormatError(
        name,
        found=f"byte 0x{raw[problem.start]:02x} at {problem.start}, which is not UTF-8 but may be "
        "GB18030 (GBK)",
        expected=expected,
        remedy="if it is, give encoding: gb18030, or save the file as UTF-8",
    )


_PAGE = re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.S)
_TITLE = re.compile(rb"<title[^>]*>(.{0,300}?)</title>", re.I | re.S)


def _refuse_page(data: bytes, name: str) -> None:
    head = data[:4096]
    if _first_character(data) != b"<" or not _PAGE.match(head):
        return
    found = "an HTML page"
    if match := _TITLE.search(data[:65536]):
        title = " ".join(unescape(match.group(1).decode("utf-8", "replace")).split())
        found += f" titled {title[:120]!r}"
    raise LogFormatError(
        name,
        found=found,
        expected="a benchmark log or a GPU trace",
        remedy="download the raw file: this is a page about it or an error page",
    )


def _first_character(data: bytes) -> bytes:
    return data[:65536].lstrip()[:1]
