"""Every run in its place: arm, workload, level, repeat, sweep, server start and card.

Level and repeat come from the log first and from the file's name second; where both speak and
disagree the file is lost, with both sources named. So are facts of the campaign file that a log
contradicts (model id, lengths, planned count).
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from gpuverdict.campaign import Campaign, Workload
from gpuverdict.campaign.inputs import natural_key
from gpuverdict.errors import CampaignError, Caution
from gpuverdict.schema import run_level
from gpuverdict.store import Entry, StoredRun
from gpuverdict.text import caution

__all__ = [
    "Lost",
    "MeasuredRun",
    "arm_runs",
    "level_label",
    "plain_precision",
    "relative",
    "with_stated",
]

RUN_ROLES = ("sweeps", "runs", "files")
# How far a served median may lie from the declared length before one of the two is wrong.
LENGTH_DRIFT = 0.2
LENGTH_OVER = 0.05


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


def relative(campaign: Campaign, path: Path) -> str:
    """Spell a path as the campaign's folder sees it."""
    return Path(os.path.relpath(path.resolve(), campaign.root.resolve())).as_posix()


class _Numbers:
    """Which repeats of an arm are taken, by workload and level."""

    def __init__(self) -> None:
        self.taken: set[tuple[str, str, int]] = set()
        self.named: dict[tuple[str, str, str | None, int], str] = {}
        self.files: dict[tuple[str, str], int] = defaultdict(int)

    def next_file(self, entry: Entry) -> int:
        key = (entry.file.role, entry.file.workload)
        self.files[key] += 1
        return self.files[key]

    def give(self, entry: Entry, run: MeasuredRun, within: int, file_no: int) -> int:
        """Number a run: by its file's name, by its file's place in a sweep, else the next free one.

        Repeat 1 of a second card follows the repeats of the first one.

        Raises
        ------
        CampaignError
            When two files name one repeat of one level and card.
        """
        cell = (run.workload, run.level_key)
        named = entry.file.repeat
        if named is not None:
            repeat = named + within - 1
            own = (*cell, entry.file.card, repeat)
            if within == 1 and own in self.named:
                raise CampaignError(
                    run.path, found=f"repeat {repeat} at level {level_label(run.level)}",
                    expected="a repeat of its own", remedy=f"{self.named[own]} holds it already",
                )  # fmt: skip
            self.named[own] = run.path
        elif entry.file.role == "sweeps" and within == 1:
            repeat = file_no
        else:
            repeat = 1 + max((r for w, k, r in self.taken if (w, k) == cell), default=0)
        while (*cell, repeat) in self.taken:
            repeat += 1
        self.taken.add((*cell, repeat))
        return repeat


def arm_runs(
    campaign: Campaign, arm: str, entries: list[Entry]
) -> tuple[list[MeasuredRun], list[Lost], list[Caution]]:
    """Place the runs of one arm; what contradicts the campaign is lost, copies are said."""
    runs: list[MeasuredRun] = []
    lost: list[Lost] = []
    cautions: list[Caution] = []
    seen_files: dict[str, str] = {}
    numbers = _Numbers()
    own = [e for e in entries if e.file.role in RUN_ROLES and e.runs]
    own.sort(key=lambda e: (e.file.workload, natural_key(str(e.file.path))))
    for entry in own:
        path = relative(campaign, entry.file.path)
        content = str(entry.runs[0].info.get("source_sha256") or entry.sha256)
        if content in seen_files:
            said = caution("duplicate_file", path=path, other=seen_files[content], arm=arm)
            cautions.append(said)
            continue
        seen_files[content] = path
        file_no = numbers.next_file(entry)
        within: dict[str, int] = defaultdict(int)
        try:
            for run in [_place(campaign, arm, entry, stored, path) for stored in entry.runs]:
                within[run.level_key] += 1
                repeat = numbers.give(entry, run, within[run.level_key], file_no)
                runs.append(_numbered(campaign, entry, run, repeat))
        except CampaignError as problem:
            lost.append(Lost(arm=arm, role=entry.file.role, path=path, error=str(problem)))
    if campaign.design.exclude_first:
        first: dict[tuple[str, str | None], int] = {}
        for run in runs:
            key = (run.workload, run.card)
            first[key] = min(first.get(key, run.repeat_no), run.repeat_no)
        kept = [r for r in runs if r.repeat_no != first[(r.workload, r.card)]]
        if len(kept) < len(runs):
            cautions.append(caution("first_run_excluded", arm=arm, n=len(runs) - len(kept)))
        runs = kept
    runs.sort(key=lambda r: (r.workload, sorted(r.level.items()), r.repeat_no))
    return runs, lost, cautions


