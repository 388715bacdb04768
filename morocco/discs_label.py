"""The labels of the disc chart: a name and below it the memory, measured and drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from morocco.canvas import GREY, INK, RULE, make_printable, measure_text
from morocco.discs import Disc
from morocco.pareto import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
