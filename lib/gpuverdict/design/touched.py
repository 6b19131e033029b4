"""Which metrics a factor touches, and the thresholds from which on it counts."""

from __future__ import annotations

__all__ = ["ENERGY", "LATENCY", "LENGTH_BOUND", "PROMPT_BOUND"]

LATENCY = ("ttft_s", "tpot_s", "tpot_token_weighted_s", "itl_s", "chunk_gap_s", "e2e_s",
           "normalized_e2e_s_per_token", "scheduling_excess_s", "decode_step_s",
           "decode_tokens_per_s", "prefill_tokens_per_s")  # fmt: skip
LENGTH_BOUND = ("e2e_s", "output_tokens_per_s", "output_tokens_per_s_per_gpu",
                "output_tokens_per_s_finished_only", "requests_per_s", "goodput_requests_per_s",
                "input_tokens_per_s", "output_tokens_per_s_full_run")  # fmt: skip
PROMPT_BOUND = ("ttft_s", "e2e_s", "scheduling_excess_s", "prefill_tokens_per_s")
ENERGY = ("power_w", "energy_j", "energy_per_output_token_j")

# Conventions of this package: sections 6, 11.1, 11.2 and 16.4 of the method notes.
LENGTH_APART = 0.02
MIX_APART = 0.05
ERROR_GAP = 0.01
SUSTAINED = 0.9
SATURATED = 0.95
LATENESS_S = 0.005
LATENESS_OF_TTFT = 0.1
CLOCK_APART = 0.01
CHUNK_APART = 0.1
CACHE_APART = 0.05
CENSORED = 0.1
