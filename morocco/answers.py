"""Labels and predictions from their files, and which prediction is for which label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shorten
from typing import Any, Literal, NamedTuple

from morocco.errors import DataError
from morocco.jsonl import Object, read_objects
from morocco.schemas import SCHEMAS, Key, Label, NoLabel, Reader, Tags, tell_tasks
from morocco.units import plural

Missing = Literal["error", "wrong"]
"""What becomes of a label without a prediction."""

_NO_LABELS = "; the answers are needed, as val.jsonl has them and test.jsonl has not"


class Answer(NamedTuple):
    """A label of a file."""

    label: Label
    tags: Tags
    line: int


@dataclass(frozen=True)
class Answers:
    """The labels of a file, or the predictions of a model."""

    path: Path
    by_key: Mapping[Key, Answer]
    repeated: int = 0
    """How many more there were, each the same as one before."""


class Pair(NamedTuple):
    """A label and what was predicted for it."""

    key: Key
    gold: Any
    predicted: Any
    """None for what is no label at all."""
    tags: Tags = ()


def read_gold(path: Path, task: str) -> Answers:
    """Return the labels of a data file, each of them once; DataError names a line that is wrong."""
    return _read(path, task, SCHEMAS[task].read_gold, is_gold=True)


def read_predictions(path: Path, task: str) -> Answers:
    """Return the predictions of a model; DataError names a line that is wrong.

    `bench` feeds the records of a file again and again, so predictions may repeat; but two that
    contradict each other are an error that names both lines.
    """
    return _read(path, task, SCHEMAS[task].read_prediction, is_gold=False)


def _read(path: Path, task: str, read: Reader, *, is_gold: bool) -> Answers:
    what = f"{'the gold' if is_gold else 'a prediction'} of {task}"
    answers: dict[Key, Answer] = {}
    repeated = 0
    for number, record in read_objects(path):
        try:
            _check_task(record, task)
            for key, label, tags in read(record):
                before = answers.get(key)
                if before is None:
                    answers[key] = Answer(label, tags, number)
                else:
                    _check_repeated(key, label, before, is_gold)
                    repeated += 1
        except ValueError as error:  # noqa: PERF203
            hint = _NO_LABELS if is_gold and isinstance(error, NoLabel) else ""
            raise DataError(f"{path}, line {number}, as {what}: {error}{hint}.") from None
    if not answers:
        raise DataError(f"{path} is empty: it must hold {what}, one JSON object a line.")
    return Answers(path, answers, repeated)


def _check_task(record: Object, task: str) -> None:
    told = tell_tasks(record)
    if told and task not in told:
        raise ValueError(f"it has the fields of {told[0]}")


def _check_repeated(key: Key, label: Label, before: Answer, is_gold: bool) -> None:
    if is_gold:
        raise ValueError(f"{_name(key)} was in line {before.line} already")
    if label != before.label:
        raise ValueError(f"{_name(key)} has another label than in line {before.line}")


def match(gold: Answers, predictions: Answers, task: str, missing: Missing) -> list[Pair]:
    """Return each label with its prediction, in the order of the labels.

    DataError names a prediction that is for no label, and, if `missing` is "error", the first
    label that has none. If it is "wrong", such a label is taken for mispredicted: as the other
    one where the task has two, as none at all where it has more.
    """
    for key, answer in predictions.by_key.items():
        if key not in gold.by_key:
            raise DataError(
                f"{predictions.path}, line {answer.line}: there is no {_name(key)} in {gold.path}."
            )
    absent = [key for key in gold.by_key if key not in predictions.by_key]
    if absent and missing == "error":
        raise DataError(
            f"{predictions.path} lacks {plural(len(absent), 'prediction')} of "
            f"{len(gold.by_key):,}; the first is {_name(absent[0])} (line "
            f"{gold.by_key[absent[0]].line} of {gold.path}). Predict every record, or count what "
            "is missing as wrong with --missing wrong."
        )
    labels = SCHEMAS[task].labels
    return [
        Pair(key, label, _predicted(predictions.by_key.get(key), label, labels), tags)
        for key, (label, tags, _) in gold.by_key.items()
    ]


def _predicted(answer: Answer | None, gold: Label, labels: Sequence[Label]) -> Label:
    if answer is not None:
        return answer.label
    others = [label for label in labels if label != gold]
    return others[0] if len(others) == 1 else None


def _name(key: Key) -> str:
    """Return how a message calls a key: `idx 5`, `passage 0, question 1, answer 5`."""
    words = ("idx",) if len(key) == 1 else ("passage", "question", "answer")
    # An idx may be as long as a line, and hold what a terminal obeys.
    return ", ".join(f"{word} {shorten(idx)[1:-1]}" for word, idx in zip(words, key, strict=True))
