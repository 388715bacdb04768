"""`morocco suite --cluster`: the runs of a suite on the workers of a real Dask cluster."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import stat
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import Metronome, metronome_process
from docker import DockerClient

from dask_cluster import DaskCluster, Worker
from gpu_machine import Machine
from nvml_standin import Gpu
from runs import (
    Finished,
    Run,
    files_in,
    read_failed_record,
    read_log,
    read_record,
    run_morocco,
    until,
)

pytestmark = pytest.mark.cluster

TASKS = ("parus", "terra")
PROGRESS = re.compile(r"\[\d+/\d+\] \S+(, not kept)?: [\d.]+ s(, about [\d:]+ left)?")
"""The line of a run that is done."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of two tasks."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("PARus", "TERRa"):
        (folder / name).mkdir()
        lines = [json.dumps({"text": name, "idx": idx}) + "\n" for idx in range(100)]
        (folder / name / "val.jsonl").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[DaskCluster]:
    """Two workers that no test harms."""
    with DaskCluster() as cluster:
        yield cluster


class Suite:
    """Runs `morocco suite --cluster` on 100 records of PARus, once each size, without retries."""

    def __init__(self, data: Path, logs: Path) -> None:
        self.data, self.logs = data, logs

    def __call__(self, cluster: DaskCluster | str, target: str, *options: object) -> Finished:
        """Run to the end."""
        with self.start(cluster, target, *options) as run:
            return run.finish()

    def start(self, cluster: DaskCluster | str, target: str, *options: object, **more: Any) -> Run:
        address = cluster if isinstance(cluster, str) else cluster.address
        sizes = ("--tasks", "parus", "--input-size", 100, "--repeats", 1, "--retries", 0)
        where = ("--logs", self.logs, "--cluster", address)
        return Run("suite", target, self.data, *sizes, *where, *options, **more)

    @property
    def finished(self) -> list[Path]:
        """The logs that are there."""
        return sorted(self.logs.rglob("*.jsonl"))


@pytest.fixture
def suite(data: Path, tmp_path: Path) -> Suite:
    return Suite(data, tmp_path / "logs")


