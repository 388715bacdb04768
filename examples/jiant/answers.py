"""The forms of a prediction: what labels mean to the head, and how scores become a prediction.

Scores are the output of the head for one record: an array (passes, outputs).
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from records import Record

Scores = NDArray[np.float32]
Keys = Sequence[Any]

_ROUNDING = 1e-4
"""How much the scores of two passes of the same tokens may differ, depending on the batch."""


class Answer(Protocol):
    """One of the four forms of a prediction."""

    @property
    def outputs(self) -> int:
        """How many numbers the head returns per pass."""

    def targets(self, record: Record, keys: Keys) -> list[int]:
        """Return which output is right: for each pass, or of all passes where outputs is 1."""

    def predict(self, scores: Scores, keys: Keys) -> Record:
        """Return the prediction without its `idx`."""


@dataclass(frozen=True)
class Label:
    """One of a few labels: an output for each."""

    labels: tuple[Hashable, ...]

    @property
    def outputs(self) -> int:
        return len(self.labels)

    def targets(self, record: Record, keys: Keys) -> list[int]:  # noqa: ARG002
        return [_find_label(record["label"], self.labels)]

    def predict(self, scores: Scores, keys: Keys) -> Record:  # noqa: ARG002
        return {"label": self.labels[int(scores[0].argmax())]}


@dataclass(frozen=True)
class Choice:
    """The best of the passes: PARus."""

    outputs: int = 1

    def targets(self, record: Record, keys: Keys) -> list[int]:
        return [_find_label(record["label"], keys)]

    def predict(self, scores: Scores, keys: Keys) -> Record:
        return {"label": keys[_first_of_best(scores[:, 0])]}


@dataclass(frozen=True)
class Marks:
    """Right or wrong for each pass, grouped by question: MuSeRC."""

    outputs: int = 2

    def targets(self, record: Record, keys: Keys) -> list[int]:  # noqa: ARG002
        questions = record["passage"]["questions"]
        return [
            _find_label(answer["label"], (0, 1))
            for question in questions
            for answer in question["answers"]
        ]

    def predict(self, scores: Scores, keys: Keys) -> Record:
        marks = zip(keys, scores.argmax(axis=1).tolist(), strict=True)
        questions = [
            {"idx": idx, "answers": [{"idx": answer, "label": mark} for (_, answer), mark in group]}
            for idx, group in groupby(marks, key=lambda pair: pair[0][0])
        ]
        return {"passage": {"questions": questions}}


@dataclass(frozen=True)
class Entity:
    """The most likely name: RuCoS."""

    outputs: int = 2

    def targets(self, record: Record, keys: Keys) -> list[int]:
        right = {answer["text"] for answer in record["qas"][0]["answers"]}
        return [int(name in right) for name in keys]

    def predict(self, scores: Scores, keys: Keys) -> Record:
        # The difference sorts like the probability, but does not round to 1.
        return {"label": keys[_first_of_best(scores[:, 1] - scores[:, 0])]}


def _find_label(label: object, labels: Sequence[object]) -> int:
    """Return the number of a label; True is not 1."""
    for number, known in enumerate(labels):
        if type(label) is type(known) and label == known:
            return number
    raise ValueError(f"`label` must be one of {', '.join(map(str, labels))}, not {label!r}")


def _first_of_best(scores: Scores) -> int:
    return int((scores > scores.max() - _ROUNDING).argmax())
