"""What a campaign holds once its files are read: every run in its place, and what was lost."""

from __future__ import annotations

from gpuverdict.measured.placing import Lost, MeasuredRun, level_label, plain_precision
from gpuverdict.measured.reading import Measured, measure

__all__ = ["Lost", "Measured", "MeasuredRun", "level_label", "measure", "plain_precision"]
