"""The canonical Parquet dataset: content-addressed, append only, read lazily.

An entry is one input file as it was read: `entry.json` (facts and cautions) beside `requests`,
`gaps`, `samples`, `inventory` or `metrics` in Parquet. Its key is a hash of the file's bytes, of
what the campaign says about the file, and of the reading code, so an unchanged file is never read
twice and a changed reader never meets an old entry. Entries are written beside their place and
renamed into it: two invocations may share a store.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import polars as pl

from gpuverdict.campaign import Campaign, InputFile
from gpuverdict.cluster import connect_cluster
from gpuverdict.errors import (
    CampaignError,
    Caution,
    GpuverdictError,
    LogFormatError,
)
from gpuverdict.schema import REQUESTS, TOKEN_GAPS, Run, Trace, check, empty
from gpuverdict.text import caution

__all__ = [
    "Entry",
    "StoredRun",
    "beside_digest",
    "code_digest",
    "default_store",
    "dump_cautions",
    "file_digest",
    "ingest_files",
    "is_stored",
    "load_cautions",
    "package_versions",
]

_PACKAGES = ("gpuverdict", "numpy", "pandas", "polars", "scipy", "statsmodels", "matplotlib",
             "seaborn", "papermill", "nbconvert")  # fmt: skip

# The names `Document.sibling` is asked for, compressed or not.
_BESIDE = (
    "*_aiperf.json*",
    "*_genai_perf.json*",
    "stage_*_lifecycle_metrics.json*",
    "config.y*ml*",
    "*_summary.json*",
    "*.gaps.csv*",
    "benchmark_*.json*",
)
# A column only one kind of frame has.
_FRAMES = {"value": "metrics", "server_e2e_s": "server_requests"}
_READING = ("files", "recognise.py", "schema.py", "ingest", "telemetry")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run in the store: its facts at hand, its frames on disk until asked for.

    `server_times` (`request_index` and columns of the request rows) fills what the log itself does
    not say, once the server's own log is joined to it.
    """

    info: dict[str, Any]
    cautions: tuple[Caution, ...]
    folder: Path
    server_times: pl.DataFrame | None = None

    def scan(self) -> pl.LazyFrame:
        """Scan the request rows: no more is read than is asked of it."""
        rows = self._scan("requests.parquet")
        if self.server_times is None:
            return rows
        names = rows.collect_schema().names()
        joined = rows.join(
            self.server_times.lazy(), on="request_index", how="left", suffix="_server",
            maintain_order="left",
        )  # fmt: skip
        known = joined.collect_schema().names()
        offered = [name for name in names if f"{name}_server" in known]
        filled = joined.with_columns(pl.coalesce(n, f"{n}_server").alias(n) for n in offered)
        return filled.select(names)

    def requests(self) -> pl.DataFrame:
        """Read the request rows."""
        return self.scan().collect()

    def load(self) -> Run:
        """Read everything."""
        return Run(
            info=self.info,
            requests=self.requests(),
            gaps=self._scan("gaps.parquet").collect(),
            cautions=self.cautions,
        )

    def _scan(self, name: str) -> pl.LazyFrame:
        lazy = pl.scan_parquet(self.folder / name)
        return lazy.filter(pl.col("run_id") == self.info["run_id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One input file as read: runs, traces, an inventory, the server's side; or why it was lost."""

    file: InputFile
    sha256: str
    runs: tuple[StoredRun, ...] = ()
    traces: tuple[Trace, ...] = ()
    inventory: pl.DataFrame | None = None
    server_metrics: pl.DataFrame | None = None
    server_requests: pl.DataFrame | None = None
    error: str | None = None


def default_store(campaign: Campaign) -> Path:
    """Return where a campaign's store lies: beside its file, or in a temporary folder.

    A campaign folder may be read-only; then the store is kept under the system's temporary folder,
    named after the campaign's path.
    """
    beside = campaign.root.resolve() / ".gpuverdict" / "store"
    try:
        beside.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=beside):
            return beside
    except OSError:
        name = hashlib.sha256(str(campaign.root.resolve()).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"gpuverdict-store-{name}"


@functools.cache
def package_versions() -> dict[str, str]:
    """Return the versions of the packages a result rests on."""
    return {name: metadata.version(name) for name in _PACKAGES}


@functools.cache
def code_digest(parts: tuple[str, ...] = ()) -> str:
    """Return a hash of the package's sources, or of the named ones.

    What was computed by other code is never taken for current.
    """
    root = Path(__file__).parent
    roots = [root / part for part in parts] or [root]
    digest = hashlib.sha256()
    for top in roots:
        files = [top] if top.is_file() else sorted(top.rglob("*.py"))
        for path in files:
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Return the sha256 of a file's bytes as they lie on disk.

    Raises
    ------
    LogFormatError
        When the file cannot be read.
    """
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as problem:
        raise LogFormatError(
            path, found=str(problem.strerror).lower(), expected="a readable file"
        ) from None


def ingest_files(
    files: Iterable[InputFile],
    store: Path,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Callable[[InputFile], None] | None = None,
) -> list[Entry]:
    """Read every file into the store (or find it there) and return the entries in order.

    Parameters
    ----------
    files : iterable of InputFile
    store : path
        Made if it does not exist.
    jobs : int
        Processes.
    cluster : str, optional
        Address of a Dask scheduler that runs the same code instead.
    progress : callable, optional
        Called with each file when it is done.

    Returns
    -------
    list of Entry
        An unreadable file gives an entry with `error`; nothing is raised for it.
    """
    files = list(files)
    store.mkdir(parents=True, exist_ok=True)
    if cluster is None and jobs == 1:
        results = []
        for file in files:
            results.append(_digest_and_read(file, store))
            if progress:
                progress(file)
    else:
        results = _in_parallel(files, store, jobs, cluster)
        for file in files if progress else ():
            progress(file)  # type: ignore[misc]
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(lambda file, result: _entry(file, result, store), files, results))


def _in_parallel(
    files: list[InputFile], store: Path, jobs: int, cluster: str | None
) -> list[tuple[str, str | None]]:
    import joblib

    calls = [joblib.delayed(_digest_and_read)(file, store) for file in files]
    if cluster is None:
        return list(joblib.Parallel(n_jobs=jobs)(calls))
    with connect_cluster(cluster, default=True), joblib.parallel_config(backend="dask"):
        return list(joblib.Parallel()(calls))


def _digest_and_read(file: InputFile, store: Path) -> tuple[str, str | None]:
    """Return (sha256, error); the entry is in the store when there is no error."""
    digest = ""
    try:
        digest = file_digest(file.path)
        folder = store / _key(digest, file)
        if not _is_whole(folder):
            shutil.rmtree(folder, ignore_errors=True)
            # Here, since an unchanged campaign is recognised without the readers.
            from gpuverdict.recognise import read_any

            _write(folder, read_any(file.path, file.options))
    except GpuverdictError as problem:
        return digest, str(problem)
    except OSError as problem:
        reason = str(problem.strerror or problem).lower()
        return digest, str(CampaignError(store, found=reason, expected="a store to write to"))
    except MemoryError:
        return digest, str(
            LogFormatError(file.path, found="more than fits in memory", expected="a smaller file")
        )
    return digest, None


def is_stored(digest: str, file: InputFile, store: Path) -> bool:
    """Tell whether a file of this hash, read in this way, is in the store already."""
    return _is_whole(store / _key(digest, file))


def _key(digest: str, file: InputFile) -> str:
    stated = json.dumps(dataclasses.asdict(file.options), sort_keys=True, default=str)
    text = f"{digest}\n{beside_digest(file.path)}\n{stated}\n{code_digest(_READING)}"
    return hashlib.sha256(text.encode()).hexdigest()


def beside_digest(path: Path) -> str:
    """Return a hash of the files beside a log that a reader may look into, empty without any.

    Some tools tell the level of a run, or its gaps, only in a file of their own: when that one
    comes later or changes, the log must be read again.
    """
    found = {other for pattern in _BESIDE for other in path.parent.glob(pattern) if other != path}
    lines = [f"{other.name} {file_digest(other)}" for other in sorted(found) if other.is_file()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest() if lines else ""


def _is_whole(folder: Path) -> bool:
    """Tell whether an entry is there with all of its files as they were written."""
    try:
        listing = json.loads((folder / "entry.json").read_text(encoding="utf-8"))
        return all(
            (folder / name).stat().st_size == size for name, size in listing["sizes"].items()
        )
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False


def _write(folder: Path, items: list[Any]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".writing-", dir=folder.parent))
    try:
        runs = [item for item in items if isinstance(item, Run)]
        traces = [item for item in items if isinstance(item, Trace)]
        frames = [item for item in items if isinstance(item, pl.DataFrame)]
        listing: dict[str, Any] = {"runs": [], "traces": [], "frames": []}
        for run in runs:
            check(run.requests, REQUESTS, "requests")
            check(run.gaps, TOKEN_GAPS, "gaps")
            listing["runs"].append(
                {"info": dict(run.info), "cautions": dump_cautions(run.cautions)}
            )
        if runs:
            requests = pl.concat([run.requests for run in runs])
            gaps = pl.concat([run.gaps for run in runs]) if runs else empty(TOKEN_GAPS)
            requests.write_parquet(work / "requests.parquet", compression="lz4")
            gaps.write_parquet(work / "gaps.parquet", compression="lz4")
        for number, trace in enumerate(traces):
            trace.samples.write_parquet(work / f"samples-{number}.parquet", compression="lz4")
            listing["traces"].append(
                {"info": dict(trace.info), "cautions": dump_cautions(trace.cautions)}
            )
        for number, frame in enumerate(frames):
            frame.write_parquet(work / f"frame-{number}.parquet", compression="lz4")
            kinds = (kind for mark, kind in _FRAMES.items() if mark in frame.columns)
            listing["frames"].append(next(kinds, "inventory"))
        listing["sizes"] = {path.name: path.stat().st_size for path in sorted(work.iterdir())}
        (work / "entry.json").write_text(
            json.dumps(listing, sort_keys=True, allow_nan=False, ensure_ascii=False),
            encoding="utf-8",
        )
        # mkdtemp makes a private folder; a shared store must stay readable by its other users.
        work.chmod(0o755)
        try:
            os.rename(work, folder)
        except OSError:
            if not _is_whole(folder):
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def dump_cautions(cautions: Iterable[Caution]) -> list[dict[str, Any]]:
    """Return cautions as plain values."""
    return [{"code": c.code, "values": dict(c.values)} for c in cautions]


def load_cautions(rows: Iterable[dict[str, Any]]) -> tuple[Caution, ...]:
    """Make cautions from what `dump_cautions` gave."""
    return tuple(caution(row["code"], **row["values"]) for row in rows)


def _entry(file: InputFile, result: tuple[str, str | None], store: Path) -> Entry:
    digest, error = result
    if error is not None:
        return Entry(file=file, sha256=digest, error=error)
    folder = store / _key(digest, file)
    listing = json.loads((folder / "entry.json").read_text(encoding="utf-8"))
    frames = {
        kind: pl.read_parquet(folder / f"frame-{number}.parquet")
        for number, kind in enumerate(listing["frames"])
    }
    return Entry(
        file=file,
        sha256=digest,
        runs=tuple(
            StoredRun(info=row["info"], cautions=load_cautions(row["cautions"]), folder=folder)
            for row in listing["runs"]
        ),
        traces=tuple(
            Trace(
                samples=pl.read_parquet(folder / f"samples-{number}.parquet"),
                info=row["info"],
                cautions=load_cautions(row["cautions"]),
            )
            for number, row in enumerate(listing["traces"])
        ),
        inventory=frames.get("inventory"),
        server_metrics=frames.get("metrics"),
        server_requests=frames.get("server_requests"),
    )
