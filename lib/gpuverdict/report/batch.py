"""The comparisons of a campaign into folders, one failing without stopping the rest."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from gpuverdict.campaign import Campaign, ComparisonSpec, arm_inputs, read_campaign
from gpuverdict.errors import GpuverdictError, ParameterError
from gpuverdict.report.notebooks import notebook_folder, run_notebook
from gpuverdict.store import code_digest, default_store, file_digest

__all__ = ["CampaignReport", "ComparisonReport", "folder_name", "render_campaign"]

_VERSIONED = ("gpuverdict", "numpy", "pandas", "polars", "scipy", "statsmodels", "matplotlib",
              "seaborn", "papermill", "nbconvert")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport:
    """How one comparison went: `rendered`, `unchanged` or `failed`."""

    name: str
    folder: str
    state: str
    lines: tuple[str, ...] = ()
    error: str | None = None
    chips: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignReport:
    """How a campaign went; `exit_code` is 0, 1 when part is lost, 2 when nothing could be rendered."""

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


def folder_name(name: str) -> str:
    """Return a folder name for a validated comparison name.

    Examples
    --------
    >>> folder_name("A100 vs 双卡4090")
    'A100-vs-双卡4090'
    """
    return re.sub(r"[^\w.+@-]+", "-", name).strip(".-") or "comparison"


def render_campaign(
    path: str | Path,
    *,
    only: str | None = None,
    out: str | Path | None = None,
    lang: str = "en",
    jobs: int = 1,
    cluster: str | None = None,
    store: str | Path | None = None,
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
        Processes, or the address of a Dask scheduler.
    started, progress : callable, optional
        Called with the number of steps, then with a label after each.

    Returns
    -------
    CampaignReport

    Raises
    ------
    CampaignError, ParameterError
        When nothing can be rendered. A comparison that fails is in the result, with its error.
    """
    from gpuverdict.text import LANGUAGES

    if lang not in LANGUAGES:
        raise ParameterError("--lang", found=repr(lang), expected=" or ".join(LANGUAGES))
    if jobs < 1:
        raise ParameterError("--jobs", found=str(jobs), expected="1 or more")
    campaign = read_campaign(path)
    specs = [s for s in campaign.comparisons if isinstance(s, ComparisonSpec)]
    if only is not None:
        from gpuverdict.case import find_comparison

        specs = [find_comparison(campaign, only)]
    target = Path(out) if out else Path("reports") / folder_name(campaign.campaign)
    target.mkdir(parents=True, exist_ok=True)
    store_path = Path(store) if store else default_store(campaign)
    prints = {str(s.name): _fingerprint(campaign, s, lang) for s in specs}
    kept = {name: _unchanged(target / folder_name(name), mark) for name, mark in prints.items()}
    stale = [s for s in specs if kept[str(s.name)] is None]
    if started:
        started(len(specs))
    results: dict[str, ComparisonReport] = {}
    for spec in specs:
        found = kept[str(spec.name)]
        if found is not None:
            results[str(spec.name)] = found
            if progress:
                progress(str(spec.name))
    if stale:
        from gpuverdict.case import open_campaign

        # Read everything once, before any kernel: the kernels find a warm store.
        open_campaign(campaign.path, store=store_path, jobs=jobs, cluster=cluster)
        tasks = [
            (campaign.path, str(s.name), target, lang, store_path, prints[str(s.name)])
            for s in stale
        ]
        for result in _run(tasks, jobs, cluster):
            results[result.name] = result
            if progress:
                progress(result.name)
    ordered = tuple(results[str(s.name)] for s in specs)
    lost = _write_index(campaign, target, ordered, lang, store_path, fresh=bool(stale), only=only)
    return CampaignReport(index=target / "index.html", comparisons=ordered, lost=lost)


def _run(tasks: list[Any], jobs: int, cluster: str | None) -> Iterator[ComparisonReport]:
    if jobs == 1 and cluster is None:
        for task in tasks:
            yield _render_one(*task)
        return
    import joblib

    calls = [joblib.delayed(_render_one)(*task) for task in tasks]
    if cluster is None:
        yield from joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(calls)
        return
    from distributed import Client

    with Client(cluster), joblib.parallel_config(backend="dask"):
        yield from joblib.Parallel()(calls)


