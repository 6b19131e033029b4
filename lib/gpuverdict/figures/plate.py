"""A figure with what belongs under it: how to read it, what it says here, and the numbers drawn."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from gpuverdict.errors import ParameterError
from gpuverdict.figures.style import styled
from gpuverdict.schema import FIGURE_FORMATS

__all__ = ["Plate", "svg_text", "write_plates"]

# Sharp in print at the width of a page: 4.2 inches drawn become 1,260 pixels.
_PNG_DPI = 300

_CSS = (
    "<style data-gv='plate'>figure.plate{margin:0;max-width:720px;padding:4px;background:#fff}"
    "figure.plate svg{width:100%;height:auto}"
    "figure.plate figcaption{font:13px/1.5 system-ui,sans-serif;color:#475467}</style>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plate:
    """A finished figure.

    Attributes
    ----------
    axes : Axes
        What was drawn, for further work on it.
    name : str
        Identifier, unique in a report.
    alt : str
        Alternative text: what is drawn, and what it says.
    reading, finding : str
        The two sentences under it.
    frame : pandas.DataFrame
        The numbers drawn, in base units: one row a mark.
    """

    axes: Axes
    name: str
    alt: str
    reading: str
    finding: str
    frame: pd.DataFrame
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.finding}"

    def __html__(self) -> str:
        note = f"<p class='note'>{escape(self.note)}</p>" if self.note else ""
        if self.frame.empty:
            # Axes without a mark say less than the sentence that explains why.
            return (
                f"<figure class='plate' id='{self.name}'><figcaption><b>{escape(self.finding)}</b>"
                f"{note}</figcaption></figure>"
            )
        return (
            f"<figure class='plate' id='{self.name}'>{svg_text(self.axes, self.name, self.alt)}"
            f"<figcaption>{escape(self.reading)} <b>{escape(self.finding)}</b>{note}"
            "</figcaption></figure>"
        )

    def _repr_html_(self) -> str:
        return _CSS + self.__html__()

    def digest(self) -> str:
        """Print the numbers drawn, rounded: what a check cell compares."""
        if self.frame.empty:
            return f"{self.name}\nnothing drawn: {self.finding}"
        return f"{self.name}\n" + self.frame.to_string(
            index=False, float_format=lambda v: f"{v:.4g}", na_rep="-"
        )


def svg_text(axes: Axes, name: str, alt: str) -> str:
    """Write the figure of some Axes as inline SVG with an alternative text.

    Notes
    -----
    Text stays text (small, selectable, read aloud); identifiers carry the figure's name, so that
    several figures can share a page; no date and a fixed salt: equal figures are equal bytes.
    """
    out = io.StringIO()
    metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with styled():
        axes.figure.savefig(out, format="svg", metadata=metadata)  # type: ignore[union-attr]
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.S)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r'xlink:href="#', f'xlink:href="#{name}-', text)
    text = re.sub(r">\s+<", "><", text)
    head, rest = text.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*pt"', "", head)
    head += f' role="img" aria-labelledby="{name}-alt" focusable="false"'
    return f'{head}><title id="{name}-alt">{escape(alt)}</title>{rest.strip()}'


def write_plates(
    plates: Iterable[Plate], folder: str | Path | None, file_format: str | None
) -> list[Path]:
    """Write figures as files of their own, for slides and papers.

    Parameters
    ----------
    plates : iterable of Plate
        One that drew nothing is left out: its sentence is in the report.
    folder : path or None
        Its subfolder `figures` is made. None writes nothing.
    file_format : str or None
        `svg` or `png`; None writes nothing.

    Returns
    -------
    list of Path
        `figures/<name>.<format>`.

    Raises
    ------
    ParameterError
        For another format.
    """
    if file_format is None or folder is None:
        return []
    if file_format not in FIGURE_FORMATS:
        raise ParameterError(
            "figures", found=repr(file_format)[:40], expected=" or ".join(FIGURE_FORMATS)
        )
    place = Path(folder) / "figures"
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for plate in plates:
        if plate.frame.empty:
            continue
        path = place / f"{plate.name}.{file_format}"
        if file_format == "svg":
            text = svg_text(plate.axes, plate.name, plate.alt)
            # Inside a page the names of SVG are known; a file has to state them.
            space = (
                "" if "xmlns=" in text.split(">", 1)[0] else ' xmlns="http://www.w3.org/2000/svg"'
            )
            path.write_text(text.replace("<svg", f"<svg{space}", 1), encoding="utf-8")
        else:
            with styled():
                plate.axes.figure.savefig(path, dpi=_PNG_DPI, metadata={"Software": None})  # type: ignore[union-attr]
        written.append(path)
    return written
