"""`morocco suite` on a machine with GPUs, played by a stand-in for the driver's library."""

from __future__ import annotations

import os
import shlex
import signal

import pytest

from gpu_machine import Machine
from nvml_standin import DRIVER_NOT_LOADED, Gpu
from runs import TIMEOUT, read_record, until
from suite_runs import PARUS, TWO, Suites, error_of, is_alive, kill, parse_cores

TWO_GPUS = (Gpu("GPU-a"), Gpu("GPU-b"))


@pytest.fixture
def two_cores() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("NOT TESTED: two lanes need two CPU cores, and this machine has one.")


def meet(suite: Suites) -> str:
    """Return a target whose first runs, one on each GPU, wait for each other."""
    here = shlex.quote(str(suite.folder))
    return suite.target(
        f"touch {here}/at-$CUDA_VISIBLE_DEVICES; "
        f"until [ -e {here}/at-GPU-a ] && [ -e {here}/at-GPU-b ]; do sleep 0.02; done"
    )


@pytest.mark.usefixtures("two_cores")
def test_lanes_work_at_once_each_on_its_gpu_and_its_cores(suite: Suites, machine: Machine) -> None:
    machine.plug(*TWO_GPUS)
    options = (*TWO, "--parallel", "--timeout", TIMEOUT, "--retries", 0)
    suite(*options, target=meet(suite), env=machine.environment).succeeds()
    assert len(suite.done) == 8
    cores = {gpu: {e.cores for e in suite.diary if e.gpus == gpu} for gpu in ("GPU-a", "GPU-b")}
    (first,), (second,) = cores["GPU-a"], cores["GPU-b"]
    assert not first & second
    assert len(first) == len(second) == len(os.sched_getaffinity(0)) // 2
    assert {entry.gpus for entry in suite.diary} == {"GPU-a", "GPU-b"}


@pytest.mark.usefixtures("two_cores")
def test_lanes_may_work_on_one_task_at_once(suite: Suites, machine: Machine) -> None:
    machine.plug(*TWO_GPUS)
    options = ("--parallel", "--timeout", TIMEOUT, "--retries", 0)
    suite(*options, target=meet(suite), env=machine.environment).succeeds()
    assert sorted(suite.done) == sorted(PARUS)
    assert suite.others == []
    assert {entry.gpus for entry in suite.diary[:2]} == {"GPU-a", "GPU-b"}  # their warm-ups
    assert len(suite.diary) == 2 + 4


@pytest.mark.usefixtures("two_cores")
def test_the_share_of_a_lane_is_recorded(suite: Suites, machine: Machine) -> None:
    machine.plug(*TWO_GPUS)
    options = (*TWO, "--parallel", "--timeout", TIMEOUT)
    suite(*options, target=meet(suite), env=machine.environment).succeeds()
    cores = {entry.gpus: entry.cores for entry in suite.diary}
    for name in suite.done:
        record = read_record(suite.log(name))
        (gpu,) = record["gpus"]
        assert record["arguments"]["gpus"] == gpu["uuid"]
        assert parse_cores(record["target"]["limits"]["cpuset"]) == cores[gpu["uuid"]]


@pytest.mark.usefixtures("two_cores")
def test_ctrl_c_ends_all_lanes(suite: Suites, machine: Machine) -> None:
    machine.plug(*TWO_GPUS)
    target = suite.target("sleep 600")
    with suite.start(*TWO, "--parallel", target=target, env=machine.environment) as run:
        until(lambda: len(suite.diary) == 2)
        run.send(signal.SIGINT)
        finished = run.finish()
    error_of(finished, 130)
    assert "0 of 8 runs are done" in finished.stderr
    assert "failed" not in finished.stderr


@pytest.mark.usefixtures("two_cores")
def test_what_lanes_left_behind_when_they_were_killed_is_ended(
    suite: Suites, machine: Machine
) -> None:
    machine.plug(*TWO_GPUS)
    go = suite.folder / "go"
    target = suite.target(f"[ -e {shlex.quote(str(go))} ] || sleep 600")
    options = (*TWO, "--parallel")
    with suite.start(*options, target=target, env=machine.environment) as run:
        until(lambda: len(suite.diary) == 2)
        kill(run)
    left_behind = [entry.pid for entry in suite.diary]
    assert all(map(is_alive, left_behind))
    go.touch()
    suite(*options, target=target, env=machine.environment).succeeds()
    assert not any(map(is_alive, left_behind))
    assert len(suite.done) == 8


def test_by_default_runs_are_on_one_gpu_and_all_cores(suite: Suites, machine: Machine) -> None:
    machine.plug(*TWO_GPUS)
    suite(*TWO, env=machine.environment).succeeds()
    assert {entry.gpus for entry in suite.diary} == {"GPU-a"}
    assert {entry.cores for entry in suite.diary} == {frozenset(os.sched_getaffinity(0))}
    assert read_record(suite.log("parus/1_1_01"))["target"]["limits"] == {}


@pytest.mark.parametrize(("choice", "seen"), [("all", "any"), ("GPU-b", "GPU-b"), ("none",) * 2])
def test_the_gpus_of_a_suite_may_be_chosen(
    choice: str, seen: str, suite: Suites, machine: Machine
) -> None:
    machine.plug(*TWO_GPUS)
    suite("--gpus", choice, "--repeats", 1, env=machine.environment).succeeds()
    assert {entry.gpus for entry in suite.diary} == {seen}


def test_parallel_needs_gpus(suite: Suites, machine: Machine) -> None:
    machine.plug(errors={"nvmlInit*": DRIVER_NOT_LOADED})
    error = suite("--parallel", env=machine.environment).fails(5)
    assert "does one run on each GPU at a time, and NVML sees no GPU here" in error
    assert not suite.logs.exists()


def test_parallel_needs_a_core_for_each_gpu(suite: Suites, machine: Machine) -> None:
    machine.plug(*(Gpu(f"GPU-{n}") for n in range(len(os.sched_getaffinity(0)) + 1)))
    assert "cannot share" in suite("--parallel", env=machine.environment).fails(3)


def test_parallel_shares_out_the_memory_itself(suite: Suites, machine: Machine) -> None:
    machine.plug(Gpu("GPU-a"))
    options = ("--parallel", "--memory", "8g")
    error = suite(*options, target="rubert-{task}", env=machine.environment).fails(3)
    assert "leave out --memory and --cpus" in error
