"""The shell completes the images of the engine."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from conftest import Metronome
from docker import DockerClient

from command_line import complete


@pytest.fixture
def name(docker_engine: DockerClient, metronome_image: Metronome) -> Iterator[str]:
    """Tag an image for two tasks, and once for none; return what the three names begin with."""
    prefix = f"completion-{uuid.uuid4().hex}"
    image = docker_engine.images.get(metronome_image("--say completion"))  # it goes with its tags
    tags = [f"{prefix}-parus", f"{prefix}-terra:v2", f"{prefix}-parushin"]
    for tag in tags:
        image.tag(tag)
    yield prefix
    for tag in tags:
        docker_engine.images.remove(tag)


def test_bench_is_offered_images_and_a_suite_models(name: str) -> None:
    images = [f"{name}-parus", f"{name}-parushin", f"{name}-terra:v2"]
    assert complete(f"morocco bench {name}", word=2) == images
    for command in ("suite", "doctor"):
        models = [f"{name}-{{task}}", f"{name}-{{task}}:v2"]
        assert complete(f"morocco {command} {name}", word=2) == models


def test_without_an_engine_there_are_still_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nothing.sock")
    assert complete("morocco bench ", word=2) == ["exec:"]
