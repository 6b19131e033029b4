"""The record sheet of an acceptance test: every field with its value and source, or `unknown`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd
import polars as pl

from gpuverdict.case import Case
from gpuverdict.schema import METRICS
from gpuverdict.tables.answers import plain_table
from gpuverdict.tables.markup import Section
from gpuverdict.tables.rows import arms_of, first_workload, fixed_rows, slo_text
from gpuverdict.tables.words import percent, spoken

__all__ = ["record_frame", "record_table"]

_DEVICE = ("name", "memory_total_mib", "driver", "cuda", "vbios", "board_part", "power_limit_w",
           "power_default_w", "max_sm_mhz", "max_mem_mhz", "ecc", "mig", "persistence",
           "pcie_gen_max", "pcie_width_max", "interconnect", "numa")  # fmt: skip
_SOFTWARE = ("engine", "engine_version", "precision", "kv_dtype", "kernels", "tensor_parallel",
             "pipeline_parallel", "data_parallel", "scheduler", "sampling", "factors",
             "server_starts", "host")  # fmt: skip
_MODEL = ("name", "id", "revision", "parameters", "weight_bits", "kv_bits", "tokenizer")
_LOAD = ("input_tokens", "output_tokens", "load", "requests", "ignore_eos")


def record_frame(case: Case) -> pd.DataFrame:
    """List the fields of the record: `part, field, arm, value, source`; null value = unknown.

    `source` says where a value comes from: `campaign file`, `devices`, `logs` or `computed`.
    """
    rows: list[tuple[str, str, str, str | None, str]] = []
    for arm in arms_of(case):
        rows += _hardware(case, arm)
        rows += _software(case, arm)
        rows += _load(case, arm)
    rows += _results(case)
    return pd.DataFrame(rows, columns=["part", "field", "arm", "value", "source"])


def _text(value: Any) -> str | None:
    if value is None or value == "" or value == {} or value == ():
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or None
    return str(value)


def _distinct(values: Iterable[Any]) -> str | None:
    known = sorted({text for value in values if (text := _text(value)) is not None})
    return ", ".join(known) or None


def _hardware(case: Case, arm: str) -> list[tuple[str, str, str, str | None, str]]:
    declared = case.campaign.arms[arm]
    label = declared.gpu if isinstance(declared.gpu, str) else declared.gpu.name
    rows: list[tuple[str, str, str, str | None, str]] = [
        ("hardware", "gpu (label)", arm, label, "campaign file"),
        ("hardware", "gpus", arm, str(declared.gpus), "campaign file"),
        ("hardware", "cards", arm, _text(declared.cards), "campaign file"),
        ("hardware", "devices", arm, case.devices[arm], "devices"),
    ]
    inventory: pl.DataFrame = case.measured.inventory[arm]
    for field in _DEVICE:
        value = _distinct(inventory[field].to_list()) if field in inventory.columns else None
        rows.append(("hardware", field, arm, value, "devices"))
    return rows


def _software(case: Case, arm: str) -> list[tuple[str, str, str, str | None, str]]:
    declared, model = case.campaign.arms[arm], case.campaign.model_of(arm)
    rows: list[tuple[str, str, str, str | None, str]] = [
        ("software", f"model {field}", arm, _text(getattr(model, field, None)), "campaign file")
        for field in _MODEL
    ]
    rows += [
        ("software", field, arm, _text(getattr(declared, field)), "campaign file")
        for field in _SOFTWARE
    ]
    infos = [run.stored.info for run in case.measured.runs_of(arm)]
    for field in ("tool", "tool_version"):
        value = _distinct(info.get(field) for info in infos)
        rows.append(("software", f"client {field}", arm, value, "logs"))
    place = declared.client.place if declared.client else None
    rows.append(("software", "client place", arm, place, "campaign file"))
    return rows


def _load(case: Case, arm: str) -> list[tuple[str, str, str, str | None, str]]:
    workload = first_workload(case)
    spec = case.campaign.all_workloads()[workload]
    rows: list[tuple[str, str, str, str | None, str]] = [
        ("load", field, arm, _text(getattr(spec, field)), "campaign file") for field in _LOAD
    ]
    facts = [case.summary.facts[run.key] for run in case.measured.runs_of(arm)]
    levels = sorted({next(iter(f.run.level.values())) for f in facts})
    sent = sorted(f.window.n_sent for f in facts)
    dropped = sorted(f.window.dropped_ratio for f in facts)
    rows += [
        ("load", "SLO", arm, slo_text(case, workload) or None, "campaign file"),
        ("load", "levels", arm, _text([f"{level:g}" for level in levels]), "logs"),
        ("load", "runs", arm, str(len(facts)) if facts else None, "logs"),
        ("load", "requests a run", arm, f"{sent[0]} to {sent[-1]}" if sent else None, "logs"),
        ("load", "requests outside the window", arm,
         f"{percent(dropped[0])} to {percent(dropped[-1])}" if dropped else None, "computed"),
    ]  # fmt: skip
    return rows


def _results(case: Case) -> list[tuple[str, str, str, str | None, str]]:
    rows: list[tuple[str, str, str, str | None, str]] = []
    baseline, candidate = arms_of(case)
    for row in fixed_rows(case):
        name = f"{row.label} {row.where}".strip()
        for arm, value in ((baseline, row.baseline), (candidate, row.candidate)):
            rows.append(("results", name, arm, None if value == "–" else value, "computed"))
        if row.cell is not None:
            c = row.cell.comparison
            text = f"{c.verdict}"
            if c.ratio is not None:
                text += f", ratio {c.ratio:.3f}"
            if c.low is not None and c.high is not None:
                text += f" [{c.low:.3f}, {c.high:.3f}]"
            unit = METRICS[c.metric].unit
            rows.append(("results", f"{name} ({unit}): verdict", candidate, text, "computed"))
    return rows


def record_table(case: Case, lang: str = "en") -> Section:
    """Show the record sheet: both arms side by side, `unknown` where nothing is known."""
    frame = record_frame(case)
    baseline, candidate = arms_of(case)
    unknown = spoken(lang, "record_unknown")
    rows = []
    for (part, field), group in frame.groupby(["part", "field"], sort=False):
        values = dict(zip(group.arm, group.value, strict=True))
        shown = [
            "" if arm not in values else values[arm] if isinstance(values[arm], str) else unknown
            for arm in (baseline, candidate)
        ]
        source = spoken(lang, f"source_{group.source.iloc[0].replace(' ', '_')}")
        rows.append([spoken(lang, f"record_{part}"), str(field), *shown, source])
    heads = [
        spoken(lang, "record_part"),
        spoken(lang, "record_field"),
        baseline,
        candidate,
        spoken(lang, "record_source"),
    ]
    return plain_table(
        "record", spoken(lang, "record_heading"), heads, rows,
        reading=spoken(lang, "record_reading", n=int(frame.value.isna().sum()), total=len(frame)),
    )  # fmt: skip
