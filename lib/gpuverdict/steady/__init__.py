"""The steady window of a run, and whether it stayed steady: drift, step, spikes, leak, stalls."""

from __future__ import annotations

from gpuverdict.steady.change import (
    Drift,
    HistoryChange,
    StepChange,
    drift,
    history_change,
    series_drift,
    series_step,
    step_change,
)
from gpuverdict.steady.flight import (
    below_peak_ratio,
    in_flight,
    mean_concurrency,
    step_function,
    sustained_peak,
    time_mean,
    token_events,
    tokens_in_window,
    uncounted,
)
from gpuverdict.steady.leak import Leak, leak
from gpuverdict.steady.stalls import (
    Disturbance,
    Spikes,
    disturbed_runs,
    gap_table,
    spike_mask,
    spikes,
)
from gpuverdict.steady.window import (
    Window,
    find_windows,
    mser_cut,
    requests_in_window,
    whole_run,
)

__all__ = [
    "Disturbance",
    "Drift",
    "HistoryChange",
    "Leak",
    "Spikes",
    "StepChange",
    "Window",
    "below_peak_ratio",
    "disturbed_runs",
    "drift",
    "find_windows",
    "gap_table",
    "history_change",
    "in_flight",
    "leak",
    "mean_concurrency",
    "mser_cut",
    "requests_in_window",
    "series_drift",
    "series_step",
    "spike_mask",
    "spikes",
    "step_change",
    "step_function",
    "sustained_peak",
    "time_mean",
    "token_events",
    "tokens_in_window",
    "uncounted",
    "whole_run",
]
