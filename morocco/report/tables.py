"""The tables of a report as data, which `text` and `html` render, and ratios in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from morocco.report.model import (
    TITLES,
    Cell,
    Mean,
    Metric,
    ModelRatios,
    ModelSummary,
    Ratio,
    Report,
)
from morocco.stats.anomalies import MIN_RUNS
from morocco.util.text import format_number, format_score

DASH = "-"
_NOUNS: dict[Metric, str] = {
    "init_time": "init time",
    "gpu_ram": "GPU RAM",
    "ram": "RAM",
    "energy": "energy",
}
_FACTORS = {"0.50": "half the", "1.00": "the same", "2.00": "twice the"}
_MAX_DIGITS = 4
"""Of the end of an interval that is close to 1."""
_MACHINES = {True: "", False: ", on another machine", None: ", machines not recorded"}
"""By `ModelRatios.same_machine`."""


@dataclass(frozen=True)
class TableCell:
    """A cell of a table."""

    text: str
    value: float | None = None
    """What the column is sorted by."""
    plain: str = ""
    """What plain text shows instead of the text and the notes; empty for the text alone."""
    link: str | None = None
    """The id of an element of the page."""
    notes: Sequence[tuple[str, bool]] = ()
    """Lines of small print, each with whether it is bad news."""
    pale: bool = False


Row = tuple[str, Sequence[TableCell]]
"""The name of a row, and the cells beside it."""


@dataclass(frozen=True)
class Table:
    """A table; the first column holds the names of the rows."""

    id: str
    title: str
    """The heading above the table in plain text."""
    caption: str
    """The same in more words, for the page."""
    header: Sequence[TableCell]
    rows: Sequence[Row]
    footer: Sequence[Row] = ()
    """Rows that stay at the end when the table is sorted."""
    summary: str = ""
    """The table in a sentence."""


def _build_heading(title: str) -> TableCell:
    return TableCell(title, plain=title.lower())


_TASK = _build_heading("Task")


def get_model_id(report: Report, model: str) -> str:
    """Return the id of the heading above the plots of a model; its name may hold anything."""
    return f"runs-{report.model_numbers[model]}"


def get_plot_id(report: Report, model: str, task: str) -> str:
    """Return the id of the plot of a cell."""
    return f"{get_model_id(report, model)}-{report.task_numbers[task]}"


def build_tables(report: Report) -> dict[str, list[Table]]:
    """Return the tables by section: `overview`, `tasks`, `comparison`, `gpus`."""
    return {
        "overview": [_build_overview(report)],
        "tasks": list(_build_task_tables(report)),
        "comparison": list(_build_comparisons(report)),
        "gpus": [_build_gpu_table(report)] if report.gpus else [],
    }


def _build_overview(report: Report) -> Table:
    """Return one row per model; columns in which no model has a value are left out."""
    models, metrics = report.models, report.metrics()
    columns = {
        **_build_ranks(models),
        _build_heading("Score"): [_build_score(model.score) for model in models],
        **{
            _build_title(metric): [_build_mean(report, model, metric) for model in models]
            for metric in metrics
        },
        _build_heading("Weighted score"): [_build_number(m.weighted.score) for m in models],
        _build_heading("Price / score"): [_build_number(m.price_per_score) for m in models],
    }
    shown = {title: cells for title, cells in columns.items() if any(c.text != DASH for c in cells)}
    rows = [(m.name, [cells[n] for cells in shown.values()]) for n, m in enumerate(models)]
    caption = "Arithmetic means over all tasks"
    if report.without:
        caption += f"; speed, energy and cost without {', '.join(report.without)}"
    if any(_is_partial(model.means[metric]) for model in models for metric in metrics):
        caption += "; * some tasks are missing, so do not compare this mean"
    return Table("overview", "Means", f"{caption}.", (_build_heading("Model"), *shown), rows)


def _build_ranks(models: Sequence[ModelSummary]) -> dict[TableCell, list[TableCell]]:
    """Return the column of the ranks; none where there is nothing to compare."""
    if sum(model.rank is not None for model in models) < 2:
        return {}
    ranks = (model.rank for model in models)
    cells = [TableCell(DASH) if rank is None else TableCell(str(rank), rank) for rank in ranks]
    return {_build_heading("Rank"): cells}


def _build_task_tables(report: Report) -> Iterator[Table]:
    """Yield a table for each metric, a single one where there is one model, then the scores."""
    names = [TableCell(model.name) for model in report.models]
    if len(report.models) == 1:
        (model,) = report.models
        metrics = report.metrics() or ("rps",)
        header = (_TASK, *map(_build_title, metrics))
        rows = _list_task_rows(report, [(model, metric) for metric in metrics])
        yield Table("by-task", model.name, f"{model.name}, by task.", header, *rows)
    else:
        for metric in report.metrics():
            caption = f"{TITLES[metric]}, by task and model"
            caption += "; 95% interval below." if metric == "rps" else "."
            rows = _list_task_rows(report, [(model, metric) for model in report.models])
            yield Table(f"by-{metric}", TITLES[metric], caption, (_TASK, *names), *rows)
    if any(cell.score is not None for cell in report.cells.values()):
        scores = [
            (task, [_build_score(report.cells[m.name, task].score) for m in report.models])
            for task in report.tasks
        ]
        overall = ("overall", [_build_score(model.score) for model in report.models])
        caption = "Quality, by task and model."
        yield Table("by-score", "Quality", caption, (_TASK, *names), scores, [overall])


def _list_task_rows(
    report: Report, columns: Sequence[tuple[ModelSummary, Metric]]
) -> tuple[list[Row], list[Row]]:
    """Return a row for each task, and the means; each column is one metric of one model."""
    rows: list[Row] = [
        (task, [_build_value(report, report.cells[m.name, task], metric) for m, metric in columns])
        for task in report.tasks
    ]
    arithmetic = [_build_mean(report, model, metric) for model, metric in columns]
    geometric = [_build_number(model.means[metric].geometric) for model, metric in columns]
    return rows, [("mean", arithmetic), ("geometric mean", geometric)]


def _build_title(metric: Metric) -> TableCell:
    return TableCell(TITLES[metric], plain=metric)


def _build_number(value: float | None) -> TableCell:
    return TableCell(format_number(value), value)


def _build_score(score: float | None) -> TableCell:
    return TableCell(format_score(score), score)


def _is_partial(mean: Mean) -> bool:
    return bool(mean.tasks and mean.missing)


def _build_mean(report: Report, model: ModelSummary, metric: Metric) -> TableCell:
    """Return an arithmetic mean that links to the runs; a star shows that tasks are missing."""
    mean = model.means[metric]
    if mean.arithmetic is None:
        return TableCell(DASH)
    text = format_number(mean.arithmetic) + ("*" if _is_partial(mean) else "")
    return TableCell(text, mean.arithmetic, link=get_model_id(report, model.name))


def _build_value(report: Report, cell: Cell, metric: Metric) -> TableCell:
    """Return a number that links to its runs; a speed comes with its interval or its faults."""
    value = cell.value(metric)
    text = format_number(value)
    link = get_plot_id(report, cell.model, cell.task) if cell.logs else None
    if metric != "rps":
        return TableCell(text, value, link=link)
    notes, plain = [], cell.reason or text
    if cell.reason:
        notes.append((cell.reason, True))
    if cell.estimate and cell.estimate.rps_low is not None:
        low, high = format_number(cell.estimate.rps_low), cell.estimate.rps_high
        ends = f"{low} or more" if high is None else f"{low} – {format_number(high)}"
        notes.append((ends, False))
        plain += f" [{low}, {'no bound' if high is None else format_number(high)}]"
    if cell.failed:
        notes.append((f"{cell.failed} of {cell.tried} runs failed", True))
    return TableCell(text, value, plain, link, tuple(notes))


def _build_comparisons(report: Report) -> Iterator[Table]:
    """Yield a table for each model compared with the baseline."""
    if report.comparison is None:
        return
    baseline = report.comparison.baseline
    for number, model in enumerate(report.comparison.models, 1):
        *rows, total = [
            (task, [_build_ratio(metric, ratios.get(metric)) for metric in model.overall])
            for task, ratios in (*model.by_task.items(), ("all tasks", model.overall))
        ]
        names = [TableCell(TITLES[m].partition(",")[0], plain=m) for m in model.overall]
        yield Table(
            f"comparison-{number}",
            f"{model.model} / {baseline}",
            f"{model.model} compared with {baseline}{_MACHINES[model.same_machine]}.",
            (_TASK, *names),
            rows,
            [total],
            summarise_ratios(model),
        )


def _build_ratio(metric: Metric, ratio: Ratio | None) -> TableCell:
    """Return a ratio in words above its interval; pale where no difference is shown."""
    if ratio is None:
        return TableCell(DASH)
    words, plain = describe_ratio(metric, ratio), format_ratio(ratio)
    notes = [plain.removesuffix(_describe_doubt(ratio))]
    if ratio.visible is not None:
        notes.append(f"{ratio.visible:.1%} would show")
    return TableCell(
        words, ratio.value, plain, notes=tuple((n, False) for n in notes), pale=not ratio.real
    )


def _build_gpu_table(report: Report) -> Table:
    """Return the speed of each GPU compared with the others."""
    names = ("GPU", "models x tasks", "long runs", "lowest", "mean", "highest")
    rows = []
    for gpu in report.gpus or ():
        counts = [TableCell(str(count), count) for count in (gpu.cells, gpu.runs)]
        ratios = [TableCell(f"{x:.3f}", x) for x in (gpu.lowest, gpu.mean, gpu.highest)]
        rows.append((gpu.name, counts + ratios))
    title = "Speed of the GPUs, the best being 1"
    caption = "Speed of the GPUs on the same models and tasks, relative to the best."
    return Table("gpus", title, caption, [TableCell(name) for name in names], rows)


def format_ratio(ratio: Ratio) -> str:
    """Format a ratio with its interval and any doubt: `1.23 [1.20, 1.26]`."""
    ends = [_format_end(end) for end in (ratio.low, ratio.high) if end is not None]
    interval = f" [{', '.join(ends)}]" if ends else ""
    return f"{ratio.value:.2f}{interval}{_describe_doubt(ratio)}"


def _format_end(end: float) -> str:
    """Return the end of an interval with the digits that tell it from 1."""
    digits = 2
    while digits < _MAX_DIGITS and end != 1 and float(f"{end:.{digits}f}") == 1:
        digits += 1
    return f"{end:.{digits}f}"


def _describe_doubt(ratio: Ratio) -> str:
    if ratio.real is not None:
        return "" if ratio.real else " (no difference shown)"
    few = ratio.runs < MIN_RUNS
    return f" ({MIN_RUNS} runs needed)" if few else " (too little work to tell)"


def describe_ratio(metric: Metric, ratio: Ratio) -> str:
    """Put a ratio and any doubt into words: `1.23x faster`, `half the GPU RAM`."""
    if metric == "rps":
        factor = f"{max(ratio.value, 1 / ratio.value):.2f}"
        faster = "faster" if ratio.value > 1 else "slower"
        words = "as fast" if factor == "1.00" else f"{factor}x {faster}"
    else:
        factor = f"{ratio.value:.2f}"
        words = f"{_FACTORS.get(factor, f'{factor}x the')} {_NOUNS[metric]}"
    return words + _describe_doubt(ratio)


def summarise_ratios(model: ModelRatios) -> str:
    """Compare a model with the baseline in a sentence; empty where there is no ratio."""
    texts = [describe_ratio(metric, ratio) for metric, ratio in model.overall.items()]
    if model.same_machine is False:
        texts.append("but on another machine")
    return "; ".join(texts) and f"{model.model}: {'; '.join(texts)}."
