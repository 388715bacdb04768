"""A table of the page: with a caption and scoped headers, and the numbers that it is sorted by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from morocco.html import Html, element


@dataclass(frozen=True)
class Data:
    """A cell of a table: what it shows, and the number it is sorted by."""

    content: str
    value: float | None = None
    class_: str | None = None


@dataclass(frozen=True)
class Column:
    """A column: its header, and whether it holds words, which are sorted as such."""

    title: str
    words: bool = False
    class_: str | None = None


Row = tuple[str, Sequence[Data]]
"""The header of a row, and its cells."""


def make_table(
    name: str,
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    last: Sequence[Row] = (),
) -> Html:
    """Return a table of that id; the rows of `last` stay at its end when it is sorted."""
    head = element("thead", element("tr", *map(_make_header, columns)))
    parts = [element("caption", element("span", caption), id=f"{name}-caption"), head]
    parts.append(element("tbody", *map(_make_row, rows)))
    if last:
        parts.append(element("tfoot", *map(_make_row, last)))
    # What can be scrolled must be reached by the keyboard and have a name.
    return element(
        "div",
        element("table", *parts, id=name),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_labelledby=f"{name}-caption",
    )


def _make_header(column: Column) -> Html:
    class_ = "words" if column.words else column.class_
    return element("th", column.title, scope="col", class_=class_)


def _make_row(row: Row) -> Html:
    name, cells = row
    data = (
        element("td", cell.content, data_value=_write(cell.value), class_=cell.class_)
        for cell in cells
    )
    return element("tr", element("th", name, scope="row"), *data)


def _write(value: float | None) -> str | None:
    return None if value is None else repr(value)
