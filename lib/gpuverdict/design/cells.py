"""One level of a comparison: windows, lengths, errors, streams, clocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpuverdict.campaign import Campaign
from gpuverdict.design.memory import memory_need, step_floor_s
from gpuverdict.design.mixes import lengths_of, mixes_differ
from gpuverdict.design.touched import (
    CACHE_APART,
    CENSORED,
    CHUNK_APART,
    CLOCK_APART,
    ERROR_GAP,
    LATENCY,
    LATENESS_OF_TTFT,
    LATENESS_S,
    LENGTH_APART,
    LENGTH_BOUND,
    SATURATED,
    SUSTAINED,
)
from gpuverdict.errors import Caution
from gpuverdict.measured import MeasuredRun, level_label
from gpuverdict.summary import Summary
from gpuverdict.summary.campaign import RunFacts
from gpuverdict.summary.index import Rows, index_rows
from gpuverdict.text import caution

__all__ = ["CellDesign", "cell_design"]

Facts = Sequence[Sequence[RunFacts]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDesign:
    """What holds for one (workload, level) of a comparison, beside what holds for all of it.

    `steady`: every run has a steady window. `same_job`: whole runs of the same work. `aggregate`:
    some run is only a tool's own summary. `mix_distance`: the prompts must be brought to one mix
    first. `refused` blocks the cell, `blocked` a metric of it; `overridden` names factors an
    analyst overrode here.
    """

    baseline: tuple[RunFacts, ...]
    candidate: tuple[RunFacts, ...]
    steady: bool
    same_job: bool
    aggregate: bool
    sustained: bool
    mix_distance: float | None = None
    refused: tuple[Caution, ...] = ()
    blocked: Mapping[str, Caution] = field(default_factory=dict)
    tail_blocked: Mapping[str, Caution] = field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()
    modifiers: tuple[str, ...] = ()


@dataclass(slots=True)
class _Findings:
    overrides: Mapping[str, str]
    blocked: dict[str, Caution] = field(default_factory=dict)
    cautions: list[Caution] = field(default_factory=list)
    modifiers: list[str] = field(default_factory=list)

    def block(self, factor: str, metrics: Iterable[str], said: Caution) -> None:
        if factor in self.overrides:
            self.override(factor, said)
        else:
            self.blocked.update({m: said for m in metrics if m not in self.blocked})

    def override(self, factor: str, said: Caution) -> None:
        reason = self.overrides[factor]
        self.cautions += [said, caution("overridden", factor=factor, reason=reason)]
        self.modifiers.append(f"confounded: {factor}")


def cell_design(
    summary: Summary,
    baseline: Sequence[MeasuredRun],
    candidate: Sequence[MeasuredRun],
    *,
    campaign: Campaign | None = None,
    rows: Rows | None = None,
    overrides: Mapping[str, str] | None = None,
) -> CellDesign:
    """Say what holds at one level that both arms ran.

    Parameters
    ----------
    summary : Summary
    baseline, candidate : sequence of MeasuredRun
        The runs of the level, one arm each.
    campaign : Campaign, optional
        Says what the arms claim to be; without it memory and clocks are not judged.
    rows : mapping, optional
        The summary rows of the level (`summary.index_rows`); found in the summary without it.
    overrides : mapping, optional
        Factor -> reason: refusals an analyst overrides.

    Returns
    -------
    CellDesign
    """
    facts = tuple(tuple(summary.facts[r.key] for r in arm) for arm in (baseline, candidate))
    everything = [*facts[0], *facts[1]]
    if rows is None:
        first = (*baseline, *candidate)[0]
        arms = {r.arm for r in (*baseline, *candidate)}
        rows = index_rows(summary.frame, arms).get((first.workload, first.level_key), {})
    aggregate = any(not f.input_lengths and not f.n_by_status for f in everything)
    found = _Findings(overrides=overrides or {})
    mix, same_lengths = None, True
    tail_blocked: dict[str, Caution] = {}
    if not aggregate:
        same_lengths = _output_lengths(facts, found)
        mix = mixes_differ(facts)
        if mix is not None and "prompt_mix" in found.overrides:
            found.override("prompt_mix", caution("prompt_mix_differs", distance=mix))
            mix = None
        _errors(facts, found)
        tail_blocked = _censoring(everything, found)
        _lateness(everything, found)
        _chunks(facts, found)
        _caches(facts, found)
    _offered(everything, rows, found)
    refused: tuple[Caution, ...] = ()
    if campaign is not None:
        gpus = [campaign.arms[runs[0].arm].gpu for runs in (baseline, candidate) if runs]
        _clocks(facts, rows, gpus[0] == gpus[-1], found)
        refused = _memory(campaign, facts, rows, found)
        _plausible(campaign, facts, found)
    not_sustained = _not_sustained(facts, rows)
    if not_sustained:
        found.cautions += not_sustained
        found.modifiers.append("not sustained")
    if any(c.code == "short_run" for f in everything for c in f.window.cautions):
        found.modifiers.append("short run")
    counts = {sum(f.n_by_status.values()) for f in everything}
    return CellDesign(
        baseline=facts[0], candidate=facts[1], steady=all(f.is_steady for f in everything),
        same_job=len(counts) == 1 and same_lengths and mix is None, aggregate=aggregate,
        sustained=not not_sustained, mix_distance=mix, refused=refused, blocked=found.blocked,
        tail_blocked=tail_blocked, cautions=tuple(found.cautions), modifiers=tuple(found.modifiers),
    )  # fmt: skip


def _output_lengths(facts: Facts, found: _Findings) -> bool:
    """Block what depends on the output lengths where they differ; tell whether they agree."""
    lengths = [lengths_of(arm, "output_lengths") for arm in facts]
    if min(len(held) for held in lengths) == 0:
        return True
    a, b = (float(np.median(held)) for held in lengths)
    if abs(b - a) <= LENGTH_APART * a:
        return True
    said = caution("output_lengths_differ", baseline=a, candidate=b)
    found.block("output_lengths", LENGTH_BOUND, said)
    if said not in found.cautions:
        found.cautions.append(said)
    return False


def _errors(facts: Facts, found: _Findings) -> None:
    ratios = []
    for arm in facts:
        failed = sum(f.n_by_status.get("error", 0) + f.n_by_status.get("empty", 0) for f in arm)
        total = sum(sum(f.n_by_status.values()) for f in arm)
        ratios.append(failed / total if total else 0.0)
    # A gap of exactly one point is no gap, whatever 0.11 - 0.10 is in floating point.
    if abs(ratios[1] - ratios[0]) > ERROR_GAP + 1e-12:
        said = caution("error_gap", baseline_ratio=ratios[0], candidate_ratio=ratios[1])
        found.block("errors", LATENCY, said)


def _censoring(facts: Sequence[RunFacts], found: _Findings) -> dict[str, Caution]:
    """Long outputs are cut first: with lengths that vary, what is left of E2E is too short."""
    cut = sum(f.n_by_status.get("incomplete", 0) for f in facts)
    total = sum(sum(f.n_by_status.values()) for f in facts)
    lengths = lengths_of(facts, "output_lengths")
    varies = lengths.size > 1 and float(np.std(lengths)) > LENGTH_APART * float(np.mean(lengths))
    if not total or cut / total <= CENSORED or not varies:
        return {}
    said = caution("censored_tail", cut_ratio=cut / total)
    found.cautions.append(said)
    return {"e2e_s": said}


def _lateness(facts: Sequence[RunFacts], found: _Findings) -> None:
    for fact in facts:
        if "rate_requests_per_s" not in fact.run.level or fact.late_p99_s is None:
            continue
        limit = max(LATENESS_S, LATENESS_OF_TTFT * (fact.ttft_p50_s or 0.0))
        if fact.late_p99_s > limit:
            said = caution("client_saturated", path=fact.run.path, late_s=fact.late_p99_s,
                           limit_s=limit)  # fmt: skip
            found.block("client_saturation", ("ttft_s", "e2e_s"), said)


def _chunks(facts: Facts, found: _Findings) -> None:
    """Chunks of several tokens hide gaps, and the first one holds decode steps of its own."""
    sizes = []
    for arm in facts:
        held = [f.tokens_per_chunk for f in arm if f.tokens_per_chunk is not None]
        if not held:
            return
        sizes.append(float(np.median(held)))
    if abs(sizes[1] - sizes[0]) <= CHUNK_APART * min(sizes):
        return
    step = min((f.tpot_p50_s for arm in facts for f in arm if f.tpot_p50_s), default=0.0)
    said = caution("chunk_sizes_differ", baseline=sizes[0], candidate=sizes[1],
                   offset_s=abs(sizes[1] - sizes[0]) * step)  # fmt: skip
    found.block("chunking", ("itl_s", "chunk_gap_s", "ttft_s", "scheduling_excess_s"), said)


def _caches(facts: Facts, found: _Findings) -> None:
    ratios = []
    for arm in facts:
        held = [f.cached_ratio for f in arm if f.cached_ratio is not None]
        if not held:
            return
        ratios.append(float(np.mean(held)))
    if abs(ratios[1] - ratios[0]) > CACHE_APART:
        found.cautions.append(
            caution("cache_hits_differ", baseline_ratio=ratios[0], candidate_ratio=ratios[1])
        )
        found.modifiers.append("confounded: prefix cache")


def _values(rows: Rows, metric: str) -> dict[str, float]:
    """Run identifier -> value of a single-valued metric, steady where there is such a window."""
    found: dict[str, float] = {}
    for window in ("whole_run", "steady"):
        held = rows.get((metric, "value", window), [])
        found |= {row.run_id: row.value for row in held if row.value is not None}
    return found


def _offered(facts: Sequence[RunFacts], rows: Rows, found: _Findings) -> None:
    """Past saturation TTFT is the length of a queue, not a property of the GPU."""
    achieved = _values(rows, "requests_per_s")
    for name in dict.fromkeys(f.run.arm for f in facts):
        own = [f for f in facts if f.run.arm == name]
        offered = own[0].run.level.get("rate_requests_per_s")
        rates = [achieved[f.run.run_id] for f in own if f.run.run_id in achieved]
        if offered and rates and float(np.mean(rates)) < SATURATED * offered:
            found.cautions.append(
                caution(
                    "rate_not_achieved", arm=name, offered=offered, achieved=float(np.mean(rates))
                )
            )


def _clocks(facts: Facts, rows: Rows, same_gpu: bool, found: _Findings) -> None:
    """Mark clocks more than 1 % apart: between the arms of one model, else within an arm."""
    clocks = _values(rows, "sm_clock_mhz")
    arms = [[clocks[f.run.run_id] for f in arm if f.run.run_id in clocks] for arm in facts]
    if not arms[0] or not arms[1]:
        return
    if same_gpu:
        medians = [float(np.median(arm)) for arm in arms]
        apart = abs(medians[1] - medians[0]) / min(medians)
        if apart > CLOCK_APART:
            found.modifiers.append("clock offset")
            found.cautions.append(
                caution("clock_offset", baseline_mhz=medians[0], candidate_mhz=medians[1])
            )
    elif any(max(arm) - min(arm) > CLOCK_APART * float(np.median(arm)) for arm in arms):
        found.modifiers.append("clock offset")
        found.cautions.append(caution("clock_moves"))


def _memory(campaign: Campaign, facts: Facts, rows: Rows, found: _Findings) -> tuple[Caution, ...]:
    """Refuse a level whose weights and KV cache are more than the cards of an arm hold.

    Only requests between first and last token surely hold their context, so the decode batch as
    observed counts, not the streams asked for: an engine may let the rest wait.
    """
    batches = _values(rows, "decode_batch")
    for arm in facts:
        seen = [batches[f.run.run_id] for f in arm if f.run.run_id in batches]
        lengths = [lengths_of(arm, name) for name in ("input_lengths", "output_lengths")]
        if min(len(held) for held in lengths) == 0:
            continue
        # On average a request that decodes has made half of its output.
        context = float(np.mean(lengths[0])) + float(np.mean(lengths[1])) / 2
        tokens = max(1.0, float(np.mean(seen)) if seen else 1.0) * context
        need = memory_need(campaign, arm[0].run.arm, tokens)
        if need.fits is False and need.weights and need.memory:
            said = caution("hidden_offload", arm=arm[0].run.arm, weights_gb=need.weights / 1e9,
                           kv_gb=(need.kv or 0.0) / 1e9, memory_gb=need.memory / 1e9)  # fmt: skip
            if "memory" in found.overrides:
                found.override("memory", said)
            else:
                return (said,)
    return ()


def _plausible(campaign: Campaign, facts: Facts, found: _Findings) -> None:
    """Flag, without blocking, a decode faster than the weights can be read."""
    for arm in facts:
        floor = step_floor_s(campaign, arm[0].run.arm)
        seen = [f.tpot_p50_s for f in arm if f.tpot_p50_s is not None]
        if floor is not None and seen and float(np.median(seen)) < floor:
            found.cautions.append(
                caution("faster_than_weights", arm=arm[0].run.arm, floor_s=floor,
                        tpot_s=float(np.median(seen)))
            )  # fmt: skip


def _not_sustained(facts: Facts, rows: Rows) -> list[Caution]:
    """Compare the streams seen in flight with those asked for."""
    observed = _values(rows, "concurrency")
    said = []
    for arm in facts:
        asked = arm[0].run.level.get("concurrency") if arm else None
        if not asked:
            continue
        seen, share = [], SUSTAINED
        for fact in arm:
            value = observed.get(fact.run.run_id) if fact.is_steady else None
            if value is None:
                value = fact.littles_streams
                value = observed.get(fact.run.run_id) if value is None else value
                n = sum(fact.n_by_status.values()) or int(fact.run.stored.info.get("n_ok") or 0)
                # The last request of a stream ends at some moment of the drain: a closed loop of
                # n requests cannot hold more than this share of its streams over the whole run.
                share = min(share, SUSTAINED * n / (n + asked / 2)) if n else share
            if value is not None:
                seen.append(value)
        if seen and float(np.mean(seen)) < share * asked:
            said.append(
                caution("not_sustained", arm=arm[0].run.arm, level=level_label(arm[0].run.level),
                        observed=float(np.mean(seen)))
            )  # fmt: skip
    return said
