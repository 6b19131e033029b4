"""What a person did wrong in a campaign file, in a person's words, with the way out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ruamel.yaml.error import YAMLError

from gpuverdict.errors import CampaignError

__all__ = ["no_campaign", "phrase", "yaml_fault"]

# Words of the YAML reader, and what to do about them.
_REMEDIES = (
    (re.compile(r"'\\t'"), "indent with spaces, not with tabs"),
    (re.compile(r"could not find expected ':'"),
     "end a key with a colon and a blank; the fault may be one line above"),
    (re.compile(r"mapping values are not allowed"), "put a value that holds a colon in quotes"),
)  # fmt: skip
# The braces of a bare pattern in a list are read as YAML.
_BARE_PATTERN = re.compile(r"\[.*\{\w+\}")
_PHRASES = {
    "a valid dictionary": "a mapping, such as {p95: 0.5}",
    "a valid list": "a list, such as [a, b]",
    "a valid tuple": "a list, such as [a, b]",
}


def yaml_fault(path: Path, text: str, problem: YAMLError) -> CampaignError:
    """Say where a file stops being YAML, and what people do there."""
    mark = getattr(problem, "problem_mark", None)
    where = f"{path}:{mark.line + 1}" if mark else str(path)
    reason = str(getattr(problem, "problem", None) or str(problem).splitlines()[0])
    line = text.splitlines()[mark.line] if mark and mark.line < text.count("\n") else ""
    remedy = next((said for words, said in _REMEDIES if words.search(reason)), "")
    if _BARE_PATTERN.search(line):
        remedy = 'put a pattern with {level} in quotes: ["c{level}.json"]'
    return CampaignError(
        where, found=reason.removeprefix("found "), expected="valid YAML 1.2", remedy=remedy
    )


def no_campaign(path: Path, raw: dict[str, Any]) -> CampaignError:
    """Refuse a file that holds keys of something else, such as a log."""
    keys = ", ".join(repr(str(key)) for key in list(raw)[:3]) or "no key"
    return CampaignError(
        path, found=f"{keys} and no `arms:`", expected="a campaign file",
        remedy="`gpuverdict inspect` says what a log is; `gpuverdict new DIR` writes a campaign",
    )  # fmt: skip


def phrase(message: str) -> str:
    """Write what was expected of a value in the file's own terms.

    Examples
    --------
    >>> phrase("Input should be a valid integer, unable to parse string as an integer")
    'a valid integer'
    """
    message = message.removeprefix("Value error, ").removeprefix("Input should be ")
    message = re.split(", unable to parse| or instance of | or object to ", message)[0]
    message = re.sub(
        r"^(Tuple|List) should have (at least \d+) items? .*", r"\2 in the list", message
    )
    return _PHRASES.get(message, message)
