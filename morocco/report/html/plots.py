"""The runs of a model on a task as a small plot: plain geometry in whole pixels, fast to draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import isnan, nan
from statistics import fmean, median
from typing import NamedTuple

from morocco.charts.timeline import PANELS, Panel
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
    peaks = {panel: peak for panel in PANELS if (peak := _find_peak(panel, logs)) is not None}
    row_height = _CAPTION_HEIGHT + _CURVE_HEIGHT
    panels = []
    for row, (panel, peak) in enumerate(peaks.items()):
        scale = Scale(
            across=(WIDTH - 1) / span,
            up=(_CURVE_HEIGHT - 2) / (max(peak, panel.least) or 1.0) / panel.scale,
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


def _find_peak(panel: Panel, logs: Sequence[Log]) -> float | None:
    """Return the highest reading in the unit of the panel, None where there is none."""
    readings = [v for log in logs for v in log.columns[panel.key] if not isnan(v)]
    return max(readings) / panel.scale if readings else None


def _format_peak(panel: Panel, peak: float) -> str:
    return f"{panel.name} up to {format_number(peak)} {panel.unit}"


def _describe_group(size: Size, logs: Sequence[Log]) -> str:
    time = format_number(median(log.run_time for log in logs))
    records = f"{plural(size[0], 'record')}, batch {size[1]:,}"
    return f"{records}: {plural(len(logs), 'run')}, median {time} s"


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
    times, values = log.columns["timestamp"], log.columns[panel.key]
    if panel.jumps and len(times) > _MAX_POINTS:
        return trace(*take_means(times, values, span / _MEAN_COLUMNS), scale)
    return trace(times, values, scale)


def take_means(
    times: Sequence[Seconds], values: Sequence[float], step: Seconds
) -> tuple[list[Seconds], list[float]]:
    """Return the mean reading of every `step` seconds at their mean time; gaps stay."""
    means: list[tuple[Seconds, float]] = []
    start = times[0] if times else 0.0

    def get_column(reading: tuple[Seconds, float]) -> tuple[int, bool]:
        return int((reading[0] - start) / step), isnan(reading[1])

    for _, same in groupby(zip(times, values, strict=True), get_column):
        moments, readings = zip(*same, strict=True)
        means.append((fmean(moments), fmean(readings)))
    return [start, *(time for time, _ in means)], [nan, *(value for _, value in means)]


def trace(times: Sequence[Seconds], values: Sequence[float], scale: Scale) -> str:
    """Return readings over time as an SVG path; NaN is a gap, the first time is 0."""
    pieces = _split_at_gaps(times, values, scale)
    return "".join(_format_path(_thin_out(piece)) for piece in pieces)


def _split_at_gaps(
    times: Sequence[Seconds], values: Sequence[float], scale: Scale
) -> Iterator[list[Pixel]]:
    start = times[0] if times else 0.0
    across, up, floor = scale
    readings = zip(times, values, strict=True)
    for is_gap, piece in groupby(readings, lambda reading: isnan(reading[1])):
        if not is_gap:
            yield [(round((t - start) * across), round(floor - v * up)) for t, v in piece]


def _thin_out(piece: Sequence[Pixel]) -> list[Pixel]:
    """Keep the first, the lowest, the highest and the last point of each column of pixels."""
    kept: list[Pixel] = []
    for x, same in groupby(piece, lambda point: point[0]):
        ys = [y for _, y in same]
        keep = {0, ys.index(min(ys)), ys.index(max(ys)), len(ys) - 1}
        kept += [(x, ys[place]) for place in sorted(keep)]
    return kept


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
