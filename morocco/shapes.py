"""Boxes, discs and lines on a flat page: how far apart they are, whether they meet.

All lengths are in one unit, and y grows upwards.
"""

from __future__ import annotations

from math import hypot
from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle."""

    left: float
    bottom: float
    right: float
    top: float


class Circle(NamedTuple):
    """A disc."""

    x: float
    y: float
    radius: float


class Line(NamedTuple):
    """From a disc to its label."""

    x1: float
    y1: float
    x2: float
    y2: float


def is_inside(box: Box, area: Box) -> bool:
    """Tell whether a box is within an area."""
    return (
        area.left <= box.left
        and area.bottom <= box.bottom
        and box.right <= area.right
        and box.top <= area.top
    )


def overlap(one: Box, other: Box, gap: float = 0.0) -> bool:
    """Tell whether two boxes are nearer to each other than `gap`."""
    return (
        one.left < other.right + gap
        and other.left < one.right + gap
        and one.bottom < other.top + gap
        and other.bottom < one.top + gap
    )


def find_nearest(box: Box, circle: Circle) -> tuple[float, float]:
    """Return the point of a box that is nearest to the middle of a disc."""
    x = min(max(circle.x, box.left), box.right)
    return x, min(max(circle.y, box.bottom), box.top)


def measure_gap(box: Box, circle: Circle) -> float:
    """Return how far apart a box and a disc are; below 0 where the one covers the other."""
    x, y = find_nearest(box, circle)
    return hypot(x - circle.x, y - circle.y) - circle.radius


def crosses(line: Line, box: Box) -> bool:
    """Tell whether a line goes through a box (Liang and Barsky's clipping)."""
    x, y = line.x2 - line.x1, line.y2 - line.y1
    enter, leave = 0.0, 1.0
    sides = (
        (-x, line.x1 - box.left),
        (x, box.right - line.x1),
        (-y, line.y1 - box.bottom),
        (y, box.top - line.y1),
    )
    for towards, room in sides:
        if towards == 0:
            if room < 0:
                return False
            continue
        moment = room / towards
        enter, leave = (max(enter, moment), leave) if towards < 0 else (enter, min(leave, moment))
    return enter < leave


def cut(one: Line, other: Line) -> bool:
    """Tell whether two lines cross."""

    def side(line: Line, x: float, y: float) -> float:
        return (line.x2 - line.x1) * (y - line.y1) - (line.y2 - line.y1) * (x - line.x1)

    return (
        side(one, other.x1, other.y1) * side(one, other.x2, other.y2) < 0
        and side(other, one.x1, one.y1) * side(other, one.x2, one.y2) < 0
    )
