"""From the TARGET of the command line to something that can be measured."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress

from morocco.errors import DataError, EngineError
from morocco.hardware.gpu import Gpus
from morocco.targets.options import RunOptions, parse_env
from morocco.targets.patience import OnWait
from morocco.targets.target import EXEC_PREFIX, OnPull, Target, check_target, is_process
from morocco.util.units import plural


def make_target(
    spec: str,
    batch_size: int,
    options: RunOptions,
    gpus: Gpus,
    on_pull: OnPull,
    on_wait: OnWait = lambda _: None,
) -> Target:
    """Return a container or a bare process, not started yet.

    `on_pull` follows the pull of an image; `on_wait` is told of what is waited for long.

    Raises TargetError for a malformed command, DataError for what cannot be an image name.
    """
    arguments = ["--batch-size", str(batch_size)]
    if is_process(spec):
        return _make_process(spec, arguments, options, gpus)
    from morocco.targets.container import ContainerTarget

    check_image_name(spec)
    devices = [(info.index, info.uuid) for info in gpus.infos]
    return ContainerTarget(spec, arguments, options, devices, on_pull, on_wait)


def _make_process(spec: str, arguments: Sequence[str], options: RunOptions, gpus: Gpus) -> Target:
    """Return a process that sees only the selected GPUs if any were selected by name."""
    from morocco.targets.process import ProcessTarget

    visible = {}
    if options.gpus not in ("auto", "all"):
        uuids = ",".join(info.uuid for info in gpus.infos)
        visible = {"CUDA_VISIBLE_DEVICES": uuids, "NVIDIA_VISIBLE_DEVICES": uuids or "void"}
    inherited = {key: value for key, value in os.environ.items() if key not in options.unset}
    env = {**inherited, **visible, **parse_env(options.env)}
    command = spec.removeprefix(EXEC_PREFIX)
    return ProcessTarget(
        command, arguments, env, options.cores, options.suite, options.oom_score_adj
    )


def check_image_name(image: str) -> None:
    """Raise DataError for a TARGET that cannot be an image name."""
    check_target(image)
    if field := re.search(r"\{.*?\}", image):
        raise DataError(
            f"{image} cannot be an image name, for {field[0]} stands for nothing here. A suite "
            "puts the task's name in place of {task}; for a single run write it out."
        )
    if any(letter.isspace() for letter in image):
        raise DataError(
            f"{image!r} cannot be an image name. If it is a command, write 'exec:{image}'."
        )


def end_strays(targets: Iterable[str]) -> str | None:
    """End what killed `bench` commands left on this machine, and return a sentence about it.

    Their containers are looked for if one of the targets needs the engine. None if there was
    nothing.
    """
    from morocco.targets.process import kill_strays

    processes = kill_strays()
    containers = 0 if all(map(is_process, targets)) else _remove_containers()
    counts = {"process": processes, "container": containers}
    left = [plural(count, noun) for noun, count in counts.items() if count]
    if not left:
        return None
    return f"A killed `morocco bench` had left {' and '.join(left)} at work; ended."


def _remove_containers() -> int:
    from morocco.targets.engine import connect, remove_orphans

    with suppress(EngineError), closing(connect()) as client:  # told by what needs the engine
        return remove_orphans(client)
    return 0
