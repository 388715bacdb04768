"""The disc chart as data: the Pareto front of speed, score and memory, axes, discs and labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, floor, inf, log, log10, pi, sqrt

from morocco.charts.labels import Box, Circle, Label, Line, Scene, place_labels
from morocco.errors import DataError

LARGEST, SMALLEST, UNKNOWN = 30.0, 2.5, 4.0
"""Radii in points: the largest disc where there is room, the smallest, one of unknown memory."""
RING = 3.0
"""How far outside its disc the ring of a model on the front is."""
_MARGIN = RING + 8
_TOTAL_AREA = 0.1
"""What all discs together may cover of the chart."""
_SHRINKAGE = (1.0, 0.7, 0.4, 0.25)
"""Sizes of the discs, tried in turn until the labels fit."""
_MAX_LINEAR_RATIO = 10
"""Values further apart are hard to tell apart on a linear axis."""

_SPAN = 4
"""Widths of the widest interval that an axis shows at least, so that noise looks like noise."""
_SAME_MEMORY = 0.01
"""Memory that differs by less is the same for any purpose."""
_ANY_GPU = 1e9
"""GB; more than any model without a GPU needs."""

Interval = tuple[float, float]
MeasureLabel = Callable[["Point"], tuple[float, float]]
"""Returns the width and height of the label of a model."""


@dataclass(frozen=True)
class Point:
    """A model on the disc chart; None is unknown."""

    name: str
    speed: float | None
    """Records a second."""
    score: float | None
    memory: float | None
    """GB (2^30): of the GPU, or RAM where the model used none."""
    on_gpu: bool = True
    """Which of the two `memory` is."""
    partial: bool = False
    """Whether tasks are missing, so that its speed is not comparable."""
    speed_bounds: tuple[float, float] | None = None
    """The interval of `speed`; None where it is not known."""

    @property
    def is_comparable(self) -> bool:
        return self.speed is not None and self.score is not None and not self.partial

    @property
    def merits(self) -> tuple[Interval, Interval, Interval]:
        """Speed, score and how little it needs, each from the worst to the best that it may be.

        No GPU needs less than any GPU, and unknown memory counts as the most.
        """
        speed, score = self.speed or 0.0, self.score or 0.0
        if self.memory is None:
            need = inf, inf
        else:
            kind = _ANY_GPU if self.on_gpu else 0.0
            margin = self.memory * _SAME_MEMORY / 2
            need = kind + self.memory - margin, kind + self.memory + margin
        return self.speed_bounds or (speed, speed), (score, score), (-need[1], -need[0])


def find_front(points: Sequence[Point]) -> list[bool]:
    """Tell for each point whether no other is really better in one merit and really worse in none.

    Models that differ by noise alone do not push one another off the front.
    """
    known = [point.merits for point in points if point.is_comparable]
    return [
        point.is_comparable and not any(_beats(other, point.merits) for other in known)
        for point in points
    ]


def _beats(one: Sequence[Interval], other: Sequence[Interval]) -> bool:
    better = any(mine[0] > its[1] for mine, its in zip(one, other, strict=True))
    worse = any(mine[1] < its[0] for mine, its in zip(one, other, strict=True))
    return better and not worse


def find_edge(points: Sequence[Point]) -> list[int]:
    """Return which points have the best score at their speed or faster, the slowest first."""
    merits = {
        number: (point.speed or 0.0, point.score or 0.0)
        for number, point in enumerate(points)
        if point.is_comparable
    }
    edge: list[int] = []
    for number in sorted(merits, key=merits.__getitem__, reverse=True):
        if not edge or merits[number][1] > merits[edge[-1]][1]:
            edge.append(number)
    return edge[::-1]


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`."""

    low: float
    high: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return where a value is: 0 at the low end, 1 at the high one."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = log(low), log(high), log(value)
        return (value - low) / (high - low)


def fit_axis(
    values: Sequence[float], padding: float, *, may_bend: bool = False, least: float = 0.0
) -> Axis:
    """Return an axis on which all `values` are at least `padding` (below 0.5) from both ends.

    It is logarithmic if it may bend and the values span more than a factor of ten. It spans at
    least `least`.
    """
    low, high = min(values), max(values)
    if high - low < least:
        missing = (least - (high - low)) / 2
        low, high = low - missing, high + missing
    logarithmic = may_bend and low > 0 and high / low > _MAX_LINEAR_RATIO
    if logarithmic:
        low, high = log(low), log(high)
    elif low == high:
        room = abs(low) * 0.2 or 0.1
        low, high = low - room, high + room
    more = (high - low) * padding / (1 - 2 * padding)
    low, high = low - more, high + more
    return Axis(exp(low), exp(high), logarithmic=True) if logarithmic else Axis(low, high)


