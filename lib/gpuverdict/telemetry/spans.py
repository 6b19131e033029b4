"""Spans of a serving engine: OpenTelemetry's JSON (a request a line) and Jaeger's, as server rows.

vLLM (`--otlp-traces-endpoint`) writes one span `llm_request` a finished request with `gen_ai.*`
attributes (vllm/tracing/utils.py, vllm/v1/engine/output_processor.py): queue = scheduled - queued,
prefill = first token - scheduled, decode = last token - first token, all in seconds. SGLang
uses the same names for other things: it gives no queue, and its prefill contains the wait
(sglang/srt/observability/req_time_stats.py), so a prefill counts only beside a queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.telemetry.server_rows import count, frame_of, row_of, seconds

__all__ = ["read", "why_not"]

_LATENCY = "gen_ai.latency."
_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue")
# Jaeger counts in microseconds, OpenTelemetry in nanoseconds.
_JAEGER, _OTLP = 1e6, 1_000_000_000


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is no export of spans, or None if it is one."""
    first = document.first
    if not isinstance(first, dict):
        return "it is no JSON object"
    if isinstance(first.get("resourceSpans"), list) or _is_jaeger(first):
        return None
    return "it has neither resourceSpans nor data[].spans"


def _is_jaeger(top: Mapping[str, Any]) -> bool:
    data = top.get("data")
    return isinstance(data, list) and bool(data) and isinstance(_object(data[0]).get("spans"), list)


def read(document: Document, options: ReadOptions) -> pl.DataFrame:
    """Read an export of spans.

    Returns
    -------
    polars.DataFrame
        Columns of `SERVER_REQUESTS`, one row for each span with `gen_ai.latency.*`; other spans
        (HTTP, child spans) say nothing of a request's phases. A span exported twice has the
        `note` `duplicate_span` and no times the second time.

    Raises
    ------
    LogFormatError
        For an export without such a span, or of another shape.
    """
    rows: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for top in document.records().values:
        spans = _jaeger_spans(top) if _is_jaeger(_object(top)) else _otlp_spans(top)
        for source, key, start, duration, attributes in spans:
            if not any(name.startswith(_LATENCY) for name in attributes):
                continue
            if key in seen and all(key):
                rows.append(row_of(source, note="duplicate_span"))
                continue
            seen.add(key)
            rows.append(_row(source, start, duration, attributes))
    if not rows:
        raise LogFormatError(
            document.name,
            found="no span with gen_ai.latency.*",
            expected="spans of a serving engine",
            remedy="start it with --otlp-traces-endpoint",
        )
    return frame_of(rows, document.name)


Span = tuple[str, tuple[str, str], float | None, float | None, dict[str, Any]]


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    for item in value if isinstance(value, list) else ():
        yield _object(item)


def _otlp_spans(top: Any) -> Iterator[Span]:
    for resource in _objects(_object(top).get("resourceSpans")):
        scopes = resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans")
        for scope in _objects(scopes):
            for span in _objects(scope.get("spans")):
                start, end = (count(span.get(f"{e}TimeUnixNano")) for e in ("start", "end"))
                whole = (end - start) / _OTLP if start is not None and end is not None else None
                attributes = {
                    str(item.get("key")): _otlp_value(item.get("value"))
                    for item in _objects(span.get("attributes"))
                }
                yield "otlp", _key(span, "traceId", "spanId"), _epoch(start), whole, attributes


def _otlp_value(value: Any) -> Any:
    held = _object(value)
    return next((held[name] for name in _VALUES if name in held), None)


def _epoch(nanoseconds: int | None) -> float | None:
    # Whole seconds apart: a double cannot hold today's nanoseconds.
    if nanoseconds is None:
        return None
    return nanoseconds // _OTLP + (nanoseconds % _OTLP) / _OTLP


def _jaeger_spans(top: Any) -> Iterator[Span]:
    for trace in _objects(_object(top).get("data")):
        for span in _objects(trace.get("spans")):
            start, lasted = seconds(span.get("startTime")), seconds(span.get("duration"))
            attributes = {str(t.get("key")): t.get("value") for t in _objects(span.get("tags"))}
            yield (
                "jaeger",
                _key(span, "traceID", "spanID"),
                None if start is None else start / _JAEGER,
                None if lasted is None else lasted / _JAEGER,
                attributes,
            )


def _key(span: Mapping[str, Any], trace: str, own: str) -> tuple[str, str]:
    return str(span.get(trace) or ""), str(span.get(own) or "")


def _row(
    source: str, start: float | None, duration: float | None, attributes: Mapping[str, Any]
) -> dict[str, Any]:
    def latency(name: str) -> float | None:
        return seconds(attributes.get(_LATENCY + name))

    queue, whole = latency("time_in_queue"), latency("e2e")
    identity = attributes.get("gen_ai.request.id") or attributes.get("gen_ai.response.id")
    return row_of(
        source,
        request_id=str(identity) if identity else None,
        arrival_epoch_s=start,
        server_queue_s=queue,
        server_prefill_s=None if queue is None else latency("time_in_model_prefill"),
        server_decode_s=latency("time_in_model_decode"),
        server_ttft_s=latency("time_to_first_token"),
        server_e2e_s=duration if whole is None else whole,
        input_tokens=count(attributes.get("gen_ai.usage.prompt_tokens")),
        cached_input_tokens=count(attributes.get("gen_ai.usage.cached_tokens")),
        output_tokens=count(attributes.get("gen_ai.usage.completion_tokens")),
    )
