"""Sentences about capacity."""

from __future__ import annotations

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {}
