"""What the RAM of processes and made-up control groups comes to."""

from __future__ import annotations

import mmap
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from morocco.hardware import memory
from morocco.hardware.cgroup import GroupMemory, MemoryGroup
from morocco.hardware.memory import Resident, Share, SharedMemory, TargetMemory
from runs import until

MIB = 2**20
ME = os.getpid()
V2 = "anon {anon}\nfile {file}\nkernel {kernel}\nshmem {shmem}\nfile_mapped {mapped}\n"
V1 = (
    "rss 1\ncache 1\ntotal_cache {file}\ntotal_rss {anon}\ntotal_shmem {shmem}\n"
    "total_mapped_file {mapped}\n"
)


def make_group(
    folder: Path, version: int, *, peak: int | None = None, **counts: int
) -> MemoryGroup:
    """Write the files of a control group, amounts in MB."""
    amounts = dict.fromkeys(("anon", "file", "kernel", "shmem", "mapped"), 0) | counts
    in_bytes = {name: count * MIB for name, count in amounts.items()}
    (folder / "memory.stat").write_text((V1 if version == 1 else V2).format(**in_bytes))
    if version == 1:
        (folder / "memory.kmem.usage_in_bytes").write_text(f"{in_bytes['kernel']}\n")
    if peak is not None:
        name = "memory.max_usage_in_bytes" if version == 1 else "memory.peak"
        (folder / name).write_text(f"{peak * MIB}\n")
    return MemoryGroup(folder, version)


@contextmanager
def children(count: int) -> Iterator[Sequence[int]]:
    """Fork processes that do nothing."""
    pids = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        pids.append(pid)
    try:
        yield pids
    finally:
        for pid in pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def refuse(_: int) -> Share | None:
    raise PermissionError


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_tells_its_memory(version: int, tmp_path: Path) -> None:
    group = make_group(tmp_path, version, anon=50, file=30, shmem=10, mapped=15, kernel=2, peak=90)
    assert group.read() == GroupMemory(50 * MIB, 10 * MIB, 15 * MIB, 20 * MIB)
    assert (group.peak(), group.kernel()) == (90 * MIB, 2 * MIB)


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_that_is_gone_has_no_memory(version: int, tmp_path: Path) -> None:
    group = MemoryGroup(tmp_path, version)
    assert (group.read(), group.peak(), group.kernel()) == (None, None, 0)
    assert TargetMemory(group).read([ME], 0) is None


@pytest.mark.parametrize("version", [1, 2])
def test_ram_of_a_group_is_anonymous_shared_and_mapped_memory(version: int, tmp_path: Path) -> None:
    group = make_group(tmp_path, version, anon=50, file=500, shmem=100, mapped=400)
    measured = TargetMemory(group)
    measured.read([ME], 0)
    ram = measured.read([ME], 1)
    share = memory.read_share(ME)
    assert share
    assert ram == pytest.approx(150 * MIB + share.pss_file, abs=MIB)
    assert measured.source == "cgroup"


def test_a_peak_of_the_group_counts_without_page_cache_and_kernel(tmp_path: Path) -> None:
    make_group(tmp_path, 2, anon=10, file=5, kernel=1, peak=16)
    measured = TargetMemory(MemoryGroup(tmp_path, 2))
    measured._peaks[0] = 1000 * MIB  # a process that has ended held up to this much
    with subprocess.Popen(["sleep", "60"]) as small:
        measured.read([small.pid], 0)
        make_group(tmp_path, 2, anon=10, file=35, kernel=1, peak=346)
        ram = measured.read([small.pid], 1)
        small.kill()
    assert ram
    assert measured.peak
    assert measured.peak - ram == pytest.approx(300 * MIB, abs=2 * MIB)


def test_a_file_that_was_written_and_deleted_is_no_peak(tmp_path: Path) -> None:
    held = memory.read_resident(ME)
    assert held
    group = make_group(tmp_path, 2, anon=10, file=5, peak=4000)
    measured = TargetMemory(group)
    measured.read([ME], 0)
    assert measured.peak
    assert measured.peak <= held.peak + MIB


def test_the_pages_of_forks_count_once() -> None:
    before = memory.read_share(ME)
    held = bytearray(os.urandom(MIB)) * 100
    size = len(held)
    with children(4) as pids:
        measured, moments = TargetMemory(), count()

        def read_twice() -> tuple[int, int]:
            """Return the memory as it is measured, and as the kernel tells it a moment later."""
            ram = measured.read([ME, *pids], next(moments))
            shares = [memory.read_share(pid) for pid in (ME, *pids)]
            return ram or 0, sum(share.pss for share in shares if share)

        # The forks may still be starting.
        ram = until(lambda: next((a for a, b in [read_twice()] if abs(a - b) < 0.02 * b), 0))
    assert before
    assert size < (ram or 0) < before.pss + 2 * size
    assert measured.source == "pss"
    assert (measured.peak or 0) >= 0.98 * ram


def test_growth_is_followed_between_two_readings_of_pss() -> None:
    measured = TargetMemory()
    for moment in range(2):
        before = measured.read([ME], moment)
    held = mmap.mmap(-1, 50 * MIB)
    held.write(b"x" * 50 * MIB)
    after = measured.read([ME], 1.001)  # too soon to read it again
    assert before
    assert after
    assert after - before == pytest.approx(50 * MIB, abs=MIB)


def test_where_pss_is_hidden_it_is_resident_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "read_share", refuse)
    measured = TargetMemory()
    for moment in range(2):
        ram = measured.read([ME], moment)
    held = memory.read_resident(ME)
    assert held
    assert ram == pytest.approx(held.rss, abs=MIB)
    assert measured.source == "rss"


def test_where_pss_is_hidden_a_group_counts_what_it_touched_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "read_share", refuse)
    measured = TargetMemory(make_group(tmp_path, 2, anon=50, file=40, shmem=10, mapped=30))
    for moment in range(2):
        ram = measured.read([ME], moment)
    assert ram == 80 * MIB
    assert measured.source == "cgroup"


def test_a_process_that_was_never_read_has_no_ram() -> None:
    measured = TargetMemory()
    assert measured.read([2**22 + 1], 0) is None
    assert (measured.peak, measured.source) == (None, None)


def test_readings_of_pss_stay_within_their_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = [0.0]

    def read(_: int) -> Share:
        spent[0] += 0.02
        return Share(100 * MIB, 50 * MIB, 0)

    monkeypatch.setattr(memory, "read_share", read)
    monkeypatch.setattr(time, "thread_time", lambda: spent[0])
    shared = SharedMemory("all")
    for beat in range(3 * 600):  # ten minutes, and a new process at each other beat
        shared.update({1: Resident(100 * MIB, 0, 0), 2 + beat // 2: Resident(MIB, 0, 0)}, beat / 3)
    assert 0.05 < spent[0] < 0.0003 * 600 + 0.1
