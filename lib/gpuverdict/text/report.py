"""Sentences of the report itself, and words used everywhere."""

from __future__ import annotations


def _both(en: str, zh: str) -> dict[str, tuple[str, str]]:
    """Pair a sentence that needs no remedy."""
    return {"en": (en, ""), "zh": (zh, "")}


def _term(en: str, en_meaning: str, zh: str, zh_meaning: str) -> dict[str, tuple[str, str]]:
    """Pair a term of the glossary with its meaning, in the place of a remedy."""
    return {"en": (en, en_meaning), "zh": (zh, zh_meaning)}


_WORDS = {
    "word_faster": _both("faster", "更快"),
    "word_slower": _both("slower", "更慢"),
    "word_better": _both("better", "更优"),
    "word_worse": _both("worse", "更差"),
    "word_equivalent": _both("equivalent", "等效"),
    "word_inconclusive": _both("inconclusive", "无法判定"),
    "word_not_comparable": _both("not comparable", "不可比"),
    "word_not_measured": _both("not measured", "未测量"),
    "word_counted": _both("counted", "计数"),
    "level_all": _both("all levels", "全部负载档"),
    "level_streams": _both("{n} streams", "{n} 路并发"),
    "level_one_stream": _both("{n} stream", "{n} 路并发"),
    "level_batch": _both("batch {n}", "批大小 {n}"),
    "at_level": _both("at {level}", "{level}"),
    "for_one_user": _both("for one user", "单用户"),
    "scope_cards": _both("these cards", "限于这几张卡"),
    "scope_models": _both("card models", "显卡型号"),
    "scope_systems": _both("systems", "整套系统"),
    "window_name_steady": _both("steady window", "稳态窗口"),
    "window_name_whole_run": _both("whole run", "整个运行"),
}

_MODIFIERS = {
    "modifier_single_run": _both("single run", "仅一次运行"),
    "modifier_tail_under_sampled": _both(
        "too few requests for this tail", "请求数不足以给出该尾部分位"
    ),
    "modifier_below_margin": _both("detectable, but below the margin", "可检出但小于容差"),
    "modifier_fragile": _both("fragile: one run decides it", "不稳健：结论取决于某一次运行"),
    "modifier_extrapolated": _both("extrapolated", "外推"),
    "modifier_confounded": _both("confounded: {detail}", "混杂因素：{detail}"),
    "modifier_mixed": _both("sign differs between levels", "各负载档方向不一致"),
    "modifier_same_server_start": _both("same server start", "同一次服务启动"),
    "modifier_this_card_only": _both("these cards only", "仅限这几张卡"),
    "modifier_whole_run": _both("whole run", "整个运行"),
    "modifier_clock_offset": _both("clock offset", "时钟偏移"),
    "modifier_power_unaligned": _both("power not aligned", "功率未对齐"),
    "modifier_drift": _both("drift", "漂移"),
    "modifier_step_change": _both("step change", "阶跃变化"),
    "modifier_throttle": _both("throttled", "发生降频"),
    "modifier_noise_floor_from": _both("noise floor from {detail}", "噪声基线来自 {detail}"),
    "modifier_quantised": _both("values too coarse", "数值粒度过粗"),
    "modifier_few_requests": _both("few requests", "请求数少"),
    "modifier_short_run": _both("short run", "运行过短"),
    "modifier_short_window": _both("short window", "窗口过短"),
    "modifier_unchecked": _both("not checked: {detail}", "未核对：{detail}"),
    "modifier_disturbed": _both("a run was disturbed", "有运行受到干扰"),
    "modifier_not_sustained": _both("load not sustained", "未维持目标负载"),
    "modifier_ramp_included": _both("ramp included", "包含爬升阶段"),
    "modifier_as_reported": _both("as the tool reported it", "工具自报"),
    "modifier_order_only": _both("order only", "仅有大小顺序"),
    "modifier_computed,_not_measured": _both("computed, not measured", "计算值，非实测"),
    "modifier_drift_not_testable": _both("drift not testable", "无法检验漂移"),
    "modifier_no_unloaded_reference": _both("no unloaded reference", "缺少空载参考"),
}

