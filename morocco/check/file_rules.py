"""Rules on the files: whether all logs exist, are readable, and contain what a log should."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice, pairwise

from morocco.check.context import CheckContext
from morocco.check.rule import REMEASURE, RERUN, Detail, name_file, rule
from morocco.logs.log import INIT_SIZE, Log, Size, group_by_size, group_by_task
from morocco.logs.record import RunRecord
from morocco.stats.anomalies import compute_period, has_reading
from morocco.util.units import Seconds, plural

GAP_FLOOR: Seconds = 0.5
"""At high sampling rates the scheduler alone can cause a gap of three periods."""


@rule(
    "NO",
    good="every task has enough runs of both sizes",
    bad="runs are missing",
    todo=f"{RERUN}, if its --tasks and --repeats cover everything",
)
def complete(context: CheckContext) -> Iterator[Detail]:
    logs = group_by_task(context.logs)
    for model in context.models:
        tasks: dict[str, list[str]] = {}
        for task in context.profile.tasks:
            sizes = group_by_size(logs.get((model, task), []))
            for lack in _find_missing_runs(sizes, context) if sizes else ["no runs"]:
                tasks.setdefault(lack, []).append(task)
        yield from (Detail(f"{' '.join(names)}: {lack}", model) for lack, names in tasks.items())


def _find_missing_runs(sizes: Mapping[Size, Sequence[Log]], context: CheckContext) -> Iterator[str]:
    """Yield what one task lacks; without sizes in the profile, its fullest long size counts."""
    long = [size for size in sizes if size != INIT_SIZE]
    if not long and not context.profile.long_sizes:
        yield "no long runs"
    indices = {size: {log.path.index for log in logs} for size, logs in sizes.items()}
    fullest = sorted(long, key=lambda size: len(indices[size]))[-1:]
    for size in (INIT_SIZE, *(context.profile.long_sizes or fullest)):
        present = indices.get(size, set())
        lacking = context.profile.runs - len(present)
        if lacking > 0:
            free = islice((index for index in count(1) if index not in present), lacking)
            names = ", ".join(f"{index:02d}" for index in free)
            name = "_".join(map(str, size))
            yield f"{len(present)} of {context.profile.runs} runs of {name} (missing: {names})"


@rule(
    "warn",
    good="every task belongs to the suite",
    bad="these tasks are not part of the suite",
    todo="rename or delete their folders",
)
def tasks(context: CheckContext) -> Iterator[Detail]:
    for (_, task), logs in group_by_task(context.logs).items():
        if task not in context.profile.tasks:
            yield Detail.about(logs)


@rule(
    "warn",
    good="every task has one long size",
    bad="several long sizes for one task, or sizes that the suite does not ask for",
    todo="keep one long size per task and delete the others",
)
def sizes(context: CheckContext) -> Iterator[Detail]:
    asked = context.profile.long_sizes
    for model in context.models:
        logs: list[Log] = []
        for (of_model, _), task in context.tasks.items():
            if of_model == model and (asked or len(task.groups) > 1):
                logs += (log for group in task.groups for log in group.long.logs)
        others = [log for log in logs if log.path.size not in asked]
        if others:
            yield Detail.about(others)


@rule("NO", good="every log can be read", bad="these logs cannot be read")
def readable(context: CheckContext) -> Iterator[Detail]:
    for entry in context.submission.entries:
        if entry.fault is not None and entry.fault.kind != "backward":
            yield Detail.about([entry], str(entry.fault))


@rule("NO", good="time runs forward in every log", bad="time runs backward")
def forward(context: CheckContext) -> Iterator[Detail]:
    for entry in context.submission.entries:
        if entry.fault is not None and entry.fault.kind == "backward":
            yield Detail.about([entry], str(entry.fault))


@rule(
    "NO",
    good="no log has a gap",
    bad="samples are missing",
    todo=f"run nothing else on the machine; {REMEASURE}",
)
def cadence(context: CheckContext) -> Iterator[Detail]:
    for log in context.logs:
        period = compute_period(log)
        if period is None:
            continue
        lines = enumerate(pairwise(log.samples), start=2)
        gap, line = max((after.timestamp - before.timestamp, at) for at, (before, after) in lines)
        if gap > max(context.profile.thresholds.gap_periods * period, GAP_FLOOR):
            what = f"{gap:.2f} s before line {line}, {gap / period:.1f} periods"
            yield Detail.about([log], what)


@rule("NO", good="every log has readings", bad="no readings at all, the process was not found")
def readings(context: CheckContext) -> Iterator[Detail]:
    for log in context.logs:
        if not has_reading(log):
            yield Detail.about([log], f"{len(log.samples)} lines")


@rule(
    "NO",
    good="either all runs were seen on a GPU, or none",
    bad="never seen on a GPU",
    todo=f"if the model needs no GPU, measure with --gpus none; {REMEASURE}",
)
def gpu(context: CheckContext) -> Iterator[Detail]:
    """Expect a GPU where the record or other runs of the model have one; skip empty readings."""
    on_gpu = {log.model for log in context.logs if log.gpu_ram is not None}
    for log in context.logs:
        if log.gpu_ram is not None or not has_reading(log):
            continue
        record = context.records.get(log.name)
        if record and record.gpus and record.arguments.get("gpus") != "none":
            yield Detail.about([log], f"given {plural(len(record.gpus), 'GPU')}")
        elif log.model in on_gpu:
            yield Detail.about([log])


SAME_STEP: Seconds = 0.0005
"""Adding a number to all timestamps changes the steps between them by far less than this."""
DISTINCT_LINES = 10
"""This many different lines of readings are never the same in two runs."""
TOUCHING: Seconds = 0.1
"""The machine's clock may be adjusted between two runs."""
MAX_CONCURRENT = 500
"""More than any cluster runs at once; bounds the time that a forged zip can take."""


