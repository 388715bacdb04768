"""From the readings of runs to numbers, and to what the numbers would be with other runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, inf, isfinite, isnan, log
from random import Random
from statistics import fmean, median, stdev

from morocco.logs.log import Log
from morocco.logs.record import RunRecord
from morocco.report.model import SCALED, Metric, Ratio, Readings
from morocco.stats.anomalies import MIN_RUNS
from morocco.stats.grouping import Group
from morocco.stats.speed import (
    SEED,
    compute_interval,
    compute_rps,
    is_longer,
    resample_median,
    resample_rps,
)
from morocco.util.units import GIB, Bytes

COMPARED: tuple[Metric, ...] = ("rps", "init_time", "gpu_ram", "ram", "energy")
"""Metrics that have a ratio: the highest peak of the long runs has no honest interval."""
_PER: int = 1000
"""Records that the energy is told for."""


def read_group(group: Group, records: Mapping[str, RunRecord]) -> Readings:
    """Return what the runs of a group took; `records` by the name of their log."""
    init, long = group.init.logs, group.long.logs
    return Readings(
        input_size=group.path.input_size,
        batch_size=group.path.batch_size,
        init_times=tuple(group.init.times),
        run_times=tuple(group.long.times),
        gpu_ram=_to_gb(log.gpu_ram for log in init),
        gpu_ram_batch=_to_gb(log.gpu_ram for log in long),
        ram=_to_gb(log.ram for log in init),
        ram_batch=_to_gb(log.ram for log in long),
        init_energy=_find_energy(init, records),
        energy=_find_energy(long, records),
    )


def _to_gb(peaks: Iterable[Bytes | None]) -> tuple[float, ...]:
    return tuple(peak / GIB for peak in peaks if peak is not None)


def _find_energy(logs: Iterable[Log], records: Mapping[str, RunRecord]) -> tuple[float, ...]:
    told = (records[log.name].energy for log in logs if log.name in records)
    return tuple(joules for joules in told if joules is not None and joules >= 0)


def has_speed(readings: Readings) -> bool:
    """Tell whether every long run outlasts the start-up."""
    init = median(readings.init_times)
    return all(is_longer(time, init) for time in readings.run_times)


def measure(metric: Metric, readings: Readings) -> float | None:
    """Return a metric as `stats` computes it; None where the runs do not tell it."""
    if metric == "rps":
        times = sorted(readings.run_times)
        return compute_rps(readings.input_size, median(readings.init_times), times)
    if metric == "energy":
        return _measure_energy(readings)
    values = _get_values(metric, readings)
    return median(values) if values else None


def _measure_energy(readings: Readings) -> float | None:
    """Return the joules of 1000 records beyond the start-up; None where these drown in it."""
    if not (readings.energy and readings.init_energy):
        return None
    beyond = median(readings.energy) - median(readings.init_energy)
    return beyond / readings.input_size * _PER if beyond > 0 else None


def measure_spread(readings: Readings) -> float | None:
    """Return standard deviation / mean of the speed; None for a single long run."""
    init = median(readings.init_times)
    speeds = [readings.input_size / (time - init) for time in readings.run_times]
    return stdev(speeds) / fmean(speeds) if len(speeds) > 1 else None


def resample(metric: Metric, readings: Readings, stream: str) -> list[float]:
    """Return the metric of each resample of the runs; another `stream` draws on its own.

    Not finite where a resample has no bound; the same readings and stream give the same numbers.
    """
    random = Random(f"{SEED} {stream} {metric}")
    if metric == "rps":
        size, inits, times = readings.input_size, readings.init_times, readings.run_times
        return resample_rps(size, inits, times, random)
    if metric == "energy":
        start_ups = resample_median(readings.init_energy, random)
        wholes = resample_median(readings.energy, random)
        pairs = zip(start_ups, wholes, strict=True)
        return [max(0.0, whole - init) / readings.input_size * _PER for init, whole in pairs]
    return resample_median(_get_values(metric, readings), random)


def count_runs(metric: Metric, readings: Readings) -> int:
    """Return how many runs a metric rests on: of both sizes, the fewer."""
    if metric == "rps":
        return min(len(readings.init_times), len(readings.run_times))
    if metric == "energy":
        return min(len(readings.init_energy), len(readings.energy))
    return len(_get_values(metric, readings))


def _get_values(metric: Metric, readings: Readings) -> tuple[float, ...]:
    values = {
        "init_time": readings.init_times,
        "gpu_ram": readings.gpu_ram,
        "ram": readings.ram,
    }
    return values[metric]


def is_measurable(value: float | None) -> bool:
    """Tell whether a number can stand in a ratio."""
    return value is not None and isfinite(value) and value > 0


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
    low, high = compute_interval(drawn)
    real = low > 1 or high < 1
    return Ratio(
        value,
        low if low > 0 else None,
        high if isfinite(high) else None,
        real if runs >= MIN_RUNS else None,
    )
