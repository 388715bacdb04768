"""A table of the page: with a caption and scoped headers, and the numbers that it is sorted by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from morocco.report.html.markup import Html, element, join
from morocco.report.html.plots import name_model, name_plot
from morocco.report.model import TITLES, Cell, Metric, ModelSummary, Report
from morocco.report.text import DASH, MEANS
from morocco.util.text import format_number, format_score


@dataclass(frozen=True)
class Data:
    """A cell of a table: what it shows, and the number it is sorted by."""

    content: str
    value: float | None = None
    class_: str | None = None


@dataclass(frozen=True)
class Column:
    """A column: its header, and whether it holds words, which are sorted as such."""

    title: str
    words: bool = False
    class_: str | None = None


Row = tuple[str, Sequence[Data]]
"""The header of a row, and its cells."""


def make_table(
    name: str,
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    last: Sequence[Row] = (),
) -> Html:
    """Return a table of that id; the rows of `last` stay at its end when it is sorted."""
    head = element("thead", element("tr", *map(_make_header, columns)))
    parts = [element("caption", element("span", caption), id=f"{name}-caption"), head]
    parts.append(element("tbody", *map(_make_row, rows)))
    if last:
        parts.append(element("tfoot", *map(_make_row, last)))
    # What can be scrolled must be reached by the keyboard and have a name.
    return element(
        "div",
        element("table", *parts, id=name),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_labelledby=f"{name}-caption",
    )


def _make_header(column: Column) -> Html:
    class_ = "words" if column.words else column.class_
    return element("th", column.title, scope="col", class_=class_)


def _make_row(row: Row) -> Html:
    name, cells = row
    data = (
        element("td", cell.content, data_value=_write(cell.value), class_=cell.class_)
        for cell in cells
    )
    return element("tr", element("th", name, scope="row"), *data)


def _write(value: float | None) -> str | None:
    return None if value is None else repr(value)


def make_overview(report: Report) -> Html:
    """Return one row a model: score, means, prices; columns that nobody has are left out."""
    metrics = report.metrics()
    cells = [list(_summarise(report, model, metrics)) for model in report.models]
    titles = ["Score", *(TITLES[metric] for metric in metrics), "Weighted score", "Price / score"]
    shown = [n for n in range(len(titles)) if any(row[n].content != DASH for row in cells)]
    columns = [Column("Model", words=True), *(Column(titles[n]) for n in shown)]
    rows = [
        (model.name, [row[n] for n in shown])
        for model, row in zip(report.models, cells, strict=True)
    ]
    caption = "Each model over all tasks: arithmetic means"
    if report.without:
        caption += f"; those of speed, energy and cost without {', '.join(report.without)}"
    if any(mean.tasks and mean.missing for model in report.models for mean in model.means.values()):
        caption += "; * tasks are missing, so that the mean does not compare"
    return make_table("overview", f"{caption}.", columns, rows)


def _summarise(report: Report, model: ModelSummary, metrics: Sequence[Metric]) -> Iterator[Data]:
    yield Data(format_score(model.score), model.score)
    for metric in metrics:
        yield _make_mean(report, model, metric)
    yield Data(format_number(model.weighted.score), model.weighted.score)
    yield Data(format_number(model.price_per_score), model.price_per_score)


def _make_mean(report: Report, model: ModelSummary, metric: Metric) -> Data:
    mean = model.means[metric]
    star = "*" if mean.tasks and mean.missing else ""
    if mean.arithmetic is None:
        return Data(DASH)
    runs = f"#{name_model(report, model.name)}"
    return Data(element("a", format_number(mean.arithmetic) + star, href=runs), mean.arithmetic)


def make_metric(report: Report, metric: Metric) -> Html:
    """Return one metric: a row a task, a column a model, the means below."""
    columns = [Column("Task", words=True), *(Column(model.name) for model in report.models)]
    rows: list[Row] = [
        (
            task,
            [make_cell(report, report.cells[model.name, task], metric) for model in report.models],
        )
        for task in report.tasks
    ]
    geometric = [model.means[metric].geometric for model in report.models]
    last: list[Row] = [
        (MEANS[0], [_make_mean(report, model, metric) for model in report.models]),
        (MEANS[1], [Data(format_number(mean), mean) for mean in geometric]),
    ]
    caption = f"{TITLES[metric]}, by task and model"
    if metric == "rps":
        caption += "; below it, its 95 % interval"
    return make_table(f"by-{metric}", f"{caption}.", columns, rows, last)


def make_single(report: Report) -> Html:
    """Return all metrics of the only model: a row a task, a column a metric."""
    (model,) = report.models
    metrics = report.metrics() or ("rps",)
    columns = [Column("Task", words=True), *(Column(TITLES[metric]) for metric in metrics)]
    cells = [report.cells[model.name, task] for task in report.tasks]
    rows: list[Row] = [
        (cell.task, [make_cell(report, cell, metric) for metric in metrics]) for cell in cells
    ]
    geometric = [model.means[metric].geometric for metric in metrics]
    last: list[Row] = [
        (MEANS[0], [_make_mean(report, model, metric) for metric in metrics]),
        (MEANS[1], [Data(format_number(mean), mean) for mean in geometric]),
    ]
    return make_table("by-task", f"{model.name}, by task.", columns, rows, last)


def make_cell(report: Report, cell: Cell, metric: Metric) -> Data:
    """Return a number that leads to its runs, with what else is to be known of it."""
    value = cell.value(metric)
    number = format_number(value)
    if cell.logs:
        number = element("a", number, href=f"#{name_plot(report, cell.model, cell.task)}")
    notes = [element("small", text, class_=class_) for text, class_ in _annotate(cell, metric)]
    return Data(join(number, *notes), value)


def _annotate(cell: Cell, metric: Metric) -> Iterator[tuple[str, str | None]]:
    if metric != "rps":
        return
    if cell.reason:
        yield cell.reason, "bad"
    if cell.estimate and cell.estimate.rps_low is not None:
        high = cell.estimate.rps_high
        low = format_number(cell.estimate.rps_low)
        yield (f"{low} or more" if high is None else f"{low} – {format_number(high)}"), None
    if cell.failed:
        yield f"{cell.failed} of {cell.tried} runs failed", "bad"


def make_scores(report: Report) -> Html | None:
    """Return the quality by task; None where no score of a task is known."""
    if all(cell.score is None for cell in report.cells.values()):
        return None
    columns = [Column("Task", words=True), *(Column(model.name) for model in report.models)]
    rows: list[Row] = [
        (task, [_make_score(report.cells[model.name, task].score) for model in report.models])
        for task in report.tasks
    ]
    last = [("overall", [_make_score(model.score) for model in report.models])]
    return make_table("by-score", "Quality, by task and model.", columns, rows, last)


def _make_score(score: float | None) -> Data:
    return Data(format_score(score), score)
