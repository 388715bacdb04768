"""Compute estimates from logs: start-up time, speed and memory, and how reliable they are.

Runs are grouped by model, task, input size and batch size; groups are never pooled. The `1_1` runs
of a task measure its start-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isinf
from pathlib import PurePath
from statistics import median
from typing import Literal

from morocco.errors import DataError
from morocco.logs.discovery import Collection
from morocco.logs.log import group_by_task
from morocco.stats.anomalies import USUAL_RUNS, choose_input_size, find_warnings, is_late
from morocco.stats.grouping import Clock, Group, Series, TaskRuns, group_runs
from morocco.stats.intervals import bound_values, measure
from morocco.util.units import GIB, Bytes, Seconds


@dataclass(frozen=True)
class Estimate:
    """What the runs of one model, task, input size and batch size measure."""

    model: str
    task: str
    gpu_ram: float | None
    """GB (2^30): median peak of the 1_1 runs; None if none was seen on a GPU."""
    rps: float
    """Records a second: median over the long runs of input_size / (run time - init_time)."""
    init_time: Seconds
    """Median run time of the 1_1 runs."""
    input_size: int
    batch_size: int
    runs: int
    """Number of long runs used."""
    init_runs: int
    """Number of 1_1 runs used."""
    rps_low: float | None
    """Lower end of the 95 % interval of `rps`; None for a single run of either kind."""
    rps_high: float | None
    """Upper end; None also if the runs are too short to bound the speed."""
    gpu_ram_batch: float | None
    """GB (2^30): highest peak of the long runs; None if none was seen on a GPU."""
    ram: float | None = None
    """GB (2^30): median peak of the 1_1 runs; None if unknown."""
    limit: Literal["init", "runs"] | None = None
    """Which runs widen the interval of `rps` most: those of 1_1, or the long ones."""
    init_time_low: Seconds | None = None
    """Lower end of the 95 % interval of `init_time`; None for a single 1_1 run."""
    init_time_high: Seconds | None = None
    """Upper end, as of the following."""
    gpu_ram_low: float | None = None
    gpu_ram_high: float | None = None
    ram_low: float | None = None
    ram_high: float | None = None


@dataclass(frozen=True)
class Stats:
    """The estimates of one call, sorted, and warnings about those that are not reliable."""

    estimates: tuple[Estimate, ...]
    warnings: tuple[str, ...]
    many_models: bool
    """Whether `model` is needed to tell the estimates apart."""


class IncompleteStats(DataError):
    """Some logs give no estimate; `stats` holds the estimates of the others."""

    def __init__(self, message: str, stats: Stats) -> None:
        super().__init__(message)
        self.stats = stats


def estimate(collection: Collection, clock: Clock = "log") -> Stats:
    """Return one estimate for each model, task, input size and batch size, sorted by them.

    `clock` "gpu" times runs from their first GPU reading, for logs whose clock started late; runs
    without one are left out. IncompleteStats lists every task that lacks runs and every run that
    has no speed because it is not longer than the start-up.
    """
    logs = sorted(collection.logs, key=lambda log: (log.model, log.path, log.name))
    many = collection.many_models
    tasks = [group_runs(of_task, clock, many) for of_task in group_by_task(logs).values()]
    groups = [group for task in tasks for group in task.groups]
    stats = summarise([group for group in groups if group.has_speed], many)
    faults = [fault for task in tasks for fault in _find_task_faults(task)]
    faults += [fault for group in groups for fault in _find_group_faults(group)]
    if faults:
        raise IncompleteStats("\n".join(faults), stats)
    return stats


def _find_task_faults(task: TaskRuns) -> Iterator[str]:
    """Yield why a whole task has no estimate, and what to do about it."""
    folder = _get_folder(task.init, *(group.long for group in task.groups))
    for logs, kind, what, size, batch in (
        (task.init.logs, "1_1", "init time", 1, 1),
        (task.groups, "long", "speed", 2000, 32),
    ):
        if not logs:
            yield (
                f"{folder} has no {kind} runs, so its {what} is unknown. Add them: "
                f"`morocco bench … -o {folder}/{size}_{batch}_01.jsonl --input-size {size} "
                f"--batch-size {batch}`, {USUAL_RUNS} times (_01 to _{USUAL_RUNS:02d})."
            )
    yield from _find_untimed(task.init)


def _find_group_faults(group: Group) -> Iterator[str]:
    """Yield why one size has no estimate, and what to do about it."""
    yield from _find_untimed(group.long)
    if group.too_short:
        names = ", ".join(run.log.name for run in group.too_short)
        hint = " The clock of these logs started late: try --clock gpu." if is_late(group) else ""
        enough = choose_input_size(group)
        larger = f"use a larger input (--input-size {enough} is enough)"
        yield (
            f"{names}: not longer than the start-up alone ({group.init_time:.3f} s, median of "
            f"{group.init.label}), so there is no speed. Measure again what was cut off"
            f"{f', or {larger}' if enough > group.path.input_size else ''}.{hint}"
        )


def _find_untimed(series: Series) -> Iterator[str]:
    if series.logs and not series.runs:
        yield (
            f"{_get_folder(series)}: no run of {series.label} has a GPU reading for --clock gpu to "
            "start from. Omit the option."
        )


def _get_folder(*several: Series) -> PurePath:
    """Return the folder of the logs of a task, as the user named it."""
    return next(PurePath(log.name).parent for series in several for log in series.logs)


def summarise(groups: Sequence[Group], many_models: bool) -> Stats:
    """Return one estimate for each group, in their order; each of them must have a speed."""
    return Stats(tuple(map(_estimate, groups)), tuple(find_warnings(groups)), many_models)


def _estimate(group: Group) -> Estimate:
    path, (low, high) = group.path, group.interval or (None, None)
    init_low, init_high = bound_values(group.init.times, group.init_time) or (None, None)
    init_peaks, peaks = group.init.gpu_peaks, group.long.gpu_peaks
    gpu_low, gpu_high = _bound_peaks(init_peaks)
    ram_low, ram_high = _bound_peaks(group.init.ram_peaks)
    return Estimate(
        model=group.long.logs[0].model,
        task=path.task,
        gpu_ram=median(init_peaks) / GIB if init_peaks else None,
        rps=group.rps,
        init_time=group.init_time,
        input_size=path.input_size,
        batch_size=path.batch_size,
        runs=len(group.long.runs),
        init_runs=len(group.init.runs),
        rps_low=low,
        rps_high=None if high is None or isinf(high) else high,
        gpu_ram_batch=max(peaks) / GIB if peaks else None,
        ram=median(group.init.ram_peaks) / GIB if group.init.ram_peaks else None,
        limit=_find_limit(group),
        init_time_low=init_low,
        init_time_high=init_high,
        gpu_ram_low=gpu_low,
        gpu_ram_high=gpu_high,
        ram_low=ram_low,
        ram_high=ram_high,
    )


def _find_limit(group: Group) -> Literal["init", "runs"] | None:
    """Return the kind of run of which more would narrow the interval most; None if it has none."""
    init, long = group.init.times, group.long.times
    if min(len(init), len(long)) < 2:
        return None
    return "init" if measure(init).error > measure(long).error else "runs"


def _bound_peaks(peaks: Sequence[Bytes]) -> tuple[float | None, float | None]:
    gigabytes = [peak / GIB for peak in peaks]
    return bound_values(gigabytes, median(gigabytes or [0])) or (None, None)
