"""The Parquet store: read once, never half, never another file's entry."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import polars as pl
import pytest
from tests.campaigns import arm, closed_loop, vllm_result, write_arm, write_campaign

from gpuverdict import recognise, store
from gpuverdict.campaign import InputFile, read_campaign
from gpuverdict.files import ReadOptions
from gpuverdict.measured import measure

ROOT = Path(__file__).resolve().parents[2]


def result(path: Path, n: int = 12) -> Path:
    path.write_text(json.dumps(vllm_result(closed_loop(n=n), streams=4)))
    return path


def file(path: Path, **options: object) -> InputFile:
    return InputFile(path=path, role="files", options=ReadOptions(**options))  # type: ignore[arg-type]


def test_what_comes_out_is_what_the_reader_gave(tmp_path: Path) -> None:
    path = result(tmp_path / "x.json")
    (entry,) = store.ingest_files([file(path)], tmp_path / "store")
    (read,) = recognise.read_run(path)
    (stored,) = entry.runs
    assert entry.error is None
    assert stored.load().requests.equals(read.requests)
    assert stored.load().gaps.equals(read.gaps)
    assert stored.info == read.info
    assert [c.as_dict() for c in stored.cautions] == [c.as_dict() for c in read.cautions]


def test_unchanged_is_not_read_again_and_changed_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Path] = []
    real = recognise.read_any

    def counting(path: Path, options: ReadOptions) -> list[object]:
        calls.append(path)
        return real(path, options)

    monkeypatch.setattr(recognise, "read_any", counting)
    path = result(tmp_path / "x.json")
    for _ in range(3):
        store.ingest_files([file(path)], tmp_path / "store")
    assert len(calls) == 1
    renamed = path.rename(tmp_path / "y.json")
    os.utime(renamed, (1, 1))
    store.ingest_files([file(renamed)], tmp_path / "store")
    assert len(calls) == 1, "neither the name nor the time of a file is its content"
    store.ingest_files([file(renamed, client_version="0.32.0")], tmp_path / "store")
    assert len(calls) == 2, "what the campaign says about a file is part of the key"
    result(renamed, n=13)
    (entry,) = store.ingest_files([file(renamed)], tmp_path / "store")
    assert len(calls) == 3
    assert entry.runs[0].info["n_rows"] == 13


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "empty"), (b'{"model_id": ', "x.json"), (b"\x1f\x8bnot gzip", "x.json"),
     (b'{"hello": 1}', "known format"), (b"\x00\xff" * 40, "x.json")],
)  # fmt: skip
def test_a_bad_file_is_lost_with_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    bad, good = tmp_path / "x.json", result(tmp_path / "good.json")
    bad.write_bytes(content)
    first, second = store.ingest_files([file(bad), file(good)], tmp_path / "store")
    assert first.error is not None
    assert says in first.error
    assert "\n" not in first.error
    assert second.error is None
    assert len(second.runs) == 1


def test_an_unreadable_file_is_lost(tmp_path: Path) -> None:
    path = result(tmp_path / "x.json")
    gone = tmp_path / "gone.json"
    path.chmod(0)
    entries = store.ingest_files([file(path), file(gone)], tmp_path / "store")
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    if os.geteuid() != 0:
        assert "permission" in (entries[0].error or "")
    assert "no such file" in (entries[1].error or "")
    assert entries[1].sha256 == ""


@pytest.mark.parametrize("damage", ["requests.parquet", "gaps.parquet", "entry.json", "missing"])
def test_a_damaged_entry_is_read_again(tmp_path: Path, damage: str) -> None:
    path = result(tmp_path / "x.json")
    (before,) = store.ingest_files([file(path)], tmp_path / "store")
    folder = before.runs[0].folder
    if damage == "missing":
        (folder / "requests.parquet").unlink()
    else:
        (folder / damage).write_bytes(b"{")
    (after,) = store.ingest_files([file(path)], tmp_path / "store")
    assert after.error is None
    assert after.runs[0].load().requests.height == 12


def test_no_half_written_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = result(tmp_path / "x.json")

    def broken(*args: object, **kwargs: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", broken)
    (entry,) = store.ingest_files([file(path)], tmp_path / "store")
    assert "disk full" in (entry.error or "")
    assert list((tmp_path / "store").iterdir()) == []


def test_two_writers_at_once_leave_one_whole_entry(tmp_path: Path) -> None:
    path = result(tmp_path / "x.json", n=400)
    code = textwrap.dedent(
        f"""
        import sys
        sys.path[:0] = [{str(ROOT / "lib")!r}]
        from pathlib import Path
        from gpuverdict import store
        from gpuverdict.campaign import InputFile
        from gpuverdict.files import ReadOptions
        file = InputFile(path=Path({str(path)!r}), role="files", options=ReadOptions())
        (entry,) = store.ingest_files([file], Path({str(tmp_path / "store")!r}))
        assert entry.error is None, entry.error
        assert entry.runs[0].load().requests.height == 400
        """
    )
    both = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    folders = list((tmp_path / "store").iterdir())
    assert len(folders) == 1
    assert not folders[0].name.startswith(".")
    assert folders[0].stat().st_mode & stat.S_IROTH


def test_store_lies_beside_the_campaign_or_elsewhere_when_it_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_arm(tmp_path, "a", n=12)
    write_arm(tmp_path, "b", n=12)
    path = write_campaign(tmp_path, {"a": arm("a"), "b": arm("b")})
    campaign = read_campaign(path)
    assert store.default_store(campaign) == tmp_path / ".gpuverdict" / "store"

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(store.tempfile, "TemporaryFile", refuse)
    elsewhere = store.default_store(campaign)
    assert tmp_path not in elsewhere.parents
    assert store.default_store(campaign) == elsewhere, "the same campaign finds it again"
    measured = measure(campaign, store=tmp_path / "own")
    assert len(measured.runs) == 6
    assert not measured.lost


def test_parallel_reading_gives_the_same_entries(tmp_path: Path) -> None:
    paths = [result(tmp_path / f"{i}.json", n=10 + i) for i in range(3)]
    files = [file(path) for path in paths]
    one = store.ingest_files(files, tmp_path / "one")
    two = store.ingest_files(files, tmp_path / "two", jobs=2)
    assert [e.sha256 for e in one] == [e.sha256 for e in two]
    assert [e.runs[0].info for e in one] == [e.runs[0].info for e in two]


def test_progress_names_every_file(tmp_path: Path) -> None:
    files = [file(result(tmp_path / f"{i}.json", n=10 + i)) for i in range(3)]
    done: list[InputFile] = []
    store.ingest_files(files, tmp_path / "store", progress=done.append)
    assert done == files


def test_a_changed_reader_does_not_meet_old_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = result(tmp_path / "x.json")
    store.ingest_files([file(path)], tmp_path / "store")
    monkeypatch.setattr(store, "code_digest", lambda parts=(): "another reader")
    start = time.perf_counter()
    store.ingest_files([file(path)], tmp_path / "store")
    assert time.perf_counter() - start < 30
    assert len(list((tmp_path / "store").iterdir())) == 2


def test_every_reading_module_is_part_of_the_key() -> None:
    """A reader that is not hashed would leave its old entries valid."""
    package = ROOT / "lib" / "gpuverdict"
    for part in store._READING:
        assert (package / part).exists(), part
    assert {"ingest", "telemetry", "recognise.py", "schema.py"} <= set(store._READING)
    assert any(part.startswith("files") for part in store._READING)


def test_a_file_beside_the_log_that_comes_later_is_noticed(tmp_path: Path) -> None:
    from gpuverdict.store import beside_digest

    log = tmp_path / "m_individual_responses.json"
    log.write_text("[]")
    assert beside_digest(log) == ""
    summary = tmp_path / "m_summary.json"
    summary.write_text("{}")
    first = beside_digest(log)
    assert first
    summary.write_text('{"num_concurrent_requests": 8}')
    assert beside_digest(log) not in ("", first)
