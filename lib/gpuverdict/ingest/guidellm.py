"""GuideLLM reports, JSON or YAML, of 0.1 to 0.8: seen in real files of 0.1, 0.3 to 0.6 and 0.8.

One benchmark of a report (one level of a sweep) is one run. From 0.2 on the report has no list of
gaps between tokens, so the tokens of a request are spread evenly between its first and its last.
`inter_token_latency_ms` is what is called TPOT here; `time_per_output_token_ms` has another
denominator in every version and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.columns import error_kinds, floats, integers
from gpuverdict.ingest.gaps import Gaps, split_gaps
from gpuverdict.ingest.guidellm_facts import level_facts, own_figures, request_totals
from gpuverdict.ingest.values import distinct, first_known, list_of, mapping, text, whole
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

_YAML_HEAD = re.compile(
    rb"\A(?:\s*#[^\n]*\n|\s*---[^\n]*\n)*(?:metadata|args|config|benchmarks):", re.M
)
_STATUS_OF_LIST = {"successful": None, "errored": "error", "incomplete": "incomplete"}
# Distances between measured window and request times below this are rounding.
_EDGE_S = 1e-3


class _Constructor(SafeConstructor):
    """Plain values only, and the tuples that 0.1 writes by Python's name, as lists."""


_Constructor.add_constructor(
    "tag:yaml.org,2002:python/tuple",
    lambda constructor, node: constructor.construct_sequence(node, deep=True),
)


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not a GuideLLM report; None when it is."""
    value = _report(document)
    if not isinstance(value, dict):
        return "not a JSON or YAML object"
    benchmarks = value.get("benchmarks")
    if not isinstance(benchmarks, list):
        return "no list 'benchmarks'"
    if not benchmarks:
        return (
            None if "metadata" in value and "config" in value else "the list 'benchmarks' is empty"
        )
    first = benchmarks[0]
    if not isinstance(first, dict):
        return "its benchmarks are not objects"
    if first.get("type_") == "generative_benchmark" or isinstance(first.get("benchmarks"), list):
        return None
    requests = first.get("requests")
    if isinstance(requests, dict) and "successful" in requests:
        return None
    return "its benchmarks hold neither 'requests.successful' nor nested benchmarks"


def _report(document: Document) -> Any:
    if document.shape == "json":
        return document.first
    if document.shape != "text" or not _YAML_HEAD.match(document.data[:4096]):
        return None
    if "guidellm_yaml" not in document.parsed:
        try:
            yaml = YAML(typ="safe")
            yaml.Constructor = _Constructor
            value = yaml.load(document.text)
        except (YAMLError, ValueError, RecursionError) as problem:
            first = (str(problem).splitlines() or ["unreadable"])[0]
            raise LogFormatError(
                document.name, found=f"YAML that cannot be read ({first[:100]})"
            ) from None
        document.parsed["guidellm_yaml"] = value
    return document.parsed["guidellm_yaml"]


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read every benchmark of the report as one run.

    Raises
    ------
    LogFormatError
        For a report whose structure is not that of any known version.
    """
    report = _report(document)
    said: tuple[Caution, ...] = document.records().cautions if document.shape == "json" else ()
    runs: list[Run] = []
    benchmarks, n_again = distinct(report["benchmarks"], "start_time", "end_time")
    if n_again:
        said += (caution("duplicate_records", name=document.name, n=n_again),)
    for index, benchmark in enumerate(benchmarks):
        where = f"{document.name}: benchmarks[{index}]"
        if not isinstance(benchmark, dict):
            raise LogFormatError(where, found=type(benchmark).__name__, expected="an object")
        if isinstance(benchmark.get("benchmarks"), list):
            for inner, level in enumerate(benchmark["benchmarks"]):
                args = mapping(benchmark.get("args"))
                runs.append(
                    _read_first_form(document, level, args, f"{index}.{inner}", where, options)
                )
        else:
            runs.append(_read_one(document, report, benchmark, index, where, options, said))
    if not runs:
        raise LogFormatError(
            document.name, found="a report without benchmarks", expected="at least one"
        )
    return runs


