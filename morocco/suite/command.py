"""The command `suite`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from morocco.bench.command import refuse_container_options, shaping_options
from morocco.targets.completion import complete_model
from morocco.targets.options import build_run_options
from morocco.tasks import complete_tasks
from morocco.util.params import FILE, PATH, Names, TargetName, complete_names, print_text

if TYPE_CHECKING:
    from morocco.suite.options import SuiteFile

_EXPLICIT = (click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT)


def _read_file(ctx: click.Context, _param: click.Parameter, path: Path | None) -> SuiteFile | None:
    """Read the file before all other options are parsed, and let it set their defaults."""
    if path is None:
        return None
    from morocco.suite.options import read_suite_file

    settable = {param.name for param in ctx.command.params} - {"config", "dry_run", "models"}
    file = read_suite_file(path, {name for name in settable if name})
    ctx.default_map = dict(file.options)
    return file


def _complete_models(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete the last of several models of the file."""
    file: SuiteFile | None = ctx.params.get("config")
    return complete_names(file.models if file else (), typed)


@click.command()
@click.argument("target", type=TargetName(), required=False, shell_complete=complete_model)
@click.argument("data_dir", type=PATH, required=False)
@click.option(
    "--config",
    type=PATH,
    is_eager=True,
    callback=_read_file,
    metavar="SUITE.toml",
    help="Models, their sizes, and any option; the command line takes precedence.",
)
@click.option(
    "--tasks",
    type=Names(),
    shell_complete=complete_tasks,
    help="Instead of the nine of Russian SuperGLUE.",
)
@click.option(
    "--models",
    type=Names(),
    shell_complete=_complete_models,
    help="Only these models of the file.",
)
@click.option("--input-size", type=click.IntRange(min=1), default=2000, help="Of the long runs.")
@click.option("--batch-size", type=click.IntRange(min=1), default=32, help="Of the long runs.")
@click.option("--repeats", type=click.IntRange(min=1), default=5, help="Runs of each size.")
@click.option("--logs", type=PATH, default=Path("logs"), metavar="DIR", help="Folder of the logs.")
@click.option("--retries", type=click.IntRange(min=0), default=1, help="Of a run that fails.")
@click.option("--force", is_flag=True, help="Measure everything again and replace the logs.")
@click.option("--redo", type=Names(), help="Measure again: parus/1_1_03 and others.")
@click.option("--repair", is_flag=True, help="Measure again what `check` finds wrong, for a cause.")
@click.option(
    "--one-by-one",
    is_flag=True,
    help="Finish a model of the file before the next, instead of letting them take turns.",
)
@click.option("--dry-run", is_flag=True, help="Only print the plan.")
@click.option(
    "--no-doctor",
    is_flag=True,
    help="Do not look first whether this machine is fit to measure on; with --cluster, never done.",
)
@click.option("--parallel", is_flag=True, help="One run on each GPU, with a share of the machine.")
@click.option("--cluster", metavar="ADDRESS", help="The scheduler of a Dask cluster.")
@click.option("--tls-ca-file", type=FILE, help="Who signs the certificates of a tls:// cluster.")
@click.option("--tls-cert", type=FILE, help="A certificate for such a cluster.")
@click.option("--tls-key", type=FILE, help="The private key of that certificate.")
@shaping_options
@click.option("-q", "--quiet", is_flag=True, help="Print only warnings and failures.")
@click.pass_context
def suite(ctx: click.Context, /, **options: Any) -> None:
    """Measure a model on all tasks; TARGET contains {task}, as in russiannlp/rubert-{task}.

    Finished runs are not repeated, so after an interruption run the same command to continue.
    One run at a time, on one GPU, unless --parallel or --cluster is given.

    \b
    morocco suite 'russiannlp/rubert-{task}' data/public --dry-run
    """
    from morocco.suite.options import build_options
    from morocco.suite.run import plan_suite, run_suite

    explicit = {name for name in options if ctx.get_parameter_source(name) in _EXPLICIT}
    if "target" in explicit and "data_dir" not in explicit and options["config"]:
        _take_lone_argument(options)
    for name in ("target", "data_dir"):
        if options[name] is None and not (name == "target" and options["config"]):
            raise click.UsageError(f"Missing argument '{name.upper()}'.")
    dry_run = options.pop("dry_run")
    suite_options = build_options(options, explicit, build_run_options(options))
    for model in suite_options.models:
        refuse_container_options(ctx, model.target)
    if dry_run:
        print_text(plan_suite(suite_options), nl=False)
    else:
        run_suite(suite_options)


def _take_lone_argument(options: dict[str, Any]) -> None:
    """Take a lone argument for DATA_DIR if it is a folder; the file then names the target."""
    if Path(options["target"]).is_dir():
        target = options["config"].options.get("target")
        options |= {"data_dir": Path(options["target"]), "target": target}
