"""Where the nine tasks keep their labels, and which labels there are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shorten
from typing import Any, Literal, NamedTuple

from morocco.errors import DataError
from morocco.util.json import Object, read_objects, take, take_idx, take_list
from morocco.util.units import plural

Key = tuple[str, ...]
"""What a label is known by: (idx,), in MuSeRC (passage, question, answer)."""
Label = Hashable
"""One of the task's; in RuCoS a text, in its gold all right texts of each question."""
Tags = tuple[tuple[str, tuple[str, ...]], ...]
"""The tags of a record by group: (("logic", ("Double negation", "Negation")),)."""

TAG_GROUPS = {
    "lexical-semantics": "lex_sem",
    "predicate-argument-structure": "pr_ar_str",
    "logic": "logic",
    "knowledge": "knowledge",
}
"""Of LiDiRus: from the field of a record to the name of the group."""


class FoundLabel(NamedTuple):
    """A label, as it was found in a record."""

    key: Key
    label: Label
    tags: Tags = ()


class NoLabel(ValueError):
    """A record without its label."""


Reader = Callable[[Object], Iterator[FoundLabel]]
"""From a record to its labels; ValueError says what is wrong with it."""


@dataclass(frozen=True)
class Schema:
    """How the records and the predictions of a task are read."""

    fields: frozenset[str]
    """What a record holds beside its labels; tells the tasks apart."""
    read_gold: Reader
    read_prediction: Reader
    labels: tuple[Label, ...] = ()
    """All there are; empty where a label is a text."""


def tell_tasks(record: Object) -> list[str]:
    """Return the tasks whose record this may be, by its fields; none for a bare prediction."""
    fitting = [name for name, schema in SCHEMAS.items() if schema.fields <= record.keys()]
    return sorted(fitting, key=lambda name: -len(SCHEMAS[name].fields))


def _read_label(labels: tuple[Label, ...]) -> Reader:
    def read(record: Object) -> Iterator[FoundLabel]:
        yield FoundLabel((take_idx(record),), _take_label(record, labels))

    return read


def _take_label(record: Object, labels: tuple[Label, ...]) -> Label:
    if "label" not in record:
        raise NoLabel("`label` is missing")
    label = record["label"]
    if labels is _BOOLEANS and isinstance(label, str):  # many submissions write "true", "False"
        label = {"true": True, "false": False}.get(label.lower(), label)
    for known in labels:
        if type(label) is type(known) and label == known:  # True equals 1 and is no number here
            return known
    allowed = ", ".join(str(known).lower() for known in labels)
    raise ValueError(f"`label` must be one of {allowed}, not {shorten(label)}")


def _read_tagged(record: Object) -> Iterator[FoundLabel]:
    yield FoundLabel(
        (take_idx(record),), _take_label(record, _ENTAILMENT), tuple(_take_tags(record))
    )


def _take_tags(record: Object) -> Iterator[tuple[str, tuple[str, ...]]]:
    for field, group in TAG_GROUPS.items():
        if record.get(field) is not None:
            text = take(record, field, str, "tags with semicolons between them")
            if tags := tuple(filter(None, map(str.strip, text.split(";")))):
                yield group, tags


def _read_answers(record: Object) -> Iterator[FoundLabel]:
    passage = take_idx(record)
    for question in take_list(take(record, "passage", dict, "an object"), "questions"):
        for answer in take_list(question, "answers"):
            key = (passage, take_idx(question), take_idx(answer))
            yield FoundLabel(key, _take_label(answer, _NUMBERS))


def _read_queries(record: Object) -> Iterator[FoundLabel]:
    queries = take_list(record, "qas")
    if not queries or not all(query.get("answers") for query in queries):
        raise NoLabel("a question has no answers")
    texts = tuple(
        tuple(take(answer, "text", str, "a text") for answer in take_list(query, "answers"))
        for query in queries
    )
    yield FoundLabel((take_idx(record),), texts)


def _read_text(record: Object) -> Iterator[FoundLabel]:
    yield FoundLabel((take_idx(record),), take(record, "label", str, "a text"))


def _choose(fields: str, labels: tuple[Label, ...], read_gold: Reader | None = None) -> Schema:
    read = _read_label(labels)
    return Schema(frozenset(fields.split()), read_gold or read, read, labels)


_BOOLEANS = (False, True)
_NUMBERS = (0, 1)
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("neutral", "entailment", "contradiction")

SCHEMAS = {
    "danetqa": _choose("question passage", _BOOLEANS),
    "lidirus": _choose("sentence1 sentence2", _ENTAILMENT, _read_tagged),
    "muserc": Schema(frozenset({"passage"}), _read_answers, _read_answers, _NUMBERS),
    "parus": _choose("premise choice1 choice2", _NUMBERS),
    "rcb": _choose("premise hypothesis", _INFERENCE),
    "rucos": Schema(frozenset({"passage", "qas"}), _read_queries, _read_text),
    "russe": _choose("word sentence1 sentence2", _BOOLEANS),
    "rwsd": _choose("text target", _BOOLEANS),
    "terra": _choose("premise hypothesis", _ENTAILMENT),
}


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
