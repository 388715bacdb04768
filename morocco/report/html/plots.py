"""The runs of a model on a task as a small plot: plain geometry in whole pixels, fast to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import isnan
from statistics import median
from typing import NamedTuple

from morocco.charts.curves import (
    PANELS,
    Curve,
    Panel,
    build_curve,
    describe_size,
    find_peak,
    keep_extremes,
    take_means,
)
from morocco.logs.log import INIT_SIZE, Log, Size, group_by_size
from morocco.report.model import Cell, Report
from morocco.report.tables import get_plot_id
from morocco.util.text import format_number
from morocco.util.units import Seconds, plural

WIDTH = 320
_CURVE_HEIGHT, _CAPTION_HEIGHT, _TIME_HEIGHT = 46, 22, 16
"""Pixels of the curves of a panel, of the caption above them, of the time axis below the last."""
_MAX_POINTS = 240
"""Readings of a panel that jumps up and down are averaged in logs with more samples than this."""
_MEAN_COLUMNS = 80
_COLOURS = 6
"""How many colours style.css defines for sizes of long runs."""


@dataclass(frozen=True)
class PlotPanel:
    """One reading over time."""

    caption: str
    caption_y: int
    axis_y: int
    curves: Sequence[tuple[str, str]]
    """CSS class and SVG path, one of each size."""


@dataclass(frozen=True)
class Plot:
    """All runs of a cell, as the template draws them."""

    id: str
    cell: Cell
    legend: Sequence[tuple[str, str]]
    """CSS class and text, one of each size."""
    panels: Sequence[PlotPanel]
    span: Seconds
    """The longest run time."""
    height: int
    label: str
    """What the plot shows, for those who cannot see it."""


def build_plots(report: Report) -> dict[str, list[Plot]]:
    """Return the plots by model.

    A size has the same colour in all plots, unless there are more sizes than colours.
    """
    classes = _choose_classes([log for cell in report.cells.values() for log in cell.logs])
    shared = classes if len(classes) <= _COLOURS + 1 else None
    return {
        model.name: [
            _build_plot(get_plot_id(report, *key), report.cells[key], shared)
            for key in ((model.name, task) for task in report.tasks)
            if report.cells[key].logs
        ]
        for model in report.models
    }


def _choose_classes(logs: Sequence[Log]) -> dict[Size, str]:
    """Return the CSS class of each size."""
    long = sorted({log.path.size for log in logs} - {INIT_SIZE})
    return {INIT_SIZE: "init", **{size: f"g{n % _COLOURS}" for n, size in enumerate(long)}}


def _build_plot(name: str, cell: Cell, classes: Mapping[Size, str] | None) -> Plot:
    classes = classes or _choose_classes(cell.logs)
    logs = sorted(cell.logs, key=lambda log: (log.path.size, log.path.index, log.name))
    groups = group_by_size(logs)
    span = max(log.run_time for log in logs) or 1.0
    peaks = {panel: peak for panel in PANELS if (peak := find_peak(panel, logs)) is not None}
    row_height = _CAPTION_HEIGHT + _CURVE_HEIGHT
    panels = []
    for row, (panel, peak) in enumerate(peaks.items()):
        scale = Scale(
            across=(WIDTH - 1) / span,
            up=(_CURVE_HEIGHT - 2) / (max(peak, panel.least) or 1.0),
            floor=(row + 1) * row_height,
        )
        curves = [
            (classes[size], "".join(_trace_log(log, panel, span, scale) for log in same))
            for size, same in groups.items()
        ]
        caption = _format_peak(panel, peak)
        if panel.jumps and any(len(log.samples) > _MAX_POINTS for log in logs):
            caption += f"; long runs averaged over {span / _MEAN_COLUMNS:.1f} s"
        panels.append(PlotPanel(caption, row * row_height + 16, scale.floor, curves))
    summary = ", ".join(_format_peak(*item) for item in peaks.items()) or "no readings"
    return Plot(
        name,
        cell,
        [(classes[size], _describe_group(size, same)) for size, same in groups.items()],
        panels,
        span,
        len(panels) * row_height + _TIME_HEIGHT,
        f"{cell.model}, {cell.task}: {summary}; {plural(len(logs), 'run')} over {span:.0f} s",
    )


def _format_peak(panel: Panel, peak: float) -> str:
    return f"{panel.name} up to {format_number(peak)} {panel.unit}"


def _describe_group(size: Size, logs: Sequence[Log]) -> str:
    time = format_number(median(log.run_time for log in logs))
    return f"{describe_size(size)}: {plural(len(logs), 'run')}, median {time} s"


class Scale(NamedTuple):
    """How seconds and readings become pixels."""

    across: float
    """Pixels a second."""
    up: float
    """Pixels a unit."""
    floor: int
    """The y of 0."""


Pixel = tuple[int, int]
"""x, y of a point; y grows downwards."""


def _trace_log(log: Log, panel: Panel, span: Seconds, scale: Scale) -> str:
    curve = build_curve(log, panel)
    if panel.jumps and len(curve) > _MAX_POINTS:
        return trace(take_means(curve, span / _MEAN_COLUMNS), scale)
    return trace(keep_extremes(curve, 1 / scale.across), scale)


def trace(curve: Curve, scale: Scale) -> str:
    """Return a curve as an SVG path."""
    path = ""
    for is_gap, points in groupby(curve, lambda point: isnan(point[1])):
        if not is_gap:
            path += _format_path(
                [(round(t * scale.across), round(scale.floor - v * scale.up)) for t, v in points]
            )
    return path


def _format_path(piece: Sequence[Pixel]) -> str:
    """Return a piece as relative steps; a piece of a single point as a dot."""
    steps: list[Pixel] = []
    for (x1, y1), (x2, y2) in pairwise(piece):
        across, up = x2 - x1, y2 - y1
        if up == 0 and steps and steps[-1][1] == 0:
            across += steps.pop()[0]  # level stretches are common: one long step for each
        if across or up:
            steps.append((across, up))
    x, y = piece[0]
    line = "l" + " ".join(f"{across} {up}" for across, up in steps) if steps else "h0"
    return f"M{x} {y}{line}"
