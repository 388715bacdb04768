"""The control group of a container: its processes, the CPU time they used, and their memory.

One small file lists all processes, however many others run on the host, and the kernel's own
counters include processes that came and went between two samples.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from morocco.hardware.info import Throttling
from morocco.util.units import Bytes, Seconds


@dataclass(frozen=True)
class Cgroup:
    """A control group, of version 1 or 2."""

    folder: Path
    version: int

    def pids(self) -> list[int]:
        """Return the processes of the group and of the groups below it."""
        return [pid for folder in _walk(self.folder) for pid in _read_pids(folder)]

    def cpu_time(self) -> Seconds | None:
        """Return the CPU time the group has used so far; None once it is gone."""
        try:
            if self.version == 1:
                return int(self._usage.read()) / 1e9
            usage, _, _ = self._usage.read().partition(b"\n")
            return int(usage.removeprefix(b"usage_usec ")) / 1e6
        except OSError:
            return None

    @cached_property
    def _usage(self) -> KernelFile:
        return KernelFile(f"{self.folder}/{'cpuacct.usage' if self.version == 1 else 'cpu.stat'}")


@dataclass(frozen=True)
class GroupMemory:
    """What a group uses at one moment."""

    anon: Bytes
    shmem: Bytes
    """Files of tmpfs, such as /dev/shm, and memory shared without a file."""
    mapped: Bytes
    """Mapped files whose pages this group was the first to touch, those in `shmem` among them."""
    cache: Bytes
    """Files that were read or written, mapped or not, without `shmem`."""


@dataclass(frozen=True)
class MemoryGroup:
    """A control group that counts memory, of version 1 or 2."""

    folder: Path
    version: int

    def read(self) -> GroupMemory | None:
        """Return what the group and those below it use now; None once it is gone."""
        counts = self._count(_MEMORY_KEYS[self.version])
        if counts is None:
            return None
        anon, shmem, mapped, cache = counts
        return GroupMemory(anon, shmem, mapped, cache - shmem)

    def peak(self) -> Bytes | None:
        """Return the largest use so far, with page cache; None where the kernel does not count."""
        try:
            return int(self._peak.read())
        except (OSError, ValueError):
            return None

    def oom_kills(self) -> int | None:
        """Return how many of its processes the kernel killed for memory; None once it is gone."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        try:
            text = b"\n" + read_kernel_file(f"{self.folder}/{name}")
        except OSError:
            return None
        return _find_number(text, b"oom_kill")

    def kernel(self) -> Bytes:
        """Return what the kernel itself uses for the group, as far as it counts that."""
        if self.version == 1:
            return _read_number(f"{self.folder}/memory.kmem.usage_in_bytes") or 0
        return sum(self._count((b"kernel",)) or ())

    def _count(self, names: Sequence[bytes]) -> list[int] | None:
        try:
            text = b"\n" + self._stat.read()
        except OSError:
            return None
        return [_find_number(text, name) for name in names]

    @cached_property
    def _stat(self) -> KernelFile:
        return KernelFile(f"{self.folder}/memory.stat")

    @cached_property
    def _peak(self) -> KernelFile:
        name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        return KernelFile(f"{self.folder}/{name}")


_MAX_READ: Bytes = 64 * 1024
_LAST_READ: Bytes = 3 * 1024
"""The kernel hands out a long file in pages of at least 4 KB, so a shorter piece is the last."""
_MEMORY_KEYS = {
    1: (b"total_rss", b"total_shmem", b"total_mapped_file", b"total_cache"),
    2: (b"anon", b"shmem", b"file_mapped", b"file"),
}


def _find_number(text: bytes, name: bytes) -> int:
    start = text.find(b"\n%b " % name)
    return int(text[start + len(name) + 2 : text.find(b"\n", start + 1)]) if start >= 0 else 0


def _read_number(file: str) -> int | None:
    try:
        return int(read_kernel_file(file))
    except (OSError, ValueError):
        return None


