"""Checks of published row tables: copies, formulas of a throughput, units of a power."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from gpuverdict.errors import ParameterError

__all__ = ["copied_groups", "power_in_watts", "throughput_formula"]

FORMULA_TOLERANCE = 0.01  # published figures are rounded to three digits or so


def copied_groups(
    table: pd.DataFrame, group: str, place: Sequence[str], values: Sequence[str]
) -> pd.DataFrame:
    """Find groups whose values are a constant multiple of another group's: copies, not measured.

    Parameters
    ----------
    table : DataFrame
        Published rows with repeats.
    group : str
        Column that names the device or setting.
    place : sequence of str
        Columns that name the cell; repeats of a cell are matched in the order of the file.
    values : sequence of str
        Measured columns to compare.

    Returns
    -------
    DataFrame
        `group, copy_of, value, factor, n`, one row a copied column; of a pair the later group in
        the file is the copy.
    """
    numbered = table.assign(_repeat=table.groupby([group, *place], dropna=False).cumcount())
    names = list(dict.fromkeys(numbered[group]))
    found = []
    for first, second in combinations(names, 2):
        both = numbered[numbered[group] == first].merge(
            numbered[numbered[group] == second], on=[*place, "_repeat"], suffixes=("_a", "_b")
        )
        for value in values:
            pair = both[[f"{value}_a", f"{value}_b"]].dropna().to_numpy(float)
            pair = pair[(pair > 0).all(axis=1)]
            # Two noisy measurements never keep one factor over many cells.
            if len(pair) < 5 or np.ptp(pair[:, 0]) == 0:
                continue
            factor = pair[:, 1] / pair[:, 0]
            if np.ptp(factor) <= 1e-6 * factor.mean():
                found.append(
                    {"group": second, "copy_of": first, "value": value,
                     "factor": float(factor.mean()), "n": len(pair)}
                )  # fmt: skip
    return pd.DataFrame(found, columns=["group", "copy_of", "value", "factor", "n"])


def throughput_formula(
    throughput: float, *, batch: float, input_tokens: float, output_tokens: float, latency_s: float,
) -> str | None:  # fmt: skip
    """Say which formula gives a published throughput; None when none does.

    Returns
    -------
    str or None
        `total tokens`, `output tokens`, or the same with `without the batch`: then the figure is
        that of one sequence and must not be read as the system's.

    Examples
    --------
    >>> throughput_formula(146.5, batch=1, input_tokens=1024, output_tokens=1024, latency_s=13.98)
    'total tokens'
    >>> throughput_formula(128.0, batch=8, input_tokens=512, output_tokens=512, latency_s=8.0)
    'total tokens, without the batch'
    """
    if not (latency_s > 0 and throughput > 0):
        raise ParameterError("throughput", found=f"{throughput}, {latency_s}", expected="above 0")
    total, output = (input_tokens + output_tokens) / latency_s, output_tokens / latency_s
    for name, right in (
        ("total tokens", batch * total), ("output tokens", batch * output),
        ("total tokens, without the batch", total), ("output tokens, without the batch", output),
    ):  # fmt: skip
        if abs(throughput / right - 1) <= FORMULA_TOLERANCE:
            return name
    return None


def power_in_watts(value: float, tdp_w: float) -> tuple[float, str]:
    """Take a power without a unit as watts or milliwatts, whichever the card can draw.

    Raises
    ------
    ParameterError
        When neither lies between 5 W and twice the board power of the GPU.

    Examples
    --------
    >>> power_in_watts(315_800.0, 400.0)
    (315.8, 'mW')
    """
    fits = [
        (value * scale, unit)
        for unit, scale in (("W", 1.0), ("mW", 1e-3))
        if 5.0 <= value * scale <= 2.0 * tdp_w
    ]
    if len(fits) != 1:
        raise ParameterError(
            "power", found=f"{value:g} without a unit",
            expected=f"5 to {2 * tdp_w:g} W, in W or mW",
        )  # fmt: skip
    return fits[0]
