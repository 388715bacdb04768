"""`morocco bench IMAGE`: what only holds for a container, on the engine of this machine."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from conftest import BASE, BuildImage, Command, Metronome
from docker import DockerClient
from docker.errors import NotFound
from docker.models.containers import Container

from engines import SlowEngine, on_both_engines
from morocco.hardware.host import read_host_info
from runs import Bench, Run, read_failed_record, read_log, read_record, until

LOOK_AROUND = """
import json, os, sys
sys.stdin.read()
disk = os.statvfs("/dev/shm")
print(json.dumps({
    "environment": dict(os.environ),
    "networks": os.listdir("/sys/class/net"),
    "routes": open("/proc/net/route").read().splitlines()[1:],
    "shm": disk.f_blocks * disk.f_frsize,
    "status": dict(line.split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line),
    "oom_score_adj": int(open("/proc/self/oom_score_adj").read()),
}))
"""

HONEST = f"""
FROM {BASE}
ARG USER
RUN useradd --create-home model && mkdir /weights && echo 1 > /weights/model \\
    && chown -R model /weights && chmod 600 /weights/model && chmod 700 /weights \\
    && tar --create --file /packed.tar /weights
USER $USER
ENTRYPOINT ["sh", "-ec", "cat; cat /weights/model >&2; touch /tmp/a $HOME/a /weights/a; \\
  tar --extract --file /packed.tar --directory /tmp; chmod 644 /tmp/weights/model"]
"""
"""It reads weights that only their owner may read, unpacks some, and writes to /tmp and home."""
MANY_THREADS = """
import sys, threading, time
try:
    for _ in range(50):
        threading.Thread(target=time.sleep, args=(1,)).start()
except RuntimeError as error:
    sys.exit(str(error))
"""
TRY_DISK = ["sh", "-c", "cat; cd; touch a /tmp/a && echo home and tmp >&2; touch /a"]


def container_of(engine: DockerClient, run: Run) -> Container:
    """Return the container of a run, once it runs."""

    def find() -> list[Container]:
        return engine.containers.list(filters={"label": f"morocco={run.pid}"})

    (container,) = until(find)
    return container


def look_around(image: Command, bench: Bench, tmp_path: Path, *options: str, **more: Any) -> Any:
    """Return what a container sees of the world."""
    kept = tmp_path / "predictions.jsonl"
    target = image("python3", "-c", LOOK_AROUND)
    bench(target, *options, "--raw-output", "--predictions", kept, **more).succeeds()
    return json.loads(kept.read_text())


def networks_here() -> list[str]:
    """Return the networks of this machine, without those that come and go with containers."""
    return stay(path.name for path in Path("/sys/class/net").iterdir())


def stay(networks: Iterable[str]) -> list[str]:
    return sorted(name for name in networks if not name.startswith("veth"))


@on_both_engines
def test_a_container_has_one_gigabyte_of_shared_memory_and_no_network(
    command_image: Command, bench: Bench, tmp_path: Path
) -> None:
    seen = look_around(command_image, bench, tmp_path)
    assert seen["shm"] == 2**30
    assert seen["routes"] == []
    assert stay(seen["networks"]) != networks_here()


def test_options_reach_the_container(command_image: Command, bench: Bench, tmp_path: Path) -> None:
    options = ("--network", "host", "--shm-size", "64m", "-e", "COLOUR=dark red", "-e", "HERE")
    seen = look_around(command_image, bench, tmp_path, *options, env={"HERE": "yes"})
    assert seen["shm"] == 64 * 2**20
    assert stay(seen["networks"]) == networks_here()
    assert (seen["environment"]["COLOUR"], seen["environment"]["HERE"]) == ("dark red", "yes")


def test_an_image_that_asks_for_all_gpus_is_given_none_of_them(
    build_image: BuildImage, bench: Bench, tmp_path: Path
) -> None:
    entrypoint = json.dumps(["python3", "-c", LOOK_AROUND])
    image = build_image(f"FROM {BASE}\nENV NVIDIA_VISIBLE_DEVICES=all\nENTRYPOINT {entrypoint}\n")
    for options, value in (((), "void"), (("-e", "NVIDIA_VISIBLE_DEVICES=0"), "0")):
        kept = tmp_path / value
        how = ("--gpus", "none", "--raw-output", "--predictions", kept)
        bench(image, *how, *options).succeeds()
        assert json.loads(kept.read_text())["environment"]["NVIDIA_VISIBLE_DEVICES"] == value


@on_both_engines
def test_the_engine_is_asked_for_a_confined_container(
    engine: DockerClient, metronome_image: Metronome, bench: Bench, log: Path
) -> None:
    limits = ("--memory", "512m", "--cpus", "1.5")
    with bench.start(metronome_image("--hang 1"), "-o", log, *limits) as run:
        host = container_of(engine, run).attrs["HostConfig"]
        run.finish().succeeds()
    assert host["Memory"] == host["MemorySwap"] == 512 * 2**20
    assert host["NanoCpus"] == 1.5e9
    assert host["NetworkMode"] == "none"
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert not host["Privileged"]
    assert {"ALL", "NET_RAW"} & set(host["CapDrop"])  # Podman lists them one by one
    assert host["PidsLimit"] == 8192
    assert host["OomScoreAdj"] == 1000
    assert not host["AutoRemove"]
    assert host["LogConfig"]["Type"] == "none"
    assert read_record(log)["target"]["limits"] == {
        "network": "none",
        "shm_size": "1g",
        "memory": "512m",
        "cpus": "1.5",
        "pids": "8192",
        "capabilities": "CHOWN,DAC_OVERRIDE,FOWNER",
        "oom_score_adj": "1000",
    }


def test_a_container_may_do_little_and_has_less_memory_than_the_machine(
    engine: DockerClient, command_image: Command, bench: Bench, tmp_path: Path
) -> None:
    log, kept = tmp_path / "parus" / "100_32_01.jsonl", tmp_path / "kept"
    target = command_image("python3", "-c", f"{LOOK_AROUND}import time; time.sleep(1)")
    options = ("-o", log, "--raw-output", "--predictions", kept)
    with bench.start(target, *options) as run:
        host = container_of(engine, run).attrs["HostConfig"]
        run.finish().succeeds()
    seen, limits = json.loads(kept.read_text()), read_record(log)["target"]["limits"]
    assert int(seen["status"]["CapEff"], 16) == int(seen["status"]["CapBnd"], 16) == 0b1011
    assert seen["oom_score_adj"] == 1000
    ram = read_host_info().ram
    assert ram * 0.7 < host["Memory"] < ram * 0.96
    assert limits["memory"] == f"{host['Memory'] // 2**20}m"
    assert host["MemorySwap"] == -1  # as much as without a limit


def test_each_limit_of_a_container_can_be_loosened(
    engine: DockerClient, metronome_image: Metronome, bench: Bench, log: Path
) -> None:
    options = ("--memory", "none", "--pids-limit", "none", "--oom-score-adj", "0")
    capabilities = ("--cap-add", "setuid", "--cap-add", "SETGID")
    with bench.start(metronome_image("--hang 1"), "-o", log, *options, *capabilities) as run:
        host = container_of(engine, run).attrs["HostConfig"]
        run.finish().succeeds()
    assert (host["Memory"], host["MemorySwap"], host["OomScoreAdj"]) == (0, 0, 0)
    assert host["PidsLimit"] in (None, 0, -1)
    limits = read_record(log)["target"]["limits"]
    assert limits["capabilities"] == "CHOWN,DAC_OVERRIDE,FOWNER,SETGID,SETUID"
    assert "memory" not in limits
    assert "pids" not in limits


@pytest.mark.parametrize("user", ["root", "model"])
def test_an_honest_image_can_do_what_it_needs(
    user: str, build_image: BuildImage, bench: Bench, log: Path
) -> None:
    image = build_image(HONEST, USER=user)
    bench(image, "-o", log).succeeds()


def test_a_container_that_is_read_only_writes_to_memory_alone(
    build_image: BuildImage, bench: Bench, log: Path
) -> None:
    image = build_image(f"FROM {BASE}\nENV HOME=/home/model\nENTRYPOINT {json.dumps(TRY_DISK)}\n")
    error = bench(image, "-o", log, "--read-only").fails(10)
    assert "home and tmp" in error
    assert "--read-only" in error.splitlines()[0]
    bench(image, "-o", log, "--raw-output").succeeds()


def test_a_container_with_too_many_processes_harms_only_itself(
    command_image: Command, bench: Bench, log: Path
) -> None:
    target = command_image("python3", "-c", MANY_THREADS)
    error = bench(target, "-o", log, "--pids-limit", "20").fails(10)
    assert "--pids-limit" in error
    assert "can't start new thread" in error


@on_both_engines
def test_the_record_names_the_image_and_the_engine(
    engine: DockerClient, metronome_image: Metronome, bench: Bench, log: Path
) -> None:
    image = metronome_image("")
    bench(image, "-o", log).succeeds()
    target = read_record(log)["target"]
    assert target["target"] == target["image_id"] == image
    assert target["image_digests"] == []
    assert target["command"] == ["--batch-size", "32"]
    assert target["engine"].split()[-1] == engine.version()["Components"][0]["Version"]


def test_the_volumes_of_a_container_go_with_it(
    engine: DockerClient, build_image: BuildImage, bench: Bench
) -> None:
    command = json.dumps(["sh", "-c", "cat; sleep 1"])
    image = build_image(f"FROM {BASE}\nVOLUME /scratch\nENTRYPOINT {command}\n")
    with bench.start(image) as run:
        (mount,) = container_of(engine, run).attrs["Mounts"]
        run.finish().succeeds()
    with pytest.raises(NotFound):
        engine.volumes.get(mount["Name"])


def test_a_container_that_ends_at_once_is_measured_too(
    command_image: Command, bench: Bench, log: Path
) -> None:
    finished = bench(command_image("echo", "{}"), "-o", log, "--raw-output").succeeds()
    (warning,) = finished.warnings
    assert warning.startswith("1 prediction for 100 records")
    assert 0 <= read_record(log)["run_time"] < 5
    assert len(read_log(log)) == 2


@pytest.mark.parametrize("how", ["DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST", "use"])
def test_the_engine_is_the_one_that_was_chosen(
    how: str, metronome_image: Metronome, bench: Bench, tmp_path: Path
) -> None:
    env = {"DOCKER_CONFIG": str(tmp_path), "DOCKER_HOST": ""}
    with SlowEngine(tmp_path, "/containers/create", delay=0) as engine:
        docker_context("create", "here", "--docker", f"host={engine.address}", **env)
        if how == "use":
            docker_context("use", "here", **env)
        else:
            env[how] = "here" if how == "DOCKER_CONTEXT" else engine.address
        bench(metronome_image(""), env=env).succeeds()
        assert engine.asked.is_set()


def docker_context(*words: str, **env: str) -> None:
    command = ["docker", "context", *words]
    subprocess.run(command, check=True, env={**os.environ, **env}, stdout=subprocess.DEVNULL)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("never", "There is no image localhost:1/nothing:1 on this machine"),
        ("missing", "The image localhost:1/nothing:1 cannot be pulled"),
        ("always", "localhost:1/nothing:1"),
    ],
)
def test_an_image_that_cannot_be_had_is_told(
    policy: str, reason: str, bench: Bench, log: Path
) -> None:
    error = bench("localhost:1/nothing:1", "-o", log, "--pull", policy).fails(4)
    assert reason in error
    assert not log.exists()


@pytest.mark.usefixtures("engine")
def test_a_name_that_no_image_can_have_is_told(bench: Bench, log: Path) -> None:
    assert "Model" in bench("Model", "-o", log).fails(4)


@on_both_engines
def test_an_image_with_a_bad_command_is_told(
    command_image: Command, bench: Bench, log: Path
) -> None:
    error = bench(command_image("/nosuch"), "-o", log).fails(10)
    assert "/nosuch" in error
    assert "ENTRYPOINT" in error
    assert read_failed_record(log)["started"] is None


@on_both_engines
def test_a_limit_that_the_engine_refuses_is_told(
    metronome_image: Metronome, bench: Bench, log: Path
) -> None:
    assert "memory" in bench(metronome_image(""), "-o", log, "--memory", "1k").fails(4).lower()
