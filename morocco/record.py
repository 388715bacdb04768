"""The run record: what ran, where, and how it ended; written beside the log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import Any

from morocco.gpu import GpuInfo, GpuProcess
from morocco.host import HostInfo
from morocco.target import Identity
from morocco.units import GIB, Bytes, Seconds

FORMAT = 1


@dataclass(frozen=True)
class Failure:
    """Why a run is no good."""

    kind: str
    """The name of the error's class: OutOfMemory, TimedOut …"""
    message: str


@dataclass(frozen=True)
class DataFile:
    """What was fed."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Output:
    """What came back."""

    count: int
    """Lines that hold something."""
    sha256: str
    """Of all bytes of stdout."""
    first: str | None
    """When the first bytes came, UTC."""
    last: str | None


@dataclass(frozen=True)
class GpusBefore:
    """The GPUs just before the start: whatever is here belongs to others."""

    used: tuple[Bytes | None, ...]
    """By GPU, in the order of `gpus`."""
    processes: tuple[GpuProcess, ...]


@dataclass(frozen=True)
class Peaks:
    """The largest readings of the run; None for what was never measured."""

    ram: Bytes | None = None
    gpu_ram: Bytes | None = None
    gpu_ram_source: str | None = None
    """`process` as the driver tells it; `device`: the GPU's use beyond that before the start."""


@dataclass(frozen=True)
class Monitor:
    """What the measuring itself took."""

    samples_due: int
    samples_missed: int
    cpu_time: Seconds
    """Of morocco's whole process, from the start of the target to its end."""


@dataclass(frozen=True)
class RunRecord:
    """Everything a log does not say; `to_json` is the file's content."""

    morocco: str
    """The version."""
    target: Identity
    arguments: Mapping[str, Any]
    """The options of the command line that shape the run."""
    task: str
    input_size: int
    batch_size: int
    data: DataFile
    host: HostInfo
    gpus: tuple[GpuInfo, ...] = ()
    gpus_before: GpusBefore | None = None
    started: str | None = None
    """UTC; None if the target never ran."""
    ended: str | None = None
    run_time: Seconds | None = None
    exit_code: int | None = None
    records_fed: int = 0
    predictions: Output | None = None
    peaks: Peaks = field(default_factory=Peaks)
    energy: float | None = None
    """Joules that the GPUs took during the run; None where they do not count it."""
    monitor: Monitor | None = None
    warnings: tuple[str, ...] = ()
    failure: Failure | None = None
    """None for a run that is good."""
    stderr: str | None = None
    """The end of what a failed target logged."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values, its format version first."""
        machine = fingerprint(self.host, self.gpus)
        return {"format": FORMAT, **asdict(self), "machine": machine}


def fingerprint(host: HostInfo, gpus: Sequence[GpuInfo]) -> str:
    """Return a short text that is the same for equal machines, whatever they are called.

    Equal in what decides the speed: CPU, cores, RAM (to the GB) and GPUs with their drivers.
    """
    cards = [(gpu.name, gpu.memory, gpu.driver, gpu.mig, gpu.power_limit) for gpu in gpus]
    facts = [host.cpu, host.cores, round(host.ram / GIB), cards]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def to_utc(timestamp: Seconds) -> str:
    """Return seconds since the epoch as ISO 8601 in UTC, to microseconds."""
    return datetime.fromtimestamp(timestamp, timezone.utc).isoformat(timespec="microseconds")
