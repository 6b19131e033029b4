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
}
