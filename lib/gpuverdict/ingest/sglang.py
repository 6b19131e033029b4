"""SGLang `bench_serving`, 0.4.0 to 0.5.23: one JSON line a run, appended, with or without details.

The file has no request starts, so a run of it has durations only. Output lengths fall back to the
*requested* length where the server sends no usage; three witnesses are therefore weighed (the
lengths in the file, one token a gap, the recount of the text) and the two that agree win.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.columns import error_kinds, floats, integers, with_unnamed_failures
from gpuverdict.ingest.gaps import Gaps, chunk_cautions, split_gaps
from gpuverdict.ingest.values import list_of, mapping, positive, whole
from gpuverdict.ingest.vllm import reported_summary, request_rate, version_numbers
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["read", "weigh_token_counts", "why_not"]

_MARKS = ("total_output_tokens_retokenized", "server_info", "random_range_ratio", "accept_length")
# Two counts of the same tokens agree when they differ by less than this ratio.
_AGREE = 0.02
_NATIVE = ("sglang", "sglang-native")


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not an SGLang benchmark result; None when it is."""
    return _why_not_record(document.first)


def _why_not_record(value: Any) -> str | None:
    if not isinstance(value, dict):
        return "not a JSON object"
    for key in ("backend", "duration"):
        if key not in value:
            return f"no {key!r} key"
    if "model_id" in value and "num_prompts" in value:
        return "it has 'model_id' and 'num_prompts', keys of vLLM"
    if any(key in value for key in _MARKS) or str(value["backend"]).startswith("sglang"):
        return None
    return f"none of {', '.join(_MARKS)}, and the backend is not sglang"


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read every line as one run.

    Raises
    ------
    LogFormatError
        For a line of another kind, or lists of unequal length.
    """
    records = document.records()
    runs = []
    for index, (record, line) in enumerate(zip(records.values, records.lines, strict=True)):
        where = document.name if len(records.values) == 1 else f"{document.name}:{line}"
        if reason := _why_not_record(record):
            raise LogFormatError(
                where, found=f"a record of another kind ({reason})", expected="an SGLang result"
            )
        runs.append(
            _read_one(
                document,
                record,
                part=str(index),
                where=where,
                options=options,
                dropped=records.dropped if index == 0 else {},
                cautions=records.cautions,
            )
        )
    return runs


def _read_one(
    document: Document,
    record: Mapping[str, Any],
    *,
    part: str,
    where: str,
    options: ReadOptions,
    dropped: Mapping[str, int],
    cautions: tuple[Caution, ...],
) -> Run:
    info = _facts(record, options, where)
    said = list(cautions)
    if info["tool_version"] is None:
        said.append(caution("client_version_unknown", tool="SGLang bench_serving",
                            bracket="before 0.5.23"))  # fmt: skip
    reported = reported_summary(record)
    if not isinstance(record.get("ttfts"), list):
        return build_run(
            document, part=part, source_format="sglang", columns={}, info=info,
            reported=reported, dropped=dropped, cautions=said,
        )  # fmt: skip
    ttft = floats(record["ttfts"], f"{where}: ttfts")
    native = str(record["backend"]) in _NATIVE
    kind = "token_smoothed" if native else "chunk"
    gaps = Gaps.from_lists(list_of(record, "itls", where), kind, f"{where}: itls")
    lengths = integers(list_of(record, "output_lens", where), f"{where}: output_lens")
    errors = [str(e) if e else None for e in record.get("errors") or [None] * len(ttft)]
    sizes = {"ttfts": len(ttft), "itls": len(gaps.lengths), "output_lens": len(lengths),
             "errors": len(errors)}  # fmt: skip
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{key} {size}" for key, size in sizes.items())
        raise LogFormatError(where, found=f"lists of unequal length ({listed})",
                             expected="one entry a request in each")  # fmt: skip
    gaps, ttft, counts, explained = split_gaps(gaps, ttft, lengths, chat=False)
    said.extend(caution(code, n=n, n_rows=len(ttft)) for code, n in counts.items())
    failed = np.array([error is not None for error in errors], dtype=bool)
    errors = with_unnamed_failures(
        errors, ~failed & (ttft == 0) & (lengths == 0), record.get("completed")
    )
    failed = np.array([error is not None for error in errors], dtype=bool)
    silent = ~failed & (ttft == 0)
    answered = ~failed & ~silent
    streamed = not _looks_whole(answered, gaps, lengths)
    # An empty stream still carries the requested length: nothing was generated.
    output = np.where(silent, 0.0, lengths)
    if silent.any():
        explained |= dict.fromkeys(
            ("ttft_s", "e2e_s", "tpot_s", "requests_per_s", "output_tokens_per_s"),
            "reported_with_empties",
        )
    source: str | None = "usage"
    if streamed:
        output, source, weighed = weigh_token_counts(
            output,
            gaps.lengths,
            record.get("total_output_tokens_retokenized"),
            asked=info["requested_output_tokens"],
            answered=answered,
        )
        said.extend(weighed)
        if source != "usage":
            explained |= dict.fromkeys(("tpot_s", "output_tokens_per_s"), "reported_other_tokens")
    columns: dict[str, Any] = {"output_tokens": output, "error_kind": error_kinds(errors)}
    if streamed:
        columns["ttft_s"] = ttft
        columns["decode_s"] = np.where(answered | (failed & (ttft > 0)), gaps.sums_s, np.nan)
        columns["n_chunks"] = np.where(ttft > 0, gaps.lengths + 1.0, 0.0)
    else:
        # Without streaming the tool writes the latency where the TTFT stands.
        columns["e2e_s"] = np.where(ttft > 0, ttft, np.nan)
        info |= {"streaming": False, "e2e_def": "non_stream", "ttft_def": None}
    if record.get("input_lens") is not None:
        columns["input_tokens"] = integers(
            list_of(record, "input_lens", where), f"{where}: input_lens"
        )
    if record.get("cached_tokens") is not None:
        columns["cached_input_tokens"] = integers(
            list_of(record, "cached_tokens", where), f"{where}: cached_tokens"
        )
    info["output_tokens_source"] = source
    if gaps.kind == "chunk" and streamed:
        said.extend(chunk_cautions(gaps, output, answered))
    if "random-ids" in str(record.get("dataset_name")):
        said.append(caution("prompts_drift"))
    return build_run(
        document,
        part=part,
        source_format="sglang",
        columns=columns,
        info=info,
        gaps=gaps if streamed else None,
        errors=errors,
        reported=reported,
        explained=explained,
        dropped={**dropped, **counts},
        cautions=said,
        needs_tokens=source is not None,
    )


def _looks_whole(answered: Any, gaps: Gaps, lengths: Any) -> bool:
    several = answered & (lengths > 1)
    return bool(several.any() and not (gaps.lengths[several] > 0).any())


def weigh_token_counts(
    lengths: Any,
    n_gaps: Any,
    retokenised_total: Any,
    *,
    asked: int | None,
    answered: Any,
) -> tuple[Any, str | None, list[Caution]]:
    """Weigh three witnesses of the output length: the file, one token a gap, the recount.

    Parameters
    ----------
    lengths : array
        Output length of each request as the file says.
    n_gaps : array
        Gaps of each request; one token more than gaps, where each event holds one token.
    retokenised_total : number or None
        Tokens of all texts, counted again by the client.
    asked : int or None
        The requested length.
    answered : array of bool
        The requests that brought text.

    Returns
    -------
    tuple
        The lengths to use (NaN where no two witnesses agree), their source, and cautions.

    Notes
    -----
    Two totals agree within 2 %. Where only the file and a chunk count exist and differ, the file
    is believed unless all its lengths are the requested one: then nothing tells a server that
    ignored the end of sequence from a count that was never taken.
    """
    lengths = np.asarray(lengths, dtype=np.float64)
    counted = np.where(answered, np.asarray(n_gaps) + 1.0, lengths)
    in_file, by_gaps = float(lengths[answered].sum()), float(counted[answered].sum())
    if not answered.any():
        return lengths, "usage", []
    again = float(retokenised_total) if isinstance(retokenised_total, int | float) else None
    if again is not None and (not math.isfinite(again) or again <= 0):
        again = None
    if _agree(in_file, by_gaps) or (again is not None and _agree(in_file, again)):
        return lengths, "usage", []
    values = {"in_file": in_file, "by_gaps": by_gaps, "again": again or 0.0}
    if again is not None and _agree(by_gaps, again):
        return counted, "chunk_count", [caution("token_counts_replaced", **values)]
    stuck = asked is not None and bool((lengths[answered] == asked).all())
    if again is None and not stuck:
        return lengths, "usage", []
    unknown = np.where(answered, np.nan, lengths)
    return unknown, None, [caution("token_counts_disagree", **values)]


def _agree(a: float, b: float) -> bool:
    return abs(a - b) <= _AGREE * max(a, b)


def _facts(record: Mapping[str, Any], options: ReadOptions, where: str) -> dict[str, Any]:
    rate, unbounded = request_rate(record.get("request_rate"), where)
    limit = record.get("max_concurrency")
    server = mapping(record.get("server_info"))
    if record.get("request_rate") == "trace":
        load = "trace"
    elif unbounded:
        load = "closed" if limit else "burst"
    else:
        load = "poisson" if rate is not None else "unknown"
    served_by_sglang = str(record["backend"]).startswith("sglang")
    version = options.client_version
    if version is None and served_by_sglang and isinstance(server.get("version"), str):
        version = server["version"]
    return {
        "tool": "sglang bench_serving",
        "tool_version": version,
        "engine": "sglang" if served_by_sglang else None,
        "engine_version": server.get("version") if served_by_sglang else None,
        "model_id": server.get("served_model_name") or server.get("model_path"),
        "tokenizer_id": server.get("tokenizer_path"),
        "precision": _known(server.get("dtype")),
        "kv_dtype": _known(server.get("kv_cache_dtype")),
        "tp": whole(server.get("tp_size")),
        "dp": whole(server.get("dp_size")),
        "pp": whole(server.get("pp_size")),
        "ep": whole(server.get("ep_size")),
        "prefill_chunk_tokens": _chunk(server.get("chunked_prefill_size")),
        "load_kind": load,
        "rate_rps": rate,
        "rate_unbounded": unbounded,
        "max_concurrency": whole(limit),
        "duration_s": positive(record.get("duration")),
        "streaming": True,
        "spec_decode": bool(record.get("accept_length")) or None,
        "ttft_def": _ttft_def(version),
        "e2e_def": "last_token",
        "token_time_source": "whole_run",
        "requested_input_tokens": _fixed(record, "random_input_len"),
        "requested_output_tokens": _fixed(record, "random_output_len"),
    }


def _ttft_def(version: str | None) -> str:
    if version is None:
        return "first_content"
    # Reasoning began to count somewhere between these two versions.
    numbers = version_numbers(version)
    if numbers >= (0, 5, 14):
        return "first_content_or_reasoning"
    return "first_content" if numbers <= (0, 5, 6) else "unknown"


def _fixed(record: Mapping[str, Any], key: str) -> int | None:
    # With a range ratio below 1 the lengths are drawn; the key is then their upper end.
    ratio = record.get("random_range_ratio")
    return whole(record.get(key)) if ratio in (None, 1, 1.0) else None


def _chunk(value: Any) -> int | None:
    """Prompt tokens a prefill step takes at most; the server writes -1 for the whole prompt."""
    size = whole(value)
    return None if size is None else max(0, size)


def _known(value: Any) -> str | None:
    return value if isinstance(value, str) and value != "auto" else None
