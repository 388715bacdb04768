"""The score of one task, of a folder of tasks, and the overall score."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from morocco.errors import DataError
from morocco.score.answers import Missing, Pair, Source, match, read_answers
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
from morocco.tasks import TASKS, OwnMetric, find_data
from morocco.util.units import plural

TaskMetrics = Mapping[str, OwnMetric | None]
"""The tasks of a suite; None stands for the metric of the leaderboard, which the nine have."""
NINE: TaskMetrics = dict.fromkeys(TASKS)


def read_metrics(profile: str | Path | None) -> TaskMetrics:
    """Return the tasks of a profile and how they are scored; the nine without one."""
    if profile is None:
        return NINE
    from morocco.check.profile import read_profile

    return read_profile(Path(profile)).list_metrics()


@dataclass(frozen=True)
class Score:
    """How good the predictions of a task are."""

    task: str
    metrics: Mapping[str, float]
    """By official name; from 0 to 1, a correlation from -1 to 1."""
    labels: int
    """Number of labels to predict; in MuSeRC answers, not passages."""
    missing: int = 0
    """Labels without a prediction, which count as wrong."""
    repeated: int = 0
    """Predictions that repeat an earlier one and agree with it."""
    groups: tuple[TagGroup, ...] = ()
    """The diagnostics of LiDiRus."""

    @property
    def value(self) -> float:
        """The only metric, or the mean of both."""
        return mean(list(self.metrics.values()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the score must know."""
        if not self.missing:
            return ()
        count = plural(self.missing, "label")
        return (f"{self.task}: {count} of {self.labels:,} without a prediction count as wrong",)


@dataclass(frozen=True)
class Scores:
    """How good the predictions of several tasks are."""

    scores: tuple[Score, ...]
    tasks: tuple[str, ...] = tuple(TASKS)
    """Of the whole suite."""

    @property
    def absent(self) -> tuple[str, ...]:
        """The tasks without predictions."""
        present = {score.task for score in self.scores}
        return tuple(name for name in self.tasks if name not in present)

    @property
    def overall(self) -> float | None:
        """The mean of the values of all tasks, LiDiRus included; None where one is absent."""
        return None if self.absent else mean([score.value for score in self.scores])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the scores must know."""
        warnings = [warning for score in self.scores for warning in score.warnings]
        if self.absent:
            warnings.append(f"no predictions for {', '.join(self.absent)}, so no overall score")
        return tuple(warnings)


def score_task(
    task: str,
    predictions: Source,
    gold: Source,
    missing: Missing = "error",
    tasks: TaskMetrics = NINE,
) -> Score:
    """Score the predictions of one task.

    `predictions` and `gold` are files, folders that hold a file for the task, or records. DataError
    says what cannot be scored, with its file and line.
    """
    if task not in tasks:
        raise DataError(_explain_unknown(task, tasks))
    metric = tasks[task]
    if isinstance(predictions, Path) and _is_folder(predictions):
        path = _find_predictions(predictions, task)
        if path is None:
            raise DataError(f"{predictions} holds no {' and no '.join(_list_files(task))}.")
        predictions = path
    if isinstance(gold, Path) and _is_folder(gold):
        gold = find_data(gold, task)
    answers = read_answers(predictions, task, metric, is_gold=False)
    pairs = match(read_answers(gold, task, metric, is_gold=True), answers, task, missing)
    return Score(
        task,
        measure(task, pairs) if metric is None else measure_own(metric, pairs),
        labels=len(pairs),
        missing=len(pairs) - len(answers.by_key),
        repeated=answers.repeated,
        groups=diagnose(pairs) if task == "lidirus" else (),
    )


def _explain_unknown(task: str, tasks: TaskMetrics) -> str:
    if task.lower() in tasks:
        return f"There is no task {task!r}; did you mean {task.lower()!r}?"
    known = f"There is no task {task!r}; {'the nine' if tasks is NINE else 'the tasks'} are: "
    known += f"{', '.join(tasks)}."
    hint = " How a task of your own is scored stands in a profile: see --profile."
    return known + (hint if tasks is NINE else "")


def score_folder(
    predictions: Path, gold: Path, missing: Missing = "error", tasks: TaskMetrics = NINE
) -> Scores:
    """Score every task that a folder has predictions of, as parus.jsonl or PARus.jsonl.

    `gold` is laid out as the archive of russiansuperglue.com. DataError says what cannot be scored.
    """
    for folder in (predictions, gold):
        if not _is_folder(folder):
            raise DataError(
                f"{folder} is not a folder; to score one task, give TASK PREDICTIONS GOLD."
            )
    files = {task: _find_predictions(predictions, task) for task in tasks}
    if not any(files.values()):
        names = " or ".join(_list_files(next(iter(tasks if tasks is not NINE else ["parus"]))))
        raise DataError(f"{predictions} holds no predictions: a file is named {names}.")
    present = ((task, path) for task, path in files.items() if path)
    scores = (score_task(task, path, gold, missing, tasks) for task, path in present)
    return Scores(tuple(scores), tuple(tasks))


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 (no error for a name that is too long)


def _find_predictions(folder: Path, task: str) -> Path | None:
    """Return the file of a task, named after it or, as in a submission, after its title."""
    paths = [folder / name for name in _list_files(task)]
    found = [path for path in paths if os.path.exists(path)]  # noqa: PTH110 (as above)
    if len(found) == 2 and not found[0].samefile(found[1]):
        raise DataError(f"{folder} holds both {found[0].name} and {found[1].name}; remove one.")
    return found[0] if found else None


def _list_files(task: str) -> list[str]:
    names = (task, TASKS[task].title) if task in TASKS else (task,)
    return [f"{name}.jsonl" for name in names]


def measure_own(metric: OwnMetric, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the metric of a task of one's own.

    Accuracy and macro F1 of labels, as of RCB; or the share of texts that equal a right one after
    the normalisation of RuCoS.
    """
    if metric == "exact_match":
        return {"em": mean([match_text(pair.predicted, pair.gold)[1] for pair in pairs])}
    gold, predicted = [pair.gold for pair in pairs], [pair.predicted for pair in pairs]
    return {metric: (accuracy if metric == "accuracy" else macro_f1)(gold, predicted)}


def measure(task: str, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the metrics of a task by their official names.

    As their models in (Super)GLUE define them: LiDiRus as the diagnostics of GLUE, RCB as
    CommitmentBank, MuSeRC as MultiRC (a question is identified by its passage and its own idx),
    RuCoS as ReCoRD (the best answer of each question, averaged over the questions).
    """
    gold, predicted = [pair.gold for pair in pairs], [pair.predicted for pair in pairs]
    if task == "lidirus":
        return {"mcc": correlate(pairs)}
    if task == "rcb":
        return {"f1": macro_f1(gold, predicted), "accuracy": accuracy(gold, predicted)}
    if task == "muserc":
        questions = [pair.key[:2] for pair in pairs]
        right = [pair.gold == pair.predicted for pair in pairs]
        return {"f1a": f1(gold, predicted, positive=1), "em": exact_match(questions, right)}
    if task == "rucos":
        matches = [match_text(pair.predicted, answers) for pair in pairs for answers in pair.gold]
        f1s, exacts = zip(*matches, strict=True)
        return {"f1": mean(f1s), "em": mean(exacts)}
    return {"accuracy": accuracy(gold, predicted)}
