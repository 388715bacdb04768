"""What `doctor` finds, and how it is shown: lines for people, JSON for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from morocco.errors import MoroccoError
from morocco.util.text import escape_control_characters

State = Literal["good", "doubtful", "bad", "unknown"]
Format = Literal["text", "json"]

_NAME_WIDTH = 11
_INDENT = " " * (len("doubtful") + 2 + _NAME_WIDTH + 2)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    """What was looked at: "governor"."""
    state: State
    """`unknown` is what this machine does not tell."""
    found: str
    """With its figure."""
    todo: str = ""
    """The way out; empty if there is nothing to be done."""

    def __str__(self) -> str:
        """Return all of it on one line."""
        line = f"{self.name}: {self.found}" + (f" -> {self.todo}" if self.todo else "")
        return escape_control_characters(line)


def refuse(name: str, error: MoroccoError) -> Finding:
    """Return an error as a finding: what happened, then its remedy."""
    found, _, todo = str(error).partition(". ")
    return Finding(name, "bad", found.rstrip("."), todo.rstrip("."))


def render(finding: Finding, form: Format, width: int) -> str:
    """Return a finding in a format, without a newline at its end; text wraps at `width`."""
    return render_json(finding) if form == "json" else render_text(finding, width)


def render_json(finding: Finding) -> str:
    """Return one JSON object on one line."""
    return json.dumps(vars(finding), ensure_ascii=False)


def render_text(finding: Finding, width: int) -> str:
    """Return state, name and what was found in columns, the way out below it."""
    head = f"{finding.state:<8}  {finding.name:<{_NAME_WIDTH}}  "
    lines = _wrap(finding.found, width, head, _INDENT)
    if finding.todo:
        lines += _wrap(finding.todo, width, f"{_INDENT}-> ", f"{_INDENT}   ")
    return "\n".join(lines)


def summarise(findings: Sequence[Finding]) -> str:
    """Return what is wrong in all, in a line."""
    states: tuple[State, ...] = ("bad", "doubtful")
    wrong = [
        f"{state}: {', '.join(names)}"
        for state in states
        if (names := [finding.name for finding in findings if finding.state == state])
    ]
    return "; ".join(wrong) or "Fit to measure on."


def _wrap(text: str, width: int, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        escape_control_characters(text),
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
