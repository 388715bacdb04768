"""The disc chart as an image: discs, labels, axes and legend, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from morocco.charts.bubble import (
    LARGEST,
    RING,
    Axis,
    Chart,
    Disc,
    Point,
    arrange,
    find_edge,
    is_drawn,
)
from morocco.charts.style import COLOURS, GREY, INK, RULE, make_printable, measure_text, save
from morocco.util.units import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, NARROW = (720.0, 480.0), (360.0, 560.0)
"""Sizes in points: for a page, and for the screen of a phone."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 12.0, 52.0, 40.0
"""Margins of the axes; the legend is below the bottom one."""
_EDGE = 10.0
_NAME_SIZE, _SMALL_SIZE = 9.0, 8.0
_LINE_HEIGHT = 1.25
"""In letters."""
_MAX_NAME_LENGTH = 32
_GPU, _CPU = COLOURS[0], COLOURS[4]
_DASHES: dict[str, Any] = {"color": GREY, "lw": 1, "ls": (0, (4, 3))}
_ROW_HEIGHT, _COLUMN_WIDTH, _KEY_WIDTH = 16.0, 220.0, 2 * LARGEST + 62.0
"""Of the entries of the legend, and of the discs of known size beside them."""


@dataclass(frozen=True)
class Wording:
    """The words around the chart."""

    title: str = ""
    """Empty: the number of models."""
    speed: str = "records a second"
    score: str = "score"


def render_discs(
    points: Sequence[Point],
    suffix: str,
    wording: Wording | None = None,
    size: tuple[float, float] = WIDE,
) -> bytes:
    """Return the disc chart as an image, the same bytes for the same points.

    `suffix` is `.png`, `.svg` or `.pdf`. DataError where no model has both speed and score.
    """
    # Letters as outlines: in another font than the one they were measured in, labels collide.
    style = {"svg.fonttype": "path", "text.hinting": "none", "axes.grid.axis": "both"}
    sizes = {"xtick.labelsize": _SMALL_SIZE, "ytick.labelsize": _SMALL_SIZE}
    return save(lambda: _draw(points, wording or Wording(), size), suffix, **style, **sizes)


