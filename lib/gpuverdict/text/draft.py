"""Comments of a drafted campaign file."""

from __future__ import annotations


def _words(en: str, zh: str) -> dict[str, tuple[str, str]]:
    return {"en": (en, ""), "zh": (zh, "")}


SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "draft_save": _words(
        "Save this as campaign.yaml in the folder and fill in every {placeholder}: no log says it. "
        "The comments name the file a value was found in.",
        "将此内容保存为该文件夹中的 campaign.yaml，并填写每个 {placeholder}：日志中没有。注释为取值来源文件。",
    ),
    "draft_title": _words("what is compared, in one line", "用一句话说明比较的内容"),
    "draft_zone": _words(
        "IANA zone of the host, such as UTC: {path} has stamps without one",
        "主机时区（IANA 名称，如 UTC）：{path} 的时间戳没有时区",
    ),
    "draft_nobody": _words("no log says it", "日志中没有"),
    "draft_shape": _words(
        "parameters, weight_bits, layers, kv_heads, head_dim, kv_bits: for memory and roofline",
        "parameters、weight_bits、layers、kv_heads、head_dim、kv_bits：用于显存与 roofline",
    ),
    "draft_length": _words("no log says what was asked for", "日志中没有请求的长度"),
    "draft_lengths": _words(
        "the logs differ: {listed}; use `workloads:` for each of them",
        "各日志不同：{listed}；请为每种长度使用 `workloads:`",
    ),
    "draft_load": _words("the logs hold several kinds: {kinds}", "日志中有多种负载：{kinds}"),
    "draft_gpu": _words(
        "no inventory of this arm (nvidia-smi -q -x) says which card it was",
        "该 arm 没有清单（nvidia-smi -q -x）说明是哪种卡",
    ),
    "draft_gpu_said": _words(
        '{path} says "{gpu}"; the catalogue has {expected}',
        "{path} 写的是“{gpu}”；目录中有 {expected}",
    ),
    "draft_gpus": _words("number of GPUs the server used", "服务使用的 GPU 数量"),
    "draft_gpus_listed": _words(
        "{path} lists {n}: how many did the server use?", "{path} 列出 {n} 张：服务用了几张？"
    ),
    "draft_no_level": _words(
        "neither the log nor its name states a level", "日志与文件名都没有说明级别"
    ),
    "draft_summary": _words(
        "a summary beside the records of the same runs", "同一批运行的明细旁的汇总"
    ),
    "draft_several": _words("the logs differ: {listed}", "各日志不同：{listed}"),
    "draft_or_remove": _words(
        "no log says it; or remove the line, and it is reported as unchecked",
        "日志中没有；也可删除此行，报告会注明未核对",
    ),
    "draft_client": _words(
        "of the load generator: its TTFT changed between versions; or remove the line",
        "压测工具版本：其 TTFT 定义随版本变化；也可删除此行",
    ),
    "draft_tool": _words("logs of {tools}", "日志来自 {tools}"),
    "draft_starts": _words(
        "no log says whether the server was started anew for each repeat: then write `each`",
        "日志中没有；若每次重复都重启了服务，请写 `each`",
    ),
    "draft_clock": _words(
        "epoch or monotonic: the file does not say", "epoch 或 monotonic：文件中没有说明"
    ),
    "draft_levels": _words("level × runs: {listed}", "级别×次数：{listed}"),
    "draft_fatal": _words("{path}, {quote}", "{path}，{quote}"),
    "draft_failed": _words(
        "{path}: no request succeeded at {level}; if it ran out of memory, list it under "
        "`infeasible`",
        "{path}：级别 {level} 没有请求成功；若因显存不足，请列入 `infeasible`",
    ),
    "draft_comparisons": _words("the question is yours to ask", "请按要回答的问题修改"),
    "draft_others": _words("further arms: {arms}", "其他 arm：{arms}"),
    "draft_unread": _words("not read: {path} ({reason})", "未读取：{path}（{reason}）"),
    "draft_unread_alike": _words(
        "not read: {path} and others of its name, {n} in all ({reason})",
        "未读取：{path} 等同名文件共 {n} 个（{reason}）",
    ),
    "draft_more": _words("not read: {n} more files", "另有 {n} 个文件未读取"),
}
