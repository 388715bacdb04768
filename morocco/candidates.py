"""The places that a label may have, from the best to the worst: plain geometry.

What a place costs, other labels aside, is about how many points away from its disc it seems.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import cos, hypot, pi, sin
from typing import NamedTuple

from morocco.shapes import Box, Circle, Line, crosses, find_nearest, is_inside, measure_gap

GAP = 3.0
"""Between a label and anything else."""
COVERED = 1e6
"""What it costs to cover a disc or a label."""
_STRANGE = 25.0
"""What it costs to be nearer to a stranger's disc, or on a line of the chart."""
_STEP, _RINGS = 9.0, 14
"""How much further out each try is, and how many there are."""
_LEADER = 2 * GAP
"""A label further than this from its disc needs a line to it."""
_TURNS = (0, 8, 4, 12, 2, 14, 6, 10, 1, 15, 7, 9, 3, 5, 13, 11)
"""Directions in sixteenths of a circle, the best first: right, left, above, below, between."""
_GRID = 24
"""A label that finds little room around its disc is tried on a grid of this many lines, too."""


class Place(NamedTuple):
    """Where a label stands."""

    box: Box
    leader: Line | None
    """None where the label is beside its disc."""


class Scene(NamedTuple):
    """What is there before the labels."""

    circles: Sequence[Circle]
    lines: Sequence[Line]
    area: Box


class Candidate(NamedTuple):
    """A place and what it costs."""

    cost: float
    place: Place


def find_options(scene: Scene, number: int, size: tuple[float, float]) -> list[Candidate]:
    """Return the places of one label that cover no disc, the best first; never none."""
    around = list(_around(scene.circles[number], size, scene.area))
    rated = [_rate(scene, box, turn, number) for turn, box in around]
    free = [option for option in rated if option.cost < COVERED]
    if len(free) < 3 * len(scene.circles):  # others may take them all
        rated += [_rate(scene, box, len(_TURNS), number) for box in _scan(size, scene.area)]
    free = [option for option in rated if option.cost < COVERED]
    return sorted(free or rated)


def _around(circle: Circle, size: tuple[float, float], area: Box) -> Iterator[tuple[int, Box]]:
    for ring in range(_RINGS):
        distance = circle.radius + GAP + ring * _STEP
        for rank, turn in enumerate(_TURNS):
            across, up = cos(turn * pi / 8), sin(turn * pi / 8)
            most = max(abs(across), abs(up))
            x = circle.x + across * distance + across / most * size[0] / 2
            y = circle.y + up * distance + up / most * size[1] / 2
            box = _box_at(x, y, size)
            if is_inside(box, area):
                yield rank, box


def _scan(size: tuple[float, float], area: Box) -> Iterator[Box]:
    """Yield boxes all over the area; where it is smaller than the label, one in its middle."""
    width, height = (max(0.0, side) for side in _room(size, area))
    for column in range(_GRID + 1):
        for row in range(_GRID + 1):
            x = area.left + size[0] / 2 + width * column / _GRID
            y = area.bottom + size[1] / 2 + height * row / _GRID
            yield _box_at(x, y, size)


def _room(size: tuple[float, float], area: Box) -> tuple[float, float]:
    return area.right - area.left - size[0], area.top - area.bottom - size[1]


def _box_at(x: float, y: float, size: tuple[float, float]) -> Box:
    return Box(x - size[0] / 2, y - size[1] / 2, x + size[0] / 2, y + size[1] / 2)


def _rate(scene: Scene, box: Box, rank: int, number: int) -> Candidate:
    """Return a place with what it costs, other labels aside."""
    gaps = [measure_gap(box, circle) for circle in scene.circles]
    own = gaps[number]
    covered = sum(gap < GAP * 0.99 for gap in gaps)
    strange = sum(gap < own for gap in gaps)
    leader = _lead(scene.circles[number], box) if own > _LEADER else None
    struck = sum(crosses(line, box) for line in scene.lines)
    cost = own + rank * 0.5 + (strange + struck) * _STRANGE + covered * COVERED
    return Candidate(cost, Place(box, leader))


def _lead(circle: Circle, box: Box) -> Line:
    """Return the shortest line from the edge of a disc to a label."""
    x, y = find_nearest(box, circle)
    away = hypot(x - circle.x, y - circle.y) or 1.0
    share = min(1.0, circle.radius / away)
    return Line(circle.x + share * (x - circle.x), circle.y + share * (y - circle.y), x, y)
