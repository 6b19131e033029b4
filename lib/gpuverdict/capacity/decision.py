"""The table a buyer decides on: workloads and SLOs down, arms across, go or no-go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gpuverdict.campaign import Campaign
from gpuverdict.capacity.arms import arm_infeasible, run_estimate
from gpuverdict.capacity.cost import (
    CostInputs,
    cards_needed,
    ownership,
    price_per_million_tokens,
    tokens_per_joule,
)
from gpuverdict.capacity.slo import Slo, SloCapacity, slo_capacity
from gpuverdict.errors import Caution
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["Decision", "Tier", "decision_frame", "decision_table", "mixed_winners"]

MEMORY_TIGHT, MEMORY_FULL = 0.80, 0.90


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A row an analyst edits: a workload under its own SLO and the load it must carry.

    `load` is in streams for a closed loop, in requests/s for an open one.
    """

    name: str
    workload: str = "main"
    slo: Slo | None = None
    load: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One arm under one tier: `go`, `no-go` or `not measured`, with what it rests on.

    Attributes
    ----------
    admission_limit : float or None
        Largest load that holds in every run.
    output_tokens_per_s, price_per_million_output_tokens, tokens_per_joule : Estimate
        At that load.
    memory_ratio : float or None
        Measured peak over the memory of the arm's devices.
    cards_needed : int or None
        GPUs for the tier's load, whole systems and one spare.
    reasons : tuple of Caution
        Why, most important first.
    """

    tier: str
    workload: str
    arm: str
    kind: str
    go: str
    admission_limit: float | None
    lowest_missed: float | None
    limiting: str | None
    goodput_requests_per_s: float | None
    output_tokens_per_s: Estimate
    memory_ratio: float | None
    price_per_million_output_tokens: Estimate
    tokens_per_joule: Estimate
    cards_needed: int | None
    reasons: tuple[Caution, ...]

    def __str__(self) -> str:
        limit = "no tested load" if self.admission_limit is None else f"{self.admission_limit:g}"
        return f"{self.tier}, {self.arm}: {self.go}, carries {limit} ({self.kind})"


def decision_table(
    frame: pd.DataFrame,
    campaign: Campaign,
    *,
    tiers: Sequence[Tier] = (),
    device_memory_mib: Mapping[str, float | None] | None = None,
) -> list[Decision]:
    """Say for each tier which arms meet it, at what goodput, memory reserve and cost.

    Parameters
    ----------
    frame : DataFrame
        The campaign's summary.
    tiers : sequence of Tier
        Default: each workload under its own SLO.
    device_memory_mib : mapping, optional
        arm -> memory of one of its devices, as the device reports it.

    Returns
    -------
    list of Decision
        Tiers in order, arms in the campaign's order. Arms without runs are `not measured`.

    Notes
    -----
    `go` needs every part of the SLO met in every run at some tested load, and a memory peak of at
    most 90 %; above 80 % it is said to be tight. Without a memory trace the peak is not known,
    which is said and does not forbid.
    """
    rows = []
    chosen = tiers or [Tier(name=name, workload=name) for name in campaign.all_workloads()]
    for tier in chosen:
        slo = tier.slo or campaign.slo_of(tier.workload)
        for arm in campaign.arms:
            infeasible = arm_infeasible(campaign, arm, tier.workload)
            found = (
                slo_capacity(frame, slo, arm, tier.workload, infeasible=infeasible) if slo else []
            )
            each = (device_memory_mib or {}).get(arm)
            memory = each * campaign.arms[arm].gpus if each else None
            if not found:
                rows.append(_unmeasured(tier, arm, bool(slo)))
            rows += [_decide(tier, campaign, frame, arm, c, memory) for c in found]
    return rows


def _unmeasured(tier: Tier, arm: str, has_slo: bool) -> Decision:
    nothing = Estimate(value=None)
    why = caution("tier_not_measured", arm=arm) if has_slo else caution("tier_without_slo")
    return Decision(
        tier=tier.name, workload=tier.workload, arm=arm, kind="", go="not measured",
        admission_limit=None, lowest_missed=None, limiting=None, goodput_requests_per_s=None,
        output_tokens_per_s=nothing, memory_ratio=None, price_per_million_output_tokens=nothing,
        tokens_per_joule=nothing, cards_needed=None,
        reasons=(why,),
    )  # fmt: skip


def _decide(
    tier: Tier, campaign: Campaign, frame: pd.DataFrame, arm: str, c: SloCapacity,
    memory_mib: float | None,
) -> Decision:  # fmt: skip
    reasons: list[Caution] = []
    level = {c.kind: _plain(c.highest_met)} if c.highest_met is not None else None
    options: dict[str, Any] = {"workload": tier.workload}

    def at_level(metric: str, unit: str) -> Estimate:
        if level is None:
            return Estimate(value=None, unit=unit)
        return run_estimate(frame, arm, level, metric, unit=unit, **options)

    rate = at_level("output_tokens_per_s", "tokens_per_s")
    energy = at_level("energy_per_output_token_j", "j_per_token")
    used, power = at_level("memory_used_mib", "mib"), at_level("power_w", "w")
    ratio = used.value / memory_mib if used.value is not None and memory_mib else None
    go = level is not None
    if not go:
        reasons.append(caution("slo_never_met"))
    elif c.limiting:
        reasons.append(caution("tier_limited_by", part=c.limiting, level=c.highest_met))
    if ratio is None:
        # Without a level within the SLO there is none whose peak could be judged.
        reasons += [caution("memory_not_measured")] if level is not None else []
    elif ratio > MEMORY_FULL:
        go = False
        reasons.insert(0, caution("memory_full", ratio=ratio))
    elif ratio > MEMORY_TIGHT:
        reasons.append(caution("memory_tight", ratio=ratio))
    reasons += [x for x in c.cautions if x.code not in {r.code for r in reasons}]
    spec = campaign.arms[arm]
    capacity = c.goodput_requests_per_s if c.kind == "rate_requests_per_s" else c.highest_met
    needed = cards_needed(tier.load, capacity, spec.gpus) if tier.load else None
    return Decision(
        tier=tier.name,
        workload=tier.workload,
        arm=arm,
        kind=c.kind,
        go="go" if go else "no-go",
        admission_limit=c.highest_met,
        lowest_missed=c.lowest_missed,
        limiting=c.limiting,
        goodput_requests_per_s=c.goodput_requests_per_s,
        output_tokens_per_s=rate,
        memory_ratio=ratio,
        price_per_million_output_tokens=_price(campaign, arm, rate, power.value),
        tokens_per_joule=tokens_per_joule(energy) if energy.value else Estimate(value=None),
        cards_needed=needed,
        reasons=tuple(reasons),
    )


def _plain(value: float) -> float:
    """Levels stand in the summary as whole numbers where they are whole."""
    return int(value) if value == int(value) else value


def cost_inputs(campaign: Campaign, arm: str, power_w: float | None = None) -> CostInputs:
    """Gather the prices a campaign gives for an arm."""
    spec = campaign.arms[arm]
    cost = spec.cost
    return CostInputs(
        price_per_hour=spec.price_per_hour,
        purchase=cost.purchase if cost else None,
        host=cost.host if cost else None,
        operation_per_year=cost.operation_per_year if cost else None,
        failure_ratio_per_year=cost.failure_ratio_per_year if cost else None,
        electricity_per_kwh=campaign.electricity_per_kwh,
        power_w=power_w,
        pue=cost.pue if cost else None,
        utilisation_ratio=cost.utilisation_ratio if cost else None,
        years=cost.years if cost else None,
        currency=campaign.currency or "",
    )


def _price(campaign: Campaign, arm: str, rate: Estimate, power_w: float | None) -> Estimate:
    inputs = cost_inputs(campaign, arm, power_w)
    if inputs.price_per_hour is not None:
        return price_per_million_tokens(rate, inputs.price_per_hour)
    owned = ownership(inputs, rate)
    return owned.per_million_output_tokens if owned else price_per_million_tokens(rate, None)


def decision_frame(decisions: Sequence[Decision]) -> pd.DataFrame:
    """Return decisions as a table, one row each; reasons as one sentence."""
    return pd.DataFrame(
        [
            {
                "tier": d.tier, "workload": d.workload, "arm": d.arm, "kind": d.kind, "go": d.go,
                "admission_limit": d.admission_limit, "lowest_missed": d.lowest_missed,
                "limiting": d.limiting, "goodput_requests_per_s": d.goodput_requests_per_s,
                "output_tokens_per_s": d.output_tokens_per_s.value,
                "memory_ratio": d.memory_ratio,
                "price_per_million_output_tokens": d.price_per_million_output_tokens.value,
                "tokens_per_joule": d.tokens_per_joule.value, "cards_needed": d.cards_needed,
                "why": " ".join(reason.message for reason in d.reasons),
            }
            for d in decisions
        ]
    )  # fmt: skip


def mixed_winners(decisions: Sequence[Decision]) -> Caution | None:
    """Say when no arm carries most in every tier: then there is no universal winner."""
    best: dict[str, set[str]] = {}
    for tier in dict.fromkeys(d.tier for d in decisions):
        mine = [d for d in decisions if d.tier == tier and d.go == "go"]
        if mine:
            top = max(d.admission_limit or 0.0 for d in mine)
            best[tier] = {d.arm for d in mine if d.admission_limit == top}
    if len(best) < 2 or set.intersection(*best.values()):
        return None
    said = "; ".join(f"{tier}: {', '.join(sorted(arms))}" for tier, arms in best.items())
    return caution("no_universal_winner", tiers=said)
