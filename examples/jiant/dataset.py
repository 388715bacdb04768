"""The labelled records of a task, and what a model's predictions of them are worth."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from errors import ExampleError
from lines import read_lines
from morocco.score.answers import SCHEMAS, FoundLabel, Pair
from morocco.score.metrics import f1, mean
from morocco.score.score import measure
from records import Example, Record
from tasks import Task


@dataclass(frozen=True)
class Labelled:
    """A record with its labels."""

    example: Example
    targets: Sequence[int]
    """Which output of the head is right, for each pass; or which pass is, where one is chosen."""
    gold: Sequence[FoundLabel]
    """The labels as the leaderboard reads them."""


@dataclass(frozen=True)
class Unit:
    """What one term of the loss is about: a pass, or all passes of a record that chooses one."""

    example: Example
    target: int


def read_split(data_dir: Path, task: Task, split: str) -> list[Labelled]:
    """Return the records of train or val; ExampleError names what is missing or wrong."""
    path = data_dir / task.title / f"{split}.jsonl"

    def take(record: Record) -> Labelled:
        gold = list(SCHEMAS[task.name].read_gold(record))  # tells best what is wrong with a label
        example = task.read(record)
        return Labelled(example, task.answer.targets(record, example.keys), gold)

    try:
        with path.open("rb") as file:
            records = list(read_lines(file, str(path), take))
    except OSError as error:
        advice = "DATA_DIR is what the archive of russiansuperglue.com unpacks to: data/public"
        raise ExampleError(f"cannot read {path}: {error.strerror}; {advice}") from error
    if not any(one.targets for one in records):  # a record of MuSeRC may be without answers
        raise ExampleError(f"{path} holds no labelled records")
    return records


def split_units(task: Task, records: Iterable[Labelled]) -> list[Unit]:
    """Return what the loss is made of; where passes are judged one by one, each is a unit."""
    if task.answer.outputs == 1:
        return [Unit(one.example, one.targets[0]) for one in records]
    return [
        Unit(Example(one.example.idx, [one_pass]), target)
        for one in records
        for one_pass, target in zip(one.example.passes, one.targets, strict=True)
    ]


def value(task: Task, records: Iterable[Labelled], predictions: Iterable[Record]) -> float:
    """Return the validation metric of predictions, one for each record and in their order."""
    read = SCHEMAS[task.name].read_prediction
    pairs = [
        Pair(gold.key, gold.label, found.label)
        for one, prediction in zip(records, predictions, strict=True)
        for gold, found in zip(one.gold, read(prediction), strict=True)
    ]
    metrics = measure(task.name, pairs)
    if "f1" in task.schedule.metrics and "f1" not in metrics:
        columns = [pair.gold for pair in pairs], [pair.predicted for pair in pairs]
        metrics["f1"] = f1(*columns, positive=True)
    return mean([metrics[name] for name in task.schedule.metrics or metrics])
