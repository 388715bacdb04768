"""What a suite measures: the runs of every model and task, in the order in which they are done.

Pure functions: options in, jobs out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median

from morocco.errors import DataError
from morocco.logs.log import INIT_SIZE, LogPath
from morocco.targets.options import RunOptions
from morocco.targets.target import check_target
from morocco.tasks import Records
from morocco.util.units import Seconds

TASK_FIELD = "{task}"
WARM_UP = "warm-up"
OVERHEAD: Seconds = 0.5
"""What a container takes in addition to its run: to be created, started and removed."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured of one model and task."""

    input_size: int
    batch_size: int
    repeats: int


@dataclass(frozen=True)
class Model:
    """What is measured under one name, which is empty if there is only one model."""

    name: str
    target: str
    """With {task} in place of the task's name."""
    sizes: Mapping[str, Sizes]
    """By task, in the order in which the tasks are measured."""

    def __post_init__(self) -> None:
        """Raise DataError for one target of several tasks, and for none."""
        check_target(self.target)
        if TASK_FIELD not in self.target and len(self.sizes) > 1:
            misspelt = re.search(r"(?<!\$)\{\w+\}", self.target)
            what = "is the same for all tasks"
            if misspelt:
                what = f"has {misspelt[0]}, which stands for nothing"
            raise DataError(
                f"{self.target} {what}; write {TASK_FIELD} in place of the "
                "task's name, as in russiannlp/rubert-{task}, or name one task with --tasks."
            )


@dataclass(frozen=True)
class Job:
    """One run of a suite, with everything needed to do it here or on another machine."""

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
    """The number of a warm-up: several lanes may warm up for the same task at once."""

    @property
    def path(self) -> Path:
        """The path of the log."""
        if self.index is None:
            number = "" if self.turn == 1 else f"-{self.turn}"
            return self.folder / f"{WARM_UP}{number}.jsonl"
        name = LogPath(self.task, self.records.count, self.batch_size, self.index)
        return self.folder.parent / str(name)

    @property
    def label(self) -> str:
        """The name in messages: `parus/2000_32_01`, after the model's name if it has one."""
        return "/".join(filter(None, (self.model, self.task, self.path.stem)))

    @property
    def kind(self) -> tuple[str, str, int, int]:
        """What all repeats of a run have in common; they take about the same time."""
        return self.model, self.task, self.records.count, self.batch_size


@dataclass(frozen=True)
class Block:
    """All runs of one model and task, which should be done on one machine if possible."""

    warm_up: Job
    jobs: tuple[Job, ...]


def build_blocks(
    models: Sequence[Model],
    records: Mapping[tuple[str, int], Records],
    logs: Path,
    options: RunOptions,
) -> list[Block]:
    """Return the runs of each model and task, in the order in which they are done.

    `records` holds the input by task and size. Start-up runs and long runs alternate, so that a
    drift of the machine's speed affects both alike.
    """
    blocks = []
    for model in models:
        for task, sizes in model.sizes.items():
            target, folder = model.target.replace(TASK_FIELD, task), logs / model.name / task
            warm_up = Job(model.name, task, target, records[task, 1], 1, None, folder, options)
            kinds = dict.fromkeys([INIT_SIZE, (sizes.input_size, sizes.batch_size)])
            jobs = tuple(
                replace(warm_up, records=records[task, size], batch_size=batch_size, index=index)
                for index in range(1, sizes.repeats + 1)
                for size, batch_size in kinds
            )
            blocks.append(Block(warm_up, jobs))
    return blocks


def take_turns(blocks: Sequence[Block]) -> Iterator[Job]:
    """Yield the runs of several models on a task in the order A B, B A, A B ...

    A machine that gets slower, or faster, then does so for all of them alike.
    """
    numbers = sorted({job.index or 0 for block in blocks for job in block.jobs})
    for place, number in enumerate(numbers):
        for block in blocks if place % 2 == 0 else reversed(blocks):
            yield from (job for job in block.jobs if job.index == number)


class Forecast:
    """The expected duration of runs, from the runs done so far."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str, int, int], list[Seconds]] = {}

    def add(self, job: Job, duration: Seconds) -> None:
        """Note how long a job took, all in all."""
        if job.index is not None:  # a warm-up takes longer than the runs that follow it
            self._times.setdefault(job.kind, []).append(duration)

    def time_of(self, job: Job) -> Seconds | None:
        """Return the median time of the runs of this kind; None if there were none."""
        times = self._times.get(job.kind)
        return median(times) if times else None

    def total_time(self, jobs: Iterable[Job]) -> Seconds | None:
        """Return about how long `jobs` take, one after the other; None if that is not known.

        A kind that has not been run yet counts as the mean of the other start-up or long runs.
        """
        total = 0.0
        for job in jobs:
            time = self.time_of(job)
            if time is None:
                time = self._mean_time(single=job.records.count == 1)
            if time is None:
                return None
            total += time
        return total

    def _mean_time(self, *, single: bool) -> Seconds | None:
        alike = [median(times) for kind, times in self._times.items() if (kind[2] == 1) is single]
        return fmean(alike) if alike else None
