"""The command `plot`."""

from __future__ import annotations

from pathlib import Path

import click

from morocco.util.params import PATH, print_text, warn


@click.command()
@click.argument("paths", nargs=-1, type=PATH, metavar="PATH...")
@click.argument("image", type=PATH, metavar="IMAGE.png|svg|pdf")
@click.option("--force", is_flag=True, help="Replace existing images.")
def plot(paths: tuple[Path, ...], image: Path, *, force: bool) -> None:
    """Draw CPU, RAM, GPU use and GPU RAM of the runs over time.

    Several tasks need {task} in the name of the image, several models {model}.

    \b
    morocco plot logs 'plots/{task}.png'
    """
    from morocco.charts.timeline import plot as draw
    from morocco.logs.discovery import collect_logs

    if not paths:
        raise click.UsageError("Name the logs and then the image: morocco plot logs plot.png")
    collection = collect_logs(paths, any_name=True)
    warn(*collection.remarks)
    for path in draw(collection, image, replace=force):
        print_text(path)
