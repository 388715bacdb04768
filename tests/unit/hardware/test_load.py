"""What else is at work on the machine: made-up counters of the kernel, and this machine's own."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from morocco.hardware.info import Load, Pressure, Throttling
from morocco.hardware.load import CoreSet, LoadMeter, OtherRuns, parse_runs, parse_stat

TARGET, SHIM, DOCKERD = 4711, 4700, 800
STAT = b"""cpu  200 20 100 9999 50 7 3 40 60 5
cpu0 150 20 60 5000 25 7 3 40 60 5
cpu1 50 0 40 4999 25 0 0 0 0 0
intr 21248345 0 0
ctxt 53682815
"""
"""As of a machine with a guest on the first of its two cores, in hundredths of a second."""
UNIX = b"""Num       RefCount Protocol Flags    Type St Inode Path
00000000c0217726: 00000002 00000000 00010000 0001 01 981119 /var/run/docker.sock
000000001979feb0: 00000002 00000000 00000000 0002 01 1024557 @morocco-run/-/12/f0/exec:a b
000000001979feb1: 00000002 00000000 00000000 0002 01 1024558 @morocco-run/s1/13/f1/rubert-parus
000000001979feb2: 00000002 00000000 00000000 0002 01 1024559 @morocco-run/s1/14/f2/rubert-rcb
000000001979feb3: 00000002 00000000 00000000 0002 01 1024560 @morocco-run/junk
000000001979feb4: 00000003 00000000 00000000 0001 03 1024561
"""


class Machine:
    """A /proc that a test makes up; times are in seconds of CPU."""

    def __init__(self, folder: Path, cores: int = 64) -> None:
        self.proc = folder
        self._cores = cores
        (folder / "pressure").mkdir()
        self.use(0.0)
        self.run(DOCKERD, "dockerd", 1, 500.0)
        self.run(SHIM, "containerd-shim", 1, 3.0)
        self.run(TARGET, "python3", SHIM, 0.0)
        self.count()

    def use(self, busy: float, stolen: float = 0.0) -> None:
        """Set the CPU time that all processes have used since the start of the test."""
        cpu = f"cpu  {90_000 + busy * 100:.0f} 0 0 0 0 0 0 {stolen * 100:.0f} 0 0\n"
        rest = "".join(f"cpu{core} 0 0 0 0 0 0 0 0 0 0\n" for core in range(self._cores))
        (self.proc / "stat").write_text(cpu + rest)

    def run(self, pid: int, name: str, parent: int, cpu_time: float) -> None:
        """Set what /proc/<pid> says."""
        (self.proc / str(pid)).mkdir(exist_ok=True)
        (self.proc / str(pid) / "comm").write_text(name + "\n")
        ticks = f"{cpu_time * 100:.0f} 0 0 0"
        line = f"{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 20 0 1 0 5\n"
        (self.proc / str(pid) / "stat").write_text(line)

    def count(self, swapped: int = 0, waited: int = 0) -> None:
        """Set the pages that were swapped, and the microseconds that somebody waited for CPU."""
        (self.proc / "vmstat").write_text(f"pgfault 9\npswpin {swapped}\npswpout 5\n")
        pressure = f"some avg10=1.70 avg60=0.00 total={7000 + waited}\nfull avg10=0.00 total=0\n"
        (self.proc / "pressure" / "cpu").write_text(pressure)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def start(machine: Machine) -> LoadMeter:
    """Return a meter that has taken its first reading, at 0.33 s."""
    meter = LoadMeter(machine.proc)
    meter.prepare()
    meter.pid = TARGET
    meter.read(0.0, None)
    meter.read(0.33, 0.0)
    return meter


def test_busy_time_is_that_of_the_cores_in_question() -> None:
    (first, second) = (CoreSet(1, frozenset({name})) for name in (b"cpu0", b"cpu1"))
    assert parse_stat(STAT, CoreSet(2)) == (3.3, 0.4)
    assert parse_stat(STAT, first) == (2.4, 0.4)
    assert parse_stat(STAT, second) == (0.9, 0.0)


def test_a_process_may_use_the_cores_that_the_kernel_lets_it() -> None:
    stat = Path("/proc/stat").read_bytes()
    every = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(every)})
        confined = CoreSet.of(os.getpid(), stat)
    finally:
        os.sched_setaffinity(0, every)
    assert confined.count == 1
    if len(every) == os.cpu_count() and len(every) > 1:
        assert confined.names == {f"cpu{min(every)}".encode()}
        assert CoreSet.of(os.getpid(), stat) == CoreSet(len(every))


def test_what_target_and_engine_use_is_not_foreign(machine: Machine) -> None:
    meter = start(machine)
    machine.use(10 + 0.5 + 0.3 + 4, stolen=1.0)
    machine.run(DOCKERD, "dockerd", 1, 500.5)
    machine.run(SHIM, "containerd-shim", 1, 3.3)
    meter.read(10.33, 10.0)
    load = meter.finish()
    assert load.foreign_cores == pytest.approx(0.4, abs=0.02)
    assert (load.seconds, load.stolen_cores) == (10.0, 0.1)


def test_an_engine_process_that_ends_does_not_give_back_what_it_used(machine: Machine) -> None:
    meter = start(machine)
    (machine.proc / str(SHIM) / "stat").unlink()
    machine.use(2.0)
    meter.read(10.33, 2.0)
    assert meter.finish().foreign_cores == pytest.approx(0.0, abs=0.02)


def test_the_highest_load_is_that_of_three_seconds(machine: Machine) -> None:
    meter = start(machine)
    for reading, busy in enumerate([0.0, 0.0, 9.0, 9.0, 9.0, 9.0], start=1):
        machine.use(busy)
        meter.read(3 * reading + 0.33, 0.0)
    load = meter.finish()
    assert load.foreign_cores == pytest.approx(0.5, abs=0.02)
    assert load.foreign_highest == pytest.approx(3.0, abs=0.02)


def test_foreign_load_is_never_negative(machine: Machine) -> None:
    meter = start(machine)
    meter.read(1.33, 5.0)
    assert meter.finish().foreign_cores == 0.0


def test_the_counters_are_read_at_the_first_beats_and_then_every_three_seconds(
    machine: Machine,
) -> None:
    meter, read_at = start(machine), []
    for beat in range(2, 38):
        machine.use(beat)
        meter.read(beat / 3, 0.0)
        seconds = meter.finish().seconds
        if seconds and seconds not in read_at:
            read_at.append(seconds)
    assert read_at == pytest.approx([0.34, 0.67, 1.34, 2.67, 5.34, 8.34, 11.34], abs=0.01)


def test_a_run_that_ends_before_its_third_beat_knows_no_load(machine: Machine) -> None:
    load = start(machine).finish()
    assert (load.foreign_cores, load.cores, load.stolen_cores) == (None, None, None)


def test_swapping_and_waiting_are_counted_over_the_run(machine: Machine) -> None:
    meter = start(machine)
    machine.count(swapped=10, waited=10_000)
    time.sleep(0.05)
    load = meter.finish()
    assert load.swapped_in == 10 * os.sysconf("SC_PAGE_SIZE")
    assert load.swapped_out == 0
    assert load.pressure is not None
    assert 0.0 < (load.pressure.cpu or 0) < 0.2
    assert (load.pressure.memory, load.pressure.io) == (None, None)


def test_what_this_kernel_does_not_count_is_none(tmp_path: Path) -> None:
    meter = LoadMeter(tmp_path)
    meter.prepare()
    for second in range(5):
        meter.read(second, 0.0)
    assert meter.finish() == Load()


@pytest.mark.parametrize(
    ("lines", "time"),
    [
        ("nr_periods {}\nnr_throttled {}\nthrottled_time 2500000000\nnr_bursts 0\n", 2.5),
        ("usage_usec 1\nnr_periods {}\nnr_throttled {}\nthrottled_usec 2500000\n", 2.5),
    ],
)
def test_the_quota_of_the_target_is_read(machine: Machine, lines: str, time: float) -> None:
    version = 1 if "throttled_time" in lines else 2
    group = machine.proc / "groups" / "box"
    group.mkdir(parents=True)
    kind = "cgroup cgroup rw,cpu" if version == 1 else "cgroup2 cgroup2 rw"
    (machine.proc / "self").mkdir()
    (machine.proc / "self" / "mountinfo").write_text(
        f"31 23 0:28 / {group.parent} rw,relatime shared:9 - {kind}\n"
    )
    hierarchy = "4:cpu:" if version == 1 else "0::"
    (machine.proc / str(TARGET) / "cgroup").write_text(f"{hierarchy}/box\n")
    (group / "cpu.stat").write_text(lines.format(50, 0).replace("25", "00"))
    meter = start(machine)
    (group / "cpu.stat").write_text(lines.format(150, 40))
    meter.read(10.33, 1.0)
    assert meter.finish().throttling == Throttling(100, 40, time)


def test_a_group_without_a_quota_was_not_throttled(machine: Machine) -> None:
    meter = start(machine)
    meter.read(10.33, 1.0)
    assert meter.finish().throttling is None


def test_runs_of_other_suites_and_single_runs_are_strangers() -> None:
    single, parus, rcb = "exec:a b (pid 12)", "rubert-parus (pid 13)", "rubert-rcb (pid 14)"
    assert list(parse_runs(UNIX, b"morocco-run/s1/13/f1/rubert-parus", "s1")) == [single]
    assert list(parse_runs(UNIX, b"morocco-run/-/12/f0/exec:a b", "-")) == [parus, rcb]
    assert list(parse_runs(UNIX, b"morocco-run/-/15/f9/exec:c", "-")) == [single, parus, rcb]


def test_a_run_is_seen_by_the_others_while_it_lasts() -> None:
    suite = f"test-{os.getpid()}"
    with OtherRuns(suite, "one"), OtherRuns(suite, "two") as two, OtherRuns(None, "a\nб" * 99) as b:
        assert [run for run in two.find_new() if run.startswith("a б")]
        seen = [run for run in b.find_new() if run.startswith(("one", "two"))]
        assert sorted(seen) == [f"one (pid {os.getpid()})", f"two (pid {os.getpid()})"]
        assert not set(seen) & set(b.find_new())
        assert set(seen) <= set(b.found)
    with OtherRuns(None, "later") as later:
        assert not [run for run in later.find_new() if f"(pid {os.getpid()})" in run]


def test_the_pressure_of_this_machine_is_a_share() -> None:
    if not Path("/proc/pressure/cpu").exists():
        pytest.skip("NOT TESTED: this kernel counts no pressure.")
    meter = LoadMeter()
    meter.prepare()
    pressure = meter.finish().pressure
    assert isinstance(pressure, Pressure)
