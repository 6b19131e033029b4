"""Every sentence exists in both languages and asks for the same values."""

from __future__ import annotations

import string

import pytest

from gpuverdict.text import LANGUAGES, SENTENCES, render


def fields(template: str) -> dict[str, str]:
    """Name of each value of a template, with its format."""
    parts = string.Formatter().parse(template)
    return {name.split(".")[0].split("[")[0]: spec or "" for _, name, spec, _ in parts if name}


def example(spec: str) -> object:
    return 1.5 if spec[-1:] in tuple("efgEFG%") else 3 if spec[-1:] in tuple("dxn,") else "x"


@pytest.mark.parametrize("code", sorted(SENTENCES))
def test_a_code_renders_in_every_language(code):
    languages = SENTENCES[code]
    assert set(languages) == set(LANGUAGES)
    wanted = {}
    for message, remedy in languages.values():
        wanted |= fields(message) | fields(remedy)
    values = {name: example(spec) for name, spec in wanted.items()}
    # A joint between two sentences may be nothing in one language, never in all.
    assert any(render(code, values, lang)[0] for lang in LANGUAGES)


@pytest.mark.parametrize("code", sorted(SENTENCES))
def test_both_languages_say_the_same_values(code):
    messages = {
        lang: set(fields(message) | fields(remedy))
        for lang, (message, remedy) in SENTENCES[code].items()
    }
    assert messages["en"] == messages["zh"]
