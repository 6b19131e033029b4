"""The index of a campaign: decision table first, then the pairs, then what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuverdict.campaign import Campaign, ComparisonSpec
from gpuverdict.measured import Measured
from gpuverdict.schema import METRICS
from gpuverdict.summary import Summary
from gpuverdict.tables.history import histories
from gpuverdict.tables.markup import render, stylesheet
from gpuverdict.tables.rows import (
    Level,
    arm_level_value,
    capacity,
    carried_without,
    levels_of,
    slo_text,
)
from gpuverdict.tables.words import at_level, level_name, metric_name, spoken, verdict_word
from gpuverdict.units import format_value

__all__ = ["index_html"]

_WORDS = ("faster", "slower", "better", "worse", "equivalent")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Campaign:
    """The campaign as measured, without a comparison."""

    campaign: Campaign
    measured: Measured
    summary: Summary
    disturbed: frozenset[str]


def index_html(
    measured: Measured, summary: Summary, rows: Sequence[Mapping[str, Any]], lang: str = "en"
) -> str:
    """Write the index page of a campaign.

    Parameters
    ----------
    measured, summary
        The campaign as measured.
    rows : sequence of mapping
        One a comparison: `name, folder, state, lines, error, chips` (`chips`: one mapping a
        headline, `metric, statistic, workload, verdict, ratio`), and the ids of `disturbed` runs.
    lang : str

    Returns
    -------
    str
        A page like a report: one file, no request, no script. The filter works by style alone and
        is left out where a browser cannot do that.
    """
    campaign = measured.campaign
    bad = frozenset(run_id for row in rows for run_id in row.get("disturbed", ()))
    scene = _Campaign(campaign=campaign, measured=measured, summary=summary, disturbed=bad)
    specs = {str(s.name): s for s in campaign.comparisons if isinstance(s, ComparisonSpec)}
    arms = list(campaign.arms)
    items = [_item(r, specs, lang) for r in rows]
    block = render(
        "index.html",
        say=lambda code, **values: spoken(lang, code, **values),
        title=_title(campaign, lang),
        name=campaign.campaign,
        arms=arms,
        decisions=_decisions(scene, arms, lang),
        items=items,
        matrix=_matrix(items, arms),
        histories=histories(scene, lang),
        lost=measured.lost,
        heads=_heads(campaign, lang),
    )
    return render(
        "page.html",
        say=lambda code, **values: spoken(lang, code, **values),
        title=_title(campaign, lang),
        lang=lang,
        style=stylesheet(),
        blocks=[block],
        links=[],
    )


def _matrix(items: Sequence[Mapping[str, Any]], arms: Sequence[str]) -> dict[str, Any] | None:
    """Set the comparisons by candidate and baseline; None where they would not fill a table."""
    pairs = {(item["candidate"], item["baseline"]): item for item in items}
    columns = [arm for arm in arms if any(arm == baseline for _, baseline in pairs)]
    lines = [arm for arm in arms if any(arm == candidate for candidate, _ in pairs)]
    if len(pairs) < 4 or len(columns) < 2 or len(lines) < 2:
        return None
    rows = [{"name": arm, "cells": [pairs.get((arm, other)) for other in columns]} for arm in lines]
    return {"columns": columns, "rows": rows}


def _title(campaign: Campaign, lang: str) -> str:
    title = campaign.title or campaign.campaign
    return spoken(lang, "title_simulated", title=title) if campaign.simulated else title


def _heads(campaign: Campaign, lang: str) -> list[str]:
    names = [name.partition(".") for name in campaign.primary]
    return [metric_name(metric, statistic or "value", lang) for metric, _, statistic in names]


def _decisions(scene: _Campaign, arms: Sequence[str], lang: str) -> list[dict[str, Any]]:
    """One row a model and workload: what each arm carries, and how fast it is at that level."""
    models = {arm: scene.campaign.model_of(arm) for arm in arms}
    names = list(dict.fromkeys(m.name if m else "–" for m in models.values()))
    out = []
    for model in names:
        for workload, spec in scene.campaign.all_workloads().items():
            lengths = ""
            if spec.input_tokens and spec.output_tokens:
                lengths = spoken(lang, "lengths", n=spec.input_tokens, m=spec.output_tokens)
            own = [(m.name if (m := models[arm]) else "–") == model for arm in arms]
            cells = [
                _decision(scene, arm, workload, lang) if mine else []
                for arm, mine in zip(arms, own, strict=True)
            ]
            if not any(cells):
                continue
            several = len(scene.campaign.all_workloads()) > 1
            out.append(
                {
                    "model": model,
                    "workload": workload if several else "",
                    "lengths": lengths,
                    "slo": slo_text(scene, workload),
                    "cells": cells,
                }
            )
    return out


def _decision(scene: _Campaign, arm: str, workload: str, lang: str) -> list[str]:
    levels = levels_of(scene, arm, workload)
    if not levels:
        return []
    kind = next(iter(levels[0]))
    carried = capacity(scene, arm, workload)
    lines = []
    if scene.campaign.slo_of(workload):
        if carried.most is None:
            lines.append(spoken(lang, "capacity_none"))
            shown: Level = levels[0]
        else:
            text = level_name({kind: carried.most}, lang)
            lines.append(f"≥ {text}" if carried.open_ended else text)
            shown = {kind: carried.most}
    else:
        lines.append(level_name(levels[-1], lang))
        shown = levels[-1]
    for metric, statistic in (
        ("output_tokens_per_s", "value"),
        ("tpot_s", "p50"),
        ("energy_per_output_token_j", "value"),
    ):
        value = _at(scene, arm, workload, shown, metric, statistic, levels)
        if value is not None:
            lines.append(
                format_value(value, METRICS[metric].unit) + ("" if metric != "tpot_s" else " TPOT")
            )
    if carried.most is None and scene.campaign.slo_of(workload):
        lines[1:] = [f"{line} {at_level(shown, lang)}" for line in lines[1:]]
    for level, reason in sorted(carried.infeasible.items()):
        lines.append(spoken(lang, "index_infeasible", level=f"{level:g}", reason=reason))
    lines += [
        spoken(lang, "index_undisturbed", level=level_name(level, lang))
        for level in carried_without(scene, arm, workload, scene.disturbed)
    ]
    return lines


def _at(
    scene: _Campaign,
    arm: str,
    workload: str,
    shown: Level,
    metric: str,
    statistic: str,
    levels: Sequence[Level],
) -> float | None:
    # Levels are looked up by value: 16 and 16.0 are one level but two JSON texts.
    level = next((v for v in levels if dict(v) == dict(shown)), None)
    return (
        None if level is None else arm_level_value(scene, arm, workload, level, metric, statistic)
    )


def _item(row: Mapping[str, Any], specs: Mapping[str, ComparisonSpec], lang: str) -> dict[str, Any]:
    spec = specs.get(str(row["name"]))
    words = [chip["verdict"] for chip in row["chips"]]
    if row["state"] == "failed" or (words and all(word == "not comparable" for word in words)):
        kind = "refused"
    else:
        kind = "decided" if any(word in _WORDS for word in words) else "open"
    return {
        "name": row["name"],
        "baseline": spec.baseline if spec else "",
        "candidate": str(spec.candidate) if spec else "",
        "treatment": ", ".join(spec.treatment) if spec else "",
        "href": f"{row['folder']}/report.html",
        "failed": row["state"] == "failed",
        "error": row["error"] or "",
        "kind": kind,
        "chips": [
            {
                "word": verdict_word(chip["verdict"], lang),
                "class": chip["verdict"].replace(" ", "-"),
                "metric": metric_name(chip["metric"], chip["statistic"], lang),
                "workload": chip["workload"],
                "ratio": "" if chip["ratio"] is None else f"{chip['ratio']:.3f}",
            }
            for chip in row["chips"]
        ],
    }