_TOP = {
    "title_two": _both(
        "{candidate}: {b} against {baseline}: {a}", "{candidate}：{b} 对比 {baseline}：{a}"
    ),
    "title_same": _both(
        "{candidate} against {baseline}, both {device}",
        "{candidate} 对比 {baseline}，均为 {device}",
    ),
    "title_simulated": _both("[simulated data] {title}", "【模拟数据】{title}"),
    "lengths": _both("{n} tokens in, {m} out", "输入 {n} / 输出 {m} token"),
    "load_closed": _both("closed loop, {levels} streams", "闭环，{levels} 路并发"),
    "load_open": _both("open loop, {levels} req/s", "开环，{levels} req/s"),
    "no_runs": _both("no runs", "没有运行"),
    "runs_by_requests": _both(
        "{runs} runs an arm and level, {requests} requests each",
        "每组每档 {runs} 次运行，每次 {requests} 个请求",
    ),
    "cards_same": _both("{n} card, the same in both arms", "两组使用同一张卡（{n} 张）"),
    "cards_each": _both("{n} card an arm", "每组 {n} 张卡"),
    "cards_unknown": _both("cards not named", "未注明具体的卡"),
    "answer_heading": _both("Answer", "结论"),
    "group_prefill": _both("Prefill", "预填充"),
    "group_decode": _both("Decode", "解码"),
    "group_system": _both("Capacity", "承载能力"),
    "size_factor": _both("{factor}×", "至 {factor} 倍"),
    "size_percent": _both("{percent} %", " {percent} %"),
    "clause_joint": _both("; ", "；"),
    "clause_end": _both("{text}.", "{text}。"),
    "sentence_joint": _both(" ", ""),
    "prefill_faster": _both(
        "First token {size} sooner {where} ({interval})", "{where}首 token 快{size}（{interval}）"
    ),
    "prefill_slower": _both(
        "First token {size} later {where} ({interval})", "{where}首 token 慢{size}（{interval}）"
    ),
    "prefill_equivalent": _both(
        "First token equally soon {where}, within {margin}", "{where}首 token 等效（容差 {margin}）"
    ),
    "prefill_inconclusive": _both(
        "First token: undecided {where} ({interval})", "{where}首 token 无法判定（{interval}）"
    ),
    "prefill_single_run": _both(
        "First token {interval} times the baseline's {where}, one run, no verdict",
        "{where}首 token 为基线的 {interval} 倍，仅一次运行，不作结论",
    ),
    "prefill_not_comparable": _both(
        "First token not comparable {where}: {reason}", "{where}首 token 不可比：{reason}"
    ),
    "prefill_unknown": _both("First token: no answer. {reason}", "首 token：没有结论。{reason}"),
    "decode_faster": _both(
        "Each token {size} sooner {where} ({interval})", "{where}每个 token 快{size}（{interval}）"
    ),
    "decode_slower": _both(
        "Each token {size} later {where} ({interval})", "{where}每个 token 慢{size}（{interval}）"
    ),
    "decode_equivalent": _both(
        "Each token equally fast {where}, within {margin}",
        "{where}逐 token 速度等效（容差 {margin}）",
    ),
    "decode_inconclusive": _both(
        "Time per token: undecided {where} ({interval})",
        "{where}逐 token 速度无法判定（{interval}）",
    ),
    "decode_single_run": _both(
        "Each token {interval} times the baseline's {where}, one run, no verdict",
        "{where}每 token 时延为基线的 {interval} 倍，仅一次运行，不作结论",
    ),
    "decode_not_comparable": _both(
        "Decode not comparable {where}: {reason}", "{where}解码不可比：{reason}"
    ),
    "decode_unknown": _both("Decode: no answer. {reason}", "解码：没有结论。{reason}"),
    "also_faster": _both("{size} sooner {where} ({interval})", "{where}快{size}（{interval}）"),
    "also_slower": _both("{size} later {where} ({interval})", "{where}慢{size}（{interval}）"),
    "also_equivalent": _both(
        "equally fast {where}, within {margin}", "{where}等效（容差 {margin}）"
    ),
    "also_inconclusive": _both("undecided {where} ({interval})", "{where}无法判定（{interval}）"),
    "also_single_run": _both(
        "{interval} times the baseline's {where}, one run",
        "{where}为基线的 {interval} 倍，仅一次运行",
    ),
    "also_not_comparable": _both("not comparable {where}: {reason}", "{where}不可比：{reason}"),
    "throughput_faster": _both(
        "Output {size} more {where} ({interval}).", "{where}输出吞吐高{size}（{interval}）。"
    ),
    "throughput_slower": _both(
        "Output {size} less {where} ({interval}).", "{where}输出吞吐低{size}（{interval}）。"
    ),
    "throughput_equivalent": _both(
        "Output equal {where}, within {margin}.", "{where}输出吞吐等效（容差 {margin}）。"
    ),
    "throughput_inconclusive": _both(
        "Output: undecided {where} ({interval}).", "{where}输出吞吐无法判定（{interval}）。"
    ),
    "throughput_single_run": _both(
        "Output {interval} times the baseline's {where}, one run, no verdict.",
        "{where}输出吞吐为基线的 {interval} 倍，仅一次运行，不作结论。",
    ),
    "throughput_not_comparable": _both(
        "Output not comparable {where}: {reason}", "{where}输出吞吐不可比：{reason}"
    ),
    "carried_no_slo": _both(
        "How much load meets an SLO is not known: none is stated.",
        "未声明 SLO，无法给出满足 SLO 的负载。",
    ),
    "carried_neither": _both(
        "Neither arm meets the SLO at a level that was run.", "两组在已测负载档均不满足 SLO。"
    ),
    "carried_both": _both("Both carry {level} within the SLO.", "两组均可在 SLO 内承载 {level}。"),
    "carried_both_top": _both(
        "Both carry {level} within the SLO, the most that was run.",
        "两组均可在 SLO 内承载 {level}（已测的最高档）。",
    ),
    "carried_each": _both(
        "Carries {candidate} within the SLO, {name} {baseline}.",
        "在 SLO 内可承载 {candidate}，{name} 为 {baseline}。",
    ),
    "carried_only_other": _both(
        "At {level} only {other} runs ({arm}: {reason}).",
        "{level} 档只有 {other} 能运行（{arm}：{reason}）。",
    ),
    "carried_infeasible": _both(
        "At {level} {arm} does not run ({reason}).", "{level} 档 {arm} 无法运行（{reason}）。"
    ),
    "capacity_none": _both("no level that was run", "已测各档均不满足"),
    "capacity_infeasible": _both(
        "{arm} does not run {level}: {reason}.", "{arm} 无法运行 {level}：{reason}。"
    ),
    "capacity_undisturbed": _both(
        "Without its disturbed runs {arm} carries {level}.",
        "不计受干扰的运行，{arm} 可承载 {level}。",
    ),
    "capacity_open_ended": _both("No higher level was run.", "未测更高负载档。"),
    "memory_fails_at": _both("fails at {level}", "{level} 档失败"),
    "lamp_heading": _both("Can they be compared?", "是否可比"),
    "lamp_comparable": _both("Comparable", "可比"),
    "lamp_caveats": _both("Comparable, with caveats", "可比，但有保留"),
    "lamp_not_comparable": _both("Not comparable", "不可比"),
    "lamp_more": _both("{n} more", "另有 {n} 条"),
    "tips_short": _both("tips at {size}", "翻转点 {size}"),
    "tips_long": _both(
        "Tips at {size}: were one of these to shift {metric} {where} by that much between the arms, “{word}” would no longer stand; every other verdict below withstands more.",
        "翻转点 {size}：若上述任一因素使两组的 {metric}（{where}）相差这么多，“{word}”便不再成立；下表其余结论更为稳固。",
    ),
}

