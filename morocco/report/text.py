"""Ratios in words and in cells: `1.23x faster, half the GPU RAM`, `1.23 [1.20, 1.26]`."""

from __future__ import annotations

from collections.abc import Iterator
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
from morocco.util.text import align, escape_control_characters, format_number, format_score

_NOUNS: dict[Metric, str] = {
    "init_time": "init time",
    "gpu_ram": "GPU RAM",
    "ram": "RAM",
    "energy": "energy",
}
_WORDS = {"0.50": "half the", "1.00": "the same", "2.00": "twice the"}


def format_ratio(ratio: Ratio) -> str:
    """Return model / baseline with its interval, and whether it is noise."""
    known = ratio.low is not None or ratio.high is not None
    ends = f" [{_format(ratio.low)}, {_format(ratio.high)}]" if known else ""
    return f"{ratio.value:.2f}{ends}{_say_doubt(ratio)}"


def _format(end: float | None) -> str:
    return "no bound" if end is None else f"{end:.2f}"


def summarise_ratios(model: ModelRatios) -> str:
    """Return what a model comes to against the baseline, over all tasks; empty without a ratio."""
    texts = [describe_ratio(metric, ratio) for metric, ratio in model.overall.items()]
    if model.same_machine is False:
        texts.append("but on another machine")
    return "; ".join(texts) and f"{model.model}: {'; '.join(texts)}."


def describe_ratio(metric: Metric, ratio: Ratio) -> str:
    """Return a ratio in words, and whether it is noise."""
    words = _say_speed(ratio.value) if metric == "rps" else _say_amount(metric, ratio.value)
    return words + _say_doubt(ratio)


def _say_speed(ratio: float) -> str:
    factor = f"{max(ratio, 1 / ratio):.2f}"
    if factor == "1.00":
        return "as fast"
    return f"{factor}x {'faster' if ratio > 1 else 'slower'}"


def _say_amount(metric: Metric, ratio: float) -> str:
    text = f"{ratio:.2f}"
    return f"{_WORDS.get(text, f'{text}x the')} {_NOUNS[metric]}"


def _say_doubt(ratio: Ratio) -> str:
    if ratio.real is None:
        return " (too few runs)"
    return "" if ratio.real else " (noise)"


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
    if report.gpus:
        yield _make_gpus(report)


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
        yield Table(title, (("task", *metrics), *rows), summarise_ratios(model))


def _make_gpus(report: Report) -> Table:
    rows = [
        (
            gpu.name,
            str(gpu.cells),
            str(gpu.runs),
            *(f"{ratio:.3f}" for ratio in (gpu.lowest, gpu.mean, gpu.highest)),
        )
        for gpu in report.gpus or ()
    ]
    header = ("GPU", "models x tasks", "long runs", "lowest", "mean", "highest")
    return Table("Speed of the GPUs, the best being 1", (header, *rows))


_ESCAPED = str.maketrans({letter: f"\\{letter}" for letter in "\\`*<>|&"})


def render_text(report: Report) -> str:
    """Return aligned tables and the notes, the last line ended too."""
    parts = [_render_table(table) for table in make_tables(report)]
    if report.notes:
        parts.append("".join(f"{escape_control_characters(note)}\n" for note in report.notes))
    return "\n".join(parts)


def _render_table(table: Table) -> str:
    rows = [[escape_control_characters(cell) for cell in row] for row in table.rows]
    lines = align(rows, left=(0,))
    head = filter(None, (table.title, table.summary))
    return "".join(f"{line}\n" for line in (*map(escape_control_characters, head), *lines))


def render_markdown(report: Report) -> str:
    """Return headings, tables, notes and warnings as Markdown."""
    parts = ["# Report\n", *(_render_section(table) for table in make_tables(report))]
    for title, texts in (("Notes", report.notes), ("Warnings", report.warnings)):
        if texts:
            parts.append(f"## {title}\n\n" + "".join(_list(texts)))
    return "\n".join(parts)


def _render_section(table: Table) -> str:
    header, *rows = [[_escape(cell) for cell in row] for row in table.rows]
    rule = [":--", *("--:" for _ in header[1:])]
    lines = "".join(f"| {' | '.join(row)} |\n" for row in (header, rule, *rows))
    summary = f"{_escape(table.summary)}\n\n" if table.summary else ""
    return f"## {_escape(table.title)}\n\n{summary}{lines}"


def _list(texts: tuple[str, ...]) -> Iterator[str]:
    for text in texts:
        first, *more = text.splitlines() or [""]
        yield f"- {_escape(first)}\n"
        yield from (f"  - {_escape(line.strip())}\n" for line in more)


def _escape(text: str) -> str:
    """Return a text that Markdown shows as it is: names come from strangers."""
    return escape_control_characters(text).translate(_ESCAPED).replace("](", "\\](")
