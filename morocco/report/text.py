"""A report as text: its tables, aligned for a terminal or as Markdown, and ratios in words."""

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
from morocco.util.text import align, escape_control_characters, format_number, format_score

DASH = "-"
MEANS = ("mean", "geometric mean")
_NOUNS: dict[Metric, str] = {
    "init_time": "init time",
    "gpu_ram": "GPU RAM",
    "ram": "RAM",
    "energy": "energy",
}
_FACTORS = {"0.50": "half the", "1.00": "the same", "2.00": "twice the"}
_DOUBTS = {True: "", False: " (noise)", None: " (too few runs)"}
"""By `Ratio.real`."""
_MARKDOWN_ESCAPES = str.maketrans({letter: f"\\{letter}" for letter in "\\`*<>|&"})


def format_ratio(ratio: Ratio) -> str:
    """Format a ratio with its interval and any doubt: `1.23 [1.20, 1.26]`, `1.01 (noise)`."""
    bounded = ratio.low is not None or ratio.high is not None
    low, high = ("no bound" if end is None else f"{end:.2f}" for end in (ratio.low, ratio.high))
    return f"{ratio.value:.2f}{f' [{low}, {high}]' if bounded else ''}{_DOUBTS[ratio.real]}"


def describe_ratio(metric: Metric, ratio: Ratio) -> str:
    """Put a ratio and any doubt into words: `1.23x faster`, `half the GPU RAM (noise)`."""
    if metric == "rps":
        factor = f"{max(ratio.value, 1 / ratio.value):.2f}"
        faster = "faster" if ratio.value > 1 else "slower"
        words = "as fast" if factor == "1.00" else f"{factor}x {faster}"
    else:
        factor = f"{ratio.value:.2f}"
        words = f"{_FACTORS.get(factor, f'{factor}x the')} {_NOUNS[metric]}"
    return words + _DOUBTS[ratio.real]


def summarise_ratios(model: ModelRatios) -> str:
    """Compare a model with the baseline in a sentence; empty where there is no ratio."""
    texts = [describe_ratio(metric, ratio) for metric, ratio in model.overall.items()]
    if model.same_machine is False:
        texts.append("but on another machine")
    return "; ".join(texts) and f"{model.model}: {'; '.join(texts)}."


