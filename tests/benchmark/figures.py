"""The table that the benchmark prints: each figure, the first MOROCCO tool's, the target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    name: str
    before: str
    """The figure of the first MOROCCO tool, or `-` if it has none."""
    target: str
    measured: str
    reached: bool


def format_table(figures: list[Figure]) -> str:
    """Return the figures side by side with their targets, as a Markdown table."""
    rows = [
        ("figure", "first tool", "target", "measured", "reached"),
        *((f.name, f.before, f.target, f.measured, "yes" if f.reached else "NO") for f in figures),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
