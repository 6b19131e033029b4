"""The worked regression of the method notes (18.7) on the real H200 logs, by a second route.

Everything here is recomputed from the raw GuideLLM files with the standard library and scipy: the
cut, the token counts, Welch on logs, the equivalence test, Benjamini-Hochberg. Nothing of
gpuverdict is used for the expected side.
"""

from __future__ import annotations

import functools
import gzip
import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from gpuverdict.case import Case, open_case
from gpuverdict.recognise import read_run
from gpuverdict.summary import summarize

ROOT = Path(__file__).resolve().parents[2]
H200 = ROOT / "data" / "h200"
STREAMS = (1, 4, 16, 64)
FILES = {
    "card-a": "card-a-bf16/guidellm-r{}.json.gz",
    "card-b": "card-b-bf16/guidellm-r{}.json.gz",
    "card-b-eager": "card-b-eager/guidellm-r{}.json.gz",
    "layers32": "starts/layers32-r{}.json.gz",
    "layers34": "starts/layers34-r{}.json.gz",
}
REPEATS = {arm: 4 if arm.startswith("layers") else 5 for arm in FILES}
ARMS = {
    "cards": ("card-a", "card-b"),
    "eager": ("card-b", "card-b-eager"),
    "layers": ("layers32", "layers34"),
}
MARGINS = {"tpot_s": 0.03, "ttft_s": 0.05, "output_tokens_per_s": 0.03}
STATISTIC = {"tpot_s": "p50", "ttft_s": "p50", "output_tokens_per_s": "value"}
LEVELS = {"cards": STREAMS, "eager": STREAMS, "layers": (16,)}

CELLS = [
    (comparison, metric, streams)
    for comparison, levels in LEVELS.items()
    for metric in MARGINS
    for streams in levels
]


# ---------------------------------------------------------------------------- second route


@functools.cache
def raw_runs(arm: str) -> dict[tuple[int, int], dict[str, Any]]:
    """(streams, repeat) -> the requests sent, ordered by start, and the end of measuring."""
    found = {}
    for repeat in range(1, REPEATS[arm] + 1):
        with gzip.open(H200 / FILES[arm].format(repeat)) as handle:
            document = json.load(handle)
        for benchmark in document["benchmarks"]:
            rows = []
            for key in ("successful", "incomplete", "errored"):
                for request in benchmark["requests"][key] or []:
                    timing = request["info"]["timings"]
                    if timing["request_start"] is None:
                        continue
                    rows.append(
                        {
                            "ok": key == "successful",
                            "failed": key == "errored",
                            "start": timing["request_start"],
                            "first": timing["first_token_iteration"],
                            "last": timing["last_token_iteration"],
                            "tokens": timing["token_iterations"],
                        }
                    )
            rows.sort(key=lambda row: row["start"])
            streams = benchmark["config"]["strategy"]["streams"]
            found[streams, repeat] = {
                "rows": rows,
                "end": benchmark["scheduler_metrics"]["measure_end_time"],
            }
    return found


def cut_run(run: dict[str, Any], streams: int) -> dict[str, Any]:
    """Apply the steady cut: the opening wave or 15 % out, until the end of the measurement."""
    rows = run["rows"]
    k = max(streams, math.floor(0.15 * len(rows) + 1e-9))
    start = rows[k]["start"]
    kept = [row for row in rows[k:] if row["start"] <= run["end"]]
    return {"start": start, "kept": [r for r in kept if r["ok"]], "share": k / len(rows)}


def tokens_made(rows: list[dict[str, Any]], start: float, end: float) -> int:
    """Count tokens with a time in (start, end], spread evenly over each request."""
    total = 0
    for row in rows:
        if row["failed"] or row["first"] is None:
            continue
        n = row["tokens"]
        gap = (row["last"] - row["first"]) / (n - 1) if n > 1 else 0.0
        for i in range(n):
            # A billionth of a gap: the last token is at `last` itself, whatever rounding says.
            moment = row["last"] if i == n - 1 else row["first"] + i * gap
            total += start < moment <= end
    return total


