"""Take compression and archives off, never writing to disk and never past a size limit.

A small archive may hold a very large file; what comes out is counted while it comes out, whatever
the archive's own directory claims.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import zstandard

from gpuverdict.errors import LogFormatError

__all__ = ["unpack"]

_GZIP, _ZSTD, _ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
_EMPTY_ZIP = b"PK\x05\x06"
_CHUNK = 1 << 22
# Folders of operating systems and version control inside archives hold no measurements.
_SKIPPED_PARTS = ("__MACOSX", ".git", ".DS_Store")
_MOST_MEMBERS = 10_000


def unpack(data: bytes, name: str, limit: int) -> list[tuple[str, bytes]]:
    """Unpack bytes into (name, content), one entry for a plain or compressed file.

    Raises
    ------
    LogFormatError
        For a damaged archive, one that expands past `limit` bytes, or an encrypted one.
    """
    data = _decompress(data, name, limit)
    if data[:4] in (_ZIP, _EMPTY_ZIP):
        members = _zip_members(data, name, limit)
    elif data[257:262] == b"ustar":
        members = _tar_members(data, name, limit)
    else:
        return [(name, data)]
    unpacked = [
        (f"{name}!{member}", _decompress(content, f"{name}!{member}", limit))
        for member, content in members
    ]
    if not unpacked:
        raise LogFormatError(name, found="an archive without files", expected="a log inside")
    if sum(len(content) for _, content in unpacked) > limit:
        raise _too_large(name, limit)
    return unpacked


def _decompress(data: bytes, name: str, limit: int) -> bytes:
    try:
        if data[:2] == _GZIP:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                return _read_limited(stream, name, limit)
        if data[:4] == _ZSTD:
            reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
            with reader as stream:
                return _read_limited(stream, name, limit)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as problem:
        raise LogFormatError(
            name,
            found=f"compressed data that cannot be expanded ({_phrase(problem)})",
            expected="a complete compressed file",
            remedy="copy the file again",
        ) from None
    return data


def _read_limited(stream: Any, name: str, limit: int) -> bytes:
    parts: list[bytes] = []
    total = 0
    while part := stream.read(_CHUNK):
        total += len(part)
        if total > limit:
            raise _too_large(name, limit)
        parts.append(part)
    return b"".join(parts)


def _zip_members(data: bytes, name: str, limit: int) -> Iterator[tuple[str, bytes]]:
    total = 0
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if any(entry.filename == "[Content_Types].xml" for entry in entries):
                raise LogFormatError(
                    name,
                    found="an office document",
                    expected="a text log",
                    remedy="export the sheet as CSV (UTF-8)",
                )
            _refuse_many(len(entries), name)
            for entry in entries:
                if _skipped(entry.filename):
                    continue
                with archive.open(entry) as stream:
                    content = _read_limited(stream, name, limit - total)
                total += len(content)
                yield entry.filename, content
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as problem:
        raise LogFormatError(name, found=f"a damaged zip archive ({_phrase(problem)})") from None
    except (RuntimeError, NotImplementedError) as problem:
        raise LogFormatError(
            name,
            found=f"a zip archive that cannot be opened ({_phrase(problem)})",
            remedy="unpack it and give the files",
        ) from None


def _tar_members(data: bytes, name: str, limit: int) -> Iterator[tuple[str, bytes]]:
    total = count = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for entry in archive:
                if not entry.isfile() or _skipped(entry.name):
                    continue
                count += 1
                _refuse_many(count, name)
                stream = archive.extractfile(entry)
                if stream is None:
                    continue
                content = _read_limited(stream, name, limit - total)
                total += len(content)
                yield entry.name, content
    except (tarfile.TarError, EOFError, OSError, ValueError) as problem:
        raise LogFormatError(name, found=f"a damaged tar archive ({_phrase(problem)})") from None


def _skipped(member: str) -> bool:
    return any(part in _SKIPPED_PARTS for part in member.split("/"))


def _refuse_many(count: int, name: str) -> None:
    if count > _MOST_MEMBERS:
        raise LogFormatError(
            name, found=f"more than {_MOST_MEMBERS} files in one archive", expected="fewer"
        )


def _too_large(name: str, limit: int) -> LogFormatError:
    return LogFormatError(
        name,
        found=f"content of more than {limit} bytes once expanded",
        expected="less than the limit",
        remedy="split the file or raise the limit",
    )


def _phrase(problem: BaseException) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0]
