"""The samples of a log, one per line, kept in columns."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import nan
from typing import Any, NamedTuple, overload

from morocco.util.units import Bytes, Seconds

KEYS = ("timestamp", "cpu_usage", "ram", "gpu_usage", "gpu_ram")


class Bounds(NamedTuple):
    """What a reading can be: 0 where that is allowed, or a number from `least` to `most`."""

    least: float
    most: float
    says: str
    zero: bool = True

    def admit(self, value: float) -> bool:
        """Tell whether a number is a reading that some machine may have; not a number is none."""
        return self.least <= value <= self.most or (self.zero and value == 0)


_BYTES = Bounds(1, 2**60, "null, 0, or bytes from 1 to 2^60")
BOUNDS: Mapping[str, Bounds] = {
    "timestamp": Bounds(1, 7_258_118_400, "seconds since the epoch, before the year 2200", False),
    "cpu_usage": Bounds(0, 2**16, "null or cores from 0 to 65,536"),
    "ram": _BYTES,
    "gpu_usage": Bounds(0, 100, "null or a share from 0 to 1"),
    "gpu_ram": _BYTES,
    "energy": Bounds(1e-6, 1e15, "null, 0, or joules from 1e-6 to 1e15"),
}
"""Of logs and records; far beyond any machine, but no arithmetic overflows within them."""

_CHUNK = 1024
"""Samples converted at a time."""


class Sample(NamedTuple):
    """One line of a log; a value that was not measured is None, never 0."""

    timestamp: Seconds
    """Since the epoch."""
    cpu_usage: float | None = None
    """Busy cores since the line before: 1.0 is one core."""
    ram: Bytes | None = None
    """What the processes of the task add to the machine; until 1.1 the sum of their RSS."""
    gpu_usage: float | None = None
    """0 to 1, averaged over the GPUs the task is on."""
    gpu_ram: Bytes | None = None
    """Summed over the processes of the task and their GPUs."""

    @property
    def is_closing(self) -> bool:
        """Whether it is the last line of a finished log, which has no readings."""
        return all(value is None for value in self[1:])

    def to_line(self) -> str:
        """Return the JSON line of a log, without a newline."""
        return json.dumps(self._asdict())


@dataclass(frozen=True)
class Peaks:
    """The largest use during the run; None for what was never measured."""

    ram: Bytes | None = None
    gpu_ram: Bytes | None = None
    gpu_ram_source: str | None = None
    """`process`: as the driver reports it; `device`: the GPU's use above that before the start."""
    ram_source: str | None = None
    """`cgroup`: of the control group, with the PSS of mapped files; `pss`: of the processes, shared
    pages once; `rss`: shared pages once for each process. None in records before 1.2: `rss`."""


class Samples(Sequence[Sample]):
    """Samples that take 40 bytes each, a sixth of what tuples of numbers take."""

    __slots__ = ("columns",)

    columns: Mapping[str, array[float]]
    """By the keys of a log; NaN for what was not measured."""

    def __init__(self, samples: Iterable[Sample | tuple[Any, ...]] = ()) -> None:
        columns = tuple(array("d") for _ in KEYS)
        rest = iter(samples)
        while chunk := list(islice(rest, _CHUNK)):
            for column, values in zip(columns, zip(*chunk, strict=True), strict=True):
                column.extend([nan if value is None else value for value in values])
        self.columns = dict(zip(KEYS, columns, strict=True))

    def __len__(self) -> int:
        return len(self.columns["timestamp"])

    def __iter__(self) -> Iterator[Sample]:
        return map(_restore, *self.columns.values())

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Sample, ...]: ...
    def __getitem__(self, index: int | slice) -> Sample | tuple[Sample, ...]:
        if isinstance(index, slice):
            return tuple(self[place] for place in range(len(self))[index])
        return _restore(*(column[index] for column in self.columns.values()))

    def __eq__(self, other: object) -> bool:
        """Compare as a tuple of the same samples does."""
        if not isinstance(other, (Samples, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(map(Sample.__eq__, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))


def _restore(
    timestamp: float, cpu_usage: float, ram: float, gpu_usage: float, gpu_ram: float
) -> Sample:
    # Only NaN differs from itself; this comparison takes half the time of isnan.
    return Sample(
        timestamp,
        cpu_usage if cpu_usage == cpu_usage else None,
        _to_bytes(ram) if ram == ram else None,
        gpu_usage if gpu_usage == gpu_usage else None,
        _to_bytes(gpu_ram) if gpu_ram == gpu_ram else None,
    )


def _to_bytes(value: float) -> Bytes:
    # A log may hold 5.5 bytes, which are not rounded, so that the defect shows.
    return int(value) if value.is_integer() else value  # type: ignore[return-value]
