"""What a million tokens costs, what owning costs, and when owning pays; no built-in prices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = [
    "CostInputs",
    "Ownership",
    "break_even_utilisation",
    "cards_needed",
    "ownership",
    "payback_months",
    "price_per_million_tokens",
    "tokens_per_joule",
]

HOURS_PER_YEAR = 8760.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostInputs:
    """Prices and assumptions of an arm, all from the campaign; None where it gives none.

    Money is in the campaign's currency. `power_w` is the measured mean of the arm under load.
    """

    price_per_hour: float | None = None
    purchase: float | None = None
    host: float | None = None
    operation_per_year: float | None = None
    failure_ratio_per_year: float | None = None
    electricity_per_kwh: float | None = None
    power_w: float | None = None
    pue: float | None = None
    utilisation_ratio: float | None = None
    years: float | None = None
    currency: str = ""


def _scaled_inverse(rate: Estimate, factor: float, unit: str) -> Estimate:
    """factor / rate with its interval; a rate interval that reaches 0 leaves the cost open."""
    if rate.value is None or rate.value <= 0:
        return Estimate(value=None, unit=unit, n=rate.n, cautions=(caution("no_throughput"),))
    known = rate.low is not None and rate.high is not None and rate.low > 0
    return Estimate(
        value=factor / rate.value,
        low=factor / rate.high if known and rate.high else None,
        high=factor / rate.low if known and rate.low else None,
        confidence=rate.confidence if known else None,
        unit=unit,
        n=rate.n,
        cautions=rate.cautions,
    )


def price_per_million_tokens(
    tokens_per_s: Estimate, cost_per_hour: float | None, *, utilisation_ratio: float = 1.0
) -> Estimate:
    """Return the price of a million tokens at a throughput.

    Parameters
    ----------
    tokens_per_s : Estimate
        Output tokens of the system at the load it is priced at (its SLO knee); an input price takes
        input tokens instead. One hour is paid once: an input and an output price do not add up.
    cost_per_hour : float or None
        Of the whole arm. None gives None with a caution.
    utilisation_ratio : float
        Share of paid hours that serve this load.

    Examples
    --------
    >>> rate = Estimate(value=2500.0, low=2000.0, high=3000.0, confidence=0.95)
    >>> p = price_per_million_tokens(rate, 3.6)
    >>> p.value, round(p.low, 3), p.high
    (0.4, 0.333, 0.5)
    """
    if cost_per_hour is None:
        return Estimate(value=None, cautions=(caution("no_price"),))
    if not 0 < utilisation_ratio <= 1:
        raise ParameterError(
            "utilisation_ratio", found=repr(utilisation_ratio), expected="above 0, at most 1"
        )
    return _scaled_inverse(tokens_per_s, cost_per_hour / 3600 * 1e6 / utilisation_ratio, "")


def tokens_per_joule(energy_per_token_j: Estimate) -> Estimate:
    """Return output tokens per joule from joules per output token.

    Examples
    --------
    >>> tokens_per_joule(Estimate(value=0.25, low=0.2, high=0.5, confidence=0.95)).value
    4.0
    """
    return _scaled_inverse(energy_per_token_j, 1.0, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """Cost of owning an arm over years: the parts, the whole, and per hour and million tokens.

    `missing` names the inputs the campaign does not give; they count 0 and are said.
    """

    parts: Mapping[str, float]
    total: float
    years: float
    per_hour: float
    per_million_output_tokens: Estimate
    missing: tuple[str, ...]
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {value:,.0f}" for name, value in self.parts.items())
        return f"{self.total:,.0f} over {self.years:g} years ({shown})"


def ownership(inputs: CostInputs, tokens_per_s: Estimate | None = None) -> Ownership | None:
    """Return what owning costs: purchase, host, power with PUE, operation, failures.

    Parameters
    ----------
    inputs : CostInputs
        `purchase` and `years` are needed, else None.
    tokens_per_s : Estimate, optional
        Throughput of the arm while it is used.

    Notes
    -----
    Power = mean watts x PUE x hours x utilisation x price. Failures = purchase x share failing a
    year x years. No discounting.

    Examples
    --------
    >>> costs = CostInputs(purchase=20_000, host=5_000, years=3, power_w=764,
    ...                    electricity_per_kwh=0.8, pue=1.0, utilisation_ratio=1.0)
    >>> round(ownership(costs).parts["power"])
    16062
    """
    if inputs.purchase is None or inputs.years is None:
        return None
    for name in ("purchase", "years", "power_w", "pue"):
        value = getattr(inputs, name)
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ParameterError(f"cost.{name}", found=repr(value), expected="0 or more")
    names = (
        "host", "operation_per_year", "failure_ratio_per_year", "electricity_per_kwh", "power_w",
        "pue", "utilisation_ratio",
    )  # fmt: skip
    missing = tuple(name for name in names if getattr(inputs, name) is None)
    years, used = inputs.years, inputs.utilisation_ratio or 1.0
    hours = HOURS_PER_YEAR * years
    kilowatt_hours = (inputs.power_w or 0.0) / 1e3 * (inputs.pue or 1.0) * hours * used
    parts = {
        "purchase": inputs.purchase,
        "host": inputs.host or 0.0,
        "power": kilowatt_hours * (inputs.electricity_per_kwh or 0.0),
        "operation": (inputs.operation_per_year or 0.0) * years,
        "failures": inputs.purchase * (inputs.failure_ratio_per_year or 0.0) * years,
    }
    total = math.fsum(parts.values())
    per_hour = total / hours if hours else math.inf
    rate = tokens_per_s or Estimate(value=None)
    said = (caution("cost_inputs_missing", names=", ".join(missing)),) if missing else ()
    return Ownership(
        parts=parts,
        total=total,
        years=years,
        per_hour=per_hour,
        per_million_output_tokens=price_per_million_tokens(rate, per_hour, utilisation_ratio=used),
        missing=missing,
        cautions=said,
    )


def break_even_utilisation(owned: Ownership, rent_per_hour: float | None) -> float | None:
    """Return the share of hours in use above which owning is cheaper than renting by the hour.

    None without a rent. Above 1 owning never pays at this rent.

    Notes
    -----
    Ownership per year is taken as fixed; its power part was computed at the stated utilisation.

    Examples
    --------
    >>> costs = CostInputs(purchase=26_280, years=3)
    >>> break_even_utilisation(ownership(costs), 2.0)
    0.5
    """
    if not rent_per_hour:
        return None
    return owned.per_hour / rent_per_hour


def payback_months(extra_purchase: float, saving_per_month: float) -> float | None:
    """Return after how many months a dearer arm has earned its price back; None if it never does.

    Examples
    --------
    >>> payback_months(12_000, 500), payback_months(12_000, -5)
    (24.0, None)
    """
    if extra_purchase <= 0:
        return 0.0
    return extra_purchase / saving_per_month if saving_per_month > 0 else None


def cards_needed(load: float, per_arm: float | None, gpus: int) -> int | None:
    """Return how many GPUs carry a load, with whole arms and a spare one (N + 1).

    Examples
    --------
    >>> cards_needed(100.0, 32.0, 2), cards_needed(100.0, None, 2)
    (10, None)
    """
    if not per_arm or per_arm <= 0 or load <= 0:
        return None
    return (math.ceil(load / per_arm - 1e-9) + 1) * gpus
