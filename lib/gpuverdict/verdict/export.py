"""`verdicts.json`: strict JSON, keys sorted, 12 significant digits, no time stamp."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpuverdict.errors import Caution
from gpuverdict.schema import METRICS
from gpuverdict.units import Estimate
from gpuverdict.verdict.cells import Cell
from gpuverdict.verdict.judge import Verdict

__all__ = ["plain", "verdicts_dict", "verdicts_json"]

SCHEMA = "gpuverdict/verdicts/1"


def verdicts_json(verdict: Verdict, provenance: Mapping[str, Any]) -> str:
    """Return the text of `verdicts.json`: the same inputs give the same bytes.

    Parameters
    ----------
    verdict : Verdict
    provenance : mapping
        `inputs` (path relative to the campaign, sha256), `versions`, `parameters`.
    """
    return (
        json.dumps(verdicts_dict(verdict, provenance), sort_keys=True, indent=1, allow_nan=False,
                   ensure_ascii=False) + "\n"
    )  # fmt: skip


def verdicts_dict(verdict: Verdict, provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same as a dictionary of plain values."""
    c = verdict.comparability
    sections: dict[str, Any] = {
        "curves": {},
        "energy": {},
        "capacity": {},
        "diagnosis": [],
        "health": [],
        "stability": [],
        "factorial": [],
        "quality": None,
        "like_for_like": [],
    }
    sections.update({k: plain(v) for k, v in verdict.sections.items() if k in sections})
    return {
        "schema": SCHEMA,
        "campaign": verdict.campaign,
        "comparison": verdict.comparison,
        "baseline": verdict.baseline,
        "candidate": verdict.candidate,
        "scope": c.scope,
        "comparability": {"level": c.level, "reasons": [r.as_dict() for r in c.reasons]},
        "headline": [_cell(cell) for cell in verdict.headline],
        "cells": [_cell(cell) for cell in verdict.cells],
        **sections,
        "provenance": plain(provenance),
    }


def _cell(cell: Cell) -> dict[str, Any]:
    c = cell.comparison
    return {
        "metric": cell.key.metric,
        "statistic": cell.key.statistic,
        "workload": cell.key.workload,
        "level": plain(cell.level),
        "unit": METRICS[cell.key.metric].unit,
        "n_baseline": c.n_baseline,
        "n_candidate": c.n_candidate,
        "baseline": plain(c.baseline),
        "candidate": plain(c.candidate),
        "ratio": plain(c.ratio),
        "low": plain(c.low),
        "high": plain(c.high),
        "confidence": plain(c.confidence),
        "p_value": plain(c.p_value),
        "p_adjusted": plain(c.p_adjusted),
        "p_permutation": plain(c.p_permutation),
        "margin": plain(c.margin),
        "rung": cell.rung,
        "verdict": c.verdict,
        "modifiers": list(c.modifiers),
        "mde_ratio": plain(c.mde_ratio),
        "runs_needed": list(c.runs_needed) if c.runs_needed else None,
        "cautions": [caution.as_dict() for caution in c.cautions],
    }


def plain(value: Any) -> Any:
    """Turn a value into strict JSON: 12 significant digits, null for what is not finite."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else None
    if isinstance(value, Caution):
        return value.as_dict()
    if isinstance(value, Estimate):
        return {
            "value": plain(value.value), "low": plain(value.low), "high": plain(value.high),
            "confidence": plain(value.confidence), "unit": value.unit, "n": value.n,
            "cautions": [c.as_dict() for c in value.cautions],
        }  # fmt: skip
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence):
        return [plain(v) for v in value]
    if hasattr(value, "item"):
        return plain(value.item())
    return str(value)
