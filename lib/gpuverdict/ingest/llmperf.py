"""LLMPerf individual responses and summaries (commit f1d6bed).

No starts, no gaps, no identities. Tokens are counted by the client with one fixed tokenizer and a
begin-of-text token, whatever the model. Failed and empty requests are not recorded and their thread
dies, so the real concurrency falls silently: with rows missing, the level is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.columns import error_kinds, floats, integers
from gpuverdict.ingest.values import mapping, positive, text, whole
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["read", "why_not"]

_ROW = ("end_to_end_latency_s", "request_output_throughput_token_per_s")
_SUMMARY = ("results_ttft_s_mean", "num_concurrent_requests")
_METRICS = {"ttft_s": "ttft_s", "end_to_end_latency_s": "e2e_s"}
_STATISTICS = {"mean": "mean", "quantiles_p50": "p50", "quantiles_p90": "p90",
               "quantiles_p95": "p95", "quantiles_p99": "p99", "min": "min",
               "max": "max"}  # fmt: skip


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not from LLMPerf; None when it is."""
    value = document.first
    if isinstance(value, dict):
        missing = [key for key in _SUMMARY if key not in value]
        return f"no {missing[0]!r} key" if missing else None
    if not isinstance(value, list):
        return "not a JSON list or object"
    row = next((item for item in value if isinstance(item, dict)), None)
    if row is None:
        return "the list holds no objects"
    missing = [key for key in _ROW if key not in row]
    return f"its records have no {missing[0]!r}" if missing else None


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read the responses, or the summary alone, as one run.

    Raises
    ------
    LogFormatError
        For a value that is no number.
    """
    records = document.records()
    value = records.values[0]
    if isinstance(value, dict):
        return [
            build_run(
                document,
                part="0",
                source_format="llmperf",
                columns={},
                info=_facts(value, options),
                reported=_reported(value),
                cautions=records.cautions,
            )
        ]
    rows = [row for row in value if isinstance(row, dict)]
    if any(key not in row for row in rows for key in _ROW):
        raise LogFormatError(document.name, found="a record of another kind among the responses",
                             expected=f"{' and '.join(_ROW)} in each")  # fmt: skip
    beside = _summary_beside(document)
    facts = _facts(beside, options)
    said: list[Caution] = list(records.cautions)
    if not beside:
        said.append(caution("summary_missing", name=document.name))
    errors = [_error(row) for row in rows]

    def column(key: str) -> list[Any]:
        return [row.get(key) for row in rows]

    planned = facts["n_planned"]
    if planned is not None and len(rows) < planned:
        # A thread died with each missing row: fewer streams than asked were running.
        facts["max_concurrency"] = None
        said.append(caution("concurrency_unknown", n=len(rows), n_planned=planned))
    return [
        build_run(
            document,
            part="0",
            source_format="llmperf",
            columns={
                "ttft_s": floats(column("ttft_s"), f"{document.name}: ttft_s"),
                "e2e_s": floats(
                    column("end_to_end_latency_s"), f"{document.name}: end_to_end_latency_s"
                ),
                "input_tokens": integers(
                    column("number_input_tokens"), f"{document.name}: number_input_tokens"
                ),
                "output_tokens": integers(
                    column("number_output_tokens"), f"{document.name}: number_output_tokens"
                ),
                "error_kind": error_kinds(errors),
            },
            info=facts,
            errors=errors,
            reported=_reported(beside),
            dropped={**records.dropped, "non_object": len(value) - len(rows)},
            cautions=said,
        )
    ]


def _error(row: Mapping[str, Any]) -> str | None:
    code, message = row.get("error_code"), text(row.get("error_msg"))
    if code is None and message is None:
        return None
    return f"{'' if code is None else code} {message or ''}".strip() or "error"


def _summary_beside(document: Document) -> Mapping[str, Any]:
    stem = document.path.name.split("_individual_responses")[0]
    beside = document.sibling(f"{stem}_summary.json")
    value = mapping(beside.first) if beside is not None else {}
    return value if all(key in value for key in _SUMMARY) else {}


def _facts(summary: Mapping[str, Any], options: ReadOptions) -> dict[str, Any]:
    limit = whole(summary.get("num_concurrent_requests"))
    asked_in, asked_out = "mean_input_tokens", "mean_output_tokens"
    fixed = not summary.get("stddev_input_tokens") and not summary.get("stddev_output_tokens")
    done = positive(summary.get("results_num_completed_requests"))
    rate = positive(summary.get("results_num_completed_requests_per_min"))
    return {
        "tool": "llmperf",
        "tool_version": options.client_version,
        "model_id": text(summary.get("model")),
        "load_kind": "closed" if limit else "unknown",
        "rate_unbounded": True if limit else None,
        "max_concurrency": limit,
        "n_planned": whole(summary.get("results_num_requests_started")),
        "duration_s": 60 * done / rate if done and rate else None,
        "streaming": True,
        "ttft_def": "first_content",
        "e2e_def": "last_event",
        "token_time_source": "whole_run",
        "output_tokens_source": "fixed_tokenizer",
        "requested_input_tokens": whole(summary.get(asked_in)) if fixed else None,
        "requested_output_tokens": whole(summary.get(asked_out)) if fixed else None,
    }


def _reported(summary: Mapping[str, Any]) -> dict[str, float | None]:
    result: dict[str, float | None] = {}
    for key, metric in _METRICS.items():
        for name, statistic in _STATISTICS.items():
            result[f"{metric}.{statistic}"] = positive(summary.get(f"results_{key}_{name}"))
    result["output_tokens_per_s.value"] = positive(
        summary.get("results_mean_output_throughput_token_per_s")
    )
    a_minute = positive(summary.get("results_num_completed_requests_per_min"))
    result["requests_per_s.value"] = None if a_minute is None else a_minute / 60
    result["requests.completed"] = positive(summary.get("results_num_completed_requests"))
    return {key: value for key, value in result.items() if value is not None}
