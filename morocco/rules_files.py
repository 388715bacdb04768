"""Rules on the files: whether all are there, can be read, and hold what a log should."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice, pairwise

from morocco.case import INIT_SIZE, Case, Size, by_size
from morocco.collect import by_model_and_task
from morocco.findings import Detail, tell
from morocco.logs import Log, Sample
from morocco.oddities import has_reading
from morocco.runs import TaskRuns, find_period
from morocco.submission import Entry
from morocco.units import Seconds

GAP_FLOOR: Seconds = 0.5
"""At many samples a second three periods are no longer than a hiccup of the scheduler."""
_BACKWARD = "timestamp is before"
"""What the reader of logs says of it."""


def find_missing(case: Case) -> Iterator[Detail]:
    """Yield what each model lacks of the suite: tasks, sizes, runs."""
    logs = by_model_and_task(case.logs)
    for model in case.models:
        alike: dict[str, list[str]] = {}
        for task in case.profile.tasks:
            sizes = by_size(logs.get((model, task), []))
            for gap in _find_gaps(sizes, case) if sizes else ["no runs"]:
                alike.setdefault(gap, []).append(task)
        yield from (Detail(f"{' '.join(tasks)}: {gap}", model) for gap, tasks in alike.items())


def _find_gaps(sizes: Mapping[Size, Sequence[Log]], case: Case) -> Iterator[str]:
    """Yield what one task lacks; without sizes in the profile its fullest long one counts."""
    long = [size for size in sizes if size != INIT_SIZE]
    if not long and not case.profile.sizes:
        yield "no long runs"
    fullest = sorted(long, key=lambda size: len(_indices(sizes[size])))[-1:]
    for size in (INIT_SIZE, *(case.profile.sizes or fullest)):
        there = _indices(sizes.get(size, ()))
        lacking = case.profile.runs - len(there)
        if lacking > 0:
            free = islice((index for index in count(1) if index not in there), lacking)
            names = ", ".join(f"{index:02d}" for index in free)
            name = "_".join(map(str, size))
            yield f"{len(there)} of {case.profile.runs} runs of {name} (missing: {names})"


def _indices(logs: Sequence[Log]) -> set[int]:
    return {log.path.index for log in logs}


def find_foreign_tasks(case: Case) -> Iterator[Detail]:
    """Yield the tasks that the suite does not have."""
    for (_, task), logs in by_model_and_task(case.logs).items():
        if task not in case.profile.tasks:
            yield tell(logs)


def find_many_sizes(case: Case) -> Iterator[Detail]:
    """Yield what each model has in several long sizes, or in others than were asked for."""
    for model in case.models:
        tasks = [task for (of_model, _), task in case.tasks.items() if of_model == model]
        logs = [log for task in tasks for log in _find_other_sizes(task, case.profile.sizes)]
        if logs:
            yield tell(logs)


def _find_other_sizes(task: TaskRuns, asked: Sequence[Size]) -> list[Log]:
    logs = [log for group in task.groups for log in group.long.logs]
    if asked:
        return [log for log in logs if (log.path.input_size, log.path.batch_size) not in asked]
    return logs if len(task.groups) > 1 else []


def find_unreadable(case: Case) -> Iterator[Detail]:
    """Yield the logs that cannot be read, each with its first wrong line."""
    for entry in case.entries:
        if entry.log is None and not _is_backward(entry):
            yield tell([entry], entry.fault or "cannot be read")


def find_backward(case: Case) -> Iterator[Detail]:
    """Yield the logs whose clock goes back."""
    for entry in case.entries:
        if _is_backward(entry):
            yield tell([entry], entry.fault or "")


def _is_backward(entry: Entry) -> bool:
    return entry.fault is not None and _BACKWARD in entry.fault


def find_gaps(case: Case) -> Iterator[Detail]:
    """Yield the longest gap of each log that has one over several sampling periods."""
    for log in case.logs:
        period = find_period(log)
        if period is None:
            continue
        gaps = ((b.timestamp - a.timestamp, line) for line, (a, b) in _number_lines(log))
        gap, line = max(gaps)
        if gap > max(case.profile.thresholds.gap_periods * period, GAP_FLOOR):
            yield tell([log], f"{gap:.2f} s before line {line}, {gap / period:.1f} periods")


def _number_lines(log: Log) -> Iterator[tuple[int, tuple[Sample, Sample]]]:
    return enumerate(pairwise(log.samples), start=2)


def find_null(case: Case) -> Iterator[Detail]:
    """Yield the logs without any reading."""
    for log in case.logs:
        if not has_reading(log):
            yield tell([log], f"{len(log.samples)} lines")


def find_unseen(case: Case) -> Iterator[Detail]:
    """Yield the runs that were not seen on a GPU, where other runs or the record say they should.

    Those without any reading have their own rule.
    """
    on_gpu = {log.model for log in case.logs if log.gpu_ram is not None}
    for log in case.logs:
        if log.gpu_ram is not None or not has_reading(log):
            continue
        record = case.records.get(log.name)
        if record and record.gpus and record.gpus_chosen != "none":
            yield tell([log], f"given {len(record.gpus)}")
        elif log.model in on_gpu:
            yield tell([log])
