"""Where the labels of discs stand: beside them if possible, else further off, with a line to them.

Lengths have one unit, and y grows upwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import cos, hypot, pi, sin
from typing import NamedTuple

GAP = 3.0
"""Between a label and any disc or other label."""
_STEP = 8.0
"""How much further out each ring of places is."""
_DIRECTIONS = (0, 8, 4, 12, 2, 14, 6, 10, 1, 15, 7, 9, 3, 5, 13, 11)
"""In sixteenths of a circle, the best first: right, left, above, below, then between."""
_ROUNDS = 3
_COVERED, _CROSSED, _NEARER = 1e6, 40.0, 25.0
"""Costs: to cover a disc or a label, to cross a line, to be nearer to the disc of another label."""


class Line(NamedTuple):
    """A straight line between two points."""

    x1: float
    y1: float
    x2: float
    y2: float

    def crosses(self, other: Line) -> bool:
        """Tell whether two lines cross."""
        return self._separates_ends_of(other) and other._separates_ends_of(self)

    def _separates_ends_of(self, other: Line) -> bool:
        x, y = self.x2 - self.x1, self.y2 - self.y1
        one = x * (other.y1 - self.y1) - y * (other.x1 - self.x1)
        return one * (x * (other.y2 - self.y1) - y * (other.x2 - self.x1)) < 0


class Box(NamedTuple):
    """A rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def diagonals(self) -> tuple[Line, Line]:
        """A line through the box crosses at least one of them."""
        left, bottom, right, top = self
        return Line(left, bottom, right, top), Line(left, top, right, bottom)

    def overlaps(self, other: Box, gap: float = 0.0) -> bool:
        """Tell whether two boxes are closer together than `gap`."""
        across = self.left < other.right + gap and other.left < self.right + gap
        return across and self.bottom < other.top + gap and other.bottom < self.top + gap

    def find_nearest(self, x: float, y: float) -> tuple[float, float]:
        """Return the point of the box that is nearest to another point."""
        return min(max(x, self.left), self.right), min(max(y, self.bottom), self.top)


class Circle(NamedTuple):
    """A disc."""

    x: float
    y: float
    radius: float

    def measure_gap(self, box: Box) -> float:
        """Return the distance to a box; below 0 where they overlap."""
        x, y = box.find_nearest(self.x, self.y)
        return hypot(x - self.x, y - self.y) - self.radius


class Label(NamedTuple):
    """Where a label stands."""

    box: Box
    leader: Line | None
    """From the disc to the label; None where they are side by side."""


class Placing(NamedTuple):
    """All labels, in the order of their discs."""

    labels: tuple[Label, ...]
    cost: float

    @property
    def fits(self) -> bool:
        """Whether no label covers a disc or another label."""
        return self.cost < _COVERED


class Scene(NamedTuple):
    """What is there before the labels."""

    circles: Sequence[Circle]
    area: Box
    """Labels stay inside."""
    lines: Sequence[Line] = ()
    """Labels avoid them where another place is near."""


def place_labels(scene: Scene, sizes: Sequence[tuple[float, float]]) -> Placing:
    """Return a label of each size (width, height) for each disc.

    Labels take the best place that is left one by one; then each moves if a better place has
    become free.
    """
    labels: dict[int, Label] = {}
    for _ in range(_ROUNDS):
        total = 0.0
        for number, size in enumerate(sizes):
            others = [label for other, label in labels.items() if other != number]
            cost, labels[number] = _find_place(scene, number, size, others)
            total += cost
    return Placing(tuple(labels.values()), total)


def _find_place(
    scene: Scene, number: int, size: tuple[float, float], placed: Sequence[Label]
) -> tuple[float, Label]:
    """Return the best place of a label; where the area is too small for it, the middle."""
    left, bottom, right, top = scene.area
    best = Label(_build_box((left + right) / 2, (bottom + top) / 2, size), None)
    least = _COVERED * (len(scene.circles) + len(placed) + 1)
    for cost, box in _list_places(scene, number, size):
        if cost >= least:
            break
        label = Label(box, _draw_leader(scene.circles[number], box))
        cost += _rate_cover(scene, number, box, placed)
        if cost < least:  # only then is it worth looking for crossings, which takes longer
            cost += _rate_crossings(scene, label, placed)
        if cost < least:
            best, least = label, cost
    return least, best


def _list_places(
    scene: Scene, number: int, size: tuple[float, float]
) -> Iterator[tuple[float, Box]]:
    """Yield places around a disc, further and further out, each with the cost of its distance."""
    circle, area = scene.circles[number], scene.area
    reach = area.right - area.left + area.top - area.bottom
    for ring in range(int(reach / _STEP) + 1):
        distance = circle.radius + GAP + ring * _STEP
        for rank, direction in enumerate(_DIRECTIONS):
            across, up = cos(direction * pi / 8), sin(direction * pi / 8)
            most = max(abs(across), abs(up))
            x = circle.x + across * (distance + size[0] / 2 / most)
            y = circle.y + up * (distance + size[1] / 2 / most)
            box = _build_box(x, y, size)
            across_fits = area.left <= box.left and box.right <= area.right
            if across_fits and area.bottom <= box.bottom and box.top <= area.top:
                yield ring * _STEP + rank / 2, box


def _build_box(x: float, y: float, size: tuple[float, float]) -> Box:
    return Box(x - size[0] / 2, y - size[1] / 2, x + size[0] / 2, y + size[1] / 2)


def _draw_leader(circle: Circle, box: Box) -> Line | None:
    gap = circle.measure_gap(box)
    if gap <= 2 * GAP:
        return None
    x, y = box.find_nearest(circle.x, circle.y)
    share = circle.radius / (circle.radius + gap)
    return Line(circle.x + share * (x - circle.x), circle.y + share * (y - circle.y), x, y)


def _rate_cover(scene: Scene, number: int, box: Box, placed: Sequence[Label]) -> float:
    covered = sum(box.overlaps(other.box, GAP) for other in placed)
    gaps = [circle.measure_gap(box) for circle in scene.circles]
    covered += sum(gap < GAP * 0.99 for gap in gaps)
    return _COVERED * covered + _NEARER * sum(gap < gaps[number] for gap in gaps)


def _rate_crossings(scene: Scene, label: Label, placed: Sequence[Label]) -> float:
    diagonals = label.box.diagonals
    leaders = [other.leader for other in placed if other.leader]
    crossed = sum(line.crosses(other) for other in (*scene.lines, *leaders) for line in diagonals)
    if label.leader:
        others = [line for other in placed for line in (*other.box.diagonals, other.leader) if line]
        crossed += sum(map(label.leader.crosses, others))
    return _CROSSED * crossed
