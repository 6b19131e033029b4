"""Figures: a frame or a result in, Axes out; and plates, which add the two sentences under them.

`draw` holds functions that draw on Axes and compute nothing; `plates` chooses the numbers of a
case, draws them, and writes how to read the figure and what it says here. All share one style.
"""

from __future__ import annotations

from gpuverdict.figures.design_plates import detectable, run_order
from gpuverdict.figures.draw import (
    draw_detectable,
    draw_intervals,
    draw_order,
    draw_run_values,
    draw_trade_off,
    draw_windows,
)
from gpuverdict.figures.plate import Plate
from gpuverdict.figures.plates import intervals, run_values, trade_off, windows
from gpuverdict.figures.style import cjk_font, styled

__all__ = [
    "Plate",
    "cjk_font",
    "detectable",
    "draw_detectable",
    "draw_intervals",
    "draw_order",
    "draw_run_values",
    "draw_trade_off",
    "draw_windows",
    "intervals",
    "run_order",
    "run_values",
    "styled",
    "trade_off",
    "windows",
]
