"""What is known of an arm, wherever it is said, and whether two arms agree in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpuverdict.campaign.reading import factor_value
from gpuverdict.design.memory import precision_bits
from gpuverdict.errors import Caution
from gpuverdict.measured import Measured, plain_precision

__all__ = ["both", "differ", "distinct", "shown", "stated", "unknown"]

_LOGGED = {"client_version": "tool_version", "tokenizer": "tokenizer_id"}


def distinct(cautions: Iterable[Caution]) -> tuple[Caution, ...]:
    """Keep one of each caution with the same code and values, in order."""
    return tuple({c.code + repr(sorted(c.values.items())): c for c in cautions}.values())


def shown(value: Any) -> str:
    """Print a fact of an arm."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {held}" for key, held in sorted(value.items())) or "unknown"
    name = getattr(value, "name", value)
    return "unknown" if value is None else str(name)


def differ(baseline: Any, candidate: Any) -> bool:
    """Tell whether two facts are known and unlike."""
    if unknown(baseline) or unknown(candidate):
        return False
    if isinstance(baseline, str) and isinstance(candidate, str):
        if baseline.endswith(" bit") or candidate.endswith(" bit"):
            # A width alone cannot contradict a name of that width.
            return precision_bits(baseline) != precision_bits(candidate)
        return plain_precision(baseline) != plain_precision(candidate)
    return bool(baseline != candidate)


def unknown(value: Any) -> bool:
    """Tell whether nobody said it."""
    return value is None or value == {} or value == ""


def both(measured: Measured, names: tuple[str, str], key: str) -> tuple[Any, Any]:
    """Return what is known of a fact of both arms."""
    return stated(measured, names[0], key), stated(measured, names[1], key)


def stated(measured: Measured, name: str, key: str) -> Any:
    """Return what is known of a fact of an arm: campaign file, else devices, else logs."""
    arm = measured.campaign.arms[name]
    value = factor_value(arm, key)
    if not unknown(value):
        return value
    inventory = measured.inventory.get(name)
    if (
        key in ("driver", "cuda", "ecc", "power_limit_w")
        and inventory is not None
        and key in inventory.columns
    ):
        held = inventory[key].drop_nulls().unique().sort().to_list()
        if held:
            return held[0] if len(held) == 1 else ", ".join(map(str, held))
    if key in ("engine", "engine_version", "kv_dtype", "client_version", "tokenizer", "model_id"):
        source = _LOGGED.get(key, key)
        held = sorted(
            {str(run.stored.info[source]) for run in measured.runs_of(name)
             if run.stored.info.get(source) not in (None, "", "auto")}
        )  # fmt: skip
        if held:
            return ", ".join(held)
    model = measured.campaign.model_of(name)
    if key == "precision" and model is not None and model.weight_bits:
        return f"{model.weight_bits:g} bit"
    if key == "kv_dtype" and model is not None and model.kv_bits:
        return f"{model.kv_bits:g} bit"
    if key == "tokenizer" and model is not None:
        return model.tokenizer
    return None
