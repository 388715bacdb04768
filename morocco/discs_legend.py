"""The legend below the disc chart: discs of known size, and what colours, rings and lines mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from morocco.canvas import COLOURS, GREY, INK, measure_text
from morocco.discs import LARGEST, Chart
from morocco.pareto import Point, find_edge

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