def _draw(points: Sequence[Point], wording: Wording, size: tuple[float, float]) -> Figure:
    from matplotlib.figure import Figure

    width, height = size
    left_out = [point.name for point in points if not is_drawn(point)]
    note = 14.0 if left_out else 0.0
    entries = list(_list_entries([point for point in points if is_drawn(point)]))
    columns = max(1, int((width - _EDGE - _KEY_WIDTH) // _COLUMN_WIDTH))
    legend_height = max(2 * LARGEST, -(-len(entries) // columns) * _ROW_HEIGHT)
    floor = _EDGE + note + legend_height + _BOTTOM
    place = (_LEFT, floor, width - _LEFT - _RIGHT, height - _TOP - floor)
    chart = arrange(points, *place[2:], measure_label)
    figure = Figure(figsize=(width / 72, height / 72))
    _draw_axes(figure, chart, wording, place)
    sheet = _add_sheet(figure, (0, 0, width, height))
    top = _EDGE + note + legend_height
    _draw_key(sheet, chart, _EDGE + LARGEST, top)
    for number, (text, style) in enumerate(entries):
        x = _EDGE + _KEY_WIDTH + number % columns * _COLUMN_WIDTH
        y = top - (number // columns + 0.5) * _ROW_HEIGHT
        _draw_entry(sheet, text, style, x, y)
    title = wording.title or f"Speed, score and memory of {plural(len(chart.discs), 'model')}"
    sheet.text(_EDGE, height - _EDGE, title, size=12, weight="bold", va="top")
    if left_out:
        names = make_printable(", ".join(left_out))
        text = f"Not drawn, without speed or score: {names}"
        sheet.text(_EDGE, _EDGE, text, size=_SMALL_SIZE)
    return figure


def _add_sheet(figure: Figure, place: tuple[float, float, float, float]) -> Axes:
    """Return invisible axes in points over a part of a figure (left, bottom, width, height)."""
    width, height = figure.get_size_inches() * 72
    share = (place[0] / width, place[1] / height, place[2] / width, place[3] / height)
    sheet = figure.add_axes(share, xlim=(0, place[2]), ylim=(0, place[3]))
    sheet.set_axis_off()
    return sheet


def _draw_axes(
    figure: Figure, chart: Chart, wording: Wording, place: tuple[float, float, float, float]
) -> None:
    axes = _add_sheet(figure, place)
    axes.set_axis_on()
    axes.set(xlim=(chart.x.low, chart.x.high), ylim=(chart.y.low, chart.y.high))
    _set_ticks(axes, chart.x)
    axes.set_yticks([tick for tick in axes.get_yticks() if chart.y.low <= tick <= chart.y.high])
    scale = ", logarithmic" if chart.x.logarithmic else ""
    speed = f"{make_printable(wording.speed)}{scale}"
    axes.set_xlabel(speed, color=GREY, size=_NAME_SIZE)
    beside: dict[str, Any] = {"ha": "right", "color": GREY, "size": _NAME_SIZE}
    sheet = _add_sheet(figure, place)
    sheet.text(-4, place[3] + 6, wording.score, **beside)
    if len(chart.edge) > 1:
        sheet.plot(*zip(*chart.edge, strict=True), zorder=1, **_DASHES)
    for disc in chart.discs:
        _draw_disc(sheet, disc)
        _draw_label(sheet, disc)


def _set_ticks(axes: Axes, axis: Axis) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    if axis.logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(axis.low, axis.high)
        subs = (1, 2, 5) if axis.high / axis.low < 500 else (1,)
        axes.xaxis.set_major_locator(LogLocator(subs=subs))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        low = max(0, axis.low)  # there is room for discs below 0, but no speed
        axes.set_xticks([tick for tick in axes.get_xticks() if low <= tick <= axis.high])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _draw_disc(sheet: Axes, disc: Disc) -> None:
    from matplotlib.patches import Circle

    x, y, radius = disc.circle
    sheet.add_patch(Circle((x, y), radius, fc="white", lw=0, zorder=1.6))  # hides the grid
    sheet.add_patch(Circle((x, y), radius, zorder=2, **_fill(disc.point)))
    if disc.whisker:
        sheet.plot(disc.whisker, (y, y), color=INK, lw=0.8, zorder=2.2)
    if disc.point.partial:
        sheet.add_patch(Circle((x, y), radius, zorder=2.1, **_DOTTED))
    if disc.on_front:
        sheet.add_patch(Circle((x, y), radius + RING - 1, zorder=2.1, **_RINGED))


_RINGED: dict[str, Any] = {"fill": False, "ec": INK, "lw": 1.4}
_DOTTED: dict[str, Any] = {"fill": False, "ec": INK, "lw": 1.2, "ls": ":"}
_WHISKER: dict[str, Any] = {}
_UNKNOWN: dict[str, Any] = {"fc": "white", "ec": GREY}


def _fill(point: Point) -> dict[str, Any]:
    if point.memory is None:
        return _UNKNOWN
    return {"fc": _GPU if point.on_gpu else _CPU, "alpha": 0.6, "ec": "white", "lw": 0.8}


def _draw_label(sheet: Axes, disc: Disc) -> None:
    """Draw the name and the memory of a disc, and the line to them."""
    from matplotlib.patches import Rectangle

    box, leader = disc.label
    sides = box.right - box.left, box.top - box.bottom
    sheet.add_patch(Rectangle(box[:2], *sides, fc="white", alpha=0.75, lw=0, zorder=2.9))
    if leader:
        ends = (leader.x1, leader.x2), (leader.y1, leader.y2)
        sheet.plot(*ends, color=RULE, lw=0.8, zorder=1.5)
    x, side = (box.left + box.right) / 2, "center"
    if box.left >= disc.circle.x:
        x, side = box.left, "left"
    elif box.right <= disc.circle.x:
        x, side = box.right, "right"
    y = box.top
    for text, size, weight, colour in _list_lines(disc.point):
        y -= size * _LINE_HEIGHT
        at: dict[str, Any] = {"x": x, "y": y + 0.28 * size, "ha": side, "zorder": 3}
        sheet.text(s=text, size=size, weight=weight, color=colour, **at)


def _list_lines(point: Point) -> tuple[tuple[str, float, str, str], ...]:
    """Return the text of each line of a label with its size, weight and colour."""
    name = make_printable(point.name)
    if len(name) > _MAX_NAME_LENGTH:
        name = f"{name[: _MAX_NAME_LENGTH - 1]}…"
    memory = "memory not measured"
    if point.memory is not None:
        memory = f"{point.memory:.{2 if point.memory < 100 else 0}f} GB"
        memory += "" if point.on_gpu else " RAM"
    return (name, _NAME_SIZE, "bold", INK), (memory, _SMALL_SIZE, "normal", GREY)


def measure_label(point: Point) -> tuple[float, float]:
    """Return the width and the height of the label of a point."""
    lines = _list_lines(point)
    width = max(measure_text(text, size, weight) for text, size, weight, _ in lines)
    return width, sum(size * _LINE_HEIGHT for _, size, _, _ in lines)


def _list_entries(points: Sequence[Point]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield the entries of the legend: a text and the style of a disc, None for the dashed line."""
    kinds = {(point.memory is None, point.on_gpu): _fill(point) for point in points}
    if (False, True) in kinds:
        yield "area: GPU memory", kinds[False, True]
    if (False, False) in kinds:
        yield "area: RAM (no GPU used)", kinds[False, False]
    if any(point.memory is None for point in points):
        yield "memory not measured", _UNKNOWN
    if any(point.partial for point in points):
        yield "tasks missing, speed not comparable", _DOTTED
    yield "Pareto front: beaten by no other model", _RINGED
    if any(point.speed_bounds for point in points):
        yield "95 % interval of the speed", _WHISKER
    if len(find_edge(points)) > 1:
        yield "best score at this speed or faster", None


def _draw_entry(sheet: Axes, text: str, style: dict[str, Any] | None, x: float, y: float) -> None:
    from matplotlib.patches import Circle

    if style is _WHISKER:
        sheet.plot((x - 1, x + 11), (y, y), color=INK, lw=0.8)
    elif style is None:
        sheet.plot((x - 1, x + 11), (y, y), **_DASHES)
    else:
        sheet.add_patch(Circle((x + 5, y), 4.5, **style))
    sheet.text(x + 16, y, text, size=_SMALL_SIZE, va="center_baseline")


def _draw_key(sheet: Axes, chart: Chart, x: float, top: float) -> None:
    """Draw discs of known size inside one another, each with a line to its label."""
    from matplotlib.patches import Circle

    bottom = top - 2 * max((radius for _, radius in chart.key), default=0)
    lowest = bottom + _SMALL_SIZE / 2
    for memory, radius in reversed(chart.key):
        height = max(bottom + 2 * radius, lowest)
        lowest = height + 1.3 * _SMALL_SIZE
        sheet.add_patch(Circle((x, bottom + radius), radius, fill=False, ec=GREY, lw=0.8))
        ends = (x, x + LARGEST + 2, x + LARGEST + 6)
        sheet.plot(ends, (bottom + 2 * radius, height, height), color=GREY, lw=0.5)
        text = f"{memory:g} GB"
        sheet.text(ends[-1] + 2, height, text, size=_SMALL_SIZE, va="center", color=GREY)
