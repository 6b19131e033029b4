"""Sentences about curves, capacity and cost."""

from __future__ import annotations

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "points_left_out": {
        "en": (
            "{n} points without a value, or at a level that could not run, are not fitted.",
            "Repeat these runs.",
        ),
        "zh": ("{n} 个点没有数值或所在档位无法运行，未参与拟合。", "请重测这些运行。"),
    },
    "sweeps_too_short": {
        "en": (
            "{n} sweeps have fewer than two levels and say nothing about the curve.",
            "Run whole sweeps.",
        ),
        "zh": ("{n} 轮扫描不足两个档位，无法反映曲线。", "请完成整轮扫描。"),
    },
    "as_many_levels_as_parameters": {
        "en": (
            "As many levels as parameters: solved, not fitted, so there is no interval.",
            "Add two levels or more, the highest at least twice the half-saturation batch.",
        ),
        "zh": (
            "档位数等于参数数：只是求解而非拟合，没有区间。",
            "请至少再加两个档位，最高档不低于半饱和批大小的两倍。",
        ),
    },
    "single_sweep": {
        "en": (
            "One sweep: its own scatter says nothing about the next one, so there is no interval.",
            "Repeat the sweep with a new server start, five times in all.",
        ),
        "zh": (
            "只有一轮扫描：其内部散布不能代表下一轮，没有区间。",
            "请重新启动服务重复扫描，共五轮。",
        ),
    },
    "infeasible_levels": {
        "en": (
            "Levels that could not run: {levels}. They are an answer, not a missing value, and are never fitted.",
            "See the memory section for what would fit.",
        ),
        "zh": (
            "无法运行的档位：{levels}。这是结果而非缺失值，不参与拟合。",
            "可容纳的规模见显存部分。",
        ),
    },
    "lack_of_fit_waived": {
        "en": (
            "The line misses by up to {error:.1%}, more than chance (p = {p:.2g}) but too little to matter.",
            "Nothing to do; more levels would show the shape.",
        ),
        "zh": (
            "直线最大偏差 {error:.1%}，虽非偶然（p = {p:.2g}），但小到没有实际意义。",
            "无需处理；增加档位可看清形状。",
        ),
    },
    "linear_rejected": {
        "en": (
            "The linear step is rejected: it misses by up to {error:.0%} (lack of fit p: {p}).",
            "Read the interpolated curve; six levels or more let another model be chosen.",
        ),
        "zh": (
            "线性步时模型被否决：最大偏差 {error:.0%}（失拟 p：{p}）。",
            "请看插值曲线；六个以上档位才能选择其他模型。",
        ),
    },
    "parameter_at_bound": {
        "en": (
            "{name} is at its bound: the series does not show it.",
            "Add lower or higher levels.",
        ),
        "zh": ("{name} 落在边界上：该序列无法体现它。", "请增加更低或更高的档位。"),
    },
    "x_inf_not_identified": {
        "en": (
            "The saturation throughput is not identified by levels up to {x_max:.3g}.",
            "Measure at twice the half-saturation batch or more.",
        ),
        "zh": ("最高档位仅为 {x_max:.3g}，无法确定饱和吞吐。", "请测到半饱和批大小的两倍以上。"),
    },
    "x_inf_extrapolated": {
        "en": (
            "The saturation throughput lies {ratio:.2f} times beyond the largest measured one.",
            "Measure a higher level before relying on it.",
        ),
        "zh": ("饱和吞吐为实测最大值的 {ratio:.2f} 倍，属外推。", "采信之前请测更高的档位。"),
    },
    "b_half_not_identified": {
        "en": (
            "The half-saturation batch is not identified by levels from {x_min:.3g} to {x_max:.3g}.",
            "Levels from a quarter of it to beyond it are needed.",
        ),
        "zh": (
            "{x_min:.3g} 至 {x_max:.3g} 的档位无法确定半饱和批大小。",
            "档位应从其四分之一延伸到超过它。",
        ),
    },
    "curves_without_common_range": {
        "en": (
            "The two curves were measured at batches that do not overlap.",
            "Run common levels in both arms.",
        ),
        "zh": ("两条曲线的测量范围没有重叠。", "请在两组测相同的档位。"),
    },
    "curves_without_band": {
        "en": (
            "A curve of {n} sweep has no interval, so the ratio has no band.",
            "Repeat the sweep with a new server start.",
        ),
        "zh": ("某条曲线只有 {n} 轮扫描，没有区间，比值也没有置信带。", "请重新启动服务重复扫描。"),
    },
    "no_crossover_in_range": {
        "en": (
            "No crossover in the measured range, {start:.3g} to {end:.3g}.",
            "Measure further if the load goes beyond.",
        ),
        "zh": (
            "在实测范围 {start:.3g} 至 {end:.3g} 内没有交叉点。",
            "若实际负载更高，请扩展测量范围。",
        ),
    },
    "crossover_at_or_above": {
        "en": (
            "A crossover, if there is one, lies at or above a batch of {bound:.3g}.",
            "Measure higher levels, or repeat the sweeps.",
        ),
        "zh": ("若存在交叉点，其批大小不低于 {bound:.3g}。", "请测更高档位或增加重复。"),
    },
    "crossover_at_or_below": {
        "en": (
            "A crossover, if there is one, lies at or below a batch of {bound:.3g}.",
            "Measure lower levels, or repeat the sweeps.",
        ),
        "zh": ("若存在交叉点，其批大小不高于 {bound:.3g}。", "请测更低档位或增加重复。"),
    },
    "crossover_open": {
        "en": (
            "The slopes do not differ enough to place a crossover between {start:.3g} and {end:.3g}.",
            "Repeat the sweeps.",
        ),
        "zh": (
            "两条曲线斜率差异不足，无法在 {start:.3g} 至 {end:.3g} 之间定位交叉点。",
            "请增加重复。",
        ),
    },
    "crossover_between": {
        "en": (
            "The interpolated curves cross between the levels {low:.3g} and {high:.3g}.",
            "Measure a level between them.",
        ),
        "zh": ("插值曲线在档位 {low:.3g} 与 {high:.3g} 之间交叉。", "请在两者之间补测一个档位。"),
    },
    "computed_not_measured": {
        "en": ("Computed, not measured.", "Measure the level to confirm it."),
        "zh": ("计算值，并非实测。", "请实测该档位以确认。"),
    },
    "overhead_not_counted": {
        "en": (
            "Activations, graphs and the runtime are not counted.",
            "Give the overhead of the engine, or leave a reserve.",
        ),
        "zh": ("未计入激活、计算图与运行时开销。", "请给出引擎开销，或预留余量。"),
    },
    "kv_heads_replicated": {
        "en": (
            "{kv_heads} KV heads over {split} GPUs: heads are stored more than once.",
            "Split over at most {kv_heads} GPUs, or count the copies.",
        ),
        "zh": (
            "{kv_heads} 个 KV 头分到 {split} 张 GPU：部分头会重复存储。",
            "张量并行度不超过 {kv_heads}，或计入副本。",
        ),
    },
    "weights_exceed_memory": {
        "en": (
            "{weights:.1f} GB are needed and {memory:.1f} GB are there.",
            "More cards, fewer bits, or offloading, which has to be named.",
        ),
        "zh": (
            "需要 {weights:.1f} GB，而只有 {memory:.1f} GB。",
            "需要更多显卡、更低位宽，或须注明的卸载方案。",
        ),
    },
    "limit_unknown": {
        "en": (
            "The {what} of the card is not known.",
            "Measure it with a probe and name it under `probes`.",
        ),
        "zh": ("该卡的 {what} 未知。", "请用基准探针实测并写入 `probes`。"),
    },
    "faster_than_limit": {
        "en": (
            "{value:.4g} ms is below the bound of {bound:.4g} ms.",
            "Check model, precision, batch and card: one of them is not what it says.",
        ),
        "zh": (
            "{value:.4g} ms 低于下界 {bound:.4g} ms。",
            "请核对模型、精度、批大小与显卡：其中之一与所述不符。",
        ),
    },
    "assume_weights_read_once": {
        "en": ("Each step reads {gigabytes:.4g} GB of weights once.", ""),
        "zh": ("假定每步读取一次权重，共 {gigabytes:.4g} GB。", ""),
    },
    "assume_kv_read": {
        "en": (
            "Each step reads the KV cache of {batch:.3g} requests at {context:.4g} tokens, {each:.4g} bytes a token.",
            "",
        ),
        "zh": (
            "假定每步读取 {batch:.3g} 个请求、各 {context:.4g} token 的 KV 缓存，每 token {each:.4g} 字节。",
            "",
        ),
    },
    "assume_weights_only": {
        "en": (
            "The KV cache is not counted, so the share is a lower bound.",
            "Give the model's shape and the lengths.",
        ),
        "zh": ("未计入 KV 缓存，占比为下限。", "请给出模型结构与长度。"),
    },
    "assume_active_experts": {
        "en": (
            "A mixture of experts: a batch reads more experts than one token, so the bytes are a lower bound.",
            "Give the bytes a step reads at this batch.",
        ),
        "zh": (
            "混合专家模型：一个批次读取的专家多于单个 token，字节数为下限。",
            "请给出该批大小下每步读取的字节数。",
        ),
    },
    "assume_prefill_flops": {
        "en": (
            "A prompt of {tokens:.0f} tokens takes 2 operations a weight and token; the time holds client and scheduler too.",
            "",
        ),
        "zh": (
            "假定 {tokens:.0f} 个 token 的提示词每权重每 token 需 2 次运算；该时间还包含客户端与调度。",
            "",
        ),
    },
    "assume_no_attention_term": {
        "en": ("Attention over the prompt is not counted.", "Give layers and heads."),
        "zh": ("未计入提示词的注意力计算。", "请给出层数与头数。"),
    },
    "ratio_outside_roofline": {
        "en": (
            "A ratio of {ratio:.2f} lies outside what bandwidth and compute of the cards allow, {low:.2f} to {high:.2f}.",
            "Something else than the card differs; find it before quoting the ratio.",
        ),
        "zh": (
            "比值 {ratio:.2f} 超出两卡带宽与算力所允许的 {low:.2f} 至 {high:.2f}。",
            "除显卡外另有差异，引用前请先查明。",
        ),
    },
    "topology_unknown": {
        "en": ("How the cards are connected is not known.", "Record `nvidia-smi topo -m`."),
        "zh": ("卡间互联方式未知。", "请记录 `nvidia-smi topo -m`。"),
    },
    "better_than_perfect_scaling": {
        "en": (
            "The larger system scales better than its card count: something else differs.",
            "Check batch, memory pressure and offloading of the small one.",
        ),
        "zh": ("大系统的扩展优于卡数之比：另有差异。", "请检查小系统的批大小、显存压力与卸载。"),
    },
    "no_throughput": {
        "en": ("There is no throughput to divide by.", "Measure the load the price is for."),
        "zh": ("没有可用的吞吐。", "请实测计价所对应的负载。"),
    },
    "no_price": {
        "en": (
            "The campaign gives no price.",
            "Give `price_per_hour`, or `cost` with purchase and years.",
        ),
        "zh": (
            "测试活动文件未给出价格。",
            "请给出 `price_per_hour`，或在 `cost` 中给出购置价与年限。",
        ),
    },
    "cost_inputs_missing": {
        "en": (
            "Counted as 0 because the campaign does not give them: {names}.",
            "Fill them in under `cost`.",
        ),
        "zh": ("因未给出而按 0 计：{names}。", "请在 `cost` 中补全。"),
    },
    "slo_part_unknown": {
        "en": (
            "Some runs have no number for: {parts}.",
            "Record streaming times, or drop the part from the SLO.",
        ),
        "zh": ("部分运行缺少：{parts}。", "请记录流式时间，或从 SLO 中去掉该项。"),
    },
    "slo_thin_tail": {
        "en": (
            "Thin tails: {parts} rest on fewer than five requests beyond the quantile.",
            "Send more requests a run.",
        ),
        "zh": ("尾部样本不足：{parts} 之外不足五个请求。", "请增加每次运行的请求数。"),
    },
    "slo_never_met": {
        "en": (
            "No tested load meets the SLO in every run.",
            "Test a lower load, or relax the SLO.",
        ),
        "zh": ("没有任何受测负载在每次运行中都满足 SLO。", "请测更低的负载，或放宽 SLO。"),
    },
    "slo_open_ended": {
        "en": (
            "The highest tested load, {level:g}, still meets the SLO: what it carries at most is not known.",
            "Test a higher load.",
        ),
        "zh": ("最高受测负载 {level:g} 仍满足 SLO，上限未知。", "请测更高的负载。"),
    },
    "only_one_arm_runs": {
        "en": ("Only {arm} runs {level:g}; {other} cannot.", ""),
        "zh": ("只有 {arm} 能运行 {level:g}，{other} 不能。", ""),
    },
    "tier_not_measured": {
        "en": ("{arm} was not measured under this workload.", "Run the sweep for it."),
        "zh": ("{arm} 未在该负载下测量。", "请为其运行扫描。"),
    },
    "tier_without_slo": {
        "en": ("No SLO is set.", "Give one in the campaign."),
        "zh": ("未设置 SLO。", "请在测试活动文件中给出。"),
    },
    "tier_limited_by": {
        "en": ("Carries {level:g}; {part} is reached first.", ""),
        "zh": ("可承载 {level:g}，最先达到的是 {part}。", ""),
    },
    "model_shape_apart": {
        "en": (
            "{arm} has the factor {key} {declared}, and its model {key} {held}: memory and roofline "
            "are computed from the model.",
            "Give each shape its own entry under `models:` and let the arm name it.",
        ),
        "zh": (
            "{arm} 的因素写明 {key} 为 {declared}，而其模型的 {key} 为 {held}：显存与 roofline 按模型计算。",
            "请在 `models:` 下为每种结构单列一项，并在该组的 `model` 中指明。",
        ),
    },
    "memory_not_measured": {
        "en": ("The memory peak was not measured.", "Record a GPU trace."),
        "zh": ("未测得显存峰值。", "请录制 GPU 轨迹。"),
    },
    "memory_full": {
        "en": (
            "Memory peaks at {ratio:.0%} of what there is: no reserve.",
            "Lower the admission limit or the KV share.",
        ),
        "zh": ("显存峰值达 {ratio:.0%}，没有余量。", "请降低准入上限或 KV 占比。"),
    },
    "memory_tight": {
        "en": ("Memory peaks at {ratio:.0%}: tight.", "Watch it under bursts."),
        "zh": ("显存峰值达 {ratio:.0%}，偏紧。", "请关注突发负载。"),
    },
    "no_universal_winner": {
        "en": ("No arm carries most in every tier: {tiers}.", "Decide by the load you have."),
        "zh": ("没有任何一方在所有层级都承载最多：{tiers}。", "请按实际负载选择。"),
    },
    "implied_bandwidth": {
        "en": ("The time implies {share:.0%} of the memory bandwidth (bits {bits}).", ""),
        "zh": ("该时间意味着 {share:.0%} 的显存带宽利用率（位宽 {bits}）。", ""),
    },
    "rate_of_time": {
        "en": ("{value:.4g} per second is printed, the time per token gives {expected:.4g}.", ""),
        "zh": ("表中为每秒 {value:.4g}，由每 token 时间推得 {expected:.4g}。", ""),
    },
    "bytes_per_token_differ": {
        "en": (
            "Bandwidth use and throughput imply {a:.3g} and {b:.3g} GB a token for one model and batch.",
            "",
        ),
        "zh": ("带宽利用率与吞吐推得同一模型、同一批大小下每 token {a:.3g} 与 {b:.3g} GB。", ""),
    },
    "implied_power": {
        "en": (
            "Tokens per watt and the throughput of the same source imply {watts:.0f} W under load; the board is rated {tdp:.0f} W.",
            "Ask how power was measured.",
        ),
        "zh": (
            "由每瓦 token 数与同一来源的吞吐推得负载功率 {watts:.0f} W，而板卡额定 {tdp:.0f} W。",
            "请询问功率的测量方法。",
        ),
    },
    "no_spread_published": {
        "en": (
            "One value a cell, runs: {runs}; without a spread nobody can say whether they differ.",
            "Ask for the runs.",
        ),
        "zh": (
            "每格只有一个数值（运行次数：{runs}），没有离散度就无法判断差异。",
            "请索取各次运行的数据。",
        ),
    },
    "step_is_user_tpot": {
        "en": (
            "The time is a user's time per token: under load it holds other requests' prefills, so the shares are lower bounds.",
            "Record token times, so that the device's decode step can be told apart.",
        ),
        "zh": (
            "该时间为用户感知的每 token 时延：负载下包含其他请求的预填充，占比为下限。",
            "请记录 token 时间，以便分离设备的解码步时。",
        ),
    },
    "crossover_reaches_outside": {
        "en": (
            "The interval of the crossover reaches beyond the measured range, {start:.3g} to {end:.3g}.",
            "Measure further, or repeat the sweeps.",
        ),
        "zh": ("交叉点的区间超出实测范围 {start:.3g} 至 {end:.3g}。", "请扩展测量范围或增加重复。"),
    },
    "link_without_peer": {
        "en": (
            "{value:.4g} GB/s over a link of a single card: it has no peer to talk to.",
            "Ask what was measured.",
        ),
        "zh": ("单卡链路 {value:.4g} GB/s：没有对端可通信。", "请询问测量的对象。"),
    },
    "needs_grouped_query": {
        "en": (
            "{value:.4g} ms is below the {bound:.4g} ms of a step that reads the cache of every head at {context:.0f} tokens: only a grouped-query model or shorter contexts allow it.",
            "Ask for the model's shape and the lengths.",
        ),
        "zh": (
            "{value:.4g} ms 低于在 {context:.0f} token 上下文下读取全部头缓存所需的 {bound:.4g} ms：只有分组查询模型或更短上下文才可能。",
            "请索取模型结构与长度。",
        ),
    },
    "loads_of_two_kinds": {
        "en": (
            "One arm was run in a closed loop, the other in an open one: their loads do not compare.",
            "Run both arms with the same kind of load.",
        ),
        "zh": ("一组为闭环负载，另一组为开环负载，两者不可比。", "请以同类负载运行两组。"),
    },
    "passes_of_one_level": {
        "en": (
            "Every pass holds one level, so all points are taken as independent.",
            "Name the sweep of each run if levels shared a server start.",
        ),
        "zh": (
            "每轮只含一个档位，所有点按相互独立处理。",
            "若多个档位共用一次服务启动，请注明各运行所属的扫描。",
        ),
    },
}
