"""The long frame as plain values by place: thousands of look-ups cost too much in pandas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

__all__ = ["Found", "Rows", "index_rows"]


class Found(NamedTuple):
    """One row of the summary, without its place."""

    run_id: str
    arm: str
    repeat_no: int
    value: float | None
    n: int
    cautions: Sequence[str]


# (metric, statistic, window) -> rows, in the frame's order.
Rows = Mapping[tuple[str, str, str], list[Found]]


def index_rows(frame: pd.DataFrame, arms: Iterable[str]) -> dict[tuple[str, str], Rows]:
    """Return the rows of some arms by (workload, level), then by metric, statistic and window."""
    own = frame[frame.arm.isin(list(arms))]
    names = ("workload", "level", "metric", "statistic", "window", "run_id", "arm", "repeat_no",
             "value", "n", "cautions")  # fmt: skip
    found: dict[tuple[str, str], dict[tuple[str, str, str], list[Found]]] = {}
    for row in zip(*(own[name].tolist() for name in names), strict=True):
        workload, level, metric, statistic, window, run_id, arm, repeat_no, value, n, said = row
        known = None if value is None or value != value else float(value)
        place = found.setdefault((workload, level), {})
        place.setdefault((metric, statistic, window), []).append(
            Found(run_id, arm, int(repeat_no), known, int(n), said)
        )
    return dict(found)
