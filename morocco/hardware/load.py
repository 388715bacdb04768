"""What else is at work on this machine during a run, by the kernel's own counters."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from morocco.hardware.cgroup import find_quota, read_kernel_file, read_throttling
from morocco.hardware.info import Load, Pressure, Throttling
from morocco.util.units import Seconds

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_CORE = re.compile(rb"^cpu\d* .*$", re.MULTILINE)
_ALL_CORES = frozenset((b"cpu",))
_SHORTEST: Seconds = 0.3
_LONGEST: Seconds = 3.0
"""Between two readings, which cost half as much as a sample; the first ones are closer together,
for the sake of short runs."""
_JITTER: Seconds = 0.02
_ENGINES = ("dockerd", "containerd", "podman")
_SHIMS = ("containerd-shim", "conmon")
"""The parent of a container's main process, which forwards its streams, by Docker and Podman."""
_MARK = "morocco-run/"
_WORKING = 0.05
"""Cores."""
_MAX_NAME = 107
"""Bytes of the name of a socket."""


@dataclass(frozen=True)
class CpuReading:
    """CPU time used up to a moment of the monotonic clock."""

    moment: Seconds
    machine: Seconds
    """Of all processes, on the cores that the target may use."""
    stolen: Seconds
    """Of other virtual machines, on the same cores."""
    own: Seconds
    """Of the target, of this process, and of the engine that forwards the streams."""


def subtract_own(first: CpuReading, last: CpuReading) -> float:
    """Return the cores that others kept busy between two readings."""
    busy = last.machine - first.machine - (last.own - first.own)
    return round(max(0.0, busy) / (last.moment - first.moment), 4)


class LoadMeter:
    """Reads what the machine does beside a target; a reading takes 0.1 to 0.4 ms of CPU."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self.pid = 0
        """The target's main process; to be set before the second beat."""
        self._proc = proc
        self._first_beat: Seconds | None = None
        self._cores = CoreSet()
        self._engine: dict[int, Seconds] = {}
        self._cpu: list[CpuReading] = []
        self._highest: float | None = None
        self._quota: Path | None = None
        self._throttling: list[Throttling] = []
        self._before: _Counters | None = None

    def prepare(self) -> None:
        """Read what does not depend on the target, before it starts."""
        self._engine = dict.fromkeys(_find_engine(self._proc), 0.0)
        self._before = _read_counters(self._proc)

    def read(self, moment: Seconds, target: Seconds | None) -> None:
        """Take a reading if one is due; `target` is the CPU time that the target has used.

        The first beat is left out: it comes before the feeding, which must not wait.
        """
        if self._first_beat is None:
            self._first_beat = moment
        elif target is not None and self._is_due(moment):
            if not self._cpu:
                self._look_around()
            if self._cores.count:  # else there is no /proc/stat
                self._take_reading(moment, target)

    def _is_due(self, moment: Seconds) -> bool:
        if not self._cpu:
            return True
        first, last = self._cpu[0].moment, self._cpu[-1].moment
        return moment - last >= max(_SHORTEST, min(_LONGEST, last - first)) - _JITTER

    def _look_around(self) -> None:
        """Find the cores of the target, its quota, and the process that forwards its streams."""
        self._cores = CoreSet.of(self.pid, _read(f"{self._proc}/stat"))
        self._quota = find_quota(self.pid, self._proc)
        target = _read_process(self._proc, self.pid)
        parent = _read_process(self._proc, target.parent) if target else None
        if parent is not None and parent.name.startswith(_SHIMS):
            self._engine[parent.pid] = parent.cpu_time

    def _take_reading(self, moment: Seconds, target: Seconds) -> None:
        machine, stolen = parse_stat(_read(f"{self._proc}/stat"), self._cores)
        own = target + time.process_time() + self._read_engine()
        reading = CpuReading(moment, machine, stolen, own)
        if self._cpu:
            self._highest = max(subtract_own(self._cpu[-1], reading), self._highest or 0.0)
        self._cpu = [*self._cpu[:1], reading]
        if self._quota and (throttling := read_throttling(self._quota)):
            self._throttling = [*self._throttling[:1], throttling]

    def _read_engine(self) -> Seconds:
        """Return the CPU time of the engine; a process that has ended keeps what it used."""
        for pid in self._engine:
            process = _read_process(self._proc, pid)
            self._engine[pid] = process.cpu_time if process else self._engine[pid]
        return sum(self._engine.values())

    def finish(self) -> Load:
        """Return what the readings say."""
        load = Load(throttling=_subtract_throttling(self._throttling))
        if self._before is not None:
            load = _add_counters(load, self._before, _read_counters(self._proc))
        if len(self._cpu) < 2:
            return load
        first, last = self._cpu
        seconds = last.moment - first.moment
        return replace(
            load,
            cores=self._cores.count,
            seconds=round(seconds, 3),
            foreign_cores=subtract_own(first, last),
            foreign_highest=self._highest,
            stolen_cores=round(max(0.0, last.stolen - first.stolen) / seconds, 4),
        )


