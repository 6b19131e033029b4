"""Reading everything a campaign names, and what comes of each file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from gpuverdict.campaign import Campaign, InputFile, arm_inputs
from gpuverdict.campaign.keys import Infeasible
from gpuverdict.errors import CampaignError, Caution, LogFormatError
from gpuverdict.files import open_documents
from gpuverdict.measured.placing import (
    RUN_ROLES,
    Lost,
    MeasuredRun,
    arm_runs,
    relative,
    with_stated,
)
from gpuverdict.measured.server_times import ServerJoin, join_runs
from gpuverdict.schema import TOKEN_GAPS, Run, Trace, empty
from gpuverdict.store import Entry, StoredRun, default_store, ingest_files
from gpuverdict.telemetry.inventory import merge_inventories
from gpuverdict.telemetry.server_log import ServerEvent, fatal_event, find_events
from gpuverdict.text import caution

__all__ = ["LogFile", "Measured", "MetricsFile", "measure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsFile:
    """Metrics of a server or host from one file, and the run its name says they are of."""

    path: str
    frame: pl.DataFrame
    level: float | None = None
    repeat: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """Engine output or a kernel log, its telling lines, and the level its name gives."""

    path: str
    events: tuple[ServerEvent, ...]
    level: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A campaign with its data: runs, probes, traces, inventories; what was lost; what was read.

    `server_joins` says for each run (by its key) how the server's own log was joined to it.
    """

    campaign: Campaign
    store: Path
    runs: tuple[MeasuredRun, ...]
    probes: Mapping[str, tuple[StoredRun, ...]]
    traces: Mapping[str, tuple[Trace, ...]]
    inventory: Mapping[str, pl.DataFrame]
    server_metrics: Mapping[str, tuple[MetricsFile, ...]]
    server_joins: Mapping[str, ServerJoin]
    server_logs: Mapping[str, tuple[LogFile, ...]]
    lost: tuple[Lost, ...]
    inputs: tuple[tuple[str, str], ...]
    cautions: tuple[Caution, ...] = ()

    def runs_of(self, arm: str) -> list[MeasuredRun]:
        """Return the runs of an arm in order."""
        return [run for run in self.runs if run.arm == arm]


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
        path = relative(campaign, file.path)
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
    inventory = {
        arm: merge_inventories(e.inventory for e in by_arm[arm] if e.inventory is not None)
        for arm in campaign.arms
    }
    runs: list[MeasuredRun] = []
    probes: dict[str, tuple[StoredRun, ...]] = {}
    joins: dict[str, ServerJoin] = {}
    cautions: list[Caution] = []
    for arm, spec in campaign.arms.items():
        if not (spec.sweeps or spec.runs or spec.files):
            cautions.append(caution("arm_without_logs", arm=arm))
        own, refused, said = arm_runs(campaign, arm, by_arm[arm])
        own = [
            replace(run, stored=with_stated(campaign, arm, run.stored, inventory[arm]))
            for run in own
        ]
        rows = [e.server_requests for e in by_arm[arm] if e.server_requests is not None]
        if rows:
            own, joined = _with_server_times(own, pl.concat(rows))
            joins |= joined
        runs += own
        lost += refused
        cautions += said
        probes[arm] = tuple(
            with_stated(campaign, arm, run, inventory[arm])
            for e in by_arm[arm]
            if e.file.role == "prefill_probe"
            for run in e.runs
        )
        lost += [_unexpected(campaign, arm, e) for e in by_arm[arm] if _is_unexpected(e)]
    logs = [(arm, file) for arm, file in files if file.role == "server_logs"]
    searched = _search_logs(campaign, logs, inputs, lost)
    return Measured(
        campaign=_with_log_evidence(campaign, searched, runs),
        store=store,
        runs=tuple(runs),
        probes=probes,
        traces={
            a: tuple(_own_cards(t, spec.cards) for e in by_arm[a] for t in e.traces)
            for a, spec in campaign.arms.items()
        },
        inventory=inventory,
        server_metrics={a: _metrics(campaign, by_arm[a]) for a in campaign.arms},
        server_joins=joins,
        server_logs={a: tuple(searched[a]) for a in campaign.arms},
        lost=tuple(lost),
        inputs=tuple(sorted(inputs.items())),
        cautions=tuple(cautions),
    )


