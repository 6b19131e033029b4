"""Words for what the frames call by name: metrics, levels, verdicts, modifiers, cautions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from markupsafe import Markup

from gpuverdict.errors import Caution, GpuverdictError
from gpuverdict.schema import METRICS
from gpuverdict.stats import Comparison
from gpuverdict.tables.markup import RatioAxis
from gpuverdict.text import SENTENCES, render, sentence
from gpuverdict.units import format_ratio, format_value

__all__ = [
    "at_level",
    "caution_text",
    "level_name",
    "metric_name",
    "modifier_text",
    "percent",
    "ratio_bar",
    "remedy_text",
    "say",
    "spoken",
    "verdict_word",
]

say = sentence


def spoken(lang: str, code: str, **values: Any) -> str:
    """Render a sentence of the report in a language."""
    return sentence(code, lang, **values)


def metric_name(metric: str, statistic: str = "value", lang: str = "en") -> str:
    """Name a metric with its statistic, as a table heads it.

    Examples
    --------
    >>> metric_name("tpot_s", "p50"), metric_name("tpot_s", "p50", "zh")
    ('TPOT p50', '每 token 时延（TPOT） p50')
    """
    declared = METRICS.get(metric)
    label = metric if declared is None else declared.label_zh if lang == "zh" else declared.label
    return label if statistic == "value" else f"{label} {statistic}"


def level_name(level: Mapping[str, float] | None, lang: str = "en") -> str:
    """Name a level: `16 streams`, `4 req/s`, `batch 8`; a headline is over all levels.

    Examples
    --------
    >>> level_name({"concurrency": 1}), level_name({"rate_requests_per_s": 4.0}), level_name(None)
    ('1 stream', '4 req/s', 'all levels')
    """
    if not level:
        return sentence("level_all", lang)
    (kind, value), *_ = level.items()
    if kind == "rate_requests_per_s":
        return f"{value:g} req/s"
    code = {"concurrency": "level_streams", "batch": "level_batch"}[kind]
    if kind == "concurrency" and value == 1:
        code = "level_one_stream"
    return sentence(code, lang, n=f"{value:g}")


def at_level(level: Mapping[str, float] | None, lang: str = "en") -> str:
    """Say where: `at 16 streams`."""
    return sentence("at_level", lang, level=level_name(level, lang))


def verdict_word(word: str, lang: str = "en") -> str:
    """Translate a verdict word; machines keep the English one."""
    return sentence(f"word_{word.replace(' ', '_')}", lang)


def modifier_text(modifier: str, lang: str = "en") -> str:
    """Say what a modifier means; one that carries a value keeps it."""
    kind, _, detail = modifier.partition(": ")
    code = f"modifier_{kind.replace(' ', '_').replace('-', '_')}"
    if code in SENTENCES:
        return sentence(code, lang, detail=detail)
    return modifier


def caution_text(caution: Caution, lang: str = "en") -> str:
    """Render the message of a caution in a language."""
    return _rendered(caution, lang)[0]


def remedy_text(caution: Caution, lang: str = "en") -> str:
    """Render the remedy of a caution in a language; empty where there is none."""
    return _rendered(caution, lang)[1]


def _rendered(caution: Caution, lang: str) -> tuple[str, str]:
    if lang == "en" or caution.code not in SENTENCES:
        return caution.message, caution.remedy
    try:
        return render(caution.code, dict(caution.values), lang)
    except GpuverdictError:
        # A value that only the English template knows: the English sentence is better than none.
        return caution.message, caution.remedy


def percent(share: float | None, digits: int = 0) -> str:
    """Print a share.

    Examples
    --------
    >>> percent(0.152), percent(None), percent(0.0004)
    ('15 %', '–', '0.04 %')
    """
    if share is None:
        return "–"
    value = 100 * share
    if value and abs(value) < 1:
        return f"{value:.2g} %"
    return f"{value:.{digits}f} %"


def spread(values: Iterable[float | None], unit: str) -> str:
    """Print the range of some values as `low to high` in one unit, or the one value."""
    known = sorted(v for v in values if v is not None)
    if not known:
        return "–"
    first, last = format_value(known[0], unit, known[-1]), format_value(known[-1], unit)
    if first == last:
        return last
    return f"{first.rsplit(' ', 1)[0]}–{last}"


def ratio_bar(axis: RatioAxis, comparison: Comparison, lang: str) -> Markup:
    """Draw a comparison's ratio on the table's axis, with the words a screen reader says."""
    c = comparison
    return axis.bar(
        c.ratio,
        c.low,
        c.high,
        margin=c.margin,
        word=c.verdict,
        label=spoken(lang, "bar_label", ratio=format_ratio(c.ratio, c.low, c.high)),
    )
