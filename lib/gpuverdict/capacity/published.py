"""Can a published table be believed? Its own arithmetic, the card's memory, and the roofline."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

import pandas as pd

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.hardware import CatalogueRow, catalogue
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

Standing = Literal["stands", "contradicts itself", "impossible", "needs a cause", "not judged"]

# Weights of the names "7B", "13B" ... : parameters of the LLaMA models that carry them.
_NAMED = {7: 6.738e9, 13: 13.016e9, 70: 68.98e9}
_PER_TOKEN = ("tpot", "latency_per_token", "latency_of_token_512", "single_inference_latency")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLimits:
    """The most a label can mean: the best figures of all variants it may stand for."""

    names: tuple[str, ...]
    memory_bytes: float | None
    bandwidth_bytes_per_s: float | None
    tdp_w: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One published number or relation, and what can be said of it.

    `standing`: `stands`; `contradicts itself` (its own rows give another number); `impossible`
    (beyond the card); `needs a cause` (possible only with something not stated); `not judged` (one
    value a cell, no spread published).
    """

    source: str
    section: str
    gpu: str
    claim: str
    value: float | None
    bound: float | None
    standing: Standing
    reason: Caution

    def __str__(self) -> str:
        return f"{self.source} {self.section} {self.gpu}: {self.claim}: {self.standing}"


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


def limits_of(label: str, rows: Sequence[CatalogueRow] | None = None) -> CardLimits | None:
    """Return the most a published GPU label can mean; None for an unknown card.

    A label such as `A100 80GB` leaves the variant open; the claim gets the better one.

    Examples
    --------
    >>> limits_of("A100 80GB").names
    ('A100 80GB PCIe', 'A100 80GB SXM4')
    """
    wanted = name_words(label)
    found = []
    for row in rows if rows is not None else catalogue():
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
    return CardLimits(
        names=tuple(row.name for row in found),
        memory_bytes=None if memory is None else memory * 2**30,
        bandwidth_bytes_per_s=None if bandwidth is None else bandwidth * 1e9,
        tdp_w=most("tdp_w"),
    )


def _weights(model: str, precision: str) -> tuple[float | None, bool]:
    """Bytes of the weights of a published model name, and whether 16 bits had to be assumed."""
    size = re.search(r"(\d+(?:\.\d+)?)\s*b\b", model.lower())
    if not size:
        return None, False
    billions = float(size.group(1))
    parameters = _NAMED.get(int(billions), billions * 1e9)
    bits = re.search(r"(?:int|fp|bf)\s*(\d+)|(\d+)\s*-?\s*bit", precision.lower())
    if bits:
        return parameters * float(bits.group(1) or bits.group(2)) / 8, False
    return parameters * 2, True


def check_published(
    table: pd.DataFrame, cards: Mapping[str, CardLimits | None] | None = None
) -> list[Claim]:
    """Check every claim of a published table that can be checked.

    Parameters
    ----------
    table : DataFrame
        As `read_published` gives it.
    cards : mapping of label to CardLimits, optional
        Default: the catalogue, with the better variant where the label leaves it open.

    Returns
    -------
    list of Claim
        In the order of the table. No verdict word comes from it: one value a cell is one run.
    """
    if cards is None:
        cards = {label: limits_of(label) for label in dict.fromkeys(table["gpu"])}
    claims: list[Claim] = []
    for row in table.to_dict("records"):
        claims += _row_claims(row, cards.get(row["gpu"]))
    claims += _rate_claims(table)
    claims += _traffic_claims(table, cards)
    claims += _efficiency_claims(table, cards)
    claims += _unspread_claims(table)
    return claims


def _claim(row: Mapping[str, object], what: str, standing: Standing, reason: Caution,
           value: float | None = None, bound: float | None = None) -> Claim:  # fmt: skip
    return Claim(
        source=str(row["source"]), section=str(row["section"]), gpu=str(row["gpu"]), claim=what,
        value=value, bound=bound, standing=standing, reason=reason,
    )  # fmt: skip


def _number(row: Mapping[str, object], name: str) -> float | None:
    value = row[name]
    return value if isinstance(value, float) and math.isfinite(value) else None


