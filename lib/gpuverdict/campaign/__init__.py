"""`campaign.yaml`: what was meant to be measured, validated before anything is read.

The keys live in `keys`, the finding of files in `inputs`, reading and cross-checking in `reading`,
the arms of earlier campaigns in `retest`.
`key_table()` prints every key with its type, place and default.
"""

from __future__ import annotations

from gpuverdict.campaign.inputs import InputFile, arm_inputs
from gpuverdict.campaign.keys import (
    Arm,
    Campaign,
    ClientPlace,
    ComparisonSpec,
    Design,
    InputSpec,
    ModelSpec,
    Workload,
)
from gpuverdict.campaign.placeholder import PLACEHOLDER
from gpuverdict.campaign.reading import find_comparison, read_campaign
from gpuverdict.campaign.retest import earlier_arms
from gpuverdict.campaign.table import key_table

__all__ = [
    "PLACEHOLDER",
    "Arm",
    "Campaign",
    "ClientPlace",
    "ComparisonSpec",
    "Design",
    "InputFile",
    "InputSpec",
    "ModelSpec",
    "Workload",
    "arm_inputs",
    "earlier_arms",
    "find_comparison",
    "key_table",
    "read_campaign",
]
