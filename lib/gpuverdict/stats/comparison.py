"""Two arms, one metric: the ratio with its interval, the test, and the word that is due."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from difflib import get_close_matches
from html import escape
from typing import Any, Literal

import numpy as np

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.schema import METRICS, Metric
from gpuverdict.stats import planning, quantiles, ttests
from gpuverdict.text import caution, sentence
from gpuverdict.units import format_ratio

__all__ = [
    "Comparison",
    "NoiseFloor",
    "check_levels",
    "decided",
    "default_margin",
    "exp_or_none",
    "growth",
    "look_up_metric",
    "stop",
    "with_interval",
]

Verdict = Literal[
    "faster", "slower", "better", "worse", "equivalent", "inconclusive", "not comparable"
]

_LARGEST_LOG = 700.0

# Words that `adjust` takes back when it decides again.
_DECISION_CODES = frozenset(
    {"undecided", "undecided_size_unknown", "undecided_gain", "below_margin", "lost_by_adjustment",
     "no_direction"}
)  # fmt: skip

_THROUGHPUT = frozenset(
    {"output_tokens_per_s", "output_tokens_per_s_per_gpu", "output_tokens_per_s_finished_only",
     "output_tokens_per_s_full_run", "input_tokens_per_s", "requests_per_s"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """SD of a log run statistic over A/A runs of one metric and cell class on the same hardware."""

    sd_log: float
    n: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What two arms say about one metric: size first, then how sure, then the word.

    Attributes
    ----------
    ratio, low, high : float or None
        Candidate over baseline with its interval at `confidence`; `ci90_low`, `ci90_high` are the
        interval of the equivalence test.
    baseline, candidate : float or None
        Geometric means over runs, in the metric's base unit.
    difference, difference_low, difference_high : float or None
        Candidate minus baseline, only where a difference is the estimand (error ratios).
    p_value, p_adjusted, p_permutation : float or None
        None where nothing was tested.
    verdict : str
        `faster`, `slower` (`better`, `worse` for a metric without speed), `equivalent`,
        `inconclusive`, `not comparable`. It speaks of the candidate.
    mde_ratio : float or None
        Smallest true difference this design finds in 80 % of campaigns, as a fraction.
    runs_needed : (int, int) or None
        Runs per arm in all that would find a difference of the size of the margin: with the SD
        as seen, and with its upper 80 % limit. Only for undecided tests.
    sd_log, sd_df : float or None, int or None
        SD over runs of the log statistic (pooled over the arms), for planning.
    n_baseline, n_candidate : int
        Runs, never requests.
    """

    metric: str
    statistic: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    p_value: float | None = None
    p_adjusted: float | None = None
    p_permutation: float | None = None
    verdict: Verdict = "inconclusive"
    modifiers: tuple[str, ...] = ()
    mde_ratio: float | None = None
    runs_needed: tuple[int, int] | None = None
    cautions: tuple[Caution, ...] = ()
    margin: float = 0.05
    n_baseline: int = 0
    n_candidate: int = 0
    baseline: float | None = None
    candidate: float | None = None
    ci90_low: float | None = None
    ci90_high: float | None = None
    df: float | None = None
    se_log: float | None = None
    sd_log: float | None = None
    sd_df: int | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    test: str = "none"
    better: Literal["lower", "higher"] | None = None
    speed: bool = True
    may_be_equivalent: bool = False
    alpha: float = 0.05
    gain_log: float = 0.0
    family: int | None = None

    @property
    def null_hypothesis(self) -> str:
        """What the test assumes until the runs contradict it, as a sentence."""
        label = METRICS[self.metric].label if self.metric in METRICS else self.metric
        if self.statistic != "value":
            label = f"{label} {self.statistic}"
        code = f"null_{self.test.replace(' ', '_')}"
        return sentence(code, label=label)

    def __str__(self) -> str:
        name = self.metric if self.statistic == "value" else f"{self.metric} {self.statistic}"
        parts = [f"{name}: {format_ratio(self.ratio, self.low, self.high)} {self.verdict}"]
        if self.verdict == "equivalent":
            parts.append(f"within {self.margin:.3g}")
        about = [f"n = {self.n_baseline}, {self.n_candidate} runs"]
        if self.p_adjusted is not None:
            about.append(f"adjusted p = {self.p_adjusted:.2g}")
        elif self.p_value is not None:
            about.append(f"p = {self.p_value:.2g}")
        parts.append(f"({'; '.join(about)})")
        if self.modifiers:
            parts.append(f"[{', '.join(self.modifiers)}]")
        return " ".join(parts)

    def _repr_html_(self) -> str:
        return f"<span class='comparison'>{escape(str(self))}</span>"

    def as_row(self) -> dict[str, Any]:
        """Return the comparison as a row of a tidy frame; cautions as their codes."""
        names = [name for name in self.__dataclass_fields__ if name != "cautions"]
        row = {name: getattr(self, name) for name in names}
        row["modifiers"] = list(self.modifiers)
        row["runs_needed"] = list(self.runs_needed) if self.runs_needed else None
        row["cautions"] = [caution.code for caution in self.cautions]
        return row


