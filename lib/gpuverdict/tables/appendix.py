"""What stands at the end of a report: the words it uses, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuverdict.case import Case
from gpuverdict.schema import METRICS
from gpuverdict.tables.cells import translator
from gpuverdict.tables.markup import Section, render
from gpuverdict.tables.rows import arms_of, first_workload
from gpuverdict.tables.words import (
    metric_name,
    spoken,
)
from gpuverdict.text import SENTENCES

__all__ = ["glossary", "provenance"]

_GLOSSARY = (
    "prefill",
    "decode",
    "ttft",
    "tpot",
    "itl",
    "goodput",
    "slo",
    "run",
    "steady",
    "ratio",
    "interval",
    "margin",
    "equivalent",
    "inconclusive",
    "not_comparable",
    "rung",
    "adjusted",
    "scope",
)


def glossary(lang: str = "en") -> Section:
    """Explain the words of a report, with the formula of each metric."""
    terms = [
        (spoken(lang, f"term_{name}"), SENTENCES[f"term_{name}"][lang][1]) for name in _GLOSSARY
    ]
    formulas = [
        (metric_name(name, "value", lang), metric.formula, metric.unit)
        for name, metric in METRICS.items()
        if metric.formula
    ]
    markup = render("glossary.html", say=translator(lang), terms=terms, formulas=formulas)
    return Section(name="glossary", markup=markup, text="\n".join(name for name, _ in terms))


def provenance(case: Case, lang: str = "en") -> Section:
    """Name every input with its hash, the versions, and the command that makes it again."""
    used = _used_inputs(case)
    tools = sorted(
        {_tool(run.stored.info) for arm in arms_of(case) for run in case.measured.runs_of(arm)}
    )
    markup = render(
        "provenance.html",
        say=translator(lang),
        inputs=used,
        tools=tools,
        command=f"gpuverdict report {case.campaign.path.name} --only {case.spec.name}",
        versions=_versions(),
        campaign=case.campaign.campaign,
        workload=first_workload(case),
    )
    return Section(
        name="provenance", markup=markup, text="\n".join(f"{p} {h[:12]}" for p, h in used)
    )


def _tool(info: Mapping[str, Any]) -> str:
    return f"{info.get('tool') or info['source_format']} {info.get('tool_version') or ''}".strip()


def _used_inputs(case: Case) -> list[tuple[str, str]]:
    own = {r.path for arm in arms_of(case) for r in case.measured.runs_of(arm)}
    folders = {path.rsplit("/", 1)[0] for path in own}
    # Traces, probes and inventories lie beside the logs; logs of other arms are not this report's.
    others = {r.path for r in case.measured.runs} - own
    return [
        (path, digest)
        for path, digest in case.measured.inputs
        if path in own or (path not in others and path.rsplit("/", 1)[0] in folders)
    ]


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("gpuverdict", "numpy", "scipy", "polars", "pandas", "statsmodels", "matplotlib"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
