"""What the server and the host themselves say of one run, on the run's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from gpuverdict.align import COARSE_CLOCK_S
from gpuverdict.errors import Caution
from gpuverdict.measured import LogFile, Measured, MeasuredRun
from gpuverdict.phases import split_phases
from gpuverdict.schema import SERVER_METRICS, Run, empty
from gpuverdict.steady import Window, requests_in_window
from gpuverdict.telemetry.host_window import HostLoad, host_window
from gpuverdict.telemetry.server_window import server_since_start, server_window
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["Beside", "level_facts", "look_beside", "main_spans"]

Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One run seen from the server and the host.

    `server`: by name, from the server's own rows of the window's requests where it wrote them
    (means; `network_s` is client minus server, `prefill_estimate_s` what the client's log alone
    would say of the same requests), else from its metrics pages. `source` says which: `requests`,
    `pages`, or `` for neither.
    """

    server: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    n_joined: int = 0
    host: HostLoad = field(default_factory=HostLoad)
    cautions: tuple[Caution, ...] = ()


def main_spans(measured: Measured, arm: str) -> dict[str, Span]:
    """Return the epoch seconds of the main phase of an arm's runs, by key; none without a clock."""
    spans = {run.key: _span(run, None) for run in measured.runs_of(arm)}
    return {key: span[1] for key, span in spans.items() if span is not None}


def look_beside(
    measured: Measured,
    run: MeasuredRun,
    window: Window,
    probes: Sequence[Run] = (),
    spans: Mapping[str, Span] | None = None,
) -> Beside:
    """Collect what server and host say of one run.

    Parameters
    ----------
    measured, run, window
        A campaign, one of its runs, and that run's window.
    probes : sequence of Run
        The arm's prefill probes, for the client's estimate.
    spans : mapping, optional
        `main_spans` of the arm, where several of its runs are asked for.
    """
    files = measured.server_metrics.get(run.arm, ())
    told, n = _from_requests(run, window, probes)
    spans = main_spans(measured, run.arm) if spans is None and files else spans or {}
    pages, said = _from_pages(measured, run, window, spans)
    known = {key: e.value for key, e in pages.items() if e.value is not None}
    host, moment = HostLoad(), _span(run, window)
    if files and moment is not None:
        host = host_window(_timed(measured, run.arm), *moment[0])
    return Beside(
        # The rows are of the very requests; the pages of all that the server did meanwhile.
        server={**known, **told},
        source="requests" if told else "pages" if known else "",
        n_joined=n,
        host=host,
        cautions=(*said, *host.cautions),
    )


def _from_requests(
    run: MeasuredRun, window: Window, probes: Sequence[Run]
) -> tuple[dict[str, float], int]:
    """Means over the successful requests of the window that the server wrote a row for."""
    rows = run.stored.requests()
    if rows["server_queue_s"].null_count() == rows.height:
        return {}, 0
    data = run.stored.load()
    inside = requests_in_window(data, window).filter(
        pl.col("status") == "ok", pl.col("server_queue_s").is_not_null()
    )
    if inside.is_empty():
        return {}, 0
    split = split_phases(data, list(probes) or None, window).requests.join(
        inside.select("request_index"), on="request_index", how="semi"
    )
    means = {
        "server_queue_s": split["queue_s"].mean(),
        "server_prefill_s": inside["server_prefill_s"].mean(),
        "server_decode_s": inside["server_decode_s"].mean(),
        "network_s": split["network_s"].mean(),
        "prefill_estimate_s": split["prefill_estimate_s"].mean(),
        "excess_estimate_s": split["scheduling_excess_s"].mean(),
    }
    return {k: float(v) for k, v in means.items() if v is not None}, inside.height  # type: ignore[arg-type]


def _timed(measured: Measured, arm: str) -> pl.DataFrame:
    frames = [file.frame for file in measured.server_metrics.get(arm, ())]
    return pl.concat(frames) if frames else empty(SERVER_METRICS)


