"""Numbers, spans, scores and tables as text."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from math import floor, log10
from typing import TypeVar

from morocco.util.units import Seconds

_Cell = TypeVar("_Cell")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


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
    return text if text.isprintable() else "".join(map(_escape, text))


def make_printable(text: str) -> str:
    """Return text of several lines with everything else escaped that a terminal would act on."""
    return "\n".join(map(escape_control_characters, text.split("\n")))


def indent_lines(message: str) -> str:
    """Return a message in which a line that a stranger began cannot pass for one of morocco."""
    first, *more = message.split("\n")
    return "\n".join([first, *(line if line.startswith("  ") else f"  {line}" for line in more)])


def _escape(letter: str) -> str:
    if letter.isprintable():
        return letter
    if letter < "\x7f":  # JSON has these escaped already
        return letter.encode("unicode_escape").decode()
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def guard_cells(row: Mapping[str, _Cell]) -> dict[str, _Cell | str]:
    """Return a row of CSV in which a spreadsheet finds no formula; numbers stay as they are."""
    return {key: f"'{cell}" if _is_formula(cell) else cell for key, cell in row.items()}


def _is_formula(cell: object) -> bool:
    if not (isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))):
        return False
    return not _NUMBER.fullmatch(cell)
