"""Drawing only, continued: stacks, steps, curves with bands, traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpuverdict.figures.draw import draw_arm_points, new_axes
from gpuverdict.figures.style import ARM_COLOURS, GREY, LEVEL_COLOURS

__all__ = [
    "draw_band",
    "draw_beside",
    "draw_claims",
    "draw_points_and_lines",
    "draw_stacks",
    "draw_steps",
    "draw_traces",
]


def legend_above(axes: Axes) -> None:
    """Set the legend over the axes, where it hides nothing."""
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0.1)


def draw_stacks(
    frame: pd.DataFrame,
    *,
    parts: Sequence[str],
    names: Mapping[str, str],
    label: str,
    axes: Axes | None = None,
) -> Axes:
    """Draw stacked bars, one a row of the frame from top to bottom.

    Parameters
    ----------
    frame : pandas.DataFrame
        `name` and a column of seconds for each part; null is drawn as nothing.
    """
    axes = axes or new_axes(6.8, 0.8 + 0.3 * max(2, len(frame)))
    place = list(range(len(frame)))
    left = pd.Series(0.0, index=frame.index)
    for number, part in enumerate(parts):
        width = frame[part].fillna(0.0)
        axes.barh(
            place,
            width,
            left=left,
            height=0.7,
            label=names[part],
            color=(LEVEL_COLOURS[4], LEVEL_COLOURS[1], LEVEL_COLOURS[0])[number % 3],
            hatch=("", "//", "")[number % 3],
            edgecolor="white",
            lw=0.5,
        )
        left = left + width
    axes.set_yticks(place, list(frame.name))
    axes.set_ylim(len(frame) - 0.4, -0.6)
    axes.set_xlabel(label)
    axes.grid(axis="y", visible=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    legend_above(axes)
    return axes


def draw_points_and_lines(
    points: pd.DataFrame,
    lines: pd.DataFrame,
    *,
    arms: Sequence[str],
    labels: tuple[str, str],
    log: bool = False,
    limit: tuple[float, str] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw points and the curve through them, by arm.

    Parameters
    ----------
    points, lines : pandas.DataFrame
        `arm, x, y`; a line frame may hold `dashed` (drawn as an extrapolation).
    log : bool
        Logarithmic x.
    limit : (y, label), optional
        A horizontal line.
    """
    axes = axes or new_axes(6.4, 3.6)
    for number, arm in enumerate(arms):
        colour = draw_arm_points(axes, points[points.arm == arm], arm, number)
        line = lines[lines.arm == arm]
        dashed = line.dashed if "dashed" in line else pd.Series(False, index=line.index)
        axes.plot(line.x[~dashed], line.y[~dashed], color=colour, lw=1.4)
        axes.plot(line.x[dashed], line.y[dashed], color=colour, lw=1.2, ls=":")
    if limit is not None:
        axes.axhline(limit[0], color=GREY, lw=1, ls="--")
        axes.annotate(
            limit[1],
            (1, limit[0]),
            xycoords=("axes fraction", "data"),
            ha="right",
            xytext=(-4, 3),
            textcoords="offset points",
            fontsize=8,
            color=GREY,
        )
    if log:
        axes.set_xscale("log")
        ticks = sorted(set(points.x.round(0)))
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.minorticks_off()
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.set_ylim(bottom=0)
    if points.y.notna().any():
        # The margin of a narrow spread would cut the highest points.
        axes.set_ylim(0, max(axes.get_ylim()[1], 1.06 * float(points.y.max())))
        axes.legend(fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def draw_beside(
    frame: pd.DataFrame,
    *,
    arms: Sequence[str],
    columns: tuple[str, str],
    labels: tuple[str, str, str],
) -> Axes:
    """Draw two quantities over one x side by side, every run a point, their means a line.

    Parameters
    ----------
    frame : pandas.DataFrame
        `series, x` and both columns.
    labels : (x, first, second)

    Returns
    -------
    Axes
        The left one.
    """
    figure = Figure(figsize=(7.2, 3.2))
    both = figure.subplots(1, 2)
    for axes, column, label in zip(both, columns, labels[1:], strict=True):
        for number, arm in enumerate(arms):
            own = frame[frame.series == arm]
            colour = draw_arm_points(axes, own.assign(y=own[column]), arm, number)
            means = own.groupby("x")[column].mean()
            axes.plot(means.index, means, color=colour, lw=1.4)
        axes.set(xlabel=labels[0], ylabel=label)
        axes.set_ylim(0, 1.1 * float(frame[column].max()) if len(frame) else 1.0)
        axes.spines[["top", "right"]].set_visible(False)
    if len(frame):
        legend_above(both[0])
    left: Axes = both[0]
    return left


def draw_steps(
    frame: pd.DataFrame, *, arms: Sequence[str], labels: tuple[str, str], axes: Axes | None = None
) -> Axes:
    """Draw step functions by arm: `arm, x, y`."""
    axes = axes or new_axes(6.8, 3.0)
    for number, arm in enumerate(arms):
        own = frame[frame.arm == arm]
        axes.step(
            own.x,
            own.y,
            where="post",
            color=ARM_COLOURS[number % 2],
            lw=1.1,
            ls=("-", "--")[number % 2],
            alpha=0.9,
            label=arm,
        )
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.set_ylim(bottom=0)
    if len(frame):
        axes.legend(fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def draw_band(
    frame: pd.DataFrame,
    *,
    margin: float,
    labels: tuple[str, str],
    crossing: float | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw a ratio along x with its band; the grey strip is the margin.

    Parameters
    ----------
    frame : pandas.DataFrame
        `x, ratio, low, high`; null leaves a gap.
    """
    axes = axes or new_axes(6.4, 3.2)
    axes.axhspan(1 / (1 + margin), 1 + margin, color="#667085", alpha=0.14, lw=0)
    axes.axhline(1, color=GREY, lw=1)
    axes.fill_between(frame.x, frame.low, frame.high, color=ARM_COLOURS[0], alpha=0.2, lw=0)
    axes.plot(frame.x, frame.ratio, color=ARM_COLOURS[0], lw=1.6)
    if crossing is not None:
        axes.axvline(crossing, color=ARM_COLOURS[1], lw=1, ls="--")
    axes.set(xlabel=labels[0], ylabel=labels[1])
    if len(frame):
        axes.set_xscale("log")
        ticks = [
            t
            for t in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
            if frame.x.min() * 0.9 <= t <= frame.x.max() * 1.1
        ]
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def draw_traces(
    frame: pd.DataFrame,
    *,
    arms: Sequence[str],
    labels: tuple[str, str],
    limits: Mapping[str, float] | None = None,
    limit_label: str = "",
    axes: Axes | None = None,
) -> Axes:
    """Draw a sampled quantity over time by arm: `arm, x, y`; limits as dotted lines."""
    axes = axes or new_axes(6.8, 3.0)
    for number, arm in enumerate(arms):
        own = frame[frame.arm == arm]
        axes.plot(own.x, own.y, color=ARM_COLOURS[number % 2], lw=0.9, alpha=0.85, label=arm)
        if limits and arm in limits:
            axes.axhline(
                limits[arm],
                color=ARM_COLOURS[number % 2],
                lw=1,
                ls=":",
                label=limit_label if number == 0 else None,
            )
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.set_ylim(bottom=0)
    if len(frame):
        legend_above(axes)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def draw_claims(
    frame: pd.DataFrame, *, label: str, names: Mapping[str, str], axes: Axes | None = None
) -> Axes:
    """Draw claims as points on a logarithmic axis, one row a source; left of 1 cannot be.

    Parameters
    ----------
    frame : pandas.DataFrame
        `source, standing, ratio`.
    """
    sources = sorted(frame.source.unique())
    axes = axes or new_axes(6.8, 1.0 + 0.5 * max(2, len(sources)))
    axes.axvline(1, color=GREY, lw=1)
    for number, (standing, rows) in enumerate(frame.groupby("standing", sort=True)):
        place = rows.source.map(sources.index) + 0.18 * (number - 0.5)
        axes.scatter(
            rows.ratio,
            place,
            s=32,
            alpha=0.75,
            lw=0.4,
            edgecolor="white",
            marker=("X", "^", "o", "s")[number % 4],
            color=LEVEL_COLOURS[number % 6],
            label=names[str(standing)],
        )
    axes.set_xscale("log")
    axes.set_xticks([0.3, 0.5, 1, 2, 4, 8], ["0.3", "0.5", "1", "2", "4", "8"])
    axes.minorticks_off()
    axes.set_yticks(range(len(sources)), sources)
    axes.set_ylim(len(sources) - 0.5, -0.5)
    axes.set_xlabel(label)
    axes.grid(axis="y", visible=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    if len(frame):
        axes.legend(fontsize=8, loc="lower right")
    return axes
