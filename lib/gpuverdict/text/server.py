"""Sentences about the server's own side of a run and about its host."""

from __future__ import annotations


def _words(en: str, zh: str) -> dict[str, tuple[str, str]]:
    return {"en": (en, ""), "zh": (zh, "")}


SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "server_times_by_order": {
        "en": (
            "{n} of {total} requests got the server's own times by their order, since the two logs "
            "share no request id.",
            "Use a client that writes the request id, or send it as X-Request-Id.",
        ),
        "zh": (
            "两份日志没有共同的请求 ID，{total} 个请求中有 {n} 个按先后顺序与服务端记录对应。",
            "请使用会记录请求 ID 的客户端，或通过 X-Request-Id 发送。",
        ),
    },
    "server_times_partial": {
        "en": (
            "{n} of {total} successful requests have no row of the server's log ({ambiguous} fit "
            "several and were left apart): their phases are the client's estimate.",
            "Record every request on the server (sampling off), from before the run to after it.",
        ),
        "zh": (
            "{total} 个成功请求中有 {n} 个没有对应的服务端记录（其中 {ambiguous} 个可对应多条，"
            "未作匹配）：其阶段划分为客户端估计值。",
            "请在服务端记录全部请求（关闭采样），并覆盖运行前后。",
        ),
    },
    "server_times_unusable": {
        "en": (
            "{n} of {total} rows of the server's log hold no times, or times that add up to more "
            "than the whole request: they are not used.",
            "Check the version of the engine that wrote them.",
        ),
        "zh": (
            "{total} 条服务端记录中有 {n} 条没有时间，或各阶段之和超过整个请求：未采用。",
            "请检查写出这些记录的引擎版本。",
        ),
    },
    "engine_log_preempted": {
        "en": (
            "The engine's log speaks of preemptions {n} times: {path}, {quote}",
            "Give the KV cache more room, or lower the load.",
        ),
        "zh": (
            "引擎日志中有 {n} 行提到抢占：{path}，{quote}",
            "为 KV cache 腾出空间，或降低负载。",
        ),
    },
    "engine_log_fragmented": {
        "en": (
            "The engine's log speaks of fragmented memory {n} times: {path}, {quote}",
            "Try expandable segments of the allocator, or restart the server between runs.",
        ),
        "zh": (
            "引擎日志中有 {n} 行提到显存碎片：{path}，{quote}",
            "可启用分配器的 expandable segments，或在运行之间重启服务。",
        ),
    },
    "server_log_unverified": {
        "en": (
            "The server's request log ({source}) was read by its documentation; no real file of it "
            "was seen.",
            "Check a few values by hand.",
        ),
        "zh": (
            "服务端请求日志（{source}）按文档读取，未经真实文件验证。",
            "请人工核对几个数值。",
        ),
    },
    "pages_do_not_bracket": {
        "en": (
            "None of the {n} metrics pages with a time brackets this run, so the server's counters "
            "say nothing of it.",
            "Save a page right before and right after each run, with its time.",
        ),
        "zh": (
            "{n} 份带时间的指标页中没有一份能夹住本次运行，服务端计数器无法说明它。",
            "请在每次运行前后各保存一份带时间的指标页。",
        ),
    },
    "pages_cover_other_runs": {
        "en": (
            "Between the metrics pages around this run lie {n} other runs as well: their counts "
            "cannot be told apart.",
            "Save a page between the runs, or scrape every second.",
        ),
        "zh": (
            "本次运行前后的指标页之间还有 {n} 次其他运行，计数无法区分。",
            "请在各次运行之间保存指标页，或每秒抓取一次。",
        ),
    },
    "host_without_clock": {
        "en": (
            "The host's log has no times, or no zone, and cannot be laid beside the run.",
            "Record with `vmstat -t 1`, and give `time_zone`.",
        ),
        "zh": (
            "主机日志没有时间或时区，无法与运行对齐。",
            "请用 `vmstat -t 1` 记录，并填写 `time_zone`。",
        ),
    },
    "host_not_covered": {
        "en": (
            "The host's log has {n} samples in the run's window, {needed} are needed.",
            "Record once a second, from before the run to after it.",
        ),
        "zh": (
            "主机日志在该运行窗口内只有 {n} 个样本，至少需要 {needed} 个。",
            "请每秒记录一次，并覆盖运行前后。",
        ),
    },
    "server_heading": _words("What the server says", "服务端自己的记录"),
    "server_reading": _words(
        "Times: mean of each run's requests, median of a level's runs. In brackets: what the "
        "client's log alone says of the same requests; a queue that is there without load as well "
        "looks like prefill to it.",
        "时间：各次运行内取请求均值，再取该级别各运行的中位数。括号内为仅凭客户端日志对同一批请求的估计：无负载时也存在的排队会被它算作预填充。",
    ),
    "server_nothing": _words(
        "Not measured: no spans, request logs or metrics pages of the server "
        "(`server_requests`, `server_metrics`).",
        "未测量：没有服务端的 span、请求日志或指标页（`server_requests`、`server_metrics`）。",
    ),
    "server_source": _words("from", "来源"),
    "server_from_requests": _words("{n} requests", "{n} 个请求"),
    "server_from_pages": _words("metrics pages", "指标页"),
    "server_queue": _words("queue (client: wait)", "排队（客户端：等待）"),
    "server_prefill": _words("prefill (client)", "预填充（客户端）"),
    "server_decode": _words("decode", "解码"),
    "server_network": _words("client minus server", "客户端减服务端"),
    "server_hits": _words("cache hits", "缓存命中率"),
    "server_kv": _words("KV cache, peak", "KV cache 峰值"),
    "server_preempted": _words("preemptions", "抢占次数"),
    "server_waiting": _words("waiting", "排队请求数"),
    "host_heading": _words("The host beside the GPU", "主机与 GPU 并列"),
    "host_reading": _words(
        "Means over the windows of a level's runs, on the run's clock; free memory is the lowest. "
        "A process at 100 % keeps one whole core busy.",
        "按运行时钟取该级别各运行窗口内的均值，空闲内存取最低值。进程 100 % 表示占满一个核心。",
    ),
    "host_nothing": _words(
        "Not measured: no log of the host (vmstat, sar, pidstat or node-exporter under "
        "`server_metrics`).",
        "未测量：没有主机日志（`server_metrics` 下的 vmstat、sar、pidstat 或 node-exporter）。",
    ),
    "host_gpu": _words("GPU utilisation", "GPU 利用率"),
    "host_cpu": _words("CPU, all cores", "CPU（全部核心）"),
    "host_core": _words("busiest core", "最忙核心"),
    "host_process": _words("busiest process", "最忙进程"),
    "host_io": _words("I/O wait", "I/O 等待"),
    "host_swap": _words("swap", "交换"),
    "host_free": _words("free memory", "空闲内存"),
    "host_network": _words("network (of the link)", "网络（占链路）"),
}