def _read_one(
    document: Document,
    report: Mapping[str, Any],
    benchmark: Mapping[str, Any],
    index: int,
    where: str,
    options: ReadOptions,
    said: tuple[Caution, ...],
) -> Run:
    rows: list[tuple[str, Mapping[str, Any]]] = []
    requests = mapping(benchmark.get("requests"))
    dropped: dict[str, int] = {}
    for name in _STATUS_OF_LIST:
        listed = requests.get(name) or []
        if not isinstance(listed, list):
            raise LogFormatError(f"{where}.requests.{name}", found="no list", expected="a list")
        listed, n_again = distinct(listed, "request_id")
        if n_again:
            dropped["duplicate_record"] = dropped.get("duplicate_record", 0) + n_again
            said += (caution("duplicate_records", name=where, n=n_again),)
        for row in listed:
            if not isinstance(row, dict):
                raise LogFormatError(f"{where}.requests.{name}", found=repr(row)[:40],
                                     expected="an object a request")  # fmt: skip
            rows.append((name, row))
    timed = [mapping(mapping(row.get("info")).get("timings")) for _, row in rows]
    new_form = any(timed) or "scheduler_metrics" in benchmark
    facts, cautions = level_facts(report, benchmark, index, options, new_form)
    totals = request_totals(benchmark)
    n_done = sum(name != "incomplete" for name, _ in rows)
    n_made = sum(whole(totals.get(name)) or 0 for name in ("successful", "errored"))
    if rows and n_done < n_made:
        dropped["sampled_away"] = n_made - n_done
        cautions.append(caution("sampled_away", n=n_done, n_total=n_made))
        # A sample has no throughput: without a duration none can be computed.
        facts |= {"n_planned": None, "duration_s": None}
    columns, errors = (_new_columns if new_form else _old_columns)(rows, timed, where)
    _phases(columns, facts, benchmark)
    # An empty stream is listed as successful, and its zero is averaged.
    silent = any(
        name == "successful" and not tokens
        for (name, _), tokens in zip(rows, columns["output_tokens"], strict=True)
    )
    return build_run(
        document,
        part=str(index),
        source_format="guidellm",
        columns=columns,
        info=facts,
        errors=errors,
        reported=own_figures(benchmark),
        explained={
            "e2e_s": "reported_past_last_token",
            "output_tokens_per_s": "reported_other_definition",
            "requests_per_s": "reported_other_definition",
        }
        | (dict.fromkeys(("ttft_s", "e2e_s"), "reported_with_empties") if silent else {}),
        dropped=dropped,
        cautions=[*said, *cautions],
        clock_offset_s=0.0,
    )


