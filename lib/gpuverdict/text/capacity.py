
"""Sentences about curves, capacity and cost."""

from __future__ import annotations

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "points_left_out": {
        "en": ("{n} points without a value, or at a level that could not run, are not fitted.", "Repeat these runs."),
        "zh": ("{n} 个点没有数值或所在档位无法运行，未参与拟合。", "请重测这些运行。"),
    },
    "sweeps_too_short": {
        "en": ("{n} sweeps have fewer than two levels and say nothing about the curve.", "Run whole sweeps."),
        "zh": ("{n} 轮扫描不足两个档位，无法反映曲线。", "请完成整轮扫描。"),
    },
    "as_many_levels_as_parameters": {
        "en": (
            "As many levels as parameters: solved, not fitted, so there is no interval.",
            "Add two levels or more, the highest at least twice the half-saturation batch.",
        ),
        "zh": ("档位数等于参数数：只是求解而非拟合，没有区间。", "请至少再加两个档位，最高档不低于半饱和批大小的两倍。"),
    },
    "single_sweep": {
        "en": ("One sweep: its own scatter says nothing about the next one, so there is no interval.", "Repeat the sweep with a new server start, five times in all."),
        "zh": ("只有一轮扫描：其内部散布不能代表下一轮，没有区间。", "请重新启动服务重复扫描，共五轮。"),
    },
    "infeasible_levels": {
        "en": ("Levels that could not run: {levels}. They are an answer, not a missing value, and are never fitted.", "See the memory section for what would fit."),
        "zh": ("无法运行的档位：{levels}。这是结果而非缺失值，不参与拟合。", "可容纳的规模见显存部分。"),
    },
    "lack_of_fit_waived": {
        "en": ("The line misses by up to {error:.1%}, more than chance (p = {p:.2g}) but too little to matter.", "Nothing to do; more levels would show the shape."),
        "zh": ("直线最大偏差 {error:.1%}，虽非偶然（p = {p:.2g}），但小到没有实际意义。", "无需处理；增加档位可看清形状。"),
    },
    "linear_rejected": {
        "en": ("The linear step is rejected: it misses by up to {error:.0%} (lack of fit p: {p}).", "Read the interpolated curve; six levels or more let another model be chosen."),
        "zh": ("线性步时模型被否决：最大偏差 {error:.0%}（失拟 p：{p}）。", "请看插值曲线；六个以上档位才能选择其他模型。"),
    },
    "parameter_at_bound": {
        "en": ("{name} is at its bound: the series does not show it.", "Add lower or higher levels."),
        "zh": ("{name} 落在边界上：该序列无法体现它。", "请增加更低或更高的档位。"),
    },
    "x_inf_not_identified": {
        "en": ("The saturation throughput is not identified by levels up to {x_max:.3g}.", "Measure at twice the half-saturation batch or more."),
        "zh": ("最高档位仅为 {x_max:.3g}，无法确定饱和吞吐。", "请测到半饱和批大小的两倍以上。"),
    },
    "x_inf_extrapolated": {
        "en": ("The saturation throughput lies {ratio:.2f} times beyond the largest measured one.", "Measure a higher level before relying on it."),
        "zh": ("饱和吞吐为实测最大值的 {ratio:.2f} 倍，属外推。", "采信之前请测更高的档位。"),
    },
    "b_half_not_identified": {
        "en": ("The half-saturation batch is not identified by levels from {x_min:.3g} to {x_max:.3g}.", "Levels from a quarter of it to beyond it are needed."),
        "zh": ("{x_min:.3g} 至 {x_max:.3g} 的档位无法确定半饱和批大小。", "档位应从其四分之一延伸到超过它。"),
    },
    "curves_without_common_range": {
        "en": ("The two curves were measured at batches that do not overlap.", "Run common levels in both arms."),
        "zh": ("两条曲线的测量范围没有重叠。", "请在两组测相同的档位。"),
    },
    "curves_without_band": {
        "en": ("A curve of {n} sweep has no interval, so the ratio has no band.", "Repeat the sweep with a new server start."),
        "zh": ("某条曲线只有 {n} 轮扫描，没有区间，比值也没有置信带。", "请重新启动服务重复扫描。"),
    },
    "no_crossover_in_range": {
        "en": ("No crossover in the measured range, {start:.3g} to {end:.3g}.", "Measure further if the load goes beyond."),
        "zh": ("在实测范围 {start:.3g} 至 {end:.3g} 内没有交叉点。", "若实际负载更高，请扩展测量范围。"),
    },
    "crossover_at_or_above": {
        "en": ("A crossover, if there is one, lies at or above a batch of {bound:.3g}.", "Measure higher levels, or repeat the sweeps."),
        "zh": ("若存在交叉点，其批大小不低于 {bound:.3g}。", "请测更高档位或增加重复。"),
    },
    "crossover_at_or_below": {
        "en": ("A crossover, if there is one, lies at or below a batch of {bound:.3g}.", "Measure lower levels, or repeat the sweeps."),
        "zh": ("若存在交叉点，其批大小不高于 {bound:.3g}。", "请测更低档位或增加重复。"),
    },
    "crossover_open": {
        "en": ("The slopes do not differ enough to place a crossover between {start:.3g} and {end:.3g}.", "Repeat the sweeps."),
        "zh": ("两条曲线斜率差异不足，无法在 {start:.3g} 至 {end:.3g} 之间定位交叉点。", "请增加重复。"),
    },
    "crossover_between": {
        "en": ("The interpolated curves cross between the levels {low:.3g} and {high:.3g}.", "Measure a level between them."),
        "zh": ("插值曲线在档位 {low:.3g} 与 {high:.3g} 之间交叉。", "请在两者之间补测一个档位。"),
    },
}
