"""A verdict's own reasoning: numbers, the rule that decided, and where the rule comes from."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from gpuverdict.schema import METRICS
from gpuverdict.stats.arms import compare_arms
from gpuverdict.stats.comparison import Comparison
from gpuverdict.stats.quantiles import quantile
from gpuverdict.text import render, sentence
from gpuverdict.units import format_ratio, format_value

__all__ = ["explain", "shift_function"]

DECILES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def explain(comparison: Comparison, lang: str = "en") -> list[str]:
    """Return a verdict's reasoning as sentences: what was measured, which rule spoke, what is open.

    Examples
    --------
    >>> c = compare_arms([6.0e-3, 6.1e-3, 5.9e-3], [7.0e-3, 7.1e-3, 6.9e-3], metric="tpot_s")
    >>> explain(c)[0]
    'TPOT p50: 3 against 3 runs, 5.999 ms against 7.000 ms, ratio 1.167 [1.126, 1.209].'
    """
    c = comparison
    declared = METRICS.get(c.metric)
    label = c.metric
    if declared is not None:
        label = declared.label_zh if lang == "zh" else declared.label
    if c.statistic != "value":
        label = f"{label} {c.statistic}"
    unit = declared.unit if declared is not None else "count"
    said = [
        sentence(
            "explain_measured",
            lang,
            label=label,
            n_baseline=c.n_baseline,
            n_candidate=c.n_candidate,
            baseline=format_value(c.baseline, unit),
            candidate=format_value(c.candidate, unit),
            ratio=format_ratio(c.ratio, c.low, c.high),
        )
    ]
    if c.p_value is not None:
        said.append(
            sentence(f"null_{c.test.replace(' ', '_')}", lang, label=label)
            + (" " if lang == "en" else "")
            + sentence(
                "explain_test",
                lang,
                p=c.p_value,
                test=c.test,
                df="–" if c.df is None else f"{c.df:.1f}",
            )
        )
    if c.p_adjusted is not None:
        said.append(
            sentence("explain_adjusted", lang, p_adjusted=c.p_adjusted, family=c.family or 0)
        )
    if c.p_permutation is not None:
        said.append(sentence("explain_permutation", lang, p=c.p_permutation))
    code = {
        "equivalent": "explain_equivalent", "not comparable": "explain_not_comparable",
        "inconclusive": "explain_inconclusive",
    }.get(c.verdict, "explain_difference")  # fmt: skip
    said.append(
        sentence(
            code,
            lang,
            verdict=c.verdict,
            alpha=c.alpha,
            margin=c.margin,
            interval90=format_ratio(c.ratio, c.ci90_low, c.ci90_high),
        )
    )
    reasons = (render(reason.code, dict(reason.values), lang) for reason in c.cautions)
    return said + [" ".join(sentences).strip() for sentences in reasons]


def shift_function(
    baseline: Sequence[Sequence[float]],
    candidate: Sequence[Sequence[float]],
    *,
    metric: str,
    levels: Sequence[float] = DECILES,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Compare two arms quantile by quantile, each with its interval over runs.

    Parameters
    ----------
    baseline, candidate : sequence of sequences
        Request values of each run.

    Returns
    -------
    DataFrame
        `quantile, baseline, candidate, ratio, low, high`. Descriptive: only declared quantiles are
        tested, several at once lose their joint confidence.
    """
    rows = []
    for q in levels:
        runs = [[quantile(run, q) for run in arm] for arm in (baseline, candidate)]
        c = compare_arms(
            *runs, metric=metric, statistic="value", margin=0.05, confidence=confidence
        )
        rows.append(
            {"quantile": q, "baseline": c.baseline, "candidate": c.candidate, "ratio": c.ratio,
             "low": c.low, "high": c.high}
        )  # fmt: skip
    return pd.DataFrame(rows)