@dataclass(frozen=True)
class Disc:
    """One model on the chart."""

    point: Point
    circle: Circle
    on_front: bool
    label: Label
    whisker: tuple[float, float] | None
    """The ends of the interval of the speed, across."""


@dataclass(frozen=True)
class Chart:
    """All that is drawn inside the axes."""

    x: Axis
    y: Axis
    discs: tuple[Disc, ...]
    """The largest first, so that the small ones stay visible."""
    edge: tuple[tuple[float, float], ...]
    """Corners of the line of the best score at a speed or faster."""
    key: tuple[tuple[float, float], ...]
    """GB and radius of the discs in the legend."""


def is_drawn(point: Point) -> bool:
    """Tell whether a point has the speed and the score to be placed."""
    return bool(point.speed) and point.score is not None


def arrange(points: Sequence[Point], width: float, height: float, measure: MeasureLabel) -> Chart:
    """Return the chart of the points that have a speed and a score; DataError if none has both."""
    drawn = [point for point in points if is_drawn(point)]
    if not drawn:
        raise DataError(
            "The disc chart needs a model with both speed and score: pass scores with "
            "--scores FILE."
        )
    sizes = [measure(point) for point in drawn]
    for share in _SHRINKAGE:
        chart, fits = _arrange(drawn, sizes, Box(0, 0, width, height), share)
        if fits:
            break
    return chart


def _arrange(
    points: Sequence[Point], sizes: Sequence[tuple[float, float]], area: Box, share: float
) -> tuple[Chart, bool]:
    """Return the chart with discs of a share of their size, and whether the labels fit."""
    _, _, width, height = area
    most = max(point.memory or 0.0 for point in points)
    largest = min(LARGEST, sqrt(_TOTAL_AREA * width * height / len(points) / pi))
    scale = share * largest / sqrt(most) if most else 0.0
    radii = [
        UNKNOWN if point.memory is None else max(SMALLEST, scale * sqrt(point.memory))
        for point in points
    ]
    speeds, scores = [point.speed or 0 for point in points], [point.score or 0 for point in points]
    room = max(radii) + _MARGIN
    bounds = [point.speed_bounds for point in points if point.speed_bounds]
    ends = [*speeds, *(end for interval in bounds for end in interval)]
    widest = max((high - low for low, high in bounds), default=0.0)
    x = fit_axis(ends, room / width, may_bend=True, least=_SPAN * widest)
    y = fit_axis(scores, room / height)
    centres = [
        (x.place(speed) * width, y.place(score) * height)
        for speed, score in zip(speeds, scores, strict=True)
    ]
    edge = _build_stairs([centres[number] for number in find_edge(points)])
    front = find_front(points)
    outlines = [
        Circle(*centre, radius + RING * on_front)
        for centre, radius, on_front in zip(centres, radii, front, strict=True)
    ]
    whiskers = [_place(point.speed_bounds, x, width) for point in points]
    lines = [Line(*start, *end) for start, end in pairwise(edge)]
    for ends_across, (_, up) in zip(whiskers, centres, strict=True):
        lines += [Line(ends_across[0], up, ends_across[1], up)] if ends_across else []
    placing = place_labels(Scene(outlines, area, lines), sizes)
    discs = [
        Disc(point, Circle(*centre, radius), front[number], placing.labels[number], whisker)
        for number, (point, centre, radius, whisker) in enumerate(
            zip(points, centres, radii, whiskers, strict=True)
        )
    ]
    discs.sort(key=lambda disc: -disc.circle.radius)
    key = tuple((memory, scale * sqrt(memory)) for memory in choose_key(points))
    return Chart(x, y, tuple(discs), edge, key), placing.fits


def _place(bounds: Interval | None, axis: Axis, width: float) -> Interval | None:
    return bounds and (axis.place(bounds[0]) * width, axis.place(bounds[1]) * width)


def _build_stairs(spots: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the corners of stairs through spots: no model reaches what is between two of them."""
    corners = list(spots[:1])
    for x, y in spots[1:]:
        corners += [(corners[-1][0], y), (x, y)]
    return tuple(corners)


def choose_key(points: Sequence[Point]) -> tuple[float, ...]:
    """Return three round sizes in GB for the legend, the largest first."""
    known = [point.memory for point in points if point.memory]
    if not known:
        return ()
    most = max(known) * 1.0001
    power = floor(log10(most))
    series = [digit * 10.0**exp for exp in range(power, power - 4, -1) for digit in (5, 2, 1)]
    fitting = [size for size in series if size <= most]
    step = 2 if most > 20 * min(known) else 1
    return tuple(fitting[: 3 * step : step])
