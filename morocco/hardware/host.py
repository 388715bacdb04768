"""CPU and RAM of a process tree, and what machine this is: the only room that imports psutil."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from morocco.hardware.cgroup import Cgroup
from morocco.hardware.info import HostInfo
from morocco.util.units import Bytes, Seconds

_GONE = (psutil.NoSuchProcess, psutil.AccessDenied)  # ZombieProcess is a NoSuchProcess
_CLOCK_ERROR: Seconds = 1.0
"""The kernel counts creation times from a boot time that it rounds."""


@dataclass(frozen=True)
class HostReading:
    """One beat of a process tree."""

    cpu_time: Seconds | None
    """CPU time used so far; None when nothing could be read."""
    ram: Bytes | None
    """Resident memory, summed; pages that processes share count once for each."""
    pids: tuple[int, ...]
    """Empty once the tree has ended."""


@dataclass(frozen=True)
class CpuTimes:
    """CPU time of one process, as the kernel counts it."""

    own: Seconds
    children: Seconds
    """Of its children that ended and were waited for."""


class ProcessTree:
    """A process and all its descendants, or all processes of its control group."""

    def __init__(self, pid: int, cgroup: Cgroup | None = None) -> None:
        self._cgroup = cgroup
        self._known: dict[int, psutil.Process] = {}
        self._times: dict[tuple[int, float], CpuTimes] = {}
        self._cpu_time: Seconds = 0.0
        self._owed: Seconds = 0.0
        self._root: int | None = pid

    def read(self) -> HostReading:
        """Return the CPU time so far, the memory and the processes of this moment."""
        self._update_processes()
        ram = self._read_ram()
        if ram is None:
            return HostReading(None, None, tuple(filter(_is_alive, self._known)))
        return HostReading(self._read_cpu_time(), ram, tuple(self._known))

    def _update_processes(self) -> None:
        pids = self._cgroup.pids() if self._cgroup else self._descendants()
        self._known = {
            pid: process
            for pid in pids
            if (process := self._known.get(pid) or _open_process(pid)) is not None
        }

    def _descendants(self) -> set[int]:
        # A process seen once stays a member when its parent ends, and no reused pid slips in.
        members = [pid for pid, process in self._known.items() if process.is_running()]
        root, self._root = self._root, None
        return descendants(members if root is None else [root])

    def _read_ram(self) -> Bytes | None:
        sizes = [size for process in self._known.values() if (size := _read_ram(process))]
        return sum(sizes) if sizes else None

    def _read_cpu_time(self) -> Seconds | None:
        if self._cgroup:
            return self._cgroup.cpu_time()
        times = {
            (pid, process.create_time()): read
            for pid, process in self._known.items()
            if (read := _read_times(process)) is not None
        }
        self._cpu_time += cpu_between(self._times, times, self._owed)
        self._owed = owed_between(self._times, times)
        self._times = times
        return self._cpu_time


_Times = Mapping[tuple[int, float], CpuTimes]
"""By (pid, creation time), as a pid may be used again."""

_ZERO = CpuTimes(0.0, 0.0)


def cpu_between(before: _Times, after: _Times, owed: Seconds = 0.0) -> Seconds:
    """Return the CPU time a tree used between two readings.

    What a waited-for child used moves to its parent's `children`; the part of it that was read
    while the child lived is taken off, so that nothing counts twice. `owed` is what was not yet
    taken off at the reading before.
    """
    own = sum(now.own - before.get(key, _ZERO).own for key, now in after.items())
    return max(0.0, own) + max(0.0, _inherited(before, after) - _vanished(before, after) - owed)


def owed_between(before: _Times, after: _Times) -> Seconds:
    """Return the CPU time of children that ended, as far as no parent shows it yet.

    A child may end after its parent was read; then the parent shows it at the next reading.
    """
    return max(0.0, _vanished(before, after) - _inherited(before, after))


def _inherited(before: _Times, after: _Times) -> Seconds:
    return sum(now.children - before.get(key, _ZERO).children for key, now in after.items())


def _vanished(before: _Times, after: _Times) -> Seconds:
    return sum(then.own + then.children for key, then in before.items() if key not in after)


def descendants(roots: Collection[int]) -> set[int]:
    """Return the processes `roots` and all below them, without reading the rest of the host."""
    if not Path("/proc/thread-self/children").exists():  # a kernel built without these lists
        return _descendants_of_all(roots)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += _children(pid)
    return found


def _descendants_of_all(roots: Collection[int]) -> set[int]:
    found = set(roots)
    for process in filter(None, map(_open_process, roots)):
        with suppress(*_GONE):
            found.update(child.pid for child in process.children(recursive=True))
    return found


def _children(pid: int) -> list[int]:
    """Return the children of a process, from the kernel's own list for each of its threads."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 (cheap on the beat)
    except OSError:
        return []
    return [child for thread in threads for child in _children_of_thread(pid, thread)]


def _children_of_thread(pid: int, thread: str) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def _open_process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except _GONE:
        return None


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except _GONE:
        return False


def _read_ram(process: psutil.Process) -> Bytes | None:
    try:
        return process.memory_info().rss
    except _GONE:
        return None


def _read_times(process: psutil.Process) -> CpuTimes | None:
    try:
        times = process.cpu_times()
    except _GONE:
        return None
    return CpuTimes(
        times.user + times.system,
        times.children_user + times.children_system,
    )


def created_at(pid: int) -> Seconds | None:
    """Return when a process was created, in seconds since the epoch; None if it is gone."""
    process = _open_process(pid)
    return process.create_time() if process else None


def is_alive_since(pid: int, moment: Seconds) -> bool:
    """Return whether the process that had this pid at a moment (since the epoch) still lives."""
    process = _open_process(pid)
    try:
        return (
            process is not None
            and process.status() != psutil.STATUS_ZOMBIE
            and process.create_time() <= moment + _CLOCK_ERROR
        )
    except _GONE:
        return False


def list_cores() -> list[int]:
    """Return the cores this process may use, those of one package and physical core together.

    So that a share of consecutive ones has no core whose other half belongs to somebody else.
    """
    return sorted(os.sched_getaffinity(0), key=lambda core: (*_place(core), core))


def _place(core: int) -> tuple[int, int]:
    topology = Path(f"/sys/devices/system/cpu/cpu{core}/topology")
    try:
        names = ("physical_package_id", "core_id")
        package, physical = (int((topology / name).read_text()) for name in names)
    except (OSError, ValueError):  # a virtual machine may not tell
        return 0, core
    return package, physical


def count_oom_kills() -> int | None:
    """Return how many processes the kernel has killed for memory since boot."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return None
    counts = (int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return next(counts, None)


def read_host_info() -> HostInfo:
    """Return what machine this is."""
    return HostInfo(
        cpu=_cpu_model(),
        cores=psutil.cpu_count() or 0,
        ram=psutil.virtual_memory().total,
        kernel=platform.release(),
        name=platform.node(),
    )


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())