def _row_claims(row: Mapping[str, object], limits: CardLimits | None) -> list[Claim]:
    """Memory and weight-read time of one row."""
    value = _number(row, "value")
    if value is None or limits is None:
        return []
    claims = []
    weights, assumed = _weights(str(row["model"]), str(row["precision"]))
    gpus = _number(row, "n_gpus") or 1.0
    what = f"{row['metric']} {value:g} {row['unit']}"
    if weights and limits.memory_bytes and weights > limits.memory_bytes * gpus and not assumed:
        claims.append(
            _claim(
                row, what, "impossible",
                caution(
                    "weights_exceed_memory", weights=weights / 1e9,
                    memory=limits.memory_bytes * gpus / 1e9,
                ),
                value=weights, bound=limits.memory_bytes * gpus,
            )
        )  # fmt: skip
    seconds = _SECONDS.get(str(row["unit"]))
    if seconds and weights and limits.bandwidth_bytes_per_s:
        step = weights / (limits.bandwidth_bytes_per_s * gpus)
        time = value * seconds
        tokens = 1.0
        asked = _number(row, "output_tokens")
        if row["metric"] in ("latency", "e2e_latency") and asked:
            tokens = asked - 1.0
        elif row["metric"] not in _PER_TOKEN:
            return claims
        if time < tokens * step:
            claims.append(
                _claim(
                    row, what, "needs a cause" if assumed else "impossible",
                    caution("faster_than_limit", value=1e3 * time, bound=1e3 * tokens * step),
                    value=time, bound=tokens * step,
                )
            )  # fmt: skip
        elif row["metric"] in _PER_TOKEN:
            share = step / time
            claims.append(
                _claim(
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
            claims.append(_claim(row, what, "impossible", over, used, limits.memory_bytes * gpus))
    return claims


def _rate_claims(table: pd.DataFrame) -> list[Claim]:
    """A rate per stream must be one over the time per token of the same cell."""
    claims = []
    place = ["source", "gpu", "model", "concurrency"]
    times = {
        tuple(row[key] for key in place): row["value"] * _SECONDS[row["unit"]]
        for row in table.to_dict("records")
        if row["metric"] == "tpot" and row["unit"] in _SECONDS and _number(row, "value")
    }
    for row in table.to_dict("records"):
        time = times.get(tuple(row[key] for key in place))
        if row["metric"] != "decode_rate_per_stream" or not time or pd.isna(row["value"]):
            continue
        right = abs(row["value"] * time - 1) <= 0.05
        claims.append(
            _claim(
                row, f"{row['value']:g} {row['unit']} per stream",
                "stands" if right else "contradicts itself",
                caution("rate_of_time", value=row["value"], expected=1 / time),
                value=row["value"], bound=1 / time,
            )
        )  # fmt: skip
    return claims


def _traffic_claims(table: pd.DataFrame, cards: Mapping[str, CardLimits | None]) -> list[Claim]:
    """Bandwidth use over throughput is bytes a token: alike for one model, whatever the card."""
    found: dict[tuple[object, ...], dict[str, tuple[dict[str, object], float]]] = {}
    rows = table[table["value"].notna()].to_dict("records")
    place = ("source", "section", "model", "batch")
    for row in rows:
        limits = cards.get(row["gpu"])
        if row["metric"] != "memory_bandwidth_utilisation" or row["unit"] != "%" or limits is None:
            continue
        rate = [
            r["value"] for r in rows
            if r["metric"] == "throughput" and r["gpu"] == row["gpu"]
            and all(r[k] == row[k] or (pd.isna(r[k]) and pd.isna(row[k])) for k in place)
        ]  # fmt: skip
        if len(rate) == 1 and limits.bandwidth_bytes_per_s:
            each = row["value"] / 100 * limits.bandwidth_bytes_per_s / rate[0]
            found.setdefault(tuple(str(row[k]) for k in place), {})[row["gpu"]] = (row, each)
    claims = []
    for cells in found.values():
        for (_, a), (row, b) in combinations(cells.values(), 2):
            apart = max(a, b) / min(a, b)
            claims.append(
                _claim(
                    row, "bandwidth use against throughput",
                    "contradicts itself" if apart > 1.1 else "stands",
                    caution("bytes_per_token_differ", a=a / 1e9, b=b / 1e9),
                    value=b, bound=a,
                )
            )  # fmt: skip
    return claims


def _efficiency_claims(table: pd.DataFrame, cards: Mapping[str, CardLimits | None]) -> list[Claim]:
    """Tokens per watt and a throughput of the same source imply a power under load."""
    claims = []
    for row in table[table["metric"] == "energy_efficiency"].to_dict("records"):
        limits = cards.get(row["gpu"])
        rates = table[
            (table["source"] == row["source"]) & (table["gpu"] == row["gpu"])
            & (table["metric"] == "throughput") & table["value"].notna()
        ]["value"]  # fmt: skip
        if limits is None or not limits.tdp_w or not len(rates) or pd.isna(row["value"]):
            continue
        watts = float(rates.max()) / float(row["value"])
        low = watts < 0.4 * limits.tdp_w
        claims.append(
            _claim(
                row, f"{row['value']:g} {row['unit']}", "needs a cause" if low else "stands",
                caution("implied_power", watts=watts, tdp=limits.tdp_w),
                value=watts, bound=limits.tdp_w,
            )
        )  # fmt: skip
    return claims


def _unspread_claims(table: pd.DataFrame) -> list[Claim]:
    """Cells that rank two cards without any spread: nobody can say whether they differ."""
    claims = []
    place = ["source", "section", "model", "precision", "input_tokens", "output_tokens",
             "concurrency", "batch", "metric", "statistic", "unit"]  # fmt: skip
    known = table[table["value"].notna()]
    for _, cell in known.groupby(place, dropna=False, sort=False):
        if cell["gpu"].nunique() < 2:
            continue
        first = cell.iloc[0]
        names = ", ".join(dict.fromkeys(cell["gpu"]))
        claims.append(
            _claim(
                {**first.to_dict(), "gpu": names}, f"ranks by {first['metric']}", "not judged",
                caution("no_spread_published", runs=first["n_runs_claimed"] or "?"),
            )
        )  # fmt: skip
    return claims


def claims_frame(claims: Sequence[Claim]) -> pd.DataFrame:
    """Return claims as a table, one row each, with the reason as a sentence."""
    names = ("source", "section", "gpu", "claim", "value", "bound", "standing")
    return pd.DataFrame(
        [{**{n: getattr(c, n) for n in names}, "reason": c.reason.message} for c in claims],
        columns=[*names, "reason"],
    )
