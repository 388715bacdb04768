"""Consecutive records, made ready for the model. Imports no PyTorch: the feeder starts at once."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from batches import Batch, batch_by_length
from records import Example
from tokens import Tokens

_RECORDS = 4096
"""Of one window, at most: enough to sort, few enough for a long input to stream."""
_PASSES = 16_384
"""Of one window, about: a record of RuCoS has dozens."""


class Asked(NamedTuple):
    """What a prediction needs to know of its record."""

    idx: object
    keys: Sequence[object]
    passes: int


class Window(NamedTuple):
    """Some consecutive records, as batches of any order."""

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