_VERDICTS = {
    "verdicts_heading": _both("Verdicts", "判定"),
    "verdicts_caption": _both(
        "Verdicts of {candidate} against {baseline}", "{candidate} 相对 {baseline} 的判定"
    ),
    "col_metric": _both("Metric", "指标"),
    "col_ratio": _both("ratio", "比值"),
    "col_interval": _both("Interval of the ratio", "比值区间"),
    "col_verdict": _both("verdict", "判定"),
    "col_runs": _both("runs", "运行次数"),
    "col_level": _both("Level", "负载档"),
    "col_rung": _both("rung", "级别"),
    "col_p_adjusted": _both("adjusted p", "校正 p"),
    "col_p_permutation": _both("permutation p", "置换 p"),
    "all_rows": _both("Holds for every row: {what}.", "适用于所有行：{what}。"),
    "bar_label": _both("ratio {ratio}", "比值 {ratio}"),
    "verdicts_reading": _both(
        "Ratio = candidate / baseline over runs, with its 95 % interval; in the grey band differences are too small to matter. For times, watts and joules a smaller ratio is better, for rates a larger one.",
        "比值 = 候选 / 基线（按运行计算），附 95 % 区间；灰带内的差异可忽略。时延、功耗、能耗越小越好，速率越大越好。",
    ),
    "knee_slo": _both(
        "Shown at {level}, the level both ran nearest to where the SLO ({slo}) ends; other levels are named in the row.",
        "所示为 {level}：两组都运行过、最接近 SLO（{slo}）极限的负载档；其他档在行内注明。",
    ),
    "knee_no_slo": _both(
        "Shown at {level}, the highest level both ran; the campaign states no SLO.",
        "所示为 {level}：两组都运行过的最高档；测试计划未声明 SLO。",
    ),
    "knee_missed": _both(
        "Shown at {level}, the lowest level both ran: an arm meets the SLO ({slo}) at no level.",
        "所示为 {level}：两组都运行过的最低档；有一组在任何档都不满足 SLO（{slo}）。",
    ),
    "knee_none": _both(
        "The arms share no level, so no row compares them ({slo}).",
        "两组没有共同的负载档，无法逐行比较（{slo}）。",
    ),
    "stands_in_step": _both(
        "at the level shown too few gaps are free of prefill",
        "所示负载档中不含预填充的间隔太少",
    ),
    "stands_in_prefill": _both(
        "stands in for the {wanted}: unloaded first token", "代替 {wanted}：空载首 token"
    ),
    "stands_in_p95": _both(
        "stands in for {wanted}: too few requests for a tail", "代替 {wanted}：请求数不足以给出尾部"
    ),
    "stands_in_decode": _both(
        "stands in for the {wanted}: no gaps between tokens in the log",
        "代替 {wanted}：日志没有 token 间隔",
    ),
    "row_capacity": _both("most streams within the SLO", "SLO 内的最大并发"),
    "row_first_infeasible": _both("first level out of memory", "首个显存不足的负载档"),
    "row_prefill_rate_missing": _both(
        "Needs a run with one request at a time.", "需要单请求运行。"
    ),
    "row_ttft_missing": _both(
        "Needs a streamed log of both arms at one level.", "需要两组在同一负载档的流式日志。"
    ),
    "row_decode_step_missing": _both("Needs the times between tokens.", "需要 token 间隔。"),
    "row_tpot_missing": _both(
        "Needs a streamed log of both arms at one level.", "需要两组在同一负载档的流式日志。"
    ),
    "row_throughput_missing": _both(
        "Needs a level that both arms ran.", "需要两组都运行过的负载档。"
    ),
    "row_capacity_missing": _both(
        "Needs `slo:` in the campaign file.", "需要在 campaign.yaml 中声明 `slo:`。"
    ),
    "row_energy_missing": _both(
        "Needs a GPU trace beside the runs.", "需要与运行同步的 GPU 采样。"
    ),
    "row_memory_missing": _both(
        "Needs a GPU trace beside the runs.", "需要与运行同步的 GPU 采样。"
    ),
    "lost_short": _both(
        "p = {p:.2g} after correction for {family} cells", "按 {family} 项校正后 p = {p:.2g}"
    ),
    "tradeoff_heading": _both("What it buys", "取舍"),
    "next_heading": _both("What would decide it", "如何得出结论"),
    "next_nothing": _both(
        "Nothing: every primary cell is decided.", "无需补测：主要指标均有结论。"
    ),
    "action_gain": _both(
        "Runs in all: {runs}; cells it may decide: {cells}.",
        "共需 {runs} 次运行，可能判定 {cells} 项。",
    ),
    "action_gain_from": _both(
        "Runs in all: {runs} or more; cells it may decide: {cells}.",
        "共需至少 {runs} 次运行，可能判定 {cells} 项。",
    ),
    "action_impractical": _both(
        "{runs} runs or more in all: rather read it as undecided.",
        "共需至少 {runs} 次运行：不如视为无法判定。",
    ),
    "runs_needed": _both(
        "{low} to {high} runs an arm would show a difference as large as the margin",
        "每组 {low} 至 {high} 次运行可检出与容差同等大小的差异",
    ),
    "finding_heading": _both("What binds", "瓶颈"),
    "finding_nothing": _both(
        "Nothing measured points at one resource.", "已测数据未指向某一种资源瓶颈。"
    ),
    "unmeasured_heading": _both("Not measured, or nothing found", "未测量或没有结果"),
    "unmeasured_joint": _both(": ", "："),
    "note_of_arms": _both("{arms}: {text}", "{arms}：{text}"),
    "list_joint": _both(", ", "、"),
}

_HEALTH = {
    "health_heading": _both("Run health", "运行健康状况"),
    "vital_warning": _both("look at this", "请留意"),
    "vital_cut": _both("warm-up cut", "预热裁剪"),
    "vital_cut_note": _both("largest: {arm}, {level}", "最大：{arm}，{level}"),
    "vital_no_window": _both("no run has a steady window", "没有运行具有稳态窗口"),
    "vital_window": _both("window", "窗口"),
    "vital_short_runs": _both("{n} of {total} runs short", "{total} 次运行中 {n} 次过短"),
    "vital_steady": _both("steady share", "稳态占比"),
    "vital_steady_note": _both("time above 90 % of peak streams", "高于峰值并发 90 % 的时间"),
    "vital_errors": _both("errors", "错误"),
    "vital_errors_note": _both(
        "{failed} of {total} failed, {cut} cut at the end",
        "{total} 个中失败 {failed} 个，结尾截断 {cut} 个",
    ),
    "vital_disturbed": _both("disturbed runs", "受干扰的运行"),
    "vital_not_testable": _both("not testable", "无法检验"),
    "vital_untestable": _both(
        "{arm}: {n} of {total} runs without gaps between tokens",
        "{arm}：{total} 次运行中有 {n} 次没有 token 间隔",
    ),
    "vital_untestable_bounded": _both(
        "{arm}: {n} of {total} runs without gaps between tokens; no silence above {bound}",
        "{arm}：{total} 次运行中有 {n} 次没有 token 间隔；全体静默不超过 {bound}",
    ),
    "vital_client": _both("client saturated", "客户端饱和"),
    "vital_client_note": _both("the client set the pace at a level", "某些负载档的瓶颈在客户端"),
    "vital_sustained": _both("streams asked for were held", "维持了要求的并发"),
    "vital_yes": _both("yes", "是"),
    "vital_no": _both("no", "否"),
    "vital_throttle": _both("throttled", "降频"),
    "vital_clocks": _both("SM clock", "SM 时钟"),
    "vital_clocks_note": _both("spread within a run up to {spread}", "单次运行内波动最多 {spread}"),
    "vital_gaps": _both("longest trace gap", "采样最长间隔"),
    "vital_no_trace": _both("not measured: no GPU trace", "未测量：没有 GPU 采样"),
    "vital_not_measured": _both("not measured", "未测量"),
    "vital_soak": _both("soak", "长稳"),
    "vital_no_soak": _both("not measured: no run of 30 minutes", "未测量：没有 30 分钟以上的运行"),
}

