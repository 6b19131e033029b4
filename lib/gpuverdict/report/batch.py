"""The comparisons of a campaign into folders, one failing without stopping the rest."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gpuverdict.campaign import Campaign, ComparisonSpec, find_comparison, read_campaign
from gpuverdict.cluster import connect_cluster
from gpuverdict.errors import ParameterError
from gpuverdict.report.comparison import (
    ComparisonReport,
    Task,
    earlier_report,
    render_comparison,
    unchanged_report,
)
from gpuverdict.report.fingerprint import fingerprints, input_digests
from gpuverdict.report.folders import (
    clear_remains,
    folder_name,
    folder_names,
    lock_key,
    locked,
    replace_file,
)
from gpuverdict.report.notebooks import Kernels
from gpuverdict.schema import FIGURE_FORMATS
from gpuverdict.store import default_store, is_stored

__all__ = ["CampaignReport", "render_campaign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignReport:
    """How a campaign went; `exit_code` is 0, 1 when part is lost, 2 when nothing was rendered."""

    index: Path
    comparisons: tuple[ComparisonReport, ...]
    lost: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """The process exit code of the run."""
        failed = [c for c in self.comparisons if c.state == "failed"]
        if self.comparisons and len(failed) == len(self.comparisons):
            return 2
        return 1 if failed or self.lost else 0


def render_campaign(
    path: str | Path,
    *,
    only: str | None = None,
    out: str | Path | None = None,
    lang: str = "en",
    jobs: int = 1,
    cluster: str | None = None,
    store: str | Path | None = None,
    figure_format: str | None = None,
    started: Callable[[int], None] | None = None,
    progress: Callable[[str], None] | None = None,
) -> CampaignReport:
    """Render every comparison of a campaign, and its index.

    Parameters
    ----------
    path : path
        The campaign file or its folder.
    only : str, optional
        One comparison by name.
    out : path, optional
        Default `reports/<campaign>`.
    lang : str
        `en` or `zh`.
    jobs, cluster
        Kernels at a time, or the address of a Dask scheduler.
    figure_format : str, optional
        `svg` or `png`: the figures in files of their own too.
    started, progress : callable, optional
        Called with the number of steps, then with a label after each.

    Returns
    -------
    CampaignReport

    Raises
    ------
    CampaignError, ParameterError
        When nothing can be rendered. A comparison that fails is in the result, with its error.

    Notes
    -----
    An interrupt ends the kernels and leaves no half-made folder; what was finished stays, and the
    next call renders the rest.
    """
    from gpuverdict.text import LANGUAGES

    if lang not in LANGUAGES:
        raise ParameterError("--lang", found=repr(lang), expected=" or ".join(LANGUAGES))
    if figure_format not in (None, *FIGURE_FORMATS):
        raise ParameterError("--figures", found=repr(figure_format)[:40],
                             expected=" or ".join(FIGURE_FORMATS))  # fmt: skip
    if jobs < 1:
        raise ParameterError("--jobs", found=str(jobs), expected="1 or more")
    campaign = read_campaign(path)
    every = [s for s in campaign.comparisons if isinstance(s, ComparisonSpec)]
    find_comparison(campaign, only)
    specs = every if only is None else [find_comparison(campaign, only)]
    folders = folder_names(campaign)
    target = Path(out) if out else Path("reports") / folder_name(campaign.campaign)
    clear_remains(target)
    store_path = Path(store) if store else default_store(campaign)
    inputs = input_digests(campaign)
    marks = fingerprints(campaign, every, inputs, lang)
    results: dict[str, ComparisonReport] = {}
    for spec in specs:
        name = str(spec.name)
        kept = unchanged_report(target / folders[name], name, marks[name], figure_format)
        if kept is not None:
            results[name] = kept
    tasks = [
        Task(campaign=campaign.path, name=name, target=target, folder=folders[name], lang=lang,
             store=store_path, mark=marks[name], figure_format=figure_format)
        for name in (str(spec.name) for spec in specs) if name not in results
    ]  # fmt: skip
    step = progress or (lambda name: None)
    if started:
        started(len(specs))
    for name in results:
        step(name)
    opened = None
    if tasks:
        warm = all(is_stored(digest, file, store_path) for _, file, digest in inputs
                   if file.role != "server_logs")  # fmt: skip

        def open_inputs() -> Any:
            from gpuverdict.case import open_campaign

            return open_campaign(campaign.path, store=store_path, jobs=jobs, cluster=cluster)

        # A cold store is read once, before any kernel; a warm one is opened for the index while
        # the kernels work.
        first = None if warm else open_inputs()
        run = _on_cluster(tasks, cluster) if cluster else _on_threads(tasks, jobs)
        with contextlib.closing(run) as done:
            next(done)
            opened = first or open_inputs()
            for result in done:
                if result is not None:
                    results[result.name] = result
                    step(result.name)
    shown = tuple(results[str(s.name)] for s in specs)
    lost = _write_index(campaign, target, shown, folders, marks, lang, store_path, opened)
    return CampaignReport(index=target / "index.html", comparisons=shown, lost=lost)


def _on_threads(tasks: list[Task], jobs: int) -> Generator[ComparisonReport | None, None, None]:
    """Render with so many kernels at a time; gives None once all are on their way.

    A thread each is enough: the work is done in the kernels, which are processes.
    """
    kernels = Kernels()
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        futures = [pool.submit(render_comparison, task, kernels) for task in tasks]
        yield None
        for future in as_completed(futures):
            yield future.result()
    except BaseException:
        kernels.stop()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _on_cluster(tasks: list[Task], cluster: str) -> Generator[ComparisonReport | None, None, None]:
    """Render on the workers of a Dask scheduler, which see the same files."""
    from distributed import as_completed as finished

    with connect_cluster(cluster) as client:
        absolute = [_absolute(task) for task in tasks]
        futures = {
            client.submit(render_comparison, task, pure=False, retries=1): task for task in absolute
        }
        try:
            yield None
            for future in finished(futures, loop=client.loop):
                failure = future.exception()
                yield future.result() if failure is None else _lost(futures[future], failure)
        except BaseException:
            client.cancel(list(futures), force=True)
            raise


def _lost(task: Task, failure: BaseException) -> ComparisonReport:
    """Say of a comparison that its worker failed, not the notebook."""
    said = f"{type(failure).__name__}: {str(failure).strip()[:200]}"
    return ComparisonReport(
        name=task.name, folder=task.folder, state="failed",
        error=f"{task.name}: found a worker that failed ({said}), expected a report",
    )  # fmt: skip


def _absolute(task: Task) -> Task:
    return replace(task, campaign=task.campaign.resolve(), target=task.target.resolve(),
                   store=task.store.resolve())  # fmt: skip


def _write_index(
    campaign: Campaign,
    target: Path,
    reports: Iterable[ComparisonReport],
    folders: Mapping[str, str],
    marks: Mapping[str, str],
    lang: str,
    store: Path,
    opened: Any,
) -> tuple[str, ...]:
    """Write index.html, unless it shows just this; return the lost files.

    Comparisons that were not asked for this time are shown as they stand in their folders, so
    invocations with `--only` add up, and the last of several at once shows them all.
    """
    own = {report.name: report for report in reports}
    state_path = target / "campaign.json"
    with locked(target, lock_key(".index")):
        rows: list[ComparisonReport] = []
        for name, folder in folders.items():
            found = earlier_report(target / folder, name)
            report = own.get(name) or (found[0] if found else None)
            if report is not None:
                rows.append(report)
        shown = {r.name: [r.state == "failed", marks[r.name], r.error] for r in rows}
        wanted = {"lang": lang, "shown": shown}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            state = json.loads(state_path.read_text(encoding="utf-8"))
            if (target / "index.html").is_file() and state["state"] == wanted:
                return tuple(state["lost"])
        from gpuverdict.tables.index import index_html

        if opened is None:
            from gpuverdict.case import open_campaign

            opened = open_campaign(campaign.path, store=store)
        measured, summary = opened
        lost = tuple(f"{item.arm}: {item.error}" for item in measured.lost)
        html = index_html(measured, summary, [asdict(r) for r in rows], lang)
        replace_file(target / "index.html", html)
        replace_file(state_path, json.dumps({"state": wanted, "lost": lost}, ensure_ascii=False))
    return lost
