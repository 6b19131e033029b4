"""Cells whose arms served prompts of different lengths, brought to one mix of lengths."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuverdict import stats
from gpuverdict.design import CellDesign
from gpuverdict.errors import Caution
from gpuverdict.measured import MeasuredRun
from gpuverdict.summary.campaign import RunFacts
from gpuverdict.text import caution

if TYPE_CHECKING:
    from gpuverdict.verdict.cells import CellKey

__all__ = ["Brought", "standardised_runs"]

_BY_BIN = ("ttft_s", "e2e_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """Run values of both arms under one mix, or the refusal where there is none."""

    sides: tuple[list[tuple[int, float | None]], list[tuple[int, float | None]]] | None
    mixed: bool = False
    cautions: tuple[Caution, ...] = ()
    refusals: tuple[Caution, ...] = ()


def standardised_runs(
    key: CellKey, cell: CellDesign, runs: tuple[Sequence[MeasuredRun], Sequence[MeasuredRun]]
) -> Brought:
    """Weigh the medians of each run's length bins with the pooled mix of both arms.

    Only medians of TTFT and E2E: a tail of bins is no tail of the mix. Otherwise, and where a run
    lacks a bin, the metric is refused.
    """
    refused = caution("prompt_mix_differs", distance=cell.mix_distance or 0.0)
    if key.metric not in _BY_BIN or key.statistic != "p50":
        return Brought(sides=None, refusals=(refused,))
    arms = [_bins(facts, key.metric) for facts in (cell.baseline, cell.candidate)]
    found = stats.standardise_mix(arms[0], arms[1], statistic="p50")
    if found.baseline is None or found.candidate is None:
        return Brought(sides=None, refusals=(refused, *found.cautions))
    ratios = ", ".join(f"{name}: {ratio:.2f}" for name, ratio in sorted(found.bin_ratios.items()))
    sides: list[list[tuple[int, float | None]]] = [
        [(run.repeat_no, value) for run, value in zip(arm, values, strict=True)]
        for arm, values in zip(runs, (found.baseline, found.candidate), strict=True)
    ]
    return Brought(
        sides=(sides[0], sides[1]), mixed=found.mixed,
        cautions=(*found.cautions, caution("mix_bins", ratios=ratios)),
    )  # fmt: skip


def _bins(facts: Sequence[RunFacts], metric: str) -> list[Mapping[Hashable, Sequence[float]]]:
    """A run's bins as `standardise_mix` takes them: each median as often as it has requests."""
    return [
        {
            name: [float(held[metric] or 0.0)] * int(held["n"] or 0)
            for name, held in fact.bins.items()
            if held[metric] is not None
        }
        for fact in facts
    ]
