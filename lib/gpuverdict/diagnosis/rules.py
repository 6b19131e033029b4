"""The rules: a symptom with its evidence, what would confirm it, what to try, what would show it.

Each rule is a function of situations and gives a finding or None. There is no ranking among them:
findings come in the order of the rules. Thresholds are conventions and stand here by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from gpuverdict.diagnosis.finding import Finding, Hit, finding_of
from gpuverdict.diagnosis.host_rules import HOST_RULES
from gpuverdict.diagnosis.situation import Situation

__all__ = ["diagnose"]

# Of the data sheet's bandwidth; a real decode reaches 60-85 %.
BANDWIDTH_BOUND = 0.5
# Above it the label, the model's shape or the precision must be wrong (2 % for rounded figures).
POSSIBLE = 1.02
# Far below it at one stream, something between the steps takes the time.
LAUNCH_BOUND = 0.3
BUSY = 0.8
IDLE = 0.5
FASTER, SLOWER = 0.9, 1.1
TAIL_RATIO = 4.0
EVEN_RATIO = 1.5
TAIL_REQUESTS = 100
MIXED_LENGTHS = 4.0
LARGE_SHARE = 0.2
FULL = 0.9
LOW_POWER = 0.6
NEAR_LIMIT = 0.97
THROTTLED = 0.05
MORE_STREAMS, NOT_MORE, FLAT = 1.5, 1.2, 1.1
SUSTAINED = 0.9
LATE_S, LATE_OF_TTFT = 0.005, 0.1
LATE_SPIKES = 3.0
CARDS_GAIN = 1.2
BIGGER, STILL_SLOWER = 1.2, 1.05
OTHER_MEMORY = 1.3
ERRORS = 0.01


def diagnose(
    situations: Sequence[Situation], baseline: str | None = None, candidate: str | None = None
) -> tuple[Finding, ...]:
    """Say which resource binds in each arm, and what the two arms say about each other.

    Parameters
    ----------
    situations : sequence of Situation
        Of one arm or more, at one level or more (`observe` makes them of a campaign).
    baseline, candidate : str, optional
        Two arms to compare with each other; without them no rule of two arms is asked.

    Returns
    -------
    tuple of Finding
        At most one a rule, arm and workload: the level that shows it best. Empty when nothing is
        known to bind, which is not the same as nothing binds.

    Examples
    --------
    >>> late = Situation(arm="a", level={"rate_requests_per_s": 4.0}, ttft_p50_s=0.1,
    ...                  client_late_p99_s=0.05)
    >>> [finding.code for finding in diagnose([late])]
    ['binds_client_late']
    """
    found: list[Finding] = []
    groups: dict[tuple[str, str], list[Situation]] = {}
    for situation in situations:
        groups.setdefault((situation.arm, situation.workload), []).append(situation)
    for rule in _ALONE:
        for group in groups.values():
            hits = [hit for hit in map(rule, group) if hit is not None]
            if hits:
                found.append(max(hits, key=lambda hit: hit[0])[1])
    for group in groups.values():
        flat = _client_flat(sorted(group, key=lambda s: s.streams or 0.0))
        if flat is not None:
            found.append(flat)
    if baseline is not None and candidate is not None:
        workloads = list(dict.fromkeys(s.workload for s in situations))
        for pair_rule in _PAIRS:
            for workload in workloads:
                one, two = groups.get((baseline, workload)), groups.get((candidate, workload))
                if not one or not two:
                    continue
                # Neither arm is special: each rule is asked both ways round.
                for first, second in ((one, two), (two, one)):
                    hit = pair_rule(first, second)
                    if hit is not None:
                        found.append(hit)
    return tuple(found)


def _bandwidth_bound(s: Situation) -> Hit | None:
    """Decode reads memory as fast as the card can: more compute would not help."""
    if s.step_s is None or s.step_bytes is None or s.bandwidth_bytes_per_s is None:
        return None
    share = s.step_bytes / s.step_s / s.bandwidth_bytes_per_s
    if not BANDWIDTH_BOUND <= share <= POSSIBLE or (
        s.gpu_util_ratio is not None and s.gpu_util_ratio < BUSY
    ):
        return None
    return share, finding_of("binds_bandwidth", s, share=share, step_ms=1e3 * s.step_s)


def _impossible_step(s: Situation) -> Hit | None:
    """A step faster than the card can read its bytes: a wrong label, model or precision."""
    if s.step_s is None or s.step_bytes is None or s.bandwidth_bytes_per_s is None:
        return None
    share = s.step_bytes / s.step_s / s.bandwidth_bytes_per_s
    if share <= POSSIBLE:
        return None
    return share, finding_of("impossible_step", s, share=share, step_ms=1e3 * s.step_s)


def _launch_bound(s: Situation) -> Hit | None:
    """One stream's step takes far longer than its bytes need: launches, small kernels, the host."""
    if s.step_s is None or s.step_bytes is None or s.bandwidth_bytes_per_s is None:
        return None
    share = s.step_bytes / s.step_s / s.bandwidth_bytes_per_s
    if s.streams != 1 or share >= LAUNCH_BOUND:
        return None
    floor = s.step_bytes / s.bandwidth_bytes_per_s
    return 1 - share, finding_of(
        "binds_launch", s, share=share, step_ms=1e3 * s.step_s, floor_ms=1e3 * floor
    )


