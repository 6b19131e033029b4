"""One clock for requests and samples: where a run lies in a trace, or why that cannot be known."""

from __future__ import annotations

from gpuverdict.align.activity import Activity, Ramp, activity_of
from gpuverdict.align.offset import ClockOffset, clock_offset
from gpuverdict.align.placing import COARSE_CLOCK_S, place

__all__ = [
    "COARSE_CLOCK_S",
    "Activity",
    "ClockOffset",
    "Ramp",
    "activity_of",
    "clock_offset",
    "place",
]
