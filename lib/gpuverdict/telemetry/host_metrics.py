"""Load of the host beside the GPUs: `vmstat`, `sar` and `pidstat` as rows of server metrics.

Verified on procps 4.0 (`vmstat`, with and without `-t`) and sysstat 12.6 (`sar -A`,
`mpstat -P ALL`, `pidstat`, `pidstat -t`).
Names: `host:cpu_busy_ratio`, `host:io_wait_ratio`, `host:memory_free_mib`, `host:run_queue`,
`host:swap_mib_s` (in and out), `host:network_rx_mb_s`, `host:network_tx_mb_s`,
`host:network_use_ratio` (of the link), `host:process_cpu_ratio` (1 is one whole core; of a thread
where pidstat lists threads).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import SERVER_METRICS, check, conform
from gpuverdict.telemetry.clock import epoch_from_local

__all__ = ["read", "why_not"]

_VMSTAT = re.compile(r"^procs -+memory-+")
_BANNER = re.compile(r"^Linux \S+ \(.*?\)\s+(?P<date>\S+)\s+\S+\s+\(\d+ CPU\)")
_TIME = re.compile(r"^(\d{2}):(\d{2}):(\d{2})(?:\s+(AM|PM))?\s+(.*)$")
_DATES = ("%m/%d/%Y", "%Y-%m-%d", "%m/%d/%y", "%d/%m/%Y")
# vmstat prints KiB.
_KIB = 1 / 1024
# sar counts pages, of 4 KiB or more: what it gives is a lower bound.
_PAGE_MIB = 4 / 1024
_HEADS = {"%idle", "%CPU", "rxkB/s", "kbmemfree", "runq-sz", "pswpin/s"}

Row = tuple[str, dict[str, str], float, Any]


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is no host log, or None if it is one."""
    head = document.data[:4096].decode("utf-8", errors="replace").lstrip("\x00 \t\r\n")
    first = head.split("\n", 1)[0]
    if _VMSTAT.match(first) or _BANNER.match(first):
        return None
    return "it is neither the output of vmstat, sar nor pidstat"


def read(document: Document, options: ReadOptions) -> pl.DataFrame:
    """Read a host log.

    Returns
    -------
    polars.DataFrame
        Columns of `SERVER_METRICS`. `time_epoch_s` is null without a zone (`time_zone`, or the zone
        vmstat names in its header where that is UTC), and for vmstat without `-t`. The first line
        of vmstat is a mean since boot and is left out, as are the `Average:` lines of sar.

    Raises
    ------
    LogFormatError
        For a row that does not fit its header, or a log without samples.

    Notes
    -----
    CPU busy is 1 - idle - io wait.
    """
    first = document.text.lstrip("\x00 \t\r\n").split("\n", 1)[0]
    zone = options.time_zone
    if _VMSTAT.match(first):
        header = document.text.split("\n", 2)[1] if "\n" in document.text else ""
        zone = zone or ("UTC" if header.split()[-1:] == ["UTC"] else None)
        rows = list(_vmstat(document))
    else:
        rows = list(_sysstat(document))
    if not rows:
        raise LogFormatError(document.name, found="a header without samples", expected="samples")
    stamps = pl.Series([row[3] for row in rows], dtype=pl.Datetime("us"))
    names = pl.Series([f"{row[0]}{sorted(row[1].items())}" for row in rows])
    times = epoch_from_local(stamps, names, zone, document.name)
    frame = pl.DataFrame(
        {
            "time_epoch_s": times.epoch_s,
            "name": [row[0] for row in rows],
            "labels": [json.dumps(row[1], sort_keys=True, ensure_ascii=False) for row in rows],
            "value": pl.Series([row[2] for row in rows], dtype=pl.Float64),
        }
    )
    return check(conform(frame, SERVER_METRICS), SERVER_METRICS, document.name)


def _vmstat(document: Document) -> Iterator[Row]:
    names: list[str] = []
    since_boot = True
    lines = document.text.rstrip("\x00").split("\n")
    for number, line in enumerate(lines, start=1):
        cells = line.split()
        if not cells or _VMSTAT.match(line):
            continue
        if cells[0] == "r" and "free" in cells:
            names = cells
            continue
        stamped = len(names) > 0 and not names[-1].islower()
        expected = len(names) + 1 if stamped else len(names)
        if number == len(lines):
            continue
        if len(cells) != expected:
            raise LogFormatError(
                f"{document.name}:{number}", found=f"{len(cells)} cells", expected=str(expected)
            )
        if since_boot:
            since_boot = False
            continue
        row = dict(zip(names, cells, strict=False))
        stamp = None
        if stamped:
            stamp = _stamp(document, number, " ".join(cells[-2:]))
        value = _reader(document, number, row)
        yield "host:cpu_busy_ratio", {}, 1 - (value("id") + value("wa")) / 100, stamp
        yield "host:io_wait_ratio", {}, value("wa") / 100, stamp
        yield "host:memory_free_mib", {}, _KIB * value("free", "buff", "cache"), stamp
        yield "host:run_queue", {}, value("r"), stamp
        yield "host:swap_mib_s", {}, _KIB * value("si", "so"), stamp


