"""What a campaign holds: its arms, how often each level was run, what is missing, what to mind."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from gpuverdict.campaign import Arm
from gpuverdict.case import device_identity
from gpuverdict.errors import Caution
from gpuverdict.measured import Measured, MeasuredRun
from gpuverdict.summary import Summary
from gpuverdict.tables.cells import translator
from gpuverdict.tables.markup import Section, render
from gpuverdict.tables.words import caution_text, level_name, remedy_text, spoken

__all__ = ["arms_table", "coverage_table", "missing_table"]


def arms_table(measured: Measured, lang: str = "en") -> Section:
    """Show each arm: what its devices say, what serves on them, and what was recorded."""
    titles, cautions = device_identity(measured, lang)
    rows = [
        _arm_row(measured, name, arm, titles[name], lang)
        for name, arm in measured.campaign.arms.items()
    ]
    said = [
        (name, f"{caution_text(c, lang)} {remedy_text(c, lang)}".strip())
        for name, found in cautions.items()
        for c in found
    ]
    heads = [
        spoken(lang, code)
        for code in (
            "arm_device",
            "arm_model",
            "arm_engine",
            "arm_cards",
            "arm_starts",
            "arm_tool",
            "arm_trace",
            "arm_probe",
        )
    ]
    title = measured.campaign.title or measured.campaign.campaign
    if measured.campaign.simulated:
        title = spoken(lang, "title_simulated", title=title)
    markup = render(
        "arms_table.html", say=translator(lang), rows=rows, heads=heads, said=said, title=title
    )
    return Section(name="arms", markup=markup, text="\n".join(f"{n}: {titles[n]}" for n in titles))


def _arm_row(measured: Measured, name: str, arm: Arm, device: str, lang: str) -> dict[str, Any]:
    runs = measured.runs_of(name)
    model = measured.campaign.model_of(name)
    tools = sorted({_tool(run) for run in runs})
    traces = measured.traces[name]
    samples = sum(t.samples.height for t in traces)
    trace = (
        spoken(lang, "arm_samples", n=f"{samples:,}")
        if samples
        else spoken(lang, "word_not_measured")
    )
    probes = len(measured.probes[name])
    factors = ", ".join(f"{k} {v}" for k, v in arm.factors.items())
    values = [
        device,
        " ".join(filter(None, [model.name if model else None, arm.precision])),
        " ".join(
            filter(None, [arm.engine, arm.engine_version, f"({factors})" if factors else None])
        ),
        ", ".join(arm.cards) or "–",
        spoken(lang, f"arm_starts_{arm.server_starts}"),
        ", ".join(tools) or "–",
        trace,
        str(probes) if probes else "–",
    ]
    return {"name": name, "values": values}


def _tool(run: MeasuredRun) -> str:
    info = run.stored.info
    return f"{info.get('tool') or info['source_format']} {info.get('tool_version') or ''}".strip()


def coverage_table(measured: Measured, summary: Summary, lang: str = "en") -> Section:
    """Count runs and requests of each arm and level, so that gaps in the design can be seen."""
    places = sorted({(r.workload, tuple(sorted(r.level.items()))) for r in measured.runs})
    several = len(measured.campaign.all_workloads()) > 1
    columns = [
        (f"{workload}: " if several else "") + level_name(dict(level), lang)
        for workload, level in places
    ]
    most: Counter[Any] = Counter()
    counted: dict[tuple[str, Any], tuple[int, int]] = {}
    for arm in measured.campaign.arms:
        for place in places:
            own = [
                r
                for r in measured.runs_of(arm)
                if (r.workload, tuple(sorted(r.level.items()))) == place
            ]
            sent = sum(summary.facts[r.key].window.n_sent for r in own)
            counted[(arm, place)] = (len(own), sent)
            most[place] = max(most[place], len(own))
    rows = [
        {
            "name": arm,
            "cells": [
                {
                    "runs": counted[(arm, place)][0],
                    "requests": f"{counted[(arm, place)][1]:,}",
                    "short": counted[(arm, place)][0] < most[place],
                }
                for place in places
            ],
        }
        for arm in measured.campaign.arms
    ]
    markup = render("coverage_table.html", say=translator(lang), columns=columns, rows=rows)
    lines = [
        f"{arm}: {sum(counted[(arm, p)][0] for p in places)} runs" for arm in measured.campaign.arms
    ]
    return Section(name="coverage", markup=markup, text="\n".join(lines))


def missing_table(measured: Measured, summary: Summary, lang: str = "en") -> Section:
    """List what gave nothing and what to mind: lost files, and cautions by frequency."""
    found: dict[str, list[Caution]] = defaultdict(list)
    where: dict[str, set[str]] = defaultdict(set)
    for run in measured.runs:
        fact = summary.facts[run.key]
        for c in {c.code: c for c in fact.cautions}.values():
            found[c.code].append(c)
            where[c.code].add(run.arm)
    for c in measured.cautions:
        found[c.code].append(c)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [
        {
            "n": len(cautions),
            "arms": ", ".join(sorted(where[code])),
            "message": caution_text(cautions[0], lang),
            "remedy": remedy_text(cautions[0], lang),
        }
        for code, cautions in ordered
    ]
    markup = render(
        "missing_table.html",
        say=translator(lang),
        lost=measured.lost,
        rows=rows,
        total=len(measured.runs),
    )
    lines = [f"{len(measured.lost)} files lost", *(f"{len(c)} x {code}" for code, c in ordered)]
    return Section(name="missing", markup=markup, text="\n".join(lines))
