"""One comparison into its folder: page, verdicts, tables; or the notebook with its error."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuverdict.errors import GpuverdictError
from gpuverdict.report.folders import lock_key, locked, swap, work_folder
from gpuverdict.report.notebooks import Kernels, notebook_folder, run_notebook

__all__ = ["ComparisonReport", "Task", "earlier_report", "render_comparison", "unchanged_report"]

FILES = ("report.html", "report.ipynb", "verdicts.json", "tables.xlsx", "summary.parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport:
    """How one comparison went: `rendered`, `unchanged` or `failed`.

    `lines`, `chips` and `disturbed` (run ids) are what a terminal and the index show of it.
    """

    name: str
    folder: str
    state: str
    lines: tuple[str, ...] = ()
    error: str | None = None
    chips: tuple[dict[str, Any], ...] = ()
    disturbed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One comparison to render: plain values, since it may travel to another process."""

    campaign: Path
    name: str
    target: Path
    folder: str
    lang: str
    store: Path
    mark: str
    figure_format: str | None = None


def render_comparison(task: Task, kernels: Kernels | None = None) -> ComparisonReport:
    """Render one comparison, whatever happens; a failure is a report with its error.

    The folder is made beside its place and put there whole. Another invocation that renders the
    same comparison is waited for, and its result taken when it is current.
    """
    place = task.target / task.folder

    def stopped() -> bool:
        return kernels is not None and kernels.stopped

    with locked(task.target, lock_key(task.name), stopped) as held:
        if not held:
            return _failed(task, "found a stopped run; start it again")
        done = unchanged_report(place, task.name, task.mark, task.figure_format)
        if done is not None:
            return done
        with work_folder(task.target, task.name) as work:
            try:
                verdicts = _fill(work, task, kernels)
                state = {
                    "fingerprint": task.mark, "name": task.name, "lines": verdict_lines(verdicts),
                    "chips": chips(verdicts), "disturbed": disturbed(verdicts),
                }  # fmt: skip
            except GpuverdictError as problem:
                error = str(problem)
            except Exception as problem:
                # A full disk or a fault of ours costs this comparison, not those after it.
                first = (str(problem).strip().splitlines() or [""])[0]
                error = f"{place}: found {type(problem).__name__}: {first[:200]}"
            else:
                _write(work / "state.json", json.dumps(state, ensure_ascii=False))
                swap(work, place)
                return _report(state, task.folder, "rendered")
            if stopped():
                return _failed(task, "found a stopped run; start it again")
            error = error.replace(str(work), str(place))
            # What was there described other inputs; only the failed notebook may stand.
            for extra in work.iterdir():
                if extra.name != "report.ipynb":
                    extra.unlink()
            _write(work / "error.txt", error + "\n")
            swap(work, place)
            return _failed(task, error)


def _report(state: Mapping[str, Any], folder: str, word: str) -> ComparisonReport:
    return ComparisonReport(
        name=state["name"], folder=folder, state=word, lines=tuple(state["lines"]),
        chips=tuple(state["chips"]), disturbed=tuple(state["disturbed"]),
    )  # fmt: skip


def _failed(task: Task, error: str) -> ComparisonReport:
    return ComparisonReport(name=task.name, folder=task.folder, state="failed", error=error)


def _fill(work: Path, task: Task, kernels: Kernels | None) -> dict[str, Any]:
    """Render into a folder; return the verdicts."""
    executed = run_notebook(
        notebook_folder() / "report.ipynb", work / "report.ipynb",
        {"campaign": str(task.campaign.resolve()), "comparison": task.name, "lang": task.lang,
         "store": str(task.store.resolve()), "out": str(work.resolve()),
         "figure_format": task.figure_format},
        kernels,
    )  # fmt: skip
    from gpuverdict.tables.page import report_html

    verdicts: dict[str, Any] = json.loads((work / "verdicts.json").read_text(encoding="utf-8"))
    title = f"{verdicts['candidate']} / {verdicts['baseline']}"
    notebook = json.loads(executed.read_text(encoding="utf-8"))
    _write(work / "report.html", report_html(notebook, title, task.lang))
    return verdicts


def _refusal(cell: Mapping[str, Any]) -> str:
    """Say why nothing was compared; a dash alone sends a reader to the report."""
    said = [c for c in cell["cautions"] if c["code"] != "not_measured"]
    if cell["verdict"] != "not comparable" or not said:
        return ""
    return f" ({said[0]['message'].rstrip('.')})"


def verdict_lines(verdicts: Mapping[str, Any]) -> list[str]:
    """Return the headline of a `verdicts.json` as lines for a terminal."""
    from gpuverdict.schema import METRICS
    from gpuverdict.units import format_ratio

    # A bar clear of 1 can be inconclusive: the word rests on the p adjusted over the headlines.
    lines = []
    for cell in verdicts["headline"]:
        statistic = "" if cell["statistic"] == "value" else f" {cell['statistic']}"
        ratio = format_ratio(cell["ratio"], cell["low"], cell["high"])
        lines.append(
            f"{verdicts['comparison']}: {METRICS[cell['metric']].label}{statistic}: "
            f"{cell['verdict']} {ratio}"
            + ("" if cell["p_adjusted"] is None else f", p {cell['p_adjusted']:.2g}")
            + _refusal(cell)
        )
    return lines


def chips(verdicts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what the campaign's index shows of a comparison."""
    keys: Sequence[str] = ("metric", "statistic", "workload", "verdict", "ratio")
    return [{key: cell[key] for key in keys} for cell in verdicts["headline"]]


def disturbed(verdicts: Mapping[str, Any]) -> list[str]:
    """Return the runs of a comparison that something from outside stalled, by their ids."""
    return [row["run_id"] for row in verdicts["health"] if row["disturbed"]]


def unchanged_report(
    place: Path, name: str, mark: str, figure_format: str | None = None
) -> ComparisonReport | None:
    """Return what stands in a folder when it was made from the same inputs, else None.

    Figures that were asked for must stand there too; figures that were not do no harm.
    """
    found = earlier_report(place, name)
    if found is None or found[1] != mark:
        return None
    if figure_format and not any(place.glob(f"figures/*.{figure_format}")):
        return None
    return found[0] if all((place / file).is_file() for file in FILES) else None


def earlier_report(place: Path, name: str) -> tuple[ComparisonReport, str] | None:
    """Return what stands in a folder, of whatever inputs, with its mark."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        state = json.loads((place / "state.json").read_text(encoding="utf-8"))
        if state["name"] == name:
            return _report(state, place.name, "unchanged"), state["fingerprint"]
    with contextlib.suppress(OSError, ValueError):
        error = (place / "error.txt").read_text(encoding="utf-8").strip()
        return ComparisonReport(name=name, folder=place.name, state="failed", error=error), ""
    return None


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
