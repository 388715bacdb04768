"""RAM of a target: what it adds to the machine, with the peaks between two readings.

Pages that several processes share count once: for a container its control group counts anonymous
and shared memory, and the processes their share of mapped files (PSS); for a bare process all is
PSS. A reading of PSS takes time in proportion to the memory, so a budget limits it, and between
two of them it follows the resident memory, which is cheap to read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from morocco.hardware.cgroup import GroupMemory, KernelFile, MemoryGroup, read_kernel_file
from morocco.util.units import Bytes, Seconds

Source = Literal["cgroup", "pss", "rss"]

_BUDGET = 0.0003
"""Cores that readings of PSS may use, on average."""
_CREDIT: Seconds = 0.05
"""CPU time that they may use in advance, and save up."""
_LONGEST: Seconds = 0.1
"""A longer reading would make a beat late."""
_USUAL_COST = 1e-11
"""Seconds a byte, before any reading was timed."""
_DRIFT = 0.02
"""Processes may share what they map: beyond this change of their sum, PSS is read again."""

_STATUS = re.compile(rb"VmHWM:\s+(\d+) kB\nVmRSS:\s+(\d+) kB\n(?:RssAnon:.*\nRssFile:\s+(\d+) kB)?")
_ROLLUP = re.compile(rb"Rss:\s+(\d+) kB\nPss:\s+(\d+) kB\n(?s:.*?)\nPss_File:\s+(\d+) kB")


@dataclass(frozen=True)
class Resident:
    """Resident memory of one process; pages that it shares count in full."""

    rss: Bytes
    peak: Bytes
    """The largest `rss` so far."""
    file: Bytes
    """Mapped files alone."""


@dataclass(frozen=True)
class Share:
    """Memory of one process, each page divided by the number of processes that map it."""

    rss: Bytes
    pss: Bytes
    pss_file: Bytes
    """Mapped files alone."""


class ResidentMeter:
    """Reads the resident memory of the same processes again and again."""

    def __init__(self) -> None:
        self._files: dict[int, KernelFile] = {}

    def read(self, pids: Collection[int]) -> dict[int, Resident]:
        """Return the memory of each process that has not ended and is not hidden."""
        if self._files.keys() != set(pids):
            self._files = {pid: self._files.get(pid) or _open_status(pid) for pid in pids}
        found = {pid: _read_resident(file) for pid, file in self._files.items()}
        return {pid: resident for pid, resident in found.items() if resident is not None}


def read_resident(pid: int) -> Resident | None:
    """Return the resident memory of a process; None if it has ended or is hidden."""
    return _read_resident(_open_status(pid))


def _open_status(pid: int) -> KernelFile:
    return KernelFile(f"/proc/{pid}/status")


def _read_resident(status: KernelFile) -> Resident | None:
    try:
        match = _STATUS.search(status.read())
    except OSError:
        return None
    if match is None:  # a zombie
        return None
    peak, rss, mapped = (int(value or 0) * 1024 for value in match.groups())
    return Resident(rss, peak, mapped)


def read_share(pid: int) -> Share | None:
    """Return the share of a process, None if it has ended; PermissionError if it is hidden."""
    try:
        text = read_kernel_file(f"/proc/{pid}/smaps_rollup")
    except (FileNotFoundError, ProcessLookupError):
        return None
    match = _ROLLUP.search(text)
    if match is None:
        if b"Pss:" in text:
            raise PermissionError("this kernel does not tell mapped files from other memory")
        return None
    rss, pss, mapped = (int(value) * 1024 for value in match.groups())
    return Share(rss, pss, mapped)


class SharedMemory:
    """The PSS of some processes, or of the files they map, estimated between readings."""

    def __init__(self, part: Literal["all", "files"]) -> None:
        self._part = part
        self.readable = Path("/proc/self/smaps_rollup").exists()
        """False from the moment that a process hides its memory from us."""
        self._shares: Mapping[int, Share] = {}
        self._then: Mapping[int, Resident] = {}
        """At the latest reading."""
        self._outside: dict[int, Bytes] = {}
        """Of the pages of a process, what it shared with other programs while it was alone."""
        self._pids: Set[int] = frozenset()
        self._settled = False
        """Whether the processes are those of the time before: not in the middle of forking."""
        self._read_at: Seconds | None = None
        self._cost: Seconds | None = None
        self._credit, self._credit_at = _CREDIT, 0.0

    def update(self, now: Mapping[int, Resident], moment: Seconds) -> None:
        """Read the PSS if it is due, and the budget allows it."""
        self._settled, self._pids = now.keys() == self._pids, now.keys()
        if self._read_at is None:  # the first sample delays the feeding
            self._read_at = self._credit_at = moment
            return
        self._credit = min(_CREDIT, self._credit + (moment - self._credit_at) * _BUDGET)
        self._credit_at = moment
        cost = self._forecast(now)
        affordable = cost <= _LONGEST and self._credit >= min(cost, _CREDIT / 2)
        due = (moment - self._read_at) * _BUDGET / 4 >= cost or self._has_changed(now)
        if self.readable and self._settled and affordable and due:
            self._read(now, moment)

    def estimate(self, now: Mapping[int, Resident]) -> Bytes:
        """Return what the processes use, at most their resident memory."""
        resident = self._sum(now)
        if not self.was_read:
            return resident
        if self._then is now:
            return self._shared
        estimate = self._shared
        if self._settled or len(now) == 1:
            estimate += resident - self._sum(self._then)
        return min(resident, max(estimate, *(self._without_others(pid, now[pid]) for pid in now)))

    def _without_others(self, pid: int, process: Resident) -> Bytes:
        held = process.rss if self._part == "all" else process.file
        return max(0, held - self.outside(pid, process.file))

    def lower(self, estimate: Bytes, now: Mapping[int, Resident]) -> Bytes:
        """Return an estimate without what may be shared: the growth of several processes."""
        certain = len(now) == 1 or self._then is now or not self.readable
        return estimate if certain else min(estimate, self._shared)

    def outside(self, pid: int, files: Bytes) -> Bytes:
        """Return how much of a process, which maps `files`, may belong to other programs."""
        known = self._outside
        return known[pid] if pid in known else max(known.values(), default=files)

    @property
    def was_read(self) -> bool:
        """Whether the figures are PSS; otherwise they are resident memory."""
        return bool(self._shares) and self.readable

    @property
    def _shared(self) -> Bytes:
        return sum(
            share.pss if self._part == "all" else share.pss_file for share in self._shares.values()
        )

    def _sum(self, processes: Mapping[int, Resident]) -> Bytes:
        return sum(
            process.rss if self._part == "all" else process.file for process in processes.values()
        )

    def _forecast(self, now: Mapping[int, Resident]) -> Seconds:
        resident = sum(process.rss for process in now.values())
        then = sum(process.rss for process in self._then.values())
        return (
            resident * _USUAL_COST if not self._cost or not then else self._cost * resident / then
        )

    def _has_changed(self, now: Mapping[int, Resident]) -> bool:
        if now.keys() != self._then.keys():
            return True
        return len(now) > 1 and abs(self._sum(now) - self._sum(self._then)) > _DRIFT * self._shared

    def _read(self, now: Mapping[int, Resident], moment: Seconds) -> None:
        begin = time.thread_time()
        try:
            shares = {pid: share for pid in now if (share := read_share(pid)) is not None}
        except OSError:
            self.readable = False
            return
        self._cost = time.thread_time() - begin
        self._credit -= self._cost
        self._shares, self._then, self._read_at = shares, now, moment
        if len(shares) == 1:
            self._outside |= {pid: share.rss - share.pss for pid, share in shares.items()}


class TargetMemory:
    """What the processes of a target add to the RAM in use, and the peak of it."""

    def __init__(self, group: MemoryGroup | None = None) -> None:
        self.peak: Bytes | None = None
        """The largest amount that is certain: never more than the truth, however it is shared."""
        self.lacks_any = False
        """Whether a process could not be read the last time: it is hidden, or has ended."""
        self._group, self._resident = group, ResidentMeter()
        self._shared = SharedMemory("all" if group is None else "files")
        self._peaks: dict[int, Bytes] = {}
        """The largest resident memory of each process ever seen."""
        self._shmem: Bytes = 0
        self._cache: Bytes = 0
        """The largest amounts seen so far."""
        self._group_peak: Bytes | None = None
        """The latest one that was judged."""

    @property
    def source(self) -> Source | None:
        """Where the figures come from; None as long as there is none."""
        if self.peak is None:
            return None
        if self._group is not None:
            return "cgroup"
        return "pss" if self._shared.was_read else "rss"

    def read(self, pids: Collection[int], moment: Seconds) -> Bytes | None:
        """Return the RAM at a moment (monotonic clock), None if no process can be read."""
        now = self._resident.read(pids)
        self.lacks_any = len(now) < len(pids)
        if not now:
            return None
        group_peak = self._group.peak() if self._group else None  # before the page cache
        group = self._group.read() if self._group else None
        if self._group is not None and group is None:  # the container has ended
            return None
        self._shared.update(now, moment)
        shared = self._shared.estimate(now)
        certain = self._shared.lower(shared, now)
        marks = (self._without_others(pid, process) for pid, process in now.items())
        self.raise_peak(max(self._add(group, certain), *marks))
        self._peaks |= {pid: process.peak for pid, process in now.items()}
        if group is not None and group_peak is not None:
            self._judge_group_peak(group, group_peak, certain)
        return self._add(group, shared)

    def raise_peak(self, peak: Bytes) -> None:
        """Take note of a high-water mark that is certain."""
        self.peak = max(self.peak or 0, peak)

    def raise_to_process(self, pid: int, peak: Bytes) -> None:
        """Take note of the largest resident memory of a process that has ended."""
        self.raise_peak(peak - self._shared.outside(pid, 0))

    def _without_others(self, pid: int, process: Resident) -> Bytes:
        return process.peak - self._shared.outside(pid, process.file)

    def _add(self, group: GroupMemory | None, shared: Bytes) -> Bytes:
        if group is None:
            return shared
        if self._shared.readable:
            return group.anon + group.shmem + shared
        return group.anon + max(group.shmem, group.mapped)

    def _judge_group_peak(self, now: GroupMemory, peak: Bytes, files: Bytes) -> None:
        """Raise the peak to that of the group less its page cache, within what processes held."""
        self._cache, self._shmem = max(self._cache, now.cache), max(self._shmem, now.shmem)
        if self._group is not None and peak != self._group_peak:
            self._group_peak = peak
            held = sum(self._peaks.values()) + self._shmem
            self.raise_peak(min(peak - self._cache - self._group.kernel() + files, held))
