"""The notebooks in JupyterLab: opened from the file list, run whole, changed, and run again."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.devtools import CHROMIUM, Page, opened

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]

# The notebook in front; the text of cells out of sight is only in `textContent`.
FRONT = (
    "[...document.querySelectorAll('.jp-NotebookPanel')]"
    ".find(e => !e.classList.contains('lm-mod-hidden'))"
)
STATUS = f"{FRONT}?.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status"
PROMPTS = (
    f"[...{FRONT}.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(e => e.textContent.trim())"
)
ERRORS = (
    f'[...{FRONT}.querySelectorAll(\'[data-mime-type$="stderr"], [data-mime-type$="error"]\')]'
    ".map(e => e.textContent.slice(0, 500))"
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Start JupyterLab as `make lab` does, on copies, and open it."""
    folder = tmp_path_factory.mktemp("lab")
    for name in ("notebooks", "data"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(".gpuverdict"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "lib"),
        **{f"JUPYTER_{place}": str(folder / place.lower()) for place in places},
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
    }
    command = [
        sys.executable, "-m", "jupyterlab", str(folder / "notebooks"), "--no-browser",
        "--ip=127.0.0.1", f"--port={port}", "--IdentityProvider.token=here", "--allow-root",
    ]  # fmt: skip
    log = (folder / "lab.log").open("w")
    with log, subprocess.Popen(command, env=environment, stdout=log, stderr=log) as server:
        try:
            _answering(port, server)
            url = f"http://127.0.0.1:{port}/lab?token=here"
            with opened(url, folder / "profile") as page:
                yield page
        finally:
            server.terminate()
            server.wait(30)


def _answering(port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert server.poll() is None, "JupyterLab ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("JupyterLab does not answer")


def open_notebook(page: Page, name: str) -> None:
    """Double-click a file in the list, and wait for its kernel."""
    page.click(
        "[...document.querySelectorAll('.jp-DirListing-item')]"
        f".find(e => e.textContent.includes('{name}'))",
        times=2,
    )
    page.wait(f"document.title.includes('{name[:12]}') && {STATUS} === 'idle'")
    page.wait("document.querySelector('#jp-main-statusbar').textContent.includes('Idle')")


def run_all(page: Page) -> None:
    """Choose Run > Run All Cells, and wait until every cell has run anew."""
    page.click(
        "[...document.querySelectorAll('.lm-MenuBar-item')]"
        ".find(e => e.textContent.trim() === 'Run')"
    )
    page.click(
        "[...document.querySelectorAll('.lm-Menu-item')]"
        ".find(e => e.textContent.startsWith('Run All Cells'))"
    )
    # Stored prompts have numbers before anything ran: first all are waiting, then none is.
    page.wait(f"{PROMPTS}.some(t => t.includes('*'))")
    page.wait(f"{PROMPTS}.every(t => /\\d/.test(t)) || {ERRORS}.length > 0")
    assert page.evaluate(ERRORS) == []


def answered(page: Page) -> str:
    """Return the text of the first output of the notebook in front."""
    shown = f"{FRONT}.querySelector('.jp-OutputArea-output:not([data-mime-type*=\"std\"])')"
    return str(page.wait(f"({shown}?.textContent ?? '').replace(/\\s+/g, ' ')"))


def choose(page: Page, label: str, text: str) -> None:
    """Take an option of the explorer by its text."""
    page.wait(
        "(() => { const row = [...document.querySelectorAll('.widget-dropdown')]"
        f".find(e => e.querySelector('label').textContent === '{label}');"
        " const s = row.querySelector('select');"
        f" const o = [...s.options].find(o => o.value === '{text}');"
        " if (s.disabled || !o) return false; s.value = o.value;"
        " s.dispatchEvent(new Event('change', {bubbles: true})); return true; })()"
    )


def test_a_parameter_is_changed_and_the_notebook_run_again(lab: Page) -> None:
    open_notebook(lab, "03_significance.ipynb")
    # A stored notebook has run before; its numbers must not be taken for the new ones.
    run_all(lab)
    first = answered(lab)
    assert "slower" in first
    # JupyterLab has rules of its own for tables, which must not win.
    cell = f"getComputedStyle({FRONT}.querySelector('.gv tbody td:not(.num)'))"
    assert lab.evaluate(f"{cell}.textAlign") == "left"
    table = f"getComputedStyle({FRONT}.querySelector('.gv table'))"
    assert lab.evaluate(f"{table}.tableLayout") == "auto"
    lab.click(
        f"[...{FRONT}.querySelectorAll('.jp-CodeCell .cm-line')]"
        ".find(e => e.textContent.startsWith('comparison'))"
    )
    for key in ("Home", "End"):
        shift = 8 if key == "End" else 0
        for kind in ("keyDown", "keyUp"):
            lab.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=shift,
                     windowsVirtualKeyCode=36 if key == "Home" else 35)  # fmt: skip
    lab.send("Input.insertText", text="comparison: str = 'cards'  # a name under `comparisons:`")
    run_all(lab)
    assert answered(lab) != first


def test_a_choice_in_the_explorer_changes_figure_and_table(lab: Page) -> None:
    open_notebook(lab, "explore.ipynb")
    run_all(lab)
    figure = "document.querySelector('.widget-html figure.plate').textContent"
    table = "document.querySelector('.widget-html section.sheet').textContent"
    # The last cell but one has set the view, as a person would.
    lab.wait(f"{figure}.includes('requests decoding')")
    choose(lab, "view", "every run")
    lab.wait(f"{figure}.includes('Each point is one run')")
    for label, option, shown in (
        ("metric", "TTFT", "TTFT p50"),
        ("statistic", "p95", "TTFT p95"),
        ("candidate", "card-b-eager", "card-b-eager"),
    ):
        choose(lab, label, option)
        lab.wait(f"{figure}.includes('{shown}') && {table}.includes('{shown}')")
    choose(lab, "view", "distribution")
    choose(lab, "level", "1 stream")
    lab.wait(f"{figure}.includes('Each line is one run')")
    before = lab.evaluate(figure)
    choose(lab, "level", "64 streams")
    lab.wait(f"{figure} !== {before!r}")
    assert lab.evaluate(ERRORS) == []
