"""What can go wrong, as values: four exceptions, and the caution that is not one.

An exception means that something could not be read or was asked wrongly; it always prints as one
line that names the file or key, what was found, what was expected and the way out. A `Caution` is
attached to a number that *could* be computed, and travels with it into every table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "CampaignError",
    "Caution",
    "GpuverdictError",
    "LogFormatError",
    "ParameterError",
    "SchemaError",
]


class GpuverdictError(Exception):
    """Base of all errors a user can cause; `str()` is one line.

    Parameters
    ----------
    where : str
        File, `file:line` or configuration key.
    found : str
        What was there.
    expected : str
        What should have been there.
    remedy : str
        The way out.

    Examples
    --------
    >>> print(LogFormatError("a.json", found="an empty file", expected="a benchmark log"))
    a.json: found an empty file, expected a benchmark log
    """

    def __init__(self, where: object, *, found: str, expected: str = "", remedy: str = "") -> None:
        self.where = str(where)
        self.found = found
        self.expected = expected
        self.remedy = remedy
        super().__init__(self._line())

    def _line(self) -> str:
        line = f"{self.where}: found {self.found}"
        if self.expected:
            line += f", expected {self.expected}"
        if self.remedy:
            line += f"; {self.remedy}"
        # One line whatever a log put into it: a control character could forge a second message.
        return "".join(ch if ch.isprintable() else " " for ch in line)

    def __reduce__(self) -> tuple[Any, ...]:
        # joblib moves exceptions between processes; keyword arguments need help to survive that.
        state = (self.where, self.found, self.expected, self.remedy)
        return (_rebuild, (type(self), *state))


def _rebuild(
    kind: type[GpuverdictError], where: str, found: str, expected: str, remedy: str
) -> GpuverdictError:
    return kind(where, found=found, expected=expected, remedy=remedy)


class LogFormatError(GpuverdictError):
    """A log or trace that cannot be read as what it is, or is of no known kind."""


class SchemaError(GpuverdictError):
    """A frame that breaks the canonical schema."""


class ParameterError(GpuverdictError):
    """An argument, a notebook parameter or a command-line value that cannot be used."""


class CampaignError(GpuverdictError):
    """A `campaign.yaml` that is wrong or contradicts the logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """A reservation attached to a number: `code` for machines, `message` and `remedy` for people.

    Made by `gpuverdict.text.caution`, which renders the sentences from code and values.
    """

    code: str
    values: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()

    def as_dict(self) -> dict[str, str]:
        """Return the `{"code", "message", "remedy"}` form of the JSON outputs."""
        return {"code": self.code, "message": self.message, "remedy": self.remedy}
