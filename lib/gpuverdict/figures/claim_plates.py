"""Published times against what their card allows."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from gpuverdict.capacity import Claim
from gpuverdict.figures.draw_series import draw_claims
from gpuverdict.figures.plate import Plate
from gpuverdict.figures.plates import notice
from gpuverdict.figures.style import figure_language, styled
from gpuverdict.text import sentence

__all__ = ["claims_against_bounds"]

# Claims whose value and bound are both times: what the card needs at least.
TIMES = ("implied_bandwidth", "faster_than_limit", "needs_grouped_query")


def claims_against_bounds(claims: Sequence[Claim], lang: str = "en") -> Plate:
    """Show published values against what the card allows: left of 1 cannot be."""
    drawn = figure_language(lang)
    records = [
        {
            "source": c.source,
            "claim": f"{c.gpu}: {c.claim}",
            "standing": c.standing,
            "ratio": c.value / c.bound,
        }
        for c in claims
        if c.value is not None and c.bound and c.reason.code in TIMES
    ]
    columns = ["source", "claim", "standing", "ratio"]
    frame = pd.DataFrame(records, columns=columns).sort_values("ratio", ignore_index=True)
    with styled():
        axes = draw_claims(
            frame,
            label=sentence("axis_claim", drawn),
            names={
                s: sentence(f"standing_{s.replace(' ', '_')}", drawn)
                for s in frame.standing.unique()
            },
        )
    below = int((frame.ratio < 1).sum())
    finding = (
        sentence("claims_finding", lang, below=below, n=len(frame))
        if len(frame)
        else sentence("claim_none", lang)
    )
    return Plate(
        axes=axes,
        name="claims",
        alt=sentence("claims_alt", lang, finding=finding),
        reading=sentence("claims_reading", lang),
        finding=finding,
        frame=frame.groupby(["source", "standing"], as_index=False).ratio.agg(
            ["count", "min", "max"]
        ),
        note=notice(lang),
    )
