"""The top of a report: title by devices, three sentences, the lamp, what would decide it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpuverdict import stats
from gpuverdict.case import Case, device_identity
from gpuverdict.errors import Caution
from gpuverdict.tables.rows import (
    Level,
    arms_of,
    capacity,
    common_levels,
    find,
    first_workload,
    fixed_rows,
    has_ratio,
    knee_level,
    levels_of,
    undisturbed,
)
from gpuverdict.tables.words import (
    at_level,
    caution_text,
    level_name,
    metric_name,
    remedy_text,
    spoken,
)
from gpuverdict.verdict import Cell

__all__ = ["Lamp", "device_text", "lamp", "next_actions", "subtitle", "three_sentences", "title"]

# Below this ratio a percentage reads better than a factor.
PERCENT_BELOW = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Lamp:
    """How far the comparison can be trusted as a whole: level, scope, and at most three reasons."""

    level: str
    scope: str
    text: str
    reasons: tuple[tuple[str, str, str], ...]
    more: int
    tipping: str


def device_text(case: Case, arm: str, lang: str = "en") -> str:
    """Say what an arm's devices are: as they say themselves, else as declared."""
    if lang == "en":
        return case.devices[arm]
    return device_identity(case.measured, lang)[0][arm]


def title(case: Case, lang: str = "en") -> str:
    """Head a report: which devices, which arms."""
    baseline, candidate = arms_of(case)
    a, b = device_text(case, baseline, lang), device_text(case, candidate, lang)
    if a == b:
        text = spoken(lang, "title_same", candidate=candidate, baseline=baseline, device=a)
    else:
        text = spoken(lang, "title_two", candidate=candidate, baseline=baseline, a=a, b=b)
    if case.campaign.simulated:
        text = spoken(lang, "title_simulated", title=text)
    return text


def subtitle(case: Case, lang: str = "en") -> str:
    """Name model, precision, engine, lengths, load, runs and cards in one line."""
    workload = first_workload(case)
    load = case.campaign.all_workloads()[workload]
    arms = [case.campaign.arms[name] for name in arms_of(case)]
    models = [case.campaign.model_of(name) for name in arms_of(case)]
    parts = [_either([m.name if m else None for m in models])]
    parts.append(_either([a.precision for a in arms]))
    parts.append(_either([" ".join(filter(None, (a.engine, a.engine_version))) for a in arms]))
    if load.input_tokens and load.output_tokens:
        parts.append(spoken(lang, "lengths", n=load.input_tokens, m=load.output_tokens))
    levels = [f"{next(iter(v.values())):g}" for v in common_levels(case, workload)]
    if levels:
        code = "load_open" if load.load == "open" else "load_closed"
        parts.append(spoken(lang, code, levels=" / ".join(levels)))
    parts.append(_runs(case, lang))
    parts.append(_cards(case, lang))
    if len(case.campaign.all_workloads()) > 1:
        parts.insert(0, workload)
    return " · ".join(part for part in parts if part)


def _either(values: Sequence[str | None]) -> str:
    known = list(dict.fromkeys(v for v in values if v))
    return known[0] if len(known) == 1 else " / ".join(reversed(known))


def _runs(case: Case, lang: str) -> str:
    facts = [f for f in case.summary.facts.values() if f.run.arm in arms_of(case)]
    repeats = sorted(
        {len({r.repeat_no for r in case.measured.runs_of(arm)}) for arm in arms_of(case)}
    )
    sent = sorted(f.window.n_sent for f in facts)
    if not sent:
        return spoken(lang, "no_runs")
    runs = f"{repeats[0]}" if len(repeats) == 1 else f"{repeats[0]}–{repeats[-1]}"
    requests = f"{sent[0]}" if sent[0] == sent[-1] else f"{sent[0]}–{sent[-1]}"
    return spoken(lang, "runs_by_requests", runs=runs, requests=requests)


def _cards(case: Case, lang: str) -> str:
    baseline, candidate = (case.campaign.arms[name].cards for name in arms_of(case))
    if baseline and baseline == candidate:
        return spoken(lang, "cards_same", n=len(baseline))
    n = max(len(baseline), len(candidate))
    return spoken(lang, "cards_each", n=n) if n else spoken(lang, "cards_unknown")


def three_sentences(case: Case, lang: str = "en") -> list[str]:
    """Answer in one sentence each: prefill, decode, capacity; all from the numbers."""
    return [_prefill(case, lang), _decode(case, lang), _carried(case, lang)]


