"""The commands: each parses, calls once into the core, and prints what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from morocco import __version__
from morocco.params import Names, shaping_options, take_run_options
from morocco.units import plural

if TYPE_CHECKING:
    from morocco.config import Config
    from morocco.findings import Report
    from morocco.scores import Score, Scores
    from morocco.stats import Stats

_PATH = click.Path(path_type=Path)
_SAID = (click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT)
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
@shaping_options
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
    bench_command(BenchOptions(run=take_run_options(options), **options))


def _read_config(ctx: click.Context, _param: click.Parameter, path: Path | None) -> Config | None:
    """Read the file before all other options, which it gives their defaults."""
    if path is None:
        return None
    from morocco.config import read_config

    settable = {param.name for param in ctx.command.params} - {"config", "dry_run", "models"}
    config = read_config(path, {name for name in settable if name})
    ctx.default_map = dict(config.options)
    return config


@cli.command()
@click.argument("target", required=False)
@click.argument("data_dir", type=_PATH, required=False)
@click.option(
    "--config",
    type=_PATH,
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
@click.option("--logs", type=_PATH, default=Path("logs"), metavar="DIR", help="Where logs go.")
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
    from morocco.suite_command import plan_command, suite_command
    from morocco.suite_options import put_together

    said = {name for name in options if ctx.get_parameter_source(name) in _SAID}
    if "target" in said and "data_dir" not in said and options["config"]:
        _take_lone_argument(options)
    for name in ("target", "data_dir"):
        if options[name] is None and not (name == "target" and options["config"]):
            raise click.UsageError(f"Missing argument '{name.upper()}'.")
    dry_run = options.pop("dry_run")
    asked = put_together(options, said, take_run_options(options))
    for model in asked.models:
        _refuse_container_options(ctx, model.target)
    if dry_run:
        click.echo(plan_command(asked), nl=False)
    else:
        suite_command(asked)


def _take_lone_argument(options: dict[str, Any]) -> None:
    """With a file, a lone argument that is a folder is the data: no image is called so."""
    if Path(options["target"]).is_dir():
        lone, told = options["target"], options["config"].options.get("target")
        options |= {"data_dir": Path(lone), "target": told}


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
@click.option(
    "--profile",
    type=_PATH,
    metavar="FILE.toml",
    help="Another suite than Russian SuperGLUE.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def check(ctx: click.Context, paths: tuple[Path, ...], profile: Path | None, form: Any) -> None:
    """Tell whether logs make a submission that counts: VALID, or INVALID and exit code 1.

    PATH is a folder of logs, a .zip or a log.

    \b
    morocco check logs.zip
    """
    from morocco.report_text import render

    report = _judge(paths, profile)
    click.echo(render(report, form), nl=False)
    ctx.exit(0 if report.valid else 1)


def _judge(paths: tuple[Path, ...], profile: Path | None) -> Report:
    from morocco.check import check as judge
    from morocco.profile import RUSSIAN_SUPERGLUE, read_profile
    from morocco.submission import load_submission

    suite = read_profile(profile) if profile else RUSSIAN_SUPERGLUE
    return judge(load_submission(paths), suite)


@cli.command()
@click.argument("paths", nargs=-1, required=True, type=_PATH, metavar="PATH...")
@click.option(
    "-o", "--output", type=_PATH, required=True, help="The zip to write.", metavar="LOGS.zip"
)
@click.option("--no-check", is_flag=True, help="Pack what check calls INVALID, too.")
@click.option("--force", is_flag=True, help="Replace a zip of the same name.")
@click.option("--profile", type=_PATH, metavar="FILE.toml", help="As check takes it.")
def pack(
    paths: tuple[Path, ...], output: Path, no_check: bool, force: bool, profile: Path | None
) -> None:
    """Check logs, then pack them and their records into a zip to submit, and nothing else.

    PATH is a folder of logs, or a log. The same logs make the same zip, to the byte.

    \b
    morocco pack logs -o logs.zip
    """
    from morocco.pack import check_output, pack_logs

    check_output(output, replace=force)
    if not no_check:
        _require_valid(paths, profile)
    packed = pack_logs(paths, output)
    _warn(*packed.remarks)
    click.echo(f"{plural(packed.logs, 'log')}, {plural(packed.records, 'record')}", err=True)
    click.echo(output)


def _require_valid(paths: tuple[Path, ...], profile: Path | None) -> None:
    from morocco.errors import InvalidSubmission
    from morocco.report_text import render_text

    report = _judge(paths, profile)
    click.echo(render_text(report, brief=True), err=True, nl=False)
    if not report.valid:
        raise InvalidSubmission(
            "Nothing was packed. Mend what says NO above, or pack it as it is with --no-check."
        )


def _complete_names(
    ctx: click.Context, param: click.Parameter, typed: str
) -> list[click.shell_completion.CompletionItem]:
    """Offer tasks for the first name, and files for all."""
    from click.shell_completion import CompletionItem

    tasks = [] if ctx.params.get("names") else _complete_task(ctx, param, typed)
    return [*map(CompletionItem, tasks), CompletionItem(typed, type="file")]


@cli.command()
@click.argument(
    "names", nargs=-1, metavar="[TASK] PREDICTIONS GOLD", shell_complete=_complete_names
)
@click.option(
    "--missing",
    type=click.Choice(["error", "wrong"]),
    default="error",
    help="What a label without a prediction is.",
)
@click.option("--format", "form", type=click.Choice(["json", "table"]), default="json")
def score(names: tuple[str, ...], missing: Any, form: Any) -> None:
    """Score PREDICTIONS of TASK against GOLD, or a folder of predictions against a folder of data.

    PREDICTIONS is what `bench --predictions` keeps, GOLD a file with the labels or the data folder.
    A folder of predictions holds parus.jsonl or PARus.jsonl, and so on.

    \b
    morocco score parus predictions/parus.jsonl data/public
    morocco score predictions data/public --format table
    """
    from morocco.score import score_folder, score_task
    from morocco.score_text import render

    if len(names) not in (2, 3):
        raise click.UsageError("Give TASK PREDICTIONS GOLD, or PREDICTIONS_DIR GOLD_DIR.")
    *task, predictions, gold = names
    paths = Path(predictions), Path(gold)
    result: Score | Scores = (
        score_task(task[0], *paths, missing) if task else score_folder(*paths, missing)
    )
    _warn(*result.warnings)
    click.echo(render(result, form), nl=False)


@cli.command()
@click.argument("paths", nargs=-1, type=_PATH, metavar="PATH...")
@click.argument("image", type=_PATH, metavar="IMAGE.png|svg|pdf")
def plot(paths: tuple[Path, ...], image: Path) -> None:
    """Draw CPU, RAM, GPU use and GPU RAM of the runs over time.

    Several tasks need {task} in the name of the image, several models {model}.

    \b
    morocco plot logs 'plots/{task}.png'
    """
    from morocco.collect import collect_logs
    from morocco.plot import plot as draw

    if not paths:
        raise click.UsageError("Name the logs and then the image: morocco plot logs plot.png")
    collection = collect_logs(paths)
    _warn(*collection.remarks)
    for path in draw(collection, image):
        click.echo(path)


@cli.command()
@click.argument("paths", nargs=-1, required=True, type=_PATH, metavar="MODEL_LOGS...")
@click.option(
    "-o",
    "--output",
    type=_PATH,
    multiple=True,
    metavar="PATH",
    help="Instead of tables on stdout: .html, .md, .csv, .json, .png or .svg. May be repeated.",
)
@click.option("--name", multiple=True, metavar="[FOLDER=]NAME", help="What to call a model.")
@click.option("--scores", multiple=True, metavar="[MODEL=]FILE", help="What `score` printed.")
@click.option("--baseline", metavar="MODEL|FILE", help="Compare all others with it.")
@click.option("--save-baseline", type=_PATH, metavar="FILE", help="Keep a model to compare with.")
@click.option(
    "--without",
    type=Names(),
    default="rucos,muserc",
    help="Tasks whose speed is of another scale, left out of its mean; or none.",
)
@click.option("--weights", type=_PATH, metavar="FILE.toml", help="Of the tasks: parus = 2.")
@click.option("--price", type=click.FloatRange(min=0, min_open=True), help="Of an hour.")
@click.option("--by", type=click.Choice(["gpu"]), help="Compare the GPUs, too.")
@click.option(
    "--clock", type=click.Choice(["log", "gpu"]), default="log", help="As stats takes it."
)
def report(**options: Any) -> None:
    """Compare models: speed, start-up, memory, energy and price over their tasks.

    MODEL_LOGS is a folder of one model's logs, a folder of several such folders, or a .zip.

    \b
    morocco report logs/rubert logs/rugpt3-small --baseline rubert
    """
    from morocco.report_command import ReportOptions, report_command
    from morocco.report_layout import render_text

    by_gpu = options.pop("by") == "gpu"
    result = report_command(ReportOptions(by_gpu=by_gpu, **options))
    _warn(*result.warnings)
    if options["output"]:
        click.echo("\n".join(map(str, options["output"])))
    else:
        click.echo(render_text(result), nl=False)


def _warn(*messages: str) -> None:
    for message in messages:
        click.echo(f"morocco: warning: {message}", err=True)