def _from_pages(
    measured: Measured, run: MeasuredRun, window: Window, spans: Mapping[str, Span]
) -> tuple[Mapping[str, Estimate], tuple[Caution, ...]]:
    """From the pages with a time around the run, else from those its name belongs to."""
    files = measured.server_metrics.get(run.arm, ())
    engine = pl.col("name").str.contains("^(?:vllm|sglang):")
    held = [file for file in files if not file.frame.filter(engine).is_empty()]
    if not held:
        return {}, ()
    bare = [
        file.frame
        for file in held
        if file.frame["time_epoch_s"].null_count() == file.frame.height
        and file.level in run.level.values()
        and file.repeat in (None, run.repeat_no)
    ]
    moment = _span(run, window)
    found: Mapping[str, Estimate] = {}
    if moment is not None:
        others = [span for key, span in spans.items() if key != run.key]
        coarse = COARSE_CLOCK_S.get(run.stored.info["t0_quality"], 0.0)
        found = server_window(_timed(measured, run.arm), *moment, others, clock_slack_s=coarse)
    nothing = all(e.value is None for e in found.values())
    # Without a page before it, a run is alone on its page only in a server started for it.
    alone = len(bare) > 1 or measured.campaign.arms[run.arm].server_starts == "each"
    if nothing and bare and alone:
        found = server_since_start(bare)
    said = {c.code: c for e in found.values() for c in e.cautions}
    return found, tuple(said.values())


def _span(run: MeasuredRun, window: Window | None) -> tuple[Span, Span] | None:
    """Epoch seconds of a run's window and of its main phase; None without a clock."""
    info = run.stored.info
    t0 = info.get("t0_epoch_s")
    if t0 is None or (info.get("t0_quality") or "none") == "none":
        return None
    main = run.stored.requests().filter(pl.col("phase") == "main")
    start, end = main["start_s"].min(), main["end_s"].max()
    if end is None:
        end = info.get("duration_s")
    if end is None:
        return None
    whole = (float(t0) + float(start or 0.0), float(t0) + float(end))  # type: ignore[arg-type]
    if window is None or window.end_s is None:
        return whole, whole
    return (float(t0) + window.start_s, float(t0) + window.end_s), whole


# Of these the worst run counts: one that ran full or was preempted shows what binds.
_WORST = ("kv_cache_use_ratio", "preemptions")
_MIDDLE = ("server_queue_s", "server_prefill_s", "server_decode_s", "network_s",
           "prefill_estimate_s", "excess_estimate_s", "prefix_cache_hit_ratio", "waiting_requests",
           "running_requests")  # fmt: skip
_HOST = ("cpu_busy_ratio", "core_busy_ratio", "process_cpu_ratio", "io_wait_ratio", "swap_mib_s",
         "run_queue", "network_mb_s", "network_use_ratio")  # fmt: skip


def level_facts(seen: Sequence[Beside], logs: Sequence[LogFile] = ()) -> dict[str, Any]:
    """Bring together what server, host and engine logs say of the runs of one level.

    Parameters
    ----------
    seen : sequence of Beside
        One a run of the level.
    logs : sequence of LogFile
        Engine output of this level, or of the whole arm.

    Returns
    -------
    dict
        Fields of `Situation`.
    """
    known: dict[str, Any] = {}
    for name in (*_MIDDLE, *_WORST):
        values = [b.server[name] for b in seen if name in b.server]
        if values:
            known[name] = float(max(values) if name in _WORST else np.median(values))
    for name in _HOST:
        loads = [v for b in seen if (v := getattr(b.host, name)) is not None]
        if loads:
            known[f"host_{name}"] = float(np.median(loads))
    free = [b.host.memory_free_mib for b in seen if b.host.memory_free_mib is not None]
    known["host_memory_free_mib"] = min(free) if free else None
    named = [b.host for b in seen if b.host.process_cpu_ratio is not None]
    if named:
        known["host_process_name"] = max(named, key=lambda h: h.process_cpu_ratio or 0).process_name
    known["server_source"] = next((b.source for b in seen if b.source), "")
    known["n_server_joined"] = sum(b.n_joined for b in seen)
    said = [c for b in seen for c in b.cautions]
    counted = 0
    for log in logs:
        for kind in ("preempted", "fragmented"):
            lines = [event for event in log.events if event.kind == kind]
            if lines:
                told = {"path": log.path, "n": len(lines), "quote": str(lines[0])}
                said.append(caution(f"engine_log_{kind}", **told))
                counted += len(lines) if kind == "preempted" else 0
    if counted and "preemptions" not in known:
        # An engine writes such a line for some of its preemptions only: a lower bound.
        known["preemptions"] = float(counted)
    known["cautions"] = tuple({str(c): c for c in said}.values())
    return known
