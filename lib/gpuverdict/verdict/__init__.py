"""Comparisons, margins and cautions become verdicts: one cell a level, metric and statistic.

`cells` decides one cell by the best rung of the ladder it can reach; `judge` decides a whole
comparison (families, headlines, what would decide the rest); `export` writes `verdicts.json`.
"""

from __future__ import annotations

from gpuverdict.verdict.cells import Cell
from gpuverdict.verdict.explain import explain
from gpuverdict.verdict.export import verdicts_json
from gpuverdict.verdict.judge import Verdict, judge

__all__ = ["Cell", "Verdict", "explain", "judge", "verdicts_json"]