def _tail_ttft(s: Situation) -> Hit | None:
    """Tokens flow evenly but some requests wait long for the first one."""
    if not (s.ttft_p50_s and s.ttft_p99_s and s.tpot_p50_s and s.tpot_p99_s):
        return None
    tail = s.ttft_p99_s / s.ttft_p50_s
    uneven = s.tpot_p99_s / s.tpot_p50_s > EVEN_RATIO
    if s.n_requests < TAIL_REQUESTS or tail < TAIL_RATIO or uneven:
        return None
    evidence = {"p50_ms": 1e3 * s.ttft_p50_s, "p99_ms": 1e3 * s.ttft_p99_s}
    waits = s.server_queue_s if s.server_queue_s is not None else s.scheduling_excess_s
    if s.host_work_s is not None and s.host_work_s >= LARGE_SHARE * s.ttft_p50_s:
        return tail, finding_of("binds_host", s, host_ms=1e3 * s.host_work_s, **evidence)
    if s.rtt_s is not None and s.rtt_s >= LARGE_SHARE * s.ttft_p50_s:
        return tail, finding_of("binds_network", s, rtt_ms=1e3 * s.rtt_s, **evidence)
    if s.input_spread is not None and s.input_spread >= MIXED_LENGTHS:
        return tail, finding_of("binds_mixed_lengths", s, spread=s.input_spread, **evidence)
    if waits is not None and waits >= LARGE_SHARE * s.ttft_p50_s:
        return tail, finding_of("binds_queue", s, wait_ms=1e3 * waits, **evidence)
    return tail, finding_of("binds_tail_unknown", s, **evidence)


def _compute_idle(s: Situation) -> float | None:
    """The lowest sign of idle compute, or None where no sensor says so."""
    signs = []
    if s.gpu_util_ratio is not None and s.gpu_util_ratio < 0.7:
        signs.append(s.gpu_util_ratio)
    if s.tensor_active_ratio is not None and s.tensor_active_ratio < 0.3:
        signs.append(s.tensor_active_ratio)
    if s.power_w is not None and s.power_limit_w and s.power_w < LOW_POWER * s.power_limit_w:
        signs.append(s.power_w / s.power_limit_w)
    return min(signs) if signs else None


def _memory_used(s: Situation) -> float | None:
    """Share of the KV cache, or of a memory that moves; a pre-allocated one says nothing."""
    if s.kv_cache_use_ratio is not None:
        return s.kv_cache_use_ratio
    if s.memory_moves and s.memory_used_mib is not None and s.memory_total_mib:
        return s.memory_used_mib / s.memory_total_mib
    return None


def _kv_cache_full(s: Situation) -> Hit | None:
    """Memory is full while compute idles: the KV cache limits the batch."""
    used, idle = _memory_used(s), _compute_idle(s)
    if used is None or idle is None:
        return None
    if used < FULL and not (s.preemptions or 0) > 0:
        return None
    return used, finding_of(
        "binds_kv_cache", s, used=used, idle=idle, preemptions=float(s.preemptions or 0)
    )


