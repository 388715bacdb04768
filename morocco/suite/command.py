"""The command `suite`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from morocco.bench.options import refuse_container_options, shaping_options
from morocco.targets.options import build_run_options
from morocco.util.params import PATH, Names

if TYPE_CHECKING:
    from morocco.suite.options import Config

_SAID = (click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT)


def _read_config(ctx: click.Context, _param: click.Parameter, path: Path | None) -> Config | None:
    """Read the file before all other options, which it gives their defaults."""
    if path is None:
        return None
    from morocco.suite.options import read_config

    settable = {param.name for param in ctx.command.params} - {"config", "dry_run", "models"}
    config = read_config(path, {name for name in settable if name})
    ctx.default_map = dict(config.options)
    return config


@click.command()
@click.argument("target", required=False)
@click.argument("data_dir", type=PATH, required=False)
@click.option(
    "--config",
    type=PATH,
    is_eager=True,
    callback=_read_config,
    metavar="SUITE.toml",
    help="Several models, sizes of their own, any option; the command line goes over it.",
)
@click.option("--tasks", type=Names(), help="Instead of the nine of Russian SuperGLUE.")
@click.option("--models", type=Names(), help="Only these of the file.")
@click.option("--input-size", type=click.IntRange(min=1), default=2000, help="Of the long runs.")
@click.option("--batch-size", type=click.IntRange(min=1), default=32, help="Of the long runs.")
@click.option("--repeats", type=click.IntRange(min=1), default=5, help="Runs of each size.")
@click.option("--logs", type=PATH, default=Path("logs"), metavar="DIR", help="Where logs go.")
@click.option("--retries", type=click.IntRange(min=0), default=1, help="Of a run that fails.")
@click.option("--force", is_flag=True, help="Measure what is done once more, and replace it.")
@click.option("--dry-run", is_flag=True, help="Only print the plan.")
@click.option("--parallel", is_flag=True, help="One run on each GPU, with a share of the machine.")
@click.option("--cluster", metavar="ADDRESS", help="The scheduler of a Dask cluster.")
@shaping_options
@click.option("-q", "--quiet", is_flag=True, help="Nothing but warnings and failures.")
@click.pass_context
def suite(ctx: click.Context, /, **options: Any) -> None:
    """Measure a model on all tasks: TARGET holds {task}, as russiannlp/rubert-{task} does.

    Runs that are done are not done again, so the same command goes on after whatever stopped it.
    One run at a time, on one GPU, unless told otherwise.

    \b
    morocco suite 'russiannlp/rubert-{task}' data/public --dry-run
    """
    from morocco.suite.options import put_together
    from morocco.suite.session import plan_command, suite_command

    said = {name for name in options if ctx.get_parameter_source(name) in _SAID}
    if "target" in said and "data_dir" not in said and options["config"]:
        _take_lone_argument(options)
    for name in ("target", "data_dir"):
        if options[name] is None and not (name == "target" and options["config"]):
            raise click.UsageError(f"Missing argument '{name.upper()}'.")
    dry_run = options.pop("dry_run")
    asked = put_together(options, said, build_run_options(options))
    for model in asked.models:
        refuse_container_options(ctx, model.target)
    if dry_run:
        click.echo(plan_command(asked), nl=False)
    else:
        suite_command(asked)


def _take_lone_argument(options: dict[str, Any]) -> None:
    """With a file, a lone argument that is a folder is the data: no image is called so."""
    if Path(options["target"]).is_dir():
        lone, told = options["target"], options["config"].options.get("target")
        options |= {"data_dir": Path(lone), "target": told}
