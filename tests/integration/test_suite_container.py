"""`morocco suite` of images: what it looks at first, and what a killed one leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from random import Random

import pytest
from conftest import Metronome
from docker import DockerClient
from docker.models.containers import Container

from engines import on_both_engines
from gpu_engine import GpuEngine
from gpu_machine import Machine
from morocco.hardware.host import read_host_info
from morocco.targets.engine import remove_containers
from morocco.targets.options import limit_memory
from nvml_standin import Gpu, Process
from random_kills import Victim, kill_suites
from runs import read_record, until
from suite_runs import TWO, Suites, error_of, kill, parse_cores

GIB = 2**30
SHORT = (*TWO, "--repeats", 1)
SHORT_RUNS = ["parus/1_1_01", "parus/20_4_01", "rcb/1_1_01", "rcb/20_4_01"]


class Images:
    """The images of a model, whose names are nobody else's and end with the images themselves."""

    def __init__(self, engine: DockerClient, metronome_image: Metronome) -> None:
        self._engine, self._metronome = engine, metronome_image
        self.target = f"morocco-tests-{uuid.uuid4().hex}-{{task}}"

    def name(self, task: str) -> str:
        return self.target.replace("{task}", task)

    def make(self, task: str, arguments: str = "") -> str:
        """Give a task the image of such a metronome from now on, and return its id."""
        image = self._engine.images.get(self._metronome(arguments))
        image.tag(self.name(task))
        return str(image.id)


@pytest.fixture
def images(engine: DockerClient, metronome_image: Metronome) -> Images:
    return Images(engine, metronome_image)


def containers_of(engine: DockerClient, pid: int) -> list[Container]:
    # The engine lists a container some moments before it can tell more of it.
    return engine.containers.list(
        all=True, filters={"label": f"morocco={pid}"}, ignore_removed=True
    )


def test_each_task_is_measured_in_its_own_image(suite: Suites, images: Images) -> None:
    ids = {"parus": images.make("parus"), "rcb": images.make("rcb", "--say rcb")}
    suite(*SHORT, target=images.target).succeeds()
    assert suite.done == SHORT_RUNS
    assert suite.others == []
    for name in suite.done:
        task = name.partition("/")[0]
        target = read_record(suite.log(name))["target"]
        assert (target["target"], target["image_id"]) == (images.name(task), ids[task])


@pytest.mark.slow
def test_random_signals_leave_no_container(
    suite: Suites, images: Images, docker_engine: DockerClient
) -> None:
    for task in ("parus", "rcb"):
        images.make(task, "--hang 0.2 --rate 20")
    command = suite.command(*SHORT, target=images.target)
    victim = Victim(command, plan=len(SHORT_RUNS), longest=3)
    harm = kill_suites(victim, suite.folder / "killed", kills=3, random=Random(2))
    assert +harm == {"kills": 3}
    listed = docker_engine.containers.list(all=True, ignore_removed=True)
    assert not [one for one in listed if images.name("parus") in str(one.attrs["Config"]["Image"])]


def test_all_images_that_are_missing_are_named_before_the_first_run(
    suite: Suites, images: Images
) -> None:
    images.make("parus")
    options = ("--tasks", "parus,rcb,terra", "--pull", "never")
    error = suite(*options, target=images.target).fails(4)
    first, second = error.splitlines()
    assert f"There is no image {images.name('rcb')} on this machine" in first
    assert f"There is no image {images.name('terra')} on this machine" in second
    assert (suite.done, suite.others) == ([], [])


def test_a_limit_is_named_by_the_failure_it_causes(suite: Suites, images: Images) -> None:
    images.make("parus", "--eat 200")
    options = ("--memory", "64m", "--repeats", 1, "--retries", 0)
    error = error_of(suite(*options, target=images.target), 1)
    (row,) = [line for line in error.splitlines() if "out of memory" in line]
    assert "parus/warm-up and the 2 runs after it" in row
    assert "--memory 64m" in row


def test_an_image_that_has_changed_is_not_mixed_with_what_was_measured(
    suite: Suites, images: Images
) -> None:
    old = images.make("parus")
    suite("--repeats", 1, target=images.target).succeeds()
    before = suite.snapshot()
    new = images.make("parus", "--say new")
    error = suite("--repeats", 2, target=images.target).fails(3)
    old, new = (image.removeprefix("sha256:")[:12] for image in (old, new))
    assert f"{suite.log('parus/1_1_01')}: image {old}, now {new}" in error
    assert suite.snapshot() == before

    suite("--repeats", 1, "--force", target=images.target).succeeds()
    assert read_record(suite.log("parus/1_1_01"))["target"]["image_id"].startswith(f"sha256:{new}")