@functools.cache
def run_statistic(arm: str, metric: str, streams: int) -> tuple[float, ...]:
    """One number a run."""
    values = []
    for repeat in range(1, REPEATS[arm] + 1):
        run = raw_runs(arm)[streams, repeat]
        cut = cut_run(run, streams)
        if metric == "tpot_s":
            values.append(
                statistics.median(
                    (r["last"] - r["first"]) / (r["tokens"] - 1)
                    for r in cut["kept"]
                    if r["tokens"] >= 8
                )
            )
        elif metric == "ttft_s":
            values.append(statistics.median(r["first"] - r["start"] for r in cut["kept"]))
        else:
            made = tokens_made(run["rows"], cut["start"], run["end"])
            values.append(made / (run["end"] - cut["start"]))
    return tuple(values)


def welch(a: tuple[float, ...], b: tuple[float, ...]) -> dict[str, float]:
    """Welch on logs, from scipy alone."""
    found = scipy_stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
    low, high = found.confidence_interval(0.95)
    low90, high90 = found.confidence_interval(0.90)
    shift = statistics.fmean(map(math.log, b)) - statistics.fmean(map(math.log, a))
    return {
        "ratio": math.exp(shift), "p": float(found.pvalue), "low": math.exp(low),
        "high": math.exp(high), "low90": math.exp(low90), "high90": math.exp(high90),
    }  # fmt: skip


def expected(comparison: str, metric: str) -> dict[int, dict[str, Any]]:
    """Every level of one family, decided."""
    one, two = ARMS[comparison]
    levels = LEVELS[comparison]
    found = {s: welch(run_statistic(one, metric, s), run_statistic(two, metric, s)) for s in levels}
    adjusted = scipy_stats.false_discovery_control([found[s]["p"] for s in levels], method="bh")
    margin = MARGINS[metric]
    for streams, p in zip(levels, adjusted, strict=True):
        row: dict[str, Any] = found[streams]
        row["p_adjusted"] = float(p)
        if 1 / (1 + margin) <= row["low90"] and row["high90"] <= 1 + margin:
            row["word"] = "equivalent"
        elif p < 0.05:
            higher = row["ratio"] > 1
            row["word"] = "faster" if higher == (metric == "output_tokens_per_s") else "slower"
        else:
            row["word"] = "inconclusive"
    return found


@functools.cache
def case(name: str) -> Case:
    return open_case(H200 / "campaign.yaml", name)


def level_key(streams: int) -> str:
    return json.dumps({"concurrency": streams})


# ---------------------------------------------------------------------------- the cells


@pytest.mark.parametrize(("comparison", "metric", "streams"), CELLS)
def test_cell_agrees_with_the_second_route(comparison: str, metric: str, streams: int) -> None:
    one, two = ARMS[comparison]
    cell = case(comparison).verdict.cell(metric, STATISTIC[metric], level_key(streams))
    assert cell is not None
    shown, right = cell.comparison, expected(comparison, metric)[streams]
    close = functools.partial(pytest.approx, rel=0.005)
    for arm, value in ((one, shown.baseline), (two, shown.candidate)):
        runs = run_statistic(arm, metric, streams)
        assert value == close(math.exp(statistics.fmean(map(math.log, runs))))
    assert (shown.ratio, shown.low, shown.high) == close(
        (right["ratio"], right["low"], right["high"])
    )
    # A token on the very edge of a window may fall to either side: one in 1 000.
    loose = 0.02 if metric == "output_tokens_per_s" else 1e-6
    assert shown.p_adjusted == pytest.approx(right["p_adjusted"], rel=loose)
    assert cell.verdict == right["word"]
    assert cell.rung == 1
    assert (shown.n_baseline, shown.n_candidate) == (REPEATS[one], REPEATS[two])


@pytest.mark.parametrize("comparison", list(ARMS))
def test_runs_behind_a_cell_are_those_of_the_second_route(comparison: str) -> None:
    for cell in case(comparison).verdict.cells:
        metric = cell.key.metric
        if metric not in MARGINS or cell.key.statistic != STATISTIC[metric]:
            continue
        assert cell.level is not None
        streams = int(cell.level["concurrency"])
        for arm, runs in zip(
            ARMS[comparison], (cell.baseline_runs, cell.candidate_runs), strict=True
        ):
            assert [repeat for repeat, _ in runs] == list(range(1, REPEATS[arm] + 1))
            tolerance = 2e-3 if metric == "output_tokens_per_s" else 1e-9
            assert [value for _, value in runs] == pytest.approx(
                run_statistic(arm, metric, streams), rel=tolerance
            )


