"""`main.py docker-build` of the jiant example, and the images it builds, on a real engine."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from conftest import BASE
from docker import DockerClient

import jiant_models as jiant
from image import check_size
from records import ExampleError
from runs import Bench, read_record

NAME = f"morocco-tests-{uuid4().hex}"
CONFINED = ("--rm", "--interactive", "--network", "none", "--read-only", "--tmpfs", "/tmp")
HOLDS = """
answers.py batches.py main.py model/model.json model/terra/config.json
model/terra/head.safetensors model/terra/model.safetensors model/tokenizer.json models.py network.py
predictor.py records.py requirements.txt serving.py tasks.py tokens.py
"""


def run(*command: object, records: str = "", **environment: str) -> jiant.Completed:
    return subprocess.run(
        [*map(str, command)],
        input=records,
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, **environment},
    )


def docker_build(*arguments: object, **environment: str) -> jiant.Completed:
    return run(sys.executable, jiant.JIANT / "main.py", "docker-build", *arguments, **environment)


def docker_run(*arguments: str, records: str = "") -> list[str]:
    """Return the lines that a container prints; it has neither a network nor a disk to write on."""
    done = run("docker", "run", *CONFINED, *arguments, records=records)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def error_of(done: jiant.Completed) -> str:
    """Return the one line of a build that failed; what docker itself says stands before it."""
    *before, last = done.stderr.splitlines()
    assert done.returncode == 1
    assert not any(line.startswith(("main.py: ", "Traceback")) for line in before), done.stderr
    return last


def find_containers(engine: DockerClient, words: str) -> set[str]:
    """Return the containers whose command holds some words, whether they run or not."""
    containers = engine.containers.list(all=True, ignore_removed=True)
    return {str(c.id) for c in containers if words in " ".join(c.attrs["Config"]["Cmd"] or ())}


def image_of(task: str) -> str:
    return f"{NAME}-{task}"


@pytest.fixture(scope="module")
def out_dir() -> Path:
    """A tiny model that has learnt TERRa, and another task beside it."""
    jiant.trained("bert-tiny", "rcb")
    return jiant.trained("bert-tiny", "terra").out_dir


@pytest.fixture(scope="module")
def built(docker_engine: DockerClient, out_dir: Path) -> Iterator[dict[str, jiant.Completed]]:
    """What building the images of two tasks came to; their names are removed in the end.

    The layers that they share stay, for a gigabyte of libraries takes minutes to install.
    """
    try:
        yield {
            task: docker_build(out_dir, task, image_of(task), "--cpu")
            for task in ("terra", "lidirus")
        }
    finally:
        for image in docker_engine.images.list(filters={"reference": f"{NAME}-*"}):
            docker_engine.images.remove(str(image.id), force=True, noprune=True)


@pytest.mark.parametrize("task", ["terra", "lidirus"])
def test_a_build_tells_the_size_and_prints_nothing(
    task: str, built: dict[str, jiant.Completed]
) -> None:
    done = built[task]
    size = r"starts without a network; \d+\.\d\d GB, \d\.\d MB of them its own"
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(f"main.py: {image_of(task)} {size}", done.stderr.splitlines()[-1])
    assert done.stdout == ""


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("task", ["terra", "lidirus"])
def test_an_image_answers_with_the_weights_of_terra(task: str, out_dir: Path) -> None:
    records = jiant.validation_text(task)
    lines = docker_run(image_of(task), "--batch-size", "5", records=records)
    assert [json.loads(line) for line in lines] == jiant.predict(
        out_dir, task, jiant.validation_records(task)
    )


@pytest.mark.usefixtures("built")
def test_bench_measures_an_image(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "terra" / "200_32_01.jsonl"
    bench(image_of("terra"), "-o", log, task="terra", data=jiant.toys(), size=200).succeeds()
    record = read_record(log)
    assert (record["records_fed"], record["predictions"]["count"]) == (200, 200)
    assert record["exit_code"] == 0


@pytest.mark.usefixtures("built")
def test_an_image_holds_what_it_needs_for_a_user_who_cannot_change_it() -> None:
    command = "id --user --name; find /app /usr -writable -not -type l; cd /app; find * -type f"
    lines = docker_run("--entrypoint", "sh", image_of("lidirus"), "-c", command)
    assert lines[0] == "app"
    assert sorted(lines[1:]) == HOLDS.split()


@pytest.mark.usefixtures("built")
def test_the_images_of_a_model_share_all_layers_but_the_code(engine: DockerClient) -> None:
    images = [engine.images.get(image_of(task)) for task in ("terra", "lidirus")]
    terra, lidirus = (image.attrs["RootFS"]["Layers"] for image in images)
    assert terra[:-1] == lidirus[:-1]


@pytest.mark.usefixtures("engine")
def test_an_image_that_is_larger_than_its_files_is_told() -> None:
    with pytest.raises(ExampleError, match=f"{BASE} adds .* bytes for files of 1,000;"):
        check_size(BASE, 1000)


@pytest.mark.usefixtures("built")
def test_an_image_that_does_not_start_is_told_and_not_kept(
    out_dir: Path, tmp_path: Path, engine: DockerClient
) -> None:
    broken, image = shutil.copytree(out_dir, tmp_path / "broken"), image_of("broken")
    (broken / "terra" / "head.safetensors").write_bytes(b"")
    error = error_of(docker_build(broken, "terra", image, "--cpu"))
    assert f"{image} does not start: main.py: the weights in model/terra are broken" in error
    assert engine.images.list(image) == []


def test_a_base_without_pytorch_is_told_and_leaves_no_container(
    out_dir: Path, engine: DockerClient
) -> None:
    before = find_containers(engine, "give --cpu, or a base with PyTorch")
    done = docker_build(out_dir, "terra", image_of("bare"), "--base", BASE)
    assert error_of(done) == "main.py: docker build failed; see its output above"
    assert "give --cpu, or a base with PyTorch" in done.stdout + done.stderr
    assert find_containers(engine, "give --cpu, or a base with PyTorch") <= before


def test_a_build_without_weights_tells_how_to_train_them(tmp_path: Path) -> None:
    error = error_of(docker_build(tmp_path, "terra", "nothing"))
    assert "train it with: python main.py train MODEL" in error


def test_a_build_without_docker_is_told(out_dir: Path) -> None:
    error = error_of(docker_build(out_dir, "terra", "nothing", PATH=""))
    assert error == "main.py: the command `docker` is missing: install Docker"


@pytest.mark.usefixtures("engine")
def test_a_build_without_an_engine_is_told(out_dir: Path) -> None:
    error = error_of(docker_build(out_dir, "terra", "nothing", DOCKER_HOST="unix:///nothing"))
    assert error.startswith("main.py: the Docker engine does not answer: ")


@pytest.mark.usefixtures("engine")
def test_a_base_that_cannot_be_had_is_told(out_dir: Path) -> None:
    done = docker_build(out_dir, "terra", "nothing", "--base", "localhost:1/nothing")
    assert error_of(done) == "main.py: docker build failed; see its output above"
    assert "localhost:1" in done.stderr
