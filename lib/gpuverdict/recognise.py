"""The one dialect table: which file is what, told by its content and never by its name.

A new dialect is one module in `ingest/` or `telemetry/` and one line in `DIALECTS`. A module offers

* `why_not(document, options) -> str | None`: None when the document is of this dialect, else the
  reason, as a phrase that completes "not <dialect>: ...";
* `read(document, options)`: `list[Run]` for requests, `Trace` for traces, a frame that follows
  `GPU_INVENTORY` for inventories, one that follows `SERVER_METRICS` for server metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["DIALECTS", "Dialect"]

Kind = Literal["requests", "trace", "inventory", "server_metrics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One line of the table."""

    name: str
    kind: Kind
    module: Any


DIALECTS: tuple[Dialect, ...] = ()
