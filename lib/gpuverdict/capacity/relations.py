"""Relations between the rows of a published table: arithmetic, caches, ratios, missing spread."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations

import pandas as pd

from gpuverdict.capacity.claims import (
    KV_BYTES,
    SECONDS,
    CardLimits,
    Claim,
    make_claim,
    number_of,
    weights_of,
)
from gpuverdict.capacity.roofline import check_phase_ratio
from gpuverdict.text import caution

__all__ = [
    "cache_claims",
    "efficiency_claims",
    "rate_claims",
    "ratio_claims",
    "traffic_claims",
    "unspread_claims",
]


def cache_claims(table: pd.DataFrame, cards: Mapping[str, CardLimits | None]) -> list[Claim]:
    """With every head cached, a step must read the cache of all streams too.

    Lengths that a row does not restate are the longest its source gives.
    """
    claims = []
    for row in table[table["metric"] == "tpot"].to_dict("records"):
        limits = cards.get(row["gpu"])
        size = re.search(r"(\d+)\s*b\b", str(row["model"]).lower())
        own = table[table["source"] == row["source"]]
        facts = {
            "value": number_of(row, "value"),
            "seconds": SECONDS.get(str(row["unit"])),
            "streams": number_of(row, "concurrency"),
            "weights": weights_of(str(row["model"]), str(row["precision"]))[0],
            "each": KV_BYTES.get(int(size.group(1))) if size else None,
            "prompt": number_of(row, "input_tokens") or _largest(own["input_tokens"]),
            "output": number_of(row, "output_tokens") or _largest(own["output_tokens"]),
            "bandwidth": limits.bandwidth_bytes_per_s if limits else None,
        }
        known = {name: value for name, value in facts.items() if value}
        if len(known) < len(facts) or known["streams"] == 1:
            continue
        context = known["prompt"] + known["output"] / 2
        moved = known["weights"] + known["streams"] * context * known["each"]
        time, bound = known["value"] * known["seconds"], moved / known["bandwidth"]
        if time < bound:
            claims.append(
                make_claim(
                    row, f"tpot {known['value']:g} {row['unit']} at {known['streams']:g} streams",
                    "needs a cause",
                    caution("needs_grouped_query", value=1e3 * time, bound=1e3 * bound,
                            context=context),
                    value=time, bound=bound,
                )
            )  # fmt: skip
    return claims


def _largest(values: pd.Series) -> float | None:
    known = values.dropna()
    return float(known.max()) if len(known) else None


def _over(above: float | None, below: float | None) -> float | None:
    return above / below if above and below else None


def ratio_claims(table: pd.DataFrame, cards: Mapping[str, CardLimits | None]) -> list[Claim]:
    """Decode speed ratios of two cards beyond what their bandwidth and compute can make."""
    claims = []
    place = ["source", "section", "model", "precision", "concurrency", "batch", "unit"]
    known = table[(table["metric"] == "tpot") & table["value"].notna()]
    for _, cell in known.groupby(place, dropna=False, sort=False):
        for a, b in combinations(cell.to_dict("records"), 2):
            first, second = cards.get(a["gpu"]), cards.get(b["gpu"])
            if first is None or second is None:
                continue
            bandwidth = _over(second.bandwidth_bytes_per_s, first.bandwidth_bytes_per_s)
            compute = _over(second.compute_flops_per_s, first.compute_flops_per_s)
            if bandwidth is None or compute is None:
                continue
            ratio = a["value"] / b["value"]
            said = check_phase_ratio(
                ratio, bandwidth_ratio=bandwidth, compute_ratio=compute, slack=0.02
            )
            if said is not None:
                at = f" at {b['concurrency']:g} streams" if pd.notna(b["concurrency"]) else ""
                claims.append(
                    make_claim(
                        {**b, "gpu": f"{b['gpu']} against {a['gpu']}"},
                        f"decode {ratio:.2f} times as fast{at}", "needs a cause", said, value=ratio,
                    )
                )  # fmt: skip
    return claims


def rate_claims(table: pd.DataFrame) -> list[Claim]:
    """A rate per stream must be one over the time per token of the same cell."""
    claims = []
    place = ["source", "gpu", "model", "concurrency"]
    times = {
        tuple(row[key] for key in place): row["value"] * SECONDS[row["unit"]]
        for row in table.to_dict("records")
        if row["metric"] == "tpot" and row["unit"] in SECONDS and number_of(row, "value")
    }
    for row in table.to_dict("records"):
        time = times.get(tuple(row[key] for key in place))
        if row["metric"] != "decode_rate_per_stream" or not time or pd.isna(row["value"]):
            continue
        right = abs(row["value"] * time - 1) <= 0.05
        claims.append(
            make_claim(
                row, f"{row['value']:g} {row['unit']} per stream",
                "stands" if right else "contradicts itself",
                caution("rate_of_time", value=row["value"], expected=1 / time),
                value=row["value"], bound=1 / time,
            )
        )  # fmt: skip
    return claims


def traffic_claims(table: pd.DataFrame, cards: Mapping[str, CardLimits | None]) -> list[Claim]:
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
                make_claim(
                    row, "bandwidth use against throughput",
                    "contradicts itself" if apart > 1.1 else "stands",
                    caution("bytes_per_token_differ", a=a / 1e9, b=b / 1e9),
                    value=b, bound=a,
                )
            )  # fmt: skip
    return claims


def efficiency_claims(table: pd.DataFrame, cards: Mapping[str, CardLimits | None]) -> list[Claim]:
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
            make_claim(
                row, f"{row['value']:g} {row['unit']}", "needs a cause" if low else "stands",
                caution("implied_power", watts=watts, tdp=limits.tdp_w),
                value=watts, bound=limits.tdp_w,
            )
        )  # fmt: skip
    return claims


def unspread_claims(table: pd.DataFrame) -> list[Claim]:
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
            make_claim(
                {**first.to_dict(), "gpu": names}, f"ranks by {first['metric']}", "not judged",
                caution("no_spread_published", runs=first["n_runs_claimed"] or "?"),
            )
        )  # fmt: skip
    return claims
