"""The disc chart drawn with matplotlib: axes and discs; all lengths are points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from morocco.axis import Axis
from morocco.canvas import GREY, INK, make_printable, save
from morocco.discs import RING, Chart, Disc, arrange, is_drawn
from morocco.discs_label import NAME, SMALL, draw_label, measure_label
from morocco.discs_legend import CPU, GPU, draw_legend, lay_out
from morocco.pareto import Point
from morocco.units import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
