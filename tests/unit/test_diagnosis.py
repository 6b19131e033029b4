"""Every rule fires on its synthetic case, and not on a near miss."""

from __future__ import annotations

import json
import string
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.runs import make_run

from gpuverdict.case import open_case
from gpuverdict.diagnosis import Situation, diagnose, observe
from gpuverdict.diagnosis.situation import _late_spikes
from gpuverdict.steady import Window
from gpuverdict.text import SENTENCES, diagnosis

H200 = Path(__file__).resolve().parents[2] / "data" / "h200" / "campaign.yaml"
C16 = {"concurrency": 16}

CARD = Situation(arm="a", level={"concurrency": 1}, gpu="X", model="m", precision="bf16",
                 memory_gb=80.0, bandwidth_bytes_per_s=2e12, step_bytes=14e9)  # fmt: skip
TAIL = Situation(arm="a", level=C16, n_requests=200, ttft_p50_s=0.1, ttft_p99_s=0.5,
                 tpot_p50_s=0.010, tpot_p99_s=0.012, scheduling_excess_s=0.05)  # fmt: skip
FULL = Situation(arm="a", level=C16, kv_cache_use_ratio=0.97, preemptions=3, power_w=200.0,
                 power_limit_w=400.0)  # fmt: skip
WAITS = Situation(arm="a", level=C16, gpu_util_ratio=0.3, observed_streams=16.0,
                  scheduling_excess_s=0.2, unloaded_ttft_s=0.1)  # fmt: skip
HOT = Situation(arm="a", level=C16, slowdown_ratio=0.08, throttled_ratio=0.2, throttle=True)

# rule -> (situation that triggers it, changes that just do not)
ALONE = {
    "binds_bandwidth": (replace(CARD, tpot_p50_s=0.0100), [
        {"tpot_p50_s": 0.0141}, {"tpot_p50_s": 0.0068}, {"tpot_p50_s": None},
        {"gpu_util_ratio": 0.7},
        {"step_bytes": None}, {"level": C16}]),
    # 14 GB at 2 TB/s take 7 ms: 6.8 ms is faster than the card can read.
    "impossible_step": (replace(CARD, tpot_p50_s=0.0068), [
        {"tpot_p50_s": 0.0070}, {"step_bytes": None}, {"bandwidth_bytes_per_s": None}]),
    "binds_launch": (replace(CARD, tpot_p50_s=0.0240), [
        {"tpot_p50_s": 0.0233}, {"level": C16, "decode_step_s": 0.024},
        {"bandwidth_bytes_per_s": None}]),
    "binds_queue": (TAIL, [
        {"ttft_p99_s": 0.39}, {"tpot_p99_s": 0.016}, {"n_requests": 99}, {"tpot_p50_s": None},
        {"scheduling_excess_s": 0.019}]),
    "binds_host": (replace(TAIL, host_work_s=0.021), [{"host_work_s": 0.019}]),
    "binds_network": (replace(TAIL, rtt_s=0.021), [{"rtt_s": 0.019}]),
    "binds_mixed_lengths": (replace(TAIL, input_spread=4.0), [{"input_spread": 3.9}]),
    "binds_tail_unknown": (replace(TAIL, scheduling_excess_s=None), [{"ttft_p99_s": 0.39}]),
    "binds_kv_cache": (FULL, [
        {"kv_cache_use_ratio": 0.89, "preemptions": 0}, {"power_w": 250.0},
        {"power_limit_w": None},
        {"kv_cache_use_ratio": None, "memory_used_mib": 80_000.0, "memory_total_mib": 81_000.0,
         "memory_moves": False}]),
    "binds_feeding": (WAITS, [
        {"gpu_util_ratio": 0.5}, {"gpu_util_ratio": None}, {"scheduling_excess_s": 0.09},
        {"observed_streams": 1.0}, {"kv_cache_use_ratio": 0.95}]),
    "binds_heat_or_cap": (HOT, [
        {"slowdown_ratio": None}, {"throttled_ratio": 0.04, "throttle": False}]),
    "binds_late_spikes": (Situation(arm="a", level=C16, late_spike_factor=3.0),
                          [{"late_spike_factor": 2.9}, {"late_spike_factor": None}]),
    "binds_client_late": (
        Situation(arm="a", level={"rate_requests_per_s": 4.0}, ttft_p50_s=0.2,
                  client_late_p99_s=0.021),
        [{"client_late_p99_s": 0.020}, {"ttft_p50_s": 0.3}, {"client_late_p99_s": None}]),
    "binds_host_cpu": (
        Situation(arm="a", level=C16, gpu_util_ratio=0.6, host_cpu_busy_ratio=0.9),
        [{"host_cpu_busy_ratio": 0.89}, {"gpu_util_ratio": 0.7}, {"gpu_util_ratio": None},
         {"host_cpu_busy_ratio": None}]),
    "binds_host_core": (
        Situation(arm="a", level=C16, gpu_util_ratio=0.6, host_cpu_busy_ratio=0.3,
                  host_process_cpu_ratio=0.96, host_process_name="python3"),
        [{"host_process_cpu_ratio": 0.94}, {"host_process_cpu_ratio": 1.2},
         {"gpu_util_ratio": 0.71}, {"gpu_util_ratio": None}, {"host_cpu_busy_ratio": 0.95}]),
    "binds_host_io": (Situation(arm="a", level=C16, host_io_wait_ratio=0.1),
                      [{"host_io_wait_ratio": 0.09}, {"host_io_wait_ratio": None}]),
    "binds_host_swap": (Situation(arm="a", level=C16, host_swap_mib_s=1.0),
                        [{"host_swap_mib_s": 0.9}, {"host_swap_mib_s": None}]),
    "binds_host_network": (
        Situation(arm="a", level=C16, host_network_use_ratio=0.9, host_network_mb_s=1125.0),
        [{"host_network_use_ratio": 0.89}, {"host_network_use_ratio": None}]),
}  # fmt: skip

