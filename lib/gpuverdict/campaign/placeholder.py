"""What a new or drafted campaign file has in place of a fact that no log holds, and its refusal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpuverdict.errors import CampaignError

__all__ = ["PLACEHOLDER", "refuse_placeholders"]

PLACEHOLDER = "FILL-IN"

# The line stays readable; the next call names the rest.
MOST_NAMED = 5

_EXPECTED = {
    "gpu": "words that match one card of the catalogue, such as H200 SXM",
    "gpus": "the number of GPUs",
    "precision": "the precision of the weights, such as bf16",
    "engine": "the serving engine, such as vllm",
    "engine_version": "the engine's version (or no such line)",
    "client_version": "the version of the load generator (or no such line)",
    "time_zone": "an IANA zone such as UTC or Asia/Shanghai",
    "name": "a label",
    "title": "one line on what is compared",
    "clock": "epoch or monotonic",
    "parameters": "the number of weights, such as 7e9",
    "weight_bits": "bits a weight, such as 16",
    "input_tokens": "the prompt tokens asked for",
    "output_tokens": "the output tokens asked for",
    "runs_per_arm": "the number fixed before the data (or no such line)",
    "order": "ABBA, AABB, ABAB, random or simultaneous (or no such line)",
}


def refuse_placeholders(path: Path, raw: Any) -> None:
    """Raise for the first value that was drafted and not filled in.

    Raises
    ------
    CampaignError
        Naming its key, and how many more there are.
    """
    found = list(_places(raw, ()))
    if not found:
        return
    first = found[0]
    others = [".".join(place) for place in found[1 : 1 + MOST_NAMED]]
    rest = ", ..." if len(found) > 1 + MOST_NAMED else ""
    more = f" (and {len(found) - 1} more: {', '.join(others)}{rest})" if others else ""
    raise CampaignError(
        f"{path.name}: {'.'.join(first)}",
        found=f"the placeholder {PLACEHOLDER}{more}",
        expected=_EXPECTED.get(first[-1], "what it was"),
        remedy="no log says it; fill it in",
    )


def _places(value: Any, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if value == PLACEHOLDER:
        yield at
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*at, str(key)))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _places(inner, (*at, str(number)))
