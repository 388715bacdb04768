"""A report as text: its tables, aligned for a terminal or as Markdown, and its notes."""

from __future__ import annotations

from itertools import chain

from morocco.report.model import Report
from morocco.report.tables import Table, build_tables
from morocco.util.text import align, escape_control_characters

_MARKDOWN_ESCAPES = str.maketrans({letter: f"\\{letter}" for letter in "\\`*<>|&"})


def render_text(report: Report) -> str:
    """Return aligned tables, then the notes; ends with a newline."""
    parts = list(map(_render_table, _list_tables(report)))
    if report.notes:
        parts.append("".join(f"{escape_control_characters(note)}\n" for note in report.notes))
    return "\n".join(parts)


def _list_tables(report: Report) -> list[Table]:
    return list(chain.from_iterable(build_tables(report).values()))


def _list_lines(table: Table) -> list[list[str]]:
    """Return the text of each cell, row by row; the first row is the header."""
    rows = [
        [name, *(cell.plain or cell.text for cell in cells)]
        for name, cells in (*table.rows, *table.footer)
    ]
    return [[cell.plain or cell.text for cell in table.header], *rows]


def _render_table(table: Table) -> str:
    rows = [[escape_control_characters(cell) for cell in row] for row in _list_lines(table)]
    head = [escape_control_characters(text) for text in (table.title, table.summary) if text]
    return "".join(f"{line}\n" for line in (*head, *align(rows, left=(0,))))


def render_markdown(report: Report) -> str:
    """Return headings, tables, notes and warnings as Markdown; ends with a newline."""
    parts = ["# Report\n", *map(_render_section, _list_tables(report))]
    for title, texts in (("Notes", report.notes), ("Warnings", report.warnings)):
        if texts:
            parts.append(f"## {title}\n\n" + "".join(map(_render_item, texts)))
    return "\n".join(parts)


def _render_section(table: Table) -> str:
    header, *rows = [[_escape_markdown(cell) for cell in row] for row in _list_lines(table)]
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
