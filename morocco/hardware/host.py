"""CPU and RAM of a process tree, and the machine itself: the only room that imports psutil."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from morocco.hardware.cgroup import Cgroup
from morocco.hardware.info import HostInfo
from morocco.hardware.memory import TargetMemory
from morocco.util.units import Bytes, Seconds

_GONE = (psutil.NoSuchProcess, psutil.AccessDenied)  # ZombieProcess is a NoSuchProcess
_CLOCK_ERROR: Seconds = 1.0
"""The kernel counts creation times from a rounded boot time."""


_Value = TypeVar("_Value")


@dataclass(frozen=True)
class HostReading:
    """What a process tree uses at one moment."""

    cpu_time: Seconds | None
    """CPU time used so far; None if nothing could be read."""
    ram: Bytes | None
    """What the processes add to the machine: memory that they share counts once."""
    pids: tuple[int, ...]
    """Empty once the tree has ended."""


@dataclass(frozen=True)
class CpuTimes:
    """CPU time of one process, as counted by the kernel."""

    own: Seconds
    children: Seconds
    """Of children that ended and were waited for."""


class ProcessTree:
    """A process and all its descendants, or all processes of its control group."""

    def __init__(
        self,
        pid: int,
        cgroup: Cgroup | None = None,
        find_adopted: Callable[[], Iterable[int]] = tuple,
        memory: TargetMemory | None = None,
    ) -> None:
        """`find_adopted` returns processes that have left the tree and still belong to it."""
        self.memory = memory or TargetMemory()
        self._cgroup, self._find_adopted = cgroup, find_adopted
        self._known: dict[int, psutil.Process] = {}
        self._times: dict[tuple[int, float], CpuTimes] = {}
        self._cpu_time: Seconds = 0.0
        self._owed: Seconds = 0.0
        self._root: int | None = pid

    def read(self) -> HostReading:
        """Return the CPU time so far, and the memory and processes now."""
        self._update_processes()
        ram = self.memory.read(self._known, time.monotonic())
        if ram is None:
            return HostReading(None, None, tuple(filter(is_alive, self._known)))
        return HostReading(self._read_cpu_time(), ram, tuple(self._known))

    def mark(self) -> None:
        """Take note of the peak of the memory so far."""
        self._update_processes()
        self.memory.read(self._known, time.monotonic())

    def _update_processes(self) -> None:
        pids = self._cgroup.pids() if self._cgroup else self._find_members()
        self._known = {
            pid: process
            for pid in pids
            if (process := self._known.get(pid) or _open_process(pid)) is not None
        }

    def _find_members(self) -> set[int]:
        # A process stays a member when its parent ends; a reused pid is not let in.
        members = [pid for pid, process in self._known.items() if process.is_running()]
        root, self._root = self._root, None
        return find_descendants([*(members if root is None else [root]), *self._find_adopted()])

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
"""By (pid, creation time), because a pid may be reused."""

_ZERO = CpuTimes(0.0, 0.0)


def cpu_between(before: _Times, after: _Times, owed: Seconds = 0.0) -> Seconds:
    """Return the CPU time a tree used between two readings.

    When a child is waited for, its CPU time moves to its parent's `children`; what was read while
    the child lived is subtracted, so that nothing counts twice. `owed` is what the reading before
    could not subtract yet.
    """
    own = sum(now.own - before.get(key, _ZERO).own for key, now in after.items())
    return max(0.0, own) + max(0.0, _inherited(before, after) - _vanished(before, after) - owed)


def owed_between(before: _Times, after: _Times) -> Seconds:
    """Return the CPU time of ended children that no parent shows yet.

    A child may end after its parent was read; the parent then shows it at the next reading.
    """
    return max(0.0, _vanished(before, after) - _inherited(before, after))


def _inherited(before: _Times, after: _Times) -> Seconds:
    return sum(now.children - before.get(key, _ZERO).children for key, now in after.items())


def _vanished(before: _Times, after: _Times) -> Seconds:
    return sum(then.own + then.children for key, then in before.items() if key not in after)


def find_descendants(roots: Collection[int]) -> set[int]:
    """Return the processes `roots` and all below them, without reading any other process."""
    if not Path("/proc/thread-self/children").exists():  # a kernel built without these lists
        return _search_all_processes(roots)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += _list_children(pid)
    return found


def list_own_children(*, of_main_thread: bool = False) -> list[int]:
    """Return the children of this process; its main thread has those that it adopted."""
    pid = os.getpid()
    if not Path("/proc/thread-self/children").exists():
        return [child.pid for child in psutil.Process().children()]
    return _list_children_of_thread(pid, str(pid)) if of_main_thread else _list_children(pid)


def _search_all_processes(roots: Collection[int]) -> set[int]:
    found = set(roots)
    for process in filter(None, map(_open_process, roots)):
        with suppress(*_GONE):
            found.update(child.pid for child in process.children(recursive=True))
    return found


def _list_children(pid: int) -> list[int]:
    """Return the children of a process, from the kernel's list for each of its threads."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 (cheap, for every sample)
    except OSError:
        return []
    return [child for thread in threads for child in _list_children_of_thread(pid, thread)]


