"""CPU and RAM of a process tree, and the machine itself: the only room that imports psutil."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from morocco.hardware.cgroup import Cgroup, KernelFile, read_kernel_file
from morocco.hardware.info import HostInfo
from morocco.hardware.memory import TargetMemory
from morocco.util.units import Bytes, Seconds

_GONE = (psutil.NoSuchProcess, psutil.AccessDenied)  # ZombieProcess is a NoSuchProcess
_CLOCK_ERROR: Seconds = 1.0
"""The kernel counts creation times from a rounded boot time."""
_TICKS = os.sysconf("SC_CLK_TCK")
_LAST_PID = "/proc/sys/kernel/ns_last_pid"
"""Holds the process id that was given out last."""
_FIRST = re.compile(rb"^NSpid:(?:\t\d+)+\t1$", re.MULTILINE)
_FORKED_NO_EXEC = 0x40
"""The kernel's flag for a process that was forked and has loaded no program yet."""


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
        self._known: dict[int, ProcessTimes] = {}
        self._births = Births()
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
        """Look for the processes, unless they must be those of the time before."""
        if self._births.may_have_been() or self.memory.lacks_any or not self._known:
            pids = self._cgroup.pids() if self._cgroup else self._find_members()
            self._known = {pid: self._known.get(pid) or ProcessTimes(pid) for pid in pids}

    def _find_members(self) -> set[int]:
        # A process stays a member when its parent ends; a reused pid is not let in.
        members = [pid for pid, process in self._known.items() if process.read() is not None]
        root, self._root = self._root, None
        return find_descendants([*(members if root is None else [root]), *self._find_adopted()])

    def _read_cpu_time(self) -> Seconds | None:
        if self._cgroup:
            return self._cgroup.cpu_time()
        times = {
            (pid, process.created): read
            for pid, process in self._known.items()
            if (read := process.read()) is not None
        }
        self._cpu_time += cpu_between(self._times, times, self._owed)
        self._owed = owed_between(self._times, times)
        self._times = times
        return self._cpu_time


class ProcessTimes:
    """Reads the CPU time of one process, and never that of a later one with the same id."""

    def __init__(self, pid: int) -> None:
        self.created: Seconds = 0.0
        """Since boot; known once it has been read."""
        self._stat = KernelFile(f"/proc/{pid}/stat")

    def read(self) -> CpuTimes | None:
        """Return the times so far; None once the process has ended and was waited for."""
        try:
            fields = self._stat.read().rpartition(b")")[2].split()
        except OSError:
            return None
        created = int(fields[19]) / _TICKS
        if self.created not in (0.0, created):
            return None
        self.created = created
        user, system, children_user, children_system = map(int, fields[11:15])
        return CpuTimes((user + system) / _TICKS, (children_user + children_system) / _TICKS)


class Births:
    """Tells at the cost of some microseconds whether any process may have been born."""

    def __init__(self) -> None:
        self._last_pid = KernelFile(_LAST_PID)
        self._told: bytes | None = None
        self._calls = 0
        """In a row that told the same."""

    def may_have_been(self) -> bool:
        """Return whether the kernel has given out ids since the call before the last one.

        A process that is born while the others are listed may be missing from the list, so they
        are listed once more. True where the kernel does not tell.
        """
        try:
            told = self._last_pid.read()
        except OSError:
            return True
        self._calls = self._calls + 1 if told and told == self._told else 0
        self._told = told
        return self._calls < 2


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


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    status = _or_none(lambda: psutil.Process(pid).status())
    return status not in (None, psutil.STATUS_ZOMBIE)


class NewProcesses:
    """The processes that have appeared lately, found without a look at all others."""

    def __init__(self) -> None:
        self._before = self._last = read_last_pid()

    def find(self) -> Iterable[int]:
        """Return the ids given out since the call before the last one, of threads too.

        A process whose id was just given out may not be readable yet, so each comes twice. Empty
        where the kernel does not tell.
        """
        first, self._before, self._last = self._before, self._last, read_last_pid()
        if first is None or self._last is None:
            return ()
        if first <= self._last:
            return range(first + 1, self._last + 1)
        return map(int, filter(str.isdigit, os.listdir("/proc")))  # noqa: PTH208 (began anew)


def read_last_pid() -> int | None:
    """Return the id given out last in this PID namespace, None where the kernel does not tell."""
    try:
        return int(read_kernel_file(_LAST_PID))
    except (OSError, ValueError):
        return None


def is_first_of_namespace(pid: int) -> bool:
    """Return whether a process is the first one of a PID namespace other than this one."""
    try:
        return _FIRST.search(read_kernel_file(f"/proc/{pid}/status")) is not None
    except OSError:
        return False


def has_loaded_program(pid: int) -> bool | None:
    """Return whether a process has loaded a program since it was forked; None if it is gone."""
    try:
        flags = read_kernel_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()[6]
    except (OSError, IndexError):
        return None
    return not int(flags) & _FORKED_NO_EXEC


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
