"""Sentences of the explorer and of the figures over single requests."""

from __future__ import annotations


def _both(en: str, zh: str) -> dict[str, tuple[str, str]]:
    """Pair a sentence that needs no remedy."""
    return {"en": (en, ""), "zh": (zh, "")}


SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "explore_view": _both("view", "视图"),
    "explore_baseline": _both("baseline", "基线"),
    "explore_candidate": _both("candidate", "候选"),
    "explore_metric": _both("metric", "指标"),
    "explore_statistic": _both("statistic", "统计量"),
    "explore_level": _both("level", "负载档"),
    "explore_value": _both("value", "数值"),
    "explore_folder": _both("folder", "文件夹"),
    "view_runs": _both("every run", "各次运行"),
    "view_intervals": _both("ratios", "比值"),
    "view_distribution": _both("distribution", "分布"),
    "view_shift": _both("shift by quantile", "分位偏移"),
    "view_timeline": _both("requests over time", "请求时间线"),
    "view_trade_off": _both("trade-off", "取舍"),
    "axis_share": _both("requests at or below (%)", "不高于该值的请求（%）"),
    "axis_percentile": _both("percentile of requests", "请求分位"),
    "axis_requests": _both("requests", "请求"),
    "axis_power_short": _both("power (W)", "功率（W）"),
    "axis_clock_short": _both("SM clock (MHz)", "SM 时钟（MHz）"),
    "distribution_reading": _both(
        "Each line is one run: the share of its requests at or below a value; lines of an arm that lie apart are runs that differ.",
        "每条线为一次运行：不高于某值的请求占比；同组各线分开说明运行之间有差异。",
    ),
    "median_words": _both("{arm}: median {value}.", "{arm}：中位数 {value}。"),
    "distribution_alt": _both(
        "Distribution over requests, one line a run. {finding}",
        "请求分布，每次运行一条线。{finding}",
    ),
    "shift_finding": _both(
        "Ratio {low} at the 10th, {middle} at the 50th and {high} at the 90th percentile.",
        "第 10 百分位比值 {low}，第 50 百分位 {middle}，第 90 百分位 {high}。",
    ),
    "shift_alt": _both("Ratio of the arms by decile. {finding}", "各十分位的比值。{finding}"),
    "timeline_none": _both("The log holds no request times.", "日志没有请求时间。"),
    "timeline_alt": _both(
        "Requests of one run as bars over time. {finding}", "单次运行的请求时间线。{finding}"
    ),
    "explore_run": _both("run no.", "第几次"),
    "explore_shown": _both("run of", "所属组"),
    "explore_span": _both("seconds", "时间段（秒）"),
    "explore_rows": _both("table of", "表格内容"),
    "explore_sort": _both("sort by", "排序"),
    "explore_falling": _both("largest first", "从大到小"),
    "explore_save": _both("Export this view", "导出当前视图"),
    "explore_saved": _both("Written: {names}", "已写入：{names}"),
    "explore_not_saved": _both("Not written: {reason}", "未写入：{reason}"),
    "explore_wide": _both(
        "Grey choices do not change this view. Table: {shown} of {total} rows; the export holds {exported}.",
        "灰色选项不影响当前视图。表格显示 {total} 行中的 {shown} 行，导出含 {exported} 行。",
    ),
    "explore_requests": _both(
        "Requests of {arm} at {level}, run {run}", "{arm} {level} 第 {run} 次运行的请求"
    ),
    "rows_runs": _both("runs", "各次运行"),
    "rows_requests": _both("requests of the run", "该次运行的请求"),
    "sort_arm": _both("arm", "组"),
    "sort_level_value": _both("level", "负载档"),
    "sort_repeat_no": _both("run no.", "第几次"),
    "sort_value": _both("value", "数值"),
    "sort_n": _both("requests", "请求数"),
    "sort_request_index": _both("request", "请求序号"),
    "sort_status": _both("status", "状态"),
    "sort_start_s": _both("start", "发出时刻"),
    "sort_ttft_s": _both("TTFT", "首 token 时延（TTFT）"),
    "sort_tpot_s": _both("TPOT", "每 token 时延（TPOT）"),
    "sort_e2e_s": _both("E2E", "端到端时延（E2E）"),
    "sort_input_tokens": _both("input tokens", "输入 token"),
    "sort_output_tokens": _both("output tokens", "输出 token"),
    "shift_reading": _both(
        "The line is the ratio candidate / baseline at each tenth of the requests, fastest to slowest; points are single runs of the candidate. A level line: all requests shift alike; a rising one: the slow ones suffer more.",
        "线为各十分位上候选与基线之比（由快到慢），点为候选组各次运行。水平表示整体平移，上升表示慢请求受影响更大。",
    ),
    "distribution_none": _both(
        "{name} is one number a run and has no distribution over requests; choose a time of a request, such as TTFT, TPOT or E2E.",
        "{name}每次运行只有一个数值，没有请求分布；请选择请求的时延指标，如 TTFT、TPOT 或 E2E。",
    ),
    "timeline_reading": _both(
        "Each bar is one request: waiting (time to first token beyond what such a prompt takes alone), prefill, decode. Below, on the same clock: requests decoding at once, power of the arm's GPUs, slowest SM clock.",
        "每条为一个请求：等待（首 token 时延超出同长度提示独占时所需的部分）、预填充、解码。下方为同一时间轴上的同时解码数、该组 GPU 总功率与最低 SM 时钟。",
    ),
    "no_run_there": _both("{arm} has no run at {level}.", "{arm} 没有 {level} 的运行。"),
    "timeline_all": _both(
        "{arm} at {level}, run {run}, {begin} to {end} s: all {n} requests.",
        "{arm} {level} 第 {run} 次运行，{begin} 至 {end} 秒：全部 {n} 个请求。",
    ),
    "timeline_thinned": _both(
        "{arm} at {level}, run {run}, {begin} to {end} s: {n} of {total} requests drawn, evenly picked.",
        "{arm} {level} 第 {run} 次运行，{begin} 至 {end} 秒：{total} 个请求中均匀抽取 {n} 个。",
    ),
    "timeline_shares": _both(
        "Of their time {waiting} is waiting, {prefill} prefill, {decode} decode.",
        "其时间中等待占 {waiting}，预填充占 {prefill}，解码占 {decode}。",
    ),
    "timeline_no_trace": _both(
        "No GPU trace of {arm} lies over this run, so power and clock are not shown.",
        "{arm} 在该次运行期间没有 GPU 采样记录，故不显示功率与时钟。",
    ),
}
