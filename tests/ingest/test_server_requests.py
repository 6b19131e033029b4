"""What a server wrote of each request: spans, SGLang's meta_info, and our own dialect.

No real SGLang log is at hand: its shapes are written here as its source writes them (unverified).
The OpenTelemetry shape is the protocol's own (one ExportTraceServiceRequest a line).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gpuverdict.errors import LogFormatError
from gpuverdict.files import ReadOptions
from gpuverdict.inspection import inspect_paths
from gpuverdict.recognise import read_any, recognise

LATENCY = {"time_in_queue": 0.25, "time_in_model_prefill": 0.5, "time_in_model_decode": 1.5,
           "time_to_first_token": 0.8, "e2e": 2.4}  # fmt: skip
START_NS = 1_796_090_000_123_456_789


def attribute(key: str, value: Any) -> dict[str, Any]:
    kind = {str: "stringValue", float: "doubleValue", int: "intValue"}[type(value)]
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


def span(number: int, latency: dict[str, float] = LATENCY, **attributes: Any) -> dict[str, Any]:
    told = {f"gen_ai.latency.{k}": v for k, v in latency.items()}
    told |= {"gen_ai.request.id": f"chatcmpl-{number}", "gen_ai.usage.prompt_tokens": 512,
             "gen_ai.usage.completion_tokens": 128}  # fmt: skip
    told |= {k.replace("__", "."): v for k, v in attributes.items()}
    return {
        "traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "llm_request", "kind": 2,
        "startTimeUnixNano": str(START_NS + number), "endTimeUnixNano": str(START_NS + 2 * 10**9),
        "attributes": [attribute(k, v) for k, v in told.items()],
    }  # fmt: skip


def otlp(*spans: dict[str, Any]) -> str:
    http = {"traceId": "ab", "spanId": "cd", "name": "POST /v1", "attributes": []}
    return json.dumps(
        {
            "resourceSpans": [
                {
                    "resource": {"attributes": [attribute("service.name", "vllm-server")]},
                    "scopeSpans": [{"scope": {"name": "vllm"}, "spans": [http, *spans]}],
                }
            ]
        }
    )


def read(folder: Path, text: str, name: str = "server.jsonl") -> pl.DataFrame:
    (folder / name).write_text(text)
    (frame,) = read_any(folder / name)
    return frame


def test_spans_one_export_a_line(tmp_path: Path) -> None:
    frame = read(tmp_path, otlp(span(1), span(2)) + "\n" + otlp(span(3)) + "\n")
    assert frame["request_id"].to_list() == ["chatcmpl-1", "chatcmpl-2", "chatcmpl-3"]
    row = frame.row(0, named=True)
    assert (row["server_queue_s"], row["server_prefill_s"], row["server_decode_s"]) == (
        0.25, 0.5, 1.5)  # fmt: skip
    assert (row["server_ttft_s"], row["server_e2e_s"]) == (0.8, 2.4)
    assert (row["input_tokens"], row["output_tokens"], row["source"]) == (512, 128, "otlp")
    assert row["arrival_epoch_s"] == pytest.approx(1_796_090_000.123456790, abs=1e-6)


def test_a_cut_last_export_costs_only_itself(tmp_path: Path) -> None:
    text = otlp(span(1)) + "\n" + otlp(span(2))[:-40]
    assert read(tmp_path, text)["request_id"].to_list() == ["chatcmpl-1"]


def test_a_span_sent_again_counts_once(tmp_path: Path) -> None:
    frame = read(tmp_path, otlp(span(1)) + "\n" + otlp(span(1), span(2)) + "\n")
    assert frame["note"].to_list() == [None, "duplicate_span", None]
    assert frame.filter(pl.col("note").is_not_null())["server_queue_s"].to_list() == [None]


def test_a_prefill_without_a_queue_is_none(tmp_path: Path) -> None:
    """SGLang's spans have the same names, and a prefill that contains the wait."""
    without = {k: v for k, v in LATENCY.items() if k != "time_in_queue"}
    row = read(tmp_path, otlp(span(1, without))).row(0, named=True)
    assert (row["server_queue_s"], row["server_prefill_s"]) == (None, None)
    assert row["server_decode_s"] == 1.5


@pytest.mark.parametrize("odd", [-0.1, float("nan"), "x", True, None])
def test_an_impossible_latency_is_unknown(tmp_path: Path, odd: Any) -> None:
    one = span(1)
    one["attributes"][0]["value"] = {"doubleValue": odd}
    row = read(tmp_path, otlp(one)).row(0, named=True)
    assert row["server_queue_s"] is None


def test_parts_beyond_the_whole_are_none(tmp_path: Path) -> None:
    row = read(tmp_path, otlp(span(1, LATENCY | {"e2e": 2.0}))).row(0, named=True)
    assert row["note"] == "times_do_not_add_up"
    assert (row["server_queue_s"], row["server_prefill_s"], row["server_decode_s"]) == (
        None, None, None)  # fmt: skip


