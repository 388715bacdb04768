"""The files that a report can be written to, by the end of their names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from morocco.errors import DataError
from morocco.logs.submission import load_submission
from morocco.report.baseline import Baseline, read_baseline, write_baseline
from morocco.report.build import build_report, to_baseline
from morocco.report.cells import list_models, rename
from morocco.report.data import render_csv, render_json
from morocco.report.model import Report
from morocco.report.options import ReportSettings, read_qualities, read_weights, split_model
from morocco.report.text import render_markdown
from morocco.stats.grouping import Clock
from morocco.tasks import TASKS
from morocco.util.files import write_output

Render = Callable[[Report], bytes]


def find_render(path: Path) -> Render:
    """Return what renders a file of that name; DataError for a name that ends in nothing known."""
    render = RENDERS.get(path.suffix.lower())
    if render is None:
        kinds = ", ".join(RENDERS)
        raise DataError(f"Cannot write {path}: the name of a report must end in one of {kinds}.")
    return render


def _as_markdown(report: Report) -> bytes:
    return render_markdown(report).encode()


def _as_csv(report: Report) -> bytes:
    return render_csv(report).encode(errors="backslashreplace")  # a folder's name may be no text


def _as_json(report: Report) -> bytes:
    return render_json(report).encode()


def _as_html(report: Report) -> bytes:
    from morocco.report.html.page import render_page

    return render_page(report).encode()


def _as_png(report: Report) -> bytes:
    from morocco.report.html.page import render_chart

    return render_chart(report, ".png")


def _as_svg(report: Report) -> bytes:
    from morocco.report.html.page import render_chart

    return render_chart(report, ".svg")


RENDERS: dict[str, Render] = {
    ".md": _as_markdown,
    ".csv": _as_csv,
    ".json": _as_json,
    ".html": _as_html,
    ".png": _as_png,
    ".svg": _as_svg,
}
"""By the end of a path."""


@dataclass(frozen=True)
class ReportOptions:
    """The command line of `report`, as it was parsed."""

    paths: tuple[Path, ...]
    output: tuple[Path, ...]
    name: tuple[str, ...]
    scores: tuple[str, ...]
    clock: Clock
    without: tuple[str, ...]
    weights: Path | None
    price: float | None
    baseline: str | None
    save_baseline: Path | None
    by_gpu: bool


def report_command(options: ReportOptions) -> Report:
    """Return the report, with all outputs written; raises a MoroccoError for what goes wrong."""
    renders = [(path, find_render(path)) for path in options.output]
    weights = None if options.weights is None else read_weights(options.weights)
    submission = load_submission(options.paths)
    names = _read_names(options.name, list_models(submission))
    submission = rename(submission, names, merge=options.by_gpu)
    models = list_models(submission)
    tasks = {entry.path.task for entry in submission.entries}
    wishes = ReportSettings(
        clock=options.clock,
        without=_check_without(options.without, tasks),
        weights=weights,
        price=options.price,
        qualities=read_qualities(options.scores, models),
        baseline=_find_baseline(options.baseline, models),
        by_gpu=options.by_gpu,
    )
    saved = _choose_saved(options, wishes, models)
    report = build_report(submission, wishes)
    if options.save_baseline is not None:
        write_baseline(options.save_baseline, _take_baseline(report, saved, wishes.clock))
    for path, render in renders:
        write_output(path, render(report), "a file")
    return report


def _read_names(texts: Sequence[str], models: Sequence[str]) -> dict[str, str]:
    """Return new names by old ones, from NEW or OLD=NEW."""
    names: dict[str, str] = {}
    for text in texts:
        old, new = split_model(text, models)
        if old is None and len(models) > 1:
            raise DataError(
                f"--name {text}: say which model is called so; there are {', '.join(models)}. "
                f"Such as: --name {models[0]}=NAME."
            )
        if not new.strip() or not new.isprintable():
            raise DataError(f"--name {text!r}: a name is needed, as in --name {models[0]}=NAME.")
        names[old or models[0]] = new
    return names


def _check_without(names: tuple[str, ...], tasks: Collection[str]) -> tuple[str, ...]:
    """Return the tasks to leave out; a name that is no task would leave out nothing, silently."""
    if names == ("none",):
        return ()
    for name in names:
        if name not in tasks and name not in TASKS:
            raise DataError(
                f"--without: there is no task {name!r}, only {', '.join(sorted(tasks))}; or none."
            )
    return names


def _find_baseline(text: str | None, models: Sequence[str]) -> str | Baseline | None:
    """Return the model of that name, or what a file holds."""
    if text is None or text in models:
        return text
    if Path(text).is_file():
        return read_baseline(Path(text))
    raise DataError(
        f"--baseline: {text} is neither a model of this report ({', '.join(models)}) nor a file. "
        "Write a file with --save-baseline."
    )


def _choose_saved(options: ReportOptions, wishes: ReportSettings, models: Sequence[str]) -> str:
    """Return the model that --save-baseline is about."""
    if isinstance(wishes.baseline, str):
        return wishes.baseline
    if options.save_baseline is not None and len(models) > 1:
        raise DataError(
            f"--save-baseline keeps one model, and there are {', '.join(models)}. Say which: "
            f"--baseline {models[0]}."
        )
    return models[0]


def _take_baseline(report: Report, name: str, clock: Clock) -> Baseline:
    machines = next(model.machines for model in report.models if model.name == name)
    return to_baseline(name, report.cells, machines, clock)
