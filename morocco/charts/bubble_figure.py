"""The labels of the disc chart: a name and below it the memory, measured and drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from morocco.charts.bubble import Disc, Point
from morocco.charts.style import GREY, INK, RULE, make_printable, measure_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from morocco.charts.bubble import LARGEST, Chart, find_edge
from morocco.charts.style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from dataclasses import dataclass
from typing import TYPE_CHECKING

from morocco.charts.bubble import RING, Axis, arrange, is_drawn
from morocco.charts.style import save
from morocco.util.units import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME, SMALL = 9.0, 8.0
"""Sizes of letters."""
_LINE = 1.25
"""Height of a line of text, in letters."""
_LONGEST = 32
"""Letters of a name that are shown."""


def draw_label(sheet: Axes, disc: Disc) -> None:
    """Draw the name and the memory of a disc, and the line that leads to them."""
    from matplotlib.patches import Rectangle

    box, leader = disc.label
    sides = box.right - box.left, box.top - box.bottom
    sheet.add_patch(Rectangle(box[:2], *sides, fc="white", alpha=0.75, lw=0, zorder=2.9))
    if leader:
        ends = ((leader.x1, leader.x2), (leader.y1, leader.y2))
        sheet.plot(*ends, color=RULE, lw=0.8, zorder=1.5)
    side = "left" if box.left >= disc.circle.x else "right" if box.right <= disc.circle.x else ""
    x = {"left": box.left, "right": box.right}.get(side, (box.left + box.right) / 2)
    style: dict[str, Any] = {"ha": side or "center", "va": "baseline", "zorder": 3}
    lines = (
        (_shorten(disc.point.name), NAME, "bold", INK),
        (_tell(disc.point), SMALL, "normal", GREY),
    )
    y = box.top
    for text, size, weight, colour in lines:
        y -= size * _LINE
        at = (x, y + 0.28 * size)
        sheet.text(*at, text, size=size, weight=weight, color=colour, **style)


def measure_label(point: Point) -> tuple[float, float]:
    """Return the width and the height of the label of a point."""
    name = measure_text(_shorten(point.name), NAME, "bold")
    return max(name, measure_text(_tell(point), SMALL)), (NAME + SMALL) * _LINE


def _shorten(name: str) -> str:
    name = make_printable(name)
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _tell(point: Point) -> str:
    if point.memory is None:
        return "memory not measured"
    digits = 2 if point.memory < 100 else 0
    return f"{point.memory:.{digits}f} GB{'' if point.on_gpu else ' RAM'}"


GPU, CPU = COLOURS[0], COLOURS[4]
SIZE = 8.0
"""Of letters."""
_ROW, _GAP, _SYMBOL = 17.0, 16.0, 16.0
"""Height of a row, the room between two entries, and that of a symbol."""
_KEY_LABEL = 62.0
_KEY = 2 * LARGEST + _KEY_LABEL
"""Width of the discs of known size with their labels."""
_STACKED = 450.0
"""In less width than this, the discs of known size are below the other entries."""

_Symbol = Callable[["Axes", float, float], None]


class _Entry(NamedTuple):
    symbol: _Symbol
    text: str


class Spot(NamedTuple):
    """An entry and where it stands: its left end, and its middle from the top of the legend."""

    entry: _Entry
    x: float
    down: float


class Legend(NamedTuple):
    """A legend that has its places."""

    spots: tuple[Spot, ...]
    key: float
    """How far down the discs of known size begin."""
    height: float


def lay_out(points: Sequence[Point], left: float, right: float) -> Legend:
    """Return the legend of some points between two margins."""
    known = any(point.memory for point in points)
    stacked = known and right - left < _STACKED
    start = left + (_KEY + _GAP if known and not stacked else 0)
    x, down, spots = start, _ROW / 2, []
    for entry in _list_entries(points):
        width = _SYMBOL + measure_text(entry.text, SIZE)
        if x > start and x + width > right:
            x, down = start, down + _ROW
        spots.append(Spot(entry, x, down))
        x += width + _GAP
    key = down + _ROW if stacked else 0.0
    return Legend(tuple(spots), key, max(key + 2 * LARGEST * known, down + _ROW / 2))


def _list_entries(points: Sequence[Point]) -> Iterator[_Entry]:
    if any(point.memory is not None and point.on_gpu for point in points):
        yield _Entry(_dot(fc=GPU, ec=GPU), "area: GPU memory")
    if any(point.memory is not None and not point.on_gpu for point in points):
        yield _Entry(_dot(fc=CPU, ec=CPU), "area: RAM, for a model on no GPU")
    if any(point.memory is None for point in points):
        yield _Entry(_dot(fc="white", ec=GREY), "memory not measured")
    if any(point.partial for point in points):
        yield _Entry(_dot(fc="white", ec=INK, ls=":"), "tasks missing: speed does not compare")
    yield _Entry(_draw_ring, "front: no other is as fast, as good and as small")
    if len(find_edge(points)) > 1:
        yield _Entry(_draw_dashes, "best score at a speed")


def _dot(**style: str) -> _Symbol:
    def draw(axes: Axes, x: float, y: float) -> None:
        from matplotlib.patches import Circle

        alpha = 0.6 if style["fc"] != "white" else 1.0
        axes.add_patch(Circle((x + 5, y), 4.5, alpha=alpha, **style))

    return draw


def _draw_ring(axes: Axes, x: float, y: float) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((x + 5, y), 5, fill=False, ec=INK, lw=1.4))


def _draw_dashes(axes: Axes, x: float, y: float) -> None:
    axes.plot((x - 1, x + 11), (y, y), color=GREY, lw=1, ls=(0, (4, 3)))


def draw_legend(axes: Axes, legend: Legend, chart: Chart, left: float, top: float) -> None:
    """Draw a legend whose upper left corner is at (left, top)."""
    for entry, x, down in legend.spots:
        entry.symbol(axes, x, top - down)
        axes.text(x + _SYMBOL, top - down, entry.text, size=SIZE, va="center_baseline")
    _draw_key(axes, chart, left + LARGEST, top - legend.key)


def _draw_key(axes: Axes, chart: Chart, x: float, top: float) -> None:
    """Draw discs inside one another, each with a line to its label."""
    from matplotlib.patches import Circle

    bottom = top - 2 * max((radius for _, radius in chart.key), default=0)
    lowest = bottom + SIZE / 2
    for memory, radius in reversed(chart.key):
        height = max(bottom + 2 * radius, lowest)
        lowest = height + 1.3 * SIZE
        axes.add_patch(Circle((x, bottom + radius), radius, fill=False, ec=GREY, lw=0.8))
        ends = (x, x + LARGEST + 2, x + LARGEST + 6)
        axes.plot(ends, (bottom + 2 * radius, height, height), color=GREY, lw=0.5)
        axes.text(ends[-1] + 2, height, f"{memory:g} GB", size=SIZE, va="center", color=GREY)


WIDE, NARROW = (720.0, 480.0), (360.0, 560.0)
"""Sizes of the chart: for a page, and for the screen of a phone."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 12.0, 52.0, 40.0
"""Around the axes; the legend is below `_BOTTOM`."""
_EDGE = 10.0
_NOTE = 14.0


