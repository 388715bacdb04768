"""Rules on the files: whether all are there, can be read, and hold what a log should."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice, pairwise

from morocco.check.context import INIT_SIZE, CheckContext, Size, by_size
from morocco.check.result import Detail, name_file, tell
from morocco.logs.discovery import by_model_and_task
from morocco.logs.log import Log
from morocco.logs.record import Recorded
from morocco.logs.samples import Sample
from morocco.logs.submission import Entry
from morocco.stats.anomalies import has_reading
from morocco.stats.grouping import TaskRuns, find_period
from morocco.util.units import Seconds

GAP_FLOOR: Seconds = 0.5
"""At many samples a second three periods are no longer than a hiccup of the scheduler."""
_BACKWARD = "timestamp is before"
"""What the reader of logs says of it."""


def find_missing(case: CheckContext) -> Iterator[Detail]:
    """Yield what each model lacks of the suite: tasks, sizes, runs."""
    logs = by_model_and_task(case.logs)
    for model in case.models:
        alike: dict[str, list[str]] = {}
        for task in case.profile.tasks:
            sizes = by_size(logs.get((model, task), []))
            for gap in _find_gaps(sizes, case) if sizes else ["no runs"]:
                alike.setdefault(gap, []).append(task)
        yield from (Detail(f"{' '.join(tasks)}: {gap}", model) for gap, tasks in alike.items())


def _find_gaps(sizes: Mapping[Size, Sequence[Log]], case: CheckContext) -> Iterator[str]:
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


def find_foreign_tasks(case: CheckContext) -> Iterator[Detail]:
    """Yield the tasks that the suite does not have."""
    for (_, task), logs in by_model_and_task(case.logs).items():
        if task not in case.profile.tasks:
            yield tell(logs)


def find_many_sizes(case: CheckContext) -> Iterator[Detail]:
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


def find_unreadable(case: CheckContext) -> Iterator[Detail]:
    """Yield the logs that cannot be read, each with its first wrong line."""
    for entry in case.entries:
        if entry.log is None and not _is_backward(entry):
            yield tell([entry], entry.fault or "cannot be read")


def find_backward(case: CheckContext) -> Iterator[Detail]:
    """Yield the logs whose clock goes back."""
    for entry in case.entries:
        if _is_backward(entry):
            yield tell([entry], entry.fault or "")


def _is_backward(entry: Entry) -> bool:
    return entry.fault is not None and _BACKWARD in entry.fault


def find_gaps(case: CheckContext) -> Iterator[Detail]:
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


def find_null(case: CheckContext) -> Iterator[Detail]:
    """Yield the logs without any reading."""
    for log in case.logs:
        if not has_reading(log):
            yield tell([log], f"{len(log.samples)} lines")


def find_unseen(case: CheckContext) -> Iterator[Detail]:
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


SAME_STEP: Seconds = 0.0005
"""Adding a number to all timestamps changes the steps between them by far less than this."""
TELLING = 10
"""So many different lines of readings are never the same in two runs."""
TOUCHING: Seconds = 0.1
"""The machine's clock may be set between two runs."""

AT_ONCE = 500
"""No park of machines runs more at once; a zip that claims it must not take minutes."""


def find_copies(case: CheckContext) -> Iterator[Detail]:
    """Yield each log that is another one's copy, byte for byte or shifted in time."""
    digests: dict[str, Log] = {}
    shapes: dict[bytes, list[Log]] = {}
    names = {entry.name: entry.digest for entry in case.entries}
    for log in case.logs:
        first = digests.setdefault(names[log.name], log)
        alike = shapes.setdefault(log.fingerprint, [])
        if first is not log:
            yield tell([log], f"the same file as {_name(first, log)}")
        else:
            original = next((other for other in alike if _is_shifted(log, other)), None)
            if original is not None:
                yield tell([log], f"the readings of {_name(original, log)}")
            alike.append(log)


def _is_shifted(log: Log, other: Log) -> bool:
    """Tell whether two logs with the same readings are one: so many, or in the same rhythm."""
    lines: set[tuple[object, ...]] = set()
    for sample in log.samples:  # not all at once: a log may have millions
        lines.add(sample[1:])
        if len(lines) >= TELLING:
            return True
    steps = zip(pairwise(log.samples), pairwise(other.samples), strict=True)
    return len(log.samples) > 2 and all(
        abs((b.timestamp - a.timestamp) - (d.timestamp - c.timestamp)) < SAME_STEP
        for (a, b), (c, d) in steps
    )


def find_overlaps(case: CheckContext) -> Iterator[Detail]:
    """Yield each log that begins before another one has ended, unless each has its own machine."""
    running: list[Log] = []
    for log in sorted(case.logs, key=lambda log: (log.samples[0].timestamp, log.name)):
        start = log.samples[0].timestamp
        running = [other for other in running if _end(other) - start > TOUCHING]
        beside = next((other for other in running if _may_disturb(log, other, case)), None)
        if beside is not None:
            shared = min(_end(beside), _end(log)) - start
            yield tell([log], f"{shared:.1f} s beside {_name(beside, log)}")
        running = [*running[1 - AT_ONCE :], log]


def _end(log: Log) -> Seconds:
    return log.samples[-1].timestamp


def _may_disturb(log: Log, other: Log, case: CheckContext) -> bool:
    if min(_end(log), _end(other)) - log.samples[0].timestamp <= TOUCHING:
        return False
    one, two = case.records.get(log.name), case.records.get(other.name)
    if one and two:
        if _differ(one.host_name, two.host_name) or _differ(one.machine, two.machine):
            return False
        if _uuids(one) and _uuids(two):
            return not _uuids(one).isdisjoint(_uuids(two))
    return log.model == other.model or _share_host(one, two)


def _differ(one: str | None, two: str | None) -> bool:
    return one is not None and two is not None and one != two


def _share_host(one: Recorded | None, two: Recorded | None) -> bool:
    """Tell whether records say so: models of two authors may well be measured at the same time."""
    return bool(one and two and one.host_name and one.host_name == two.host_name)


def _uuids(record: Recorded) -> set[str]:
    return {gpu.uuid for gpu in record.gpus or () if gpu.uuid}


def _name(log: Log, beside: Log) -> str:
    name = name_file(log)
    return name if log.model == beside.model else f"{log.model}/{name}"
