"""Scores as they come out: of one task, of many, and the overall score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from morocco.diagnostics import Group
from morocco.metrics import mean
from morocco.tasks import TASKS
from morocco.units import plural


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
    groups: tuple[Group, ...] = ()
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
