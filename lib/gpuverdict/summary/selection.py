"""One number of each run out of the long summary, of the window it is to be read in."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd

from gpuverdict.summary.campaign import Summary

__all__ = ["per_run"]


def per_run(
    summary: Summary, arms: Sequence[str], workload: str, metric: str, statistic: str
) -> pd.DataFrame:
    """Give one row a run: of the steady window where the run has one, else of the whole run.

    Returns
    -------
    pandas.DataFrame
        Rows of the summary's frame with `level_value`, by arm, level and repeat.
    """
    frame = summary.frame
    rows = frame[
        frame.arm.isin(arms)
        & (frame.workload == workload)
        & (frame.metric == metric)
        & (frame.statistic == statistic)
        & frame.window.isin(["steady", "whole_run"])
    ]
    rows = rows.sort_values("window").drop_duplicates(["arm", "run_id"])  # steady before whole_run
    values = [float(next(iter(json.loads(key).values()))) for key in rows.level]
    return rows.assign(level_value=values).sort_values(["arm", "level_value", "repeat_no"])