@dataclass(frozen=True)
class CoreSet:
    """The cores that a target may use."""

    count: int = 0
    names: frozenset[bytes] = _ALL_CORES
    """Of their lines in /proc/stat; all cores share the line `cpu`."""

    @classmethod
    def of(cls, pid: int, stat: bytes) -> CoreSet:
        """Return the cores on which the kernel lets a process run; all if it is gone."""
        every = {line.split()[0] for line in _CORE.findall(stat)} - {b"cpu"}
        try:
            allowed = {f"cpu{core}".encode() for core in os.sched_getaffinity(pid)}
        except OSError:
            allowed = every
        chosen = allowed & every
        return cls(len(every)) if chosen == every else cls(len(chosen), frozenset(chosen))


def parse_stat(stat: bytes, cores: CoreSet) -> tuple[Seconds, Seconds]:
    """Return the busy and the stolen CPU time of some cores (see proc(5)).

    Busy is user, nice, system, irq and softirq; the time of guests is part of user and nice.
    """
    busy = stolen = 0
    lines = stat.splitlines()[:1] if cores.names is _ALL_CORES else _CORE.findall(stat)
    for line in lines:
        name, user, nice, system, _, _, irq, softirq, steal, *_ = line.split()
        if name in cores.names:
            busy += int(user) + int(nice) + int(system) + int(irq) + int(softirq)
            stolen += int(steal)
    return busy / _TICKS, stolen / _TICKS


@dataclass(frozen=True)
class _Process:
    pid: int
    name: str
    parent: int
    cpu_time: Seconds


def _find_engine(proc: Path) -> Iterator[int]:
    """Yield the processes of the container engine that all containers share."""
    for pid in filter(str.isdigit, os.listdir(proc)):  # noqa: PTH208 (cheap)
        if _read(f"{proc}/{pid}/comm").strip().decode(errors="replace") in _ENGINES:
            yield int(pid)


def _read_process(proc: Path, pid: int) -> _Process | None:
    """Return what /proc/<pid>/stat says, None if the process is gone."""
    before, bracket, after = _read(f"{proc}/{pid}/stat").rpartition(b")")
    if not bracket:
        return None
    name, fields = before.partition(b"(")[2].decode(errors="replace"), after.split()
    return _Process(pid, name, int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS)


@dataclass(frozen=True)
class _Counters:
    """What the kernel counts for the whole machine since boot."""

    moment: Seconds
    pages_in: int | None
    """Read back from swap."""
    pages_out: int | None
    waited: tuple[int | None, ...]
    """Microseconds in which some process had to wait: for CPU, for memory, for input or output."""


def _read_counters(proc: Path) -> _Counters:
    vmstat = _read_whole(proc / "vmstat")
    waits = (_read_whole(proc / "pressure" / name) for name in ("cpu", "memory", "io"))
    return _Counters(
        time.monotonic(),
        _find_number(rb"^pswpin (\d+)$", vmstat),
        _find_number(rb"^pswpout (\d+)$", vmstat),
        tuple(_find_number(rb"^some .*total=(\d+)$", wait) for wait in waits),
    )


