"""What may be compared, and what else differs: graded by factor and by metric.

A factor that differs can be the question (the treatment), widen the scope from two cards to two
systems, be a caveat, or block the metrics it touches. What nobody recorded is `unchecked`, never
assumed equal and never a refusal. The table is section 6 of the method notes.

`comparability` judges a whole comparison, `cells` one level of it, `order` in which order the arms
were run, `memory` what the model needs against what the cards hold, `mixes` how far apart two sets
of requests are.
"""

from __future__ import annotations

from gpuverdict.design.cells import CellDesign, cell_design
from gpuverdict.design.comparability import Comparability, compare_designs
from gpuverdict.design.memory import MemoryNeed, memory_need, step_floor_s
from gpuverdict.design.mixes import mix_distance
from gpuverdict.design.order import run_order
from gpuverdict.design.touched import LATENCY

__all__ = [
    "LATENCY",
    "CellDesign",
    "Comparability",
    "MemoryNeed",
    "cell_design",
    "compare_designs",
    "memory_need",
    "mix_distance",
    "run_order",
    "step_floor_s",
]
