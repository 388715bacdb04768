"""The nine tasks, one row each: what the model reads, which head it has, how it is trained."""

from dataclasses import dataclass, field
from typing import Literal

from answers import Answer, Choice, Entity, Label, Marks
from records import (
    ExampleError,
    Reader,
    read_answers,
    read_choices,
    read_entities,
    read_marked,
    read_pair,
    read_spans,
)

Look = Literal["whole", "whole and words", "spans"]
"""What the head sees of a pass: all of it pooled, that and the marked words, or only these."""


@dataclass(frozen=True)
class Schedule:
    """How a task is trained, and for how long."""

    every: int
    """Steps between two validations."""
    steps: int
    """At most."""
    batch_size: int = 4
    validated: int | None = 5000
    """The most records of the validation split to use; None for all."""
    warmup: float = 0.1
    """The share of steps during which the learning rate rises."""
    amsgrad: bool = False
    metrics: tuple[str, ...] = ()
    """Their mean decides in validation; by default those of the leaderboard."""


@dataclass(frozen=True)
class Task:
    """One task of Russian SuperGLUE."""

    name: str
    title: str
    """The name of its folder in the archive of russiansuperglue.com."""
    read: Reader
    answer: Answer
    schedule: Schedule
    look: Look = "whole"
    weights: str = field(default="", kw_only=True)
    """The task whose trained weights answer this one, if it has none of its own."""

    @property
    def trained_as(self) -> str:
        """The task whose weights are used."""
        return self.weights or self.name


_BOOLEANS = Label((False, True))
_ENTAILMENT = Label(("entailment", "not_entailment"))
_INFERENCE = Label(("neutral", "entailment", "contradiction"))

_DANETQA = Schedule(1000, 5000, metrics=("accuracy", "f1"))
_RCB = Schedule(60, 600, metrics=("f1",))
_MUSERC = Schedule(1000, 10_000, validated=None)
_RUCOS = Schedule(10_000, 100_000, batch_size=8, validated=None)
_TERRA = Schedule(625, 6250)
_RWSD = Schedule(139, 1390, warmup=0.0, amsgrad=True)

TASKS = {
    task.name: task
    for task in (
        Task("danetqa", "DaNetQA", read_pair("passage", "question"), _BOOLEANS, _DANETQA),
        Task(
            "lidirus",
            "LiDiRus",
            read_pair("sentence1", "sentence2"),
            _ENTAILMENT,
            _TERRA,
            weights="terra",
        ),
        Task("muserc", "MuSeRC", read_answers, Marks(), _MUSERC),
        Task("parus", "PARus", read_choices, Choice(), Schedule(100, 1000)),
        Task("rcb", "RCB", read_pair("premise", "hypothesis"), _INFERENCE, _RCB),
        Task("rucos", "RuCoS", read_entities, Entity(), _RUCOS),
        Task("russe", "RUSSE", read_marked, _BOOLEANS, Schedule(1000, 10_000), "whole and words"),
        Task("rwsd", "RWSD", read_spans, _BOOLEANS, _RWSD, "spans"),
        Task("terra", "TERRa", read_pair("premise", "hypothesis"), _ENTAILMENT, _TERRA),
    )
}


def find_task(name: str) -> Task:
    """Return the task with this name; ExampleError lists the nine."""
    if name not in TASKS:
        raise ExampleError(f"there is no task {name!r}; the nine are {', '.join(TASKS)}")
    return TASKS[name]
