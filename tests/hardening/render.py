"""The cells of the report notebook run here, without a kernel, and made into the page."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from gpuverdict.tables import report_html

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "report.ipynb"


def render(campaign: Path, comparison: str, out: Path, lang: str = "en") -> tuple[str, Any]:
    """Return (page, case); verdicts, tables and summary lie in `out`."""
    given = {"campaign": str(campaign), "comparison": comparison, "lang": lang, "store": None,
             "out": str(out)}  # fmt: skip
    space: dict[str, Any] = {}
    cells = []
    outputs: list[dict[str, Any]] = []

    def display(*values: Any) -> None:
        for value in values:
            data = {"text/html": value._repr_html_()}
            outputs.append({"output_type": "execute_result", "data": data, "metadata": {}})

    space["display"] = display
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] != "code" or "nbval-check-output" in tags:
            continue
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), "cell", "exec"), space)
        space.update(given if "parameters" in tags else {})
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
            if value is not None:
                display(value)
        cells.append({"cell_type": "code", "source": "", "metadata": cell["metadata"],
                      "outputs": outputs[:]})  # fmt: skip
        outputs.clear()
    case = space["case"]
    title = f"{case.verdict.candidate} / {case.verdict.baseline}"
    return report_html({"cells": cells}, title, lang), case
