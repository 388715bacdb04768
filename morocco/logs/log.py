"""Logs: their names, their lines validated one by one, and what is computed from them."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil, isnan
from pathlib import PurePath
from reprlib import repr as shorten
from typing import Annotated, Any, BinaryIO, Literal

from msgspec import Meta, MsgspecError, defstruct
from msgspec.json import Decoder
from msgspec.structs import astuple

from morocco.errors import DataError
from morocco.logs.samples import BOUNDS, KEYS, Bounds, Peaks, Sample, Samples
from morocco.util.units import Bytes, Seconds

MAX_LINE: Bytes = 64 * 1024

_READINGS = KEYS[1:]


def _bound(bounds: Bounds) -> Any:
    """Return the type of a value within its bounds, as msgspec needs it."""
    least = 0 if bounds.zero else ceil(bounds.least)
    whole = Annotated[int, Meta(ge=least, le=int(bounds.most))]
    number = whole | Annotated[float, Meta(ge=bounds.least, le=bounds.most)]
    return number | None if bounds.zero else number


_Line = defstruct(
    "_Line", [(key, _bound(BOUNDS[key])) for key in KEYS], forbid_unknown_fields=True, gc=False
)
_decode_good = Decoder(_Line).decode

Size = tuple[int, int]
"""Input size and batch size."""
NO_PEAKS = Peaks()
INIT_SIZE: Size = (1, 1)
"""The size of the start-up runs; all others are long runs."""

UNKNOWN_SIZE: Size = (-1, -1)
"""Of a log whose name and record do not tell."""

_LOG_NAME = re.compile(r"([0-9]{1,9})_([0-9]{1,9})_([0-9]{1,9})\.jsonl")


@dataclass(frozen=True, order=True)
class LogPath:
    """The last two parts of a log's path: `<task>/<input>_<batch>_<index>.jsonl`."""

    task: str
    input_size: int
    batch_size: int
    index: int

    @classmethod
    def parse(cls, path: PurePath | str) -> LogPath | None:
        """Return the parts of `path`; None if it is not the path of a log."""
        parts = PurePath(path).parts[-2:]
        match = _LOG_NAME.fullmatch(parts[-1]) if len(parts) == 2 else None
        return cls(parts[0], *map(int, match.groups())) if match else None

    @property
    def size(self) -> Size:
        """Input size and batch size."""
        return self.input_size, self.batch_size

    @property
    def is_start_up(self) -> bool:
        """Whether the log is that of a start-up run."""
        return self.size == INIT_SIZE

    def __str__(self) -> str:
        return f"{self.task}/{self.input_size}_{self.batch_size}_{self.index:02d}.jsonl"


@dataclass(frozen=True)
class Log:
    """A log that was read; it has at least one sample."""

    name: str
    """The file, as messages name it."""
    model: str
    """The folder that holds the task's folder."""
    path: LogPath
    samples: Sequence[Sample]
    recorded: Peaks = NO_PEAKS
    """Of the record beside it, which knows what happened between two samples."""

    @property
    def columns(self) -> Mapping[str, array[float]]:
        """The readings by key, NaN for None; fast even for millions of them."""
        samples = self.samples if isinstance(self.samples, Samples) else Samples(self.samples)
        return samples.columns

    @property
    def fingerprint(self) -> bytes:
        """The same for logs with the same readings, whenever they were taken."""
        from hashlib import sha256  # OpenSSL, which few commands need

        digest = sha256()
        for key in _READINGS:
            digest.update(self.columns[key])
        return digest.digest()

    @property
    def run_time(self) -> Seconds:
        """From the start of the task process to its end."""
        return self.samples[-1].timestamp - self.samples[0].timestamp

    @property
    def gpu_run_time(self) -> Seconds | None:
        """From the first reading of the GPU to the end; None if there is no such reading."""
        columns = self.columns
        readings = zip(columns["timestamp"], columns["gpu_ram"], strict=True)
        first = next((moment for moment, reading in readings if not isnan(reading)), None)
        return None if first is None else self.samples[-1].timestamp - first

    @property
    def gpu_ram(self) -> Bytes | None:
        """The peak; None for a run that was never seen on a GPU."""
        return _compute_peak(self.columns["gpu_ram"])

    @property
    def ram(self) -> Bytes | None:
        """The peak, of the record where it has one; None where nothing was measured."""
        recorded = self.recorded.ram
        if recorded is not None and recorded >= 0:
            return recorded
        return _compute_peak(self.columns["ram"])

    @property
    def ram_source(self) -> str:
        """How RAM was measured: the first tools counted resident memory (`rss`)."""
        return self.recorded.ram_source or "rss"