def _idle_while_waiting(s: Situation) -> Hit | None:
    """Requests wait although the GPU has time: something before it holds them back."""
    if s.gpu_util_ratio is None or s.gpu_util_ratio >= IDLE or (s.observed_streams or 0) < 2:
        return None
    # With a full KV cache the waiting is explained, and that rule says so.
    if _kv_cache_full(s) is not None:
        return None
    waiting = s.waiting_requests is not None and s.waiting_requests >= 1
    # The server's own queue against its own prefill, else the client's estimate of both.
    told = (s.server_queue_s, s.server_prefill_s)
    wait, prefill = told if None not in told else (s.scheduling_excess_s, s.unloaded_ttft_s)
    delayed = wait is not None and prefill is not None and wait >= prefill
    if not (waiting or delayed):
        return None
    return 1 - s.gpu_util_ratio, finding_of(
        "binds_feeding", s, util=s.gpu_util_ratio, streams=float(s.observed_streams or 0)
    )


def _heat_or_cap(s: Situation) -> Hit | None:
    """The run slows down under way, and the device shows why: heat, or the power cap."""
    if s.slowdown_ratio is None or s.slowdown_ratio <= 0:
        return None
    capped = bool(s.power_limit_w and s.power_w and s.power_w >= NEAR_LIMIT * s.power_limit_w)
    throttled = bool(s.throttle) or (s.throttled_ratio or 0.0) >= THROTTLED
    if not (capped or throttled):
        return None
    return s.slowdown_ratio, finding_of(
        "binds_heat_or_cap", s, slower=s.slowdown_ratio, throttled=s.throttled_ratio or 0.0
    )


def _late_tail(s: Situation) -> Hit | None:
    """Spikes come after half an hour: eviction, fragmentation, a growing table."""
    if s.late_spike_factor is None or s.late_spike_factor < LATE_SPIKES:
        return None
    return s.late_spike_factor, finding_of("binds_late_spikes", s, factor=s.late_spike_factor)


def _client_late(s: Situation) -> Hit | None:
    """An open loop sends late: the client, not the server, sets the pace."""
    if s.client_late_p99_s is None or s.ttft_p50_s is None:
        return None
    limit = max(LATE_S, LATE_OF_TTFT * s.ttft_p50_s)
    if s.client_late_p99_s <= limit:
        return None
    return s.client_late_p99_s / limit, finding_of(
        "binds_client_late", s, late_ms=1e3 * s.client_late_p99_s, limit_ms=1e3 * limit
    )


def _client_flat(levels: Sequence[Situation]) -> Finding | None:
    """More streams are asked for, but no more are seen, and nothing gets faster."""
    known = [
        (s, s.streams, s.observed_streams, s.output_tokens_per_s)
        for s in levels
        if s.streams and s.observed_streams and s.output_tokens_per_s
    ]
    for (_, asked_low, seen_low, rate_low), (s, asked, seen, rate) in pairwise(known):
        more_asked = asked >= MORE_STREAMS * asked_low
        more_seen = seen >= NOT_MORE * seen_low
        if more_asked and not more_seen and seen < SUSTAINED * asked and rate < FLAT * rate_low:
            return finding_of("binds_client", s, asked=asked, seen=seen, before=seen_low)
    return None


_ALONE: tuple[Callable[[Situation], Hit | None], ...] = (
    _impossible_step,
    _bandwidth_bound,
    _launch_bound,
    _kv_cache_full,
    _tail_ttft,
    _idle_while_waiting,
    _heat_or_cap,
    _late_tail,
    _client_late,
    *HOST_RULES,
)


def _common(a: Sequence[Situation], b: Sequence[Situation]) -> list[tuple[Situation, Situation]]:
    """Situations at the same level, lowest first."""
    by_level = {tuple(sorted(s.level.items())): s for s in b}
    pairs = [(s, by_level.get(tuple(sorted(s.level.items())))) for s in a]
    found = [(s, t) for s, t in pairs if t is not None]
    return sorted(found, key=lambda pair: pair[0].streams or 0.0)


