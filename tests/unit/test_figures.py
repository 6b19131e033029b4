"""Figures show every run, can be read aloud, share a page, and never show boxes for Chinese."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib import font_manager
from tests.campaigns import two_arms

from gpuverdict import compare_curves, figures, fit_curve
from gpuverdict.case import Case
from gpuverdict.errors import ParameterError
from gpuverdict.figures import Plate, style
from gpuverdict.figures.draw import new_axes
from gpuverdict.figures.plate import svg_text
from gpuverdict.figures.style import figure_language

SLO = {"ttft_s": {"p95": 0.5}, "tpot_s": {"p50": 0.03}}


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    both = {"levels": (2, 4), "repeats": 3}
    return two_arms(tmp_path_factory.mktemp("figures"), a=both, b={**both, "effect": 0.1}, slo=SLO)


def plates(case: Case, lang: str = "en") -> list[Plate]:
    return [
        figures.trade_off(case, lang),
        figures.intervals(case, "tpot_s", "p50", lang),
        figures.run_values(case, "tpot_s", "p50", lang),
        figures.windows(case, lang),
        figures.request_phases(case, lang),
        figures.unloaded_prefill(case, lang),
        figures.batch_over_time(case, lang=lang),
        figures.step_curve(case, lang),
        figures.throughput_curve(case, lang),
        figures.curve_ratio(case, lang),
        figures.power_over_time(case, lang),
        figures.slo_margins(case, lang),
        figures.step_bounds(case, lang),
        figures.run_order(case.measured, lang),
        figures.detectable(case, "tpot_s", "p50", lang),
    ]


def points(plate: Plate) -> int:
    return sum(len(c.get_offsets()) for c in plate.axes.collections if len(c.get_offsets()) > 1)


def test_every_run_is_a_point(case: Case) -> None:
    # 2 arms x 2 levels x 3 repeats.
    assert points(figures.trade_off(case)) == 12
    assert points(figures.run_values(case, "tpot_s", "p50")) == 12
    assert len(figures.windows(case).frame) == 12


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        # Times of b over those of a at 1, 4, 16, 64: where they meet is known by hand.
        ({"a": (5e-3, 3e-4), "b": (7e-3, 2e-4)}, "The curves cross at 20 [20, 20]."),
        ({"a": (5e-3, 3e-4), "b": (4e-3, 2e-4)}, "No crossover in the measured range, 1 to 64."),
        ({"a": (5e-3, None), "b": (7e-3, 2e-4)}, "cross between the levels 4 and 16."),
    ],
)
def test_where_curves_cross_is_said_as_far_as_it_is_known(
    case: Case, lines: dict[str, tuple[float, float | None]], said: str
) -> None:
    streams = [1.0, 4.0, 16.0, 64.0]
    fits = {}
    for arm, (alpha, beta) in lines.items():
        # A wall at 16 streams is no line: such a curve is interpolated.
        step = [alpha + (beta * b if beta else 8e-3 * (b >= 16)) for b in streams]
        fits[arm] = fit_curve(
            streams * 3, [t * (1 + 1e-6 * k) for k in range(3) for t in step],
            [k for k in range(3) for _ in streams],
        )  # fmt: skip
    both = compare_curves(fits["a"], fits["b"], streams)
    made = replace(case, curves={"main": (fits["a"], fits["b"], both)})
    assert figures.curve_ratio(made).finding.endswith(said)


def test_numbers_drawn_are_those_of_the_summary(case: Case) -> None:
    frame = figures.run_values(case, "tpot_s", "p50").frame
    own = case.summary.frame
    wanted = own[
        (own.metric == "tpot_s") & (own.statistic == "p50") & (own.window == "steady")
    ].value
    assert sorted(frame.value) == pytest.approx(sorted(wanted))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_plates_read_alone_and_together(case: Case, lang: str) -> None:
    everything = plates(case, lang)
    markup = "".join(plate.__html__() for plate in everything)
    ids = re.findall(r'\bid="([^"]+)"', markup)
    assert len(ids) == len(set(ids)), [i for i in ids if ids.count(i) > 1][:5]
    for plate in everything:
        assert plate.alt
        assert plate.reading
        assert plate.finding
        if plate.frame.empty:  # nothing to draw: the sentence that says why stands alone
            assert "<svg" not in plate.__html__()
            continue
        svg = re.search(r"<svg.*</svg>", plate.__html__(), re.S)
        assert svg is not None
        root = ElementTree.fromstring(svg.group(0))
        assert root.get("role") == "img"
        assert root.find("{http://www.w3.org/2000/svg}title") is not None
        # References resolve within the figure.
        used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg.group(0)))
        assert used <= set(re.findall(r'id="([^"]+)"', svg.group(0)))
        assert "<dc:date>" not in svg.group(0)


def test_equal_inputs_give_equal_figures(case: Case) -> None:
    assert figures.trade_off(case).__html__() == figures.trade_off(case).__html__()


def test_a_plate_is_no_second_picture_in_a_notebook(case: Case) -> None:
    from matplotlib import pyplot

    figures.trade_off(case)
    assert pyplot.get_fignums() == []


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    axes = new_axes()
    axes.set_title("<script>x</script>")
    text = svg_text(axes, "n", "<b>alt</b>")
    assert "<script" not in text
    assert "&lt;b&gt;alt" in text


def test_figures_in_files_of_their_own(case: Case, tmp_path: Path) -> None:
    drawn = [figures.trade_off(case), figures.intervals(case, "tpot_s", "p50")]
    assert figures.write_plates(drawn, tmp_path, None) == []
    assert figures.write_plates(drawn, None, "svg") == []
    for path in figures.write_plates(drawn, tmp_path, "svg"):
        root = ElementTree.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root[0].text
    written = figures.write_plates(drawn, tmp_path, "png")
    assert [path.name for path in written] == [f"{plate.name}.png" for plate in drawn]
    for path, plate in zip(written, drawn, strict=True):
        width = int.from_bytes(path.read_bytes()[16:20], "big")
        assert width == pytest.approx(300 * plate.axes.figure.get_figwidth(), abs=2)
    with pytest.raises(ParameterError, match="svg or png"):
        figures.write_plates(drawn, tmp_path, "../x")


def test_a_machine_without_chinese_fonts_gets_english_labels_and_one_notice(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(style, "_CJK_FAMILIES", ("No Such Font",))
    style.cjk_font.cache_clear()
    try:
        plate = figures.trade_off(case, "zh")
        page = plate._repr_html_()
    finally:
        style.cjk_font.cache_clear()
    labels = re.findall("<text[^>]*>([^<]*)</text>", page)
    assert labels
    assert not [label for label in labels if re.search("[\u4e00-\u9fff]", label)]
    assert page.count("未找到中文字体") == 1


def test_a_font_installed_after_matplotlib_listed_them_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chinese = style.cjk_font()
    if chinese is None:
        pytest.skip("no Chinese font here")
    every = font_manager.fontManager.ttflist
    files = {font.fname for font in every if font.name in style._CJK_FAMILIES}
    listed = [font for font in every if font.fname not in files]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", listed)
    style.cjk_font.cache_clear()
    assert style.cjk_font() in style._CJK_FAMILIES
    style.cjk_font.cache_clear()


def test_case_60_chinese_labels_and_the_minus_sign() -> None:
    labels = ["双卡4090", "单卡A100", "平均变化"]
    if figures.cjk_font() is None:
        assert figure_language("zh") == "en"
        pytest.skip("no Chinese font here: figures stay English, with a note")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with figures.styled():
            axes = new_axes()
            axes.bar(labels, [-10, -5, 0])
            text = svg_text(axes, "n", "x")
            axes.figure.canvas.draw()
    for label in labels:
        assert label in text
    assert "-10" in text


def test_the_trade_off_goes_per_gpu_where_numbers_of_gpus_differ(tmp_path: Path) -> None:
    case = two_arms(tmp_path, arm_b={"gpus": 2, "tensor_parallel": 2, "cards": ["b", "c"]})
    assert "output_tokens_per_s_per_gpu" in figures.trade_off(case).frame.columns


def test_detectable_differences_fall_with_runs(case: Case) -> None:
    frame = figures.detectable(case, "tpot_s", "p50").frame
    for _, rows in frame.groupby("level"):
        assert (np.diff(rows.difference_ratio) < 0).all()


def test_an_empty_frame_is_drawn_as_nothing() -> None:
    with figures.styled():
        axes = figures.draw_band(
            pd.DataFrame(columns=["x", "ratio", "low", "high"], dtype=float), margin=0.03,
            labels=("x", "y"),
        )  # fmt: skip
    assert axes.get_xlabel() == "x"
