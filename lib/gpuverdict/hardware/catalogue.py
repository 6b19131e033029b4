"""The catalogue of known cards, and the words that name one of them."""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any

from gpuverdict.errors import ParameterError

__all__ = ["VENDOR_WORDS", "CatalogueRow", "catalogue", "match_label", "name_words", "resolve_gpu"]

VENDOR_WORDS = frozenset(
    {"nvidia", "geforce", "tesla", "amd", "instinct", "generation", "gpu", "graphics"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueRow:
    """One variant of a GPU: figures of its data sheet, None where none is trusted."""

    gpu: str
    variant: str
    form_factor: str
    memory_gb: float | None
    memory_bandwidth_gb_per_s: float | None
    bf16_dense_tflops: float | None
    fp16_acc_note: str = ""
    fp8_dense_tflops: float | None = None
    int8_dense_tops: float | None = None
    tdp_w: float | None = None
    interconnect: str = ""
    interconnect_gb_per_s: float | None = None
    confidence: str = ""
    source_note: str = ""

    @property
    def name(self) -> str:
        """The name of the variant, such as `A100 80GB PCIe`."""
        return f"{self.gpu} {self.variant}".strip()

    def __str__(self) -> str:
        return self.name


@functools.cache
def catalogue() -> tuple[CatalogueRow, ...]:
    """Read the catalogue: one row a variant."""
    text = resources.files("gpuverdict").joinpath("hardware.csv").read_text(encoding="utf-8")
    texts = {"gpu", "variant", "form_factor", "fp16_acc_note", "interconnect", "confidence",
             "source_note"}  # fmt: skip
    return tuple(
        CatalogueRow(
            **{
                key: value if key in texts else (float(value) if value else None)
                for key, value in row.items()
            }  # type: ignore[arg-type]
        )
        for row in csv.DictReader(text.splitlines())
    )


def match_label(label: str) -> CatalogueRow:
    """Find the one variant whose name holds every word of a label.

    Parameters
    ----------
    label : str
        Words in any order; vendor words are ignored, `SXM` stands for any of its generations,
        `80 GB` for `80GB`.

    Raises
    ------
    ParameterError
        When no row or more than one matches; the line lists the candidates.

    Examples
    --------
    >>> match_label("H200 SXM").name, match_label("A100 PCIe").tdp_w
    ('H200 SXM 141GB', 300.0)
    """
    wanted = name_words(label)
    found = [row for row in catalogue() if wanted and wanted <= _row_words(row)]
    if len(found) == 1:
        return found[0]
    near = found or _nearest(wanted)
    raise ParameterError(
        "gpu",
        found=f"{label!r}, which matches {len(found) or 'no'} rows of the catalogue",
        expected="words that match one row: " + "; ".join(row.name for row in near),
        remedy="say the variant, put a count into `gpus`, or describe the card with its figures",
    )


def resolve_gpu(gpu: str | Mapping[str, Any] | object) -> CatalogueRow:
    """Take a label or a description with its own figures as one catalogue row.

    Parameters
    ----------
    gpu : str, mapping or object
        Words for `match_label`, or something with `name` and any figures of `CatalogueRow`; only
        the description's own figures count then.

    Examples
    --------
    >>> resolve_gpu({"name": "4090 with 48 GB", "memory_gb": 48}).memory_bandwidth_gb_per_s is None
    True
    """
    if isinstance(gpu, str):
        return match_label(gpu)
    given = dict(gpu) if isinstance(gpu, Mapping) else {}
    names = [field.name for field in fields(CatalogueRow)]
    held = {key: given.get(key, getattr(gpu, key, None)) for key in (*names, "name")}
    return CatalogueRow(
        gpu=str(held["name"]),
        variant="",
        form_factor=str(held["form_factor"] or ""),
        memory_gb=held["memory_gb"],
        memory_bandwidth_gb_per_s=held["memory_bandwidth_gb_per_s"],
        bf16_dense_tflops=held["bf16_dense_tflops"],
        fp8_dense_tflops=held["fp8_dense_tflops"],
        int8_dense_tops=held["int8_dense_tops"],
        tdp_w=held["tdp_w"],
        confidence="declared",
    )


def name_words(text: str) -> frozenset[str]:
    """Split a name into the words that tell cards apart.

    Examples
    --------
    >>> sorted(name_words("NVIDIA A100-SXM4-80GB")), sorted(name_words("RTX 4090 D 24 GB"))
    (['80gb', 'a100', 'sxm4'], ['24gb', '4090d', 'rtx'])
    """
    text = re.sub(r"(\d+)\s*(?:GiB|GB|G)\b", r"\1gb ", text, flags=re.I)
    # "RTX 4090 D" is sold with and without the blank.
    text = re.sub(r"4090\s+D\b", "4090D", text, flags=re.I)
    return frozenset(re.findall(r"[a-z0-9]+", text.lower())) - VENDOR_WORDS


def _row_words(row: CatalogueRow) -> frozenset[str]:
    words = name_words(f"{row.gpu} {row.variant} {row.form_factor}")
    return words | {"sxm" for word in words if word.startswith("sxm")}


def _nearest(wanted: frozenset[str]) -> list[CatalogueRow]:
    scored = [(len(wanted & _row_words(row)), row) for row in catalogue()]
    best = max(score for score, _ in scored)
    return [row for score, row in scored if score == best and best > 0] or list(catalogue())
