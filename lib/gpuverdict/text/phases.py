"""Sentences about windows, steadiness, phases and what binds."""

from __future__ import annotations

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "no_start_times": {
        "en": (
            "The log has no start times, so the whole run is shown, ramp-up and drain included.",
            "Use a client that writes a start time a request.",
        ),
        "zh": (
            "日志没有请求开始时间，因此展示的是整个运行，包含爬升与收尾阶段。",
            "请使用会记录每个请求开始时间的压测工具。",
        ),
    },
    "no_steady_window": {
        "en": (
            "No steady window: {sent} requests were sent and the warm-up cut takes {cut}.",
            "Send at least seven times as many requests as streams.",
        ),
        "zh": (
            "没有稳态窗口：共发送 {sent} 个请求，而预热裁剪需要去掉 {cut} 个。",
            "请求数至少应为并发数的七倍。",
        ),
    },
    "short_run": {
        "en": (
            "Short run: {left} requests are left after the cut, fewer than the {needed} that a "
            "search for a longer warm-up needs.",
            "Run longer, or send more requests.",
        ),
        "zh": (
            "运行较短：裁剪后剩余 {left} 个请求，不足以判断预热是否更长（需要 {needed} 个）。",
            "请延长运行时间或增加请求数。",
        ),
    },
    "no_steady_state": {
        "en": (
            "No steady state: {dropped_ratio:.0%} of the requests lie outside the steady window "
            "(limit {limit_ratio:.0%}), or the run never settles.",
            "Warm up before measuring, and run longer.",
        ),
        "zh": (
            "未达到稳态：{dropped_ratio:.0%} 的请求落在稳态窗口之外（上限 {limit_ratio:.0%}），"
            "或运行始终没有稳定下来。",
            "请先预热再测量，并延长运行时间。",
        ),
    },
}
