"""Where the nine tasks keep their labels, and which labels there are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from reprlib import repr as shorten
from typing import NamedTuple

from morocco.jsonl import Object, take, take_idx, take_list

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


class Found(NamedTuple):
    """A label, as it was found in a record."""

    key: Key
    label: Label
    tags: Tags = ()


class NoLabel(ValueError):
    """A record without its label."""


Reader = Callable[[Object], Iterator[Found]]
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
    def read(record: Object) -> Iterator[Found]:
        yield Found((take_idx(record),), _take_label(record, labels))

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


def _read_tagged(record: Object) -> Iterator[Found]:
    yield Found((take_idx(record),), _take_label(record, _ENTAILMENT), tuple(_take_tags(record)))


def _take_tags(record: Object) -> Iterator[tuple[str, tuple[str, ...]]]:
    for field, group in TAG_GROUPS.items():
        if record.get(field) is not None:
            text = take(record, field, str, "tags with semicolons between them")
            if tags := tuple(filter(None, map(str.strip, text.split(";")))):
                yield group, tags


def _read_answers(record: Object) -> Iterator[Found]:
    passage = take_idx(record)
    for question in take_list(take(record, "passage", dict, "an object"), "questions"):
        for answer in take_list(question, "answers"):
            key = (passage, take_idx(question), take_idx(answer))
            yield Found(key, _take_label(answer, _NUMBERS))


def _read_queries(record: Object) -> Iterator[Found]:
    queries = take_list(record, "qas")
    if not queries or not all(query.get("answers") for query in queries):
        raise NoLabel("a question has no answers")
    texts = tuple(
        tuple(take(answer, "text", str, "a text") for answer in take_list(query, "answers"))
        for query in queries
    )
    yield Found((take_idx(record),), texts)


def _read_text(record: Object) -> Iterator[Found]:
    yield Found((take_idx(record),), take(record, "label", str, "a text"))


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
