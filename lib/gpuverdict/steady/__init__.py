"""The steady window of a run, and whether it stayed steady: drift, step, spikes, leak, stalls."""

from __future__ import annotations

from gpuverdict.steady.flight import (
    below_peak_ratio,
    in_flight,
    mean_concurrency,
    step_function,
    time_mean,
    token_events,
    tokens_in_window,
)
from gpuverdict.steady.window import (
    Window,
    find_windows,
    mser_cut,
    requests_in_window,
    whole_run,
)

__all__ = [
    "Window",
    "below_peak_ratio",
    "find_windows",
    "in_flight",
    "mean_concurrency",
    "mser_cut",
    "requests_in_window",
    "step_function",
    "time_mean",
    "token_events",
    "tokens_in_window",
    "whole_run",
]