def default_margin(metric: str, statistic: str = "p50") -> float:
    """Return the difference that is taken to matter in practice, as a fraction.

    Examples
    --------
    >>> default_margin("tpot_s"), default_margin("ttft_s", "p95"), default_margin("ttft_s", "p99")
    (0.03, 0.05, 0.1)
    """
    q = quantiles.statistic_level(statistic)
    single = metric in METRICS and not METRICS[metric].distribution
    if not single and q is not None and q >= 0.99:
        return 0.10
    if not single and q is not None and q > 0.5:
        return 0.05
    return 0.03 if metric in {"tpot_s", "itl_s"} | _THROUGHPUT else 0.05


def look_up_metric(metric: str) -> Metric:
    """Return the declaration of a metric.

    Raises
    ------
    ParameterError
        Naming the nearest declared metric.
    """
    if metric in METRICS:
        return METRICS[metric]
    near = get_close_matches(metric, METRICS, n=1)
    raise ParameterError(
        "metric",
        found=repr(metric),
        expected=f"{near[0]}" if near else f"one of {', '.join(METRICS)}",
    )


def check_levels(margin: float, confidence: float) -> None:
    """Refuse a margin or confidence that cannot be meant.

    Raises
    ------
    ParameterError
        For a margin that is no positive fraction or a confidence outside 0.5 to 1.
    """
    if not (math.isfinite(margin) and 0 < margin < 10):
        raise ParameterError("margin", found=repr(margin), expected="a fraction such as 0.03")
    if not 0.5 < confidence < 1:
        raise ParameterError(
            "confidence", found=repr(confidence), expected="a number between 0.5 and 1"
        )


def stop(plain: Comparison, *reasons: Caution, verdict: Verdict = "inconclusive",
          modifier: str | None = None) -> Comparison:  # fmt: skip
    """Give up on a comparison with a word that claims nothing, and say why."""
    extra = (modifier,) if modifier and modifier not in plain.modifiers else ()
    return replace(
        plain,
        verdict=verdict,
        modifiers=plain.modifiers + extra,
        cautions=plain.cautions + reasons,
    )


def with_interval(plain: Comparison, test: ttests.MeanTest) -> Comparison:
    """Fill ratio, intervals and p from a test."""
    low, high = ttests.interval(test, plain.confidence, plain.gain_log)
    low90, high90 = ttests.interval(test, 2 * plain.confidence - 1, plain.gain_log)
    p = float(test.p)
    return replace(
        plain,
        ratio=exp_or_none(test.effect),
        low=exp_or_none(low),
        high=exp_or_none(high),
        ci90_low=exp_or_none(low90),
        ci90_high=exp_or_none(high90),
        df=float(test.df),
        se_log=float(test.se),
        p_value=p if math.isfinite(p) else None,
    )


def exp_or_none(value: Any) -> float | None:
    """exp, with None beyond what a float holds: one degree of freedom or a broken log get there."""
    exponent = float(value)
    return math.exp(exponent) if abs(exponent) <= _LARGEST_LOG else None


