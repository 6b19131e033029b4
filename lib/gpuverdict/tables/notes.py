"""Notes under a table: what holds for several arms is said once, with all their names."""

from __future__ import annotations

from collections.abc import Iterable

from gpuverdict.errors import Caution
from gpuverdict.tables.words import caution_text, remedy_text, spoken
from gpuverdict.text import SENTENCES, render

__all__ = ["Note", "merged", "noted"]

# An arm, and a sentence with a mark where the arm stands; a note of no arm has no name.
Note = tuple[str, str]
_PLACE = "\0"


def noted(arm: str, what: Caution | str, lang: str) -> Note:
    """Write a caution or a sentence as a note of an arm."""
    if isinstance(what, Caution):
        if what.values.get("arm") == arm and what.code in SENTENCES:
            said = render(what.code, {**what.values, "arm": _PLACE}, lang)
            return arm, " ".join(said).strip()
        what = f"{caution_text(what, lang)} {remedy_text(what, lang)}".strip()
    return arm, spoken(lang, "note_of_arms", arms=_PLACE, text=what)


def merged(notes: Iterable[Note], lang: str) -> list[str]:
    """Give each sentence once, in order, with the arms that it holds for.

    Examples
    --------
    >>> merged([noted("a", "no trace", "en"), noted("b", "no trace", "en")], "en")
    ['a, b: no trace']
    """
    found: dict[str, list[str]] = {}
    for arm, text in notes:
        arms = found.setdefault(text, [])
        if arm not in arms:
            arms.append(arm)
    joint = spoken(lang, "list_joint")
    return [text.replace(_PLACE, joint.join(arms)) for text, arms in found.items()]
