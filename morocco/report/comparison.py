"""Models against a baseline: metrics from the readings of runs, and ratios with an interval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import exp, isfinite, log
from statistics import fmean, median, stdev
from typing import NamedTuple

from morocco.logs.log import Log
from morocco.logs.record import RunRecord
from morocco.report.model import SCALED, Metric, Ratio, Readings
from morocco.stats.anomalies import MIN_RUNS
from morocco.stats.grouping import Group
from morocco.stats.intervals import (
    Moments,
    average,
    bound,
    count_more,
    find_different,
    find_visible,
    invert,
    measure,
    scale,
    subtract,
    to_log,
)
from morocco.stats.speed import compute_rps, is_longer
from morocco.util.units import GIB, Bytes

COMPARED: tuple[Metric, ...] = ("rps", "init_time", "gpu_ram", "ram", "energy")
"""Metrics that have a ratio: the highest peak of the long runs has no honest interval."""
_MOST_RUNS = 100
"""More runs than these are not suggested: such a difference is too small to matter."""
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


class _TaskRatio(NamedTuple):
    value: float
    log: Moments | None
    """Of the means of the runs; None where too few or too short runs leave it open."""
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
        task: dict(_compare_task(readings, baseline[task]))
        for task, readings in model.items()
        if task in baseline
    }
    overall = {}
    judged: dict[str, dict[Metric, Ratio]] = {task: {} for task in by_task}
    for metric in COMPARED:
        of_tasks = {task: ratios[metric] for task, ratios in by_task.items() if metric in ratios}
        for task, ratio in zip(of_tasks, _judge_all(list(of_tasks.values())), strict=True):
            judged[task][metric] = ratio
        left_out = without if metric in SCALED else ()
        if counted := [ratio for task, ratio in of_tasks.items() if task not in left_out]:
            [overall[metric]] = _judge_all([_combine(counted)])
    return overall, judged


def _compare_task(model: Readings, baseline: Readings) -> Iterator[tuple[Metric, _TaskRatio]]:
    for metric in COMPARED:
        above, below = compute_metric(metric, model), compute_metric(metric, baseline)
        if above and below and isfinite(above) and isfinite(below):
            values = (*_get_values(metric, model), *_get_values(metric, baseline))
            moments = measure_metric(metric, model), measure_metric(metric, baseline)
            known = None if None in moments else subtract(*map(to_log, filter(None, moments)))
            yield metric, _TaskRatio(above / below, known, min(map(len, values)))


def measure_metric(metric: Metric, readings: Readings) -> Moments | None:
    """Return a metric over the runs and how well it is known; None if it may as well be 0.

    None also where there is a single run of a kind.
    """
    values = _get_values(metric, readings)
    if min(map(len, values)) < 2:
        return None
    moments = measure(values[0])
    if len(values) == 2:
        moments = subtract(measure(values[1]), moments)
    if moments.mean <= moments.half_width():
        return None
    if metric == "rps":
        return invert(moments, readings.input_size)
    return scale(moments, _ENERGY_RECORDS / readings.input_size) if metric == "energy" else moments


def _combine(ratios: Sequence[_TaskRatio]) -> _TaskRatio:
    """Return the geometric mean of ratios."""
    logs = [ratio.log for ratio in ratios if ratio.log is not None]
    return _TaskRatio(
        exp(fmean(log(ratio.value) for ratio in ratios)),
        average(logs) if len(logs) == len(ratios) else None,
        min(ratio.runs for ratio in ratios),
    )


def _judge_all(ratios: Sequence[_TaskRatio]) -> list[Ratio]:
    """Return ratios with their intervals, and which of them are real, judged together."""
    judged = [(at, ratio.log) for at, ratio in enumerate(ratios) if ratio.log is not None]
    enough = [(at, moments) for at, moments in judged if ratios[at].runs >= MIN_RUNS]
    real = find_different([moments for _, moments in enough])
    found = {at: is_real for (at, _), is_real in zip(enough, real, strict=True)}
    return [_to_ratio(ratio, found.get(at)) for at, ratio in enumerate(ratios)]


def _to_ratio(ratio: _TaskRatio, real: bool | None) -> Ratio:
    if ratio.log is None:
        return Ratio(ratio.value, None, None, None, ratio.runs)
    low, high = bound(ratio.log, log(ratio.value))
    found = Ratio(ratio.value, exp(low), exp(high), real, ratio.runs)
    if real is not False:
        return found
    return replace(
        found,
        visible=exp(find_visible(ratio.log)) - 1,
        more_runs=count_more(ratio.log, ratio.runs, _MOST_RUNS),
    )