ONE_CARD = replace(CARD, level=C16, output_tokens_per_s=1000.0, decode_step_s=0.010,
                   unloaded_ttft_s=0.10)  # fmt: skip
TWO_CARDS = replace(ONE_CARD, arm="b", gpus=2, output_tokens_per_s=1150.0, memory_gb=160.0,
                    bandwidth_bytes_per_s=4e12, decode_step_s=0.0095,
                    interconnect="PHB")  # fmt: skip
BIG = replace(ONE_CARD, arm="b", gpu="Y", bandwidth_bytes_per_s=2.4e12, decode_step_s=0.0106)
QUICK = replace(ONE_CARD, arm="b", gpu="Y", unloaded_ttft_s=0.089, decode_step_s=0.0111)
SMALL = replace(ONE_CARD, arm="b", gpu="Z", memory_gb=24.0, scheduler={"max_num_seqs": 256},
                preemptions=5.0)  # fmt: skip
LARGE = replace(ONE_CARD, scheduler={"max_num_seqs": 256, "tokens": 8192})

# rule -> (first arm, second arm, changes of the second that just do not)
PAIRS = {
    "binds_decode_not_prefill": (ONE_CARD, QUICK, [
        {"unloaded_ttft_s": 0.091}, {"decode_step_s": 0.0109}, {"unloaded_ttft_s": None},
        {"level": {"concurrency": 8}}]),
    "binds_interconnect": (ONE_CARD, TWO_CARDS, [
        {"output_tokens_per_s": 1210.0}, {"gpus": 1}, {"gpu": "Y"}, {"precision": "fp8"}]),
    "binds_kernel_path": (ONE_CARD, BIG, [
        {"decode_step_s": 0.0104}, {"bandwidth_bytes_per_s": 2.3e12}, {"model": "other"},
        {"memory_gb": 48.0}]),
    "binds_copied_settings": (LARGE, SMALL, [
        {"preemptions": 0.0}, {"scheduler": {"max_num_seqs": 64}}, {"memory_gb": 64.0},
        {"scheduler": {}}]),
}  # fmt: skip


def _codes(*situations: Situation, pair: bool = False) -> set[str]:
    arms = ("a", "b") if pair else (None, None)
    return {finding.code for finding in diagnose(situations, *arms)}


@pytest.mark.parametrize("code", list(ALONE))
def test_a_rule_of_one_arm(code):
    trigger, misses = ALONE[code]
    assert code in _codes(trigger)
    for change in misses:
        assert code not in _codes(replace(trigger, **change)), change


@pytest.mark.parametrize("code", list(PAIRS))
def test_a_rule_of_two_arms_either_way_round(code):
    first, second, misses = PAIRS[code]
    assert code in _codes(first, second, pair=True)
    assert code not in _codes(first, second)
    swapped = diagnose((first, second), "b", "a")
    assert code in {finding.code for finding in swapped}
    assert {f.arm for f in swapped if f.code == code} == {"b"}
    for change in misses:
        assert code not in _codes(first, replace(second, **change), pair=True), change


def test_a_saturated_client_shows_over_levels():
    low = Situation(arm="a", level={"concurrency": 32}, observed_streams=24.7,
                    output_tokens_per_s=1000.0)  # fmt: skip
    high = Situation(arm="a", level={"concurrency": 128}, observed_streams=29.0,
                     output_tokens_per_s=1050.0)  # fmt: skip
    assert "binds_client" in _codes(high, low)
    for change in (
        {"observed_streams": 30.0},
        {"output_tokens_per_s": 1100.0},
        {"level": {"concurrency": 40}},
        {"observed_streams": None},
    ):
        assert "binds_client" not in _codes(replace(high, **change), low), change


