"""What `doctor` says of machines that are made up, file by file, as the kernel would show them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from morocco.doctor.finding import Finding
from morocco.doctor.machine import (
    Watched,
    judge_clock,
    judge_disk,
    judge_governors,
    judge_load,
    judge_memory,
    judge_other_runs,
    judge_quota,
    judge_steal,
    watch_idle,
)
from morocco.hardware.cgroup import read_quota
from morocco.hardware.info import Load, Throttling
from morocco.hardware.load import BusyProcess, BusyProcesses
from morocco.hardware.settings import (
    Memory,
    count_nvidia_cards,
    read_clock_source,
    read_governors,
    read_memory,
)

GIB = 2**30
MIB = 2**20
IDLE = Load(cores=8, seconds=5.0, foreign_cores=0.1, stolen_cores=0.0, swapped_in=0)


def state(finding: Finding) -> str:
    """Return the state of a finding, which names a way out if that is needed."""
    assert bool(finding.todo) == (finding.state in ("bad", "doubtful")), finding
    return finding.state


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


# The clocks of the CPU


@pytest.mark.parametrize(
    ("governors", "driver", "expected"),
    [
        (["performance", "performance"], "intel_pstate", "good"),
        (["performance", "powersave"], "intel_pstate", "doubtful"),
        (["powersave", "powersave"], "amd-pstate-epp", "doubtful"),
        (["schedutil", "schedutil"], "acpi-cpufreq", "doubtful"),
        (["powersave", "powersave"], "acpi-cpufreq", "bad"),
        ([], "", "unknown"),
    ],
)
def test_the_clocks_should_not_change(
    governors: list[str], driver: str, expected: str, tmp_path: Path
) -> None:
    for core, governor in enumerate(governors):
        folder = tmp_path / f"devices/system/cpu/cpu{core}/cpufreq"
        write(folder / "scaling_governor", governor + "\n")
        write(folder / "scaling_driver", driver + "\n")
    assert state(judge_governors(read_governors([0, 1], tmp_path))) == expected


def test_governors_are_counted_on_the_cores_in_question(tmp_path: Path) -> None:
    for core, governor in enumerate(["performance", "performance", "powersave"]):
        write(tmp_path / f"devices/system/cpu/cpu{core}/cpufreq/scaling_governor", governor)
    assert "performance on 2 cores" in judge_governors(read_governors([0, 1], tmp_path)).found
    mixed = judge_governors(read_governors([1, 2], tmp_path)).found
    assert "performance on 1 core, powersave on 1 core" in mixed


@pytest.mark.parametrize(
    ("source", "expected"),
    [("tsc", "good"), ("kvm-clock", "good"), ("hpet", "doubtful"), (None, "unknown")],
)
def test_the_time_should_be_read_fast(source: str | None, expected: str, tmp_path: Path) -> None:
    if source:
        folder = tmp_path / "devices/system/clocksource/clocksource0"
        write(folder / "current_clocksource", source + "\n")
    assert state(judge_clock(read_clock_source(tmp_path))) == expected


# What else is at work


@pytest.mark.parametrize(
    ("foreign", "cores", "expected"),
    [(0.3, 8, "good"), (0.6, 8, "doubtful"), (3.0, 8, "bad"), (1.0, 2, "bad"), (1.0, 64, "good")],
)
def test_others_should_leave_the_cores_alone(foreign: float, cores: int, expected: str) -> None:
    load = Load(cores=cores, seconds=1.0, foreign_cores=foreign)
    finding = judge_load(Watched(load, [BusyProcess(4711, "cc1", 0.97)]))
    assert state(finding) == expected
    assert f"{foreign:.1f} of {cores} cores" in finding.found
    assert ("cc1 (pid 4711) 1.0" in finding.found) == (expected != "good")


@pytest.mark.parametrize(
    ("stolen", "expected"), [(0.1, "good"), (1.0, "doubtful"), (4.0, "bad"), (None, "unknown")]
)
def test_the_hypervisor_should_leave_the_cores_alone(stolen: float | None, expected: str) -> None:
    load = Load(cores=8, seconds=5.0, stolen_cores=stolen)
    assert state(judge_steal(load)) == expected


def test_where_the_kernel_counts_nothing_nothing_is_known() -> None:
    assert state(judge_load(Watched(Load()))) == state(judge_steal(Load())) == "unknown"


def test_another_run_is_bad_and_named() -> None:
    assert state(judge_other_runs([])) == "good"
    finding = judge_other_runs(["parus of rubert (pid 7)"])
    assert state(finding) == "bad"
    assert "parus of rubert (pid 7)" in finding.found


def test_who_is_busy_is_named_with_its_share(tmp_path: Path) -> None:
    def run(pid: int, name: str, ticks: int) -> None:
        write(tmp_path / str(pid) / "stat", f"{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0")

    for pid, name in ((10, "idle"), (11, "a) b"), (os.getpid(), "morocco")):
        run(pid, name, 1000)
    busy = BusyProcesses(tmp_path)
    run(11, "a) b", 1000 + 10**6)
    run(os.getpid(), "morocco", 10**9)
    (found,) = busy.list_busiest(3)
    assert (found.pid, found.name) == (11, "a) b")
    assert found.cores > 1000  # in far less than a second


def test_this_machine_can_be_watched() -> None:
    load = watch_idle(0.4).load
    assert load.cores == len(os.sched_getaffinity(0))
    assert load.foreign_cores is not None
    assert 0 <= load.foreign_cores <= load.cores + 0.5


# Quotas


def quota(tmp_path: Path, groups: str, mount: str, files: dict[str, str]) -> float | None:
    """Return the quota of this process on a machine with these control groups."""
    write(tmp_path / "proc/self/cgroup", groups)
    write(tmp_path / "proc/self/mountinfo", mount.replace("MOUNT", str(tmp_path / "groups")))
    for name, text in files.items():
        write(tmp_path / "groups" / name, text)
    return read_quota(tmp_path / "proc")


V2 = "31 23 0:28 / MOUNT rw shared:9 - cgroup2 cgroup2 rw\n"
V1 = "31 23 0:28 / MOUNT rw shared:9 - cgroup cgroup rw,cpu\n"
V1_IN_A_CONTAINER = "31 23 0:28 /docker/a1 MOUNT rw shared:9 - cgroup cgroup rw,cpu\n"


@pytest.mark.parametrize(
    ("groups", "mount", "files", "cores"),
    [
        ("0::/job\n", V2, {"job/cpu.max": "150000 100000\n"}, 1.5),
        ("0::/job\n", V2, {"job/cpu.max": "max 100000\n"}, None),
        (
            "0::/slice/job\n",
            V2,
            {"slice/cpu.max": "50000 100000\n", "slice/job/cpu.max": "max 100000\n"},
            0.5,
        ),
        (
            "4:cpu,cpuacct:/job\n",
            V1,
            {"job/cpu.cfs_quota_us": "200000\n", "job/cpu.cfs_period_us": "100000\n"},
            2.0,
        ),
        (
            "4:cpu,cpuacct:/docker/a1\n",
            V1_IN_A_CONTAINER,
            {"cpu.cfs_quota_us": "25000\n", "cpu.cfs_period_us": "100000\n"},
            0.25,
        ),
        (
            "4:cpu:/\n",
            V1,
            {"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"},
            None,
        ),
        ("0::/\n", "", {}, None),
    ],
)
def test_a_quota_is_found_wherever_it_is_set(
    groups: str, mount: str, files: dict[str, str], cores: float | None, tmp_path: Path
) -> None:
    assert quota(tmp_path, groups, mount, files) == cores


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    assert read_quota(tmp_path) is None


@pytest.mark.parametrize(
    ("limit", "throttled", "expected"),
    [(None, None, "good"), (8.0, None, "good"), (1.5, 0, "doubtful"), (1.5, 40, "bad")],
)
def test_a_quota_should_not_stop_a_target(
    limit: float | None, throttled: int | None, expected: str
) -> None:
    counted = None if throttled is None else Throttling(50, throttled, 1.0)
    finding = judge_quota(limit, 4, 8, Load(throttling=counted))
    assert state(finding) == expected


# Memory and disks

MEMINFO = "MemTotal: {} kB\nMemAvailable: {} kB\nSwapTotal: 2048 kB\nSwapFree: 1024 kB\n"


@pytest.mark.parametrize(
    ("available", "swapped_in", "expected"),
    [(30, 0, "good"), (2, 0, "doubtful"), (30, 5 * MIB, "doubtful"), (30, 200 * MIB, "bad")],
)
def test_there_should_be_memory_left(
    available: int, swapped_in: int, expected: str, tmp_path: Path
) -> None:
    write(tmp_path / "meminfo", MEMINFO.format(32 * MIB, available * MIB))
    memory = read_memory(tmp_path)
    assert memory == Memory(32 * GIB, available * GIB, MIB)
    finding = judge_memory(memory, Load(swapped_in=swapped_in))
    assert state(finding) == expected
    assert f"{available}.00 GB of 32.00 GB" in finding.found


def test_memory_that_is_not_told_is_unknown(tmp_path: Path) -> None:
    assert state(judge_memory(read_memory(tmp_path), IDLE)) == "unknown"


class Usage(NamedTuple):
    """As `shutil.disk_usage` returns it."""

    total: int
    used: int
    free: int


@pytest.mark.parametrize(
    ("free", "images", "expected"),
    [
        (5 * GIB, False, "good"),
        (500 * MIB, False, "doubtful"),
        (50 * MIB, False, "bad"),
        (20 * GIB, True, "good"),
        (5 * GIB, True, "doubtful"),
        (500 * MIB, True, "bad"),
    ],
)
def test_there_should_be_room_on_the_disk(
    free: int, images: bool, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free, 0, free))
    assert state(judge_disk("disk", tmp_path / "not" / "there", images=images)) == expected


def test_logs_need_a_folder_that_can_be_written(tmp_path: Path) -> None:
    assert state(judge_disk("disk", Path("/proc/self/logs"))) == "bad"
    (tmp_path / "file").touch()
    assert state(judge_disk("disk", tmp_path / "file" / "logs")) == "bad"


@pytest.mark.parametrize(
    ("vendor", "kind", "count"),
    [
        ("0x10de", "0x030000", 1),
        ("0x10de", "0x030200", 1),
        ("0x10de", "0x040300", 0),
        ("0x8086", "0x030000", 0),
    ],
)
def test_cards_on_the_bus_are_counted(vendor: str, kind: str, count: int, tmp_path: Path) -> None:
    write(tmp_path / "bus/pci/devices/0000:01:00.0/vendor", vendor + "\n")
    write(tmp_path / "bus/pci/devices/0000:01:00.0/class", kind + "\n")
    assert count_nvidia_cards(tmp_path) == count


def test_a_machine_that_shows_nothing_has_no_cards(tmp_path: Path) -> None:
    assert count_nvidia_cards(tmp_path) == 0
