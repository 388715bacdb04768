"""The tables of the page as data: what each cell shows, links to and is sorted by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from morocco.report.html.plots import get_model_id, get_plot_id
from morocco.report.model import TITLES, Cell, Metric, ModelSummary, Ratio, Report
from morocco.report.text import DASH, MEANS, describe_ratio
from morocco.util.text import format_number, format_score


@dataclass(frozen=True)
class TableCell:
    """A cell of a table."""

    text: str
    value: float | None = None
    """What the column is sorted by."""
    link: str | None = None
    """The id of an element."""
    notes: Sequence[tuple[str, bool]] = ()
    """Lines of small print, each with whether it is bad news."""
    pale: bool = False


@dataclass(frozen=True)
class HtmlTable:
    """A table; the first column holds the names of the rows."""

    id: str
    caption: str
    header: Sequence[str]
    rows: Sequence[tuple[str, Sequence[TableCell]]]
    footer: Sequence[tuple[str, Sequence[TableCell]]] = ()
    """Rows that stay at the end when the table is sorted."""


def build_overview(report: Report) -> HtmlTable:
    """Return the means of each model; columns without any value are left out."""
    models = report.models
    columns = {
        "Score": [_build_score(model.score) for model in models],
        **{
            TITLES[metric]: [_build_mean(report, model, metric) for model in models]
            for metric in report.metrics()
        },
        "Weighted score": [_build_number(model.weighted.score) for model in models],
        "Price / score": [_build_number(model.price_per_score) for model in models],
    }
    shown = {title: cells for title, cells in columns.items() if any(c.text != DASH for c in cells)}
    rows = [
        (model.name, [cells[number] for cells in shown.values()])
        for number, model in enumerate(models)
    ]
    caption = "Arithmetic means over all tasks"
    if report.without:
        caption += f"; speed, energy and cost without {', '.join(report.without)}"
    if any(_is_partial(model, metric) for model in models for metric in report.metrics()):
        caption += "; * some tasks are missing, so do not compare this mean"
    return HtmlTable("overview", f"{caption}.", ("Model", *shown), rows)


def build_task_tables(report: Report) -> Iterator[HtmlTable]:
    """Yield a table for each metric, a single one where there is one model, then the scores."""
    if len(report.models) == 1:
        (model,) = report.models
        columns = {TITLES[metric]: (model, metric) for metric in report.metrics() or ("rps",)}
        yield _build_task_table(report, "by-task", f"{model.name}, by task.", columns)
    else:
        for metric in report.metrics():
            caption = f"{TITLES[metric]}, by task and model"
            caption += "; 95% interval below." if metric == "rps" else "."
            columns = {model.name: (model, metric) for model in report.models}
            yield _build_task_table(report, f"by-{metric}", caption, columns)
    if any(cell.score is not None for cell in report.cells.values()):
        yield _build_score_table(report)


def _build_task_table(
    report: Report, name: str, caption: str, columns: dict[str, tuple[ModelSummary, Metric]]
) -> HtmlTable:
    rows = [
        (
            task,
            [
                _build_value(report, report.cells[model.name, task], metric)
                for model, metric in columns.values()
            ],
        )
        for task in report.tasks
    ]
    pairs = columns.values()
    arithmetic = [_build_mean(report, model, metric) for model, metric in pairs]
    geometric = [_build_number(model.means[metric].geometric) for model, metric in pairs]
    footer = list(zip(MEANS, (arithmetic, geometric), strict=True))
    return HtmlTable(name, caption, ("Task", *columns), rows, footer)


def _build_score_table(report: Report) -> HtmlTable:
    names = [model.name for model in report.models]
    rows = [
        (task, [_build_score(report.cells[name, task].score) for name in names])
        for task in report.tasks
    ]
    overall = ("overall", [_build_score(model.score) for model in report.models])
    caption = "Quality, by task and model."
    return HtmlTable("by-score", caption, ("Task", *names), rows, [overall])


def _build_number(value: float | None) -> TableCell:
    return TableCell(format_number(value), value)


def _build_score(score: float | None) -> TableCell:
    return TableCell(format_score(score), score)


def _is_partial(model: ModelSummary, metric: Metric) -> bool:
    mean = model.means[metric]
    return bool(mean.tasks and mean.missing)


def _build_mean(report: Report, model: ModelSummary, metric: Metric) -> TableCell:
    """Return an arithmetic mean that links to the runs of its model."""
    value = model.means[metric].arithmetic
    if value is None:
        return TableCell(DASH)
    star = "*" if _is_partial(model, metric) else ""
    return TableCell(format_number(value) + star, value, get_model_id(report, model.name))


def _build_value(report: Report, cell: Cell, metric: Metric) -> TableCell:
    """Return a number that links to its runs; a speed comes with its interval or its faults."""
    value = cell.value(metric)
    link = get_plot_id(report, cell.model, cell.task) if cell.logs else None
    notes = tuple(_annotate_speed(cell)) if metric == "rps" else ()
    return TableCell(format_number(value), value, link, notes)


def _annotate_speed(cell: Cell) -> Iterator[tuple[str, bool]]:
    if cell.reason:
        yield cell.reason, True
    if cell.estimate and cell.estimate.rps_low is not None:
        low, high = format_number(cell.estimate.rps_low), cell.estimate.rps_high
        yield (f"{low} or more" if high is None else f"{low} – {format_number(high)}"), False
    if cell.failed:
        yield f"{cell.failed} of {cell.tried} runs failed", True


def build_comparisons(report: Report) -> Iterator[HtmlTable]:
    """Yield a table for each model compared with the baseline."""
    if report.comparison is None:
        return
    machines = {True: "", False: ", on another machine", None: ", machines not recorded"}
    for number, model in enumerate(report.comparison.models, 1):
        metrics = list(model.overall)
        total, *rows = [
            (task, [_build_ratio(metric, ratios.get(metric)) for metric in metrics])
            for task, ratios in (("all tasks", model.overall), *model.by_task.items())
        ]
        titles = [TITLES[metric].partition(",")[0] for metric in metrics]
        caption = f"{model.model} compared with {report.comparison.baseline}"
        caption += f"{machines[model.same_machine]}."
        yield HtmlTable(f"comparison-{number}", caption, ("Task", *titles), rows, [total])


def _build_ratio(metric: Metric, ratio: Ratio | None) -> TableCell:
    """Return a ratio in words above its interval; pale where it may be noise."""
    if ratio is None:
        return TableCell(DASH)
    exact = f"{ratio.value:.2f}"
    if ratio.low is not None or ratio.high is not None:
        low, high = ("no bound" if end is None else f"{end:.2f}" for end in (ratio.low, ratio.high))
        exact += f" [{low}, {high}]"
    words = describe_ratio(metric, ratio)
    return TableCell(words, ratio.value, notes=((exact, False),), pale=not ratio.real)


def build_gpu_table(report: Report) -> HtmlTable:
    """Return the speed of each GPU compared with the others."""
    header = ("GPU", "models × tasks", "long runs", "lowest", "mean", "highest")
    rows = []
    for gpu in report.gpus or ():
        counts = [TableCell(str(count), count) for count in (gpu.cells, gpu.runs)]
        ratios = [TableCell(f"{x:.3f}", x) for x in (gpu.lowest, gpu.mean, gpu.highest)]
        rows.append((gpu.name, counts + ratios))
    caption = "Speed of the GPUs on the same models and tasks, relative to the best."
    return HtmlTable("gpus", caption, header, rows)