def _add_counters(load: Load, before: _Counters, after: _Counters) -> Load:
    elapsed = after.moment - before.moment
    swapped_in = _subtract(after.pages_in, before.pages_in)
    swapped_out = _subtract(after.pages_out, before.pages_out)
    waited = map(_subtract, after.waited, before.waited)
    shares = [None if wait is None else round(wait / 1e6 / elapsed, 4) for wait in waited]
    return replace(
        load,
        swapped_in=None if swapped_in is None else swapped_in * _PAGE,
        swapped_out=None if swapped_out is None else swapped_out * _PAGE,
        pressure=None if shares == [None] * 3 else Pressure(*shares),
    )


def _subtract_throttling(readings: Sequence[Throttling]) -> Throttling | None:
    """Return what happened between the first and the last reading; None without a quota."""
    if len(readings) < 2 or not readings[-1].periods:
        return None
    first, last = readings
    return Throttling(
        last.periods - first.periods, last.throttled - first.throttled, last.time - first.time
    )


def _find_number(pattern: bytes, content: bytes) -> int | None:
    found = re.search(pattern, content, re.MULTILINE)
    return int(found[1]) if found else None


def _subtract(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before


def _read(file: str) -> bytes:
    """Return the content of a small file of the kernel, empty if there is none."""
    try:
        return read_kernel_file(file)
    except OSError:
        return b""


def _read_whole(file: Path) -> bytes:
    """Return the content of a file of the kernel, empty if there is none."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


@dataclass(frozen=True)
class BusyProcess:
    """A process, and how many cores it kept busy."""

    pid: int
    name: str
    cores: float


class BusyProcesses:
    """Which processes are at work, from this moment on."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._before, self._moment = self._read(), time.monotonic()

    def list_busiest(self, most: int) -> list[BusyProcess]:
        """Return those that kept more than a twentieth of a core busy, the busiest first."""
        elapsed = time.monotonic() - self._moment
        busy = [
            BusyProcess(process.pid, process.name, (process.cpu_time - before.cpu_time) / elapsed)
            for process in self._read().values()
            if (before := self._before.get(process.pid)) and process.pid != os.getpid()
        ]
        working = [process for process in busy if process.cores > _WORKING]
        return sorted(working, key=lambda process: -process.cores)[:most]

    def _read(self) -> dict[int, _Process]:
        pids = (int(folder.name) for folder in self._proc.glob("[0-9]*"))
        return {pid: found for pid in pids if (found := _read_process(self._proc, pid))}


class OtherRuns:
    """The other morocco runs on this machine; they see this one while the context lasts.

    Each run binds a socket whose name tells what it measures. The name is in no file system, and
    the kernel removes it with the process, however that ends.
    """

    def __init__(self, suite: str | None, what: str) -> None:
        """`what` tells others what is measured; runs of the same suite are not looked for."""
        self._suite = suite or "-"
        name = f"{_MARK}{self._suite}/{os.getpid()}/{time.monotonic_ns():x}/{what}"
        self._name = " ".join(name.split()).encode()[:_MAX_NAME]
        self._socket: socket.socket | None = None
        self.found: tuple[str, ...] = ()
        """All that were seen so far."""

    def __enter__(self) -> OtherRuns:
        with suppress(OSError):
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.bind(b"\0" + self._name)
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()

    def find_new(self) -> list[str]:
        """Return the runs that are at work now and were not seen before."""
        names = _read_whole(Path("/proc/net/unix"))
        new = [run for run in parse_runs(names, self._name, self._suite) if run not in self.found]
        self.found = (*self.found, *new)
        return new


def parse_runs(sockets: bytes, own: bytes, suite: str) -> Iterator[str]:
    """Yield the runs of other suites in the content of /proc/net/unix, each with its process."""
    for line in sockets.splitlines():
        _, found, name = line.partition(b"@" + _MARK.encode())
        parts = name.decode(errors="replace").split("/", 3)
        if not found or len(parts) < 4 or own.endswith(name):
            continue
        other, pid, _, what = parts
        if other != suite or suite == "-":
            yield f"{what} (pid {pid})"
