"""A report as tables of text, rounded for reading; where a speed is missing, the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from morocco.report import TITLES, Cell, Mean, Metric, ModelSummary, Report
from morocco.report_ratios import format_ratio, say_ratios
from morocco.tables import format_number

DASH = "-"
MEANS = ("mean", "geometric mean")
_ALL = "all tasks"


@dataclass(frozen=True)
class Table:
    """A title, and rows of equal length; the first row is the header, the first column names."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    summary: str = ""
    """What it comes to, in a sentence."""


def make_tables(report: Report) -> Iterator[Table]:
    """Yield the tables of a report: an overview, one a metric, then what else was asked."""
    yield _make_overview(report)
    if len(report.models) == 1:
        yield _make_single(report)
    else:
        yield from (_make_metric(report, metric) for metric in report.metrics())
    if any(cell.score is not None for cell in report.cells.values()):
        yield _make_scores(report)
    yield from _make_comparison(report)
    if report.cards:
        yield _make_cards(report)


def _make_overview(report: Report) -> Table:
    """Return one row a model; columns that nobody has are left out."""
    rows = [dict(_summarise(report, model)) for model in report.models]
    names = [name for name in rows[0] if any(row[name] != DASH for row in rows)]
    return Table("Means", (tuple(names), *(tuple(row[name] for name in names) for row in rows)))


def _summarise(report: Report, model: ModelSummary) -> Iterator[tuple[str, str]]:
    yield "model", model.name
    yield "score", format_score(model.score)
    for metric in report.metrics():
        yield metric, _mark(model.means[metric])
    yield "weighted score", format_number(model.weighted.score)
    yield "price / score", format_number(model.price_per_score)


def _mark(mean: Mean) -> str:
    """Return the mean, with a star where tasks are missing from it."""
    star = "*" if mean.tasks and mean.missing else ""
    return format_number(mean.arithmetic) + star


def _make_metric(report: Report, metric: Metric) -> Table:
    """Return one metric: a row a task, a column a model."""
    names = [model.name for model in report.models]
    rows = [
        (task, *(format_cell(report.cells[name, task], metric) for name in names))
        for task in report.tasks
    ]
    means = [model.means[metric] for model in report.models]
    return Table(
        TITLES[metric],
        (
            ("task", *names),
            *rows,
            (MEANS[0], *map(_mark, means)),
            (MEANS[1], *(format_number(mean.geometric) for mean in means)),
        ),
    )


def _make_single(report: Report) -> Table:
    """Return all metrics of the only model: a row a task, a column a metric."""
    (model,) = report.models
    metrics = report.metrics() or ("rps",)
    cells = [report.cells[model.name, task] for task in report.tasks]
    rows = [(cell.task, *(format_cell(cell, metric) for metric in metrics)) for cell in cells]
    means = [model.means[metric] for metric in metrics]
    return Table(
        model.name,
        (
            ("task", *metrics),
            *rows,
            (MEANS[0], *map(_mark, means)),
            (MEANS[1], *(format_number(mean.geometric) for mean in means)),
        ),
    )


def format_cell(cell: Cell, metric: Metric) -> str:
    """Return the number, a speed with its interval; in place of a speed the reason for none."""
    text = format_number(cell.value(metric))
    if metric != "rps":
        return text
    if cell.estimate is None:
        return cell.reason or DASH
    low, high = cell.estimate.rps_low, cell.estimate.rps_high
    if low is None and high is None:
        return text
    return f"{text} [{format_number(low)}, {'no bound' if high is None else format_number(high)}]"


def _make_scores(report: Report) -> Table:
    names = [model.name for model in report.models]
    rows = [
        (task, *(format_score(report.cells[name, task].score) for name in names))
        for task in report.tasks
    ]
    overall = ("overall", *(format_score(model.score) for model in report.models))
    return Table("Quality", (("task", *names), *rows, overall))


def format_score(score: float | None) -> str:
    """Return a quality as leaderboards write it: `0.548`."""
    return DASH if score is None else f"{score:.3f}"


def _make_comparison(report: Report) -> Iterator[Table]:
    """Yield one table for each model against the baseline."""
    comparison = report.comparison
    for model in comparison.models if comparison else ():
        metrics = list(model.overall)
        lines = [(_ALL, model.overall), *model.by_task.items()]
        rows = [
            (name, *(format_ratio(ratios[m]) if m in ratios else DASH for m in metrics))
            for name, ratios in lines
        ]
        title = f"{model.model} / {comparison.baseline if comparison else ''}"
        yield Table(title, (("task", *metrics), *rows), say_ratios(model))


def _make_cards(report: Report) -> Table:
    rows = [
        (
            card.name,
            str(card.cells),
            str(card.runs),
            *(f"{ratio:.3f}" for ratio in (card.lowest, card.mean, card.highest)),
        )
        for card in report.cards or ()
    ]
    header = ("GPU", "models x tasks", "long runs", "lowest", "mean", "highest")
    return Table("Speed of the GPUs, the best being 1", (header, *rows))
