"""Sentences about what may be compared, and why not."""

from __future__ import annotations

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "duplicate_file": {
        "en": (
            "{path} holds the same bytes as {other} (arm {arm}); it was read once.",
            "Remove one of them, or name the real repeat.",
        ),
        "zh": (
            "{path} 与 {other} 内容相同（组 {arm}），只读取一次。",
            "删除其中一个，或指定真正的重复测试文件。",
        ),
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
    "not_in_log": {
        "en": ("The log does not hold {metric}.", ""),
        "zh": ("日志中没有 {metric}。", ""),
    },
    "needs_two": {
        "en": ("A spread of {metric} needs two values.", ""),
        "zh": ("计算 {metric} 的离散程度至少需要两个值。", ""),
    },
    "tpot_of_short_outputs": {
        "en": (
            "No output has {tokens} tokens; TPOT rests on shorter ones.",
            "Ask for longer outputs.",
        ),
        "zh": (
            "没有达到 {tokens} 个 token 的输出，TPOT 基于更短的输出。",
            "请使用更长的输出长度。",
        ),
    },
    "tpot_undefined": {
        "en": (
            "{n} of {total} outputs have fewer than two tokens, or times that tell no TPOT; they are left out of it.",
            "",
        ),
        "zh": ("{total} 个输出中有 {n} 个不足两个 token 或缺少所需的时间，没有 TPOT，未计入。", ""),
    },
    "outputs_uncounted": {
        "en": (
            "{n} of {total} finished requests have no count of output tokens; a rate of tokens is not given.",
            "Ask the server for usage: a streamed event may hold any number of tokens.",
        ),
        "zh": (
            "{total} 个已完成的请求中有 {n} 个没有输出 token 数，因此不给出 token 吞吐。",
            "请让服务端返回 usage：一个流式事件可能包含任意多个 token。",
        ),
    },
    "user_perceived": {
        "en": (
            "This is what a user sees, prefill stalls included; not the device's decode step.",
            "",
        ),
        "zh": ("这是用户感知的速度，包含预填充造成的停顿，并非设备解码步速。", ""),
    },
    "no_gaps_in_log": {
        "en": (
            "The log holds no times between tokens.",
            "Use TPOT, or a client that records token gaps.",
        ),
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
        "zh": (
            "间隔按 {kind} 记录（{tokens} 个 token 只有 {events} 个间隔），不是逐 token。",
            "请看 TPOT，或单独的数据块间隔。",
        ),
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
    "rows_sampled_away": {
        "en": (
            "The tool kept only a sample: {n} requests are not in the file.",
            "Record every request.",
        ),
        "zh": ("工具只保留了抽样：文件缺少 {n} 个请求。", "请记录全部请求。"),
    },
    "prefill_under_load": {
        "en": (
            "A prefill rate needs one request at a time; under load TTFT holds the queue.",
            "Run a probe at concurrency 1 over several prompt lengths.",
        ),
        "zh": (
            "预填充速率需要单请求测试；有负载时 TTFT 含排队。",
            "请在并发 1 下用多种输入长度做探测。",
        ),
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
        "en": (
            "As the tool reported it; the file holds no request rows.",
            "Record per-request details.",
        ),
        "zh": ("为工具自报数值；文件没有逐请求记录。", "请记录逐请求明细。"),
    },
    "not_in_summary": {
        "en": (
            "The file's summary does not hold {metric} {statistic}.",
            "Record per-request details.",
        ),
        "zh": ("文件的汇总没有 {metric} {statistic}。", "请记录逐请求明细。"),
    },
    "no_trace": {
        "en": ("No GPU trace was recorded for arm {arm}.", "Record one with `gpuverdict record`."),
        "zh": ("组 {arm} 没有 GPU 采样记录。", "请用 `gpuverdict record` 记录。"),
    },
    "refused_factor": {
        "en": (
            "{factor} differs: {baseline} against {candidate}. These are two different jobs.",
            "Measure both arms with the same {factor}, or declare it as the treatment.",
        ),
        "zh": (
            "{factor} 不同：{baseline} 对 {candidate}，两者不是同一任务。",
            "两组使用相同的 {factor}，或将其声明为 treatment。",
        ),
    },
    "factor_differs": {
        "en": (
            "{factor} differs: {baseline} against {candidate}.",
            "Hold it equal, or read this as two systems.",
        ),
        "zh": (
            "{factor} 不同：{baseline} 对 {candidate}。",
            "保持一致，或将结论理解为两套系统的对比。",
        ),
    },
    "each_tuned": {
        "en": ("Each arm runs its own best settings (differing: {factors}).", ""),
        "zh": ("各组采用各自最优设置（差异项：{factors}）。", ""),
    },
    "client_differs": {
        "en": (
            "Different load generators wrote the logs: {baseline} against {candidate}.",
            "Use one tool for both arms; small differences stay undecided.",
        ),
        "zh": (
            "两组使用了不同的压测工具：{baseline} 对 {candidate}。",
            "两组使用同一工具；较小差异不作结论。",
        ),
    },
    "client_floor": {
        "en": (
            "The difference is below what two load generators can differ by ({floor_ratio:.0%}).",
            "Repeat with one tool.",
        ),
        "zh": ("差异小于两种压测工具本身可能的差异（{floor_ratio:.0%}）。", "请用同一工具重测。"),
    },
    "unchecked": {
        "en": ("Not recorded, so not checked: {what}.", "Add these to the campaign file."),
        "zh": ("未记录、因此未核对：{what}。", "请补充到 campaign.yaml。"),
    },
    "definition_differs": {
        "en": (
            "The tools define {definition} differently: {baseline} against {candidate}.",
            "Use one tool for both arms.",
        ),
        "zh": (
            "两种工具的 {definition} 定义不同：{baseline} 对 {candidate}。",
            "两组使用同一工具。",
        ),
    },
    "definition_unknown": {
        "en": (
            "One arm's {definition} is unknown.",
            "State `client_version` in the campaign file.",
        ),
        "zh": ("其中一组的 {definition} 未知。", "请在 campaign.yaml 中填写 `client_version`。"),
    },
    "client_place_differs": {
        "en": (
            "The clients stood in different places ({baseline}, {candidate}), and the round trip is not known.",
            "State `client.rtt_s`, or measure from one place.",
        ),
        "zh": (
            "压测客户端位置不同（{baseline}、{candidate}），且往返时延未知。",
            "填写 `client.rtt_s`，或在同一位置测试。",
        ),
    },
    "same_log_in_both_arms": {
        "en": ("{path} is a run of both arms.", "Give each arm its own logs."),
        "zh": ("{path} 同时属于两组。", "请为两组分别提供日志。"),
    },
    "overridden": {
        "en": ("The analyst overrode a refusal about {factor}: {reason}.", ""),
        "zh": ("分析者忽略了关于 {factor} 的拒绝：{reason}。", ""),
    },
    "not_interleaved": {
        "en": (
            "One arm was run after the other, so a drift between them would read as a difference.",
            "Run in ABBA order.",
        ),
        "zh": ("两组先后运行而非交替，其间的漂移会被读成差异。", "请采用 ABBA 顺序。"),
    },
    "same_server_start": {
        "en": (
            "The repeats of an arm share one server start; restart-to-restart variation is not in the intervals.",
            "Start the server anew for every run.",
        ),
        "zh": ("同组的重复测试共用一次服务启动，区间不含重启间的波动。", "每轮测试重新启动服务。"),
    },
    "this_card_only": {
        "en": (
            "Fewer than three cards an arm: this is about these cards, not about the models.",
            "Measure three cards or more of each model.",
        ),
        "zh": ("每组少于三张卡：结论只针对这几张卡，不代表该型号。", "每个型号至少测三张卡。"),
    },
    "simulated": {
        "en": ("Simulated data: no GPU was measured.", ""),
        "zh": ("模拟数据：并未在 GPU 上测量。", ""),
    },
    "runs_not_fixed": {
        "en": (
            "The number of runs was not fixed beforehand in the campaign file.",
            "State `design: {{runs_per_arm: N}}` before measuring.",
        ),
        "zh": ("测试计划未事先固定运行次数。", "请在测试前声明 `design: {{runs_per_arm: N}}`。"),
    },
    "output_lengths_differ": {
        "en": (
            "The outputs differ in length: median {baseline:g} against {candidate:g} tokens.",
            "Force the output length in both arms.",
        ),
        "zh": (
            "输出长度不同：中位数 {baseline:g} 对 {candidate:g} token。",
            "两组强制相同的输出长度。",
        ),
    },
    "error_gap": {
        "en": (
            "Requests fail unequally: {baseline_ratio:.1%} against {candidate_ratio:.1%}; the survivors' latencies are not comparable.",
            "Remove the cause of the errors and repeat.",
        ),
        "zh": (
            "失败率不同：{baseline_ratio:.1%} 对 {candidate_ratio:.1%}；幸存请求的时延不可比。",
            "排除错误原因后重测。",
        ),
    },
    "censored_tail": {
        "en": (
            "{cut_ratio:.0%} of the requests were cut, and their lengths vary: the tail of E2E is censored.",
            "Run until every request ends.",
        ),
        "zh": (
            "{cut_ratio:.0%} 的请求被截断且长度不一：E2E 尾部被删失。",
            "请运行到所有请求结束。",
        ),
    },
    "client_saturated": {
        "en": (
            "The client was late: p99 {late_s:.3g} s after the intended send in {path} (limit {limit_s:.3g} s).",
            "Give the client more cores, or lower the rate.",
        ),
        "zh": (
            "压测客户端发送滞后：{path} 中 p99 为 {late_s:.3g} s（上限 {limit_s:.3g} s）。",
            "增加客户端资源或降低速率。",
        ),
    },
    "not_sustained": {
        "en": (
            "{arm} held {observed:.1f} requests in flight at level {level}: the client, not the GPU, set the pace.",
            "Raise the client's concurrency or its resources.",
        ),
        "zh": (
            "{arm} 在负载档 {level} 实际只有 {observed:.1f} 个在途请求：瓶颈在客户端而非 GPU。",
            "提高客户端并发或资源。",
        ),
    },
    "only_one_arm": {
        "en": ("Only {arm} ran this level; {other} did not.", "Run level {level} on {other}."),
        "zh": ("只有 {arm} 运行了此档，{other} 没有。", "请在 {other} 上运行负载档 {level}。"),
    },
    "infeasible": {
        "en": ("{arm} cannot run level {level}: {reason}.", ""),
        "zh": ("{arm} 无法运行负载档 {level}：{reason}。", ""),
    },
    "tipping_point": {
        "en": (
            "An unequal factor would have to move {metric} by {effect_ratio:.1%} to undo this verdict.",
            "",
        ),
        "zh": ("未控制的因素需使 {metric} 变化 {effect_ratio:.1%} 才会推翻该结论。", ""),
    },
    "all_above": {
        "en": (
            "Each of the {n} candidate runs lies above all {m} of the baseline.",
            "One steady repeat more in each arm would allow a test.",
        ),
        "zh": ("候选组的 {n} 次运行均高于基线组的全部 {m} 次。", "每组各补一次稳态重复即可检验。"),
    },
    "all_below": {
        "en": (
            "Each of the {n} candidate runs lies below all {m} of the baseline.",
            "One steady repeat more in each arm would allow a test.",
        ),
        "zh": ("候选组的 {n} 次运行均低于基线组的全部 {m} 次。", "每组各补一次稳态重复即可检验。"),
    },
    "order_mixed": {
        "en": ("The runs of the two arms overlap.", "Repeat both arms with a steady window."),
        "zh": ("两组的运行结果有重叠。", "请在稳态窗口下重测两组。"),
    },
    "action_more_runs": {
        "en": ("Repeat level {level}: {low} to {high} more runs an arm.", ""),
        "zh": ("重复负载档 {level}：每组再测 {low} 至 {high} 次。", ""),
    },
    "action_run_level": {
        "en": ("Run level {level} on {arm}: three runs.", ""),
        "zh": ("在 {arm} 上运行负载档 {level}：三次。", ""),
    },
    "action_repair_file": {
        "en": ("Repeat the run of {path}: the file could not be read.", ""),
        "zh": ("重测 {path} 对应的运行：文件无法读取。", ""),
    },
    "action_record_trace": {
        "en": ("Record a GPU trace beside every run (`gpuverdict record`).", ""),
        "zh": ("每次运行同时记录 GPU 采样（`gpuverdict record`）。", ""),
    },
    "disturbed_run": {
        "en": ("Run {repeat} of {arm} was disturbed at {at_s:.1f} s.", "Repeat this run."),
        "zh": ("{arm} 的第 {repeat} 次运行在 {at_s:.1f} s 受到干扰。", "请重测该次运行。"),
    },
    "without_disturbed": {
        "en": ("Without the disturbed runs: {word}, {ratio}.", ""),
        "zh": ("去掉受干扰的运行后：{word}，{ratio}。", ""),
    },
    "whole_runs_of_one_job": {
        "en": (
            "Not every run has a steady window; whole runs of the same job are compared.",
            "Run longer, with a client that logs start times.",
        ),
        "zh": (
            "并非每次运行都有稳态窗口；改为比较同一任务的整个运行。",
            "延长运行，并使用会记录开始时间的工具。",
        ),
    },
    "whole_runs_of_unlike_jobs": {
        "en": (
            "Not every run has a steady window, and the runs are not the same job (count or lengths differ).",
            "Run both arms with the same number of requests and a client that logs start times.",
        ),
        "zh": (
            "并非每次运行都有稳态窗口，且各次运行不是同一任务（请求数或长度不同）。",
            "两组使用相同的请求数，并使用会记录开始时间的工具。",
        ),
    },
    "not_measured": {
        "en": ("{metric} was not measured at this level in {arm}.", ""),
        "zh": ("{arm} 在此档未测量 {metric}。", ""),
    },
    "not_measured_level": {
        "en": (
            "{metric} at level {level} was not measured on {arm}.",
            "Run level {level} on {arm}, three runs, with the load generator of the other arm.",
        ),
        "zh": (
            "{arm} 未测量负载档 {level} 的 {metric}。",
            "使用与另一组相同的压测工具，在 {arm} 上运行负载档 {level}，三次。",
        ),
    },
    "no_level_to_test": {
        "en": (
            "No level allows a test of {metric}; see its cells.",
            "Measure both arms with steady windows at a common level.",
        ),
        "zh": (
            "没有任何负载档可对 {metric} 做检验，详见各项。",
            "在共同的负载档上以稳态窗口测量两组。",
        ),
    },
    "prompt_mix_differs": {
        "en": (
            "The arms served prompts of different lengths (distance of the mixes {distance:.2f}).",
            "Use the same prompts in both arms.",
        ),
        "zh": ("两组的输入长度分布不同（分布距离 {distance:.2f}）。", "两组使用相同的输入。"),
    },
    "mix_bins": {
        "en": ("Candidate over baseline by length bin (input/output tokens): {ratios}.", ""),
        "zh": ("按长度分箱（输入/输出 token）的候选/基线比值：{ratios}。", ""),
    },
    "cards_not_mapped": {
        "en": (
            "Three cards or more are named, but the logs do not say which run was on which card.",
            "Write {{card}} into the file pattern of the arms.",
        ),
        "zh": (
            "列出了三张及以上的卡，但无法得知每次运行在哪张卡上。",
            "请在各组的文件模式中写入 {{card}}。",
        ),
    },
    "quality_unknown": {
        "en": (
            "Precision or kernels differ, and no quality score is stated for {arm}: speed is half of the answer.",
            "Add `quality: {{score, n, source}}` to the arm.",
        ),
        "zh": (
            "精度或算子不同，而 {arm} 未给出质量得分：速度只是答案的一半。",
            "请在该组添加 `quality: {{score, n, source}}`。",
        ),
    },
    "quality_stated": {
        "en": (
            "Quality beside the speed: {baseline:g} (n = {n_baseline}) against {candidate:g} (n = {n_candidate}), {source}.",
            "",
        ),
        "zh": (
            "速度之外的质量得分：{baseline:g}（n = {n_baseline}）对 {candidate:g}（n = {n_candidate}），来源 {source}。",
            "",
        ),
    },
    "hidden_offload": {
        "en": (
            "Hidden offload or wrong model: {arm} ran although weights ({weights_gb:.1f} GB) and KV cache ({kv_gb:.1f} GB) exceed its {memory_gb:.1f} GB.",
            "Correct the model's shape, the precision or the number of GPUs, or look for offload in the server's log.",
        ),
        "zh": (
            "存在隐藏的卸载或模型有误：{arm} 的权重（{weights_gb:.1f} GB）与 KV 缓存（{kv_gb:.1f} GB）超过其 {memory_gb:.1f} GB 显存却仍能运行。",
            "核对模型形状、精度或 GPU 数量，或在服务日志中查找卸载（offload）。",
        ),
    },
    "memory_exceeded": {
        "en": (
            "Computed, not measured: level {level} needs {weights_gb:.1f} GB of weights and {kv_gb:.1f} GB of KV cache, more than the {memory_gb:.1f} GB of {arm}.",
            "",
        ),
        "zh": (
            "计算值，非实测：负载档 {level} 需要权重 {weights_gb:.1f} GB 与 KV 缓存 {kv_gb:.1f} GB，超过 {arm} 的 {memory_gb:.1f} GB。",
            "",
        ),
    },
    "memory_fits": {
        "en": (
            "Computed, not measured: level {level} needs {weights_gb:.1f} GB of weights and {kv_gb:.1f} GB of KV cache, and {arm} holds {memory_gb:.1f} GB.",
            "",
        ),
        "zh": (
            "计算值，非实测：负载档 {level} 需要权重 {weights_gb:.1f} GB 与 KV 缓存 {kv_gb:.1f} GB，{arm} 有 {memory_gb:.1f} GB。",
            "",
        ),
    },
    "order_not_as_planned": {
        "en": (
            "The runs were planned in {planned} order and made in {found} order.",
            "Follow the run table of `gpuverdict plan`.",
        ),
        "zh": (
            "计划的测试顺序为 {planned}，实际为 {found}。",
            "请按 `gpuverdict plan` 的运行表执行。",
        ),
    },
    "paired_without_abba": {
        "en": (
            "The runs are paired, but were made in {found} order: a constant offset within pairs cannot be told from a difference.",
            "Run pairs in ABBA order.",
        ),
        "zh": (
            "运行为配对设计，但顺序为 {found}：对内的固定偏移无法与真实差异区分。",
            "请按 ABBA 顺序运行配对。",
        ),
    },
    "pairs_incomplete": {
        "en": (
            "{n} runs have no partner in the other arm and are left out of the paired test.",
            "Repeat the missing runs.",
        ),
        "zh": ("有 {n} 次运行在另一组没有配对，未计入配对检验。", "请补测缺失的运行。"),
    },
    "rate_not_achieved": {
        "en": (
            "{arm} achieved {achieved:.3g} of {offered:g} requests/s offered: past saturation TTFT is the length of a queue.",
            "Compare TTFT at a rate that both arms sustain.",
        ),
        "zh": (
            "{arm} 只达到 {achieved:.3g} req/s（施加 {offered:g} req/s）：超过饱和点后 TTFT 反映的是排队长度。",
            "请在两组都能承受的速率下比较 TTFT。",
        ),
    },
    "clock_offset": {
        "en": (
            "The SM clocks of the arms differ: {baseline_mhz:.0f} against {candidate_mhz:.0f} MHz.",
            "Lock the clocks, or report speed with its clock.",
        ),
        "zh": (
            "两组的 SM 时钟不同：{baseline_mhz:.0f} 对 {candidate_mhz:.0f} MHz。",
            "请锁定时钟，或在报告速度时注明时钟。",
        ),
    },
    "clock_moves": {
        "en": (
            "The SM clock of an arm moved by more than 1 % between its runs.",
            "Lock the clocks, or let the card settle before each run.",
        ),
        "zh": ("同组各次运行之间 SM 时钟变化超过 1 %。", "请锁定时钟，或在每次运行前让显卡稳定。"),
    },
    "cache_hits_differ": {
        "en": (
            "Prefix-cache hits differ: {baseline_ratio:.0%} against {candidate_ratio:.0%} of the prompt tokens.",
            "Clear the cache before each run, or use distinct prompts.",
        ),
        "zh": (
            "前缀缓存命中不同：占输入 token 的 {baseline_ratio:.0%} 对 {candidate_ratio:.0%}。",
            "每次运行前清空缓存，或使用互不相同的输入。",
        ),
    },
    "chunk_sizes_differ": {
        "en": (
            "The servers stream chunks of {baseline:.2g} against {candidate:.2g} tokens; a first chunk of more tokens is later by about {offset_s:.3g} s.",
            "Stream one token a chunk in both arms.",
        ),
        "zh": (
            "流式数据块大小不同：每块 {baseline:.2g} 对 {candidate:.2g} 个 token；更大的首块约晚 {offset_s:.3g} s。",
            "两组均按每块一个 token 输出。",
        ),
    },
    "tipping_cards": {
        "en": (
            "A spread between cards of one model of {spread_ratio:.1%} would undo it as a claim about the models.",
            "Measure three cards or more of each model.",
        ),
        "zh": (
            "若同型号不同卡之间的差异达到 {spread_ratio:.1%}，该结论对型号不再成立。",
            "每个型号至少测三张卡。",
        ),
    },
    "verdict_moves_with_half_cut": {
        "en": (
            "With half the warm-up cut this cell would read {word}.",
            "Run longer, so that the cut matters less.",
        ),
        "zh": ("若预热裁剪减半，该项结论将为 {word}。", "请延长运行，以减小裁剪的影响。"),
    },
    "verdict_moves_with_double_cut": {
        "en": (
            "With twice the warm-up cut this cell would read {word}.",
            "Run longer, so that the cut matters less.",
        ),
        "zh": ("若预热裁剪加倍，该项结论将为 {word}。", "请延长运行，以减小裁剪的影响。"),
    },
    "runs_not_as_planned": {
        "en": (
            "{planned} runs were planned for {arm} and {found} are there.",
            "Repeat the lost runs; never add runs because of a result.",
        ),
        "zh": (
            "{arm} 计划 {planned} 次运行，实有 {found} 次。",
            "请补测丢失的运行；切勿因结果而追加运行。",
        ),
    },
    "two_look_first": {
        "en": (
            "First look of two: tested at 0.01, before all {planned} runs are in.",
            "Decide nothing else until the planned end.",
        ),
        "zh": (
            "两次查看中的第一次：在 {planned} 次运行完成前按 0.01 水平检验。",
            "到计划结束前不作其他判断。",
        ),
    },
    "two_look_final": {
        "en": ("Last look of two: tested at 0.045 with all {planned} runs.", ""),
        "zh": ("两次查看中的最后一次：{planned} 次运行全部完成，按 0.045 水平检验。", ""),
    },
    "factor_alike": {
        "en": (
            "{factor} from {from_level} to {to_level} changes {metric} alike: by {on_baseline:.2f} on {baseline} and {on_candidate:.2f} on {candidate} (ratio of ratios {ratio:.3f} [{low:.3f}, {high:.3f}]).",
            "",
        ),
        "zh": (
            "{factor} 由 {from_level} 变为 {to_level} 对两组的 {metric} 影响相同：{baseline} 为 {on_baseline:.2f} 倍，{candidate} 为 {on_candidate:.2f} 倍（比值之比 {ratio:.3f} [{low:.3f}, {high:.3f}]）。",
            "",
        ),
    },
    "factor_differs_by_arm": {
        "en": (
            "{factor} from {from_level} to {to_level} changes {metric} by {on_baseline:.2f} on {baseline} and by {on_candidate:.2f} on {candidate}: the difference is real (ratio of ratios {ratio:.3f} [{low:.3f}, {high:.3f}]).",
            "Quote the effect of {factor} for each arm by itself.",
        ),
        "zh": (
            "{factor} 由 {from_level} 变为 {to_level}：{baseline} 的 {metric} 变为 {on_baseline:.2f} 倍，{candidate} 变为 {on_candidate:.2f} 倍，差异真实（比值之比 {ratio:.3f} [{low:.3f}, {high:.3f}]）。",
            "请分别说明 {factor} 对每组的影响。",
        ),
    },
    "factor_undecided": {
        "en": (
            "{factor} from {from_level} to {to_level} changes {metric} by {on_baseline:.2f} on {baseline} and by {on_candidate:.2f} on {candidate}; whether these differ is undecided (ratio of ratios {ratio:.3f} [{low:.3f}, {high:.3f}]).",
            "More runs in all four arms would decide it.",
        ),
        "zh": (
            "{factor} 由 {from_level} 变为 {to_level}：{baseline} 的 {metric} 变为 {on_baseline:.2f} 倍，{candidate} 变为 {on_candidate:.2f} 倍；两者是否不同尚无定论（比值之比 {ratio:.3f} [{low:.3f}, {high:.3f}]）。",
            "四组都增加运行次数才能判定。",
        ),
    },
    "factor_untested": {
        "en": (
            "{factor} from {from_level} to {to_level} changes {metric} by {on_baseline:.2f} on {baseline} and by {on_candidate:.2f} on {candidate}; too few runs to test the difference.",
            "Three runs in each of the four arms allow a test.",
        ),
        "zh": (
            "{factor} 由 {from_level} 变为 {to_level}：{baseline} 的 {metric} 变为 {on_baseline:.2f} 倍，{candidate} 变为 {on_candidate:.2f} 倍；运行次数不足以检验差异。",
            "四组各三次运行即可检验。",
        ),
    },
    "factor_reverses": {
        "en": (
            "{candidate} and {baseline} change places with {factor}: ratio of {metric} {without:.3f} at {from_level} and {with_it:.3f} at {to_level}.",
            "Name the level of {factor} with every claim.",
        ),
        "zh": (
            "{candidate} 与 {baseline} 的优劣随 {factor} 反转：{from_level} 时 {metric} 比值为 {without:.3f}，{to_level} 时为 {with_it:.3f}。",
            "任何结论都须注明 {factor} 的取值。",
        ),
    },
    "action_repeat_run": {
        "en": ("Repeat {arm} at level {level}, repeat {repeat}: it was disturbed.", ""),
        "zh": ("重测 {arm} 负载档 {level} 的第 {repeat} 次运行：该次受到干扰。", ""),
    },
    "unbounded": {
        "en": (
            "Unbounded: {n} of {total} requests failed, and this quantile falls on one of them.",
            "Remove the cause of the errors and repeat.",
        ),
        "zh": (
            "无上界：{total} 个请求中有 {n} 个失败，该分位数落在失败请求上。",
            "排除错误原因后重测。",
        ),
    },
    "cold_first_request": {
        "en": (
            "The first request took {ratio:.1f} times the median of the others (a cold start): mean {mean_s:.4g} s with it, {mean_without_s:.4g} s without.",
            "Warm the server up before measuring.",
        ),
        "zh": (
            "首个请求耗时是其余中位数的 {ratio:.1f} 倍（冷启动）：含它均值 {mean_s:.4g} s，不含为 {mean_without_s:.4g} s。",
            "测量前先预热服务。",
        ),
    },
    "explain_rung_1": {
        "en": ("Rung 1: like for like, in steady windows.", ""),
        "zh": ("第 1 级：同条件对比，稳态窗口。", ""),
    },
    "explain_rung_2": {
        "en": ("Rung 2: two systems, since more than the GPU differs.", ""),
        "zh": ("第 2 级：两套系统的对比，差异不仅在 GPU。", ""),
    },
    "explain_rung_3": {
        "en": (
            "Rung 3: whole runs of the same job, ramp included, since not every run has a steady window.",
            "",
        ),
        "zh": ("第 3 级：同一任务的整个运行（含爬升），因为并非每次运行都有稳态窗口。", ""),
    },
    "explain_rung_4": {
        "en": ("Rung 4: values as a tool reported them, tested as runs.", ""),
        "zh": ("第 4 级：工具自报的数值，按运行检验。", ""),
    },
    "explain_rung_5": {
        "en": ("Rung 5: only the order of the run values can be given.", ""),
        "zh": ("第 5 级：只能给出各次运行数值的大小顺序。", ""),
    },
    "explain_rung_6": {
        "en": ("Rung 6: only one arm ran this level.", ""),
        "zh": ("第 6 级：只有一组运行了此档。", ""),
    },
    "explain_rung_7": {
        "en": ("Rung 7: a computed bound, not a measurement.", ""),
        "zh": ("第 7 级：计算得到的上下限，非实测。", ""),
    },
    "explain_rung_8": {
        "en": ("Rung 8: refused, or not measured.", ""),
        "zh": ("第 8 级：不可比，或未测量。", ""),
    },
    "faster_than_weights": {
        "en": (
            "{arm} decodes a token in {tpot_s:.3g} s, less than reading its weights takes ({floor_s:.3g} s): check the model, the precision and the token counts.",
            "State `read_bytes_per_step`, or say that tokens are drafted.",
        ),
        "zh": (
            "{arm} 每 token 用时 {tpot_s:.3g} s，短于读取权重所需的 {floor_s:.3g} s：请核对模型、精度与 token 计数。",
            "请填写 `read_bytes_per_step`，或说明使用了投机解码。",
        ),
    },
    "step_floor": {
        "en": (
            "Computed, not measured: a decode step of {arm} takes {floor_s:.3g} s at least, the time to read its weights.",
            "",
        ),
        "zh": (
            "计算值，非实测：{arm} 的一个解码步至少需要 {floor_s:.3g} s（读取权重的时间）。",
            "",
        ),
    },
    "outputs_end_early": {
        "en": (
            "The outputs of {path} are shorter than asked: a median of {served:g} of {asked} tokens.",
            "Force the length (`ignore_eos`), or correct `workload.output_tokens`.",
        ),
        "zh": (
            "{path} 的输出短于设定：中位数 {served:g}，设定 {asked} token。",
            "强制输出长度（`ignore_eos`），或更正 `workload.output_tokens`。",
        ),
    },
    "levels_left_out": {
        "en": (
            "{n} of {of} levels allow no test and are not in this ratio.",
            "Read them in the map of all levels.",
        ),
        "zh": ("{of} 个负载档中有 {n} 个无法检验，未计入该比值。", "请查看各负载档的结论表。"),
    },
    "arm_without_logs": {
        "en": (
            "Arm {arm} names no logs: nothing of it is measured.",
            "Add `files:`, `sweeps:` or `runs:`.",
        ),
        "zh": (
            "组 {arm} 未指定日志：没有任何测量数据。",
            "请添加 `files:`、`sweeps:` 或 `runs:`。",
        ),
    },
    "not_finite": {
        "en": (
            "The log holds values that are not finite here.",
            "Look at the file; the number is left out.",
        ),
        "zh": ("日志中此处含非有限数值。", "请检查文件；该数值未采用。"),
    },
}
