"""Pages in a real browser: nothing is fetched, nothing overflows, everything has a text."""

from __future__ import annotations

import http.server
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import nbformat
import pytest
from tests.browser.devtools import CHROMIUM

from gpuverdict import figures, tables
from gpuverdict.case import Case, open_case

ROOT = Path(__file__).resolve().parents[2]
SCREEN = 1280

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]


def cell(*shown: object) -> nbformat.NotebookNode:
    data = [{"text/html": s._repr_html_()} for s in shown]  # type: ignore[attr-defined]
    outputs = [nbformat.v4.new_output("display_data", d) for d in data]
    return nbformat.v4.new_code_cell("", outputs=outputs)


def build(case: Case, lang: str) -> str:
    chart = figures.trade_off(case, lang)
    plates = [
        figures.intervals(case, "tpot_s", "p50", lang),
        figures.run_values(case, "tpot_s", "p50", lang),
        figures.curve_ratio(case, lang),
        figures.slo_margins(case, lang),
    ]
    cells = [
        cell(tables.first_screen(case, chart, lang)),
        cell(tables.figure_sheet(plates, lang), tables.verdict_map(case, lang)),
        cell(tables.all_cells(case, lang), tables.how_reached(case, lang)),
        cell(tables.findings_table(case, lang), tables.capacity_table(case, lang)),
        cell(tables.curve_table(case, lang)),
        cell(tables.run_table(case, lang, figures.windows(case, lang))),
        cell(tables.record_table(case, lang), tables.glossary(lang), tables.provenance(case, lang)),
    ]  # fmt: skip
    return tables.report_html(nbformat.v4.new_notebook(cells=cells), "report", lang)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    case = open_case(ROOT / "data" / "h200" / "campaign.yaml", "eager")
    folder = tmp_path_factory.mktemp("pages")
    chips = [
        {"metric": c.key.metric, "statistic": c.key.statistic, "workload": c.key.workload,
         "verdict": c.verdict, "ratio": c.comparison.ratio}
        for c in case.verdict.headline
    ]  # fmt: skip
    row = {
        "name": "eager", "folder": "eager", "state": "rendered", "lines": (), "error": None,
        "chips": chips,
    }  # fmt: skip
    written = {
        "en": build(case, "en"),
        "zh": build(case, "zh"),
        "index": tables.index_html(case.measured, case.summary, [row]),
    }
    for name, html in written.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in written}


def chromium(tmp_path: Path, *arguments: str) -> str:
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--disable-component-update", "--no-first-run", f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={SCREEN},900", *arguments,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout


# Measures a page from outside it: the page itself may not run scripts.
PROBE = """<!doctype html><body style="margin:0">
<iframe id="f" src="{page}" width="1280" height="900" style="border:0"></iframe><script>
document.getElementById('f').onload = function () {{
  const d = this.contentDocument, w = this.contentWindow, out = {{}};
  const all = (q) => [...d.querySelectorAll(q)], box = (e) => e.getBoundingClientRect();
  out.scroll = d.documentElement.scrollWidth;
  out.width = d.documentElement.clientWidth;
  out.wide = all('main *')
    .filter(e => !e.closest('svg') && !e.closest('.hidden') && box(e).right > 1281)
    .filter(e => w.getComputedStyle(e).position !== 'absolute')
    .slice(0, 5).map(e => e.tagName + '.' + e.className);
  const rows = d.querySelector('table.verdicts'), side = d.querySelector('.side');
  out.overlap = !!(rows && side) && box(rows).right > box(side).left + 1;
  out.images = all('img').filter(e => !e.getAttribute('alt')).length;
  out.svgs = all('svg').filter(e => e.getAttribute('aria-hidden') !== 'true')
    .filter(e => !e.getAttribute('aria-label'))
    .filter(e => !d.getElementById(e.getAttribute('aria-labelledby'))).length;
  out.h1 = all('h1').length;
  out.main = all('main').length;
  out.scopes = all('th').filter(e => !e.getAttribute('scope')).length;
  const ids = all('[id]').map(e => e.id);
  out.ids = ids.filter((x, i) => ids.indexOf(x) !== i).slice(0, 5);
  out.dead = all('a[href^="#"]')
    .filter(e => !d.getElementById(e.getAttribute('href').slice(1))).length;
  const health = d.getElementById('h-health'), answer = d.querySelector('.answer');
  out.health = health ? box(health).top : 0;
  out.answer = answer ? box(answer).bottom : 0;
  out.rows = rows ? box(rows).top : 0;
  document.body.innerHTML = '<pre id="out"></pre>';
  document.getElementById('out').textContent = JSON.stringify(out);
}};</script></body>"""


