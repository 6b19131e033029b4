"""Every sentence a person reads, in English and Chinese, looked up by code and filled with values.

One module an area; each holds `SENTENCES: dict[code, dict[lang, (message, remedy)]]`. Messages are
`str.format` templates over the named values; numbers are formatted in the template. A code exists
in both languages or the test suite fails.
"""

from __future__ import annotations

from string import Formatter
from typing import Any

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.text import (
    capacity,
    comparison,
    devices,
    diagnosis,
    draft,
    explorer,
    logs,
    notebooks,
    phases,
    report,
    server,
    statistics,
    traces,
)

__all__ = ["LANGUAGES", "SENTENCES", "caution", "render", "sentence"]

LANGUAGES = ("en", "zh")

SENTENCES: dict[str, dict[str, tuple[str, str]]] = {}
for _area in (
    logs,
    traces,
    statistics,
    phases,
    diagnosis,
    devices,
    comparison,
    capacity,
    report,
    server,
    draft,
    explorer,
    notebooks,
):
    for _code, _languages in _area.SENTENCES.items():
        if _code in SENTENCES:
            raise ParameterError(_area.__name__, found=f"the code {_code!r} twice")
        SENTENCES[_code] = _languages


class _Writer(Formatter):
    """Format the values of a sentence; a share reads `2.6 %` wherever it stands, as in the tables."""

    def format_field(self, value: Any, format_spec: str) -> str:
        text = str(super().format_field(value, format_spec))
        return f"{text[:-1]} %" if format_spec.endswith("%") else text


_WRITER = _Writer()


def render(code: str, values: dict[str, Any] | None = None, lang: str = "en") -> tuple[str, str]:
    """Render (message, remedy) of a code in a language.

    Raises
    ------
    ParameterError
        For an unknown code or language, or a value the template needs and did not get.

    Examples
    --------
    >>> render("empty_value", {"name": "ttft_s"})[0]
    'ttft_s was not measured.'
    """
    if code not in SENTENCES:
        raise ParameterError("text", found=f"the unknown code {code!r}")
    if lang not in LANGUAGES:
        raise ParameterError("lang", found=repr(lang), expected=" or ".join(LANGUAGES))
    message, remedy = SENTENCES[code][lang]
    try:
        return _WRITER.vformat(message, (), values or {}), _WRITER.vformat(remedy, (), values or {})
    except (KeyError, ValueError, TypeError) as problem:
        raise ParameterError(f"text {code!r}", found=f"no usable value for {problem}") from None


def sentence(code: str, lang: str = "en", **values: Any) -> str:
    """Render only the message of a code."""
    return render(code, values, lang)[0]


def caution(code: str, **values: Any) -> Caution:
    """Make a caution: code and values for machines, English message and remedy rendered.

    Examples
    --------
    >>> caution("empty_value", name="ttft_s").code
    'empty_value'
    """
    message, remedy = render(code, values)
    return Caution(code=code, values=dict(values), message=message, remedy=remedy)
