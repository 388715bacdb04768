"""The labels and predictions of tasks: how each is read, and how they are matched."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shorten
from typing import Any, Literal, NamedTuple

from morocco.errors import DataError
from morocco.tasks import OwnMetric
from morocco.util.json import Object, read_objects, take, take_idx, take_list
from morocco.util.units import plural

Key = tuple[str, ...]
"""What identifies a label: (idx,), or (passage, question, answer) in MuSeRC."""
Label = Hashable
"""One of the task's labels; in RuCoS a text, and in its gold all right texts by question."""
Tags = tuple[tuple[str, tuple[str, ...]], ...]
"""The tags of a record by group: (("logic", ("Double negation", "Negation")),)."""
Source = Path | Sequence[Object]
"""A file of records, or the records themselves."""
Missing = Literal["error", "wrong"]
"""What to make of a label without a prediction."""

TAG_GROUPS = {
    "lexical-semantics": "lex_sem",
    "predicate-argument-structure": "pr_ar_str",
    "logic": "logic",
    "knowledge": "knowledge",
}
"""The groups of LiDiRus, by the field of a record that holds their tags."""
_NO_LABELS_HINT = "; gold needs the answers, which val.jsonl has and test.jsonl does not"


class FoundLabel(NamedTuple):
    """A label in a record."""

    key: Key
    label: Label
    tags: Tags = ()


class MissingLabel(ValueError):
    """A record that lacks its label."""


Reader = Callable[[Object], Iterator[FoundLabel]]
"""Yields the labels of a record; raises ValueError that says what is wrong with it."""


@dataclass(frozen=True)
class Schema:
    """How the records and the predictions of a task are read."""

    fields: frozenset[str]
    """What a record holds besides its labels, which tells the tasks apart."""
    read_gold: Reader
    read_prediction: Reader
    labels: tuple[Label, ...] = ()
    """All labels of the task; empty where a label is a text."""


def _get_label(record: Object, labels: tuple[Label, ...]) -> Label:
    if "label" not in record:
        raise MissingLabel("`label` is missing")
    label = record["label"]
    if labels is _BOOLEANS and isinstance(label, str):  # many submissions write "true", "False"
        label = {"true": True, "false": False}.get(label.lower(), label)
    for known in labels:
        if type(label) is type(known) and label == known:  # True == 1, but is no number here
            return known
    allowed = ", ".join(str(known).lower() for known in labels)
    raise ValueError(f"`label` must be one of {allowed}, not {shorten(label)}")


def _get_tags(record: Object) -> Iterator[tuple[str, tuple[str, ...]]]:
    for field, group in TAG_GROUPS.items():
        if record.get(field) is not None:
            text = take(record, field, str, "tags separated by semicolons")
            if tags := tuple(filter(None, map(str.strip, text.split(";")))):
                yield group, tags


def _read_tagged(record: Object) -> Iterator[FoundLabel]:
    label = _get_label(record, _ENTAILMENT)
    yield FoundLabel((take_idx(record),), label, tuple(_get_tags(record)))


def _read_answers(record: Object) -> Iterator[FoundLabel]:
    passage = take_idx(record)
    for question in take_list(take(record, "passage", dict, "an object"), "questions"):
        for answer in take_list(question, "answers"):
            key = (passage, take_idx(question), take_idx(answer))
            yield FoundLabel(key, _get_label(answer, _NUMBERS))


def _read_queries(record: Object) -> Iterator[FoundLabel]:
    queries = take_list(record, "qas")
    if not queries or not all(query.get("answers") for query in queries):
        raise MissingLabel("a question has no answers")
    texts = tuple(
        tuple(take(answer, "text", str, "a string") for answer in take_list(query, "answers"))
        for query in queries
    )
    yield FoundLabel((take_idx(record),), texts)


def _read_text(record: Object) -> Iterator[FoundLabel]:
    yield FoundLabel((take_idx(record),), take(record, "label", str, "a string"))


def _read_label(record: Object) -> Iterator[FoundLabel]:
    """Read the label of a task of one's own as text, so that 1 and "1" are the same label."""
    if "label" not in record:
        raise MissingLabel("`label` is missing")
    label = record["label"]
    if not isinstance(label, (str, int)):
        raise ValueError(
            f"`label` must be a string, a whole number or a boolean, not {shorten(label)}"
        )
    text = str(label).lower() if isinstance(label, bool) else str(label)
    yield FoundLabel((take_idx(record),), text)


def _read_texts(record: Object) -> Iterator[FoundLabel]:
    """Read one right text, or a list of them."""
    texts = record.get("label")
    if not isinstance(texts, list):
        texts = [take(record, "label", str, "a string or a list of strings")]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"`label` must be a string or a list of strings, not {shorten(texts)}")
    yield FoundLabel((take_idx(record),), tuple(texts))


def _choice(fields: str, labels: tuple[Label, ...], read_gold: Reader | None = None) -> Schema:
    """Build the schema of a task with one label out of a few per record."""

    def read(record: Object) -> Iterator[FoundLabel]:
        yield FoundLabel((take_idx(record),), _get_label(record, labels))

    return Schema(frozenset(fields.split()), read_gold or read, read, labels)


_BOOLEANS = (False, True)
_NUMBERS = (0, 1)
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("neutral", "entailment", "contradiction")