@rule("NO", good="no log is a copy of another", bad="these logs are copies")
def copies(context: CheckContext) -> Iterator[Detail]:
    """Judge byte-for-byte copies, and copies that were shifted in time."""
    by_digest: dict[str, Log] = {}
    by_readings: dict[bytes, list[Log]] = {}
    digests = {entry.name: entry.digest for entry in context.submission.entries}
    for log in context.logs:
        first = by_digest.setdefault(digests[log.name], log)
        alike = by_readings.setdefault(log.fingerprint, [])
        if first is not log:
            yield Detail.about([log], f"same file as {_name_beside(first, log)}")
        else:
            original = next((other for other in alike if _is_shifted(log, other)), None)
            if original is not None:
                yield Detail.about([log], f"same readings as {_name_beside(original, log)}")
            alike.append(log)


def _is_shifted(log: Log, other: Log) -> bool:
    """Tell whether logs with equal readings are copies: many distinct lines, or equal steps."""
    lines: set[tuple[object, ...]] = set()
    for sample in log.samples:  # not all at once: a log may have millions
        lines.add(sample[1:])
        if len(lines) >= DISTINCT_LINES:
            return True
    steps = zip(pairwise(log.samples), pairwise(other.samples), strict=True)
    return len(log.samples) > 2 and all(
        abs((b.timestamp - a.timestamp) - (d.timestamp - c.timestamp)) < SAME_STEP
        for (a, b), (c, d) in steps
    )


@rule(
    "NO",
    good="no two runs shared a machine",
    bad="two runs at the same time",
    todo=f"do one run at a time on each machine, or on each GPU; {REMEASURE}",
)
def overlap(context: CheckContext) -> Iterator[Detail]:
    """Judge each run that starts before another one has ended."""
    running: list[tuple[Seconds, Log]] = []
    for log in sorted(context.logs, key=lambda log: (log.samples[0].timestamp, log.name)):
        start, end = log.samples[0].timestamp, log.samples[-1].timestamp
        if end - start <= TOUCHING:
            continue
        running = [run for run in running if run[0] - start > TOUCHING]
        beside = next((run for run in running if _may_share_machine(log, run[1], context)), None)
        if beside is not None:
            shared = min(beside[0], end) - start
            yield Detail.about([log], f"{shared:.1f} s beside {_name_beside(beside[1], log)}")
        running = [*running[1 - MAX_CONCURRENT :], (end, log)]


def _may_share_machine(log: Log, other: Log, context: CheckContext) -> bool:
    """Tell whether two simultaneous runs may have shared a machine, or a GPU of it.

    Without records, runs of different models count as run elsewhere: their authors may well have
    measured at the same time.
    """
    one, two = context.records.get(log.name), context.records.get(other.name)
    same_host = False
    if one and two:
        if _differ(one.host.name, two.host.name) or _differ(one.machine, two.machine):
            return False
        if _uuids(one) and _uuids(two):
            return not _uuids(one).isdisjoint(_uuids(two))
        same_host = bool(one.host.name) and one.host.name == two.host.name
    return log.model == other.model or same_host


def _differ(one: str | None, two: str | None) -> bool:
    return bool(one and two and one != two)


def _uuids(record: RunRecord) -> set[str]:
    return {gpu.uuid for gpu in record.gpus or () if gpu.uuid}


def _name_beside(log: Log, other: Log) -> str:
    """Name a log in a detail about another one."""
    name = name_file(log)
    return name if log.model == other.model else f"{log.model}/{name}"


@rule(
    "warn",
    good="no file was skipped",
    bad="files were skipped",
    todo="delete or rename what does not belong here",
)
def remarks(context: CheckContext) -> Iterator[Detail]:
    yield from map(Detail, context.submission.remarks)
