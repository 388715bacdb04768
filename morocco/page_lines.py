"""Runs as thin lines of a small picture: plain geometry in whole pixels, quick for many logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import isnan, nan
from statistics import fmean
from typing import NamedTuple

from morocco.units import Seconds


class Pixel(NamedTuple):
    """A point of a line; y grows downwards."""

    x: int
    y: int


class Scale(NamedTuple):
    """Seconds and readings as pixels."""

    across: float
    """Pixels a second."""
    up: float
    """Pixels a unit."""
    floor: int
    """Where 0 is."""


def trace(times: Sequence[Seconds], values: Sequence[float], scale: Scale) -> str:
    """Return readings over time as the path of an SVG; NaN is a gap, the first time is 0."""
    return "".join(map(_write, _thin(_to_pixels(times, values, scale))))


def take_means(
    times: Sequence[Seconds], values: Sequence[float], step: Seconds
) -> tuple[list[Seconds], list[float]]:
    """Return the mean of the readings of each `step` seconds, in the middle of them; gaps stay."""
    means: list[tuple[Seconds, float]] = []
    start = times[0] if times else 0.0

    def get_column(reading: tuple[Seconds, float]) -> tuple[int, bool]:
        return int((reading[0] - start) / step), isnan(reading[1])

    for _, same in groupby(zip(times, values, strict=True), get_column):
        moments, readings = zip(*same, strict=True)
        means.append((fmean(moments), fmean(readings)))
    return [start, *(time for time, _ in means)], [nan, *(value for _, value in means)]


def _to_pixels(
    times: Sequence[Seconds], values: Sequence[float], scale: Scale
) -> Iterator[list[Pixel]]:
    """Yield the unbroken pieces of a line."""
    start = times[0] if times else 0.0
    across, up, floor = scale
    piece: list[Pixel] = []
    for time, value in zip(times, values, strict=True):
        if value == value:  # no NaN
            piece.append(Pixel(round((time - start) * across), round(floor - value * up)))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _thin(pieces: Iterable[list[Pixel]]) -> Iterator[list[Pixel]]:
    """Keep the first, the lowest, the highest and the last point of each column of pixels."""
    for piece in pieces:
        kept: list[Pixel] = []
        column: list[Pixel] = []
        for point in piece:
            if column and point.x != column[0].x:
                kept += _keep_extremes(column)
                column = []
            column.append(point)
        yield kept + _keep_extremes(column)


def _keep_extremes(column: list[Pixel]) -> list[Pixel]:
    if len(column) < 3:
        return column
    heights = [point.y for point in column]
    places = {0, heights.index(min(heights)), heights.index(max(heights)), len(column) - 1}
    return [column[place] for place in sorted(places)]


def _write(piece: Sequence[Pixel]) -> str:
    """Return a piece as steps from point to point; one of a single point as a dot."""
    start = piece[0]
    text = f"M{start.x} {start.y}"
    steps = [
        (one.x - other.x, one.y - other.y)
        for one, other in zip(piece[1:], piece[:-1], strict=True)
        if one != other
    ]
    # Level pieces are common: one long step for all of them.
    return text + "l" + " ".join(_join(steps)) if steps else text + "h0"


def _join(steps: Iterable[tuple[int, int]]) -> Iterator[str]:
    level = 0
    for across, up in steps:
        if up == 0:
            level += across
            continue
        if level:
            yield f"{level} 0"
            level = 0
        yield f"{across} {up}"
    if level:
        yield f"{level} 0"