SCHEMAS = {
    "danetqa": _choice("question passage", _BOOLEANS),
    "lidirus": _choice("sentence1 sentence2", _ENTAILMENT, _read_tagged),
    "muserc": Schema(frozenset({"passage"}), _read_answers, _read_answers, _NUMBERS),
    "parus": _choice("premise choice1 choice2", _NUMBERS),
    "rcb": _choice("premise hypothesis", _INFERENCE),
    "rucos": Schema(frozenset({"passage", "qas"}), _read_queries, _read_text),
    "russe": _choice("word sentence1 sentence2", _BOOLEANS),
    "rwsd": _choice("text target", _BOOLEANS),
    "terra": _choice("premise hypothesis", _ENTAILMENT),
}
_OWN_SCHEMAS: Mapping[OwnMetric, Schema] = {
    "accuracy": Schema(frozenset(), _read_label, _read_label),
    "f1": Schema(frozenset(), _read_label, _read_label),
    "exact_match": Schema(frozenset(), _read_texts, _read_text),
}


class Answer(NamedTuple):
    """A label of a file."""

    label: Label
    tags: Tags
    line: int


@dataclass(frozen=True)
class Answers:
    """The labels of a data file, or the predictions of a model."""

    name: str
    """The file, or what else messages call them."""
    by_key: Mapping[Key, Answer]
    repeated: int = 0
    """How many labels repeat an earlier one."""


class Pair(NamedTuple):
    """A label and its prediction."""

    key: Key
    gold: Any
    predicted: Any
    """None for a missing prediction where the task has more than two labels."""
    tags: Tags = ()


def read_answers(
    source: Source, task: str, metric: OwnMetric | None = None, *, is_gold: bool
) -> Answers:
    """Read the labels of a data file or the predictions of a model; DataError names a wrong line.

    `metric` is that of a task of one's own, None for one of the nine. Each label of gold occurs
    once. `bench` feeds the records of a file in a cycle, so predictions may repeat; two that
    contradict each other are an error that names both lines.
    """
    schema = SCHEMAS[task] if metric is None else _OWN_SCHEMAS[metric]
    read = schema.read_gold if is_gold else schema.read_prediction
    what = f"{'the gold' if is_gold else 'a prediction'} of {task}"
    if isinstance(source, Path):
        name, records = str(source), read_objects(source)
    else:
        name = f"the list of {'labels' if is_gold else 'predictions'}"
        records = enumerate(source, start=1)
    answers: dict[Key, Answer] = {}
    repeated = 0
    for number, record in records:
        try:
            if metric is None:
                _check_task(record, task)
            for key, label, tags in read(record):
                if key in answers:
                    _check_repeated(key, label, answers[key], is_gold)
                    repeated += 1
                else:
                    answers[key] = Answer(label, tags, number)
        except ValueError as error:  # noqa: PERF203
            hint = _NO_LABELS_HINT if is_gold and isinstance(error, MissingLabel) else ""
            raise DataError(f"{name}, line {number}, as {what}: {error}{hint}.") from None
    if not answers:
        raise DataError(f"{name} is empty: it must hold {what}, one JSON object per line.")
    return Answers(name, answers, repeated)


def _check_task(record: Object, task: str) -> None:
    """Raise ValueError for a record with the fields of another task; a prediction may have none."""
    fitting = [name for name, schema in SCHEMAS.items() if schema.fields <= record.keys()]
    if fitting and task not in fitting:
        closest = max(fitting, key=lambda name: len(SCHEMAS[name].fields))
        raise ValueError(f"it has the fields of {closest}")


def _check_repeated(key: Key, label: Label, before: Answer, is_gold: bool) -> None:
    if is_gold:
        raise ValueError(f"{_format_key(key)} is already on line {before.line}")
    if label != before.label:
        raise ValueError(f"{_format_key(key)} has a different label on line {before.line}")


def match(gold: Answers, predictions: Answers, task: str, missing: Missing) -> list[Pair]:
    """Pair each label with its prediction, in the order of the labels.

    DataError names a prediction without a label and, if `missing` is "error", the first label
    without a prediction. If it is "wrong", the prediction is taken to be the other label where
    the task has two, and no label at all where it has more.
    """
    for key, answer in predictions.by_key.items():
        if key not in gold.by_key:
            raise DataError(
                f"{predictions.name}, line {answer.line}: "
                f"there is no {_format_key(key)} in {gold.name}."
            )
    absent = [key for key in gold.by_key if key not in predictions.by_key]
    if absent and missing == "error":
        number = f"{len(absent):,} of {plural(len(gold.by_key), 'prediction')}"
        raise DataError(
            f"{predictions.name} lacks {number}; the first is {_format_key(absent[0])} (line "
            f"{gold.by_key[absent[0]].line} of {gold.name}). Predict every record, or count "
            "missing ones as wrong with --missing wrong."
        )
    labels = SCHEMAS[task].labels if task in SCHEMAS else ()
    pairs = []
    for key, (label, tags, _) in gold.by_key.items():
        others = [other for other in labels if other != label]
        wrong = others[0] if len(others) == 1 else None
        prediction = predictions.by_key.get(key)
        pairs.append(Pair(key, label, prediction.label if prediction else wrong, tags))
    return pairs


def _format_key(key: Key) -> str:
    """Return how a message names a key: `idx 5`, `passage 0, question 1, answer 5`."""
    words = ("idx",) if len(key) == 1 else ("passage", "question", "answer")
    # An idx may be as long as a line, and hold control characters.
    return ", ".join(f"{word} {shorten(idx)[1:-1]}" for word, idx in zip(words, key, strict=True))
