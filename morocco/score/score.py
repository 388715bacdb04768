"""Scores as they come out: of one task, of many, and the overall score."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from morocco.errors import DataError
from morocco.score.answers import Missing, Pair, match, read_gold, read_predictions
from morocco.score.metrics import (
    TagGroup,
    accuracy,
    correlate,
    diagnose,
    exact_match,
    f1,
    macro_f1,
    match_text,
    mean,
)
from morocco.tasks import TASKS, find_data
from morocco.util.units import plural


@dataclass(frozen=True)
class Score:
    """What predictions of a task are worth."""

    task: str
    metrics: Mapping[str, float]
    """By their official names; 0 to 1, a correlation -1 to 1."""
    labels: int
    """How many there are to predict; in MuSeRC the answers count, not the passages."""
    missing: int = 0
    """How many of them have no prediction, and count as wrong."""
    repeated: int = 0
    """How many predictions repeat one that was there, and agree with it."""
    groups: tuple[TagGroup, ...] = ()
    """The diagnostics of LiDiRus."""

    @property
    def value(self) -> float:
        """The metric, or the mean of the two."""
        return mean(list(self.metrics.values()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What should be known before the score is used."""
        if not self.missing:
            return ()
        count = plural(self.missing, "label")
        return (f"{self.task}: {count} of {self.labels:,} without a prediction, taken as wrong",)


@dataclass(frozen=True)
class Scores:
    """What predictions of several tasks are worth."""

    scores: tuple[Score, ...]

    @property
    def absent(self) -> tuple[str, ...]:
        """The tasks without predictions."""
        there = {score.task for score in self.scores}
        return tuple(name for name in TASKS if name not in there)

    @property
    def overall(self) -> float | None:
        """The plain mean of the nine values, LiDiRus included; None where one of them is absent."""
        return None if self.absent else mean([score.value for score in self.scores])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What should be known before the scores are used."""
        warnings = [warning for score in self.scores for warning in score.warnings]
        if self.absent:
            warnings.append(f"no predictions for {', '.join(self.absent)}, so no overall score")
        return tuple(warnings)


def score_task(task: str, predictions: Path, gold: Path, missing: Missing = "error") -> Score:
    """Return the score of a task.

    Where `predictions` or `gold` is a folder, its file for the task is taken. DataError says what
    cannot be scored, with its file and line.
    """
    _check_name(task)
    if _is_folder(predictions):
        predictions = _need_predictions(predictions, task)
    if _is_folder(gold):
        gold = find_data(gold, task)
    labels, answers = read_gold(gold, task), read_predictions(predictions, task)
    pairs = match(labels, answers, task, missing)
    return Score(
        task,
        measure(task, pairs),
        labels=len(pairs),
        missing=len(pairs) - len(answers.by_key),
        repeated=answers.repeated,
        groups=diagnose(pairs) if task == "lidirus" else (),
    )


def score_folder(predictions: Path, gold: Path, missing: Missing = "error") -> Scores:
    """Return the scores of all tasks that a folder has predictions of: TASK.jsonl or Title.jsonl.

    `gold` is laid out as the site's archive. DataError says what cannot be scored.
    """
    for folder in (predictions, gold):
        if not _is_folder(folder):
            raise DataError(
                f"{folder} is no folder; to score one task, give TASK PREDICTIONS GOLD."
            )
    files = {task: _find_predictions(predictions, task) for task in TASKS}
    if not any(files.values()):
        raise DataError(
            f"{predictions} holds no predictions: a file is called parus.jsonl or PARus.jsonl."
        )
    there = ((task, path) for task, path in files.items() if path)
    return Scores(tuple(score_task(task, path, gold, missing) for task, path in there))


def measure(task: str, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the metrics of a task by their official names."""
    return _METRICS[task](pairs)


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 (no error for a name that is too long)


def _check_name(task: str) -> None:
    if task.lower() in TASKS and task not in TASKS:
        raise DataError(f"There is no task {task!r}; did you mean {task.lower()!r}?")
    if task not in TASKS:
        raise DataError(f"There is no task {task!r}; the nine are: {', '.join(TASKS)}.")


def _need_predictions(folder: Path, task: str) -> Path:
    path = _find_predictions(folder, task)
    if path is None:
        names = f"{task}.jsonl nor {TASKS[task].title}.jsonl"
        raise DataError(f"{folder} holds neither {names}.")
    return path


def _find_predictions(folder: Path, task: str) -> Path | None:
    """Return the predictions of a task, called as the task or, as in a submission, by its title."""
    paths = [folder / f"{name}.jsonl" for name in (task, TASKS[task].title)]
    found = [path for path in paths if os.path.exists(path)]  # noqa: PTH110 (as above)
    if len(found) == 2 and not found[0].samefile(found[1]):
        raise DataError(f"{folder} holds both {found[0].name} and {found[1].name}; remove one.")
    return found[0] if found else None


def _score_accuracy(pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the share of right labels."""
    return {"accuracy": accuracy(*_columns(pairs))}


def _score_rcb(pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the mean of the three one-vs-rest F1s, as CommitmentBank of SuperGLUE has it."""
    columns = _columns(pairs)
    return {"f1": macro_f1(*columns), "accuracy": accuracy(*columns)}


def _score_lidirus(pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the correlation over all records, as the diagnostics of GLUE have it."""
    return {"mcc": correlate(pairs)}


def _score_muserc(pairs: Sequence[Pair]) -> dict[str, float]:
    """Return F1 over all answers, and the share of questions with every answer right (MultiRC).

    A question is known by its passage and its own idx.
    """
    questions = [pair.key[:2] for pair in pairs]
    right = [pair.gold == pair.predicted for pair in pairs]
    return {"f1a": f1(*_columns(pairs), positive=1), "em": exact_match(questions, right)}


def _score_rucos(pairs: Sequence[Pair]) -> dict[str, float]:
    """Return F1 and exact match with the best answer, as means over the questions (ReCoRD)."""
    matches = [match_text(pair.predicted, answers) for pair in pairs for answers in pair.gold]
    f1s, exacts = zip(*matches, strict=True)
    return {"f1": mean(f1s), "em": mean(exacts)}


def _columns(pairs: Sequence[Pair]) -> tuple[list[object], list[object]]:
    return [pair.gold for pair in pairs], [pair.predicted for pair in pairs]


_METRICS: Mapping[str, Callable[[Sequence[Pair]], dict[str, float]]] = {
    "danetqa": _score_accuracy,
    "lidirus": _score_lidirus,
    "muserc": _score_muserc,
    "parus": _score_accuracy,
    "rcb": _score_rcb,
    "rucos": _score_rucos,
    "russe": _score_accuracy,
    "rwsd": _score_accuracy,
    "terra": _score_accuracy,
}
