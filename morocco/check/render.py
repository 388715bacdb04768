"""Render the verdict on a submission: lines for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from morocco.check.result import CheckResult, Detail, RuleResult
from morocco.util.text import escape_control_characters
from morocco.util.units import plural

Format = Literal["text", "json"]

FEW = 2
"""So many logs of one size are named one by one, more are counted."""
MOST = 6
"""More logs than these are counted in any case; a run that stands out has a detail of its own."""


def render(report: CheckResult, form: Format) -> str:
    """Return the report as text, its last line ended too."""
    return render_json(report) if form == "json" else render_text(report)


def render_json(report: CheckResult) -> str:
    """Return one JSON object: `valid`, `profile` and the rules with all that they found."""
    rules = [
        {
            "id": finding.rule,
            "status": finding.status,
            "says": finding.says,
            "found": [vars(detail) for detail in finding.details],
            "todo": finding.todo,
        }
        for finding in report.findings
    ]
    content = {"valid": report.valid, "profile": report.profile, "rules": rules}
    return json.dumps(content, indent=1) + "\n"


def render_text(report: CheckResult, *, brief: bool = False) -> str:
    """Return one line a rule, and the verdict last; if `brief`, without what is good."""
    width = max(len(finding.rule) for finding in report.findings)
    lines = [
        _render_line(finding, width, report.many_models)
        for finding in report.findings
        if not brief or finding.status != "Yes"
    ]
    return "\n".join([*lines, "VALID" if report.valid else "INVALID", ""])


def _render_line(finding: RuleResult, width: int, many_models: bool) -> str:
    line = f"{finding.status:<4}  {finding.rule:<{width}}  {finding.says}"
    if finding.details:
        details = "; ".join(_render_detail(detail, many_models) for detail in finding.details)
        line += f": {details} -> {finding.todo}"
    return escape_control_characters(line)


def _render_detail(detail: Detail, many_models: bool) -> str:
    model = detail.model if many_models else ""
    return " ".join(filter(None, (model, _name_files(detail.files), detail.what)))


def _name_files(files: Sequence[str]) -> str:
    """Return the logs by name where they are few of a size, and counted where they are many."""
    of_size: dict[tuple[str, str], list[str]] = {}
    for file in files:
        task, _, name = file.rpartition("/")
        of_size.setdefault((task, name.rpartition("_")[0]), []).append(file)
    few = [file for same in of_size.values() if len(same) <= FEW for file in same]
    few = few if len(few) <= MOST else []
    many = {size: len(same) for size, same in of_size.items() if not few or len(same) > FEW}
    return ", ".join([*few, *_count_files(many)])


def _count_files(counts: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Yield one text for all tasks with the same sizes: `parus rcb/1_1 2000_32 (20 logs)`."""
    sizes: dict[str, list[str]] = {}
    for task, size in counts:
        sizes.setdefault(task, []).append(size)
    alike: dict[tuple[str, ...], list[str]] = {}
    for task, of_task in sizes.items():
        alike.setdefault(tuple(of_task), []).append(task)
    for same, tasks in alike.items():
        count = sum(counts[task, size] for task in tasks for size in same)
        yield f"{' '.join(tasks)}/{' '.join(same)} ({plural(count, 'log')})"
