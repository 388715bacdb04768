"""The runs of a task, grouped by size: start-up runs, and the long runs beside them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Literal, NamedTuple

from morocco.logs.log import INIT_SIZE, Log, LogPath, Size, group_by_size
from morocco.stats.speed import bound_speed, compute_rps, is_longer
from morocco.util.units import Bytes, Seconds

Clock = Literal["log", "gpu"]
"""Where a run time starts: at the first line of the log, or at its first GPU reading."""


class TimedRun(NamedTuple):
    """A run and how long it took by the clock in use."""

    time: Seconds
    log: Log


@dataclass(frozen=True)
class Series:
    """The runs of one task and size."""

    label: str
    logs: tuple[Log, ...]
    runs: tuple[TimedRun, ...]
    """Those that the clock can time."""

    @cached_property
    def times(self) -> list[Seconds]:
        """Sorted, from the fastest to the slowest."""
        return sorted(run.time for run in self.runs)

    @cached_property
    def gpu_peaks(self) -> list[Bytes]:
        """The peak of each run that was seen on a GPU."""
        return [peak for log in self.logs if (peak := log.gpu_ram) is not None]

    @cached_property
    def ram_peaks(self) -> list[Bytes]:
        """The peak RAM of each run that has one."""
        return [peak for log in self.logs if (peak := log.ram) is not None]

    @cached_property
    def first_ram(self) -> float | None:
        """The median RAM at the first line; None if no log has a reading there."""
        firsts = [ram for log in self.logs if (ram := log.samples[0].ram) is not None]
        return median(firsts) if firsts else None


@dataclass(frozen=True)
class Group:
    """The long runs of one size beside the start-up runs of their task."""

    init: Series
    long: Series
    clock: Clock

    @property
    def label(self) -> str:
        return self.long.label

    @property
    def path(self) -> LogPath:
        """Of one of the long runs: all share task and size."""
        return self.long.logs[0].path

    @cached_property
    def init_time(self) -> Seconds:
        return median(self.init.times)

    @cached_property
    def rps(self) -> float:
        """The speed in records a second; inf where a run is too short for one."""
        return compute_rps(self.path.input_size, self.init_time, self.long.times)

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the speed; inf where it has no bound, None for single runs."""
        return bound_speed(self.path.input_size, self.init.times, self.long.times, self.rps)

    @cached_property
    def too_short(self) -> list[TimedRun]:
        """The long runs that are not longer than the start-up alone: they have no speed."""
        if not self.init.runs:
            return []
        return [run for run in self.long.runs if not is_longer(run.time, self.init_time)]

    @property
    def has_speed(self) -> bool:
        return bool(self.init.runs and self.long.runs) and not self.too_short


@dataclass(frozen=True)
class TaskRuns:
    """All runs of one task of one model."""

    init: Series
    groups: tuple[Group, ...]


def group_runs(logs: list[Log], clock: Clock, many_models: bool) -> TaskRuns:
    """Group the logs of one task of one model; with `many_models`, labels name the model."""
    model, task = logs[0].model, logs[0].path.task
    prefix = f"{model} {task}" if many_models else task
    by_size: dict[Size, list[Log]] = {INIT_SIZE: []} | group_by_size(logs)
    init, *long = (
        _time(of_size, clock, f"{prefix} {size}_{batch}")
        for (size, batch), of_size in by_size.items()
    )
    return TaskRuns(init, tuple(Group(init, series, clock) for series in long))


def _time(logs: list[Log], clock: Clock, label: str) -> Series:
    times = [log.run_time if clock == "log" else log.gpu_run_time for log in logs]
    timed = zip(times, logs, strict=True)
    return Series(label, tuple(logs), tuple(TimedRun(t, log) for t, log in timed if t is not None))
