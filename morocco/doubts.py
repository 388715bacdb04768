"""What should not be believed: each check returns what it found, or None."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import ceil, isfinite
from operator import attrgetter
from pathlib import PurePath
from statistics import fmean, median, stdev
from typing import TypeVar

from morocco.logs import Log
from morocco.runs import USUAL_RUNS, Group, Run, Series, is_late
from morocco.units import Seconds, plural

FEW_RUNS = 3
"""With fewer runs one odd run moves the median."""
SHORT_WORK: Seconds = 5.0
"""Start-up times vary by tenths of a second: several per cent of less work than this."""
SHORT_WORK_SAMPLES = 30
"""Old logs end up to one sampling period late or early: over 3 % of less work than this."""
WIDE_SPREAD = 0.05
"""Coefficient of variation; 43 of the 54 published model x task cells stay below it."""
COLD_START = 0.25
"""(max - min) / median; warm starts differ by 1 to 5 %, cold ones take 1.25 to 4 times as long."""

_get_time = attrgetter("time")


def _find_few(series: Series) -> str | None:
    return plural(len(series.runs), "run") if len(series.runs) < FEW_RUNS else None


def _find_null(series: Series) -> str | None:
    return _list_files(run.log for run in series.runs if not _has_reading(run.log))


def _has_reading(log: Log) -> bool:
    # A closing line without readings is usual, so one line with a reading is enough.
    return any(value is not None for sample in log.samples for value in sample[1:])


def _find_left_out(series: Series) -> str | None:
    timed = {run.log.name for run in series.runs}
    return _list_files(log for log in series.logs if log.name not in timed)


def _find_cold(series: Series) -> str | None:
    fastest = min(series.runs, key=_get_time)
    if series.times[-1] - fastest.time <= COLD_START * median(series.times):
        return None
    slow = [run for run in series.runs if run.time - fastest.time > COLD_START * fastest.time]
    return f"{', '.join(map(_show_run, slow))}; the fastest: {_show_run(fastest)}"


def _show_run(run: Run) -> str:
    return f"{PurePath(run.log.name).name} {run.time:.1f} s"


def _find_late(group: Group) -> str | None:
    return "" if is_late(group) else None


def _find_short(group: Group) -> str | None:
    work, period = median(group.long.times) - group.init_time, _sampling_period(group.long)
    needed = max(SHORT_WORK, SHORT_WORK_SAMPLES * period)
    if work >= needed:
        return None
    enough = ceil(group.path.input_size * needed / work / 1000) * 1000
    return f"{work:.1f} s, {work / period:.0f} samples; --input-size {enough} would do"


def _sampling_period(series: Series) -> Seconds:
    """Return the median gap between the lines of the longest run, which has two or more."""
    samples = max(series.runs, key=_get_time).log.samples
    gaps = (after.timestamp - before.timestamp for before, after in pairwise(samples))
    return median(gap for gap in gaps if gap > 0)


def _find_spread(group: Group) -> str | None:
    size, init = group.path.input_size, group.init_time
    speeds = [(size / (run.time - init), run) for run in group.long.runs]
    values = [speed for speed, _ in speeds]
    if len(values) < 2 or stdev(values) <= WIDE_SPREAD * fmean(values):
        return None
    usual = median(values)
    speed, odd = max(speeds, key=lambda pair: abs(pair[0] - usual))
    spread = f"{stdev(values) / fmean(values):.0%}"
    return f"{spread}; {PurePath(odd.log.name).name} has {speed:.4g}, the median is {usual:.4g}"


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
