"""The GPUs of this machine: which are measured, and what a task uses of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from morocco.errors import GpuError
from morocco.hardware.clocks import ClockMeter, GpuClocks
from morocco.hardware.host import list_ancestors
from morocco.hardware.info import GpuInfo, GpuProcess, GpuSettings, Joules
from morocco.hardware.nvml import Nvml, NvmlError, ProcessMemory
from morocco.util.units import Bytes, Seconds

_UNCORRECTED, _SINCE_LOADED = 1, 0
"""Of the C library: a kind of memory error, and the time for which it is counted."""
_ENTRY = re.compile(r"[0-9]+|(GPU|MIG)-[0-9A-Za-z./-]+")


class GpuDevice:
    """One GPU; every method raises NvmlError when the GPU is lost."""

    def __init__(self, nvml: Nvml, index: int) -> None:
        self._nvml = nvml
        self._handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
        self.info = self._read_info(index)
        self.baseline: Bytes | None = None
        """Memory in use before the run."""
        self.clocks = ClockMeter(nvml, self._handle)
        self.failed = False

    def __str__(self) -> str:
        return f"GPU {self.info.index} ({self.info.uuid})"

    def used(self) -> Bytes | None:
        """Return the memory in use now, by all processes."""
        memory = self._nvml.query("nvmlDeviceGetMemoryInfo", self._handle)
        return None if memory is None else int(memory.used)

    def growth(self) -> Bytes | None:
        """Return the memory in use beyond the baseline; None if either is unknown."""
        used = self.used()
        return None if used is None or self.baseline is None else max(0, used - self.baseline)

    def utilisation(self) -> float | None:
        """Return the share of time the GPU was at work, 0 to 1, as averaged by the driver."""
        if self.info.mig:  # NVML counts it only for whole GPUs
            return None
        rates = self._nvml.query("nvmlDeviceGetUtilizationRates", self._handle)
        return None if rates is None else rates.gpu / 100

    def energy(self) -> Joules | None:
        """Return the energy used since the driver was loaded; None before Volta."""
        return _from_milli(self._nvml.query("nvmlDeviceGetTotalEnergyConsumption", self._handle))

    def compute_processes(self) -> list[ProcessMemory] | None:
        """Return the processes that compute here now; None if the driver does not list them."""
        return self._nvml.list_processes(self._handle, "Compute")

    def all_processes(self) -> list[ProcessMemory]:
        """Return the processes that compute or draw here now, each once."""
        graphics = self._nvml.list_processes(self._handle, "Graphics") or []
        listed = graphics + (self.compute_processes() or [])
        return list({process.pid: process for process in listed}.values())

    def settings(self) -> GpuSettings:
        """Return how the GPU is set up; never raises, as a run can do without knowing."""
        ask, handle = self._nvml.ask, self._handle
        persistence = ask("nvmlDeviceGetPersistenceMode", handle)
        return GpuSettings(
            info=self.info,
            persistence=None if persistence is None else persistence == 1,
            memory_errors=ask("nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED, _SINCE_LOADED),
            usual_power_limit=_from_milli(ask("nvmlDeviceGetPowerManagementDefaultLimit", handle)),
            slowed_by=self.clocks.read_slowdown(),
            temperature=self.clocks.read_temperature(),
        )

    def _read_info(self, index: int) -> GpuInfo:
        query, call, handle = self._nvml.query, self._nvml.call, self._handle
        memory, mig = (
            query("nvmlDeviceGetMemoryInfo", handle),
            query("nvmlDeviceGetMigMode", handle),
        )
        cuda = query("nvmlSystemGetCudaDriverVersion")
        return GpuInfo(
            index=index,
            uuid=call("nvmlDeviceGetUUID", handle),
            name=call("nvmlDeviceGetName", handle),
            memory=None if memory is None else memory.total,
            driver=call("nvmlSystemGetDriverVersion"),
            cuda=None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
            mig=None if mig is None else mig[0] == 1,
            power_limit=_from_milli(query("nvmlDeviceGetEnforcedPowerLimit", handle)),
        )


def open_devices(choice: str) -> tuple[Nvml | None, list[GpuDevice], list[str]]:
    """Return the library, the chosen GPUs and, for "auto", a message for each that failed.

    Raises GpuError for a malformed choice and, except for "auto", for one that cannot be had.
    """
    entries = _parse_choice(choice)
    if choice == "none":
        return None, [], []
    try:
        nvml = Nvml()
    except NvmlError as error:
        if choice != "auto":
            raise _refusal(choice, f"NVML cannot be used here: {error}") from None
        return None, [], [] if error.no_driver else [f"NVML: {error}"]
    devices, failures = _open_all(nvml)
    if choice == "auto":
        return nvml, devices, failures
    try:
        return nvml, _select(choice, entries, devices, failures), []
    except GpuError:
        nvml.close()
        raise


def _parse_choice(choice: str) -> tuple[str, ...]:
    """Return the indices and UUIDs of a choice, none for a keyword; raises GpuError."""
    if choice in ("auto", "all", "none"):
        return ()
    entries = tuple(entry.strip() for entry in choice.split(","))
    for entry in entries:
        if not _ENTRY.fullmatch(entry):
            raise _refusal(choice, f"{entry!r} is neither an index nor a UUID of a GPU")
    return tuple(str(int(entry)) if entry.isdigit() else entry for entry in entries)


def _open_all(nvml: Nvml) -> tuple[list[GpuDevice], list[str]]:
    """Return the GPUs that answer, and a message for each that does not."""
    try:
        count = nvml.call("nvmlDeviceGetCount")
    except NvmlError as error:
        return [], [f"NVML: {error}"]
    devices, failures = [], []
    for index in range(count):
        try:
            devices.append(GpuDevice(nvml, index))
        except NvmlError as error:  # noqa: PERF203 (a machine has few GPUs)
            failures.append(f"GPU {index}: {error}")
    return devices, failures


def _select(
    choice: str, entries: tuple[str, ...], devices: list[GpuDevice], failures: list[str]
) -> list[GpuDevice]:
    """Return the GPUs that the entries name, all if there are no entries; raises GpuError."""
    by_name = {name: gpu for gpu in devices for name in (str(gpu.info.index), gpu.info.uuid)}
    satisfied = set(entries) <= set(by_name) if entries else devices and not failures
    if not satisfied:
        seen = ", ".join([*map(str, devices), *failures]) or "no GPU"
        raise _refusal(choice, f"NVML sees {seen}")
    return list(dict.fromkeys(by_name[entry] for entry in entries or by_name))


def _refusal(choice: str, reason: str) -> GpuError:
    return GpuError(
        f"--gpus {choice}: {reason}. Give indices or UUIDs as listed by `nvidia-smi -L`, `auto` "
        "for all GPUs that work, or `none` to measure without GPUs."
    )


def _from_milli(value: int | None) -> float | None:
    return None if value is None else value / 1000


Source = Literal["process", "device"]
_Number = TypeVar("_Number", int, float)
_Answer = TypeVar("_Answer")

_HOST_PID_NAMESPACE = "pid:[4026531836]"
"""The kernel's name for its first PID namespace."""
_NOISE: Bytes = 2**20
"""The memory in use on an idle GPU varies by less than this."""
_CLOCK_PERIOD: Seconds = 0.9
"""Clocks are read once a second; a little less, lest a beat that is early is passed over."""
_MPS = "nvidia-cuda-mps"
"""The server of NVIDIA's Multi-Process Service, which works for its clients."""


