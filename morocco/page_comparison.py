"""The tables of the page that hold models, or GPUs, against one another."""

from __future__ import annotations

from collections.abc import Iterator

from morocco.html import Html, element, join
from morocco.page_table import Column, Data, Row, make_table
from morocco.report import TITLES, Metric, Ratio, Report
from morocco.report_ratios import say_ratio
from morocco.report_tables import DASH


def make_comparisons(report: Report) -> Iterator[Html]:
    """Yield a table for each model against the baseline."""
    comparison = report.comparison
    for number, model in enumerate(comparison.models if comparison else (), 1):
        metrics = list(model.overall)
        lines = [("all tasks", model.overall), *model.by_task.items()]
        first, *rows = [
            (
                name,
                [
                    _make_ratio(metric, ratios[metric]) if metric in ratios else Data(DASH)
                    for metric in metrics
                ],
            )
            for name, ratios in lines
        ]
        titles = [TITLES[metric].partition(",")[0] for metric in metrics]
        caption = f"{model.model} against {comparison.baseline if comparison else ''}"
        machines = {True: "", False: ", on another machine", None: ", machines not recorded"}
        columns = [Column("Task", words=True), *map(Column, titles)]
        said = f"{caption}{machines[model.same_machine]}."
        yield make_table(f"against-{number}", said, columns, rows, [first])


def _make_ratio(metric: Metric, ratio: Ratio) -> Data:
    """Return a ratio in words, its interval below; pale where it is noise."""
    exact = f"{ratio.value:.2f}"
    if ratio.low is not None or ratio.high is not None:
        low, high = ("no bound" if end is None else f"{end:.2f}" for end in (ratio.low, ratio.high))
        exact += f" [{low}, {high}]"
    content = join(say_ratio(metric, ratio), element("small", exact))
    return Data(content, ratio.value, None if ratio.real else "soft")


def make_cards(report: Report) -> Html:
    """Return how fast each GPU was."""
    titles = ("models × tasks", "long runs", "lowest", "mean", "highest")
    columns = [Column("GPU", words=True), *map(Column, titles)]
    rows: list[Row] = [
        (
            card.name,
            [
                *(Data(str(count), count) for count in (card.cells, card.runs)),
                *(Data(f"{x:.3f}", x) for x in (card.lowest, card.mean, card.highest)),
            ],
        )
        for card in report.cards or ()
    ]
    caption = "Speed of the GPUs on the same models and tasks, the best being 1."
    return make_table("gpus", caption, columns, rows)
