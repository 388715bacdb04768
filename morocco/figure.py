"""Pictures drawn with matplotlib: the strip with the legend, the panels below it, the labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from morocco.canvas import GREY, GRID, save
from morocco.frames import INIT, OUTLIER, PANELS, Group, Panel, Picture, Run, find_lone
from morocco.units import Seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Transform
    from pandas import DataFrame

_LABEL_WIDTH = 0.045
"""Of the time axis: outliers that end closer together share a label."""
_NAMES, _MEDIANS, _COUNTS = 0.015, 0.881, 0.892
"""Where the columns of text stand, as shares of the figure's width."""


class _End(NamedTuple):
    """Where the line of a run ends, and the index of the run."""

    time: Seconds
    height: float
    run: int


def render(picture: Picture, suffix: str) -> bytes:
    """Return the image of a picture; `suffix` is `.png`, `.svg` or `.pdf`."""
    return save(lambda: _draw(picture), suffix)


def _draw(picture: Picture) -> Figure:
    from matplotlib.figure import Figure

    rows = 0.24 * len(picture.groups)
    heights = [rows + 0.1, *(0.5 if isnan(picture.peaks[panel.key]) else 1.5 for panel in PANELS)]
    figure = Figure(figsize=(12, max(8, 6.5 + rows)))
    grid = {"height_ratios": heights, "hspace": 0.13, "left": 0.205, "right": 0.825}
    grid |= {"top": 0.905, "bottom": 0.095}
    strip, *panels = figure.subplots(1 + len(PANELS), sharex=True, gridspec_kw=grid)
    strip.set_xlim(0, 1.07 * picture.span)  # room for the labels of outliers
    _draw_strip(strip, picture)
    for axes, panel in zip(panels, PANELS, strict=True):
        _draw_panel(axes, panel, picture)
    _mark_init([strip, *panels], picture)
    panels[-1].set_xlabel("seconds since start", color=GREY)
    figure.text(_NAMES, 0.95, picture.title, size=16, weight="bold")
    figure.text(_NAMES, 0.015, _explain(picture), size=8, color=GREY)
    return figure


def _explain(picture: Picture) -> str:
    """Return the line of small print under the panels."""
    notes = ["● end of a run", "❙ median"]
    if any(group.empty for group in picture.groups):
        notes.append("○ empty: a log without readings")
    if any(group.outliers for group in picture.groups):
        notes.append(f"two digits: index of a run more than {OUTLIER:.0%} off the median")
    if picture.crowded:
        notes.append(f"CPU and GPU use: mean of {picture.mean_step:.1f} s, faint: single readings")
    return "     ".join(notes)


def _beside(axes: Axes, y: Transform) -> Transform:
    """Return coordinates for text beside the axes: x over the figure, y as given."""
    from matplotlib.transforms import blended_transform_factory

    return blended_transform_factory(axes.figure.transFigure, y)


def _draw_strip(axes: Axes, picture: Picture) -> None:
    axes.set_axis_off()
    axes.set_ylim(len(picture.groups) - 0.4, -0.6)
    beside = _beside(axes, axes.transAxes)
    axes.text(_MEDIANS, 1.05, "median", transform=beside, ha="right", size=9, color=GREY)
    for row, group in enumerate(picture.groups):
        _draw_legend(axes, row, group)
        _draw_ends(axes, row, group)
        ends = [_End(run.time, row, run.index) for run in group.outliers]
        _label(axes, ends, group.colour, picture.span)


def _draw_legend(axes: Axes, row: int, group: Group) -> None:
    beside = _beside(axes, axes.transData)
    sample = (_NAMES + 0.001, _NAMES + 0.016)
    axes.plot(sample, (row, row), color=group.colour, lw=3, transform=beside, clip_on=False)
    axes.text(_NAMES + 0.025, row, group.name(), transform=beside, va="center")
    time = f"{group.run_time:.1f} s"
    axes.text(_MEDIANS, row, time, transform=beside, va="center", ha="right")
    axes.text(_COUNTS, row, group.count(), transform=beside, va="center")


def _draw_ends(axes: Axes, row: int, group: Group) -> None:
    """Draw a dot where each run ends and a bar at their median."""
    axes.axhline(row, color=GRID, lw=0.8)
    axes.vlines(group.run_time, row - 0.4, row + 0.4, color=group.colour, lw=2)
    full = [run.time for run in group.runs if not run.empty]
    empty = [run.time for run in group.empty]
    axes.plot(full, [row] * len(full), "o", ms=6, mfc=group.colour, mec="white", mew=0.8)
    axes.plot(empty, [row] * len(empty), "o", ms=5, mfc="white", mec=group.colour)


