"""The run record: what ran, where, and how it ended; the JSON file beside a log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from datetime import datetime, timezone
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from morocco.errors import name_cause
from morocco.hardware.clocks import GpuClocks
from morocco.hardware.info import GpuInfo, GpuProcess, HostInfo, Load
from morocco.logs.samples import BOUNDS, Peaks
from morocco.targets.target import Identity
from morocco.util.json import parse_object
from morocco.util.units import GIB, Bytes, Seconds

FORMAT = 1
TIME_TOLERANCE: Seconds = 0.1
"""A log and its record may differ by this much: the last sample may come after the end."""
GPU_IN_USE = "gpu-in-use"
"""The code of the warning that other processes were on a GPU, before the start or later."""
FOREIGN_CPU = "foreign-cpu"
"""The code of the warning that other processes kept the CPU busy."""
GPU_SLOWED = "gpu-slowed"
"""The code of the warning that heat or hardware lowered the clocks of a GPU."""
SLOWED = frozenset(
    {GPU_IN_USE, FOREIGN_CPU, GPU_SLOWED, "other-runs", "steal", "swapping", "samples-missed"}
)
"""The codes of all warnings that tell why a run was slower than others."""


@dataclass(frozen=True)
class Failure:
    """Why a run failed."""

    kind: str
    """The name of the error's class: OutOfMemory, TimedOut …"""
    message: str