def _speed(s: Situation, t: Situation) -> tuple[float, float] | None:
    """Comparable step times of two situations: device steps, else both users' views."""
    if s.decode_step_s and t.decode_step_s:
        return s.decode_step_s, t.decode_step_s
    if s.tpot_p50_s and t.tpot_p50_s:
        return s.tpot_p50_s, t.tpot_p50_s
    return None


def _fast_prefill_slow_decode(a: Sequence[Situation], b: Sequence[Situation]) -> Finding | None:
    """Arm b starts sooner and then goes slower than arm a."""
    for s, t in _common(a, b):
        speeds = _speed(s, t)
        if s.unloaded_ttft_s and t.unloaded_ttft_s and speeds:
            prefill, decode = t.unloaded_ttft_s / s.unloaded_ttft_s, speeds[1] / speeds[0]
            if prefill <= FASTER and decode >= SLOWER:
                return finding_of(
                    "binds_decode_not_prefill", t, prefill=prefill, decode=decode, other=s.arm
                )
    return None


def _second_card_idle(a: Sequence[Situation], b: Sequence[Situation]) -> Finding | None:
    """Arm b has twice the cards of the same kind and hardly more to show for them."""
    best: Finding | None = None
    for s, t in _common(a, b):
        same = s.gpu == t.gpu and s.model == t.model and s.precision == t.precision
        if not (same and t.gpus >= 2 * s.gpus and s.output_tokens_per_s and t.output_tokens_per_s):
            continue
        gain = t.output_tokens_per_s / s.output_tokens_per_s
        if gain >= CARDS_GAIN:
            return None
        best = finding_of(
            "binds_interconnect", t, cards=t.gpus, gain=gain, other=s.arm,
            link=t.interconnect or "?",
        )  # fmt: skip
    return best


def _bigger_card_slower(a: Sequence[Situation], b: Sequence[Situation]) -> Finding | None:
    """Arm b has more bandwidth and memory, and the same model decodes slower on it."""
    for s, t in _common(a, b):
        speeds = _speed(s, t)
        if s.bandwidth_bytes_per_s is None or t.bandwidth_bytes_per_s is None or speeds is None:
            continue
        bigger = t.bandwidth_bytes_per_s >= BIGGER * s.bandwidth_bytes_per_s
        roomier = (t.memory_gb or 0) >= (s.memory_gb or 0)
        ratio = speeds[1] / speeds[0]
        if bigger and roomier and s.model == t.model and ratio >= STILL_SLOWER:
            return finding_of(
                "binds_kernel_path", t, ratio=ratio, other=s.arm, precision=t.precision or "?",
                bandwidth=t.bandwidth_bytes_per_s / s.bandwidth_bytes_per_s,
            )  # fmt: skip
    return None


def _copied_settings(a: Sequence[Situation], b: Sequence[Situation]) -> Finding | None:
    """The smaller arm b runs with the larger one's scheduler limits, and suffers."""
    for s, t in _common(a, b):
        shared = {k: v for k, v in t.scheduler.items() if s.scheduler.get(k) == v}
        if not shared or not s.memory_gb or not t.memory_gb:
            continue
        if s.memory_gb < OTHER_MEMORY * t.memory_gb:
            continue
        strained = (t.preemptions or 0) > 0 or (t.kv_cache_use_ratio or 0) >= FULL
        if strained or (t.error_ratio or 0) >= ERRORS:
            names = ", ".join(f"{k}={v}" for k, v in sorted(shared.items()))
            return finding_of(
                "binds_copied_settings", t, settings=names, other=s.arm,
                preemptions=float(t.preemptions or 0), errors=t.error_ratio or 0.0,
            )  # fmt: skip
    return None


_PAIRS: tuple[Callable[[Sequence[Situation], Sequence[Situation]], Finding | None], ...] = (
    _fast_prefill_slow_decode,
    _second_card_idle,
    _bigger_card_slower,
    _copied_settings,
)
