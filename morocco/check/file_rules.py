"""Rules on the files: whether all logs exist, are readable, and contain what a log should."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice, pairwise
from math import floor
from operator import sub

from morocco.check.context import CheckContext
from morocco.check.rule import RERUN, Detail, name_file, rule
from morocco.logs.log import INIT_SIZE, Log, Size, group_by_size, group_by_task
from morocco.logs.record import RunRecord
from morocco.logs.samples import KEYS
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
    others: dict[str, list[Log]] = {model: [] for model in context.models}
    for (model, _), task in context.tasks.items():
        if asked or len(task.groups) > 1:
            logs = (log for group in task.groups for log in group.long.logs)
            others[model] += (log for log in logs if log.path.size not in asked)
    yield from (Detail.about(of_model) for of_model in others.values() if of_model)


@rule("NO", good="every log can be read", bad="these logs cannot be read", repeat=True)
def readable(context: CheckContext) -> Iterator[Detail]:
    for entry in context.submission.entries:
        if entry.fault is not None and entry.fault.kind != "backward":
            yield Detail.about([entry], str(entry.fault))


@rule("NO", good="time runs forward in every log", bad="time runs backward", repeat=True)
def forward(context: CheckContext) -> Iterator[Detail]:
    for entry in context.submission.entries:
        if entry.fault is not None and entry.fault.kind == "backward":
            yield Detail.about([entry], str(entry.fault))


@rule(
    "NO",
    good="no log has a gap",
    bad="samples are missing",
    todo="run nothing else on the machine",
    repeat=True,
)
def cadence(context: CheckContext) -> Iterator[Detail]:
    for log in context.logs:
        period = compute_period(log)
        if period is None:
            continue
        moments = log.columns["timestamp"]
        gap, line = max(zip(map(sub, moments[1:], moments), count(2), strict=False))
        if gap > max(context.profile.thresholds.gap_periods * period, GAP_FLOOR):
            what = f"{gap:.2f} s before line {line}, {gap / period:.1f} periods"
            yield Detail.about([log], what)


@rule(
    "NO",
    good="every log has readings",
    bad="no readings at all, the process was not found",
    repeat=True,
)
def readings(context: CheckContext) -> Iterator[Detail]:
    for log in context.logs:
        if not has_reading(log):
            yield Detail.about([log], f"{len(log.samples)} lines")


@rule(
    "NO",
    good="either all runs were seen on a GPU, or none",
    bad="never seen on a GPU",
    todo="if the model needs no GPU, measure with --gpus none",
    repeat=True,
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
MAX_STEPS = 2_000_000
"""Compared among logs of equal readings; bounds the time that a forged zip can take."""
_STEPS_OF_A_COMPARISON = 50
"""What it costs in addition."""
TOUCHING: Seconds = 0.1
"""The machine's clock may be adjusted between two runs."""
MAX_CONCURRENT = 500
"""More than any cluster runs at once; bounds the time that a forged zip can take."""


@rule("NO", good="no log is a copy of another", bad="these logs are copies", repeat=True)
def copies(context: CheckContext) -> Iterator[Detail]:
    """Judge byte-for-byte copies, and copies that were shifted in time."""
    by_digest: dict[str, Log] = {}
    shelves = _Shelves()
    digests = {entry.name: entry.digest for entry in context.submission.entries}
    for log in context.logs:
        first = by_digest.setdefault(digests[log.name], log)
        original = shelves.find_original(log)
        if first is not log:
            yield Detail.about([log], f"same file as {_name_beside(first, log)}")
        elif original is not None:
            yield Detail.about([log], f"same readings as {_name_beside(original, log)}")