@dataclass(frozen=True)
class Wording:
    """What stands around the chart."""

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
    style: dict[str, Any] = {
        "svg.fonttype": "path",
        "text.hinting": "none",
        "axes.grid.axis": "both",
    }
    style |= {"xtick.labelsize": SMALL, "ytick.labelsize": SMALL, "axes.labelsize": NAME}
    return save(lambda: _draw(points, wording or Wording(), size), suffix, **style)


def _draw(points: Sequence[Point], wording: Wording, size: tuple[float, float]) -> Figure:
    from matplotlib.figure import Figure

    width, height = size
    legend = lay_out([point for point in points if is_drawn(point)], _LEFT, width - _RIGHT)
    note = _NOTE * (not all(map(is_drawn, points)))
    across = width - _LEFT - _RIGHT
    floor = _BOTTOM + legend.height + note + _EDGE
    chart = arrange(points, across, height - _TOP - floor, measure_label)
    figure = Figure(figsize=(width / 72, height / 72))
    _draw_axes(figure, chart, wording, (_LEFT, floor, across, height - _TOP - floor))
    page = _cover(figure, (0, 0, width, height))
    draw_legend(page, legend, chart, _LEFT, note + _EDGE + legend.height)
    title = wording.title or f"Speed, score and memory of {plural(len(chart.discs), 'model')}"
    page.text(_EDGE, height - _EDGE, title, size=12, weight="bold", va="top")
    if chart.left_out:
        names = make_printable(", ".join(chart.left_out))
        page.text(_EDGE, _EDGE, f"Without speed or score, so not drawn: {names}", size=SMALL)
    return figure