@pytest.mark.parametrize("arm", list(FILES))
def test_cut_drops_what_the_rule_says(arm: str) -> None:
    name = next(n for n, arms in ARMS.items() if arm in arms)
    opened = case(name)
    found = {
        (int(fact.run.level["concurrency"]), fact.run.repeat_no): fact
        for fact in opened.summary.facts.values()
        if fact.run.arm == arm
    }
    assert len(found) == len(raw_runs(arm))
    frame = opened.summary.frame
    for (streams, repeat), run in raw_runs(arm).items():
        cut, fact = cut_run(run, streams), found[streams, repeat]
        assert fact.window.kind == "steady"
        assert fact.window.dropped_ratio == pytest.approx(cut["share"], abs=1e-12)
        assert {c.code for c in fact.window.cautions} >= {"short_run"}
        row = frame[
            (frame.run_id == fact.run.run_id) & (frame.arm == arm) & (frame.window == "steady")
            & (frame.metric == "ttft_s") & (frame.statistic == "p50")
        ].iloc[0]  # fmt: skip
        assert row.n == len(cut["kept"])


def test_shares_and_words_stand_as_the_notes_print_them() -> None:
    """The notes' own rounding of what the second route finds: a check of this test."""
    shares = {
        s: [round(100 * cut_run(raw_runs("card-a")[s, r], s)["share"]) for r in range(1, 6)]
        for s in STREAMS
    }
    assert shares[64] == [36, 41, 33, 34, 38]
    assert {*shares[1], *shares[4], *shares[16]} == {9, 14, 17}
    kept = [len(cut_run(raw_runs("card-a")[64, r], 64)["kept"]) for r in range(1, 6)]
    assert kept == [48, 28, 64, 58, 42]
    words = {
        (name, metric): [row["word"] for row in expected(name, metric).values()]
        for name in ARMS
        for metric in MARGINS
    }
    undecided = ["inconclusive"] * 3
    assert words["cards", "tpot_s"] == ["equivalent", *undecided]
    assert words["cards", "ttft_s"] == ["inconclusive", *undecided]
    assert words["cards", "output_tokens_per_s"] == ["equivalent", *undecided]
    assert words["eager", "tpot_s"] == ["slower"] * 4
    assert words["eager", "ttft_s"] == ["inconclusive"] * 4
    assert words["eager", "output_tokens_per_s"] == ["slower"] * 4
    assert words["layers", "tpot_s"] == words["layers", "ttft_s"] == ["inconclusive"]
    assert words["layers", "output_tokens_per_s"] == ["slower"]


@pytest.mark.parametrize(
    ("comparison", "metric", "streams"),
    [("layers", "tpot_s", 16), ("layers", "output_tokens_per_s", 16), ("cards", "tpot_s", 64)],
)
def test_permutation_agrees_with_scipy(comparison: str, metric: str, streams: int) -> None:
    one, two = ARMS[comparison]
    statistic: Callable[..., Any] = lambda x, y, axis: np.abs(  # noqa: E731
        np.mean(x, axis=axis) - np.mean(y, axis=axis)
    )
    found = scipy_stats.permutation_test(
        (np.log(run_statistic(one, metric, streams)), np.log(run_statistic(two, metric, streams))),
        statistic, n_resamples=np.inf, alternative="greater", vectorized=True,
    )  # fmt: skip
    cell = case(comparison).verdict.cell(metric, STATISTIC[metric], level_key(streams))
    assert cell is not None
    assert cell.comparison.p_permutation == pytest.approx(found.pvalue, abs=1e-12)
    t_test = welch(run_statistic(one, metric, streams), run_statistic(two, metric, streams))
    fragile = (found.pvalue < 0.05) != (t_test["p"] < 0.05)
    assert ("fragile" in cell.comparison.modifiers) == fragile


# ---------------------------------------------------------------------------- claims


def independent_p(comparison: str, values: tuple[list[float], list[float]]) -> float:
    return float(
        scipy_stats.ttest_ind(np.log(values[1]), np.log(values[0]), equal_var=False).pvalue
    )


def test_no_difference_between_two_cards_that_an_independent_test_does_not_give() -> None:
    verdict = case("cards").verdict
    speaking = [c for c in (*verdict.cells, *verdict.headline) if c.verdict in ("faster", "slower")]
    for cell in speaking:
        metric = cell.key.metric
        assert metric in MARGINS, "a word on a metric this test does not recompute"
        one, two = ARMS["cards"]
        if cell.level is None:
            sides = [
                [
                    math.exp(
                        statistics.fmean(
                            math.log(run_statistic(arm, metric, s)[r]) for s in STREAMS
                        )
                    )
                    for r in range(5)
                ]
                for arm in (one, two)
            ]
        else:
            streams = int(cell.level["concurrency"])
            sides = [list(run_statistic(arm, metric, streams)) for arm in (one, two)]
        assert independent_p("cards", (sides[0], sides[1])) < 0.05
        assert cell.comparison.p_adjusted is not None
        assert cell.comparison.p_adjusted < 0.05


