"""Control groups: made-up trees of every layout, and a real group where this machine lets us."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from morocco.hardware.cgroup import (
    Cgroup,
    KernelFile,
    MemoryGroup,
    find_cgroup,
    is_named_in_cgroup,
)

PID = 4711
DOCKER = "/docker/0123abc"
SPIN = (
    "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\ninput()"
)


class Host:
    """A /proc and a /sys/fs/cgroup that a test makes up."""

    def __init__(self, folder: Path) -> None:
        self.proc = folder / "proc"
        self.sys = folder / "sys"
        self.join("self", "0::/user.slice", "2:cpuacct,cpu:/user.slice")
        (self.proc / "self" / "mountinfo").touch()

    def join(self, pid: int | str, *groups: str) -> None:
        """Put a process into groups: lines of /proc/<pid>/cgroup (see cgroups(7))."""
        (self.proc / str(pid)).mkdir(parents=True)
        (self.proc / str(pid) / "cgroup").write_text("".join(line + "\n" for line in groups))

    def mount(self, name: str, fs_type: str, options: str, root: str = "/") -> Path:
        """Mount a hierarchy: a line of /proc/self/mountinfo (see proc(5))."""
        folder = self.sys / name
        folder.mkdir(parents=True)
        with (self.proc / "self" / "mountinfo").open("a") as file:
            place = f"31 23 0:28 {root} {folder} rw,relatime shared:9 master:1"
            file.write(f"{place} - {fs_type} {fs_type} rw,{options}\n")
        return folder

    def mount_v1(self) -> Path:
        self.mount("", "tmpfs", "mode=755")
        self.mount("memory", "cgroup", "memory")
        return self.mount("cpu,cpuacct", "cgroup", "cpu,cpuacct")

    def mount_v2(self, name: str = "unified") -> Path:
        return self.mount(name, "cgroup2", "nsdelegate")

    def find(self) -> Cgroup | None:
        return find_cgroup(PID, self.proc)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def make_group(folder: Path, *pids: int) -> Path:
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    return folder


def test_a_group_of_version_1_is_found_by_its_cpu_accounting(host: Host) -> None:
    folder = make_group(host.mount_v1() / DOCKER[1:], PID)
    make_group(host.sys / "memory" / DOCKER[1:], PID)
    host.join(PID, f"9:memory:{DOCKER}", f"4:cpu,cpuacct:{DOCKER}", f"1:name=systemd:{DOCKER}")
    assert host.find() == Cgroup(folder, 1)


def test_a_group_of_version_2_is_found(host: Host) -> None:
    scope = "system.slice/docker-0123abc.scope"
    folder = make_group(host.mount_v2("") / scope, PID)
    host.join(PID, f"0::/{scope}")
    assert host.find() == Cgroup(folder, 2)


def test_where_both_versions_are_mounted_the_one_that_holds_the_container_is_taken(
    host: Host,
) -> None:
    v1, v2 = host.mount_v1(), host.mount_v2()
    make_group(v2 / DOCKER[1:], PID)
    folder = make_group(v1 / DOCKER[1:], PID)
    host.join(PID, f"4:cpu,cpuacct:{DOCKER}", f"0::{DOCKER}")
    assert host.find() == Cgroup(folder, 1)


def test_where_version_1_has_no_own_group_version_2_is_taken(host: Host) -> None:
    host.mount_v1()
    folder = make_group(host.mount_v2() / DOCKER[1:], PID)
    host.join(PID, "4:cpu,cpuacct:/user.slice", f"0::{DOCKER}")
    assert host.find() == Cgroup(folder, 2)


def test_a_group_is_found_where_only_a_part_of_the_hierarchy_is_mounted(host: Host) -> None:
    folder = make_group(host.mount("", "cgroup2", "nsdelegate", root="/docker") / "0123abc", PID)
    host.join(PID, f"0::{DOCKER}")
    assert host.find() == Cgroup(folder, 2)


def test_a_process_in_our_own_group_has_none_of_its_own(host: Host) -> None:
    make_group(host.mount_v1() / "user.slice", PID)
    make_group(host.mount_v2() / "user.slice", PID)
    host.join(PID, "4:cpu,cpuacct:/user.slice", "0::/user.slice")
    assert host.find() is None


def test_a_group_that_is_not_mounted_here_is_none(host: Host) -> None:
    host.join(PID, f"0::{DOCKER}")
    assert host.find() is None


def test_a_group_that_does_not_list_the_process_is_none(host: Host) -> None:
    make_group(host.mount_v2() / DOCKER[1:], PID + 1)
    host.join(PID, f"0::{DOCKER}")
    assert host.find() is None


def test_a_process_that_has_ended_has_no_group(host: Host) -> None:
    host.mount_v2()
    assert host.find() is None


def test_the_processes_of_groups_below_belong_to_a_group(tmp_path: Path) -> None:
    folder = make_group(tmp_path / "docker", 1, 2)
    make_group(folder / "worker", 3)
    make_group(folder / "worker" / "deep", 4)
    make_group(folder / "empty")
    assert sorted(Cgroup(folder, 2).pids()) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("version", "name", "content"),
    [
        (1, "cpuacct.usage", "12500000000\n"),
        (2, "cpu.stat", "usage_usec 12500000\nuser_usec 9000000\nsystem_usec 3500000\n"),
    ],
)
def test_cpu_time_is_told_in_seconds(tmp_path: Path, version: int, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert Cgroup(tmp_path, version).cpu_time() == 12.5


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_that_is_gone_has_no_process_and_no_cpu_time(tmp_path: Path, version: int) -> None:
    group = Cgroup(tmp_path / "gone", version)
    assert group.pids() == []
    assert group.cpu_time() is None


@pytest.mark.parametrize("size", [0, 5, 3072, 3073, 200_000])
def test_a_file_of_the_kernel_is_read_anew_each_time(tmp_path: Path, size: int) -> None:
    path = tmp_path / "memory.stat"
    path.write_bytes(b"before")
    file = KernelFile(str(path))
    assert file.read() == b"before"
    path.write_bytes(b"x" * size)
    assert file.read() == b"x" * size


def test_a_file_of_the_kernel_is_that_of_one_process() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        file = KernelFile(f"/proc/{process.pid}/stat")
        assert file.read().startswith(b"%d (" % process.pid)
        process.kill()
    with pytest.raises(ProcessLookupError):
        file.read()


def count_open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_any_number_of_files_is_read_with_few_open(tmp_path: Path) -> None:
    (tmp_path / "stat").write_bytes(b"1")
    before = count_open_files()
    files = [KernelFile(str(tmp_path / "stat")) for _ in range(2000)]
    assert all(file.read() == b"1" for file in files)
    assert count_open_files() <= before + 200
    del files
    assert count_open_files() == before


@pytest.fixture(params=[1, 2])
def real_group(request: pytest.FixtureRequest) -> Iterator[Cgroup]:
    version: int = request.param
    mounted = find_mount(version)
    folder = mounted / f"morocco-test-{os.getpid()}" if mounted else None
    try:
        if folder is None:
            raise FileNotFoundError("is not mounted")
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no group of version {version} can be made here: {error}")
    try:
        yield Cgroup(folder, version)
    finally:
        for group in (folder / "below", folder):
            if group.exists():
                wait_until(partial(is_empty, group))
                group.rmdir()


def find_mount(version: int) -> Path | None:
    """Return where the hierarchy that counts CPU time is mounted."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        fs_type, _, options = kind.split(" ", 2)
        if (version, fs_type) == (2, "cgroup2") or (
            (version, fs_type) == (1, "cgroup") and "cpuacct" in options.split(",")
        ):
            return Path(mount.split()[4])
    return None


