"""The runs of a task, sorted into start-ups and long series, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from pathlib import PurePath
from statistics import median
from typing import Literal, NamedTuple

from morocco.logs.log import Log, LogPath
from morocco.stats.speed import bootstrap_rps, is_longer
from morocco.util.units import Bytes, Seconds

Clock = Literal["log", "gpu"]
"""Where a run time starts: at the first line of its log, or at its first GPU reading."""

USUAL_RUNS = 5
"""What the leaderboard asks for."""
LATE_RAM: Bytes = 100 * 2**20
LATE_RAM_TIMES = 4
"""Loaded imports are 288 to 320 MB in the published logs, a process just started 1 to 15 MB."""
_TELLING = 100_000
"""Lines that tell the sampling period: nine hours of them. Millions would fill the memory."""


class TimedRun(NamedTuple):
    """A run and how long it took by the clock in use."""

    time: Seconds
    log: Log


@dataclass(frozen=True)
class Series:
    """The runs of one task that share input and batch size."""

    label: str
    logs: tuple[Log, ...]
    runs: tuple[TimedRun, ...]
    """Those that the clock can time."""

    @cached_property
    def times(self) -> list[Seconds]:
        """Sorted, so that the order of the logs cannot matter to the bootstrap."""
        return sorted(run.time for run in self.runs)

    @cached_property
    def gpu_peaks(self) -> list[Bytes]:
        """The peak of each run that was seen on a GPU."""
        return [peak for log in self.logs if (peak := log.gpu_ram) is not None]


@dataclass(frozen=True)
class Group:
    """A long series beside the start-ups that it is measured against."""

    init: Series
    long: Series
    clock: Clock

    @property
    def label(self) -> str:
        return self.long.label

    @property
    def path(self) -> LogPath:
        return self.long.logs[0].path

    @cached_property
    def init_time(self) -> Seconds:
        return median(self.init.times)

    @cached_property
    def interval(self) -> tuple[float, float]:
        return bootstrap_rps(self.path.input_size, self.init.times, self.long.times)


@dataclass(frozen=True)
class TaskRuns:
    """All runs of one task of one model."""

    init: Series
    groups: tuple[Group, ...]


def split(logs: list[Log], clock: Clock, many_models: bool) -> TaskRuns:
    """Sort the logs of one task into its start-ups and its long series."""
    model, task = logs[0].model, logs[0].path.task
    prefix = f"{model} {task}" if many_models else task
    by_size: dict[tuple[int, int], list[Log]] = {(1, 1): []}
    for log in logs:
        by_size.setdefault((log.path.input_size, log.path.batch_size), []).append(log)
    init, *long = (
        _time(of_size, clock, f"{prefix} {size}_{batch}")
        for (size, batch), of_size in by_size.items()
    )
    return TaskRuns(init, tuple(Group(init, series, clock) for series in long))


def _time(logs: list[Log], clock: Clock, label: str) -> Series:
    times = [log.run_time if clock == "log" else log.gpu_run_time for log in logs]
    timed = zip(times, logs, strict=True)
    return Series(label, tuple(logs), tuple(TimedRun(t, log) for t, log in timed if t is not None))


def is_late(group: Group) -> bool:
    """Tell whether the task was loaded at the first line of the long runs, not of the 1_1 runs."""
    long = first_ram(group.long.logs)
    return group.clock == "log" and long is not None and _is_loaded(long, group)


def find_late(group: Group) -> list[Log]:
    """Return the long runs whose task was loaded at the first line, one by one."""
    firsts = ((log, log.samples[0].ram) for log in group.long.logs)
    return [log for log, ram in firsts if ram is not None and _is_loaded(ram, group)]


def _is_loaded(ram: float, group: Group) -> bool:
    init = first_ram(group.init.logs)
    return init is not None and ram - init > LATE_RAM and ram > LATE_RAM_TIMES * init


def first_ram(logs: Sequence[Log]) -> float | None:
    """Return the median RAM of the first line, None where no log tells it."""
    firsts = [ram for log in logs if (ram := log.samples[0].ram) is not None]
    return median(firsts) if firsts else None


def find_period(log: Log) -> Seconds | None:
    """Return the sampling period: the median gap between lines; None for less than two moments."""
    moments = islice(log.columns["timestamp"], _TELLING)
    told = [gap for before, after in pairwise(moments) if (gap := after - before) > 0]
    return median(told) if told else None


def find_faults(task: TaskRuns) -> Iterator[str]:
    """Yield why a whole task has no numbers: one sentence a fault, with the way out."""
    if not task.init.logs:
        yield _say_missing(task, "1_1", "init time", 1, 1)
    elif not task.init.runs:
        yield _say_never_on_gpu(task.init)
    if not task.groups:
        yield _say_missing(task, "long", "speed", 2000, 32)


def find_group_faults(group: Group) -> Iterator[str]:
    """Yield why one input and batch size has no speed."""
    if not group.long.runs:
        yield _say_never_on_gpu(group.long)
    elif group.init.runs:
        yield from _find_too_short(group)


def _say_never_on_gpu(series: Series) -> str:
    return (
        f"{_folder(series)}: no run of {series.label} has a GPU reading, so --clock gpu has "
        "nothing to start from. Leave the option out."
    )


def _say_missing(task: TaskRuns, kind: str, what: str, input_size: int, batch_size: int) -> str:
    folder = _folder(task.init, *(group.long for group in task.groups))
    return (
        f"{folder} has no {kind} runs, so its {what} is unknown. Add them: `morocco bench … "
        f"-o {folder}/{input_size}_{batch_size}_01.jsonl "
        f"--input-size {input_size} --batch-size {batch_size}`, {USUAL_RUNS} times (_01 to _05)."
    )


def _folder(*several: Series) -> PurePath:
    """Return where the logs of a task lie, as the user called it."""
    return next(PurePath(log.name).parent for series in several for log in series.logs)


def _find_too_short(group: Group) -> Iterator[str]:
    runs = (run for run in group.long.runs if not is_longer(run.time, group.init_time))
    short = ", ".join(run.log.name for run in runs)
    hint = " The clock of these logs started late: try --clock gpu." if is_late(group) else ""
    if short:
        yield (
            f"{short}: not longer than the start-up alone ({group.init_time:.3f} s, median of "
            f"{group.init.label}), so there is no speed. Use a larger --input-size than "
            f"{group.path.input_size}; a run that was cut off must be measured again.{hint}"
        )
