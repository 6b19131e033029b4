"""Who uses the card: `--query-compute-apps` tables and `pmon`, and the memory of the server alone.

`memory.used` is the whole board. What belongs to the server under test is what its process ids
hold; another process marks the run as one on a shared card.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import GPU_SAMPLES, Trace, empty
from gpuverdict.telemetry.cells import split_unit
from gpuverdict.text import caution

__all__ = ["MemoryAttribution", "attribute_memory", "read", "why_not"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAttribution:
    """Whose memory it is, in MiB; None where it is not known."""

    board_used_mib: float
    server_mib: float | None
    other_mib: float | None
    unattributed_mib: float | None
    n_foreign_processes: int
    cautions: tuple[Caution, ...] = ()


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document lists no GPU processes, or None if it does."""
    head = document.data[:8192].decode("utf-8", errors="replace").lstrip("\x00 \t\r\n")
    first = head.split("\n", 1)[0]
    names = [split_unit(cell)[0] for cell in first.split(",")]
    if "pid" in names and ("used_gpu_memory" in names or "used_memory" in names):
        return None
    if first.startswith("#") and {"gpu", "pid"} <= set(first.lstrip("#").split()):
        return None
    return "its header has no column pid"


def read(document: Document, options: ReadOptions) -> Trace:
    """Read a table of GPU processes.

    Returns
    -------
    Trace
        Without samples; `info["processes"]` lists one mapping a row: `gpu_uuid`, `gpu_index`,
        `pid`, `name`, `memory_mib`, `time` (as written, or None).

    Raises
    ------
    LogFormatError
        For a row whose process id or memory is no number.

    Notes
    -----
    The `pmon` layout is unverified by a real capture.
    """
    first = document.text.lstrip("\x00 \t\r\n").split("\n", 1)[0]
    pmon = first.startswith("#")
    rows = _from_pmon(document) if pmon else _from_table(document)
    cautions = list(document.cautions)
    if pmon:
        cautions.append(caution("layout_unverified", name=document.name, dialect="pmon"))
    info: dict[str, Any] = {
        "source_format": "pmon" if pmon else "smi_compute_apps",
        "source_name": document.name,
        "source_sha256": document.sha256,
        "processes": rows,
        "n_samples": 0,
        "n_gpus": len({row["gpu_uuid"] or row["gpu_index"] for row in rows}),
        "gpus": [],
        "duration_s": None,
        "dropped": {},
    }
    return Trace(samples=empty(GPU_SAMPLES), info=info, cautions=tuple(cautions))


def attribute_memory(
    board_used_mib: float, processes: Iterable[Mapping[str, Any]], server_pids: Iterable[int]
) -> MemoryAttribution:
    """Split the memory of a board into the server's, that of others, and what nobody claims.

    Parameters
    ----------
    board_used_mib : float
        `memory.used` of the board.
    processes : iterable of mapping
        `pid` and `memory_mib` of the processes on that board; a process listed several times
        counts with its largest value.
    server_pids : iterable of int
        Process ids of the server under test.

    Examples
    --------
    >>> rows = [{"pid": 1, "memory_mib": 18000.0}, {"pid": 2, "memory_mib": 4500.0}]
    >>> attribute_memory(23040.0, rows, [1]).unattributed_mib
    540.0
    """
    largest: dict[int, float | None] = {}
    for row in processes:
        held, memory = largest.get(row["pid"]), row["memory_mib"]
        known = [value for value in (held, memory) if value is not None]
        largest[row["pid"]] = max(known) if known else None
    own = set(server_pids)
    foreign = {pid: memory for pid, memory in largest.items() if pid not in own}
    server = _total([memory for pid, memory in largest.items() if pid in own])
    other = _total(list(foreign.values()), nothing=0.0)
    rest = None if server is None or other is None else board_used_mib - server - other
    cautions = []
    if foreign:
        cautions.append(caution("shared_card", n=len(foreign), memory_mib=other or 0.0))
    return MemoryAttribution(
        board_used_mib=board_used_mib,
        server_mib=server,
        other_mib=other,
        unattributed_mib=rest,
        n_foreign_processes=len(foreign),
        cautions=tuple(cautions),
    )


def _total(values: list[float | None], nothing: float | None = None) -> float | None:
    if not values:
        return nothing
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _from_table(document: Document) -> list[dict[str, Any]]:
    lines = [line for line in document.text.rstrip("\x00").split("\n")]
    header: list[str] = []
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip():
            continue
        names = [split_unit(cell)[0] for cell in cells]
        if "pid" in names:
            header = names
            continue
        if len(cells) != len(header):
            if number == len(lines):
                continue
            raise LogFormatError(
                f"{document.name}:{number}", found=f"{len(cells)} cells", expected=str(len(header))
            )
        row = dict(zip(header, cells, strict=True))
        memory = row.get("used_gpu_memory", row.get("used_memory", ""))
        rows.append(
            {
                "gpu_uuid": row.get("gpu_uuid") or None,
                "gpu_index": None,
                "pid": _whole(f"{document.name}:{number}", row["pid"]),
                "name": row.get("process_name") or row.get("name"),
                "memory_mib": _mib(f"{document.name}:{number}", memory),
                "time": row.get("timestamp"),
            }
        )
    return rows


def _from_pmon(document: Document) -> list[dict[str, Any]]:
    names: list[str] = []
    rows: list[dict[str, Any]] = []
    for number, raw in enumerate(document.text.rstrip("\x00").split("\n"), start=1):
        line = raw.strip()
        if line.startswith("#"):
            cells = line.lstrip("#").split()
            names = cells if "pid" in cells else names
            continue
        cells = line.split(maxsplit=max(0, len(names) - 1))
        if len(cells) != len(names) or not names:
            continue
        row = dict(zip(names, cells, strict=True))
        if row["pid"] == "-":
            continue
        where = f"{document.name}:{number}"
        rows.append(
            {
                "gpu_uuid": None,
                "gpu_index": _whole(where, row["gpu"]),
                "pid": _whole(where, row["pid"]),
                "name": row.get("command"),
                "memory_mib": _mib(where, row.get("fb", "-")),
                "time": " ".join(row[k] for k in ("Date", "Time") if k in row) or None,
            }
        )
    return rows


def _whole(where: str, text: str) -> int:
    if not re.fullmatch(r"\d+", text):
        raise LogFormatError(where, found=repr(text[:40]), expected="a whole number")
    return int(text)


def _mib(where: str, text: str) -> float | None:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(?: MiB)?", text)
    if found:
        return float(found[1])
    if text in ("-", "", "N/A") or text.startswith("["):
        return None
    raise LogFormatError(where, found=repr(text[:40]), expected="a size in MiB")