def _fingerprint(campaign: Campaign, spec: ComparisonSpec, lang: str) -> str:
    """Hash everything a report depends on: files, campaign, code, notebook, versions, language."""
    digest = hashlib.sha256(f"{lang}\n{spec.name}\n{code_digest()}\n".encode())
    digest.update(campaign.path.read_bytes())
    digest.update((notebook_folder() / "report.ipynb").read_bytes())
    digest.update(sys.version.encode())
    for package in _VERSIONED:
        digest.update(f"{package}{metadata.version(package)}\n".encode())
    for arm in campaign.arms:
        # Windows are shared over the arms of a campaign, so all of them count.
        files, missing = arm_inputs(campaign, arm)
        for file in files:
            try:
                digest.update(f"{arm}/{file.role}/{file.path.name}".encode())
                digest.update(file_digest(file.path).encode())
            except GpuverdictError as problem:
                digest.update(str(problem).encode())
        digest.update("".join(map(str, missing)).encode())
    return digest.hexdigest()


def _unchanged(folder: Path, mark: str) -> ComparisonReport | None:
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    files = ("report.html", "report.ipynb", "verdicts.json", "tables.xlsx", "summary.parquet")
    if state.get("fingerprint") != mark or not all((folder / f).is_file() for f in files):
        return None
    return ComparisonReport(
        name=state["name"], folder=folder.name, state="unchanged", lines=tuple(state["lines"]),
        chips=tuple(state["chips"]),
    )  # fmt: skip


def _render_one(
    campaign_path: Path, name: str, target: Path, lang: str, store: Path, mark: str
) -> ComparisonReport:
    """Render one comparison into a folder beside its place, then put it there."""
    place = target / folder_name(name)
    work = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=target))
    work.chmod(0o755)
    try:
        try:
            lines, chips = _fill(work, campaign_path, name, lang, store)
        except GpuverdictError as problem:
            error = str(problem).replace(str(work), str(place))
            # What was there described other inputs; only the failed notebook may stand.
            for extra in ("report.html", "state.json"):
                (work / extra).unlink(missing_ok=True)
            (work / "error.txt").write_text(error + "\n", encoding="utf-8")
            _swap(work, place)
            return ComparisonReport(name=name, folder=place.name, state="failed", error=error)
        state = {"fingerprint": mark, "name": name, "lines": lines, "chips": chips}
        (work / "state.json").write_text(json.dumps(state, ensure_ascii=False), encoding="utf-8")
        _swap(work, place)
        return ComparisonReport(
            name=name, folder=place.name, state="rendered", lines=tuple(lines), chips=tuple(chips)
        )
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _fill(
    work: Path, campaign_path: Path, name: str, lang: str, store: Path
) -> tuple[list[str], list[dict[str, Any]]]:
    import nbformat

    from gpuverdict import tables
    from gpuverdict.case import open_case
    from gpuverdict.verdict import verdicts_json

    notebook = notebook_folder() / "report.ipynb"
    run_notebook(
        notebook, work / "report.ipynb",
        {"campaign": str(campaign_path.resolve()), "comparison": name, "lang": lang,
         "store": str(store.resolve())},
    )  # fmt: skip
    case = open_case(campaign_path, name, store=store)
    text = verdicts_json(case.verdict, provenance(case))
    (work / "verdicts.json").write_text(text, encoding="utf-8")
    case.summary.frame.to_parquet(work / "summary.parquet", index=False)
    tables.write_xlsx(case, work / "tables.xlsx")
    executed = nbformat.read(work / "report.ipynb", as_version=4)
    title = f"{case.verdict.candidate} / {case.verdict.baseline}"
    html = tables.report_html(executed, title, lang)
    (work / "report.html").write_text(html, encoding="utf-8")
    return verdict_lines(case.verdict), chips(case.verdict)


