"""Joules, watts, clocks and memory of a window of a trace; joules by phase over several runs."""

from __future__ import annotations

from gpuverdict.energy.phase import decode_token_energy, measure_idle, phase_energy
from gpuverdict.energy.window import (
    TELEMETRY_UNITS,
    trapezoid,
    window_energy,
    window_telemetry,
)

__all__ = [
    "TELEMETRY_UNITS",
    "decode_token_energy",
    "measure_idle",
    "phase_energy",
    "trapezoid",
    "window_energy",
    "window_telemetry",
]
