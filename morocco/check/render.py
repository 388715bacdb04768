"""Render the verdict on a submission: lines for people, JSON for programs."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from morocco.check.rule import CheckResult, Detail, RuleResult
from morocco.util.text import escape_control_characters
from morocco.util.units import plural

Format = Literal["text", "json"]

MAX_NAMED_OF_SIZE = 2
"""Up to this many logs of one size are named one by one, more are counted."""
MAX_DETAILS = 9
"""Of a rule that are shown."""
MIN_COLUMNS = 60
MAX_NAMED = 6
"""More logs than this are always counted; a run that stands out has a detail of its own."""


def render(checked: CheckResult, form: Format) -> str:
    """Return the verdict in a format, with a newline at its end."""
    return render_json(checked) if form == "json" else render_text(checked)


def render_json(checked: CheckResult) -> str:
    """Return one JSON object: `valid`, `profile` and every rule with all its details."""
    rules = [
        {
            "id": result.rule,
            "status": result.status,
            "says": result.says,
            "found": [vars(detail) for detail in result.details],
            "todo": result.todo,
        }
        for result in checked.results
    ]
    content = {"valid": checked.valid, "profile": checked.profile, "rules": rules}
    return json.dumps(content, indent=1) + "\n"


def render_text(checked: CheckResult, *, brief: bool = False) -> str:
    """Return the rules and the verdict; if `brief`, without the rules that hold.

    A rule has a line, its details one each below it, and then what to do, all as wide as the
    terminal.
    """
    width = max(len(result.rule) for result in checked.results)
    lines = [
        line
        for result in checked.results
        if not brief or result.status != "Yes"
        for line in _render_rule(result, width, checked.many_models)
    ]
    return "\n".join([*lines, "VALID" if checked.valid else "INVALID", ""])


def _render_rule(result: RuleResult, width: int, many_models: bool) -> Iterator[str]:
    end = ":" if result.details else ""
    yield from _wrap(f"{result.status:<4}  {result.rule:<{width}}  ", f"{result.says}{end}")
    for detail in result.details[:MAX_DETAILS]:
        yield from _wrap("      - ", _render_detail(detail, many_models))
    if (more := len(result.details) - MAX_DETAILS) > 0:
        yield f"      - {more} more, which --format json lists"
    if result.details:
        yield from _wrap("     -> ", result.todo)


def _wrap(start: str, text: str) -> list[str]:
    """Return lines as wide as the terminal that break between words only."""
    columns = shutil.get_terminal_size().columns
    return textwrap.wrap(
        escape_control_characters(text),
        max(columns, MIN_COLUMNS),
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _render_detail(detail: Detail, many_models: bool) -> str:
    model = detail.model if many_models else ""
    return " ".join(filter(None, (model, _name_files(detail.files), detail.what)))


def _name_files(files: Sequence[str]) -> str:
    """Name the logs of a size if they are few, and count them if they are many."""
    of_size: dict[tuple[str, str], list[str]] = {}
    for file in files:
        task, _, name = file.rpartition("/")
        of_size.setdefault((task, name.rpartition("_")[0]), []).append(file)
    few = [file for same in of_size.values() if len(same) <= MAX_NAMED_OF_SIZE for file in same]
    few = few if len(few) <= MAX_NAMED else []
    many = {
        size: len(same)
        for size, same in of_size.items()
        if not few or len(same) > MAX_NAMED_OF_SIZE
    }
    return ", ".join([*few, *_count_files(many)])


def _count_files(counts: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Yield one text for all tasks of the same sizes: `parus rcb/1_1 2000_32 (20 logs)`."""
    sizes: dict[str, list[str]] = {}
    for task, size in counts:
        sizes.setdefault(task, []).append(size)
    alike: dict[tuple[str, ...], list[str]] = {}
    for task, of_task in sizes.items():
        alike.setdefault(tuple(of_task), []).append(task)
    for same, tasks in alike.items():
        count = sum(counts[task, size] for task in tasks for size in same)
        yield f"{' '.join(tasks)}/{' '.join(same)} ({plural(count, 'log')})"
