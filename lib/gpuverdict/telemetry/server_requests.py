"""Request logs of a server: SGLang's `meta_info` in its four shapes, and a plain dialect of ours.

SGLang (unverified by a real capture; written from sglang/srt/utils/request_logger.py and
observability/request_metrics_exporter.py): `--log-requests` as JSON lines (`request.finished` with
`out.meta_info`) or as text (`Finish: obj=..., out={...}`), `--export-metrics-to-file` (one flat
object beside `request_parameters`), and saved answers of `/generate` (`meta_info`). Names of times
change between versions, so each is taken where it stands and never assumed.

Ours, one JSON object a line: `request_id` and either the stamps `arrival_s`, `scheduled_s`,
`first_token_s`, `finished_s` (epoch seconds) or the times `server_queue_s`, `server_prefill_s`,
`server_decode_s`, besides `input_tokens`, `cached_input_tokens`, `output_tokens`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import SERVER_TIMES
from gpuverdict.telemetry.server_rows import count, frame_of, row_of, seconds

__all__ = ["UNVERIFIED", "read", "why_not"]

SGLANG = "sglang_request_log"
# Sources of which no real file was at hand.
UNVERIFIED = (SGLANG,)
_STAMPS = ("arrival_s", "scheduled_s", "first_token_s", "finished_s")
_EVENTS = ("request.received", "request.finished")
_FINISH = re.compile(r"\bFinish: obj=")
_META = "'meta_info': {"
_NUMBER = r"'{}': (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?=[,}}])"
_NUMBERS = ("prompt_tokens", "completion_tokens", "cached_tokens", "e2e_latency", "queue_time",
            "forward_entry_time", "prefill_finished_time", "request_received_ts",
            "request_finished_ts", "decode_throughput")  # fmt: skip
_HEAD = 65536


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is no request log of a server, or None if it is one."""
    first = document.first
    if isinstance(first, dict):
        if "request_index" in first or "status" in first:
            return "it is a client's log"
        if _meta(first) is not None or (first.get("event") in _EVENTS and "rid" in first):
            return None
        if {"arrival_s", "finished_s"} <= set(first) or set(first) & set(SERVER_TIMES):
            return None if "request_id" in first else "its rows have no request_id"
        return "it has neither meta_info nor the stamps of a server"
    if document.shape == "text" and _FINISH.search(
        document.data[:_HEAD].decode("utf-8", "replace")
    ):
        return None
    return "it is neither JSON lines nor a log with `Finish: obj=`"


def read(document: Document, options: ReadOptions) -> pl.DataFrame:
    """Read a request log of a server.

    Returns
    -------
    polars.DataFrame
        Columns of `SERVER_REQUESTS`, one row a finished request.

    Raises
    ------
    LogFormatError
        For a log without a finished request.

    Notes
    -----
    SGLang: queue = `queue_time`; prefill = `prefill_finished_time` - `forward_entry_time`; decode =
    `request_finished_ts` - `prefill_finished_time`, else (tokens - 1) / `decode_throughput`.
    """
    if document.shape == "text":
        rows = [row for line in document.text.splitlines() if (row := _from_text(line))]
    else:
        found = (_from_record(value) for value in document.records().values)
        rows = [row for row in found if row]
    return frame_of(rows, document.name)


def _meta(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the `meta_info` of a record, wherever its writer put it."""
    out = record.get("out")
    for place in (out if isinstance(out, dict) else {}, record):
        if isinstance(place.get("meta_info"), dict):
            meta: Mapping[str, Any] = place["meta_info"]
            return meta
    flat = "request_parameters" in record and {"e2e_latency", "prompt_tokens"} & set(record)
    return record if flat else None


def _from_record(record: Any) -> dict[str, Any] | None:
    if not isinstance(record, dict):
        return None
    meta = _meta(record)
    if meta is not None:
        return _from_meta(meta, record.get("rid") or meta.get("id") or _parameter_id(record))
    if record.get("event") in _EVENTS:
        return None
    return _from_stamps(record)


def _parameter_id(record: Mapping[str, Any]) -> Any:
    try:
        parameters = json.loads(record.get("request_parameters") or "{}")
    except (ValueError, TypeError):
        return None
    return parameters.get("rid") if isinstance(parameters, dict) else None


def _from_meta(meta: Mapping[str, Any], identity: Any) -> dict[str, Any]:
    received, finished = (seconds(meta.get(f"request_{e}_ts")) for e in ("received", "finished"))
    entered, first = (
        seconds(meta.get(name)) for name in ("forward_entry_time", "prefill_finished_time")
    )
    tokens, rate = count(meta.get("completion_tokens")), seconds(meta.get("decode_throughput"))
    decode = _apart(first, finished)
    if decode is None and tokens and tokens > 1 and rate:
        decode = (tokens - 1) / rate
    return row_of(
        SGLANG,
        request_id=str(identity) if identity else None,
        arrival_epoch_s=received,
        server_queue_s=seconds(meta.get("queue_time")),
        server_prefill_s=_apart(entered, first),
        server_decode_s=decode,
        server_ttft_s=_apart(received, first),
        server_e2e_s=seconds(meta.get("e2e_latency")),
        input_tokens=count(meta.get("prompt_tokens")),
        cached_input_tokens=count(meta.get("cached_tokens")),
        output_tokens=tokens,
    )


def _apart(start: float | None, end: float | None) -> float | None:
    # A stamp of 0 was never set.
    return end - start if start and end and end >= start else None


def _from_text(line: str) -> dict[str, Any] | None:
    """Read a text line of SGLang: Python's notation, of which only numbers and the id are taken.

    The prompt stands before the answer and may hold anything, so the last `meta_info` counts.
    """
    if not _FINISH.search(line):
        return None
    _, found, told = line.rpartition(_META)
    if not found:
        return None
    meta = {
        name: float(value[1])
        for name in _NUMBERS
        if (value := re.search(_NUMBER.format(name), told))
    }
    identity = re.match(r"'id': '([^'\\]{1,200})'", told)
    return _from_meta(meta, identity[1] if identity else None)


def _from_stamps(record: Mapping[str, Any]) -> dict[str, Any]:
    arrival, scheduled, first, finished = (seconds(record.get(name)) for name in _STAMPS)
    identity = record.get("request_id")
    queue, prefill, decode = (seconds(record.get(name)) for name in SERVER_TIMES)
    return row_of(
        "open",
        request_id=str(identity) if identity is not None else None,
        arrival_epoch_s=arrival,
        server_queue_s=_apart(arrival, scheduled) if queue is None else queue,
        server_prefill_s=_apart(scheduled, first) if prefill is None else prefill,
        server_decode_s=_apart(first, finished) if decode is None else decode,
        server_ttft_s=_apart(arrival, first),
        server_e2e_s=_apart(arrival, finished),
        input_tokens=count(record.get("input_tokens")),
        cached_input_tokens=count(record.get("cached_input_tokens")),
        output_tokens=count(record.get("output_tokens")),
    )