class _Shelves:
    """The logs that were looked at, where a copy that was shifted in time finds its original."""

    def __init__(self) -> None:
        self._telling: dict[bytes, Log] = {}
        """The first log of these readings, if so many of them never come twice."""
        self._dull: dict[tuple[bytes, int], list[Log]] = {}
        """All others, by readings and run time."""
        self._steps_left = MAX_STEPS

    def find_original(self, log: Log) -> Log | None:
        """Return the log of which this is a copy; keep it for the next ones."""
        readings = log.fingerprint
        if readings in self._telling or _has_many_lines(log):
            original = self._telling.setdefault(readings, log)
            return None if original is log else original
        if len(log.samples) < 3:
            return None
        shelf = floor(log.run_time / SAME_STEP)
        near = (self._dull.get((readings, shelf + off), []) for off in (-1, 0, 1))
        most = self._steps_left // (_STEPS_OF_A_COMPARISON + len(log.samples))
        candidates = list(islice(chain(*near), most))
        self._steps_left -= len(candidates) * (_STEPS_OF_A_COMPARISON + len(log.samples))
        self._dull.setdefault((readings, shelf), []).append(log)
        return next(filter(partial(_has_equal_steps, log), candidates), None)


def _has_equal_steps(log: Log, other: Log) -> bool:
    times = (pairwise(of.columns["timestamp"]) for of in (log, other))
    return all(abs((b - a) - (d - c)) < SAME_STEP for (a, b), (c, d) in zip(*times, strict=True))


def _has_many_lines(log: Log) -> bool:
    """Tell whether a log has so many different lines of readings that no other run has the same."""
    lines: set[tuple[int, ...]] = set()
    # As bits, for NaN differs from itself; not all at once, for a log may have a million lines.
    bits = (memoryview(log.columns[key]).cast("B").cast("Q") for key in KEYS[1:])
    for line in zip(*bits, strict=True):
        lines.add(line)
        if len(lines) >= DISTINCT_LINES:
            return True
    return False


@rule(
    "NO",
    good="no two runs shared a machine",
    bad="two runs at the same time",
    todo="do one run at a time on each machine, or on each GPU",
    repeat=True,
)
def overlap(context: CheckContext) -> Iterator[Detail]:
    """Judge each run that starts before another one has ended."""
    running: list[_Placed] = []
    logs = sorted(context.logs, key=lambda log: (log.samples[0].timestamp, log.name))
    for run in (_Placed.of(log, context.records.get(log.name)) for log in logs):
        if run.end - run.start <= TOUCHING:
            continue
        running = [other for other in running if other.end - run.start > TOUCHING]
        beside = next(filter(run.may_share_machine, running), None)
        if beside is not None:
            shared = min(beside.end, run.end) - run.start
            yield Detail.about(
                [run.log], f"{shared:.1f} s beside {_name_beside(beside.log, run.log)}"
            )
        running = [*running[1 - MAX_CONCURRENT :], run]


@dataclass(frozen=True)
class _Placed:
    """When and where a run took place, as far as it is known."""

    log: Log
    start: Seconds
    end: Seconds
    host: str = ""
    machine: str = ""
    gpus: frozenset[str] = frozenset()
    """Their UUIDs."""

    @classmethod
    def of(cls, log: Log, record: RunRecord | None) -> _Placed:
        times = log.samples[0].timestamp, log.samples[-1].timestamp
        if record is None:
            return cls(log, *times)
        gpus = frozenset(gpu.uuid for gpu in record.gpus or () if gpu.uuid)
        return cls(log, *times, record.host.name, record.machine or "", gpus)

    def may_share_machine(self, other: _Placed) -> bool:
        """Tell whether two simultaneous runs may have shared a machine, or a GPU of it.

        Where records do not say, runs of different models count as run elsewhere: their authors
        may well have measured at the same time.
        """
        if self.host and other.host and self.host != other.host:
            return False
        if self.machine and other.machine and self.machine != other.machine:
            return False
        if self.gpus and other.gpus:
            return not self.gpus.isdisjoint(other.gpus)
        return self.log.model == other.log.model or bool(self.host and self.host == other.host)


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
