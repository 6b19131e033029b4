"""How a path becomes text: compression, archives, encodings, limits, and JSON of every quality."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from gpuverdict.errors import LogFormatError
from gpuverdict.files import ReadOptions, open_documents, parse_records
from gpuverdict.recognise import read_any, read_run

RECORD = {
    "date": "20261005-020000", "backend": "vllm", "model_id": "m", "num_prompts": 1,
    "completed": 1, "duration": 2.0, "request_rate": 4.0, "mean_ttft_ms": 250.0,
}  # fmt: skip
TEXT = json.dumps(RECORD).encode()


def tar_of(members: dict[str, bytes], mode: str = "w:gz") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def zip_of(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        TEXT,
        b"\xef\xbb\xbf" + TEXT,
        TEXT.decode().encode("utf-16"),
        b"\xff\xfe" + TEXT.decode().replace(" ", "\r\n").encode("utf-16-le"),
        gzip.compress(TEXT),
        gzip.compress(TEXT[:20]) + gzip.compress(TEXT[20:]),
        zstandard.ZstdCompressor().compress(TEXT),
        zip_of({"folder/a.json": TEXT}),
        zip_of({"a.json.gz": gzip.compress(TEXT), "__MACOSX/a.json": b"x"}),
        tar_of({"a.json": TEXT}),
        tar_of({"a.json": TEXT}, "w"),
        TEXT + b"\x00" * 512,
        b"\r\n  " + TEXT + b"\r\n",
    ],
    ids=["plain", "bom", "utf-16", "utf-16 crlf", "gz", "two gz members", "zst", "zip",
         "gz in zip", "tar.gz", "tar", "nul tail", "blank around"],
)  # fmt: skip
def test_one_log_in_many_wrappings(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "anything"
    path.write_bytes(data)
    (run,) = read_run(path)
    assert run.info["reported"]["ttft_s.mean"] == 0.25
    padded = data.startswith(b"{") and data.endswith(b"\x00" * 9)
    assert any(item.code == "nul_tail" for item in run.cautions) == padded


def test_hash_is_of_the_content_not_of_its_wrapping(tmp_path: Path) -> None:
    hashes = set()
    for name, data in (("a", TEXT), ("b", gzip.compress(TEXT)), ("c", zip_of({"x": TEXT}))):
        (tmp_path / name).write_bytes(data)
        hashes.add(open_documents(tmp_path / name)[0].sha256)
    assert len(hashes) == 1


def test_archive_members_are_read_once_each(tmp_path: Path) -> None:
    other = json.dumps({**RECORD, "duration": 3.0}).encode()
    path = tmp_path / "a.zip"
    path.write_bytes(zip_of({"1.json": TEXT, "2.json": other, "copy.json": TEXT}))
    runs = read_any(path)
    assert [run.info["duration_s"] for run in runs] == [2.0, 3.0]
    assert runs[1].info["source_name"] == "a.zip!2.json"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "an empty file"),
        (b" \r\n\t ", "an empty file"),
        (b"\x00" * 64, "an empty file"),
        (gzip.compress(TEXT)[:-9], "cannot be expanded"),
        (b"\x1f\x8bnot gzip at all", "cannot be expanded"),
        (zip_of({"a": TEXT})[:60], "damaged zip"),
        (zip_of({"[Content_Types].xml": b"<x/>"}), "office document"),
        (zip_of({}), "without files"),
        (b"<!DOCTYPE html><title>404 Not &amp; Found</title>", "'404 Not & Found'"),
        (b"\n<html><body>x</body></html>", "an HTML page"),
        (TEXT.decode().encode("utf-16-le"), "UTF-16 text without"),
        (b'{"a": "\xb2\xe2\xca\xd4"}\n', "GB18030"),
        (b'{"a": "\xff\xff"}', "not UTF-8"),
        (b'{"date": 1', "cut off"),
        (b'[{"a": 1}, {"a"', "recover: true"),
        (b'{"a": 1} trailing', "not JSON"),
        (b'{"model_id": 1, "model_id": 2}', "'model_id' twice"),
        (b"[" * 100_000, "too deeply"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "too deeply"),
        (b"hello, world\n1, 2\n", "no known format"),
        (b"[1, 2, 3]", "no known format"),
        (b"{}", "no known format"),
        (b"[]", "no known format"),
        (b"PAR1 not parquet PAR1", "no known format"),
        (b"SQLite format 3\x00" + b"\x00" * 200, "SQLite"),
    ],
    # Named by position: the bytes of an archive hold the moment it was made.
    ids=[f"input-{i}" for i in range(25)],
)  # fmt: skip
def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(data)
    with pytest.raises(LogFormatError) as caught:
        read_run(path)
    message = str(caught.value)
    assert message.startswith("odd.json")
    assert found in message
    assert "\n" not in message


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(LogFormatError, match="No such file"):
        read_run(tmp_path / "absent.json")
    with pytest.raises(LogFormatError, match="a folder"):
        read_run(tmp_path)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress,
                                  lambda data: zip_of({"a": data}),
                                  lambda data: tar_of({"a": data})])  # fmt: skip
def test_expansion_has_a_limit(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "bomb"
    path.write_bytes(pack(b" " * 50_000_000))
    assert path.stat().st_size < 200_000
    with pytest.raises(LogFormatError, match="expanded"):
        open_documents(path, ReadOptions(max_bytes=1_000_000))


def test_the_error_lists_keys_and_reasons(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"alpha": 1, "beta": [2]}')
    with pytest.raises(LogFormatError) as caught:
        read_run(path)
    message = str(caught.value)
    assert "alpha, beta" in message
    assert "not vllm: no 'model_id' key" in message
    assert "not guidellm: no list 'benchmarks'" in message


def test_a_named_format_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(TEXT)
    assert read_run(path, ReadOptions(format="vllm"))[0].info["source_format"] == "vllm"
    with pytest.raises(LogFormatError, match="not sglang"):
        read_run(path, ReadOptions(format="sglang"))
    with pytest.raises(LogFormatError, match="unknown format 'nonsense'"):
        read_run(path, ReadOptions(format="nonsense"))


def test_two_formats_that_fit_are_an_error_naming_both(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("request_index,status,start_s,batch,input,output,prefill_s\n0,ok,1,8,9,9,1\n")
    with pytest.raises(LogFormatError) as caught:
        read_run(path)
    assert "gpuverdict and gpuverdict_batches" in str(caught.value)
    assert "format: gpuverdict" in str(caught.value)


def test_recovery_of_a_cut_array(tmp_path: Path) -> None:
    rows = [{"start_time": i, "end_time": i + 1.0, "error": None,
             "info": {"input_tokens": 4, "output_tokens": 2,
                      "output_token_times": [i + 0.5, i + 1.0]}} for i in range(3)]  # fmt: skip
    path = tmp_path / "a.json"
    path.write_text(json.dumps(rows)[:-30])
    with pytest.raises(LogFormatError, match=r"cut off at byte \d+"):
        read_run(path)
    (run,) = read_run(path, ReadOptions(recover=True))
    assert run.info["n_rows"] == 2
    assert any(item.code == "recovered_array" for item in run.cautions)


def test_records_keep_their_lines() -> None:
    records = parse_records(b'{"a": 1}\n\n{"a": 2}{"a": 3}\n5\n{"a": NaN}\n{"a"', "x")
    assert [value["a"] for value in records.values] == [1, 2, 3, None]
    assert records.lines == [1, 3, 3, 5]
    assert records.dropped == {"non_object": 1, "incomplete_last_line": 1}


def test_duplicate_keys_of_a_large_document_are_found() -> None:
    padding = ", ".join(str(i) for i in range(400_000))
    text = f'{{"a": [{padding}], "b": "x: \\" y", "a": 3}}'.encode()
    with pytest.raises(LogFormatError, match="'a' twice"):
        parse_records(text, "x")
    fine = f'{{"a": [{padding}], "b": "\\"a\\": 1", "c": {{"a": 3}}}}'.encode()
    assert set(parse_records(fine, "x").values[0]) == {"a", "b", "c"}
