"""From the columns a reader found to a canonical `Run`: the rules every dialect shares, once.

A reader says what its tool wrote, in seconds; this module decides the status of each request,
flags impossible times, shifts the clock to the earliest start, recomputes TTFT, E2E and TPOT,
counts, and compares the tool's own summary with what the rows give.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document
from gpuverdict.ingest.values import number, positive, whole
from gpuverdict.schema import (
    REQUESTS,
    RUN_FIELDS,
    STATUSES,
    TOKEN_GAPS,
    Run,
    check,
    conform,
    empty,
    polars_schema,
)
from gpuverdict.text import caution

__all__ = ["Gaps", "build_run", "error_kinds", "first_line", "floats", "integers", "run_id"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# The invariant first token + gaps = last token holds to this many seconds (format notes, 17.3).
_GAP_TOLERANCE_S = 1e-3
# A tool's own figure and ours may differ by this ratio before it is said (format notes, rule 7).
_REPORTED_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The gap lists of all requests, flat: request i owns `flat_s[offsets[i]:offsets[i+1]]`."""

    flat_s: FloatArray
    offsets: npt.NDArray[np.int64]
    kind: str
    tokens_per_event: list[list[int] | None] | None = None

    @classmethod
    def from_lists(cls, lists: Sequence[Any], kind: str, where: str) -> Gaps:
        """Flatten a list of lists of seconds, null for none.

        Raises
        ------
        LogFormatError
            For an entry that is neither a list of numbers nor null.
        """
        try:
            rows = [row if row is not None else () for row in lists]
            lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
            total = int(lengths.sum())
            flat = np.fromiter(chain.from_iterable(rows), dtype=np.float64, count=total)
        except (TypeError, ValueError):
            raise LogFormatError(
                where, found="a gap list that holds something else", expected="lists of numbers"
            ) from None
        return cls(flat_s=flat, offsets=_offsets(lengths), kind=kind)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of gaps of each request."""
        return np.diff(self.offsets)

    @property
    def sums_s(self) -> FloatArray:
        """Sum of the gaps of each request, 0 for none."""
        sums = np.zeros(len(self.offsets) - 1)
        filled = self.lengths > 0
        if filled.any():
            sums[filled] = np.add.reduceat(self.flat_s, self.offsets[:-1][filled])
        return sums

    def nth_s(self, position: int) -> FloatArray:
        """Gap at a position (0 for the first) of each request, NaN where the list is shorter."""
        found = np.full(len(self.offsets) - 1, np.nan)
        filled = self.lengths > position
        found[filled] = self.flat_s[self.offsets[:-1][filled] + position]
        return found

    def without_first(self, rows: BoolArray) -> Gaps:
        """Drop the first gap of the marked requests."""
        rows = rows & (self.lengths > 0)
        flat = np.delete(self.flat_s, self.offsets[:-1][rows])
        return Gaps(flat_s=flat, offsets=_offsets(self.lengths - rows), kind=self.kind)

    def cleared(self, rows: BoolArray) -> Gaps:
        """Empty the lists of the marked requests."""
        if not (rows & (self.lengths > 0)).any():
            return self
        keep = np.repeat(~rows, self.lengths)
        return Gaps(
            flat_s=self.flat_s[keep],
            offsets=_offsets(np.where(rows, 0, self.lengths)),
            kind=self.kind,
            tokens_per_event=self.tokens_per_event,
        )


def _offsets(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def run_id(document: Document, part: str) -> str:
    """Identify a run by the content of its file and its place in it, never by a path."""
    return hashlib.sha256(f"{document.sha256}:{part}".encode()).hexdigest()


def floats(values: Iterable[Any], where: str) -> FloatArray:
    """Turn a column of numbers, numeric texts and nulls into floats, NaN for null.

    Raises
    ------
    LogFormatError
        For a value that is no number.
    """
    values = list(values)
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    result = np.empty(len(values))
    for i, value in enumerate(values):
        result[i] = _number(value, where, i)
    return result


def _number(value: Any, where: str, index: int) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool):
        raise LogFormatError(f"{where}[{index}]", found=repr(value), expected="a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise LogFormatError(
            f"{where}[{index}]", found=repr(value)[:80], expected="a number"
        ) from None


def integers(values: Iterable[Any], where: str) -> FloatArray:
    """Turn a column of counts into whole floats, NaN for null.

    Raises
    ------
    LogFormatError
        For a value that is no whole number or negative.
    """
    result = floats(values, where)
    with np.errstate(invalid="ignore"):
        odd = (result != np.floor(result)) | (result < 0) | (result > 2**53)
    odd &= ~np.isnan(result)
    if odd.any():
        bad = int(np.flatnonzero(odd)[0])
        raise LogFormatError(
            f"{where}[{bad}]", found=f"{result[bad]:g}", expected="a count of tokens"
        )
    return result


_STATUS_CODE = re.compile(r"\b(?:HTTP|status|code|error)\D{0,12}([45]\d\d)\b|^\s*([45]\d\d)\b|"
                          r"'([45]\d\d) [A-Z]", re.I)  # fmt: skip
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("timeout", ("timeout", "timed out")),
    ("cut_stream", ("incomplete chunked", "peer closed", "payload is not completed",
                    "transferencoding", "incompleteread", "response ended prematurely",
                    "response payload", "chunkedencoding")),
    ("connection", ("connection", "connect call", "disconnected", "refused", "reset by peer",
                    "cannot connect", "broken pipe", "serverdisconnected", "unreachable")),
    ("empty_stream", ("invalidinferenceresult", "never received a valid chunk", "no content",
                      "empty response", "no token")),
    ("http_5xx", ("internal server error", "service unavailable", "bad gateway")),
    ("http_4xx", ("too many requests", "bad request", "unauthorized", "not found", "forbidden")),
    ("client", ("keyerror", "valueerror", "typeerror", "jsondecodeerror", "attributeerror")),
)  # fmt: skip


def error_kinds(errors: Sequence[str | None]) -> list[str | None]:
    """Classify error texts into the kinds of the canonical schema; null for no error.

    Examples
    --------
    >>> error_kinds(["", "HTTP 503", "Connection refused", None, "odd"])
    [None, 'http_5xx', 'connection', None, 'other']
    """
    known: dict[str | None, str | None] = {None: None, "": None}
    for text in errors:
        if text not in known:
            known[text] = _error_kind(str(text))
    return [known[text] for text in errors]


def _error_kind(text: str) -> str:
    # Tracebacks end with what matters, and may be very long.
    sample = text if len(text) <= 4000 else text[:2000] + text[-2000:]
    lowered = sample.lower()
    if match := _STATUS_CODE.search(sample):
        code = next(group for group in match.groups() if group)
        if code == "499":
            return "client"
        return f"http_{code[0]}xx"
    for kind, marks in _KINDS:
        if any(mark in lowered for mark in marks):
            return kind
    return "other"


_LOCAL_PATH = re.compile(r"(?:[A-Za-z]:\\|/)(?:[\w.<>@+ -]+[/\\])+")


def first_line(text: Any, limit: int = 160) -> str:
    """Keep the last telling line of an error text, without local paths."""
    lines = [line.strip() for line in str(text)[-8000:].splitlines() if line.strip()]
    if not lines:
        return ""
    line = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    return _LOCAL_PATH.sub("", line)[:limit]


def build_run(
    document: Document,
    *,
    part: str,
    source_format: str,
    columns: Mapping[str, Any],
    info: Mapping[str, Any],
    gaps: Gaps | None = None,
    errors: Sequence[str | None] | None = None,
    reported: Mapping[str, float | None] | None = None,
    explained: Mapping[str, str] | None = None,
    dropped: Mapping[str, int] | None = None,
    cautions: Sequence[Caution] = (),
    clock_offset_s: float | None = None,
    needs_tokens: bool = True,
) -> Run:
    """Make a canonical run of what a reader found.

    Parameters
    ----------
    document : Document
        The file; its name and hash become the run's source.
    part : str
        Which run of the file, unique in it.
    source_format : str
        Name of the dialect.
    columns : mapping
        Column of `REQUESTS` -> values, one a request, times in seconds on the file's own clock
        (epoch, monotonic, or relative to `clock_offset_s`). May also hold `decode_s` (last token -
        first token) where a tool gives durations only. `status` may be partly null: null is decided
        here.
    info : mapping
        Values for `RUN_FIELDS`; what is absent is None.
    gaps : Gaps, optional
        Gap lists, first token excluded.
    errors : sequence of str, optional
        Error text a request, empty or null for none.
    reported : mapping, optional
        The tool's own summary, `"<metric>.<statistic>"` -> value in base units.
    explained : mapping, optional
        Metric -> code of the sentence that explains why the tool's figure may differ from ours.
    dropped : mapping, optional
        Reason -> count of what the reader left out.
    clock_offset_s : float, optional
        Epoch seconds of the zero of the times given; None where the clock's zero is not known, 0.0
        for epoch times.
    needs_tokens : bool
        False for dialects that cannot count output tokens: null is then no sign of failure.

    Raises
    ------
    LogFormatError
        For columns of unequal length.
    SchemaError
        For values the schema does not allow.

    Notes
    -----
    Status: `ok` = no error, output tokens > 0 and TTFT > 0 (or not streamed). A finished request
    without text is `empty`. TPOT = (last token - first token) / (output tokens - 1), null below
    two tokens. Impossible order of times keeps the row and empties its latencies.
    """
    n = _common_length(document, columns, errors, gaps)
    identity = run_id(document, part)
    facts: dict[str, Any] = dict.fromkeys(RUN_FIELDS)
    facts.update(info)
    unknown = set(facts) - set(RUN_FIELDS)
    if unknown:
        raise LogFormatError(document.name, found=f"unknown run facts {sorted(unknown)}")
    facts = {name: _typed(name, value) for name, value in facts.items()}
    dropped_counts = {key: int(value) for key, value in (dropped or {}).items() if value}
    said = [*document.cautions, *cautions]
    summary = {
        key: float(value)
        for key, value in (reported or {}).items()
        if value is not None and math.isfinite(value)
    }
    columns_f = _numeric_columns(columns, n)
    impossible = _impossible(columns_f)
    streaming = facts["streaming"] is not False
    status = _statuses(columns, columns_f, errors, n, streaming, needs_tokens)
    _null_latencies(columns_f, status, impossible)
    if impossible.any():
        dropped_counts["impossible_times"] = int(impossible.sum())
        said.append(caution("impossible_times", n=int(impossible.sum()), n_rows=n))

    starts = columns_f["start_s"]
    has_starts = bool(np.isfinite(starts).any())
    t0 = float(np.nanmin(starts)) if has_starts else 0.0
    for name in ("start_s", "first_token_s", "last_token_s", "end_s"):
        columns_f[name] = columns_f[name] - t0
    for name in ("measure_start_s", "measure_end_s"):
        if facts[name] is not None:
            facts[name] = facts[name] - t0 if has_starts else None
    if not has_starts:
        facts.update(t0_quality="none", clock="none", t0_epoch_s=None)
    elif clock_offset_s is not None:
        facts["t0_epoch_s"] = clock_offset_s + t0
        facts["t0_quality"] = facts["t0_quality"] or "exact"
        facts["clock"] = facts["clock"] or "epoch"
    else:
        facts["t0_quality"] = facts["t0_quality"] or "none"
        facts["clock"] = facts["clock"] or "monotonic"

    _recompute(columns_f, impossible, status)
    if gaps is not None:
        # Lists of failed requests stop anywhere; their last gap belongs to no token.
        unusable = impossible | ~np.isin(status, ("ok", "incomplete", "cancelled"))
        gaps = gaps.cleared(unusable)
        said.extend(_check_gaps(columns_f, gaps))
    sources = _source_column(columns, facts, status, n)
    requests = _requests_frame(columns, columns_f, status, sources, errors, identity, n)
    gap_frame = _gaps_frame(gaps, identity)

    counts = {name: int((status == name).sum()) for name in STATUSES}
    facts.update(
        run_id=identity,
        source_format=source_format,
        source_name=document.name,
        source_sha256=document.sha256,
        source_part=part,
        n_rows=n,
        n_ok=counts["ok"],
        n_error=counts["error"],
        n_cancelled=counts["cancelled"],
        n_incomplete=counts["incomplete"],
        n_empty=counts["empty"],
        gap_kind=gaps.kind if gaps is not None else facts["gap_kind"],
        reported=summary,
    )
    if n == 0 and summary:
        # The tool's own counts stand in for rows that were never written.
        facts["n_ok"] = int(summary.get("requests.completed", 0))
        facts["n_error"] = int(summary.get("requests.failed", 0))
        dropped_counts.setdefault("aggregate_only", 1)
        said.append(caution("aggregate_only", name=document.name))
    if facts["n_planned"] is not None and n and n < facts["n_planned"]:
        said.append(caution("truncated_run", n=n, n_planned=facts["n_planned"]))
    if n and counts["ok"] == 0:
        said.append(caution("no_request_succeeded", n=n))
    elif n != counts["ok"]:
        said.append(
            caution(
                "rows_not_ok",
                n=n,
                n_not_ok=n - counts["ok"],
                **{f"n_{name}": counts[name] for name in STATUSES if name != "ok"},
            )
        )
    left_out = {k: v for k, v in dropped_counts.items() if k not in ("aggregate_only",)}
    if left_out:
        listed = ", ".join(f"{reason} {count}" for reason, count in sorted(left_out.items()))
        said.append(caution("rows_dropped", listed=listed))
    if facts["unverified"]:
        said.append(caution("unverified_reader", dialect=source_format))
    if facts["streaming"] is False:
        said.append(caution("not_streamed"))
    measured = (status == "ok") & (requests["phase"] == "main").to_numpy()
    said.extend(_compare_reported(summary, columns_f, measured, gaps, facts, explained or {}))
    facts["dropped"] = dropped_counts
    unique = _without_repeats(said)
    facts["warnings"] = [item.code for item in unique]
    return Run(info=facts, requests=requests, gaps=gap_frame, cautions=unique)


_WHOLE_FACTS = {
    "gpu_count", "n_nodes", "tp", "pp", "dp", "ep", "max_concurrency", "stage_id", "repeat_no",
    "order_no", "n_planned", "requested_input_tokens", "requested_output_tokens",
}  # fmt: skip
_REAL_FACTS = {"rate_rps", "burstiness", "t0_epoch_s", "measure_start_s", "measure_end_s"}
_FLAG_FACTS = {"rate_unbounded", "streaming", "spec_decode", "unverified"}


def _typed(name: str, value: Any) -> Any:
    """Keep a fact only as the type it must have: a log may hold anything in its place."""
    if value is None:
        return None
    if name in _WHOLE_FACTS:
        found = whole(value)
        return found if found is not None and found >= 0 else None
    if name in _REAL_FACTS:
        return number(value)
    if name == "duration_s":
        return positive(value)
    if name in _FLAG_FACTS:
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) else None


def _common_length(
    document: Document,
    columns: Mapping[str, Any],
    errors: Sequence[str | None] | None,
    gaps: Gaps | None,
) -> int:
    lengths = {name: len(values) for name, values in columns.items() if values is not None}
    if errors is not None:
        lengths["errors"] = len(errors)
    if gaps is not None:
        lengths["gaps"] = len(gaps.offsets) - 1
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise LogFormatError(
            document.name, found=f"lists of unequal length ({listed})", expected="one a request"
        )
    return next(iter(lengths.values()), 0)


_NUMERIC = tuple(
    name for name, column in REQUESTS.items() if column.dtype in (pl.Float64, pl.Int64)
)


def _numeric_columns(columns: Mapping[str, Any], n: int) -> dict[str, FloatArray]:
    result: dict[str, FloatArray] = {}
    for name in (*_NUMERIC, "decode_s"):
        if name == "request_index":
            continue
        values = columns.get(name)
        array = np.full(n, np.nan) if values is None else np.array(values, dtype=np.float64)
        # Infinity is no time and no count: what cannot be known is null.
        array[~np.isfinite(array)] = np.nan
        result[name] = array
    return result


def _impossible(columns: Mapping[str, FloatArray]) -> BoolArray:
    start, first = columns["start_s"], columns["first_token_s"]
    last, end = columns["last_token_s"], columns["end_s"]
    with np.errstate(invalid="ignore"):
        bad = (end < start) | (first < start) | (last < first)
        for name in ("ttft_s", "e2e_s", "decode_s"):
            bad |= columns[name] < 0
    return bad


def _statuses(
    columns: Mapping[str, Any],
    numbers: Mapping[str, FloatArray],
    errors: Sequence[str | None] | None,
    n: int,
    streaming: bool,
    needs_tokens: bool,
) -> npt.NDArray[Any]:
    status = np.full(n, "ok", dtype=object)
    output = numbers["output_tokens"]
    ttft, first = numbers["ttft_s"], numbers["first_token_s"]
    no_tokens = (output == 0) | (np.isnan(output) if needs_tokens else np.zeros(n, dtype=bool))
    # A zero says that nothing came; a null beside counted tokens only that nobody looked.
    no_first = (ttft == 0) & np.isnan(first)
    is_empty = no_tokens | no_first if streaming else no_tokens
    status[is_empty] = "empty"
    if errors is not None:
        failed = np.fromiter((bool(error) for error in errors), dtype=bool, count=n)
        status[failed] = "error"
    given = columns.get("status")
    if given is not None:
        for i, value in enumerate(given):
            if value is not None:
                status[i] = value
    return status


def _null_latencies(
    columns: dict[str, FloatArray], status: npt.NDArray[Any], impossible: BoolArray
) -> None:
    for name in ("ttft_s", "e2e_s", "decode_s"):
        columns[name][impossible] = np.nan
    # A zero stands for "never came" in every tool that writes it.
    columns["ttft_s"][columns["ttft_s"] == 0] = np.nan
    failed = np.isin(status, ("error", "empty"))
    columns["e2e_s"][failed & (columns["e2e_s"] == 0)] = np.nan


def _recompute(
    columns: dict[str, FloatArray], impossible: BoolArray, status: npt.NDArray[Any]
) -> None:
    start, first, last = columns["start_s"], columns["first_token_s"], columns["last_token_s"]
    possible = ~impossible
    ttft = np.where(np.isnan(columns["ttft_s"]) & possible, first - start, columns["ttft_s"])
    columns["ttft_s"] = ttft
    columns["first_token_s"] = np.where(np.isnan(first), start + ttft, first)
    decode = np.where(np.isnan(columns["decode_s"]) & possible, last - first, columns["decode_s"])
    e2e = columns["e2e_s"]
    e2e = np.where(np.isnan(e2e) & possible, last - start, e2e)
    e2e = np.where(np.isnan(e2e) & possible, ttft + decode, e2e)
    decode = np.where(np.isnan(decode) & possible, e2e - ttft, decode)
    columns["e2e_s"] = e2e
    columns["last_token_s"] = np.where(np.isnan(last), columns["first_token_s"] + decode, last)
    tokens = columns["output_tokens"]
    with np.errstate(invalid="ignore", divide="ignore"):
        tpot = np.where(tokens >= 2, decode / (tokens - 1), np.nan)
        tpot[(tpot < 0) | impossible] = np.nan
    columns["tpot_s"] = tpot
    # Latencies of a request that failed describe the failure, not the device.
    failed = np.isin(status, ("error", "empty"))
    columns["tpot_s"][failed] = np.nan


def _check_gaps(columns: Mapping[str, FloatArray], gaps: Gaps) -> list[Caution]:
    said = []
    if (gaps.flat_s < 0).any():
        said.append(caution("negative_gaps", n=int((gaps.flat_s < 0).sum())))
    filled = gaps.lengths > 0
    span = columns["last_token_s"] - columns["first_token_s"]
    with np.errstate(invalid="ignore"):
        off = filled & (np.abs(span - gaps.sums_s) > _GAP_TOLERANCE_S)
    if off.any():
        worst = float(np.nanmax(np.abs(span - gaps.sums_s)[off]))
        said.append(caution("gaps_do_not_add_up", n=int(off.sum()), worst_s=worst))
    return said


def _source_column(
    columns: Mapping[str, Any], facts: dict[str, Any], status: npt.NDArray[Any], n: int
) -> Any:
    sources = columns.get("output_tokens_source")
    if sources is None:
        return [facts["output_tokens_source"]] * n
    # Cut requests are counted otherwise in many tools; the run is called by its finished ones.
    fine = {source for source, state in zip(sources, status, strict=True) if state == "ok"}
    kinds = sorted((fine or set(sources)) - {None})
    if facts["output_tokens_source"] is None and kinds:
        facts["output_tokens_source"] = ", ".join(kinds)
    return sources


def _requests_frame(
    columns: Mapping[str, Any],
    numbers: Mapping[str, FloatArray],
    status: npt.NDArray[Any],
    sources: Any,
    errors: Sequence[str | None] | None,
    identity: str,
    n: int,
) -> pl.DataFrame:
    if n == 0:
        return empty(REQUESTS)
    kinds = columns.get("error_kind")
    if kinds is None:
        kinds = error_kinds(errors) if errors is not None else [None] * n
    kinds = [
        "empty_stream" if state == "empty" and kind is None else kind
        for state, kind in zip(status, kinds, strict=True)
    ]
    indexes = columns.get("request_index")
    data: dict[str, Any] = {
        "request_index": np.arange(n) if indexes is None else np.asarray(indexes, dtype=np.int64),
        "request_id": _strings(columns.get("request_id"), n),
        "phase": _strings(columns.get("phase"), n, "main"),
        "status": pl.Series(list(status), dtype=pl.String),
        "output_tokens_source": _strings(sources, n),
        "error_kind": _strings(kinds, n),
    }
    for name in _NUMERIC:
        if name != "request_index":
            data[name] = pl.Series(numbers[name]).fill_nan(None)
    frame = pl.DataFrame(data).with_columns(pl.lit(identity).alias("run_id"))
    return check(conform(frame, REQUESTS), REQUESTS, "requests")


def _strings(values: Any, n: int, default: str | None = None) -> pl.Series:
    if values is None:
        return pl.Series([default] * n, dtype=pl.String)
    texts = [default if value is None else str(value) for value in values]
    return pl.Series(texts, dtype=pl.String)


def _gaps_frame(gaps: Gaps | None, identity: str) -> pl.DataFrame:
    if gaps is None:
        return empty(TOKEN_GAPS)
    filled = np.flatnonzero(gaps.lengths > 0)
    if not filled.size:
        return empty(TOKEN_GAPS)
    offsets = _offsets(gaps.lengths[filled])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(gaps.flat_s))
    series = pl.Series(pl.from_arrow(lists))
    tokens = None
    if gaps.tokens_per_event is not None:
        tokens = [gaps.tokens_per_event[i] for i in filled]
    frame = pl.DataFrame(
        {
            "request_index": filled.astype(np.int64),
            "gaps_s": series,
            "tokens_per_event": pl.Series(tokens or [None] * len(filled), dtype=pl.List(pl.Int32)),
        }
    ).with_columns(pl.lit(identity).alias("run_id"), pl.lit(gaps.kind).alias("gap_kind"))
    return frame.select(list(polars_schema(TOKEN_GAPS)))


def _compare_reported(
    summary: Mapping[str, float],
    columns: Mapping[str, FloatArray],
    ok: BoolArray,
    gaps: Gaps | None,
    facts: Mapping[str, Any],
    explained: Mapping[str, str],
) -> list[Caution]:
    """Compare the tool's own summary with the rows; say what differs and why."""
    said: list[Caution] = []
    if not ok.size:
        return said
    samples = {name: columns[name][ok] for name in ("ttft_s", "tpot_s", "e2e_s")}
    if gaps is not None:
        samples["itl_s"] = gaps.cleared(~ok).flat_s
    for key, value in sorted(summary.items()):
        metric, _, statistic = key.partition(".")
        ours = _ours(metric, statistic, samples, columns, ok, facts)
        if ours is None or (value == 0 and not ok.any()):
            continue
        lowest, typical, highest = ours
        margin = _REPORTED_TOLERANCE * max(abs(value), abs(typical))
        if lowest - margin <= value <= highest + margin:
            continue
        code = explained.get(metric, "reported_differs")
        said.append(
            caution(code, metric=metric, statistic=statistic, reported=value, recomputed=typical)
        )
    return said


