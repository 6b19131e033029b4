"""Every sentence exists in both languages, with the same values, and can be filled."""

from __future__ import annotations

import ast
import re
import string
from pathlib import Path

import pytest

import gpuverdict
from gpuverdict.errors import ParameterError
from gpuverdict.text import LANGUAGES, SENTENCES, render, sentence

# Chinese sentences need no blank between them; only Chinese readers need the notice on fonts.
ONE_SIDED = {"sentence_joint", "figure_font_notice"}

ROOT = Path(__file__).resolve().parents[2]
ASKS = {"sentence", "caution"}
CHINESE = re.compile(r"[一-鿿]")


class Anything(float):
    """A value that fits every format of a template."""

    def __format__(self, spec: str) -> str:
        if spec[-1:] in ("d", "x"):
            return format(int(self), spec)
        return format(float(self), spec) if spec else "1"

    def __str__(self) -> str:
        return "1"


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


@pytest.mark.parametrize("code", sorted(SENTENCES))
def test_both_languages_fill_from_the_same_values(code: str) -> None:
    languages = SENTENCES[code]
    assert set(languages) == set(LANGUAGES)
    wanted = {lang: fields(m) | fields(r) for lang, (m, r) in languages.items()}
    values = {name: Anything(1) for name in wanted["en"] | wanted["zh"]}
    # What the English sentence is made from must be enough for the Chinese one.
    assert wanted["zh"] <= wanted["en"], code
    for lang in LANGUAGES:
        render(code, values, lang)
    if code not in ONE_SIDED:
        assert bool(languages["en"][0]) == bool(languages["zh"][0]), code
    assert bool(languages["en"][1]) == bool(languages["zh"][1]), code


@pytest.mark.parametrize("code", sorted(SENTENCES))
def test_chinese_is_chinese(code: str) -> None:
    message = SENTENCES[code]["zh"][0]
    words = re.sub(r"\{[^{}]*\}", "", message)
    # A sentence with words of its own is translated; symbols and field terms alone may stay.
    if len(re.findall(r"[A-Za-z]{3,}", words)) >= 4:
        assert CHINESE.search(words), message


def test_every_sentence_that_is_asked_for_exists() -> None:
    asked = 0
    for path in Path(gpuverdict.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in ASKS:
                continue
            code = node.args[0] if node.args else None
            if not isinstance(code, ast.Constant):
                continue
            asked += 1
            where = f"{path.name}:{node.lineno}: {code.value}"
            assert code.value in SENTENCES, where
            given = {keyword.arg for keyword in node.keywords}
            if None not in given:
                message, remedy = SENTENCES[code.value]["en"]
                assert fields(message) | fields(remedy) <= given, where
    assert asked > 300


def test_unknown_codes_and_languages_are_refused() -> None:
    with pytest.raises(ParameterError, match="no_such_code"):
        sentence("no_such_code")
    with pytest.raises(ParameterError, match="lang"):
        sentence("empty_value", "fr", name="x")
    with pytest.raises(ParameterError, match="name"):
        sentence("empty_value")


# The words of a first screen by phase and verdict, `{kind}_{word}` in `opening`.
_CLAUSES = re.compile(
    r"(prefill|decode|throughput|also)_"
    r"(faster|slower|equivalent|inconclusive|not_comparable|single_run)"
)


def test_every_sentence_is_asked_for() -> None:
    """A sentence that no code, template or notebook names, or can build, is dead."""
    root = Path(gpuverdict.__file__).parent
    text = "".join(p.read_text("utf-8") for p in sorted((root / "templates").rglob("*.*")))
    text += "".join(p.read_text("utf-8") for p in sorted((ROOT / "notebooks").glob("*.ipynb")))
    built = [re.compile(re.escape(head) + r"\w+") for head in re.findall(r"'(\w+_)' ~", text)]
    for path in sorted(root.rglob("*.py")):
        if path.parent.name == "text":
            continue
        text += path.read_text("utf-8")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else None for p in node.values]
                if any(p is not None and re.fullmatch(r"\w*[a-z]\w*", str(p)) for p in parts):
                    pattern = "".join(".+" if p is None else re.escape(str(p)) for p in parts)
                    built.append(re.compile(pattern))
    named = set(re.findall(r"\w+", text))
    dead = [
        code
        for code in SENTENCES
        if code not in named
        and not _CLAUSES.fullmatch(code)
        and not any(pattern.fullmatch(code) for pattern in built)
    ]
    assert dead == []
