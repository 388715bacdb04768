"""Models against a baseline: metrics from the readings of runs, and ratios with an interval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, inf, isfinite, isnan, log
from random import Random
from statistics import fmean, median, stdev
from typing import NamedTuple

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
_ENERGY_RECORDS = 1000
"""Records whose energy is reported."""


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
        init_energy=_get_energy(init, records),
        energy=_get_energy(long, records),
    )


def _to_gb(peaks: Iterable[Bytes | None]) -> tuple[float, ...]:
    return tuple(peak / GIB for peak in peaks if peak is not None)


def _get_energy(logs: Iterable[Log], records: Mapping[str, RunRecord]) -> tuple[float, ...]:
    amounts = (records[log.name].energy for log in logs if log.name in records)
    return tuple(joules for joules in amounts if joules is not None and joules >= 0)


def has_speed(readings: Readings) -> bool:
    """Tell whether every long run outlasts the start-up."""
    init = median(readings.init_times)
    return all(is_longer(time, init) for time in readings.run_times)


def compute_metric(metric: Metric, readings: Readings) -> float | None:
    """Compute a metric as `stats` does; None where the runs do not have it."""
    if metric == "rps":
        times = sorted(readings.run_times)
        return compute_rps(readings.input_size, median(readings.init_times), times)
    values = _get_values(metric, readings)
    if not all(values):
        return None
    if metric == "energy":
        init, whole = map(median, values)
        # Joules of 1000 records beyond the start-up; None where that takes more than the work.
        return (whole - init) / readings.input_size * _ENERGY_RECORDS if whole > init else None
    return median(values[0])


def _get_values(metric: Metric, readings: Readings) -> tuple[tuple[float, ...], ...]:
    """Return the readings that a metric is computed from, one tuple for each kind of run."""
    if metric == "rps":
        return readings.init_times, readings.run_times
    if metric == "energy":
        return readings.init_energy, readings.energy
    return (readings.init_times if metric == "init_time" else getattr(readings, metric),)


def compute_spread(readings: Readings) -> float | None:
    """Return standard deviation / mean of the speed; None for a single long run."""
    init = median(readings.init_times)
    speeds = [readings.input_size / (time - init) for time in readings.run_times]
    return stdev(speeds) / fmean(speeds) if len(speeds) > 1 else None


def _resample(metric: Metric, readings: Readings, stream: str) -> list[float]:
    """Return the metric of each resample of the runs; each `stream` draws independently.

    Infinite where a resample has no bound. The same readings and stream give the same numbers.
    """
    random = Random(f"{SEED} {stream} {metric}")
    if metric == "rps":
        size, inits, times = readings.input_size, readings.init_times, readings.run_times
        return resample_rps(size, inits, times, random)
    medians = [resample_median(values, random) for values in _get_values(metric, readings)]
    if metric == "energy":
        scale = _ENERGY_RECORDS / readings.input_size
        return [max(0.0, whole - init) * scale for init, whole in zip(*medians, strict=True)]
    return medians[0]


class _TaskRatio(NamedTuple):
    value: float
    resamples: list[float] | None
    """The ratio of each resample; None where a single run says nothing about others."""
    runs: int
    """Of both models and both kinds of run, the fewest."""


def compare_tasks(
    model: Mapping[str, Readings], baseline: Mapping[str, Readings], without: Sequence[str] = ()
) -> tuple[dict[Metric, Ratio], dict[str, dict[Metric, Ratio]]]:
    """Return model / baseline over all tasks that both have, and for each of these tasks.

    Over all tasks it is the geometric mean; that of the metrics in `SCALED` leaves out the tasks
    in `without`, as their means do.
    """
    by_task = {
        task: dict(_compare_task(task, readings, baseline[task]))
        for task, readings in model.items()
        if task in baseline
    }
    overall = {}
    for metric in COMPARED:
        left_out = without if metric in SCALED else ()
        ratios = [of[metric] for t, of in by_task.items() if metric in of and t not in left_out]
        if ratios:
            overall[metric] = _judge(_combine(ratios))
    return overall, {
        task: {metric: _judge(ratio) for metric, ratio in ratios.items()}
        for task, ratios in by_task.items()
    }


def _compare_task(
    task: str, model: Readings, baseline: Readings
) -> Iterator[tuple[Metric, _TaskRatio]]:
    for metric in COMPARED:
        above, below = compute_metric(metric, model), compute_metric(metric, baseline)
        if above and below and isfinite(above) and isfinite(below):
            values = (*_get_values(metric, model), *_get_values(metric, baseline))
            runs = min(map(len, values))
            resamples = None
            if runs > 1:
                of_model = _resample(metric, model, f"model {task}")
                of_baseline = _resample(metric, baseline, task)
                resamples = list(map(_divide, of_model, of_baseline))
            yield metric, _TaskRatio(above / below, resamples, runs)


def _divide(above: float, below: float) -> float:
    if below == 0:
        return 1.0 if above == 0 else inf
    # Where neither has a bound nothing is known, so there is no difference either.
    return 1.0 if isnan(ratio := above / below) else ratio


def _combine(ratios: Sequence[_TaskRatio]) -> _TaskRatio:
    """Return the geometric mean of ratios."""
    known = [ratio.resamples for ratio in ratios if ratio.resamples is not None]
    means = None
    if len(known) == len(ratios):
        means = [_compute_geometric_mean(at) for at in zip(*known, strict=True)]
    value = _compute_geometric_mean([ratio.value for ratio in ratios])
    return _TaskRatio(value, means, min(ratio.runs for ratio in ratios))


def _compute_geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean; 0 and inf outweigh all others and cancel each other out."""
    total = sum(-inf if ratio == 0 else log(ratio) for ratio in ratios)
    return 1.0 if isnan(total) else exp(total / len(ratios))


def _judge(ratio: _TaskRatio) -> Ratio:
    """Return the ratio with its interval, and whether it is more than noise."""
    if ratio.resamples is None:
        return Ratio(ratio.value, None, None, None)
    low, high = compute_interval(ratio.resamples)
    return Ratio(
        ratio.value,
        low if low > 0 else None,
        high if isfinite(high) else None,
        (low > 1 or high < 1) if ratio.runs >= MIN_RUNS else None,
    )
