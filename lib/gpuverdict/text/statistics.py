"""Sentences about statistics."""

from __future__ import annotations

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "arm_empty": {
        "en": ("The {arm} has no run with this number.", "Measure at least three runs of it."),
        "zh": ("{arm} 组没有任何运行给出该指标。", "请至少补测三次独立运行。"),
    },
    "run_value_missing": {
        "en": (
            "{n_missing} of {n} runs of the {arm} give no number here; nothing was tested.",
            "Repeat these runs, or name them as lost in the campaign.",
        ),
        "zh": (
            "{arm} 组的 {n} 次运行中有 {n_missing} 次没有数值，因此未做检验。",
            "请重测这些运行，或在测试活动文件中声明其缺失。",
        ),
    },
    "run_value_not_positive": {
        "en": (
            "{n_beyond} of {n} runs of the {arm} are zero or negative: a ratio has no meaning.",
            "Compare the difference of fractions instead, or find out why the run is empty.",
        ),
        "zh": (
            "{arm} 组的 {n} 次运行中有 {n_beyond} 次为零或负值，比值没有意义。",
            "请改为比较比例之差，或查明该运行为何为空。",
        ),
    },
    "single_run": {
        "en": (
            "One run an arm ({n_baseline} against {n_candidate}): the spread between runs is "
            "unknown, so this is a ratio and no verdict.",
            "Two more server starts per arm allow a test; five are the recommended design.",
        ),
        "zh": (
            "存在只有一次运行的组（{n_baseline} 对 {n_candidate}）：运行间离散度未知，只给比值，不下结论。",
            "每组再做两次独立的服务启动即可检验；推荐每组五次。",
        ),
    },
    "noise_floor_used": {
        "en": (
            "Tested against the noise of {source}: {sd:.2%} over {n} runs without a difference.",
            "The verdict is wrong if the noise has grown since; three runs an arm need no loan.",
        ),
        "zh": (
            "以 {source} 的噪声基底检验：{n} 次 A/A 运行的离散度为 {sd:.2%}。",
            "若此后噪声变大，该结论不成立；每组三次运行则无需借用基底。",
        ),
    },
    "noise_floor_thin": {
        "en": (
            "The noise floor rests on {n} runs and was not used.",
            "A noise floor needs five A/A runs or more that vary.",
        ),
        "zh": ("噪声基底仅由 {n} 次运行得出，未采用。", "噪声基底至少需要五次有波动的 A/A 运行。"),
    },
    "quantised": {
        "en": (
            "Quantised statistic: the runs of an arm are equal to the last bit, so there is no "
            "spread to test against.",
            "Use windowed token throughput or longer runs; equal values are a step, not precision.",
        ),
        "zh": (
            "统计量被量化：某一组的各次运行逐位相等，没有离散度可供检验。",
            "请使用窗口内 token 吞吐或更长的运行；数值相等说明存在步进，并不代表精确。",
        ),
    },
    "two_runs": {
        "en": (
            "Two runs in an arm leave one degree of freedom: the interval is about 13 standard "
            "errors wide on each side, and equivalence cannot be shown.",
            "A third run narrows it to a third.",
        ),
        "zh": (
            "某组只有两次运行，自由度为 1：区间单侧约为 13 个标准误，且无法证明等效。",
            "再加一次运行，区间可缩至约三分之一。",
        ),
    },
    "two_runs_no_tail": {
        "en": (
            "{statistic} is not tested with two runs in an arm.",
            "Three runs of 500 requests or more are the least.",
        ),
        "zh": (
            "某组只有两次运行，不检验 {statistic}。",
            "至少需要三次、每次不少于 500 个请求的运行。",
        ),
    },
    "tail_counts_unknown": {
        "en": (
            "How many requests stand behind {statistic} is not known.",
            "Give the requests of the smallest run, so that thin tails are found.",
        ),
        "zh": (
            "{statistic} 背后的请求数未知。",
            "请给出最小一次运行的请求数，以便识别尾部样本不足。",
        ),
    },
    "tail_under_sampled": {
        "en": (
            "{statistic} of a run with {n} requests is not tested: it rests on fewer than five "
            "requests beyond it.",
            "Send {needed} requests or more in every run.",
        ),
        "zh": (
            "某次运行只有 {n} 个请求，其 {statistic} 之外不足五个请求，不做检验。",
            "每次运行至少发送 {needed} 个请求。",
        ),
    },
    "few_requests": {
        "en": ("A run has only {n} requests.", "Ten or more make its median steady."),
        "zh": ("某次运行只有 {n} 个请求。", "不少于十个请求时中位数才稳定。"),
    },
    "drifting_arm": {
        "en": (
            "{n} runs of the {arm} drift by more than 2 % inside their window: the word is withdrawn.",
            "Warm up longer, or fix clocks and cooling, and repeat.",
        ),
        "zh": (
            "{arm} 组有 {n} 次运行在测量窗口内漂移超过 2 %。",
            "请延长预热，或固定时钟、改善散热后重测。",
        ),
    },
    "unequal_runs": {
        "en": (
            "The arms have {n_baseline} and {n_candidate} runs.",
            "Fix the number of runs before the data, and say why runs are missing.",
        ),
        "zh": (
            "两组运行次数不等：{n_baseline} 与 {n_candidate}。",
            "请在采集数据之前固定运行次数，并说明缺失原因。",
        ),
    },
    "permutation_sampled": {
        "en": (
            "The permutation p rests on {n} random assignments with a fixed seed.",
            "All assignments are used up to 20,000 of them.",
        ),
        "zh": (
            "置换检验的 p 值基于 {n} 次固定种子的随机分配。",
            "分配总数不超过 20,000 时使用全部分配。",
        ),
    },
    "fragile": {
        "en": (
            "The t test (p = {p_t:.3g}) and the permutation test (p = {p_permutation:.3g}) "
            "disagree about 5 %.",
            "Another run per arm usually settles it.",
        ),
        "zh": (
            "t 检验（p = {p_t:.3g}）与置换检验（p = {p_permutation:.3g}）在 5 % 水平上结论不一致。",
            "通常每组再加一次运行即可确定。",
        ),
    },
    "below_margin": {
        "en": (
            "A difference is there (p = {p:.2g}), but it is smaller than the margin of "
            "{margin:.3g}.",
            "Lower the margin if so small a difference matters.",
        ),
        "zh": (
            "差异存在（p = {p:.2g}），但小于界值 {margin:.3g}。",
            "若如此小的差异也有意义，请调低界值。",
        ),
    },
    "undecided": {
        "en": (
            "Undecided: this design finds differences from {mde:.1%} up.",
            "{more_low} to {more_high} more runs per arm ({low} to {high} in all) would show "
            "{margin:.1%}.",
        ),
        "zh": (
            "未定：当前设计可检出的最小差异为 {mde:.1%}。",
            "每组再加 {more_low} 至 {more_high} 次运行（合计 {low} 至 {high} 次）可分辨 {margin:.1%} 的差异。",
        ),
    },
    "undecided_size_unknown": {
        "en": (
            "Undecided, and the spread between runs does not say how many more would decide.",
            "Add runs of the same design, five per arm in all.",
        ),
        "zh": ("未定，且现有离散度不足以估计还需多少次运行。", "请按同一设计补足到每组五次。"),
    },
    "undecided_gain": {
        "en": (
            "Undecided: the sensors of two cards may differ by {gain:.1%}, more than the margin of "
            "{margin:.1%}, so neither equivalence nor a smaller difference can be shown.",
            "More runs do not help; meter both cards with one instrument.",
        ),
        "zh": (
            "未定：两张卡的传感器增益可能相差 {gain:.1%}，大于界值 {margin:.1%}，无法证明等效或更小的差异。",
            "增加运行次数无济于事；请用同一外部仪表测量两张卡。",
        ),
    },
    "lost_by_adjustment": {
        "en": (
            "p = {p:.2g} alone, {p_adjusted:.2g} among the {family} cells of its family: one such "
            "cell is expected by chance.",
            "Repeat this cell in a new campaign before relying on it.",
        ),
        "zh": (
            "单独看 p = {p:.2g}，在同族 {family} 个单元中校正后为 {p_adjusted:.2g}：偶然出现一个并不意外。",
            "采信之前请在新的测试活动中复测该单元。",
        ),
    },
    "no_direction": {
        "en": ("{metric} differs, but neither direction of it is better.", "Read it as a factor."),
        "zh": ("{metric} 存在差异，但该指标没有优劣方向。", "请将其视为影响因素。"),
    },
    "test_none": {"en": ("No test", ""), "zh": ("未做检验", "")},
    "test_welch": {"en": ("Welch's t test", ""), "zh": (" Welch t 检验", "")},
    "test_paired": {"en": ("Paired t test", ""), "zh": ("配对 t 检验", "")},
    "test_noise_floor": {"en": ("Test against the noise floor", ""), "zh": ("噪声基底检验", "")},
    "test_headline_sweep": {
        "en": ("t test over whole sweeps", ""),
        "zh": ("整轮扫描的 t 检验", ""),
    },
    "test_headline_cells": {"en": ("t test over levels", ""), "zh": ("跨负载档的 t 检验", "")},
    "test_error_logit": {
        "en": ("t test of empirical logits", ""),
        "zh": ("经验 logit 的 t 检验", ""),
    },
    "test_interaction": {"en": ("t test of the interaction", ""), "zh": ("交互作用的 t 检验", "")},
    "test_cards": {"en": ("Welch's t test over cards", ""), "zh": ("按卡的 Welch t 检验", "")},
    "null_none": {
        "en": ("Nothing was tested for {label}.", ""),
        "zh": ("{label} 未做检验。", ""),
    },
    "null_welch": {
        "en": ("Over runs, {label} of candidate and baseline have the same geometric mean.", ""),
        "zh": ("在运行层面，候选组与基线组的 {label} 几何均值相同。", ""),
    },
    "null_paired": {
        "en": ("Over pairs of runs, the mean ratio of {label} is 1.", ""),
        "zh": ("在成对运行层面，{label} 的平均比值为 1。", ""),
    },
    "null_noise_floor": {
        "en": (
            "The two values of {label} differ by no more than runs without a difference do.",
            "",
        ),
        "zh": ("两个 {label} 值之差不超过 A/A 运行的噪声。", ""),
    },
    "null_headline_sweep": {
        "en": (
            "Over whole sweeps, the geometric mean of {label} over the common levels is the same.",
            "",
        ),
        "zh": ("在整轮扫描层面，{label} 在共同档位上的几何均值相同。", ""),
    },
    "null_headline_cells": {
        "en": ("The mean log ratio of {label} over the common levels is 0.", ""),
        "zh": ("{label} 在共同档位上的平均对数比为 0。", ""),
    },
    "null_error_logit": {
        "en": ("Over runs, the mean empirical logit of {label} is the same in both arms.", ""),
        "zh": ("在运行层面，两组 {label} 的经验 logit 均值相同。", ""),
    },
    "null_interaction": {
        "en": ("The factor changes {label} by the same ratio in both arms.", ""),
        "zh": ("该因素使两组的 {label} 按相同比例变化。", ""),
    },
    "null_cards": {
        "en": ("Over cards, {label} of the two models has the same geometric mean.", ""),
        "zh": ("在卡层面，两种型号的 {label} 几何均值相同。", ""),
    },
    "bound_needs_requests": {
        "en": (
            "A bound for the {q:.3g} quantile needs {needed} requests, the run has {n}.",
            "Send {needed} requests or more.",
        ),
        "zh": (
            "{q:.3g} 分位数的上界需要 {needed} 个请求，该运行只有 {n} 个。",
            "请至少发送 {needed} 个请求。",
        ),
    },
    "assumes_independent_requests": {
        "en": (
            "The bound assumes independent requests, which batching violates.",
            "Take it as optimistic.",
        ),
        "zh": ("该上界假定请求相互独立，而批处理会破坏这一点。", "请视为偏乐观的上界。"),
    },
    "common_grid": {
        "en": (
            "The headline covers the {n} of {n_levels} levels that both arms ran.",
            "Run the other levels in both arms, or read the capacity result.",
        ),
        "zh": (
            "总体比值只覆盖两组共有的 {n} 个档位（共 {n_levels} 个）。",
            "请在两组补测其余档位，或查看容量结果。",
        ),
    },
    "sweeps_left_out": {
        "en": (
            "Sweeps with a lost level are not in the headline: {n_baseline} of the baseline, "
            "{n_candidate} of the candidate.",
            "Repeat the lost runs.",
        ),
        "zh": (
            "缺失档位的扫描未计入总体比值：基线 {n_baseline} 轮，候选 {n_candidate} 轮。",
            "请重测缺失的运行。",
        ),
    },
    "cells_untested": {
        "en": (
            "{n} of {of} cells could not be tested, so there is no headline.",
            "See these cells; their remedy is the headline's.",
        ),
        "zh": (
            "{of} 个单元中有 {n} 个无法检验，因此没有总体结论。",
            "请查看这些单元给出的补救办法。",
        ),
    },
    "no_requests_sent": {
        "en": ("No request was sent, so no rate is known.", "Check the run."),
        "zh": ("没有发出任何请求，无法得知比率。", "请检查该运行。"),
    },
    "no_errors_few_requests": {
        "en": (
            "No error in either arm, but so few runs or requests allow rates up to {bound:.2%}, "
            "against a margin of {margin:.2%}.",
            "Send more requests, in three runs an arm or more.",
        ),
        "zh": (
            "两组均无错误，但运行或请求过少，错误率仍可能高达 {bound:.2%}，界值为 {margin:.2%}。",
            "请增加请求数，并保证每组至少三次运行。",
        ),
    },
    "undecided_rates": {
        "en": (
            "Undecided: the difference lies between {low:+.2%} and {high:+.2%} points, the margin "
            "is {margin:.2%}.",
            "Send more requests in more runs; failures cluster in runs.",
        ),
        "zh": (
            "未定：差值介于 {low:+.2%} 与 {high:+.2%} 之间（百分点），界值为 {margin:.2%}。",
            "请增加运行与请求；失败往往集中在个别运行中。",
        ),
    },
    "below_margin_points": {
        "en": (
            "The rates differ (p = {p:.2g}), but by less than {margin:.2%} points.",
            "Lower the margin if so small a difference matters.",
        ),
        "zh": (
            "错误率存在差异（p = {p:.2g}），但小于 {margin:.2%}（百分点）。",
            "若如此小的差异也有意义，请调低界值。",
        ),
    },
    "cards_scope": {
        "en": (
            "{n_baseline} against {n_candidate} cards: the claim is about these cards, not about "
            "their models.",
            "Three cards of each model, measured alike, allow a claim about the models.",
        ),
        "zh": (
            "{n_baseline} 张对 {n_candidate} 张卡：结论只针对这些卡，不针对型号。",
            "每个型号以相同方式测量至少三张卡，才能对型号下结论。",
        ),
    },
    "cards_are_units": {
        "en": (
            "Tested over {n_baseline} and {n_candidate} cards, one number a card.",
            "More cards sharpen it; more runs of the same cards hardly do.",
        ),
        "zh": (
            "以卡为单位检验：{n_baseline} 张对 {n_candidate} 张，每卡一个数值。",
            "增加卡数才能提高精度，同一张卡多测几次作用有限。",
        ),
    },
    "assumes_normal_runs": {
        "en": (
            "Intervals of a spread assume normal run effects and are wide with few runs.",
            "Read them as an order of magnitude.",
        ),
        "zh": ("离散度的区间假定运行效应服从正态分布，运行少时区间很宽。", "请按数量级理解。"),
    },
    "spread_few_runs": {
        "en": (
            "Fewer than three runs, or runs that do not vary, give no interval of the spread.",
            "Five runs an arm or more.",
        ),
        "zh": ("运行少于三次或毫无波动，无法给出离散度区间。", "请每组至少五次运行。"),
    },
    "mix_standardised": {
        "en": (
            "The request mixes differ (distance {distance:.2f}); numbers were brought to one mix.",
            "Send the same prompts to both arms.",
        ),
        "zh": (
            "两组请求构成不同（距离 {distance:.2f}），数值已换算到同一构成。",
            "请向两组发送相同的提示词。",
        ),
    },
    "mix_not_standardised": {
        "en": (
            "The request mixes differ and {n} runs lack requests of some length, so they cannot be "
            "brought to one mix.",
            "Send the same prompts to both arms.",
        ),
        "zh": (
            "两组请求构成不同，且有 {n} 次运行缺少某些长度的请求，无法换算。",
            "请向两组发送相同的提示词。",
        ),
    },
    "rank_test_cannot": {
        "en": (
            "A rank test of {n_baseline} against {n_candidate} runs cannot go below p = {p:.3g}.",
            "Four runs an arm are the least at 5 %.",
        ),
        "zh": (
            "{n_baseline} 对 {n_candidate} 次运行的秩检验，p 值不可能低于 {p:.3g}。",
            "在 5 % 水平上每组至少需要四次运行。",
        ),
    },
    "run_variance_zero": {
        "en": (
            "No variance between the {n_runs} runs was found beyond that within them; the standard "
            "error rests on requests and says nothing about a new run.",
            "Check that the runs are separate server starts.",
        ),
        "zh": (
            "{n_runs} 次运行之间未发现超出运行内部的方差；标准误仅来自请求，不能代表新的运行。",
            "请确认各次运行是相互独立的服务启动。",
        ),
    },
    "plan_without_pilot": {
        "en": (
            "Without a pilot the spread over runs is unknown: {n} runs an arm is the default.",
            "Run two or three runs of one arm first and plan again from them.",
        ),
        "zh": (
            "没有预实验，运行间离散度未知：默认每组 {n} 次运行。",
            "请先对任一组做两三次运行，再据此重新规划。",
        ),
    },
    "plan_quantised": {
        "en": (
            "The pilot's runs are equal to the last bit, so its spread says nothing.",
            "Use a statistic that is not counted in finished requests, or longer runs.",
        ),
        "zh": (
            "预实验各次运行逐位相等，离散度没有信息。",
            "请改用不按完成请求数计数的统计量，或延长运行。",
        ),
    },
    "plan_many_runs": {
        "en": (
            "{n} runs an arm for {effect:.1%} with a spread of {sd:.1%} over runs is a lot.",
            "Make the runs steadier (fixed clocks, longer windows), or ask for a larger effect.",
        ),
        "zh": (
            "在 {sd:.1%} 的运行间离散度下分辨 {effect:.1%} 需要每组 {n} 次运行，代价很高。",
            "请先让运行更稳定（固定时钟、更长窗口），或放宽目标差异。",
        ),
    },
    "explain_measured": {
        "en": (
            "{label}: {n_baseline} against {n_candidate} runs, {baseline} against {candidate}, ratio {ratio}.",
            "",
        ),
        "zh": (
            "{label}：{n_baseline} 对 {n_candidate} 次运行，{baseline} 对 {candidate}，比值 {ratio}。",
            "",
        ),
    },
    "explain_test": {
        "en": (
            "If that were so, a ratio at least this far from 1 would turn up with probability {p:.2g} ({test}, {df} degrees of freedom).",
            "",
        ),
        "zh": (
            "若果真如此，出现至少这样偏离 1 的比值的概率为 {p:.2g}（{test}，自由度 {df}）。",
            "",
        ),
    },
    "explain_adjusted": {
        "en": ("Among the {family} tests of its family that counts as {p_adjusted:.2g}.", ""),
        "zh": ("在同族 {family} 个检验中校正后为 {p_adjusted:.2g}。", ""),
    },
    "explain_permutation": {
        "en": ("Shuffling the runs between the arms gives p = {p:.2g}.", ""),
        "zh": ("将运行在两组间重新分配得到 p = {p:.2g}。", ""),
    },
    "explain_equivalent": {
        "en": (
            "Equivalent: the 90 % interval {interval90} lies inside the margin of {margin:.0%} (two one-sided tests, Schuirmann 1987).",
            "",
        ),
        "zh": (
            "等效：90 % 区间 {interval90} 落在 {margin:.0%} 的界值之内（双单侧检验，Schuirmann 1987）。",
            "",
        ),
    },
    "explain_difference": {
        "en": (
            "{verdict}: the adjusted p is below {alpha:.2g} and the interval leaves out 1, while the 90 % interval {interval90} is not inside the margin of {margin:.0%} (Welch 1947).",
            "",
        ),
        "zh": (
            "{verdict}：校正后 p 小于 {alpha:.2g} 且区间不含 1，同时 90 % 区间 {interval90} 未落在 {margin:.0%} 的界值之内（Welch 1947）。",
            "",
        ),
    },
    "explain_inconclusive": {
        "en": (
            "Inconclusive: neither is the 90 % interval {interval90} inside the margin of {margin:.0%}, nor is a difference shown.",
            "",
        ),
        "zh": (
            "未定：90 % 区间 {interval90} 未落在 {margin:.0%} 的界值之内，也未能证明存在差异。",
            "",
        ),
    },
    "explain_not_comparable": {
        "en": ("Not comparable: a precondition failed, so no ratio is tested.", ""),
        "zh": ("不可比：前提条件不满足，因此不做检验。", ""),
    },
}