@dataclass(frozen=True)
class DataFile:
    """The data that was fed."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Output:
    """What the target printed."""

    count: int | None
    """Lines that are not blank."""
    sha256: str
    """Of all bytes of stdout."""
    first: str | None
    """When the first bytes arrived, UTC."""
    last: str | None


@dataclass(frozen=True)
class GpusBefore:
    """The GPUs just before the start; what is in use belongs to other processes."""

    used: tuple[Bytes | None, ...]
    """Memory of each GPU, in the order of `gpus`."""
    processes: tuple[GpuProcess, ...]


@dataclass(frozen=True)
class Monitor:
    """What the measurement itself took."""

    samples_due: int
    samples_missed: int
    cpu_time: Seconds
    """Of the whole morocco process, from the start of the target to its end."""
    fed_late: Seconds | None = None
    """From the start of the target to the first byte of its input; None before 1.2."""


@dataclass(frozen=True)
class RunRecord:
    """Everything about a run that its log does not hold.

    A record that was read may come from anybody: whatever was missing or of the wrong type is
    None, or empty where None is not allowed.
    """

    morocco: str
    """The version."""
    target: Identity
    arguments: Mapping[str, Any]
    """The command-line options that shape the run; of variables (-e) the names."""
    task: str | None
    input_size: int | None
    batch_size: int | None
    data: DataFile
    host: HostInfo
    gpus: tuple[GpuInfo, ...] | None = ()
    gpus_before: GpusBefore | None = None
    started: str | None = None
    """UTC; None if the target never ran."""
    ended: str | None = None
    run_time: Seconds | None = None
    exit_code: int | None = None
    records_fed: int | None = 0
    predictions: Output | None = None
    gpu_users: tuple[GpuProcess, ...] | None = None
    """Other processes that computed on the GPUs during the run; None if that cannot be told."""
    gpu_clocks: tuple[GpuClocks, ...] | None = None
    """Of each GPU on which the target was at work; None if the run was not measured to its end."""
    peaks: Peaks = field(default_factory=Peaks)
    energy: float | None = None
    """Joules that the GPUs used during the run; None where they do not count it."""
    monitor: Monitor | None = None
    load: Load | None = None
    """What else was at work on the machine."""
    warnings: tuple[str, ...] = ()
    warning_codes: tuple[str, ...] = ()
    """The kind of each warning, in the order of `warnings`."""
    failure: Failure | None = None
    """None for a good run."""
    stderr: str | None = None
    """The end of what a failed target logged."""
    env_digest: str | None = None
    """Salted digest of the values of the variables; None if there are none."""
    machine: str | None = None
    """The fingerprint of host and GPUs; None until the record is written."""
    format: int | None = FORMAT

    @property
    def image(self) -> str | None:
        """The image's id, or the command of a bare process."""
        return (self.target.image_id or self.target.target)[:_MAX_TEXT] or None

    @property
    def prediction_count(self) -> int | None:
        """How many predictions the target made."""
        return self.predictions.count if self.predictions else None

    @property
    def cause(self) -> str | None:
        """Why the run failed: "out of memory", "exit code 3"; None for a good run."""
        return name_cause(self.failure.kind if self.failure else None, self.exit_code)

    @property
    def start_time(self) -> Seconds | None:
        """`started` in seconds since the epoch; None without a time zone."""
        try:
            start = datetime.fromisoformat(self.started or "")
            return start.timestamp() if start.tzinfo else None
        except (ValueError, OverflowError):
            return None

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values, its format version first."""
        machine = self.machine or fingerprint(self.host, self.gpus or ())
        return {"format": self.format, **asdict(self), "machine": machine}


def fingerprint(host: HostInfo, gpus: Sequence[GpuInfo]) -> str:
    """Return a short text that is the same for equal machines, whatever their names.

    Machines are equal if they agree in what decides the speed: CPU, cores, RAM (to the GB), and
    the GPUs with their drivers.
    """
    devices = [(gpu.name, gpu.memory, gpu.driver, gpu.mig, gpu.power_limit) for gpu in gpus]
    facts = [host.cpu, host.cores, round(host.ram / GIB), devices]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def to_utc(timestamp: Seconds) -> str:
    """Return seconds since the epoch as ISO 8601 in UTC, to microseconds."""
    return datetime.fromtimestamp(timestamp, timezone.utc).isoformat(timespec="microseconds")


_Number = TypeVar("_Number", int, float)
_MAX_TEXT = 200
_MAX_COMMAND = 128 * 1024
"""The longest argument on Linux: `suite` compares targets to their last character."""
_MAX_LIST = 100
_NUMBER_BOUND = 2**63
_JSON_TYPES: Mapping[Any, Any] = {
    tuple: list,
    Mapping: dict,
    str: str,
    int: int,
    float: float,
    bool: bool,
}


def parse_record(content: Mapping[str, Any] | bytes) -> RunRecord:
    """Return a record that anybody may have written; ValueError for bytes that are not JSON.

    A field that is missing, of the wrong type or beyond `BOUNDS` is None or empty. Texts are cut to
    200 characters, except those of the target, and lists to 100 values.
    """
    values = parse_object(content) if isinstance(content, bytes) else content
    record: RunRecord = _read_value(values, RunRecord)
    failure = record.failure and replace(record.failure, kind=record.failure.kind or "unknown")
    peaks = replace(
        record.peaks,
        ram=_keep_possible("ram", record.peaks.ram),
        gpu_ram=_keep_possible("gpu_ram", record.peaks.gpu_ram),
    )
    energy = _keep_possible("energy", record.energy)
    codes = record.warning_codes
    if len(codes) != len(record.warnings):  # written before warnings had codes
        codes = tuple(GPU_IN_USE if "in use by others" in text else "" for text in record.warnings)
    return replace(record, failure=failure, warning_codes=codes, peaks=peaks, energy=energy)


def _keep_possible(key: str, value: _Number | None) -> _Number | None:
    """Return a reading of a record; None for one that no machine can have."""
    return value if value is not None and BOUNDS[key].admit(value) else None


class _Kind(NamedTuple):
    """A type of a field."""

    plain: Any
    """A dataclass, or a key of `_JSON_TYPES`."""
    optional: bool
    is_table: bool
    item: Any
    """The type of the items of a list."""


@cache
def _take_apart(hint: Any) -> _Kind:
    arguments = get_args(hint)
    if optional := NoneType in arguments:
        hint, arguments = arguments[0], get_args(arguments[0])  # of `hint | None`
    plain = get_origin(hint) or hint
    return _Kind(plain, optional, is_dataclass(plain), arguments[0] if arguments else None)


def _read_value(value: Any, hint: Any, max_text: int = _MAX_TEXT) -> Any:
    """Return a JSON value as the type `hint`; where it does not fit, None or empty."""
    kind = _take_apart(hint)
    fits = _fits(value, kind)
    if kind.optional and not fits:
        return None
    if kind.is_table:
        return _read_table(value if isinstance(value, dict) else {}, kind.plain, max_text)
    usable = value if fits else _JSON_TYPES[kind.plain]()
    if kind.plain is tuple:
        return tuple(_read_value(item, kind.item, max_text) for item in usable[:_MAX_LIST])
    return usable[:max_text] if kind.plain is str else usable


def _read_table(table: Mapping[str, Any], kind: Any, max_text: int) -> Any:
    longest = _MAX_COMMAND if kind is Identity else max_text
    hints = _get_hints(kind).items()
    return kind(**{name: _read_value(table.get(name), hint, longest) for name, hint in hints})


def _fits(value: Any, kind: _Kind) -> bool:
    plain = kind.plain
    if kind.is_table:
        return value is not None  # a failure of any type is a failure
    if isinstance(value, bool):  # an int to isinstance
        return plain is bool
    if plain in (int, float):
        return isinstance(value, (int, plain)) and abs(value) < _NUMBER_BOUND
    return isinstance(value, _JSON_TYPES[plain])


_get_hints = cache(get_type_hints)
