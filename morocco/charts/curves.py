"""Readings over time as curves that are light enough to draw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isnan
from statistics import fmean

from morocco.logs.log import UNKNOWN_SIZE, Log, Size
from morocco.util.units import GIB, Seconds, plural


@dataclass(frozen=True)
class Panel:
    """One reading over time."""

    name: str
    unit: str
    key: str
    """The field of `Sample`."""
    scale: float
    """Units of the field in one unit of the panel."""
    least: float
    """The axis reaches at least this value."""
    jumps: bool
    """Whether readings jump up and down, so that long runs are legible only as a mean."""


PANELS = (
    Panel("CPU", "cores", "cpu_usage", 1, least=1, jumps=True),
    Panel("RAM", "GB", "ram", GIB, least=0, jumps=False),
    Panel("GPU use", "%", "gpu_usage", 0.01, least=100, jumps=True),
    Panel("GPU RAM", "GB", "gpu_ram", GIB, least=0, jumps=False),
)
_MAX_READINGS = 100_000
"""Nine hours of readings; a picture has far fewer columns."""
Curve = Sequence[tuple[Seconds, float]]
"""Seconds since the start of the run, and readings in the unit of the panel; NaN is a gap."""


def build_curve(log: Log, panel: Panel) -> Curve:
    """Return the readings of a panel, not all of those of a log with a million lines."""
    step = len(log.samples) // _MAX_READINGS + 1
    times, values = log.columns["timestamp"][::step], log.columns[panel.key][::step]
    start, scale = times[0], panel.scale
    return [(time - start, value / scale) for time, value in zip(times, values, strict=True)]


def find_peak(panel: Panel, logs: Iterable[Log]) -> float | None:
    """Return the highest reading in the unit of the panel; None where there is none."""
    readings = (value for log in logs for value in log.columns[panel.key] if not isnan(value))
    peak = max(readings, default=None)
    return None if peak is None else peak / panel.scale


def describe_size(size: Size) -> str:
    """Return an input and batch size in words: "2,000 records, batch 32"."""
    if size == UNKNOWN_SIZE:
        return "size not known"
    return f"{plural(size[0], 'record')}, batch {size[1]:,}"


def keep_extremes(curve: Curve, step: Seconds) -> Curve:
    """Keep the lowest and the highest point of every `step` seconds, and one point of a gap."""
    kept = []
    for points in _split(curve, step):
        values = [value for _, value in points]
        places = {values.index(min(values)), values.index(max(values))}
        kept += [points[place] for place in sorted(places)]
    return kept


def take_means(curve: Curve, step: Seconds) -> Curve:
    """Replace the points of every `step` seconds by their mean; gaps stay."""
    return [
        (fmean(time for time, _ in points), fmean(value for _, value in points))
        for points in _split(curve, step)
    ]


def _split(curve: Curve, step: Seconds) -> Iterator[Curve]:
    """Yield the points of each column: a new one begins every `step` seconds and around a gap."""
    for _, points in groupby(curve, lambda point: (point[0] // step, isnan(point[1]))):
        yield list(points)
