"""What runs are odd, and by how much: the arithmetic behind the doubts and the rules."""

from __future__ import annotations

from math import ceil
from operator import attrgetter
from statistics import fmean, median, stdev
from typing import NamedTuple

from morocco.logs import Log
from morocco.runs import Group, Run, Series, find_period
from morocco.units import Seconds

SHORT_WORK: Seconds = 5.0
"""Start-up times vary by tenths of a second: several per cent of less work than this."""
SHORT_WORK_SAMPLES = 30
"""Old logs end up to one sampling period late or early: over 3 % of less work than this."""
WIDE_SPREAD = 0.05
"""Coefficient of variation; 43 of the 54 published model x task cells stay below it."""
COLD_START = 0.25
"""(max - min) / median; warm starts differ by 1 to 5 %, cold ones take 1.25 to 4 times as long."""
COLD_START_FLOOR: Seconds = 0.5
"""A tiny model starts so fast that the machine's own jitter is a quarter of it."""


class Work(NamedTuple):
    """What is left of a long run beside its start-up."""

    time: Seconds
    samples: float
    enough: int
    """The input size that would do."""


class Speed(NamedTuple):
    """One long run and its records a second."""

    rps: float
    run: Run


class Spread(NamedTuple):
    """How much the speed varies within a group."""

    variation: float
    """Standard deviation / mean."""
    median: float
    speeds: tuple[Speed, ...]


def has_reading(log: Log) -> bool:
    """Tell whether a line holds a reading: a closing line without any is usual."""
    return any(value is not None for sample in log.samples for value in sample[1:])


def find_slow_starts(series: Series, limit: float = COLD_START) -> list[Run]:
    """Return the start-ups that take far longer than the fastest, if they differ too much."""
    fastest, spread = series.times[0], series.times[-1] - series.times[0]
    if spread <= limit * median(series.times) or spread <= COLD_START_FLOOR:
        return []
    return [run for run in series.runs if run.time - fastest > limit * fastest]


def find_short_work(group: Group) -> Work | None:
    """Return the work of a group that is too little to be timed well; its runs outlast start-up."""
    work = median(group.long.times) - group.init_time
    period = find_period(max(group.long.runs, key=attrgetter("time")).log)
    needed = max(SHORT_WORK, SHORT_WORK_SAMPLES * (period or 0))
    if period is None or work >= needed:
        return None
    enough = ceil(group.path.input_size * needed / work / 1000) * 1000
    return Work(work, work / period, enough)


def find_spread(group: Group, limit: float = WIDE_SPREAD) -> Spread | None:
    """Return the speeds of a group if they vary too much; its runs outlast the start-up."""
    size, init = group.path.input_size, group.init_time
    speeds = tuple(Speed(size / (run.time - init), run) for run in group.long.runs)
    values = [speed.rps for speed in speeds]
    if len(values) < 2 or stdev(values) <= limit * fmean(values):
        return None
    return Spread(stdev(values) / fmean(values), median(values), speeds)
