"""Rows of text as aligned columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import floor, log10


def align(rows: Sequence[Sequence[str]], left: Collection[int]) -> list[str]:
    """Return one line a row; the columns of `left` are flush left, all others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def format_number(value: float | None) -> str:
    """Return three digits that count, and never less than the whole number: `0.0123`, `4.39`."""
    if value is None:
        return "-"
    digits = 2 - floor(log10(abs(value))) if value else 0
    return f"{value:.{max(0, digits)}f}"


def make_safe(text: str) -> str:
    """Return a text of strangers that does nothing to a terminal: no control characters."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
