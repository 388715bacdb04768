"""The options that `bench` and `suite` share."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeVar

import click

from morocco.targets.options import CONTAINER_OPTIONS
from morocco.targets.target import is_process
from morocco.util.params import Duration, MemorySize, Number, Variable

_Command = TypeVar("_Command", bound=Callable[..., Any])
_SHAPING = (
    click.option(
        "--gpus", default="auto", metavar="auto|all|none|0,1", help="GPUs for the target."
    ),
    click.option("--rate", type=Number(0.1, 50), default=3.0, help="Samples per second."),
    click.option("--timeout", type=Duration(), help="Kill a run that takes longer: 90s, 30m, 2h."),
    click.option(
        "--pull",
        type=click.Choice(["missing", "always", "never"]),
        default="missing",
        help="When to pull the image.",
    ),
    click.option("--network", default="none", help="Network of the container."),
    click.option("--memory", type=MemorySize(), help="Limit the container's RAM: 512m, 8g."),
    click.option(
        "--cpus", type=click.FloatRange(min=0.01), help="Limit the container's CPU cores."
    ),
    click.option(
        "--shm-size", type=MemorySize(), default="1g", help="Shared memory of the container."
    ),
    click.option("-e", "--env", type=Variable(), multiple=True, help="Variable for the target."),
)


def shaping_options(command: _Command) -> _Command:
    """Add the options that shape a run to a command."""
    return reduce(lambda decorated, option: option(decorated), reversed(_SHAPING), command)


def refuse_container_options(ctx: click.Context, target: str) -> None:
    """Raise UsageError for an option that a bare process would silently ignore."""
    if not is_process(target):
        return
    for name in CONTAINER_OPTIONS:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            flag = name.replace("_", "-")
            raise click.UsageError(f"--{flag} is for containers; an exec: target runs as it is.")