def _numbered(campaign: Campaign, entry: Entry, run: MeasuredRun, repeat: int) -> MeasuredRun:
    """Give a run its repeat, and with it its sweep and its server start."""
    file = entry.file
    each = campaign.arms[run.arm].server_starts == "each" or file.role == "runs"
    pass_name = f"r{repeat}" if file.card is None else f"{file.card}/r{file.repeat or repeat}"
    sweep, start = f"{run.arm}/{run.workload}/{pass_name}", f"{run.arm}/shared"
    if each:
        start = f"{run.arm}/{run.path}" if file.role == "runs" else sweep
        if file.role != "sweeps":
            sweep = f"{run.arm}/{run.path}/{run.level_key}/r{repeat}"
    return replace(run, repeat_no=repeat, sweep_id=sweep, server_start_id=start)


def with_stated(
    campaign: Campaign, arm: str, stored: StoredRun, inventory: pl.DataFrame
) -> StoredRun:
    """Add to the facts of a run what its arm states and its log does not.

    The chunk of a prefill, and which GPUs its host has: a trace of others is not laid beside it.
    """
    added: dict[str, object] = {}
    chunk = campaign.arms[arm].prefill_chunk_tokens
    if chunk is not None and stored.info.get("prefill_chunk_tokens") is None:
        added["prefill_chunk_tokens"] = chunk
    if not stored.info.get("gpu_uuids") and "gpu_uuid" in inventory.columns:
        added["gpu_uuids"] = inventory["gpu_uuid"].drop_nulls().unique().sort().to_list()
    return replace(stored, info={**stored.info, **added}) if added else stored


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
            remedy=f"write {{level}} into the pattern of arms.{arm}.{entry.file.role}, "
            "or give it as `files:` and `level:`",
        )  # fmt: skip
    stated = next(iter(level.values()))
    if named is not None and named != stated:
        raise CampaignError(
            path, found=f"level {stated:g} in the log and {named:g} in its name",
            expected="one level", remedy="rename the file, or correct the pattern or its `level:`",
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
    level = run_level(info) or {}
    if workload.load == "open" and "concurrency" in level and info.get("load_kind") == "closed":
        raise CampaignError(
            path, found="a closed loop", expected=f"workload.load {workload.load}",
            remedy="correct one of them",
        )  # fmt: skip
    said = _served_lengths(workload, stored, path)
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
    chunk, declared = info.get("prefill_chunk_tokens"), spec.prefill_chunk_tokens
    if chunk is not None and declared is not None and chunk != declared:
        raise CampaignError(
            path, found=f"prefill chunks of {chunk} tokens",
            expected=f"the {declared} of arms.{arm}.scheduler", remedy="correct one of them",
        )  # fmt: skip
    planned = workload.requests
    rows = int(info.get("n_rows") or 0)
    if planned is not None and rows and rows > planned:
        raise CampaignError(
            path, found=f"{rows} requests", expected=f"workload.requests {planned}",
            remedy="correct one of them",
        )  # fmt: skip
    if planned is not None and rows and rows < planned:
        said.append(caution("short_of_plan", path=path, n_rows=rows, planned=planned))
    return tuple(said)


def _served_lengths(workload: Workload, stored: StoredRun, path: str) -> list[Caution]:
    """Compare the declared lengths with those that were served, where no log states the asked ones.

    Prompts drift when they are encoded again and templates add tokens, so a fifth is allowed; an
    output may end early, but never be longer than asked.
    """
    if not stored.info.get("n_ok") or not stored.info.get("n_rows"):
        return []
    rows = stored.requests().filter(pl.col("status") == "ok", pl.col("phase") == "main")
    said: list[Caution] = []
    for key in ("input_tokens", "output_tokens"):
        asked, known = getattr(workload, key), rows[key].drop_nulls()
        if asked is None or known.is_empty() or stored.info.get(f"requested_{key}") is not None:
            continue
        served = float(known.median())  # type: ignore[arg-type]
        name = key.replace("_", " ")
        short = served < asked * (1 - LENGTH_DRIFT)
        above = served > asked * (1 + (LENGTH_DRIFT if key == "input_tokens" else LENGTH_OVER))
        if above or (short and (key == "input_tokens" or workload.ignore_eos)):
            raise CampaignError(
                path, found=f"a median of {served:g} {name}", expected=f"workload.{key} {asked}",
                remedy="correct one of them",
            )  # fmt: skip
        if short:
            said.append(caution("outputs_end_early", path=path, served=served, asked=asked))
    return said


def plain_precision(precision: object) -> str:
    """Spell a precision one way.

    Examples
    --------
    >>> plain_precision("torch.bfloat16"), plain_precision("FP8")
    ('bf16', 'fp8')
    """
    text = str(precision).lower().replace("torch.", "")
    return {"bfloat16": "bf16", "float16": "fp16", "half": "fp16"}.get(text, text)
