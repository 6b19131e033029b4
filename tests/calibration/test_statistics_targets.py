"""Targets 1-22, 40, 41 on the shipped functions, and proof that the suite can turn red."""

from __future__ import annotations

import inspect
import json
import math

import numpy as np
import pytest
from scipy import special
from tests.calibration import checks
from tests.calibration.checks import CHECKS, Check
from tests.calibration.evidence import log_requests, log_runs, rng_of

from gpuverdict import stats
from gpuverdict.ingest import build
from gpuverdict.recognise import read_run
from gpuverdict.stats import multiplicity, ttests

pytestmark = pytest.mark.calibration

BY_NAME = {check.name: check for check in CHECKS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.target}: {check.name}")
def test_target_fast(check: Check) -> None:
    reached = check.reach()
    assert check.holds(reached), f"reached {reached.value:.4f} +- {reached.error:.4f}"
    if check.high > 0:
        assert reached.error <= 0.007


@pytest.mark.nightly
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.target}: {check.name}")
def test_target_nightly(check: Check) -> None:
    reached = check.reach(nightly=True)
    assert check.holds(reached), f"reached {reached.value:.4f} +- {reached.error:.4f}"


def test_all_statistics_targets_have_a_check() -> None:
    assert {check.target for check in CHECKS} >= {*range(1, 23), 40, 41}
    assert len(BY_NAME) == len(CHECKS)


def test_the_public_function_says_what_the_array_core_says() -> None:
    random = rng_of("public against core")
    words = {1: "slower", -1: "faster", 2: "equivalent", 0: "inconclusive"}
    for runs in ((3, 3), (5, 5), (3, 10), (2, 4)):
        a = log_runs(random, 60, runs[0])
        b = log_runs(random, 60, runs[1], shift=0.03)
        test = ttests.welch(a, b)
        codes = checks._words(a, b, 0.03)
        for i in range(60):
            c = stats.compare_arms(np.exp(a[i]), np.exp(b[i]), metric="tpot_s", margin=0.03)
            assert c.p_value == pytest.approx(float(test.p[i]), rel=1e-9)
            assert c.verdict == words[int(codes[i])]


def _finish_with(p_of):
    """Make a test's last step with another p value."""

    def finish(effect, se, df, quantised):
        with np.errstate(divide="ignore", invalid="ignore"):
            p = p_of(np.abs(effect) / se, df)
        return ttests.MeanTest(effect, se, df, p, quantised)

    return finish


def _pooled(random, n, runs, **model):
    """Requests in the place of runs."""
    return log_requests(random, n, runs, sigma=model.get("sigma", 0.01)).reshape(n, -1)


MUTATIONS = {
    "z for t": (
        ttests, "_finish", _finish_with(lambda t, df: 2 * special.ndtr(-t)),
        "size, TPOT p50, sigma 1 %, R = 3",
    ),
    "one-sided": (
        ttests, "_finish", _finish_with(lambda t, df: special.stdtr(df, -t)),
        "size, TPOT p50, sigma 1 %, R = 5",
    ),
    "pooled requests": (checks, "log_runs", _pooled, "size, TPOT p50, sigma 1 %, R = 5"),
    "BH off": (
        multiplicity, "adjust_p", lambda p, method="bh": np.asarray(p),
        "campaigns with a false word, 36 cells, R = 5",
    ),
    "Holm off": (
        multiplicity, "adjust_p", lambda p, method="bh": np.asarray(p),
        "Holm, 12 cells, independent",
    ),
    "df of the larger arm": (
        ttests, "_finish",
        _finish_with(lambda t, df: 2 * special.stdtr(np.maximum(df, 11.0), -t)),
        "size, R = (3, 10), SD 6:1",
    ),
    "margin doubled": (
        ttests, "decide",
        lambda p, ci, ci90, *, margin, may_be_equivalent, alpha=0.05: np.where(
            (ci90[0] >= -2 * math.log1p(margin)) & (ci90[1] <= 2 * math.log1p(margin)), 2, 0
        ),
        "equivalent at the margin 3%, sigma 1%, R = 5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_simplified_method_turns_a_target_red(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, attribute, replacement, watched = MUTATIONS[name]
    monkeypatch.setattr(module, attribute, replacement)
    check = BY_NAME[watched]
    small = Check(check.target, check.name, check.low, check.high, check.run, fast=2000)
    assert not small.holds(small.reach())


def _tpot_of_a_steady_log(folder) -> float:
    """Median TPOT of a log whose every step takes 10 ms: four tokens after a first at 50 ms."""
    n = 12
    log = {
        "date": "20260101-000000", "endpoint_type": "openai", "backend": "openai",
        "model_id": "m", "tokenizer_id": "m", "num_prompts": n, "request_rate": "inf",
        "burstiness": 1.0, "max_concurrency": 1, "duration": 12.0, "completed": n, "failed": 0,
        "total_input_tokens": 100 * n, "total_output_tokens": 5 * n, "input_lens": [100] * n,
        "output_lens": [5] * n, "ttfts": [0.05] * n, "itls": [[0.01] * 4] * n,
        "errors": [""] * n, "generated_texts": ["x"] * n,
    }  # fmt: skip
    path = folder / "vllm.json"
    path.write_text(json.dumps(log))
    (run,) = read_run(path)
    return float(run.requests["tpot_s"].median())


def test_tpot_over_n_turns_red(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _tpot_of_a_steady_log(tmp_path) == pytest.approx(0.010, rel=1e-9)
    right = inspect.getsource(build._recompute)
    assert "decode / (tokens - 1)" in right
    scope = dict(vars(build))
    exec(right.replace("decode / (tokens - 1)", "decode / tokens"), scope)
    monkeypatch.setattr(build, "_recompute", scope["_recompute"])
    assert _tpot_of_a_steady_log(tmp_path) == pytest.approx(0.008, rel=1e-9)
