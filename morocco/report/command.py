"""The command `report`."""

from __future__ import annotations

from typing import Any

import click

from morocco.util.params import PATH, Names, warn


@click.command()
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="MODEL_LOGS...")
@click.option(
    "-o",
    "--output",
    type=PATH,
    multiple=True,
    metavar="PATH",
    help="Instead of tables on stdout: .html, .md, .csv, .json, .png or .svg. May be repeated.",
)
@click.option("--name", multiple=True, metavar="[FOLDER=]NAME", help="What to call a model.")
@click.option("--scores", multiple=True, metavar="[MODEL=]FILE", help="What `score` printed.")
@click.option("--baseline", metavar="MODEL|FILE", help="Compare all others with it.")
@click.option("--save-baseline", type=PATH, metavar="FILE", help="Keep a model to compare with.")
@click.option(
    "--without",
    type=Names(),
    default="rucos,muserc",
    help="Tasks whose speed is of another scale, left out of its mean; or none.",
)
@click.option("--weights", type=PATH, metavar="FILE.toml", help="Of the tasks: parus = 2.")
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
    from morocco.report.session import ReportOptions, report_command
    from morocco.report.text import render_text

    by_gpu = options.pop("by") == "gpu"
    result = report_command(ReportOptions(by_gpu=by_gpu, **options))
    warn(*result.warnings)
    if options["output"]:
        click.echo("\n".join(map(str, options["output"])))
    else:
        click.echo(render_text(result), nl=False)
