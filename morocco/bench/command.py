"""The command `bench`, and the options that it shares with `suite`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from morocco.errors import OutputError
from morocco.targets.completion import complete_image
from morocco.targets.options import CONTAINER_OPTIONS, MAX_PIDS, OOM_SCORE, build_run_options
from morocco.targets.target import is_process
from morocco.tasks import complete_task
from morocco.util.params import (
    PATH,
    Duration,
    Limit,
    MemoryLimit,
    MemorySize,
    Number,
    TargetName,
    Variable,
)

_Command = TypeVar("_Command", bound=Callable[..., Any])
_SHAPING = (
    click.option(
        "--gpus",
        default="auto",
        metavar="auto|all|none|0,1",
        help="GPUs for the target; auto: all there are, in a suite the first.",
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
    click.option(
        "--memory",
        type=MemoryLimit(),
        help="Limit the container's RAM: 512m, 8g, none; by default somewhat below the machine's.",
    ),
    click.option(
        "--cpus", type=click.FloatRange(min=0.01), help="Limit the container's CPU cores."
    ),
    click.option(
        "--shm-size", type=MemorySize(), default="1g", help="Shared memory of the container."
    ),
    click.option(
        "--read-only", is_flag=True, help="Let the container write to memory alone: /tmp, home."
    ),
    click.option(
        "--pids-limit",
        type=Limit(),
        default=MAX_PIDS,
        help="Limit the container's processes and threads; or none.",
    ),
    click.option(
        "--cap-add",
        multiple=True,
        metavar="NAME",
        help="Give the container a capability that it lacks, such as SETUID.",
    ),
    click.option(
        "--oom-score-adj",
        type=click.IntRange(-1000, 1000),
        default=OOM_SCORE,
        help="The higher, the sooner the kernel ends the target where memory runs out.",
    ),
    click.option("--raw-output", is_flag=True, help="Do not check what the target prints."),
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


@click.command()
@click.argument("target", type=TargetName(), shell_complete=complete_image)
@click.argument("data_dir", type=PATH)
@click.argument("task", shell_complete=complete_task)
@click.option("--input-size", type=click.IntRange(min=1), default=10_000, help="Records to feed.")
@click.option("--batch-size", type=click.IntRange(min=1), default=128, help="Passed to the model.")
@click.option(
    "-o", "--output", type=PATH, metavar="PATH", help="The log; - for stdout, as in a pipe."
)
@click.option("--force", is_flag=True, help="Replace files of the same name.")
@click.option("--predictions", type=PATH, metavar="PATH", help="Keep the predictions here.")
@shaping_options
@click.option("-q", "--quiet", is_flag=True, help="No live line and no summary.")
@click.pass_context
def bench(
    ctx: click.Context, /, target: str, output: Path | None, *, quiet: bool, **options: Any
) -> None:
    """Measure TARGET on the records of TASK and write its log.

    TARGET is an image (russiannlp/rubert-parus) or a bare process ('exec:python infer.py'). TASK
    is one of the nine of Russian SuperGLUE, or any name for which DATA_DIR holds
    TASK/val.jsonl or TASK.jsonl.

    \b
    morocco bench russiannlp/rubert-parus data/public parus --input-size 2000 --batch-size 32 \\
      -o logs/parus/2000_32_01.jsonl
    """
    from morocco.bench.display import RunDisplay, format_summary, is_terminal
    from morocco.bench.run import measure

    refuse_container_options(ctx, target)
    on_terminal = is_terminal(sys.stdout)
    printed = output == Path("-") or (output is None and not on_terminal)
    if printed and sys.stdout is None:
        raise OutputError("There is no stdout to write the samples to; use -o.")
    samples: Path | TextIO = sys.stdout if printed else output or Path(os.devnull)
    live = is_terminal(sys.stderr) and not (printed and on_terminal)
    run_options = build_run_options(options)
    with RunDisplay(live=live, quiet=quiet) as display:
        record = measure(
            target,
            output=samples,
            options=run_options,
            observer=display,
            on_pull=display.pull,
            catch_signals=True,
            **options,
        )
        display.say(format_summary(record, samples))