def _cover(figure: Figure, place: tuple[float, float, float, float]) -> Axes:
    """Return a sheet whose unit is the point, over a part of a figure (left, bottom, size)."""
    width, height = figure.get_size_inches() * 72
    share = (place[0] / width, place[1] / height, place[2] / width, place[3] / height)
    sheet = figure.add_axes(share, xlim=(0, place[2]), ylim=(0, place[3]))
    sheet.set_axis_off()
    return sheet


def _draw_axes(
    figure: Figure, chart: Chart, wording: Wording, place: tuple[float, float, float, float]
) -> None:
    axes = _cover(figure, place)
    axes.set_axis_on()
    axes.set(xlim=(chart.x.low, chart.x.high), ylim=(chart.y.low, chart.y.high))
    _set_ticks(axes, chart.x)
    axes.set_yticks([tick for tick in axes.get_yticks() if chart.y.low <= tick <= chart.y.high])
    scale = ", logarithmic" if chart.x.logarithmic else ""
    axes.set_xlabel(f"{make_printable(wording.speed)}{scale}", color=GREY)
    beside: dict[str, Any] = {"va": "bottom", "ha": "right", "color": GREY, "size": NAME}
    axes.text(-4 / place[2], 1 + 6 / place[3], wording.score, transform=axes.transAxes, **beside)
    sheet = _cover(figure, place)
    if len(chart.edge) > 1:
        sheet.plot(*zip(*chart.edge, strict=True), color=GREY, lw=1, ls=(0, (4, 3)), zorder=1)
    for disc in chart.discs:
        _draw_disc(sheet, disc)
        draw_label(sheet, disc)


def _set_ticks(axes: Axes, axis: Axis) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    if axis.logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(axis.low, axis.high)
        subs = (1, 2, 5) if axis.high / axis.low < 500 else (1,)
        axes.xaxis.set_major_locator(LogLocator(subs=subs))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        low = max(0, axis.low)  # there is room for discs, but there is no speed below 0
        axes.set_xticks([tick for tick in axes.get_xticks() if low <= tick <= axis.high])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _draw_disc(sheet: Axes, disc: Disc) -> None:
    from matplotlib.patches import Circle

    point, (x, y, radius) = disc.point, disc.circle
    colour = GPU if point.on_gpu else CPU
    style: dict[str, Any] = {"fc": colour, "alpha": 0.6, "ec": "white", "lw": 0.8}
    if point.memory is None:
        style = {"fc": "white", "ec": GREY}
    sheet.add_patch(Circle((x, y), radius, fc="white", lw=0, zorder=1.6))  # hides the grid
    sheet.add_patch(Circle((x, y), radius, zorder=2, **style))
    if point.partial:
        sheet.add_patch(Circle((x, y), radius, fill=False, ec=INK, lw=1.2, ls=":", zorder=2.1))
    if disc.front:
        ring = Circle((x, y), radius + RING - 1, fill=False, ec=INK, lw=1.4, zorder=2.1)
        sheet.add_patch(ring)
