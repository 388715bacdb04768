"""Everything that `doctor` looks at, in order."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from morocco.doctor.finding import Finding, refuse
from morocco.doctor.gpus import look_at_gpus
from morocco.doctor.machine import (
    Watch,
    judge_clock,
    judge_disk,
    judge_governors,
    judge_load,
    judge_memory,
    judge_other_runs,
    judge_quota,
    judge_steal,
    watch_idle,
)
from morocco.doctor.noise import judge_noise, measure_noise
from morocco.errors import GpuError, MoroccoError, TargetError
from morocco.hardware.cgroup import read_quota
from morocco.hardware.gpu import Gpus
from morocco.hardware.info import GpuInfo, Load
from morocco.hardware.load import OtherRuns
from morocco.hardware.settings import read_clock_source, read_governors, read_memory
from morocco.targets.process import find_command
from morocco.targets.target import is_process
from morocco.util.units import Seconds

_IDLE: Seconds = 1
"""For which others are watched."""


def examine(targets: Sequence[str], logs: Path, gpus: str) -> Iterator[Finding]:
    """Look at this machine and at what is to be measured on it; takes at most ten seconds.

    Without `targets`, containers are meant. `logs` is the folder of the logs, which need not exist
    yet, `gpus` the choice of GPUs. Nothing that goes wrong is raised.
    """
    with OtherRuns(None, "doctor") as others:
        runs = others.find_new()
        yield judge_other_runs(runs)
        idle = watch_idle(_IDLE)
        yield judge_load(idle)
        yield judge_governors(read_governors(sorted(os.sched_getaffinity(0))))
        yield judge_clock(read_clock_source())
        yield judge_disk("disk", logs)
        yield from _look_at_commands([target for target in targets if is_process(target)])
        images = [target for target in targets if not is_process(target)]
        yield from _look_at_gpus_and_engine(images, gpus, has_images=bool(images) or not targets)
        yield from _look_under_load(runs, idle.load)


def _look_at_commands(commands: Sequence[str]) -> Iterator[Finding]:
    try:
        programs = {find_command(command) for command in commands}
    except TargetError as error:
        yield refuse("command", error)
        return
    if programs:
        yield Finding("command", "good", ", ".join(sorted(programs)))


def _look_at_gpus_and_engine(
    images: Sequence[str], choice: str, *, has_images: bool
) -> Iterator[Finding]:
    infos: tuple[GpuInfo, ...] = ()
    with ExitStack() as stack:  # the driver stays loaded while a container gets its GPUs
        try:
            gpus = stack.enter_context(Gpus.open(choice))
            infos = gpus.infos
            yield from look_at_gpus(gpus, choice)
        except GpuError as error:
            yield refuse("gpus", error)
        if has_images:
            from morocco.doctor.engine import look_at_engine

            try:
                yield from look_at_engine(images, infos)
            except (MoroccoError, OSError, LookupError, ValueError) as error:
                yield Finding("engine", "unknown", f"it cannot be looked at further: {error}")


def _look_under_load(runs: Sequence[str], idle: Load) -> Iterator[Finding]:
    """Keep the cores busy, unless that would disturb a run; look at what happens meanwhile."""
    cores, load = len(os.sched_getaffinity(0)), idle
    noise = Finding("noise", "unknown", "not tried, so as not to disturb the other run")
    if not runs:
        with Watch() as watch:
            noise = judge_noise(measure_noise(cores))
        load = watch.watched.load
    yield judge_steal(load)
    yield judge_quota(read_quota(), cores, os.cpu_count() or cores, load)
    yield judge_memory(read_memory(), load)
    yield noise
