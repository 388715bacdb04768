"""The log of one run: samples, the path convention, reading and validating.

A log holds one JSON object a line with exactly the keys of `KEYS`, in this order. The first line
is written when the task process starts, the last when it ends; so the difference of their
timestamps is the run time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Any, NamedTuple

from morocco.errors import DataError
from morocco.units import Bytes, Seconds

KEYS = ("timestamp", "cpu_usage", "ram", "gpu_usage", "gpu_ram")

_LOG_NAME = re.compile(r"([0-9]{1,9})_([0-9]{1,9})_([0-9]{1,9})\.jsonl")
_MAX_LINE = 64 * 1024
_BEYOND = 2**63
"""No reading is as large; infinity and NaN, which Python's JSON takes, are not below it either."""


class Sample(NamedTuple):
    """One line of a log; a value that was not measured is None, never 0."""

    timestamp: Seconds
    """Since the epoch."""
    cpu_usage: float | None = None
    """Busy cores since the line before: 1.0 is one core."""
    ram: Bytes | None = None
    """Resident memory, summed over the processes of the task."""
    gpu_usage: float | None = None
    """0 to 1, averaged over the GPUs the task is on."""
    gpu_ram: Bytes | None = None
    """Summed over the processes of the task and their GPUs."""

    def to_line(self) -> str:
        """Return the JSON line of a log, without a newline."""
        return json.dumps(self._asdict())


@dataclass(frozen=True, order=True)
class LogPath:
    """What the last two parts of a log's path say: `<task>/<input>_<batch>_<index>.jsonl`."""

    task: str
    input_size: int
    batch_size: int
    index: int

    @classmethod
    def parse(cls, path: PurePath | str) -> LogPath | None:
        """Return the parts of `path`, or None where it is no path of a log."""
        parts = PurePath(path).parts[-2:]
        match = _LOG_NAME.fullmatch(parts[-1]) if len(parts) == 2 else None
        if match is None:
            return None
        sizes = (int(digits) for digits in match.groups())
        return cls(parts[0], *sizes)

    def __str__(self) -> str:
        return f"{self.task}/{self.input_size}_{self.batch_size}_{self.index:02d}.jsonl"


@dataclass(frozen=True)
class Log:
    """A log that was read: where from, what its path says, its samples (one or more)."""

    name: str
    """The file, as messages name it."""
    model: str
    """The folder that holds the task's folder; tells models apart."""
    path: LogPath
    samples: tuple[Sample, ...]

    @property
    def run_time(self) -> Seconds:
        """From the start of the task process to its end."""
        return self.samples[-1].timestamp - self.samples[0].timestamp

    @property
    def gpu_run_time(self) -> Seconds | None:
        """From the first reading of the GPU to the end; None where there is none."""
        starts = (sample.timestamp for sample in self.samples if sample.gpu_ram is not None)
        first = next(starts, None)
        return None if first is None else self.samples[-1].timestamp - first

    @property
    def gpu_ram(self) -> Bytes | None:
        """The peak; None for a run that was never seen on a GPU."""
        readings = (sample.gpu_ram for sample in self.samples if sample.gpu_ram is not None)
        return max(readings, default=None)

    @property
    def ram(self) -> Bytes | None:
        """The peak; None for a log that holds no reading at all."""
        readings = (sample.ram for sample in self.samples if sample.ram is not None)
        return max(readings, default=None)


def parse_samples(lines: Iterable[bytes], name: str) -> tuple[Sample, ...]:
    """Return the samples of the log called `name`; DataError names the first wrong line."""
    samples: list[Sample] = []
    try:
        samples.extend(map(parse_sample, lines))
    except ValueError as error:
        raise DataError(f"{name}, line {len(samples) + 1}: {error}.") from None
    if not samples:
        raise DataError(f"{name}: the log is empty; run `morocco bench` again.")
    for number, (before, after) in enumerate(pairwise(samples), start=2):
        if after.timestamp < before.timestamp:
            raise DataError(
                f"{name}, line {number}: its timestamp is before that of the last line."
            )
    return tuple(samples)


def parse_sample(line: bytes) -> Sample:
    """Return one line of a log as a sample; ValueError says what is wrong with it."""
    values = _parse_json(line)
    if not isinstance(values, dict):
        raise ValueError(f"a JSON object is needed, not {_quote(line)}")
    if tuple(values) != KEYS:
        values = _in_order(values)
    timestamp, *readings = values.values()
    if not _is_number(timestamp):
        raise ValueError(f"`timestamp` must be seconds since the epoch, not {timestamp!r}")
    for key, value in zip(KEYS[1:], readings, strict=True):
        if value is not None and not (_is_number(value) and value >= 0):
            raise ValueError(f"`{key}` must be null or a number from 0 up, not {value!r}")
    return Sample(timestamp, *readings)


def _parse_json(line: bytes) -> Any:
    if len(line) > _MAX_LINE:
        raise ValueError("longer than 64 KB, so no line of a log")
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        how = "no JSON" if line.endswith(b"\n") else "no JSON, the file seems cut short"
        raise ValueError(f"{how}: {_quote(line)}") from None


def _in_order(values: dict[str, Any]) -> dict[str, Any]:
    """Return the same values in the order of the contract, which JSON itself does not promise."""
    missing = [key for key in KEYS if key not in values]
    extra = [key for key in values if key not in KEYS]
    if missing or extra:
        faults = [f"the key `{key}` is missing" for key in missing]
        faults += [f"the key `{key}` has no place in a log" for key in extra]
        raise ValueError("; ".join(faults))
    return {key: values[key] for key in KEYS}


def _is_number(value: object) -> bool:
    kind = type(value)  # bool is an int to isinstance
    return (kind is int or kind is float) and abs(value) < _BEYOND  # type: ignore[arg-type]


def _quote(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")