def _compute_peak(readings: Iterable[float]) -> Bytes | None:
    peak = max((reading for reading in readings if not isnan(reading)), default=None)
    return None if peak is None else int(peak)


def group_by_task(logs: Iterable[Log]) -> dict[tuple[str, str], list[Log]]:
    """Return the logs by model and task, in their order."""
    groups: dict[tuple[str, str], list[Log]] = {}
    for log in logs:
        groups.setdefault((log.model, log.path.task), []).append(log)
    return groups


def group_by_size(logs: Iterable[Log]) -> dict[Size, list[Log]]:
    """Return the logs of one task by their size, in their order."""
    groups: dict[Size, list[Log]] = {}
    for log in logs:
        groups.setdefault(log.path.size, []).append(log)
    return groups


@dataclass(frozen=True)
class LogFault:
    """Why a log cannot be used: the first thing that is wrong with it."""

    kind: Literal["unreadable", "empty", "backward"]
    """`backward`: every line can be read, but time runs backward."""
    message: str
    line: int | None = None

    def __str__(self) -> str:
        return self.message if self.line is None else f"line {self.line}: {self.message}"


class LogError(DataError):
    """A log cannot be used."""

    def __init__(self, name: str, fault: LogFault) -> None:
        super().__init__(f"{name}{':' if fault.line is None else ','} {fault}.")
        self.fault = fault


def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """Return the lines of a file; a line that is too long for a log comes in pieces."""
    return iter(partial(file.readline, MAX_LINE + 1), b"")


def parse_samples(lines: Iterable[bytes], name: str) -> Samples:
    """Return the samples of the log called `name`; LogError says what is wrong with it."""
    samples = Samples(_parse_lines(lines, name))
    if not samples:
        raise LogError(name, LogFault("empty", "the log is empty; run `morocco bench` again"))
    for number, (before, after) in enumerate(pairwise(samples.columns["timestamp"]), start=2):
        if after < before:
            message = "its timestamp is earlier than that of the line before"
            raise LogError(name, LogFault("backward", message, number))
    return samples


def _parse_lines(lines: Iterable[bytes], name: str) -> Iterator[tuple[Any, ...]]:
    for number, line in enumerate(lines, start=1):
        try:
            yield _parse_values(line)
        except ValueError as error:  # noqa: PERF203
            raise LogError(name, LogFault("unreadable", str(error), number)) from None


def parse_sample(line: bytes) -> Sample:
    """Return the sample on one line of a log; ValueError says what is wrong with it."""
    return Sample._make(_parse_values(line))


def _parse_values(line: bytes) -> tuple[Any, ...]:
    if len(line) <= MAX_LINE:
        try:
            return astuple(_decode_good(line))
        except (MsgspecError, RecursionError):
            pass
    return _parse_odd(line)  # this takes ten times as long


def _parse_odd(line: bytes) -> tuple[Any, ...]:
    values = _parse_json(line)
    if not isinstance(values, dict):
        raise ValueError(f"not a JSON object: {_quote(line)}")
    if tuple(values) != KEYS:
        values = _sort_keys(values)
    for key, value in values.items():
        kind, bounds = type(value), BOUNDS[key]
        if kind is float or kind is int:  # bool is an int to isinstance
            good = bounds.admit(value)
        else:
            good = value is None and key != "timestamp"
        if not good:
            raise ValueError(f"`{key}` must be {bounds.says}, not {shorten(value)}")
    return tuple(values.values())


def _parse_json(line: bytes) -> Any:
    if len(line) > MAX_LINE:
        raise ValueError("longer than 64 KB, too long for a line of a log")
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        cut = "" if line.endswith(b"\n") else ", the file seems to be cut short"
        raise ValueError(f"not JSON{cut}: {_quote(line)}") from None


def _sort_keys(values: dict[str, Any]) -> dict[str, Any]:
    """Return the same values in the order of the contract, which JSON itself does not promise."""
    missing = [key for key in KEYS if key not in values]
    extra = [key for key in values if key not in KEYS]
    if missing or extra:
        faults = [f"the key `{key}` is missing" for key in missing]
        # A key may be as long as a line, and hold control characters of a terminal.
        faults += [f"the key `{shorten(key)[1:-1]}` does not belong in a log" for key in extra[:3]]
        raise ValueError("; ".join(faults))
    return {key: values[key] for key in KEYS}


def _quote(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")
