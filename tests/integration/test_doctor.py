"""`morocco doctor` with real engines, and on this machine while it is kept busy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import BASE, metronome_process
from docker import DockerClient
from test_bench_load import SPIN
from test_invisible_processes import APART

from engines import DeafEngine, SlowEngine
from gpu_engine import GpuEngine
from gpu_machine import Machine, require_root
from morocco.targets.engine import PROBE_LABEL
from nvml_standin import Gpu
from runs import Bench, Finished, beside, parse, run_morocco, until
from suite_runs import PARUS, Suites

CORES = len(os.sched_getaffinity(0))
NOBODY = 2**22 + 7
"""More than any pid."""


def examine(*args: object, env: Mapping[str, str] | None = None) -> tuple[Finished, dict[str, Any]]:
    """Run the command; return the findings by name."""
    done = run_morocco("doctor", *args, "--format", "json", env=env)
    assert "Traceback" not in done.stderr
    return done, {finding["name"]: finding for finding in parse(done.stdout)}


LOOK = """
import sys
from morocco.doctor.engine import look_at_engine
from morocco.doctor.finding import render_json
from morocco.hardware.info import GpuInfo
image, *uuids = sys.argv[1:]
gpus = [GpuInfo(n, uuid, "A100", None, "550", "12.4", None, None) for n, uuid in enumerate(uuids)]
for finding in look_at_engine(image.split(), gpus):
    print(render_json(finding))