def is_empty(group: Path) -> bool:
    return not (group / "cgroup.procs").read_text()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def start_in(folder: Path, code: str) -> subprocess.Popen[bytes]:
    """Start a process that runs `code` once it is in the group, then waits for its input's end."""
    process = subprocess.Popen(
        [sys.executable, "-ISc", f"input()\n{code}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    (folder / "cgroup.procs").write_text(str(process.pid))
    assert process.stdin
    process.stdin.write(b"go\n")
    process.stdin.flush()
    return process


def test_a_real_group_tells_its_processes_and_their_cpu_time(real_group: Cgroup) -> None:
    with start_in(real_group.folder, SPIN) as process:
        try:
            assert find_cgroup(process.pid) == real_group
            assert real_group.pids() == [process.pid]
            wait_until(lambda: (real_group.cpu_time() or 0) >= 0.3)
        finally:
            process.communicate(b"\n")
    assert real_group.pids() == []
    used = real_group.cpu_time()
    assert used is not None
    assert 0.3 <= used < 3


def test_a_real_group_counts_the_groups_below_it(real_group: Cgroup) -> None:
    below = real_group.folder / "below"
    below.mkdir()
    with start_in(below, SPIN) as process:
        try:
            assert real_group.pids() == [process.pid]
            wait_until(lambda: (real_group.cpu_time() or 0) >= 0.3)
        finally:
            process.communicate(b"\n")


@pytest.mark.parametrize(
    "group",
    ["4:cpu,cpuacct:/docker/4711abc", "0::/system.slice/docker-4711abc.scope", "0::/../4711abc"],
)
def test_a_process_is_told_to_be_a_containers_by_its_group(host: Host, group: str) -> None:
    host.join(PID, group)
    assert is_named_in_cgroup(PID, "4711abc", host.proc)
    assert not is_named_in_cgroup(PID, "0815", host.proc)
    assert not is_named_in_cgroup(PID + 1, "4711abc", host.proc)


def test_the_group_of_a_rootless_engine_is_not_that_of_its_container(host: Host) -> None:
    service = "user.slice/podman.service"
    make_group(host.mount_v2("") / service, 4700, PID)
    host.join(PID, f"0::/{service}")
    host.join(4700, f"0::/{service}")
    (host.proc / str(PID) / "stat").write_text(f"{PID} (sh) S 4700 {PID} 0\n")
    assert host.find() is None


def test_processes_that_the_kernel_killed_for_memory_are_counted(tmp_path: Path) -> None:
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\n")
    assert MemoryGroup(tmp_path, 1).oom_kills() == 2
    assert MemoryGroup(tmp_path, 2).oom_kills() == 3
    assert MemoryGroup(tmp_path / "gone", 2).oom_kills() is None
