"""Places for labels beside discs, so that nothing covers anything: plain geometry.

A label goes where it touches its disc if it can, else further out, where a line leads back to it.
All lengths are in one unit, y grows upwards, and the same input gives the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from morocco.candidates import COVERED, GAP, Candidate, Place, Scene, find_options
from morocco.shapes import Box, Circle, Line, crosses, cut, overlap

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
