"""Lines of an engine's output or a kernel log that say why a level has no benchmark log.

A level that ran out of memory leaves no request log: only a line like `CUDA out of memory` in the
server's output, or the kernel's note that it killed the process. Those lines are evidence that the
level is infeasible, and are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gpuverdict.files import Document

__all__ = ["ServerEvent", "fatal_event", "find_events"]

Kind = Literal["out_of_memory", "killed", "no_kv_space", "preempted", "fragmented"]

# Longest quote of a line; what follows rarely helps and may hold paths.
QUOTE = 160
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_LOCAL = re.compile(r"(?:/[\w.+@-]+){2,}|[A-Za-z]:\\[\w\\.+@ -]+")

_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("killed", re.compile(
        r"out of memory: kill(?:ed)? process|oom-kill|oom_reaper|memory cgroup out of memory",
        re.I)),
    ("no_kv_space", re.compile(
        r"no available memory for the cache blocks|"
        r"is larger than the maximum number of tokens that can be stored in kv cache|"
        r"not enough memory[^\n]{0,60}(?:kv|cache)|"
        r"kv cache[^\n]{0,60}(?:is needed|not enough)", re.I)),
    ("fragmented", re.compile(
        r"reserved by pytorch but unallocated|expandable_segments|memory fragmentation", re.I)),
    ("out_of_memory", re.compile(
        r"cuda out of memory|outofmemoryerror|cuda_error_out_of_memory|"
        r"cudaerrormemoryallocation|hip out of memory|cublas_status_alloc_failed", re.I)),
    ("preempted", re.compile(
        r"is preempted by|preemption[_ ]?mode|retract(?:ed)? (?:requests|decode)|"
        r"kv cache pool is full",
        re.I)),
)  # fmt: skip

_FATAL: tuple[Kind, ...] = ("out_of_memory", "killed", "no_kv_space")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """One telling line: its number (from 1), what it says, and the line, shortened."""

    line: int
    kind: Kind
    quote: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind.replace('_', ' ')}: {self.quote}"


def find_events(document: Document) -> list[ServerEvent]:
    """List the lines of a server or kernel log that speak of memory running out.

    Returns
    -------
    list of ServerEvent
        In file order; escape sequences are removed and paths shortened, since the quotes go into a
        report.

    Examples
    --------
    >>> from pathlib import Path
    >>> log = b"INFO ready\\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    >>> one = Document(path=Path("s.log"), name="s.log", data=log, hashed=str)
    >>> print(find_events(one)[0])
    line 2: out of memory: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
    """
    return list(_events(document.data.decode("utf-8", "replace").splitlines()))


def _events(lines: Iterable[str]) -> Iterable[ServerEvent]:
    for number, line in enumerate(lines, start=1):
        plain = _ANSI.sub("", line)
        for kind, pattern in _KINDS:
            found = pattern.search(plain)
            if found is None:
                continue
            # Around the telling words, not the start: a line of a cluster log may be long.
            start = max(0, found.start() - QUOTE // 2)
            quote = plain[start : start + QUOTE].strip()
            quote = _LOCAL.sub("…", "".join(c if c.isprintable() else " " for c in quote))
            yield ServerEvent(line=number, kind=kind, quote=quote)
            break


def fatal_event(events: Iterable[ServerEvent]) -> ServerEvent | None:
    """Return the first line that says the server could not run, if there is one.

    Preemptions and fragmentation slow a server down; they do not make a level infeasible.
    """
    return next((event for event in events if event.kind in _FATAL), None)
