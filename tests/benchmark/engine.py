"""Images for the benchmark, built on the engine and removed again."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import docker

from engines import copy_image

_METRONOME = Path(__file__).parents[1] / "helpers" / "metronome"


@contextmanager
def build_image(arguments: str, address: str | None = None) -> Iterator[str]:
    """Yield the name of a metronome image with these arguments, on Podman at an address."""
    source = {"path": str(_METRONOME), "buildargs": {"ARGS": arguments}}
    if address is None:
        with _build(docker.from_env(), **source) as image:
            yield image
        return
    with closing(docker.from_env()) as client, closing(docker.DockerClient(address)) as podman:
        copy_image("python:3.11-slim", client, podman)
    # Podman's cache takes no notice of build arguments.
    with _build(docker.DockerClient(address), nocache=True, **source) as image:
        yield image


@contextmanager
def build_toy_image(script: Path, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the name of an image that runs a Python script with these arguments."""
    command = ["python3", "-c", script.read_text(), *arguments]
    dockerfile = f"FROM python:3.11-slim\nENTRYPOINT {json.dumps(command)}\n"
    with _build(docker.from_env(), fileobj=io.BytesIO(dockerfile.encode())) as image:
        yield image


@contextmanager
def _build(client: docker.DockerClient, **source: Any) -> Iterator[str]:
    image, _ = client.images.build(**source, rm=True)
    try:
        yield str(image.id)
    finally:
        client.images.remove(str(image.id), force=True)
        client.close()
