"""Placing a run in a trace: the right second, or the right refusal."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gpuverdict.align import place
from gpuverdict.schema import (
    GPU_SAMPLES,
    REQUESTS,
    RUN_FIELDS,
    TOKEN_GAPS,
    Run,
    Trace,
    conform,
    empty,
)

T0 = 1_796_090_400.0


def run(**facts) -> Run:
    info = dict.fromkeys(RUN_FIELDS) | {
        "run_id": "r", "source_name": "r.json", "t0_epoch_s": T0, "t0_quality": "exact",
        "duration_s": 60.0,
    } | facts  # fmt: skip
    return Run(info=info, requests=empty(REQUESTS), gaps=empty(TOKEN_GAPS))


def trace(start: float, seconds: float = 100.0, uuid: str = "GPU-1", clock: bool = True) -> Trace:
    elapsed = np.arange(0.0, seconds, 1.0)
    rows = {
        "trace_id": ["t"] * len(elapsed),
        "elapsed_s": elapsed,
        "gpu_uuid": [uuid] * len(elapsed),
    }
    if clock:
        rows["time_epoch_s"] = start + elapsed
    return Trace(samples=conform(pl.DataFrame(rows), GPU_SAMPLES), info={"source_name": "t.csv"})


def placed(a_run: Run, a_trace: Trace):
    offset, cautions = place(a_run, a_trace)
    return offset, [c.code for c in cautions]


def test_a_run_inside_the_trace_is_placed_at_its_epoch():
    assert placed(run(), trace(T0 - 10)) == (T0, [])


@pytest.mark.parametrize("facts", [{"t0_epoch_s": None}, {"t0_quality": "none"}])
def test_a_run_without_a_clock_is_refused(facts):
    assert placed(run(**facts), trace(T0 - 10)) == (None, ["no_clock"])


def test_a_trace_without_a_zone_is_refused():
    assert placed(run(), trace(T0 - 10, clock=False)) == (None, ["zone_unknown"])


def test_a_coarse_start_is_placed_with_its_uncertainty():
    assert placed(run(t0_quality="end_stamp_minus_duration"), trace(T0 - 10)) == (
        T0,
        ["clock_coarse"],
    )


def test_a_trace_that_stops_halfway_is_placed_with_its_share():
    offset, cautions = place(run(), trace(T0 - 10, seconds=41))
    assert offset == T0
    (note,) = cautions
    assert note.code == "trace_partial"
    assert note.values["share"] == pytest.approx(0.5)


def test_a_wrong_zone_is_named_in_hours_and_never_applied():
    offset, cautions = place(run(), trace(T0 - 10 - 8 * 3600))
    assert offset is None
    assert [c.code for c in cautions] == ["no_overlap", "zone_offset"]
    assert cautions[1].values["hours"] == 8.0


def test_a_trace_of_another_day_is_only_no_overlap():
    assert placed(run(), trace(T0 + 5 * 86400)) == (None, ["no_overlap"])


def test_a_trace_apart_by_no_whole_quarter_hour_is_no_zone_mistake():
    assert placed(run(), trace(T0 - 10 - 3600 - 500)) == (None, ["no_overlap"])


def test_a_trace_of_another_gpu_is_refused():
    assert placed(run(gpu_uuids=["GPU-2"]), trace(T0 - 10)) == (None, ["trace_of_other_gpu"])
    assert placed(run(gpu_uuids=["GPU-1", "GPU-9"]), trace(T0 - 10)) == (T0, [])
