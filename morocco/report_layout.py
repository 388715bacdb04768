"""A report as text: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from morocco.columns import align
from morocco.report import Report
from morocco.report_tables import Table, make_tables
from morocco.report_text import make_safe

_ESCAPED = str.maketrans({letter: f"\\{letter}" for letter in "\\`*<>|&"})


def render_text(report: Report) -> str:
    """Return aligned tables and the notes, the last line ended too."""
    parts = [_render_table(table) for table in make_tables(report)]
    if report.notes:
        parts.append("".join(f"{make_safe(note)}\n" for note in report.notes))
    return "\n".join(parts)


def _render_table(table: Table) -> str:
    rows = [[make_safe(cell) for cell in row] for row in table.rows]
    lines = align(rows, left=(0,))
    head = filter(None, (table.title, table.summary))
    return "".join(f"{line}\n" for line in (*map(make_safe, head), *lines))


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
    return make_safe(text).translate(_ESCAPED).replace("](", "\\](")
