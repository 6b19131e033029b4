"""The tool's own summary against the rows: what differs, by how much, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuverdict.errors import Caution
from gpuverdict.ingest.columns import FloatArray
from gpuverdict.ingest.gaps import BoolArray, Gaps
from gpuverdict.text import caution

__all__ = ["compare_reported"]

# A tool's own figure and ours may differ by this ratio before it is said (format notes, rule 7).
_REPORTED_TOLERANCE = 0.01


def compare_reported(
    summary: Mapping[str, float],
    columns: Mapping[str, FloatArray],
    ok: BoolArray,
    gaps: Gaps | None,
    facts: Mapping[str, Any],
    explained: Mapping[str, str],
) -> list[Caution]:
    """Compare the tool's own summary with the rows; say what differs and why."""
    said: list[Caution] = []
    if not ok.size:
        return said
    samples = {name: columns[name][ok] for name in ("ttft_s", "tpot_s", "e2e_s")}
    if gaps is not None:
        samples["itl_s"] = gaps.cleared(~ok).flat_s
    for key, value in sorted(summary.items()):
        metric, _, statistic = key.partition(".")
        ours = _ours(metric, statistic, samples, columns, ok, facts)
        if ours is None or (value == 0 and not ok.any()):
            continue
        lowest, typical, highest = ours
        margin = _REPORTED_TOLERANCE * max(abs(value), abs(typical))
        if lowest - margin <= value <= highest + margin:
            continue
        code = explained.get(metric, "reported_differs")
        said.append(
            caution(code, metric=metric, statistic=statistic, reported=value, recomputed=typical)
        )
    return said


def _ours(
    metric: str,
    statistic: str,
    samples: Mapping[str, FloatArray],
    columns: Mapping[str, FloatArray],
    ok: BoolArray,
    facts: Mapping[str, Any],
) -> tuple[float, float, float] | None:
    """Give what the rows say: (lowest defensible, our value, highest defensible).

    Tools pick quantiles by different rules; any of them lies between the order statistics next to
    the rank, so only a value outside of these is a difference.
    """
    duration = facts["duration_s"]
    value: float | None = None
    if metric == "requests_per_s" and duration:
        value = float(ok.sum()) / duration
    elif metric == "output_tokens_per_s" and duration and facts["output_tokens_source"]:
        value = float(np.nansum(columns["output_tokens"][ok])) / duration
    if value is not None:
        return value, value, value
    if metric not in samples:
        return None
    known = np.sort(samples[metric][~np.isnan(samples[metric])])
    if not known.size:
        return None
    if statistic == "mean":
        value = float(known.mean())
        return value, value, value
    share = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}.get(statistic)
    if share is None:
        return None
    rank = share * (known.size - 1)
    below, above = max(0, int(rank) - 1), min(known.size - 1, math.ceil(rank) + 1)
    return float(known[below]), float(np.quantile(known, share)), float(known[above])
