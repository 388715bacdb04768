"""The files that a report can be written to, by the end of their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from morocco.errors import DataError
from morocco.report import Report
from morocco.report_data import render_csv, render_json
from morocco.report_layout import render_markdown

Render = Callable[[Report], bytes]


def find_render(path: Path) -> Render:
    """Return what renders a file of that name; DataError for a name that ends in nothing known."""
    render = RENDERS.get(path.suffix.lower())
    if render is None:
        kinds = ", ".join(RENDERS)
        raise DataError(f"Cannot write {path}: the name of a report must end in one of {kinds}.")
    return render


def _as_markdown(report: Report) -> bytes:
    return render_markdown(report).encode()


def _as_csv(report: Report) -> bytes:
    return render_csv(report).encode(errors="backslashreplace")  # a folder's name may be no text


def _as_json(report: Report) -> bytes:
    return render_json(report).encode()


def _as_html(report: Report) -> bytes:
    from morocco.page import render_page

    return render_page(report).encode()


def _as_png(report: Report) -> bytes:
    from morocco.page_chart import render_chart

    return render_chart(report, ".png")


def _as_svg(report: Report) -> bytes:
    from morocco.page_chart import render_chart

    return render_chart(report, ".svg")


RENDERS: dict[str, Render] = {
    ".md": _as_markdown,
    ".csv": _as_csv,
    ".json": _as_json,
    ".html": _as_html,
    ".png": _as_png,
    ".svg": _as_svg,
}
"""By the end of a path."""
