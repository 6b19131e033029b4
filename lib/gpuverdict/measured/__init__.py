"""What a campaign holds once its files are read: every run in its place, and what was lost."""

from __future__ import annotations

from gpuverdict.measured.placing import Lost, MeasuredRun, level_label, plain_precision
from gpuverdict.measured.reading import LogFile, Measured, MetricsFile, measure
from gpuverdict.measured.server_times import ServerJoin, join_runs

__all__ = [
    "LogFile",
    "Lost",
    "Measured",
    "MeasuredRun",
    "MetricsFile",
    "ServerJoin",
    "join_runs",
    "level_label",
    "measure",
    "plain_precision",
]
