"""Drive a headless Chromium by its DevTools protocol: real mouse clicks, scripts, pictures."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab."""

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(address, timeout=120, suppress_origin=True)
        self._number = 0

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its answer; events in between are of no interest."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def evaluate(self, script: str) -> Any:
        """Return the value of a script (an expression; a promise is awaited)."""
        answer = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, script: str, seconds: float = 60.0) -> Any:
        """Return the value of a script once it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.evaluate(script)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds:g} s: {script}")

    def click(self, element: str, times: int = 1) -> None:
        """Click with the mouse on the middle of an element, given as a script."""
        place = self.wait(
            f"(() => {{ const e = {element}; if (!e) return null; e.scrollIntoViewIfNeeded();"
            " const b = e.getBoundingClientRect();"
            " return b.width ? [b.x + b.width / 2, b.y + b.height / 2] : null; })()"
        )
        where = {"x": place[0], "y": place[1], "button": "left"}
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.send("Input.dispatchMouseEvent", type=kind, clickCount=count, **where)

    def screenshot(self, path: Path, **clip: float) -> None:
        """Write a PNG of the window, or of a part of it (x, y, width, height)."""
        more = {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True} if clip else {}
        answer = self.send("Page.captureScreenshot", format="png", **more)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """Leave the tab."""
        self._socket.close()


@contextmanager
def opened(url: str, folder: Path, size: tuple[int, int] = (1400, 1000)) -> Iterator[Page]:
    """Open a page in a Chromium of its own, with a profile in a folder that may go."""
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
        "--remote-debugging-port=0", f"--user-data-dir={folder}",
        f"--window-size={size[0]},{size[1]}", url,
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            port = _port(folder / "DevToolsActivePort")
            page = Page(_tab(port))
            try:
                yield page
            finally:
                page.close()
        finally:
            browser.terminate()
            try:
                browser.wait(10)
            except subprocess.TimeoutExpired:
                browser.kill()


def _port(file: Path) -> int:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if file.is_file() and (lines := file.read_text().split()):
            return int(lines[0])
        time.sleep(0.05)
    raise AssertionError("Chromium did not start")


def _tab(port: int) -> str:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=10) as answer:
            for tab in json.load(answer):
                if tab["type"] == "page" and not tab["url"].startswith("chrome"):
                    return str(tab["webSocketDebuggerUrl"])
        time.sleep(0.05)
    raise AssertionError("Chromium has no tab")