def _new_columns(
    rows: Sequence[tuple[str, Mapping[str, Any]]],
    timed: Sequence[Mapping[str, Any]],
    where: str,
) -> tuple[dict[str, Any], list[str | None]]:
    times: dict[str, list[Any]] = {
        name: [] for name in ("start_s", "first_token_s", "last_token_s", "end_s", "targeted")
    }
    counts: dict[str, list[Any]] = {
        name: []
        for name in ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens",
                     "n_chunks")
    }  # fmt: skip
    sources: list[str | None] = []
    errors: list[str | None] = []
    server: list[Any] = []
    for (name, row), timing in zip(rows, timed, strict=True):
        first = timing.get("first_token_iteration")
        times["start_s"].append(timing.get("request_start", row.get("request_start_time")))
        times["first_token_s"].append(first)
        times["last_token_s"].append(timing.get("last_token_iteration"))
        # A cut request has no end of its own but that of its handling.
        end = timing.get("request_end" if name == "successful" else "resolve_end")
        times["end_s"].append(end)
        times["targeted"].append(timing.get("targeted_start"))
        given, written = mapping(row.get("input_metrics")), mapping(row.get("output_metrics"))
        counts["input_tokens"].append(
            first_known(row.get("prompt_tokens"), given.get("total_tokens"))
        )
        counts["cached_input_tokens"].append(
            first_known(given.get("cached_tokens"), row.get("cached_tokens"))
        )
        usage = first_known(written.get("total_tokens"), written.get("text_tokens"))
        events = timing.get("token_iterations")
        total = first_known(usage, row.get("output_tokens"), events)
        counts["output_tokens"].append(total)
        counts["reasoning_tokens"].append(
            first_known(written.get("reasoning_tokens"), row.get("reasoning_tokens"))
        )
        counts["n_chunks"].append(events)
        sources.append(None if total is None else "usage" if usage is not None else "chunk_count")
        error = mapping(row.get("info")).get("error")
        errors.append(str(error or "error") if name == "errored" else None)
        server.append(mapping(row.get("response_metrics")).get("queue_time_ms"))
    columns: dict[str, Any] = {
        key: floats(values, f"{where}: {key}") for key, values in times.items()
    }
    columns["client_queue_s"] = columns["start_s"] - columns.pop("targeted")
    columns |= {key: integers(values, f"{where}: {key}") for key, values in counts.items()}
    columns["output_tokens_source"] = sources
    columns["server_queue_s"] = floats(server, f"{where}: queue_time_ms") / 1000
    return _with_status(columns, rows, errors), errors


def _old_columns(
    rows: Sequence[tuple[str, Mapping[str, Any]]],
    timed: Sequence[Mapping[str, Any]],
    where: str,
) -> tuple[dict[str, Any], list[str | None]]:
    def column(key: str, *, also_errored: bool = True) -> list[Any]:
        # Metrics of errored entries of these versions are arbitrary.
        return [row.get(key) if also_errored or name != "errored" else None for name, row in rows]

    columns: dict[str, Any] = {
        "start_s": floats(column("start_time"), f"{where}: start_time"),
        "end_s": floats(column("end_time"), f"{where}: end_time"),
        "first_token_s": floats(
            column("first_token_time", also_errored=False), f"{where}: first_token_time"
        ),
        "last_token_s": floats(
            column("last_token_time", also_errored=False), f"{where}: last_token_time"
        ),
        "input_tokens": integers(column("prompt_tokens"), f"{where}: prompt_tokens"),
        "output_tokens": integers(
            column("output_tokens", also_errored=False), f"{where}: output_tokens"
        ),
    }
    targeted = [mapping(row.get("scheduler_info")).get("targeted_start_time") for _, row in rows]
    columns["client_queue_s"] = columns["start_s"] - floats(targeted, f"{where}: targeted")
    columns["output_tokens_source"] = [
        None if np.isnan(tokens) else "usage" for tokens in columns["output_tokens"]
    ]
    errors = [str(row.get("error") or "error") if name == "errored" else None for name, row in rows]
    return _with_status(columns, rows, errors), errors


def _with_status(
    columns: dict[str, Any],
    rows: Sequence[tuple[str, Mapping[str, Any]]],
    errors: list[str | None],
) -> dict[str, Any]:
    columns["status"] = [_STATUS_OF_LIST[name] for name, _ in rows]
    columns["request_id"] = [
        first_known(row.get("response_id"), row.get("request_id")) for _, row in rows
    ]
    columns["error_kind"] = error_kinds(errors)
    return columns


