"""Where a request spends its time: prefill, waiting, decode; the decode batch and its step time."""

from __future__ import annotations

from gpuverdict.phases.decode import clean_gaps, decode_batch, decode_step
from gpuverdict.phases.e2e import PARTS, E2eParts, take_apart
from gpuverdict.phases.huber import huber_location
from gpuverdict.phases.itl import ItlModel, PositionEffect, fit_itl, itl_by_position
from gpuverdict.phases.prefill import PrefillModel, fit_prefill, prefill_envelope
from gpuverdict.phases.split import Phases, prefill_reference, split_phases, split_requests

__all__ = [
    "PARTS",
    "E2eParts",
    "ItlModel",
    "Phases",
    "PositionEffect",
    "PrefillModel",
    "clean_gaps",
    "decode_batch",
    "decode_step",
    "fit_itl",
    "fit_prefill",
    "huber_location",
    "itl_by_position",
    "prefill_envelope",
    "prefill_reference",
    "split_phases",
    "split_requests",
    "take_apart",
]
