"""What the devices of an arm say about themselves, from their inventory or from traces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from gpuverdict.hardware.catalogue import VENDOR_WORDS
from gpuverdict.schema import Trace
from gpuverdict.text import sentence

__all__ = ["DeviceIdentity", "describe_devices", "identify", "short_name"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceIdentity:
    """What the GPUs of an arm say about themselves.

    `links` are the distinct links between the cards (`PHB`, `NV12`, `SYS`); `numa` the distinct
    NUMA nodes; `mig` whether any card is split. Tuples hold one entry a card, in order.
    """

    names: tuple[str, ...]
    uuids: tuple[str | None, ...]
    memory_mib: tuple[float | None, ...]
    power_limit_w: tuple[float | None, ...]
    power_default_w: tuple[float | None, ...]
    power_max_w: tuple[float | None, ...]
    links: tuple[str, ...]
    numa: tuple[str, ...]
    driver: str | None
    mig: bool
    source: str

    @property
    def count(self) -> int:
        """How many cards there are."""
        return len(self.names)

    def __str__(self) -> str:
        return describe_devices(self)


def identify(
    inventory: pl.DataFrame | None = None, traces: Sequence[Trace] = ()
) -> DeviceIdentity | None:
    """Say what the devices are, from their inventory, else from the names in traces.

    Where the inventory of a host lists more cards than the traces cover, the traces choose.

    Returns
    -------
    DeviceIdentity or None
        None when neither names a device.
    """
    traced = _from_traces(traces)
    if inventory is None or not inventory.height or inventory["name"].null_count() > 0:
        return traced
    rows = inventory.rows(named=True)
    if traced is not None:
        seen = set(traced.uuids) - {None}
        listed = {row["gpu_uuid"] for row in rows}
        if seen and seen < listed:
            rows = [row for row in rows if row["gpu_uuid"] in seen]
    indices = {str(row["gpu_index"]) for row in rows}
    links = {
        kind
        for row in rows
        for other, _, kind in (link.partition(":") for link in (row["interconnect"] or "").split())
        if other in indices
    }
    drivers = {row["driver"] for row in rows if row["driver"]}
    return DeviceIdentity(
        names=tuple(row["name"] for row in rows),
        uuids=tuple(row["gpu_uuid"] for row in rows),
        memory_mib=tuple(row["memory_total_mib"] for row in rows),
        power_limit_w=tuple(row["power_limit_w"] for row in rows),
        power_default_w=tuple(row["power_default_w"] for row in rows),
        power_max_w=tuple(row["power_max_w"] for row in rows),
        links=tuple(sorted(links)),
        numa=tuple(sorted({row["numa"] for row in rows if row["numa"] is not None})),
        driver=drivers.pop() if len(drivers) == 1 else None,
        mig=any(row["mig"] == "Enabled" for row in rows),
        source="inventory",
    )


def describe_devices(identity: DeviceIdentity, lang: str = "en") -> str:
    """Describe the devices of an arm in the words of a title.

    Examples
    --------
    >>> two = DeviceIdentity(
    ...     names=("NVIDIA GeForce RTX 4090",) * 2, uuids=("a", "b"), memory_mib=(24564.0,) * 2,
    ...     power_limit_w=(450.0,) * 2, power_default_w=(450.0,) * 2, power_max_w=(450.0,) * 2,
    ...     links=("PHB",), numa=("0",), driver="550.54.15", mig=False, source="inventory")
    >>> describe_devices(two)
    'RTX 4090 x2 (2 x 24,564 MiB, PHB, 450 W, driver 550)'
    """
    n = identity.count
    names = sorted({short_name(name) for name in identity.names})
    title = " + ".join(names) + (f" x{n}" if n > 1 else "")
    facts = []
    memory = sorted({m for m in identity.memory_mib if m is not None})
    if memory:
        sizes = " / ".join(f"{m:,.0f}" for m in memory)
        facts.append(f"{n} x {sizes} MiB" if n > 1 else f"{sizes} MiB")
    facts += identity.links
    limits = sorted({w for w in identity.power_limit_w if w is not None})
    if limits:
        facts.append(" / ".join(f"{w:.0f}" for w in limits) + " W")
    if identity.mig:
        facts.append("MIG")
    if identity.driver:
        facts.append(sentence("identity_driver", lang, version=identity.driver.split(".")[0]))
    return sentence("identity_title", lang, name=title, facts=", ".join(facts) or "–")


def short_name(name: str) -> str:
    """Drop vendor words from a device name.

    Examples
    --------
    >>> short_name("NVIDIA GeForce RTX 4090")
    'RTX 4090'
    """
    kept = [word for word in re.split(r"[\s]+", name) if word.lower() not in VENDOR_WORDS]
    return " ".join(kept) or name


def _from_traces(traces: Sequence[Trace]) -> DeviceIdentity | None:
    cards: dict[str, dict[str, Any]] = {}
    for trace in traces:
        names = trace.info.get("names") or {}
        who = pl.coalesce(pl.col("gpu_uuid"), pl.col("gpu_index").cast(pl.String))
        facts = (
            trace.samples.group_by(who.alias("gpu"), maintain_order=True)
            .agg(
                pl.col("gpu_uuid").first(),
                pl.col("memory_total_mib").max(),
                pl.col("power_limit_w").max(),
            )
            .rows(named=True)
        )
        for fact in facts:
            if fact["gpu"] in names:
                cards.setdefault(fact["gpu"], {**fact, "name": names[fact["gpu"]]})
    if not cards:
        return None
    held = list(cards.values())
    drivers = {str(t.info["driver"]) for t in traces if t.info.get("driver")}
    unknown = (None,) * len(held)
    return DeviceIdentity(
        names=tuple(card["name"] for card in held),
        uuids=tuple(card["gpu_uuid"] for card in held),
        memory_mib=tuple(card["memory_total_mib"] for card in held),
        power_limit_w=tuple(card["power_limit_w"] for card in held),
        power_default_w=unknown,
        power_max_w=unknown,
        links=(),
        numa=(),
        driver=drivers.pop() if len(drivers) == 1 else None,
        mig=False,
        source="trace",
    )
