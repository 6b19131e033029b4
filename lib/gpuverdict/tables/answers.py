"""Tables of the answers beside the verdicts: what binds, curves, capacity, published claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from gpuverdict.capacity import Claim, arm_memory, decision_table, device_memory
from gpuverdict.case import Case
from gpuverdict.curves import CurveFit
from gpuverdict.errors import ParameterError
from gpuverdict.schema import METRICS
from gpuverdict.tables.cells import translator
from gpuverdict.tables.markup import Section, render
from gpuverdict.tables.notes import Note, merged, noted
from gpuverdict.tables.rows import arms_of, first_workload
from gpuverdict.tables.words import (
    caution_text,
    level_name,
    metric_name,
    percent,
    remedy_text,
    spoken,
)
from gpuverdict.units import Estimate, format_value

__all__ = [
    "capacity_table",
    "claims_table",
    "curve_table",
    "findings_table",
    "plain_table",
    "sheets",
]


def plain_table(
    anchor: str,
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    reading: str = "",
    notes: Iterable[str] = (),
    nothing: str = "",
    right: Iterable[str] = (),
) -> Section:
    """Set rows of text under a heading; `right` names the columns of numbers."""
    said = list(dict.fromkeys(notes))
    markup = render(
        "plain_table.html",
        anchor=anchor,
        title=title,
        heads=list(heads),
        rows=list(rows),
        reading=reading if rows else "",
        notes=said,
        nothing=nothing,
        right=set(right),
    )
    lines = [" | ".join(row) for row in rows] or [nothing]
    missing = () if rows else tuple(said or [nothing])
    return Section(name=anchor, markup=markup, text="\n".join(lines), title=title, missing=missing)


def sheets(sections: Sequence[Section], lang: str = "en") -> Section:
    """Set sections one after the other; those with nothing to show share one short list at the end.

    Parameters
    ----------
    sections : sequence of Section
        Each with its title; one without rows says in `missing` why.
    lang : str
        `en` or `zh`.

    Returns
    -------
    Section
        Reasons that are the same are said once, for all the sections that they empty.
    """
    shown = [s for s in sections if not s.missing]
    empty: dict[tuple[str, ...], list[str]] = {}
    for section in sections:
        if section.missing:
            empty.setdefault(section.missing, []).append(section.title)
    joint = spoken(lang, "list_joint")
    lines = [(joint.join(titles), " ".join(why)) for why, titles in empty.items()]
    markup = Markup("\n").join(s.markup for s in shown)
    if lines:
        markup += render("unmeasured.html", say=translator(lang), lines=lines)
    texts = [*(s.text for s in shown), *(f"{what}: {why}" for what, why in lines)]
    return Section(name="sheets", markup=markup, text="\n".join(texts))


def findings_table(case: Case, lang: str = "en") -> Section:
    """List what binds in each arm, why, what would confirm it, what to try, and how to check it."""
    rows = []
    for finding in case.findings:
        message, confirm, remedy, check = finding.render(lang)
        rows.append([finding.arm, level_name(finding.level, lang), message, confirm, remedy, check])
    heads = [
        spoken(lang, code)
        for code in (
            "col_arm",
            "col_level",
            "finding_message",
            "finding_confirm",
            "finding_remedy",
            "finding_check",
        )
    ]
    return plain_table(
        "findings",
        spoken(lang, "finding_heading"),
        heads,
        rows,
        reading=spoken(lang, "finding_reading"),
        nothing=spoken(lang, "finding_nothing"),
    )


def _identified(fit: CurveFit, name: str, lang: str) -> str:
    """Give a parameter of the linear step where that model stands and the levels identify it."""
    if fit.model != "linear":
        return "–"
    if any(c.code.endswith("_not_identified") for c in fit.params[name].cautions):
        return spoken(lang, "curve_not_identified")
    return _estimate(fit.params[name])


def _estimate(value: Estimate | None, unit: str | None = None) -> str:
    if value is None or value.value is None:
        return "–"
    known = value.low is not None and value.high is not None
    try:
        text = format_value(value.value, unit or value.unit)
        ends = [format_value(v, unit or value.unit, value.value) for v in (value.low, value.high)]
    except ParameterError:  # a unit of its own, such as a price
        text, ends = (
            f"{value.value:.4g}",
            [f"{v:.4g}" for v in (value.low, value.high) if v is not None],
        )
    if not known:
        return text
    return f"{text} [{', '.join(end.split(' ')[0] for end in ends)}]"


def curve_table(case: Case, lang: str = "en") -> Section:
    """Give the fitted step of each arm: fixed part, part a stream, saturation, fit, range."""
    rows, notes = [], list[Note]()
    for workload, (one, two, both) in case.curves.items():
        for arm, fit in zip(arms_of(case), (one, two), strict=True):
            if fit is None:
                continue
            named = arm if len(case.curves) == 1 else f"{arm} ({workload})"
            shown = [named, fit.model]
            for name in ("alpha_s", "beta_s", "x_inf_tokens_per_s", "b_half"):
                shown.append(_identified(fit, name, lang))
                # Of a step that was rejected its parameters need no comment either.
                said = fit.params[name].cautions if fit.model == "linear" else ()
                notes += [noted(named, c, lang) for c in said]
            p = "–" if fit.lack_of_fit_p is None else f"{fit.lack_of_fit_p:.2g}"
            shown += [
                p,
                percent(fit.max_error_ratio, 1),
                f"{fit.x_min:.3g}–{fit.x_max:.3g}",
                str(fit.n_sweeps),
            ]
            rows.append(shown)
            notes += [noted(named, c, lang) for c in fit.cautions]
        if both is not None:
            notes += [
                ("", f"{caution_text(c, lang)} {remedy_text(c, lang)}") for c in both.cautions
            ]
    codes = (
        "col_arm",
        "curve_model",
        "curve_alpha",
        "curve_beta",
        "curve_top",
        "curve_half",
        "curve_fit",
        "curve_error",
        "curve_range",
        "curve_sweeps",
    )
    heads = [spoken(lang, code) for code in codes]
    return plain_table(
        "curves",
        spoken(lang, "curve_heading"),
        heads,
        rows,
        notes=merged(notes, lang),
        reading=spoken(lang, "curve_table_reading"),
        nothing=spoken(lang, "curve_none"),
        right=heads[2:],
    )


def capacity_table(case: Case, lang: str = "en") -> Section:
    """Say for each arm: does it meet the SLO, up to which load, with what memory, at what price."""
    memory = device_memory(case.measured.inventory, case.measured.traces)
    decisions = decision_table(case.summary.frame, case.campaign, device_memory_mib=memory)
    currency = case.campaign.currency or ""
    rows, notes = [], list[Note]()
    for d in sorted((d for d in decisions if d.arm in arms_of(case)),
                    key=lambda d: arms_of(case).index(d.arm)):  # fmt: skip
        plan = arm_memory(case.campaign, d.arm, d.workload, device_memory_mib=memory.get(d.arm))
        holds = "–"
        if plan is not None and len(plan.table):
            holds = f"{int(plan.table.iloc[-1]['concurrency']):,}"
            notes += [noted(spoken(lang, "cap_holds"), c, lang) for c in plan.cautions]
        load = "–" if d.admission_limit is None else level_name({d.kind: d.admission_limit}, lang)
        rows.append(
            [
                d.arm,
                spoken(lang, f"go_{d.go.replace('-', '_').replace(' ', '_')}"),
                load,
                _limit_name(d.limiting, lang),
                "–"
                if d.goodput_requests_per_s is None
                else format_value(d.goodput_requests_per_s, "requests_per_s"),
                _estimate(d.output_tokens_per_s, "tokens_per_s"),
                percent(d.memory_ratio),
                holds,
                f"{_estimate(d.price_per_million_output_tokens)} {currency}".strip(),
                _estimate(d.tokens_per_joule),
            ]
        )
        notes += [noted(d.arm, c, lang) for c in d.reasons]
    codes = (
        "col_arm",
        "cap_go",
        "cap_load",
        "cap_limiting",
        "cap_goodput",
        "cap_rate",
        "cap_memory",
        "cap_holds",
        "cap_price",
        "cap_joule",
    )
    heads = [spoken(lang, code) for code in codes]
    return plain_table(
        "capacity",
        spoken(lang, "cap_heading"),
        heads,
        rows,
        notes=merged(notes, lang),
        reading=spoken(lang, "cap_reading"),
        nothing=spoken(lang, "cap_none", workload=first_workload(case)),
        right=heads[4:],
    )


def _limit_name(limiting: str | None, lang: str) -> str:
    """Name a part of the SLO as the other tables do."""
    metric, _, statistic = (limiting or "").partition(" ")
    return metric_name(metric, statistic, lang) if metric in METRICS else limiting or "–"


_STANDINGS = ("impossible", "contradicts itself", "needs a cause", "not judged", "stands")


def claims_table(claims: Sequence[Claim], lang: str = "en") -> Section:
    """List published claims, those that cannot be so first, each with its reason."""
    ordered = sorted(claims, key=lambda c: _STANDINGS.index(c.standing))
    rows = [
        [
            spoken(lang, f"standing_{c.standing.replace(' ', '_')}"),
            c.source,
            c.section,
            c.gpu,
            c.claim,
            caution_text(c.reason, lang),
        ]
        for c in ordered
    ]
    heads = [
        spoken(lang, code)
        for code in (
            "claim_standing",
            "claim_source",
            "claim_section",
            "claim_gpu",
            "claim_what",
            "claim_why",
        )
    ]
    counted = "; ".join(
        f"{spoken(lang, 'standing_' + s.replace(' ', '_'))}: {n}"
        for s in _STANDINGS
        if (n := sum(c.standing == s for c in claims))
    )
    table = plain_table(
        "claims",
        spoken(lang, "claim_heading"),
        heads,
        rows,
        reading=f"{spoken(lang, 'claim_reading')} {counted}",
        nothing=spoken(lang, "claim_none"),
    )
    return Section(name=table.name, markup=table.markup, text=counted)
