"""The answer to a notebook's question in a few sentences, before its tables and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from gpuverdict.capacity import Claim, arm_memory, decision_table, device_memory
from gpuverdict.case import Case, device_identity
from gpuverdict.measured import Measured
from gpuverdict.summary import Summary
from gpuverdict.tables import opening
from gpuverdict.tables.markup import Section, render
from gpuverdict.tables.rows import arm_level_value, arms_of, capacity, first_workload, levels_of
from gpuverdict.tables.words import level_name, percent, spoken, spread
from gpuverdict.units import format_value

__all__ = [
    "answer",
    "campaign_answer",
    "capacity_answer",
    "claims_answer",
    "power_answer",
    "verdict_answer",
]


def answer(sentences: Iterable[Any], lang: str = "en") -> Section:
    """Set sentences as the answer to a question; of a figure the sentence on what it says here."""
    lines = [str(getattr(item, "finding", item)) for item in sentences]
    markup = render("answer.html", label=spoken(lang, "answer_heading"), lines=lines)
    return Section(name="answer", markup=markup, text="\n".join(lines))


def campaign_answer(measured: Measured, summary: Summary, lang: str = "en") -> Section:
    """Say what was measured, on which hardware, and what is missing."""
    titles, _ = device_identity(measured, lang)
    arms = list(measured.campaign.arms)
    devices = Counter(titles[arm] for arm in arms)
    sent = sum(summary.facts[run.key].window.n_sent for run in measured.runs)
    lines = [
        spoken(
            lang, "reply_measured", arms=len(arms), runs=len(measured.runs), requests=f"{sent:,}",
            devices="; ".join(f"{n} × {title}" for title, n in devices.items()),
        )
    ]  # fmt: skip
    missing = {
        "reply_lost": [item.path for item in measured.lost],
        "reply_no_runs": [arm for arm in arms if not measured.runs_of(arm)],
        "reply_no_trace": [arm for arm in arms if not measured.traces.get(arm)],
        "reply_no_probe": [arm for arm in arms if not measured.probes.get(arm)],
    }
    said = [
        spoken(lang, code, n=len(names), names=_named(names))
        for code, names in missing.items()
        if names
    ]
    return answer([*lines, *(said or [spoken(lang, "reply_nothing_missing")])], lang)


def _named(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


def verdict_answer(case: Case, lang: str = "en") -> Section:
    """Say whether the arms differ, phase by phase, and how far the comparison can be trusted."""
    lamp = opening.lamp(case, lang)
    return answer([*opening.three_sentences(case, lang), lamp.text], lang)


def power_answer(case: Case, lang: str = "en") -> Section:
    """Say of each arm at what power, energy and memory it ran, and whether it was throttled."""
    workload = first_workload(case)
    lines = []
    for arm in arms_of(case):
        levels = levels_of(case, arm, workload)
        found = {
            metric: [arm_level_value(case, arm, workload, k, metric, "value") for k in levels]
            for metric in (
                "power_w", "energy_per_output_token_j", "memory_used_mib", "throttled_ratio"
            )
        }  # fmt: skip
        memory = [v for v in found["memory_used_mib"] if v is not None]
        throttled = [v for v in found["throttled_ratio"] if v is not None]
        code = "reply_throttle_unknown"
        if throttled:
            code = "reply_throttled" if max(throttled) > 0 else "reply_not_throttled"
        unknown = spoken(lang, "word_not_measured")
        lines.append(
            spoken(
                lang, "reply_power", arm=arm,
                power=_or(spread(found["power_w"], "w"), unknown),
                energy=_or(spread(found["energy_per_output_token_j"], "j_per_token"), unknown),
                memory=format_value(max(memory), "mib") if memory else unknown,
                throttle=spoken(lang, code, share=percent(max(throttled, default=0.0))),
            )
        )  # fmt: skip
    return answer(lines, lang)


def _or(text: str, unknown: str) -> str:
    return unknown if text == "–" else text


def capacity_answer(case: Case, lang: str = "en") -> Section:
    """Say of each arm how much load it carries within the SLO, what fits, and a token's price."""
    workload = first_workload(case)
    lines = [] if case.campaign.slo_of(workload) else [spoken(lang, "reply_no_slo")]
    for arm in arms_of(case) if not lines else ():
        held = capacity(case, arm, workload)
        kind = next((k for level in levels_of(case, arm, workload) for k in level), "concurrency")
        if held.most is None:
            lines.append(spoken(lang, "reply_carries_none", arm=arm))
            continue
        ends = [level for level in (held.first_miss, *held.infeasible) if level is not None]
        code = "reply_carries_open" if held.open_ended else "reply_carries"
        most = level_name({kind: held.most}, lang)
        end = level_name({kind: min(ends)}, lang) if ends else most
        lines.append(spoken(lang, code, arm=arm, most=most, end=end))
    return answer([*lines, *_fits_and_costs(case, workload, lang)], lang)


def _fits_and_costs(case: Case, workload: str, lang: str) -> Iterable[str]:
    memory = device_memory(case.measured.inventory, case.measured.traces)
    decided = decision_table(case.summary.frame, case.campaign, device_memory_mib=memory)
    prices = {d.arm: d.price_per_million_output_tokens for d in decided if d.workload == workload}
    for arm in arms_of(case):
        plan = arm_memory(case.campaign, arm, workload, device_memory_mib=memory.get(arm))
        price, words = prices.get(arm), [spoken(lang, "reply_fits_unknown", arm=arm)]
        if plan is not None and len(plan.table):
            most = int(plan.table.iloc[-1]["concurrency"])
            words = [spoken(lang, "reply_fits", arm=arm, most=f"{most:,}")]
        if price is None or price.value is None:
            words.append(spoken(lang, "reply_no_price"))
        else:
            shown = f"{price.value:.4g} {case.campaign.currency or ''}".strip()
            words.append(spoken(lang, "reply_price", price=shown))
        yield " ".join(words)


def claims_answer(claims: Sequence[Claim], lang: str = "en") -> Section:
    """Say how many of a published table's claims can be so."""
    n = Counter(claim.standing for claim in claims)
    bad = n["impossible"] + n["contradicts itself"]
    code = "reply_claims_no" if bad else "reply_claims_open"
    if not bad and not n["needs a cause"]:
        code = "reply_claims_yes"
    return answer(
        [
            spoken(lang, code),
            spoken(
                lang, "reply_claims", n=len(claims), impossible=n["impossible"],
                contradicts=n["contradicts itself"], cause=n["needs a cause"],
                stands=n["stands"], unjudged=n["not judged"],
            ),
        ],
        lang,
    )  # fmt: skip
