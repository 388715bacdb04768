"""Two models against each other: ratios, how sure they are, and whether they are noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp, inf, isfinite, isnan, log

from morocco.doubts import FEW_RUNS
from morocco.readings import COMPARED, count_runs, is_measurable, measure, resample
from morocco.report import SCALED, Metric, Ratio, Readings
from morocco.speed import find_interval

_Drawn = list[float] | None
"""A ratio for each resample; None where a single run says nothing of others."""


def compare_tasks(
    model: Mapping[str, Readings], baseline: Mapping[str, Readings], without: Sequence[str] = ()
) -> tuple[dict[Metric, Ratio], dict[str, dict[Metric, Ratio]]]:
    """Return model / baseline over all tasks that both have, and for each of them.

    Over all tasks it is the geometric mean; those of `SCALED` leave `without` out, as their means
    do.
    """
    compared = {
        task: dict(_compare_task(task, readings, baseline[task]))
        for task, readings in model.items()
        if task in baseline
    }
    overall = {}
    for metric in COMPARED:
        left_out = without if metric in SCALED else ()
        ratios = [
            of[metric] for task, of in compared.items() if metric in of and task not in left_out
        ]
        if ratios:
            overall[metric] = _combine(ratios)
    by_task = {
        task: {metric: _judge(*ratio) for metric, ratio in of_task.items()}
        for task, of_task in compared.items()
    }
    return overall, by_task


def _compare_task(
    task: str, model: Readings, baseline: Readings
) -> Iterator[tuple[Metric, tuple[float, _Drawn, int]]]:
    for metric in COMPARED:
        above, below = measure(metric, model), measure(metric, baseline)
        if is_measurable(above) and is_measurable(below):
            assert above is not None
            assert below is not None
            runs = min(count_runs(metric, model), count_runs(metric, baseline))
            drawn = _draw(metric, task, model, baseline) if runs > 1 else None
            yield metric, (above / below, drawn, runs)


def _draw(metric: Metric, task: str, model: Readings, baseline: Readings) -> list[float]:
    """Return the ratio of each resample: the runs of both are drawn, each on its own."""
    above, below = resample(metric, model, f"model {task}"), resample(metric, baseline, task)
    return [_divide(a, b) for a, b in zip(above, below, strict=True)]


def _divide(above: float, below: float) -> float:
    if below == 0:
        return 1.0 if above == 0 else inf
    # Where neither has a bound nothing is known, so there is no difference either.
    return 1.0 if isnan(ratio := above / below) else ratio


def _combine(ratios: Sequence[tuple[float, _Drawn, int]]) -> Ratio:
    """Return the geometric mean of ratios."""
    drawn = [of_task for _, of_task, _ in ratios]
    known = [of_task for of_task in drawn if of_task is not None]
    means = [_mean(at) for at in zip(*known, strict=True)] if len(known) == len(drawn) else None
    return _judge(_mean([value for value, _, _ in ratios]), means, min(n for _, _, n in ratios))


def _mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean; 0 and inf outweigh all, and one another."""
    total = sum(-inf if ratio == 0 else log(ratio) for ratio in ratios)
    return 1.0 if isnan(total) else exp(total / len(ratios))


def _judge(value: float, drawn: _Drawn, runs: int) -> Ratio:
    if drawn is None:
        return Ratio(value, None, None, None)
    low, high = find_interval(drawn)
    real = low > 1 or high < 1
    return Ratio(
        value,
        low if low > 0 else None,
        high if isfinite(high) else None,
        real if runs >= FEW_RUNS else None,
    )