@dataclass(frozen=True)
class GpuReading:
    """What a task uses of its GPUs at one moment; both None while it is on none."""

    use: float | None = None
    """Utilisation, 0 to 1, averaged over the GPUs the task is on."""
    ram: Bytes | None = None
    """Summed over the task's processes and GPUs."""


class Strangers:
    """Finds processes on the GPUs that never belonged to the target.

    A child of the target may be on a GPU before the target's processes are read again, be missing
    from the kernel's list of children when a sibling ends, and be listed a little longer than it
    lives: only who is listed twice in a row, lives, and descends from no process of the target.
    """

    def __init__(self) -> None:
        self._members: set[int] = set()
        self._suspects: dict[int, set[int]] = {}
        self._found: dict[tuple[int, int], GpuProcess] = {}
        self._looked = False

    def look(self, gpu: int, listed: Sequence[ProcessMemory], pids: Collection[int]) -> None:
        """Take the processes listed on a GPU, and those of the target just before."""
        self._looked = True
        self._members.update(pids)
        others = {process.pid: process for process in listed if process.pid not in self._members}
        for pid in others.keys() & self._suspects.get(gpu, set()):
            if (gpu, pid) not in self._found and _exists(pid):
                self._judge(gpu, others[pid])
        self._suspects[gpu] = set(others)

    def _judge(self, gpu: int, process: ProcessMemory) -> None:
        name, pid = _read_name(process.pid), process.pid
        if name == _MPS or self._members.intersection(list_ancestors(pid)):
            self._members.add(pid)  # not asked again
        elif _exists(pid):  # else it had no ancestors because it ended meanwhile
            self._found[gpu, pid] = GpuProcess(gpu, pid, name, process.memory)

    @property
    def found(self) -> tuple[GpuProcess, ...] | None:
        """The strangers so far; None if it could not be told on any GPU."""
        if not self._looked:
            return None
        return tuple(user for user in self._found.values() if user.pid not in self._members)


