"""From a measured campaign to one long frame of run-level numbers, run by run."""

from __future__ import annotations

import functools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from gpuverdict.align import place
from gpuverdict.campaign import Campaign, ComparisonSpec
from gpuverdict.energy import window_telemetry
from gpuverdict.errors import Caution, ParameterError
from gpuverdict.measured import Measured, MeasuredRun, measure
from gpuverdict.phases import Phases, split_phases
from gpuverdict.schema import (
    METRICS,
    SUMMARY,
    TOKEN_GAPS,
    Run,
    empty,
    polars_schema,
    run_level,
)
from gpuverdict.steady import Window, find_windows, requests_in_window, whole_run
from gpuverdict.store import dump_cautions
from gpuverdict.summary import cache
from gpuverdict.summary.distributions import MIN_TPOT_TOKENS, Row
from gpuverdict.summary.facts import counted, e2e_parts, run_facts
from gpuverdict.summary.run_rows import phase_rows, run_rows
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["RunFacts", "Summary", "summarize", "summarize_measured"]

# Windows beside the steady one: what the verdict would be with half and with double the cut.
_SENSITIVITY = (("half_cut", 0.5), ("double_cut", 2.0))
_SENSITIVE = {("tpot_s", "p50"), ("ttft_s", "p50"), ("output_tokens_per_s", "value")}


