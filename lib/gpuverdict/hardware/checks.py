"""A label against the devices: which product this is, and what else is true of these cards."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.hardware.catalogue import CatalogueRow, catalogue, match_label, name_words
from gpuverdict.hardware.identity import DeviceIdentity, describe_devices, identify, short_name
from gpuverdict.schema import Trace
from gpuverdict.text import caution, sentence

__all__ = ["BLOCKING_IDENTITY_CODES", "check_identity"]

# Cautions of this module that make every comparison of the arm `not comparable`.
BLOCKING_IDENTITY_CODES = frozenset(
    {
        "identity_model",
        "identity_form_factor",
        "identity_memory",
        "identity_two_cards",
        "identity_one_card",
        "identity_count",
        "identity_mig",
        "identity_mixed",
        "identity_other_host",
    }
)

# Catalogue figures are marketing gigabytes; the driver reports MiB less what it reserves.
MEMORY_TOLERANCE = 0.05
# Error correction of GDDR6 boards takes a sixteenth of the memory (an L40S reads 46,068 MiB).
GDDR_ECC_SHARE = 15 / 16
POWER_TOLERANCE = 0.25
_NVLINK = re.compile(r"^NV\d+$")


def check_identity(
    label: str | CatalogueRow,
    gpus: int,
    inventory: pl.DataFrame | None = None,
    traces: Sequence[Trace] = (),
    lang: str = "en",
) -> tuple[str, tuple[Caution, ...]]:
    """Compare what a label claims with what the devices say.

    Parameters
    ----------
    label : str or CatalogueRow
        The claim.
    gpus : int
        How many cards are claimed.
    inventory : polars.DataFrame, optional
        Columns of `GPU_INVENTORY`, merged over the documents of the host.
    traces : sequence of Trace
        Used for names where there is no inventory, and to see which cards ran.

    Returns
    -------
    title : str
        What the devices say, or the label marked `declared, not verified`.
    cautions : tuple of Caution
        Those whose code is in `BLOCKING_IDENTITY_CODES` stop every comparison of the arm.

    Raises
    ------
    ParameterError
        For a label that names no single variant.
    """
    row = match_label(label) if isinstance(label, str) else label
    identity = identify(inventory, traces)
    if identity is None:
        claim = row.name + (f" x{gpus}" if gpus > 1 else "")
        note = caution("identity_declared", label=claim)
        return sentence("identity_declared_title", lang, label=claim), (note,)
    cautions = [*_other_host(inventory, traces), *_kind(row, gpus, identity)]
    cautions += _circumstances(row, identity)
    return describe_devices(identity, lang), tuple(cautions)


def _other_host(inventory: pl.DataFrame | None, traces: Sequence[Trace]) -> list[Caution]:
    if inventory is None:
        return []
    listed = set(inventory["gpu_uuid"].drop_nulls().to_list())
    for trace in traces:
        traced = set(trace.samples["gpu_uuid"].drop_nulls().unique().to_list())
        if listed and traced and not traced <= listed:
            return [caution("identity_other_host", name=str(trace.info.get("source_name")))]
    return []


def _kind(row: CatalogueRow, gpus: int, identity: DeviceIdentity) -> list[Caution]:
    """Judge model, form factor, memory and count: what decides which product this is."""
    said = " + ".join(sorted({short_name(name) for name in identity.names}))
    if (
        len({(short_name(n), m) for n, m in zip(identity.names, identity.memory_mib, strict=True)})
        > 1
    ):
        return [caution("identity_mixed", label=row.name, found=describe_devices(identity))]
    if identity.mig:
        return [caution("identity_mig", label=row.name, found=said)]
    found: list[Caution] = []
    model = name_words(row.gpu)
    device = name_words(identity.names[0])
    catalogued = row.confidence != "declared"
    if catalogued and not (model <= device and not device & {"laptop", "mobile"}):
        return [caution("identity_model", label=row.name, found=said)]
    found += _form_factor(row, identity) if catalogued else []
    memory = identity.memory_mib[0]
    if memory is not None and row.memory_gb is not None:
        found += _memory(row, gpus, identity, memory / 1024)
    blocked = {note.code for note in found} & BLOCKING_IDENTITY_CODES
    if not blocked and identity.count < gpus:
        found.append(caution("identity_count", label=row.name, declared=gpus, found=identity.count))
    elif not blocked and identity.count > gpus:
        found.append(caution("identity_which_cards", declared=gpus, found=identity.count))
    return found


def _memory(row: CatalogueRow, gpus: int, identity: DeviceIdentity, gib: float) -> list[Caution]:
    """Compare memory, and name the two ways in which 48 GB is mistaken for 2 x 24 GB."""
    assert row.memory_gb is not None
    ratio = gib / row.memory_gb
    if abs(ratio - 1.0) <= MEMORY_TOLERANCE or abs(ratio / GDDR_ECC_SHARE - 1.0) <= 0.01:
        return []
    said = f"{gib * 1024:,.0f} MiB"
    if identity.count >= 2 * gpus and abs(2 * ratio - 1.0) <= MEMORY_TOLERANCE:
        return [
            caution(
                "identity_two_cards", label=row.name, each=said, count=identity.count,
                memory_gb=row.memory_gb,
            )
        ]  # fmt: skip
    if 2 * identity.count <= gpus and abs(ratio / 2 - 1.0) <= MEMORY_TOLERANCE:
        return [
            caution("identity_one_card", label=row.name, gpus=gpus, each=said, count=identity.count)
        ]
    return [caution("identity_memory", label=row.name, memory_gb=row.memory_gb, found=said)]


def _form_factor(row: CatalogueRow, identity: DeviceIdentity) -> list[Caution]:
    variants = [r for r in catalogue() if r.gpu == row.gpu and r.memory_gb == row.memory_gb]
    said = _form_of(identity.names[0])
    claimed = "SXM" if row.form_factor.startswith("SXM") else "PCIe"
    if said is None:
        said = _form_by_power(variants, identity)
    if said is None:
        if len({v.form_factor for v in variants}) > 1:
            return [caution("identity_form_unverified", label=row.name, found=identity.names[0])]
        return []
    if said == claimed or (row.form_factor == "OAM"):
        return []
    found = short_name(identity.names[0])
    return [caution("identity_form_factor", label=row.name, found=found, form=said)]


def _form_of(name: str) -> str | None:
    words = name_words(name)
    if any(word.startswith("sxm") for word in words) or ("h100" in words and "hbm3" in words):
        return "SXM"
    if words & {"pcie", "nvl"} or "GeForce" in name or "RTX" in name:
        return "PCIe"
    return None


def _form_by_power(variants: Sequence[CatalogueRow], identity: DeviceIdentity) -> str | None:
    """Tell the variants of one model apart by the largest limit the board accepts."""
    largest = identity.power_max_w[0] or identity.power_default_w[0]
    near = {
        "SXM" if v.form_factor.startswith("SXM") else "PCIe"
        for v in variants
        if largest is not None and v.tdp_w is not None and abs(largest / v.tdp_w - 1) <= 0.1
    }
    return near.pop() if len(near) == 1 else None


def _circumstances(row: CatalogueRow, identity: DeviceIdentity) -> list[Caution]:
    """Say what is true of these cards and part of the bundle that is compared."""
    found: list[Caution] = []
    limit, default = identity.power_limit_w[0], identity.power_default_w[0]
    if limit is not None and default is not None and limit < 0.99 * default:
        found.append(caution("identity_power_capped", limit_w=limit, default_w=default))
    if (
        default is not None
        and row.tdp_w is not None
        and abs(default / row.tdp_w - 1.0) > POWER_TOLERANCE
    ):
        found.append(
            caution("identity_renamed", label=row.name, default_w=default, tdp_w=row.tdp_w)
        )
    if identity.count > 1:
        if len(identity.numa) > 1 or "SYS" in identity.links:
            found.append(caution("identity_cross_numa", links=", ".join(identity.links) or "?"))
        linked = any(_NVLINK.match(link) for link in identity.links)
        if row.interconnect.startswith("NVLink") and identity.links and not linked:
            found.append(
                caution("identity_no_nvlink", label=row.name, links=", ".join(identity.links))
            )
    return found
