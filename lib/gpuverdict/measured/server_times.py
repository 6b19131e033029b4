"""Which row of the server's log belongs to which request of the client's: by id, else by order.

A wrong join is worse than none: what could be two requests is left apart and counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuverdict.errors import Caution
from gpuverdict.schema import SERVER_TIMES, Run
from gpuverdict.telemetry.server_requests import UNVERIFIED
from gpuverdict.text import caution

__all__ = ["ServerJoin", "join_runs", "normal_id"]

_TAKEN = (*SERVER_TIMES, "cached_input_tokens")
# A server's interval may stick out of its client's by this much: two clocks of one host.
CLOCK_SLACK_S = 0.002
# How far the server's arrivals may lie from the client's starts, once the clocks are brought
# together, before the two lists cannot be one.
ORDER_JITTER_S = 0.02
# What the client's clock may be wrong by as a whole, by how its zero was found.
_OFFSET_S = {"exact": 0.05, "end_stamp_minus_duration": 2.0, "file_mtime": 4.0}
_COUNTED = ("usage", "token_ids")
_ARRIVED = ("ok", "incomplete", "cancelled", "empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerJoin:
    """What was joined of one run: `times` has `request_index` and what the server says of each.

    `how` is `id`, `order` or None; `n_joined` of `n_requests` successful ones have a row,
    `n_ambiguous` could have had several. `n_unusable` rows were joined and hold no times;
    `unverified` names a source of which no real file was at hand.
    """

    times: pl.DataFrame
    how: str | None
    n_requests: int
    n_joined: int
    n_ambiguous: int = 0
    n_unusable: int = 0
    unverified: str = ""

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """What a reader must know: a join by order, and what was not joined."""
        said = []
        if self.how == "order":
            said.append(caution("server_times_by_order", n=self.n_joined, total=self.n_requests))
        missing = self.n_requests - self.n_joined
        if missing > 0:
            said.append(
                caution("server_times_partial", n=missing, total=self.n_requests,
                        ambiguous=self.n_ambiguous)
            )  # fmt: skip
        if self.unverified:
            said.append(caution("server_log_unverified", source=self.unverified))
        if self.n_unusable:
            said.append(caution("server_times_unusable", n=self.n_unusable, total=self.n_joined))
        return tuple(said)


def normal_id(identity: str) -> str:
    """Undress a request id: what vLLM puts around the caller's own.

    Examples
    --------
    >>> normal_id("chatcmpl-abc"), normal_id("cmpl-abc-0"), normal_id("abc-7")
    ('abc', 'abc', 'abc-7')
    """
    if identity.startswith("chatcmpl-"):
        return identity.removeprefix("chatcmpl-")
    found = re.fullmatch(r"cmpl-(.+)-\d+", identity)
    return found[1] if found else identity.removeprefix("cmpl-")


def join_runs(runs: Sequence[Run], server: pl.DataFrame) -> list[ServerJoin]:
    """Join the rows of a server to the requests of an arm's runs.

    Parameters
    ----------
    runs : sequence of Run
        All runs the server's log may speak of, requests only.
    server : polars.DataFrame
        Columns of `SERVER_REQUESTS`.

    Returns
    -------
    list of ServerJoin
        One a run, in order.

    Notes
    -----
    By id: the ids are equal as written, or once undressed (`normal_id`), and neither side has the
    id twice. A run without one such id is joined by order, if its log has start times: the server
    must have seen exactly as many requests while it ran, each pair of k-th arrivals must lie
    together within `ORDER_JITTER_S`, and a request that its neighbour's row would fit as well (by
    time, tokens and duration) stays alone.
    """
    rows = server.filter(pl.col("note").is_null() | (pl.col("note") != "duplicate_span"))
    rows = rows.with_row_index("row")
    pairs, ambiguous = _by_id(runs, rows)
    taken = {row for found in pairs for row in found.values()}
    spare = rows.filter(~pl.col("row").is_in(list(taken)))
    joins = []
    for number, run in enumerate(runs):
        found, how = pairs[number], "id"
        unclear = ambiguous[number]
        if not found and not unclear:
            found, unclear = _by_order(run, spare)
            how = "order"
        joins.append(_joined(run, rows, found, how if found else None, unclear))
    return joins


def _joined(
    run: Run, rows: pl.DataFrame, found: Mapping[int, int], how: str | None, unclear: int
) -> ServerJoin:
    keys = pl.DataFrame(
        {"request_index": list(found), "row": list(found.values())},
        schema={"request_index": pl.Int64, "row": rows.schema["row"]},
    )
    times = keys.join(rows, on="row", how="left").select("request_index", *_TAKEN, "note", "source")
    odd = sorted(set(times["source"].unique()) & set(UNVERIFIED))
    # A server may write nothing of a request that was cut.
    finished = run.requests.filter(pl.col("status") == "ok")
    inside = finished["request_index"].is_in(list(found)).sum()
    return ServerJoin(
        times=times.drop("note", "source"),
        unverified=", ".join(odd),
        how=how,
        n_requests=finished.height,
        n_joined=int(inside),
        n_ambiguous=unclear,
        n_unusable=int(times["note"].is_not_null().sum()),
    )


def _by_id(runs: Sequence[Run], rows: pl.DataFrame) -> tuple[list[dict[int, int]], list[int]]:
    """Pair equal ids; an id that stands twice on either side pairs with nothing."""
    client: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, run in enumerate(runs):
        known = run.requests.select("request_index", "request_id").drop_nulls()
        for index, identity in known.iter_rows():
            client[normal_id(identity)].append((number, index))
    server: dict[str, list[int]] = defaultdict(list)
    for row, identity in rows.select("row", "request_id").drop_nulls().iter_rows():
        server[normal_id(identity)].append(row)
    pairs: list[dict[int, int]] = [{} for _ in runs]
    ambiguous = [0 for _ in runs]
    for identity, held in client.items():
        offered = server.get(identity, ())
        if len(held) == 1 and len(offered) == 1:
            number, index = held[0]
            pairs[number][index] = offered[0]
        elif offered:
            for number, _ in held:
                ambiguous[number] += 1
    return pairs, ambiguous


def _by_order(run: Run, rows: pl.DataFrame) -> tuple[dict[int, int], int]:
    """Pair the k-th start with the k-th arrival, where that is the only way they fit."""
    t0, slack = run.info.get("t0_epoch_s"), _OFFSET_S.get(run.info.get("t0_quality") or "")
    sent = run.requests.filter(pl.col("start_s").is_not_null()).sort("start_s", "request_index")
    if t0 is None or slack is None:
        return {}, 0
    # A server may write nothing of a request that was cut, so both lists are tried.
    for statuses in (_ARRIVED, ("ok",)):
        client = sent.filter(pl.col("status").is_in(statuses))
        if client.is_empty():
            continue
        starts = client["start_s"].to_numpy() + float(t0)
        near = pl.col("arrival_epoch_s").is_between(starts[0] - slack, starts[-1] + slack)
        seen = rows.filter(near).sort("arrival_epoch_s", "row")
        if seen.height == client.height:
            return _in_step(client, starts, seen)
    return {}, 0


def _in_step(
    client: pl.DataFrame, starts: np.ndarray, seen: pl.DataFrame
) -> tuple[dict[int, int], int]:
    """Pair two lists of one length, and leave apart what could change places."""
    arrivals = seen["arrival_epoch_s"].to_numpy()
    offset = float(np.median(arrivals - starts))
    jitter = float(np.abs(arrivals - starts - offset).max())
    if jitter > ORDER_JITTER_S:
        return {}, 0
    own, other = _Side.of(client), _Side.of(seen)
    found, unclear = {}, 0
    for k in range(client.height):
        near = np.flatnonzero(np.abs(arrivals - offset - starts[k]) <= 2 * jitter + CLOCK_SLACK_S)
        fitting = [int(j) for j in near if own.fits(k, other, int(j))]
        if fitting == [k]:
            found[int(client["request_index"][k])] = int(seen["row"][k])
        elif k in fitting:
            unclear += 1
        else:
            # The lists agree in time and not in content: they are of two different loads.
            return {}, 0
    return found, unclear


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """Tokens and durations of one list, None where it does not say."""

    output_tokens: list[int | None]
    duration_s: list[float | None]

    @classmethod
    def of(cls, frame: pl.DataFrame) -> _Side:
        if "server_e2e_s" in frame.columns:
            return cls(output_tokens=frame["output_tokens"].to_list(),
                       duration_s=frame["server_e2e_s"].to_list())  # fmt: skip
        # Of a cut request the client saw less than the server made; a recount may be off by one.
        whole = pl.col("status") == "ok"
        counted = pl.col("output_tokens_source").is_in(_COUNTED)
        told = frame.select(
            tokens=pl.when(whole & counted).then("output_tokens"),
            lasted=pl.when(whole).then("e2e_s"),
        )
        return cls(output_tokens=told["tokens"].to_list(), duration_s=told["lasted"].to_list())

    def fits(self, k: int, server: _Side, j: int) -> bool:
        """Tell whether request k of the client can be row j of the server.

        Prompts are counted differently on the two sides (chat template), outputs are not; a
        server's time is contained in its client's.
        """
        made, seen = self.output_tokens[k], server.output_tokens[j]
        if made is not None and seen is not None and made != seen:
            return False
        whole, inner = self.duration_s[k], server.duration_s[j]
        return whole is None or inner is None or inner <= whole + CLOCK_SLACK_S
