"""The models that no other beats: the Pareto front of speed, score and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, floor, inf, log, log10, pi, sqrt

from morocco.charts.labels import Box, Circle, Line, Place, place_labels
from morocco.errors import DataError


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


_WIDE = 10
"""Values that differ by more than this factor are hard to tell apart on a linear axis."""


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`."""

    low: float
    high: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return where a value stands: 0 at the low end, 1 at the high one."""
        low, high, value = (self._bend(number) for number in (self.low, self.high, value))
        return (value - low) / (high - low)

    def _bend(self, value: float) -> float:
        return log(value) if self.logarithmic else value


def fit_axis(values: Sequence[float], padding: float, *, may_bend: bool = False) -> Axis:
    """Return an axis on which all `values` are at least `padding` (below 0.5) from both ends.

    It is logarithmic where it may be, and where the values differ by more than a factor of ten.
    """
    least, most = min(values), max(values)
    if may_bend and least > 0 and most / least > _WIDE:
        low, high = _pad(log(least), log(most), padding)
        return Axis(exp(low), exp(high), logarithmic=True)
    if least == most:
        room = abs(least) * 0.2 or 0.1
        least, most = least - room, most + room
    return Axis(*_pad(least, most, padding))


def _pad(low: float, high: float, padding: float) -> tuple[float, float]:
    more = (high - low) * padding / (1 - 2 * padding)
    return low - more, high + more


LARGEST, SMALLEST, UNKNOWN = 30.0, 2.5, 4.0
"""Radii: of the largest disc where there is room, the smallest, and one of unknown memory."""
RING = 3.0
"""How far outside a disc the ring of the front is."""
_SHARE = 0.1
"""Of the chart: what all discs together may cover."""
_SHRINK = (1.0, 0.8, 0.6, 0.4, 0.25)
"""The discs give way where labels do not fit beside them."""
_MARGIN = RING + 8

Measure = Callable[[Point], tuple[float, float]]
"""Tells the width and height of the label of a point."""


@dataclass(frozen=True)
class Disc:
    """One model on the chart."""

    point: Point
    circle: Circle
    front: bool
    """Whether no other model is as fast, as good and as small."""
    label: Place


@dataclass(frozen=True)
class Chart:
    """All that is drawn inside the axes."""

    x: Axis
    y: Axis
    discs: tuple[Disc, ...]
    """The largest first, so that the small ones stay visible."""
    edge: tuple[tuple[float, float], ...]
    """Corners of the line of the best score at a speed."""
    key: tuple[tuple[float, float], ...]
    """GB and radius of the discs in the legend."""
    left_out: tuple[str, ...]
    """Models without speed or score."""


def is_drawn(point: Point) -> bool:
    """Tell whether a point has what it takes to have a place."""
    return bool(point.speed) and point.score is not None


def arrange(points: Sequence[Point], width: float, height: float, measure: Measure) -> Chart:
    """Return the chart of the points that have a speed and a score.

    DataError where none has both.
    """
    whole = [point for point in points if is_drawn(point)]
    if not whole:
        raise DataError(
            "There is no disc chart without speed and quality of a model at least: give the "
            "scores with --scores FILE."
        )
    left_out = tuple(point.name for point in points if not is_drawn(point))
    sizes = [measure(point) for point in whole]
    for share in _SHRINK:
        chart, free = _arrange(whole, sizes, Box(0, 0, width, height), share)
        if free:
            break
    return replace(chart, left_out=left_out)


def _arrange(
    points: Sequence[Point], sizes: Sequence[tuple[float, float]], area: Box, share: float
) -> tuple[Chart, bool]:
    """Return the chart, with discs of a share of their size, and whether the labels fit."""
    scale = _find_scale(points, area) * share
    radii = [_find_radius(point, scale) for point in points]
    x, y = _fit_axes(points, area, max(radii))
    spots = [_place(point, x, y, area) for point in points]
    front = find_front(points)
    rings = [
        Circle(*spot, radius + RING * ringed)
        for spot, radius, ringed in zip(spots, radii, front, strict=True)
    ]
    edge = _climb([spots[number] for number in find_edge(points)])
    walls = [Line(*start, *end) for start, end in pairwise(edge)]
    labels = place_labels(rings, sizes, area, walls)
    discs = [
        Disc(point, Circle(*spot, radius), ringed, label)
        for point, spot, radius, ringed, label in zip(
            points, spots, radii, front, labels.places, strict=True
        )
    ]
    discs.sort(key=lambda disc: -disc.circle.radius)
    key = tuple((memory, scale * sqrt(memory)) for memory in choose_key(points))
    return Chart(x, y, tuple(discs), edge, key, ()), labels.free


def _find_scale(points: Sequence[Point], area: Box) -> float:
    """Return the radius of one GB."""
    most = max((point.memory or 0.0 for point in points), default=0.0)
    room = _SHARE * (area.right - area.left) * (area.top - area.bottom) / len(points)
    return min(LARGEST, sqrt(room / pi)) / sqrt(most) if most else 0.0


def _find_radius(point: Point, scale: float) -> float:
    return UNKNOWN if point.memory is None else max(SMALLEST, scale * sqrt(point.memory))


def _fit_axes(points: Sequence[Point], area: Box, radius: float) -> tuple[Axis, Axis]:
    room = radius + _MARGIN
    speeds = [point.speed for point in points if point.speed]
    scores = [point.score for point in points if point.score is not None]
    across, up = (room / side for side in (area.right - area.left, area.top - area.bottom))
    return fit_axis(speeds, across, may_bend=True), fit_axis(scores, up)


def _place(point: Point, x: Axis, y: Axis, area: Box) -> tuple[float, float]:
    return x.place(point.speed or 0) * area.right, y.place(point.score or 0) * area.top


def _climb(spots: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the stairs through spots: what is between two of them, nobody has reached."""
    corners = list(spots[:1])
    for x, y in spots[1:]:
        corners += [(corners[-1][0], y), (x, y)]
    return tuple(corners)


def choose_key(points: Sequence[Point]) -> tuple[float, ...]:
    """Return three round sizes in GB that the legend shows, the largest first."""
    known = [point.memory for point in points if point.memory]
    if not known:
        return ()
    power = floor(log10(max(known)))
    series = [
        digit * 10.0**exponent for exponent in range(power, power - 4, -1) for digit in (5, 2, 1)
    ]
    start = next(number for number, size in enumerate(series) if size <= max(known) * 1.0001)
    step = 2 if max(known) > 20 * min(known) else 1
    return tuple(series[start : start + 3 * step : step])
