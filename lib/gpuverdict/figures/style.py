"""One style for all figures: colour-blind safe, readable in print, text kept as text."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import matplotlib as mpl
import seaborn as sns
from matplotlib import font_manager

__all__ = [
    "ARM_COLOURS",
    "ARM_MARKERS",
    "GREY",
    "INK",
    "LEVEL_COLOURS",
    "WORD_COLOURS",
    "cjk_font",
    "figure_language",
    "styled",
]

# Blue and vermilion of Okabe and Ito (2008), told apart by people with any form of colour
# blindness and in grey print; the marker says it a second time.
ARM_COLOURS = ("#0072B2", "#D55E00")
ARM_MARKERS = ("o", "s")
LEVEL_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
INK = "#1d2430"
GREY = "#667085"
WORD_COLOURS = {
    "faster": "#0072B2",
    "better": "#0072B2",
    "slower": "#B5470B",
    "worse": "#B5470B",
    "equivalent": "#475467",
    "inconclusive": "#7a6200",
    "not comparable": "#667085",
}

_CJK_FAMILIES = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "Noto Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Microsoft YaHei",
    "SimHei",
    "PingFang SC",
    "Heiti SC",
    "Noto Sans CJK JP",
    "Droid Sans Fallback",
)


@functools.cache
def cjk_font() -> str | None:
    """Name an installed font that has Chinese glyphs; None where there is none."""
    return _first_installed() or (_first_installed() if _found_new_fonts() else None)


def _first_installed() -> str | None:
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return next((name for name in _CJK_FAMILIES if name in installed), None)


def _found_new_fonts() -> bool:
    """Add the fonts installed since matplotlib wrote its list, which it never looks over again."""
    known = {font.fname for font in font_manager.fontManager.ttflist}
    new = [path for path in font_manager.findSystemFonts() if path not in known]
    for path in new:
        # Bitmap fonts and damaged files are of no use here, and not ours to report.
        with suppress(RuntimeError, OSError, ValueError):
            font_manager.fontManager.addfont(path)
    return bool(new)


def figure_language(lang: str) -> str:
    """Return the language figures can be labelled in: English where a font lacks Chinese."""
    return lang if lang == "en" or cjk_font() else "en"


@contextmanager
def styled() -> Iterator[None]:
    """Draw within the one style; the caller's own settings are left as they were."""
    families = [name for name in (cjk_font(),) if name]
    # A Latin font first would be asked for Chinese glyphs and warn for each of them.
    fonts = [*families, "DejaVu Sans"]
    settings = {
        **sns.axes_style("whitegrid"),
        **sns.plotting_context("notebook", font_scale=0.82),
        "font.family": fonts,
        "font.sans-serif": fonts,
        "svg.fonttype": "none",
        "svg.hashsalt": "gpuverdict",
        "axes.unicode_minus": False,
        "axes.edgecolor": "#98a2b3",
        "axes.labelcolor": INK,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "grid.color": "#e4e7ec",
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
        "figure.dpi": 96,
    }
    with mpl.rc_context(settings):
        yield