def provenance(case: Any) -> dict[str, Any]:
    """Return what a verdict rests on: inputs with hashes, versions, parameters."""
    arms = {case.spec.baseline, str(case.spec.candidate)}
    used = {f.path for arm in sorted(arms) for f in arm_inputs(case.campaign, arm)[0]}
    root = case.campaign.root.resolve()
    names = {Path(os.path.relpath(p.resolve(), root)).as_posix() for p in used}
    inputs = [{"path": p, "sha256": h} for p, h in case.measured.inputs if p in names]
    inputs.append({"path": case.campaign.path.name, "sha256": file_digest(case.campaign.path)})
    return {
        "inputs": sorted(inputs, key=lambda item: item["path"]),
        "versions": {package: metadata.version(package) for package in _VERSIONED},
        "parameters": {
            "comparison": case.spec.name, "treatment": list(case.verdict.comparability.treatment),
            "paired": case.spec.paired or case.campaign.design.paired,
            "margins": dict(case.campaign.margins), "primary": list(case.campaign.primary),
        },
    }  # fmt: skip


def verdict_lines(verdict: Any) -> list[str]:
    """Return the headline verdicts as lines for a terminal."""
    from gpuverdict.schema import METRICS
    from gpuverdict.units import format_ratio

    lines = []
    for cell in verdict.headline:
        c = cell.comparison
        name = METRICS[c.metric].label + ("" if c.statistic == "value" else f" {c.statistic}")
        lines.append(
            f"{verdict.comparison}: {name}: {c.verdict} {format_ratio(c.ratio, c.low, c.high)}"
        )
    return lines


def chips(verdict: Any) -> list[dict[str, Any]]:
    """Return what the campaign's index shows of a comparison."""
    return [
        {"metric": c.key.metric, "statistic": c.key.statistic, "workload": c.key.workload,
         "verdict": c.verdict, "ratio": c.comparison.ratio}
        for c in verdict.headline
    ]  # fmt: skip


def _swap(work: Path, place: Path) -> None:
    """Put a finished folder in its place; two invocations take turns."""
    with _locked(place.parent):
        old = place.with_name(f".old-{place.name}-{os.getpid()}")
        if place.exists():
            os.rename(place, old)
        os.rename(work, place)
        shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # no such lock on this system; a rename is still atomic
        yield
        return
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _write_index(
    campaign: Campaign, target: Path, reports: tuple[ComparisonReport, ...], lang: str, store: Path,
    *, fresh: bool, only: str | None,
) -> tuple[str, ...]:  # fmt: skip
    """Write index.html, unless nothing changed; return the lost files."""
    state_path = target / "campaign.json"
    if not fresh:
        with contextlib.suppress(OSError, ValueError, KeyError):
            state = json.loads(state_path.read_text(encoding="utf-8"))
            if (target / "index.html").is_file() and state["lang"] == lang:
                return tuple(state["lost"])
    from gpuverdict import tables
    from gpuverdict.case import open_campaign

    measured, summary = open_campaign(campaign.path, store=store)
    rows = list(reports)
    if only is not None:
        shown = {r.name for r in rows}
        others = [s for s in campaign.comparisons if isinstance(s, ComparisonSpec)]
        for spec in others:
            earlier = _any_state(target / folder_name(str(spec.name)))
            if str(spec.name) not in shown and earlier is not None:
                rows.append(earlier)
    html = tables.index_html(measured, summary, [asdict(r) for r in rows], lang)
    lost = tuple(f"{item.arm}: {item.error}" for item in measured.lost)
    with _locked(target):
        (target / "index.html").write_text(html, encoding="utf-8")
        state_path.write_text(json.dumps({"lang": lang, "lost": lost}), encoding="utf-8")
    return lost


def _any_state(folder: Path) -> ComparisonReport | None:
    try:
        mark = json.loads((folder / "state.json").read_text(encoding="utf-8"))["fingerprint"]
    except (OSError, ValueError, KeyError):
        return None
    return _unchanged(folder, mark)
