"""Means over tasks, and the one number of a model: pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import fmean

from morocco.report import Cell, Mean, WeightedScore

MILLION = 1_000_000
HOUR = 3600


def compute_mean(values: Mapping[str, float | None]) -> Mean:
    """Return both means of the values that are known, by task."""
    known = {task: value for task, value in values.items() if value is not None}
    numbers = tuple(known.values())
    return Mean(
        fmean(numbers) if numbers else None,
        geometric_mean(numbers) if numbers and all(n > 0 for n in numbers) else None,
        tuple(known),
        tuple(task for task in values if task not in known),
    )


def geometric_mean(numbers: Sequence[float]) -> float:
    """Return the geometric mean of numbers above 0."""
    return exp(fmean(map(log, numbers)))


def compute_cost(price: float, rps: float) -> float:
    """Return what a million records cost at the price of an hour, beyond the start-up."""
    return price * MILLION / rps / HOUR


def compute_weighted_score(
    cells: Mapping[str, Cell], weights: Mapping[str, float]
) -> WeightedScore:
    """Return the score of the suites: exp(sum(w log perf_adj) / sum w).

    perf_adj = rps * (1 - spread) * (1 - failed / tried). A task that weighs something and has no
    perf_adj above 0 leaves the model without a score.
    """
    adjusted: dict[str, float] = {}
    missing: dict[str, str] = {}
    weighing = {task: weight for task, weight in weights.items() if weight > 0}
    for task in weighing:
        cell = cells.get(task)
        if cell is None or cell.estimate is None:
            missing[task] = (cell.reason if cell else None) or "no runs"
        elif (found := adjust(cell.estimate.rps, cell.spread, cell.failed, cell.tried)) > 0:
            adjusted[task] = found
        else:
            missing[task] = "the speed varies by as much as it is"
    total = sum(weighing[task] for task in adjusted)
    partial = None
    if total:
        partial = exp(sum(weighing[task] * log(perf) for task, perf in adjusted.items()) / total)
    return WeightedScore(None if missing else partial, partial, adjusted, missing)


def adjust(rps: float, spread: float | None, failed: int, tried: int) -> float:
    """Return the speed less what it varies by, and less the share of runs that failed.

    A single run has no spread and counts as if it had none.
    """
    return rps * (1 - (spread or 0.0)) * (1 - failed / tried)
