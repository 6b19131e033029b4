"""One comparison, opened: what a notebook, a report or a person at the prompt starts from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from gpuverdict.campaign import Campaign, ComparisonSpec, find_comparison, read_campaign
from gpuverdict.capacity import capacity_section, curves_section, device_memory
from gpuverdict.curves import CurveComparison, CurveFit
from gpuverdict.diagnosis import Finding, Situation, diagnose, observe
from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.hardware import check_identity, resolve_gpu
from gpuverdict.health import Health, check_health
from gpuverdict.measured import Measured, measure
from gpuverdict.recognise import read_run
from gpuverdict.summary import Summary, summarize, summarize_measured
from gpuverdict.verdict import Verdict, judge
from gpuverdict.verdict.sections import comparison_curves, energy_section, health_section

__all__ = [
    "Case",
    "device_identity",
    "open_campaign",
    "open_case",
    "summarize_paths",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A campaign with its data, one of its comparisons, and what was decided about it.

    `summary.frame` is the long frame of run-level numbers (see `summarize`), `verdict` the cells,
    `health` the runs with their windows, `curves` the fits of both arms and their comparison by
    workload, `findings` what binds by arm and level, `devices` what the devices of each arm say
    they are. `spec` is the comparison as the campaign file states it. Made by `open_case`.
    """

    campaign: Campaign
    spec: ComparisonSpec
    measured: Measured
    summary: Summary
    health: Health
    verdict: Verdict
    devices: Mapping[str, str]
    curves: Mapping[str, tuple[CurveFit | None, CurveFit | None, CurveComparison | None]]
    situations: tuple[Situation, ...]
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return str(self.verdict)


def open_campaign(
    campaign: str | Path,
    *,
    store: str | Path | None = None,
    jobs: int = 1,
    cluster: str | None = None,
) -> tuple[Measured, Summary]:
    """Read a campaign file and everything it names, and summarise its runs.

    Raises
    ------
    CampaignError
        When the campaign file is at fault. Unreadable logs are listed, never raised.
    """
    measured = measure(
        read_campaign(campaign),
        store=Path(store) if store else None,
        jobs=jobs,
        cluster=cluster,
    )
    return measured, summarize_measured(measured)


def open_case(
    campaign: str | Path, comparison: str | None = None, *, store: str | Path | None = None
) -> Case:
    """Open one comparison of a campaign (the first one without a name).

    Parameters
    ----------
    campaign : path
        The file, or a folder that holds a `campaign.yaml`.
    comparison : str, optional
        Its `name` in the file, or `<candidate>-vs-<baseline>` where it has none.
    store : path, optional
        Where what was read is kept; else `.gpuverdict/store` beside the campaign file.

    Returns
    -------
    Case

    Raises
    ------
    CampaignError
        When the campaign file is at fault. Unreadable logs are in `measured.lost`, never raised.
    ParameterError
        For a comparison the campaign does not have.

    Examples
    --------
    >>> case = open_case("data/h200/campaign.yaml", "eager")
    >>> case.verdict.cell("tpot_s", "p50", '{"concurrency": 1}').verdict
    'slower'
    """
    spec = find_comparison(read_campaign(campaign), comparison)
    measured, summary = open_campaign(campaign, store=store)
    health = check_health(measured, summary, (spec.baseline, str(spec.candidate)))
    devices, identity = device_identity(measured)
    verdict = judge(measured, summary, spec, identity=identity, health=health)
    arms = (spec.baseline, str(spec.candidate))
    situations = observe(measured, summary, health, arms)
    findings = diagnose(situations, *arms)
    sections = {
        **verdict.sections,
        "curves": curves_section(summary.frame, measured.campaign, *arms),
        "capacity": capacity_section(
            summary.frame, measured.campaign, *arms,
            device_memory_mib=device_memory(measured.inventory, measured.traces),
        ),
        "energy": energy_section(measured, summary, health, spec),
        "diagnosis": [finding.as_dict() for finding in findings],
        "health": health_section(health, spec),
    }  # fmt: skip
    return Case(
        campaign=measured.campaign,
        spec=spec,
        measured=measured,
        summary=summary,
        health=health,
        devices=devices,
        verdict=replace(verdict, sections=sections),
        curves=comparison_curves(measured, summary, spec),
        situations=tuple(situations),
        findings=findings,
    )


def device_identity(
    measured: Measured, lang: str = "en"
) -> tuple[dict[str, str], dict[str, tuple[Caution, ...]]]:
    """Say for each arm what its devices say they are, and where the label contradicts them."""
    titles, cautions = {}, {}
    for name, arm in measured.campaign.arms.items():
        titles[name], cautions[name] = check_identity(
            resolve_gpu(arm.gpu), arm.gpus, measured.inventory[name], measured.traces[name], lang
        )
    return titles, cautions


def summarize_paths(paths: Sequence[str | Path]) -> tuple[pd.DataFrame, list[str]]:
    """Summarise files (each run whole) or a campaign (its steady windows).

    Returns
    -------
    frame : pandas.DataFrame
        Columns of `schema.SUMMARY`.
    lost : list of str
        One line for each file of a campaign that could not be read.

    Raises
    ------
    LogFormatError, CampaignError
        For a path that cannot be read at all.
    """
    frames, lost = [], []
    for path in map(Path, paths):
        if path.suffix in (".yaml", ".yml") or (
            path.is_dir() and (path / "campaign.yaml").is_file()
        ):
            measured = measure(read_campaign(path))
            frames.append(summarize(measured))
            lost += [item.error for item in measured.lost]
            continue
        if not path.exists():
            raise LogFormatError(
                path, found="no such file or directory", expected="a benchmark log"
            )
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            try:
                frames += [summarize(run) for run in read_run(file)]
            except LogFormatError as problem:
                if path.is_file():
                    raise
                lost.append(str(problem))
    if not frames:
        raise LogFormatError(", ".join(map(str, paths)), found="no run", expected="a benchmark log")
    return pd.concat(frames, ignore_index=True), lost