@pytest.fixture(scope="module")
def served(pages: dict[str, Path]) -> Iterator[tuple[str, list[str]]]:
    """Serve the pages, and remember every request that reaches the server."""
    asked: list[str] = []
    folder = pages["en"].parent

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, directory=str(folder), **kwargs)  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def measure(
    page: str, served: tuple[str, list[str]], pages: dict[str, Path], tmp_path: Path
) -> dict[str, object]:  # fmt: skip
    address, _ = served
    probe = pages["en"].parent / f"probe-{page}.html"
    probe.write_text(PROBE.format(page=f"{page}.html"), encoding="utf-8")
    url = f"{address}/{probe.name}"
    dom = chromium(tmp_path, "--dump-dom", "--virtual-time-budget=8000", url)
    found = re.search(r'<pre id="out">(.*?)</pre>', dom, re.S)
    assert found is not None, dom[-500:]
    result: dict[str, object] = json.loads(unescape(found.group(1)))
    return result


@pytest.mark.parametrize("page", ["en", "zh", "index"])
def test_a_page_fits_and_can_be_read_aloud(
    page: str, served: tuple[str, list[str]], pages: dict[str, Path], tmp_path: Path
) -> None:
    found = measure(page, served, pages, tmp_path)
    assert found["wide"] == []
    assert found["scroll"] == found["width"]
    assert found["overlap"] is False
    assert found["images"] == 0
    assert found["svgs"] == 0
    assert found["h1"] == 1
    assert found["main"] == 1
    assert found["scopes"] == 0
    assert found["ids"] == []
    assert found["dead"] == 0


@pytest.mark.parametrize("page", ["en", "zh"])
def test_the_answer_stands_on_the_first_screen(
    page: str, served: tuple[str, list[str]], pages: dict[str, Path], tmp_path: Path
) -> None:
    found = measure(page, served, pages, tmp_path)
    # Sentences, lamp and the head of the rows without scrolling; everything within a screen more.
    assert float(str(found["answer"])) < 320
    assert float(str(found["rows"])) < 700
    assert float(str(found["health"])) < 1500


@pytest.mark.parametrize("page", ["en", "index"])
def test_nothing_but_the_page_is_asked_for(
    page: str, served: tuple[str, list[str]], tmp_path: Path
) -> None:
    address, asked = served
    asked.clear()
    chromium(tmp_path, "--dump-dom", f"{address}/{page}.html")
    assert set(asked) - {"/favicon.ico"} == {f"/{page}.html"}


@pytest.mark.parametrize("page", ["en", "zh", "index"])
def test_the_policy_forbids_every_fetch(page: str, pages: dict[str, Path]) -> None:
    html = pages[page].read_text("utf-8")
    assert "default-src 'none'" in html
    assert "<script" not in html
    assert not re.search(r'(?:src|href)="(?:https?:)?//', html)
    assert not re.search(r"url\((?!#)", html)


def test_it_prints(pages: dict[str, Path], tmp_path: Path) -> None:
    target = tmp_path / "report.pdf"
    chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={target}", pages["en"].as_uri())
    data = target.read_bytes()
    assert data.startswith(b"%PDF")
    pages_printed = len(re.findall(rb"/Type\s*/Page\b(?!s)", data))
    assert 3 <= pages_printed <= 25
