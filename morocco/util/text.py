"""Numbers, spans, scores and tables as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import floor, log10

from morocco.util.units import Seconds


def align(rows: Sequence[Sequence[str]], left: Collection[int]) -> list[str]:
    """Return one line per row; the columns numbered in `left` are flush left, all others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def format_number(value: float | None) -> str:
    """Return three significant digits, or all digits of the whole part: `0.0123`, `4.39`."""
    if value is None:
        return "-"
    digits = 2 - floor(log10(abs(value))) if value else 0
    return f"{value:.{max(0, digits)}f}"


def format_score(score: float | None) -> str:
    """Return a score with three decimals, as leaderboards show it: `0.548`; `-` for None."""
    return "-" if score is None else f"{round(score, 3) + 0:.3f}"  # + 0: never -0.000


def format_elapsed(seconds: Seconds) -> str:
    """Return a span as minutes and seconds, with hours where there are any: `0:12`, `1:02:03`."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def escape_control_characters(text: str) -> str:
    """Return untrusted text with everything escaped that a terminal would act on."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