"""


def look(
    images: str = "", *gpus: str, within: Sequence[str] = (), address: str | None = None
) -> dict[str, Any]:
    """Look at the engine alone, in a process of its own; return the findings by name."""
    env = os.environ | ({} if address is None else {"DOCKER_HOST": address})
    command = [*within, sys.executable, "-c", LOOK, images, *gpus]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return {finding["name"]: finding for finding in parse(done.stdout)}


@pytest.mark.timing
def test_a_machine_with_a_good_engine_is_told_in_ten_seconds(
    engine: DockerClient, tmp_path: Path
) -> None:
    tags = list_tags(engine)
    begin = time.monotonic()
    done, found = examine(BASE, "--logs", tmp_path / "logs", "--gpus", "none")
    assert time.monotonic() - begin < 10
    names = ("engine", "image", "start", "processes", "stdin", "disk", "gpus")
    assert {found[name]["state"] for name in names} == {"good"}
    if found["other-runs"]["state"] == "good":
        assert re.search(r"differs by \d+\.\d%", found["noise"]["found"])
    else:
        assert found["noise"]["state"] == "unknown"
    assert not (tmp_path / "logs").exists()
    assert not {tag for tag in list_tags(engine) - tags if "probe" in tag}
    assert not engine.containers.list(all=True, filters={"label": f"morocco={done.pid}"})


@pytest.fixture(scope="module")
def busy() -> Iterator[tuple[Finished, dict[str, Any]]]:
    """What is found where the engine is away and the cores have others to serve."""
    with beside(SPIN, 2 * CORES):
        yield examine(env={"DOCKER_HOST": "unix:///nowhere/docker.sock"})


@pytest.mark.timing
def test_an_engine_that_is_away_is_bad(busy: tuple[Finished, dict[str, Any]]) -> None:
    done, found = busy
    assert done.code == 1
    assert found["engine"]["state"] == "bad"
    assert "/nowhere/docker.sock" in found["engine"]["found"]
    assert "DOCKER_HOST" in found["engine"]["todo"]
    assert "stdin" not in found


@pytest.mark.timing
def test_busy_neighbours_are_bad_and_named(busy: tuple[Finished, dict[str, Any]]) -> None:
    _, found = busy
    assert found["load"]["state"] == "bad"
    assert re.search(r"\w \(pid \d+\) \d\.\d", found["load"]["found"])


def list_tags(engine: DockerClient) -> set[str]:
    return {tag for image in engine.images.list() for tag in image.tags}


def test_what_a_killed_probe_left_behind_is_removed(engine: DockerClient) -> None:
    changes = [f"LABEL {PROBE_LABEL}={NOBODY}"]
    engine.api.import_image_from_data(b"\0" * 1024, "morocco-probe-left", changes=changes)
    labels = {"morocco": str(NOBODY), "morocco.suite": "doctor"}
    box = engine.containers.create(BASE, "true", labels=labels)
    assert "morocco-probe-left:latest" in list_tags(engine)
    look()
    assert "morocco-probe-left:latest" not in list_tags(engine)
    assert box.id not in {other.id for other in engine.containers.list(all=True)}


def test_an_image_that_is_not_here_is_named_and_not_pulled(engine: DockerClient) -> None:
    found = look(f"{BASE} nobody/nothing:1")["image"]
    assert found["state"] == "unknown"
    assert "nobody/nothing:1" in found["found"]
    assert "nobody/nothing:1" not in list_tags(engine)


@pytest.mark.usefixtures("engine")
def test_what_cannot_be_an_image_is_bad() -> None:
    assert look("NO/SUCH")["image"]["state"] == "bad"


@pytest.mark.usefixtures("engine")
def test_an_engine_that_does_not_pass_on_the_end_of_input_is_bad(tmp_path: Path) -> None:
    with DeafEngine(tmp_path) as deaf:
        found = look(address=deaf.address)
    assert (found["stdin"]["state"], found["processes"]["state"]) == ("bad", "good")


@pytest.mark.parametrize("call", ["/images/create", "/containers/create"])
def test_an_engine_that_hangs_is_given_up(call: str, engine: DockerClient, tmp_path: Path) -> None:
    with SlowEngine(tmp_path, call, 4, late="answer") as slow:
        begin = time.monotonic()
        found = look(address=slow.address)
        assert time.monotonic() - begin < 10
    assert found["start"]["state"] == "unknown"
    look()  # which removes what came too late
    assert not engine.containers.list(all=True, filters={"label": "morocco.suite=doctor"})


@pytest.mark.usefixtures("engine")
def test_an_engine_whose_processes_are_hidden_is_bad() -> None:
    found = look(within=[*require_root(), *APART])
    assert (found["processes"]["state"], found["stdin"]["state"]) == ("bad", "good")


def test_an_engine_without_the_toolkit_gives_no_gpus(engine: DockerClient) -> None:
    if "nvidia" in engine.info()["Runtimes"]:
        pytest.skip("NOT TESTED: this engine has NVIDIA's toolkit.")
    found = look("", "GPU-a")["toolkit"]
    assert found["state"] == "bad"
    assert "--gpus none" in found["todo"]


def test_an_engine_with_the_toolkit_gives_the_gpus_that_are_asked_for(
    gpu_engine: GpuEngine,
) -> None:
    found = look("", "GPU-a", "GPU-b", address=gpu_engine.address)
    assert found["toolkit"]["state"] == "good"


@pytest.mark.timing
def test_a_suite_tells_what_is_not_good_before_its_first_run(
    suite: Suites, machine: Machine
) -> None:
    machine.plug(Gpu("GPU-a", persistence=False))
    env = machine.environment | {"MOROCCO_SUITE_NO_DOCTOR": "0", "MOROCCO_SUITE_GPUS": "auto"}
    assert suite("--dry-run", env=env).succeeds().warnings == []
    done = suite(env=env).succeeds()
    (told,) = [warning for warning in done.warnings if warning.startswith("persistence: ")]
    assert "GPU 0" in told
    assert "-> sudo nvidia-smi -pm 1" in told
    assert done.stderr.index(told) < done.stderr.index("[1/4]")
    assert suite.done == PARUS
    assert "persistence" not in suite(env=env).succeeds().stderr  # nothing is left to do


def test_a_suite_does_not_look_at_the_machine_if_it_need_not(
    suite: Suites, machine: Machine
) -> None:
    machine.plug(Gpu("GPU-a", persistence=False))
    env = machine.environment | {"MOROCCO_SUITE_NO_DOCTOR": "0", "MOROCCO_SUITE_GPUS": "auto"}
    assert "persistence" not in suite("--no-doctor", env=env).succeeds().stderr


def test_a_run_that_is_being_measured_is_named_and_not_disturbed(
    bench: Bench, tmp_path: Path
) -> None:
    part = tmp_path / "other.jsonl.part"
    with bench.start(metronome_process("--hang 600"), "-o", tmp_path / "other.jsonl") as other:
        until(lambda: part.exists() and part.read_text())
        done, found = examine("exec:cat", "--gpus", "none")
    assert done.code == 1
    assert f"(pid {other.pid})" in found["other-runs"]["found"]
    assert (found["noise"]["state"], found["command"]["state"]) == ("unknown", "good")
    assert found["steal"]["state"] != "unknown"
    assert "engine" not in found