def read_kernel_file(path: str) -> bytes:
    """Return all that a file of the kernel says; at half the cost of `open`, for every sample."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = part = os.read(file, _MAX_READ)
        while len(part) > _LAST_READ:
            part = os.read(file, _MAX_READ)
            text += part
        return text
    finally:
        os.close(file)


class KernelFile:
    """A file of the kernel that is read again and again: opened once, at half the cost.

    That of a process stays the file of this one, even when another process gets its id.
    """

    _MAX_OPEN = 200
    """A target may have any number of processes, but this process few open files."""
    _open = 0

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None

    def read(self) -> bytes:
        """Return all that it says now; raises OSError if what it tells of is gone."""
        if self._file is None:
            if KernelFile._open >= self._MAX_OPEN:
                return read_kernel_file(self._path)
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            KernelFile._open += 1
        text = part = os.pread(self._file, _MAX_READ, 0)
        while len(part) > _LAST_READ:
            part = os.pread(self._file, _MAX_READ, len(text))
            text += part
        return text

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)
            KernelFile._open -= 1


def find_cgroup(pid: int, proc: Path = Path("/proc")) -> Cgroup | None:
    """Return the control group of a process, None if it has none of its own."""
    return next((Cgroup(*found) for found in _find_groups(pid, "cpuacct", proc)), None)


def find_memory_group(pid: int, proc: Path = Path("/proc")) -> MemoryGroup | None:
    """Return the group that counts the memory of a process, None if it has none of its own."""
    groups = (MemoryGroup(*found) for found in _find_groups(pid, "memory", proc))
    return next((group for group in groups if group.read() is not None), None)


def _find_groups(pid: int, controller: str, proc: Path) -> Iterator[tuple[Path, int]]:
    """Yield folder and version of the groups that only this process and its kin are in."""
    try:
        groups = _read_groups(proc / str(pid) / "cgroup")
        others = [_read_groups(proc / "self" / "cgroup"), _read_parent_groups(pid, proc)]
    except OSError:
        return
    for version, name in ((1, controller), (2, "")):
        path = groups.get(name)
        if path is None or path in [other.get(name) for other in others]:
            continue
        for root, mount_point in _read_mounts(proc / "self" / "mountinfo", name):
            folder = Path(mount_point) / path.removeprefix(root).lstrip("/")
            if pid in _read_pids(folder):
                yield folder, version


def find_quota(pid: int, proc: Path = Path("/proc")) -> Path | None:
    """Return the file that counts how often a CPU quota stopped a process; None without one."""
    try:
        groups = _read_groups(proc / str(pid) / "cgroup")
    except OSError:
        return None
    for controller in ("cpu", ""):
        path = groups.get(controller)
        if path is None:
            continue
        for root, mount_point in _read_mounts(proc / "self" / "mountinfo", controller):
            file = Path(mount_point) / path.removeprefix(root).lstrip("/") / "cpu.stat"
            counted = read_throttling(file)
            if counted and counted.periods:
                return file
    return None


def read_quota(proc: Path = Path("/proc")) -> float | None:
    """Return to how many cores a quota limits this process; None without one that is visible."""
    try:
        groups = _read_groups(proc / "self" / "cgroup")
    except OSError:
        return None
    limits = [
        limit
        for controller in ("cpu", "")
        for root, mount_point in _read_mounts(proc / "self" / "mountinfo", controller)
        if controller in groups
        for folder in _list_up_to(Path(mount_point), groups[controller].removeprefix(root))
        if (limit := _read_limit(folder)) is not None
    ]
    return min(limits, default=None)


def _list_up_to(top: Path, path: str) -> Iterator[Path]:
    """Yield the folder of a group and those above it, whose quotas limit it as well."""
    folder = top / path.lstrip("/")
    yield from (folder, *(above for above in folder.parents if above.is_relative_to(top)))


def _read_limit(folder: Path) -> float | None:
    """Return the quota of one group, in cores."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            quota, period = ((folder / name).read_text() for name in names)
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError):  # `max` is no number: there is no quota
        return None


def read_throttling(file: Path) -> Throttling | None:
    """Return what `cpu.stat` of a control group has counted; None if it counts no quota."""
    try:
        lines = file.read_text().splitlines()
        counts = {name: int(count) for name, count in map(str.split, lines)}
        return Throttling(counts["nr_periods"], counts["nr_throttled"], _read_throttled(counts))
    except (OSError, KeyError, ValueError):
        return None


def _read_throttled(counts: Mapping[str, int]) -> Seconds:
    if "throttled_usec" in counts:  # version 2
        return counts["throttled_usec"] / 1e6
    return counts["throttled_time"] / 1e9


def is_named_in_cgroup(pid: int, name: str, proc: Path = Path("/proc")) -> bool:
    """Return whether the control group of a process has this in its path; False if it is gone."""
    try:
        return any(name in group for group in _read_groups(proc / str(pid) / "cgroup").values())
    except OSError:
        return False


def _read_parent_groups(pid: int, proc: Path) -> dict[str, str]:
    """Return the groups of the parent, which a rootless engine's container may share."""
    try:
        stat = (proc / str(pid) / "stat").read_text()
        return _read_groups(proc / stat.rpartition(")")[2].split()[1] / "cgroup")
    except OSError:
        return {}


def _read_groups(file: Path) -> dict[str, str]:
    """Return the path of the group in each hierarchy, by controller; '' is version 2."""
    groups = {}
    for line in file.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups


def _read_mounts(file: Path, controller: str) -> Iterator[tuple[str, str]]:
    """Yield (root, mount point) of the hierarchy of a controller; '' is version 2 (see proc(5))."""
    for line in file.read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        fields, (fs_type, _, options) = mount.split(), kind.split(" ", 2)
        if fs_type == ("cgroup" if controller else "cgroup2") and (
            not controller or controller in options.split(",")
        ):
            yield fields[3].rstrip("/"), fields[4]


def _walk(folder: Path) -> Iterator[Path]:
    yield folder
    try:
        if folder.stat().st_nlink != 2:  # one link for each folder below; there are hardly ever any
            for entry in os.scandir(folder):
                if entry.is_dir():
                    yield from _walk(Path(entry.path))
    except OSError:
        return


def _read_pids(folder: Path) -> list[int]:
    try:
        return [int(line) for line in read_kernel_file(f"{folder}/cgroup.procs").split()]
    except OSError:
        return []
