"""Joules, watts, clocks and memory of a window of a trace; joules by phase over several runs."""

from __future__ import annotations

from gpuverdict.energy.cards import card_imbalance, peak_node_power, per_card, throttle_shares
from gpuverdict.energy.phase import decode_token_energy, measure_idle, phase_energy
from gpuverdict.energy.window import (
    TELEMETRY_UNITS,
    traced_gpus,
    trapezoid,
    window_energy,
    window_telemetry,
)

__all__ = [
    "TELEMETRY_UNITS",
    "card_imbalance",
    "decode_token_energy",
    "measure_idle",
    "peak_node_power",
    "per_card",
    "phase_energy",
    "throttle_shares",
    "traced_gpus",
    "trapezoid",
    "window_energy",
    "window_telemetry",
]
