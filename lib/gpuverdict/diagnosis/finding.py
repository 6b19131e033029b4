"""A finding: one symptom of one arm with its evidence, and how it is put into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuverdict.diagnosis.situation import Situation
from gpuverdict.text import render

__all__ = ["Finding", "Hit", "finding_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One symptom of one arm: `evidence` by name, and four sentences about it.

    `message` says what binds and why we think so, `confirm` what would confirm it, `remedy` what to
    try first, `check` the measurement that would show it worked. `render` gives them in a language.
    """

    code: str
    arm: str
    workload: str
    level: Mapping[str, float]
    evidence: Mapping[str, Any]
    message: str
    confirm: str
    remedy: str
    check: str

    def __str__(self) -> str:
        return f"{self.arm}: {self.message} {self.remedy}"

    def as_dict(self, lang: str = "en") -> dict[str, Any]:
        """Return plain values, for `verdicts.json` and tables."""
        message, confirm, remedy, check = self.render(lang)
        return {
            "code": self.code,
            "arm": self.arm,
            "workload": self.workload,
            "level": dict(self.level),
            "evidence": dict(self.evidence),
            "message": message,
            "confirm": confirm,
            "remedy": remedy,
            "check": check,
        }

    def render(self, lang: str = "en") -> tuple[str, str, str, str]:
        """Return (message, confirm, remedy, check) in a language."""
        values = {"arm": self.arm, **self.evidence}
        message, remedy = render(self.code, values, lang)
        confirm, check = render(f"{self.code}_proof", values, lang)
        return message, confirm, remedy, check


# How clearly a rule shows, and what it says.
Hit = tuple[float, Finding]


def finding_of(code: str, s: Situation, **evidence: Any) -> Finding:
    """Make the finding of a code: its sentences, filled with the evidence."""
    values = {"arm": s.arm, **evidence}
    message, remedy = render(code, values)
    confirm, check = render(f"{code}_proof", values)
    return Finding(
        code=code, arm=s.arm, workload=s.workload, level=dict(s.level), evidence=evidence,
        message=message, confirm=confirm, remedy=remedy, check=check,
    )  # fmt: skip
