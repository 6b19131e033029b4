"""SLO goodput, roofline, memory, scaling efficiency, cost, published claims, the decision table."""

from __future__ import annotations

from gpuverdict.capacity.arms import (
    ArmLimits,
    arm_curve,
    arm_infeasible,
    arm_limits,
    arm_memory,
    arm_rooflines,
    arm_slo,
    device_memory,
    run_estimate,
)
from gpuverdict.capacity.card_use import CardUse, arm_card_use
from gpuverdict.capacity.claims import CardLimits, Claim
from gpuverdict.capacity.cost import (
    CostInputs,
    Ownership,
    break_even_utilisation,
    cards_needed,
    ownership,
    payback_months,
    price_per_million_tokens,
    tokens_per_joule,
)
from gpuverdict.capacity.decision import (
    Decision,
    Tier,
    cost_inputs,
    decision_frame,
    decision_table,
    mixed_winners,
)
from gpuverdict.capacity.memory import MemoryPlan, kv_bytes_per_token, plan_memory, weight_bytes
from gpuverdict.capacity.minutes import attainment_by_minute
from gpuverdict.capacity.power_limits import PowerLimitCurve, efficiency_peak, power_limit_curve
from gpuverdict.capacity.published import (
    check_published,
    claims_frame,
    limits_of,
    read_published,
)
from gpuverdict.capacity.roofline import (
    Roofline,
    check_phase_ratio,
    decode_roofline,
    prefill_flops,
    prefill_roofline,
)
from gpuverdict.capacity.rows import copied_groups, power_in_watts, throughput_formula
from gpuverdict.capacity.scaling import Scaling, scaling_efficiency
from gpuverdict.capacity.sections import capacity_section, common_grid, curves_section
from gpuverdict.capacity.slo import (
    SloCapacity,
    attainment,
    compare_loads,
    slo_capacity,
    slo_frontier,
)
from gpuverdict.capacity.watermarks import (
    CardMemory,
    MemoryGrowth,
    arm_watermarks,
    memory_growth,
    run_samples,
    trace_reservations,
)

__all__ = [
    "ArmLimits",
    "CardLimits",
    "CardMemory",
    "CardUse",
    "Claim",
    "CostInputs",
    "Decision",
    "MemoryGrowth",
    "MemoryPlan",
    "Ownership",
    "PowerLimitCurve",
    "Roofline",
    "Scaling",
    "SloCapacity",
    "Tier",
    "arm_card_use",
    "arm_curve",
    "arm_infeasible",
    "arm_limits",
    "arm_memory",
    "arm_rooflines",
    "arm_slo",
    "arm_watermarks",
    "attainment",
    "attainment_by_minute",
    "break_even_utilisation",
    "capacity_section",
    "cards_needed",
    "check_phase_ratio",
    "check_published",
    "claims_frame",
    "common_grid",
    "compare_loads",
    "copied_groups",
    "cost_inputs",
    "curves_section",
    "decision_frame",
    "decision_table",
    "decode_roofline",
    "device_memory",
    "efficiency_peak",
    "kv_bytes_per_token",
    "limits_of",
    "memory_growth",
    "mixed_winners",
    "ownership",
    "payback_months",
    "plan_memory",
    "power_in_watts",
    "power_limit_curve",
    "prefill_flops",
    "prefill_roofline",
    "price_per_million_tokens",
    "read_published",
    "run_estimate",
    "run_samples",
    "scaling_efficiency",
    "slo_capacity",
    "slo_frontier",
    "throughput_formula",
    "tokens_per_joule",
    "trace_reservations",
    "weight_bytes",
]
