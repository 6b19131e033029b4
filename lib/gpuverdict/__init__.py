"""gpuverdict: which GPU serves this model better, in which phase, by how much, and is it real?

The public names; everything else is private to its module. They are loaded on first use, so that
importing the package costs nothing.

Examples
--------
>>> import gpuverdict
>>> campaign = gpuverdict.read_campaign("data/h200/campaign.yaml")
>>> round(gpuverdict.compare_arms([6.0, 6.1, 5.9], [7.0, 7.1, 6.9], metric="tpot_s").ratio, 3)
1.167
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Campaign": "campaign",
    "CampaignError": "errors",
    "Case": "case",
    "Caution": "errors",
    "Comparison": "stats",
    "CurveComparison": "curves",
    "CurveFit": "curves",
    "Estimate": "units",
    "LogFormatError": "errors",
    "ParameterError": "errors",
    "Phases": "phases",
    "Run": "schema",
    "SchemaError": "errors",
    "Trace": "schema",
    "Verdict": "verdict",
    "adjust": "stats",
    "compare_arms": "stats",
    "compare_curves": "curves",
    "fit_curve": "curves",
    "open_case": "case",
    "phase_energy": "energy",
    "read_campaign": "campaign",
    "read_run": "recognise",
    "read_trace": "recognise",
    "split_phases": "phases",
    "summarize": "summary",
    "window_energy": "energy",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gpuverdict' has no attribute {name!r}")
    return getattr(import_module(f"gpuverdict.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])


if TYPE_CHECKING:
    from gpuverdict.campaign import Campaign, read_campaign
    from gpuverdict.case import Case, open_case
    from gpuverdict.energy import window_energy
    from gpuverdict.errors import (
        CampaignError,
        Caution,
        LogFormatError,
        ParameterError,
        SchemaError,
    )
    from gpuverdict.recognise import read_run, read_trace
    from gpuverdict.schema import Run, Trace
    from gpuverdict.stats import Comparison, adjust, compare_arms
    from gpuverdict.summary import summarize
    from gpuverdict.units import Estimate
    from gpuverdict.verdict import Verdict
