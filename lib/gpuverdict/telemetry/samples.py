"""From columns in base units to a `Trace`: one power column, its kind, what is missing and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.files import Document
from gpuverdict.schema import GPU_SAMPLES, Trace, check, conform
from gpuverdict.telemetry.clock import Times
from gpuverdict.text import caution

__all__ = ["SLOWDOWN_BITS", "THROTTLE_BITS", "build_trace", "power_kind_of"]

# Bit meanings of nvmlClocksEventReasons*. Idle, application clocks, sync boost and display clocks
# are settings or consequences of no load, not slow-downs.
THROTTLE_BITS: dict[str, int] = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
    "display_clocks_setting": 0x100,
}
SLOWDOWN_BITS = 0x4 | 0x8 | 0x20 | 0x40 | 0x80

# GA100 reports an instantaneous-type value in power.draw; later chips a one-second average.
_INSTANT_MODELS = ("A100", "A800", "A30")
_AVERAGED_MODELS = (
    "H100", "H800", "H20", "H200", "GH200", "B200", "L4", "L20", "L40", "RTX 30", "RTX 40",
    "RTX 50", "RTX A", "ADA", "A40", "A10", "A6000",
)  # fmt: skip


def power_kind_of(gpu_name: str | None) -> str:
    """Say what `power.draw` of a GPU model is: `instant`, `avg1s` or `unknown`.

    Notes
    -----
    "power.draw ... average power draw for the last second on Ampere (except GA100) or newer":
    help text of nvidia-smi; confirmed on an H200 with driver 580.

    Examples
    --------
    >>> power_kind_of("NVIDIA A100-SXM4-80GB"), power_kind_of("NVIDIA H200"), power_kind_of(None)
    ('instant', 'avg1s', 'unknown')
    """
    words = (gpu_name or "").upper().replace("-", " ").split()
    joined = " ".join(words)
    if any(model in words for model in _INSTANT_MODELS):
        return "instant"
    if any(model in words if " " not in model else model in joined for model in _AVERAGED_MODELS):
        return "avg1s"
    return "unknown"


def build_trace(
    document: Document,
    *,
    source: str,
    columns: Mapping[str, pl.Series],
    times: Times,
    power_draw: pl.Series | None = None,
    draw_kinds: Sequence[str] | None = None,
    reasons: Mapping[str, pl.Series] | None = None,
    cautions: Sequence[Caution] = (),
    info: Mapping[str, Any] | None = None,
) -> Trace:
    """Assemble the samples of one file.

    Parameters
    ----------
    columns : mapping
        Sample column -> values, `gpu_uuid` and `gpu_index` among them; absent ones become null.
    power_draw, draw_kinds
        The driver's default power column, and what it is on each row. It is used where the file has
        neither an instantaneous nor an averaged column of its own.
    reasons : mapping
        Sample column -> the text that stood in place of a number.
    """
    n = len(times.elapsed_s)
    held = dict(columns)
    found = list(cautions) + list(times.cautions)
    held["time_epoch_s"], held["elapsed_s"] = times.epoch_s, times.elapsed_s
    used, power, kinds = _choose_power(held, power_draw, draw_kinds, n)
    if power is not None:
        held["power_w"] = power
        held["power_kind"] = pl.Series(kinds, dtype=pl.String)
        if "unknown" in kinds and source in ("smi_csv", "dmon"):
            found.append(caution("power_kind_unknown", name=document.name))
    held["trace_id"] = pl.Series([document.sha256] * n, dtype=pl.String)
    held["source"] = pl.Series([source] * n, dtype=pl.String)
    texts = dict(reasons or {})
    held["null_reason"] = _null_reason(texts, n)
    absent: list[str] = []
    for name, why in texts.items():
        count = n - why.null_count()
        if count == n and n > 0 and name != "power_w":
            absent.append(name)
        elif count:
            words = ", ".join(f"{w or 'empty'}: {c}" for w, c in _counts(why))
            found.append(caution("values_missing", column=name, n=count, n_rows=n, reasons=words))
    frame = check(conform(pl.DataFrame(held), GPU_SAMPLES), GPU_SAMPLES, document.name)
    facts = {
        "source_format": source,
        "source_name": document.name,
        "source_sha256": document.sha256,
        "time_zone": None,
        "power_column": used,
        "absent_columns": absent,
        **_span(frame),
        **dict(info or {}),
    }
    return Trace(samples=frame, info=facts, cautions=(*document.cautions, *found))


def _choose_power(
    held: Mapping[str, pl.Series],
    power_draw: pl.Series | None,
    draw_kinds: Sequence[str] | None,
    n: int,
) -> tuple[str | None, pl.Series | None, list[str]]:
    for column, kind in (("power_instant_w", "instant"), ("power_average_w", "avg1s")):
        values = held.get(column)
        if values is not None and values.null_count() < n:
            return column, values.rename("power_w"), [kind] * n
    if power_draw is None:
        return None, None, []
    return "power_draw", power_draw.rename("power_w"), list(draw_kinds or ["unknown"] * n)


def _counts(why: pl.Series) -> list[tuple[str, int]]:
    counted = why.drop_nulls().value_counts(sort=True)
    return [(str(text), int(count)) for text, count in counted.iter_rows()]


def _null_reason(texts: Mapping[str, pl.Series], n: int) -> pl.Series:
    parts = [
        pl.when(why.is_not_null()).then(pl.lit(f"{name}: ") + why.fill_null(""))
        for name, why in texts.items()
        if why.null_count() < n
    ]
    if not parts:
        return pl.Series([None] * n, dtype=pl.String)
    joined = pl.concat_str(parts, separator="; ", ignore_nulls=True)
    return pl.select(pl.when(joined != "").then(joined)).to_series()


def _span(frame: pl.DataFrame) -> dict[str, Any]:
    gpus = frame.select("gpu_uuid", "gpu_index").unique(maintain_order=True).rows(named=True)
    elapsed = frame["elapsed_s"].drop_nulls()
    epoch = frame["time_epoch_s"].drop_nulls()
    first = frame.filter(
        (pl.col("gpu_uuid").eq_missing(gpus[0]["gpu_uuid"]) if gpus else pl.lit(True))
        & (pl.col("gpu_index").eq_missing(gpus[0]["gpu_index"]) if gpus else pl.lit(True))
    )["elapsed_s"].drop_nulls()
    steps = np.diff(first.to_numpy())
    return {
        "n_samples": frame.height,
        "gpus": gpus,
        "n_gpus": len(gpus),
        "duration_s": float(np.ptp(elapsed.to_numpy())) if len(elapsed) else None,
        "start_epoch_s": float(epoch.to_numpy().min()) if len(epoch) else None,
        "end_epoch_s": float(epoch.to_numpy().max()) if len(epoch) else None,
        "step_median_s": float(np.median(steps)) if len(steps) else None,
        "step_max_s": float(steps.max()) if len(steps) else None,
    }
