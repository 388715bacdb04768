"""Images for the benchmark, built on the engine and removed again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker

_METRONOME = Path(__file__).parents[1] / "helpers" / "metronome"


@contextmanager
def build_image(arguments: str) -> Iterator[str]:
    """Yield the name of a metronome image with these arguments baked in."""
    client = docker.from_env()
    image, _ = client.images.build(path=str(_METRONOME), buildargs={"ARGS": arguments}, rm=True)
    try:
        yield str(image.id)
    finally:
        client.images.remove(str(image.id), force=True)
        client.close()
