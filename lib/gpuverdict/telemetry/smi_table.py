"""Header and whole rows of an nvidia-smi query table, however the file came about."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.telemetry.cells import split_unit
from gpuverdict.text import caution

__all__ = [
    "DEVICE_LINES",
    "REFUSAL",
    "STAMP",
    "SmiTable",
    "canonical_name",
    "first_line",
    "read_table",
]

STAMP = re.compile(r"^\d{4}/\d{2}/\d{2} \d{2}:\d{2}:\d{2}(?:\.\d+)?$")
REFUSAL = re.compile(r'^Field "(?P<field>[^"]*)" is not a valid field to query')
DEVICE_LINES = ("Unable to determine the device handle", "No devices were found")
_BUFFER = 4096

# Names asked for and names printed differ; both stand for one column.
_SAME = {
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
    "gpu_uuid": "uuid",
    "gpu_name": "name",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SmiTable:
    """Header and whole rows of a file, with what was left out."""

    names: list[str]
    units: list[str | None]
    frame: pl.DataFrame
    lines: pl.Series
    cautions: tuple[Caution, ...]
    dropped: dict[str, int]


def first_line(document: Document) -> str:
    """Give the first line that is not blank."""
    head = document.data[:65536].decode("utf-8", errors="replace").lstrip("\x00 \t\r\n")
    return head.split("\n", 1)[0].strip("\r ")


def canonical_name(name: str) -> str:
    """Give one name to the spellings of one field, over drivers and queries."""
    name = name.strip().replace("clocks_throttle_reasons", "clocks_event_reasons")
    return _SAME.get(name, name)


def read_table(document: Document, options: ReadOptions) -> SmiTable:
    """Split a document into its header and whole rows; drop and count everything else.

    Raises
    ------
    LogFormatError
        For a refusal of the tool, a missing or second header, a separator that was not declared, or
        no rows.
    """
    first = first_line(document)
    refusal = REFUSAL.match(first)
    if refusal or first.startswith(DEVICE_LINES):
        raise LogFormatError(
            document.name, found=f"no samples but the sentence {first[:160]!r}", expected="samples"
        )
    separator = _separator(document, options, first)
    text = document.text.rstrip("\x00")
    lines = pl.Series(text.split("\n")).str.strip_chars_end("\r")
    number = pl.Series(range(1, len(lines) + 1))
    written = lines.str.strip_chars() != ""
    if options.trace_query and STAMP.match(first.split(separator)[0].strip()):
        header = options.trace_query.replace("--query-gpu=", "").replace(";", ",").split(",")
        names_line = None
    elif STAMP.match(first.split(separator)[0].strip()):
        raise LogFormatError(
            document.name,
            found="a table without a header",
            expected="the query it was made with",
            remedy="set trace_query to the text after --query-gpu=",
        )
    else:
        header = first.split(separator)
        names_line = first
    cells = lines.str.split(separator)
    is_header = cells.list.first().str.strip_chars().is_in(
        [header[0].strip(), "timestamp", "index"]
    ) & ~cells.list.first().str.contains(r"^\s*\d")
    if names_line is not None:
        other = lines.filter(is_header & (lines.str.strip_chars() != names_line))
        if len(other):
            raise LogFormatError(
                document.name,
                found=f"a second header {other[0][:80]!r}",
                expected="one query a file",
                remedy="split the file",
            )
    wrong = written & ~is_header & (cells.list.len() != len(header))
    rows = written & ~is_header & ~wrong
    dropped = {"header_repeat": max(0, int(is_header.sum()) - (names_line is not None))}
    cautions: list[Caution] = []
    cut = _cut_line(lines, rows, wrong, text)
    if cut is not None:
        keep = pl.Series(range(len(lines))) != cut
        rows, wrong = rows & keep, wrong & keep
        dropped["incomplete_last_line"] = 1
        cautions.append(caution("trace_cut", name=document.name, n_bytes=len(document.data)))
    dropped["non_object"] = int(wrong.sum())
    dropped = {reason: count for reason, count in dropped.items() if count}
    _report_lines(document, cautions, {"non_object": number.filter(wrong)}, dropped)
    fields = cells.filter(rows).list.to_struct(fields=[str(i) for i in range(len(header))])
    frame = fields.struct.unnest() if len(fields) else pl.DataFrame()
    if frame.height == 0 and wrong.any():
        raise LogFormatError(
            f"{document.name}:{number.filter(wrong)[0]}",
            found=f"{cells.filter(wrong).list.len()[0]} cells",
            expected=f"{len(header)}, as in the header",
            remedy="a number with a decimal or thousands comma splits a cell: write points, or "
            "give decimal and separator",
        )
    if frame.height == 0:
        raise LogFormatError(document.name, found="a header without samples", expected="samples")
    split = [split_unit(cell) for cell in header]
    return SmiTable(
        names=[canonical_name(name) for name, _ in split],
        units=[unit for _, unit in split],
        frame=frame,
        lines=number.filter(rows),
        cautions=tuple(cautions),
        dropped=dropped,
    )


def _separator(document: Document, options: ReadOptions, first: str) -> str:
    if options.separator:
        return options.separator
    if ";" not in first:
        return ","
    if options.decimal == ",":
        return ";"
    raise LogFormatError(
        document.name,
        found="semicolons between the columns (a spreadsheet saved it again)",
        expected="commas",
        remedy='set decimal: "," (and separator: ";") if its numbers have decimal commas',
    )


def _cut_line(lines: pl.Series, rows: pl.Series, wrong: pl.Series, text: str) -> int | None:
    """Find a last line that the sampler did not finish.

    A row that happens to have all its cells may still end in a shortened number, so without a
    line end it is kept only if its last cell is plainly whole.
    """
    if text.endswith("\n") or not text:
        return None
    last = len(lines) - 1
    if wrong[last]:
        return last
    if not rows[last]:
        return None
    tail = lines[last].rsplit(",", 1)[-1].strip()
    whole_mask = bool(re.fullmatch(r"0x[0-9a-fA-F]{16}", tail))
    whole_unit = bool(re.fullmatch(r"[-+\d.]+ (?:W|MHz|MiB|%)", tail)) or tail.endswith("]")
    at_buffer = len(text.encode()) % _BUFFER == 0
    earlier = lines.filter(rows)
    if len(earlier) >= 2 and (whole_mask or whole_unit) and not at_buffer:
        return None
    # A hand-written or edited file may lack the line end: unit or mask tell, a bare number cannot.
    return last


def _report_lines(
    document: Document,
    cautions: list[Caution],
    places: dict[str, pl.Series],
    dropped: dict[str, int],
) -> None:
    for reason, where in places.items():
        if len(where):
            cautions.append(
                caution(
                    "trace_rows_dropped",
                    name=document.name,
                    n=dropped[reason],
                    reasons=reason,
                    line=int(where[0]),
                )
            )
