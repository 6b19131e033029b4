"""GenAI-Perf / Perf Analyzer `profile_export.json`, seen of 0.0.8 and 0.0.16.

Responses are cleaned as the tool does before it counts: splintered events are joined to the one
before, and empty events, `[DONE]` and usage-only events bring no token. Tokens are not stored: the
usage of the last event is taken where it is there, and stays unknown otherwise. Failures are not
written at all (the analyzer ends at the first). The file's `version` is that of perf_analyzer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import orjson

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.build import build_run
from gpuverdict.ingest.gaps import Gaps
from gpuverdict.ingest.values import distinct, list_of, mapping, number, text, whole
from gpuverdict.schema import Run
from gpuverdict.text import caution

__all__ = ["event_content", "read", "why_not"]

_MODES = {"concurrency": "closed", "request_rate": "poisson", "constant_request_rate": "constant"}


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is not such a profile; None when it is."""
    value = document.first
    if not isinstance(value, dict):
        return "not a JSON object"
    if "service_kind" not in value and "endpoint" not in value:
        return "no 'service_kind'"
    experiments = value.get("experiments")
    if not isinstance(experiments, list) or not experiments:
        return "no list 'experiments'"
    first = experiments[0]
    if not isinstance(first, dict) or not isinstance(first.get("requests"), list):
        return "its experiments have no 'requests'"
    return None


def read(document: Document, options: ReadOptions) -> list[Run]:
    """Read each experiment as one run.

    Raises
    ------
    LogFormatError
        For a request without time stamps, or stamps that are no whole nanoseconds.
    """
    profile = document.first
    said = document.records().cautions
    experiments, n_again = distinct(profile["experiments"], "experiment")
    if n_again:
        said += (caution("duplicate_records", name=document.name, n=n_again),)
    runs = []
    for index, experiment in enumerate(experiments):
        where = f"{document.name}: experiments[{index}]"
        requests = mapping(experiment).get("requests")
        if not isinstance(requests, list) or not requests:
            raise LogFormatError(where, found="no requests", expected="a list of requests")
        runs.append(_read_one(document, profile, mapping(experiment), index, where, options, said))
    return runs


def _read_one(
    document: Document,
    profile: Mapping[str, Any],
    experiment: Mapping[str, Any],
    index: int,
    where: str,
    options: ReadOptions,
    said: Sequence[Any],
) -> Run:
    requests, n_again = distinct(experiment["requests"], "timestamp")
    starts = [_stamp(mapping(row).get("timestamp"), where) for row in requests]
    origin = min(starts)
    lists: list[list[float]] = []
    first: list[float | None] = []
    last: list[float | None] = []
    end: list[float | None] = []
    tokens: list[float | None] = []
    given: list[float | None] = []
    for row in requests:
        row = mapping(row)
        stamps = [_stamp(item, where) for item in _listed(row, "response_timestamps", where)]
        outputs = _listed(row, "response_outputs", where)
        events = _events(stamps, outputs)
        usage: Mapping[str, Any] = next((use for _, _, use in reversed(events) if use), {})
        times = [stamp for stamp, content, _ in events if content]
        # Times are subtracted as whole numbers: nanoseconds since the epoch exceed a float.
        first.append((times[0] - origin) / 1e9 if times else None)
        last.append((times[-1] - origin) / 1e9 if times else None)
        end.append((stamps[-1] - origin) / 1e9 if stamps else None)
        lists.append([(b - a) / 1e9 for a, b in pairwise(times)])
        tokens.append(number(usage.get("completion_tokens")))
        given.append(number(usage.get("prompt_tokens")))
    counted = any(count is not None for count in tokens)
    status = [None if time is not None else "empty" for time in first]
    mode = mapping(experiment.get("experiment"))
    limit = whole(mode.get("value")) if mode.get("mode") == "concurrency" else None
    rate = number(mode.get("value")) if "rate" in str(mode.get("mode")) else None
    extra = [] if counted else [caution("tokens_unknown")]
    if n_again:
        extra.append(caution("duplicate_records", name=where, n=n_again))
    bounds = [_stamp(item, where) for item in _listed(experiment, "window_boundaries", where)]
    return build_run(
        document,
        part=str(index),
        source_format="genai_perf",
        columns={
            "start_s": [(start - origin) / 1e9 for start in starts],
            "first_token_s": first,
            "last_token_s": last,
            "end_s": end,
            "output_tokens": tokens,
            "input_tokens": given,
            "status": status,
            "n_chunks": [len(row) + 1.0 if time is not None else 0.0
                         for row, time in zip(lists, first, strict=True)],
        },
        info={
            "tool": "genai-perf",
            "tool_version": text(profile.get("version")) or options.client_version,
            "load_kind": _MODES.get(str(mode.get("mode")), "unknown"),
            "rate_rps": rate,
            "rate_unbounded": None if rate is None and limit is None else rate is None,
            "max_concurrency": limit,
            "stage_id": index,
            "order_no": index,
            "duration_s": _duration(end),
            "measure_start_s": (bounds[0] - origin) / 1e9 if bounds else None,
            "measure_end_s": (bounds[-1] - origin) / 1e9 if bounds else None,
            "streaming": bool(any(lists)),
            "ttft_def": "first_content",
            "e2e_def": "last_token",
            "token_time_source": "per_token",
            "output_tokens_source": "usage" if counted else None,
        },
        gaps=Gaps.from_lists(lists, "chunk", where),
        dropped={"duplicate_record": n_again},
        cautions=[*said, *extra],
        clock_offset_s=origin / 1e9,
        needs_tokens=False,
    )  # fmt: skip


