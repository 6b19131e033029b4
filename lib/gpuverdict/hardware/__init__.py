"""What the devices say they are, against what the label claims; the catalogue of known cards.

A label is words (`H200 SXM`); it must name exactly one row of `hardware.csv`. The devices speak
through an inventory (`nvidia-smi -L`, `topo -m`, `-q -x`) or, with less to say, through the names
in a trace. Where the two disagree, nothing measured under that label may be compared.
"""

from __future__ import annotations

from gpuverdict.hardware.catalogue import CatalogueRow, catalogue, match_label, resolve_gpu
from gpuverdict.hardware.checks import BLOCKING_IDENTITY_CODES, check_identity
from gpuverdict.hardware.identity import DeviceIdentity, describe_devices, identify

__all__ = [
    "BLOCKING_IDENTITY_CODES",
    "CatalogueRow",
    "DeviceIdentity",
    "catalogue",
    "check_identity",
    "describe_devices",
    "identify",
    "match_label",
    "resolve_gpu",
]