def _ours(
    metric: str,
    statistic: str,
    samples: Mapping[str, FloatArray],
    columns: Mapping[str, FloatArray],
    ok: BoolArray,
    facts: Mapping[str, Any],
) -> tuple[float, float, float] | None:
    """Give what the rows say: (lowest defensible, our value, highest defensible).

    Tools pick quantiles by different rules; any of them lies between the order statistics next to
    the rank, so only a value outside of these is a difference.
    """
    duration = facts["duration_s"]
    value: float | None = None
    if metric == "requests_per_s" and duration:
        value = float(ok.sum()) / duration
    elif metric == "output_tokens_per_s" and duration and facts["output_tokens_source"]:
        value = float(np.nansum(columns["output_tokens"][ok])) / duration
    if value is not None:
        return value, value, value
    if metric not in samples:
        return None
    known = np.sort(samples[metric][~np.isnan(samples[metric])])
    if not known.size:
        return None
    if statistic == "mean":
        value = float(known.mean())
        return value, value, value
    share = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}.get(statistic)
    if share is None:
        return None
    rank = share * (known.size - 1)
    below, above = max(0, int(rank) - 1), min(known.size - 1, math.ceil(rank) + 1)
    return float(known[below]), float(np.quantile(known, share)), float(known[above])


def _without_repeats(said: Sequence[Caution]) -> tuple[Caution, ...]:
    """Keep each caution once, and of the many statistics of one metric only the first."""
    kept: dict[tuple[Any, ...], Caution] = {}
    for item in said:
        metric = item.values.get("metric")
        key = (item.code, metric) if metric is not None else (item.code, item.message)
        kept.setdefault(key, item)
    return tuple(kept.values())
