"""The per-run summary: the replicate, and the only maker of run-level numbers.

`run_rows` computes the numbers of one run; `campaign` goes over a measured campaign run by run, so
that memory holds the gaps of one run at a time. Up to here frames are polars; what leaves is
pandas, in long form (`schema.SUMMARY`).
"""

from __future__ import annotations

from gpuverdict.summary.campaign import Summary, summarize, summarize_measured
from gpuverdict.summary.distributions import Row
from gpuverdict.summary.listing import summary_rows, summary_text
from gpuverdict.summary.run_rows import run_rows, within_slo
from gpuverdict.summary.selection import per_run

__all__ = [
    "Row",
    "Summary",
    "per_run",
    "run_rows",
    "summarize",
    "summarize_measured",
    "summary_rows",
    "summary_text",
    "within_slo",
]