def _sysstat(document: Document) -> Iterator[Row]:
    lines = document.text.rstrip("\x00").split("\n")
    banner = next((m for line in lines if (m := _BANNER.match(line))), None)
    day = _day(document, banner["date"]) if banner else None
    names: list[str] = []
    last, after_blank = None, True
    for number, line in enumerate(lines, start=1):
        found = _TIME.match(line)
        # Every table opens with a blank line and its header; of tables that hold nothing of use
        # (`sar -A` prints dozens) the rows are passed over.
        opens, after_blank = after_blank, not line.strip()
        if found is None:
            continue
        cells = found[5].split()
        if opens or set(cells) & _HEADS:
            names = cells if set(cells) & _HEADS else []
            continue
        if not names or number == len(lines):
            continue
        if len(cells) < len(names):
            raise LogFormatError(
                f"{document.name}:{number}", found=f"{len(cells)} cells", expected=str(len(names))
            )
        stamp = _at(day, found)
        # A log that runs past midnight goes on in the next day.
        if last is not None and stamp < last - timedelta(hours=12):
            day = day + timedelta(days=1) if day is not None else None
            stamp = _at(day, found)
        last = stamp
        row = dict(zip(names, cells, strict=False))
        yield from _sysstat_row(document, number, row, stamp)


def _sysstat_row(
    document: Document, number: int, row: dict[str, str], stamp: datetime
) -> Iterator[Row]:
    value = _reader(document, number, row)
    if "%CPU" in row:
        labels = {
            "pid": row.get("PID") or row.get("TGID") or "",
            "command": row.get("Command", "").removeprefix("|__"),
        }
        if row.get("TID", "-") != "-":
            labels["tid"] = row["TID"]
        yield "host:process_cpu_ratio", labels, value("%CPU") / 100, stamp
    elif "%idle" in row:
        labels = {} if row["CPU"] == "all" else {"cpu": row["CPU"]}
        busy = 1 - (value("%idle") + value("%iowait")) / 100
        yield "host:cpu_busy_ratio", labels, busy, stamp
        yield "host:io_wait_ratio", labels, value("%iowait") / 100, stamp
    elif "rxkB/s" in row:
        labels = {"device": row["IFACE"]}
        yield "host:network_rx_mb_s", labels, value("rxkB/s") * 1.024e-3, stamp
        yield "host:network_tx_mb_s", labels, value("txkB/s") * 1.024e-3, stamp
        if "%ifutil" in row:
            yield "host:network_use_ratio", labels, value("%ifutil") / 100, stamp
    elif "kbmemfree" in row:
        yield "host:memory_free_mib", {}, value("kbmemfree", "kbbuffers", "kbcached") * _KIB, stamp
    elif "pswpin/s" in row:
        yield "host:swap_mib_s", {}, value("pswpin/s", "pswpout/s") * _PAGE_MIB, stamp
    elif "runq-sz" in row:
        yield "host:run_queue", {}, value("runq-sz"), stamp


def _reader(document: Document, number: int, row: dict[str, str]) -> Callable[..., float]:
    def value(*names: str) -> float:
        total = 0.0
        for name in names:
            try:
                total += float(row.get(name, "0"))
            except ValueError:
                raise LogFormatError(
                    f"{document.name}:{number}",
                    found=f"{row[name][:40]!r} under {name}",
                    expected="a number",
                ) from None
        return total

    return value


def _stamp(document: Document, number: int, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise LogFormatError(
            f"{document.name}:{number}", found=repr(text[:40]), expected="a date and time"
        ) from None


def _day(document: Document, text: str) -> datetime:
    for pattern in _DATES:
        try:
            return datetime.strptime(text, pattern)
        except ValueError:
            continue
    raise LogFormatError(document.name, found=f"the date {text!r}", expected="such as 12/01/2026")


def _at(day: datetime | None, found: re.Match[str]) -> datetime:
    hour = int(found[1])
    if found[4]:
        hour = hour % 12 + (12 if found[4] == "PM" else 0)
    start = day or datetime(1970, 1, 1)
    return start.replace(hour=hour, minute=int(found[2]), second=int(found[3]))
