"""How often intervals hold the truth, and how often equal models are told apart."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from figures import Figure
from morocco.report.comparison import compare_tasks
from morocco.report.model import Readings
from simulated_suites import (
    Condition,
    bootstrap,
    bound,
    list_conditions,
    measure_alarms,
    measure_coverage,
)

_RUNS = (3, 4, 5, 7, 10)
_TRIALS = 2500
_BOOTSTRAP_TRIALS = 100
_TASKS = 9
Pairs = list[tuple[Readings, Readings]]


def measure_intervals(_: Path) -> Iterator[Figure]:
    """Yield coverage, width, false alarms and power; print the coverage of each condition."""
    *usual, one, two, three = list_conditions()
    covered = {condition: _cover(condition) for condition in (*usual, one, two, three)}
    _print(covered)
    shares = [share for condition in usual for share, _ in covered[condition]]
    yield Figure(
        "intervals of 95 %: how often they hold the truth, 3 to 10 runs, nine conditions",
        *("78 to 98 %", "94 to 97 %", f"{_span(shares)}", _is_within(shares)),
    )
    harder = [share for condition in (one, two, three) for share, _ in covered[condition]]
    yield Figure(
        "same, with a third of outliers", "-", "told", _span(harder), reached=min(harder) > 0.94
    )
    yield _compare_widths(usual[0:3])
    yield from _measure_alarms(usual[2])


def _cover(condition: Condition) -> list[tuple[float, float]]:
    return [measure_coverage(condition, runs, _TRIALS, bound) for runs in _RUNS]


def _print(covered: dict[Condition, list[tuple[float, float]]]) -> None:
    lines = [f"{'coverage, width':28}" + "".join(f"{runs:>8} runs   " for runs in _RUNS)]
    for condition, of_runs in covered.items():
        cells = (f"{share:8.1%} {width:6.1%}" for share, width in of_runs)
        lines.append(f"{condition.name:28}" + "".join(cells))
    print("\n".join(lines), file=sys.stderr)  # noqa: T201


def _span(shares: list[float]) -> str:
    return f"{min(shares):.1%} to {max(shares):.1%}"


def _is_within(shares: list[float]) -> bool:
    return min(shares) >= 0.94 and max(shares) <= 0.97


def _compare_widths(conditions: list[Condition]) -> Figure:
    """Compare the widths from five runs on with those of the bootstrap."""
    ratios = []
    for condition in conditions:
        for runs in _RUNS[2:]:
            _, width = measure_coverage(condition, runs, _BOOTSTRAP_TRIALS, bound)
            _, before = measure_coverage(condition, runs, _BOOTSTRAP_TRIALS, bootstrap)
            ratios.append(width / before)
    return Figure(
        "their width from 5 runs on, against a bootstrap of medians (normal noise)",
        *("1", "1.05 at most", f"{fmean(ratios):.2f}", fmean(ratios) <= 1.05),
    )


def _sees_one(pairs: Pairs) -> bool:
    """Return whether any task is told to differ."""
    _, by_task = compare_tasks(*_name_tasks(pairs))
    return any(ratios["rps"].real for ratios in by_task.values())


def _sees_mean(pairs: Pairs) -> bool:
    overall, _ = compare_tasks(*_name_tasks(pairs))
    return bool(overall["rps"].real)


def _name_tasks(pairs: Pairs) -> tuple[dict[str, Readings], dict[str, Readings]]:
    return tuple({f"{at}": pair[side] for at, pair in enumerate(pairs)} for side in (0, 1))  # type: ignore[return-value]


def _measure_alarms(condition: Condition) -> Iterator[Figure]:
    for what, find, tasks, trials in (
        ("one task", _sees_one, 1, 4000),
        ("any of nine tasks", _sees_one, _TASKS, 700),
        ("the mean of nine", _sees_mean, _TASKS, 700),
    ):
        rates = [measure_alarms(condition, runs, trials, find, tasks) for runs in _RUNS[::2]]
        error = (0.05 * 0.95 / trials) ** 0.5
        yield Figure(
            f"equal models told apart, {what}, with 3, 5, 10 runs",
            *("-", "5 % at most", ", ".join(f"{rate:.1%}" for rate in rates)),
            reached=max(rates) <= 0.05 + 2 * error,  # what chance makes of 5 %
        )
    for speed in (0.98, 0.95, 0.9):
        power = measure_alarms(condition, 5, 300, _sees_one, speed=speed)
        mean_power = measure_alarms(condition, 5, 150, _sees_mean, _TASKS, speed)
        yield Figure(
            f"model {1 - speed:.0%} slower told apart with 5 runs: one task, mean of nine",
            *("-", "told", f"{power:.0%}, {mean_power:.0%}", True),
        )
