"""What a submission is checked against: a suite, its machine, and the limits of the rules."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from morocco.errors import DataError
from morocco.hardware.clocks import SLOWED
from morocco.logs.log import INIT_SIZE
from morocco.stats.anomalies import COLD_START, USUAL_RUNS, WIDE_SPREAD
from morocco.tasks import TASKS, OwnMetric
from morocco.util.files import read_toml, write_output
from morocco.util.schema import Amount, Count, Name, convert

_Size = Annotated[str, Meta(pattern=r"^[0-9]{1,9}_[0-9]{1,9}\Z")]


@dataclass(frozen=True)
class Machine:
    """The machine on which numbers are comparable; None for what does not matter."""

    gpu: Name | None = None
    """Part of the product's name: "V100"."""
    gpus: Count | None = None
    gpu_ram: Amount | None = None
    """GB (2^30) of one GPU."""
    cores: Count | None = None
    ram: Amount | None = None
    """GB (2^30)."""


@dataclass(frozen=True)
class Thresholds:
    """The limits beyond which a rule is broken."""

    gap_periods: Amount = 3.0
    """Sampling periods; a longer gap between two lines hides what happened in it."""
    cold_start: Amount = COLD_START
    """Fraction of the median start-up time by which start-up times may differ."""
    short_run: Amount = 0.3
    """Fraction of the median run time by which a finished run may be shorter."""
    spread: Amount = WIDE_SPREAD
    """Coefficient of variation of the speed."""
    gpu_busy: Amount = 0.8
    """Usage of the GPU while the model works."""
    slowed: Amount = SLOWED
    """Fraction of its time at work for which a GPU may be slowed down by heat or hardware."""
    slow_clock: Amount = 0.15
    """Fraction of the median of comparable runs by which the SM clock of a run may be lower."""


@dataclass(frozen=True)
class Profile:
    """What is asked of a submission; the keys of a profile file are these fields."""

    tasks: Annotated[tuple[Name, ...], Meta(min_length=1, description="a list of task names")]
    name: Name = ""
    """By default the name of the file."""
    runs: Count = USUAL_RUNS
    """Minimum number of runs of each size."""
    sizes: Annotated[
        tuple[_Size, ...], Meta(description='a list of sizes such as ["2000_32"]')
    ] = ()
    """The sizes that are asked for; empty if each task may choose its own long size."""
    metrics: Mapping[str, OwnMetric] = field(default_factory=dict)
    """How tasks of one's own are scored; the nine are scored as their leaderboard does."""
    machine: Machine | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)

    def __post_init__(self) -> None:
        if any("/" in task for task in self.tasks):
            raise ValueError("'tasks' must be a list of task names, which hold no '/'")
        for task in self.metrics:
            if task in TASKS or task not in self.tasks:
                why = "its metric is that of its leaderboard" if task in TASKS else "not in 'tasks'"
                raise ValueError(f"'metrics' names {task!r}: {why}")

    @cached_property
    def long_sizes(self) -> tuple[tuple[int, int], ...]:
        """The long (input, batch) sizes that are asked for; 1_1 is asked for anyway."""
        sizes = (tuple(map(int, size.split("_"))) for size in self.sizes)
        return tuple((size[0], size[1]) for size in dict.fromkeys(sizes) if size != INIT_SIZE)

    def list_metrics(self) -> dict[str, OwnMetric | None]:
        """Return how each task is scored, None for one of the nine; DataError if one is silent."""
        silent = [task for task in self.tasks if task not in TASKS and task not in self.metrics]
        if silent:
            raise DataError(
                f"The profile {self.name!r} does not say how {', '.join(silent)} "
                f"{'is' if len(silent) == 1 else 'are'} scored. Add, below a line [metrics]: "
                f'{_quote(silent[0])} = "accuracy", or "f1", or "exact_match".'
            )
        return {task: self.metrics.get(task) for task in self.tasks}


RUSSIAN_SUPERGLUE = Profile(
    name="Russian SuperGLUE",
    tasks=tuple(TASKS),
    machine=Machine(gpu="V100", gpus=1, gpu_ram=32, cores=8, ram=96),
)


_WRITTEN = "# What this suite measures, written by `morocco suite`; without this line it is yours."
_METRICS = "# For `morocco score --profile`: accuracy, f1 or exact_match."


def needs_profile(tasks: Collection[str], runs: int) -> bool:
    """Return whether `check` would miss something that these tasks and runs cannot have."""
    return set(tasks) != set(TASKS) or runs < USUAL_RUNS


def write_profile(path: Path, tasks: Collection[str], runs: int) -> None:
    """Write a profile for tasks of `runs` runs each, beside those it names already.

    A profile that somebody has written stays. OutputError if it cannot be written.
    """
    metrics: Mapping[str, OwnMetric] = {}
    if path.exists():
        if not path.read_bytes().startswith(_WRITTEN.encode()):
            return
        before = read_profile(path)
        tasks, runs = dict.fromkeys([*before.tasks, *tasks]), min(before.runs, runs)
        metrics = before.metrics
    lines = [_WRITTEN, f"tasks = {_quote([*tasks])}", f"runs = {runs}"]
    if own := [task for task in tasks if task not in TASKS]:
        lines += ["", _METRICS, "[metrics]"]
        lines += [_render_metric(task, metrics.get(task)) for task in own]
    write_output(path, ("\n".join(lines) + "\n").encode(), "--logs DIR")


def _render_metric(task: str, metric: OwnMetric | None) -> str:
    return f'{"" if metric else "# "}{_quote(task)} = "{metric or "accuracy"}"'


def _quote(value: object) -> str:
    """Return a string, or a list of strings, in TOML."""
    return json.dumps(value, ensure_ascii=False)


def read_profile(path: Path) -> Profile:
    """Read a profile from a TOML file; DataError names the file, the key and what it must be."""
    profile = convert(read_toml(path), Profile, path)
    tasks = tuple(dict.fromkeys(profile.tasks))
    return replace(profile, name=profile.name or path.stem, tasks=tasks)
