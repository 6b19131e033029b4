"""Labels, model names, error texts and paths that would be code somewhere: text everywhere."""

from __future__ import annotations

import csv
import html.parser
import json
import re
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from tests.campaigns import arm, closed_loop, vllm_result, write_arm, write_campaign
from tests.hardening.render import render

from gpuverdict.tables import index_html, write_csv

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "handler": '"><img src=x onerror=alert(1)>',
    "markdown": "[x](javascript:alert(1)) ![y](http://evil.example/p.png) **b** `c`",
    "latex": r"$\frac{1}{0}$ $$x^$ \input{/etc/passwd}",
    "ansi": "\x1b[31mred\x1b[0m \x07 \x9b2J",
    "formula": '=cmd|"/c calc"!A1',
    "plus": "+1+cmd()",
    "bidi": "a\u202eexe.fdp",
    "jinja": "{{ 7*7 }}{% for x in y %}",
    "format": "{0.__class__} %s %(x)s {arm!r}",
    "long": "x" * 5000,
}


class Tags(html.parser.HTMLParser):
    """Every element and attribute of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += attrs


def is_clean(page: str) -> None:
    seen = Tags()
    seen.feed(page)
    assert not seen.names & {"script", "iframe", "object", "embed", "form", "base"}
    for name, value in seen.attributes:
        assert not name.startswith("on"), name
        if name in ("src", "href", "xlink:href") and value is not None:
            assert re.match(r"data:|#|$|[\w.-]+/", value), value
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "49{%" not in page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, object, Path]:
    folder = tmp_path_factory.mktemp("hostile")
    all_text = " ".join(HOSTILE.values())
    write_arm(folder, "a", n=60, keep={"model_id": all_text})
    write_arm(folder, "b", n=60, effect=0.2, keep={"model_id": all_text})
    result = vllm_result(closed_loop(n=60), streams=4, failed=6, model_id=all_text)
    result["errors"] = [all_text if e else "" for e in result["errors"]]
    odd = folder / "b" / "c4_r4.json"
    odd.write_text(json.dumps(result))
    arms = {
        "a": arm("a", engine=HOSTILE["script"], engine_version=HOSTILE["formula"],
                 driver=HOSTILE["latex"], host=HOSTILE["bidi"], kernels=HOSTILE["ansi"],
                 factors={HOSTILE["handler"]: HOSTILE["jinja"]}),
        "b": arm("b", engine=HOSTILE["markdown"], engine_version=HOSTILE["plus"],
                 driver=HOSTILE["format"], host=HOSTILE["long"], kernels=HOSTILE["handler"],
                 factors={HOSTILE["handler"]: HOSTILE["script"]}),
    }  # fmt: skip
    path = write_campaign(
        folder, arms, title=all_text, slo={"tpot_s": {"p50": 0.02}},
        model={"name": all_text, "parameters": 7e9, "weight_bits": 16},
    )  # fmt: skip
    page, case = render(path, "ab", folder / "out")
    return folder, page, case, path


def test_a_page_holds_hostile_text_as_text(hostile: tuple[Path, str, object, Path]) -> None:
    _, page, _, _ = hostile
    is_clean(page)
    assert "&lt;script&gt;alert(1)" in page
    assert "7*7" in page


def test_so_does_the_index(hostile: tuple[Path, str, object, Path]) -> None:
    _, _, case, _ = hostile
    rows = [
        {"name": "ab", "folder": "ab", "state": "failed", "lines": (), "chips": (),
         "error": " ".join(HOSTILE.values())}
    ]  # fmt: skip
    is_clean(index_html(case.measured, case.summary, rows, "en"))  # type: ignore[attr-defined]


def test_no_cell_of_the_workbook_is_a_formula_or_a_link(
    hostile: tuple[Path, str, object, Path],
) -> None:
    folder, _, _, _ = hostile
    with zipfile.ZipFile(folder / "out" / "tables.xlsx") as book:
        sheets = [n for n in book.namelist() if n.startswith("xl/worksheets/sheet")]
        assert sheets
        for name in sheets:
            text = book.read(name).decode("utf-8")
            assert "<f>" not in text
            assert "<f " not in text
            assert "<hyperlink" not in text


def test_no_cell_of_a_csv_is_a_formula(tmp_path: Path) -> None:
    values = [*HOSTILE.values(), "-2+3", "@SUM(1)", "\t=1", "\r=1", "＝1"]
    write_csv(pd.DataFrame({"=head": values, "n": [-1.5] * len(values)}), tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8-sig", newline="") as handle:
        rows = list(csv.reader(handle))
    for row in rows:
        assert not row[0].startswith(("=", "+", "-", "@", "\t", "\r")), row
    assert {row[1] for row in rows[1:]} == {"-1.5"}


def test_verdicts_are_strict_json(hostile: tuple[Path, str, object, Path]) -> None:
    folder, _, _, _ = hostile
    text = (folder / "out" / "verdicts.json").read_text(encoding="utf-8")
    json.loads(text, parse_constant=lambda name: pytest.fail(name))


@pytest.mark.parametrize(
    "name",
    ["<b>.json", "a\x1b[31m.json", "=cmd().json", "$x$.json", "-rf.json", "a\u202eb.json"],
)
def test_a_hostile_file_name_is_named_in_one_plain_line(tmp_path: Path, name: str) -> None:
    from gpuverdict.errors import LogFormatError
    from gpuverdict.recognise import read_run

    path = tmp_path / name
    path.write_bytes(b"{")
    with pytest.raises(LogFormatError) as caught:
        read_run(path)
    line = str(caught.value)
    assert line.isprintable()