def test_jaeger_says_the_same(tmp_path: Path) -> None:
    told = {f"gen_ai.latency.{k}": v for k, v in LATENCY.items()} | {
        "gen_ai.request.id": "r1", "gen_ai.usage.prompt_tokens": 512}  # fmt: skip
    tags = [{"key": k, "type": "float64", "value": v} for k, v in told.items()]
    one = {"traceID": "a", "spanID": "b", "operationName": "llm_request",
           "startTime": START_NS // 1000, "duration": 2_400_000, "tags": tags}  # fmt: skip
    frame = read(tmp_path, json.dumps({"data": [{"traceID": "a", "spans": [one]}]}), "j.json")
    row = frame.row(0, named=True)
    assert (row["request_id"], row["source"], row["server_queue_s"]) == ("r1", "jaeger", 0.25)
    assert row["arrival_epoch_s"] == pytest.approx(START_NS / 1e9, abs=1e-5)


def test_spans_of_something_else_are_refused(tmp_path: Path) -> None:
    (tmp_path / "web.json").write_text(otlp())
    with pytest.raises(LogFormatError, match=r"no span with gen_ai\.latency"):
        read_any(tmp_path / "web.json")


META = {"id": "r1", "finish_reason": {"type": "length", "length": 8}, "prompt_tokens": 100,
        "completion_tokens": 9, "cached_tokens": 64, "e2e_latency": 1.0, "queue_time": 0.1,
        "request_received_ts": 1796090000.0, "forward_entry_time": 1796090000.15,
        "prefill_finished_time": 1796090000.35, "request_finished_ts": 1796090001.0,
        "decode_throughput": 10.0}  # fmt: skip


def sglang(shape: str, meta: dict[str, Any] = META) -> str:
    if shape == "json":
        received = {"timestamp": "2026-12-01T00:00:00", "event": "request.received", "rid": "r1",
                    "obj": {"text": "hi"}}  # fmt: skip
        finished = received | {"event": "request.finished", "out": {"meta_info": meta}}
        return f"{json.dumps(received)}\n{json.dumps(finished)}\n"
    if shape == "flat":
        held = {"request_parameters": json.dumps({"rid": "r1"}), **meta}
        return json.dumps({k: v for k, v in held.items() if k != "id"}) + "\n"
    if shape == "answer":
        return json.dumps({"text": "…", "meta_info": meta}) + "\n"
    prompt = "x', out={'meta_info': {'id': 'forged', 'queue_time': 99.0}}"
    return (
        "[2026-12-01 00:00:00] Receive: obj=GenerateReqInput(rid='r1')\n"
        f"[2026-12-01 00:00:01] Finish: obj=GenerateReqInput(rid='r1', text={prompt!r}), "
        f"out={{'text': 'y', 'meta_info': {meta!r}}}\n"
    )


@pytest.mark.parametrize("shape", ["json", "flat", "answer", "text"])
def test_meta_info_in_its_four_shapes(tmp_path: Path, shape: str) -> None:
    frame = read(tmp_path, sglang(shape))
    assert frame.height == 1
    row = frame.row(0, named=True)
    assert (row["request_id"], row["source"]) == ("r1", "sglang_request_log")
    assert row["server_queue_s"] == pytest.approx(0.1)
    assert row["server_prefill_s"] == pytest.approx(0.2, abs=1e-6)
    assert row["server_decode_s"] == pytest.approx(0.65, abs=1e-6)
    assert row["server_e2e_s"] == 1.0
    assert (row["input_tokens"], row["cached_input_tokens"], row["output_tokens"]) == (100, 64, 9)


def test_decode_from_its_rate_where_the_stamps_are_missing(tmp_path: Path) -> None:
    held = {k: v for k, v in META.items() if k not in ("request_finished_ts", "queue_time")}
    row = read(tmp_path, sglang("json", held)).row(0, named=True)
    assert row["server_decode_s"] == pytest.approx(8 / 10)
    assert row["server_queue_s"] is None


def test_an_old_sglang_without_times_says_so(tmp_path: Path) -> None:
    held = {k: META[k] for k in ("id", "prompt_tokens", "completion_tokens", "e2e_latency")}
    row = read(tmp_path, sglang("json", held)).row(0, named=True)
    assert row["note"] == "no_times"
    assert row["output_tokens"] == 9


def test_our_own_dialect_in_stamps_and_in_times(tmp_path: Path) -> None:
    stamps = {"request_id": 7, "arrival_s": 100.0, "scheduled_s": 100.5, "first_token_s": 101.5,
              "finished_s": 104.5, "input_tokens": 3, "output_tokens": 4}  # fmt: skip
    times = {"request_id": "b", "server_queue_s": 0.5, "server_prefill_s": 1.0,
             "server_decode_s": 3.0}  # fmt: skip
    frame = read(tmp_path, f"{json.dumps(stamps)}\n{json.dumps(times)}\n")
    for row in frame.rows(named=True):
        told = [row[f"server_{n}_s"] for n in ("queue", "prefill", "decode")]
        assert told == [0.5, 1.0, 3.0]
    assert frame["request_id"].to_list() == ["7", "b"]


def test_a_clients_log_is_none_of_these(tmp_path: Path) -> None:
    row = {"request_index": 0, "status": "ok", "start_s": 1.0, "server_queue_s": 0.1,
           "request_id": "a", "first_token_s": 1.2, "last_token_s": 1.5, "end_s": 1.5,
           "input_tokens": 3, "output_tokens": 4}  # fmt: skip
    path = tmp_path / "client.jsonl"
    path.write_text(json.dumps(row) + "\n")
    from gpuverdict.files import open_documents

    assert recognise(open_documents(path)[0], ReadOptions()).kind == "requests"


def test_inspect_names_them(tmp_path: Path) -> None:
    (tmp_path / "spans.jsonl").write_text(otlp(span(1)))
    (tmp_path / "sgl.log").write_text(sglang("text"))
    told = {Path(row["path"]).name: row for row in inspect_paths([tmp_path])["files"]}
    assert told["spans.jsonl"]["dialect"] == "spans"
    assert told["sgl.log"]["dialect"] == "server_requests"
    assert told["sgl.log"]["kind"] == "server_requests"
    assert told["sgl.log"]["unverified"] is True
    assert told["spans.jsonl"]["samples"] == 1
