"""What a suite has to measure: the runs of every model and task, in the order that they are done.

Pure functions: options in, jobs out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from morocco.errors import DataError
from morocco.logs.log import INIT_SIZE, LogPath
from morocco.targets.options import RunOptions
from morocco.tasks import Records
from morocco.util.units import Seconds

TASK_FIELD = "{task}"
WARM_UP = "warm-up"


@dataclass(frozen=True)
class Sizes:
    """How much is measured of one model and task."""

    input_size: int
    batch_size: int
    repeats: int


@dataclass(frozen=True)
class Model:
    """What is measured under one name; the name is empty where there is only one."""

    name: str
    target: str
    """With {task} where the task goes."""
    sizes: Mapping[str, Sizes]
    """By task: what is measured, in this order."""


@dataclass(frozen=True)
class Job:
    """One run of a suite, with all that is needed to do it here or on another machine."""

    model: str
    task: str
    target: str
    records: Records
    batch_size: int
    index: int | None
    """None for a warm-up."""
    folder: Path
    options: RunOptions = field(default_factory=RunOptions)
    turn: int = 1
    """Of a warm-up: several lanes may do it at the same time."""

    @property
    def path(self) -> Path:
        """Where the log goes."""
        if self.index is None:
            number = "" if self.turn == 1 else f"-{self.turn}"
            return self.folder / f"{WARM_UP}{number}.jsonl"
        name = LogPath(self.task, self.records.count, self.batch_size, self.index)
        return self.folder.parent / str(name)

    @property
    def label(self) -> str:
        """What people call it: `parus/2000_32_01`, the model before it where there are several."""
        return "/".join(filter(None, (self.model, self.task, self.path.stem)))

    @property
    def kind(self) -> tuple[str, str, int, int]:
        """What all repeats have in common, and take about the same time for."""
        return self.model, self.task, self.records.count, self.batch_size


@dataclass(frozen=True)
class Block:
    """All runs of one model and task, which belong on one machine where that can be had."""

    warm_up: Job
    jobs: tuple[Job, ...]


def make_targets(models: Sequence[Model]) -> dict[tuple[str, str], str]:
    """Return the TARGET of each (model, task); DataError for one that is the same for several."""
    targets = {}
    for model in models:
        if TASK_FIELD not in model.target and len(model.sizes) > 1:
            raise DataError(
                f"{model.target} is the same for all tasks; write {TASK_FIELD} where the task's "
                "name goes, as in russiannlp/rubert-{task}, or name one task with --tasks."
            )
        for task in model.sizes:
            targets[model.name, task] = model.target.replace(TASK_FIELD, task)
    return targets


def make_blocks(
    models: Sequence[Model],
    records: Mapping[tuple[str, int], Records],
    logs: Path,
    options: RunOptions,
) -> list[Block]:
    """Return the runs of each model and task, in the order in which they are done.

    `records` has the input by task and size. Against drift, one record and many take turns.
    """
    targets = make_targets(models)
    blocks = []
    for model in models:
        for task, sizes in model.sizes.items():
            single, many = records[task, 1], records[task, sizes.input_size]
            common: dict[str, Any] = {
                "model": model.name,
                "task": task,
                "target": targets[model.name, task],
                "folder": logs / model.name / task,
                "options": options,
            }
            jobs = tuple(
                Job(records=input_, batch_size=batch_size, index=index, **common)
                for index, input_, batch_size in _take_turns(sizes, single, many)
            )
            blocks.append(Block(Job(records=single, batch_size=1, index=None, **common), jobs))
    return blocks


def _take_turns(sizes: Sizes, single: Records, many: Records) -> Iterator[tuple[int, Records, int]]:
    for index in range(1, sizes.repeats + 1):
        yield index, single, 1
        if (sizes.input_size, sizes.batch_size) != INIT_SIZE:
            yield index, many, sizes.batch_size


OVERHEAD: Seconds = 0.5
"""What a container takes beside its run: to be created, started and removed."""


class Forecast:
    """The times of runs by their kind."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str, int, int], list[Seconds]] = {}

    def learn(self, job: Job, taken: Seconds) -> None:
        """Take in how long a job took in all."""
        if job.index is not None:  # a warm-up takes longer than the runs it warms up for
            self._times.setdefault(job.kind, []).append(taken)

    def expect(self, job: Job) -> Seconds | None:
        """Return the median time of runs of this kind; None where there was none."""
        times = self._times.get(job.kind)
        return median(times) if times else None

    def guess(self, jobs: Iterable[Job]) -> Seconds | None:
        """Return about how long all of `jobs` take one after the other; None before any run.

        A kind without a run takes as long as the mean of those of the same sort, short or long.
        """
        total = 0.0
        for job in jobs:
            time = self.expect(job)
            if time is None:
                time = self._mean(single=job.records.count == 1)
            if time is None:
                return None
            total += time
        return total

    def _mean(self, *, single: bool) -> Seconds | None:
        alike = [median(times) for kind, times in self._times.items() if (kind[2] == 1) is single]
        return fmean(alike) if alike else None
