"""The plan of a campaign, against hand arithmetic and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from gpuverdict.errors import ParameterError
from gpuverdict.plan import affordable_order, plan_campaign, pooled_sd, requests_per_run, run_order


def test_pooled_sd_weighs_arms_by_their_freedom():
    a, b = [1.0, 1.1, 1.2], [3.0, 3.1]
    va, vb = np.var(np.log(a), ddof=1), np.var(np.log(b), ddof=1)
    sd, df = pooled_sd({"a": a, "b": b, "c": [7.0]})
    assert (sd, df) == (pytest.approx(math.sqrt((2 * va + vb) / 3)), 3)
    with pytest.raises(ParameterError):
        pooled_sd({"a": [1.0]})
    with pytest.raises(ParameterError):
        pooled_sd({"a": [1.0, 0.0]})


def test_the_plan_reaches_its_power_and_not_with_one_run_less():
    pilot = {"a": [1.0, 1.02, 0.99, 1.01, 0.98], "b": [1.1, 1.11, 1.08, 1.12, 1.1]}
    plan = plan_campaign(["a", "b"], effect=0.03, pilot=pilot)
    sd, df = pooled_sd(pilot)
    upper = sd * math.sqrt(df / scipy_stats.chi2.ppf(0.2, df))

    def reached(runs):
        nu = 2 * runs - 2
        nc = math.log(1.03) / (upper * math.sqrt(2 / runs))
        return scipy_stats.nct.sf(scipy_stats.t.ppf(0.975, nu), nu, nc)

    assert plan.runs_range[0] < plan.runs_per_arm == plan.runs_range[1]
    assert reached(plan.runs_per_arm) >= 0.79
    assert reached(plan.runs_per_arm - 1) < 0.80
    assert plan.detectable_ratio <= 0.03


def test_without_a_pilot_five_runs_and_a_caution():
    plan = plan_campaign(["a", "b"], effect=0.03)
    assert plan.runs_per_arm == 5
    assert plan.runs_range is None
    assert plan.cautions[0].code == "plan_without_pilot"
    flat = plan_campaign(["a", "b"], effect=0.03, pilot={"a": [1.0, 1.0, 1.0]})
    assert flat.cautions[0].code == "plan_quantised"


def test_many_runs_are_named():
    plan = plan_campaign(["a", "b"], effect=0.01, sd_log=0.03)
    assert plan.runs_per_arm == 144
    assert "plan_many_runs" in {c.code for c in plan.cautions}


def test_abba_balances_a_linear_drift():
    for seed in range(6):
        order = run_order(["a", "b"], 4, seed=seed)
        positions = order.groupby("arm")["order_no"].mean()
        assert positions["a"] == positions["b"]
        assert order.groupby("repeat_no")["workload_seed"].nunique().max() == 1
    assert run_order(["a", "b"], 4, seed=3).equals(run_order(["a", "b"], 4, seed=3))
    assert len({run_order(["a", "b"], 1, seed=s)["arm"][0] for s in range(10)}) == 2


def test_requests_follow_the_outermost_tail():
    assert requests_per_run(["p50", "p95"]) == 200
    assert requests_per_run(["p99"]) == 1000
    assert requests_per_run(["mean"]) == 100


@pytest.mark.parametrize("effect", [0.0, -0.1, math.nan, 3.0])
def test_an_impossible_effect_is_refused(effect):
    with pytest.raises(ParameterError):
        plan_campaign(["a", "b"], effect=effect, sd_log=0.01)


def test_arms_must_differ():
    with pytest.raises(ParameterError):
        plan_campaign(["a", "a"], effect=0.03)
    with pytest.raises(ParameterError):
        plan_campaign(["a", "b"], effect=0.03, sd_log=0.01, pilot={"a": [1.0, 1.1]})


def test_the_printed_order_stays_affordable():
    few = plan_campaign(["a", "b"], effect=0.05, sd_log=0.02)
    many = plan_campaign(["a", "b"], effect=0.01, sd_log=0.03)
    assert affordable_order([few, many])["repeat_no"].max() == few.runs_per_arm == 4
    assert affordable_order([many])["repeat_no"].max() == 5
    assert affordable_order([many]).groupby("arm").size().tolist() == [5, 5]
    with pytest.raises(ParameterError):
        affordable_order([])
