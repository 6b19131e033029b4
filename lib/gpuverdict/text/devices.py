"""Sentences about the GPUs of an arm: memory marks, growth, imbalance, node power, power limits."""

from __future__ import annotations


def _both(en: str, zh: str) -> dict[str, tuple[str, str]]:
    """Pair a sentence that needs no remedy."""
    return {"en": (en, ""), "zh": (zh, "")}


SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "marks_heading": _both("Memory at three moments", "三个时刻的显存占用"),
    "marks_reading": _both(
        "Memory used by each GPU: idle with the model loaded, during the run with one request, at "
        "most under the highest load. Rule of thumb for the peak: below 80 % of the card there is "
        "room, 80–90 % is good, above 90 % a burst may fail.",
        "每张 GPU 的显存占用：模型加载后空闲时、单请求运行期间、最高负载下的峰值。经验法则：峰值低于"
        "显存的 80 % 有余量，80–90 % 合适，高于 90 % 时突发负载可能失败。",
    ),
    "marks_after_load": _both("after load", "加载后"),
    "marks_one": _both("one request", "单请求"),
    "marks_peak": _both("peak", "峰值"),
    "marks_at": _both("at", "负载档"),
    "marks_card": _both("card", "显存总量"),
    "marks_share": _both("peak of card", "峰值占比"),
    "marks_rule": _both("rule of thumb", "经验法则"),
    "marks_room": _both("room", "有余量"),
    "marks_good": _both("good", "合适"),
    "marks_risk": _both("risk", "有风险"),
    "marks_ahead": _both(
        "load moves the memory by less than 1 %, so the engine took it in advance: the marks "
        "show its reservation, not the need.",
        "负载使显存变化不到 1 %，说明推理引擎预先分配了显存：这些数值是其预留量，而非实际需求。",
    ),
    "marks_context": _both(
        "the run with one request holds contexts of up to {n:,} tokens.",
        "单请求运行的上下文最长为 {n:,} 个 token。",
    ),
    "growth_heading": _both("Memory growth", "显存增长"),
    "growth_reading": _both(
        "Growth over the window of each run of ten minutes or longer, with its 95 % interval, and "
        "what it leaves until the card is full. A flat line is no information: an engine that "
        "allocates in advance can leak inside what it holds.",
        "每个十分钟以上运行在其窗口内的显存增长及 95 % 区间，以及到显存耗尽为止还能支撑多久。"
        "曲线平直不代表没有泄漏：预先分配显存的引擎可能在其已占用的部分内泄漏。",
    ),
    "growth_run": _both("run", "运行"),
    "growth_rate": _both("per 1,000 requests", "每千次请求"),
    "growth_requests": _both("requests until full", "耗尽前的请求数"),
    "growth_hours": _both("hours until full", "耗尽前的小时数"),
    "growth_says": _both("says", "结论"),
    "growth_alarm": _both("grows: alarm", "在增长：报警"),
    "growth_slow": _both(
        "grows, below the alarm of 1 % in ten minutes", "在增长，但低于每十分钟 1 % 的报警线"
    ),
    "growth_none": _both("no growth resolved", "未检出增长"),
    "growth_flat": _both("flat: no information", "平直：无法判断"),
    "growth_few": _both("too few samples", "样本过少"),
    "growth_never": _both("not within this rate", "按此速率不会"),
    "use_heading": _both("GPU by GPU", "逐 GPU 对照"),
    "use_reading": _both(
        "Each GPU at the highest load (medians over runs, largest values over all of them); a row "
        "between GPUs gives (largest - smallest) / mean, with the range over runs. The last row is "
        "the largest power of all GPUs at one moment of any run or probe: no host power is in it.",
        "最高负载下的每张 GPU（各次运行的中位数；最大值取自全部运行）；“卡间差异”行为"
        "（最大 - 最小）/ 平均，并给出各次运行的范围。最后一行为任一运行或探测中同一时刻所有 GPU 的最大总功率，"
        "不含主机功率。",
    ),
    "use_gpu": _both("GPU", "GPU"),
    "use_power": _both("mean power", "平均功率"),
    "use_power_max": _both("largest", "最大功率"),
    "use_memory": _both("memory peak", "显存峰值"),
    "use_clock": _both("SM clock", "SM 时钟"),
    "use_throttled": _both("throttled", "降频占比"),
    "use_temperature": _both("hottest", "最高温度"),
    "use_between": _both("between GPUs", "卡间差异"),
    "use_sum": _both("all GPUs together", "全部 GPU 合计"),
    "use_sum_one": _both("any run or probe", "任一运行或探测"),
    "use_in_probe": _both("prefill probe", "预填充探测"),
    "use_supply_below": _both(
        "at most {peak_w:,.0f} W of the GPUs' supply limit of {limit_w:,.0f} W ({share}), "
        "the host not counted.",
        "GPU 供电上限 {limit_w:,.0f} W，最多用到 {peak_w:,.0f} W（{share}），不含主机。",
    ),
    "use_supply_unknown": _both(
        "no supply limit is declared (`supply_limit_w`), so the sum is held against nothing.",
        "未声明供电上限（`supply_limit_w`），合计功率没有对照。",
    ),
    "axis_minute": _both("minute of the run", "运行的第几分钟"),
    "axis_within_slo": _both("requests within the SLO (%)", "满足 SLO 的请求（%）"),
    "minutes_reading": _both(
        "Each point is one minute of one run: the share of the requests sent in it that kept every "
        "limit of the SLO (errors are misses, requests cut at the end are left out); the line pools "
        "the runs.",
        "每个点为一次运行中的一分钟：该分钟内发出的请求中满足全部 SLO 限值的比例（错误计为未满足，"
        "结束时被截断的请求不计）；连线为各次运行合并。",
    ),
    "minutes_alt": _both(
        "Share of requests within the SLO by minute. {finding}",
        "各分钟满足 SLO 的请求比例。{finding}",
    ),
    "minutes_words": _both(
        "{arm} at {level}: {share} of {n:,} requests in {minutes} minutes; the worst minute kept "
        "{worst} of {worst_n:,} (minute {minute}, run {repeat}).",
        "{arm}（{level} 档）：{minutes} 分钟共 {n:,} 个请求，{share} 满足；最差的一分钟为 {worst}"
        "（第 {minute} 分钟，{worst_n:,} 个请求，第 {repeat} 次运行）。",
    ),
    "minutes_missing": _both(
        "SLO minute by minute, {arm}: {missing}. {why}",
        "{arm} 逐分钟的 SLO 满足率：{missing}。{why}",
    ),
    "minutes_short": {
        "en": (
            "The longest run sent requests for {span_s:.0f} s; {needed_s:.0f} s (two whole minutes) "
            "are needed to tell one minute from another.",
            "Run the level for ten minutes.",
        ),
        "zh": (
            "最长的运行只发送了 {span_s:.0f} 秒请求；要区分各分钟，至少需要 {needed_s:.0f} 秒（两个整分钟）。",
            "请让该负载档持续十分钟。",
        ),
    },
    "minutes_no_start": {
        "en": ("The log has no start times.", "Use a client that records them."),
        "zh": ("其日志没有请求开始时间。", "请使用会记录开始时间的压测工具。"),
    },
    "axis_limit": _both("enforced power limit (W a GPU)", "生效的功率上限（W/GPU）"),
    "axis_tokens_j": _both("output tokens per joule", "每焦耳输出 token 数"),
    "axis_tokens_s": _both("output tokens per second", "每秒输出 token 数"),
    "limits_reading": _both(
        "Each point is a run under one power limit; left what a joule gives, right what a second "
        "gives. The peak is given as the limits it lies between, with 95 % confidence.",
        "每个点为某一功率上限下的一次运行；左图为每焦耳产出，右图为每秒产出。"
        "峰值以 95 % 置信度给出其所在的上限区间。",
    ),
    "limits_alt": _both(
        "Tokens per joule and per second against the power limit. {finding}",
        "每焦耳与每秒 token 数随功率上限的变化。{finding}",
    ),
    "limits_none": _both(
        "Tokens a joule by power limit: not measured, all runs were made under one limit. Set others with `nvidia-smi -pl`, "
        "an arm each with its `power_limit_w`, at least three limits of two runs.",
        "不同功率上限下的每焦耳 token 数：未测量，所有运行都在同一上限下。请用 `nvidia-smi -pl` 设置其他上限，每个上限一组并写明 "
        "`power_limit_w`，至少三个上限、每个两次运行。",
    ),
    "limits_peak": _both(
        "{name} at {level}: a joule gives most between {low} and {high} W (best tested: {best} W, with "
        "{share} of the throughput at {top} W).",
        "{name}（{level}）：每焦耳产出的峰值位于 {low} 与 {high} W 之间（实测最佳 {best} W，"
        "吞吐为 {top} W 时的 {share}）。",
    ),
    "limits_open": _both(
        "{name} at {level}: where a joule gives most is inconclusive.",
        "{name}（{level}）：每焦耳产出的峰值位置无法判定。",
    ),
    "limits_share_no_level": {
        "en": ("No level was run under every limit.", "Run one level under all of them."),
        "zh": ("没有任何负载档在所有上限下都运行过。", "请在全部上限下运行同一负载档。"),
    },
    "limits_too_few": {
        "en": (
            "{found} limits have {runs} runs or more; a peak needs {needed}.",
            "Run more limits, each at least twice.",
        ),
        "zh": (
            "只有 {found} 个上限具有 {runs} 次以上运行；判定峰值需要 {needed} 个。",
            "请增加上限，每个至少运行两次。",
        ),
    },
    "peak_not_resolved": {
        "en": (
            "Between {low_w:g} and {high_w:g} W no side can be ruled out.",
            "Run more repeats, or limits further apart.",
        ),
        "zh": (
            "在 {low_w:g} 到 {high_w:g} W 之间两侧都无法排除。",
            "请增加重复次数，或拉大上限间距。",
        ),
    },
    "peak_below": {
        "en": (
            "It lies below {high_w:g} W, and the lowest limit tested does not bound it.",
            "Test lower limits.",
        ),
        "zh": ("峰值低于 {high_w:g} W，而最低的实测上限仍不能从下方界定它。", "请测试更低的上限。"),
    },
    "peak_above": {
        "en": (
            "It lies above {low_w:g} W, and the highest limit tested does not bound it.",
            "Test higher limits, if the card allows them.",
        ),
        "zh": (
            "峰值高于 {low_w:g} W，而最高的实测上限仍不能从上方界定它。",
            "若显卡允许，请测试更高的上限。",
        ),
    },
    "limit_not_enforced": {
        "en": (
            "{arm} declares {declared_w:g} W; its trace says {enforced_w:g} W are enforced, and these "
            "count.",
            "Correct `power_limit_w`, or set the limit before the run.",
        ),
        "zh": (
            "{arm} 声明为 {declared_w:g} W，而 trace 显示生效的是 {enforced_w:g} W，以后者为准。",
            "请更正 `power_limit_w`，或在运行前设置好上限。",
        ),
    },
}