def _phases(columns: dict[str, Any], facts: dict[str, Any], benchmark: Mapping[str, Any]) -> None:
    """Mark warm-up and cool-down, and give the duration of what is left.

    A request that reaches over the edge of the tool's window stays: to cut by completion would drop
    the longer ones. The duration must then be that of the requests that stay; over the shorter
    window their tokens would be a rate that never was.
    """
    start, end = facts["measure_start_s"], facts["measure_end_s"]
    phase = np.full(len(columns["start_s"]), "main", dtype=object)
    if start is not None and benchmark.get("warmup_duration"):
        phase[columns["end_s"] < start - _EDGE_S] = "warmup"
    if end is not None and benchmark.get("cooldown_duration"):
        phase[columns["start_s"] > end + _EDGE_S] = "cooldown"
    columns["phase"] = list(phase)
    cut = benchmark.get("warmup_duration") or benchmark.get("cooldown_duration")
    kept = phase == "main"
    if cut and facts["duration_s"] is not None and kept.any():
        ends = np.where(np.isnan(columns["end_s"]), columns["last_token_s"], columns["end_s"])[kept]
        starts = columns["start_s"][kept]
        if np.isfinite(ends).any() and np.isfinite(starts).any():
            facts["duration_s"] = float(np.nanmax(ends) - np.nanmin(starts))


def _read_first_form(
    document: Document,
    level: Any,
    args: Mapping[str, Any],
    part: str,
    where: str,
    options: ReadOptions,
) -> Run:
    """Read one level of a 0.1 report, whose first-token time is a duration.

    It asks for no usage and counts the events before the one that says why the text ended: the
    role chunk at the head of a chat stream is one of them.
    """
    level = mapping(level)
    results, failed = (
        [mapping(item) for item in (list_of(level, key, where) if level.get(key) else [])]
        for key in ("results", "errors")
    )
    rows = [*results, *failed]
    start = floats([row.get("start_time") for row in rows], f"{where}: start_time")
    ttft = floats([row.get("first_token_time") for row in rows], f"{where}: first_token_time")
    counted = integers(
        [row.get("output_token_count") for row in rows], f"{where}: output_token_count"
    )
    lists = [mapping(row.get("decode_times")).get("data") or [] for row in rows]
    gaps = Gaps.from_lists(lists, "chunk", f"{where}: decode_times")
    n_events = gaps.lengths
    roles = split_gaps(gaps, ttft, counted, chat=True)[2]
    if roles:
        # What nearly all streams show the server does in all: here no usage tells one by one.
        gaps, ttft, roles, _ = split_gaps(gaps, ttft, gaps.lengths, chat=True)
    output = counted - (n_events - gaps.lengths)
    said = [caution(code, n=n, n_rows=len(rows)) for code, n in roles.items()]
    errors = [None] * len(results) + [str(row.get("message") or "error") for row in failed]
    mode = level.get("mode")
    rate = level.get("rate")
    return build_run(
        document,
        part=part,
        source_format="guidellm",
        columns={
            "start_s": start,
            "end_s": floats([row.get("end_time") for row in rows], f"{where}: end_time"),
            "ttft_s": ttft,
            "decode_s": np.where(np.isnan(ttft), np.nan, gaps.sums_s),
            "input_tokens": integers(
                [row.get("prompt_token_count") for row in rows], f"{where}: prompt_token_count"
            ),
            "output_tokens": output,
            "request_id": [mapping(row.get("request")).get("id") for row in rows],
            "n_chunks": np.where(np.isnan(ttft), np.nan, gaps.lengths + 1.0),
        },
        info={
            "tool": "guidellm",
            "tool_version": options.client_version,
            "model_id": text(args.get("model")),
            "tokenizer_id": text(args.get("tokenizer")),
            "load_kind": {"synchronous": "sync", "throughput": "burst"}.get(
                str(mode), "constant" if args.get("mode") == "constant" else "poisson"
            ),
            "rate_rps": rate if mode == "asynchronous" else None,
            "rate_unbounded": mode != "asynchronous",
            "max_concurrency": 1 if mode == "synchronous" else None,
            "streaming": True,
            "ttft_def": "first_content" if roles.get("role_chunk") else "first_event",
            "e2e_def": "last_token",
            "token_time_source": "gaps",
            "output_tokens_source": "chunk_count",
        },
        gaps=gaps,
        errors=errors,
        dropped=roles,
        cautions=said,
        clock_offset_s=0.0,
    )
