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
    "drift_not_testable": {
        "en": (
            "Drift of {metric} not testable: {n} requests in the window, {needed} needed.",
            "Send more requests: at least 100, and ten waves of the level.",
        ),
        "zh": (
            "{metric} 的漂移无法检验：窗口内有 {n} 个请求，需要 {needed} 个。",
            "请增加请求数：至少 100 个，且不少于并发数的十倍。",
        ),
    },
    "drift": {
        "en": (
            "{metric} drifts by {change_ratio:+.1%} within the window (alarm above 2 %).",
            "Look at clocks, temperature and memory over time; run longer until it levels off.",
        ),
        "zh": (
            "{metric} 在窗口内漂移 {change_ratio:+.1%}（超过 2 % 报警）。",
            "请检查时钟、温度和显存随时间的变化，并延长运行直到趋于平稳。",
        ),
    },
    "step_change": {
        "en": (
            "{metric} steps by {change_ratio:+.1%} at {at_s:.1f} s.",
            "Look for another job, a clock change or a setting at that moment; repeat the run.",
        ),
        "zh": (
            "{metric} 在 {at_s:.1f} s 处突变 {change_ratio:+.1%}。",
            "请检查该时刻是否有其他任务、时钟变化或设置改动，并重跑一次。",
        ),
    },
    "throttle": {
        "en": (
            "{metric} steps by {change_ratio:+.1%} at {at_s:.1f} s, and the trace shows the device "
            "slowing down: throttle.",
            "Improve cooling or raise the power limit, then repeat the run.",
        ),
        "zh": (
            "{metric} 在 {at_s:.1f} s 处突变 {change_ratio:+.1%}，"
            "且监控数据显示设备降频（throttle）。",
            "请改善散热或提高功率上限后重跑。",
        ),
    },
    "no_gaps": {
        "en": (
            "The log has no times between tokens, so token gaps cannot be examined.",
            "Use a client that writes inter-token gaps (vLLM bench with --save-detailed does).",
        ),
        "zh": (
            "日志中没有 token 间隔，无法分析逐 token 的时延。",
            "请使用会记录 token 间隔的压测工具（例如带 --save-detailed 的 vLLM bench）。",
        ),
    },
    "disturbed": {
        "en": (
            "Run {run} was disturbed: no stream got a token for {silence_s:.2f} s from {at_s:.2f} "
            "s on, longer than prefill explains, or far more long gaps than its siblings.",
            "Repeat this run.",
        ),
        "zh": (
            "运行 {run} 受到干扰：从 {at_s:.2f} s 起有 {silence_s:.2f} s 所有流都没有收到 token，"
            "超出预填充可以解释的范围，或长间隔远多于同组其他运行。",
            "请重跑这一次。",
        ),
    },
    "memory_flat": {
        "en": (
            "Memory used never changes: the engine allocates it in advance, which says nothing "
            "about a leak.",
            "Read the engine's own KV-cache and allocator metrics.",
        ),
        "zh": (
            "显存占用始终不变：推理引擎预先分配了显存，因此无法判断是否存在泄漏。",
            "请查看引擎自身的 KV cache 与分配器指标。",
        ),
    },
    "memory_growth": {
        "en": (
            "Memory of {gpu} grows by {growth_ratio:.2%} per ten minutes (alarm above 1 %).",
            "Soak for hours with the memory trace on; restart the server between runs until fixed.",
        ),
        "zh": (
            "{gpu} 的显存每十分钟增长 {growth_ratio:.2%}（超过 1 % 报警）。",
            "请在记录显存的情况下做数小时的长稳测试；修复之前在各次运行之间重启服务。",
        ),
    },
    "memory_not_testable": {
        "en": (
            "Memory growth not testable: fewer than {needed} memory samples in the window.",
            "Record memory.used at one sample a second or faster over the whole run.",
        ),
        "zh": (
            "显存增长无法检验：窗口内显存样本少于 {needed} 个。",
            "请在整个运行期间以每秒至少一次的频率记录 memory.used。",
        ),
    },
    "prefill_chunk_unknown": {
        "en": (
            "The chunk size of the prefill is not known: a step a chunk would look like a longer "
            "prompt's share (c2 about a quarter too high under chunked prefill).",
            "State `scheduler: {{max_num_batched_tokens: ...}}` (vLLM) or `chunked_prefill_size` "
            "(SGLang) for the arm; 0 or `chunked_prefill: false` where prompts are never cut.",
        ),
        "zh": (
            "预填充分块大小未知：分块预填充时，每块多出的一步会被算进随长度平方增长的部分（c2 约偏高四分之一）。",
            "请在该组的 `scheduler` 中写明 `max_num_batched_tokens`（vLLM）或 `chunked_prefill_size`（SGLang）；"
            "从不分块时写 0 或 `chunked_prefill: false`。",
        ),
    },
    "no_prefill_probe": {
        "en": (
            "No usable prefill probe: no successful request with a first token and a length.",
            "Run one stream over at least four prompt lengths, 128 to 8,192 tokens, five each.",
        ),
        "zh": (
            "没有可用的预填充探测数据：没有同时带首 token 时间和提示词长度的成功请求。",
            "请以并发 1 运行至少四种提示词长度（128 到 8192 token），每种五次。",
        ),
    },
    "prefix_cache_hits": {
        "en": (
            "{n} probe prompts came from a prefix cache, so they say nothing about prefill.",
            "Use unique prompts, or switch prefix caching off for the probe.",
        ),
        "zh": (
            "{n} 个探测提示词命中前缀缓存，不能反映预填充速度。",
            "请使用互不相同的提示词，或在探测时关闭前缀缓存。",
        ),
    },
    "prefill_few_lengths": {
        "en": (
            "Prompt lengths in the prefill probe: {lengths}; a curve needs {needed}. The median at "
            "each length is used, and nothing elsewhere.",
            "Probe at least four lengths that span a factor of 16.",
        ),
        "zh": (
            "预填充探测只有 {lengths} 种提示词长度，拟合曲线需要 {needed} 种；"
            "仅使用各长度处的中位数，其余长度不给出数值。",
            "请至少探测四种长度，且最长与最短相差 16 倍以上。",
        ),
    },
    "prefill_narrow_lengths": {
        "en": (
            "The probed prompt lengths span a factor of {factor:.1f}; the quadratic term needs 16. "
            "A straight line is used, which overstates the cost of a token by about 13 %.",
            "Add shorter and longer prompts to the probe.",
        ),
        "zh": (
            "探测的提示词长度跨度为 {factor:.1f} 倍，二次项需要 16 倍；"
            "因此改用直线，会把单 token 代价高估约 13 %。",
            "请在探测中加入更短和更长的提示词。",
        ),
    },
    "prefill_rejected": {
        "en": (
            "The prefill curve is rejected (slope {c1_us:.2f} µs a token, R² {r2:.2f}); the median "
            "at each probed length is used, and nothing elsewhere.",
            "Warm the kernels up for every length and probe again with more lengths.",
        ),
        "zh": (
            "预填充曲线被拒绝（斜率 {c1_us:.2f} µs/token，R² {r2:.2f}）；"
            "仅使用各探测长度处的中位数，其余长度不给出数值。",
            "请对每种长度先做内核预热，再以更多长度重新探测。",
        ),
    },
    "no_unloaded_reference": {
        "en": (
            "No unloaded reference: prefill is the lower envelope of the loaded run's own TTFT, so "
            "the scheduling excess is a lower bound.",
            "Add a prefill probe: one stream, several prompt lengths.",
        ),
        "zh": (
            "没有无负载参照：预填充时间取自该运行自身 TTFT 的下包络，因此调度超额时延只是下界。",
            "请增加预填充探测：并发 1，多种提示词长度。",
        ),
    },
    "decode_step_needs_gaps": {
        "en": (
            "The device decode step needs the times between tokens; this log has none.",
            "Record token gaps, or read TPOT at one stream as the user-perceived speed.",
        ),
        "zh": (
            "设备解码步时需要逐 token 间隔，而该日志没有。",
            "请记录 token 间隔，或以并发 1 的 TPOT 作为用户感知速度。",
        ),
    },
    "gaps_hold_several_tokens": {
        "en": (
            "The gaps of this log hold {tokens:.1f} tokens each, so none of them is a decode step.",
            "Let the server stream every token by itself.",
        ),
        "zh": (
            "该日志的每个间隔包含约 {tokens:.1f} 个 token，因此不是单个解码步。",
            "请让服务端逐 token 流式输出。",
        ),
    },
    "no_clean_gaps": {
        "en": (
            "Only {clean} of {gaps} token gaps are free of other requests' prefill: the decode "
            "step cannot be told from the stalls.",
            "Use longer outputs or shorter prompts, so that decode runs alone at times.",
        ),
        "zh": (
            "{gaps} 个 token 间隔中只有 {clean} 个没有与其他请求的预填充重叠，"
            "无法区分解码步与停顿。",
            "请使用更长的输出或更短的提示词，使解码有单独运行的时段。",
        ),
    },
    "noisy_stamps": {
        "en": (
            "The client stamps tokens unevenly, so means of up to {pooled} consecutive gaps stand "
            "for single ones in the decode step.",
            "Give the client a core of its own, or use a faster client.",
        ),
        "zh": (
            "客户端的 token 时间戳抖动较大，解码步时改用最多 {pooled} 个连续间隔的均值。",
            "请为客户端分配独立 CPU 核心，或换用更快的客户端。",
        ),
    },
    "step_user_perceived": {
        "en": (
            "This decode step is the median TPOT of one stream, as a user perceives it.",
            "Record token gaps to see the device's own step.",
        ),
        "zh": (
            "该解码步时取自并发 1 的 TPOT 中位数，是用户感知值。",
            "请记录 token 间隔以得到设备自身的解码步时。",
        ),
    },
    "levels_too_close": {
        "en": (
            "{levels} usable levels: telling the fixed cost of a step from the cost of a request "
            "needs {needed} that span a factor of {span:.0f}.",
            "Add levels, for instance 1, 4, 16 and 64 streams.",
        ),
        "zh": (
            "可用的并发级别有 {levels} 个：要区分解码步的固定代价与每请求代价，"
            "需要至少 {needed} 个且跨度达到 {span:.0f} 倍。",
            "请增加级别，例如并发 1、4、16、64。",
        ),
    },
    "e2e_heading": {
        "en": ("Where the end-to-end time goes", ""),
        "zh": ("端到端时延的构成", ""),
    },
    "e2e_reading": {
        "en": (
            "Mean over the runs of a level, and its share of the mean end-to-end time. Waiting is what the first token took beyond an unloaded prefill: queue and interference together, an upper bound of the queue.",
            "",
        ),
        "zh": (
            "各负载档多次运行的均值，及其占端到端平均时延的份额。“等待”指首 token 超出空载预填充的时间：排队与干扰之和，是排队时间的上限。",
            "",
        ),
    },
    "e2e_nothing": {
        "en": ("Not measured: no successful request with an end-to-end time.", ""),
        "zh": ("未测量：没有带端到端时延的成功请求。", ""),
    },
    "e2e_whole": {
        "en": ("end to end", ""),
        "zh": ("端到端", ""),
    },
    "e2e_network": {
        "en": ("network and HTTP", ""),
        "zh": ("网络与 HTTP", ""),
    },
    "e2e_host": {
        "en": ("host work", ""),
        "zh": ("主机侧工作", ""),
    },
    "e2e_queue": {
        "en": ("queue", ""),
        "zh": ("排队", ""),
    },
    "e2e_waiting": {
        "en": ("waiting", ""),
        "zh": ("等待", ""),
    },
    "e2e_prefill": {
        "en": ("prefill", ""),
        "zh": ("预填充", ""),
    },
    "e2e_decode": {
        "en": ("decode", ""),
        "zh": ("解码", ""),
    },
    "e2e_unknown": {
        "en": ("not explained", ""),
        "zh": ("未能解释", ""),
    },
    "e2e_not_told": {
        "en": (
            "nothing in the logs tells apart: {parts}. Record the server's own times (`server_requests`), or declare `client.rtt_s` and `client.host_work_s`.",
            "",
        ),
        "zh": (
            "日志无法单独区分：{parts}。请记录服务端自身的时间（`server_requests`），或声明 `client.rtt_s` 与 `client.host_work_s`。",
            "",
        ),
    },
    "e2e_part_unknown": {
        "en": (
            "Nothing in the logs tells the {part} part of the end-to-end time apart.",
            "Record the server's own times, or declare round-trip time and host work.",
        ),
        "zh": (
            "日志无法把端到端时延中的 {part} 部分单独区分出来。",
            "请记录服务端自身的时间，或声明网络往返时间与主机侧工作时间。",
        ),
    },
}
