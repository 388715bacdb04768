"""The run record: what ran, where, and how it ended; written beside the log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from math import isfinite
from typing import Any

from morocco.hardware.info import GpuInfo, GpuProcess, HostInfo
from morocco.targets.target import Identity
from morocco.util.units import GIB, Bytes, Seconds

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


AGREEMENT: Seconds = 0.1
"""By which a log may differ from its record: a last sample may come after the end."""

_MAX_TEXT = 200
_MAX_LIST = 100
_BEYOND = 2**63


@dataclass(frozen=True)
class RecordedGpu:
    """One GPU that a run was given."""

    uuid: str | None
    name: str | None
    memory: Bytes | None
    driver: str | None
    power_limit: float | None
    """Watts."""


@dataclass(frozen=True)
class Recorded:
    """The part of a run record that is checked."""

    exit_code: int | None
    failure: str | None
    """The kind; None for a run that is good."""
    task: str | None
    input_size: int | None
    batch_size: int | None
    records_fed: int | None
    predictions: int | None
    started: Seconds | None
    """Since the epoch."""
    run_time: Seconds | None
    energy: float | None
    """Joules."""
    image: str | None
    """The image's id, or the command of a bare process."""
    data: str | None
    """SHA-256 of the data file."""
    gpus: tuple[RecordedGpu, ...] | None
    gpus_chosen: str | None
    """As `--gpus` was given."""
    host_name: str | None
    machine: str | None
    """The fingerprint, the same for equal machines."""
    cpu: str | None
    cores: int | None
    ram: Bytes | None
    foreign: tuple[str, ...]
    """What others ran on the GPUs before the start."""
    warnings: tuple[str, ...]


def read_record(record: Mapping[str, Any]) -> Recorded:
    """Return what a record says, None for whatever it does not say as it should."""
    target, host, failure = (_table(record.get(key)) for key in ("target", "host", "failure"))
    gpus = record.get("gpus")
    return Recorded(
        exit_code=_whole(record.get("exit_code")),
        failure=None if record.get("failure") is None else _text(failure.get("kind")) or "unknown",
        task=_text(record.get("task")),
        input_size=_whole(record.get("input_size")),
        batch_size=_whole(record.get("batch_size")),
        records_fed=_whole(record.get("records_fed")),
        predictions=_whole(_table(record.get("predictions")).get("count")),
        started=_moment(record.get("started")),
        run_time=_number(record.get("run_time")),
        energy=_number(record.get("energy")),
        image=_text(target.get("image_id")) or _text(target.get("target")),
        data=_text(_table(record.get("data")).get("sha256")),
        gpus=tuple(map(_read_gpu, _list(gpus))) if isinstance(gpus, list) else None,
        gpus_chosen=_text(_table(record.get("arguments")).get("gpus")),
        host_name=_text(host.get("name")),
        machine=_text(record.get("machine")),
        cpu=_text(host.get("cpu")),
        cores=_whole(host.get("cores")),
        ram=_whole(host.get("ram")),
        foreign=tuple(_read_foreign(record)),
        warnings=tuple(filter(None, map(_text, _list(record.get("warnings"))))),
    )


def _read_gpu(value: object) -> RecordedGpu:
    gpu = _table(value)
    return RecordedGpu(
        uuid=_text(gpu.get("uuid")),
        name=_text(gpu.get("name")),
        memory=_whole(gpu.get("memory")),
        driver=_text(gpu.get("driver")),
        power_limit=_number(gpu.get("power_limit")),
    )


def _read_foreign(record: Mapping[str, Any]) -> list[str]:
    processes = _list(_table(record.get("gpus_before")).get("processes"))
    return [_text(_table(process).get("name")) or "a hidden process" for process in processes]


def _text(value: object) -> str | None:
    """Return a text that says something, cut to what a line can bear."""
    return value[:_MAX_TEXT] if isinstance(value, str) and value else None


def _whole(value: object) -> int | None:
    kind_is_right = isinstance(value, int) and not isinstance(value, bool)
    return value if kind_is_right and abs(value) < _BEYOND else None  # type: ignore[arg-type,return-value]


def _number(value: object) -> float | None:
    if isinstance(value, float):
        return value if isfinite(value) else None
    return _whole(value)


def _moment(value: object) -> Seconds | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        return None if moment is None or moment.tzinfo is None else moment.timestamp()
    except (ValueError, OverflowError):
        return None


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value[:_MAX_LIST] if isinstance(value, list) else []
