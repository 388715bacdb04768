"""Render scores: JSON at full precision, a table rounded as the leaderboard's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from morocco.score.metrics import Part, TagGroup
from morocco.score.score import Score, Scores
from morocco.tasks import TASKS
from morocco.util.text import align, escape_control_characters, format_score

Format = Literal["json", "table"]

_HEAD = ("task", "metrics", "score", "value")


def render(result: Score | Scores, form: Format) -> str:
    """Return the scores as text, its last line ended too."""
    if form == "json":
        return json.dumps(to_json(result), indent=1, allow_nan=False) + "\n"
    return render_folder(result) if isinstance(result, Scores) else render_task(result)


def to_json(result: Score | Scores) -> dict[str, Any]:
    """Return a score as one object; scores as an object of them by task, and the overall score."""
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
    """Return a line for each of the nine tasks, with dashes where it is absent; overall last."""
    cells = {score.task: _to_cells(score) for score in scores.scores}
    rows = [cells.get(task, (task, "-", "-", "-")) for task in TASKS]
    return _align([_HEAD, *rows, ("overall", "", "", format_score(scores.overall))], left=(0, 1, 2))


def render_task(score: Score) -> str:
    """Return the line of a task; for LiDiRus the correlation of every group and tag below it."""
    table = _align([_HEAD, _to_cells(score)], left=(0, 1, 2))
    if not score.groups:
        return table
    rows = [row for group in score.groups for row in _to_rows(group)]
    return f"{table}\n" + _align([("group", "tags", "are", "mcc", "labels"), *rows], left=(0, 1, 2))


def _to_cells(score: Score) -> tuple[str, ...]:
    numbers = " / ".join(map(format_score, score.metrics.values()))
    return score.task, " / ".join(score.metrics), numbers, format_score(score.value)


def _to_rows(group: TagGroup) -> Iterator[tuple[str, ...]]:
    def row(tag: str, are: str, part: Part) -> tuple[str, ...]:
        return (
            group.name,
            escape_control_characters(tag),
            are,
            format_score(part.mcc),
            str(part.labels),
        )

    yield row("", "all", group.whole)
    for tag, part in group.composite.items():
        yield row(tag, "composite", part)
    for tag, part in group.atomic.items():
        yield row(tag, "atomic", part)


def _align(rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    return "".join(line + "\n" for line in align(rows, left))