_FIGURES = {
    "figure_font_notice": _both("", "未找到中文字体，图中文字使用英文。"),
    "axis_user_speed": _both("speed one user sees (tokens/s)", "单用户感知速度（token/s）"),
    "axis_throughput_system": _both(
        "output throughput per system (tokens/s)", "系统输出吞吐（token/s）"
    ),
    "axis_throughput_gpu": _both("output throughput per GPU (tokens/s)", "单卡输出吞吐（token/s）"),
    "axis_streams": _both("streams", "并发"),
    "axis_rate": _both("requests per second", "每秒请求数"),
    "axis_ratio": _both("{metric}, candidate / baseline", "{metric}，候选 / 基线"),
    "axis_run_time": _both("seconds since the run's first request", "自首个请求起的秒数"),
    "slo_region": _both("TPOT p50 ≤ {limit}", "TPOT p50 ≤ {limit}"),
    "edge_infeasible": _both("{level} does not run: {reason}", "{level} 无法运行：{reason}"),
    "trade_off_reading": _both(
        "Each point is one run, numbers are streams; up and to the right is better, and the shaded side meets the TPOT limit.",
        "每个点是一次运行，数字为并发数；越靠右上越好，阴影一侧满足 TPOT 限值。",
    ),
    "trade_off_finding": _both(
        "At {low} {candidate} gives a user {x_low} of the speed and the system {y_low} of the tokens of {baseline}; at {high}, {x_high} and {y_high}.",
        "在 {low} 路时，{candidate} 的单用户速度为 {baseline} 的 {x_low}、系统吞吐为 {y_low}；在 {high} 路时分别为 {x_high} 和 {y_high}。",
    ),
    "trade_off_one_arm": _both("Only one arm has both numbers.", "只有一组同时具有两个数值。"),
    "trade_off_no_level": _both("The arms share no level.", "两组没有共同的负载档。"),
    "trade_off_alt": _both(
        "Scatter of user speed against throughput, one point a run. {finding}",
        "单用户速度与吞吐的散点图，每点一次运行。{finding}",
    ),
    "intervals_reading": _both(
        "Dot and bar are the ratio and its 95 % interval over runs; a bar clear of the line at 1 is a difference once it holds after correction for the number of levels (the word says), one inside the grey band ({margin}) does not matter.",
        "点与横线为按运行计算的比值及 95 % 区间；横线不触及 1 且经多档校正后仍成立才算有差异（以判定词为准），落在灰带（{margin}）内则可忽略。",
    ),
    "intervals_finding": _both("{metric}: {words}.", "{metric}：{words}。"),
    "intervals_alt": _both(
        "Ratios of {metric} with intervals. {words}.", "{metric} 的比值与区间。{words}。"
    ),
    "runs_reading": _both(
        "Each point is one run, the bar is the mean of an arm at that level; points far from their bar are runs to look at.",
        "每个点是一次运行，短横为该组该档的均值；远离短横的点值得查看。",
    ),
    "runs_finding": _both(
        "The runs of {metric} spread most in {arm} at {level}: {share} between highest and lowest.",
        "{metric} 波动最大的是 {arm} 的 {level} 档：最高与最低相差 {share}。",
    ),
    "runs_alt": _both(
        "{metric} of each of {n} runs, by level and arm.",
        "{n} 次运行各自的 {metric}，按负载档与组别。",
    ),
    "window_cut": _both("warm-up, cut", "预热（裁剪）"),
    "window_window": _both("window", "窗口"),
    "window_drain": _both("drain, cut", "收尾（裁剪）"),
    "windows_reading": _both(
        "Each bar is one run (arm · streams · repeat); only requests that start in the blue stretch count.",
        "每条为一次运行（组 · 并发 · 重复）；只统计在蓝色区间内开始的请求。",
    ),
    "windows_finding": _both(
        "Of {n} runs, {low} to {high} of the requests lie outside the window.",
        "{n} 次运行中，窗口外的请求占 {low} 至 {high}。",
    ),
    "windows_none": _both("No run has times, so nothing was cut.", "没有运行带有时间，未作裁剪。"),
    "windows_alt": _both(
        "Bars of warm-up, window and drain of every run. {finding}",
        "各次运行的预热、窗口与收尾。{finding}",
    ),
}

_SECTIONS = {
    "skip_link": _both("Skip to the report", "跳到正文"),
    "contents": _both("Contents", "目录"),
    "footer": _both(
        "Made by gpuverdict. The run is the replicate: requests are never counted as repeats.",
        "由 gpuverdict 生成。以“运行”为重复单位，请求不作为重复计数。",
    ),
    "map_heading": _both("All verdicts at a glance", "判定总览"),
    "map_reading": _both(
        "The word of each cell and its ratio, candidate over baseline.",
        "每格为判定与比值（候选 / 基线）。",
    ),
    "headline_heading": _both("Over all levels", "全部负载档合并"),
    "headline_reading": _both(
        "Geometric mean over levels; p adjusted over these rows (Holm).",
        "各档几何平均；p 按这些行做 Holm 校正。",
    ),
    "cells_heading": _both("Every cell", "逐项判定"),
    "cells_reading": _both(
        "One table a metric. Runs are counted, never requests; p is adjusted within a metric (Benjamini-Hochberg). What holds for the whole comparison is said at the top and not repeated.",
        "每个指标一张表。统计单位是运行而非请求；p 在同一指标内做 Benjamini-Hochberg 校正。对整个对比成立的保留事项见顶部，不再重复。",
    ),
    "margin_is": _both("differences below {margin} do not matter", "小于 {margin} 的差异可忽略"),
    "reached_heading": _both("How this verdict was reached", "判定是如何得出的"),
    "reached_cell": _both("{cell}, step by step", "{cell}，逐步说明"),
    "reached_nothing": _both(
        "No cell could be tested; the reasons stand below.", "没有可检验的项，原因见下。"
    ),
    "reasons_heading": _both("What may be compared, and what else differs", "可比范围与其他差异"),
    "scope_is": _both("The claim is about", "结论适用于"),
    "treatment_is": _both("The question is: {treatment}.", "对比的因素：{treatment}。"),
    "treatment_none": _both(
        "No treatment is named: the ratio holds everything that differs between the arms.",
        "未指定对比因素：比值包含两组之间的全部差异。",
    ),
    "refused": _both("Refused:", "拒绝："),
    "blocked_heading": _both("Not compared:", "未比较："),
    "ladder": _both(
        "Rungs: 1 like for like, 2 systems, 3 whole runs of the same job, 4 as a tool reported it, 5 order only, 6 only one arm runs it, 7 computed, 8 not measured or refused.",
        "级别：1 同条件，2 整套系统，3 同一任务的整个运行，4 工具自报，5 仅顺序，6 仅一组可运行，7 计算值，8 未测量或拒绝。",
    ),
    "step_runs_name": _both("One number a run", "每次运行一个数"),
    "step_runs": _both(
        "{baseline}: {a} ({n_a} runs). {candidate}: {b} ({n_b} runs). Each from the {window}.",
        "{baseline}：{a}（{n_a} 次）。{candidate}：{b}（{n_b} 次）。均取自{window}。",
    ),
    "step_ratio_name": _both("Ratio", "比值"),
    "step_ratio": _both(
        "Geometric means {mean_a} and {mean_b}; ratio {ratio}, 95 % interval {low} to {high} (log scale, SE {se}, {df} degrees of freedom).",
        "几何平均 {mean_a} 与 {mean_b}；比值 {ratio}，95 % 区间 {low} 至 {high}（对数尺度，SE {se}，自由度 {df}）。",
    ),
    "step_equivalence_name": _both("Equivalence first", "先检验等效"),
    "step_equivalence": _both(
        "The 90 % interval {low90} to {high90} would have to lie within {margin_low} to {margin_high} (margin {margin}).",
        "90 % 区间 {low90} 至 {high90} 需完全落在 {margin_low} 至 {margin_high} 内（容差 {margin}）。",
    ),
    "step_test_name": _both("Test", "检验"),
    "step_test": _both(
        "{test} on logs: p = {p}; cross-check by permutation: p = {p_permutation}.",
        "对数值的{test}：p = {p}；置换检验复核：p = {p_permutation}。",
    ),
    "step_family_name": _both("Many cells", "多重比较"),
    "step_family": _both(
        "Adjusted for the {family} cells of this metric: p = {p_adjusted}.",
        "按该指标的 {family} 项校正：p = {p_adjusted}。",
    ),
    "step_word_name": _both("Word", "判定"),
    "step_word": _both(
        "{word}, on rung {rung} of the ladder below.", "{word}，处于下述第 {rung} 级。"
    ),
    "runs_heading": _both("Runs, windows and cuts", "运行、窗口与裁剪"),
    "runs_table_reading": _both(
        "Times in seconds since the run's first request; the numbers of a run come from requests that start in its window.",
        "时间为自首个请求起的秒数；每次运行的数值只取窗口内开始的请求。",
    ),
    "col_arm": _both("Arm", "组"),
    "col_repeat": _both("run", "次"),
    "col_window": _both("window", "窗口"),
    "col_dropped": _both("outside", "窗口外"),
    "col_sent": _both("requests", "请求数"),
    "col_status": _both("by status", "按状态"),
    "col_file": _both("file", "文件"),
    "lost_heading": _both("Files that gave nothing", "未能使用的文件"),
    "glossary_heading": _both("Words", "术语"),
    "formulas_heading": _both("Formulas", "公式"),
    "col_formula": _both("formula", "公式"),
    "col_unit": _both("base unit", "基本单位"),
    "provenance_heading": _both("Provenance", "来源"),
    "provenance_command": _both("Made again by", "复现命令"),
    "provenance_tools": _both("Logs by", "日志来自"),
    "health_section": _both("Run health", "运行健康状况"),
    "figures_heading": _both("Level by level", "逐档对比"),
}

