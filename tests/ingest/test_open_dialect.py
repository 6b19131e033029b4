"""The project's own tables: requests, runs and batches, and foreign headers by a confirmed map."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gpuverdict.errors import LogFormatError
from gpuverdict.files import ReadOptions, open_documents
from gpuverdict.inspection import inspect_paths, propose_columns
from gpuverdict.recognise import read_run
from gpuverdict.schema import REQUESTS, check, run_level

HEADER = ("request_index,status,start_s,first_token_s,last_token_s,end_s,input_tokens,"
          "output_tokens,output_tokens_source")  # fmt: skip
ROWS = [
    "0,ok,1796090000.120,1796090000.161,1796090000.930,1796090000.931,512,128,usage",
    "1,error,1796090000.300,,,1796090000.302,512,0,usage",
]


def written(folder: Path, *lines: str, name: str = "requests.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_documented_example(tmp_path: Path) -> None:
    (run,) = read_run(written(tmp_path, HEADER, *ROWS), ReadOptions(clock="epoch"))
    check(run.requests, REQUESTS)
    first, second = run.requests.iter_rows(named=True)
    assert first["ttft_s"] == pytest.approx(0.041, abs=1e-6)
    assert first["tpot_s"] == pytest.approx(0.769 / 127, rel=1e-5)
    assert (second["status"], second["ttft_s"]) == ("error", None)
    assert run.info["t0_epoch_s"] == pytest.approx(1796090000.12)
    assert run.info["t0_quality"] == "exact"
    assert run.info["source_format"] == "gpuverdict"


def test_without_a_clock_no_epoch_is_claimed(tmp_path: Path) -> None:
    (run,) = read_run(written(tmp_path, HEADER, *ROWS))
    assert (run.info["t0_epoch_s"], run.info["t0_quality"]) == (None, "none")


def test_the_same_rows_in_three_forms_are_the_same_run(tmp_path: Path) -> None:
    csv = written(tmp_path, HEADER, *ROWS)
    frame = pl.read_csv(csv)
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_ndjson(tmp_path / "a.jsonl")
    runs = [read_run(path)[0] for path in (csv, tmp_path / "a.parquet", tmp_path / "a.jsonl")]
    kept = [run.requests.drop("run_id") for run in runs]
    assert kept[0].equals(kept[1])
    assert kept[0].equals(kept[2])


def test_one_run_for_each_run_id(tmp_path: Path) -> None:
    rows = [f"{run},{row}" for run in ("a", "b") for row in ROWS]
    runs = read_run(written(tmp_path, f"run_id,{HEADER}", *rows))
    assert [run.info["source_part"] for run in runs] == ["a", "b"]
    assert len({run.info["run_id"] for run in runs}) == 2


def test_gaps_beside_a_csv(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, "7,ok,0,1,1.75,1.75,8,4,usage")
    (tmp_path / "requests.gaps.csv").write_text(
        "request_index,event_index,gap_s\n7,1,0.25\n7,0,0.125\n7,2,0.375\n"
    )
    (run,) = read_run(path)
    assert run.gaps["gaps_s"].to_list() == [[0.125, 0.25, 0.375]]
    assert run.requests["request_index"].to_list() == [7]


def test_gaps_in_the_row(tmp_path: Path) -> None:
    row = {"request_index": 0, "status": "ok", "start_s": 0.0, "first_token_s": 0.5,
           "last_token_s": 1.0, "end_s": 1.0, "input_tokens": 4, "output_tokens": 3,
           "output_tokens_source": "usage", "gaps_s": [0.25, 0.25],
           "gap_kind": "token_true"}  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    (run,) = read_run(path)
    assert run.gaps["gaps_s"].to_list() == [[0.25, 0.25]]
    assert run.info["gap_kind"] == "token_true"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ((HEADER + ",ttft_ms", ROWS[0] + ",41"), "ttft_ms"),
        ((HEADER + ",notes", ROWS[0] + ",x"), "notes"),
        ((HEADER, ROWS[0], ROWS[0].replace("1796090000.931", "1796090000.99")), "twice"),
        ((HEADER, ROWS[0].replace("ok", "fine")), "fine"),
        ((HEADER, ROWS[0].replace(",128,", ",0,")), "0 output tokens"),
        ((HEADER, ROWS[0].replace("usage", "guess")), "guess"),
        ((HEADER, ROWS[0].replace("512", "many")), "many"),
        ((HEADER.replace("output_tokens_source", "x_source"), ROWS[0]), "output_tokens_source"),
        ((HEADER + ",ttft_s", ROWS[0] + ",0.5"), "0.5 s"),
        ((HEADER, ROWS[0][:40], ROWS[1]), "cells"),
        ((HEADER,), "without rows"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, change: tuple[str, ...], found: str) -> None:
    with pytest.raises(LogFormatError, match=r"requests\.csv") as caught:
        read_run(written(tmp_path, *change))
    assert found in str(caught.value)


def test_own_columns_are_kept_out(tmp_path: Path) -> None:
    (run,) = read_run(written(tmp_path, HEADER + ",x_note", ROWS[0] + ",hello"))
    assert run.info["n_ok"] == 1


def test_a_cut_last_line_is_dropped_and_said(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv"
    path.write_text("\n".join([HEADER, ROWS[0], ROWS[1][:20]]))
    (run,) = read_run(path)
    assert run.info["n_rows"] == 1
    assert run.info["dropped"] == {"incomplete_last_line": 1}


def test_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    lines = [HEADER.replace(",", ";"), "0;ok;0,5;1,0;1,9;2,0;512;10;usage"]
    path = written(tmp_path, *lines)
    with pytest.raises(LogFormatError, match="separator"):
        read_run(path)
    (run,) = read_run(path, ReadOptions(decimal=",", separator=";"))
    assert run.requests["ttft_s"].to_list() == [pytest.approx(0.5)]
    assert run.requests["tpot_s"].to_list() == [pytest.approx(0.1)]


FOREIGN = ["编号,首字延迟(ms),端到端时延(s),输入token数,输出token数,备注", "1,120,1.5,512,24,好",
           "2,240,1.7,512,24,"]  # fmt: skip
FOREIGN_MAP = {
    "首字延迟(ms)": {"to": "ttft_s", "unit": "ms"},
    "端到端时延(s)": {"to": "e2e_s", "unit": "s"},
    "输入token数": {"to": "input_tokens"},
    "输出token数": {"to": "output_tokens"},
}


def test_a_foreign_header_is_proposed_and_read_once_confirmed(tmp_path: Path) -> None:
    path = written(tmp_path, *FOREIGN)
    with pytest.raises(LogFormatError, match="no known format"):
        read_run(path)
    (document,) = open_documents(path)
    proposal = propose_columns(document)
    assert {header: wish["to"] for header, wish in proposal.items()} == {
        header: wish["to"] for header, wish in FOREIGN_MAP.items()
    }
    assert proposal["首字延迟(ms)"]["unit"] == "ms"
    (row,) = inspect_paths([path])["files"]
    assert row["dialect"] is None
    assert row["columns"] == proposal
    (run,) = read_run(path, ReadOptions(columns=FOREIGN_MAP))
    assert run.requests["ttft_s"].to_list() == pytest.approx([0.12, 0.24])
    assert run.requests["tpot_s"].to_list() == pytest.approx([1.38 / 23, 1.46 / 23])
    ignored = next(item for item in run.cautions if item.code == "columns_ignored")
    assert ignored.values["names"] == "编号, 备注"


def test_a_chinese_spreadsheet_is_refused_by_the_name_of_its_encoding(tmp_path: Path) -> None:
    path = tmp_path / "gbk.csv"
    path.write_bytes("\r\n".join(FOREIGN).encode("gb18030"))
    with pytest.raises(LogFormatError, match="GB18030"):
        read_run(path)
    options = ReadOptions(encoding="gb18030", columns=FOREIGN_MAP)
    (run,) = read_run(path, options)
    assert run.requests["ttft_s"].to_list() == pytest.approx([0.12, 0.24])


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"首字延迟(ms)": {"to": "ttft_s"}}, "no unit"),
        ({"首字延迟(ms)": {"to": "ttft_s", "unit": "fortnight"}}, "fortnight"),
        ({"首字延迟(ms)": {"to": "first_word", "unit": "ms"}}, "first_word"),
        ({"首字延迟(ms)": {"to": "ttft_s", "unit": "ms"}, "没有": {"to": "e2e_s", "unit": "s"}},
         "没有"),
        ({"首字延迟(ms)": "ttft_s"}, "no unit"),
        ({"首字延迟(ms)": 5}, "5"),
    ],
)  # fmt: skip
def test_a_map_that_does_not_fit_is_refused(
    tmp_path: Path, columns: dict[str, object], found: str
) -> None:
    with pytest.raises(LogFormatError) as caught:
        read_run(written(tmp_path, *FOREIGN), ReadOptions(columns=columns))
    assert found in str(caught.value)


def test_zone_less_stamps_need_a_zone(tmp_path: Path) -> None:
    path = written(tmp_path, "sent,done,tokens", "2026-12-01 02:00:00.5,2026-12-01 02:00:02.5,20")
    columns = {"sent": {"to": "start_s", "unit": "datetime"},
               "done": {"to": "end_s", "unit": "datetime"},
               "tokens": {"to": "output_tokens"}}  # fmt: skip
    with pytest.raises(LogFormatError, match="time_zone"):
        read_run(path, ReadOptions(columns=columns, clock="epoch"))
    options = ReadOptions(columns=columns, clock="epoch", time_zone="Asia/Shanghai")
    (run,) = read_run(path, options)
    # 02:00:00.5 in Shanghai is 18:00:00.5 UTC of the day before.
    assert run.info["t0_epoch_s"] == pytest.approx(1796061600.5)
    assert run.requests["e2e_s"].to_list() == pytest.approx([2.0])


def test_run_level_rows_in_the_form_summarize_prints(tmp_path: Path) -> None:
    rows = [
        {"run_id": name, "arm": "a", "level": {"concurrency": 8}, "metric": metric,
         "statistic": statistic, "value": value, "unit": unit, "n": 10, "window": "whole_run",
         "cautions": []}
        for name, shift in (("r1", 0.0), ("r2", 0.001))
        for metric, statistic, value, unit in (
            ("tpot_s", "p50", 0.02 + shift, "s"), ("output_tokens_per_s", "value", 300.0,
                                                   "tokens_per_s"))
    ]  # fmt: skip
    path = tmp_path / "summary.json"
    path.write_text(json.dumps({"rows": rows}))
    runs = read_run(path)
    assert [run.info["reported"]["tpot_s.p50"] for run in runs] == pytest.approx([0.02, 0.021])
    assert [run_level(run.info) for run in runs] == [{"concurrency": 8}] * 2
    assert all(run.requests.height == 0 for run in runs)
    rows[0]["unit"] = "ms"
    path.write_text(json.dumps({"rows": rows}))
    with pytest.raises(LogFormatError, match="'ms'"):
        read_run(path)


def test_a_foreign_table_of_runs(tmp_path: Path) -> None:
    path = written(tmp_path, "并发,TTFT p50 (ms),吞吐(tokens/s)", "4,85,360.5", "8,160,610")
    columns = {"并发": {"to": "concurrency"},
               "TTFT p50 (ms)": {"to": "ttft_s.p50", "unit": "ms"},
               "吞吐(tokens/s)": {"to": "output_tokens_per_s.value",
                                  "unit": "tokens/s"}}  # fmt: skip
    runs = read_run(path, ReadOptions(columns=columns))
    assert [run.info["max_concurrency"] for run in runs] == [4, 8]
    assert [run.info["reported"]["ttft_s.p50"] for run in runs] == pytest.approx([0.085, 0.16])


def test_batch_level_rows(tmp_path: Path) -> None:
    path = written(tmp_path, "batch,input,output,prefill_s,e2e_s,repeat", "8,512,101,0.5,2.5,1")
    (run,) = read_run(path)
    reported = run.info["reported"]
    assert reported["decode_step_s.value"] == pytest.approx(0.02)
    assert reported["prefill_tokens_per_s.value"] == pytest.approx(8192)
    assert reported["output_tokens_per_s.value"] == pytest.approx(808 / 2.5)
    assert run_level(run.info) == {"batch": 8}
    with pytest.raises(LogFormatError, match="above 0"):
        read_run(written(tmp_path, "batch,input,output,decode_step_s", "8,512,101,0"))
