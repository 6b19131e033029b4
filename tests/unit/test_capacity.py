"""Memory, roofline, SLO load, scaling, cost and decisions, by hand arithmetic."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from gpuverdict.campaign import Campaign, read_campaign
from gpuverdict.capacity import (
    CostInputs,
    Tier,
    arm_curve,
    arm_limits,
    arm_memory,
    arm_rooflines,
    break_even_utilisation,
    capacity_section,
    cards_needed,
    compare_loads,
    curves_section,
    decision_frame,
    decision_table,
    decode_roofline,
    kv_bytes_per_token,
    mixed_winners,
    ownership,
    payback_months,
    plan_memory,
    prefill_roofline,
    price_per_million_tokens,
    scaling_efficiency,
    slo_capacity,
    slo_frontier,
    tokens_per_joule,
)
from gpuverdict.errors import ParameterError
from gpuverdict.units import Estimate
from gpuverdict.verdict.export import plain


def codes(result) -> set[str]:
    return {c.code for c in result.cautions}


# --- memory ---------------------------------------------------------------------------------


def test_kv_bytes_by_hand():
    assert kv_bytes_per_token(layers=32, kv_heads=32, head_dim=128) == 2 * 32 * 32 * 128 * 2
    assert kv_bytes_per_token(layers=32, kv_heads=1, head_dim=128, kv_bits=8) == 2 * 32 * 128
    assert kv_bytes_per_token(layers=61, latent_dim=512, rope_dim=64) == 61 * 576 * 2
    with pytest.raises(ParameterError):
        kv_bytes_per_token(layers=32)


def test_two_small_cards_against_one_large_one():
    model = {"weights_bytes": 26.03e9, "kv_bytes_per_token": 819_200.0, "context_tokens": 2048}
    one = plan_memory(memory_bytes_per_gpu=24 * 2**30, **model)
    assert not one.fits
    assert "weights_exceed_memory" in codes(one)
    assert one.table["concurrency"].tolist() == [0, 0]
    two = plan_memory(memory_bytes_per_gpu=24 * 2**30, gpus=2, **model)
    room = 0.9 * 48 * 2**30 - 26.03e9
    assert two.table["kv_tokens"].iloc[1] == math.floor(room / 819_200)
    assert two.table["concurrency"].iloc[1] == math.floor(room / 819_200) // 2048
    large = plan_memory(memory_bytes_per_gpu=80 * 2**30, **model)
    assert large.table["concurrency"].iloc[1] > two.table["concurrency"].iloc[1] > 0
    # Two copies, one on each card, do not fit although both cards together would hold one.
    assert not plan_memory(memory_bytes_per_gpu=24 * 2**30, gpus=2, tensor_parallel=1, **model).fits


def test_few_kv_heads_are_stored_more_than_once():
    options = {"weights_bytes": 1e9, "memory_bytes_per_gpu": 2**34, "gpus": 8}
    plain_plan = plan_memory(kv_bytes_per_token=1e5, kv_heads=8, **options)
    doubled = plan_memory(kv_bytes_per_token=1e5, kv_heads=4, **options)
    assert doubled.kv_bytes_per_token == 2 * plain_plan.kv_bytes_per_token
    assert "kv_heads_replicated" in codes(doubled)
    with pytest.raises(ParameterError):
        plan_memory(kv_bytes_per_token=1e5, tensor_parallel=3, **options)


# --- roofline -------------------------------------------------------------------------------


def test_decode_roofline_of_the_sample_by_hand():
    step = Estimate(value=6.02e-3, low=6.0e-3, high=6.04e-3, confidence=0.95, n=5)
    line = decode_roofline(
        step, read_bytes_per_step=13214687232, active_parameters=6738415616,
        kv_bytes_per_token=524288, context_tokens=576,
        bandwidth_bytes_per_s=4.8e12, compute_flops_per_s=989e12,
    )  # fmt: skip
    moved = 13214687232 + 576 * 524288
    assert line.mbu_ratio.value == pytest.approx(moved / 6.02e-3 / 4.8e12)
    assert line.mbu_ratio.low == pytest.approx(moved / 6.04e-3 / 4.8e12)
    assert line.bound_s == pytest.approx(moved / 4.8e12)
    assert line.mfu_ratio.value == pytest.approx(2 * 6738415616 / 6.02e-3 / 989e12)
    assert (line.binds, line.impossible) == ("memory", False)


def test_a_point_above_the_roof_is_impossible_unless_fewer_weights_are_active():
    options = {"read_bytes_per_step": 64e9, "active_parameters": 32e9,
               "bandwidth_bytes_per_s": 2e12}  # fmt: skip
    assert decode_roofline(20e-3, **options).impossible
    moe = decode_roofline(20e-3, **(options | {"read_bytes_per_step": 8e9}), experts=True)
    assert not moe.impossible
    assert "assume_active_experts" in {a.code for a in moe.assumptions}
    open_limit = decode_roofline(20e-3, read_bytes_per_step=64e9, active_parameters=32e9)
    assert open_limit.bound_s is None
    assert codes(open_limit) == {"limit_unknown"}


def test_prefill_roofline_counts_causal_attention():
    line = prefill_roofline(
        0.32, prompt_tokens=2048, active_parameters=6.74e9, read_bytes=13.48e9, layers=32,
        width=4096, bandwidth_bytes_per_s=3.35e12, compute_flops_per_s=989e12,
    )  # fmt: skip
    flops = 2 * 6.74e9 * 2048 + 2 * 32 * 2048**2 * 4096
    assert line.achieved_flops_per_s / 1e12 == pytest.approx(90, abs=0.5)
    assert line.mfu_ratio.value == pytest.approx(flops / 0.32 / 989e12)
    assert line.binds == "compute"
    with pytest.raises(ParameterError):
        prefill_roofline(0.0, prompt_tokens=1, active_parameters=1.0, read_bytes=1.0)


# --- scaling --------------------------------------------------------------------------------


def test_scaling_of_a_time_and_of_a_rate_agree():
    one, two = [10.0, 10.1, 9.9, 10.0], [6.2, 6.3, 6.25, 6.2]
    times = scaling_efficiency(one, two, metric="tpot_s", links="NV12")
    rates = scaling_efficiency(
        [1 / x for x in one], [1 / x for x in two], metric="output_tokens_per_s", links="NV12"
    )
    expected = scipy_stats.gmean(one) / scipy_stats.gmean(two) / 2
    assert times.efficiency_ratio.value == pytest.approx(expected)
    assert rates.efficiency_ratio.value == pytest.approx(expected)
    assert rates.efficiency_ratio.low == pytest.approx(times.efficiency_ratio.low)
    assert times.communication_ratio.value == pytest.approx(1 - expected)
    assert times.communication_ratio.low == pytest.approx(1 - times.efficiency_ratio.high)
    assert times.speedup.value == pytest.approx(2 * expected)
    assert "topology_unknown" in codes(scaling_efficiency(one, two, metric="tpot_s"))
    with pytest.raises(ParameterError):
        scaling_efficiency(one, two, metric="tpot_s", gpus_one=2, gpus_many=2)


def test_scaling_beyond_the_card_count_is_said():
    better = scaling_efficiency([10.0, 10.1, 9.9], [3.0, 3.1, 3.05], metric="tpot_s", links="NV12")
    assert better.communication_ratio.value is None
    assert "better_than_perfect_scaling" in codes(better)


# --- cost -----------------------------------------------------------------------------------


def test_price_carries_the_uncertainty_of_the_throughput():
    rate = Estimate(value=1000.0, low=800.0, high=1250.0, confidence=0.95, n=5)
    price = price_per_million_tokens(rate, 7.2)
    assert price.value == pytest.approx(7.2 / 3600 / 1000 * 1e6)
    assert (price.low, price.high) == pytest.approx((1.6, 2.5))
    assert price_per_million_tokens(rate, 7.2, utilisation_ratio=0.5).value == pytest.approx(4.0)
    assert price_per_million_tokens(rate, None).value is None
    assert price_per_million_tokens(Estimate(value=None), 1.0).value is None
    assert tokens_per_joule(Estimate(value=0.5, low=0.4, high=0.8)).high == pytest.approx(2.5)


def test_ownership_adds_its_parts():
    inputs = CostInputs(
        purchase=100_000, host=20_000, years=3, power_w=1500, electricity_per_kwh=0.1, pue=1.5,
        utilisation_ratio=0.5, operation_per_year=1000, failure_ratio_per_year=0.05,
    )  # fmt: skip
    owned = ownership(inputs, Estimate(value=1000.0))
    power = 1.5 * 1.5 * 8760 * 3 * 0.5 * 0.1
    assert owned.parts["power"] == pytest.approx(power)
    assert owned.total == pytest.approx(100_000 + 20_000 + power + 3000 + 15_000)
    hour = owned.total / (8760 * 3)
    assert owned.per_million_output_tokens.value == pytest.approx(hour / 3600 / 1000 * 1e6 / 0.5)
    assert break_even_utilisation(owned, 10.0) == pytest.approx(hour / 10)
    assert break_even_utilisation(owned, None) is None
    assert ownership(CostInputs(price_per_hour=2.0)) is None
    bare = ownership(CostInputs(purchase=1000, years=1))
    assert "cost_inputs_missing" in codes(bare)
    assert payback_months(2400, 100) == 24
    assert cards_needed(100, 32, 2) == (4 + 1) * 2


# --- a campaign of one's own ----------------------------------------------------------------


def campaign(**changes) -> Campaign:
    arm = {"gpu": "H200 SXM", "price_per_hour": 3.6}
    facts = {
        "campaign": "t",
        "model": {"name": "m", "parameters": 6.74e9, "weight_bits": 16, "layers": 32,
                  "kv_heads": 32, "head_dim": 128},
        "workload": {"input_tokens": 512, "output_tokens": 128, "load": "closed"},
        "slo": {"ttft_s": {"p95": 0.5}, "tpot_s": {"p50": 0.03}},
        "arms": {"a": arm, "b": arm, "never": arm},
    }  # fmt: skip
    return Campaign.model_validate(facts | changes)


def summary(arms: dict[str, tuple[float, float]], levels=(1, 4, 16, 64), runs=4) -> pd.DataFrame:
    """A summary of lines alpha + beta B with noise; TTFT p95 is 8 ms a stream."""
    random = np.random.default_rng(3)
    rows = []
    for arm, (alpha, beta) in arms.items():
        for run in range(runs):
            effect = math.exp(random.normal(0, 0.01))
            for level in levels:
                tpot = (alpha + beta * level) * effect * math.exp(random.normal(0, 0.005))
                values = {
                    ("tpot_s", "p50"): tpot, ("ttft_s", "p95"): 0.008 * level * effect,
                    ("ttft_s", "p50"): 0.016 * effect,
                    ("output_tokens_per_s", "value"): level / tpot,
                    ("concurrency", "value"): float(level),
                    ("decode_batch", "value"): 0.98 * level,
                    ("goodput_requests_per_s", "value"): level / tpot / 128,
                    ("energy_per_output_token_j", "value"): 0.4 * effect,
                    ("power_w", "value"): 600.0, ("memory_used_mib", "value"): 100_000.0,
                }  # fmt: skip
                rows += [
                    {"run_id": f"{arm}-{run}-{level}", "arm": arm, "workload": "main",
                     "level": json.dumps({"concurrency": level}), "repeat_no": run + 1,
                     "metric": m, "statistic": s, "value": v, "unit": "", "n": 1000,
                     "window": "steady"}
                    for (m, s), v in values.items()
                ]  # fmt: skip
    return pd.DataFrame(rows)


FRAME = summary({"a": (6e-3, 0.3e-3), "b": (4e-3, 0.6e-3)})


def test_slo_load_is_found_between_levels():
    (a,) = slo_capacity(FRAME, {"tpot_s": {"p50": 0.02}}, "a")
    assert (a.highest_met, a.lowest_missed) == (16, 64)
    assert a.limiting == "tpot_s p50"
    # Between 16 (10.8 ms) and 64 (25.2 ms) on log axes.
    low, high = 6e-3 + 0.3e-3 * 16, 6e-3 + 0.3e-3 * 64
    at = 16 * 4 ** (math.log(0.02 / low) / math.log(high / low))
    assert a.load.value == pytest.approx(at, rel=0.03)
    assert a.load.low < at < a.load.high
    assert a.goodput_requests_per_s == pytest.approx(16 / low / 128, rel=0.03)
    (b,) = slo_capacity(FRAME, {"tpot_s": {"p50": 0.02}}, "b", infeasible=[64])
    assert (b.highest_met, b.lowest_missed) == (16, 64)


def test_the_limit_itself_still_keeps_the_slo_and_a_percent_above_does_not():
    rows = FRAME.query("arm == 'a' and metric == 'tpot_s' and statistic == 'p50'")
    top = rows[rows.level.map(json.loads).map(lambda level: level == {"concurrency": 64})].value
    (kept,) = slo_capacity(FRAME, {"tpot_s": {"p50": float(top.max())}}, "a")
    assert kept.highest_met == 64
    assert "slo_open_ended" in codes(kept)
    (missed,) = slo_capacity(FRAME, {"tpot_s": {"p50": 0.99 * float(top.min())}}, "a")
    assert (missed.highest_met, missed.lowest_missed) == (16, 64)
    assert 55 < missed.load.value < 64
    assert "slo_open_ended" not in codes(missed.load)


def test_loads_of_two_arms_are_compared_over_sweeps():
    slo = {"tpot_s": {"p50": 0.02}}
    (a,), (b,) = slo_capacity(FRAME, slo, "a"), slo_capacity(FRAME, slo, "b")
    ratio = compare_loads(a, b)
    logs = np.log(a.sweep_loads), np.log(b.sweep_loads)
    theirs = scipy_stats.ttest_ind(logs[1], logs[0], equal_var=False).confidence_interval()
    assert (ratio.low, ratio.high) == pytest.approx(tuple(np.exp(theirs)), rel=1e-9)
    (always,) = slo_capacity(FRAME, {"tpot_s": {"p50": 1.0}}, "a")
    assert compare_loads(always, b).value is None
    assert codes(compare_loads(always, b)) == {"slo_open_ended"}
    (never,) = slo_capacity(FRAME, {"tpot_s": {"p50": 1e-4}}, "a")
    assert codes(compare_loads(never, b)) == {"slo_never_met"}


def test_an_slo_that_is_never_or_always_met():
    (never,) = slo_capacity(FRAME, {"tpot_s": {"p50": 0.001}}, "a")
    assert never.highest_met is None
    assert "slo_never_met" in codes(never)
    assert never.load.value is None
    (always,) = slo_capacity(FRAME, {"tpot_s": {"p50": 1.0}}, "a")
    assert always.highest_met == 64
    assert "slo_open_ended" in codes(always)
    assert always.load.high is None
    (unknown,) = slo_capacity(FRAME, {"tpot_s": {"p50": 1.0}, "ttft_s": {"p95": 9.0}},
                              "a")  # fmt: skip
    assert unknown.highest_met == 64


def test_a_level_counts_only_if_every_run_holds():
    frame = FRAME.copy()
    hit = (frame["run_id"] == "a-2-4") & (frame["metric"] == "tpot_s")
    frame.loc[hit, "value"] = 0.5
    (a,) = slo_capacity(frame, {"tpot_s": {"p50": 0.02}}, "a")
    assert (a.highest_met, a.lowest_missed) == (1, 4)
    frame.loc[hit, "value"] = None
    (gap,) = slo_capacity(frame, {"tpot_s": {"p50": 0.02}}, "a")
    assert gap.highest_met == 1
    assert "slo_part_unknown" in codes(gap)


def test_curve_of_an_arm_against_both_drivers():
    fit = arm_curve(FRAME, campaign(), "a")
    assert fit.n_sweeps == 4
    assert fit.params["beta_s"].value == pytest.approx(0.3e-3, rel=0.02)
    batch = arm_curve(FRAME, campaign(), "a", against="decode_batch")
    assert batch.params["beta_s"].value == pytest.approx(0.3e-3 / 0.98, rel=0.02)
    rate = arm_curve(FRAME, campaign(), "a", metric="output_tokens_per_s", statistic="value")
    assert rate.params["beta_s"].value == pytest.approx(0.3e-3, rel=0.02)
    assert arm_curve(FRAME, campaign(), "never") is None


def test_rooflines_of_an_arm_use_probes_before_the_catalogue():
    plain_lines = dict_of(arm_rooflines(FRAME, campaign(), "a"))
    kv = 2 * 32 * 32 * 128 * 2
    moved = 13.48e9 + 0.98 * 576 * kv
    first = plain_lines["decode", 1]
    assert first.bytes_moved == pytest.approx(moved)
    assert first.mbu_ratio.value == pytest.approx(moved / first.measured_s / 4.8e12, rel=0.01)
    assert "step_is_user_tpot" in {a.code for a in first.assumptions}
    arm = {"gpu": "H200 SXM", "probes": {"copy_bandwidth_gb_per_s": 4000}}
    probed = campaign(arms={"a": arm})
    assert arm_limits(probed.arms["a"]).sources["bandwidth"] == "probe"
    line = dict_of(arm_rooflines(FRAME, probed, "a"))["decode", 1]
    assert line.mbu_ratio.value == pytest.approx(moved / first.measured_s / 4e12, rel=0.01)
    assert ("prefill", 1) in plain_lines


def dict_of(lines):
    return {(line.phase, level["concurrency"]): line for level, line in lines}


def test_memory_needs_no_run():
    plan = arm_memory(campaign(), "never", device_memory_mib=143771)
    assert plan.fits
    assert plan.memory_bytes == 143771 * 2**20
    assert "computed_not_measured" in codes(plan)


def test_each_arm_of_the_sample_has_its_own_shape():
    # A LLaMA layer of width 4096: four projections, three of the MLP (11008 wide), two norms.
    layer = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
    sample = read_campaign("data/h200/campaign.yaml")
    shallow, deep = (arm_memory(sample, arm) for arm in ("layers32", "layers34"))
    assert deep.weights_bytes - shallow.weights_bytes == 2 * layer * 2
    assert deep.kv_bytes_per_token / shallow.kv_bytes_per_token == pytest.approx(34 / 32)
    models = [sample.model_of(arm) for arm in ("layers32", "layers34")]
    assert models[1].parameters - models[0].parameters == 2 * layer
    assert models[1].read_bytes_per_step - models[0].read_bytes_per_step == 2 * layer * 2
    assert sample.model_of("card-a") is sample.model_of("card-b-eager")


def test_a_factor_that_names_another_shape_than_the_model_is_said():
    arms = {"a": {"gpu": "H200 SXM", "factors": {"layers": 34}},
            "b": {"gpu": "H200 SXM", "factors": {"layers": 32}}}  # fmt: skip
    held = campaign(arms=arms)
    assert "model_shape_apart" in codes(arm_memory(held, "a"))
    assert "model_shape_apart" not in codes(arm_memory(held, "b"))
    line = dict_of(arm_rooflines(FRAME, held, "a"))["decode", 1]
    assert "model_shape_apart" in codes(line)


def test_decisions_say_go_no_go_and_not_measured():
    rows = decision_table(
        FRAME,
        campaign(),
        tiers=[
            Tier(name="interactive", slo={"tpot_s": {"p50": 0.0065}}, load=50),
            Tier(name="batch", slo={"tpot_s": {"p50": 0.02}}),
            Tier(name="hopeless", slo={"tpot_s": {"p50": 0.001}}),
        ],
        device_memory_mib={"a": 143771.0, "b": 105_000.0},
    )
    found = {(d.tier, d.arm): d for d in rows}
    assert found["batch", "a"].go == "go"
    assert found["batch", "b"].go == "no-go"
    assert found["batch", "b"].reasons[0].code == "memory_full"
    assert found["hopeless", "a"].go == "no-go"
    assert found["batch", "never"].go == "not measured"
    first = found["interactive", "a"]
    assert first.admission_limit == 1
    assert first.cards_needed == 51
    price = first.price_per_million_output_tokens
    assert price.value == pytest.approx(3.6 / 3600 / first.output_tokens_per_s.value * 1e6)
    assert first.tokens_per_joule.value == pytest.approx(2.5, rel=0.02)
    frame = decision_frame(rows)
    assert len(frame) == 9
    assert frame["why"].str.len().min() > 0


def test_no_universal_winner_is_said():
    tiers = [
        Tier(name="fast", slo={"tpot_s": {"p50": 0.0065}}),
        Tier(name="bulk", slo={"tpot_s": {"p50": 0.03}}),
    ]
    table = summary({"a": (7e-3, 0.2e-3), "b": (3e-3, 0.7e-3)})
    assert mixed_winners(decision_table(table, campaign(), tiers=tiers)).code == (
        "no_universal_winner"
    )
    assert mixed_winners(decision_table(table, campaign(), tiers=tiers[:1])) is None


def test_frontier_has_a_point_a_run():
    points = slo_frontier(FRAME, {"tpot_s": {"p50": 0.02}}, {"a": 1, "b": 2})
    assert len(points) == 32
    one = points[(points["arm"] == "a") & (points["at"] == 1)]
    assert one["tokens_per_s_per_user"].mean() == pytest.approx(1 / 6.3e-3, rel=0.03)
    assert one["meets_slo"].all()
    half = points[(points["arm"] == "b") & (points["at"] == 1)]["tokens_per_s_per_gpu"].mean()
    assert half == pytest.approx(1 / 4.6e-3 / 2, rel=0.03)


def test_sections_are_strict_json_and_only_one_arm_is_said():
    facts = campaign(infeasible=[{"arm": "b", "level": 64}])
    frame = FRAME[~((FRAME["arm"] == "b") & FRAME["level"].str.contains("64"))]
    curves = plain(curves_section(frame, facts, "a", "b"))
    capacity = plain(capacity_section(frame, facts, "a", "b"))
    json.dumps([curves, capacity], allow_nan=False)
    assert curves["main"]["concurrency"]["ratio"]["at"][-1] == pytest.approx(16)
    assert capacity["main"]["statement"]["code"] == "only_one_arm_runs"
    assert "Only a runs 64" in capacity["main"]["statement"]["message"]
    # 128 was run by nobody: that b cannot run it says nothing of a.
    neither = campaign(infeasible=[{"arm": "b", "level": 128}])
    assert capacity_section(FRAME, neither, "a", "b")["main"]["statement"] is None
    shuffled = frame.sample(frac=1, random_state=1)
    assert plain(curves_section(shuffled, facts, "a", "b")) == curves
    assert plain(capacity_section(shuffled, facts, "a", "b")) == capacity


@pytest.mark.parametrize("k", [0.5, 3.0])
def test_scaling_all_times_scales_curves_and_changes_no_choice(k):
    frame = FRAME.copy()
    times = frame["metric"].isin(["tpot_s", "ttft_s"])
    frame.loc[times, "value"] = frame.loc[times, "value"] * k
    one, other = arm_curve(FRAME, campaign(), "a"), arm_curve(frame, campaign(), "a")
    assert other.model == one.model
    assert other.params["alpha_s"].value == pytest.approx(k * one.params["alpha_s"].value)
    slo = {"tpot_s": {"p50": 0.02}}
    scaled = {"tpot_s": {"p50": 0.02 * k}}
    (a,), (b,) = slo_capacity(FRAME, slo, "a"), slo_capacity(frame, scaled, "a")
    assert a.load.value == pytest.approx(b.load.value)
