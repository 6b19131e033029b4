"""SLO attainment minute by minute: counts by hand, refusals, and the figure's sentences."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.timed import write_timed

from gpuverdict import figures
from gpuverdict.capacity import attainment_by_minute
from gpuverdict.case import open_case

SLO = {"ttft_s": {"p95": 0.5}, "tpot_s": {"p50": 0.02}}


def rows(entries: list[tuple[float, str, float | None, float | None]]) -> pl.DataFrame:
    start, status, ttft, tpot = zip(*entries, strict=True)
    return pl.DataFrame(
        {"start_s": start, "status": status, "ttft_s": ttft, "tpot_s": tpot,
         "phase": ["main"] * len(start)},
        schema_overrides={"ttft_s": pl.Float64, "tpot_s": pl.Float64},
    )  # fmt: skip


HOUR = [
    (5.0, "ok", 0.1, 0.01), (10.0, "ok", 0.5, 0.02), (64.9, "ok", 0.51, 0.01),
    # The second minute begins 60 s after the first request, at 65 s.
    (65.0, "ok", 0.1, 0.021), (70.0, "error", None, None), (80.0, "empty", None, None),
    (90.0, "incomplete", 0.1, None), (100.0, "ok", 0.1, None),
    # Nothing is sent in the third minute; the fifth is not whole.
    (190.0, "ok", 0.1, 0.01), (250.0, "ok", 0.9, 0.01),
]  # fmt: skip


def test_by_hand() -> None:
    table, said = attainment_by_minute(rows(HOUR), SLO)
    assert said == ()
    assert table["minute"].to_list() == [0, 1, 2, 3]
    assert table["n"].to_list() == [3, 4, 0, 1]
    assert table["n_met"].to_list() == [2, 1, 0, 1]
    assert table["n_cut"].to_list() == [0, 1, 0, 0]
    assert table["share_ratio"].to_list() == [pytest.approx(2 / 3), 0.25, None, 1.0]


def test_refusals() -> None:
    short, said = attainment_by_minute(rows(HOUR[:8]), SLO)
    assert short.is_empty()
    assert [(c.code, c.values["span_s"]) for c in said] == [("minutes_short", 95.0)]
    blind = rows(HOUR).with_columns(start_s=pl.lit(None, pl.Float64))
    assert [c.code for c in attainment_by_minute(blind, SLO)[1]] == ["minutes_no_start"]


@pytest.fixture(scope="module")
def long_and_short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One stream, one request each 0.36 s: three minutes."""
    folder = tmp_path_factory.mktemp("minutes")
    slo = {"ttft_s": {"p95": 0.0505}}
    return write_timed(folder, levels=(1,), repeats=2, n=550, step_s=2.0, slo=slo)


def test_the_figure_shows_every_minute_of_every_run(long_and_short: Path) -> None:
    case = open_case(long_and_short, "ab")
    plate = figures.slo_by_minute(case)
    assert plate.frame.groupby("arm").size().to_dict() == {"a": 6, "b": 6}
    # Each minute by a second route: the rows of that run, counted with pandas.
    run = next(r for r in case.measured.runs_of("b") if r.repeat_no == 2)
    own = run.stored.requests().to_pandas()
    third = own[(own.start_s >= 120) & (own.start_s < 180)]
    (row,) = plate.frame.query("arm == 'b' and repeat_no == 2 and minute == 2").to_dict("records")
    assert row["n"] == len(third)
    assert row["n_met"] == int((third.ttft_s <= 0.0505).sum())
    assert 0.2 < row["share_ratio"] < 0.95
    judged = plate.frame[plate.frame.arm == "a"].n.sum()
    assert "a at 1 stream: " in plate.finding
    assert f"of {judged:,} requests" in plate.finding
    assert f"{judged:,} 个请求" in figures.slo_by_minute(case, "zh").finding


def test_the_sample_is_too_short() -> None:
    plate = figures.slo_by_minute(open_case("data/h200/campaign.yaml", "eager"))
    assert plate.frame.empty
    # One sentence for both arms, since one reason holds for both.
    assert "card-b, card-b-eager: not measured" in plate.finding
    assert "two whole minutes" in plate.finding
