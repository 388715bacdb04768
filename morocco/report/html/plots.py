"""Runs as thin lines of a small picture: plain geometry in whole pixels, quick for many logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import isnan, nan
from statistics import fmean, median
from typing import NamedTuple

from morocco.charts.timeline import PANELS, Panel
from morocco.logs.log import INIT_SIZE, Log, Size, group_by_size
from morocco.report.html.markup import Html, element, join
from morocco.report.model import Cell, Report
from morocco.util.text import format_number
from morocco.util.units import Seconds, plural


class Pixel(NamedTuple):
    """A point of a line; y grows downwards."""

    x: int
    y: int


class Scale(NamedTuple):
    """Seconds and readings as pixels."""

    across: float
    """Pixels a second."""
    up: float
    """Pixels a unit."""
    floor: int
    """Where 0 is."""


def trace(times: Sequence[Seconds], values: Sequence[float], scale: Scale) -> str:
    """Return readings over time as the path of an SVG; NaN is a gap, the first time is 0."""
    return "".join(map(_write, _thin(_to_pixels(times, values, scale))))


def take_means(
    times: Sequence[Seconds], values: Sequence[float], step: Seconds
) -> tuple[list[Seconds], list[float]]:
    """Return the mean of the readings of each `step` seconds, in the middle of them; gaps stay."""
    means: list[tuple[Seconds, float]] = []
    start = times[0] if times else 0.0

    def get_column(reading: tuple[Seconds, float]) -> tuple[int, bool]:
        return int((reading[0] - start) / step), isnan(reading[1])

    for _, same in groupby(zip(times, values, strict=True), get_column):
        moments, readings = zip(*same, strict=True)
        means.append((fmean(moments), fmean(readings)))
    return [start, *(time for time, _ in means)], [nan, *(value for _, value in means)]


def _to_pixels(
    times: Sequence[Seconds], values: Sequence[float], scale: Scale
) -> Iterator[list[Pixel]]:
    """Yield the unbroken pieces of a line."""
    start = times[0] if times else 0.0
    across, up, floor = scale
    piece: list[Pixel] = []
    for time, value in zip(times, values, strict=True):
        if value == value:  # no NaN
            piece.append(Pixel(round((time - start) * across), round(floor - value * up)))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _thin(pieces: Iterable[list[Pixel]]) -> Iterator[list[Pixel]]:
    """Keep the first, the lowest, the highest and the last point of each column of pixels."""
    for piece in pieces:
        kept: list[Pixel] = []
        column: list[Pixel] = []
        for point in piece:
            if column and point.x != column[0].x:
                kept += _keep_extremes(column)
                column = []
            column.append(point)
        yield kept + _keep_extremes(column)


def _keep_extremes(column: list[Pixel]) -> list[Pixel]:
    if len(column) < 3:
        return column
    heights = [point.y for point in column]
    places = {0, heights.index(min(heights)), heights.index(max(heights)), len(column) - 1}
    return [column[place] for place in sorted(places)]


def _write(piece: Sequence[Pixel]) -> str:
    """Return a piece as steps from point to point; one of a single point as a dot."""
    start = piece[0]
    text = f"M{start.x} {start.y}"
    steps = [
        (one.x - other.x, one.y - other.y)
        for one, other in zip(piece[1:], piece[:-1], strict=True)
        if one != other
    ]
    # Level pieces are common: one long step for all of them.
    return text + "l" + " ".join(_join(steps)) if steps else text + "h0"


def _join(steps: Iterable[tuple[int, int]]) -> Iterator[str]:
    level = 0
    for across, up in steps:
        if up == 0:
            level += across
            continue
        if level:
            yield f"{level} 0"
            level = 0
        yield f"{across} {up}"
    if level:
        yield f"{level} 0"


_WIDTH, _HEIGHT, _HEAD, _FOOT = 320, 46, 22, 16
"""Of the picture; of the lines of a panel, the words above them, the time below all."""
_MEANS, _CROWDED = 80, 240
"""Lines of more readings than this jump up and down too often: so many means take their place."""
_COLOURS = 6
"""The style sheet has so many for the long sizes."""


def name_model(report: Report, model: str) -> str:
    """Return the id of the heading above the runs of a model; names may hold anything."""
    return f"runs-{[summary.name for summary in report.models].index(model) + 1}"


def name_plot(report: Report, model: str, task: str) -> str:
    """Return the id of the picture of a cell."""
    return f"{name_model(report, model)}-{report.tasks.index(task) + 1}"


def draw_plots(report: Report) -> Iterator[Html]:
    """Yield the pictures of each model under a heading of its own.

    A size has one colour in all of them, unless there are more sizes than colours.
    """
    classes = _choose_classes([log for cell in report.cells.values() for log in cell.logs])
    for model in report.models:
        cells = [report.cells[model.name, task] for task in report.tasks]
        figures = [
            _draw_cell(
                cell,
                name_plot(report, cell.model, cell.task),
                classes if len(classes) <= _COLOURS + 1 else _choose_classes(cell.logs),
            )
            for cell in cells
            if cell.logs
        ]
        yield element("h3", model.name, id=name_model(report, model.name))
        yield element("div", *figures, class_="plots") if figures else element("p", "No logs.")


def _choose_classes(logs: Sequence[Log]) -> dict[Size, str]:
    """Return how the style sheet calls the colour of each size."""
    long = sorted({log.path.size for log in logs} - {INIT_SIZE})
    return {INIT_SIZE: "init", **{size: f"g{n % _COLOURS}" for n, size in enumerate(long)}}


def _draw_cell(cell: Cell, name: str, classes: Mapping[Size, str]) -> Html:
    logs = sorted(cell.logs, key=lambda log: (log.path.size, log.path.index, log.name))
    told = [element("b", cell.task)]
    if cell.reason:
        told.append(element("span", cell.reason, class_="bad"))
    if cell.failed:
        failed = f"{cell.failed} of {plural(cell.tried, 'run')} failed"
        told.append(element("span", failed, class_="bad"))
    keys = [_tell(size, same, classes) for size, same in group_by_size(logs).items()]
    caption = element("figcaption", *told, *keys)
    return element("figure", caption, _draw(cell, logs, classes), id=name, tabindex=-1)


def _tell(size: Size, logs: Sequence[Log], classes: Mapping[Size, str]) -> Html:
    """Return a line of the legend: colour, size, how many runs, how long."""
    line = Html(f'<path class="{classes[size]}" d="M0 6h14" stroke-width="3"/>')
    key = element("svg", line, class_="key", viewBox="0 0 14 12", aria_hidden="true")
    time = format_number(median(log.run_time for log in logs))
    records = f" {plural(size[0], 'record')}, batch {size[1]:,}: "
    return element("span", key, f"{records}{plural(len(logs), 'run')}, median {time} s")


def _draw(cell: Cell, logs: Sequence[Log], classes: Mapping[Size, str]) -> Html:
    span = max(log.run_time for log in logs) or 1.0
    peaks = {panel: _find_peak(panel, logs) for panel in PANELS}
    shown = [panel for panel in PANELS if not isnan(peaks[panel])]
    drawn = [
        _draw_panel(panel, peaks[panel], row * (_HEAD + _HEIGHT), span, logs, classes)
        for row, panel in enumerate(shown)
    ]
    height = len(shown) * (_HEAD + _HEIGHT) + _FOOT
    said = ", ".join(_say_peak(panel, peaks[panel]) for panel in shown) or "no readings"
    label = f"{cell.model}, {cell.task}: {said}; {plural(len(logs), 'run')} over {span:.0f} s"
    return element(
        "svg",
        *drawn,
        _draw_time(span, height),
        viewBox=f"0 0 {_WIDTH} {height}",
        role="img",
        aria_label=label,
    )


def _find_peak(panel: Panel, logs: Sequence[Log]) -> float:
    """Return the highest reading in the units of the panel, NaN where there is none."""
    readings = (max((v for v in log.columns[panel.key] if v == v), default=None) for log in logs)
    known = [reading / panel.scale for reading in readings if reading is not None]
    return max(known, default=float("nan"))


def _say_peak(panel: Panel, peak: float) -> str:
    return f"{panel.name} up to {format_number(peak)} {panel.unit}"


def _draw_panel(
    panel: Panel,
    peak: float,
    top: int,
    span: Seconds,
    logs: Sequence[Log],
    classes: Mapping[Size, str],
) -> Html:
    floor = top + _HEAD + _HEIGHT
    most = max(peak, panel.least) or 1.0
    scale = Scale((_WIDTH - 1) / span, (_HEIGHT - 2) / most / panel.scale, floor)
    paths = []
    for size, same in group_by_size(logs).items():
        lines = [trace(*_take_line(panel, log, span), scale) for log in same]
        paths.append(Html(f'<path class="{classes[size]}" d="{"".join(lines)}"/>'))
    axis = Html(f'<path class="axis" d="M0 {floor}h{_WIDTH}"/>')
    said = _say_peak(panel, peak)
    if panel.jumps and any(len(log.samples) > _CROWDED for log in logs):
        said += f"; long runs: means of {span / _MEANS:.1f} s"
    words = element("text", said, x=0, y=top + _HEAD - 6)
    return join(words, axis, *paths)


def _take_line(panel: Panel, log: Log, span: Seconds) -> tuple[Sequence[Seconds], Sequence[float]]:
    """Return times and readings, or their means where so many would blot."""
    line = log.columns["timestamp"], log.columns[panel.key]
    return take_means(*line, span / _MEANS) if panel.jumps and len(line[0]) > _CROWDED else line


def _draw_time(span: Seconds, height: int) -> Html:
    end = element("text", f"{format_number(span)} s", x=_WIDTH, y=height - 3, text_anchor="end")
    return join(element("text", "0", x=0, y=height - 3), end)
