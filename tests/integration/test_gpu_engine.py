"""`morocco bench` of containers that a real engine gives GPUs, which stand-ins play."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from gpu_engine import GpuEngine
from gpu_machine import Machine
from nvml_standin import Gpu, Process
from runs import Bench, parse, read_log, read_record

GIB = 2**30


@pytest.fixture
def env(machine: Machine, gpu_engine: GpuEngine) -> dict[str, str]:
    """The environment of a morocco on a machine with such GPUs and such an engine."""
    return {**machine.environment, **gpu_engine.environment}


def a_gpu(memory: int, percent: int) -> Gpu:
    """Return a GPU like no other, with the memory and use that a container has of it."""
    name = f"GPU-{uuid.uuid4()}"
    return Gpu(name, memory, percent, [Process(f"top:{name}", memory)])


def test_a_container_is_given_its_gpu_and_no_other(
    machine: Machine,
    env: dict[str, str],
    gpu_engine: GpuEngine,
    bench: Bench,
    log: Path,
    tmp_path: Path,
) -> None:
    first, second = a_gpu(2 * GIB, 90), a_gpu(3 * GIB, 40)
    machine.plug(first, second)
    kept = tmp_path / "predictions"
    options = ("-o", log, "--gpus", "1", "--raw-output", "--predictions", kept)
    assert bench(gpu_engine.teller(), *options, env=env).succeeds().warnings == []
    assert told(kept) == {second.uuid}
    record = read_record(log)
    assert [gpu["uuid"] for gpu in record["gpus"]] == [second.uuid]
    assert (record["peaks"]["gpu_ram"], record["peaks"]["gpu_ram_source"]) == (3 * GIB, "process")
    on_gpu = [line for line in read_log(log) if line["gpu_ram"] is not None]
    assert {(line["gpu_ram"], line["gpu_usage"]) for line in on_gpu} == {(3 * GIB, 0.4)}


def test_a_container_is_given_two_gpus_by_their_uuids(
    machine: Machine,
    env: dict[str, str],
    gpu_engine: GpuEngine,
    bench: Bench,
    log: Path,
    tmp_path: Path,
) -> None:
    first, second = a_gpu(2 * GIB, 90), a_gpu(3 * GIB, 40)
    machine.plug(first, second)
    kept = tmp_path / "predictions"
    choice = f"{second.uuid},{first.uuid}"
    options = ("-o", log, "--gpus", choice, "--raw-output", "--predictions", kept)
    bench(gpu_engine.teller(), *options, env=env).succeeds()
    assert told(kept) == {choice}
    assert read_record(log)["peaks"]["gpu_ram"] == 5 * GIB


def test_a_container_without_gpus_is_given_none(
    machine: Machine,
    env: dict[str, str],
    gpu_engine: GpuEngine,
    bench: Bench,
    log: Path,
    tmp_path: Path,
) -> None:
    machine.plug(a_gpu(2 * GIB, 90))
    kept = tmp_path / "predictions"
    options = ("-o", log, "--gpus", "none", "--raw-output", "--predictions", kept)
    assert bench(gpu_engine.teller(), *options, env=env).succeeds().warnings == []
    assert told(kept) == {"void"}
    assert read_record(log)["gpus"] == []
    assert {line["gpu_ram"] for line in read_log(log)} == {None}


def test_containers_side_by_side_are_each_read_on_their_own_gpu(
    machine: Machine, env: dict[str, str], gpu_engine: GpuEngine, bench: Bench, tmp_path: Path
) -> None:
    machine.plug(a_gpu(2 * GIB, 90), a_gpu(3 * GIB, 40))
    target = gpu_engine.sleeper(1.5)
    logs = [tmp_path / name / "parus" / "100_32_01.jsonl" for name in ("first", "second")]
    starts = [
        bench.start(target, "-o", log, "--gpus", gpu, env=env) for gpu, log in enumerate(logs)
    ]
    with starts[0] as first, starts[1] as second:
        assert first.finish().succeeds().warnings == second.finish().succeeds().warnings == []
    records = [read_record(log) for log in logs]
    assert [record["peaks"]["gpu_ram"] for record in records] == [2 * GIB, 3 * GIB]
    assert [record["predictions"]["count"] for record in records] == [100, 100]
    assert min(record["run_time"] for record in records) >= 1.5


def told(predictions: Path) -> set[Any]:
    """Return what the containers told, each once."""
    return set(parse(predictions.read_text()))
