"""The report as one page of HTML that needs nothing outside itself."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from morocco import __version__
from morocco.charts.bubble_figure import NARROW, WIDE
from morocco.charts.style import make_printable
from morocco.report.chart import describe_chart, render_chart
from morocco.report.html.plots import WIDTH, build_plots
from morocco.report.model import Report
from morocco.report.tables import build_tables, get_model_id
from morocco.util.text import format_number
from morocco.util.units import plural

_SHOWN_LINES = 3
"""A remark with more lines than this is folded."""
_SHOWN_LETTERS = 200
"""A list in a single line is folded if it is longer than this."""


@dataclass(frozen=True)
class Remark:
    """A note or a warning: what it says, and the places it is about."""

    text: str
    places: tuple[str, ...]
    folded: bool
    """Whether the places are shown only on demand."""


def render_page(report: Report) -> str:
    """Return the page; it contains no address outside itself."""
    environment = Environment(
        loader=PackageLoader("morocco.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_make_printable,
    )
    environment.filters |= {"number": format_number, "hash": _hash}
    environment.globals |= {"plural": plural, "version": __version__, "plot_width": WIDTH}
    return environment.get_template("page.html").render(_build_view(report))


def _build_view(report: Report) -> dict[str, Any]:
    """Return what the template shows."""
    alt = describe_chart(report)
    plots = build_plots(report)
    return {
        "report": report,
        "style": _read_asset("style.css"),
        "script": _read_asset("script.js"),
        "logs": sum(len(cell.logs) for cell in report.cells.values()),
        "failed": sum(cell.failed for cell in report.cells.values()),
        "chart": alt
        and {
            "alt": alt,
            "wide": _embed(report, WIDE),
            "narrow": _embed(report, NARROW),
        },
        "tables": build_tables(report),
        "machines": _group_by_machine(report),
        "warnings": list(map(_parse_remark, report.warnings)),
        "notes": list(map(_parse_remark, report.notes)),
        "plots": [(get_model_id(report, model), model, plots[model]) for model in plots],
    }


def _make_printable(value: object) -> object:
    """Replace control characters in all text, except in finished HTML."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return make_printable(value)
    return value


def _read_asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the source that lets a content security policy allow exactly this text."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _embed(report: Report, size: tuple[float, float]) -> str:
    image = b64encode(render_chart(report, ".svg", size)).decode()
    return f"data:image/svg+xml;base64,{image}"


def _group_by_machine(report: Report) -> dict[str, list[str]]:
    """Return the models measured on each machine, where records describe it."""
    models: dict[str, list[str]] = {}
    for model in report.models:
        for machine in dict.fromkeys(model.machines.values()):
            models.setdefault(machine, []).append(model.name)
    return models


def _parse_remark(text: str) -> Remark:
    first, *places = (line.strip() for line in text.splitlines() or [""])
    head, _, tail = first.partition(": ")
    if not places and len(tail) > _SHOWN_LETTERS > len(head):
        first, places = head, tail.split(", ")
    folded = len(places) > _SHOWN_LINES
    return Remark(first.removesuffix(":") if folded else first, tuple(places), folded)
