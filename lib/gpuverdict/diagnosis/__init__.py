"""Which resource binds, with its evidence, and what would confirm it. Findings, never a ranking."""

from __future__ import annotations

from gpuverdict.diagnosis.finding import Finding
from gpuverdict.diagnosis.rules import diagnose
from gpuverdict.diagnosis.situation import Situation, observe

__all__ = ["Finding", "Situation", "diagnose", "observe"]
