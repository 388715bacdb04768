"""From the TARGET of the command line to something that can be measured."""

from __future__ import annotations

import os
from collections.abc import Sequence

from morocco.errors import DataError
from morocco.hardware.gpu import Gpus
from morocco.targets.options import RunOptions, parse_env
from morocco.targets.target import EXEC_PREFIX, OnPull, Target, is_process


def make_target(
    spec: str, batch_size: int, options: RunOptions, gpus: Gpus, on_pull: OnPull
) -> Target:
    """Return a container or a bare process that can be measured; neither is started yet.

    TargetError for a command that cannot be read, DataError for what is no name of an image.
    """
    arguments = ["--batch-size", str(batch_size)]
    if is_process(spec):
        return _make_process(spec, arguments, options, gpus)
    return _make_container(spec, arguments, options, gpus, on_pull)


def _make_process(spec: str, arguments: Sequence[str], options: RunOptions, gpus: Gpus) -> Target:
    """Return a process that sees the GPUs it was given, and no others where some were named."""
    from morocco.targets.process import ProcessTarget

    visible = {}
    if options.gpus not in ("auto", "all"):
        names = ",".join(info.uuid for info in gpus.infos)
        visible = {"CUDA_VISIBLE_DEVICES": names, "NVIDIA_VISIBLE_DEVICES": names or "void"}
    inherited = {key: value for key, value in os.environ.items() if key not in options.unset}
    env = {**inherited, **visible, **parse_env(options.env)}
    command = spec.removeprefix(EXEC_PREFIX)
    return ProcessTarget(command, arguments, env, options.cores, options.suite)


def _make_container(
    image: str, arguments: Sequence[str], options: RunOptions, gpus: Gpus, on_pull: OnPull
) -> Target:
    from morocco.targets.container import ContainerTarget

    refuse_no_image(image)
    given = [(info.index, info.uuid) for info in gpus.infos]
    return ContainerTarget(image, arguments, options, given, on_pull)


def refuse_no_image(image: str) -> None:
    """Raise DataError for a TARGET that cannot be the name of an image."""
    if any(letter.isspace() for letter in image):
        raise DataError(f"{image!r} is no name of an image. If it is a command: 'exec:{image}'.")
