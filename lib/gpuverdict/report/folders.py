"""The output folder: names of the comparisons' folders, one writer each, nothing half-done.

Two invocations may share an output folder: each comparison has a lock, so one of them renders it
and the other finds it done. What is being made lies under `.rendering` until it is whole; a killed
invocation's remains there are swept by the next one, which the operating system's release of the
lock allows.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from gpuverdict.campaign import Campaign, ComparisonSpec
from gpuverdict.errors import ParameterError

__all__ = [
    "clear_remains",
    "folder_name",
    "folder_names",
    "lock_key",
    "locked",
    "replace_file",
    "swap",
    "work_folder",
]

_WORK = ".rendering"
# What the runner itself writes beside the folders.
_TAKEN = {"index.html", "campaign.json"}
_MOST_BYTES = 120
_KEY_LENGTH = 12


def lock_key(name: str) -> str:
    """Return the key of a name's lock: short enough for any file system."""
    return hashlib.sha256(name.encode()).hexdigest()[:_KEY_LENGTH]


def folder_name(name: str) -> str:
    """Return a folder name for a validated comparison name.

    Examples
    --------
    >>> folder_name("A100 vs 双卡4090")
    'A100-vs-双卡4090'
    """
    plain = re.sub(r"[^\w.+@-]+", "-", name).strip(".-") or "comparison"
    if len(plain.encode()) <= _MOST_BYTES:
        return plain
    # File systems count bytes, and 80 characters may be 240 of them.
    short = plain.encode()[: _MOST_BYTES - 9].decode(errors="ignore")
    return f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def folder_names(campaign: Campaign) -> dict[str, str]:
    """Return the folder of each comparison: no two share one, whatever their names differ in."""
    taken = set(_TAKEN)
    folders: dict[str, str] = {}
    for spec in campaign.comparisons:
        if not isinstance(spec, ComparisonSpec):
            continue
        plain = folder_name(str(spec.name))
        name, number = plain, 2
        while name.casefold() in taken:
            name, number = f"{plain}-{number}", number + 1
        taken.add(name.casefold())
        folders[str(spec.name)] = name
    return folders


@contextlib.contextmanager
def locked(target: Path, key: str, give_up: Callable[[], bool] = lambda: False) -> Iterator[bool]:
    """Hold a lock of an output folder (`lock_key`); gives False when told to give up waiting."""
    try:
        import fcntl
    except ImportError:  # a system without such locks: renames are still atomic
        yield True
        return
    path = target / _WORK / f"{key}.lock"
    handle: IO[str] | None = None
    while handle is None:
        if give_up():
            yield False
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            handle = path.open("w")
        if handle is None:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.close()
            handle = None
            time.sleep(0.1)
            continue
        # Whoever held it may have removed the file: then this is the lock of nothing.
        if not _is_at(handle, path):
            handle.close()
            handle = None
    try:
        yield True
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        handle.close()
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def _is_at(handle: IO[str], path: Path) -> bool:
    try:
        return os.fstat(handle.fileno()).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def work_folder(target: Path, name: str) -> Iterator[Path]:
    """Give an empty folder to make a report in, removed afterwards; the name's lock is held."""
    parent = target / _WORK
    own = lock_key(name)
    _sweep(parent, own)
    work = parent / f"{own}-{os.getpid()}"
    work.mkdir(parents=True, exist_ok=True)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def swap(work: Path, place: Path) -> None:
    """Put a finished folder in its place; what was there before is gone afterwards."""
    old = work.with_name(f"{work.name}-old")
    if place.exists():
        os.rename(place, old)
    os.rename(work, place)
    shutil.rmtree(old, ignore_errors=True)


def clear_remains(target: Path) -> None:
    """Remove what killed invocations left, but not what another one is at work on.

    Raises
    ------
    ParameterError
        When the output folder cannot be made.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ParameterError(
            f"--out {target}", found=str(problem.strerror).lower(), expected="a folder to write in"
        ) from None
    parent = target / _WORK
    if not parent.is_dir():
        return
    for key in {path.name[:_KEY_LENGTH] for path in parent.iterdir()}:
        # One try: what is locked is alive.
        with locked(target, key, iter((False, True)).__next__) as held:
            if held:
                _sweep(parent, key)


def replace_file(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one."""
    new = path.parent / _WORK / f"{lock_key(path.name)}-{os.getpid()}.txt"
    new.parent.mkdir(exist_ok=True)
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def _sweep(parent: Path, own: str) -> None:
    for left in parent.glob(f"{own}-*"):
        if left.is_file():
            left.unlink(missing_ok=True)
        shutil.rmtree(left, ignore_errors=True)
