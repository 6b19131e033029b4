"""Sentences about what may be compared, and why not."""

from __future__ import annotations

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "duplicate_file": {
        "en": (
            "{path} holds the same bytes as {other} (arm {arm}); it was read once.",
            "Remove one of them, or name the real repeat.",
        ),
        "zh": ("{path} 与 {other} 内容相同（组 {arm}），只读取一次。", "删除其中一个，或指定真正的重复测试文件。"),
    },
    "first_run_excluded": {
        "en": ("The first run of arm {arm} is left out by the campaign's rule ({n} levels).", ""),
        "zh": ("按测试计划的规则，组 {arm} 的首轮未计入（{n} 个负载档）。", ""),
    },
    "short_of_plan": {
        "en": (
            "{path} holds {n_rows} of {planned} planned requests.",
            "Find out why the run ended early, and repeat it.",
        ),
        "zh": ("{path} 只有 {n_rows} 条请求，计划为 {planned} 条。", "查明提前结束的原因并重测。"),
    },
    "no_successful_request": {
        "en": ("No request succeeded.", "Look at the errors; there is no latency to show."),
        "zh": ("没有成功的请求。", "请查看错误信息；没有可展示的时延。"),
    },
    "not_streamed": {
        "en": ("The responses were not streamed, so no first token was seen.", "Test with streaming on."),
        "zh": ("响应未流式返回，无法得到首 token 时间。", "请开启流式输出后重测。"),
    },
    "not_in_log": {
        "en": ("The log does not hold {metric}.", ""),
        "zh": ("日志中没有 {metric}。", ""),
    },
    "needs_two": {
        "en": ("A spread of {metric} needs two values.", ""),
        "zh": ("计算 {metric} 的离散程度至少需要两个值。", ""),
    },
    "tail_under_sampled": {
        "en": (
            "{statistic} rests on {n} requests; testing it needs {needed}.",
            "Send at least {needed} requests a run.",
        ),
        "zh": ("{statistic} 仅基于 {n} 个请求；检验至少需要 {needed} 个。", "每次运行至少发送 {needed} 个请求。"),
    },
    "few_requests": {
        "en": ("The median rests on {n} requests.", "Run longer: ten requests or more."),
        "zh": ("中位数仅基于 {n} 个请求。", "请延长运行，至少 10 个请求。"),
    },
    "tpot_of_short_outputs": {
        "en": ("No output has {tokens} tokens; TPOT rests on shorter ones.", "Ask for longer outputs."),
        "zh": ("没有达到 {tokens} 个 token 的输出，TPOT 基于更短的输出。", "请使用更长的输出长度。"),
    },
    "tpot_undefined": {
        "en": ("{n} of {total} outputs have fewer than two tokens and no TPOT; they are left out of it.", ""),
        "zh": ("{total} 个输出中有 {n} 个不足两个 token，没有 TPOT，未计入。", ""),
    },
    "user_perceived": {
        "en": ("This is what a user sees, prefill stalls included; not the device's decode step.", ""),
        "zh": ("这是用户感知的速度，包含预填充造成的停顿，并非设备解码步速。", ""),
    },
    "no_gaps_in_log": {
        "en": ("The log holds no times between tokens.", "Use TPOT, or a client that records token gaps."),
        "zh": ("日志没有 token 间隔。", "请使用 TPOT，或使用会记录 token 间隔的压测工具。"),
    },
    "bursty_gaps": {
        "en": (
            "The median gap ({median_s:.3g} s) is far below the mean ({mean_s:.3g} s): several tokens "
            "share an event, so percentiles of gaps mean nothing.",
            "Read TPOT instead.",
        ),
        "zh": (
            "间隔中位数（{median_s:.3g} s）远低于均值（{mean_s:.3g} s）：多个 token 共享一个事件，间隔分位数没有意义。",
            "请改看 TPOT。",
        ),
    },
    "gaps_are_not_tokens": {
        "en": (
            "The gaps are per {kind} ({events} gaps for {tokens} tokens), not per token.",
            "Read TPOT, or the gap between chunks under its own name.",
        ),
        "zh": ("间隔按 {kind} 记录（{tokens} 个 token 只有 {events} 个间隔），不是逐 token。", "请看 TPOT，或单独的数据块间隔。"),
    },
    "no_duration": {
        "en": ("The log holds no duration, so no rate can be formed.", ""),
        "zh": ("日志没有时长，无法计算速率。", ""),
    },
    "even_spread": {
        "en": ("The log has no token times; tokens are spread evenly between first and last.", ""),
        "zh": ("日志没有逐 token 时间；token 在首末之间均匀分布。", ""),
    },
    "ramp_included": {
        "en": ("The whole run, ramp-up and drain included.", ""),
        "zh": ("整个运行，包含爬升与收尾。", ""),
    },
    "sampled_away": {
        "en": ("The tool kept only a sample: {n} requests are not in the file.", "Record every request."),
        "zh": ("工具只保留了抽样：文件缺少 {n} 个请求。", "请记录全部请求。"),
    },
    "prefill_under_load": {
        "en": (
            "A prefill rate needs one request at a time; under load TTFT holds the queue.",
            "Run a probe at concurrency 1 over several prompt lengths.",
        ),
        "zh": ("预填充速率需要单请求测试；有负载时 TTFT 含排队。", "请在并发 1 下用多种输入长度做探测。"),
    },
    "unloaded_client_side": {
        "en": ("Unloaded, seen from the client: it includes network, tokenising and one step.", ""),
        "zh": ("无负载、客户端视角：包含网络、分词和一个解码步。", ""),
    },
    "cached_prompts": {
        "en": ("Part of the prompts came from the prefix cache; only computed tokens count.", ""),
        "zh": ("部分输入命中前缀缓存，仅统计实际计算的 token。", ""),
    },
    "no_slo": {
        "en": ("No SLO is stated, so there is no goodput.", "Add `slo:` to the campaign file."),
        "zh": ("未声明 SLO，无法计算有效吞吐。", "请在 campaign.yaml 中添加 `slo:`。"),
    },
    "reported_by_tool": {
        "en": ("As the tool reported it; the file holds no request rows.", "Record per-request details."),
        "zh": ("为工具自报数值；文件没有逐请求记录。", "请记录逐请求明细。"),
    },
    "not_in_summary": {
        "en": ("The file's summary does not hold {metric} {statistic}.", "Record per-request details."),
        "zh": ("文件的汇总没有 {metric} {statistic}。", "请记录逐请求明细。"),
    },
    "no_trace": {
        "en": ("No GPU trace was recorded for arm {arm}.", "Record one with `gpuverdict record`."),
        "zh": ("组 {arm} 没有 GPU 采样记录。", "请用 `gpuverdict record` 记录。"),
    },
}
