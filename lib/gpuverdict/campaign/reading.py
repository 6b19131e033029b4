"""Reading and validating `campaign.yaml`, with errors a person can act on."""

from __future__ import annotations

import difflib
import itertools
import re
import typing
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode

from gpuverdict.campaign.faults import no_campaign, phrase, yaml_fault
from gpuverdict.campaign.keys import OVERRIDES, Arm, Campaign, ComparisonSpec
from gpuverdict.campaign.placeholder import refuse_placeholders
from gpuverdict.campaign.retest import with_earlier_arms
from gpuverdict.campaign.table import known_keys
from gpuverdict.errors import CampaignError, ParameterError
from gpuverdict.hardware import resolve_gpu
from gpuverdict.schema import METRICS, STATISTICS

__all__ = ["find_comparison", "read_campaign"]

MAX_BYTES = 2**20
MAX_NODES = 100_000
_SAFE_NAME = re.compile(r"^[\w][\w .+\-×@]{0,79}$")


class _Constructor(SafeConstructor):
    """YAML 1.2 with one more rule: digits behind a leading zero are a name, not a number."""

    def construct_yaml_int(self, node: ScalarNode) -> Any:
        text = str(node.value)
        if re.fullmatch(r"[-+]?0\d+", text):
            return text
        return super().construct_yaml_int(node)


_Constructor.add_constructor("tag:yaml.org,2002:int", _Constructor.construct_yaml_int)


def read_campaign(path: str | Path) -> Campaign:
    """Read and validate a campaign file.

    Parameters
    ----------
    path : path
        The file, or a folder that holds a `campaign.yaml`.

    Returns
    -------
    Campaign
        Frozen. `comparisons` is expanded to one entry a pair, each with a unique name.

    Raises
    ------
    CampaignError
        With the key at fault, what was found, what was expected, and for an unknown key the
        nearest known one.

    Examples
    --------
    >>> sorted(read_campaign("data/h200/campaign.yaml").arms)[:2]
    ['card-a', 'card-b']
    """
    campaign = _read_alone(Path(path))
    if not campaign.retest:
        return campaign
    # What an earlier campaign was itself held against is not asked here.
    campaign, again = with_earlier_arms(campaign, _read_alone)
    pairs = _named(campaign, [*campaign.comparisons, *again])
    return campaign.model_copy(update={"comparisons": tuple(pairs)})


def _read_alone(path: Path) -> Campaign:
    """Read a campaign file without the earlier campaigns it names."""
    if path.is_dir():
        path = path / "campaign.yaml"
    raw = _load(path)
    if not isinstance(raw, dict):
        raise CampaignError(
            path, found="no mapping at the top", expected="keys such as `campaign:`"
        )
    # Keys of a campaign may be mistyped; a file without any of the three is something else.
    if not {"arms", "campaign", "comparisons"} & {*raw}:
        raise no_campaign(path, raw)
    refuse_placeholders(path, raw)
    for reserved in ("root", "path", "read_from"):
        if reserved in raw:
            raise CampaignError(
                f"{path.name}: {reserved}", found="a reserved key", expected="no such key"
            )
    place = {"root": path.parent, "path": path, "read_from": (path,)}
    try:
        campaign = Campaign.model_validate({**raw, **place})
    except ValidationError as problem:
        raise _explain(path, problem) from None
    _check_names(campaign)
    _check_words(campaign)
    return campaign.model_copy(update={"comparisons": tuple(_pairs(campaign))})


def _load(path: Path) -> Any:
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise CampaignError(
            path, found=str(problem.strerror).lower(), expected="a campaign.yaml",
            remedy="`gpuverdict new DIR` writes one to fill in",
        ) from None  # fmt: skip
    if len(data) > MAX_BYTES:
        raise CampaignError(path, found=f"{len(data):,} bytes", expected=f"at most {MAX_BYTES:,}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CampaignError(path, found="bytes that are not UTF-8", expected="UTF-8",
                            remedy="save the file as UTF-8") from None  # fmt: skip
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 2)
    reader.Constructor = _Constructor
    reader.max_depth = 64
    try:
        value = reader.load(text)
    except YAMLError as problem:
        raise yaml_fault(path, text, problem) from None
    except (RecursionError, ValueError) as problem:
        raise CampaignError(path, found=f"YAML that cannot be read ({problem})") from None
    _count_nodes(path, value)
    return value


def _count_nodes(path: Path, value: Any) -> None:
    """Refuse a file whose aliases unfold to more than a campaign can need."""
    count, stack = 0, [value]
    while stack:
        item = stack.pop()
        count += 1
        if count > MAX_NODES:
            raise CampaignError(path, found="aliases that unfold without end",
                                expected=f"at most {MAX_NODES:,} values")  # fmt: skip
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            stack.extend(item)


