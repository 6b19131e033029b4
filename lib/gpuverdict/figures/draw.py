"""Drawing only: numbers in, Axes out. Nothing here computes what a report says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from gpuverdict.figures.style import ARM_COLOURS, ARM_MARKERS, GREY, LEVEL_COLOURS, WORD_COLOURS

__all__ = [
    "draw_detectable",
    "draw_intervals",
    "draw_order",
    "draw_run_values",
    "draw_trade_off",
    "draw_windows",
]


def new_axes(width: float = 6.4, height: float = 4.2) -> Axes:
    """Make Axes of their own figure, outside pyplot: a notebook shall not show it a second time."""
    return Figure(figsize=(width, height)).subplots()


def draw_arm_points(axes: Axes, rows: pd.DataFrame, arm: str, number: int) -> str:
    """Draw the runs of one arm (`x, y`) in its colour and marker; return the colour."""
    colour = ARM_COLOURS[number % 2]
    axes.scatter(
        rows.x,
        rows.y,
        s=26,
        color=colour,
        marker=ARM_MARKERS[number % 2],
        alpha=0.75,
        lw=0.4,
        edgecolor="white",
        label=arm,
        zorder=3,
    )
    return colour


def draw_trade_off(
    frame: pd.DataFrame,
    *,
    arms: Sequence[str],
    labels: tuple[str, str],
    slo_x: float | None = None,
    slo_label: str = "",
    edges: Sequence[tuple[str, str]] = (),
    axes: Axes | None = None,
) -> Axes:
    """Draw speed a user sees against throughput; every run a point, levels joined in order.

    Parameters
    ----------
    frame : pandas.DataFrame
        `arm, level, x, y`: one row a run, base units.
    slo_x : float, optional
        Least x that meets the SLO; the region to its right is shaded.
    edges : sequence of (arm, text)
        Levels that do not run at all, written at the edge.
    """
    axes = axes or new_axes(5.6, 3.9)
    top = frame.y.max() * 1.16 if len(frame) else 1.0
    right = frame.x.max() * 1.1 if len(frame) else 1.0
    if slo_x is not None:
        axes.axvspan(slo_x, max(right, slo_x * 1.05), color="#0072B2", alpha=0.06, lw=0)
        axes.axvline(slo_x, color=GREY, lw=0.9, ls="--")
        axes.annotate(
            slo_label,
            (slo_x, top),
            xytext=(4, -3),
            textcoords="offset points",
            va="top",
            fontsize=8,
            color=GREY,
        )
        right = max(right, slo_x * 1.05)
    for number, arm in enumerate(arms):
        rows = frame[frame.arm == arm]
        colour = draw_arm_points(axes, rows, arm, number)
        centre = rows.groupby("level", sort=True)[["x", "y"]].mean()
        axes.plot(centre.x, centre.y, color=colour, lw=1.3, alpha=0.75, zorder=2)
        for level, point in centre.iterrows():
            axes.annotate(
                f"{level:g}",
                (point.x, point.y),
                xytext=(6, 6 if number == 0 else -12),
                textcoords="offset points",
                fontsize=8.5,
                color=colour,
                weight="bold",
            )
    for number, (arm, text) in enumerate(edges):
        colour = ARM_COLOURS[list(arms).index(arm) % 2]
        axes.plot(
            [0],
            [top * (0.94 - 0.07 * number)],
            "X",
            ms=8,
            color=colour,
            clip_on=False,
            ls="none",
            label=text,
        )
    axes.set(xlabel=labels[0], ylabel=labels[1], xlim=(0, right), ylim=(0, top))
    axes.legend(loc="upper right", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def ratio_axis(axes: Axes, low: float, high: float) -> None:
    """Make x a logarithmic axis of ratios with plain labels."""
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    reach = max(high, 1 / low)
    steps = (
        (0.25, 0.5, 1, 2, 4)
        if reach > 2
        else (0.6, 0.8, 1, 1.25, 1.6)
        if reach > 1.3
        else (0.8, 0.9, 1, 1.1, 1.25)
        if reach > 1.12
        else (0.9, 0.95, 1, 1.05, 1.1)
    )
    axes.xaxis.set_major_locator(FixedLocator([s for s in steps if low <= s <= high]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def draw_intervals(
    frame: pd.DataFrame, *, margin: float, label: str, axes: Axes | None = None
) -> Axes:
    """Draw ratios with their intervals, one row a level; the band is the margin.

    Parameters
    ----------
    frame : pandas.DataFrame
        `name, ratio, low, high, verdict`, one row a line, from top to bottom.
    """
    axes = axes or new_axes(6.4, 0.62 + 0.42 * max(1, len(frame)))
    axes.axvspan(1 / (1 + margin), 1 + margin, color="#667085", alpha=0.14, lw=0)
    axes.axvline(1, color=GREY, lw=1)
    for place, row in enumerate(frame.itertuples(index=False)):
        colour = WORD_COLOURS.get(row.verdict, GREY)
        if pd.notna(row.low) and pd.notna(row.high):
            axes.plot(
                [row.low, row.high], [place, place], color=colour, lw=2.2, solid_capstyle="butt"
            )
            filled = True
        else:
            filled = False
        if pd.notna(row.ratio):
            axes.plot(
                [row.ratio],
                [place],
                "o",
                color=colour,
                ms=7,
                mfc=colour if filled else "white",
                mew=1.6,
            )
    known = [v for c in ("ratio", "low", "high") for v in frame[c].dropna() if v > 0]
    low, high = min([1 / (1 + margin), *known]), max([1 + margin, *known])
    ratio_axis(axes, max(low / 1.06, 1 / 16), min(high * 1.06, 16))
    axes.set_yticks(range(len(frame)), list(frame.name))
    axes.set_ylim(max(len(frame), 1) - 0.5, -0.5)
    axes.set_xlabel(label)
    axes.grid(axis="y", visible=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return axes


def draw_run_values(
    frame: pd.DataFrame,
    *,
    arms: Sequence[str],
    labels: tuple[str, str],
    log: bool = False,
    axes: Axes | None = None,
) -> Axes:
    """Draw one number of every run, by level and arm, with the mean of each.

    Parameters
    ----------
    frame : pandas.DataFrame
        `arm, level, value` and `repeat_no`; value in the unit of the label.
    """
    axes = axes or new_axes(6.4, 3.4)
    levels = sorted(frame.level.unique())
    for number, arm in enumerate(arms):
        rows = frame[frame.arm == arm]
        shift = -0.16 if number == 0 else 0.16
        # Of no rows at all the index would be text.
        place = rows.level.map(levels.index).astype(float) + shift
        spread = (rows.groupby("level").cumcount() - 2) * 0.035
        colour = draw_arm_points(axes, rows.assign(x=place + spread, y=rows.value), arm, number)
        for level, value in rows.groupby("level").value.mean().items():
            x = levels.index(level) + shift
            axes.plot([x - 0.13, x + 0.13], [value, value], color=colour, lw=2)
    axes.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
    axes.set(xlabel=labels[0], ylabel=labels[1])
    if log:
        axes.set_yscale("log")
    elif len(frame) and frame.value.max() > 0:
        # From zero, and with room above: the margin of a narrow spread would cut the points.
        axes.set_ylim(0, 1.12 * float(frame.value.max()))
    axes.legend(fontsize=9, loc="lower right")
    axes.grid(axis="x", visible=False)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def draw_windows(
    frame: pd.DataFrame, *, names: Mapping[str, str], label: str, axes: Axes | None = None
) -> Axes:
    """Draw each run as a bar: warm-up cut, window, drain.

    Parameters
    ----------
    frame : pandas.DataFrame
        `name, start_s, end_s, duration_s`, one row a run, from top to bottom.
    names : mapping
        Words for `cut`, `window` and `drain`.
    """
    axes = axes or new_axes(6.8, 0.7 + 0.17 * max(4, len(frame)))
    place = list(range(len(frame)))
    rest = (frame.duration_s - frame.end_s).clip(lower=0)
    axes.barh(place, frame.start_s, color="#D55E00", alpha=0.45, label=names["cut"], height=0.7)
    axes.barh(
        place,
        frame.end_s - frame.start_s,
        left=frame.start_s,
        color="#0072B2",
        alpha=0.8,
        label=names["window"],
        height=0.7,
    )
    axes.barh(
        place, rest, left=frame.end_s, color="#98a2b3", alpha=0.6, label=names["drain"], height=0.7
    )
    axes.set_yticks(place, list(frame.name), fontsize=7)
    axes.set_ylim(len(frame) - 0.4, -0.6)
    axes.set_xlabel(label)
    axes.grid(axis="y", visible=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 1.0 + 1.2 / max(8, len(frame))),
        ncols=3,
        fontsize=8,
    )
    return axes


def draw_order(
    frame: pd.DataFrame, *, arms: Sequence[str], label: str, axes: Axes | None = None
) -> Axes:
    """Draw when each run was made: one row an arm, runs in order of their start.

    Parameters
    ----------
    frame : pandas.DataFrame
        `arm, start_s, duration_s` in order of start; the order is drawn, not the clock.
    """
    axes = axes or new_axes(6.8, 0.7 + 0.3 * max(2, len(arms)))
    for number, arm in enumerate(arms):
        rows = frame[frame.arm == arm]
        axes.scatter(
            rows.index + 1,
            [number] * len(rows),
            marker="|",
            s=110,
            lw=2.2,
            color=ARM_COLOURS[number % 2],
        )
    axes.set_yticks(range(len(arms)), list(arms))
    axes.set_ylim(len(arms) - 0.5, -0.5)
    axes.set_xlabel(label)
    axes.grid(axis="y", visible=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return axes


def draw_detectable(
    frame: pd.DataFrame,
    *,
    margin: float,
    labels: tuple[str, str],
    margin_label: str,
    axes: Axes | None = None,
) -> Axes:
    """Draw the smallest detectable difference against runs an arm, one line a level.

    Parameters
    ----------
    frame : pandas.DataFrame
        `level` (as the legend says it), `runs, difference_ratio`.
    """
    axes = axes or new_axes(6.4, 3.4)
    styles = ("-", "--", "-.", ":")
    for number, (level, rows) in enumerate(frame.groupby("level", sort=False)):
        axes.plot(
            rows.runs,
            100 * rows.difference_ratio,
            ls=styles[number % 4],
            lw=1.6,
            color=LEVEL_COLOURS[number % len(LEVEL_COLOURS)],
            label=str(level),
        )
    axes.axhline(100 * margin, color=GREY, lw=1)
    axes.annotate(
        margin_label,
        (1, 100 * margin),
        xycoords=("axes fraction", "data"),
        ha="right",
        xytext=(-4, 3),
        textcoords="offset points",
        fontsize=8,
        color=GREY,
    )
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    if len(frame):
        axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
