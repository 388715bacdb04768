"""Rows of tokens as batches: of like length, padded to the longest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokens import Row

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Batch:
    """What the model reads at once: B passes of at most L tokens."""

    numbers: Ints
    """(B,) Which rows these are."""
    ids: Ints
    """(B, L), padded with zeros."""
    lengths: Ints
    """(B,)"""
    seconds: Ints
    """(B,) Where the second text begins."""
    spans: Ints
    """(B, S, 2), with S spans in each pass of the task."""

    @property
    def is_padded(self) -> bool:
        """Whether any row is shorter than the longest."""
        return bool(self.lengths.min() < self.ids.shape[1])


def batch_by_length(rows: Sequence[Row], batch_size: int) -> Iterator[Batch]:
    """Yield all rows in batches, the longest first: what does not fit fails at once."""
    order = sorted(range(len(rows)), key=lambda number: -len(rows[number].ids))
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        yield make_batch([rows[number] for number in numbers], numbers)


def make_batch(rows: Sequence[Row], numbers: Sequence[int]) -> Batch:
    """Return one batch of rows that have these numbers."""
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
