"""Figures: a frame or a result in, Axes out; and plates, which add the two sentences under them.

`draw` holds functions that draw on Axes and compute nothing; `plates` chooses the numbers of a
case, draws them, and writes how to read the figure and what it says here. All share one style.
"""

from __future__ import annotations

from gpuverdict.figures.claim_plates import claims_against_bounds
from gpuverdict.figures.curve_plates import curve_ratio, step_curve, throughput_curve
from gpuverdict.figures.design_plates import detectable, run_order
from gpuverdict.figures.draw import (
    draw_detectable,
    draw_intervals,
    draw_order,
    draw_run_values,
    draw_trade_off,
    draw_windows,
)
from gpuverdict.figures.draw_series import (
    draw_band,
    draw_beside,
    draw_points_and_lines,
    draw_stacks,
    draw_steps,
    draw_traces,
)
from gpuverdict.figures.limit_plates import power_limits
from gpuverdict.figures.phase_plates import batch_over_time, request_phases, unloaded_prefill
from gpuverdict.figures.plate import Plate, svg_text, write_plates
from gpuverdict.figures.plates import intervals, run_values, trade_off, windows
from gpuverdict.figures.power_plates import power_over_time, slo_margins, step_bounds
from gpuverdict.figures.request_plates import distribution, shift
from gpuverdict.figures.slo_plates import slo_by_minute
from gpuverdict.figures.style import cjk_font, styled
from gpuverdict.figures.timeline_plates import first_span, request_timeline

__all__ = [
    "Plate",
    "batch_over_time",
    "cjk_font",
    "claims_against_bounds",
    "curve_ratio",
    "detectable",
    "distribution",
    "draw_band",
    "draw_beside",
    "draw_detectable",
    "draw_intervals",
    "draw_order",
    "draw_points_and_lines",
    "draw_run_values",
    "draw_stacks",
    "draw_steps",
    "draw_traces",
    "draw_trade_off",
    "draw_windows",
    "first_span",
    "intervals",
    "power_limits",
    "power_over_time",
    "request_phases",
    "request_timeline",
    "run_order",
    "run_values",
    "shift",
    "slo_by_minute",
    "slo_margins",
    "step_bounds",
    "step_curve",
    "styled",
    "svg_text",
    "throughput_curve",
    "trade_off",
    "unloaded_prefill",
    "windows",
    "write_plates",
]
