"""The log of one run: what its path says, its samples, and what they come to.

A log holds one JSON object a line with exactly the keys of `KEYS`, in this order. The first line
is written when the task process starts, the last when it ends; so the difference of their
timestamps is the run time.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import PurePath

from morocco.parse import parse_sample, parse_samples
from morocco.samples import KEYS, Sample, Samples
from morocco.units import Bytes, Seconds

__all__ = ["KEYS", "Log", "LogPath", "Sample", "Samples", "parse_sample", "parse_samples"]

_LOG_NAME = re.compile(r"([0-9]{1,9})_([0-9]{1,9})_([0-9]{1,9})\.jsonl")


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
    samples: Sequence[Sample]

    @property
    def columns(self) -> Mapping[str, array[float]]:
        """The readings by key, NaN for None: quick to go through where there are millions."""
        samples = self.samples if isinstance(self.samples, Samples) else Samples(self.samples)
        return samples.columns

    @property
    def fingerprint(self) -> bytes:
        """The same for logs of the same readings, whenever they were taken."""
        from hashlib import sha256  # OpenSSL, which few commands need

        digest = sha256()
        for key in KEYS[1:]:
            digest.update(self.columns[key])
        return digest.digest()

    @property
    def run_time(self) -> Seconds:
        """From the start of the task process to its end."""
        return self.samples[-1].timestamp - self.samples[0].timestamp

    @property
    def gpu_run_time(self) -> Seconds | None:
        """From the first reading of the GPU to the end; None where there is none."""
        columns = self.columns
        readings = zip(columns["timestamp"], columns["gpu_ram"], strict=True)
        first = next((moment for moment, reading in readings if not isnan(reading)), None)
        return None if first is None else self.samples[-1].timestamp - first

    @property
    def gpu_ram(self) -> Bytes | None:
        """The peak; None for a run that was never seen on a GPU."""
        return _find_peak(self.columns["gpu_ram"])

    @property
    def ram(self) -> Bytes | None:
        """The peak; None for a log that holds no reading at all."""
        return _find_peak(self.columns["ram"])


def _find_peak(readings: Iterable[float]) -> Bytes | None:
    peak = max((reading for reading in readings if not isnan(reading)), default=None)
    return None if peak is None else int(peak)
