"""Sentences of the report itself, and words used everywhere."""

from __future__ import annotations

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {
    "empty_value": {
        "en": ("{name} was not measured.", ""),
        "zh": ("未测量 {name}。", ""),
    },
}