_CAMPAIGN = {
    "arm_device": _both("devices", "设备"),
    "arm_model": _both("model", "模型"),
    "arm_engine": _both("engine", "推理引擎"),
    "arm_cards": _both("cards", "卡"),
    "arm_starts": _both("server starts", "服务启动"),
    "arm_starts_shared": _both("shared by the repeats", "各次重复共用"),
    "arm_starts_each": _both("one a run", "每次运行重启"),
    "arm_tool": _both("logs by", "日志来自"),
    "arm_trace": _both("GPU trace", "GPU 采样"),
    "arm_samples": _both("{n} samples", "{n} 个样本"),
    "arm_probe": _both("prefill probes", "预填充探测"),
    "coverage_heading": _both("How often each level was run", "各负载档的运行次数"),
    "coverage_reading": _both(
        "Runs an arm and level; ! where an arm has fewer than another.",
        "每组每档的运行次数；! 表示少于其他组。",
    ),
    "coverage_requests": _both("{n} requests", "{n} 个请求"),
    "missing_heading": _both("What is missing, and what to mind", "缺失与注意事项"),
    "missing_nothing": _both(
        "Every file the campaign names was read.", "测试计划中的文件均已读取。"
    ),
    "missing_runs": _both("of {total} runs", "共 {total} 次运行"),
    "missing_what": _both("what", "事项"),
    "missing_remedy": _both("way out", "处理办法"),
    "axis_order": _both("runs in the order they were made", "按执行先后排列的运行"),
    "order_reading": _both(
        "Each stroke is one run, from first to last; arms whose strokes alternate were measured under the same conditions.",
        "每一竖线为一次运行，从先到后；竖线交替的两组处于相同条件下。",
    ),
    "order_finding": _both(
        "{n} runs of {arms} arms in {blocks} blocks.",
        "{arms} 组共 {n} 次运行，分 {blocks} 段执行。",
    ),
    "order_none": _both("The logs hold no times of day.", "日志没有绝对时间。"),
    "order_alt": _both("Order of the runs by arm. {finding}", "各组运行的先后顺序。{finding}"),
    "axis_runs": _both("runs an arm", "每组运行次数"),
    "axis_detectable": _both(
        "smallest detectable difference of {metric}", "{metric} 可检出的最小差异"
    ),
    "margin_line": _both("margin {margin}", "容差 {margin}"),
    "detectable_reading": _both(
        "Each line is a level: the difference that so many runs an arm would find in 80 % of campaigns; a line below the margin has runs enough.",
        "每条线为一个负载档：该运行次数在 80 % 的测试中可检出的差异；低于容差线即次数足够。",
    ),
    "detectable_finding": _both(
        "With {n} runs an arm, differences of {metric} from {low} (best level) to {high} (worst) can be found.",
        "每组 {n} 次运行可检出 {metric} 的差异：最好的档 {low}，最差的档 {high}。",
    ),
    "detectable_none": _both("No level has a spread over runs.", "没有可用的运行间波动。"),
    "detectable_alt": _both(
        "Smallest detectable difference against runs an arm. {finding}",
        "可检出最小差异随运行次数的变化。{finding}",
    ),
}

