"""The control group of a container: its processes and the CPU time they used.

One small file lists all processes, however many others run on the host, and the kernel's own
counter includes the CPU time of processes that came and went between two samples.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from morocco.hardware.info import Throttling
from morocco.util.units import Seconds


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
                return int((self.folder / "cpuacct.usage").read_bytes()) / 1e9
            usage, _, _ = (self.folder / "cpu.stat").read_text().partition("\n")
            return int(usage.removeprefix("usage_usec ")) / 1e6
        except OSError:
            return None


def find_cgroup(pid: int, proc: Path = Path("/proc")) -> Cgroup | None:
    """Return the control group of a process, None if it has none of its own."""
    try:
        groups = _read_groups(proc / str(pid) / "cgroup")
        own = _read_groups(proc / "self" / "cgroup")
    except OSError:
        return None
    for version, controller in ((1, "cpuacct"), (2, "")):
        path = groups.get(controller)
        if path is None or path == own.get(controller):
            continue
        for root, mount_point in _read_mounts(proc / "self" / "mountinfo", controller):
            folder = Path(mount_point) / path.removeprefix(root).lstrip("/")
            if pid in _read_pids(folder):
                return Cgroup(folder, version)
    return None


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
        return [int(line) for line in (folder / "cgroup.procs").read_bytes().split()]
    except OSError:
        return []
