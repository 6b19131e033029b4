"""What may be compared, and what else differs: graded by factor and by metric.

A factor that differs can be the question (the treatment), widen the scope from two cards to two
systems, be a caveat, or block the metrics it touches. What nobody recorded is `unchecked`, never
assumed equal and never a refusal. The table is section 6 of the method notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl

from gpuverdict.campaign import Arm, Campaign, ComparisonSpec
from gpuverdict.campaign.reading import factor_value
from gpuverdict.errors import Caution
from gpuverdict.hardware import BLOCKING_IDENTITY_CODES
from gpuverdict.measured import Measured, MeasuredRun, level_label
from gpuverdict.summary import Summary
from gpuverdict.summary.campaign import RunFacts
from gpuverdict.text import caution

__all__ = [
    "LATENCY",
    "CellDesign",
    "Comparability",
    "cell_design",
    "compare_designs",
    "mix_distance",
    "run_order",
]

Scope = Literal["cards", "models", "systems"]

LATENCY = ("ttft_s", "tpot_s", "tpot_token_weighted_s", "itl_s", "chunk_gap_s", "e2e_s",
           "normalized_e2e_s_per_token", "scheduling_excess_s", "decode_step_s",
           "decode_tokens_per_s", "prefill_tokens_per_s")  # fmt: skip
_LENGTH_BOUND = ("e2e_s", "output_tokens_per_s", "output_tokens_per_s_per_gpu",
                 "output_tokens_per_s_finished_only", "requests_per_s", "goodput_requests_per_s",
                 "input_tokens_per_s", "output_tokens_per_s_full_run")  # fmt: skip
_PROMPT_BOUND = ("ttft_s", "e2e_s", "scheduling_excess_s", "prefill_tokens_per_s")

# What a GPU brings along: the default treatment between two GPUs.
DEVICE_BUNDLE = ("gpu", "gpus", "tensor_parallel", "pipeline_parallel", "data_parallel",
                 "power_limit_w")  # fmt: skip
_REFUSING = ("precision", "kv_dtype")
_SCOPE = ("engine", "host", "kernels", "scheduler")
_CAVEAT = ("engine_version", "driver", "cuda", "client_version", "client_tool")
_WORTH_KNOWING = ("host", "driver", "engine_version", "kernels", "kv_dtype")

# Thresholds of section 6 and 11.2, conventions of this package.
LENGTH_APART = 0.02
MIX_APART = 0.05
ERROR_GAP = 0.01
SUSTAINED = 0.9
LATENESS_S = 0.005
LATENESS_OF_TTFT = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparability:
    """What holds for a whole comparison.

    `refused` blocks everything; `blocked` maps a metric to what blocks it; `caveats` are said once;
    `modifiers` mark every verdict.
    """

    level: Literal["comparable", "caveats", "not comparable"]
    scope: Scope
    treatment: tuple[str, ...]
    refused: tuple[Caution, ...] = ()
    caveats: tuple[Caution, ...] = ()
    blocked: Mapping[str, Caution] = field(default_factory=dict)
    modifiers: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    same_start: bool = False
    cards: tuple[int, int] = (1, 1)

    @property
    def reasons(self) -> tuple[Caution, ...]:
        """Everything that keeps the lamp from green, the gravest first."""
        return (*self.refused, *self.blocked_reasons, *self.caveats)

    @property
    def blocked_reasons(self) -> tuple[Caution, ...]:
        """The distinct reasons among the blocked metrics."""
        return tuple({c.code: c for c in self.blocked.values()}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDesign:
    """What holds for one (workload, level) of a comparison, beside what holds for all of it."""

    baseline: tuple[RunFacts, ...]
    candidate: tuple[RunFacts, ...]
    steady: bool
    same_job: bool
    aggregate: bool
    sustained: bool
    blocked: Mapping[str, Caution] = field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()
    modifiers: tuple[str, ...] = ()


def compare_designs(
    measured: Measured,
    summary: Summary,
    spec: ComparisonSpec,
    identity: Mapping[str, Sequence[Caution]],
) -> Comparability:
    """Say whether two arms may be compared, in which scope, and under which caveats.

    Parameters
    ----------
    measured, summary
        The campaign as measured.
    spec : ComparisonSpec
        Which arms, the treatment, an analyst's overrides.
    identity : mapping
        arm -> cautions of the device check (`hardware.check_identity`); the blocking ones refuse.

    Returns
    -------
    Comparability

    Notes
    -----
    An override turns a refusal of one factor into the modifier `confounded: <factor>`.
    """
    campaign = measured.campaign
    names = (spec.baseline, str(spec.candidate))
    arms = (campaign.arms[names[0]], campaign.arms[names[1]])
    treatment = tuple(spec.treatment) or tuple(
        key for key in DEVICE_BUNDLE if getattr(arms[0], key) != getattr(arms[1], key)
    )
    refused: list[tuple[str, Caution]] = []
    scope_factors: list[str] = []
    caveats: list[Caution] = []
    modifiers: list[str] = []
    blocked: dict[str, Caution] = {}

    _model_factors(campaign, names, treatment, refused)
    for key in _REFUSING:
        _compare_fact(arms, key, treatment, refused)
    for name in names:
        said = identity.get(name, ())
        refused += [("gpu", c) for c in said if c.code in BLOCKING_IDENTITY_CODES]
        caveats += [c for c in said if c.code not in BLOCKING_IDENTITY_CODES]
    if spec.treatment:
        # The device is not the question here: a difference in it widens the scope.
        scope_factors += [
            key for key in DEVICE_BUNDLE
            if key not in treatment and getattr(arms[0], key) != getattr(arms[1], key)
        ]  # fmt: skip
    factors = sorted({*arms[0].factors, *arms[1].factors})
    for key in (*_SCOPE, *factors):
        if key not in treatment and factor_value(arms[0], key) != factor_value(arms[1], key):
            scope_factors.append(key)
    mode = spec.mode or campaign.mode
    if mode == "each_tuned":
        tuned = [f for f in scope_factors if f in ("scheduler", "kernels", *DEVICE_BUNDLE)]
        scope_factors = [f for f in scope_factors if f not in tuned]
        caveats.append(caution("each_tuned", factors=", ".join(tuned) or "-"))
    for key in scope_factors:
        caveats.append(
            caution("factor_differs", factor=key, baseline=_shown(factor_value(arms[0], key)),
                    candidate=_shown(factor_value(arms[1], key)))
        )  # fmt: skip
    facts = [[f for f in summary.facts.values() if f.run.arm == name] for name in names]
    tools = _tools(facts)
    if tools[0] and tools[1] and tools[0] != tools[1]:
        modifiers.append("confounded: client")
        caveats.append(
            caution("client_differs", baseline=", ".join(sorted(tools[0])),
                    candidate=", ".join(sorted(tools[1])))
        )  # fmt: skip
    for key in _CAVEAT:
        a, b = _stated(measured, names[0], arms[0], key), _stated(measured, names[1], arms[1], key)
        if key not in treatment and a is not None and b is not None and a != b:
            caveats.append(
                caution("factor_differs", factor=key, baseline=_shown(a), candidate=_shown(b))
            )
            modifiers.append(f"confounded: {key}")
    unchecked = [
        key for key in _WORTH_KNOWING
        if key not in treatment and (_stated(measured, names[0], arms[0], key) is None
                                     or _stated(measured, names[1], arms[1], key) is None)
    ]  # fmt: skip
    if unchecked:
        caveats.append(caution("unchecked", what=", ".join(unchecked)))
        modifiers.append("unchecked: " + ", ".join(unchecked))
    _definitions(facts, blocked, caveats)
    _client_places(arms, blocked)
    _samplings(campaign, arms, blocked)
    _same_logs(facts, refused)
    modifiers += [f"confounded: {key}" for key in scope_factors]
    for factor, reason in spec.override.items():
        kept = [(f, c) for f, c in refused if f != factor]
        if len(kept) < len(refused):
            caveats.append(caution("overridden", factor=factor, reason=reason))
            modifiers.append(f"confounded: {factor}")
        refused = kept
    order = run_order(facts[0], facts[1])
    if order == "AABB":
        caveats.append(caution("not_interleaved"))
    same_start = any(_shares_start(f) for f in facts)
    if same_start:
        modifiers.append("same server start")
        caveats.append(caution("same_server_start"))
    cards = (_n_cards(arms[0]), _n_cards(arms[1]))
    scope: Scope = "systems" if scope_factors else "models" if min(cards) >= 3 else "cards"
    if scope == "cards":
        modifiers.append("this card only")
        caveats.append(caution("this_card_only"))
    if campaign.simulated:
        caveats.append(caution("simulated"))
    if campaign.design.runs_per_arm is None:
        caveats.append(caution("runs_not_fixed"))
    level: Literal["comparable", "caveats", "not comparable"] = "comparable"
    if refused:
        level = "not comparable"
    elif caveats or blocked:
        level = "caveats"
    return Comparability(
        level=level, scope=scope, treatment=treatment, refused=tuple(c for _, c in refused),
        caveats=tuple(caveats), blocked=blocked, modifiers=tuple(dict.fromkeys(modifiers)),
        differing=tuple(scope_factors), same_start=same_start, cards=cards,
    )  # fmt: skip


def _model_factors(
    campaign: Campaign, names: tuple[str, str], treatment: Sequence[str],
    refused: list[tuple[str, Caution]],
) -> None:  # fmt: skip
    a, b = campaign.model_of(names[0]), campaign.model_of(names[1])
    if "model" in treatment or a is None or b is None:
        return
    for key in ("name", "id", "revision", "weight_bits", "kv_bits"):
        if key in treatment or ("precision" in treatment and key == "weight_bits"):
            continue
        if getattr(a, key) != getattr(b, key):
            refused.append(
                ("model", caution("refused_factor", factor=f"model.{key}",
                                  baseline=_shown(getattr(a, key)),
                                  candidate=_shown(getattr(b, key))))
            )  # fmt: skip


def _compare_fact(
    arms: tuple[Arm, Arm], key: str, treatment: Sequence[str], refused: list[tuple[str, Caution]]
) -> None:
    a, b = getattr(arms[0], key), getattr(arms[1], key)
    if key not in treatment and a is not None and b is not None and a != b:
        refused.append(
            (key, caution("refused_factor", factor=key, baseline=_shown(a), candidate=_shown(b)))
        )


def _shown(value: Any) -> str:
    return "unknown" if value is None else str(value)


def _tools(facts: Sequence[Sequence[RunFacts]]) -> tuple[set[str], set[str]]:
    found = [
        {str(f.run.stored.info.get("tool") or f.run.stored.info["source_format"]) for f in arm}
        for arm in facts
    ]
    return found[0], found[1]


def _stated(measured: Measured, name: str, arm: Arm, key: str) -> Any:
    """What is known of a fact: the campaign file, else the devices, else the logs."""
    value = getattr(arm, key, None)
    if value:
        return value
    inventory = measured.inventory.get(name)
    if key in ("driver", "cuda") and inventory is not None and key in inventory.columns:
        found = inventory[key].drop_nulls().unique().sort().to_list()
        return ", ".join(found) or None
    if key in ("engine_version", "kv_dtype", "client_version"):
        source = "tool_version" if key == "client_version" else key
        logged = {run.stored.info.get(source) for run in measured.runs_of(name)} - {None}
        return ", ".join(sorted(map(str, logged))) or None
    model = measured.campaign.model_of(name)
    if key == "kv_dtype" and model is not None and model.kv_bits:
        return f"{model.kv_bits:g} bit"
    return None


def _definitions(
    facts: Sequence[Sequence[RunFacts]], blocked: dict[str, Caution], caveats: list[Caution]
) -> None:
    """Block TTFT or E2E where the clocks of the two arms stop at different events."""
    touched = {"ttft_def": ("ttft_s", "scheduling_excess_s"), "e2e_def": ("e2e_s",)}
    for key, metrics in touched.items():
        known = [{f.run.stored.info.get(key) for f in arm} for arm in facts]
        if not all(known):
            continue
        if any(values & {None, "unknown"} for values in known):
            if known[0] != known[1]:
                caveats.append(caution("definition_unknown", definition=key))
        elif known[0] != known[1]:
            said = caution("definition_differs", definition=key, baseline=_listed(known[0]),
                           candidate=_listed(known[1]))  # fmt: skip
            # Content first or reasoning first is one event where no model reasons.
            if key == "ttft_def" and known[0] | known[1] <= {
                "first_content", "first_content_or_reasoning"
            }:  # fmt: skip
                caveats.append(said)
            else:
                blocked.update(dict.fromkeys(metrics, said))


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(sorted(map(str, values)))


def _client_places(arms: tuple[Arm, Arm], blocked: dict[str, Caution]) -> None:
    places = [arm.client.place if arm.client else None for arm in arms]
    trips = [arm.client.rtt_s if arm.client else None for arm in arms]
    if places[0] and places[1] and places[0] != places[1] and None in trips:
        said = caution("client_place_differs", baseline=places[0], candidate=places[1])
        blocked.update({"ttft_s": said, "e2e_s": said})


def _samplings(campaign: Campaign, arms: tuple[Arm, Arm], blocked: dict[str, Caution]) -> None:
    if arms[0].sampling != arms[1].sampling:
        said = caution("factor_differs", factor="sampling", baseline=_shown(arms[0].sampling),
                       candidate=_shown(arms[1].sampling))  # fmt: skip
        blocked.update({m: said for m in _LENGTH_BOUND})


def _same_logs(facts: Sequence[Sequence[RunFacts]], refused: list[tuple[str, Caution]]) -> None:
    ids = [{f.run.run_id for f in arm} for arm in facts]
    shared = ids[0] & ids[1]
    if shared:
        path = next(f.run.path for f in facts[0] if f.run.run_id in shared)
        refused.append(("runs", caution("same_log_in_both_arms", path=path)))


def _shares_start(facts: Sequence[RunFacts]) -> bool:
    starts = [(f.run.workload, f.run.level_key, f.run.server_start_id) for f in facts]
    return len(set(starts)) < len(starts)


def _n_cards(arm: Arm) -> int:
    return max(1, len(set(arm.cards)) // max(1, arm.gpus))


def run_order(
    baseline: Sequence[RunFacts], candidate: Sequence[RunFacts]
) -> Literal["AABB", "ABAB", "ABBA", "mixed"] | None:
    """Say in which order the runs of two arms were made; None where the logs have no epoch.

    `AABB` means that one arm ended before the other began: a drift of the laboratory between them
    would read as a difference.
    """
    times = []
    for letter, arm in (("A", baseline), ("B", candidate)):
        for fact in arm:
            epoch = fact.run.stored.info.get("t0_epoch_s")
            if epoch is None:
                return None
            times.append((float(epoch), letter))
    letters = "".join(letter for _, letter in sorted(times))
    if not letters or len(set(letters)) < 2:
        return None
    if letters.rstrip(letters[-1]).strip(letters[0]) == "":
        return "AABB"
    runs = [letters[i : i + 2] for i in range(0, len(letters) - 1, 2)]
    if set(runs) <= {"AB", "BA"}:
        return "ABAB" if len(set(runs)) == 1 else "ABBA"
    return "mixed"


def cell_design(
    summary: Summary, baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]
) -> CellDesign:
    """Say what holds at one level that both arms ran: windows, lengths, errors, streams."""
    facts = tuple(tuple(summary.facts[r.key] for r in arm) for arm in (baseline, candidate))
    everything = [*facts[0], *facts[1]]
    aggregate = any(not f.input_lengths and not f.n_by_status for f in everything)
    steady = all(f.window.kind == "steady" for f in everything) and not any(
        c.code == "no_steady_state" for f in everything for c in f.window.cautions
    )
    blocked: dict[str, Caution] = {}
    cautions: list[Caution] = []
    modifiers: list[str] = []
    if not aggregate:
        _lengths(facts, blocked, cautions)
        _errors(facts, blocked)
        _censoring(everything, blocked, cautions)
        _lateness(everything, summary, blocked)
    sustained, said = _sustained(summary, baseline, candidate)
    cautions += said
    if not sustained:
        modifiers.append("not sustained")
    codes = {c.code for f in everything for c in f.window.cautions}
    if "short_run" in codes:
        modifiers.append("short run")
    counts = {sum(f.n_by_status.values()) for f in everything}
    return CellDesign(
        baseline=facts[0], candidate=facts[1], steady=steady,
        same_job=len(counts) == 1 and not blocked, aggregate=aggregate, sustained=sustained,
        blocked=blocked, cautions=tuple(cautions), modifiers=tuple(modifiers),
    )  # fmt: skip


def _lengths(
    facts: Sequence[Sequence[RunFacts]], blocked: dict[str, Caution], cautions: list[Caution]
) -> None:
    out = [_lengths_of(arm, "output_lengths") for arm in facts]
    prompts = [_lengths_of(arm, "input_lengths") for arm in facts]
    if min(len(o) for o in out) == 0:
        return
    medians = [float(np.median(o)) for o in out]
    if abs(medians[1] - medians[0]) > LENGTH_APART * medians[0]:
        said = caution("output_lengths_differ", baseline=medians[0], candidate=medians[1])
        blocked.update(dict.fromkeys(_LENGTH_BOUND, said))
        cautions.append(said)
    if min(len(p) for p in prompts) == 0:
        return
    distance = mix_distance(prompts[0], prompts[1])
    centre = [float(np.median(p)) for p in prompts]
    if distance > MIX_APART and abs(centre[1] - centre[0]) > LENGTH_APART * centre[0]:
        said = caution(
            "prompt_mix_differs", distance=distance, baseline=centre[0], candidate=centre[1]
        )
        blocked.update({m: said for m in _PROMPT_BOUND if m not in blocked})
        cautions.append(said)


def _lengths_of(facts: Sequence[RunFacts], name: str) -> np.ndarray:
    """All lengths of some runs, one a request."""
    held = [getattr(f, name) for f in facts]
    values = [np.repeat(list(h.keys()), list(h.values())) for h in held if h]
    return np.concatenate(values).astype(float) if values else np.array([])


def mix_distance(a: np.ndarray, b: np.ndarray, bins: int = 8) -> float:
    """Total-variation distance between two samples of lengths (0 equal, 1 disjoint).

    Bins are the pooled quantiles, so that one odd prompt does not make a bin of its own.

    Examples
    --------
    >>> mix_distance(np.full(50, 512.0), np.full(80, 512.0))
    0.0
    >>> mix_distance(np.full(50, 512.0), np.full(50, 2048.0))
    1.0
    """
    pooled = np.concatenate([a, b])
    edges = np.unique(np.quantile(pooled, np.linspace(0, 1, bins + 1)[1:-1]))
    shares = [
        np.bincount(np.searchsorted(edges, x, side="left"), minlength=len(edges) + 1) / len(x)
        for x in (a, b)
    ]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _errors(facts: Sequence[Sequence[RunFacts]], blocked: dict[str, Caution]) -> None:
    ratios = []
    for arm in facts:
        failed = sum(f.n_by_status.get("error", 0) + f.n_by_status.get("empty", 0) for f in arm)
        total = sum(sum(f.n_by_status.values()) for f in arm)
        ratios.append(failed / total if total else 0.0)
    if abs(ratios[1] - ratios[0]) > ERROR_GAP:
        said = caution("error_gap", baseline_ratio=ratios[0], candidate_ratio=ratios[1])
        blocked.update(dict.fromkeys(LATENCY, said))


def _censoring(
    facts: Sequence[RunFacts], blocked: dict[str, Caution], cautions: list[Caution]
) -> None:
    """Long outputs are cut first: with lengths that vary, what is left of E2E is too short."""
    cut = sum(f.n_by_status.get("incomplete", 0) for f in facts)
    total = sum(sum(f.n_by_status.values()) for f in facts)
    lengths = _lengths_of(facts, "output_lengths")
    varies = lengths.size > 1 and float(np.std(lengths)) > LENGTH_APART * float(np.mean(lengths))
    if total and cut / total > 0.1 and varies:
        cautions.append(caution("censored_tail", cut_ratio=cut / total))


def _lateness(facts: Sequence[RunFacts], summary: Summary, blocked: dict[str, Caution]) -> None:
    for fact in facts:
        if "rate_requests_per_s" not in fact.run.level:
            continue
        rows = fact.run.stored.requests().filter(pl.col("phase") == "main")
        late = rows["client_queue_s"].drop_nulls()
        ttft = rows["ttft_s"].drop_nulls()
        if late.is_empty() or ttft.is_empty():
            continue
        p99, limit = float(late.quantile(0.99, "linear") or 0.0), max(
            LATENESS_S, LATENESS_OF_TTFT * float(ttft.median() or 0.0)  # type: ignore[arg-type]
        )  # fmt: skip
        if p99 > limit:
            said = caution("client_saturated", path=fact.run.path, late_s=p99, limit_s=limit)
            blocked.update({"ttft_s": said, "e2e_s": said})


def _sustained(
    summary: Summary, baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]
) -> tuple[bool, list[Caution]]:
    """Compare the streams seen in flight with those asked for."""
    frame = summary.frame
    rows = frame[(frame.metric == "concurrency") & frame.value.notna()]
    steady_first = rows.sort_values("window").drop_duplicates("run_id")  # steady before whole_run
    observed = dict(zip(steady_first.run_id, steady_first.value, strict=True))
    said = []
    for runs in (baseline, candidate):
        asked = runs[0].level.get("concurrency") if runs else None
        seen = [observed[r.run_id] for r in runs if r.run_id in observed]
        if not seen:
            seen = [s for s in map(_littles_law, runs) if s is not None]
        if asked and seen and float(np.mean(seen)) < SUSTAINED * asked:
            said.append(
                caution("not_sustained", arm=runs[0].arm, level=level_label(runs[0].level),
                        observed=float(np.mean(seen)))
            )  # fmt: skip
    return not said, said


def _littles_law(run: MeasuredRun) -> float | None:
    """Streams in flight = request rate x mean time in the system, for logs without starts."""
    rows = run.stored.requests().filter(pl.col("status") == "ok")
    duration = run.stored.info.get("duration_s")
    if duration and rows.height and rows["e2e_s"].null_count() < rows.height:
        return float(rows["e2e_s"].sum()) / float(duration)
    reported = run.stored.info.get("reported") or {}
    rate, time = reported.get("requests_per_s.value"), reported.get("e2e_s.mean")
    if rate is not None and time is not None:
        return float(rate) * float(time)
    speed, throughput = (
        reported.get("decode_tokens_per_s.value"),
        reported.get("output_tokens_per_s.value"),
    )
    return float(throughput) / float(speed) if speed and throughput else None
