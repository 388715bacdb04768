"""Scores as text: JSON with all digits, or a table rounded as on the leaderboard."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from morocco.score.metrics import TagGroup
from morocco.score.score import Score, Scores
from morocco.util.text import align, escape_control_characters, format_score

Format = Literal["json", "table"]
_HEAD = ("task", "metrics", "score", "value")


def render(result: Score | Scores, form: Format) -> str:
    """Return the scores as text; ends with a newline."""
    if form == "json":
        return json.dumps(to_json(result), indent=1, allow_nan=False) + "\n"
    return render_folder(result) if isinstance(result, Scores) else render_task(result)


def to_json(result: Score | Scores) -> dict[str, Any]:
    """Return one score as an object; several as objects by task, with the overall score."""
    if isinstance(result, Score):
        return {"task": result.task, **_to_object(result)}
    tasks = {score.task: _to_object(score) for score in result.scores}
    return {"tasks": tasks, "overall": result.overall}


def _to_object(score: Score) -> dict[str, Any]:
    groups = {
        group.name: {
            **vars(group.whole),
            "composite": {tag: vars(part) for tag, part in group.composite.items()},
            "atomic": {tag: vars(part) for tag, part in group.atomic.items()},
        }
        for group in score.groups
    }
    return {
        **score.metrics,
        "value": score.value,
        "labels": score.labels,
        "missing": score.missing,
        "repeated": score.repeated,
        **({"groups": groups} if groups else {}),
    }


def render_folder(scores: Scores) -> str:
    """Return a line for each task of the suite, with dashes for an absent one, then the overall."""
    rows = {score.task: _to_row(score) for score in scores.scores}
    lines = [rows.get(task, (task, "-", "-", "-")) for task in scores.tasks]
    return _align([_HEAD, *lines, ("overall", "", "", format_score(scores.overall))])


def render_task(score: Score) -> str:
    """Return the line of a task; below it, for LiDiRus, the correlations by group and tag."""
    table = _align([_HEAD, _to_row(score)])
    if not score.groups:
        return table
    rows = [row for group in score.groups for row in _to_rows(group)]
    return f"{table}\n" + _align([("group", "tags", "are", "mcc", "labels"), *rows])


def _to_row(score: Score) -> tuple[str, ...]:
    numbers = " / ".join(map(format_score, score.metrics.values()))
    return score.task, " / ".join(score.metrics), numbers, format_score(score.value)


def _to_rows(group: TagGroup) -> list[tuple[str, ...]]:
    parts = [
        ("", "all", group.whole),
        *((tag, "composite", part) for tag, part in group.composite.items()),
        *((tag, "atomic", part) for tag, part in group.atomic.items()),
    ]
    return [
        (group.name, escape_control_characters(tag), kind, format_score(part.mcc), f"{part.labels}")
        for tag, kind, part in parts
    ]


def _align(rows: Sequence[Sequence[str]]) -> str:
    return "".join(line + "\n" for line in align(rows, left=(0, 1, 2)))
