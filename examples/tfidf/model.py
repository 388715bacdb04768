"""What training and inference share: from a record to texts, from texts to a prediction."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

T = TypeVar("T")
Record = dict[str, Any]
Scores = NDArray[np.float64]


class ExampleError(Exception):
    """What the user can put right, told in one line."""


@dataclass(frozen=True)
class Item:
    """A record, reduced to the texts that are compared."""

    idx: Any
    left: Sequence[str]
    """The candidates: the choices of PARus, the answers of MuSeRC; one text in most tasks."""
    right: Sequence[str]
    """One text for each candidate; in MuSeRC and RuCoS the sentences of the passage instead."""
    keys: Sequence[Any] = ()
    """What each candidate of MuSeRC or RuCoS is called in the prediction."""

    def __post_init__(self) -> None:
        if not all(isinstance(text, str) for text in (*self.left, *self.right)):
            raise TypeError("a text is not a string")


@dataclass(frozen=True)
class Model:
    """All that a task needs to predict; joblib writes and reads it."""

    task: str
    vectorizer: TfidfVectorizer
    classifier: LogisticRegression | None = None
    """None in MuSeRC and RuCoS, which look for the candidate in the passage."""
    threshold: float = 0.0
    """The similarity from which an answer of MuSeRC counts as right."""


def read_pair(first: str, second: str) -> Callable[[Record], Item]:
    return lambda record: Item(record["idx"], [record[first]], [record[second]])


def read_choices(record: Record) -> Item:
    return Item(record["idx"], [record["choice1"], record["choice2"]], [record["premise"]] * 2)


def read_spans(record: Record) -> Item:
    target = record["target"]
    spans = f"{target['span1_text']} {target['span2_text']}"
    return Item(record["idx"], [spans], [record["text"]])


def read_answers(record: Record) -> Item:
    passage = record["passage"]
    answers = [(q, a) for q in passage["questions"] for a in q["answers"]]
    texts = [f"{question['question']} {answer['text']}" for question, answer in answers]
    keys = [(question["idx"], answer["idx"]) for question, answer in answers]
    return Item(record["idx"], texts, sentences(passage["text"]), keys)


def read_entities(record: Record) -> Item:
    text = record["passage"]["text"]
    names = sorted({text[e["start"] : e["end"]] for e in record["passage"]["entities"]})
    if not names:
        raise ValueError("no entities to choose from")
    query = record["qas"][0]["query"]
    queries = [query.replace("@placeholder", name) for name in names]
    return Item(record["idx"], queries, sentences(text), names)


READERS: dict[str, Callable[[Record], Item]] = {
    "danetqa": read_pair("question", "passage"),
    "lidirus": read_pair("sentence1", "sentence2"),
    "muserc": read_answers,
    "parus": read_choices,
    "rcb": read_pair("premise", "hypothesis"),
    "rucos": read_entities,
    "russe": read_pair("sentence1", "sentence2"),
    "rwsd": read_spans,
    "terra": read_pair("premise", "hypothesis"),
}


def check_task(task: str | None) -> str:
    """Return the name of the task, or raise ExampleError where there is no such task."""
    if task not in READERS:
        raise ExampleError(f"no task {task or 'given'}; the tasks are {', '.join(READERS)}")
    return task


def read_lines(lines: Iterable[bytes], take: Callable[[Record], T]) -> Iterator[T]:
    """Yield what `take` makes of each record; raise ExampleError, with the line, where it fails."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            taken = take(json.loads(line))
        except KeyError as error:
            raise ExampleError(f"line {number}: the record has no field {error}") from error
        except json.JSONDecodeError as error:
            raise ExampleError(f"line {number}: not JSON ({error.msg})") from error
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise ExampleError(f"line {number}: not a record of the task: {error}") from error
        yield taken


def sentences(passage: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+|\n", passage)


def predict(model: Model, items: Sequence[Item]) -> list[Record]:
    """Answer a batch: one prediction for each item, in order."""
    if model.classifier is not None:
        return classify(model.task, model.classifier, compare(model.vectorizer, items), items)
    found = zip(items, search(model.vectorizer, items), strict=True)
    if model.task == "muserc":
        return [mark(item, scores >= model.threshold) for item, scores in found]
    return [{"idx": item.idx, "label": item.keys[int(scores.argmax())]} for item, scores in found]


def compare(vectorizer: TfidfVectorizer, items: Sequence[Item]) -> csr_matrix:
    """Return a row for each candidate: the words shared, the words that differ, the cosine."""
    left, right = vectorize(vectorizer, items)
    shared = left.multiply(right)
    return hstack([shared, abs(left - right), csr_matrix(shared.sum(axis=1))], format="csr")


def search(vectorizer: TfidfVectorizer, items: Sequence[Item]) -> Iterator[Scores]:
    """Yield for each item the cosine of every candidate to the nearest sentence."""
    left, right = vectorize(vectorizer, items)
    row = column = 0
    for item in items:
        candidates = left[row : row + len(item.left)]
        passage = right[column : column + len(item.right)]
        yield (candidates @ passage.T).toarray().max(axis=1)
        row += len(item.left)
        column += len(item.right)


def vectorize(vectorizer: TfidfVectorizer, items: Sequence[Item]) -> tuple[csr_matrix, csr_matrix]:
    left = chain.from_iterable(item.left for item in items)
    right = chain.from_iterable(item.right for item in items)
    return vectorizer.transform(left), vectorizer.transform(right)


def classify(
    task: str, classifier: LogisticRegression, features: csr_matrix, items: Sequence[Item]
) -> list[Record]:
    if task == "parus":
        labels = classifier.decision_function(features).reshape(-1, 2).argmax(axis=1)
    else:
        labels = classifier.predict(features)
    # tolist() turns numpy's own types into those that JSON knows
    return [{"idx": item.idx, "label": x} for item, x in zip(items, labels.tolist(), strict=True)]


def mark(item: Item, right: NDArray[np.bool_]) -> Record:
    """Return the prediction of MuSeRC: the answers again in their questions."""
    marks = zip(item.keys, right.tolist(), strict=True)
    questions = [
        {"idx": idx, "answers": [{"idx": answer, "label": int(x)} for (_, answer), x in group]}
        for idx, group in groupby(marks, key=lambda pair: pair[0][0])
    ]
    return {"idx": item.idx, "passage": {"questions": questions}}
