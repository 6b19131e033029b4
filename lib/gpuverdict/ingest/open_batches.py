"""Batch-level rows, as a `generate` loop gives: batch, lengths, prefill and decode times.

Each row is one run: all sequences of a batch share its times, so its mean and its median are the
same number. Verdicts that rest on such rows are marked `as reported`.
"""

from __future__ import annotations

from typing import Any

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.open_columns import Table, load_table, table_header
from gpuverdict.ingest.open_units import BATCH_COLUMNS, cell_number
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

_SHORT = {"input": "input_tokens", "output": "output_tokens", "repeat": "repeat_no"}
_TIMES = ("prefill_s", "decode_step_s", "e2e_s")


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not a table of batches; None when it is."""
    table = table_header(document, options)
    if table is None:
        return "not a table (CSV, JSON Lines of flat objects, Parquet)"
    names = {_SHORT.get(name, name) for name in table.names}
    missing = [name for name in ("batch", "input_tokens", "output_tokens") if name not in names]
    if missing:
        return f"no column {missing[0]!r}"
    return None if names & set(_TIMES) else f"none of the columns {', '.join(_TIMES)}"


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read each row as a run without requests.

    Raises
    ------
    LogFormatError
        For unknown columns, values that are no numbers, and times that contradict each other.

    Notes
    -----
    Decode step = (E2E - prefill)/(output - 1) where it is not given; E2E = prefill +
    (output - 1) decode steps; output tokens/s = batch x output / E2E.
    """
    table = load_table(document, options)
    for name in table.columns:
        known = _SHORT.get(name, name) in BATCH_COLUMNS or name.startswith("x_")
        if not known and not table.mapped:
            raise LogFormatError(
                document.name, found=f"the unknown column {name!r}",
                expected=f"{', '.join(BATCH_COLUMNS)} or x_...",
                remedy="give a columns: map with units",
            )  # fmt: skip
    columns = {_SHORT.get(name, name): values for name, values in table.columns.items()}
    runs = [_row_run(document, table, columns, row, options) for row in range(table.n_rows)]
    if not runs:
        raise LogFormatError(document.name, found="a table without rows", expected="batches")
    return runs


def _row_run(
    document: Document,
    table: Table,
    columns: dict[str, list[Any]],
    row: int,
    options: ReadOptions,
) -> Run:
    where = f"{document.name}: row {row + 1}"

    def value(name: str) -> float | None:
        column = columns.get(name)
        return None if column is None else cell_number(column[row], table.decimal, where)

    batch, given, written = value("batch"), value("input_tokens"), value("output_tokens")
    if not batch or not given or not written or min(batch, given, written) < 1:
        raise LogFormatError(where, found="no batch, input or output length", expected="all three")
    prefill, step, e2e = value("prefill_s"), value("decode_step_s"), value("e2e_s")
    for name, time in (("prefill_s", prefill), ("decode_step_s", step), ("e2e_s", e2e)):
        if time is not None and time <= 0:
            raise LogFormatError(where, found=f"{name} {time:g}", expected="a time above 0")
    if e2e is not None and prefill is not None and prefill > e2e:
        raise LogFormatError(where, found="prefill longer than the whole", expected="prefill < e2e")
    if step is None and e2e is not None and prefill is not None and written > 1:
        step = (e2e - prefill) / (written - 1)
    if e2e is None and prefill is not None and step is not None:
        e2e = prefill + (written - 1) * step
    reported: dict[str, float | None] = {
        "decode_step_s.value": step,
        "decode_tokens_per_s.value": 1 / step if step else None,
        "prefill_tokens_per_s.value": batch * given / prefill if prefill else None,
        "output_tokens_per_s.value": batch * written / e2e if e2e else None,
        "memory_used_mib.value": value("memory_used_mib"),
        "input_tokens.sum": batch * given,
        "output_tokens.sum": batch * written,
        "requests.completed": batch,
    }
    for metric, time in (("ttft_s", prefill), ("tpot_s", step), ("e2e_s", e2e)):
        reported |= {f"{metric}.mean": time, f"{metric}.p50": time}
    repeat = value("repeat_no")
    said = list(table.cautions)
    if table.ignored:
        said.append(caution("columns_ignored", names=", ".join(table.ignored)[:200]))
    return build_run(
        document,
        part=str(row),
        source_format="gpuverdict_batches",
        columns={},
        info={
            "tool": "home-made",
            "tool_version": options.client_version,
            "load_kind": "offline",
            "rate_unbounded": True,
            "max_concurrency": int(batch),
            "repeat_no": None if repeat is None else int(repeat),
            "duration_s": e2e,
            "requested_input_tokens": int(given),
            "requested_output_tokens": int(written),
            "streaming": None,
        },
        reported=reported,
        dropped=table.dropped if row == 0 else {},
        cautions=said,
    )
