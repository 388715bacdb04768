"""CPU and RAM of real process trees."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_machine import require_root
from morocco.hardware import host
from morocco.hardware.cgroup import Cgroup
from morocco.hardware.host import (
    Births,
    CpuTimes,
    NewProcesses,
    ProcessTree,
    count_oom_kills,
    cpu_between,
    created_at,
    find_descendants,
    has_loaded_program,
    is_first_of_namespace,
    read_host_info,
)

MIB = 2**20

PUPPET = """
import os, subprocess, sys, threading, time
def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
def start():
    puppet = [sys.executable, "-ISc", os.environ["PUPPET"]]
    return subprocess.Popen(puppet, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def tell(child, line):
    print(line, file=child.stdin, flush=True)
    return child.stdout.readline().strip()
def used():
    return sum(os.times()[:4])
for line in sys.stdin:
    done = None
    exec(line)
    print(done, flush=True)
"""


class Puppet:
    """A real process that does what a test tells it, a line of Python at a time."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-ISc", PUPPET],
            env={**os.environ, "PUPPET": PUPPET},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self.process.pid

    def do(self, line: str) -> str:
        """Return what the line leaves in `done`, once it is through."""
        assert self.process.stdin
        assert self.process.stdout
        print(line, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()

    def ask(self, expression: str) -> Any:
        return eval(self.do(f"done = {expression}"))

    def used(self) -> float:
        """Return its CPU time and that of the children it waited for."""
        return float(self.ask("used()"))


@pytest.fixture
def puppet() -> Iterator[Puppet]:
    puppet = Puppet()
    puppet.do("pass")
    everyone = psutil.Process(puppet.pid)
    yield puppet
    family = [everyone, *everyone.children(recursive=True)] if everyone.is_running() else []
    for process in family:
        process.kill()
    puppet.process.communicate()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def cpu_time(tree: ProcessTree) -> float:
    used = tree.read().cpu_time
    assert used is not None
    return used


def rss(*pids: int) -> int:
    return sum(int(psutil.Process(pid).memory_info().rss) for pid in pids)


def pss(*pids: int) -> int:
    return sum(int(psutil.Process(pid).memory_full_info().pss) for pid in pids)


def test_ram_is_summed_over_the_tree(puppet: Puppet) -> None:
    child = puppet.ask("(child := start()).pid")
    puppet.do("tell(child, 'held = b\"x\" * (100 * 2**20)')")
    reading = ProcessTree(puppet.pid).read()
    assert set(reading.pids) == {puppet.pid, child}
    assert reading.ram == pytest.approx(rss(puppet.pid, child), abs=MIB)
    assert rss(child) > 100 * MIB


def test_cpu_time_is_summed_over_the_tree(puppet: Puppet) -> None:
    puppet.do("child = start(); tell(child, 'pass')")
    tree = ProcessTree(puppet.pid)
    before = cpu_time(tree)
    puppet.do("spin(0.2); tell(child, 'spin(0.3)')")
    assert cpu_time(tree) - before == pytest.approx(0.5, abs=0.1)


def test_an_idle_tree_uses_no_cpu_time(puppet: Puppet) -> None:
    tree = ProcessTree(puppet.pid)
    before = cpu_time(tree)
    assert cpu_time(tree) - before < 0.05


def test_a_child_that_was_seen_and_then_waited_for_counts_once(puppet: Puppet) -> None:
    puppet.do("child = start(); tell(child, 'pass')")
    tree = ProcessTree(puppet.pid)
    before = cpu_time(tree)
    puppet.do("tell(child, 'spin(0.3)')")
    assert cpu_time(tree) - before == pytest.approx(0.3, abs=0.1)
    puppet.do("tell(child, 'spin(0.2)'); child.communicate()")
    assert cpu_time(tree) - before == pytest.approx(0.5, abs=0.1)


def test_a_child_that_came_and_went_unseen_counts(puppet: Puppet) -> None:
    tree = ProcessTree(puppet.pid)
    before, used_before = cpu_time(tree), puppet.used()
    puppet.do("child = start(); tell(child, 'spin(0.3)'); child.communicate()")
    used = puppet.used() - used_before
    assert used >= 0.25
    assert cpu_time(tree) - before == pytest.approx(used, abs=0.1)


def test_a_child_that_ended_and_is_not_waited_for_yet_counts_once(puppet: Puppet) -> None:
    child = psutil.Process(puppet.ask("(child := start()).pid"))
    puppet.do("tell(child, 'pass')")
    tree = ProcessTree(puppet.pid)
    before = cpu_time(tree)
    puppet.do("tell(child, 'spin(0.3)'); child.kill()")
    wait_until(lambda: child.status() == psutil.STATUS_ZOMBIE)
    assert cpu_time(tree) - before == pytest.approx(0.3, abs=0.1)
    puppet.do("child.communicate()")
    assert cpu_time(tree) - before == pytest.approx(0.3, abs=0.1)


def test_an_orphan_stays_a_member_once_it_was_seen(puppet: Puppet) -> None:
    puppet.do("child = start()")
    orphan = int(puppet.ask("tell(child, 'grandchild = start(); done = grandchild.pid')"))
    tree = ProcessTree(puppet.pid)
    try:
        assert orphan in tree.read().pids
        puppet.do("child.kill(); child.wait()")
        wait_until(lambda: psutil.Process(orphan).ppid() != puppet.pid)
        assert set(tree.read().pids) == {puppet.pid, orphan}
        wait_until(lambda: abs((tree.read().ram or 0) - pss(puppet.pid, orphan)) < MIB)
    finally:
        os.kill(orphan, 9)


@pytest.mark.parametrize("waited_for", [True, False])
def test_after_the_end_there_is_no_reading(puppet: Puppet, waited_for: bool) -> None:
    tree = ProcessTree(puppet.pid)
    assert tree.read().pids == (puppet.pid,)
    puppet.process.kill()
    os.waitid(os.P_PID, puppet.pid, os.WEXITED | os.WNOWAIT)
    if waited_for:
        puppet.process.wait()
    reading = tree.read()
    assert reading.pids == ()
    assert reading.ram is None
    assert reading.cpu_time is None


def test_children_outlive_a_main_process_that_ended(puppet: Puppet) -> None:
    child = psutil.Process(puppet.ask("start().pid"))
    tree = ProcessTree(puppet.pid)
    tree.read()
    try:
        child.suspend()  # its input ends with its parent
        puppet.process.kill()
        puppet.process.wait()
        assert tree.read().pids == (child.pid,)
    finally:
        child.kill()


def test_a_process_that_never_was_gives_no_reading() -> None:
    assert ProcessTree(2**22 + 1).read().pids == ()


def test_a_child_is_seen_however_long_there_was_none(puppet: Puppet) -> None:
    tree = ProcessTree(puppet.pid)
    for _ in range(4):
        assert tree.read().pids == (puppet.pid,)
    child = puppet.ask("(child := start()).pid")
    assert set(tree.read().pids) == {puppet.pid, child}
    puppet.do("child.kill(); child.wait()")
    tree.read()
    assert tree.read().pids == (puppet.pid,)


def test_processes_are_looked_for_twice_after_each_birth(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    last_pid = tmp_path / "ns_last_pid"
    monkeypatch.setattr(host, "_LAST_PID", str(last_pid))
    births, asked = Births(), []
    for told in ("", "", "", "7\n", "7\n", "7\n", "7\n", "8\n", "8\n", "8\n"):
        last_pid.write_text(told)
        asked.append(births.may_have_been())
    assert asked == [True] * 3 + [True, True, False, False] + [True, True, False]


def test_a_new_process_is_found_twice() -> None:
    new = NewProcesses()
    with subprocess.Popen(["sleep", "60"]) as process:
        assert process.pid in new.find()
        assert process.pid in new.find()
        assert process.pid not in new.find()
        process.kill()


def test_a_fork_has_loaded_no_program() -> None:
    fork = os.fork()
    if fork == 0:
        time.sleep(60)
        os._exit(0)
    assert has_loaded_program(fork) is False
    os.kill(fork, 9)
    os.waitpid(fork, 0)
    assert has_loaded_program(fork) is None
    assert has_loaded_program(os.getpid()) is True


def test_the_first_process_of_a_namespace_is_told_apart() -> None:
    apart = [*require_root(), "unshare", "--pid", "--fork", "--kill-child", "sleep", "60"]
    with subprocess.Popen(apart) as process:
        try:
            wait_until(lambda: any(map(is_first_of_namespace, find_descendants([process.pid]))))
        finally:
            process.kill()
    assert not is_first_of_namespace(os.getpid())
    assert not is_first_of_namespace(process.pid)


def test_a_control_group_tells_members_and_cpu_time_itself(puppet: Puppet, tmp_path: Path) -> None:
    child = puppet.ask("start().pid")
    (tmp_path / "cgroup.procs").write_text(f"{child}\n")
    (tmp_path / "cpuacct.usage").write_text("2500000000\n")
    reading = ProcessTree(puppet.pid, Cgroup(tmp_path, 1)).read()
    assert reading.pids == (child,)
    assert reading.cpu_time == 2.5
    assert reading.ram == pytest.approx(rss(child), abs=MIB)


@pytest.mark.parametrize("lists_of_children", [True, False])
def test_descendants_are_those_psutil_finds(
    puppet: Puppet, monkeypatch: pytest.MonkeyPatch, lists_of_children: bool
) -> None:
    puppet.do("children = [start(), start()]; tell(children[0], 'grandchild = start()')")
    puppet.do("threading.Thread(target=lambda: start().wait(), daemon=True).start()")
    wait_until(lambda: len(psutil.Process(puppet.pid).children(recursive=True)) == 4)
    if not lists_of_children:  # as on a kernel that was built without them
        monkeypatch.setattr(Path, "exists", lambda _: False)
    found = psutil.Process(puppet.pid).children(recursive=True)
    assert find_descendants([puppet.pid]) == {puppet.pid, *(child.pid for child in found)}


ticks = st.integers(0, 10**6)
times = st.builds(CpuTimes, ticks, ticks)
readings = st.dictionaries(st.tuples(st.integers(1, 5), st.integers(0, 2)), times)
lives = st.tuples(times, ticks, st.booleans())


@given(readings, readings)
def test_cpu_time_is_never_negative(
    before: dict[tuple[int, float], CpuTimes], after: dict[tuple[int, float], CpuTimes]
) -> None:
    assert cpu_between(before, after) >= 0


@given(times, ticks, st.lists(lives), ticks)
def test_cpu_time_is_neither_lost_nor_doubled_when_children_end(
    main: CpuTimes, used_by_main: int, children: list[tuple[CpuTimes, int, bool]], unseen: int
) -> None:
    before, after = {(1, 0.0): main}, {}
    inherited = main.children + unseen
    for number, (seen, used, ends) in enumerate(children, start=2):
        before[number, 0.0] = seen
        if ends:
            inherited += seen.own + seen.children + used
        else:
            after[number, 0.0] = CpuTimes(seen.own + used, seen.children)
    after[1, 0.0] = CpuTimes(main.own + used_by_main, inherited)
    used_by_children = sum(used for _, used, _ in children)
    assert cpu_between(before, after) == used_by_main + used_by_children + unseen


@given(times, times)
def test_a_process_id_used_anew_is_another_process(old: CpuTimes, new: CpuTimes) -> None:
    assert cpu_between({(2, 1.0): old}, {(2, 7.0): new}) >= new.own


def test_the_creation_of_a_process_is_told_while_it_lives(puppet: Puppet) -> None:
    created = created_at(puppet.pid)
    assert created is not None
    assert abs(time.time() - created) < 60
    puppet.process.kill()
    puppet.process.wait()
    assert created_at(puppet.pid) is None


def test_the_kernel_tells_how_many_processes_it_killed_for_memory() -> None:
    kills = count_oom_kills()
    assert kills is not None
    assert kills >= 0


def test_the_host_is_described_as_its_own_tools_do() -> None:
    told = read_host_info()
    assert told.cores == os.cpu_count()
    assert told.kernel == os.uname().release
    assert told.cpu
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert told.ram == total
