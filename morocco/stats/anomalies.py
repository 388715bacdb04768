"""Anomalies of runs in numbers, and the warnings of `stats` about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from math import ceil, floor, isinf, isnan, log10
from operator import attrgetter
from pathlib import PurePath
from statistics import fmean, median, stdev
from typing import NamedTuple, TypeVar

from morocco.logs.log import Log
from morocco.logs.samples import KEYS
from morocco.stats.grouping import Group, Series, TimedRun
from morocco.util.units import Bytes, Seconds, plural

USUAL_RUNS = 5
"""What the leaderboard asks for."""
MIN_RUNS = 3
"""With fewer runs one odd run moves the median."""
SHORT_WORK: Seconds = 5.0
"""Start-up times vary by tenths of a second: several per cent of less work than this."""
SHORT_WORK_SAMPLES = 30
"""Old logs end up to one sampling period late or early: over 3 % of less work than this."""
WIDE_SPREAD = 0.05
"""Coefficient of variation; 43 of the 54 published model x task cells stay below it."""
COLD_START = 0.25
"""(max - min) / median; warm starts differ by 1 to 5 %, cold ones take 1.25 to 4 times as long."""
COLD_START_FLOOR: Seconds = 0.5
"""A tiny model starts so fast that the jitter of the machine is a quarter of its start-up."""
LATE_RAM: Bytes = 100 * 2**20
LATE_RAM_TIMES = 4
"""Loaded imports are 288 to 320 MB in the published logs, a process just started 1 to 15 MB."""
_DOUBT = 0.9
"""The share of the work that is counted on at most, ..."""
_MAX_DOUBT = 3
"""... and how many times faster than it seems a model may be at most."""
_DOUBT_FLOOR: Seconds = 0.01
_MAX_PERIODS = 100_000
"""Nine hours of lines, enough for the sampling period; millions would fill the memory."""


class Work(NamedTuple):
    """What is left of a long run after its start-up."""

    time: Seconds
    samples: float
    enough: int
    """An input size that is large enough."""


class Spread(NamedTuple):
    """How much the speed varies within a group."""

    variation: float
    """Standard deviation / mean."""
    median: float
    speeds: tuple[tuple[float, Log], ...]
    """Records a second of each long run."""


def has_reading(log: Log) -> bool:
    """Tell whether any line has a reading; a closing line normally has none."""
    columns = (log.columns[key] for key in KEYS[1:])
    return any(not isnan(value) for column in columns for value in column)


def compute_period(log: Log) -> Seconds | None:
    """Return the median gap between lines; None if all have the same timestamp."""
    moments = islice(log.columns["timestamp"], _MAX_PERIODS)
    gaps = [gap for before, after in pairwise(moments) if (gap := after - before) > 0]
    return median(gaps) if gaps else None


def is_late(group: Group) -> bool:
    """Tell whether the clock started late: long runs, unlike 1_1 runs, start with much RAM."""
    return group.clock == "log" and _is_loaded(group.long.first_ram, group.init.first_ram)


def find_late(group: Group) -> list[Log]:
    """Return the long runs whose own clock started late."""
    init = group.init.first_ram
    return [log for log in group.long.logs if _is_loaded(log.samples[0].ram, init)]


def _is_loaded(ram: float | None, init: float | None) -> bool:
    """Tell whether RAM at the first line is far above that of the start-up runs."""
    if ram is None or init is None:
        return False
    return ram - init > LATE_RAM and ram > LATE_RAM_TIMES * init


def find_slow_starts(series: Series, limit: float = COLD_START) -> list[TimedRun]:
    """Return the start-up runs far slower than the fastest, if they differ by over `limit`."""
    if not series.runs:
        return []
    fastest, spread = series.times[0], series.times[-1] - series.times[0]
    if spread <= limit * median(series.times) or spread <= COLD_START_FLOOR:
        return []
    return [run for run in series.runs if run.time - fastest > limit * fastest]


def find_short_work(group: Group) -> Work | None:
    """Return the work of a group that has a speed, if it is too short to be timed well."""
    work = median(group.long.times) - group.init_time
    period = compute_period(max(group.long.runs, key=attrgetter("time")).log)
    if period is None or work >= max(SHORT_WORK, SHORT_WORK_SAMPLES * period):
        return None
    return Work(work, work / period, choose_input_size(group))


def choose_input_size(group: Group) -> int:
    """Return an input size that is large enough to time the work well, two digits of it.

    The shorter the work, the less is known of the speed: run times and start-up times differ by
    their noise, and as much of the work may be noise too.
    """
    # A cold start is no noise: only what is faster than usual counts.
    series = (group.init.times, group.long.times)
    noise = _DOUBT_FLOOR + sum(median(times) - times[0] for times in series)
    work = median(group.long.times) - group.init_time
    least = max(min(work * _DOUBT, work - noise), work / _MAX_DOUBT, noise / _MAX_DOUBT)
    period = compute_period(max(group.long.runs, key=attrgetter("time")).log) or 0
    needed = max(SHORT_WORK, SHORT_WORK_SAMPLES * period)
    size = group.path.input_size * needed / least
    step = int(10 ** max(0, floor(log10(size)) - 1))
    return ceil(size / step) * step


def find_spread(group: Group, limit: float = WIDE_SPREAD) -> Spread | None:
    """Return the spread of a group that has a speed, if it is wider than `limit`."""
    size, init = group.path.input_size, group.init_time
    speeds = [size / (run.time - init) for run in group.long.runs]
    if len(speeds) < 2 or stdev(speeds) <= limit * fmean(speeds):
        return None
    logs = (run.log for run in group.long.runs)
    of_logs = tuple(zip(speeds, logs, strict=True))
    return Spread(stdev(speeds) / fmean(speeds), median(speeds), of_logs)


def find_warnings(groups: Sequence[Group]) -> Iterator[str]:
    """Yield one warning per kind of anomaly, however many of the groups have it."""
    inits = list({id(group.init): group.init for group in groups}.values())
    series = [*inits, *(group.long for group in groups)]
    yield from _warn(
        f"Fewer than {MIN_RUNS} runs, so one odd run decides; measure {USUAL_RUNS}, as the "
        "leaderboard asks",
        series,
        lambda of_size: plural(len(of_size.runs), "run") if len(of_size.runs) < MIN_RUNS else None,
    )
    yield from _warn(
        "No reading on any line, the process was not found: only the run time counts; measure "
        "again",
        series,
        lambda of_size: _join_names(run.log for run in of_size.runs if not has_reading(run.log)),
    )
    yield from _warn_of_sources(inits)
    yield from _warn("Left out, no GPU reading to start the clock from", series, _describe_untimed)
    yield from _warn(
        "Start-up times differ, as with a new image on a cold disk, or with a run that was cut "
        "off; measure these again",
        inits,
        _describe_slow_starts,
    )
    yield from _warn(
        "The clock started late, so the speed is too high; use --clock gpu, or measure again",
        groups,
        lambda group: "" if is_late(group) else None,
    )
    yield from _warn("Too little work to time it well; use a larger input", groups, _describe_work)
    yield from _warn(
        "The speed varies between runs; measure more of all of them", groups, _describe_spread
    )
    yield from _warn(
        "The speed has no upper bound (rps_high), because some runs are hardly longer than some "
        "start-ups; use a larger input, and measure slow start-ups again",
        groups,
        lambda group: "" if group.interval and isinf(group.interval[1]) else None,
    )


_Subject = TypeVar("_Subject", Series, Group)


def _warn(
    what: str, subjects: Iterable[_Subject], describe: Callable[[_Subject], str | None]
) -> Iterator[str]:
    """Yield a warning that lists the subjects for which `describe` returns a text, maybe empty."""
    described = ((subject.label, describe(subject)) for subject in subjects)
    details = [(label, detail) for label, detail in described if detail is not None]
    if not any(detail for _, detail in details):
        labels = ", ".join(label for label, _ in details)
        yield from [f"{what}: {labels}"] if labels else []
    else:
        start = "\n  " if len(details) > 1 else " "
        yield f"{what}:" + "".join(f"{start}{label}: {detail}" for label, detail in details)


def _describe_untimed(series: Series) -> str | None:
    timed = {run.log.name for run in series.runs}
    return _join_names(log for log in series.logs if log.name not in timed)


def _describe_slow_starts(series: Series) -> str | None:
    slow = find_slow_starts(series)
    fastest = _format_run(min(series.runs, key=attrgetter("time")))
    return f"{', '.join(map(_format_run, slow))}; the fastest: {fastest}" if slow else None


def _format_run(run: TimedRun) -> str:
    return f"{PurePath(run.log.name).name} {run.time:.1f} s"


def _describe_work(group: Group) -> str | None:
    work = find_short_work(group)
    if work is None:
        return None
    return f"{work.time:.1f} s, {work.samples:.0f} samples; --input-size {work.enough} is enough"


def _describe_spread(group: Group) -> str | None:
    spread = find_spread(group)
    if spread is None:
        return None
    speeds = [rps for rps, _ in spread.speeds]
    return f"{spread.variation:.0%}, from {min(speeds):.4g} to {max(speeds):.4g}"


def _warn_of_sources(inits: Sequence[Series]) -> Iterator[str]:
    labels: dict[str, dict[str, None]] = {}
    for series in inits:
        for log in series.logs:
            if log.ram is not None:
                labels.setdefault(log.ram_source, {})[series.label] = None
    if len(labels) > 1:
        kinds = "; ".join(f"{source}: {', '.join(names)}" for source, names in labels.items())
        yield f"RAM was measured in several ways and does not compare, {kinds}."


def _join_names(logs: Iterable[Log]) -> str | None:
    return ", ".join(PurePath(log.name).name for log in logs) or None