def _label(axes: Axes, ends: Iterable[_End], colour: str, span: Seconds, lift: float = 0) -> None:
    """Write the index of each run right of its end, `lift` pt up; neighbours share a label."""
    for cluster in _cluster(ends, _LABEL_WIDTH * span):
        axes.annotate(
            ", ".join(f"{run:02d}" for run in sorted(end.run for end in cluster)),
            (cluster[-1].time, cluster[-1].height),
            (6, lift),
            textcoords="offset points",
            va="center",
            size=8,
            color=colour,
        )


def _cluster(ends: Iterable[_End], width: Seconds) -> list[list[_End]]:
    clusters: list[list[_End]] = []
    for end in sorted(ends):
        if clusters and end.time - clusters[-1][-1].time < width:
            clusters[-1].append(end)
        else:
            clusters.append([end])
    return clusters


def _draw_panel(axes: Axes, panel: Panel, picture: Picture) -> None:
    beside = _beside(axes, axes.transAxes)
    axes.text(_NAMES, 1, panel.name, transform=beside, va="top", weight="bold")
    axes.text(_NAMES, 1, f"\n{panel.unit}", transform=beside, va="top", color=GREY)
    peak = picture.peaks[panel.key]
    if isnan(peak):
        _say_empty(axes, panel, picture)
        return
    axes.set_ylim(0, 1.08 * max(peak, panel.least) or 1.0)
    for group in picture.groups:
        _draw_group(axes, panel, group, picture)


def _say_empty(axes: Axes, panel: Panel, picture: Picture) -> None:
    measured = set(picture.peaks.dropna().index)
    no_gpu = "ram" in measured and not measured & {"gpu_usage", "gpu_ram"}
    text = "not measured"
    if no_gpu and panel.key.startswith("gpu"):
        text = "no GPU: no process of the task was seen on one"
    where, box = axes.transAxes, {"facecolor": "white", "edgecolor": "none"}
    axes.text(0.5, 0.5, text, transform=where, ha="center", va="center", color=GREY, bbox=box)
    axes.set_yticks([])


def _draw_group(axes: Axes, panel: Panel, group: Group, picture: Picture) -> None:
    """Draw the line of each run and name the outliers at the end of theirs."""
    legible = 0.05 * axes.get_ylim()[1]  # on the axis itself a label would not be
    ends = []
    for run in group.runs:
        end = _draw_run(axes, panel, run, group.colour, picture)
        if end and end.height > legible and run in group.outliers:
            ends.append(end)
            axes.plot(end.time, end.height, "o", ms=3, color=group.colour)
    # Above the lines that go on: to hide a piece of one would look like a gap.
    _label(axes, ends, group.colour, picture.span, lift=6)


def _draw_run(axes: Axes, panel: Panel, run: Run, colour: str, picture: Picture) -> _End | None:
    """Return where the line ends; None where the run has no reading."""
    line = picture.extremes(run, panel)
    if picture.needs_mean(panel):
        _draw_line(axes, line, color=colour, lw=0.6, alpha=0.15, zorder=1.5)
        line = picture.means(run, panel)
    _draw_line(axes, line, color=colour, lw=1.1, alpha=0.8)
    readings = line.dropna()
    if readings.empty:
        return None
    time, height = readings.iloc[-1]
    return _End(time, height, run.index)


def _draw_line(axes: Axes, line: DataFrame, **style: Any) -> None:
    # A line cannot show a reading between two gaps, a dot can.
    axes.plot(line["time"], line["value"], marker=".", markevery=find_lone(line), **style)


def _mark_init(rows: Sequence[Axes], picture: Picture) -> None:
    """Mark the end of each 1_1 run with a thin line, and their median, the init time."""
    for group in (group for group in picture.groups if group.size == INIT):
        for axes in rows:
            for run in group.runs:
                axes.axvline(run.time, color=group.colour, lw=0.7, alpha=0.25)
            axes.axvline(group.run_time, color=group.colour, lw=1, ls=(0, (4, 3)))
        where = rows[0].get_xaxis_transform()
        text = f"init time {group.run_time:.1f} s"
        side = "right" if group.run_time > 0.85 * picture.span else "center"
        rows[0].text(group.run_time, 1.05, text, transform=where, ha=side)
