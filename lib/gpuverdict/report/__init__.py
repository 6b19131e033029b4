"""Rendering: check parameters, run the notebooks, write the folders of a campaign.

`parameters` refuses a bad parameter before a kernel starts, `notebooks` runs one notebook and says
where it failed, `comparison` makes one folder, `folders` keeps two writers apart, `fingerprint`
says what did not change, and `batch` renders the comparisons and survives what fails. Heavy
imports happen inside functions: an unchanged campaign is recognised without them.
"""

from __future__ import annotations

from gpuverdict.report.batch import CampaignReport, render_campaign
from gpuverdict.report.comparison import ComparisonReport
from gpuverdict.report.notebooks import NotebookError, run_notebook
from gpuverdict.report.parameters import check_parameters, declared_parameters

__all__ = [
    "CampaignReport",
    "ComparisonReport",
    "NotebookError",
    "check_parameters",
    "declared_parameters",
    "render_campaign",
    "run_notebook",
]
