"""A whole comparison: its treatment, its scope, what refuses it, what must be said of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gpuverdict.campaign import Arm, ComparisonSpec, ModelSpec
from gpuverdict.design.facts import both, differ, distinct, shown, unknown
from gpuverdict.design.memory import memory_need
from gpuverdict.design.order import run_order
from gpuverdict.design.touched import LENGTH_BOUND
from gpuverdict.errors import Caution
from gpuverdict.hardware import BLOCKING_IDENTITY_CODES
from gpuverdict.measured import Measured
from gpuverdict.summary import Summary
from gpuverdict.summary.campaign import RunFacts
from gpuverdict.text import caution

__all__ = ["DEVICE_BUNDLE", "Comparability", "compare_designs"]

Scope = Literal["cards", "models", "systems"]
Pair = tuple[Arm, Arm]

# What a GPU brings along: the default treatment between two GPUs.
DEVICE_BUNDLE = ("gpu", "gpus", "tensor_parallel", "pipeline_parallel", "data_parallel",
                 "power_limit_w")  # fmt: skip
# What a treatment may name to make the shape of the model the question.
MODEL_SHAPE = ("layers", "kv_heads", "head_dim")
_REFUSING = ("precision", "kv_dtype")
_SCOPE = ("engine", "host", "kernels", "scheduler")
_CAVEAT = ("engine_version", "driver", "cuda", "ecc", "client_version", "tokenizer", "model_id")
_WORTH_KNOWING = ("engine", "engine_version", "host", "driver", "kernels", "kv_dtype")
# What each arm may set to its own best in the mode `each_tuned`.
_TUNABLE = ("scheduler", "kernels", "kv_share", "gpu_memory_utilization", "max_num_seqs",
            "max_num_batched_tokens", "chunked_prefill", *DEVICE_BUNDLE)  # fmt: skip

MODELS_FROM_CARDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparability:
    """What holds for a whole comparison.

    `refused` blocks everything; `blocked` maps a metric to what blocks it; `caveats` are said once;
    `modifiers` mark every verdict. `cards` counts the cards of each arm that runs are known to be
    on; `quality` holds a caution about answer quality where precision or kernels differ.
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
    quality: Caution | None = None

    @property
    def reasons(self) -> tuple[Caution, ...]:
        """Everything that keeps the lamp from green, the gravest first."""
        return (*self.refused, *self.blocked_reasons, *self.caveats)

    @property
    def blocked_reasons(self) -> tuple[Caution, ...]:
        """The distinct reasons among the blocked metrics."""
        return distinct(self.blocked.values())

    def __str__(self) -> str:
        reasons = ", ".join(reason.code for reason in self.reasons)
        return f"{self.level}, scope {self.scope}" + (f" ({reasons})" if reasons else "")


