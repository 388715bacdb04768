"""From the TARGET of the command line to something that can be measured."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from morocco.errors import DataError
from morocco.gpu import Gpus
from morocco.target import EXEC_PREFIX, OnPull, Target

if TYPE_CHECKING:
    from morocco.container import ContainerOptions


def make_process(
    spec: str, arguments: Sequence[str], env: Mapping[str, str], gpu_choice: str, gpus: Gpus
) -> Target:
    """Return a bare process that sees the GPUs it was given, and no others where some were named.

    TargetError for a command that cannot be read.
    """
    from morocco.process import ProcessTarget

    visible = {}
    if gpu_choice not in ("auto", "all"):
        names = ",".join(info.uuid for info in gpus.infos)
        visible = {"CUDA_VISIBLE_DEVICES": names, "NVIDIA_VISIBLE_DEVICES": names or "void"}
    return ProcessTarget(spec.removeprefix(EXEC_PREFIX), arguments, {**visible, **env})


def make_container(
    image: str, arguments: Sequence[str], options: ContainerOptions, gpus: Gpus, on_pull: OnPull
) -> Target:
    """Return a container of an image; the engine is not touched yet."""
    from morocco.container import ContainerTarget

    if any(letter.isspace() for letter in image):
        raise DataError(f"{image!r} is no name of an image. If it is a command: 'exec:{image}'.")
    given = [(info.index, info.uuid) for info in gpus.infos]
    return ContainerTarget(image, arguments, options, given, on_pull)


def parse_env(settings: Sequence[str]) -> dict[str, str]:
    """Return the variables of `KEY=VALUE` and `KEY`, which takes the value it has here.

    KeyError for one that is not set here.
    """
    env = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        env[key] = value if equals else os.environ[key]
    return env
