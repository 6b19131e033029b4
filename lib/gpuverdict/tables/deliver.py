"""What a report hands on beside the page: verdicts, tables and the summary, as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gpuverdict.campaign import arm_inputs
from gpuverdict.case import Case
from gpuverdict.store import file_digest, package_versions
from gpuverdict.tables.export import write_xlsx
from gpuverdict.verdict import verdicts_json

__all__ = ["provenance_record", "write_case"]


def write_case(case: Case, folder: str | Path | None) -> None:
    """Write `verdicts.json`, `tables.xlsx` and `summary.parquet` of a case into a folder.

    Parameters
    ----------
    case : Case
    folder : path or None
        Made if it does not exist. None writes nothing: a notebook that is only looked at leaves no
        file behind.
    """
    if folder is None:
        return
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    text = verdicts_json(case.verdict, provenance_record(case))
    (place / "verdicts.json").write_text(text, encoding="utf-8")
    frame = case.summary.frame
    own = frame[frame.arm.isin([case.spec.baseline, case.spec.candidate])]
    own.to_parquet(place / "summary.parquet", index=False)
    write_xlsx(case, place / "tables.xlsx")


def provenance_record(case: Case) -> dict[str, Any]:
    """Return what a verdict rests on: inputs with hashes, versions, parameters.

    No time stamp and no path outside the campaign: equal inputs give equal records.
    """
    arms = {case.spec.baseline, str(case.spec.candidate)}
    used = {f.path for arm in sorted(arms) for f in arm_inputs(case.campaign, arm)[0]}
    root = case.campaign.root.resolve()

    def relative(path: Path) -> str:
        return Path(os.path.relpath(path.resolve(), root)).as_posix()

    names = {relative(p) for p in used}
    inputs = [{"path": p, "sha256": h} for p, h in case.measured.inputs if p in names]
    inputs += [{"path": relative(p), "sha256": file_digest(p)} for p in case.campaign.read_from]
    return {
        "inputs": sorted(inputs, key=lambda item: item["path"]),
        "versions": package_versions(),
        "parameters": {
            "comparison": case.spec.name, "treatment": list(case.verdict.comparability.treatment),
            "paired": case.spec.paired or case.campaign.design.paired,
            "margins": dict(case.campaign.margins), "primary": list(case.campaign.primary),
        },
    }  # fmt: skip