_ANSWERS = {
    "finding_reading": _both(
        "Each finding names its evidence and what would confirm it; without the input it needs a rule says nothing.",
        "每条诊断给出依据与确认方法；缺少所需输入时规则不作判断。",
    ),
    "finding_message": _both("what and why", "现象与依据"),
    "finding_confirm": _both("would be confirmed by", "如何确认"),
    "finding_remedy": _both("try first", "优先尝试"),
    "finding_check": _both("shows whether it worked", "如何验证效果"),
    "phase_prefill": _both("prefill", "预填充"),
    "phase_waiting": _both("waiting", "等待"),
    "phase_decode": _both("decode", "解码"),
    "axis_mean_time": _both("mean time of a request (s)", "请求平均耗时（s）"),
    "phases_reading": _both(
        "Each bar is the mean request of an arm at a level: prefill as if alone, waiting on top of that, then decode.",
        "每条为该组该档的平均请求：单独运行时的预填充、额外等待、解码。",
    ),
    "phases_finding_no_wait": _both(
        "{arm}: decode takes {low} to {high} of a request; how much of the rest is waiting is not known.",
        "{arm}：解码占请求的 {low} 至 {high}，其余部分中等待占多少未知。",
    ),
    "phases_finding": _both(
        "{arm}: decode takes {low} to {high} of a request, waiting at most {wait}.",
        "{arm}：解码占请求的 {low} 至 {high}，等待最多占 {wait}。",
    ),
    "phases_none": _both("The logs hold no first-token times.", "日志没有首 token 时间。"),
    "phases_alt": _both(
        "Stacked bars of prefill, waiting and decode by arm and level. {finding}",
        "各组各档的预填充、等待与解码堆叠条。{finding}",
    ),
    "axis_prompt": _both("prompt length (tokens)", "输入长度（token）"),
    "axis_ttft_ms": _both("time to first token, alone (ms)", "单请求首 token 时延（ms）"),
    "prefill_reading": _both(
        "Points are medians over probes with one request at a time, the line is the fit where lengths allow one; its height at zero is overhead, its slope the cost of a prompt token.",
        "点为单请求探测的中位数，线为可拟合时的曲线；截距为固定开销，斜率为每个输入 token 的代价。",
    ),
    "prefill_words": _both("{arm}: {time} for {n} tokens.", "{arm}：{n} 个 token 需 {time}。"),
    "prefill_fit_words": _both(
        "Fitted: {fixed} whatever the length, and {rate} of prompt at {n} tokens.",
        "拟合结果：固定开销 {fixed}；在 {n} 个 token 处预填充速率为 {rate}。",
    ),
    "prefill_chunk_words": _both(
        "Each chunk of {chunk} tokens after the first adds a step of {step}, counted apart.",
        "首块之后每多一块（{chunk} 个 token）增加一步 {step}，已单独计入。",
    ),
    "prefill_none": _both(
        "No probe with one request at a time was recorded.", "没有单请求探测记录。"
    ),
    "prefill_alt": _both(
        "Time to first token against prompt length. {finding}", "首 token 时延随输入长度。{finding}"
    ),
    "axis_batch": _both("requests decoding", "解码中的请求数"),
    "batch_reading": _both(
        "The step line counts requests between first and last token; dips are streams that wait for a prefill.",
        "阶梯线为处于首末 token 之间的请求数；凹陷表示有请求在等待预填充。",
    ),
    "batch_words": _both(
        "{arm} decodes {batch} requests on average at {level}",
        "{arm} 在 {level} 档平均同时解码 {batch} 个请求",
    ),
    "batch_none": _both("The logs hold no token times.", "日志没有 token 时间。"),
    "batch_alt": _both("Decode batch over time. {finding}", "解码批大小随时间变化。{finding}"),
    "axis_flight": _both("requests in flight", "在途请求数"),
    "axis_step_ms": _both("time per token (ms)", "每 token 时间（ms）"),
    "axis_decode_rate": _both("decode throughput (tokens/s)", "解码吞吐（token/s）"),
    "axis_rate_ratio": _both("throughput, candidate / baseline", "吞吐，候选 / 基线"),
    "curve_reading": _both(
        "Points are runs, the curve is fitted per sweep; its height at an empty batch is the cost of reading the weights, its slope what each further stream adds.",
        "点为各次运行，曲线按每轮扫描拟合；空批处的高度为读取权重的代价，斜率为每增一路的代价。",
    ),
    "curve_words": _both(
        "{arm}: {alpha} and {beta} more for each stream.", "{arm}：{alpha}，每增一路 {beta}。"
    ),
    "curve_none": _both("Fewer than two levels: no curve.", "少于两个负载档，无法拟合曲线。"),
    "curve_alt": _both(
        "Curve against requests in flight. {finding}", "随在途请求数的曲线。{finding}"
    ),
    "bend_reading": _both(
        "The curve rises in proportion while weights are read for few streams, and flattens where each stream costs as much as the weights.",
        "并发少时曲线近似成比例上升；当每路代价与读取权重相当时趋于平缓。",
    ),
    "bend_words": _both("{arm} bends at {half} streams.", "{arm} 在 {half} 路处弯折。"),
    "bend_beyond": _both(
        "{arm} has not bent at {most} streams, the most that was run.",
        "{arm} 到已测最高 {most} 路仍未弯折。",
    ),
    "ratio_reading": _both(
        "The band holds the whole curve with 95 % confidence; above the grey strip the candidate gives more, below it less.",
        "色带以 95 % 置信覆盖整条曲线；高于灰带表示候选更高，低于则更低。",
    ),
    "ratio_finding": _both(
        "The candidate gives {first} times the throughput at {low} in flight and {last} times at {high}. {crossing}",
        "候选在 {low} 个在途请求时为基线吞吐的 {first} 倍，在 {high} 时为 {last} 倍。{crossing}",
    ),
    "ratio_crossing": _both(
        "The curves cross at {at}{interval}.", "两条曲线在 {at}{interval} 处交叉。"
    ),
    "ratio_none": _both("No common range of batch sizes.", "没有共同的批大小范围。"),
    "ratio_alt": _both(
        "Throughput ratio along the batch. {finding}", "吞吐比值随批大小变化。{finding}"
    ),
    "curve_heading": _both("Fitted curves", "拟合曲线"),
    "curve_table_reading": _both(
        "Step time = fixed part + part a stream x streams, fitted for each sweep; intervals over sweeps.",
        "步时 = 固定部分 + 每路部分 × 并发，按每轮扫描拟合；区间按扫描轮次计算。",
    ),
    "curve_model": _both("model", "模型"),
    "curve_alpha": _both("fixed part", "固定部分"),
    "curve_beta": _both("a stream", "每路"),
    "curve_not_identified": _both("not identified", "无法辨识"),
    "curve_top": _both("saturation (tokens/s)", "饱和吞吐（token/s）"),
    "curve_half": _both("bend (streams)", "弯折点（并发）"),
    "curve_fit": _both("lack of fit p", "失拟 p"),
    "curve_error": _both("largest error", "最大误差"),
    "curve_range": _both("measured range", "已测范围"),
    "curve_sweeps": _both("sweeps", "扫描轮次"),
    "axis_arm_time": _both("seconds since the arm's first run", "自该组首次运行起的秒数"),
    "axis_power": _both("power of all GPUs (W)", "全部 GPU 功率（W）"),
    "power_limit": _both("power limit", "功率上限"),
    "power_reading": _both(
        "One-second means summed over the GPUs of an arm; plateaus are runs, valleys the pauses between them.",
        "每秒均值，按该组全部 GPU 求和；平台为运行，低谷为间隔。",
    ),
    "power_words": _both(
        "{arm} draws {mean} W on average and {peak} W at most.",
        "{arm} 平均 {mean} W，最高 {peak} W。",
    ),
    "power_none": _both(
        "Not measured: no GPU trace covers the runs.", "未测量：没有覆盖运行时段的 GPU 采样。"
    ),
    "power_alt": _both("Power over time. {finding}", "功率随时间变化。{finding}"),
    "axis_slo_used": _both("share of the tightest limit in use (%)", "最紧限值的占用比例（%）"),
    "slo_limit": _both("SLO", "SLO"),
    "slo_reading": _both(
        "For each run the part of the SLO that is closest to its limit; what lies above 100 % misses the SLO.",
        "每次运行取最接近限值的 SLO 条目；高于 100 % 即不满足 SLO。",
    ),
    "slo_finding": _both(
        "{arm} uses most: {used} of {part} at {level}.",
        "{arm} 占用最多：{level} 档 {part} 的 {used}。",
    ),
    "slo_none": _both(
        "No SLO is stated, or none of it was measured.", "未声明 SLO，或其条目均未测量。"
    ),
    "slo_alt": _both("Share of the SLO in use by level. {finding}", "各档 SLO 占用比例。{finding}"),
    "bound_reading": _both(
        "Points are the measured step, dotted lines the shortest step the card's bandwidth allows; the gap is what software and scheduling cost.",
        "点为实测步时，虚线为显存带宽允许的最短步时；差距来自软件与调度。",
    ),
    "bound_finding": _both(
        "{best} at {best_level} comes closest with {high} of the bandwidth; {worst} at {worst_level} uses {low}.",
        "{best} 的 {best_level} 档最接近，达到带宽的 {high}；{worst} 的 {worst_level} 档仅 {low}。",
    ),
    "bound_none": _both(
        "Not computed: needs the model's shape and the card's bandwidth.",
        "未计算：需要模型规格与显存带宽。",
    ),
    "bound_alt": _both("Measured step against its bound. {finding}", "实测步时与下限。{finding}"),
    "cap_heading": _both("Does it meet the SLO, and at what price?", "是否满足 SLO，成本如何"),
    "cap_reading": _both(
        "Largest load at which every run meets the SLO, and what the arm gives there; streams in memory are computed, not measured.",
        "各次运行均满足 SLO 的最大负载及该处表现；显存可容纳并发为计算值，非实测。",
    ),
    "cap_go": _both("verdict", "结论"),
    "cap_load": _both("carries", "承载"),
    "cap_limiting": _both("limited by", "受限于"),
    "cap_goodput": _both("goodput", "有效吞吐"),
    "cap_rate": _both("output throughput", "输出吞吐"),
    "cap_memory": _both("memory peak", "显存峰值"),
    "cap_holds": _both("streams in memory", "显存可容纳并发"),
    "cap_price": _both("price of 10⁶ output tokens", "每百万输出 token 价格"),
    "cap_joule": _both("tokens per joule", "每焦耳 token 数"),
    "cap_none": _both("Nothing was measured for {workload}.", "{workload} 没有测量结果。"),
    "go_go": _both("go", "满足"),
    "go_no_go": _both("no go", "不满足"),
    "go_not_measured": _both("not measured", "未测量"),
    "axis_claim": _both(
        "published time / shortest time the card allows", "公布时间 / 显卡允许的最短时间"
    ),
    "claims_reading": _both(
        "Each point is a published time over the shortest the card's memory allows; what lies left of 1 needs a cause that is not stated.",
        "每个点为公布时间与显存所允许最短时间之比；位于 1 左侧的数值需要未说明的原因。",
    ),
    "claims_finding": _both(
        "{below} of {n} times lie below what their card allows.",
        "{n} 个时间中有 {below} 个低于显卡允许的下限。",
    ),
    "claims_alt": _both(
        "Published times against the bound of their card. {finding}",
        "公布时间与下限之比。{finding}",
    ),
    "claim_heading": _both("Published claims", "公开数据"),
    "claim_reading": _both(
        "One value a cell is one run: no verdict comes from a published table, only whether it can be so.",
        "一格一个数值即一次运行：公开表格不产生判定，只检查是否可能成立。",
    ),
    "claim_none": _both("The table holds no claim that can be checked.", "表中没有可检查的数据。"),
    "claim_standing": _both("standing", "判断"),
    "claim_source": _both("source", "来源"),
    "claim_section": _both("section", "章节"),
    "claim_gpu": _both("GPU", "GPU"),
    "claim_what": _both("claim", "内容"),
    "claim_why": _both("why", "理由"),
    "standing_stands": _both("stands", "成立"),
    "standing_contradicts_itself": _both("contradicts itself", "自相矛盾"),
    "standing_impossible": _both("impossible", "不可能"),
    "standing_needs_a_cause": _both("needs a cause", "需要解释"),
    "standing_not_judged": _both("not judged", "未判断"),
}