@dataclass(frozen=True)
class Table:
    """A title and rows of equal length: a header, then rows that begin with a name."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    summary: str = ""
    """The table in a sentence."""


def build_tables(report: Report) -> Iterator[Table]:
    """Yield an overview, the metrics by task, then scores, ratios and GPUs where there are any."""
    yield _build_overview(report)
    if len(report.models) == 1:
        (model,) = report.models
        metrics = report.metrics() or ("rps",)
        yield _build_by_task(report, model.name, metrics, [(model, metric) for metric in metrics])
    else:
        names = [model.name for model in report.models]
        for metric in report.metrics():
            columns = [(model, metric) for model in report.models]
            yield _build_by_task(report, TITLES[metric], names, columns)
    if any(cell.score is not None for cell in report.cells.values()):
        yield _build_scores(report)
    yield from _build_comparison(report)
    if report.gpus:
        yield _build_gpus(report)


def _build_overview(report: Report) -> Table:
    """Return one row per model; columns in which no model has a value are left out."""
    rows = [
        {
            "model": model.name,
            "score": format_score(model.score),
            **{metric: _format_mean(model.means[metric]) for metric in report.metrics()},
            "weighted score": format_number(model.weighted.score),
            "price / score": format_number(model.price_per_score),
        }
        for model in report.models
    ]
    names = [name for name in rows[0] if any(row[name] != DASH for row in rows)]
    return Table("Means", (tuple(names), *(tuple(row[name] for name in names) for row in rows)))


def _format_mean(mean: Mean) -> str:
    """Format the mean, with a star where tasks are missing from it."""
    star = "*" if mean.tasks and mean.missing else ""
    return format_number(mean.arithmetic) + star


def _build_by_task(
    report: Report,
    title: str,
    header: Sequence[str],
    columns: Sequence[tuple[ModelSummary, Metric]],
) -> Table:
    """Return one row per task and the means below; each column is one metric of one model."""
    rows = [
        (task, *(format_cell(report.cells[model.name, task], metric) for model, metric in columns))
        for task in report.tasks
    ]
    means = [model.means[metric] for model, metric in columns]
    arithmetic = (MEANS[0], *map(_format_mean, means))
    geometric = (MEANS[1], *(format_number(mean.geometric) for mean in means))
    return Table(title, (("task", *header), *rows, arithmetic, geometric))


def format_cell(cell: Cell, metric: Metric) -> str:
    """Format a number; a speed with its interval, or the reason why there is none."""
    text = format_number(cell.value(metric))
    if metric != "rps":
        return text
    if cell.estimate is None:
        return cell.reason or DASH
    low, high = cell.estimate.rps_low, cell.estimate.rps_high
    if low is None and high is None:
        return text
    return f"{text} [{format_number(low)}, {'no bound' if high is None else format_number(high)}]"


def _build_scores(report: Report) -> Table:
    names = [model.name for model in report.models]
    rows = [
        (task, *(format_score(report.cells[name, task].score) for name in names))
        for task in report.tasks
    ]
    overall = ("overall", *(format_score(model.score) for model in report.models))
    return Table("Quality", (("task", *names), *rows, overall))


def _build_comparison(report: Report) -> Iterator[Table]:
    """Yield one table for each model against the baseline."""
    if report.comparison is None:
        return
    for model in report.comparison.models:
        metrics = list(model.overall)
        rows = [
            (name, *(format_ratio(ratios[m]) if m in ratios else DASH for m in metrics))
            for name, ratios in (("all tasks", model.overall), *model.by_task.items())
        ]
        title = f"{model.model} / {report.comparison.baseline}"
        yield Table(title, (("task", *metrics), *rows), summarise_ratios(model))


def _build_gpus(report: Report) -> Table:
    header = ("GPU", "models x tasks", "long runs", "lowest", "mean", "highest")
    rows = [
        (
            gpu.name,
            str(gpu.cells),
            str(gpu.runs),
            *(f"{ratio:.3f}" for ratio in (gpu.lowest, gpu.mean, gpu.highest)),
        )
        for gpu in report.gpus or ()
    ]
    return Table("Speed of the GPUs, the best being 1", (header, *rows))


def render_text(report: Report) -> str:
    """Return aligned tables, then the notes; ends with a newline."""
    parts = [_render_table(table) for table in build_tables(report)]
    if report.notes:
        parts.append("".join(f"{escape_control_characters(note)}\n" for note in report.notes))
    return "\n".join(parts)


def _render_table(table: Table) -> str:
    rows = [[escape_control_characters(cell) for cell in row] for row in table.rows]
    head = [escape_control_characters(text) for text in (table.title, table.summary) if text]
    return "".join(f"{line}\n" for line in (*head, *align(rows, left=(0,))))


def render_markdown(report: Report) -> str:
    """Return headings, tables, notes and warnings as Markdown; ends with a newline."""
    parts = ["# Report\n", *(_render_section(table) for table in build_tables(report))]
    for title, texts in (("Notes", report.notes), ("Warnings", report.warnings)):
        if texts:
            parts.append(f"## {title}\n\n" + "".join(map(_render_item, texts)))
    return "\n".join(parts)


def _render_section(table: Table) -> str:
    header, *rows = [[_escape_markdown(cell) for cell in row] for row in table.rows]
    rule = [":--", *("--:" for _ in header[1:])]
    lines = "".join(f"| {' | '.join(row)} |\n" for row in (header, rule, *rows))
    summary = f"{_escape_markdown(table.summary)}\n\n" if table.summary else ""
    return f"## {_escape_markdown(table.title)}\n\n{summary}{lines}"


def _render_item(text: str) -> str:
    """Render a list item; further lines of the text become items below it."""
    first, *more = map(str.strip, text.splitlines())
    items = [f"- {first}", *(f"  - {line}" for line in more)]
    return "".join(f"{_escape_markdown(item)}\n" for item in items)


def _escape_markdown(text: str) -> str:
    """Escape what Markdown would interpret: names and notes are untrusted."""
    return escape_control_characters(text).translate(_MARKDOWN_ESCAPES).replace("](", "\\](")
