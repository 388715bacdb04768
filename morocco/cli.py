"""The commands: each parses, calls once into the core, and prints what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from morocco import __version__
from morocco.params import Duration, Size, Variable

if TYPE_CHECKING:
    from morocco.stats import Stats

_PATH = click.Path(path_type=Path)
_CONTAINER_ONLY = ("pull", "network", "memory", "cpus", "shm_size")


@click.group(
    context_settings={
        "auto_envvar_prefix": "MOROCCO",
        "help_option_names": ["-h", "--help"],
        "show_default": True,
    }
)
@click.version_option(__version__, message="morocco %(version)s")
def cli() -> None:
    """Measure language models in containers: speed, start-up time, CPU, RAM and GPU memory.

    Every option can also be set by an environment variable: --input-size of `bench` is
    MOROCCO_BENCH_INPUT_SIZE.
    """


def _complete_task(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    from morocco.tasks import TASKS

    return [name for name in TASKS if name.startswith(typed)]


@cli.command()
@click.argument("target")
@click.argument("data_dir", type=_PATH)
@click.argument("task", shell_complete=_complete_task)
@click.option("--input-size", type=click.IntRange(min=1), default=10_000, help="Records to feed.")
@click.option("--batch-size", type=click.IntRange(min=1), default=128, help="Told to the model.")
@click.option(
    "-o", "--output", type=_PATH, help="The log; without it, samples go to stdout.", metavar="PATH"
)
@click.option("--force", is_flag=True, help="Replace what has the same name.")
@click.option("--predictions", type=_PATH, metavar="PATH", help="Keep the predictions here.")
@click.option("--gpus", default="auto", metavar="auto|all|none|0,1", help="GPUs of the target.")
@click.option("--rate", type=click.FloatRange(0.1, 50), default=3.0, help="Samples a second.")
@click.option("--timeout", type=Duration(), help="End a run that takes longer: 90s, 30m, 2h.")
@click.option(
    "--pull",
    type=click.Choice(["missing", "always", "never"]),
    default="missing",
    help="When to fetch the image.",
)
@click.option("--network", default="none", help="Network of the container, as Docker names it.")
@click.option("--memory", type=Size(), help="Limit the container's RAM: 512m, 8g.")
@click.option("--cpus", type=click.FloatRange(min=0.01), help="Limit the container's CPU cores.")
@click.option("--shm-size", type=Size(), default="1g", help="Shared memory of the container.")
@click.option("-e", "--env", type=Variable(), multiple=True, help="Variable for the target.")
@click.option("-q", "--quiet", is_flag=True, help="No live line and no summary.")
@click.pass_context
def bench(ctx: click.Context, /, **options: Any) -> None:
    """Measure TARGET on the records of TASK and write its log.

    TARGET is an image (russiannlp/rubert-parus) or a bare process ('exec:python infer.py'). TASK
    is one of the nine of Russian SuperGLUE, or any name for which DATA_DIR holds
    TASK/val.jsonl or TASK.jsonl.

    \b
    morocco bench russiannlp/rubert-parus data/public parus --input-size 2000 --batch-size 32 \\
      -o logs/parus/2000_32_01.jsonl
    """
    from morocco.command import BenchOptions, bench_command

    _refuse_container_options(ctx, options["target"])
    bench_command(BenchOptions(**options))


def _refuse_container_options(ctx: click.Context, target: str) -> None:
    """A limit that would be ignored silently gives a wrong idea of what was measured."""
    from morocco.target import is_process

    if not is_process(target):
        return
    for name in _CONTAINER_ONLY:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            flag = name.replace("_", "-")
            raise click.UsageError(f"--{flag} is for containers; an exec: target runs as it is.")


@cli.command()
@click.argument("paths", nargs=-1, required=True, type=_PATH, metavar="PATH...")
@click.option("--format", "form", type=click.Choice(["jsonl", "table", "csv"]), default="jsonl")
@click.option(
    "--clock",
    type=click.Choice(["log", "gpu"]),
    default="log",
    help="gpu: count from the first GPU reading, for logs of the first MOROCCO tool.",
)
def stats(paths: tuple[Path, ...], form: Any, clock: Any) -> None:
    """Estimate init time, speed and GPU RAM from logs.

    PATH is a log, a folder of logs or a .zip.

    \b
    morocco stats logs --format table
    """
    from morocco.collect import collect_logs
    from morocco.stats import IncompleteStats, estimate

    collection = collect_logs(paths)
    _warn(*collection.remarks)
    try:
        result = estimate(collection, clock)
    except IncompleteStats as error:
        _print_estimates(error.stats, form)
        raise
    _print_estimates(result, form)


def _print_estimates(stats: Stats, form: Any) -> None:
    from morocco.tables import render

    _warn(*stats.warnings)
    if stats.estimates:
        click.echo(render(stats, form), nl=False)


@cli.command()
@click.argument("paths", nargs=-1, required=True, type=_PATH, metavar="PATH...")
@click.argument("image", type=_PATH, metavar="IMAGE.png|svg|pdf")
def plot(paths: tuple[Path, ...], image: Path) -> None:
    """Draw CPU, RAM, GPU use and GPU RAM of the runs over time.

    Several tasks need {task} in the name of the image, several models {model}.

    \b
    morocco plot logs 'plots/{task}.png'
    """
    from morocco.collect import collect_logs
    from morocco.plot import plot as draw

    collection = collect_logs(paths)
    _warn(*collection.remarks)
    for path in draw(collection, image):
        click.echo(path)


def _warn(*messages: str) -> None:
    for message in messages:
        click.echo(f"morocco: warning: {message}", err=True)
