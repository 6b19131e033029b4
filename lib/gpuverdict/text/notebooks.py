"""Sentences that answer the question of a notebook."""

from __future__ import annotations


def _both(en: str, zh: str) -> dict[str, tuple[str, str]]:
    """Pair a sentence that needs no remedy."""
    return {"en": (en, ""), "zh": (zh, "")}


SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "reply_measured": _both(
        "Arms: {arms}, with {runs} runs and {requests} requests, on {devices}.",
        "共 {arms} 组、{runs} 次运行、{requests} 个请求，硬件为 {devices}。",
    ),
    "reply_lost": _both(
        "Files that gave nothing: {n} ({names}).", "未能读取的文件：{n}（{names}）。"
    ),
    "reply_no_runs": _both("Without any run: {names}.", "没有任何运行：{names}。"),
    "reply_no_trace": _both(
        "Without a GPU trace, so without power, memory and clocks: {names}.",
        "没有 GPU 采样记录，因此没有功率、显存与时钟：{names}。",
    ),
    "reply_no_probe": _both(
        "Without a prefill probe, so prefill and waiting are told apart by the run's own fastest first tokens: {names}.",
        "没有预填充探测，因此以运行中最快的首 token 区分预填充与等待：{names}。",
    ),
    "reply_nothing_missing": _both("Nothing is missing.", "没有缺失。"),
    "reply_power": _both(
        "{arm}, over its levels: power {power}, energy {energy}, memory peak {memory}; {throttle}.",
        "{arm} 各档：功率 {power}，能耗 {energy}，显存峰值 {memory}；{throttle}。",
    ),
    "reply_throttled": _both("throttled up to {share} of a run", "最多有 {share} 的时间降频"),
    "reply_not_throttled": _both("no throttling was sampled", "未采样到降频"),
    "reply_throttle_unknown": _both("throttling was not recorded", "未记录降频"),
    "reply_no_slo": _both(
        "No SLO is stated, so no load can be said to meet it: add `slo:` to the campaign file.",
        "未给出 SLO，无法判断满足 SLO 的负载：请在测试活动文件中填写 `slo:`。",
    ),
    "reply_carries_none": _both(
        "{arm}: at no level that was run is the SLO known to be met.",
        "{arm}：没有一个已运行的负载档可确认满足 SLO。",
    ),
    "reply_carries_open": _both(
        "{arm} carries {most} within the SLO, the highest level that was run: it may carry more.",
        "{arm} 在 SLO 内可承载 {most}，这是已运行的最高档，实际可能更高。",
    ),
    "reply_carries": _both(
        "{arm} carries {most} within the SLO, and no longer {end}.",
        "{arm} 在 SLO 内可承载 {most}，到 {end} 时不再满足。",
    ),
    "reply_fits": _both(
        "The memory of {arm} holds the cache of {most} streams at full length (computed).",
        "{arm} 的显存可容纳 {most} 路全长请求的 KV 缓存（计算值）。",
    ),
    "reply_fits_unknown": _both(
        "How many streams fit into the memory of {arm} is not known.",
        "{arm} 的显存可容纳多少路请求未知。",
    ),
    "reply_price": _both(
        "A million output tokens cost {price} at that load.",
        "该负载下每百万输出 token 价格为 {price}。",
    ),
    "reply_no_price": _both(
        "What a token costs is not known: no price is stated.", "未给出价格，每 token 成本未知。"
    ),
    "reply_claims_no": _both("Not as it stands.", "不能照原样采信。"),
    "reply_claims_open": _both(
        "Only where what is missing is supplied.", "须补充缺失的说明后才可采信。"
    ),
    "reply_claims_yes": _both(
        "Nothing in it contradicts what the cards can do.", "没有与显卡能力相矛盾之处。"
    ),
    "reply_claims": _both(
        "Of {n} claims {impossible} cannot be (beyond what the card's memory and bandwidth allow), {contradicts} contradict another figure of the same table, {cause} need a cause that is not stated, {stands} stand, {unjudged} say too little to be judged.",
        "共 {n} 条：{impossible} 条不可能成立（超出显存容量或带宽上限），{contradicts} 条与同表其他数值矛盾，{cause} 条需要未说明的原因，{stands} 条成立，{unjudged} 条信息不足、无法判断。",
    ),
}
