"""A continuous-batching server, step by step, whose truth is known exactly.

Imports nothing of the package under test. One step decodes one token of every running request and,
by the policy, prefills waiting ones:

step = (alpha + beta * b + kv * context tokens of the b + prefill * p + quadratic * (to^2 - from^2))
       * lognormal(jitter), and rarely a stall on top,

with b decoding requests and p prompt tokens in the step. `chunked` shares a budget of prompt tokens
with the running decodes; `prefill_first` runs waiting prompts alone, before any decode.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerModel:
    """Truth of a server; times in seconds."""

    alpha_s: float = 0.008
    beta_s: float = 0.06e-3
    kv_s_per_token: float = 10e-9
    prefill_s_per_token: float = 0.06e-3
    prefill_s_per_token2: float = 1.5e-9
    jitter: float = 0.02
    stall_probability: float = 0.0
    stall_s: float = 0.15
    slots: int = 10**9
    policy: Literal["chunked", "prefill_first"] = "chunked"
    budget_tokens: int = 2048
    speed: float = 1.0  # factor on every step of one server start
    speed_at: Callable[[float], float] | None = field(default=None)  # ... and over time


@dataclass(slots=True)
class Served:
    """What happened on the server, in seconds; row i is request i."""

    arrival_s: np.ndarray
    scheduled_s: np.ndarray
    first_s: np.ndarray
    last_s: np.ndarray
    prompt_tokens: np.ndarray
    output_tokens: np.ndarray
    token_s: list[np.ndarray]
    step_end_s: np.ndarray
    step_s: np.ndarray
    step_decodes: np.ndarray
    step_prefill: np.ndarray

    def step_truth(self, start_s: float, end_s: float) -> float:
        """Median time of a pure decode step between two moments, weighted by its tokens."""
        pure = (self.step_prefill == 0) & (self.step_decodes > 0)
        pure &= (self.step_end_s > start_s) & (self.step_end_s <= end_s)
        order = np.argsort(self.step_s[pure])
        weight = np.cumsum(self.step_decodes[pure][order])
        middle = np.searchsorted(weight, weight[-1] / 2)
        return float(self.step_s[pure][order][middle])


def serve(
    model: ServerModel,
    prompt_tokens: np.ndarray,
    output_tokens: np.ndarray,
    rng: np.random.Generator,
    *,
    streams: int | None = None,
    arrival_s: np.ndarray | None = None,
    think_s: float = 0.001,
) -> Served:
    """Serve requests: `streams` at a time (closed loop), or at given arrival times (open loop)."""
    n = prompt_tokens.size
    arrival = np.full(n, np.nan) if arrival_s is None else np.asarray(arrival_s, float).copy()
    scheduled, first, last = (np.full(n, np.nan) for _ in range(3))
    # The client hears of an end, and is heard of, about a millisecond later each.
    think = 0.003 + think_s * rng.lognormal(0.0, 0.3, n)
    coming: list[tuple[float, int]] = []
    sent = n
    if arrival_s is None:
        assert streams is not None
        sent = min(streams, n)
        for i in range(sent):
            arrival[i] = 1e-4 * i
            heapq.heappush(coming, (arrival[i], i))
    else:
        coming = [(float(a), i) for i, a in enumerate(arrival)]
        heapq.heapify(coming)

    waiting: deque[int] = deque()
    prefilling: deque[int] = deque()
    done_tokens = np.zeros(n, int)
    running: list[tuple[int, int]] = []  # (decode count at which it finishes, request)
    begun = np.zeros(n, int)
    decoded = 0
    context = 0.0
    now = 0.0
    ends: list[np.ndarray] = []
    durations: list[np.ndarray] = []
    decodes: list[np.ndarray] = []
    prefills: list[np.ndarray] = []
    decode_ends: list[np.ndarray] = []

    def noise(size: int) -> tuple[np.ndarray, np.ndarray]:
        factor = model.speed * rng.lognormal(0.0, model.jitter, size)
        if model.speed_at is not None:
            factor = factor * model.speed_at(now)
        stall = np.zeros(size)
        if model.stall_probability:
            stall = model.stall_s * (rng.random(size) < model.stall_probability)
        return factor, stall

    def record(end: np.ndarray, length: np.ndarray, b: int, p: int) -> None:
        ends.append(end)
        durations.append(length)
        decodes.append(np.full(end.size, b))
        prefills.append(np.full(end.size, p))
        if b:
            decode_ends.append(end)

    def finish(upto: int, moment: float) -> None:
        nonlocal context, sent
        while running and running[0][0] <= upto:
            i = heapq.heappop(running)[1]
            last[i] = moment
            context -= prompt_tokens[i] + output_tokens[i]
            if arrival_s is None and sent < n:
                arrival[sent] = last[i] + think[sent]
                heapq.heappush(coming, (arrival[sent], sent))
                sent += 1

    while coming or waiting or prefilling or running:
        if not (waiting or prefilling or running):
            now = max(now, coming[0][0])
        while coming and coming[0][0] <= now:
            waiting.append(heapq.heappop(coming)[1])
        while waiting and len(prefilling) + len(running) < model.slots:
            prefilling.append(waiting.popleft())
        b = len(running)
        if prefilling:
            alone = model.policy == "prefill_first"
            steps = 0 if alone else b
            budget = model.budget_tokens - steps
            taken, cost, complete = 0, 0.0, []
            while prefilling and budget > taken:
                i = prefilling[0]
                if np.isnan(scheduled[i]):
                    scheduled[i] = now
                left = int(prompt_tokens[i] - done_tokens[i])
                if alone and taken and left > budget - taken:
                    break
                part = left if alone else min(left, budget - taken)
                upto = done_tokens[i] + part
                cost += model.prefill_s_per_token * part
                cost += model.prefill_s_per_token2 * (upto**2 - done_tokens[i] ** 2)
                done_tokens[i] = upto
                taken += part
                if upto < prompt_tokens[i]:
                    break
                complete.append(prefilling.popleft())
            factor, stall = noise(1)
            base = model.alpha_s + cost
            if steps:
                base += model.beta_s * b + model.kv_s_per_token * context
            length = base * factor + stall
            now = float(now + length[0])
            record(np.array([now]), length, steps, taken)
            if steps:
                decoded += 1
                context += b
                finish(decoded, now)
            for i in complete:
                first[i] = now
                begun[i] = decoded
                context += prompt_tokens[i] + 1
                heapq.heappush(running, (decoded + int(output_tokens[i]) - 1, i))
            # Requests of one token are finished with their first.
            finish(decoded, now)
            continue
        # Nothing to prefill: decode until a request finishes or one arrives.
        m = running[0][0] - decoded
        factor, stall = noise(m)
        grown = context + b * np.arange(m)
        length = (model.alpha_s + model.beta_s * b + model.kv_s_per_token * grown) * factor + stall
        end = now + np.cumsum(length)
        if coming and b < model.slots:
            m = min(m, int(np.searchsorted(end, coming[0][0])) + 1)
            end, length = end[:m], length[:m]
        now = float(end[-1])
        record(end, length, b, 0)
        decoded += m
        context += b * m
        finish(decoded, now)

    decode_end = np.concatenate(decode_ends) if decode_ends else np.empty(0)
    tokens = [
        np.concatenate([[first[i]], decode_end[begun[i] : begun[i] + int(output_tokens[i]) - 1]])
        for i in range(n)
    ]
    return Served(
        arrival_s=arrival,
        scheduled_s=scheduled,
        first_s=first,
        last_s=last,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        token_s=tokens,
        step_end_s=np.concatenate(ends),
        step_s=np.concatenate(durations),
        step_decodes=np.concatenate(decodes),
        step_prefill=np.concatenate(prefills),
    )
