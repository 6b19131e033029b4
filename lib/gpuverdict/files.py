"""From a path to text: compression, encodings, archives, JSON of every quality, with limits.

Readers never open a path themselves. They get a `Document`: the decoded bytes of one log, its
hash, and the cautions met on the way.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuverdict.errors import Caution, LogFormatError

__all__ = ["Document", "ReadOptions", "open_documents"]


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

    `name` is what messages call it (`a.zip!b.json` for a member); `sha256` is of the decompressed
    content.
    """

    path: Path
    name: str
    data: bytes
    sha256: str
    cautions: tuple[Caution, ...] = ()

    @property
    def text(self) -> str:
        """The content as text."""
        return self.data.decode("utf-8")


def open_documents(path: str | Path, options: ReadOptions | None = None) -> list[Document]:
    """Open a file: one document, or one for each member of an archive.

    Raises
    ------
    LogFormatError
        For a missing or empty file, or an encoding that cannot be told.
    """
    options = options or ReadOptions()
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise LogFormatError(path, found=str(problem.strerror), expected="a readable file") from None
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if not data.strip():
        raise LogFormatError(path, found="an empty file", expected="a benchmark log or a GPU trace")
    digest = hashlib.sha256(data).hexdigest()
    return [Document(path=path, name=path.name, data=data, sha256=digest)]
