"""Does an arm keep its SLO all the time, or only on average? Attainment minute by minute."""

from __future__ import annotations

import math

import polars as pl

from gpuverdict.capacity.slo import Slo
from gpuverdict.errors import Caution
from gpuverdict.summary import within_slo
from gpuverdict.text import caution

__all__ = ["attainment_by_minute"]

MINUTE_S = 60.0
FEWEST_MINUTES = 2


def attainment_by_minute(
    requests: pl.DataFrame, slo: Slo
) -> tuple[pl.DataFrame, tuple[Caution, ...]]:
    """Say for each minute of a run what share of its requests kept the SLO.

    Parameters
    ----------
    requests : polars.DataFrame
        Rows of one run (`start_s`, `status`, `phase` and the latencies).
    slo : mapping
        metric -> statistic -> limit in base units. Each limit is held against each request, as for
        goodput, whatever quantile it is stated for.

    Returns
    -------
    table : polars.DataFrame
        `minute` (from 0), `n` requests judged, `n_met`, `n_cut`, `share_ratio` (n_met / n; null
        without any). Minutes by the start of the request, whole ones only. Empty where refused.
    cautions : tuple of Caution
        `minutes_no_start`, or `minutes_short` for a run of less than two whole minutes.

    Notes
    -----
    Errors and empty answers are misses; what the end of the run cut off (`incomplete`, `cancelled`)
    is counted apart, for it could have been either. The last minute ends with the last request
    sent, so it is whole only by chance and left out otherwise.

    Examples
    --------
    >>> rows = pl.DataFrame({"start_s": [0.0, 30.0, 70.0, 121.0], "status": ["ok"] * 4,
    ...                      "phase": ["main"] * 4, "ttft_s": [0.1, 0.9, 0.1, 0.1]})
    >>> table, _ = attainment_by_minute(rows, {"ttft_s": {"p95": 0.5}})
    >>> table["share_ratio"].to_list()
    [0.5, 1.0]
    """
    main = requests.filter(pl.col("phase") == "main")
    empty = pl.DataFrame(
        schema={"minute": pl.Int64, "n": pl.Int64, "n_met": pl.Int64, "n_cut": pl.Int64,
                "share_ratio": pl.Float64}
    )  # fmt: skip
    if main.is_empty() or main["start_s"].null_count():
        return empty, (caution("minutes_no_start"),)
    first = float(main["start_s"].min())  # type: ignore[arg-type]
    span = float(main["start_s"].max()) - first  # type: ignore[arg-type]
    whole = math.floor(span / MINUTE_S)
    if whole < FEWEST_MINUTES:
        return empty, (caution("minutes_short", span_s=span, needed_s=FEWEST_MINUTES * MINUTE_S),)
    cut = pl.col("status").is_in(["incomplete", "cancelled"])
    met = (pl.col("status") == "ok") & within_slo(slo, main.columns)
    table = (
        main.with_columns(
            minute=((pl.col("start_s") - first) / MINUTE_S).floor().cast(pl.Int64), cut=cut, met=met
        )
        .filter(pl.col("minute") < whole)
        .group_by("minute")
        .agg(
            n=(~pl.col("cut")).sum().cast(pl.Int64),
            n_met=pl.col("met").sum().cast(pl.Int64),
            n_cut=pl.col("cut").sum().cast(pl.Int64),
        )
    )
    # A minute without a single request sent is a row too: nothing was judged in it.
    every = pl.DataFrame({"minute": pl.Series(range(whole), dtype=pl.Int64)})
    counted = every.join(table, on="minute", how="left").with_columns(
        pl.col("n", "n_met", "n_cut").fill_null(0)
    )
    share = pl.when(pl.col("n") > 0).then(pl.col("n_met") / pl.col("n"))
    return counted.sort("minute").with_columns(share_ratio=share), ()