def _read_name(pid: int) -> str | None:
    """Return the name of a process, None if it is gone or hidden."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return None


def _exists(pid: int) -> bool:
    """Return whether there is a process with this pid, even one that /proc hides."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


class Gpus:
    """The selected GPUs for the length of a run, as a context manager.

    Nothing raises after `open`: a GPU that fails is not queried again and is named in `lost`.
    """

    source: Source | None = None
    """Where memory came from so far: "device" once any reading had to be estimated from growth."""

    def __init__(
        self,
        nvml: Nvml | None,
        devices: Sequence[GpuDevice],
        lost: Sequence[str],
        foreign_pids: bool,
    ) -> None:
        self.infos = tuple(device.info for device in devices)
        self._nvml = nvml
        self._devices = tuple(devices)
        self._lost = list(lost)
        self._foreign_pids = foreign_pids
        self._strangers = Strangers()
        self._clocks_read: Seconds | None = None
        """The moment of the last reading of the clocks, first that of the start."""

    @classmethod
    def open(cls, choice: str = "auto", *, foreign_pids: bool | None = None) -> Gpus:
        """Select GPUs: "auto" (all that work), "all", "none", or indices and UUIDs ("0,1").

        `foreign_pids` means that the driver's process ids are not ours, as in a rented pod; None
        finds out. Raises GpuError for a choice that is malformed or cannot be had.
        """
        if foreign_pids is None:
            foreign_pids = str(Path("/proc/self/ns/pid").readlink()) != _HOST_PID_NAMESPACE
        return cls(*open_devices(choice), foreign_pids)

    def __enter__(self) -> Gpus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release NVML; calling it again does nothing."""
        nvml, self._nvml, self._devices = self._nvml, None, ()
        if nvml is not None:
            with suppress(NvmlError):
                nvml.close()

    @property
    def lost(self) -> tuple[str, ...]:
        """What stopped answering and why, each once: "GPU 1 (UUID): GPU is lost"."""
        return tuple(self._lost)

    def processes(self) -> tuple[GpuProcess, ...]:
        """Return all processes that compute or draw on the selected GPUs now."""
        return tuple(
            GpuProcess(device.info.index, process.pid, self._name(process.pid), process.memory)
            for device in self._devices
            for process in self._query(device, GpuDevice.all_processes) or ()
        )

    @property
    def strangers(self) -> tuple[GpuProcess, ...] | None:
        """Who computed on the GPUs beside the task while it was read; None if unknown."""
        return self._strangers.found if self.infos else ()

    def settings(self) -> tuple[GpuSettings, ...]:
        """Return how each selected GPU is set up."""
        return tuple(device.settings() for device in self._devices)

    def used(self) -> tuple[Bytes | None, ...]:
        """Return the memory in use now on each selected GPU, None where it is unknown."""
        return tuple(self._query(device, GpuDevice.used) for device in self._devices)

    def mark_baseline(self) -> tuple[Bytes | None, ...]:
        """Return the memory in use now; growth and throttling of each GPU are counted from here."""
        baselines = self.used()
        for device, baseline in zip(self._devices, baselines, strict=True):
            device.baseline = baseline
            device.clocks.mark()
        return baselines

    def energy(self) -> Joules | None:
        """Return the energy used since the driver was loaded; None if any GPU does not count it.

        The energy of a run is the difference of two calls.
        """
        return _sum([self._query(device, GpuDevice.energy) for device in self._devices])

    def clocks(self) -> tuple[GpuClocks, ...]:
        """Return how fast each selected GPU ran on which the task was at work."""
        summaries = (device.clocks.summarise(device.info.index) for device in self._devices)
        return tuple(filter(None, summaries))

    def read(self, pids: Collection[int], moment: Seconds | None = None) -> GpuReading:
        """Return what the task with these processes uses now.

        About once a second of `moment` (monotonic clock), its clocks are read too; never at the
        first, when the task is waiting for its input, and never for None.
        """
        if not self._devices:
            return GpuReading()
        span = None if moment is None else self._time_clocks(moment)
        read_device = partial(self._read_device, pids=frozenset(pids), span=span)
        readings = [
            reading for device in self._devices if (reading := self._query(device, read_device))
        ]
        use = _sum([reading.use for reading in readings])
        return GpuReading(
            use=None if use is None else round(use / len(readings), 4),
            ram=_sum([reading.ram for reading in readings]),
        )

    def _time_clocks(self, moment: Seconds) -> Seconds | None:
        """Return the time since the clocks were read; None if that is not due yet."""
        span = None if self._clocks_read is None else moment - self._clocks_read
        if span is not None and span < _CLOCK_PERIOD:
            return None
        self._clocks_read = moment
        return span

    def _read_device(
        self, device: GpuDevice, pids: frozenset[int], span: Seconds | None
    ) -> GpuReading | None:
        reading = self._read_use(device, pids)
        if reading is not None and span is not None:
            device.clocks.read(span, reading.use)
        return reading

    def _read_use(self, device: GpuDevice, pids: frozenset[int]) -> GpuReading | None:
        """Return what the task uses of one GPU, None if it is not on it."""
        listed = device.compute_processes()
        if listed is not None and pids and not self._foreign_pids:
            self._strangers.look(device.info.index, listed, pids)
        own = [process.memory for process in listed or () if process.pid in pids]
        used = _sum(own)
        if used is not None:
            self.source = self.source or "process"
            return GpuReading(device.utilisation(), used)
        growth = device.growth()
        pids_useless = listed is None or self._foreign_pids
        if own or (pids_useless and growth is not None and growth > _NOISE):
            self.source = "device"
            return GpuReading(device.utilisation(), growth)
        return None

    def _query(self, device: GpuDevice, query: Callable[[GpuDevice], _Answer]) -> _Answer | None:
        """Query a GPU, unless it failed before."""
        if device.failed:
            return None
        try:
            return query(device)
        except NvmlError as error:
            device.failed = True
            self._lost.append(f"{device}: {error}")
            return None

    def _name(self, pid: int) -> str | None:
        """Return the name of a process; None if it is gone or the pid means another one here."""
        return None if self._foreign_pids else _read_name(pid)


def _sum(values: Sequence[_Number | None]) -> _Number | None:
    """Return the sum, None if there is no value or any is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None