Script = Callable[[str], str]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Make a TARGET of a shell script, which finds the task in $1 if the TARGET has it."""

    def make(text: str) -> str:
        file = tmp_path / f"{uuid.uuid4().hex}.sh"
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return f"exec:{file}"

    return make


@pytest.fixture
def at_start(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """Make the environment of a Python that begins with these statements."""

    def make(statements: str) -> dict[str, str]:
        folder = tmp_path / uuid.uuid4().hex
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(statements)
        return {"PYTHONPATH": str(folder)}

    return make


def once(tmp_path: Path, text: str) -> str:
    """Return a script that does this in its first run, and its work in all later ones."""
    return f"mkdir {tmp_path}/started 2>/dev/null && {{ {text}; }}\ncat"


def spans(logs: Path) -> list[tuple[str, str]]:
    """Return when each run began and ended, the first one first."""
    records = [json.loads(path.read_text()) for path in logs.rglob("*_*.json")]
    return sorted((record["started"], record["ended"]) for record in records)


def overlap(times: list[tuple[str, str]]) -> bool:
    return any(later[0] < earlier[1] for earlier, later in pairwise(times))


# The plan on two workers


@pytest.fixture
def two_images(engine: DockerClient, metronome_image: Metronome) -> Iterator[Callable[[str], str]]:
    """Make a TARGET of two images, one for each task."""
    name = f"morocco-tests-{uuid.uuid4().hex}"
    tags = [f"{name}-{task}" for task in TASKS]

    def make(arguments: str) -> str:
        for tag in tags:
            engine.images.get(metronome_image(arguments)).tag(tag)
        return f"{name}-{{task}}"

    yield make
    for tag in tags:
        engine.images.remove(tag)


def containers_of(engine: DockerClient, *workers: Worker) -> list[str]:
    """Return the containers that workers have started."""
    return [name for worker in workers for name in containers_with(engine, worker.pid)]


def containers_with(engine: DockerClient, owner: int) -> list[str]:
    found = engine.api.containers(all=True, filters={"label": f"morocco={owner}"})
    return [str(box["Id"]) for box in found]


@pytest.mark.docker
def test_two_workers_share_the_runs_of_a_suite(
    engine: DockerClient,
    two_images: Callable[[str], str],
    cluster: DaskCluster,
    suite: Suite,
) -> None:
    target = two_images("--start-up 1.1")  # an image of its own, which goes with its tags
    finished = suite(cluster, target, "--tasks", "parus,terra", "--repeats", 2).succeeds()
    names = [f"{size}_{n:02}" for size in ("100_32", "1_1") for n in (1, 2)]
    expected = [f"{task}/{name}.json{end}" for task in TASKS for name in names for end in ("", "l")]
    assert files_in(suite.logs) == sorted([".morocco-suite", "profile.toml", *expected])
    assert overlap(spans(suite.logs))
    records = [read_record(log) for log in suite.finished]
    assert len({(record["machine"], record["host"]["name"]) for record in records}) == 1
    assert {record["task"]: record["target"]["target"] for record in records} == {
        task: target.replace("{task}", task) for task in TASKS
    }
    assert all(len(read_log(log)) > 1 for log in suite.finished)
    assert not containers_of(engine, *cluster.workers)
    *lines, last = finished.stderr.splitlines()
    warm_ups = sum("not kept" in line for line in lines)
    assert warm_ups in (2, 3)  # the worker that is done first may help with the other task
    assert len(lines) == 8 + warm_ups
    assert all(PROGRESS.fullmatch(line) for line in lines), lines
    check = f"morocco check {suite.logs} --profile {suite.logs}/profile.toml"
    assert last == f"8 of 8 runs done: {suite.logs}. Next: {check}"


def test_what_is_done_is_not_done_again(cluster: DaskCluster, suite: Suite) -> None:
    suite(cluster, metronome_process("")).succeeds()
    before = [log.stat().st_mtime_ns for log in suite.finished]
    finished = suite(cluster, metronome_process(""), "--repeats", 2).succeeds()
    assert "4 of 4 runs done" in finished.stderr
    first = [log for log in suite.finished if log.stem.endswith("01")]
    assert [log.stat().st_mtime_ns for log in first] == before


def test_workers_that_help_with_a_task_warm_up_each_on_its_own(
    cluster: DaskCluster, suite: Suite
) -> None:
    target = metronome_process("--start-up 0.5")
    stderr = suite(cluster, target, "--repeats", 3).succeeds().stderr
    assert "parus/warm-up, not kept" in stderr
    assert "parus/warm-up-2, not kept" in stderr
    assert overlap(spans(suite.logs))
    assert len(suite.finished) == 6


def test_a_relative_data_folder_is_that_of_the_coordinator(
    cluster: DaskCluster, suite: Suite
) -> None:
    suite.data = Path(os.path.relpath(suite.data))
    suite(cluster, metronome_process("")).succeeds()
    assert Path(read_record(suite.finished[0])["data"]["path"]).is_absolute()


# Workers that are lost, that come, that go


@pytest.mark.docker
def test_the_container_of_a_killed_worker_is_removed_and_its_run_done_elsewhere(
    engine: DockerClient, metronome_image: Metronome, suite: Suite
) -> None:
    with DaskCluster() as cluster:
        owners = [worker.pid for worker in cluster.workers]
        with suite.start(cluster, metronome_image("--start-up 1"), "--repeats", 2) as run:
            until(lambda: containers_of(engine, *cluster.workers))
            next(w for w in cluster.workers if containers_of(engine, w)).kill()
            finished = run.finish().succeeds()
    assert not [name for owner in owners for name in containers_with(engine, owner)]
    assert len(suite.finished) == 4
    assert re.search(r"The worker \S+ is lost; parus/\S+ is done elsewhere\.", finished.stderr)


def test_the_process_of_a_killed_worker_is_ended_and_its_run_done_elsewhere(
    script: Script, suite: Suite, tmp_path: Path
) -> None:
    with DaskCluster() as cluster:
        with suite.start(cluster, script(once(tmp_path, "sleep 600"))) as run:
            until(lambda: any("sleep" in _command(pid) for pid in cluster.targets))
            [owner] = {owner for pid, owner in cluster.targets.items() if "sleep" in _command(pid)}
            next(worker for worker in cluster.workers if worker.pid == owner).kill()
            run.finish().succeeds()
        assert not cluster.targets
    assert len(suite.finished) == 2


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_a_worker_that_its_nanny_restarts_is_used_again(
    script: Script, suite: Suite, tmp_path: Path
) -> None:
    seen = tmp_path / "threads"
    target = script(f"echo ${{OMP_NUM_THREADS-all}} >> {seen}\n{once(tmp_path, 'sleep 600')}")
    with DaskCluster(1, ("--nanny",)) as cluster:
        with suite.start(cluster, target) as run:
            until(lambda: any("sleep" in _command(pid) for pid in cluster.targets))
            cluster.workers[0].kill()
            run.finish().succeeds()
        assert not cluster.targets
    assert len(suite.finished) == 2
    assert set(seen.read_text().split()) == {"all"}  # a nanny sets it to 1, for Dask


def test_a_worker_that_joins_later_is_used(suite: Suite) -> None:
    with DaskCluster(0) as cluster, suite.start(cluster, metronome_process("")) as run:
        warning = f"morocco: warning: {cluster.address} has no worker; waiting 60 s for one.\n"
        assert run.process.stderr
        assert run.process.stderr.readline().decode() == warning
        cluster.start_worker("--no-nanny")
        run.finish().succeeds()
    assert len(suite.finished) == 2


def test_a_suite_without_any_worker_gives_up_in_the_end(
    at_start: Callable[[str], dict[str, str]], suite: Suite
) -> None:
    env = at_start("import morocco.suite.dask_pool\nmorocco.suite.dask_pool._JOIN_TIMEOUT = 0.5\n")
    target = metronome_process("--hang 60")
    with DaskCluster(1) as cluster, suite.start(cluster, target, env=env) as run:
        until(lambda: cluster.targets)
        cluster.workers[0].kill()
        finished = run.finish()
    assert finished.code == 4
    assert f"The Dask cluster at {cluster.address} has no worker. Start one" in finished.stderr
    assert "0 of 2 runs are done; run the same command to continue." in finished.stderr
    assert files_in(suite.logs) == [".morocco-suite"]


def test_a_worker_that_is_asked_to_end_ends_its_run(
    script: Script, suite: Suite, tmp_path: Path
) -> None:
    target = script(once(tmp_path, "sleep 600"))
    with DaskCluster(1) as cluster, suite.start(cluster, target) as run:
        until(lambda: cluster.targets)
        cluster.workers[0].send(signal.SIGTERM)
        until(lambda: not cluster.targets)
        cluster.start_worker("--no-nanny")
        run.finish().succeeds()
    assert len(suite.finished) == 2


def test_a_run_that_takes_one_worker_after_the_other_with_it_is_given_up(
    script: Script, suite: Suite
) -> None:
    target = script("owner=${MOROCCO_TARGET#*/}; kill -9 ${owner%%/*}")
    with DaskCluster(1, ("--nanny",)) as cluster:
        finished = suite(cluster, target)
    assert finished.code == 1
    assert finished.stderr.count("is done elsewhere.") == 2
    assert "parus/warm-up-3 failed: 3 workers were lost during it." in finished.stderr
    assert "0 of 2 runs done" in finished.stderr


@pytest.fixture
def engine_to_kill(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """What passes on all that comes to `engine.sock` to the engine, until it is killed."""
    with subprocess.Popen([sys.executable, "-c", PASS_ON, tmp_path / "engine.sock"]) as process:
        until((tmp_path / "engine.sock").exists)
        yield process
        process.kill()


PASS_ON = """
import socket, sys, threading
def copy(source, sink):
    while data := source.recv(65536):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
