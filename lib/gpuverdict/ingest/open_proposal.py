"""A draft of a `columns:` map for a table nobody declared, to be confirmed by a person."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.ingest.open_columns import first_line, header_names, is_flat, split_header
from gpuverdict.ingest.open_units import COUNT_UNITS, KNOWN_COLUMNS, is_figure, units_of

__all__ = ["propose_columns"]

# Words of headers people write, with what they mean; the first that fits wins.
_WORDS: tuple[tuple[str, str], ...] = (
    (r"首(个|次)?(字|token|词元?)|ttft|time.?to.?first|first.?token.?(latency|time|delay)",
     "ttft_s"),
    (r"每(个)?(token|词元?|字)|tpot|time.?per.?(output.?)?token|inter.?token|\bitl\b", "tpot_s"),
    (r"端到端|总(时延|延迟|耗时|时间)|\be2el?\b|end.?to.?end|total.?(latency|time)|"
     r"(request|response).?(latency|time)|^(latency|elapsed|duration)|整体时延", "e2e_s"),
    (r"预填充|prefill.?(time|latency|s\b|ms\b)|prompt.?(time|eval.?time)", "prefill_s"),
    (r"解码步|decode.?(step|latency|time)|token.?time", "decode_step_s"),
    (r"(输出|生成|completion|output|generated|out)[ _.-]*(token|词元|长度|len|length)|"
     r"tokens?.?(out|generated)|gen.?tokens", "output_tokens"),
    (r"(输入|提示|prompt|input|in)[ _.-]*(token|词元|长度|len|length|size)", "input_tokens"),
    (r"(输出)?吞吐|throughput|tokens?.?per.?sec|tok/s|tokens/s", "output_tokens_per_s.value"),
    (r"并发|concurren|streams|users|num.?clients", "concurrency"),
    (r"批(大小|次|量)?|batch", "batch"),
    (r"开始|start|begin|send.?time|sent.?at", "start_s"),
    (r"结束|end.?time|^end|finish|completed.?at", "end_s"),
    (r"状态|status|success", "status"),
    (r"错误|error|exception", "error"),
    (r"qps|rps|request.?rate|请求速率", "rate_requests_per_s"),
    (r"请求(id|编号)|request.?id|req.?id", "request_id"),
    (r"显存|memory|vram", "memory_used_mib"),
)  # fmt: skip
_UNIT_IN_HEADER = re.compile(
    r"(?:[\(\[（【/_ .]|^)(tokens?/s|tok/s|req/s|requests/s|毫秒|微秒|纳秒|秒|msec|ms|us|µs|μs|ns|"
    r"sec|"
    r"seconds|s|min|gib|mib|gb|mb|bytes|%|w|j)\s*[\)\]）】]?\s*$", re.I)  # fmt: skip


def propose_columns(document: Document) -> dict[str, dict[str, str | None]]:
    """Propose a `columns:` map for an unknown table, to be confirmed by a person.

    Returns
    -------
    dict
        header -> `{"to": canonical column, "unit": unit or None}`; None where the header states no
        unit and one is needed. Empty where no column is recognised.

    Examples
    --------
    >>> from pathlib import Path
    >>> text = "首字延迟(ms),输出token数,端到端时延(s)\\n120,128,1.5\\n".encode()
    >>> table = Document(path=Path("a.csv"), name="a.csv", data=text, hashed=str)
    >>> propose_columns(table)["首字延迟(ms)"]
    {'to': 'ttft_s', 'unit': 'ms'}
    """
    try:
        header = _header(document)
    except LogFormatError:
        # Text that is damaged has no header; why it cannot be read is said elsewhere.
        return {}
    proposal: dict[str, dict[str, str | None]] = {}
    taken: set[str] = set()
    for name in header:
        target = name if name in KNOWN_COLUMNS else _meaning(name)
        if target is None or target in taken:
            continue
        taken.add(target)
        units = units_of(target)
        proposal[name] = {"to": target, "unit": _stated_unit(name, units) if units else ""}
    return proposal


def _header(document: Document) -> list[str]:
    if document.shape == "json" and not is_flat(document.first):
        return []
    if document.shape != "text":
        return header_names(document, ReadOptions())
    line = first_line(document)
    mark = max((",", ";", "\t", "|"), key=line.count)
    return split_header(document, mark) if line.count(mark) else []


def _meaning(header: str) -> str | None:
    text = header.lower().strip()
    for pattern, target in _WORDS:
        if re.search(pattern, text):
            statistic = re.search(r"(p\d\d|mean|avg|median|平均|中位)", text)
            if statistic and target in ("ttft_s", "tpot_s", "e2e_s"):
                word = statistic[1]
                named = {"avg": "mean", "平均": "mean", "median": "p50", "中位": "p50"}
                figure = f"{target}.{named.get(word, word)}"
                return figure if is_figure(figure) else None
            return target
    return None


def _stated_unit(header: str, units: Mapping[str, float]) -> str | None:
    match = _UNIT_IN_HEADER.search(header.strip())
    if match and match[1].lower() in units:
        return match[1].lower()
    return "tokens" if units is COUNT_UNITS else None