_RECORD = {
    "record_heading": _both("Record sheet", "验收记录表"),
    "record_reading": _both(
        "Every field of an acceptance record with its source; {n} of {total} values are unknown.",
        "验收记录的全部字段与来源；{total} 个值中有 {n} 个未知。",
    ),
    "record_part": _both("part", "部分"),
    "record_field": _both("field", "字段"),
    "record_source": _both("source", "来源"),
    "record_unknown": _both("unknown", "未知"),
    "record_hardware": _both("hardware", "硬件"),
    "record_software": _both("software", "软件"),
    "record_load": _both("load", "负载"),
    "record_results": _both("results", "结果"),
    "source_campaign_file": _both("campaign file", "campaign.yaml"),
    "source_devices": _both("devices", "设备自报"),
    "source_logs": _both("logs", "日志"),
    "source_computed": _both("computed", "计算"),
}

_GLOSSARY = {
    "term_prefill": _term(
        "prefill",
        "Reading the prompt: all its tokens at once, bound by compute. Ends with the first token.",
        "预填充（prefill）",
        "一次性处理全部输入 token，受算力限制，以首 token 结束。",
    ),
    "term_decode": _term(
        "decode",
        "Writing the answer token by token, bound by memory bandwidth at small batches.",
        "解码（decode）",
        "逐 token 生成输出，小批量时受显存带宽限制。",
    ),
    "term_ttft": _term(
        "TTFT",
        "Time from sending a request to its first token: queue and prefill.",
        "首 token 时延（TTFT）",
        "从发出请求到首 token 的时间，含排队与预填充。",
    ),
    "term_tpot": _term(
        "TPOT",
        "Time per output token after the first, one number a request: (last - first token) / (tokens - 1).",
        "每 token 时延（TPOT）",
        "首 token 之后每个输出 token 的时间，每请求一个数：（末 − 首）/（token 数 − 1）。",
    ),
    "term_itl": _term(
        "ITL",
        "Gap between two tokens, one number a gap; its mean weighs long answers more than TPOT's does.",
        "token 间隔（ITL）",
        "相邻 token 的间隔，每个间隔一个数；其均值比 TPOT 更偏向长输出。",
    ),
    "term_goodput": _term(
        "goodput",
        "Requests a second that meet every part of the SLO.",
        "有效吞吐（goodput）",
        "每秒满足 SLO 全部条件的请求数。",
    ),
    "term_slo": _term(
        "SLO",
        "The limits a service promises, such as TTFT p95 of half a second.",
        "服务目标（SLO）",
        "服务承诺的限值，例如 TTFT p95 不超过 0.5 秒。",
    ),
    "term_run": _term(
        "run",
        "One measurement of one arm at one level. Runs, not requests, are the repeats that intervals rest on.",
        "运行",
        "一组在一个负载档的一次测量。区间以运行而非请求为重复单位。",
    ),
    "term_steady": _term(
        "steady window",
        "The stretch of a run after warm-up and before the drain; cut by one rule in both arms.",
        "稳态窗口",
        "去除预热与收尾后的区间，两组按同一规则裁剪。",
    ),
    "term_ratio": _term(
        "ratio",
        "Candidate divided by baseline, of geometric means over runs.",
        "比值",
        "候选除以基线，取各次运行的几何平均。",
    ),
    "term_interval": _term(
        "95 % interval",
        "A range made by a rule that covers the true ratio in 95 of 100 campaigns.",
        "95 % 区间",
        "按此规则，100 次测试中约有 95 次覆盖真实比值。",
    ),
    "term_margin": _term(
        "margin",
        "The difference that is taken to matter in practice.",
        "容差",
        "被认为有实际意义的最小差异。",
    ),
    "term_equivalent": _term(
        "equivalent",
        "Shown to differ by less than the margin; not merely “no difference found”.",
        "等效",
        "已证明差异小于容差，而非仅仅“未发现差异”。",
    ),
    "term_inconclusive": _term(
        "inconclusive",
        "The runs show neither a difference nor equivalence; the report says how many more would.",
        "无法判定",
        "现有运行既不能证明差异也不能证明等效；报告会说明还需多少次。",
    ),
    "term_not_comparable": _term(
        "not comparable",
        "Something else differs that would decide the number, or one side is missing.",
        "不可比",
        "存在会左右数值的其他差异，或缺少一方的数据。",
    ),
    "term_rung": _term(
        "rung",
        "How strong an answer the data allow, from a like-for-like verdict (1) to not measured (8).",
        "级别",
        "数据所支持的结论强度，从同条件判定（1）到未测量（8）。",
    ),
    "term_adjusted": _term(
        "adjusted p",
        "Corrected for testing many cells, so that one of twenty does not stand out by chance.",
        "校正 p",
        "针对多项检验作了校正，避免二十项中偶然出现一项显著。",
    ),
    "term_scope": _term(
        "scope",
        "What the claim is about: these cards, card models (three cards or more an arm), or whole systems (something beside the GPU differs).",
        "适用范围",
        "结论针对：这几张卡、显卡型号（每组三张以上）或整套系统（GPU 之外还有差异）。",
    ),
}

