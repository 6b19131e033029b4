"""The points of a curve: which are usable, which are one level, and whether a line fits them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from gpuverdict.curves.step import lack_of_fit
from gpuverdict.errors import Caution, ParameterError
from gpuverdict.text import caution

__all__ = ["Level", "collect_points", "group_levels", "level_of", "linear_p"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level over all sweeps: geometric means of batch and value."""

    batch: float
    value_s: float
    n: int


def _numbers(values: Any, name: str) -> list[float | None]:
    try:
        return [None if value is None else float(value) for value in values]
    except (TypeError, ValueError):
        raise ParameterError(
            name, found=f"{values!r:.60}", expected="a sequence of numbers"
        ) from None


def collect_points(
    batch: Sequence[float],
    tpot_s: Sequence[float | None],
    sweep: Sequence[Hashable] | None,
    infeasible: Sequence[float],
) -> tuple[list[tuple[float, float, Any]], list[Caution]]:
    """Usable points in an order that does not depend on the order given."""
    batches, times = _numbers(batch, "batch"), _numbers(tpot_s, "tpot_s")
    labels = list(sweep) if sweep is not None else [0] * len(batches)
    if not len(labels) == len(batches) == len(times):
        raise ParameterError(
            "curve",
            found=f"{len(batches)}, {len(times)} and {len(labels)} values",
            expected="three lists of one length",
        )
    stop = min(infeasible, default=math.inf)
    points, lost = [], 0
    for b, y, s in zip(batches, times, labels, strict=True):
        if b is None or y is None or not (math.isfinite(b) and math.isfinite(y)):
            lost += 1
        elif b <= 0 or y <= 0:
            raise ParameterError(
                "curve", found=f"the point ({b}, {y})", expected="positive batch and time"
            )
        elif b >= stop:
            lost += 1
        else:
            points.append((float(b), float(y), s))
    points.sort(key=lambda point: (point[0], point[1], repr(point[2])))
    return points, [caution("points_left_out", n=lost)] if lost else []


def group_levels(
    points: Sequence[tuple[float, float, Any]],
) -> list[list[tuple[float, float, Any]]]:
    """Points of one level: equal batches, or achieved batches that lie close over the sweeps.

    An achieved concurrency wanders by a few per cent between sweeps; two points of one sweep are
    never one level.
    """
    groups: list[list[tuple[float, float, Any]]] = []
    for point in points:
        last = groups[-1] if groups else []
        same = bool(last) and point[0] == last[-1][0]
        near = (
            bool(last)
            and math.log(point[0] / last[0][0]) < math.log(1.10)
            and point[2] not in {s for _, _, s in last}
        )
        if same or near:
            last.append(point)
        else:
            groups.append([point])
    return groups


def level_of(group: Sequence[tuple[float, float, Any]]) -> Level:
    """Return the geometric means of a level; equal values stay what they are, to the last bit."""
    return Level(
        batch=_geometric_mean([b for b, _, _ in group]),
        value_s=_geometric_mean([y for _, y, _ in group]),
        n=len(group),
    )


def _geometric_mean(values: Sequence[float]) -> float:
    if min(values) == max(values):
        return values[0]
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def linear_p(
    groups: Sequence[Sequence[tuple[float, float, Any]]], mean_fit: Any, design: str
) -> float | None:
    """Lack of fit of the line; None without replicates that cover every level."""
    alpha, beta = float(mean_fit.alpha), float(mean_fit.beta)
    if design == "cells":
        return _pure_error_p(groups, alpha, beta)
    sweeps = sorted({s for group in groups for _, _, s in group}, key=repr)
    tables = [{s: (b, y) for b, y, s in group} for group in groups]
    complete = [s for s in sweeps if all(s in table for table in tables)]
    if len(complete) < 2 or len(groups) < 3:
        return None
    b, y = (np.array([[table[s][i] for table in tables] for s in complete]) for i in (0, 1))
    p = float(lack_of_fit(np.log(y), np.log(alpha + beta * b), 2))
    return p if math.isfinite(p) else None


def _pure_error_p(
    groups: Sequence[Sequence[tuple[float, float, Any]]], alpha: float, beta: float
) -> float | None:
    z = [np.array([math.log(y) - math.log(alpha + beta * b) for b, y, _ in g]) for g in groups]
    df_error = sum(len(row) - 1 for row in z)
    df_fit = len(groups) - 2
    error = math.fsum(float(((row - row.mean()) ** 2).sum()) for row in z)
    if df_fit < 1 or df_error < 1 or error == 0:
        return None
    lack = math.fsum(len(row) * float(row.mean()) ** 2 for row in z)
    return float(special.fdtrc(df_fit, df_error, (lack / df_fit) / (error / df_error)))
