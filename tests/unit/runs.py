"""Build a `Run` from a few columns, for tests that need no log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from gpuverdict.schema import REQUESTS, RUN_FIELDS, TOKEN_GAPS, Run, conform, empty


def make_run(
    columns: Mapping[str, Sequence[Any]],
    gaps: Mapping[int, Sequence[float]] | None = None,
    **info: Any,
) -> Run:
    """Complete request columns (times in seconds since t0) to a run; gaps by request index."""
    frame = pl.DataFrame(dict(columns), strict=False)
    n = frame.height
    filled = {"run_id": ["r"] * n, "request_index": list(range(n)), "phase": ["main"] * n,
              "status": ["ok"] * n}  # fmt: skip
    frame = frame.with_columns(
        pl.Series(name, values) for name, values in filled.items() if name not in frame.columns
    )
    frame = conform(frame, REQUESTS).with_columns(
        pl.coalesce("end_s", "last_token_s").alias("end_s"),
        pl.coalesce("ttft_s", pl.col("first_token_s") - pl.col("start_s")).alias("ttft_s"),
        pl.coalesce("e2e_s", pl.col("last_token_s") - pl.col("start_s")).alias("e2e_s"),
        pl.coalesce(
            "tpot_s",
            pl.when(pl.col("output_tokens") > 1).then(
                (pl.col("last_token_s") - pl.col("first_token_s")) / (pl.col("output_tokens") - 1)
            ),
        ).alias("tpot_s"),
    )
    gap_frame = empty(TOKEN_GAPS)
    if gaps:
        gap_frame = conform(
            pl.DataFrame(
                {
                    "run_id": ["r"] * len(gaps),
                    "request_index": list(gaps),
                    "gaps_s": [list(map(float, row)) for row in gaps.values()],
                    "gap_kind": ["token_true"] * len(gaps),
                }
            ),
            TOKEN_GAPS,
        )
    facts: dict[str, Any] = dict.fromkeys(RUN_FIELDS)
    counts = frame["status"].value_counts()
    facts |= {"run_id": "r", "source_format": "built", "n_rows": n}
    facts |= {f"n_{s}": int(c) for s, c in counts.iter_rows()}
    return Run(info=facts | info, requests=frame, gaps=gap_frame)
