"""Markup: the one template environment, the section as a value, and the ratio on its axis."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

__all__ = ["RatioAxis", "Section", "environment", "render", "stylesheet"]

_STEERING = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
# What is not running text: pictures, titles and listings whole, and every tag with its attributes.
_NOT_TEXT = re.compile(r"(<svg\b.*?</svg>|<(title|style|pre|code)\b.*?</\2>|<[^>]*>)", re.S)
_QUOTED = re.compile(r"`([^`<>\n]+)`")
_STYLE = '<style data-gv="style">{}</style>'


@functools.cache
def environment() -> Environment:
    """Return the template environment: everything is escaped unless it is already markup."""
    return Environment(
        loader=PackageLoader("gpuverdict", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: Any) -> Markup:
    """Fill a template of the package; text values are escaped, and what steers a reader is shown.

    Control characters and overrides of the writing direction from a log would hide or reorder what
    stands beside them.
    """
    filled = environment().get_template(template).render(**values)
    return Markup(_with_code(_STEERING.sub("\ufffd", filled)))


def _with_code(markup: str) -> str:
    """Set what a sentence quotes with backticks as code, in running text only."""
    if "`" not in markup:
        return markup
    parts, end = [], 0
    for kept in _NOT_TEXT.finditer(markup):
        parts += [_QUOTED.sub(r"<code>\1</code>", markup[end : kept.start()]), kept[0]]
        end = kept.end()
    return "".join([*parts, _QUOTED.sub(r"<code>\1</code>", markup[end:])])


@functools.cache
def stylesheet() -> str:
    """Return the style sheet of reports, index pages and notebook outputs."""
    source, _, _ = environment().loader.get_source(environment(), "style.css")  # type: ignore[union-attr]
    return source


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A piece of a report: shows itself in a notebook, and stands in the report as it is.

    `text` is the same as a few plain lines, for a terminal and for the check cells; `missing` says
    why a section has nothing to show.
    """

    name: str
    markup: Markup
    text: str = ""
    title: str = ""
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        # A notebook has no page to hold the style sheet; `report_html` keeps one copy. JupyterLab
        # sets tables, lists and headings of outputs by rules of up to three classes: four outdo it.
        style = stylesheet().replace(".gv", ".gv" * 4)
        return f'{_STYLE.format(style)}<div class="gv">{self.markup}</div>'


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioAxis:
    """One logarithmic axis for all ratios of a table, so that rows can be compared by eye.

    `low` and `high` are the ends of the axis as ratios; what lies outside is drawn as an arrow.
    """

    low: float
    high: float
    width: int = 150

    @classmethod
    def spanning(cls, ratios: Sequence[float | None], width: int = 150) -> RatioAxis:
        """Span the given ratios, 1 always among them, never beyond 1/8 to 8."""
        logs = [abs(math.log2(r)) for r in ratios if r is not None and r > 0 and math.isfinite(r)]
        reach = min(3.0, max([0.15, *logs]) * 1.12)
        return cls(low=2**-reach, high=2**reach, width=width)

    def x(self, ratio: float) -> float:
        """Place a ratio on the axis, in pixels, clipped to its ends."""
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return round(6 + min(1.0, max(0.0, share)) * (self.width - 12), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return (position, label) of the ticks: 1 in the middle, round ratios beside it."""
        for steps in (
            (0.25, 0.5, 2, 4),
            (0.5, 2),
            (0.7, 1.4),
            (0.8, 1.25),
            (0.9, 1.1),
            (0.95, 1.05),
        ):
            inside = [s for s in steps if self.low * 1.02 <= s <= self.high / 1.02]
            if inside:
                break
        else:
            inside = []
        return [(self.x(t), f"{t:g}×") for t in sorted([*inside, 1.0])]

    def header(self) -> Markup:
        """Draw the axis itself, for the head of the column."""
        return render("ratio_axis.svg", axis=self)

    def bar(
        self,
        ratio: float | None,
        low: float | None,
        high: float | None,
        *,
        margin: float,
        word: str,
        label: str,
    ) -> Markup:
        """Draw one ratio with its interval; the band is the margin within which nothing matters."""
        if ratio is None or ratio <= 0:
            return Markup("")
        ends = [
            (bound, self.low <= bound <= self.high)
            for bound in (low, high)
            if bound is not None and bound > 0
        ]
        return render(
            "ratio_bar.svg",
            axis=self,
            ratio=ratio,
            ends=ends,
            margin=margin,
            word=word.replace(" ", "-"),
            label=label,
        )
