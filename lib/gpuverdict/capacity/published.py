"""Can a published table be believed? Its own arithmetic, the card's memory, and the roofline."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from gpuverdict.capacity.claims import SECONDS, CardLimits, Claim, make_claim, number_of, weights_of
from gpuverdict.capacity.relations import (
    cache_claims,
    efficiency_claims,
    rate_claims,
    ratio_claims,
    traffic_claims,
    unspread_claims,
)
from gpuverdict.errors import LogFormatError
from gpuverdict.hardware import catalogue
from gpuverdict.hardware.catalogue import name_words
from gpuverdict.text import caution

__all__ = [
    "COLUMNS",
    "CardLimits",
    "Claim",
    "check_published",
    "claims_frame",
    "limits_of",
    "read_published",
]

COLUMNS = (
    "source", "section", "origin", "gpu", "n_gpus", "model", "precision", "engine",
    "input_tokens", "output_tokens", "concurrency", "batch", "metric", "statistic", "value",
    "qualifier", "unit", "status", "n_runs_claimed", "note",
)  # fmt: skip

# Both directions of PCIe 5.0 x16: more than a card alone can move to anything.
_LINK_ALONE_GB_PER_S = 128.0
_PER_TOKEN = ("tpot", "latency_per_token", "latency_of_token_512", "single_inference_latency")


def read_published(path: str | Path) -> pd.DataFrame:
    """Read a published table of the documented shape.

    Returns
    -------
    DataFrame
        Numbers as floats; an infeasible cell has no value.

    Raises
    ------
    LogFormatError
        For another set of columns, a value that is no number, or an infeasible cell with one.
    """
    path = Path(path)
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines)
        rows = list(reader)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise LogFormatError(
                path, found=f"columns {reader.fieldnames}", expected=", ".join(COLUMNS)
            )
    for line, row in enumerate(rows, start=2):
        for name in ("value", "n_gpus", "input_tokens", "output_tokens", "concurrency", "batch"):
            try:
                row[name] = float(row[name]) if row[name] else None
            except ValueError:
                raise LogFormatError(
                    f"{path}:{line}", found=f"{name} {row[name]!r}", expected="a number or nothing"
                ) from None
        if (row["status"] == "infeasible") != (row["value"] is None):
            raise LogFormatError(
                f"{path}:{line}", found=f"status {row['status']!r} with value {row['value']}",
                expected="a value, or infeasible without one",
            )  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS))


def limits_of(label: str) -> CardLimits | None:
    """Return the most a published GPU label can mean; None for an unknown card.

    A label such as `A100 80GB` leaves the variant open; the claim gets the better one.

    Examples
    --------
    >>> limits_of("A100 80GB").names
    ('A100 80GB PCIe', 'A100 80GB SXM4')
    """
    wanted = name_words(label)
    found = []
    for row in catalogue():
        have = name_words(f"{row.gpu} {row.variant} {row.form_factor}")
        sized = {f"{row.memory_gb:g}gb"} if row.memory_gb else set()
        if wanted and wanted <= have | sized:
            found.append(row)
    if not found:
        return None

    def most(name: str) -> float | None:
        values = [getattr(row, name) for row in found if getattr(row, name) is not None]
        return max(values) if values else None

    memory, bandwidth = most("memory_gb"), most("memory_bandwidth_gb_per_s")
    compute = most("bf16_dense_tflops")
    return CardLimits(
        names=tuple(row.name for row in found),
        memory_bytes=None if memory is None else memory * 2**30,
        bandwidth_bytes_per_s=None if bandwidth is None else bandwidth * 1e9,
        compute_flops_per_s=None if compute is None else compute * 1e12,
        tdp_w=most("tdp_w"),
    )


def check_published(table: pd.DataFrame) -> list[Claim]:
    """Check every claim of a published table that can be checked.

    Parameters
    ----------
    table : DataFrame
        As `read_published` gives it.

    Returns
    -------
    list of Claim
        In the order of the table. No verdict word comes from it: one value a cell is one run.
    """
    cards = {label: limits_of(label) for label in dict.fromkeys(table["gpu"])}
    claims: list[Claim] = []
    for row in table.to_dict("records"):
        claims += _row_claims(row, cards.get(row["gpu"]))
    claims += cache_claims(table, cards)
    claims += rate_claims(table)
    claims += ratio_claims(table, cards)
    claims += traffic_claims(table, cards)
    claims += efficiency_claims(table, cards)
    claims += unspread_claims(table)
    return claims


def _row_claims(row: Mapping[str, object], limits: CardLimits | None) -> list[Claim]:
    """Memory and weight-read time of one row."""
    value = number_of(row, "value")
    if value is None or limits is None:
        return []
    claims = []
    weights, assumed = weights_of(str(row["model"]), str(row["precision"]))
    gpus = number_of(row, "n_gpus") or 1.0
    what = f"{row['metric']} {value:g} {row['unit']}"
    if weights and limits.memory_bytes and weights > limits.memory_bytes * gpus and not assumed:
        claims.append(
            make_claim(
                row, what, "impossible",
                caution(
                    "weights_exceed_memory", weights=weights / 1e9,
                    memory=limits.memory_bytes * gpus / 1e9,
                ),
                value=weights, bound=limits.memory_bytes * gpus,
            )
        )  # fmt: skip
        # Where the weights do not fit, a time says something of the offload, not of the card.
        return claims
    if row["metric"] == "link_bandwidth" and gpus == 1 and value > _LINK_ALONE_GB_PER_S:
        claims.append(
            make_claim(row, what, "impossible", caution("link_without_peer", value=value))
        )
    seconds = SECONDS.get(str(row["unit"]))
    if seconds and weights and limits.bandwidth_bytes_per_s:
        step = weights / (limits.bandwidth_bytes_per_s * gpus)
        time = value * seconds
        tokens = 1.0
        asked = number_of(row, "output_tokens")
        if row["metric"] in ("latency", "e2e_latency") and asked:
            tokens = asked - 1.0
        elif row["metric"] not in _PER_TOKEN:
            return claims
        if time < tokens * step:
            claims.append(
                make_claim(
                    row, what, "needs a cause" if assumed else "impossible",
                    caution("faster_than_limit", value=1e3 * time, bound=1e3 * tokens * step),
                    value=time, bound=tokens * step,
                )
            )  # fmt: skip
        elif row["metric"] in _PER_TOKEN:
            share = step / time
            claims.append(
                make_claim(
                    row, what, "stands",
                    caution(
                        "implied_bandwidth", share=share, bits="16" if assumed else "as stated"
                    ),
                    value=time, bound=step,
                )
            )  # fmt: skip
    if row["metric"] in ("memory_used", "memory_peak") and limits.memory_bytes:
        used = value * {"GB": 1e9, "GiB": 2**30, "MB": 1e6, "MiB": 2**20}.get(str(row["unit"]), 0)
        if used > limits.memory_bytes * gpus:
            over = caution(
                "weights_exceed_memory", weights=used / 1e9, memory=limits.memory_bytes * gpus / 1e9
            )
            claims.append(
                make_claim(row, what, "impossible", over, used, limits.memory_bytes * gpus)
            )
    return claims


def claims_frame(claims: Sequence[Claim]) -> pd.DataFrame:
    """Return claims as a table, one row each, with the reason as a sentence."""
    names = ("source", "section", "gpu", "claim", "value", "bound", "standing")
    return pd.DataFrame(
        [{**{n: getattr(c, n) for n in names}, "reason": c.reason.message} for c in claims],
        columns=[*names, "reason"],
    )