def _explain(path: Path, problem: ValidationError) -> CampaignError:
    errors = problem.errors()
    # An unknown key explains more than what follows from it.
    error = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    loc = [str(part) for part in error["loc"] if not _is_branch(part)]
    where = f"{path.name}: {'.'.join(loc)}"
    if error["type"] == "extra_forbidden":
        known = sorted(known_keys(loc[:-1]))
        near = nearest(loc[-1], known)
        return CampaignError(
            where, found=f"the unknown key {loc[-1]!r}",
            expected=repr(near) if near else f"one of {', '.join(known)}",
            remedy="correct the key" if near else "remove it",
        )  # fmt: skip
    if error["type"] == "missing":
        return CampaignError(where, found="nothing", expected="this key", remedy="add it")
    found = repr(error.get("input"))
    return CampaignError(where, found=found if len(found) < 80 else found[:77] + "...",
                         expected=phrase(error["msg"]))  # fmt: skip


def _is_branch(part: Any) -> bool:
    """Tell pydantic's names of union branches from keys of the file."""
    return isinstance(part, str) and bool(
        re.search(r"[\[\]()]|^(InputSpec|GpuDescription|str|literal|tuple|function)", part)
    )


def nearest(word: str, known: typing.Iterable[str]) -> str | None:
    """Return the known word a person most likely meant, or None.

    Examples
    --------
    >>> nearest("modle", ["mode", "model"])
    'model'
    """
    candidates = sorted(known)
    swapped = [k for k in candidates if sorted(k) == sorted(word)]
    close = swapped or difflib.get_close_matches(word, candidates, n=1, cutoff=0.5)
    return close[0] if close else None


def _check_names(campaign: Campaign) -> None:
    for key, name in [("campaign", campaign.campaign), *[("arms", arm) for arm in campaign.arms]]:
        if not _SAFE_NAME.match(name) or name.strip(". ") == "":
            raise CampaignError(
                f"{campaign.path.name}: {key}", found=repr(name)[:80],
                expected="letters, digits, blanks and . + - _ @ (it names folders)",
            )  # fmt: skip
    if campaign.model is None and not campaign.models:
        raise CampaignError(
            f"{campaign.path.name}: model", found="nothing", expected="`model:` or `models:`"
        )
    if campaign.model is not None and campaign.models:
        raise CampaignError(f"{campaign.path.name}: models", found="both `model` and `models`",
                            expected="one of them")  # fmt: skip
    if campaign.workload is not None and campaign.workloads:
        raise CampaignError(
            f"{campaign.path.name}: workloads",
            found="both `workload` and `workloads`",
            expected="one of them",
        )
    for name, arm in campaign.arms.items():
        if campaign.models and (arm.model is None or arm.model not in campaign.models):
            raise CampaignError(f"{campaign.path.name}: arms.{name}.model", found=repr(arm.model),
                                expected=f"one of {', '.join(campaign.models)}")  # fmt: skip
        if not campaign.models and arm.model is not None:
            raise CampaignError(f"{campaign.path.name}: arms.{name}.model", found=repr(arm.model),
                                expected="no such key without `models:`")  # fmt: skip
        model = campaign.model_of(name)
        if arm.precision is None and (model is None or model.weight_bits is None):
            raise CampaignError(
                f"{campaign.path.name}: arms.{name}.precision", found="nothing",
                expected="the precision of the weights, such as bf16",
                remedy="no request log says it; add it",
            )  # fmt: skip
        try:
            resolve_gpu(arm.gpu)
        except ParameterError as problem:
            raise CampaignError(
                f"{campaign.path.name}: arms.{name}.gpu", found=problem.found,
                expected=problem.expected, remedy=problem.remedy,
            ) from None  # fmt: skip
    for entry in campaign.infeasible:
        if entry.arm not in campaign.arms:
            raise CampaignError(f"{campaign.path.name}: infeasible", found=f"the arm {entry.arm!r}",
                                expected=f"one of {', '.join(campaign.arms)}")  # fmt: skip


def _check_words(campaign: Campaign) -> None:
    zones = [("time_zone", campaign.time_zone)]
    zones += [(f"arms.{n}.time_zone", a.time_zone) for n, a in campaign.arms.items()]
    for key, zone in zones:
        if zone is None:
            continue
        try:
            ZoneInfo(zone)
        except (KeyError, OSError, ValueError):  # unknown, a folder of zones, no name of a zone
            raise CampaignError(
                f"{campaign.path.name}: {key}",
                found=repr(zone),
                expected="an IANA zone such as Europe/Berlin or UTC",
            ) from None
    slos = [("slo", campaign.slo)]
    slos += [(f"workloads.{n}.slo", w.slo or {}) for n, w in campaign.all_workloads().items()]
    for key, slo in slos:
        for metric, limits in slo.items():
            for statistic in limits:
                _check_metric(campaign, f"{key}.{metric}", f"{metric}.{statistic}")
    for name in campaign.margins:
        _check_metric(campaign, "margins", name)
    for name in campaign.primary:
        _check_metric(campaign, "primary", name)


