"""Every trace dialect under damage and under changes that must not matter."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gpuverdict.errors import GpuverdictError
from gpuverdict.files import ReadOptions
from gpuverdict.recognise import read_any, read_trace

ROOT = Path(__file__).resolve().parents[2]
H200 = ROOT / "data" / "h200" / "card-a-bf16"
DRAWS = 30


def _head(path: Path, lines: int) -> bytes:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return b"".join(data.splitlines(keepends=True)[:lines])


DCGM = (
    b'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",modelName="NVIDIA A30"} 61.5 1796090400000\n'
    b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="NVIDIA A30"} 97 1796090400000\n'
    b'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",modelName="NVIDIA A30"} 63.5 1796090401000\n'
)
LOG = b"time_epoch_s,gpu,power_mw,memory_used_mib\n" + b"".join(
    b"1796090%d.5,0,30%d000,2000\n" % (400 + i, i) for i in range(8)
)
FILES = {
    "query.csv": _head(H200 / "nvidia-smi-query.csv.gz", 12),
    "dmon.txt": _head(H200 / "nvidia-smi-dmon.txt.gz", 12),
    "list.txt": _head(H200 / "nvidia-smi-L.txt", 3),
    "topo.txt": _head(H200 / "nvidia-smi-topo.txt", 12),
    "q.xml": _head(H200 / "nvidia-smi-q.xml.gz", 10_000),
    "record.csv": _head(ROOT / "tests" / "ingest" / "data" / "record-h200.csv.gz", 10),
    "dcgm.prom": DCGM,
    "log.csv": LOG,
}


@pytest.mark.parametrize("name", FILES)
def test_the_undamaged_file_is_read(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    assert len(read_any(path, ReadOptions(time_zone="UTC"))) == 1


@pytest.mark.parametrize("damage", ["flip", "cut", "repeat"])
@pytest.mark.parametrize("name", FILES)
def test_damage_is_a_one_line_refusal_or_a_checked_frame(tmp_path, name, damage):
    rng = np.random.default_rng([len(name), len(damage)])
    path = tmp_path / name
    for _ in range(DRAWS if len(FILES[name]) < 20_000 else DRAWS // 4):
        data = bytearray(FILES[name])
        where = int(rng.integers(len(data)))
        if damage == "flip":
            data[where] ^= int(rng.integers(1, 256))
        elif damage == "cut":
            data = data[:where]
        else:
            data[where:where] = data[max(0, where - 40) : where]
        path.write_bytes(bytes(data))
        try:
            found = read_any(path, ReadOptions(time_zone="UTC"))
        except GpuverdictError as problem:
            line = str(problem)
            assert line.isprintable()
            continue
        for item in found:
            frame = item if isinstance(item, pl.DataFrame) else item.samples
            for column in frame.iter_columns():
                if column.dtype == pl.Float64:
                    assert column.drop_nulls().is_finite().all()


@pytest.mark.parametrize("name", ["query.csv", "dmon.txt", "record.csv", "log.csv"])
def test_a_cut_table_gives_a_prefix_of_its_power(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    whole = read_trace(path, "UTC").samples["power_w"].to_list()
    for end in range(len(FILES[name]) // 2, len(FILES[name]), 13):
        path.write_bytes(FILES[name][:end])
        power = read_trace(path, "UTC").samples["power_w"].to_list()
        assert power == whole[: len(power)]
        # Whole lines are kept: at most the one that was being written is lost.
        gone = FILES[name][end:].count(b"\n")
        assert len(power) >= len(whole) - gone


def _query(change) -> bytes:
    rows = [line.split(", ") for line in FILES["query.csv"].decode().splitlines()]
    return ("\n".join(", ".join(row) for row in change(rows)) + "\n").encode()


def _same_but_names(tmp_path: Path, data: bytes) -> tuple[pl.DataFrame, pl.DataFrame]:
    frames = []
    for content in (FILES["query.csv"], data):
        path = tmp_path / "query.csv"
        path.write_bytes(content)
        frames.append(read_trace(path, "UTC").samples.drop("trace_id", "null_reason"))
    return frames[0], frames[1]


def test_the_order_of_columns_changes_nothing(tmp_path):
    order = np.random.default_rng(3).permutation(19)
    one, other = _same_but_names(
        tmp_path, _query(lambda rows: [[r[i] for i in order] for r in rows])
    )
    assert one.equals(other)


def test_milliwatts_instead_of_watts_change_nothing(tmp_path):
    def change(rows):
        for row in rows[1:]:
            for i, cell in enumerate(row):
                if cell.endswith(" W"):
                    row[i] = f"{float(cell[:-2]) * 1000:.0f} mW"
        return rows

    one, other = _same_but_names(tmp_path, _query(change))
    for column in ("power_w", "power_average_w", "power_limit_w"):
        assert other[column].to_list() == pytest.approx(one[column].to_list())


def test_names_of_an_older_driver_change_nothing(tmp_path):
    def change(rows):
        renamed = {
            "clocks.current.sm [MHz]": "clocks.sm [MHz]",
            "clocks_event_reasons.active": "clocks_throttle_reasons.active",
            "uuid": "gpu_uuid",
        }
        return [[renamed.get(cell, cell) for cell in row] for row in rows]

    one, other = _same_but_names(tmp_path, _query(change))
    assert one.equals(other)


def test_a_column_with_a_name_it_does_not_know_is_listed_not_guessed(tmp_path):
    path = tmp_path / "query.csv"
    path.write_bytes(FILES["query.csv"].replace(b"power.draw.instant [W]", b"power.draw.ante [W]"))
    trace = read_trace(path, "UTC")
    assert trace.samples["power_instant_w"].null_count() == trace.samples.height
    assert "power.draw.ante" in trace.info["unread_columns"]
    assert trace.info["power_column"] == "power_average_w"
