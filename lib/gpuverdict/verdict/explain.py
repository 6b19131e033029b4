"""The reasoning behind a cell in plain words: numbers, rung, rule, reference."""

from __future__ import annotations

from gpuverdict import stats
from gpuverdict.text import sentence
from gpuverdict.verdict.cells import Cell

__all__ = ["explain"]


def explain(cell: Cell, lang: str = "en") -> list[str]:
    """Say how a cell came to its word, one sentence a step.

    Parameters
    ----------
    cell : Cell
    lang : "en" or "zh"

    Returns
    -------
    list of str
        What was measured; the rung, and so why on no better one; then the test, its adjustment, the
        word with its rule, and every caution (`stats.explain`).

    Examples
    --------
    >>> from gpuverdict.case import open_case
    >>> cell = open_case("data/h200/campaign.yaml").verdict.cell(
    ...     "tpot_s", "p50", '{"concurrency": 1}')
    >>> explain(cell)[1]
    'Rung 1: like for like, in steady windows.'
    """
    measured, *rest = stats.explain(cell.comparison, lang)
    return [measured, sentence(f"explain_rung_{cell.rung}", lang), *rest]
