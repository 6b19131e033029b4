"""Engine output and kernel logs: the lines that say a level did not fit.

A level that ran out of memory often leaves no result at all, only such a line; it is an answer of
its own ("infeasible"), quoted with its place. Nothing else of a server's log is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import ReadOptions
from gpuverdict.files.unpack import unpack
from gpuverdict.text import caution

__all__ = ["Finding", "search_server_log"]

# The first that fits names a line: an engine that makes room by itself did not run out.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("preemption", re.compile(
        r"is preempted by|preempt(?:ed|ion)[^\n]{0,40}(?:recompute|swap|mode)|"
        r"KV cache pool is full|#?retracted_reqs?|Decode out of memory happened", re.I)),
    ("oom_killer", re.compile(
        r"Out of memory: Killed process|oom-kill|oom_reaper|Memory cgroup out of memory", re.I)),
    ("out_of_memory", re.compile(
        r"CUDA out of memory|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|"
        r"No available memory for the cache blocks|larger than the maximum number of tokens that "
        r"can be stored in KV cache|(?:failed|unable) to allocate[^\n]{0,60}(?:memory|cache)|"
        r"Not enough memory", re.I)),
    ("fragmentation", re.compile(
        r"reserved but unallocated memory is large|avoid fragmentation|memory fragmentation", re.I)),
)  # fmt: skip
_LONGEST_LINE = 2000
_LONGEST_QUOTE = 200
_LOCAL_PATH = re.compile(r"(?:[A-Za-z]:\\|/)(?:[\w.<>@+-]+[/\\])+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One kind of line found: how often, where first, and that line without local paths.

    `kind` is `out_of_memory`, `oom_killer`, `preemption` or `fragmentation`.
    """

    kind: str
    name: str
    line: int
    quote: str
    n: int

    @property
    def fatal(self) -> bool:
        """Whether the server (or a request) died of it."""
        return self.kind in ("out_of_memory", "oom_killer")

    def as_caution(self) -> Caution:
        """The finding as a caution that quotes the line."""
        return caution(
            f"server_{self.kind}", name=self.name, line=self.line, quote=self.quote, n=self.n
        )

    def __str__(self) -> str:
        return f"{self.name}:{self.line}: {self.kind} ({self.n}): {self.quote}"


def search_server_log(path: str | Path, options: ReadOptions | None = None) -> tuple[Finding, ...]:
    """Search a server's or the kernel's log for lines about memory.

    Parameters
    ----------
    path : str or Path
        A text log, compressed or not. Bytes that are no text are passed over.
    options : ReadOptions, optional
        Only `max_bytes` is used.

    Returns
    -------
    tuple of Finding
        At most one a kind, in the order they first occur.

    Raises
    ------
    LogFormatError
        For a file that cannot be opened or expanded.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "server.log"
    ...     _ = path.write_text("ready\\ntorch.OutOfMemoryError: CUDA out of memory.\\n")
    ...     print(*search_server_log(path))
    server.log:2: out_of_memory (1): torch.OutOfMemoryError: CUDA out of memory.
    """
    options = options or ReadOptions()
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise LogFormatError(path, found=str(problem.strerror), expected="a server log") from None
    found: dict[str, Finding] = {}
    for name, content in unpack(data, path.name, options.max_bytes):
        for number, raw in enumerate(content.split(b"\n"), 1):
            line = raw[:_LONGEST_LINE].decode("utf-8", "replace")
            kind = next((kind for kind, pattern in _KINDS if pattern.search(line)), None)
            if kind is None:
                continue
            before = found.get(kind)
            found[kind] = Finding(
                kind=kind,
                name=before.name if before else name,
                line=before.line if before else number,
                quote=before.quote if before else _quote(line),
                n=before.n + 1 if before else 1,
            )
    return tuple(sorted(found.values(), key=lambda finding: finding.line))


def _quote(line: str) -> str:
    text = "".join(ch if ch.isprintable() else " " for ch in line)
    return " ".join(_LOCAL_PATH.sub("", text).split())[:_LONGEST_QUOTE]
