"""One comparison, opened: what a notebook, a report or a person at the prompt starts from."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuverdict.campaign import Campaign, ComparisonSpec, read_campaign
from gpuverdict.errors import ParameterError
from gpuverdict.measured import Measured, measure
from gpuverdict.summary import Summary, summarize_measured
from gpuverdict.verdict import Verdict, judge

__all__ = ["Case", "open_campaign", "open_case"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A campaign with its data, one of its comparisons, and what was decided about it."""

    campaign: Campaign
    spec: ComparisonSpec
    measured: Measured
    summary: Summary
    verdict: Verdict

    def __str__(self) -> str:
        return str(self.verdict)


def open_campaign(
    campaign: str | Path,
    *,
    store: str | Path | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Callable[[Any], None] | None = None,
) -> tuple[Measured, Summary]:
    """Read a campaign file and everything it names, and summarise its runs.

    Raises
    ------
    CampaignError
        When the campaign file is at fault. Unreadable logs are listed, never raised.
    """
    measured = measure(
        read_campaign(campaign),
        store=Path(store) if store else None,
        jobs=jobs,
        cluster=cluster,
        progress=progress,
    )
    return measured, summarize_measured(measured)


def open_case(
    campaign: str | Path, comparison: str | None = None, *, store: str | Path | None = None
) -> Case:
    """Open one comparison of a campaign (the first one without a name).

    Raises
    ------
    ParameterError
        For a comparison the campaign does not have.

    Examples
    --------
    >>> case = open_case("data/h200/campaign.yaml", "eager")
    >>> case.verdict.cell("tpot_s", "p50", '{"concurrency": 1}').verdict
    'slower'
    """
    spec = find_comparison(read_campaign(campaign), comparison)
    measured, summary = open_campaign(campaign, store=store)
    return Case(
        campaign=measured.campaign,
        spec=spec,
        measured=measured,
        summary=summary,
        verdict=judge(measured, summary, spec),
    )


def find_comparison(campaign: Campaign, name: str | None) -> ComparisonSpec:
    """Find a comparison by name."""
    specs = [spec for spec in campaign.comparisons if isinstance(spec, ComparisonSpec)]
    if not specs:
        raise ParameterError("comparison", found="no comparison in the campaign", expected="one or more")
    if name is None:
        return specs[0]
    for spec in specs:
        if spec.name == name:
            return spec
    names = [str(spec.name) for spec in specs]
    near = difflib.get_close_matches(name, names, n=1)
    raise ParameterError(
        "comparison", found=repr(name)[:80], expected=near[0] if near else ", ".join(names)
    )