_INDEX = {
    "index_decisions": _both("What each arm carries", "各组的承载能力"),
    "index_decisions_reading": _both(
        "Most load within the SLO (highest level without one), and what the arm gives there: output throughput of the system, time per token, energy per token. ≥: no higher level was run.",
        "在 SLO 内的最大负载（未声明 SLO 时为最高档），以及该档的系统输出吞吐、每 token 时延与能耗。≥ 表示未测更高档。",
    ),
    "index_model": _both("Model and workload", "模型与负载"),
    "index_words": _both(
        "These words are the headlines over all levels, adjusted over the metrics (Holm); inside a report the word of one level is adjusted over the levels of its metric (Benjamini–Hochberg) and may differ.",
        "此处为跨全部负载档的总体结论，按指标做 Holm 校正；报告内单个负载档的结论按该指标各档做 Benjamini–Hochberg 校正，二者可能不同。",
    ),
    "index_infeasible": _both("{level} does not run: {reason}", "{level} 无法运行：{reason}"),
    "history_heading": _both("An arm over its campaigns", "同一被测配置的历次测试"),
    "history_reading": _both(
        "Each value is the geometric mean over the levels that all of these campaigns ran; a change of the series is looked for from six campaigns on.",
        "每个数值为各次测试共有负载档的几何平均；六次及以上才判断序列是否发生变化。",
    ),
    "history_outcome": _both("Did it change?", "是否变化"),
    "history_change": _both(
        "Changed by {change:+.1%} from {since} on.", "自 {since} 起变化 {change:+.1%}。"
    ),
    "history_no_change": _both(
        "No change of {margin:.0%} or more in {n} campaigns.",
        "{n} 次测试中未见达到 {margin:.0%} 的变化。",
    ),
    "history_unstable_series": _both(
        "Unstable: the {n} campaigns scatter by more than {margin:.0%}, or change more than once.",
        "不稳定：{n} 次测试之间的离散超过 {margin:.0%}，或变化不止一次。",
    ),
    "history_not_enough_history": _both(
        "{n} campaigns: too few for a series; the comparisons above say pair by pair.",
        "仅 {n} 次测试，不足以判断序列；请看上方的两两对比。",
    ),
    "history_error": _both(
        "A value that is not positive: no series.", "存在非正数值，无法判断序列。"
    ),
    "index_undisturbed": _both("{level} without its disturbed runs", "不计受干扰的运行为 {level}"),
    "index_matrix": _both("Pair by pair", "两两对比"),
    "index_matrix_reading": _both(
        "Candidates down, baselines across: the word for {metric} over all levels, with its ratio.",
        "行为候选，列为基线：{metric} 在全部负载档合并后的判定与比值。",
    ),
    "index_matrix_corner": _both("candidate \\ baseline", "候选 \\ 基线"),
    "index_pairs": _both("Comparisons", "对比"),
    "index_filter": _both("Show", "显示"),
    "index_all": _both("all", "全部"),
    "index_decided": _both("with an answer", "有结论"),
    "index_open": _both("undecided", "无法判定"),
    "index_refused": _both("not comparable or failed", "不可比或失败"),
    "index_comparison": _both("Comparison", "名称"),
    "index_against": _both("Candidate against baseline", "候选 对比 基线"),
    "index_pair": _both("{candidate} against {baseline}", "{candidate} 对比 {baseline}"),
    "index_failed": _both("Not rendered:", "未生成："),
}

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "empty_value": _both("{name} was not measured.", "未测量 {name}。"),
    **_WORDS,
    **_MODIFIERS,
    **_TOP,
    **_VERDICTS,
    **_HEALTH,
    **_FIGURES,
    **_SECTIONS,
    **_GLOSSARY,
    **_INDEX,
    **_CAMPAIGN,
    **_ANSWERS,
    **_RECORD,
}
