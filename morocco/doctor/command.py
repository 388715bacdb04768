"""The command `doctor`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from morocco.targets.completion import complete_model
from morocco.util.params import PATH, TargetName, print_text

if TYPE_CHECKING:
    from morocco.doctor.finding import Format

_WIDEST = 100


@click.command()
@click.argument("target", type=TargetName(), required=False, shell_complete=complete_model)
@click.option(
    "--logs",
    type=PATH,
    default=Path("logs"),
    metavar="DIR",
    help="Folder of the logs, whose disk is looked at.",
)
@click.option(
    "--gpus", default="auto", metavar="auto|all|none|0,1", help="GPUs that are to be measured on."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def doctor(ctx: click.Context, target: str | None, logs: Path, gpus: str, form: Format) -> None:
    """Look whether this machine is fit to measure on; takes about eight seconds, no root.

    Looks at TARGET too, an image or 'exec:COMMAND' as for bench, in which {task} stands for each
    of the nine tasks. Nothing is pulled.

    One line for each thing: good, doubtful, bad, or unknown where this machine does not tell; then
    what was found, and what to do about it. The exit code is 1 if anything is bad.

    \b
    morocco doctor 'russiannlp/rubert-{task}'
    """
    from morocco.doctor.doctor import examine
    from morocco.doctor.finding import render, summarise
    from morocco.tasks import TASKS

    targets = dict.fromkeys(target.replace("{task}", task) for task in TASKS) if target else ()
    width = min(_WIDEST, shutil.get_terminal_size().columns)
    findings = []
    for finding in examine(list(targets), logs, gpus):
        print_text(render(finding, form, width))
        findings.append(finding)
    if form == "text":
        print_text(summarise(findings))
    ctx.exit(1 if any(finding.state == "bad" for finding in findings) else 0)
