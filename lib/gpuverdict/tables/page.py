"""One self-contained HTML file from an executed notebook: no code, no request, no script."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from markupsafe import Markup, escape

from gpuverdict.tables.markup import render, stylesheet
from gpuverdict.tables.words import spoken

__all__ = ["report_html"]

# Notebook outputs bring their own copy of the style sheet; a page holds it once.
_OWN_STYLE = re.compile(r"<style data-gv=.*?</style>", re.S)
_IMAGE = re.compile(r"(<img\b[^>]*?\bsrc\s*=\s*)(\"[^\"]*\"|'[^']*'|[^\s>]+)", re.I)
_ACTIVE = re.compile(
    r"<(script|iframe|object|embed|link|base|form|meta)\b.*?(?:</\1\s*>|/?>)", re.S | re.I
)
_HANDLER = re.compile(r"\s(on[a-z]+|srcset|formaction)\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s>]+)", re.I)
_HEADING = re.compile(r"<section\b[^>]*\bid=[\"']([^\"']+)[\"'][^>]*>\s*<h2[^>]*>(.*?)</h2>", re.S)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# Cells for the notebook's readers and for nbval, not for the page.
_NOT_SHOWN = {"notebook-only", "nbval-check-output", "parameters", "injected-parameters"}


def report_html(
    notebook: Mapping[str, Any], title: str, lang: str = "en", *, folder: str | Path | None = None
) -> str:
    """Turn an executed notebook into one HTML file that stands alone.

    Parameters
    ----------
    notebook : nbformat node
        Executed; only outputs and Markdown are shown, never code.
    title : str
        Of the page; escaped.
    lang : str
        `en` or `zh`.
    folder : path, optional
        Where pictures that Markdown links are looked up; they become data URIs. A picture that is
        not there, or lies elsewhere on the network, becomes its alternative text.

    Returns
    -------
    str
        Without scripts, forms, frames or anything that would be fetched.
    """
    blocks = [
        Markup(block)
        for cell in notebook["cells"]
        if not _NOT_SHOWN & set(cell.get("metadata", {}).get("tags", []))
        for block in _cell_blocks(cell, Path(folder) if folder else None)
    ]
    links = [
        (anchor, re.sub(r"<[^>]+>", "", name))
        for block in blocks
        for anchor, name in _HEADING.findall(block)
    ]
    return render(
        "page.html",
        say=lambda code, **values: spoken(lang, code, **values),
        title=title,
        lang=lang,
        style=stylesheet(),
        blocks=blocks,
        links=[(a, Markup(n)) for a, n in links],
    )


def _cell_blocks(cell: Mapping[str, Any], folder: Path | None) -> Iterable[str]:
    if cell["cell_type"] == "markdown":
        yield _embedded(_markdown(_text(cell["source"]), cell), folder)
    if cell["cell_type"] == "code":
        for output in cell.get("outputs", []):
            yield from _output(output, folder)


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def _markdown(source: str, cell: Mapping[str, Any]) -> str:
    import mistune

    attached = cell.get("attachments") or {}
    for name, data in attached.items():
        for mime, payload in data.items():
            source = source.replace(f"attachment:{name}", f"data:{mime};base64,{payload}")
    render_markdown = mistune.create_markdown(escape=True, plugins=["table"])
    return f'<div class="text">{render_markdown(source)}</div>'


def _output(output: Mapping[str, Any], folder: Path | None) -> Iterable[str]:
    kind = output["output_type"]
    if kind == "stream":
        # Warnings are for the notebook: they name temporary paths and differ from run to run.
        if output["name"] == "stdout":
            yield _preformatted(_text(output["text"]))
    elif kind in ("display_data", "execute_result"):
        data = output["data"]
        if "text/html" in data:
            yield _harmless(_embedded(_OWN_STYLE.sub("", _text(data["text/html"])), folder))
        elif "image/svg+xml" in data:
            svg = _text(data["image/svg+xml"])
            yield f"<figure>{_harmless(svg[svg.index('<svg') :])}</figure>" if "<svg" in svg else ""
        elif "image/png" in data:
            payload = re.sub(r"\s", "", _text(data["image/png"]))
            alt = escape(_text(data.get("text/plain", "")))
            yield f'<figure><img alt="{alt}" src="data:image/png;base64,{payload}"></figure>'
        elif "text/markdown" in data:
            yield _embedded(_markdown(_text(data["text/markdown"]), {}), folder)
        elif "text/plain" in data:
            yield _preformatted(_text(data["text/plain"]))
    elif kind == "error":
        yield _preformatted(f"{output['ename']}: {output['evalue']}")


def _preformatted(text: str) -> str:
    return f"<pre>{escape(_ANSI.sub('', text))}</pre>"


def _harmless(markup: str) -> str:
    """Take out of an output what runs, frames or fetches; the policy of the page forbids it too."""
    return _HANDLER.sub("", _ACTIVE.sub("", markup))


def _embedded(markup: str, folder: Path | None) -> str:
    """Replace each linked picture by its bytes, or by nothing but its alternative text."""

    def embed(match: re.Match[str]) -> str:
        target = match.group(2).strip("\"'")
        if target.startswith("data:image/"):
            return match.group(0)
        return f'{match.group(1)}"{_data_uri(target, folder)}"'

    return _IMAGE.sub(embed, markup)


def _data_uri(target: str, folder: Path | None) -> str:
    nothing = "data:,"
    if folder is None or re.match(r"^[a-z][a-z0-9+.-]*:|^//", target, re.I):
        return nothing
    path = (folder / unquote(target)).resolve()
    mime = mimetypes.guess_type(path.name)[0] or ""
    # A report may show what lies beside its notebook, not any file of the machine.
    if not path.is_relative_to(folder.resolve()) or not mime.startswith("image/"):
        return nothing
    try:
        payload = base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError:
        return nothing
    return f"data:{mime};base64,{payload}"