@dataclass(slots=True)
class _Findings:
    """What the checks collect."""

    refused: list[tuple[str, Caution]] = field(default_factory=list)
    blocked: dict[str, tuple[str, Caution]] = field(default_factory=dict)
    caveats: list[Caution] = field(default_factory=list)
    modifiers: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def block(self, factor: str, metrics: Iterable[str], said: Caution) -> None:
        self.blocked.update({metric: (factor, said) for metric in metrics})


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
    The facts of an arm are those of the campaign file, then of its devices, then of its logs. An
    override turns a refusal of one factor into the modifier `confounded: <factor>`.
    """
    campaign = measured.campaign
    names = (spec.baseline, str(spec.candidate))
    arms = (campaign.arms[names[0]], campaign.arms[names[1]])
    facts = [[f for f in summary.facts.values() if f.run.arm == name] for name in names]
    treatment = tuple(spec.treatment) or tuple(
        key for key in DEVICE_BUNDLE if differ(*both(measured, names, key))
    )
    found = _Findings()
    _models(measured, names, treatment, found)
    _refusing(measured, names, treatment, found)
    for name in names:
        said = identity.get(name, ())
        found.refused += [("gpu", c) for c in said if c.code in BLOCKING_IDENTITY_CODES]
        found.caveats += [c for c in said if c.code not in BLOCKING_IDENTITY_CODES]
        _memory(measured, name, bool(facts[names.index(name)]), found)
    _systems(measured, spec, names, treatment, found)
    _stated_facts(measured, names, treatment, facts, found)
    _definitions(facts, found)
    _client_places(arms, found)
    if arms[0].sampling != arms[1].sampling:
        found.block(
            "sampling", LENGTH_BOUND, _differs("sampling", arms[0].sampling, arms[1].sampling)
        )
    _same_logs(facts, found)
    quality = _quality(measured, names, treatment, found)
    _apply_overrides(spec, found)
    same_start = any(_shares_start(f) for f in facts)
    _circumstances(measured, spec, facts, same_start, found)
    cards = (_n_cards(facts[0]), _n_cards(facts[1]))
    scope: Scope = "cards"
    if found.differing:
        scope = "systems"
    elif min(cards) >= MODELS_FROM_CARDS:
        scope = "models"
    else:
        found.modifiers.append("this card only")
        found.caveats.append(caution("this_card_only"))
        if min(len(set(arm.cards)) // arm.gpus for arm in arms) >= MODELS_FROM_CARDS:
            found.caveats.append(caution("cards_not_mapped"))
    found.caveats += [c for c in measured.cautions if c.values.get("arm") in names]
    level: Literal["comparable", "caveats", "not comparable"] = "comparable"
    if found.refused:
        level = "not comparable"
    elif found.caveats or found.blocked:
        level = "caveats"
    return Comparability(
        level=level, scope=scope, treatment=treatment,
        refused=distinct(c for _, c in found.refused), caveats=distinct(found.caveats),
        blocked={metric: said for metric, (_, said) in found.blocked.items()},
        modifiers=tuple(dict.fromkeys(found.modifiers)), differing=tuple(found.differing),
        same_start=same_start, cards=cards, quality=quality,
    )  # fmt: skip


def _differs(factor: str, baseline: Any, candidate: Any, code: str = "factor_differs") -> Caution:
    return caution(code, factor=factor, baseline=shown(baseline), candidate=shown(candidate))


def _models(
    measured: Measured, names: tuple[str, str], treatment: Sequence[str], found: _Findings
) -> None:
    campaign = measured.campaign
    a, b = campaign.model_of(names[0]), campaign.model_of(names[1])
    if "model" in treatment or a is None or b is None:
        return
    follows = _follows_shape(a, b, treatment)
    for key in ("name", "id", "revision", "parameters", "weight_bits", "kv_bits", *MODEL_SHAPE):
        if key in treatment or ("precision" in treatment and key in ("weight_bits", "name", "id")):
            continue
        if key in follows or ("kv_dtype" in treatment and key == "kv_bits"):
            continue
        if differ(getattr(a, key), getattr(b, key)):
            said = _differs(f"model.{key}", getattr(a, key), getattr(b, key), "refused_factor")
            found.refused.append(("model", said))


def _follows_shape(a: ModelSpec, b: ModelSpec, treatment: Sequence[str]) -> tuple[str, ...]:
    """Name what must differ between two models because their shape is the question.

    Another depth is another name and another number of weights; but the weights outside the layers
    stay, so their number grows by at most the layers' ratio. More than that is another model.
    """
    if not any(key in treatment and differ(getattr(a, key), getattr(b, key))
               for key in MODEL_SHAPE):  # fmt: skip
        return ()
    if a.layers and b.layers and a.parameters and b.parameters:
        depth, weights = b.layers / a.layers, b.parameters / a.parameters
        if "layers" in treatment and not min(1.0, depth) <= weights <= max(1.0, depth):
            return ("name", "id")
    return ("name", "id", "parameters")


def _refusing(
    measured: Measured, names: tuple[str, str], treatment: Sequence[str], found: _Findings
) -> None:
    for key in _REFUSING:
        a, b = both(measured, names, key)
        if key not in treatment and differ(a, b):
            found.refused.append((key, _differs(key, a, b, "refused_factor")))


def _memory(measured: Measured, name: str, ran: bool, found: _Findings) -> None:
    """Refuse an arm that ran although its weights alone are more than its cards hold."""
    need = memory_need(measured.campaign, name, None)
    if ran and need.fits is False and need.weights and need.memory:
        found.refused.append(
            ("memory", caution("hidden_offload", arm=name, weights_gb=need.weights / 1e9, kv_gb=0.0,
                               memory_gb=need.memory / 1e9))
        )  # fmt: skip


def _systems(
    measured: Measured, spec: ComparisonSpec, names: tuple[str, str], treatment: Sequence[str],
    found: _Findings,
) -> None:  # fmt: skip
    """Collect what makes the comparison one of systems, with a sentence for each."""
    arms = tuple(measured.campaign.arms[name] for name in names)
    factors = sorted({*arms[0].factors, *arms[1].factors})
    # Where the device is not the question, a difference in it widens the scope.
    keys = [*(DEVICE_BUNDLE if spec.treatment else ()), *_SCOPE, *factors]
    differing = []
    for key in dict.fromkeys(keys):
        if key in treatment:
            continue
        a, b = both(measured, names, key)
        if differ(a, b):
            differing.append(key)
        elif unknown(a) != unknown(b):
            found.unknown.append(key)
    if (spec.mode or measured.campaign.mode) == "each_tuned":
        tuned = [key for key in differing if key in _TUNABLE]
        differing = [key for key in differing if key not in tuned]
        found.caveats.append(caution("each_tuned", factors=", ".join(tuned) or "–"))
    for key in differing:
        found.caveats.append(_differs(key, *both(measured, names, key)))
        found.modifiers.append(f"confounded: {key}")
    found.differing += differing


def _stated_facts(
    measured: Measured, names: tuple[str, str], treatment: Sequence[str],
    facts: Sequence[Sequence[RunFacts]], found: _Findings,
) -> None:  # fmt: skip
    """Compare what is only a caveat, and list what nobody recorded."""
    tools = _tools(facts)
    if tools[0] and tools[1] and tools[0] != tools[1]:
        found.modifiers.append("confounded: client")
        found.caveats.append(
            caution("client_differs", baseline=", ".join(sorted(tools[0])),
                    candidate=", ".join(sorted(tools[1])))
        )  # fmt: skip
    for key in _CAVEAT:
        if key in treatment or (key == "client_version" and tools[0] != tools[1]):
            continue
        if key in ("model_id", "tokenizer") and "model" in treatment:
            continue
        if key == "engine_version" and "engine" in (*treatment, *found.differing):
            continue  # two engines have two versions
        a, b = both(measured, names, key)
        if differ(a, b):
            found.caveats.append(_differs(key, a, b))
            found.modifiers.append(f"confounded: {key}")
    missing = [
        key for key in _WORTH_KNOWING
        if key not in treatment and any(map(unknown, both(measured, names, key)))
    ]  # fmt: skip
    missing = list(dict.fromkeys([*missing, *found.unknown]))
    if missing:
        found.caveats.append(caution("unchecked", what=", ".join(missing)))
        found.modifiers.append("unchecked: " + ", ".join(missing))


def _tools(facts: Sequence[Sequence[RunFacts]]) -> tuple[set[str], set[str]]:
    held = [
        {str(f.run.stored.info.get("tool") or f.run.stored.info["source_format"]) for f in arm}
        for arm in facts
    ]
    return held[0], held[1]


def _definitions(facts: Sequence[Sequence[RunFacts]], found: _Findings) -> None:
    """Block TTFT or E2E where the clocks of the two arms stop at different events."""
    touched = {"ttft_def": ("ttft_s", "scheduling_excess_s"), "e2e_def": ("e2e_s",)}
    for key, metrics in touched.items():
        known = [{f.run.stored.info.get(key) for f in arm} for arm in facts]
        if not all(known):
            continue
        if any(values & {None, "unknown"} for values in known):
            if known[0] != known[1]:
                found.caveats.append(caution("definition_unknown", definition=key))
        elif known[0] != known[1]:
            said = caution("definition_differs", definition=key, baseline=_listed(known[0]),
                           candidate=_listed(known[1]))  # fmt: skip
            # Content first or reasoning first is one event where no model reasons.
            if key == "ttft_def" and known[0] | known[1] <= {
                "first_content", "first_content_or_reasoning"
            }:  # fmt: skip
                found.caveats.append(said)
            else:
                found.block(key, metrics, said)


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(sorted(map(str, values)))


def _client_places(arms: Pair, found: _Findings) -> None:
    places = [arm.client.place if arm.client else None for arm in arms]
    trips = [arm.client.rtt_s if arm.client else None for arm in arms]
    if places[0] and places[1] and places[0] != places[1] and None in trips:
        said = caution("client_place_differs", baseline=places[0], candidate=places[1])
        found.block("client_place", ("ttft_s", "e2e_s"), said)


def _same_logs(facts: Sequence[Sequence[RunFacts]], found: _Findings) -> None:
    ids = [{f.run.run_id for f in arm} for arm in facts]
    shared = ids[0] & ids[1]
    if shared:
        path = min(f.run.path for f in facts[0] if f.run.run_id in shared)
        found.refused.append(("runs", caution("same_log_in_both_arms", path=path)))


def _quality(
    measured: Measured, names: tuple[str, str], treatment: Sequence[str], found: _Findings
) -> Caution | None:
    """Where precision or kernels differ, speed is only half of the answer."""
    touching = ("precision", "kv_dtype", "kernels", "weight_bits")
    different = [key for key in ("precision", "kv_dtype", "kernels")
                 if differ(*both(measured, names, key))]  # fmt: skip
    if not different and not set(touching) & set(treatment):
        return None
    scores = [measured.campaign.arms[name].quality for name in names]
    if scores[0] is None or scores[1] is None:
        lacking = [name for name, held in zip(names, scores, strict=True) if held is None]
        said = caution("quality_unknown", arm=", ".join(lacking))
        found.modifiers.append("quality unknown")
    else:
        said = caution(
            "quality_stated", baseline=scores[0].score, candidate=scores[1].score,
            n_baseline=scores[0].n or "?", n_candidate=scores[1].n or "?",
            source=" / ".join(dict.fromkeys(s.source or "?" for s in scores if s)),
        )  # fmt: skip
    found.caveats.append(said)
    return said


def _apply_overrides(spec: ComparisonSpec, found: _Findings) -> None:
    for factor, reason in spec.override.items():
        refused = [(f, c) for f, c in found.refused if f != factor]
        blocked = {m: (f, c) for m, (f, c) in found.blocked.items() if f != factor}
        if len(refused) < len(found.refused) or len(blocked) < len(found.blocked):
            found.caveats.append(caution("overridden", factor=factor, reason=reason))
            found.modifiers.append(f"confounded: {factor}")
        found.refused, found.blocked = refused, blocked


def _circumstances(
    measured: Measured, spec: ComparisonSpec, facts: Sequence[Sequence[RunFacts]], same_start: bool,
    found: _Findings,
) -> None:  # fmt: skip
    """Say in which order and under which plan the runs were made."""
    design = measured.campaign.design
    order = run_order(facts[0], facts[1])
    if order == "AABB":
        found.caveats.append(caution("not_interleaved"))
    if design.order in ("AABB", "ABAB", "ABBA", "simultaneous") and order not in (
        None,
        design.order,
    ):
        found.caveats.append(caution("order_not_as_planned", planned=design.order, found=order))
    if (spec.paired or design.paired) and order not in (None, "ABBA", "simultaneous"):
        found.caveats.append(caution("paired_without_abba", found=order))
    if same_start:
        found.modifiers.append("same server start")
        found.caveats.append(caution("same_server_start"))
    if measured.campaign.simulated:
        found.caveats.append(caution("simulated"))
    if design.runs_per_arm is None:
        found.caveats.append(caution("runs_not_fixed"))


def _shares_start(facts: Sequence[RunFacts]) -> bool:
    starts = [(f.run.workload, f.run.level_key, f.run.server_start_id) for f in facts]
    return len(set(starts)) < len(starts)


def _n_cards(facts: Sequence[RunFacts]) -> int:
    """Cards (or groups of them) that the runs of an arm are known to be on."""
    known = {f.run.card for f in facts if f.run.card is not None}
    return max(1, len(known))
