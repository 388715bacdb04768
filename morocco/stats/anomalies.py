"""What runs are odd, and by how much: the arithmetic behind the doubts and the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil, isfinite
from operator import attrgetter
from pathlib import PurePath
from statistics import fmean, median, stdev
from typing import NamedTuple, TypeVar

from morocco.logs.log import Log
from morocco.stats.grouping import USUAL_RUNS, Group, Series, TimedRun, find_period, is_late
from morocco.util.units import Seconds, plural

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
    run: TimedRun


class Spread(NamedTuple):
    """How much the speed varies within a group."""

    variation: float
    """Standard deviation / mean."""
    median: float
    speeds: tuple[Speed, ...]


def has_reading(log: Log) -> bool:
    """Tell whether a line holds a reading: a closing line without any is usual."""
    return any(value is not None for sample in log.samples for value in sample[1:])


def find_slow_starts(series: Series, limit: float = COLD_START) -> list[TimedRun]:
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


FEW_RUNS = 3
"""With fewer runs one odd run moves the median."""
_get_time = attrgetter("time")


def _find_few(series: Series) -> str | None:
    return plural(len(series.runs), "run") if len(series.runs) < FEW_RUNS else None


def _find_null(series: Series) -> str | None:
    return _list_files(run.log for run in series.runs if not has_reading(run.log))


def _find_left_out(series: Series) -> str | None:
    timed = {run.log.name for run in series.runs}
    return _list_files(log for log in series.logs if log.name not in timed)


def _find_cold(series: Series) -> str | None:
    slow = find_slow_starts(series)
    fastest = _show_run(min(series.runs, key=_get_time))
    return f"{', '.join(map(_show_run, slow))}; the fastest: {fastest}" if slow else None


def _show_run(run: TimedRun) -> str:
    return f"{PurePath(run.log.name).name} {run.time:.1f} s"


def _find_late(group: Group) -> str | None:
    return "" if is_late(group) else None


def _find_short(group: Group) -> str | None:
    work = find_short_work(group)
    if work is None:
        return None
    return f"{work.time:.1f} s, {work.samples:.0f} samples; --input-size {work.enough} would do"


def _find_spread(group: Group) -> str | None:
    spread = find_spread(group)
    if spread is None:
        return None
    odd = max(spread.speeds, key=lambda speed: abs(speed.rps - spread.median))
    name = PurePath(odd.run.log.name).name
    return f"{spread.variation:.0%}; {name} has {odd.rps:.4g}, the median is {spread.median:.4g}"


def _find_unbounded(group: Group) -> str | None:
    return None if isfinite(group.interval[1]) else ""


def _list_files(logs: Iterable[Log]) -> str | None:
    return ", ".join(PurePath(log.name).name for log in logs) or None


_Checked = TypeVar("_Checked", Series, Group)
_Checks = tuple[tuple[str, Callable[[_Checked], str | None]], ...]

SERIES_CHECKS: _Checks[Series] = (
    (
        f"Fewer than {FEW_RUNS} runs: one odd run decides, and the interval says little; make it "
        f"{USUAL_RUNS}, as the leaderboard asks",
        _find_few,
    ),
    (
        "No reading on any line, the process was not found: the run time counts, the memory is "
        "unknown; measure again",
        _find_null,
    ),
    ("Left out, no GPU reading to start the clock from", _find_left_out),
)
INIT_CHECKS: _Checks[Series] = (
    *SERIES_CHECKS,
    (
        "Start-up times differ: the first runs of a fresh image are slow, a run that was cut off "
        "is short, and either makes the speed wrong; measure these again",
        _find_cold,
    ),
)
GROUP_CHECKS: _Checks[Group] = (
    (
        "The clock started late, with the task already loaded, so the speed is too high; use "
        "--clock gpu, or measure again",
        _find_late,
    ),
    ("Too little work beside the start-up to time it well; use a larger input", _find_short),
    ("The speed varies from run to run; measure the odd ones again", _find_spread),
    (
        "The speed has no upper bound (rps_high), some runs are hardly longer than some "
        "start-ups; use a larger input, and measure slow start-ups again",
        _find_unbounded,
    ),
)


def check(checks: _Checks[_Checked], subjects: Sequence[_Checked]) -> Iterator[str]:
    """Yield one warning a check, however many it concerns: one tool's logs share their faults."""
    for what, find in checks:
        details = [(subject.label, find(subject)) for subject in subjects]
        found = [(label, detail) for label, detail in details if detail is not None]
        if found:
            yield _say(what, found)


def _say(what: str, found: list[tuple[str, str]]) -> str:
    if not any(detail for _, detail in found):
        return f"{what}: {', '.join(label for label, _ in found)}"
    start = "\n  " if len(found) > 1 else " "
    return f"{what}:" + "".join(f"{start}{label}: {detail}" for label, detail in found)
