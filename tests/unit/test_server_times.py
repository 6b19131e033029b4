"""The server's rows beside the client's: joined by id, by order where that is sure, or not."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from tests.calibration.phases_table import H200
from tests.unit.runs import make_run

from gpuverdict.measured import join_runs
from gpuverdict.recognise import read_any, read_run
from gpuverdict.schema import SERVER_REQUESTS, Run, polars_schema

T0 = 1_796_090_000.0
STARTS = [0.0, 0.4, 0.9, 1.7, 2.6]


def client(**columns: Any) -> Run:
    """Five requests of 0.3 s, well apart, on an exact clock."""
    n = len(columns.get("start_s", STARTS))
    told = {"start_s": STARTS, "output_tokens": [8] * n, "input_tokens": [100] * n,
            "output_tokens_source": ["usage"] * n} | columns  # fmt: skip
    first = [s + 0.1 for s in told["start_s"]]
    last = [s + 0.3 for s in told["start_s"]]
    return make_run({"first_token_s": first, "last_token_s": last, **told},
                    t0_epoch_s=T0, t0_quality="exact")  # fmt: skip


def server(starts: list[float], **columns: Any) -> pl.DataFrame:
    """Rows of a server that sees a request 2 ms later and is done 4 ms before its client."""
    n = len(starts)
    told = {"request_id": [None] * n, "arrival_epoch_s": [T0 + s + 0.002 for s in starts],
            "server_queue_s": [0.01 * (k + 1) for k in range(n)], "server_prefill_s": [0.05] * n,
            "server_decode_s": [0.19] * n, "server_e2e_s": [0.294] * n, "output_tokens": [8] * n,
            "source": ["open"] * n} | columns  # fmt: skip
    empty = {name: [None] * n for name in SERVER_REQUESTS if name not in told}
    return pl.DataFrame(told | empty, schema=polars_schema(SERVER_REQUESTS))


def queues(run: Run, rows: pl.DataFrame) -> dict[int, float]:
    (join,) = join_runs([run], rows)
    return dict(join.times.select("request_index", "server_queue_s").iter_rows())


def test_by_id_whatever_the_order_and_the_dress() -> None:
    run = client(request_id=["a", "chatcmpl-b", "cmpl-c-0", "d", "e"])
    rows = server(STARTS[:4], request_id=["chatcmpl-d", "c", "b", "cmpl-a-0"])
    (join,) = join_runs([run], rows)
    assert queues(run, rows) == pytest.approx({0: 0.04, 1: 0.03, 2: 0.02, 3: 0.01})
    assert (join.how, join.n_joined, join.n_requests) == ("id", 4, 5)
    assert [c.code for c in join.cautions] == ["server_times_partial"]


def test_an_id_that_stands_twice_joins_nothing() -> None:
    twice_on_the_server = server(STARTS, request_id=["a", "a", "c", "d", "e"])
    run = client(request_id=["a", "b", "c", "d", "e"])
    (join,) = join_runs([run], twice_on_the_server)
    assert set(join.times["request_index"]) == {2, 3, 4}
    assert (join.n_ambiguous, join.n_joined) == (1, 3)
    # The same in two runs of one arm: request "c" of either could be the row.
    other = client(request_id=["v", "w", "c", "x", "y"])
    rows = server(STARTS, request_id=["b", "v", "c", "d", "w"])
    one, two = join_runs([run, other], rows)
    assert set(one.times["request_index"]) == {1, 3}
    assert set(two.times["request_index"]) == {0, 1}
    assert (one.n_ambiguous, two.n_ambiguous) == (1, 1)


def test_by_order_when_the_lists_are_in_step() -> None:
    shuffled = server(STARTS)[[3, 0, 4, 2, 1]]
    (join,) = join_runs([client()], shuffled)
    assert queues(client(), shuffled) == pytest.approx({k: 0.01 * (k + 1) for k in range(5)})
    assert join.how == "order"
    assert [c.code for c in join.cautions] == ["server_times_by_order"]


@pytest.mark.parametrize(
    "rows",
    [
        server([*STARTS, 2.1]),  # a request of somebody else
        server(STARTS[:4]),  # one not recorded
        server(STARTS, arrival_epoch_s=[T0 + s + d for s, d in
                                        zip(STARTS, (0, 0, 0.05, 0, 0), strict=True)]),
        server(STARTS, arrival_epoch_s=[T0 + s + 5 for s in STARTS]),  # another clock
        server(STARTS, output_tokens=[8, 8, 9, 8, 8]),  # another load at the same moments
        server(STARTS, server_e2e_s=[0.294, 0.31, 0.294, 0.294, 0.294]),  # longer than its client's
        server(STARTS, arrival_epoch_s=[None] * 5),
    ],
)  # fmt: skip
def test_no_join_by_order_where_it_could_be_wrong(rows: pl.DataFrame) -> None:
    (join,) = join_runs([client()], rows)
    assert join.times.is_empty()
    assert (join.how, join.n_joined) == (None, 0)


def test_no_order_without_a_clock() -> None:
    run = client()
    for info in ({"t0_quality": "none"}, {"t0_epoch_s": None}):
        (join,) = join_runs([replace(run, info={**run.info, **info})], server(STARTS))
        assert join.times.is_empty()


def test_requests_that_could_change_places_stay_apart() -> None:
    starts = [0.0, 0.4, 0.401, 1.7, 2.6]
    (join,) = join_runs([client(start_s=starts)], server(starts))
    assert set(join.times["request_index"]) == {0, 3, 4}
    assert (join.n_ambiguous, join.n_joined) == (2, 3)
    # Their lengths tell them apart.
    told = {"output_tokens": [8, 8, 16, 8, 8]}
    (join,) = join_runs([client(start_s=starts, **told)], server(starts, **told))
    assert set(join.times["request_index"]) == {0, 1, 2, 3, 4}


def test_a_cut_request_without_a_row_spoils_nothing() -> None:
    run = client(status=["ok", "ok", "ok", "ok", "incomplete"])
    (join,) = join_runs([run], server(STARTS[:4]))
    assert set(join.times["request_index"]) == {0, 1, 2, 3}
    assert join.cautions[0].code == "server_times_by_order"


def test_times_that_cannot_be_are_counted_and_not_used() -> None:
    notes = [None, "times_do_not_add_up", None, None, None]
    rows = server(STARTS, request_id=list("abcde"), note=notes,
                  server_queue_s=[0.1, None, 0.1, 0.1, 0.1])  # fmt: skip
    (join,) = join_runs([client(request_id=list("abcde"))], rows)
    assert join.n_unusable == 1
    assert [c.code for c in join.cautions] == ["server_times_unusable"]


def test_a_source_nobody_has_seen_a_file_of_says_so() -> None:
    rows = server(STARTS, request_id=list("abcde"), source=["sglang_request_log"] * 5)
    (join,) = join_runs([client(request_id=list("abcde"))], rows)
    assert [c.code for c in join.cautions] == ["server_log_unverified"]


@pytest.mark.parametrize("level", range(4))
def test_by_order_never_differs_from_the_ids_of_the_real_server(level: int) -> None:
    """Requests of an H200 whose ids are known: without them, order joins rightly or not."""
    (rows,) = read_any(H200 / "card-a-bf16" / "server_requests.jsonl.gz")
    folder = H200 / "card-a-bf16"
    runs = [read_run(folder / f"guidellm-r{r}.json.gz")[level] for r in (1, 2, 3)]
    by_id = join_runs(runs, rows)
    assert all(j.n_joined == j.n_requests > 0 for j in by_id)
    nameless = rows.with_columns(request_id=pl.lit(None, dtype=pl.String)).sample(
        fraction=1.0, shuffle=True, seed=1
    )
    for true, found, run in zip(by_id, join_runs(runs, nameless), runs, strict=True):
        sure = found.times.join(true.times, on="request_index", suffix="_true")
        assert sure.height == found.times.height
        assert sure["server_queue_s"].equals(sure["server_queue_s_true"])
        if level == 0:
            assert sure.height == run.requests.filter(pl.col("status") == "ok").height


def test_by_order_never_joins_a_thinned_log_wrongly() -> None:
    """Rows missing and rows of others in equal number: as many as requests, and still no join."""
    draw = random.Random(7)
    starts = sorted(draw.uniform(0, 20) for _ in range(60))
    for trial in range(50):
        rows = server([s for s in starts if s != starts[trial]] + [draw.uniform(0, 20)])
        (join,) = join_runs([client(start_s=starts)], rows)
        assert join.times.is_empty()