def _size(cell: Cell, lang: str) -> str:
    """Say how far a ratio lies from 1: a factor where it is large, else a percentage.

    A rate that falls is always a percentage: "2 times less" means nothing.
    """
    ratio = cell.comparison.ratio or 1.0
    rate = cell.key.metric.endswith("_per_s")
    factor = ratio if rate else max(ratio, 1 / ratio)
    if factor >= PERCENT_BELOW:
        return spoken(lang, "size_factor", factor=f"{factor:.1f}")
    return spoken(lang, "size_percent", percent=f"{100 * abs(ratio - 1):.2g}")


def _interval(cell: Cell) -> str:
    c = cell.comparison
    if c.ratio is None:
        return ""
    if c.low is None or c.high is None:
        return f"{c.ratio:.2f}"
    return f"{c.ratio:.2f} [{c.low:.2f}, {c.high:.2f}]"


def _clause(cell: Cell, kind: str, where: str, lang: str) -> str:
    word = cell.verdict.replace(" ", "_")
    if word == "inconclusive" and "single-run" in cell.comparison.modifiers:
        word = "single_run"
    return spoken(
        lang,
        f"{kind}_{word}",
        size=_size(cell, lang),
        where=where,
        interval=_interval(cell),
        margin=f"{100 * cell.comparison.margin:.0f} %",
        reason=" ".join(caution_text(c, lang) for c in cell.comparison.cautions[:1]),
    )


def _prefill(case: Case, lang: str) -> str:
    return _phase(case, lang, "ttft_s", "prefill")


def _decode(case: Case, lang: str) -> str:
    return _phase(case, lang, "tpot_s", "decode")


def _phase(case: Case, lang: str, metric: str, kind: str) -> str:
    """Answer for one phase: for one user (the lowest level), then at the level shown."""
    workload = first_workload(case)
    shared = common_levels(case, workload)
    level, _ = knee_level(case, workload)
    places = [level] if not shared or shared[0] == level else [shared[0], level]
    found = [find(case, metric, "p50", place, workload) for place in places]
    cells = [cell for cell in found if cell is not None and has_ratio(cell)]
    if not cells:
        return _unanswered(case, lang, metric, f"{kind}_unknown", workload)
    clauses = [
        _clause(cell, kind if number == 0 else "also", _user_or_level(cell.level, lang), lang)
        for number, cell in enumerate(cells)
    ]
    return spoken(lang, "clause_end", text=spoken(lang, "clause_joint").join(clauses))


def _unanswered(case: Case, lang: str, metric: str, code: str, workload: str) -> str:
    """Say why no ratio stands behind a sentence: refused, or not measured."""
    for cell in case.verdict.cells:
        if cell.key.metric == metric and cell.key.workload == workload and cell.comparison.cautions:
            reason = caution_text(cell.comparison.cautions[0], lang)
            return spoken(lang, code, reason=reason)
    return spoken(lang, code, reason="").rstrip()


def _user_or_level(level: Level | None, lang: str) -> str:
    if level and dict(level) == {"concurrency": 1}:
        return spoken(lang, "for_one_user")
    return at_level(level, lang)


def _carried(case: Case, lang: str) -> str:
    workload = first_workload(case)
    baseline, candidate = (capacity(case, arm, workload) for arm in arms_of(case))
    kind = next((k for v in levels_of(case, baseline.arm, workload) for k in v), "concurrency")

    def shown(n: float | None) -> str:
        return spoken(lang, "capacity_none") if n is None else level_name({kind: n}, lang)

    parts = []
    if not case.campaign.slo_of(workload):
        parts.append(spoken(lang, "carried_no_slo"))
    elif baseline.most is None and candidate.most is None:
        parts.append(spoken(lang, "carried_neither"))
    elif baseline.most == candidate.most:
        code = (
            "carried_both_top" if baseline.open_ended and candidate.open_ended else "carried_both"
        )
        parts.append(spoken(lang, code, level=shown(baseline.most)))
    else:
        parts.append(
            spoken(
                lang,
                "carried_each",
                candidate=shown(candidate.most),
                baseline=shown(baseline.most),
                name=baseline.arm,
            )
        )
    for own, other in ((candidate, baseline), (baseline, candidate)):
        for value, reason in sorted(own.infeasible.items()):
            runs = other.highest_run is not None and value not in other.infeasible
            ran = value in {next(iter(x.values())) for x in levels_of(case, other.arm, workload)}
            code = "carried_only_other" if runs and ran else "carried_infeasible"
            parts.append(
                spoken(lang, code, level=f"{value:g}", other=other.arm, arm=own.arm, reason=reason)
            )
    parts += undisturbed(case, workload, lang)
    level, _ = knee_level(case, workload)
    cell = find(case, "output_tokens_per_s", "value", level, workload)
    if has_ratio(cell) and cell is not None:
        parts.append(_clause(cell, "throughput", at_level(level, lang), lang))
    return spoken(lang, "sentence_joint").join(parts)