def _check_metric(campaign: Campaign, key: str, name: str) -> None:
    metric, _, statistic = name.partition(".")
    if metric not in METRICS:
        near = nearest(metric, METRICS)
        raise CampaignError(f"{campaign.path.name}: {key}", found=f"the metric {metric!r}",
                            expected=near or ", ".join(METRICS))  # fmt: skip
    if statistic and statistic not in STATISTICS:
        raise CampaignError(f"{campaign.path.name}: {key}", found=f"the statistic {statistic!r}",
                            expected=f"one of {', '.join(STATISTICS)}")  # fmt: skip


def _pairs(campaign: Campaign) -> list[ComparisonSpec]:
    specs: list[ComparisonSpec] = []
    if campaign.comparisons == "all":
        specs = [
            ComparisonSpec(baseline=a, candidate=b)
            for a, b in itertools.combinations(campaign.arms, 2)
        ]
    else:
        for spec in campaign.comparisons:
            if spec.candidate is not None:
                specs.append(spec)
            else:
                specs += [
                    spec.model_copy(update={"candidate": other, "against": (),
                                            "name": f"{spec.name}-{other}" if spec.name else None})
                    for other in spec.against
                ]  # fmt: skip
    return _named(campaign, specs)


def _named(campaign: Campaign, specs: list[ComparisonSpec]) -> list[ComparisonSpec]:
    """Check comparisons against the arms, and give each a name of its own."""
    named: list[ComparisonSpec] = []
    for spec in specs:
        candidate = str(spec.candidate)
        for role, arm in (("baseline", spec.baseline), ("candidate", candidate)):
            if arm not in campaign.arms:
                near = nearest(arm, campaign.arms)
                raise CampaignError(
                    f"{campaign.path.name}: comparisons.{role}", found=f"the arm {arm!r}",
                    expected=near or f"one of {', '.join(campaign.arms)}",
                )  # fmt: skip
        if spec.baseline == candidate:
            raise CampaignError(f"{campaign.path.name}: comparisons", found=f"{candidate!r} twice",
                                expected="two different arms")  # fmt: skip
        name = spec.name or f"{candidate}-vs-{spec.baseline}"
        if not _SAFE_NAME.match(name):
            raise CampaignError(
                f"{campaign.path.name}: comparisons.name",
                found=repr(name)[:80],
                expected="letters, digits, blanks and . + - _ @ (it names a folder)",
            )
        _check_treatment(campaign, spec, name)
        _check_override(campaign, spec, name)
        named.append(spec.model_copy(update={"name": name}))
    names = [str(s.name).casefold() for s in named]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice:
        raise CampaignError(f"{campaign.path.name}: comparisons", found=f"the name {twice!r} twice",
                            expected="a name of its own for each")  # fmt: skip
    return named


def find_comparison(campaign: Campaign, name: str | None) -> ComparisonSpec:
    """Find a comparison by name (the first one without a name).

    Raises
    ------
    ParameterError
        With the nearest name, or all of them.
    """
    specs = [spec for spec in campaign.comparisons if isinstance(spec, ComparisonSpec)]
    if not specs:
        raise ParameterError(
            "comparison", found="no comparison in the campaign", expected="one or more"
        )
    if name is None:
        return specs[0]
    for spec in specs:
        if spec.name == name:
            return spec
    names = [str(spec.name) for spec in specs]
    near = difflib.get_close_matches(name, names, n=1)
    raise ParameterError(
        "comparison", found=repr(name)[:80],
        expected=near[0] if near else ", ".join(names)[:400],
    )  # fmt: skip


def _check_treatment(campaign: Campaign, spec: ComparisonSpec, name: str) -> None:
    a, b = campaign.arms[spec.baseline], campaign.arms[str(spec.candidate)]
    for key in spec.treatment:
        if key not in Arm.model_fields and key not in a.factors and key not in b.factors:
            raise CampaignError(
                f"{campaign.path.name}: comparisons.{name}.treatment", found=repr(key),
                expected="a key of the arms or of their `factors`",
            )  # fmt: skip
        if factor_value(a, key) == factor_value(b, key):
            raise CampaignError(
                f"{campaign.path.name}: comparisons.{name}.treatment",
                found=f"{key} = {factor_value(a, key)!r} in both arms",
                expected="arms that differ in the treatment",
            )  # fmt: skip


def _check_override(campaign: Campaign, spec: ComparisonSpec, name: str) -> None:
    for factor in spec.override:
        if factor not in OVERRIDES:
            raise CampaignError(
                f"{campaign.path.name}: comparisons.{name}.override", found=repr(factor),
                expected=nearest(factor, OVERRIDES) or f"one of {', '.join(OVERRIDES)}",
            )  # fmt: skip


def factor_value(arm: Arm, key: str) -> Any:
    """Return what an arm says about a factor, wherever it says it."""
    return arm.factors[key] if key in arm.factors else getattr(arm, key, None)