TELEMETRY = (
    "power_w",
    "energy_j",
    "memory_used_mib",
    "sm_clock_mhz",
    "sm_clock_spread_ratio",
    "throttled_ratio",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is known of one run beside its numbers; lengths as tokens -> requests.

    `bins`: requests of the window by length (powers of two below input and output tokens, such as
    `512/128`), each with `n` and the medians `ttft_s` and `e2e_s`. `late_p99_s`: how long after the
    intended moment requests were sent. `littles_streams`: requests in flight by Little's law, for
    logs without start times. `e2e_parts_s`: mean seconds of each of `phases.PARTS` over the
    successful requests of the window, and of `e2e_s`.
    """

    run: MeasuredRun
    window: Window
    n_by_status: Mapping[str, int]
    cautions: tuple[Caution, ...]
    input_lengths: Mapping[int, int] = field(default_factory=dict)
    output_lengths: Mapping[int, int] = field(default_factory=dict)
    bins: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    late_p99_s: float | None = None
    ttft_p50_s: float | None = None
    tpot_p50_s: float | None = None
    cached_ratio: float | None = None
    tokens_per_chunk: float | None = None
    littles_streams: float | None = None
    e2e_parts_s: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def is_steady(self) -> bool:
        """Whether the run has a steady window that settled."""
        return settled(self.window)


Place = tuple[str, str, str | None, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The long frame, and the facts of each run.

    `frame` has the columns of `schema.SUMMARY`. `window` is `steady`, `whole_run` (always there
    too, so that arms of which one has no steady window can be set side by side), `half_cut` or
    `double_cut` (primary metrics only), `steady:<comparison>` (tails over equally many requests).
    """

    frame: pd.DataFrame
    facts: Mapping[str, RunFacts]
    _kept: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    def once(self, key: object, make: Callable[[], Any]) -> Any:
        """Work out once what follows from this summary alone: a report asks for it many times."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def values(self, place: Place) -> Mapping[str, Sequence[float]]:
        """Give the known values of the runs at (arm, workload, level, metric, statistic) by window.

        The frame is walked once, however many places are asked for.
        """

        def walk() -> dict[Place, dict[str, list[float]]]:
            places: dict[Any, dict[str, list[float]]] = {}
            known = self.frame[self.frame.value.notna()]
            columns = ("arm", "workload", "level", "metric", "statistic", "window", "value")
            for *key, window, value in zip(*(known[c].tolist() for c in columns), strict=True):
                places.setdefault(tuple(key), {}).setdefault(window, []).append(value)
            return places

        found: Mapping[str, Sequence[float]] = self.once("places", walk).get(place, {})
        return found


def settled(window: Window) -> bool:
    """Tell whether a window is steady: there is one, and the run came to rest in it."""
    return window.kind == "steady" and not any(c.code == "no_steady_state" for c in window.cautions)


def summarize(run_or_campaign: Run | Campaign | Measured) -> pd.DataFrame:
    """Give the per-run summary of a run or a campaign, in long form.

    Parameters
    ----------
    run_or_campaign : Run, Campaign or Measured
        A run is described whole; the runs of a campaign in their steady window, where there is one.

    Returns
    -------
    pandas.DataFrame
        Columns of `schema.SUMMARY`: `run_id, arm, workload, level, repeat_no, metric, statistic,
        value, unit, n, window, window_start_s, window_end_s, n_sent, n_dropped, cautions`.
        `value` is null where it cannot be known; `cautions` says why.

    Examples
    --------
    >>> from gpuverdict.campaign import read_campaign
    >>> frame = summarize(read_campaign("data/h200/campaign.yaml"))
    >>> row = frame.query("arm == 'card-a' and metric == 'output_tokens_per_s'").iloc[0]
    >>> row.level, row.window, round(float(row.value), 0)
    ('{"concurrency": 1}', 'steady', 162.0)
    """
    if isinstance(run_or_campaign, Run):
        run = run_or_campaign
        window = whole_run(run)
        level = run_level(run.info)
        where = {"level": json.dumps(level, sort_keys=True) if level else None}
        rows = run_rows(run, window)
        return _to_pandas([_record(run, window, row, where, "whole_run") for row in rows])
    measured = run_or_campaign
    if isinstance(measured, Campaign):
        measured = measure(measured)
    if not isinstance(measured, Measured):
        raise ParameterError(
            "run_or_campaign", found=type(measured).__name__, expected="a Run or a Campaign"
        )
    frame = summarize_measured(measured).frame
    steady = frame.window == "steady"
    has_steady = frame.run_id.isin(frame.run_id[steady])
    return frame[steady | ((frame.window == "whole_run") & ~has_steady)].reset_index(drop=True)


def summarize_measured(measured: Measured) -> Summary:
    """Compute the summary of every run of a campaign, or find it in the store.

    Notes
    -----
    A first pass over the request rows (without gaps) finds the windows of each cell, since the
    extra warm-up cut is shared by its runs; a second pass loads one run at a time. Quantiles above
    the median depend on the number of requests, so each comparison also gets them over equally many
    (the earliest of the window), in rows whose `window` is `steady:<comparison>`.
    """
    folder = cache.summary_folder(measured)
    kept = cache.load(folder, measured)
    if kept is not None:
        facts = {key: RunFacts(**row) for key, row in kept[1].items()}  # type: ignore[arg-type]
        return Summary(frame=kept[0], facts=facts)
    cells: dict[tuple[str, str], list[MeasuredRun]] = defaultdict(list)
    for run in measured.runs:
        cells[(run.workload, run.level_key)].append(run)
    records: list[dict[str, Any]] = []
    facts = {}
    probes = {arm: [probe.load() for probe in held] for arm, held in measured.probes.items()}
    for cell in cells.values():
        light = [_without_gaps(run) for run in cell]
        streams = cell[0].level.get("concurrency")
        windows = find_windows(light, streams)
        others = {name: find_windows(light, streams, cut=cut) for name, cut in _SENSITIVITY}
        for number, run in enumerate(cell):
            alternatives = {name: found[number] for name, found in others.items()}
            new, fact = _one_run(measured, run, windows[number], alternatives, probes[run.arm])
            records += new
            facts[run.key] = fact
        records += _equal_n(measured, cell, light, windows)
    summary = Summary(frame=_to_pandas(records), facts=facts)
    cache.save(folder, summary.frame, {key: _plain_fact(fact) for key, fact in facts.items()})
    return summary


def _plain_fact(fact: RunFacts) -> dict[str, object]:
    return {
        "window": cache.dump_window(fact.window),
        "n_by_status": dict(fact.n_by_status),
        "cautions": dump_cautions(fact.cautions),
        "input_lengths": dict(fact.input_lengths),
        "output_lengths": dict(fact.output_lengths),
        **{name: getattr(fact, name) for name in cache.PLAIN_FACTS},
    }


def _equal_n(
    measured: Measured,
    cell: Sequence[MeasuredRun],
    light: Sequence[Run],
    windows: Sequence[Window],
) -> list[dict[str, Any]]:
    """Quantiles above the median over as many requests as the smallest run of a comparison has."""
    records: list[dict[str, Any]] = []
    specs = [s for s in measured.campaign.comparisons if isinstance(s, ComparisonSpec)]
    for spec in specs:
        members = [i for i, run in enumerate(cell) if run.arm in (spec.baseline, spec.candidate)]
        if len({cell[i].arm for i in members}) < 2:
            continue
        steady = all(settled(windows[i]) for i in members)
        chosen = {i: windows[i] if steady else whole_run(light[i]) for i in members}
        name = f"{'steady' if steady else 'whole_run'}:{spec.name}"
        # Whole runs leave their opening wave out, as they do everywhere.
        skip = 0 if steady else int(cell[0].level.get("concurrency", 0))
        ok = {
            i: requests_in_window(light[i], chosen[i])
            .sort("start_s", "request_index")
            .slice(skip)
            .filter(pl.col("status") == "ok")
            for i in members
        }
        for metric in ("ttft_s", "tpot_s", "e2e_s"):
            enough = MIN_TPOT_TOKENS if metric == "tpot_s" else 0
            values = {
                i: rows.filter(
                    pl.col(metric).is_not_null(), pl.col("output_tokens").fill_null(0) >= enough
                )[metric].to_numpy()
                for i, rows in ok.items()
            }
            sizes = {v.size for v in values.values()}
            if len(sizes) < 2 or min(sizes) == 0:
                continue
            for i, held in values.items():
                where = {"arm": cell[i].arm, "workload": cell[i].workload,
                         "level": cell[i].level_key, "repeat_no": cell[i].repeat_no}  # fmt: skip
                cut = held[: min(sizes)]
                records += [
                    _record(light[i], chosen[i],
                            Row(metric=metric, statistic=f"p{round(q * 100)}",
                                value=float(np.quantile(cut, q)), n=cut.size),
                            where, name)
                    for q in (0.9, 0.95, 0.99)
                ]  # fmt: skip
    return records


def _without_gaps(run: MeasuredRun) -> Run:
    return Run(info=run.stored.info, requests=run.stored.requests(), gaps=empty(TOKEN_GAPS))


def _one_run(
    measured: Measured,
    placed: MeasuredRun,
    window: Window,
    alternatives: Mapping[str, Window],
    probes: Sequence[Run],
) -> tuple[list[dict[str, Any]], RunFacts]:
    run = placed.stored.load()
    campaign = measured.campaign
    rows_of = functools.partial(
        run_rows, run, slo=campaign.slo_of(placed.workload), gpus=campaign.arms[placed.arm].gpus
    )
    where = {
        "arm": placed.arm,
        "workload": placed.workload,
        "level": placed.level_key,
        "repeat_no": placed.repeat_no,
    }
    records = []
    split: Phases | None = None
    if window.kind == "steady":
        rows = rows_of(window)
        split = _phases(run, window, probes)
        rows += phase_rows(run, window, split)
        rows += _telemetry(measured, placed, run, window, rows)
        records += [_record(run, window, row, where, "steady") for row in rows]
        for name, other in alternatives.items():
            if other.kind == "steady":
                records += [
                    _record(run, other, row, where, name)
                    for row in rows_of(other)
                    if (row.metric, row.statistic) in _SENSITIVE
                ]
    whole = whole_run(run)
    skip = int(placed.level.get("concurrency", 0))
    rows = rows_of(whole, skip_first=skip)
    split_whole = _phases(run, whole, probes)
    rows += phase_rows(run, whole, split_whole)
    rows += _telemetry(measured, placed, run, whole, rows)
    records += [_record(run, whole, row, where, "whole_run") for row in rows]
    ok = run.requests.filter(pl.col("status") == "ok", pl.col("phase") == "main")
    counts = run.requests.filter(pl.col("phase") == "main")["status"].value_counts()
    fact = RunFacts(
        run=placed,
        window=window,
        n_by_status=dict(zip(counts["status"], counts["count"], strict=True)),
        cautions=(*run.cautions, *placed.cautions, *window.cautions),
        input_lengths=counted(ok["input_tokens"]),
        output_lengths=counted(ok["output_tokens"]),
        e2e_parts_s=e2e_parts(run, window, split or split_whole, campaign.arms[placed.arm].client),
        **run_facts(run, window),
    )
    return records, fact


def _phases(run: Run, window: Window, probes: Sequence[Run]) -> Phases | None:
    return None if run.requests.is_empty() else split_phases(run, list(probes) or None, window)


def _telemetry(
    measured: Measured, placed: MeasuredRun, run: Run, window: Window, rows: Sequence[Row]
) -> list[Row]:
    """Power, energy, memory and clocks of the window, from the trace that covers it."""
    gpus = measured.campaign.arms[placed.arm].gpus
    said: tuple[Caution, ...] = (caution("no_trace", arm=placed.arm),)
    found: Mapping[str, Estimate] = {}
    for trace in measured.traces[placed.arm]:
        offset, cautions = place(run, trace)
        said = cautions
        if offset is None or window.end_s is None or not window.length_s:
            continue
        found = window_telemetry(trace, offset + window.start_s, offset + window.end_s, gpus=gpus)
        break
    new = []
    for metric in TELEMETRY:
        estimate = found.get(metric, Estimate(value=None, cautions=said))
        new.append(
            Row(metric=metric, statistic="value", value=estimate.value, n=estimate.n,
                cautions=(*(said if found else ()), *estimate.cautions))
        )  # fmt: skip
    energy = next(row for row in new if row.metric == "energy_j")
    rate = next((r.value for r in rows if r.metric == "output_tokens_per_s"), None)
    per_token = None
    if energy.value is not None and rate and window.length_s:
        per_token = energy.value / (rate * window.length_s)
    new.append(
        Row(metric="energy_per_output_token_j", statistic="value", value=per_token, n=energy.n,
            cautions=energy.cautions)
    )  # fmt: skip
    return new


def _record(
    run: Run, window: Window, row: Row, place: Mapping[str, Any], name: str
) -> dict[str, Any]:
    codes = [c.code for c in (*run.cautions, *window.cautions, *row.cautions)]
    value = row.value
    if value is not None and not math.isfinite(value):
        value, codes = None, [*codes, "not_finite"]
    return {
        "run_id": run.info["run_id"],
        "arm": place.get("arm"),
        "workload": place.get("workload"),
        "level": place.get("level"),
        "repeat_no": place.get("repeat_no"),
        "metric": row.metric,
        "statistic": row.statistic,
        "value": value,
        "unit": METRICS[row.metric].unit,
        "n": row.n,
        "window": name,
        "window_start_s": window.start_s,
        "window_end_s": window.end_s,
        "n_sent": window.n_sent,
        "n_dropped": window.n_dropped,
        "cautions": list(dict.fromkeys(codes)),
    }


def _to_pandas(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    frame = pl.DataFrame(records, schema=polars_schema(SUMMARY))
    return frame.to_pandas(use_pyarrow_extension_array=False)
