"""fmperf result files (unverified): one row a token, grouped into requests.

A row is one response event: epoch nanoseconds, the milliseconds since the event before (TTFT in
the first row), and the tokens it brought. Rows marked `exclude` are dropped and counted; the text
"None" is no error.
"""

from __future__ import annotations

from typing import Any

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.columns import error_kinds
from gpuverdict.ingest.gaps import Gaps
from gpuverdict.ingest.values import number
from gpuverdict.schema import Run

__all__ = ["read", "why_not"]

_KEYS = ("worker_idx", "request_idx", "duration_ms")


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not from fmperf; None when it is."""
    rows = _rows(document.first)
    if not rows or not isinstance(rows[0], dict):
        return "no list of results"
    missing = [key for key in _KEYS if key not in rows[0]]
    return f"its records have no {missing[0]!r}" if missing else None


def _rows(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = value.get("results")
    return value if isinstance(value, list) else []


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read the events as the requests of one run.

    Raises
    ------
    LogFormatError
        For an event without its identity, time or duration.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    n_excluded = n_odd = 0
    for row in _rows(document.first):
        if not isinstance(row, dict):
            n_odd += 1
        elif row.get("exclude") is True:
            n_excluded += 1
        else:
            # As texts: whatever stands there, equal identities are one request.
            identity = (str(row.get("worker_idx")), str(row.get("request_idx")))
            groups.setdefault(identity, []).append(row)
    if not groups:
        raise LogFormatError(document.name, found="no event that counts", expected="token rows")
    stamps = [_stamp(row, document.name) for rows in groups.values() for row in rows]
    origin = min(stamps)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("request_id", "start_s", "first_token_s", "last_token_s",
                              "output_tokens", "n_chunks")
    }  # fmt: skip
    lists: list[list[float]] = []
    tokens_a_gap: list[list[int] | None] = []
    errors: list[str | None] = []
    for (worker, request), rows in groups.items():
        rows.sort(key=lambda row: _stamp(row, document.name))
        durations = [_duration(row, document.name) for row in rows]
        times = [(_stamp(row, document.name) - origin) / 1e9 for row in rows]
        bad = next((row.get("error") for row in rows if row.get("error") not in (None, "None", "")),
                   None)  # fmt: skip
        failed = bad is not None or any(row.get("ok") is False for row in rows)
        counts = [int(number(row.get("n_tokens")) or 0) for row in rows]
        columns["request_id"].append(f"{worker}-{request}")
        columns["start_s"].append(times[0] - durations[0])
        columns["first_token_s"].append(None if failed and len(rows) == 1 else times[0])
        columns["last_token_s"].append(None if failed and len(rows) == 1 else times[-1])
        columns["output_tokens"].append(float(sum(counts)))
        columns["n_chunks"].append(float(len(rows)))
        lists.append(durations[1:])
        tokens_a_gap.append(counts[1:])
        errors.append(str(bad or "error") if failed else None)
    columns["error_kind"] = error_kinds(errors)
    gaps = Gaps.from_lists(lists, "token_true", document.name)
    last = max((time for time in columns["last_token_s"] if time is not None), default=0.0)
    span = last - min(columns["start_s"])
    return [
        build_run(
            document,
            part="0",
            source_format="fmperf",
            columns=columns,
            info={
                "tool": "fmperf",
                "tool_version": options.client_version,
                "load_kind": "unknown",
                "duration_s": span if span > 0 else None,
                "streaming": True,
                "ttft_def": "unknown",
                "e2e_def": "last_token",
                "token_time_source": "per_token",
                "output_tokens_source": "usage",
                "unverified": True,
            },
            gaps=Gaps(flat_s=gaps.flat_s, offsets=gaps.offsets, kind=gaps.kind,
                      tokens_per_event=tokens_a_gap),
            errors=errors,
            dropped={"warmup": n_excluded, "non_object": n_odd},
            cautions=document.records().cautions,
            clock_offset_s=origin / 1e9,
        )
    ]  # fmt: skip


def _stamp(row: dict[str, Any], where: str) -> int:
    value = row.get("timestamp")
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise LogFormatError(where, found=f"the timestamp {value!r:.40}", expected="nanoseconds")


def _duration(row: dict[str, Any], where: str) -> float:
    value = number(row.get("duration_ms"))
    if value is None:
        raise LogFormatError(where, found=f"duration_ms {row.get('duration_ms')!r:.40}",
                             expected="milliseconds")  # fmt: skip
    return value / 1000