def lamp(case: Case, lang: str = "en") -> Lamp:
    """Say once what holds for the whole comparison, gravest first, and what would undo it."""
    c = case.verdict.comparability
    reasons = _merged(c.reasons, lang)
    # What widens the scope is said by the scope word; the reader acts on the rest.
    ordered = sorted(reasons, key=lambda r: _gravity(r, c.refused))
    weakest = _weakest(case)
    tipping, short = "", ""
    if weakest is not None:
        cell, factor = weakest
        short = spoken(lang, "tips_short", size=f"{100 * factor:.2g} %")
        tipping = spoken(
            lang,
            "tips_long",
            size=f"{100 * factor:.2g} %",
            word=spoken(lang, f"word_{cell.verdict}"),
            metric=metric_name(cell.key.metric, cell.key.statistic, lang),
            where=at_level(cell.level, lang),
        )
    refused = {r.code for r in c.refused}
    originals = {r.code: r for r in c.reasons}
    shown = tuple(
        (
            r.message if r not in c.reasons else caution_text(r, lang),
            remedy_text(originals[r.code], lang),
            "" if r.code in refused else short,
        )
        for r in ordered[:3]
    )
    return Lamp(
        level=c.level,
        scope=c.scope,
        text=spoken(lang, f"lamp_{c.level.replace(' ', '_')}"),
        reasons=shown,
        more=max(0, len(ordered) - 3),
        tipping=tipping if shown else "",
    )


def _merged(reasons: Sequence[Caution], lang: str) -> list[Caution]:
    """Say once what holds for both arms: one reason a code, with the sentences of all of them."""
    by_code: dict[str, list[Caution]] = {}
    for reason in reasons:
        by_code.setdefault(reason.code, []).append(reason)
    out = []
    for found in by_code.values():
        text = " ".join(dict.fromkeys(caution_text(c, lang) for c in found))
        out.append(found[0] if len(found) == 1 else replace(found[0], message=text, values={}))
    return out


_ORDER = (
    "not_interleaved",
    "same_server_start",
    "this_card_only",
    "factor_differs",
    "client_differs",
    "each_tuned",
    "unchecked",
    "runs_not_fixed",
)


def _gravity(reason: Caution, refused: Sequence[Caution]) -> tuple[int, int]:
    if reason.code in {r.code for r in refused}:
        return (0, 0)
    return (1, -1 if reason.code not in _ORDER else _ORDER.index(reason.code))


def _weakest(case: Case) -> tuple[Cell, float] | None:
    """Find the decided cell of the fixed rows that the smallest other difference would undo."""
    found: list[tuple[float, Cell]] = []
    for row in fixed_rows(case):
        if row.cell is None:
            continue
        factor = stats.tipping_point(row.cell.comparison).factor_ratio
        if factor is not None and math.isfinite(factor):
            found.append((factor, row.cell))
    if not found:
        return None
    factor, cell = min(found, key=lambda pair: pair[0])
    return cell, factor


# More runs than this is no plan but another way to say "undecided".
IMPRACTICAL_RUNS = 60


def next_actions(case: Case, lang: str = "en") -> list[str]:
    """List what to measure next, most cells decided a run first; at most five."""
    lines = []
    for action in case.verdict.actions[:5]:
        text = spoken(lang, action.code, **dict(action.values))
        code = "action_gain"
        if action.code == "action_more_runs":
            # The cost is that of the lower end; the sentence before gives both.
            code = "action_impractical" if action.runs > IMPRACTICAL_RUNS else "action_gain_from"
        gain = spoken(lang, code, runs=action.runs, cells=action.cells)
        lines.append(f"{text} {gain}")
    return lines