def growth(value: Any) -> float | None:
    """exp - 1 under the same limit: a difference as a fraction."""
    exponent = float(value)
    return math.expm1(exponent) if exponent <= _LARGEST_LOG else None


def decided(tested: Comparison) -> Comparison:
    """Put the word that is due on a comparison whose p and intervals are known.

    Uses the adjusted p where there is one. Everything said by an earlier decision is taken back.
    """
    kept = tuple(c for c in tested.cautions if c.code not in _DECISION_CODES)
    marks = tuple(m for m in tested.modifiers if m != "below margin")
    plain = replace(
        tested, cautions=kept, modifiers=marks, runs_needed=None, verdict="inconclusive"
    )
    p = plain.p_value if plain.p_adjusted is None else plain.p_adjusted
    if p is None or plain.ratio is None:
        return plain
    code = ttests.decide(
        np.asarray(p),
        (_log(plain.low, -math.inf), _log(plain.high, math.inf)),
        (_log(plain.ci90_low, -math.inf), _log(plain.ci90_high, math.inf)),
        margin=plain.margin,
        may_be_equivalent=plain.may_be_equivalent,
        alpha=plain.alpha,
    )
    if code == ttests.EQUIVALENT:
        if p < plain.alpha:
            return stop(
                plain,
                caution("below_margin", p=p, margin=plain.margin),
                verdict="equivalent",
                modifier="below margin",
            )
        return replace(plain, verdict="equivalent")
    if code != ttests.UNDECIDED:
        if plain.better is None:
            return stop(plain, caution("no_direction", metric=plain.metric))
        good = (code == ttests.HIGHER) == (plain.better == "higher")
        words: tuple[Verdict, Verdict] = (
            ("faster", "slower") if plain.speed else ("better", "worse")
        )
        return replace(plain, verdict=words[0] if good else words[1])
    return _undecided(plain)


def _log(value: float | None, unknown: float) -> Any:
    return np.asarray(unknown if value is None or value <= 0 else math.log(value))


def _undecided(plain: Comparison) -> Comparison:
    """Say what would decide it."""
    said: list[Caution] = []
    raw, adjusted = plain.p_value, plain.p_adjusted
    if raw is not None and adjusted is not None and raw < plain.alpha <= adjusted:
        said.append(
            caution("lost_by_adjustment", p=raw, p_adjusted=adjusted, family=plain.family or 0)
        )
    needed = runs_to_see_margin(plain)
    if plain.gain_log and plain.gain_log >= math.log1p(plain.margin):
        said.append(caution("undecided_gain", gain=plain.gain_log, margin=plain.margin))
    elif needed and plain.mde_ratio is not None:
        least = min(plain.n_baseline, plain.n_candidate)
        said.append(
            caution(
                "undecided",
                mde=plain.mde_ratio,
                margin=plain.margin,
                low=needed[0],
                high=needed[1],
                more_low=needed[0] - least,
                more_high=needed[1] - least,
            )
        )
    else:
        said.append(caution("undecided_size_unknown"))
    return replace(plain, runs_needed=needed, cautions=plain.cautions + tuple(said))


def runs_to_see_margin(plain: Comparison) -> tuple[int, int] | None:
    """Return the runs per arm that would find a difference as large as the margin, as a range.

    The lower end takes the SD over runs as seen, the upper end its 80 % limit. Never fewer than
    one more than there are: what was measured did not decide.
    """
    if plain.sd_log is None or not plain.sd_df or plain.sd_log <= 0:
        return None
    room = math.log1p(plain.margin) ** 2 - plain.gain_log**2
    if room <= 0:
        return None
    effect = math.expm1(math.sqrt(room))
    pairs = plain.test == "paired"
    options: dict[str, Any] = {"confidence": plain.confidence, "paired": pairs}
    low = planning.runs_needed(plain.sd_log, effect, **options)
    upper = planning.sd_upper_limit(plain.sd_log, plain.sd_df)
    high = planning.runs_needed(upper, effect, **options)
    more = min(plain.n_baseline, plain.n_candidate) + 1
    return max(low, more), max(high, more)