def _search_logs(
    campaign: Campaign,
    logs: list[tuple[str, InputFile]],
    inputs: dict[str, str],
    lost: list[Lost],
) -> dict[str, list[LogFile]]:
    """Search engine and kernel logs for lines that speak of memory running out."""
    searched: dict[str, list[LogFile]] = defaultdict(list)
    for arm, file in logs:
        path = relative(campaign, file.path)
        try:
            documents = open_documents(file.path, file.options)
        except LogFormatError as problem:
            lost.append(Lost(arm=arm, role=file.role, path=path, error=str(problem)))
            continue
        inputs[path] = documents[0].sha256
        events = tuple(e for document in documents for e in find_events(document))
        searched[arm].append(LogFile(path=path, events=events, level=file.level))
    return searched


def _with_log_evidence(
    campaign: Campaign, searched: Mapping[str, list[LogFile]], runs: list[MeasuredRun]
) -> Campaign:
    """Declare the levels infeasible that left only a server log that says why.

    The level comes from the log's name (`{level}` in the pattern); a level with a run ran.
    """
    ran = {(run.arm, value) for run in runs for value in run.level.values()}
    found: dict[str, list[Infeasible]] = defaultdict(list)
    for arm, files in searched.items():
        for file in files:
            fatal = fatal_event(file.events)
            if fatal is not None and file.level is not None and (arm, file.level) not in ran:
                reason = f"{file.path}, {fatal}"
                found[arm].append(Infeasible(level=file.level, workload=None, reason=reason))
    if not found:
        return campaign
    arms = {
        name: spec.model_copy(update={"infeasible": (*spec.infeasible, *found[name])})
        for name, spec in campaign.arms.items()
    }
    return campaign.model_copy(update={"arms": arms})


def _own_cards(trace: Trace, cards: tuple[str, ...]) -> Trace:
    """Keep the GPUs an arm names by UUID, where the trace of its host holds others as well."""
    held = set(trace.samples["gpu_uuid"].drop_nulls().unique().to_list())
    if not cards or not set(cards) < held:
        return trace
    return replace(trace, samples=trace.samples.filter(pl.col("gpu_uuid").is_in(list(cards))))


def _with_server_times(
    runs: list[MeasuredRun], rows: pl.DataFrame
) -> tuple[list[MeasuredRun], dict[str, ServerJoin]]:
    """Fill what the clients' logs do not say from the server's own log of the same requests."""
    bare = [
        Run(info=run.stored.info, requests=run.stored.requests(), gaps=empty(TOKEN_GAPS))
        for run in runs
    ]
    joins = join_runs(bare, rows)
    filled = [
        replace(
            run,
            stored=replace(run.stored, server_times=join.times),
            cautions=(*run.cautions, *join.cautions),
        )
        for run, join in zip(runs, joins, strict=True)
    ]
    return filled, {run.key: join for run, join in zip(filled, joins, strict=True)}


def _metrics(campaign: Campaign, entries: list[Entry]) -> tuple[MetricsFile, ...]:
    return tuple(
        MetricsFile(
            path=relative(campaign, entry.file.path),
            frame=entry.server_metrics,
            level=entry.file.level,
            repeat=entry.file.repeat,
        )
        for entry in entries
        if entry.server_metrics is not None
    )


def _is_unexpected(entry: Entry) -> bool:
    wanted = {
        "traces": entry.traces,
        "inventory": entry.inventory is not None,
        "server_metrics": entry.server_metrics is not None,
        "server_requests": entry.server_requests is not None,
    }
    if entry.file.role in (*RUN_ROLES, "prefill_probe"):
        return not entry.runs
    return entry.file.role in wanted and not wanted[entry.file.role]


_HELD = {
    "traces": "a GPU trace",
    "inventory": "an inventory",
    "server_metrics": "server or host metrics",
    "server_requests": "the server's own log of requests",
}


def _unexpected(campaign: Campaign, arm: str, entry: Entry) -> Lost:
    held = {name: getattr(entry, name) for name in _HELD}
    kinds = ["runs"] if entry.runs else []
    kinds += [_HELD[name] for name, value in held.items() if value is not None and len(value)]
    path = relative(campaign, entry.file.path)
    error = CampaignError(
        path, found=" and ".join(kinds) or "nothing",
        expected=_HELD.get(entry.file.role, "request logs"),
        remedy=f"correct arms.{arm}.{entry.file.role}",
    )  # fmt: skip
    return Lost(arm=arm, role=entry.file.role, path=path, error=str(error))
