"""What a report depends on, as one hash a comparison: equal hash, equal report."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpuverdict.campaign import Campaign, ComparisonSpec, InputFile, arm_inputs
from gpuverdict.errors import GpuverdictError
from gpuverdict.report.notebooks import notebook_folder
from gpuverdict.store import beside_digest, code_digest, file_digest, package_versions

__all__ = ["fingerprints", "input_digests"]


def input_digests(campaign: Campaign) -> list[tuple[str, InputFile, str]]:
    """Return (arm, file, sha256) of every input, and the error in place of a hash.

    A pattern that matches nothing is an entry of its own: a file that appears later is a change.
    """
    files = [(arm, file) for arm in campaign.arms for file in arm_inputs(campaign, arm)[0]]

    def digest(item: tuple[str, InputFile]) -> str:
        try:
            return file_digest(item[1].path)
        except GpuverdictError as problem:
            return str(problem)

    # Hashing waits for the disk and releases the interpreter.
    with ThreadPoolExecutor(max_workers=4) as pool:
        return [(*item, found) for item, found in zip(files, pool.map(digest, files), strict=True)]


def fingerprints(
    campaign: Campaign,
    specs: Iterable[ComparisonSpec],
    inputs: Iterable[tuple[str, InputFile, str]],
    lang: str,
) -> dict[str, str]:
    """Hash everything a report depends on: files, campaign, code, notebook, versions, language.

    Windows are shared over the arms of a campaign, so all of its inputs count for each comparison.
    """
    common = hashlib.sha256(f"{lang}\n{code_digest()}\n{sys.version}\n".encode())
    for source in campaign.read_from:
        common.update(source.read_bytes())
    common.update((notebook_folder() / "report.ipynb").read_bytes())
    package = Path(__file__).resolve().parents[1]
    for part in (package / "hardware.csv", *sorted((package / "templates").rglob("*"))):
        if part.is_file():
            common.update(part.name.encode() + part.read_bytes())
    for name, version in package_versions().items():
        common.update(f"{name}{version}\n".encode())
    for arm, file, found in inputs:
        beside = beside_digest(file.path) if file.path.is_file() else ""
        common.update(f"{arm}/{file.role}/{file.path.name}\n{found}{beside}\n".encode())
    for arm in campaign.arms:
        common.update("".join(map(str, arm_inputs(campaign, arm)[1])).encode())
    marks = {}
    for spec in specs:
        own = common.copy()
        own.update(str(spec.name).encode())
        marks[str(spec.name)] = own.hexdigest()
    return marks
