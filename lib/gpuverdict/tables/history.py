"""The history of an arm over its campaigns: did it change, and when?"""

from __future__ import annotations

import json
import math
from typing import Any

from gpuverdict.campaign import earlier_arms
from gpuverdict.schema import METRICS
from gpuverdict.stats import default_margin
from gpuverdict.steady import history_change
from gpuverdict.tables.rows import Scene, arm_level_value, levels_of
from gpuverdict.tables.words import metric_name, spoken
from gpuverdict.units import format_value

__all__ = ["histories"]


def histories(scene: Scene, lang: str = "en") -> list[dict[str, Any]]:
    """One table a retested arm: its primary metrics in each campaign, oldest first.

    Returns
    -------
    list of dict
        `arm`, `campaigns` (names) and `rows`, each with `workload`, `metric`, `values` (texts) and
        `outcome` (a sentence).

    Notes
    -----
    A value is the geometric mean over the levels that all of the arm's campaigns ran. What is
    judged is the series, by `steady.history_change`; two campaigns are judged by their comparison.
    """
    return [
        {
            "arm": arm,
            "campaigns": _campaigns(scene, arm),
            "rows": [
                row
                for workload in scene.campaign.all_workloads()
                for name in scene.campaign.primary
                if (row := _row(scene, arm, workload, name, lang))
            ],
        }
        for arm in dict.fromkeys(entry.arm for entry in scene.campaign.retest)
    ]


def _row(scene: Scene, arm: str, workload: str, name: str, lang: str) -> dict[str, Any] | None:
    metric, _, statistic = name.partition(".")
    statistic = statistic or "value"
    found = _series(scene, arm, workload, metric, statistic)
    if all(value is None for value in found):
        return None
    margins = scene.campaign.margins
    margin = margins.get(name, margins.get(metric, default_margin(metric, statistic)))
    unit = METRICS[metric].unit
    return {
        "workload": workload if len(scene.campaign.all_workloads()) > 1 else "",
        "metric": metric_name(metric, statistic, lang),
        "values": ["–" if value is None else format_value(value, unit) for value in found],
        "outcome": _outcome(found, _campaigns(scene, arm), margin, lang),
    }


def _campaigns(scene: Scene, arm: str) -> list[str]:
    earlier = [name.rpartition("@")[2] for name in earlier_arms(scene.campaign, arm)]
    return [*earlier, scene.campaign.campaign]


def _series(
    scene: Scene, arm: str, workload: str, metric: str, statistic: str
) -> list[float | None]:
    """Geometric mean of each campaign over the levels they share; None where one lacks a value."""
    series = [*earlier_arms(scene.campaign, arm), arm]
    grids = [
        {json.dumps(dict(level)): level for level in levels_of(scene, one, workload)}
        for one in series
    ]
    shared = [level for key, level in grids[-1].items() if all(key in grid for grid in grids)]
    found: list[float | None] = []
    for one in series:
        values = [
            arm_level_value(scene, one, workload, level, metric, statistic) for level in shared
        ]
        known = [v for v in values if v is not None and v > 0]
        whole = bool(values) and len(known) == len(values)
        found.append(math.exp(sum(map(math.log, known)) / len(known)) if whole else None)
    return found


def _outcome(found: list[float | None], labels: list[str], margin: float, lang: str) -> str:
    known = [(label, v) for label, v in zip(labels, found, strict=True) if v is not None]
    result = history_change([v for _, v in known], margin)
    if result.outcome == "change" and result.index is not None:
        return spoken(
            lang, "history_change", change=result.change_ratio, since=known[result.index][0]
        )
    code = f"history_{result.outcome.replace(' ', '_')}"
    return spoken(lang, code, n=result.n, margin=margin)