while True:
    client, _ = server.accept()
    engine = socket.socket(socket.AF_UNIX)
    engine.connect("/var/run/docker.sock")
    for ends in ((client, engine), (engine, client)):
        threading.Thread(target=copy, args=ends, daemon=True).start()
"""


@pytest.mark.docker
def test_a_worker_whose_engine_goes_away_is_not_used_any_more(
    engine: DockerClient,
    engine_to_kill: subprocess.Popen[bytes],
    metronome_image: Metronome,
    suite: Suite,
    tmp_path: Path,
) -> None:
    env = {"DOCKER_HOST": f"unix://{tmp_path}/engine.sock"}
    with DaskCluster(1) as cluster:
        worker = cluster.start_worker("--no-nanny", env=env)
        cluster.wait()
        with suite.start(cluster, metronome_image("--start-up 1.5")) as run:
            until(lambda: containers_of(engine, worker))
            engine_to_kill.kill()
            finished = run.finish().succeeds()
        for name in containers_of(engine, worker):  # which its engine could not be asked to remove
            engine.api.remove_container(name, force=True)
        address = worker.address
    assert f"The worker {address} is not used: Cannot reach the container engine" in finished.stderr
    assert len(suite.finished) == 2


# What stops a suite


def test_ctrl_c_ends_the_runs_on_all_workers(
    cluster: DaskCluster, script: Script, suite: Suite, tmp_path: Path
) -> None:
    target = script(f"[ -e {tmp_path}/mended ] || sleep 600\ncat")
    with suite.start(cluster, target) as run:
        until(lambda: len(set(cluster.targets.values())) == 2)
        run.send(signal.SIGINT)
        finished = run.finish()
    assert not cluster.targets
    assert finished.code == 130
    assert "0 of 2 runs are done; run the same command to continue." in finished.stderr
    assert read_failed_record(suite.logs / "parus" / "warm-up.jsonl")["failure"]
    (tmp_path / "mended").touch()
    suite(cluster, target).succeeds()
    assert len(suite.finished) == 2
    assert not [name for name in files_in(suite.logs) if ".failed" in name or ".part" in name]


def test_a_killed_suite_leaves_nothing_running_and_continues_with_the_same_command(
    cluster: DaskCluster, script: Script, suite: Suite, tmp_path: Path
) -> None:
    target = script(f"[ -e {tmp_path}/mended ] || sleep 600\ncat")
    with suite.start(cluster, target) as run:
        until(lambda: len(set(cluster.targets.values())) == 2)
        run.send(signal.SIGKILL)
        assert run.finish().code == -signal.SIGKILL
    (tmp_path / "mended").touch()
    with suite.start(cluster, target) as run:
        run.finish().succeeds()
    assert not cluster.targets
    assert len(suite.finished) == 2


def test_a_scheduler_that_dies_ends_the_suite_and_the_runs(
    script: Script, suite: Suite, tmp_path: Path
) -> None:
    target = script(f"[ -e {tmp_path}/mended ] || sleep 600\ncat")
    with DaskCluster() as cluster:
        with suite.start(cluster, target) as run:
            until(lambda: len(set(cluster.targets.values())) == 2)
            cluster.kill_scheduler()
            finished = run.finish()
        until(lambda: not cluster.targets)
    assert finished.code == 4
    assert finished.stderr.splitlines() == [
        "0 of 2 runs are done; run the same command to continue.",
        "morocco: error: The Dask scheduler is gone: restart it and its workers.",
    ]
    (tmp_path / "mended").touch()
    with DaskCluster() as cluster:
        suite(cluster, target).succeeds()
    assert len(suite.finished) == 2


def test_a_run_that_fails_is_tried_again_and_reported(
    cluster: DaskCluster, script: Script, suite: Suite
) -> None:
    target = script("cat; [ $1 = terra ] || exit 0; echo broken >&2; exit 3") + " {task}"
    finished = suite(cluster, target, "--tasks", "parus,terra", "--retries", 1)
    assert finished.code == 1
    assert finished.stderr.count("terra/warm-up failed: ") == 2
    assert "Trying again." in finished.stderr
    skipped = r"exit code 3 +terra/warm-up(-2)? and the 2 runs after it +\S"
    assert re.search(skipped, finished.stderr)
    assert "2 of 4 runs done" in finished.stderr
    failed = suite.logs / "terra" / "warm-up.jsonl"
    assert read_failed_record(failed)["failure"]["kind"] == "TargetError"
    assert read_failed_record(failed)["stderr"] == "broken\n"
    assert Path(f"{failed}.failed").exists()
    assert [log.parent.name for log in suite.finished] == ["parus", "parus"]


# Who takes part


def test_a_worker_that_cannot_do_the_runs_is_not_used(
    at_start: Callable[[str], dict[str, str]],
    metronome_image: Metronome,
    suite: Suite,
    tmp_path: Path,
) -> None:
    beside = Path("/proc/self/cwd") / os.path.relpath(suite.data)  # each worker's own
    elsewhere = make_other_data(beside, tmp_path / "other")
    suite.data = beside
    with DaskCluster(1) as cluster:
        other_version = at_start("import morocco\nmorocco.__version__ = '0.0.1'\n")
        no_morocco = at_start("import sys\nsys.modules['morocco'] = None\n")
        cluster.start_worker("--no-nanny", env=other_version)
        cluster.start_worker("--no-nanny", env=no_morocco)
        cluster.start_worker("--no-nanny", cwd=elsewhere)
        cluster.start_worker("--no-nanny", env={"DOCKER_HOST": "unix:///nonexistent.sock"})
        cluster.wait()
        finished = suite(cluster, metronome_image("")).succeeds()
        fit, *unfit = [worker.address for worker in cluster.workers]
    reasons = ["it has morocco 0.0.1 on", "No module named 'morocco", "holds other records there"]
    for address, reason in zip(unfit, [*reasons, "Cannot reach the container engine"], strict=True):
        [warning] = [line for line in finished.warnings if address in line]
        assert warning.startswith(f"The worker {address} is not used: ")
        assert reason in warning
    assert f"{fit} is not used" not in finished.stderr
    assert len(suite.finished) == 2


def make_other_data(path: Path, folder: Path) -> Path:
    """Return a folder below this one from where other data is at a path of `/proc/self/cwd`."""
    steps = path.relative_to("/proc/self/cwd").parts
    start = folder.joinpath(*(f"down{n}" for n, step in enumerate(steps) if step == ".."))
    start.mkdir(parents=True)
    file = start.joinpath(*steps, "PARus", "val.jsonl")
    file.parent.mkdir(parents=True)
    file.write_text('{"idx": 0}\n')
    return start


@pytest.mark.docker
def test_a_cluster_on_which_no_worker_has_the_image_is_reported(
    at_start: Callable[[str], dict[str, str]], cluster: DaskCluster, suite: Suite
) -> None:
    env = at_start(
        "import morocco.suite.dask_pool\nmorocco.suite.dask_pool._JOIN_TIMEOUT_UNFIT = 0.5\n"
    )
    target = f"morocco-tests-{uuid.uuid4().hex}"
    with suite.start(cluster, target, "--pull", "never", env=env) as run:
        finished = run.finish()
    assert finished.code == 4
    assert "can be used, for the reasons above." in finished.stderr
    for worker in cluster.workers:
        message = f"{worker.address} is not used: There is no image {target} on this machine."
        assert message in finished.stderr


def test_where_some_workers_offer_a_gpu_only_these_are_used(
    script: Script, suite: Suite, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    target = script(f"echo $MOROCCO_TARGET begins >> {notes}; cat; sleep 0.2; echo ends >> {notes}")
    with DaskCluster() as cluster:
        offers = cluster.start_worker("--no-nanny", "--resources", "GPU=1", "--nthreads", "4")
        cluster.wait()
        suite(cluster, target, "--repeats", 2).succeeds()
        words = notes.read_text().split()
        owners = {int(word.split("/")[-2]) for word in words if "/" in word}
        assert owners == {offers.pid}
    assert [word for word in words if "/" not in word] == ["begins", "ends"] * 5


def test_two_suites_never_measure_on_one_worker_at_the_same_time(
    suite: Suite, tmp_path: Path
) -> None:
    other = Suite(suite.data, tmp_path / "more logs")
    target = metronome_process("--start-up 0.3")
    with (
        DaskCluster(1, ("--no-nanny", "--nthreads", "4")) as cluster,
        suite.start(cluster, target) as run,
        other.start(cluster, target) as other_run,
    ):
        run.finish().succeeds()
        other_run.finish().succeeds()
    times = spans(suite.logs) + spans(other.logs)
    assert len(times) == 4
    assert not overlap(sorted(times))


@pytest.mark.parametrize(
    ("visible", "used"),
    [(None, "GPU-a"), ("1,0", "GPU-b"), ("GPU-b,GPU-a", "GPU-b"), ("", None)],
)
def test_a_worker_measures_on_the_gpu_that_it_was_given(
    visible: str | None, used: str | None, machine: Machine, script: Script, suite: Suite
) -> None:
    machine.plug(Gpu("GPU-a"), Gpu("GPU-b"))
    env = machine.environment
    if visible is not None:
        env = {**env, "CUDA_VISIBLE_DEVICES": visible}
    with DaskCluster(0) as cluster:
        cluster.start_worker("--no-nanny", env=env)
        target = script("cat; sleep 0.1")
        suite(cluster, target).succeeds()
    record = read_record(suite.finished[0])
    assert [gpu["uuid"] for gpu in record["gpus"]] == ([used] if used else [])


def test_a_worker_whose_gpu_is_missing_is_not_used(machine: Machine, suite: Suite) -> None:
    machine.plug(Gpu("GPU-a"))
    env = {**machine.environment, "CUDA_VISIBLE_DEVICES": "3"}
    with DaskCluster(1) as cluster:
        unfit = cluster.start_worker("--no-nanny", env=env)
        cluster.wait()
        finished = suite(cluster, metronome_process("")).succeeds()
        address = unfit.address
    [warning] = finished.warnings
    assert f"{address} is not used: --gpus 3: NVML sees GPU 0 (GPU-a)" in warning


# What is seen here


def test_warnings_of_runs_are_shown_here(cluster: DaskCluster, suite: Suite) -> None:
    finished = suite(cluster, metronome_process("--predict once"), "--raw-output").succeeds()
    [warning] = finished.warnings
    assert warning.startswith("parus/100_32_01: 1 prediction")
    assert read_record(suite.logs / "parus" / "100_32_01.jsonl")["warnings"]


def test_a_terminal_shows_how_far_the_runs_are(cluster: DaskCluster, suite: Suite) -> None:
    screen, stderr = pty.openpty()
    try:
        target = metronome_process("--hang 60")
        with suite.start(cluster, target, stderr=stderr, env={"COLUMNS": "200"}) as run:
            shown = b""
            while b"predicted 1" not in shown:
                shown += os.read(screen, 65536)
            run.send(signal.SIGINT)
            assert run.finish().code == 130
    finally:
        os.close(screen)
        os.close(stderr)
    assert b"parus/warm-up" in shown


def test_the_values_of_variables_reach_the_target_and_nothing_else(
    script: Script, suite: Suite, tmp_path: Path
) -> None:
    seen, secret = tmp_path / "seen", uuid.uuid4().hex
    with DaskCluster(1) as cluster:
        target = script(f"echo $TOKEN >> {seen}; cat")
        options = ("-e", "TOKEN")
        with suite.start(cluster, target, *options, env={"TOKEN": secret}) as run:
            finished = run.finish().succeeds()
        log = cluster.workers[0].log
    assert set(seen.read_text().split()) == {secret}
    assert read_record(suite.finished[0])["arguments"]["env"] == ["TOKEN"]
    written = [path.read_text() for path in suite.logs.rglob("*") if path.is_file()]
    assert not [text for text in (*written, finished.stderr, log) if secret in text]


# Before there is a cluster


def test_no_scheduler_at_the_address_is_reported(suite: Suite) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    error = suite(address, metronome_process("")).fails(4)
    assert error.startswith(f"No Dask scheduler answers at {address} (")
    assert error.endswith("Start one, with a worker on every machine: dask ssh host1 host2.")


@pytest.mark.parametrize("address", ["nonsense://host:1", "127.0.0.1", "tcp://no.such.host.:1"])
def test_an_address_that_is_none_is_reported(address: str, suite: Suite) -> None:
    error = suite(address, metronome_process("")).fails(4)
    assert error.startswith(f"No Dask scheduler answers at {address} (")


def test_a_scheduler_of_another_environment_is_reported(
    at_start: Callable[[str], dict[str, str]], suite: Suite
) -> None:
    env = at_start("import sys\nsys.modules['morocco'] = None\n")
    with DaskCluster(1, env=env) as cluster:
        error = suite(cluster, metronome_process("")).fails(4)
    assert error.startswith(f"The Dask scheduler at {cluster.address} has no such morocco (")
    assert "morocco[dask]" in error


def test_a_machine_without_dask_is_reported_what_to_install(
    at_start: Callable[[str], dict[str, str]], suite: Suite
) -> None:
    env = at_start("import sys\nsys.modules['distributed'] = None\n")
    with suite.start("tcp://127.0.0.1:1", metronome_process(""), env=env) as run:
        error = run.finish().fails(4)
    assert error.startswith("--cluster needs Dask (")
    assert "pip install 'morocco[dask]'" in error


def test_lanes_of_this_machine_and_a_cluster_exclude_each_other(
    cluster: DaskCluster, suite: Suite
) -> None:
    error = suite(cluster, metronome_process(""), "--parallel").fails(3)
    assert error.startswith("--parallel divides this machine, --cluster uses others")


def test_the_plan_of_a_cluster_needs_none(suite: Suite) -> None:
    plan = suite("tcp://127.0.0.1:1", metronome_process(""), "--dry-run").succeeds().stdout
    assert "2 runs to do, 0 done, 1 warm-up" in plan


def test_dask_is_loaded_for_a_cluster_only() -> None:
    env = {"PYTHONPROFILEIMPORTTIME": "1"}
    assert "distributed" not in run_morocco("suite", "--help", env=env).stderr


# Encrypted


def make_certificate(folder: Path, name: str) -> list[str]:
    """Make a signer and a certificate signed by it; return the options that name the files."""
    names = ("ca", "ca-key", "cert", "key", "request")
    files = {what: str(folder / f"{name}-{what}.pem") for what in names}
    for command in (
        "req -x509 -nodes -newkey rsa:2048 -days 2 -subj /CN=signer -keyout {ca-key} -out {ca}",
        "req -new -nodes -newkey rsa:2048 -subj /CN=morocco -keyout {key} -out {request}",
        "x509 -req -days 2 -in {request} -CA {ca} -CAkey {ca-key} -CAcreateserial -out {cert}",
    ):
        words = ["openssl", *(word.format(**files) for word in command.split())]
        subprocess.run(words, check=True, capture_output=True)
    options = {"--tls-ca-file": "ca", "--tls-cert": "cert", "--tls-key": "key"}
    return [word for flag, what in options.items() for word in (flag, files[what])]


def test_a_cluster_with_tls_takes_whoever_has_a_certificate_of_its_signer(
    script: Script, suite: Suite, tmp_path: Path
) -> None:
    own, other = (make_certificate(tmp_path, name) for name in ("own", "other"))
    with DaskCluster(1, tls=("--protocol", "tls", *own)) as cluster:
        assert cluster.address.startswith("tls://")
        assert "A certificate is needed" in suite(cluster, script("cat")).fails(4)
        assert "the same signer" in suite(cluster, script("cat"), *other).fails(4)
        plain = cluster.address.replace("tls://", "tcp://")
        assert "No Dask scheduler answers" in suite(plain, script("cat")).fails(4)
        suite(cluster, script("cat"), *own).succeeds()
    assert len(suite.finished) == 2


def test_certificates_are_for_a_cluster_with_tls(suite: Suite, tmp_path: Path) -> None:
    own = make_certificate(tmp_path, "own")
    assert "tls://HOST:PORT" in suite("tcp://127.0.0.1:1", "exec:cat", *own).fails(3)
    assert "Give all of" in suite("tls://127.0.0.1:1", "exec:cat", *own[:4]).fails(3)
