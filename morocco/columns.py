"""Rows of text as aligned columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence


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
