"""Images for the benchmark, built on the engine and removed again."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker

_METRONOME = Path(__file__).parents[1] / "helpers" / "metronome"


@contextmanager
def build_image(arguments: str) -> Iterator[str]:
    """Yield the name of a metronome image with these arguments baked in."""
    with _build(path=str(_METRONOME), buildargs={"ARGS": arguments}) as image:
        yield image


@contextmanager
def build_toy_image(script: Path, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the name of an image that runs a Python script with these arguments."""
    command = ["python3", "-c", script.read_text(), *arguments]
    dockerfile = f"FROM python:3.11-slim\nENTRYPOINT {json.dumps(command)}\n"
    with _build(fileobj=io.BytesIO(dockerfile.encode())) as image:
        yield image


@contextmanager
def _build(**source: Any) -> Iterator[str]:
    client = docker.from_env()
    image, _ = client.images.build(**source, rm=True)
    try:
        yield str(image.id)
    finally:
        client.images.remove(str(image.id), force=True)
        client.close()