def test_headlines_are_welch_over_sweeps_with_holm() -> None:
    for comparison in ("cards", "eager"):
        raw, shown = [], []
        for metric in MARGINS:
            means = [
                [statistics.fmean(math.log(run_statistic(arm, metric, s)[r]) for s in STREAMS)
                 for r in range(5)]
                for arm in ARMS[comparison]
            ]  # fmt: skip
            raw.append(float(scipy_stats.ttest_ind(means[1], means[0], equal_var=False).pvalue))
            cell = case(comparison).verdict.cell(metric, STATISTIC[metric], None)
            assert cell is not None
            shown.append(cell.comparison)
            right = math.exp(statistics.fmean(means[1]) - statistics.fmean(means[0]))
            assert cell.comparison.ratio == pytest.approx(right, rel=1e-3)
        order = sorted(range(3), key=lambda i: raw[i])
        running = 0.0
        for rank, i in enumerate(order):
            running = max(running, min(1.0, raw[i] * (3 - rank)))
            assert shown[i].p_adjusted == pytest.approx(running, rel=0.03)


def test_eager_is_the_positive_control() -> None:
    verdict = case("eager").verdict
    for streams in (1, 4, 16):
        cell = verdict.cell("tpot_s", "p50", level_key(streams))
        assert cell is not None
        assert cell.verdict == "slower"
        assert "same server start" in cell.comparison.modifiers
    first = verdict.cell("tpot_s", "p50", level_key(1))
    assert first is not None
    assert first.comparison.ratio is not None
    assert 2 < first.comparison.ratio < 3


def test_layers_says_how_many_starts_would_decide() -> None:
    cell = case("layers").verdict.cell("tpot_s", "p50", level_key(16))
    assert cell is not None
    assert "same server start" not in cell.comparison.modifiers
    assert cell.comparison.runs_needed is not None
    low, high = cell.comparison.runs_needed
    assert 4 < low <= high
    assert cell.comparison.mde_ratio is not None


@pytest.mark.parametrize("arm", ["card-a", "card-b", "card-b-eager"])
def test_whole_run_medians_equal_the_standard_library(arm: str) -> None:
    """Where nothing is cut the medians of `summarize(run)` are those of the raw files."""
    for repeat in (1, 5):
        for run in read_run(H200 / FILES[arm].format(repeat)):
            frame = summarize(run)
            raw = [
                r
                for r in raw_runs(arm)[int(run.info["max_concurrency"]), repeat]["rows"]
                if r["ok"]
            ]
            tpot = [(r["last"] - r["first"]) / (r["tokens"] - 1) for r in raw]
            ttft = [r["first"] - r["start"] for r in raw]
            right = {"tpot_s": statistics.median(tpot), "ttft_s": statistics.median(ttft)}
            for metric, value in right.items():
                row = frame[(frame.metric == metric) & (frame.statistic == "p50")].iloc[0]
                assert row.window == "whole_run"
                assert row.value == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("arm", ["card-a", "card-b"])
def test_throughput_of_one_stream_is_what_its_times_imply(arm: str) -> None:
    """Token events, not finished requests: never exactly 160.0."""
    frame = case("cards").summary.frame
    rows = frame[
        (frame.arm == arm) & (frame.window == "steady") & (frame.level == level_key(1))
        & (frame.metric == "output_tokens_per_s")
    ]  # fmt: skip
    implied = []
    for repeat in range(1, 6):
        kept = cut_run(raw_runs(arm)[1, repeat], 1)["kept"]
        first = statistics.median(r["first"] - r["start"] for r in kept)
        tpot = statistics.median((r["last"] - r["first"]) / (r["tokens"] - 1) for r in kept)
        implied.append(128 / (first + 127 * tpot))
    assert len(rows) == 5
    assert rows.value.median() == pytest.approx(statistics.median(implied), rel=0.02)
    assert rows.value.nunique() == 5
    assert not (rows.value == 160.0).any()
