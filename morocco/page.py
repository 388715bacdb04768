"""The report as a page: one file that needs no network, for the screen, the ear and the printer."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from morocco import __version__
from morocco.html import Html, element, join, to_html, void
from morocco.page_chart import make_chart
from morocco.page_comparison import make_cards, make_comparisons
from morocco.page_plots import draw_plots
from morocco.page_script import SCRIPT
from morocco.page_style import STYLE
from morocco.page_tables import (
    make_metric,
    make_overview,
    make_scores,
    make_single,
)
from morocco.report import Report
from morocco.units import plural

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
    yield _Section("cards", "GPUs", (make_cards(report),) if report.cards else ())
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