def _duration(end: Sequence[float | None]) -> float | None:
    known = [time for time in end if time is not None]
    return max(known) if known and max(known) > 0 else None


def _listed(record: Mapping[str, Any], key: str, where: str) -> Sequence[Any]:
    return list_of(record, key, where) if record.get(key) is not None else []


def _stamp(value: Any, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
        return value
    raise LogFormatError(where, found=f"the time stamp {value!r:.40}", expected="nanoseconds")


def _events(
    stamps: Sequence[int], outputs: Sequence[Any]
) -> list[tuple[int, bool, Mapping[str, Any]]]:
    """Clean the responses of a request: (time, whether it brings text, usage)."""
    texts = [str(mapping(output).get("response", "")) for output in outputs]
    texts += [""] * (len(stamps) - len(texts))
    for i in range(len(stamps) - 1, 0, -1):
        # A piece of an event that arrived apart belongs to the event before.
        body = texts[i]
        if body and "data:" not in body and not body.lstrip().startswith((":", "event:", "{")):
            texts[i - 1] += body
            texts[i] = ""
    events: list[tuple[int, bool, Mapping[str, Any]]] = []
    for stamp, body in zip(stamps, texts, strict=False):
        content = False
        usage: Mapping[str, Any] = {}
        for piece in body.split("\n\n"):
            brings, use = event_content(piece)
            content |= brings
            usage = use or usage
        events.append((stamp, content, usage))
    return events


def event_content(piece: str) -> tuple[bool, Mapping[str, Any]]:
    """Say whether a streamed event brings text or reasoning, and the usage it carries.

    Examples
    --------
    >>> event_content('data: {"choices": [{"delta": {"content": "a"}}]}')
    (True, {})
    >>> event_content("data: [DONE]")[0]
    False
    """
    body = piece.strip().removeprefix("data:").strip()
    if not body or body == "[DONE]" or not body.startswith("{"):
        return False, {}
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False, {}
    usage = mapping(mapping(value).get("usage"))
    choices = mapping(value).get("choices")
    choice = mapping(choices[0]) if isinstance(choices, list) and choices else {}
    delta = mapping(choice.get("delta")) or mapping(choice.get("message"))
    found = (choice.get("text"), delta.get("content"), delta.get("reasoning_content"),
             delta.get("reasoning"), mapping(value).get("text_output"))  # fmt: skip
    return any(bool(item) for item in found) or bool(delta.get("tool_calls")), usage
