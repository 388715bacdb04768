"""What else is at work on the machine while a run is measured: told in its record, and in time."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Metronome, metronome_process

from gpu_machine import Machine
from morocco.hardware.load import CoreSet, parse_stat
from nvml_standin import Gpu
from runs import TIMEOUT, Bench, beside, until
from suite_runs import Suites

SPIN = [sys.executable, "-ISc", "while True: pass"]
CORES = len(os.sched_getaffinity(0))


def read_whole_record(log: Path) -> Any:
    """Return a record with the warnings of other work on this machine."""
    return json.loads(log.with_suffix(".json").read_text())


@pytest.mark.timing
def test_four_busy_processes_beside_a_run_are_told(
    metronome: Metronome, bench: Bench, log: Path
) -> None:
    with beside(SPIN, 4):
        bench(metronome("--hang 2"), "-o", log).succeeds()
    record = read_whole_record(log)
    assert "foreign-cpu" in record["warning_codes"]
    assert record["load"]["cores"] == os.cpu_count()
    assert 0.7 * min(4, CORES) < record["load"]["foreign_cores"] < min(4, CORES) + 0.1
    assert record["load"]["foreign_highest"] >= record["load"]["foreign_cores"]


def wait_for_quiet() -> None:
    """Wait until this machine has nothing to do for half a second."""
    deadline = time.monotonic() + 20
    while measure_busy_cores(0.5) > 0.1:
        if time.monotonic() > deadline:
            pytest.skip("NOT TESTED: this machine has other work to do.")


def measure_busy_cores(seconds: float) -> float:
    before, _ = parse_stat(Path("/proc/stat").read_bytes(), CoreSet())
    time.sleep(seconds)
    after, _ = parse_stat(Path("/proc/stat").read_bytes(), CoreSet())
    return (after - before) / seconds


def find_quietest(bench: Bench, target: str, log: Path, **how: Any) -> Any:
    """Return the record of the run with the least foreign load: others may be at work here too."""
    records: list[Any] = []
    while len(records) < 5 and not (records and records[-1]["load"]["foreign_cores"] < 0.1):
        wait_for_quiet()
        bench(target, "-o", log, "--force", **how).succeeds()
        records.append(read_whole_record(log))
    return min(records, key=lambda record: record["load"]["foreign_cores"])


@pytest.mark.timing
@pytest.mark.parametrize("arguments", ["--hang 1.2", f"--workers {CORES} --hang 2"])
def test_neither_idling_nor_the_work_of_the_target_is_foreign_load(
    arguments: str, metronome: Metronome, bench: Bench, log: Path
) -> None:
    record = find_quietest(bench, metronome(arguments), log)
    assert "foreign-cpu" not in record["warning_codes"]
    assert record["load"]["foreign_cores"] < 0.2


@pytest.mark.timing
def test_feeding_and_draining_are_no_foreign_load(
    metronome: Metronome, bench: Bench, log: Path
) -> None:
    log = log.with_name("400000_32_01.jsonl")
    record = find_quietest(bench, metronome("--rate 1e9"), log, size=400_000)
    assert "foreign-cpu" not in record["warning_codes"]
    assert record["load"]["foreign_cores"] < 0.2


def test_a_quota_that_was_asked_for_is_recorded_and_no_cause_for_alarm(
    metronome_image: Metronome, bench: Bench, log: Path
) -> None:
    bench(metronome_image("--workers 1 --hang 1.5"), "-o", log, "--cpus", "0.5").succeeds()
    record = read_whole_record(log)
    counted = record["load"]["throttling"]
    assert counted["periods"] >= counted["throttled"] >= 3
    assert counted["time"] > 0
    assert "throttled" not in record["warning_codes"]


def test_another_run_on_this_machine_is_named(bench: Bench, log: Path, tmp_path: Path) -> None:
    with bench.start(metronome_process("--hang 600"), "-o", tmp_path / "other.jsonl") as other:
        until((tmp_path / "other.jsonl.part").exists)
        until(lambda: (tmp_path / "other.jsonl.part").read_text())
        bench(metronome_process(""), "-o", log).succeeds()
    record = read_whole_record(log)
    assert "other-runs" in record["warning_codes"]
    (told,) = [run for run in record["load"]["other_runs"] if f"(pid {other.pid})" in run]
    assert told.startswith("parus of exec:")


@pytest.mark.skipif(CORES < 2, reason="NOT TESTED: two lanes need two CPU cores.")
def test_the_lanes_of_one_suite_are_no_strangers_to_each_other(
    suite: Suites, machine: Machine
) -> None:
    machine.plug(Gpu("GPU-a"), Gpu("GPU-b"))
    marks = shlex.quote(str(suite.folder))
    meet = (
        f"touch {marks}/at-$CUDA_VISIBLE_DEVICES; "
        f"until [ -e {marks}/at-GPU-a ] && [ -e {marks}/at-GPU-b ]; do sleep 0.02; done; sleep 1"
    )
    options = ("--parallel", "--timeout", TIMEOUT, "--retries", 0)
    suite(*options, target=suite.target(meet), env=machine.environment).succeeds()
    loads = [read_whole_record(suite.log(name))["load"] for name in suite.done]
    assert not [run for load in loads for run in load["other_runs"] if "{task}" in run]
    assert {load["cores"] for load in loads} == {CORES // 2}
