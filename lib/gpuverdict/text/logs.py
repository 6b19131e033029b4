"""Sentences about logs."""

# A sentence is easier to judge on one line than cut in two.

# A sentence is easier to judge on one line than cut in two.

from __future__ import annotations

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "nul_tail": {
        "en": (
            "{name} ends in {n} NUL bytes; they were cut off.",
            "The writer was killed or the disk was full: check that the log is complete.",
        ),
        "zh": (
            "{name} 末尾有 {n} 个 NUL 字节，已截去。",
            "写入进程可能被强杀或磁盘已满，请核对日志是否完整。",
        ),
    },
    "incomplete_last_line": {
        "en": (
            "Line {line} of {name} is cut off and was left out.",
            "The run was interrupted while it wrote: compare the rows with the requests planned.",
        ),
        "zh": ("{name} 第 {line} 行不完整，未计入。", "写日志时被中断，请与计划请求数核对。"),
    },
    "no_line_end": {
        "en": (
            "The last line of {name} (line {line}) has no line end and may be cut within its last number.",
            "Compare that row with the harness's own output, or let it close the file.",
        ),
        "zh": (
            "{name} 的最后一行（第 {line} 行）没有换行符，末尾的数字可能被截断。",
            "请与测试程序自身的输出核对该行，或确保程序正常关闭文件。",
        ),
    },
    "unreadable_line": {
        "en": ("Line {line} of {name} is not JSON and was left out.", "Write the log again."),
        "zh": ("{name} 第 {line} 行不是 JSON，未计入。", "请重新生成日志。"),
    },
    "recovered_array": {
        "en": (
            "{name} is cut off; its {n} complete records were read.",
            "Treat it as a truncated run.",
        ),
        "zh": ("{name} 被截断，只读取了 {n} 条完整记录。", "应视为未跑完的 run。"),
    },
    "nan_read_as_null": {
        "en": (
            "{name} holds {n} bare NaN (the first on line {line}), read as missing.",
            "NaN is not JSON and carries no value.",
        ),
        "zh": (
            "{name} 中有 {n} 处裸 NaN（首处在第 {line} 行），按缺失值处理。",
            "NaN 不是合法 JSON，也不含数值。",
        ),
    },
    "duplicate_records": {
        "en": (
            "{n} records of {name} are byte for byte the same as an earlier one and were read once.",
            "A repeat has another date or other times; an identical record was appended twice.",
        ),
        "zh": (
            "{name} 中有 {n} 条记录与前面的记录逐字节相同，只读取一次。",
            "真正的重复测试时间戳会不同；完全相同说明被追加了两次。",
        ),
    },
    "aggregate_only": {
        "en": (
            "{name} holds a summary only, no requests.",
            "Means and quantiles are the tool's own; nothing can be tested or windowed. Save the "
            "details of each request next time.",
        ),
        "zh": (
            "{name} 只有汇总值，没有逐请求数据。",
            "均值和分位数取自工具本身，无法做检验或截取稳态窗口；下次请保存逐请求明细。",
        ),
    },
    "client_version_unknown": {
        "en": (
            "The log does not say which version of {tool} wrote it (its keys suggest {bracket}).",
            "Give client_version: for this input; the meaning of TTFT changed between versions.",
        ),
        "zh": (
            "日志未写明 {tool} 的版本（按字段推断为 {bracket}）。",
            "请为该输入填写 client_version：不同版本的 TTFT 定义不同。",
        ),
    },
    "impossible_times": {
        "en": (
            "{n} of {n_rows} requests have times in an impossible order; their latencies are left out.",
            "The client's clock stepped during the run: use a monotonic clock or discipline it.",
        ),
        "zh": (
            "{n_rows} 个请求中有 {n} 个时间先后矛盾，其时延不计入。",
            "客户端时钟在测试中发生跳变：请使用单调时钟或校准时钟同步。",
        ),
    },
    "truncated_run": {
        "en": (
            "The log holds {n} requests of {n_planned} planned.",
            "The run was cut short or its failures were not recorded: do not compare its load.",
        ),
        "zh": (
            "日志只有 {n} 个请求，计划为 {n_planned} 个。",
            "测试提前结束或失败请求未记录：其负载不可比。",
        ),
    },
    "no_request_succeeded": {
        "en": (
            "None of {n} requests succeeded: no latency can be given.",
            "See the error kinds; the throughput is a true zero.",
        ),
        "zh": ("{n} 个请求全部失败：无法给出时延。", "请查看错误类型；吞吐为真实的 0。"),
    },
    "rows_not_ok": {
        "en": (
            "{n_not_ok} of {n} requests are not ok: {n_error} errors, {n_empty} empty, {n_cancelled} "
            "cancelled, {n_incomplete} unfinished.",
            "Latencies are those of successful requests only: read them beside the error ratio.",
        ),
        "zh": (
            "{n} 个请求中有 {n_not_ok} 个未成功：错误 {n_error}、空响应 {n_empty}、取消 {n_cancelled}、未完成 "
            "{n_incomplete}。",
            "时延只统计成功请求，请与错误率一并阅读。",
        ),
    },
    "rows_dropped": {
        "en": ("Left out of some figures: {listed}.", "Each reason is counted in the run's facts."),
        "zh": ("部分统计中未计入：{listed}。", "各原因的数量见该 run 的信息。"),
    },
    "unverified_reader": {
        "en": (
            "This form of {dialect} was read by its documentation; no real file of it was seen.",
            "Check a few values by hand.",
        ),
        "zh": ("该版本的 {dialect} 按文档读取，未经真实文件验证。", "请人工核对几个数值。"),
    },
    "not_streamed": {
        "en": (
            "The responses were not streamed: TTFT, TPOT and ITL do not exist.",
            "Run with streaming to measure them; E2E and throughput stand.",
        ),
        "zh": ("响应为非流式：没有 TTFT、TPOT 和 ITL。", "需开启流式才能测得；E2E 与吞吐有效。"),
    },
    "gaps_do_not_add_up": {
        "en": (
            "In {n} requests first token plus gaps misses the last token, by up to {worst_s:.4f} s.",
            "The gap list lacks events; TPOT is taken from the times, not from the list.",
        ),
        "zh": (
            "{n} 个请求的首 token 时间加各间隔与末 token 时间不符，最大相差 {worst_s:.4f} s。",
            "间隔列表缺少事件；TPOT 按时间计算，不用该列表。",
        ),
    },
    "several_tokens_a_chunk": {
        "en": (
            "A streamed chunk holds {tokens_per_chunk:.2f} tokens on average: the gap list is between "
            "chunks, not tokens.",
            "Use TPOT; TTFT contains the decode steps of the first chunk.",
        ),
        "zh": (
            "每个流式数据块平均含 {tokens_per_chunk:.2f} 个 token：间隔列表是块间隔而非 token 间隔。",
            "请看 TPOT；TTFT 中含有首块的解码步。",
        ),
    },
    "ttft_in_gaps": {
        "en": (
            "In {n} of {n_rows} requests the gap list began with the TTFT; that entry was left out.",
            "The tool's own ITL and E2E count it twice.",
        ),
        "zh": (
            "{n_rows} 个请求中有 {n} 个的间隔列表以 TTFT 开头，该项已去除。",
            "工具自报的 ITL 和 E2E 将其重复计入。",
        ),
    },
    "role_chunk": {
        "en": (
            "In {n} of {n_rows} requests the first event was an empty role chunk; the first token is "
            "the next event.",
            "TTFT was moved by that gap, and the gap left out of ITL.",
        ),
        "zh": (
            "{n_rows} 个请求中有 {n} 个的首个事件是空的 role 块；首 token 取下一个事件。",
            "TTFT 已顺延该间隔，且该间隔不计入 ITL。",
        ),
    },
    "blank_lines_stamped": {
        "en": (
            "In {n} of {n_rows} requests each event was stamped twice, for its line and for the blank "
            "line after it; the first stamp was kept.",
            "The tool's own TPOT and ITL count both; newer versions do not.",
        ),
        "zh": (
            "{n_rows} 个请求中有 {n} 个的每个事件被记了两次时间（数据行与其后的空行），只保留第一个。",
            "工具自报的 TPOT 和 ITL 两者都计；新版本已无此问题。",
        ),
    },
    "usage_event": {
        "en": (
            "In {n} of {n_rows} requests the last event was no token but the usage; the last token is "
            "the event before it.",
            "That gap was left out of ITL and of the decode time.",
        ),
        "zh": (
            "{n_rows} 个请求中有 {n} 个的最后事件是 usage 而非 token；末 token 取其前一个事件。",
            "该间隔不计入 ITL 和 decode 时间。",
        ),
    },
    "usage_or_recount": {
        "en": (
            "The log does not say whether its token counts are the server's usage or a recount of the "
            "text by the tokenizer {tokenizer}.",
            "They are the usage if the server sends it: check that it does.",
        ),
        "zh": (
            "日志未说明 token 数取自服务端 usage 还是用 tokenizer {tokenizer} 对文本重新计数。",
            "服务端返回 usage 时即为 usage，请确认。",
        ),
    },
    "completed_differs": {
        "en": (
            "The tool counts {reported} completed requests, the rows say {recomputed}.",
            "The rows are used.",
        ),
        "zh": ("工具统计完成 {reported} 个请求，逐行统计为 {recomputed} 个。", "以逐行数据为准。"),
    },
    "reported_differs": {
        "en": (
            "The tool's own {metric} {statistic} is {reported:.6g}, the rows give {recomputed:.6g}.",
            "The rows are used; a wrong unit or definition would show here.",
        ),
        "zh": (
            "工具自报的 {metric} {statistic} 为 {reported:.6g}，逐行重算为 {recomputed:.6g}。",
            "以逐行数据为准；单位或定义有误时会在此显现。",
        ),
    },
    "reported_past_last_token": {
        "en": (
            "The tool's {metric} {statistic} is {reported:.6g}, ours {recomputed:.6g}: its end-to-end "
            "time runs past the last token.",
            "Ours ends at the last token.",
        ),
        "zh": (
            "工具的 {metric} {statistic} 为 {reported:.6g}，重算为 {recomputed:.6g}：其端到端时间延续到末 token 之后。",
            "我们的计算止于末 token。",
        ),
    },
    "reported_with_role_chunk": {
        "en": (
            "The tool's {metric} {statistic} is {reported:.6g}, ours {recomputed:.6g}: it counts the "
            "empty role chunk as a token.",
            "Ours starts at the first content.",
        ),
        "zh": (
            "工具的 {metric} {statistic} 为 {reported:.6g}，重算为 {recomputed:.6g}：其将空 role 块计为一个 token。",
            "我们的计算从首个内容块开始。",
        ),
    },
    "reported_with_usage_event": {
        "en": (
            "The tool's {metric} {statistic} is {reported:.6g}, ours {recomputed:.6g}: it counts the "
            "usage event as a token.",
            "Ours ends at the last token.",
        ),
        "zh": (
            "工具的 {metric} {statistic} 为 {reported:.6g}，重算为 {recomputed:.6g}：其将 usage 事件计为一个 token。",
            "我们的计算止于末 token。",
        ),
    },
    "reported_with_ttft_in_gaps": {
        "en": (
            "The tool's {metric} {statistic} is {reported:.6g}, ours {recomputed:.6g}: its gap list "
            "also holds the TTFT.",
            "Ours leaves that entry out.",
        ),
        "zh": (
            "工具的 {metric} {statistic} 为 {reported:.6g}，重算为 {recomputed:.6g}：其间隔列表包含 TTFT。",
            "我们的计算已去除该项。",
        ),
    },
    "reported_with_empties": {
        "en": (
            "The tool's {metric} {statistic} is {reported:.6g}, ours {recomputed:.6g}: it counts empty responses, whose times it writes as 0.",
            "Ours are those of requests with output.",
        ),
        "zh": (
            "工具的 {metric} {statistic} 为 {reported:.6g}，重算为 {recomputed:.6g}：其将空响应计入，且时间记为 0。",
            "我们只统计有输出的请求。",
        ),
    },
    "reported_other_tokens": {
        "en": (
            "The tool's {metric} {statistic} is {reported:.6g}, ours {recomputed:.6g}: it counts other output tokens.",
            "Ours uses the count on which two witnesses agree.",
        ),
        "zh": (
            "工具的 {metric} {statistic} 为 {reported:.6g}，重算为 {recomputed:.6g}：其输出 token 计数不同。",
            "我们采用两个来源一致的计数。",
        ),
    },
    "token_counts_replaced": {
        "en": (
            "The file's output lengths add up to {in_file:.0f} tokens, but the gap lists hold {by_gaps:.0f} and the recount of the text {again:.0f}: the gap lists were used.",
            "The file repeats the requested length: the server sent no usage. Ask for usage next time.",
        ),
        "zh": (
            "文件中的输出长度合计 {in_file:.0f} 个 token，而间隔列表为 {by_gaps:.0f}、文本重新分词为 {again:.0f}：采用间隔列表。",
            "文件写的是请求长度（服务端未返回 usage）；下次请开启 usage。",
        ),
    },
    "token_counts_disagree": {
        "en": (
            "No two counts of output tokens agree: {in_file:.0f} in the file, {by_gaps:.0f} by the gap lists, {again:.0f} by the recount (0: none).",
            "TPOT and token rates are not given; ask the server for usage.",
        ),
        "zh": (
            "输出 token 的三种计数互不一致：文件 {in_file:.0f}、间隔列表 {by_gaps:.0f}、重新分词 {again:.0f}（0 表示没有）。",
            "不给出 TPOT 和 token 吞吐；请让服务端返回 usage。",
        ),
    },
    "prompts_drift": {
        "en": (
            "The prompts are random token ids: the server counts other input lengths than the file says.",
            "Prefill rates from this file are too low by up to a sixth; take input tokens from the server.",
        ),
        "zh": (
            "提示词由随机 token id 生成：服务端实际的输入长度与文件所写不同。",
            "由该文件得出的预填充速率偏低，最多约六分之一；请用服务端的输入 token 数。",
        ),
    },
    "summary_missing": {
        "en": (
            "No summary stands beside {name}: the level, the version and whether the run ended are unknown.",
            "Copy profile_export_aiperf.json into the same folder, or give the facts in campaign.yaml.",
        ),
        "zh": (
            "{name} 旁边没有汇总文件：档位、版本以及测试是否完成均未知。",
            "请把 profile_export_aiperf.json 放在同一文件夹，或在 campaign.yaml 中写明。",
        ),
    },
    "run_interrupted": {
        "en": (
            "The tool says that this run was interrupted or is not complete.",
            "Requests in flight at that moment are nowhere: repeat the run.",
        ),
        "zh": ("工具标明该 run 被中断或未完成。", "中断时在途的请求没有记录：请重测。"),
    },
    "tokens_counted_twice": {
        "en": (
            "In {n} requests every token time stands there twice: a special token was counted again in each chunk.",
            "The pairs were collapsed.",
        ),
        "zh": (
            "{n} 个请求的每个 token 时间都出现两次：每个数据块重复计入了特殊 token。",
            "已合并成对的时间。",
        ),
    },
    "token_times_differ": {
        "en": (
            "In {n} of {n_rows} requests the token times are not as many as the output tokens.",
            "TPOT is taken from the token count; the list is between events.",
        ),
        "zh": (
            "{n_rows} 个请求中有 {n} 个的 token 时间数与输出 token 数不等。",
            "TPOT 按 token 数计算；该列表是事件间隔。",
        ),
    },
    "stages_by_pauses": {
        "en": (
            "No stage files stand beside {name}: its {n} stages were told by the pauses between them.",
            "Copy the stage files into the same folder, or give stages: [sizes].",
        ),
        "zh": (
            "{name} 旁边没有 stage 文件：按停顿划分为 {n} 个阶段。",
            "请放入 stage 文件，或填写 stages: [各阶段请求数]。",
        ),
    },
    "stages_pooled": {
        "en": (
            "This report pools all stages and the pauses between them.",
            "Its rates describe no level: use the stage reports.",
        ),
        "zh": ("该报告把所有阶段及其间的停顿合在一起。", "其速率不代表任何档位：请用各阶段报告。"),
    },
    "concurrency_unknown": {
        "en": (
            "{n} of {n_planned} requests were recorded; a stream ended with each missing one, so the real concurrency is unknown.",
            "Repeat the run on a server without failures, or with a tool that records them.",
        ),
        "zh": (
            "只记录了 {n_planned} 个请求中的 {n} 个；每缺一个就少一个并发流，实际并发未知。",
            "请在无失败的服务上重测，或改用会记录失败的工具。",
        ),
    },
    "tokens_unknown": {
        "en": (
            "The file holds no token counts.",
            "TPOT and token rates are not given; ask the server for usage in the stream.",
        ),
        "zh": (
            "文件中没有 token 计数。",
            "不给出 TPOT 和 token 吞吐；请让服务端在流中返回 usage。",
        ),
    },
    "marked_invalid": {
        "en": (
            "The benchmark itself does not call this run valid (it says {said}).",
            "Do not compare it.",
        ),
        "zh": ("基准测试自身未判定该 run 有效（结果为 {said}）。", "不要用于比较。"),
    },
    "columns_ignored": {
        "en": (
            "Columns that the map does not name were not read: {names}.",
            "Add them to columns: if they matter.",
        ),
        "zh": ("映射未提到的列没有读取：{names}。", "如有需要请加入 columns:。"),
    },
    "token_source_unknown": {
        "en": (
            "The table does not say who counted the output tokens.",
            "Add output_tokens_source (usage, retokenised, ...): TPOT and rates rest on it.",
        ),
        "zh": (
            "表格未说明输出 token 由谁计数。",
            "请补充 output_tokens_source（usage、retokenised 等）：TPOT 与吞吐取决于它。",
        ),
    },
    "reported_other_definition": {
        "en": (
            "The tool's {metric} {statistic} is {reported:.6g}, ours {recomputed:.6g}: it is computed "
            "by another definition.",
            "The rows are used.",
        ),
        "zh": (
            "工具的 {metric} {statistic} 为 {reported:.6g}，重算为 {recomputed:.6g}：两者定义不同。",
            "以逐行数据为准。",
        ),
    },
    "sampled_away": {
        "en": (
            "The tool wrote {n} of {n_total} requests: the lists are a sample.",
            "Token throughput cannot be computed from a sample; write all requests next time.",
        ),
        "zh": (
            "工具只写出 {n_total} 个请求中的 {n} 个：列表是抽样。",
            "抽样无法计算 token 吞吐；下次请写出全部请求。",
        ),
    },
    "overload_by_design": {
        "en": (
            "This level sends all requests at once to find the ceiling.",
            "Its latencies are those of an overloaded server; do not compare them with other levels.",
        ),
        "zh": ("该档位一次性发出全部请求以探测上限。", "其时延属于过载状态，不可与其他档位比较。"),
    },
    "inspect_file": {
        "en": ("{path}: {dialect}, {version}", ""),
        "zh": ("{path}：{dialect}，{version}", ""),
    },
    "inspect_no_version": {
        "en": ("version not in the file", ""),
        "zh": ("文件未写明版本", ""),
    },
    "inspect_no_level": {
        "en": ("level not in the file", ""),
        "zh": ("文件未写明档位", ""),
    },
    "inspect_run": {
        "en": (
            "  run {run_id}: {level}; {n_rows} rows: {n_ok} ok, {n_error} error, {n_cancelled} cancelled, {n_incomplete} incomplete, {n_empty} empty",
            "",
        ),
        "zh": (
            "  run {run_id}：{level}；共 {n_rows} 行：成功 {n_ok}，错误 {n_error}，取消 {n_cancelled}，未完成 {n_incomplete}，空响应 {n_empty}",
            "",
        ),
    },
    "inspect_trace": {
        "en": ("  {samples} samples, {gpus} GPUs, {span_s:.1f} s", ""),
        "zh": ("  {samples} 个采样，{gpus} 张 GPU，时长 {span_s:.1f} s", ""),
    },
    "inspect_records": {
        "en": ("  {samples} records", ""),
        "zh": ("  {samples} 条记录", ""),
    },
    "inspect_inventory": {
        "en": ("  {gpus} GPUs: {names}", ""),
        "zh": ("  {gpus} 张 GPU：{names}", ""),
    },
    "inspect_unknown": {
        "en": ("{path}: not recognised. {reason}", ""),
        "zh": ("{path}：无法识别。{reason}", ""),
    },
    "inspect_columns": {
        "en": ("  An unknown table. Check this map and give it as columns: in campaign.yaml:", ""),
        "zh": ("  未知表格。请核对以下映射，并在 campaign.yaml 中以 columns: 写明：", ""),
    },
    "draft_one_arm": {
        "en": ("a comparison needs two arms; put the logs of each into a folder of its own", ""),
        "zh": ("比较需要两个 arm；请把各自的日志放入单独文件夹", ""),
    },
}
