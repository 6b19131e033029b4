"""Estimate and interval, two-arm comparison, equivalence, multiplicity, runs needed."""

from __future__ import annotations

from gpuverdict.stats.arms import compare_arms, noise_floor_from
from gpuverdict.stats.comparison import Comparison, NoiseFloor, default_margin
from gpuverdict.stats.exact import RankTest, VarianceComponents, rank_test, variance_components
from gpuverdict.stats.explain import explain, shift_function
from gpuverdict.stats.mix import Standardised, length_bins, mix_distance, standardise_mix
from gpuverdict.stats.multiplicity import SignFlip, adjust, adjust_p, headline, sign_flip
from gpuverdict.stats.planning import mde, power, runs_needed, sd_upper_limit, two_look_alpha
from gpuverdict.stats.quantiles import (
    equal_n,
    minimum_requests,
    quantile,
    quantile_upper_bound,
    statistic_level,
    tail_rule,
)
from gpuverdict.stats.rates import clopper_pearson, error_rate, error_rate_comparison
from gpuverdict.stats.scope import (
    Factorial,
    Stability,
    TippingPoint,
    cards_comparison,
    interaction,
    stability,
    tipping_point,
)
from gpuverdict.stats.ttests import permutation_p

__all__ = [
    "Comparison",
    "Factorial",
    "NoiseFloor",
    "RankTest",
    "SignFlip",
    "Stability",
    "Standardised",
    "TippingPoint",
    "VarianceComponents",
    "adjust",
    "adjust_p",
    "cards_comparison",
    "clopper_pearson",
    "compare_arms",
    "default_margin",
    "equal_n",
    "error_rate",
    "error_rate_comparison",
    "explain",
    "headline",
    "interaction",
    "length_bins",
    "mde",
    "minimum_requests",
    "mix_distance",
    "noise_floor_from",
    "permutation_p",
    "power",
    "quantile",
    "quantile_upper_bound",
    "rank_test",
    "runs_needed",
    "sd_upper_limit",
    "shift_function",
    "sign_flip",
    "stability",
    "standardise_mix",
    "statistic_level",
    "tail_rule",
    "tipping_point",
    "two_look_alpha",
    "variance_components",
]
