"""Rows of tokens as padded batches of similar length, window by window.

Imports no PyTorch, so that the process that reads the input starts at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from records import Example
from tokens import Row, Tokens

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Batch:
    """What the model reads at once: B passes of at most L tokens."""

    numbers: Ints
    """(B,) The numbers of these rows."""
    ids: Ints
    """(B, L), padded with zeros."""
    lengths: Ints
    """(B,)"""
    seconds: Ints
    """(B,) Where the second text starts."""
    spans: Ints
    """(B, S, 2), with S spans in each pass of the task."""

    @property
    def is_padded(self) -> bool:
        """Whether any row is shorter than the longest."""
        return bool(self.lengths.min() < self.ids.shape[1])


def batch_by_length(rows: Sequence[Row], batch_size: int) -> Iterator[Batch]:
    """Yield all rows in batches, the longest first, so that running out of memory shows at once."""
    order = sorted(range(len(rows)), key=lambda number: -len(rows[number].ids))
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        yield make_batch([rows[number] for number in numbers], numbers)


def make_batch(rows: Sequence[Row], numbers: Sequence[int]) -> Batch:
    """Return one batch of rows with these numbers."""
    lengths = [len(row.ids) for row in rows]
    ids = np.zeros((len(rows), max(lengths)), np.int32)
    for line, row in zip(ids, rows, strict=True):
        line[: len(row.ids)] = row.ids
    return Batch(
        numbers=np.array(numbers, np.int32),
        ids=ids,
        lengths=np.array(lengths, np.int32),
        seconds=np.array([row.second for row in rows], np.int32),
        spans=np.array([row.spans for row in rows], np.int32).reshape(len(rows), -1, 2),
    )


_RECORDS = 4096
"""The most per window: enough to sort by length, few enough to stream a long input."""
_PASSES = 16_384
"""About as many per window: a record of RuCoS has dozens."""


class Asked(NamedTuple):
    """What a prediction needs from its record."""

    idx: object
    keys: Sequence[object]
    passes: int


class Window(NamedTuple):
    """Consecutive records, as batches in any order."""

    asked: Sequence[Asked]
    batches: Sequence[Batch]


def make_windows(examples: Iterable[Example], tokens: Tokens, batch_size: int) -> Iterator[Window]:
    """Yield the records tokenised, and within each window sorted by length and batched."""
    for group in _split(examples):
        asked = [Asked(one.idx, one.keys, len(one.passes)) for one in group]
        yield Window(asked, list(batch_by_length(tokens.encode(group), batch_size)))


def _split(examples: Iterable[Example]) -> Iterator[list[Example]]:
    group: list[Example] = []
    passes = 0
    for example in examples:
        group.append(example)
        passes += len(example.passes)
        if len(group) >= _RECORDS or passes >= _PASSES:
            yield group
            group, passes = [], 0
    if group:
        yield group
