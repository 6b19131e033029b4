"""From the columns a reader found to a canonical `Run`: the rules every dialect shares, once.

A reader says what its tool wrote, in seconds; this module decides the status of each request,
flags impossible times, shifts the clock to the earliest start, recomputes TTFT, E2E and TPOT,
counts, and compares the tool's own summary with what the rows give.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document
from gpuverdict.ingest.columns import FloatArray
from gpuverdict.ingest.frames import gaps_frame, numeric_columns, requests_frame
from gpuverdict.ingest.gaps import BoolArray, Gaps
from gpuverdict.ingest.reported import compare_reported
from gpuverdict.ingest.values import number, positive, whole
from gpuverdict.schema import (
    RUN_FIELDS,
    STATUSES,
    Run,
)
from gpuverdict.text import caution

__all__ = ["build_run", "run_id"]


# The invariant first token + gaps = last token holds to this many seconds (format notes, 17.3).
_GAP_TOLERANCE_S = 1e-3
# Times written with a microsecond's digits may differ by one in the last.
_ROUNDING_S = 2e-6


def run_id(document: Document, part: str) -> str:
    """Identify a run by the content of its file and its place in it, never by a path."""
    return hashlib.sha256(f"{document.sha256}:{part}".encode()).hexdigest()


# No request lasts three years: an infinite or absurd time is no time.
LONGEST_S = 1e8


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
    columns_f = numeric_columns(columns, n)
    impossible = _impossible(columns_f)
    for name in ("ttft_s", "e2e_s", "decode_s"):
        impossible |= np.nan_to_num(columns_f[name], nan=0.0) > LONGEST_S
    if gaps is not None:
        # A missing gap takes its list with it, and no other time of the request.
        broken = ~(np.abs(gaps.sums_s) < LONGEST_S)
        impossible |= broken & ~np.isnan(gaps.sums_s)
        # An event before the one it follows: the clock stepped while the answer came.
        backward = gaps.flat_s < -_ROUNDING_S
        if backward.any():
            impossible[gaps.owners[backward]] = True
        gaps = gaps.cleared(broken)
    if facts["streaming"] is not False and _came_whole(columns_f, gaps, errors):
        _without_first_token(columns_f)
        facts.update(streaming=False, ttft_def=None, e2e_def="non_stream")
    streaming = facts["streaming"] is not False
    status = _statuses(columns, columns_f, errors, n, streaming, needs_tokens)
    _null_latencies(columns_f, status, impossible)
    if impossible.any():
        dropped_counts["impossible_times"] = int(impossible.sum())
        said.append(caution("impossible_times", n=int(impossible.sum()), n_rows=n))

    starts = columns_f["start_s"]
    has_starts = bool(np.isfinite(starts).any())
    t0 = float(np.nanmin(starts)) if has_starts else 0.0
    decode = columns_f["last_token_s"] - columns_f["first_token_s"]
    columns_f["decode_s"] = np.where(
        np.isnan(columns_f["decode_s"]) & ~impossible, decode, columns_f["decode_s"]
    )
    for name in ("start_s", "first_token_s", "last_token_s", "end_s"):
        # Without any start there is no zero that other times could be relative to.
        columns_f[name] = columns_f[name] - t0 if has_starts else np.full(n, np.nan)
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

    _recompute(columns_f, impossible, status, streaming)
    if gaps is not None:
        # Lists of failed requests stop anywhere; their last gap belongs to no token.
        unusable = impossible | ~np.isin(status, ("ok", "incomplete", "cancelled"))
        gaps = gaps.cleared(unusable)
        said.extend(_check_gaps(columns_f, gaps))
    sources = _source_column(columns, facts, status, n)
    requests = requests_frame(columns, columns_f, status, sources, errors, identity, n)
    gap_frame = gaps_frame(gaps, identity)

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
    said.extend(compare_reported(summary, columns_f, measured, gaps, facts, explained or {}))
    facts["dropped"] = dropped_counts
    unique = _without_repeats(said)
    facts["warnings"] = [item.code for item in unique]
    return Run(info=facts, requests=requests, gaps=gap_frame, cautions=unique)


_WHOLE_FACTS = {
    "gpu_count", "n_nodes", "tp", "pp", "dp", "ep", "max_concurrency", "stage_id", "repeat_no",
    "prefill_chunk_tokens", "order_no", "n_planned", "requested_input_tokens",
    "requested_output_tokens",
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


def _impossible(columns: Mapping[str, FloatArray]) -> BoolArray:
    start, first = columns["start_s"], columns["first_token_s"]
    last, end = columns["last_token_s"], columns["end_s"]
    with np.errstate(invalid="ignore"):
        bad = (end < start) | (first < start) | (last < first)
        for name in ("ttft_s", "e2e_s", "decode_s"):
            bad |= columns[name] < 0
        bad |= columns["e2e_s"] < columns["ttft_s"] - _GAP_TOLERANCE_S
    return bad


def _came_whole(
    columns: Mapping[str, FloatArray], gaps: Gaps | None, errors: Sequence[str | None] | None
) -> bool:
    """Say whether every answer of several tokens came at one moment: the run was not streamed.

    Tools then write no first token, or the latency where the TTFT stands. One streamed answer apart
    in time, or one gap, tells otherwise.
    """
    if gaps is not None and gaps.flat_s.size:
        return False
    with np.errstate(invalid="ignore"):
        several = columns["output_tokens"] > 1
    if errors is not None:
        several &= ~np.fromiter(map(bool, errors), dtype=bool, count=len(several))
    first = np.isfinite(columns["ttft_s"]) | np.isfinite(columns["first_token_s"])
    if several.any() and not first[several].any():
        ended = np.isfinite(columns["e2e_s"]) | np.isfinite(columns["end_s"])
        return bool(ended[several].any())
    span = columns["decode_s"]
    for later, earlier in (("last_token_s", "first_token_s"), ("e2e_s", "ttft_s")):
        span = np.where(np.isnan(span), columns[later] - columns[earlier], span)
    known = span[several & np.isfinite(span)]
    return bool(known.size and (known == 0).all())


def _without_first_token(columns: dict[str, FloatArray]) -> None:
    whole = np.where(np.isnan(columns["e2e_s"]), columns["ttft_s"], columns["e2e_s"])
    columns["e2e_s"] = np.where(whole > 0, whole, np.nan)
    for name in ("ttft_s", "first_token_s", "decode_s"):
        columns[name] = np.full(len(whole), np.nan)


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
    # Nothing was counted and nothing came; beside a first token a missing count is only missing.
    came = (ttft > 0) | np.isfinite(first)
    no_tokens = (output == 0) | (np.isnan(output) & ~came & needs_tokens)
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
    columns: dict[str, FloatArray],
    impossible: BoolArray,
    status: npt.NDArray[Any],
    streaming: bool,
) -> None:
    start, first, last = columns["start_s"], columns["first_token_s"], columns["last_token_s"]
    possible = ~impossible
    ttft = np.where(np.isnan(columns["ttft_s"]) & possible, first - start, columns["ttft_s"])
    columns["ttft_s"] = ttft
    columns["first_token_s"] = np.where(np.isnan(first), start + ttft, first)
    decode = columns["decode_s"]
    e2e = columns["e2e_s"]
    e2e = np.where(np.isnan(e2e) & possible, last - start, e2e)
    e2e = np.where(np.isnan(e2e) & possible, ttft + decode, e2e)
    if not streaming:
        # Without a stream the end of the request is its only token time.
        e2e = np.where(np.isnan(e2e) & possible, columns["end_s"] - start, e2e)
    decode = np.where(np.isnan(decode) & possible, e2e - ttft, decode)
    columns["e2e_s"] = e2e
    columns["last_token_s"] = np.where(np.isnan(last), columns["first_token_s"] + decode, last)
    tokens = columns["output_tokens"]
    with np.errstate(invalid="ignore", divide="ignore"):
        tpot = np.where(tokens >= 2, decode / (tokens - 1), np.nan)
        # Several tokens at one moment came in one event: how long each took is not known.
        tpot[(tpot <= 0) | impossible] = np.nan
    columns["tpot_s"] = tpot
    # Latencies of a request that failed describe the failure, not the device.
    failed = np.isin(status, ("error", "empty"))
    columns["tpot_s"][failed] = np.nan


def _check_gaps(columns: Mapping[str, FloatArray], gaps: Gaps) -> list[Caution]:
    said = []
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


def _without_repeats(said: Sequence[Caution]) -> tuple[Caution, ...]:
    """Keep each caution once, and of the many statistics of one metric only the first."""
    kept: dict[tuple[Any, ...], Caution] = {}
    for item in said:
        metric = item.values.get("metric")
        key = (item.code, metric) if metric is not None else (item.code, item.message)
        kept.setdefault(key, item)
    return tuple(kept.values())
