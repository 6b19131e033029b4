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
        "{arm}: load moves the memory by less than 1 %, so the engine took it in advance: the marks "
        "show its reservation, not the need.",
        "{arm}：负载使显存变化不到 1 %，说明推理引擎预先分配了显存：这些数值是其预留量，而非实际需求。",
    ),
    "marks_context": _both(
        "{arm}: the run with one request holds contexts of up to {n:,} tokens.",
        "{arm}：单请求运行的上下文最长为 {n:,} 个 token。",
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
    "growth_alarm": _both("grows", "在增长"),
    "growth_none": _both("no growth resolved", "未检出增长"),
    "growth_flat": _both("flat: no information", "平直：无法判断"),
    "growth_few": _both("too few samples", "样本过少"),
    "growth_never": _both("not within this rate", "按此速率不会"),
    "use_heading": _both("GPU by GPU", "逐 GPU 对照"),
    "use_reading": _both(
        "Each GPU at the highest load (medians over runs, largest values over all of them); the row "
        "between GPUs gives (largest - smallest) / mean, with the range over runs. The sum is the "
        "largest power of all GPUs at one moment of any run or probe: no host power is in it.",
        "最高负载下的每张 GPU（各次运行的中位数；最大值取自全部运行）；“卡间差异”行为"
        "（最大 - 最小）/ 平均，并给出各次运行的范围。合计为任一运行或探测中同一时刻所有 GPU 的最大总功率，"
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
    "use_single": _both("one GPU: nothing to compare", "仅一张 GPU，无可比较"),
    "use_in_probe": _both("prefill probe", "预填充探测"),
    "use_supply_below": _both(
        "{arm}: at most {peak_w:,.0f} W of the GPUs' supply limit of {limit_w:,.0f} W ({share}), "
        "the host not counted.",
        "{arm}：GPU 供电上限 {limit_w:,.0f} W，最多用到 {peak_w:,.0f} W（{share}），不含主机。",
    ),
    "use_supply_unknown": _both(
        "{arm}: no supply limit is declared (`supply_limit_w`), so the sum is held against nothing.",
        "{arm}：未声明供电上限（`supply_limit_w`），合计功率没有对照。",
    ),
}
