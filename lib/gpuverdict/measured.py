"""What a campaign holds once its files are read: every run with its arm, level, repeat and start.

Level and repeat come from the log first and from the file's name second; where both speak and
disagree the file is lost, with both sources named. So are facts of the campaign file that a log
contradicts (model id, lengths, planned count).
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from gpuverdict.campaign import Campaign, InputFile, arm_inputs
from gpuverdict.campaign.inputs import natural_key
from gpuverdict.errors import CampaignError, Caution
from gpuverdict.schema import Trace, run_level
from gpuverdict.store import Entry, StoredRun, default_store, ingest_files
from gpuverdict.telemetry.inventory import merge_inventories
from gpuverdict.text import caution

__all__ = ["Lost", "Measured", "MeasuredRun", "level_label", "measure", "plain_precision"]

_RUN_ROLES = ("sweeps", "runs", "files")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One run in its place: which arm, workload, level, repeat, sweep, server start and card.

    `card` is what the file's name says ({card}), else what the log says, else the arm's only card;
    None where nobody says which of several cards it was.
    """

    arm: str
    workload: str
    level: Mapping[str, float]
    repeat_no: int
    sweep_id: str
    server_start_id: str
    stored: StoredRun
    path: str
    card: str | None = None
    cautions: tuple[Caution, ...] = ()

    @property
    def run_id(self) -> str:
        """The run's identifier."""
        return str(self.stored.info["run_id"])

    @property
    def key(self) -> str:
        """Identifier of the run in its arm: one log may, wrongly, stand in two arms."""
        return f"{self.arm}/{self.run_id}"

    @property
    def level_key(self) -> str:
        """The level as sorted JSON: what frames are grouped by."""
        return json.dumps(dict(self.level), sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A file, or a pattern, that gave nothing, and why."""

    arm: str
    role: str
    path: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A campaign with its data: runs, probes, traces, inventories; what was lost; what was read."""

    campaign: Campaign
    store: Path
    runs: tuple[MeasuredRun, ...]
    probes: Mapping[str, tuple[StoredRun, ...]]
    traces: Mapping[str, tuple[Trace, ...]]
    inventory: Mapping[str, pl.DataFrame]
    server_metrics: Mapping[str, pl.DataFrame]
    server_logs: Mapping[str, tuple[Path, ...]]
    lost: tuple[Lost, ...]
    inputs: tuple[tuple[str, str], ...]
    cautions: tuple[Caution, ...] = ()

    def runs_of(self, arm: str) -> list[MeasuredRun]:
        """Return the runs of an arm in order."""
        return [run for run in self.runs if run.arm == arm]


def level_label(level: Mapping[str, float] | None) -> str:
    """Print a level for a table: `16 streams`, `4 req/s`, `batch 8`.

    Examples
    --------
    >>> level_label({"concurrency": 16})
    '16'
    >>> level_label({"rate_requests_per_s": 4.0})
    '4 req/s'
    """
    if not level:
        return ""
    (kind, value), *_ = level.items()
    shown = f"{value:g}"
    return {"concurrency": shown, "rate_requests_per_s": f"{shown} req/s", "batch": f"b{shown}"}[
        kind
    ]


def measure(
    campaign: Campaign,
    *,
    store: Path | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Callable[[InputFile], None] | None = None,
) -> Measured:
    """Read everything a campaign names.

    Parameters
    ----------
    campaign : Campaign
    store : path, optional
        Default: beside the campaign file.
    jobs, cluster, progress
        As in `store.ingest_files`.

    Returns
    -------
    Measured
        Never raises for an unreadable file: it is in `lost`, with its one-line error.
    """
    store = store or default_store(campaign)
    files: list[tuple[str, InputFile]] = []
    lost: list[Lost] = []
    for arm in campaign.arms:
        found, missing = arm_inputs(campaign, arm)
        files += [(arm, file) for file in found]
        lost += [
            Lost(arm=arm, role=str(e.where).rsplit(".", 1)[-1], path=e.where, error=str(e))
            for e in missing
        ]
    readable = [(arm, file) for arm, file in files if file.role != "server_logs"]
    entries = ingest_files(
        [file for _, file in readable], store, jobs=jobs, cluster=cluster, progress=progress
    )
    by_arm: dict[str, list[Entry]] = defaultdict(list)
    inputs: dict[str, str] = {}
    for (arm, file), entry in zip(readable, entries, strict=True):
        path = _relative(campaign, file.path)
        if entry.sha256:
            inputs[path] = entry.sha256
        if entry.error is not None:
            # A reader knows the file's name only; two arms may hold files of one name.
            error = entry.error.replace(str(file.path), path)
            if error.startswith(file.path.name):
                error = path + error.removeprefix(file.path.name)
            lost.append(Lost(arm=arm, role=file.role, path=path, error=error))
        else:
            by_arm[arm].append(entry)
    runs: list[MeasuredRun] = []
    probes: dict[str, tuple[StoredRun, ...]] = {}
    cautions: list[Caution] = []
    for arm in campaign.arms:
        own, refused, said = _arm_runs(campaign, arm, by_arm[arm])
        runs += own
        lost += refused
        cautions += said
        probes[arm] = tuple(
            run for e in by_arm[arm] if e.file.role == "prefill_probe" for run in e.runs
        )
        lost += [_unexpected(campaign, arm, e) for e in by_arm[arm] if _is_unexpected(e)]
    return Measured(
        campaign=campaign,
        store=store,
        runs=tuple(runs),
        probes=probes,
        traces={a: tuple(t for e in by_arm[a] for t in e.traces) for a in campaign.arms},
        inventory={
            a: merge_inventories(e.inventory for e in by_arm[a] if e.inventory is not None)
            for a in campaign.arms
        },
        server_metrics={a: _merged(e.server_metrics for e in by_arm[a]) for a in campaign.arms},
        server_logs={
            a: tuple(f.path for arm, f in files if arm == a and f.role == "server_logs")
            for a in campaign.arms
        },
        lost=tuple(lost),
        inputs=tuple(sorted(inputs.items())),
        cautions=tuple(cautions),
    )


def _relative(campaign: Campaign, path: Path) -> str:
    return Path(os.path.relpath(path.resolve(), campaign.root.resolve())).as_posix()


def _merged(frames: Any) -> pl.DataFrame:
    real = [frame for frame in frames if frame is not None]
    return pl.concat(real, how="vertical_relaxed") if real else pl.DataFrame()


def _is_unexpected(entry: Entry) -> bool:
    wanted = {"traces": entry.traces, "inventory": entry.inventory is not None}
    if entry.file.role in (*_RUN_ROLES, "prefill_probe"):
        return not entry.runs
    return entry.file.role in wanted and not wanted[entry.file.role]


def _unexpected(campaign: Campaign, arm: str, entry: Entry) -> Lost:
    kinds = [
        name
        for name, held in (
            ("runs", entry.runs),
            ("a GPU trace", entry.traces),
            ("an inventory", entry.inventory is not None),
        )
        if held
    ]
    path = _relative(campaign, entry.file.path)
    error = CampaignError(
        path, found=" and ".join(kinds) or "server metrics",
        expected={"traces": "a GPU trace", "inventory": "an inventory"}.get(
            entry.file.role, "request logs"),
        remedy=f"correct arms.{arm}.{entry.file.role}",
    )  # fmt: skip
    return Lost(arm=arm, role=entry.file.role, path=path, error=str(error))


def _arm_runs(
    campaign: Campaign, arm: str, entries: list[Entry]
) -> tuple[list[MeasuredRun], list[Lost], list[Caution]]:
    """Place the runs of one arm: level, repeat, sweep and start."""
    spec = campaign.arms[arm]
    runs: list[MeasuredRun] = []
    lost: list[Lost] = []
    cautions: list[Caution] = []
    seen_files: dict[str, str] = {}
    taken: dict[tuple[str, str, int], str] = {}
    counts: dict[tuple[str, str], int] = defaultdict(int)
    own = [e for e in entries if e.file.role in _RUN_ROLES and e.runs]
    own.sort(key=lambda e: (e.file.workload, natural_key(str(e.file.path))))
    file_no: dict[tuple[str, str], int] = defaultdict(int)
    for entry in own:
        path = _relative(campaign, entry.file.path)
        content = str(entry.runs[0].info.get("source_sha256") or entry.sha256)
        if content in seen_files:
            cautions.append(
                caution("duplicate_file", path=path, other=seen_files[content], arm=arm)
            )
            continue
        seen_files[content] = path
        file_no[(entry.file.role, entry.file.workload)] += 1
        number = file_no[(entry.file.role, entry.file.workload)]
        try:
            placed = [_place(campaign, arm, entry, stored, path) for stored in entry.runs]
        except CampaignError as problem:
            lost.append(Lost(arm=arm, role=entry.file.role, path=path, error=str(problem)))
            continue
        within: dict[str, int] = defaultdict(int)
        for run in placed:
            within[run.level_key] += 1
            if entry.file.repeat is not None:
                repeat = entry.file.repeat + within[run.level_key] - 1
            elif entry.file.role == "sweeps" and within[run.level_key] == 1 and len(entry.runs) > 0:
                repeat = number
            else:
                repeat = counts[(run.workload, run.level_key)] + 1
            cell = (run.workload, run.level_key)
            while (*cell, repeat) in taken:
                if entry.file.repeat is not None and within[run.level_key] == 1:
                    other = taken[(*cell, repeat)]
                    error = CampaignError(
                        path, found=f"repeat {repeat} at level {level_label(run.level)}",
                        expected="a repeat of its own", remedy=f"{other} holds it already",
                    )  # fmt: skip
                    lost.append(Lost(arm=arm, role=entry.file.role, path=path, error=str(error)))
                    break
                repeat += 1
            else:
                taken[(*cell, repeat)] = path
                counts[cell] = max(counts[cell], repeat)
                each = spec.server_starts == "each" or entry.file.role == "runs"
                one_level = entry.file.role != "sweeps"
                sweep = f"{arm}/{run.workload}/r{repeat}"
                start = f"{arm}/shared"
                if each:
                    start = f"{arm}/{path}" if one_level and entry.file.role == "runs" else sweep
                    if one_level:
                        sweep = f"{arm}/{path}/{run.level_key}/r{repeat}"
                runs.append(replace(run, repeat_no=repeat, sweep_id=sweep, server_start_id=start))
    if campaign.design.exclude_first:
        first = [r for r in runs if r.repeat_no == 1]
        runs = [r for r in runs if r.repeat_no != 1]
        if first:
            cautions.append(caution("first_run_excluded", arm=arm, n=len(first)))
    runs.sort(key=lambda r: (r.workload, sorted(r.level.items()), r.repeat_no))
    return runs, lost, cautions


def _place(campaign: Campaign, arm: str, entry: Entry, stored: StoredRun, path: str) -> MeasuredRun:
    workload = campaign.all_workloads()[entry.file.workload]
    cautions = _contradictions(campaign, arm, entry.file.workload, stored, path)
    named = entry.file.level
    level = run_level(stored.info)
    if level is None and named is not None:
        kind = "rate_requests_per_s" if workload.load == "open" else "concurrency"
        level = {kind: named if kind != "concurrency" or named != int(named) else int(named)}
    if level is None:
        raise CampaignError(
            path, found="no level in the log or its name",
            expected="a concurrency or rate",
            remedy=f"write {{level}} into the pattern of arms.{arm}.{entry.file.role}",
        )  # fmt: skip
    stated = next(iter(level.values()))
    if named is not None and named != stated:
        raise CampaignError(
            path, found=f"level {stated:g} in the log and {named:g} in its name",
            expected="one level", remedy="rename the file or correct the pattern",
        )  # fmt: skip
    return MeasuredRun(
        arm=arm, workload=entry.file.workload, level=level, repeat_no=0, sweep_id="",
        server_start_id="", stored=stored, path=path, cautions=cautions,
        card=_card(campaign, arm, entry, stored, path),
    )  # fmt: skip


def _card(campaign: Campaign, arm: str, entry: Entry, stored: StoredRun, path: str) -> str | None:
    cards = campaign.arms[arm].cards
    named = entry.file.card
    if named is not None:
        if cards and named not in cards:
            raise CampaignError(
                path, found=f"the card {named!r} in its name",
                expected=f"one of arms.{arm}.cards: {', '.join(cards)}",
                remedy="add it there or correct the pattern",
            )  # fmt: skip
        return named
    uuids = stored.info.get("gpu_uuids")
    if uuids:
        return ", ".join(sorted(map(str, uuids)))
    return cards[0] if len(cards) == 1 else None


def _contradictions(
    campaign: Campaign, arm: str, workload_name: str, stored: StoredRun, path: str
) -> tuple[Caution, ...]:
    """Raise where the log contradicts the campaign file; return what is merely short of plan."""
    info, workload, model = (
        stored.info,
        campaign.all_workloads()[workload_name],
        campaign.model_of(arm),
    )
    if model and model.id and info.get("model_id") and info["model_id"] != model.id:
        raise CampaignError(
            path, found=f"the model {info['model_id']!r}", expected=f"model.id {model.id!r}",
            remedy="correct one of them",
        )  # fmt: skip
    for key in ("input_tokens", "output_tokens"):
        asked, logged = getattr(workload, key), info.get(f"requested_{key}")
        if asked is not None and logged is not None and int(logged) != asked:
            raise CampaignError(
                path, found=f"{logged} {key.replace('_', ' ')} asked of the tool",
                expected=f"workload.{key} {asked}", remedy="correct one of them",
            )  # fmt: skip
    spec = campaign.arms[arm]
    if info.get("tp") and spec.tensor_parallel and int(info["tp"]) != spec.tensor_parallel:
        raise CampaignError(
            path, found=f"tensor parallel {info['tp']}",
            expected=f"arms.{arm}.tensor_parallel {spec.tensor_parallel}",
            remedy="correct one of them",
        )  # fmt: skip
    if (
        info.get("precision")
        and spec.precision
        and plain_precision(info["precision"]) != plain_precision(spec.precision)
    ):
        raise CampaignError(
            path, found=f"precision {info['precision']!r}",
            expected=f"arms.{arm}.precision {spec.precision!r}", remedy="correct one of them",
        )  # fmt: skip
    planned = workload.requests
    rows = int(info.get("n_rows") or 0)
    if planned is not None and rows and rows > planned:
        raise CampaignError(
            path, found=f"{rows} requests", expected=f"workload.requests {planned}",
            remedy="correct one of them",
        )  # fmt: skip
    if planned is not None and rows and rows < planned:
        return (caution("short_of_plan", path=path, n_rows=rows, planned=planned),)
    return ()


def plain_precision(precision: object) -> str:
    """Spell a precision one way.

    Examples
    --------
    >>> plain_precision("torch.bfloat16"), plain_precision("FP8")
    ('bf16', 'fp8')
    """
    text = str(precision).lower().replace("torch.", "")
    return {"bfloat16": "bf16", "float16": "fp16", "half": "fp16"}.get(text, text)
