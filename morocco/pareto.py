"""The models that no other beats: the Pareto front of speed, score and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Point:
    """A model as the disc chart sees it; None is what is not known."""

    name: str
    speed: float | None
    """Records a second."""
    score: float | None
    memory: float | None
    """GB (2^30): of the GPU, or RAM where the model was on none."""
    on_gpu: bool = True
    """Which of the two `memory` is."""
    partial: bool = False
    """Whether tasks are missing, so that its speed does not compare with others."""

    @property
    def need(self) -> tuple[int, float]:
        """What the model needs, to compare: no GPU is less than any, the unknown more than all."""
        return (2, inf) if self.memory is None else (int(self.on_gpu), self.memory)


def find_front(points: Sequence[Point]) -> list[bool]:
    """Tell of each point whether none is as fast, as good and as small, and better in one of them.

    Points without speed or score, or with a speed that does not compare, are left aside.
    """
    whole = [point for point in points if _is_whole(point)]
    return [
        _is_whole(point) and not any(_beats(other, point) for other in whole) for point in points
    ]


def find_edge(points: Sequence[Point]) -> list[int]:
    """Return which points bound speed and score alone, from the slowest to the fastest."""
    whole = [number for number, point in enumerate(points) if _is_whole(point)]
    order = sorted(whole, key=lambda number: (*_merits(points[number]), -number), reverse=True)
    edge: list[int] = []
    for number in order:
        if not edge or _merits(points[number])[1] > _merits(points[edge[-1]])[1]:
            edge.append(number)
    return edge[::-1]


def _is_whole(point: Point) -> bool:
    return point.speed is not None and point.score is not None and not point.partial


def _merits(point: Point) -> tuple[float, float]:
    return (
        -inf if point.speed is None else point.speed,
        -inf if point.score is None else point.score,
    )


def _beats(one: Point, other: Point) -> bool:
    ours, theirs = _merits(one), _merits(other)
    as_good = all(mine >= its for mine, its in zip(ours, theirs, strict=True))
    better = ours != theirs or one.need < other.need
    return as_good and one.need <= other.need and better
