"""The disc chart inside the page, told in words for those who do not see it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from morocco import __version__
from morocco.charts.bubble import Point, find_front, is_drawn
from morocco.charts.bubble_figure import NARROW, Wording, render_discs
from morocco.report.html.assets import SCRIPT, STYLE
from morocco.report.html.markup import Html, element, join, to_html, void
from morocco.report.html.plots import draw_plots
from morocco.report.html.tables import (
    Column,
    Data,
    Row,
    make_metric,
    make_overview,
    make_scores,
    make_single,
    make_table,
)
from morocco.report.model import TITLES, Metric, ModelSummary, Ratio, Report
from morocco.report.text import DASH, describe_ratio
from morocco.util.text import format_number
from morocco.util.units import plural

_PHONE = "(max-width: 40rem)"


def render_chart(report: Report, suffix: str) -> bytes:
    """Return the disc chart of a report as an image; DataError where no model has a score."""
    return render_discs(find_points(report), suffix, _word(report))


def make_chart(report: Report) -> Html:
    """Return the chart, or why there is none."""
    points = find_points(report)
    if not any(map(is_drawn, points)):
        said = "There is no chart of speed, quality and memory: give the scores with --scores FILE."
        return element("p", said, class_="lead")
    narrow = _inline(render_discs(points, ".svg", _word(report), NARROW))
    source = void("source", media=_PHONE, srcset=narrow)
    image = void("img", src=_inline(render_chart(report, ".svg")), alt=_describe(points))
    return element("figure", element("picture", source, image), class_="chart")


def find_points(report: Report) -> tuple[Point, ...]:
    """Return the models of a report, each with the means over its tasks."""
    return tuple(map(_to_point, report.models))


def _to_point(model: ModelSummary) -> Point:
    gpu_ram, ram = model.means["gpu_ram"].arithmetic, model.means["ram"].arithmetic
    return Point(
        model.name,
        model.means["rps"].arithmetic,
        model.score,
        ram if gpu_ram is None else gpu_ram,
        on_gpu=gpu_ram is not None,
        partial=bool(model.means["rps"].missing),
    )


def _word(report: Report) -> Wording:
    without = f", without {' and '.join(report.without)}" if report.without else ""
    return Wording(speed=f"records a second, mean of the tasks{without}")


def _inline(image: bytes) -> str:
    return f"data:image/svg+xml;base64,{b64encode(image).decode()}"


def _describe(points: tuple[Point, ...]) -> str:
    drawn = [point for point in points if is_drawn(point)]
    front = [point.name for point, ringed in zip(drawn, find_front(drawn), strict=True) if ringed]
    models = "; ".join(map(_tell, drawn))
    said = f"Chart of speed (across), score (up) and memory (area of the disc). {models}."
    return f"{said} On the front: {', '.join(front)}." if front else said


def _tell(point: Point) -> str:
    kind = "GPU memory" if point.on_gpu else "RAM"
    memory = "memory not measured" if point.memory is None else f"{point.memory:.2f} GB {kind}"
    speed = f"{format_number(point.speed)} records a second"
    return f"{point.name}: {speed}, score {format_number(point.score)}, {memory}"


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
    content = join(describe_ratio(metric, ratio), element("small", exact))
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
        for card in report.gpus or ()
    ]
    caption = "Speed of the GPUs on the same models and tasks, the best being 1."
    return make_table("gpus", caption, columns, rows)


_DOCTYPE = "<!DOCTYPE html>\n"
_FEW = 3
"""So many lines of a warning are shown at once."""
_LONG = 200
"""Letters of a list that is folded away though it is a single line."""


class _Section(NamedTuple):
    """A part of the page; without parts of its own it is left out."""

    name: str
    title: str
    parts: tuple[Html, ...]


def render_page(report: Report) -> str:
    """Return the page; it holds no address outside itself."""
    title = f"{plural(len(report.models), 'model')}, {plural(len(report.tasks), 'task')}"
    sections = [section for section in _list_sections(report) if section.parts]
    results = [_make_section(section) for section in sections]
    body = element(
        "body",
        element("a", "Skip to the results", href="#results", class_="skip"),
        element("header", element("h1", f"Report: {title}"), _count(report), _link(sections)),
        element("main", *results, id="results", tabindex=-1),
        element("footer", f"Made by morocco {__version__}."),
        element("script", Html(SCRIPT)),
    )
    page = element("html", _make_head(f"morocco report: {title}"), body, lang="en")
    return f"{_DOCTYPE}{page}\n"


def _list_sections(report: Report) -> Iterator[_Section]:
    yield _Section("models", "Speed, quality and memory", _make_first(report))
    yield _Section("warnings", "Warnings", _list_texts(report.warnings))
    yield _Section("notes", "Notes", _list_texts(report.notes))
    yield _Section("tasks", "By task", _make_tasks(report))
    yield _Section("comparison", "Against the baseline", tuple(make_comparisons(report)))
    yield _Section("cards", "GPUs", (make_cards(report),) if report.gpus else ())
    yield _Section("runs", "The runs", tuple(draw_plots(report)))


def _make_first(report: Report) -> tuple[Html, ...]:
    return make_chart(report), make_overview(report), *_tell_machines(report)


def _tell_machines(report: Report) -> Iterator[Html]:
    """Yield the machines, each once with its models; nothing where no record tells of one."""
    models: dict[str, list[str]] = {}
    for model in report.models:
        for machine in dict.fromkeys(model.machines.values()):
            models.setdefault(machine, []).append(model.name)
    if models:
        told = (f"{machine} ({', '.join(names)})" for machine, names in models.items())
        yield element("h3", "Measured on")
        yield element("ul", *(element("li", text) for text in told))


def _list_texts(texts: Sequence[str]) -> tuple[Html, ...]:
    return (element("ul", *(element("li", _fold(text)) for text in texts)),) if texts else ()


def _fold(text: str) -> Html:
    """Return what a text says; the lines that tell where are folded away if they are many."""
    said, *places = (line.strip() for line in text.splitlines() or [""])
    head, _, tail = said.partition(": ")
    if not places and len(tail) > _LONG > len(head):
        said, places = head, tail.split(", ")
    listed = element("ul", *(element("li", place) for place in places))
    if len(places) > _FEW:
        count = f" ({len(places)} places)"
        return element("details", element("summary", said.removesuffix(":"), count), listed)
    return join(said, listed) if places else to_html(said)


def _make_tasks(report: Report) -> tuple[Html, ...]:
    tables = (
        [make_single(report)]
        if len(report.models) == 1
        else [make_metric(report, metric) for metric in report.metrics()]
    )
    return (*tables, *filter(None, [make_scores(report)]))


def _make_section(section: _Section) -> Html:
    heading = element("h2", section.title, id=f"{section.name}-title")
    parts = (heading, *section.parts)
    return element("section", *parts, id=section.name, aria_labelledby=f"{section.name}-title")


def _count(report: Report) -> Html:
    logs = sum(len(cell.logs) for cell in report.cells.values())
    failed = sum(cell.failed for cell in report.cells.values())
    said = f"{plural(logs, 'log')}, {plural(failed, 'failed run')}. "
    if report.price is not None:
        said += f"Price of an hour: {report.price:g}. "
    return element("p", f"{said}Each number leads to the pictures of its runs.", class_="lead")


def _link(sections: Sequence[_Section]) -> Html:
    links = (element("a", section.title, href=f"#{section.name}") for section in sections)
    items = element("ul", *(element("li", link) for link in links))
    return element("nav", items, aria_label="On this page")


def _make_head(title: str) -> Html:
    policy = "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src '{_digest(STYLE)}'",
            f"script-src '{_digest(SCRIPT)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return element(
        "head",
        void("meta", charset="utf-8"),
        void("meta", http_equiv="Content-Security-Policy", content=policy),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(STYLE)),
    )


def _digest(text: str) -> str:
    """Return what lets a browser run this text and no other."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
