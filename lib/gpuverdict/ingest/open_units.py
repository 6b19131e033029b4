"""Canonical columns of home-made tables, their units, and cells as numbers or times."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpuverdict.errors import LogFormatError
from gpuverdict.files import ReadOptions
from gpuverdict.schema import METRICS, REQUESTS, STATISTICS

__all__ = ["BATCH_COLUMNS", "COUNT_UNITS", "KNOWN_COLUMNS", "cell_number", "epoch_seconds",
           "is_figure", "units_of"]  # fmt: skip

BATCH_COLUMNS = ("batch", "input_tokens", "output_tokens", "prefill_s", "decode_step_s", "e2e_s",
                 "repeat_no", "memory_used_mib")  # fmt: skip
LEVEL_COLUMNS = ("concurrency", "rate_requests_per_s", "run_id", "repeat_no", "duration_s")
_EXTRA = ("gaps_s", "gap_kind", "error")
KNOWN_COLUMNS = tuple(dict.fromkeys((*REQUESTS, *_EXTRA, *BATCH_COLUMNS, *LEVEL_COLUMNS)))

_TIME_UNITS = {"s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "秒": 1.0, "ms": 1e-3,
               "msec": 1e-3, "毫秒": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "微秒": 1e-6,
               "ns": 1e-9, "纳秒": 1e-9, "min": 60.0, "minutes": 60.0}  # fmt: skip
_RATE_UNITS = {"tokens/s": 1.0, "tok/s": 1.0, "token/s": 1.0, "tokens_per_s": 1.0, "req/s": 1.0,
               "requests/s": 1.0, "requests_per_s": 1.0, "qps": 1.0, "rps": 1.0}  # fmt: skip
_SIZE_UNITS = {"mib": 1.0, "gib": 1024.0, "mb": 1e6 / 2**20, "gb": 1e9 / 2**20,
               "bytes": 1 / 2**20}  # fmt: skip
COUNT_UNITS = {"": 1.0, "tokens": 1.0, "token": 1.0, "count": 1.0, "requests": 1.0, "个": 1.0}
_RATIO_UNITS = {"ratio": 1.0, "%": 0.01, "percent": 0.01}
_POWER_UNITS = {"w": 1.0, "mw": 1e-3, "kw": 1e3, "j": 1.0, "mj": 1e-3, "kj": 1e3, "wh": 3600.0}


def is_figure(target: str) -> bool:
    """Say whether a name is `metric.statistic`, a figure of a whole run."""
    metric, _, statistic = target.partition(".")
    return metric in METRICS and statistic in STATISTICS


def units_of(target: str) -> dict[str, float] | None:
    """Units a column may be given in, with the factor to its base unit; None where it has none."""
    metric = target.partition(".")[0]
    if metric.endswith("_per_s"):
        return _RATE_UNITS
    if metric.endswith("_s"):
        return _TIME_UNITS
    if metric.endswith("_mib"):
        return _SIZE_UNITS
    if metric.endswith(("_tokens", "batch", "concurrency")) or metric in ("n_chunks",):
        return COUNT_UNITS
    if metric.endswith("_ratio"):
        return _RATIO_UNITS
    if metric.endswith(("_w", "_j")):
        return _POWER_UNITS
    return None


def cell_number(value: Any, decimal: str, where: str) -> float | None:
    """Read a cell as a number; None for an empty one or a spelling of missing.

    Raises
    ------
    LogFormatError
        For anything else.
    """
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bool):
        raise LogFormatError(where, found=repr(value), expected="a number")
    if isinstance(value, int | float):
        return _finite(float(value), where)
    text = str(value).strip()
    if text.lower() in ("", "na", "n/a", "nan", "null", "none", "-", "--"):
        return None
    if decimal == ",":
        text = text.replace(".", "").replace(",", ".") if "," in text else text
    try:
        return _finite(float(text), where)
    except ValueError:
        remedy = "give decimal: ','" if re.fullmatch(r"-?\d+,\d+", text) else ""
        raise LogFormatError(where, found=f"{text[:40]!r}", expected="a number",
                             remedy=remedy) from None  # fmt: skip


def _finite(number: float, where: str) -> float:
    if math.isinf(number):
        raise LogFormatError(where, found="infinity", expected="a finite number or an empty cell")
    return number


def epoch_seconds(value: Any, where: str, options: ReadOptions) -> float | None:
    """Read an ISO 8601 stamp as epoch seconds.

    Raises
    ------
    LogFormatError
        For another text, and for a stamp without a zone where none was given.
    """
    if value is None or value == "":
        return None
    try:
        stamp = datetime.fromisoformat(str(value).strip().replace("/", "-"))
    except ValueError:
        raise LogFormatError(
            where, found=f"{str(value)[:40]!r}", expected="an ISO 8601 date and time"
        ) from None
    if stamp.tzinfo is None:
        if options.time_zone is None:
            raise LogFormatError(
                where, found="time stamps without a zone", expected="a zone",
                remedy="give time_zone: (IANA name)",
            )  # fmt: skip
        try:
            stamp = stamp.replace(tzinfo=ZoneInfo(options.time_zone))
        except (ZoneInfoNotFoundError, ValueError):
            raise LogFormatError(
                where, found=f"the unknown time zone {options.time_zone!r}",
                expected="an IANA name",
            ) from None  # fmt: skip
    return stamp.timestamp()