# What a killed suite leaves behind


def test_the_container_of_a_killed_suite_is_removed_by_the_next(
    suite: Suites, images: Images, engine: DockerClient
) -> None:
    images.make("parus")
    images.make("rcb", "--hang 600")
    with suite.start(*SHORT, target=images.target) as run:
        run.wait_until_sampled(suite.log("rcb/warm-up"))
        kill(run)
    before = suite.snapshot()
    assert suite.done == SHORT_RUNS[:2]
    (left_behind,) = containers_of(engine, run.pid)
    assert left_behind.status == "running"

    other = suite.folder / "other"
    suite("--repeats", 1, target=images.target, logs=other).succeeds()
    assert containers_of(engine, run.pid) == [left_behind]  # the matter of its own folder

    images.make("rcb")
    suite(*SHORT, target=images.target).succeeds()
    assert containers_of(engine, run.pid) == []
    assert suite.done == SHORT_RUNS
    assert suite.others == []
    assert before.items() <= suite.snapshot().items()


@on_both_engines
def test_only_containers_without_a_morocco_are_removed(
    engine: DockerClient, metronome_image: Metronome
) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    name, image = uuid.uuid4().hex, metronome_image("")
    owners = {"orphan": (ended.pid, name), "mine": (os.getpid(), name), "other": (ended.pid, "x")}
    made = {
        what: engine.containers.create(
            image, labels={"morocco": str(pid), "morocco.suite": f"{suite}-1"}
        )
        for what, (pid, suite) in owners.items()
    }
    try:
        assert remove_containers(engine, f"{name}-1") == 1
        assert remove_containers(engine, f"{name}-1") == 0
        left = {box.id for box in engine.containers.list(all=True, ignore_removed=True)}
        assert {what for what, box in made.items() if box.id in left} == {"mine", "other"}
    finally:
        for what in ("mine", "other"):
            made[what].remove()


def test_ctrl_c_leaves_no_container(suite: Suites, images: Images, engine: DockerClient) -> None:
    images.make("parus", "--hang 600")
    with suite.start(target=images.target) as run:
        run.wait_until_sampled(suite.log("parus/warm-up"))
        run.send(signal.SIGINT)
        error_of(run.finish(), 130)
    assert containers_of(engine, run.pid) == []


# Several GPUs


def a_gpu() -> Gpu:
    """Return a GPU like no other, on which a container is found that was given it."""
    name = f"GPU-{uuid.uuid4()}"
    return Gpu(name, GIB, 50, [Process(f"top:{name}", GIB)])


@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="NOT TESTED: two lanes need two CPU cores."
)
def test_lanes_are_containers_with_a_gpu_cores_and_memory_of_their_own(
    suite: Suites, machine: Machine, gpu_engine: GpuEngine
) -> None:
    gpus = [a_gpu(), a_gpu()]
    machine.plug(*gpus)
    env = {**machine.environment, **gpu_engine.environment}
    for task in ("parus", "rcb"):
        gpu_engine.script(f"lanes-{task}", "records=$(cat); sleep 600")
    memory = int(limit_memory(read_host_info().ram, 2)[:-1]) * 2**20
    with suite.start(*TWO, "--parallel", target="lanes-{task}", env=env) as run:
        boxes = until(lambda: _two(containers_of(gpu_engine.client, run.pid)))
        given = [box.attrs["HostConfig"] for box in boxes]
        run.send(signal.SIGINT)
        error_of(run.finish(), 130)
    devices = [host["DeviceRequests"][0]["DeviceIDs"] for host in given]
    assert sorted(devices) == sorted([gpu.uuid] for gpu in gpus)
    assert {host["Memory"] for host in given} == {memory}
    first, second = (parse_cores(host["CpusetCpus"]) for host in given)
    assert not first & second
    assert len(first) == len(second) == len(os.sched_getaffinity(0)) // 2

    for task in ("parus", "rcb"):
        gpu_engine.script(f"lanes-{task}", "cat")
    suite(*SHORT, "--parallel", target="lanes-{task}", env=env).succeeds()
    assert sorted(suite.done) == SHORT_RUNS
    for name in suite.done:
        limits = read_record(suite.log(name))["target"]["limits"]
        assert parse_cores(limits["cpuset"]) in (first, second)
        assert limits["memory"] == f"{memory // 2**20}m"


def _two(boxes: list[Container]) -> list[Container]:
    return boxes if len(boxes) == 2 else []
