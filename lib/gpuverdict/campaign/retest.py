"""`retest`: an arm against itself in earlier campaigns, which come in as arms of this one.

A driver was updated, a fan failed, a month went by: is this still the same machine? The logs of the
earlier campaign stay where they are, and are read again by the rules of today, so that both sides
of the comparison come from one method.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuverdict.campaign.keys import (
    BESIDE_ROLES,
    LOG_ROLES,
    Arm,
    Campaign,
    ComparisonSpec,
    InputSpec,
    Retest,
)
from gpuverdict.errors import CampaignError

__all__ = ["earlier_arms", "earlier_name", "with_earlier_arms"]


def earlier_name(arm: str, campaign: str) -> str:
    """Return the name of an arm of an earlier campaign.

    Examples
    --------
    >>> earlier_name("card-a", "october")
    'card-a@october'
    """
    return f"{arm}@{campaign}"


def earlier_arms(campaign: Campaign, arm: str) -> list[str]:
    """List what an arm was called in its earlier campaigns, oldest first as they were declared."""
    return [name for name in campaign.arms if name.startswith(earlier_name(arm, ""))]


def with_earlier_arms(
    campaign: Campaign, read: Callable[[Path], Campaign]
) -> tuple[Campaign, list[ComparisonSpec]]:
    """Bring the arms of earlier campaigns into this one, each with its comparison.

    Parameters
    ----------
    campaign : Campaign
        With `retest` entries.
    read : callable
        Path of a campaign file -> Campaign.

    Returns
    -------
    tuple
        The campaign with the earlier arms, and a comparison for each, earlier arm as baseline.

    Raises
    ------
    CampaignError
        For an arm that is missing in either campaign, workloads that were declared otherwise, two
        campaigns of one name, and a campaign that retests itself.
    """
    arms, models = dict(campaign.arms), dict(campaign.models)
    sources, specs, simulated = list(campaign.read_from), [], campaign.simulated
    for number, entry in enumerate(campaign.retest):
        key = f"{campaign.path.name}: retest.{number}"
        _known_arm(campaign, entry.arm, f"{key}.arm")
        for text in entry.earlier:
            path = campaign.root / text
            if path.is_dir():
                path = path / "campaign.yaml"
            if path.resolve() == campaign.path.resolve():
                raise CampaignError(f"{key}.earlier", found="this campaign itself",
                                    expected="an earlier one")  # fmt: skip
            earlier = _read(read, path, text)
            _known_arm(earlier, entry.arm, f"{key}.arm in {text}")
            _same_workloads(campaign, earlier, f"{key}.earlier")
            name = earlier_name(entry.arm, earlier.campaign)
            if name in arms:
                raise CampaignError(
                    f"{key}.earlier", found=f"the campaign {earlier.campaign!r} twice",
                    expected="campaigns of different names",
                    remedy="give each its own `campaign:`",
                )  # fmt: skip
            arm = _moved(earlier, entry.arm, campaign.root)
            model = earlier.model_of(entry.arm)
            if model is not None and model != campaign.model_of(entry.arm):
                models[name] = model
                arm = arm.model_copy(update={"model": name})
            else:
                arm = arm.model_copy(update={"model": campaign.arms[entry.arm].model})
            arms[name] = arm
            simulated |= earlier.simulated
            sources += [one for one in earlier.read_from if one not in sources]
            specs.append(_comparison(entry, name))
    update = {
        "arms": arms, "models": models, "read_from": tuple(sources), "simulated": simulated,
    }  # fmt: skip
    return campaign.model_copy(update=update), specs


def _read(read: Callable[[Path], Campaign], path: Path, text: str) -> Campaign:
    """Read an earlier campaign; what is wrong in it is not to be looked for in this one."""
    try:
        return read(path)
    except CampaignError as problem:
        inside = problem.where.startswith(f"{path.name}:")
        raise CampaignError(
            f"{text}: {problem.where}" if inside else problem.where, found=problem.found,
            expected=problem.expected, remedy=problem.remedy,
        ) from None  # fmt: skip


def _comparison(entry: Retest, name: str) -> ComparisonSpec:
    return ComparisonSpec(
        name=f"{entry.arm}-since-{name.rpartition('@')[2]}", baseline=name, candidate=entry.arm,
        treatment=entry.treatment,
    )  # fmt: skip


def _known_arm(campaign: Campaign, arm: str, key: str) -> None:
    if arm not in campaign.arms:
        raise CampaignError(key, found=f"the arm {arm!r}",
                            expected=f"one of {', '.join(campaign.arms)}")  # fmt: skip


def _same_workloads(campaign: Campaign, earlier: Campaign, key: str) -> None:
    """Refuse other lengths or loads under one name: they would be compared as if equal."""
    mine, theirs = campaign.all_workloads(), earlier.all_workloads()
    for name in mine:
        if name not in theirs:
            raise CampaignError(key, found=f"no workload {name!r} in {earlier.campaign}",
                                expected="the same workloads")  # fmt: skip
        for fact in ("input_tokens", "output_tokens", "load"):
            now, then = getattr(mine[name], fact), getattr(theirs[name], fact)
            if now is not None and then is not None and now != then:
                raise CampaignError(
                    key, found=f"{fact} {then} in {earlier.campaign} and {now} here",
                    expected="the same workload",
                )  # fmt: skip


def _moved(earlier: Campaign, name: str, root: Path) -> Arm:
    """Return an arm whose patterns start from another folder, with its zone made explicit."""
    arm = earlier.arms[name]
    prefix = os.path.relpath(earlier.root, root or ".").replace(os.sep, "/")

    def moved(value: Any) -> Any:
        if isinstance(value, str):
            return value if value.startswith("/") else f"{prefix}/{value}"
        if isinstance(value, InputSpec):
            return value.model_copy(update={"files": moved(value.files)})
        if isinstance(value, dict):
            return {key: moved(item) for key, item in value.items()}
        return None if value is None else tuple(moved(item) for item in value)

    update = {role: moved(getattr(arm, role)) for role in (*LOG_ROLES, *BESIDE_ROLES)}
    own = [entry for entry in earlier.infeasible if entry.arm == name]
    infeasible = (*arm.infeasible, *own)
    zone = arm.time_zone or earlier.time_zone
    return arm.model_copy(update={**update, "infeasible": infeasible, "time_zone": zone})
