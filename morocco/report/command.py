"""The command `report`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from morocco.errors import DataError
from morocco.tasks import complete_tasks
from morocco.util.params import PATH, Names, print_text, warn
from morocco.util.units import plural

if TYPE_CHECKING:
    from morocco.logs.submission import Submission
    from morocco.report.model import Report
    from morocco.report.options import ReportOptions

_SUFFIXES = (".md", ".csv", ".json", ".html", ".png", ".svg")
"""Of the files that `_render` can make."""


@click.command()
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="MODEL_LOGS...")
@click.option(
    "-o",
    "--output",
    type=PATH,
    multiple=True,
    metavar="PATH",
    help="Write a file instead of stdout: .html, .md, .csv, .json, .png or .svg. Repeatable.",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--name", multiple=True, metavar="[FOLDER=]NAME", help="Rename a model.")
@click.option(
    "--scores", multiple=True, metavar="[MODEL=]FILE", help="The scores, as printed by `score`."
)
@click.option("--baseline", metavar="MODEL|FILE", help="Compare the models with this one.")
@click.option("--save-baseline", type=PATH, metavar="FILE", help="Save a model to compare with.")
@click.option(
    "--without",
    type=Names(),
    shell_complete=complete_tasks,
    default="rucos,muserc",
    help="Tasks left out of mean speeds, as theirs are on another scale; or none.",
)
@click.option("--weights", type=PATH, metavar="FILE.toml", help="Task weights: parus = 2.")
@click.option("--price", type=click.FloatRange(min=0, min_open=True), help="Price of an hour.")
@click.option("--by", type=click.Choice(["gpu"]), help="Also compare the GPUs.")
@click.option("--clock", type=click.Choice(["log", "gpu"]), default="log", help="As in `stats`.")
def report(**options: Any) -> None:
    """Compare models: speed, start-up, memory, energy and price over their tasks.

    MODEL_LOGS is a folder of one model's logs, a folder of several such folders, or a .zip.

    \b
    morocco report logs/rubert logs/rugpt3-small --baseline rubert
    """
    from morocco.report.options import ReportOptions
    from morocco.report.text import render_text
    from morocco.util.files import check_free, write_output

    force = options.pop("force")
    parsed = ReportOptions(**options)
    for path in parsed.output:
        if path.suffix.lower() not in _SUFFIXES:
            kinds = ", ".join(_SUFFIXES)
            raise DataError(
                f"Cannot write {path}: the name of a report must end in one of {kinds}."
            )
    if not force:
        check_free(*parsed.output, *filter(None, [parsed.save_baseline]))
    result = _build_report(parsed)
    for path in parsed.output:
        write_output(path, _render(result, path.suffix.lower()), "a file")
    warn(*result.warnings)
    if parsed.output:
        print_text("\n".join(map(str, parsed.output)))
    else:
        print_text(render_text(result), nl=False)


def _build_report(options: ReportOptions) -> Report:
    """Build the report, and save the baseline where one was asked for."""
    from morocco.logs.submission import load_submission
    from morocco.report.baseline import write_baseline
    from morocco.report.build import build_baseline, build_report, sort_cells
    from morocco.report.cells import list_models, rename_models
    from morocco.report.options import choose_saved, read_names, read_settings

    submission = load_submission(options.paths)
    _check_readable(submission)
    names = read_names(options.name, list_models(submission))
    submission = rename_models(submission, names, merge=options.by == "gpu")
    saved = choose_saved(options, list_models(submission))
    settings = read_settings(options, submission)
    result = build_report(submission, settings)
    if options.save_baseline is not None:
        machines = next(model.machines for model in result.models if model.name == saved)
        baseline = build_baseline(saved, sort_cells(result.cells), machines, settings.clock)
        write_baseline(options.save_baseline, baseline)
    return result


def _check_readable(submission: Submission) -> None:
    unreadable = [entry for entry in submission.entries if entry.log is None]
    if unreadable and len(unreadable) == len(submission.entries):
        first = unreadable[0]
        raise DataError(
            f"None of the {plural(len(unreadable), 'log')} can be read; {first.name}: "
            f"{first.fault}. Measure again, or give other logs."
        )


def _render(result: Report, suffix: str) -> bytes:
    """Render a report as the kind of file that a suffix stands for."""
    from morocco.report.data import render_csv, render_json
    from morocco.report.text import render_markdown

    if suffix == ".html":
        from morocco.report.html.page import render_page

        return render_page(result).encode()
    if suffix in (".png", ".svg"):
        from morocco.report.chart import render_chart

        return render_chart(result, suffix)
    render = {".md": render_markdown, ".csv": render_csv, ".json": render_json}[suffix]
    return render(result).encode(errors="backslashreplace")  # a folder's name need not be text
