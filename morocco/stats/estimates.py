"""From logs to estimates: start-up time, speed, memory, and how far each can be believed.

Pure functions: logs in, numbers and plain-English warnings out. Runs are grouped by model, task,
input size and batch size; groups are never pooled. The `1_1` runs of a task are its start-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from morocco.errors import DataError
from morocco.logs.discovery import Collection, by_model_and_task
from morocco.stats.anomalies import GROUP_CHECKS, INIT_CHECKS, SERIES_CHECKS, check
from morocco.stats.grouping import Clock, Group, find_faults, find_group_faults, split
from morocco.stats.speed import compute_rps
from morocco.util.units import GIB, Seconds


@dataclass(frozen=True)
class Estimate:
    """What the runs of one model, task, input size and batch size tell."""

    model: str
    task: str
    gpu_ram: float | None
    """GB (2^30): median peak of the 1_1 runs; None where none was seen on a GPU."""
    rps: float
    """Records a second: median over the long runs of input_size / (run time - init_time)."""
    init_time: Seconds
    """Median run time of the 1_1 runs."""
    input_size: int
    batch_size: int
    runs: int
    """Long runs that count."""
    init_runs: int
    """1_1 runs that count."""
    rps_low: float | None
    """Lower end of the 95 % interval of `rps`; None where there is but one run of either kind."""
    rps_high: float | None
    """Upper end; None where the runs are too short to bound the speed."""
    gpu_ram_batch: float | None
    """GB (2^30): highest peak of the long runs; None where none was seen on a GPU."""


@dataclass(frozen=True)
class Stats:
    """The estimates of one call, sorted, and why some should not be believed."""

    estimates: tuple[Estimate, ...]
    warnings: tuple[str, ...]
    many_models: bool
    """Whether `model` is needed to tell the estimates apart."""


class IncompleteStats(DataError):
    """Some logs give no numbers; `stats` holds those of the others."""

    def __init__(self, message: str, stats: Stats) -> None:
        super().__init__(message)
        self.stats = stats


def estimate(collection: Collection, clock: Clock = "log") -> Stats:
    """Return one estimate for each model, task, input size and batch size, sorted by them.

    `clock` "gpu" recomputes logs whose clock started late from their first GPU reading; runs
    without one are left out. IncompleteStats lists every task that lacks runs and every run that
    has no speed because it is not longer than the start-up.
    """
    logs = sorted(collection.logs, key=lambda log: (log.model, log.path, log.name))
    many = collection.many_models
    tasks = [split(of_task, clock, many) for of_task in by_model_and_task(logs).values()]
    faults = [fault for task in tasks for fault in find_faults(task)]
    groups: list[Group] = []
    for group in (group for task in tasks for group in task.groups):
        found = list(find_group_faults(group))
        faults += found
        groups += [group] if group.init.runs and not found else []
    stats = summarise(groups, many)
    if faults:
        raise IncompleteStats("\n".join(faults), stats)
    return stats


def summarise(groups: Sequence[Group], many_models: bool) -> Stats:
    """Return one estimate for each group, in their order; every run outlasts its start-up."""
    inits = {id(group.init): group.init for group in groups}
    warnings = (
        *check(INIT_CHECKS, list(inits.values())),
        *check(SERIES_CHECKS, [group.long for group in groups]),
        *check(GROUP_CHECKS, groups),
    )
    return Stats(tuple(map(_estimate, groups)), warnings, many_models)


def _estimate(group: Group) -> Estimate:
    path, (low, high) = group.path, group.interval
    known = min(len(group.init.runs), len(group.long.runs)) > 1  # one run says nothing of others
    init_peaks, peaks = group.init.gpu_peaks, group.long.gpu_peaks
    return Estimate(
        model=group.long.logs[0].model,
        task=path.task,
        gpu_ram=median(init_peaks) / GIB if init_peaks else None,
        rps=compute_rps(path.input_size, group.init_time, group.long.times),
        init_time=group.init_time,
        input_size=path.input_size,
        batch_size=path.batch_size,
        runs=len(group.long.runs),
        init_runs=len(group.init.runs),
        rps_low=low if known and isfinite(low) else None,
        rps_high=high if known and isfinite(high) else None,
        gpu_ram_batch=max(peaks) / GIB if peaks else None,
    )
