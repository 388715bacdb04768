"""`morocco bench` on a machine with GPUs, played by a stand-in for the driver's library.

`morocco bench` would ask the engine for GPUs that are not there, so most of this is shown with bare
processes; how a container is refused, and how one is read that got none, is shown as well. How one
is read that got some is shown in `test_gpu_engine.py`.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Metronome, metronome_process
from docker import DockerClient

import nvml_standin
from gpu_machine import Machine
from nvml_standin import DRIVER_NOT_LOADED, Gpu, Process
from runs import Bench, read_log, read_record

MIB = 2**20
GIB = 2**30
TELL = "import json, os, sys; sys.stdin.read(); print(json.dumps(os.environ.get({!r})))"
"""A target that tells one variable of its environment."""


@pytest.fixture
def token() -> str:
    """A word in the command line of a target, by which the driver knows its processes."""
    return f"token-{uuid.uuid4().hex}"


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with the run."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


# Readings


def test_a_target_on_one_gpu_has_its_memory_and_use(
    machine: Machine, token: str, bench: Bench, log: Path
) -> None:
    mine = [Process(f"match:{token}", 3 * GIB)]
    machine.plug(Gpu("GPU-0", 3 * GIB, 40, mine), Gpu("GPU-1", 0, 0))
    target = metronome_process(f"--say {token} --hang 1")
    assert bench(target, "-o", log, env=machine.environment).succeeds().warnings == []
    between = read_log(log)[1:-1]
    assert {(line["gpu_ram"], line["gpu_usage"]) for line in between} == {(3 * GIB, 0.4)}
    assert read_log(log)[-1]["gpu_ram"] is None
    record = read_record(log)
    assert (record["peaks"]["gpu_ram"], record["peaks"]["gpu_ram_source"]) == (3 * GIB, "process")
    assert [gpu["uuid"] for gpu in record["gpus"]] == ["GPU-0", "GPU-1"]


def test_the_memory_of_two_gpus_is_summed_and_their_use_averaged(
    machine: Machine, token: str, bench: Bench
) -> None:
    machine.plug(
        Gpu("GPU-0", 9 * GIB, 40, [Process(f"match:{token}", 3 * GIB)]),
        Gpu("GPU-1", 9 * GIB, 60, [Process(f"match:{token}", 2 * GIB)]),
        Gpu("GPU-2", 9 * GIB, 90),
    )
    target = metronome_process(f"--say {token} --hang 0.8")
    between = bench(target, env=machine.environment).succeeds().lines[1:-1]
    assert {(line["gpu_ram"], line["gpu_usage"]) for line in between} == {(5 * GIB, 0.5)}


def test_the_memory_of_all_processes_of_the_target_is_summed(
    machine: Machine, token: str, bench: Bench
) -> None:
    machine.plug(Gpu("GPU-0", 9 * GIB, 10, [Process(f"match:{token}", 2 * GIB)]))
    script = f"cat; sleep 1; : {token}"  # in the command line of both shells
    target = f"exec:sh -c {shlex.quote(f'sh -c {shlex.quote(script)}; exit 0')}"
    between = bench(target, env=machine.environment).succeeds().lines[1:-1]
    assert max(line["gpu_ram"] or 0 for line in between) == 4 * GIB


@pytest.mark.timing
def test_gpu_columns_are_null_until_the_target_is_on_a_gpu(
    machine: Machine, token: str, bench: Bench
) -> None:
    machine.plug(Gpu("GPU-0", 0, 0))
    target = metronome_process(f"--say {token} --hang 1.5")
    with bench.start(target, "--rate", 10, env=machine.environment) as run:
        before = run.read_line()
        machine.plug(Gpu("GPU-0", 0, 0, [Process(f"match:{token}", 2 * GIB)]))
        lines = run.finish().succeeds().lines
    assert (before["gpu_ram"], before["gpu_usage"]) == (None, None)
    assert (lines[-2]["gpu_ram"], lines[-2]["gpu_usage"]) == (2 * GIB, 0)


def test_a_driver_that_keeps_memory_to_itself_is_told_of(
    machine: Machine, token: str, bench: Bench, log: Path
) -> None:
    machine.plug(Gpu("GPU-0", 1 * GIB, 0))
    target = metronome_process(f"--say {token} --hang 1.5")
    with bench.start(target, "-o", log, "--rate", 10, env=machine.environment) as run:
        run.wait_until_sampled(log)
        machine.plug(Gpu("GPU-0", 4 * GIB, 0, [Process(f"match:{token}", None)]))
        (warning,) = run.finish().succeeds().warnings
    assert "GPU memory by process" in warning
    peaks = read_record(log)["peaks"]
    assert (peaks["gpu_ram"], peaks["gpu_ram_source"]) == (3 * GIB, "device")


# Doubts


def test_others_on_a_gpu_are_named(
    machine: Machine, token: str, stranger: subprocess.Popen[bytes], bench: Bench, log: Path
) -> None:
    others = [Process(stranger.pid, GIB)]
    machine.plug(Gpu("GPU-0", 4 * GIB, 5, [*others, Process(f"match:{token}", 3 * GIB)]))
    target = metronome_process(f"--say {token} --hang 0.5")
    (warning,) = bench(target, "-o", log, env=machine.environment).succeeds().warnings
    assert f"GPU 0 is in use by others: sleep (pid {stranger.pid})" in warning
    record = read_record(log)
    assert record["gpus_before"]["used"] == [4 * GIB]
    assert [found["pid"] for found in record["gpus_before"]["processes"]] == [stranger.pid]
    assert record["peaks"]["gpu_ram"] == 3 * GIB
    assert record["warnings"] == [warning]
    assert record["warning_codes"] == ["gpu-in-use"]


def test_a_stranger_that_comes_to_a_gpu_during_the_run_is_told_once(
    machine: Machine, token: str, stranger: subprocess.Popen[bytes], bench: Bench, log: Path
) -> None:
    mine = Process(f"match:{token}", 3 * GIB)
    machine.plug(Gpu("GPU-0", 4 * GIB, 5, [mine]))
    target = metronome_process(f"--say {token} --hang 1.5")
    with bench.start(target, "-o", log, "--rate", 10, env=machine.environment) as run:
        run.wait_until_sampled(log, lines=3)
        machine.plug(Gpu("GPU-0", 4 * GIB, 5, [mine, Process(stranger.pid, GIB)]))
        (warning,) = run.finish().succeeds().warnings
    assert "GPU 0" in warning
    assert f"sleep (pid {stranger.pid})" in warning
    record = read_record(log)
    assert record["warning_codes"] == ["gpu-in-use"]
    assert record["gpus_before"]["processes"] == []
    assert record["gpu_users"] == [{"gpu": 0, "pid": stranger.pid, "name": "sleep", "memory": GIB}]


def test_a_stranger_that_was_there_before_is_not_told_again(
    machine: Machine, token: str, stranger: subprocess.Popen[bytes], bench: Bench, log: Path
) -> None:
    others = [Process(stranger.pid, GIB)]
    machine.plug(Gpu("GPU-0", 4 * GIB, 5, [*others, Process(f"match:{token}", 3 * GIB)]))
    target = metronome_process(f"--say {token} --hang 1")
    (warning,) = bench(target, "-o", log, "--rate", 10, env=machine.environment).warnings
    assert "is in use by others" in warning
    assert [user["pid"] for user in read_record(log)["gpu_users"]] == [stranger.pid]


@pytest.mark.parametrize("rate", [3, 20])
def test_children_that_come_and_go_on_a_gpu_are_no_strangers(
    rate: int, machine: Machine, token: str, bench: Bench, log: Path
) -> None:
    late = {"nvmlDeviceGetComputeRunningProcesses*": 20_000}  # lists children not read yet
    machine.plug(Gpu("GPU-0", GIB, 5, [Process(f"match:{token}", MIB)]), delays=late)
    churn = f"for i in $(seq 40); do sh -c 'sleep 0.02; : {token}' & sleep 0.03; done; wait"
    target = f"exec:sh -c {shlex.quote(f'cat; {churn}')}"
    bench(target, "-o", log, "--rate", rate, env=machine.environment).succeeds()
    record = read_record(log)
    assert record["gpu_users"] == []
    assert "gpu-in-use" not in record["warning_codes"]


def test_a_run_at_steady_clocks_has_them_in_its_record(
    machine: Machine, token: str, bench: Bench, log: Path
) -> None:
    machine.plug(Gpu("GPU-0", GIB, 90, [Process(f"match:{token}", GIB)], sm=1395, reasons=0x4))
    target = metronome_process(f"--say {token} --hang 2.5")
    assert bench(target, "-o", log, env=machine.environment).succeeds().warnings == []
    (clocks,) = read_record(log)["gpu_clocks"]
    assert (clocks["gpu"], clocks["sm_clock"], clocks["sm_clock_max"]) == (0, 1395, 1410)
    assert (clocks["memory_clock"], clocks["temperature"], clocks["power"]) == (1593, 60, 250.0)
    assert 1.5 < clocks["busy"] < 3.5
    assert clocks["throttling"]["power_cap"] == clocks["busy"]
    assert clocks["throttling"]["slowdown"] == 0


def test_a_gpu_that_gets_too_hot_during_the_run_is_told(
    machine: Machine, token: str, bench: Bench, log: Path
) -> None:
    cool = Gpu("GPU-0", GIB, 90, [Process(f"match:{token}", GIB)])
    machine.plug(cool)
    target = metronome_process(f"--say {token} --hang 4.5")
    with bench.start(target, "-o", log, env=machine.environment) as run:
        run.wait_until_sampled(log, lines=5)
        machine.plug(replace(cool, sm=705, celsius=93, reasons=0x28, slowed_by_heat=2 * 10**9))
        (warning,) = run.finish().succeeds().warnings
    assert "GPU 0 was slowed down for" in warning
    assert "by heat, up to 93 °C, SM clock 705 of 1410 MHz" in warning
    record = read_record(log)
    assert record["warning_codes"] == ["gpu-slowed"]
    (clocks,) = record["gpu_clocks"]
    assert (clocks["sm_clock"], clocks["sm_clock_lowest"], clocks["heat_time"]) == (705, 705, 2.0)
    assert 2 < clocks["throttling"]["driver_heat"] < clocks["busy"] < 5


def test_a_gpu_lost_on_the_way_does_not_end_the_run(
    machine: Machine, token: str, bench: Bench, log: Path
) -> None:
    mine = [Process(f"match:{token}", 2 * GIB)]
    machine.plug(Gpu("GPU-0", 2 * GIB, 10, mine))
    target = metronome_process(f"--say {token} --hang 1.5")
    with bench.start(target, "-o", log, "--rate", 10, env=machine.environment) as run:
        run.wait_until_sampled(log, lines=3)
        machine.plug(Gpu("GPU-0", 2 * GIB, 10, mine, lost=True))
        (warning,) = run.finish().succeeds().warnings
    assert "GPU-0" in warning
    assert "gpu_ram may be too low" in warning
    assert read_log(log)[-2]["ram"] > 0
    assert read_log(log)[-2]["gpu_ram"] is None
    assert read_record(log)["peaks"]["gpu_ram"] == 2 * GIB


def test_a_target_that_leaves_its_gpu_alone_is_doubtful(machine: Machine, bench: Bench) -> None:
    machine.plug(Gpu("GPU-0", 0, 0), Gpu("GPU-1", 0, 0))
    (warning,) = bench(metronome_process(""), env=machine.environment).succeeds().warnings
    assert "2 GPUs but was never seen on one" in warning
    assert "--gpus none" in warning


# The choice


def test_no_gpus_means_none(machine: Machine, token: str, bench: Bench, log: Path) -> None:
    machine.plug(Gpu("GPU-0", GIB, 40, [Process(f"match:{token}", GIB)]))
    target = metronome_process(f"--say {token} --hang 0.5")
    options = ("-o", log, "--gpus", "none")
    assert bench(target, *options, env=machine.environment).succeeds().warnings == []
    assert {line["gpu_ram"] for line in read_log(log)} == {None}
    assert read_record(log)["gpus"] == []


@pytest.mark.parametrize(
    ("choice", "visible"),
    [("1", "GPU-b"), ("GPU-a", "GPU-a"), ("1,0", "GPU-b,GPU-a"), ("none", ""), ("auto", None)],
)
def test_a_process_sees_the_gpus_it_was_given(
    choice: str, visible: str | None, machine: Machine, bench: Bench, tmp_path: Path
) -> None:
    machine.plug(Gpu("GPU-a"), Gpu("GPU-b"))
    target = f"exec:python3 -c {shlex.quote(TELL.format('CUDA_VISIBLE_DEVICES'))}"
    kept = tmp_path / "predictions.jsonl"
    options = ("--gpus", choice, "--raw-output", "--predictions", kept)
    bench(target, *options, env=machine.environment).succeeds()
    assert json.loads(kept.read_text()) == visible


@pytest.mark.parametrize("choice", ["all", "0"])
def test_gpus_that_are_asked_for_must_be_there(
    choice: str, machine: Machine, bench: Bench, log: Path, tmp_path: Path
) -> None:
    machine.plug(errors={"nvmlInit*": DRIVER_NOT_LOADED})
    started = tmp_path / "started"
    options = ("-o", log, "--gpus", choice)
    error = bench(f"exec:touch {started}", *options, env=machine.environment).fails(5)
    assert "NVML" in error
    assert not started.exists()
    assert not log.parent.exists()


@pytest.mark.parametrize("choice", ["7", "GPU-nosuch", "fast", "0;1", ""])
def test_a_gpu_that_is_not_there_is_told(
    choice: str, machine: Machine, bench: Bench, log: Path
) -> None:
    machine.plug(Gpu("GPU-0"))
    options = ("-o", log, "--gpus", choice)
    bench(metronome_process(""), *options, env=machine.environment).fails(5)
    assert not log.parent.exists()


def test_an_engine_without_the_toolkit_is_told_what_to_install(
    machine: Machine, metronome_image: Metronome, engine: DockerClient, bench: Bench, log: Path
) -> None:
    if "nvidia" in engine.info()["Runtimes"]:
        pytest.skip("NOT TESTED: this engine has the NVIDIA Container Toolkit")
    machine.plug(Gpu("GPU-0"))
    options = ("-o", log, "--gpus", "0")
    error = bench(metronome_image(""), *options, env=machine.environment).fails(4)
    assert "install the NVIDIA Container Toolkit" in error
    assert "--gpus none" in error
    assert not log.exists()


@pytest.mark.docker
def test_the_processes_of_a_container_are_found_on_their_gpus(
    machine: Machine, token: str, metronome_image: Metronome, data_dir: Path, log: Path
) -> None:
    mine = [Process(f"match:{token}", 2 * GIB)]
    machine.plug(Gpu("GPU-0", 2 * GIB, 30, mine), Gpu("GPU-1", 2 * GIB, 50, mine))
    script = Path(nvml_standin.__file__).with_name("nvml") / "bench_container.py"
    data = data_dir / "PARus" / "val.jsonl"
    image = metronome_image("--hang 1")
    command = [sys.executable, *map(str, (script, image, data, log)), "--say", token]
    subprocess.run(command, env=machine.environment, check=True)
    assert read_record(log)["peaks"]["gpu_ram"] == 4 * GIB
    used = [line["gpu_usage"] for line in read_log(log)]
    assert {use for use in used if use is not None} == {0.4}
