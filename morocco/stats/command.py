"""The command `stats`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from morocco.util.params import PATH, print_text, warn

if TYPE_CHECKING:
    from morocco.logs.log import Log
    from morocco.stats.estimates import Stats
    from morocco.stats.grouping import Clock
    from morocco.stats.render import Format


@click.command()
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@click.option("--format", "form", type=click.Choice(["jsonl", "table", "csv"]), default="jsonl")
@click.option(
    "--clock",
    type=click.Choice(["log", "gpu"]),
    default="log",
    help="gpu: time runs from their first GPU reading, for logs of the first MOROCCO tool.",
)
def stats(paths: tuple[Path, ...], form: Format, clock: Clock) -> None:
    """Estimate init time, speed and GPU RAM from logs.

    PATH is a log, a folder of logs or a .zip. A log whose name says neither task nor size is
    summed up by itself.

    \b
    morocco stats logs --format table
    """
    from morocco.errors import DataError
    from morocco.logs.discovery import collect_logs
    from morocco.stats.estimates import IncompleteStats, estimate

    collection = collect_logs(paths, any_name=True)
    warn(*collection.remarks)
    if collection.single and collection.logs:
        name = collection.single[0].name
        raise DataError(f"{name} is not named like the other logs; give it in a call of its own.")
    if collection.single:
        _print_runs(collection.single, form)
        return
    try:
        result = estimate(collection, clock)
    except IncompleteStats as error:
        _print_estimates(error.stats, form)
        raise
    _print_estimates(result, form)


def _print_runs(logs: Sequence[Log], form: Format) -> None:
    from morocco.stats.render import render_runs
    from morocco.stats.single import summarise_run

    print_text(render_runs([summarise_run(log) for log in logs], form), nl=False)


def _print_estimates(stats: Stats, form: Format) -> None:
    from morocco.stats.render import render

    warn(*stats.warnings)
    if stats.estimates:
        print_text(render(stats, form), nl=False)