def _list_children_of_thread(pid: int, thread: str) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def _or_none(read: Callable[[], _Value]) -> _Value | None:
    """Return what is read, None if the process is gone or hidden."""
    try:
        return read()
    except _GONE:
        return None


def _open_process(pid: int) -> psutil.Process | None:
    return _or_none(lambda: psutil.Process(pid))


def _read_times(process: psutil.Process) -> CpuTimes | None:
    times = _or_none(process.cpu_times)
    if times is None:
        return None
    return CpuTimes(times.user + times.system, times.children_user + times.children_system)


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    status = _or_none(lambda: psutil.Process(pid).status())
    return status not in (None, psutil.STATUS_ZOMBIE)


def list_ancestors(pid: int) -> list[int]:
    """Return the parent of a process, its parent …; empty if the process is gone or hidden."""
    process = _open_process(pid)
    parents = _or_none(process.parents) if process else None
    return [parent.pid for parent in parents or ()]


def created_at(pid: int) -> Seconds | None:
    """Return when a process was created, in seconds since the epoch; None if it is gone."""
    process = _open_process(pid)
    return process.create_time() if process else None


def is_alive_since(pid: int, moment: Seconds) -> bool:
    """Return whether the process that had this pid at `moment` (since the epoch) still lives."""
    created = created_at(pid)
    return created is not None and created <= moment + _CLOCK_ERROR and is_alive(pid)


def may_live_since(pid: int, moment: Seconds) -> bool:
    """Return whether that process still lives, or exists and is hidden, so that it may."""
    return is_alive_since(pid, moment) or (created_at(pid) is None and _exists(pid))


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def name_pid_space(pid: int | None = None) -> str | None:
    """Return where ids of processes such as this one count: boot and namespace; None if unknown.

    The same number may be another process in a container, or on another machine.
    """
    try:
        if Path("/proc/self").readlink().name != str(os.getpid()):  # /proc of another namespace
            return None
        space = Path(f"/proc/{pid or 'self'}/ns/pid").readlink()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    return f"{boot}/{space}"


def list_cores() -> list[int]:
    """Return the cores this process may use, hyper-threads of one physical core side by side.

    A slice of the list then shares as few physical cores as possible with other slices.
    """
    return sorted(os.sched_getaffinity(0), key=lambda core: (*_read_place(core), core))


def _read_place(core: int) -> tuple[int, int]:
    """Return the package and the physical core of a logical core."""
    topology = Path(f"/sys/devices/system/cpu/cpu{core}/topology")
    try:
        names = ("physical_package_id", "core_id")
        package, physical = (int((topology / name).read_text()) for name in names)
    except (OSError, ValueError):  # a virtual machine may not have it
        return 0, core
    return package, physical


def count_oom_kills() -> int | None:
    """Return how many processes the kernel has killed for lack of memory since boot."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return None
    counts = (int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return next(counts, None)


def read_host_info() -> HostInfo:
    """Return what machine this is."""
    return HostInfo(
        cpu=_read_cpu_model(),
        cores=psutil.cpu_count() or 0,
        ram=psutil.virtual_memory().total,
        kernel=platform.release(),
        name=platform.node(),
    )


def _read_cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())
