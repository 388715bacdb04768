"""The command `score`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from morocco.tasks import complete_task
from morocco.util.params import FILE, print_text, warn

if TYPE_CHECKING:
    from morocco.score.score import Score, Scores


def _complete_names(
    ctx: click.Context, param: click.Parameter, typed: str
) -> list[click.shell_completion.CompletionItem]:
    """Complete the first name to a task, and every name to a file."""
    from click.shell_completion import CompletionItem

    tasks = [] if ctx.params.get("names") else complete_task(ctx, param, typed)
    return [*map(CompletionItem, tasks), CompletionItem(typed, type="file")]


@click.command()
@click.argument(
    "names", nargs=-1, metavar="[TASK] PREDICTIONS GOLD", shell_complete=_complete_names
)
@click.option(
    "--missing",
    type=click.Choice(["error", "wrong"]),
    default="error",
    help="How a missing prediction counts.",
)
@click.option(
    "--profile",
    type=FILE,
    metavar="FILE.toml",
    help="The tasks, and how those of your own are scored.",
)
@click.option("--format", "form", type=click.Choice(["json", "table"]), default="json")
def score(names: tuple[str, ...], missing: Any, profile: Path | None, form: Any) -> None:
    """Score PREDICTIONS of TASK against GOLD, or a folder of predictions against a folder of data.

    PREDICTIONS is what `bench --predictions` keeps, GOLD a file with the labels or the data folder.
    A folder of predictions holds parus.jsonl or PARus.jsonl, and so on.

    \b
    morocco score parus predictions/parus.jsonl data/public
    morocco score predictions data/public --format table
    """
    from morocco.score.render import render
    from morocco.score.score import read_metrics, score_folder, score_task

    if len(names) not in (2, 3):
        raise click.UsageError("Give TASK PREDICTIONS GOLD, or PREDICTIONS_DIR GOLD_DIR.")
    *task, predictions, gold = names
    paths = Path(predictions), Path(gold)
    tasks = read_metrics(profile)
    result: Score | Scores = (
        score_task(task[0], *paths, missing, tasks)
        if task
        else score_folder(*paths, missing, tasks)
    )
    warn(*result.warnings)
    print_text(render(result, form), nl=False)
