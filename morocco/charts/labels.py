"""Boxes, discs and lines on a flat page: how far apart they are, whether they meet.

All lengths are in one unit, and y grows upwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import cos, hypot, pi, sin
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


_CROSSED = 60.0
"""What it costs to cross a label, or the line to one, by a line."""


class Placing(NamedTuple):
    """All labels, in the order of their discs."""

    places: tuple[Place, ...]
    cost: float

    @property
    def free(self) -> bool:
        """Whether no label covers a disc or another label."""
        return self.cost < COVERED


def place_labels(
    circles: Sequence[Circle],
    sizes: Sequence[tuple[float, float]],
    area: Box,
    lines: Sequence[Line] = (),
) -> Placing:
    """Return a place inside `area` for a label of each size (width, height) beside its disc.

    Labels keep off the `lines` where that takes them no further away than a few steps.
    """
    scene = Scene(circles, lines, area)
    options = [find_options(scene, number, size) for number, size in enumerate(sizes)]
    numbers = range(len(circles))
    orders = (
        sorted(numbers, key=lambda n: len(options[n])),
        sorted(numbers, key=lambda n: (circles[n].x, circles[n].y)),
        sorted(numbers, key=lambda n: (-circles[n].y, circles[n].x)),
        sorted(numbers, key=lambda n: (-circles[n].x, -circles[n].y)),
    )
    return min((_place_all(order, options) for order in orders), key=lambda done: done.cost)


def _place_all(order: Sequence[int], options: Sequence[Sequence[Candidate]]) -> Placing:
    """Give each label in turn the best place that is left."""
    placed: dict[int, Place] = {}
    total = 0.0
    for number in order:
        cost, place = _choose(options[number], list(placed.values()))
        placed[number] = place
        total += cost
    return Placing(tuple(placed[number] for number in sorted(placed)), total)


def _choose(options: Sequence[Candidate], placed: Sequence[Place]) -> Candidate:
    best: Candidate | None = None
    for option in options:
        if best and option.cost >= best.cost:
            break  # they are sorted, and neighbours only add to the cost
        cost = option.cost + sum(_conflict(option.place, other) for other in placed)
        if best is None or cost < best.cost:
            best = Candidate(cost, option.place)
    assert best  # there is always an option
    return best


def _conflict(one: Place, other: Place) -> float:
    if overlap(one.box, other.box, GAP):
        return COVERED
    pairs = ((one.leader, other.box), (other.leader, one.box))
    cost = sum(_CROSSED for line, box in pairs if line and crosses(line, box))
    if one.leader and other.leader and cut(one.leader, other.leader):
        cost += _CROSSED
    return cost