def test_the_servers_own_queue_counts_before_the_clients_estimate():
    told = replace(WAITS, server_queue_s=0.05, server_prefill_s=0.04)
    assert "binds_feeding" in _codes(replace(told, scheduling_excess_s=0.01))
    assert "binds_feeding" not in _codes(replace(told, server_queue_s=0.03))


def test_a_core_without_a_name_binds_as_well():
    (found,) = diagnose([Situation(arm="a", level=C16, gpu_util_ratio=0.6,
                                   host_core_busy_ratio=0.95)])  # fmt: skip
    assert found.code == "binds_host_core"
    assert "busy while" in found.message


def test_memory_that_moves_counts_where_the_cache_is_not_reported():
    moving = replace(FULL, kv_cache_use_ratio=None, preemptions=None, memory_used_mib=75_000.0,
                     memory_total_mib=81_000.0, memory_moves=True)  # fmt: skip
    assert "binds_kv_cache" in _codes(moving)
    assert "binds_kv_cache" not in _codes(replace(moving, memory_used_mib=72_000.0))


def test_nothing_known_nothing_said():
    assert diagnose([Situation(arm="a"), Situation(arm="b")], "a", "b") == ()
    assert diagnose([]) == ()


def test_one_finding_a_rule_and_arm_at_its_clearest_level():
    found = diagnose([replace(HOT, slowdown_ratio=s, level={"concurrency": c})
                      for c, s in ((1, 0.03), (16, 0.2), (64, 0.1))])  # fmt: skip
    assert [(f.code, f.level["concurrency"]) for f in found] == [("binds_heat_or_cap", 16)]
    assert found[0].evidence["slower"] == 0.2
    assert "20.0 %" in found[0].message


def test_every_finding_speaks_both_languages_with_its_evidence():
    fired = [diagnose([trigger])[-1] for trigger, _ in ALONE.values()]
    fired += [f for a, b, _ in PAIRS.values() for f in diagnose([a, b], "a", "b")]
    for finding in fired:
        english, chinese = finding.render("en"), finding.render("zh")
        assert english == (finding.message, finding.confirm, finding.remedy, finding.check)
        assert all(english)
        assert all(any("\u4e00" <= ch <= "\u9fff" for ch in text) for text in chinese)
        assert finding.arm in english[0]
        plain = json.loads(json.dumps(finding.as_dict("zh"), allow_nan=False))
        assert (plain["code"], plain["message"]) == (finding.code, chinese[0])


def test_the_table_is_complete():
    rules = {code for code in diagnosis.SENTENCES if not code.endswith("_proof")}
    assert rules == set(ALONE) | set(PAIRS) | {"binds_client"}
    for code in rules:
        assert f"{code}_proof" in SENTENCES
        names = [
            {
                name
                for text in SENTENCES[code][lang]
                for _, name, _, _ in string.Formatter().parse(text)
            }
            for lang in ("en", "zh")
        ]
        assert names[0] == names[1]


def test_spikes_that_come_after_half_an_hour():
    class _Stored:
        def __init__(self, run):
            self.run = run

        def load(self):
            return self.run

    class _Placed:
        def __init__(self, run):
            self.stored = _Stored(run)

    def factor(late_every: int, length: int = 300_000) -> float | None:
        gaps = [0.01] * length
        for k in range(200_000, length, late_every):
            gaps[k] = 0.3
        for k in range(0, 180_000, 10_000):
            gaps[k] = 0.3
        run = make_run({"start_s": [0.0], "first_token_s": [0.1], "last_token_s": [0.1 + sum(gaps)],
                        "output_tokens": [length + 1]}, gaps={0: gaps})  # fmt: skip
        window = Window(start_s=0.0, end_s=0.1 + sum(gaps), kind="steady", n_sent=1)
        return _late_spikes(_Placed(run), window)

    assert factor(1000) > 3
    assert factor(9000) < 3
    assert factor(1000, length=210_000) is None


def test_the_eager_build_of_the_sample_is_bound_by_launches():
    case = open_case(H200, "eager")
    found = diagnose(
        observe(case.measured, case.summary, case.health, ["card-b", "card-b-eager"]),
        "card-b", "card-b-eager",
    )  # fmt: skip
    launch = [f for f in found if f.code == "binds_launch"]
    assert [f.arm for f in launch] == ["card-b-eager"]
    # 13.2 GB of weights and half a gigabyte of KV over 4.8 TB/s, against a step of 13.85 ms.
    assert launch[0].evidence["share"] == pytest.approx(13.5e9 / 4.8e12 / 13.85e-3, rel=0.05)
